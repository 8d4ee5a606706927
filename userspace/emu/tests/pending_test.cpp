// SPDX-License-Identifier: MIT
// With a seed, packets that move data are pending together.
#include "rig.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

using namespace sluice::emu;
using namespace sluice::emu::test;

namespace {

constexpr u64 ap = Rig::aperture;
constexpr u32 hi = upper(ap);
constexpr u32 ring_base = reg::sdma_base(0) + reg::sdma_queue(0);
constexpr u32 context_idle = 4, sdma_idle = 1;
constexpr u64 seeds = 40;

#define AT(offset) lower(ap + (offset)), hi
#define COPY(from, to) 1, 3, 0, AT(from), AT(to)
constexpr u64 copy_bytes = 28;

GpuConfig seeded(u64 seed)
{
	GpuConfig c;

	c.seed = seed;
	return c;
}

// Lets the engine see the ring, and does not run it.
void ring_only(Rig &r)
{
	r.gpu.doorbell(Rig::doorbell * 4, r.wptr(), 8);
}

// Both words to one place: what is there says which came last.
u32 last_of_two(u64 seed, std::initializer_list<u32> between)
{
	Rig r(seeded(seed));

	r.vram<u32>(0) = 1;
	r.vram<u32>(64) = 2;
	r.push({COPY(0, 128)});
	r.push(between);
	r.submit({COPY(64, 128), 5, AT(256), 9});
	EXPECT_TRUE(r.idle());
	EXPECT_EQ(r.vram<u32>(256), 9u);
	EXPECT_EQ(r.get(ring_base + reg::rb_status), context_idle);
	EXPECT_EQ(r.get(reg::sdma_base(0) + reg::sdma_status), sdma_idle);
	EXPECT_EQ(r.gpu.stats().illegal_packets.get(), 0u);
	return r.vram<u32>(128);
}

std::set<u32> over_all_seeds(std::initializer_list<u32> between)
{
	std::set<u32> found;

	for (u64 seed = 1; seed <= seeds; seed++)
		found.insert(last_of_two(seed, between));
	return found;
}

TEST(Pending, CopiesEndInAnyOrder)
{
	EXPECT_EQ(over_all_seeds({}), (std::set<u32>{1, 2}));
	EXPECT_EQ(last_of_two(0, {}), 2u) << "without a seed";
}

TEST(Pending, TheOrderRepeats)
{
	for (u64 seed = 1; seed <= 20; seed++)
		EXPECT_EQ(last_of_two(seed, {}), last_of_two(seed, {})) << seed;
}

TEST(Pending, WhatComesLast)
{
	const std::set<u32> in_order{2};

	EXPECT_EQ(over_all_seeds({0}), in_order) << "NOP";
	EXPECT_EQ(over_all_seeds({2 << 16, 0, 0}), in_order) << "NOP of three words";
	EXPECT_EQ(over_all_seeds({5, AT(300), 1}), in_order) << "FENCE";
	EXPECT_EQ(over_all_seeds({6, 0}), in_order) << "TRAP";
	EXPECT_EQ(over_all_seeds({10 | 0x0fu << 25, AT(304), 1, 0, 0, 0, 0}), in_order)
		<< "ATOMIC";
	EXPECT_EQ(over_all_seeds({14 | 0xfu << 28, 0x38123, 5}), in_order)
		<< "SRBM_WRITE";
}

TEST(Pending, WhatDoesNotWait)
{
	const std::set<u32> any{1, 2};

	EXPECT_EQ(over_all_seeds({13 | 2 << 8, AT(320)}), any) << "TIMESTAMP";
	EXPECT_EQ(over_all_seeds({9, AT(320), 0, 0}), any) << "COND_EXE";
	EXPECT_EQ(
		over_all_seeds({8 | 1u << 31 | 3u << 28, AT(320), 0, ~0u, 0xfff << 16}),
		any)
		<< "POLL_REGMEM of memory";
	EXPECT_EQ(over_all_seeds({8 | 1u << 26 | 3u << 28, reg::hdp_flush_done << 2,
				  reg::hdp_flush_req << 2, 1 << 12, 1 << 12,
				  0xfff << 16}),
		  any)
		<< "flush of the host data path";
}

// Every kind of packet that moves data, and then a fence or an atomic: step by
// step, neither is there before the data.
TEST(Pending, FencesAndAtomicsComeAfterTheData)
{
	const std::vector<u32> data[]{
		{COPY(0, 128)},
		{1 | 1u << 27, 3, 0, AT(0), AT(128), AT(192)},
		{0x401 | 2u << 29, AT(0), 0, 0, 0, AT(128), 0, 0, 0, 0, 0},
		{0x901, 63, 0, AT(0), AT(128)},
		{2, AT(128), 0, 77},
		{11 | 2u << 30, AT(128), 77, 3},
		{12, AT(128), 77, 0, 0, 0, 0, 0, 0},
	};
	const std::vector<u32> ends[]{
		{5, AT(256), 9},
		{10 | 0x0fu << 25, AT(256), 9, 0, 0, 0, 0},
	};

	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		r.vram<u32>(0) = 77;
		for (u32 w : data[seed % std::size(data)])
			r.push({w});
		for (u32 w : ends[seed % std::size(ends)])
			r.push({w});
		ring_only(r);
		for (int i = 0; i < 10; i++) {
			bool moved = r.vram<u32>(128) == 77;
			if (!moved) {
				ASSERT_EQ(r.vram<u32>(256), 0u) << seed;
			}
			ASSERT_EQ(r.rptr() > 0, moved) << seed;
			r.gpu.engine(0).step();
		}
		EXPECT_EQ(r.vram<u32>(256), 9u) << seed;
		EXPECT_EQ(r.vram<u32>(128), 77u) << seed;
	}
}

