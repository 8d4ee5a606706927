// SPDX-License-Identifier: MIT
#include "sdma_packet.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

using namespace sluice::emu;
using namespace sluice::emu::sdma;

namespace {

struct Sample {
	const char *name;
	std::vector<u32> words;	  // a good packet
	std::vector<u32> defined; // which bits of each word mean something
};

constexpr u32 all = ~0u;

const std::vector<Sample> samples{
	{"nop", {0}, {0x3fff00ff}},
	{"copy",
	 {1, 63, 0, 64, 0, 4096, 0},
	 {0x0804ffff, 0x3fffffff, 0, all, all, all, all}},
	{"broadcast",
	 {1 | 1u << 27, 63, 0, 64, 0, 4096, 0, 8192, 0},
	 {0x0804ffff, 0x3fffffff, 0, all, all, all, all, all, all}},
	{"window",
	 {0x401 | 4u << 29, 64, 0, 0, 63 << 13, 0, 4096, 0, 0, 127 << 13, 0,
	  15 | 31 << 16, 0},
	 {0xe004ffff, all, all, 0, 0xffffe000, 0, all, all, 0, 0xffffe000, 0,
	  0x3fff3fff, 0}},
	{"swap",
	 {0x901, 63, 0, 64, 0, 4096, 0},
	 {0x0004ffff, 0x3fffffff, 0, all, all, all, all}},
	{"write", {2, 64, 0, 0, 42}, {0x400ff, all, all, 0xfffff, all}},
	{"indirect", {4, 64, 0, 8, 0, 0}, {0xf00ff, all, all, 0xfffff, all, all}},
	{"fence", {5, 64, 0, 42}, {0xff, all, all, all}},
	{"trap", {6, 1}, {0xff, 0x0fffffff}},
	{"poll",
	 {8 | 1u << 31 | 3u << 28, 64, 0, 1, all, 0xfff << 16},
	 {0xf40000ff, all, all, all, all, 0x0fffffff}},
	{"cond_exe", {9, 64, 0, 1, 4}, {0xff, all, all, all, 0x3fff}},
	{"atomic",
	 {10 | 0x2fu << 25, 64, 0, 1, 0, 0, 0, 0},
	 {0xfe0500ff, all, all, all, all, all, all, 0x1fff}},
	{"fill",
	 {11 | 2u << 30, 64, 0, 7, 63},
	 {0xc00000ff, all, all, all, 0x3fffffff}},
	{"ptepde",
	 {12, 64, 0, 1, 0, 4096, 0, 4096, 0, 3},
	 {0xff, all, all, all, all, all, all, all, all, 0x7ffff}},
	{"timestamp", {13 | 1u << 8, 64, 0}, {0xffff, all, all}},
	{"srbm_write", {14 | 0xfu << 28, 4, 1}, {0xf00000ff, 0x3ffff, all}},
};

TEST(Packet, GoodSamplesDecode)
{
	for (const Sample &s : samples) {
		auto p = decode(s.words);
		ASSERT_TRUE(p) << s.name << ": " << p.error().why;
		EXPECT_STREQ(p->name, s.name);
		EXPECT_EQ(p->words, s.words.size()) << s.name;
	}
}

TEST(Packet, EveryTooShortLengthIsTruncated)
{
	for (const Sample &s : samples) {
		// the data of WRITE is not the decoder's
		size_t need = s.words.size() - (s.words[0] == 2);
		for (size_t n = 0; n < need; n++) {
			auto p = decode(std::span(s.words).first(n));
			ASSERT_FALSE(p) << s.name << " with " << n;
			EXPECT_TRUE(p.error().truncated) << s.name;
		}
	}
}

TEST(Packet, EveryReservedBitIsRejected)
{
	for (const Sample &s : samples)
		for (size_t w = 0; w < s.words.size(); w++)
			for (unsigned bit = 0; bit < 32; bit++) {
				if (s.defined[w] >> bit & 1)
					continue;
				auto words = s.words;
				words[w] |= 1u << bit;
				auto p = decode(words);
				EXPECT_FALSE(p)
					<< s.name << " word " << w << " bit " << bit;
			}
}

TEST(Packet, UnknownOperations)
{
	const std::array<bool, 17> known{1, 1, 1, 0, 1, 1, 1, 0, 1,
					 1, 1, 1, 1, 1, 1, 0, 0};
	for (u32 op = 0; op < 256; op++) {
		std::array<u32, 10> words{op | (op == 10 ? 0x2fu << 25 : 0)};
		EXPECT_EQ(decode(words).has_value(), op < 17 && known[op]) << op;
	}
	for (u32 sub : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 10u, 255u}) {
		std::array<u32, 10> words{1 | sub << 8};
		EXPECT_FALSE(decode(words)) << sub;
	}
}

