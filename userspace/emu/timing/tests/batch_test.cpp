// SPDX-License-Identifier: MIT
// The packets of the kernel's own planner, as steps.
#include "exchange.hpp"
#include "fetch.hpp"
#include "simple.hpp"

#include <gtest/gtest.h>

#include <algorithm>

using namespace sluice::timing;
using namespace sluice::timing::test;

namespace {

std::vector<Kind> kinds_of_lane(const Program &p, u32 lane)
{
	std::vector<Kind> out;

	for (const Step &s : p.steps)
		if (s.lane == lane)
			out.push_back(s.kind);
	return out;
}

Program batches(Collective c, Way w, bool prelaunch, u64 size)
{
	return exchange_program(exchange_of(c, w, prelaunch, size), variant_of(c, w));
}

u64 bytes_over_links(const Program &p)
{
	u64 sum = 0;

	for (const Step &s : p.steps)
		for (const Place &end : {s.from, s.to, s.to2})
			if (end.path == Path::xgmi)
				sum += s.bytes * (s.kind == Kind::swap ? 2 : 1);
	return sum;
}

TEST(Batch, BackToBackIsOneJobOfSevenCopies)
{
	Program p = batches(Collective::all_gather, Way::b2b, false, 64 << 10);
	std::vector<Kind> expected{Kind::poll, Kind::indirect};

	expected.insert(expected.end(), 7, Kind::copy);
	expected.push_back(Kind::fence);
	expected.push_back(Kind::trap);
	EXPECT_EQ(p.lanes.size(), 1u + 8);
	EXPECT_EQ(kinds_of_lane(p, 1), expected);
}

// Whatever the planner cuts, 56 parts of an eighth cross the links.
TEST(Batch, EveryByteCrossesALinkOnce)
{
	for (auto c : {Collective::all_gather, Collective::all_to_all})
		for (auto w : {Way::pcpy, Way::pair, Way::b2b})
			for (bool prelaunch : {false, true})
				EXPECT_EQ(bytes_over_links(
						  batches(c, w, prelaunch, 8 << 20)),
					  56u << 20);
}

// A wait of the kernel is a poll for the host's store. Each of the three barriers is
// a fence and a poll for it.
TEST(Batch, WaitsAreReleasedByTheHostAndBarriersByFences)
{
	Program p = batches(Collective::all_gather, Way::b2b, true, 64 << 10);
	std::vector<Kind> after;

	for (const Step &s : p.steps)
		// without a word it is the flush of the host data path
		if (s.kind == Kind::poll && s.lane == 1 && s.from.path != Path::none) {
			ASSERT_EQ(s.after.size(), 1u);
			after.push_back(p.steps[s.after[0]].kind);
		}
	EXPECT_EQ(after,
		  (std::vector{Kind::store, Kind::fence, Kind::fence, Kind::fence}));
}

TEST(Batch, HostBlocksGoToTheEnginesThatFaceTheHost)
{
	Program p = fetch_program(Fetch::batch, Direction::swap_out, 512, 4 << 10);

	EXPECT_EQ(p.lanes.size(), 3u);
	for (std::size_t i = 1; i < p.lanes.size(); i++)
		EXPECT_LT(p.lanes[i].engine, 2u);
	EXPECT_EQ(std::ranges::count(p.steps, Kind::copy, &Step::kind), 512);
}

// By turns, half of the bytes take each direction of PCI Express, also in a loop.
TEST(Batch, BlocksGoInTheDirectionThatIsAskedFor)
{
	auto into_gpu = [](Fetch how, Direction where) {
		u64 bytes = 0;
		for (const Step &s : fetch_program(how, where, 64, 4096).steps)
			// a wait copies the word that it has seen
			if (s.kind == Kind::copy && s.bytes == 4096 &&
			    s.from.path == Path::system) {
				EXPECT_EQ(s.to.path, Path::vram);
				bytes += s.bytes;
			}
		return bytes;
	};

	for (Fetch how :
	     {Fetch::loop, Fetch::batch, Fetch::prepared, Fetch::prelaunched}) {
		EXPECT_EQ(into_gpu(how, Direction::swap_out), 0u);
		EXPECT_EQ(into_gpu(how, Direction::fetch), 64u * 4096);
		EXPECT_EQ(into_gpu(how, Direction::both), 32u * 4096);
		EXPECT_EQ(fetch_time(how, Direction::fetch, 64, 4096, simple()),
			  fetch_time(how, Direction::swap_out, 64, 4096, simple()));
	}
}

// A prepared batch costs the host no more for more copies, and the engines the same.
TEST(Batch, ThatIsPreparedIsCheaperForTheHostOnly)
{
	auto time = [](Fetch how, u32 blocks) {
		return fetch_time(how, Direction::swap_out, blocks, 4 << 10, simple());
	};
	auto host = [](Fetch how, u32 blocks) {
		return host_time(how, blocks, 2, simple());
	};

	EXPECT_EQ(host(Fetch::batch, 64), (15100 + 361 * 64) * 0.5);
	EXPECT_EQ(host(Fetch::prepared, 64), host(Fetch::prepared, 4096));
	EXPECT_NEAR(time(Fetch::batch, 64) - time(Fetch::prepared, 64),
		    host(Fetch::batch, 64) - host(Fetch::prepared, 64), 1e-6);
	EXPECT_EQ(host(Fetch::loop, 64), 0);
	EXPECT_EQ(host(Fetch::prelaunched, 64), 0);
}

// Two copies of 1000 bytes, each after the other's atomic: 113 fetched, poll 183, 200
// for the bytes, 200 latency, 300: 883; then 70, 400 and 300 again: 1653, seen 1656.
TEST(Batch, LoopByHand)
{
	EXPECT_EQ(fetch_time(Fetch::loop, Direction::swap_out, 2, 1000, simple()),
		  1656);
}

} // namespace