TEST(Pending, IndirectBuffersDoNotSeparate)
{
	std::set<u32> found;

	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		r.vram<u32>(0) = 1;
		r.vram<u32>(64) = 2;
		r.vram<std::array<u32, 7>>(0x4000) = {COPY(0, 128)};
		r.vram<std::array<u32, 7>>(0x5000) = {COPY(64, 128)};
		r.push({0, 0, 4, AT(0x4000), 7, 0, 0});
		r.push({13 | 2 << 8, AT(320), COPY(512, 516)});
		r.submit({4, AT(0x5000), 7, 0, 0, 5, AT(256), 9});
		EXPECT_TRUE(r.idle());
		found.insert(r.vram<u32>(128));
	}
	EXPECT_EQ(found, (std::set<u32>{1, 2}));
}

// A poll for what a pending packet writes must not wait for ever.
TEST(Pending, PollSeesWhatPends)
{
	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		r.vram<u32>(0) = 7;
		r.submit({COPY(0, 128), 8 | 1u << 31 | 3u << 28, AT(128), 7, ~0u,
			  0xfff << 16, 5, AT(256), 9});
		ASSERT_TRUE(r.idle()) << seed;
		ASSERT_EQ(r.vram<u32>(256), 9u) << seed;
	}
}

// The engine goes on with the copies while a poll waits for the host.
TEST(Pending, NothingPendsForEver)
{
	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		r.vram<u32>(0) = 7;
		r.submit({COPY(0, 128), COPY(0, 132), 8 | 1u << 31 | 3u << 28, AT(192),
			  1, ~0u, 0xfff << 16, COPY(0, 136)});
		EXPECT_EQ(r.vram<u32>(128), 7u) << seed;
		EXPECT_EQ(r.vram<u32>(132), 7u) << seed;
		EXPECT_EQ(r.vram<u32>(136), 0u) << seed;
		r.vram<u32>(192) = 1;
		r.gpu.run();
		EXPECT_EQ(r.vram<u32>(136), 7u) << seed;
		EXPECT_TRUE(r.idle()) << seed;
	}
}

constexpr unsigned many = 20;

// Copies of one word to places of their own.
void push_many(Rig &r)
{
	r.vram<u32>(0) = 7;
	for (unsigned i = 0; i < many; i++)
		r.push({COPY(0, 128 + 4 * i)});
	ring_only(r);
}

