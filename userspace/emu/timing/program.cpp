// SPDX-License-Identifier: MIT
#include "program.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace sluice::timing {

namespace {
// In the order of Kind. Those of packets are what the emulator calls them.
constexpr std::array<const char *, 20> names{
	"submit", "store",    "await",	"sleep",  "nop",       "copy",	    "broadcast",
	"window", "swap",     "fill",	"write",  "indirect",  "fence",	    "trap",
	"poll",	  "cond_exe", "atomic", "ptepde", "timestamp", "srbm_write"};
} // namespace

const char *name(Kind k)
{
	return names.at(static_cast<std::size_t>(k));
}

Kind kind(std::string_view called)
{
	auto found = std::ranges::find(names, called);

	if (found == names.end())
		throw std::runtime_error("no packet is called '" + std::string(called) +
					 "'");
	return static_cast<Kind>(found - names.begin());
}

} // namespace sluice::timing