template <size_t N> void expect_bad(std::array<u32, N> words, const char *why)
{
	auto p = decode(words);
	ASSERT_FALSE(p) << why;
	EXPECT_EQ(p.error().why, why);
}

TEST(Packet, Limits)
{
	expect_bad<7>({0x901, 63, 0, 32, 0, 4096, 0},
		      "swap addresses are not aligned to 64 bytes");
	expect_bad<7>({0x901, 63, 0, 64, 0, 4096 + 32, 0},
		      "swap addresses are not aligned to 64 bytes");
	for (u32 word : {1u, 6u}) {
		std::array<u32, 13> w{
			0x401 | 4u << 29, 64, 0,  0, 63 << 13, 0, 4096, 0, 0,
			127 << 13,	  0,  15, 0};
		w[word] += 8;
		expect_bad<13>(w, "sub-window copy is not aligned");
	}
	expect_bad<13>({0x401 | 5u << 29, 64, 0, 0, 63 << 13, 0, 4096, 0, 0, 127 << 13,
			0, 15, 0},
		       "element size of sub-window copy");
	expect_bad<13>({0x401 | 4u << 29, 64, 0, 0, 3 << 13, 0, 4096, 0, 0, 127 << 13,
			0, 4, 0},
		       "rows of sub-window copy overlap");
	expect_bad<13>(
		{0x401 | 4u << 29, 64, 0, 0, 63 << 13, 0, 4096, 0, 0, 3 << 13, 0, 4, 0},
		"rows of sub-window copy overlap");
	expect_bad<7>({0x901, 0x3fffffdf + 1, 0, 0, 0, 0, 1}, "swap is too long");
	EXPECT_TRUE(decode(std::array<u32, 7>{0x901, 0x3fffffdf, 0, 0, 0, 0, 1}));
	expect_bad<7>({0x901, 127, 0, 64, 0, 128, 0}, "swap ranges overlap");
	expect_bad<7>({0x901, 127, 0, 128, 0, 64, 0}, "swap ranges overlap");
	EXPECT_TRUE(decode(std::array<u32, 7>{0x901, 63, 0, 64, 0, 128, 0}));
	expect_bad<9>({1 | 1u << 27, 63, 0, 0, 0, 32, 0, 80, 0},
		      "broadcast destinations differ modulo 32");
	EXPECT_TRUE(
		decode(std::array<u32, 9>{1 | 1u << 27, 63, 0, 0, 0, 33, 0, 65, 0}));
	expect_bad<4>({5, 2, 0, 1}, "FENCE is not aligned to 4 bytes");
	expect_bad<6>({4, 16, 0, 8, 0, 0},
		      "indirect buffer is not aligned to 32 bytes");
	expect_bad<3>({13 | 2 << 8, 16, 0}, "TIMESTAMP is not aligned to 32 bytes");
	expect_bad<8>({10 | 0x2fu << 25, 4, 0, 1, 0, 0, 0, 0},
		      "ATOMIC is not naturally aligned");
	expect_bad<8>({10 | 0x2fu << 25 | 1 << 16, 8, 0, 1, 0, 0, 0, 0},
		      "ATOMIC loops without a comparison");
	expect_bad<8>({10 | 0x3fu << 25, 8, 0, 1, 0, 0, 0, 0}, "operation of ATOMIC");
	expect_bad<5>({11 | 2u << 30, 2, 0, 7, 63},
		      "word fill is not aligned to 4 bytes");
	expect_bad<5>({11 | 2u << 30, 4, 0, 7, 64},
		      "word fill is not aligned to 4 bytes");
	expect_bad<5>({11 | 1u << 30, 4, 0, 7, 63}, "element size of CONST_FILL");
	expect_bad<10>({12, 4, 0, 1, 0, 0, 0, 0, 0, 3},
		       "PTEPDE is not aligned to 8 bytes");
	expect_bad<6>({8 | 1u << 31 | 7u << 28, 64, 0, 1, all, 0},
		      "comparison of POLL_REGMEM");
	expect_bad<6>({8 | 1u << 31 | 1u << 26, 64, 0, 1, all, 0},
		      "POLL_REGMEM of memory with an HDP flush");
}