unsigned count_done(Rig &r)
{
	const u32 *p = &r.vram<u32>(128);

	return static_cast<unsigned>(std::count(p, p + many, 7u));
}

// What has not ended, though something after it has, pended together with that.
TEST(Pending, NoMoreThanEight)
{
	std::ptrdiff_t most = 0;

	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		push_many(r);
		while (!r.idle()) {
			const u32 *p = &r.vram<u32>(128), *last = p + many;
			while (last > p && !last[-1])
				last--;
			most = std::max(most, std::count(p, last, 0u));
			ASSERT_EQ(r.rptr(),
				  static_cast<u64>(std::find(p, last, 0u) - p) *
					  copy_bytes);
			r.gpu.engine(0).step();
		}
		EXPECT_EQ(count_done(r), many);
	}
	EXPECT_GE(most, 3);
	EXPECT_LE(most, 7);
}

TEST(Pending, ResetDropsWhatPends)
{
	unsigned dropped = 0;

	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		push_many(r);
		for (u64 i = 0; i < seed % 5; i++)
			r.gpu.engine(0).step();
		unsigned done = count_done(r);
		r.gpu.reset();
		EXPECT_EQ(r.get(ring_base + reg::rb_status), context_idle);
		EXPECT_EQ(r.get(reg::sdma_base(0) + reg::sdma_status), sdma_idle);
		if (seed % 2)
			r.gpu.run();
		r.setup_ring(0);
		r.submit({5, AT(64), 3});
		EXPECT_TRUE(r.idle());
		EXPECT_EQ(r.vram<u32>(64), 3u);
		EXPECT_EQ(count_done(r), done) << seed;
		dropped += done < many;
	}
	EXPECT_GT(dropped, 0u);
}

// Its read pointer says what has ended, and it goes on from there.
TEST(Pending, QueueTurnedOffFinishesFirst)
{
	unsigned was_busy = 0;

	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		push_many(r);
		for (u64 i = 0; i < 1 + seed % 7; i++)
			r.gpu.engine(0).step();
		r.set(ring_base + reg::rb_cntl, 0);
		was_busy += r.get(ring_base + reg::rb_status) != context_idle;
		r.gpu.run();
		EXPECT_EQ(r.get(ring_base + reg::rb_status), context_idle);
		EXPECT_EQ(r.rptr(), count_done(r) * copy_bytes) << seed;
		EXPECT_LT(count_done(r), many) << seed;
		r.set(ring_base + reg::rb_cntl, 1 | 14 << 1);
		r.gpu.run();
		EXPECT_TRUE(r.idle());
		EXPECT_EQ(count_done(r), many) << seed;
	}
	EXPECT_GT(was_busy, 0u);
}

class PendingFaults : public testing::Test {
protected:
	static constexpr u32 b = reg::sdma_base(0) + reg::sdma_queue(2);

	// A user's queue; its page at 0x20000 is missing.
	void submit(Rig &r, bool retry)
	{
		r.enable_vmid(4, retry);
		r.map_vram(4, 0x10000, 0x8000);
		r.map_vram(4, 0x11000, 0x9000);
		r.vram<u32>(0x9000) = 7;
		r.vram<std::array<u32, 25>>(0x8000) = {
			1, 3,	    0, 0x11000, 0, 0x11010, 0, // fine
			1, 3,	    0, 0x11000, 0, 0x20000, 0, // faults
			1, 3,	    0, 0x11000, 0, 0x11020, 0, // fine
			5, 0x11030, 0, 9};
		r.set64(b + reg::rb_base, 0x10000 >> 8);
		r.set(b + reg::rb_doorbell_offset, 0x900 << 2);
		r.set(b + reg::rb_doorbell, 1u << 28);
		r.set(b + reg::rb_wptr, 100);
		turn(r, true);
	}
	void turn(Rig &r, bool on)
	{
		r.set(b + reg::rb_cntl, on | 10 << 1 | 4 << 24);
		r.gpu.run();
	}
	void expect_all(Rig &r, u64 seed)
	{
		EXPECT_EQ(r.get(b + reg::rb_rptr), 100u) << seed;
		EXPECT_EQ(r.vram<u32>(0x9010), 7u) << seed;
		EXPECT_EQ(r.vram<u32>(0x9020), 7u) << seed;
		EXPECT_EQ(r.vram<u32>(0x9030), 9u) << seed;
	}
};

