// SPDX-License-Identifier: MIT
// Times of small programs, worked out by hand for the machine of simple.hpp.
#include "simple.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

using namespace sluice::timing;
using namespace sluice::timing::test;

namespace {

Step submit(u32 packets = 0)
{
	return {.kind = Kind::submit, .packets = packets};
}

Step copy(u32 lane, u32 batch, u64 bytes, Place to = peer(1))
{
	return {.kind = Kind::copy,
		.lane = lane,
		.bytes = bytes,
		.from = own,
		.to = to,
		.batch = batch};
}

// Host: 10 + 2 * 1 = 12; doorbell 42; fetched 42 + 70 = 112; 1000 bytes at 10 take
// 100: 212, in memory 412; the atomic 300 more: 712; seen 715.
TEST(Simulate, OneCopy)
{
	Program p = program({2});
	u32 s = p.add(submit(2));
	p.add(copy(1, s, 1000));
	u32 sync = p.add({.kind = Kind::atomic, .lane = 1, .to = host, .batch = s});
	p.add({.kind = Kind::await, .after = {sync}});
	Result r = simulate(p, simple());

	EXPECT_EQ(r.spans[0].end, 12);
	EXPECT_EQ(r.spans[1].start, 112);
	EXPECT_EQ(r.spans[1].end, 212);
	EXPECT_EQ(r.spans[1].effect, 412);
	EXPECT_EQ(r.spans[2].end, 712);
	EXPECT_EQ(r.end, 715);
	ASSERT_EQ(r.batches.size(), 1u);
	EXPECT_EQ(r.batches[0].start, 0);
	EXPECT_EQ(r.batches[0].end, 712);
}

// The engine takes 20 for a short copy, though its bytes take 1; latencies overlap.
TEST(Simulate, BackToBack)
{
	Program p = program({2});
	u32 s = p.add(submit());
	for (unsigned gpu : {1, 2, 3})
		p.add(copy(1, s, 10, peer(gpu)));
	Result r = simulate(p, simple());

	EXPECT_EQ(r.spans[1].start, 110);
	EXPECT_EQ(r.spans[2].start, 130);
	EXPECT_EQ(r.spans[3].start, 150);
	EXPECT_EQ(r.spans[3].effect, 150 + 1 + 200);
}

// The second doorbell waits for the first to arrive: 10, 40; 40, 70.
TEST(Simulate, DoorbellsOfAThreadWaitForEachOther)
{
	Program p = program({});
	p.add(submit());
	p.add(submit());
	Result r = simulate(p, simple());

	EXPECT_EQ(r.spans[0].end, 10);
	EXPECT_EQ(r.spans[0].effect, 40);
	EXPECT_EQ(r.spans[1].end, 40);
	EXPECT_EQ(r.spans[1].effect, 70);
}

// Two engines, one link: the second's bytes go when the first's are through. The
// other direction is free, and so is the link to another GPU.
TEST(Simulate, LinksAreShared)
{
	Program p = program({2, 3, 4, 5});
	u32 s = p.add(submit());
	p.add(copy(1, s, 1000));
	p.add(copy(2, s, 1000));
	p.add(copy(3, s, 1000, peer(2)));
	Step back = copy(4, s, 1000, own);
	back.from = peer(1);
	p.add(back);
	Result r = simulate(p, simple());

	EXPECT_EQ(r.spans[1].end, 210);
	EXPECT_EQ(r.spans[2].end, 310);
	EXPECT_EQ(r.spans[3].end, 210);
	EXPECT_EQ(r.spans[4].end, 210);
}

// To the host at 5: 200. A broadcast moves twice the bytes at half of 10: 400; a swap
// twice at 8: 250.
TEST(Simulate, RatesByKindAndPath)
{
	Program p = program({2, 3, 4});
	u32 s = p.add(submit());
	p.add(copy(1, s, 1000, host));
	Step b = copy(2, s, 1000, peer(1));
	b.kind = Kind::broadcast;
	b.to2 = peer(2);
	p.add(b);
	Step x = copy(3, s, 1000, peer(3));
	x.kind = Kind::swap;
	p.add(x);
	Result r = simulate(p, simple());

	EXPECT_EQ(r.spans[1].end, 310);
	EXPECT_EQ(r.spans[2].end, 510);
	EXPECT_EQ(r.spans[3].end, 360);
}

// One queue's copies come after the other's on the same engine; on another engine
// they do not.
TEST(Simulate, QueuesShareAnEngine)
{
	Program p = program({2, 2, 3});
	u32 s = p.add(submit());
	p.add(copy(1, s, 1000, peer(1)));
	p.add(copy(2, s, 1000, peer(2)));
	p.add(copy(3, s, 1000, peer(3)));
	Result r = simulate(p, simple());

	EXPECT_EQ(r.spans[2].start, 210);
	EXPECT_EQ(r.spans[3].start, 110);
}

// The store ends at 12; the poll, which began at 110, has not looked for 70 since
// then: it ends at 180. One that is released later ends 70 after that.
TEST(Simulate, Polls)
{
	Program p = program({2, 3});
	u32 s = p.add(submit());
	u32 early = p.add({.kind = Kind::store});
	for (int i = 0; i < 100; i++)
		p.add({.kind = Kind::store});
	u32 late = p.add({.kind = Kind::store});
	u32 a = p.add({.kind = Kind::poll,
		       .lane = 1,
		       .from = host,
		       .after = {early},
		       .batch = s});
	u32 b = p.add({.kind = Kind::poll,
		       .lane = 2,
		       .from = host,
		       .after = {late},
		       .batch = s});
	Result r = simulate(p, simple());

	EXPECT_EQ(r.spans[early].end, 12);
	EXPECT_EQ(r.spans[a].end, 180);
	EXPECT_EQ(r.spans[late].end, 214);
	EXPECT_EQ(r.spans[b].end, 284);
}

// A fence waits for the copies of its queue; in the GPU's own memory it takes 50.
// Other packets take 20 each, and entering an indirect buffer takes 40.
TEST(Simulate, FencesAndSmallPackets)
{
	Program p = program({2});
	u32 s = p.add(submit());
	p.add({.kind = Kind::indirect, .lane = 1, .batch = s});
	p.add(copy(1, s, 1000));
	p.add({.kind = Kind::fence, .lane = 1, .to = own, .batch = s});
	u32 t = p.add({.kind = Kind::trap, .lane = 1, .batch = s});
	u32 sleep = p.add({.kind = Kind::sleep, .after = {t}});
	Result r = simulate(p, simple());

	EXPECT_EQ(r.spans[1].end, 150);
	EXPECT_EQ(r.spans[2].effect, 450);
	EXPECT_EQ(r.spans[3].end, 500);
	EXPECT_EQ(r.spans[t].end, 520);
	EXPECT_EQ(r.spans[sleep].end, 1523);
}

// Words that are written while the thread looks elsewhere cost it 3 each.
TEST(Simulate, LooksAtWords)
{
	Program p = program({2, 3});
	u32 s = p.add(submit());
	std::vector<u32> syncs;
	for (u32 lane : {1, 2})
		syncs.push_back(p.add(
			{.kind = Kind::atomic, .lane = lane, .to = host, .batch = s}));
	p.add({.kind = Kind::await, .after = syncs});

	EXPECT_EQ(simulate(p, simple()).end, 110 + 300 + 3 + 3);
}

// An interrupt for each comes 1000 later, and then the driver looks, too.
TEST(Simulate, SleepsUntilTheDriverHasLookedAtAllWords)
{
	Program p = program({2, 3});
	u32 s = p.add(submit());
	std::vector<u32> traps;
	for (u32 lane : {1, 2})
		traps.push_back(p.add({.kind = Kind::trap, .lane = lane, .batch = s}));
	p.add({.kind = Kind::sleep, .after = traps});

	EXPECT_EQ(simulate(p, simple()).end, 110 + 20 + 1000 + 3 + 3);
}

TEST(Simulate, ACircleIsRefused)
{
	Program p = program({2, 3});
	p.add({.kind = Kind::poll, .lane = 1, .after = {1}});
	p.add({.kind = Kind::poll, .lane = 2, .after = {0}});

	EXPECT_THROW(simulate(p, simple()), std::runtime_error);
}

TEST(Simulate, MeasuredFromTheRelease)
{
	Program p = program({2});
	u32 s = p.add(submit());
	u32 poll = p.add({.kind = Kind::poll, .lane = 1, .from = host, .batch = s});
	u32 sync = p.add({.kind = Kind::atomic, .lane = 1, .to = host, .batch = s});
	u32 store = p.add({.kind = Kind::store});
	p.steps[poll].after = {store};
	p.add({.kind = Kind::await, .after = {sync}});

	EXPECT_EQ(measured(p, simple()), 180 + 300 + 3 - 10);
}

} // namespace
