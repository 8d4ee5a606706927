// SPDX-License-Identifier: MIT
// Variants of collectives: their names, who has which, and which is the quickest.
#include <algorithm>
#include <array>

#include "group_plan.hpp"

namespace sluice {

namespace {

constexpr std::array variants = {"automatic", "pcpy", "bcst", "swap", "b2b"};
static_assert(variants.size() == static_cast<size_t>(variant::b2b) + 1);

} // namespace

const char *name(variant how) noexcept
{
	return variants[static_cast<size_t>(how)];
}

result<variant> variant_of(std::string_view text)
{
	auto found = std::ranges::find(variants, text);

	if (found == variants.end())
		return fail(errc::usage, text, "no variant of collectives: automatic, "
			    "pcpy, bcst, swap or b2b");
	return static_cast<variant>(found - variants.begin());
}

} // namespace sluice

namespace sluice::detail {

namespace {

/// For blocks of up to so many bytes.
struct until {
	uint64_t block;
	variant how;
};

using row = std::array<until, 3>;

constexpr uint64_t any = UINT64_MAX;
constexpr uint64_t KiB = 1024;

// The one place that knows sizes. A model of the engines' time is to replace it.
//
// Source: tables of speed-up on eight MI300X, arXiv 2511.06605 and its artifact, in
// which a block is an eighth of the size that they name. Between two sizes of a table
// it is the nearer one's. Not measured here, and not for other numbers of GPUs: both
// what a variant saves and what it costs grow with the number of peers.
//
// Same bytes for all: all-gather.
constexpr row same = {{{64 * KiB, variant::b2b}, {512 * KiB, variant::bcst},
		       {any, variant::pcpy}}};
constexpr row same_prelaunched = {{{16 * KiB, variant::b2b}, {64 * KiB, variant::bcst},
				   {any, variant::pcpy}}};
// Other bytes for each: all-to-all without swaps. Those tables meet between 64 KB, where
// b2b is quicker, and 1 MB, where pcpy is.
constexpr row other = {{{128 * KiB, variant::b2b}, {any, variant::pcpy},
			{any, variant::pcpy}}};
constexpr row other_prelaunched = {{{16 * KiB, variant::b2b}, {any, variant::pcpy},
				    {any, variant::pcpy}}};

const row &row_for(const question &about) noexcept
{
	bool has_same = about.kind == pattern::all_gather ||
			about.kind == pattern::broadcast;

	if (has_same)
		return about.prelaunch ? same_prelaunched : same;
	return about.prelaunch ? other_prelaunched : other;
}

} // namespace

variant choose(const question &about) noexcept
{
	if (about.kind == pattern::all_to_all && about.in_place)
		return variant::swap;
	return std::ranges::find_if(row_for(about), [&](const until &u) {
		return about.block <= u.block; })->how;
}

bool allows(pattern kind, bool in_place, variant how) noexcept
{
	switch (how) {
	case variant::automatic:
		return true;
	case variant::pcpy:
	case variant::b2b:
		return kind != pattern::all_to_all || !in_place;
	case variant::bcst:
		return kind == pattern::all_gather || kind == pattern::broadcast;
	case variant::swap:
		return kind == pattern::all_to_all && in_place;
	}
	return false;
}

} // namespace sluice::detail
