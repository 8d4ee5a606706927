// SPDX-License-Identifier: MIT
#include "rig.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

using namespace sluice::emu;
using namespace sluice::emu::test;

namespace {

constexpr u64 ap = Rig::aperture;
constexpr u32 hi = upper(ap);

// An address in video memory, seen by VMID 0, as two words.
#define AT(offset) lower(ap + (offset)), hi

void pattern(Rig &r, u64 offset, u64 n, u32 seed)
{
	for (u64 i = 0; i < n; i++)
		r.vram<u8>(offset + i) = static_cast<u8>(i * 7 + seed + i / 251);
}

std::vector<u8> copy_of(Rig &r, u64 offset, u64 n)
{
	const u8 *p = &r.vram<u8>(offset);
	return {p, p + n};
}

TEST(Sdma, CopyOfEveryShape)
{
	Rig r;
	for (u64 n : {1, 3, 4, 63, 64, 4095, 4096, 4097, 70000, 300001})
		for (u64 shift : {0, 1, 31}) {
			pattern(r, shift, n, 3);
			r.vram<u8>(8 * MiB + shift + n) = 0xee;
			r.submit({1, static_cast<u32>(n - 1), 0, AT(shift),
				  AT(8 * MiB + shift)});
			ASSERT_TRUE(r.idle());
			EXPECT_EQ(copy_of(r, shift, n), copy_of(r, 8 * MiB + shift, n))
				<< n;
			EXPECT_EQ(r.vram<u8>(8 * MiB + shift + n), 0xee);
		}
}

TEST(Sdma, LongCopyIsSliced)
{
	Rig r({}, 32 * MiB);
	u32 n = 10 * MiB;
	pattern(r, 4 * MiB, n, 1);
	r.submit({1, n - 1, 0, AT(4 * MiB), AT(16 * MiB)});
	EXPECT_EQ(copy_of(r, 4 * MiB, n), copy_of(r, 16 * MiB, n));
	EXPECT_EQ(r.gpu.stats().packets.get(), 1u);
}

TEST(Sdma, Broadcast)
{
	Rig r;
	pattern(r, 0, 9000, 5);
	r.submit({1 | 1u << 27, 8999, 0, AT(0), AT(4 * MiB + 32), AT(5 * MiB)});
	EXPECT_EQ(copy_of(r, 0, 9000), copy_of(r, 4 * MiB + 32, 9000));
	EXPECT_EQ(copy_of(r, 0, 9000), copy_of(r, 5 * MiB, 9000));
}

// Elements of 4 bytes, rows of 12 at a different pitch on each side.
TEST(Sdma, Window)
{
	Rig r;
	pattern(r, 64, 100 * 32, 5);
	pattern(r, 4 * MiB, 100 * 48, 77);
	auto before = copy_of(r, 4 * MiB, 100 * 48);
	r.submit({0x401 | 2u << 29, AT(64), 0, 7 << 13, 0, AT(4 * MiB), 0, 11 << 13, 0,
		  2 | 99 << 16, 0});
	ASSERT_TRUE(r.idle());
	for (u64 i = 0; i < 100; i++) {
		EXPECT_EQ(copy_of(r, 64 + 32 * i, 12), copy_of(r, 4 * MiB + 48 * i, 12))
			<< i;
		for (u64 j = 12; j < 48; j++)
			EXPECT_EQ(r.vram<u8>(4 * MiB + 48 * i + j), before[48 * i + j]);
	}
}

// Longer than a slice, and rows longer than what is moved at once.
TEST(Sdma, LongWindow)
{
	Rig r({}, 64 * MiB);
	u64 width = 160 << 10, pitch = 192 << 10, rows = 60;
	pattern(r, 0, rows * pitch, 3);
	r.submit({0x401 | 4u << 29, AT(0), 0, u32(pitch / 16 - 1) << 13, 0,
		  AT(32 * MiB), 0, u32(width / 16 - 1) << 13, 0,
		  u32(width / 16 - 1) | u32(rows - 1) << 16, 0});
	for (u64 i = 0; i < rows; i++)
		ASSERT_EQ(copy_of(r, i * pitch, width),
			  copy_of(r, 32 * MiB + i * width, width))
			<< i;
}

TEST(Sdma, Swap)
{
	Rig r;
	pattern(r, 64, 20000, 5);
	pattern(r, 4 * MiB + 192, 20000, 77);
	auto a = copy_of(r, 64, 20000), b = copy_of(r, 4 * MiB + 192, 20000);
	r.submit({0x901, 19999, 0, AT(64), AT(4 * MiB + 192)});
	EXPECT_EQ(copy_of(r, 64, 20000), b);
	EXPECT_EQ(copy_of(r, 4 * MiB + 192, 20000), a);
}

TEST(Sdma, FillsWordsAndBytes)
{
	Rig r;
	r.submit({11 | 2u << 30, AT(8), 0x11223344, 99999});
	for (u64 i = 0; i < 100000; i += 4)
		ASSERT_EQ(r.vram<u32>(8 + i), 0x11223344u);
	EXPECT_EQ(r.vram<u32>(100008), 0u);
	r.submit({11, AT(3), 0xab, 4});
	EXPECT_EQ(r.vram<u32>(4), 0xababababu);
	EXPECT_EQ(r.vram<u8>(3), 0xab);
	EXPECT_EQ(r.vram<u8>(2), 0);
}

TEST(Sdma, WriteAcrossTheRingsEnd)
{
	Rig r;
	while (r.wptr() < Rig::ring_bytes - 16)
		r.push({0});
	r.ring();
	r.submit({2, AT(16), 4, 10, 11, 12, 13, 14});
	ASSERT_TRUE(r.idle());
	for (u32 i = 0; i < 5; i++)
		EXPECT_EQ(r.vram<u32>(16 + 4 * i), 10 + i);
}

TEST(Sdma, PageTableEntries)
{
	Rig r;
	r.submit({12, AT(64), 0x61, 1u << 25, 0x5000, 1, 0x1000, 0, 999});
	for (u64 i = 0; i < 1000; i++)
		ASSERT_EQ(r.vram<u64>(64 + 8 * i),
			  (0x100005000 + i * 0x1000) | 0x61 | 1ull << 57);
	EXPECT_EQ(r.vram<u64>(64 + 8000), 0u);
}

TEST(Sdma, FenceAndTrap)
{
	Rig r;
	r.submit({5, AT(0), 0x1234, 6, 0x55});
	EXPECT_EQ(r.vram<u32>(0), 0x1234u);
	ASSERT_EQ(r.interrupts(), 1u);
	EXPECT_EQ(r.interrupt(0)[0], 8u | 224 << 8 | 1u << 31);
	EXPECT_EQ(r.interrupt(0)[4], 0x55u);
	r.set(reg::sdma_base(0) + reg::sdma_cntl, 0);
	r.submit({6, 0});
	EXPECT_EQ(r.interrupts(), 1u);
}

TEST(Sdma, PollReleases)
{
	Rig r;
	r.submit({8 | 1u << 31 | 3u << 28, AT(0), 5, 0xff, 0xfff << 16 | 10, 5, AT(4),
		  1});
	EXPECT_EQ(r.vram<u32>(4), 0u);
	r.vram<u32>(0) = 0x1005;
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(4), 1u);
}

