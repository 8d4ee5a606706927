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
	auto add = [this](std::string_view more) {
		size_t n = std::min(more.size(), text_.size() - size_);

		std::memcpy(text_.data() + size_, more.data(), n);
		size_ = static_cast<uint8_t>(size_ + n);
	};

	// What is wrong must be seen even if the name is long.
	add(where.substr(0, text_.size() / 2));
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
