// SPDX-License-Identifier: MIT
// Numbers in text from elsewhere: the kernel, other programs, any user.
#pragma once

#include <charconv>
#include <string_view>

namespace sluice::cli {

/// Whether @p text is a number that fits, from its first character to its last.
/// @param base of an integer; omitted: 10
template <class T, class... Base>
bool parse_number(std::string_view text, T &to, Base... base)
{
	auto [end, err] =
		std::from_chars(text.data(), text.data() + text.size(), to, base...);

	return err == std::errc() && end == text.data() + text.size();
}

} // namespace sluice::cli