// 100 retries, 20 us apart: the clock decides, however often the engine looks.
TEST(Sdma, PollGivesUpInTime)
{
	Rig r;
	u64 start = r.host.time;
	r.submit({8 | 1u << 31 | 3u << 28, AT(0), 5, ~0u, 100 << 16 | 2000, 5, AT(4),
		  1});
	for (int i = 0; i < 1000; i++)
		r.gpu.run();
	ASSERT_LT(r.host.time, start + 1'900'000);
	EXPECT_EQ(r.vram<u32>(4), 0u) << "too early, after many looks";
	r.host.time = start + 1'990'000;
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(4), 0u) << "too early";
	r.host.time = start + 2'010'000;
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(4), 1u) << "too late";
	ASSERT_EQ(r.interrupts(), 1u);
	EXPECT_EQ(r.interrupt(0)[0] >> 8 & 0xff, 0xf6u);
}

// The longest that one packet can wait: 4094 times 65535 clocks.
TEST(Sdma, LongestPollTakesSecondsNoMore)
{
	Rig r;
	u64 start = r.host.time;
	r.submit({8 | 1u << 31 | 3u << 28, AT(0), 5, ~0u, 0xffeu << 16 | 0xffff, 5,
		  AT(4), 1});
	r.host.time = start + 2'682'000'000;
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(4), 0u);
	r.host.time = start + 2'684'000'000;
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(4), 1u);
}

