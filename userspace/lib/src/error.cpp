// SPDX-License-Identifier: MIT
#include "sluice/error.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace sluice {

namespace {

constexpr std::array names = {
	"usage",    "system",  "input",	    "output",	 "device",     "unsupported",
	"no-path",  "busy",    "stale",	    "peer-lost", "peer-error", "denied",
	"protocol", "timeout", "cancelled", "corrupt",
};
static_assert(names.size() == static_cast<size_t>(errc::corrupt) + 1);

constexpr std::string_view dots = "...";

/// Is this a byte of a character of UTF-8, but not its first?
bool continues(char byte)
{
	return (byte & 0xc0) == 0x80;
}

/// The text before @p end, without a part of a character.
std::string_view before_character(std::string_view text, size_t end)
{
	while (end && continues(text[end]))
		end--;
	return text.substr(0, end);
}

/// The text from @p begin on, without a part of a character.
std::string_view from_character(std::string_view text, size_t begin)
{
	while (begin < text.size() && continues(text[begin]))
		begin++;
	return text.substr(begin);
}

} // namespace

const char *name(errc code) noexcept
{
	return names[static_cast<size_t>(code)];
}

error::error(errc code, std::string_view where, std::string_view what,
	     int number) noexcept
	: code_(code), number_(number)
{
	static_assert(sizeof(text_) <= std::numeric_limits<uint8_t>::max());
	constexpr size_t longest_where = sizeof(text_) / 2;
	auto add = [this](std::string_view more) {
		size_t n = std::min(more.size(), text_.size() - size_);

		std::memcpy(text_.data() + size_, more.data(), n);
		size_ = static_cast<uint8_t>(size_ + n);
	};

	// What is wrong must be seen even if the name is long. The end of a path says
	// more than its middle.
	if (where.size() <= longest_where) {
		add(where);
	} else {
		constexpr size_t head = longest_where / 3;
		constexpr size_t tail = longest_where - head - dots.size();

		add(before_character(where, head));
		add(dots);
		add(from_character(where, where.size() - tail));
	}
	where_ = size_;
	if (where_)
		add(": ");
	add(what);
}

std::unexpected<error> fail_errno(std::string_view where, std::string_view what,
				  int number, errc code) noexcept
{
	char text[160];
	// GNU's, which returns a static text for numbers that it knows
	char local[64];
	const char *why = ::strerror_r(number, local, sizeof(local));
	auto end = std::format_to_n(text, sizeof(text), "{}: {}", what, why);

	// These say nothing of the file or the device.
	if (number == ECANCELED)
		code = errc::cancelled;
	else if (number == EMFILE || number == ENFILE)
		code = errc::system;
	return fail(code, where, {text, static_cast<size_t>(end.out - text)}, number);
}

} // namespace sluice
