// SPDX-License-Identifier: MIT
#include "exit_status.hpp"

#include <algorithm>
#include <array>
#include <format>
#include <optional>

namespace sluice::cli {

namespace {

struct row {
	exit_status status;
	std::optional<errc> code;
	const char *meaning;
	const char *remedy;
};

constexpr const char *see_doctor = "sluice doctor tells what this machine lacks";

constexpr std::array table = {
	row{exit_status::ok, {}, "done; doctor: it found nothing to mend", ""},
	row{exit_status::system, errc::system, "a system call failed",
	    "the words behind the last colon are the kernel's reason"},
	row{exit_status::usage, errc::usage, "bad arguments",
	    "sluice COMMAND --help tells what there is"},
	row{exit_status::input, errc::input,
	    "a file is missing, not what it should be, or ends early",
	    "check its name, its size and your right to read it"},
	row{exit_status::device, errc::device,
	    "a device is missing, refuses, or failed",
	    "sluice info lists the devices, sluice doctor what hinders them"},
	row{exit_status::peer_lost, errc::peer_lost,
	    "the other side cannot be reached, or went away",
	    "check the address and the network, and see what the other side printed"},
	row{exit_status::timeout, errc::timeout, "not done in the time that it had",
	    "see that the other side runs, or give it more time"},
	row{exit_status::corrupt, errc::corrupt,
	    "the data that arrived are not those sent",
	    "do not use them; send them again, and distrust the hardware on the "
	    "way"},
	row{exit_status::protocol, errc::protocol, "the other side broke the protocol",
	    "use the same version of sluice, and options that match, on both sides"},
	row{exit_status::output, errc::output,
	    "a file cannot be written: full, read only",
	    "make room, or write elsewhere"},
	row{exit_status::unsupported, errc::unsupported,
	    "the kernel or a device cannot do it", see_doctor},
	row{exit_status::no_path, errc::no_path,
	    "no path, or another one than required",
	    "sluice info A B tells which path there is, and why it is no better"},
	row{exit_status::busy, errc::busy, "too much is under way", "try again later"},
	row{exit_status::stale, errc::stale, "what it was prepared for is gone",
	    "try again: it is prepared anew"},
	row{exit_status::peer_error, errc::peer_error,
	    "the other side reported an error", "see what the other side printed"},
	row{exit_status::denied, errc::denied,
	    "a side lacks the token, or a right to the memory it used",
	    "give both sides the same token"},
	row{exit_status::cancelled, errc::cancelled, "it was cancelled", "try again"},
	row{exit_status::slower,
	    {},
	    "doctor: all works, but something is slower than it could be",
	    ""},
	row{exit_status::missing, {}, "doctor: something is missing", ""},
};

const row &row_of(errc code) noexcept
{
	auto found = std::ranges::find(table, std::optional(code), &row::code);

	return found == table.end() ? table[1] : *found;
}

} // namespace

exit_status status_of(errc code) noexcept
{
	return row_of(code).status;
}

const char *remedy_of(errc code) noexcept
{
	return row_of(code).remedy;
}

std::string exit_status_text()
{
	std::string text = "Exit status:\n";

	for (const row &r : table)
		text += std::format("  {:2}  {:<11}  {}\n", static_cast<int>(r.status),
				    r.code ? name(*r.code) : "", r.meaning);
	return text;
}

} // namespace sluice::cli