// A value that came while the engine did not look is seen, however late it is.
TEST(Sdma, PollLooksOnceMoreWhenItsTimeIsUp)
{
	Rig r;
	r.submit({8 | 1u << 31 | 3u << 28, AT(0), 5, ~0u, 3 << 16 | 10, 5, AT(4), 1});
	r.vram<u32>(0) = 5;
	r.host.time += 1'000'000'000;
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(4), 1u);
	EXPECT_EQ(r.interrupts(), 0u);
}

// Each poll has a time of its own; without retries it looks once.
TEST(Sdma, PollsDoNotShareTheirTime)
{
	Rig r;
	for (u32 i = 1; i <= 2; i++)
		r.push({8 | 1u << 31 | 3u << 28, AT(0), 5, ~0u, 100 << 16 | 2000, 5,
			AT(4 * i), i});
	r.submit({8 | 1u << 31 | 3u << 28, AT(0), 5, ~0u, 0, 5, AT(12), 3});
	r.host.time += 2'010'000;
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(4), 1u);
	EXPECT_EQ(r.vram<u32>(8), 0u);
	r.host.time += 2'010'000;
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(8), 2u);
	EXPECT_EQ(r.vram<u32>(12), 3u);
	EXPECT_EQ(r.interrupts(), 3u);
}

TEST(Sdma, HdpFlushPacket)
{
	Rig r;
	r.submit({8 | 1u << 26 | 3u << 28, reg::hdp_flush_done << 2,
		  reg::hdp_flush_req << 2, 1 << 12, 1 << 12, 0xfff << 16 | 10});
	EXPECT_TRUE(r.idle());
	EXPECT_EQ(r.gpu.stats().hdp_flushes.get(), 1u);
}

TEST(Sdma, CondExe)
{
	Rig r;
	r.vram<u32>(0) = 1;
	r.submit({9, AT(0), 1, 4, 5, AT(64), 10, 9, AT(0), 2, 4, 5, AT(68), 20, 5,
		  AT(72), 30});
	EXPECT_EQ(r.vram<u32>(64), 10u);
	EXPECT_EQ(r.vram<u32>(68), 0u);
	EXPECT_EQ(r.vram<u32>(72), 30u);
}

TEST(Sdma, Atomics)
{
	Rig r;
	r.vram<u64>(64) = 0xffffffff;
	r.submit({10 | 0x2fu << 25, AT(64), 1, 0, 0, 0, 0});
	EXPECT_EQ(r.vram<u64>(64), 0x100000000u);
	// a compare and swap that loops waits for its value
	r.vram<u32>(128) = 3;
	r.submit({10 | 1 << 16 | 0x08u << 25, AT(128), 9, 0, 4, 0, 100});
	EXPECT_FALSE(r.idle());
	r.vram<u32>(128) = 4;
	r.gpu.run();
	EXPECT_TRUE(r.idle());
	EXPECT_EQ(r.vram<u32>(128), 9u);
}

TEST(Sdma, Timestamps)
{
	Rig r;
	r.submit({13 | 1 << 8, AT(0), 13 | 2 << 8, AT(32), 13, 0, 0});
	EXPECT_TRUE(r.idle());
	EXPECT_GT(r.vram<u64>(0), 0u);
	EXPECT_GT(r.vram<u64>(32), r.vram<u64>(0));
}

TEST(Sdma, RegisterWrites)
{
	Rig r;
	r.submit({14 | 0xfu << 28, 0x38123, 0x11223344});
	EXPECT_EQ(r.get(0x38123), 0x11223344u);
	r.submit({14 | 0x1u << 28, 0x38123, 0xaabbccdd});
	EXPECT_EQ(r.get(0x38123), 0x112233ddu);
}

class IndirectBuffer : public testing::Test {
protected:
	static constexpr u64 ib = 0x10000, data = 0x20000;
	Rig r;

