// SPDX-License-Identifier: MIT
// Variants of collectives: their names, which operation has which, and which is the
// quickest.
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
		return fail(errc::usage, text,
			    "no variant of collectives: automatic, "
			    "pcpy, bcst, swap or b2b");
	return static_cast<variant>(found - variants.begin());
}

} // namespace sluice

namespace sluice::detail {

namespace {

// Estimates of time, in bytes that an engine moves meanwhile. The numbers are those of
// the model of eight MI300X in docs/model.md, whose engines move 48 GB/s;
// docs/collectives.md tells how far the choice is from the best one by that model.
// Nothing is measured here.
constexpr double KiB = 1024;
constexpr double per_packet = 16 * KiB;	  ///< 0.34 us: no packet takes less
constexpr double per_doorbell = 30 * KiB; ///< 0.62 us: the next one waits that long
constexpr double per_end = 8 * KiB;	  ///< 0.17 us: to see that an engine is done
/// A packet for two destinations, in copies: 2.55 by the model, and less by the paper,
/// in whose all-gather of 4 MB it is still quicker.
constexpr double broadcast_cost = 2.4;
constexpr size_t most_engines = 16;

constexpr double rounded_up(size_t n, size_t by)
{
	const size_t pieces = (n + by - 1) / by;

	return static_cast<double>(pieces);
}

/// The cost of one more engine: its doorbell. When a prelaunched collective is
/// released, that is over, and only seeing the engine's end remains.
double per_engine(const question &about)
{
	return about.prelaunch ? per_end : per_doorbell;
}

/// The time until the last engine has made its @p packets: one thread starts @p engines
/// of each GPU, one after the other.
double until_last(const question &about, double engines, double packets, double bytes)
{
	return static_cast<double>(about.senders) * engines * per_engine(about) +
	       packets * std::max(bytes, per_packet);
}

double time_b2b(const question &about)
{
	return until_last(about, 1, static_cast<double>(about.copies),
			  static_cast<double>(about.block));
}

double time_bcst(const question &about)
{
	return until_last(about, rounded_up(about.copies, 2), 1,
			  static_cast<double>(about.block) *
				  (about.copies > 1 ? broadcast_cost : 1));
}

/// The engines' time, or that of a link, which all copies to one rank share. The last
/// GPU's links are idle until its first doorbell. A single rank may have nothing to
/// copy.
double time_pcpy(const question &about)
{
	const size_t used = std::clamp<size_t>(about.copies, 1, most_engines);
	const auto engines = static_cast<double>(used);
	const auto senders = static_cast<double>(about.senders);
	const auto block = static_cast<double>(about.block);
	double begun = about.prelaunch ? senders : (senders - 1) * engines + 1;

	return std::max(
		until_last(about, engines, rounded_up(about.copies, used), block),
		begun * per_engine(about) + static_cast<double>(about.for_one) * block);
}

} // namespace

variant choose(const question &about) noexcept
{
	if (about.kind == pattern::all_to_all && about.in_place)
		return variant::swap;
	// of two that are equally quick, the one with fewer engines
	variant best = variant::b2b;
	double least = time_b2b(about);
	auto consider = [&](variant how, double time) {
		if (allows(about.kind, about.in_place, how) && time < least) {
			best = how;
			least = time;
		}
	};

	consider(variant::bcst, time_bcst(about));
	consider(variant::pcpy, time_pcpy(about));
	return best;
}

bool allows(pattern kind, bool in_place, variant how) noexcept
{
	switch (how) {
	case variant::automatic: return true;
	case variant::pcpy:
	case variant::b2b: return kind != pattern::all_to_all || !in_place;
	case variant::bcst:
		return kind == pattern::all_gather || kind == pattern::broadcast;
	case variant::swap: return kind == pattern::all_to_all && in_place;
	}
	return false;
}

} // namespace sluice::detail