TEST_F(PendingFaults, RetryHoldsTheQueue)
{
	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		submit(r, true);
		EXPECT_EQ(r.interrupts(), 1u);
		EXPECT_EQ(r.vram<u32>(0x9030), 0u) << "the fence";
		EXPECT_LE(r.get(b + reg::rb_rptr), copy_bytes);
		r.map_vram(4, 0x20000, 0xa000);
		r.gpu.run();
		expect_all(r, seed);
		EXPECT_EQ(r.vram<u32>(0xa000), 7u) << seed;
		EXPECT_EQ(r.gpu.stats().packets.get(), 4u);
	}
}

// The driver takes the queue off the engine, and puts it back.
TEST_F(PendingFaults, QueueTurnedOffDuringARetry)
{
	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		submit(r, true);
		turn(r, false);
		EXPECT_EQ(r.get(b + reg::rb_status), context_idle);
		r.map_vram(4, 0x20000, 0xa000);
		turn(r, true);
		expect_all(r, seed);
		EXPECT_EQ(r.vram<u32>(0xa000), 7u) << seed;
	}
}

TEST_F(PendingFaults, DefaultPage)
{
	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		submit(r, false);
		expect_all(r, seed);
		EXPECT_EQ(r.gpu.stats().faults.get(), 1u);
	}
}

TEST_F(PendingFaults, Hang)
{
	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		r.set(reg::mmhub_base(0) + reg::mm_layout.fault_cntl, 0);
		submit(r, false);
		r.gpu.run();
		EXPECT_EQ(r.vram<u32>(0x9030), 0u) << "the fence";
		EXPECT_EQ(r.gpu.stats().faults.get(), 1u);
		turn(r, false);
		EXPECT_EQ(r.get(b + reg::rb_status), context_idle);
		r.map_vram(4, 0x20000, 0xa000);
		turn(r, true);
		expect_all(r, seed);
	}
}

TEST(Pending, WhatComesBeforeAnIllegalPacketEnds)
{
	for (u64 seed = 1; seed <= seeds; seed++) {
		Rig r(seeded(seed));
		r.vram<u32>(0) = 7;
		r.submit({COPY(0, 128), COPY(0, 132), 3, 0, 0, COPY(0, 136)});
		EXPECT_EQ(r.vram<u32>(128), 7u) << seed;
		EXPECT_EQ(r.vram<u32>(132), 7u) << seed;
		EXPECT_EQ(r.vram<u32>(136), 0u) << seed;
		EXPECT_EQ(r.gpu.stats().illegal_packets.get(), 1u);
		ASSERT_EQ(r.interrupts(), 1u);
		EXPECT_EQ(r.rptr(), 2 * copy_bytes);
		r.setup_ring(0);
		r.submit({5, AT(64), 2});
		EXPECT_EQ(r.vram<u32>(64), 2u);
	}
}

// Longer than a slice, beside others.
TEST(Pending, LongCopies)
{
	for (u64 seed = 1; seed <= 4; seed++) {
		Rig r(seeded(seed), 64 * MiB);
		const u32 n = 10 * MiB;
		for (u64 i = 0; i < n; i += 4)
			r.vram<u32>(4 * MiB + i) = static_cast<u32>(i * 7 + seed);
		for (u64 at : {16, 28, 40})
			r.push({1, n - 1, 0, AT(4 * MiB), AT(at * MiB)});
		r.ring();
		for (u64 at : {16, 28, 40})
			EXPECT_EQ(std::memcmp(&r.vram<u8>(4 * MiB),
					      &r.vram<u8>(at * MiB), n),
				  0);
		EXPECT_EQ(r.gpu.stats().packets.get(), 3u);
	}
}

} // namespace