	void SetUp() override
	{
		r.enable_vmid(3, true);
		r.map_vram(3, ib, 512 << 10);
		r.map_vram(3, data, 0);
	}
	void put(std::initializer_list<u32> words)
	{
		u64 at = 512 << 10;
		for (u32 w : words) {
			r.vram<u32>(at) = w;
			at += 4;
		}
	}
};

TEST_F(IndirectBuffer, RunsInItsVmid)
{
	put({5, data, 0, 17, 0, 0, 0, 0});
	r.submit_ib(3, ib, 8);
	EXPECT_TRUE(r.idle());
	EXPECT_EQ(r.vram<u32>(0), 17u);
	r.submit_ib(3, ib, 0);
	EXPECT_TRUE(r.idle()) << "an empty one";
}

TEST_F(IndirectBuffer, MayNotWriteRegisters)
{
	put({14 | 0xfu << 28, 0x38123, 5});
	r.submit_ib(3, ib, 3);
	EXPECT_EQ(r.get(0x38123), 0u);
	EXPECT_TRUE(r.idle());
	EXPECT_EQ(r.interrupt(0)[0] >> 8 & 0xff, 0xf7u);
}

TEST_F(IndirectBuffer, UsersFlush)
{
	put({8, 0, 0x80000000, 0, 0, 0, 5, data, 0, 9});
	r.submit_ib(3, ib, 10);
	EXPECT_TRUE(r.idle());
	EXPECT_EQ(r.vram<u32>(0), 9u);
	EXPECT_EQ(r.gpu.stats().illegal_packets.get(), 0u);
}

// A user may make no other poll of a register.
TEST(Sdma, NothingLikeTheUsersFlush)
{
	for (unsigned bit = 28; bit < 6 * 32; bit++) {
		Rig r;
		r.enable_vmid(3);
		r.map_vram(3, 0x10000, 512 << 10);
		auto &ib = r.vram<std::array<u32, 6>>(512 << 10);
		ib = {8, 0, 0x80000000, 0, 0, 0};
		if (bit == 31) // a poll of memory
			continue;
		ib[bit / 32] ^= 1u << bit % 32;
		r.submit_ib(3, 0x10000, 6);
		EXPECT_EQ(r.gpu.stats().illegal_packets.get(), 1u) << bit;
	}
}

TEST_F(IndirectBuffer, RetryFaultParksAndGoesOn)
{
	// two pages to two pages, each half missing at first
	r.map_vram(3, 0x30000, 0x8000);
	pattern(r, 0x8000, 8192, 9);
	put({1, 8191, 0, 0x30000, 0, 0x40000, 0, 5, data, 0, 1});
	r.submit_ib(3, ib, 11);
	EXPECT_FALSE(r.idle());
	const std::map<u64, u64> homes{
		{0x31000, 0x9000}, {0x40000, 0xc000}, {0x41000, 0xd000}};
	unsigned answered = 0;
	while (answered < r.interrupts()) {
		auto e = r.interrupt(answered++);
		u64 page = static_cast<u64>(e[4]) << 12;
		ASSERT_TRUE(homes.contains(page)) << page;
		r.map_vram(3, page, homes.at(page));
		r.gpu.doorbell(Rig::cam_doorbell * 4, e[6], 4);
		r.gpu.run();
	}
	EXPECT_EQ(answered, 3u) << "each page once";
	EXPECT_TRUE(r.idle());
	EXPECT_EQ(copy_of(r, 0x8000, 8192), copy_of(r, 0xc000, 8192));
	EXPECT_EQ(r.vram<u32>(0), 1u);
}

TEST_F(IndirectBuffer, SwapWithFaultsExchangesOnce)
{
	r.map_vram(3, 0x30000, 0x8000);
	r.map_vram(3, 0x31000, 0x9000);
	r.map_vram(3, 0x40000, 0xc000);
	pattern(r, 0x8000, 8192, 9);
	pattern(r, 0xc000, 8192, 99);
	auto a = copy_of(r, 0x8000, 8192), b = copy_of(r, 0xc000, 8192);
	put({0x901, 8191, 0, 0x30000, 0, 0x40000, 0});
	r.submit_ib(3, ib, 7);
	EXPECT_FALSE(r.idle());
	r.map_vram(3, 0x41000, 0xd000);
	r.gpu.run();
	EXPECT_TRUE(r.idle());
	EXPECT_EQ(copy_of(r, 0x8000, 8192), b);
	EXPECT_EQ(copy_of(r, 0xc000, 8192), a);
}