TEST(Packet, Comparisons)
{
	const u32 v[]{0, 1, 2, 0x7fffffff, 0x80000000, all};
	for (u32 a : v)
		for (u32 b : v) {
			EXPECT_TRUE(satisfied(Compare::always, a, b));
			EXPECT_EQ(satisfied(Compare::lt, a, b), a < b);
			EXPECT_EQ(satisfied(Compare::le, a, b), a <= b);
			EXPECT_EQ(satisfied(Compare::eq, a, b), a == b);
			EXPECT_EQ(satisfied(Compare::ne, a, b), a != b);
			EXPECT_EQ(satisfied(Compare::ge, a, b), a >= b);
			EXPECT_EQ(satisfied(Compare::gt, a, b), a > b);
		}
}

u64 atomic(AtomicOp op, unsigned size, u64 old, u64 source, u64 compare = 0)
{
	return apply(Atomic{op, size, false, 0, source, compare}, old);
}

TEST(Packet, Atomics)
{
	EXPECT_EQ(atomic(AtomicOp::add, 8, 0xffffffff, 1), 0x100000000);
	EXPECT_EQ(atomic(AtomicOp::add, 4, 0xffffffff, 1), 0u);
	EXPECT_EQ(atomic(AtomicOp::sub, 8, 0, 1), ~0ull);
	EXPECT_EQ(atomic(AtomicOp::swap, 8, 5, 9), 9u);
	EXPECT_EQ(atomic(AtomicOp::cmpswap, 8, 5, 9, 5), 9u);
	EXPECT_EQ(atomic(AtomicOp::cmpswap, 8, 5, 9, 6), 5u);
	EXPECT_EQ(atomic(AtomicOp::smin, 4, 0xffffffff, 1), 0xffffffff);
	EXPECT_EQ(atomic(AtomicOp::umin, 4, 0xffffffff, 1), 1u);
	EXPECT_EQ(atomic(AtomicOp::smax, 8, ~0ull, 1), 1u);
	EXPECT_EQ(atomic(AtomicOp::umax, 8, ~0ull, 1), ~0ull);
	EXPECT_EQ(atomic(AtomicOp::and_, 8, 0xff, 0x0f), 0x0fu);
	EXPECT_EQ(atomic(AtomicOp::or_, 8, 0xf0, 0x0f), 0xffu);
	EXPECT_EQ(atomic(AtomicOp::xor_, 8, 0xff, 0x0f), 0xf0u);
	EXPECT_EQ(atomic(AtomicOp::inc, 4, 7, 7), 0u);
	EXPECT_EQ(atomic(AtomicOp::inc, 4, 6, 7), 7u);
	EXPECT_EQ(atomic(AtomicOp::dec, 4, 0, 7), 7u);
	EXPECT_EQ(atomic(AtomicOp::dec, 4, 9, 7), 7u);
	EXPECT_EQ(atomic(AtomicOp::dec, 4, 3, 7), 2u);
}

} // namespace
