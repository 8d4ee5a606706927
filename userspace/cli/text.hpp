// SPDX-License-Identifier: MIT
// Text for terminals: 80 columns, no more.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

inline constexpr size_t columns = 80;

/// What is no printable ASCII is "?" in it: names may be anybody's choice.
std::string printable(std::string_view text);

/// @p words behind @p head, broken at spaces; later lines begin below the words. All of
/// it is printable.
std::string hanging(std::string_view head, std::string_view words);
/// The same, and later lines begin with @p indent.
std::string hanging(std::string_view head, std::string_view words,
		    std::string_view indent);

/// Rows with their columns below each other, two spaces between and before them; all
/// printable.
std::string aligned(const std::vector<std::vector<std::string>> &rows);

/// "16 GiB"
std::string size_text(uint64_t bytes);

/// "400 Gb/s"
std::string bits_text(double bits_per_second);

/// "63 GB/s"
std::string rate_text(double bytes_per_second);

} // namespace sluice::cli