TEST_F(IndirectBuffer, BadAddressDoesNotStopTheQueue)
{
	r.gpu.set_retry({.retry = false});
	put({1, 4095, 0, 0x70000, 0, data, 0, 5, data + 8, 0, 3});
	r.vram<u32>(0) = 5;
	r.submit_ib(3, ib, 11);
	EXPECT_TRUE(r.idle());
	EXPECT_EQ(r.vram<u32>(0), 0u) << "the default page reads zero";
	EXPECT_EQ(r.vram<u32>(8), 3u);
	EXPECT_EQ(r.gpu.stats().faults.get(), 1u);
}

TEST_F(IndirectBuffer, Nested)
{
	put({4, ib, 0, 8, 0, 0});
	r.submit_ib(3, ib, 6);
	EXPECT_EQ(r.gpu.stats().illegal_packets.get(), 1u);
}

struct Illegal {
	const char *name;
	std::vector<u32> words;
};

class Strict : public testing::TestWithParam<Illegal> {};

TEST_P(Strict, RaisesAndStopsTheQueue)
{
	Rig r;
	for (u32 w : GetParam().words)
		r.push({w});
	r.submit({5, AT(0), 1});
	EXPECT_EQ(r.vram<u32>(0), 0u) << "went on";
	EXPECT_EQ(r.gpu.stats().illegal_packets.get(), 1u);
	ASSERT_EQ(r.interrupts(), 1u);
	EXPECT_EQ(r.interrupt(0)[0] >> 8 & 0xff, 0xf8u);
	r.gpu.run();
	EXPECT_EQ(r.interrupts(), 1u) << "again and again";
	// a ring set up afresh works
	r.setup_ring(0);
	r.submit({5, AT(0), 2});
	EXPECT_EQ(r.vram<u32>(0), 2u);
}

INSTANTIATE_TEST_SUITE_P(
	Packets, Strict,
	testing::Values(Illegal{"operation", {3, 0, 0}},
			Illegal{"swap32", {0x901, 63, 0, AT(32), AT(4096)}},
			Illegal{"broadcast",
				{1 | 1u << 27, 63, 0, AT(0), AT(32), AT(80)}},
			Illegal{"reserved", {5 | 1u << 20, AT(0), 9}},
			Illegal{"copy_parameter", {1, 63, 1u << 16, AT(0), AT(4096)}},
			Illegal{"indirect_position", {4, AT(0), 8, 0, 0}},
			Illegal{"long_write", {2, AT(64), 1000, 1}},
			Illegal{"cond_exe", {9, AT(0), 1, 5000}},
			Illegal{"nop", {100 << 16}}),
	[](const auto &i) { return i.param.name; });

TEST(Sdma, WritePointerOutsideTheRing)
{
	Rig r;
	r.gpu.doorbell(Rig::doorbell * 4, Rig::ring_bytes + 4, 8);
	r.gpu.run();
	EXPECT_EQ(r.gpu.stats().illegal_packets.get(), 1u);
}

TEST(Sdma, UserQueueNeedsItsDoorbell)
{
	Rig r;
	u32 b = reg::sdma_base(0) + reg::sdma_queue(2);
	r.enable_vmid(4);
	r.map_vram(4, 0x10000, 0x8000);
	r.map_vram(4, 0x11000, 0x9000);
	r.vram<std::array<u32, 4>>(0x8000) = {5, 0x11000, 0, 7};
	r.set64(b + reg::rb_base, 0x10000 >> 8);
	r.set(b + reg::rb_cntl, 1 | 10 << 1 | 4 << 24 | 1 << 12);
	r.set(b + reg::rb_report_lo, 0x11010);
	r.set(b + reg::rb_wptr, 16);
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(0x9000), 0u);
	r.set(b + reg::rb_doorbell_offset, 0x900 << 2);
	r.set(b + reg::rb_doorbell, 1u << 28);
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(0x9000), 7u);
	EXPECT_EQ(r.vram<u64>(0x9010), 16u) << "the read pointer's report";
	EXPECT_EQ(r.get(b + reg::rb_status), 4u);
}

