// SPDX-License-Identifier: MIT
// Text for terminals: 80 columns, no more.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

inline constexpr size_t columns = 80;

/// Replaces all but printable ASCII with "?": names may come from anywhere.
std::string printable(std::string_view text);

/// @p words after @p head, broken at spaces; later lines begin below the first word. All
/// of it is printable.
std::string hanging(std::string_view head, std::string_view words);
/// The same, but later lines begin with @p indent.
std::string hanging(std::string_view head, std::string_view words,
		    std::string_view indent);

/// Rows with aligned columns, two spaces between and before them; all printable.
std::string aligned(const std::vector<std::vector<std::string>> &rows);

/// "16 GiB"
std::string size_text(uint64_t bytes);

/// "400 Gb/s"
std::string bits_text(double bits_per_second);

/// "63 GB/s"
std::string rate_text(double bytes_per_second);

} // namespace sluice::cli