TEST(Sdma, HaltHangAndCorruptFence)
{
	Rig r;
	r.set(reg::sdma_base(0) + reg::sdma_f32_cntl, 1);
	r.submit({5, AT(0), 1});
	EXPECT_EQ(r.vram<u32>(0), 0u);
	EXPECT_EQ(r.get(reg::sdma_base(0) + reg::sdma_status), 0u);
	r.set(reg::sdma_base(0) + reg::sdma_f32_cntl, 0);
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(0), 1u);

	r.gpu.engine(0).faults().corrupt_fences = 1;
	r.submit({5, AT(0), 2, 5, AT(4), 3});
	EXPECT_EQ(r.vram<u32>(0), 0x80000002u);
	EXPECT_EQ(r.vram<u32>(4), 3u);

	r.gpu.engine(0).faults().hang = true;
	r.submit({5, AT(0), 4});
	EXPECT_EQ(r.vram<u32>(0), 0x80000002u);
	r.gpu.reset();
	r.setup_ring(0);
	r.submit({5, AT(0), 5});
	EXPECT_EQ(r.vram<u32>(0), 5u) << "a reset ends the hang";
}

// The GPU leaves the bus while it reads: ones are no packets, data or entries.
class OffTheBus : public testing::Test {
protected:
	Rig r;

	void expect_stopped()
	{
		r.gpu.run();
		EXPECT_FALSE(r.idle());
		EXPECT_EQ(r.gpu.stats().illegal_packets.get(), 0u);
		EXPECT_EQ(r.gpu.stats().faults.get(), 0u);
		EXPECT_EQ(r.interrupts(), 0u);
		EXPECT_EQ(r.vram<u32>(0), 0u) << "went on";
		EXPECT_TRUE(r.host.messages.empty()) << r.host.messages[0];
		// back on the bus it does nothing before it is set up again
		r.host.reads_left = ~0u;
		r.gpu.run();
		EXPECT_FALSE(r.idle());
		EXPECT_EQ(r.vram<u32>(0), 0u);
		r.gpu.reset();
		r.setup_ring(0);
		r.submit({5, AT(0), 2});
		EXPECT_EQ(r.vram<u32>(0), 2u);
	}
};

TEST_F(OffTheBus, IndirectBuffer)
{
	r.enable_vmid(3);
	r.map_bus(3, 0x10000, FakeHost::system_base);
	r.map_vram(3, 0x20000, 0);
	r.system<std::array<u32, 5>>(0) = {0, 5, 0x20000, 0, 1};
	r.host.messages.clear();
	r.host.reads_left = 1;
	r.submit_ib(3, 0x10000, 5);
	expect_stopped();
}

TEST_F(OffTheBus, PageTable)
{
	r.enable_vmid(3);
	r.set64(reg::mmhub_base(0) + reg::mm_layout.page_table_base + 2 * 3,
		FakeHost::system_base | pte::system | pte::valid);
	r.host.messages.clear();
	r.host.reads_left = 0;
	r.submit_ib(3, 0x10000, 5);
	expect_stopped();
}

TEST_F(OffTheBus, SourceOfACopy)
{
	r.enable_vmid(3);
	r.map_bus(3, 0x10000, FakeHost::system_base);
	r.map_vram(3, 0x20000, 0);
	r.map_vram(3, 0x30000, 512 << 10);
	r.vram<std::array<u32, 7>>(512 << 10) = {1, 3, 0, 0x10000, 0, 0x20000, 0};
	r.host.messages.clear();
	r.host.reads_left = 0;
	r.submit_ib(3, 0x30000, 7);
	expect_stopped();
}

// What the timeline says about a packet, without its times.
std::string told(const std::string &json, const std::string &name)
{
	auto from = json.find("\"name\":\"" + name + "\"");
	auto args = json.find("\"args\":", from);

	return from == std::string::npos
		       ? ""
		       : json.substr(args + 7, json.find("}}", args) - args - 6);
}

TEST(Sdma, TimelineTellsWhatPacketsDid)
{
	Rig r;
	r.enable_vmid(1);
	r.map_bus(1, 0x10000000, FakeHost::system_base + 4096);
	r.map_vram(1, 0x10001000, 8 * MiB);
	const u32 ib[]{1, 255,	      0, 0x10001000, 0, 0x10000000, 0, 0,
		       5, 0x10000040, 0, 9,	     0, 0,	    0, 0};
	std::ranges::copy(ib, &r.vram<u32>(512 << 10));
	r.map_vram(1, 0x20000000, 512 << 10);
	r.gpu.timeline().enable(true);
	r.submit_ib(1, 0x20000000, 16);
	r.submit({1 | 1u << 27, 4095, 0, AT(64), AT(4 * MiB), AT(5 * MiB)});
	r.submit({0x901, 127, 0, AT(4096), AT(6 * MiB)});
	std::string json = r.gpu.timeline().json(0);

	EXPECT_EQ(told(json, "copy"),
		  R"({"queue":0,"ring":8,"words":7,"bytes":256,)"
		  R"("from":["vram",0,8388608],"to":["system",0,4294971392]})");
	EXPECT_EQ(told(json, "fence"), R"({"queue":0,"ring":8,"words":4,"bytes":0,)"
				       R"("to":["system",0,4294971456]})");
	EXPECT_EQ(told(json, "broadcast"),
		  R"({"queue":0,"ring":32,"words":9,"bytes":4096,)"
		  R"("from":["vram",0,64],"to":["vram",0,4194304],)"
		  R"("to2":["vram",0,5242880]})");
	EXPECT_EQ(told(json, "swap"),
		  R"({"queue":0,"ring":68,"words":7,"bytes":128,)"
		  R"("from":["vram",0,4096],"to":["vram",0,6291456]})");
	EXPECT_EQ(told(json, "doorbell"),
		  R"({"queue":0,"ring":32,"words":0,"bytes":0})");
}

// A wait that polls repeatedly began with its first look.
TEST(Sdma, TimelineKnowsWhenAWaitBegan)
{
	Rig r;
	r.gpu.timeline().enable(true);
	r.submit({8 | 3u << 28 | 1u << 31, AT(0), 5, ~0u, 0xfff0000 | 10});
	u64 before = r.host.now();
	r.gpu.run();
	EXPECT_EQ(r.gpu.timeline().json(0).find("poll"), std::string::npos);
	r.vram<u32>(0) = 5;
	r.gpu.run();
	std::string json = r.gpu.timeline().json(0);
	double ts = std::stod(json.substr(json.find("\"ts\":", json.find("poll")) + 5));
	EXPECT_LT(ts * 1e3, before);
}

TEST(Sdma, SixteenEnginesOnFourDies)
{
	GpuConfig c;
	c.engines = 16;
	Rig r(c);
	for (unsigned e = 0; e < 16; e++) {
		r.setup_ring(e);
		r.push({5, AT(64 + 4 * e), 100 + e, 6, e});
		r.ring(e);
		EXPECT_EQ(r.vram<u32>(64 + 4 * e), 100 + e);
		auto i = r.interrupt(e);
		const u32 client[]{8, 9, 1, 4};
		EXPECT_EQ(i[0] & 0xff, client[e % 4]);
		EXPECT_EQ(i[3] >> 16, e / 4 * 4);
	}
}

TEST(Sdma, SeededOrderRepeats)
{
	auto order = [](u64 seed) {
		GpuConfig c;
		c.seed = seed;
		Rig r(c);
		// two kernel queues that each add to what the other left
		u32 page = reg::sdma_base(0) + reg::sdma_queue(1);
		r.set64(page + reg::rb_base, (ap + 12 * MiB) >> 8);
		r.set(page + reg::rb_cntl, 1 | 14 << 1);
		for (u32 i = 0; i < 64; i++) {
			u64 at = 12 * MiB + i * 32;
			const u32 add[]{10 | 0x0fu << 25, AT(0), i, 0, 0, 0, 0};
			std::ranges::copy(add, &r.vram<u32>(at));
			r.push({1, 3, 0, AT(0), AT(64 + 4 * i)});
		}
		r.set(page + reg::rb_wptr, 64 * 32);
		r.ring();
		return copy_of(r, 64, 256);
	};
	EXPECT_EQ(order(7), order(7));
	EXPECT_NE(order(7), order(8));
}

} // namespace
