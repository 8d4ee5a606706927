// SPDX-License-Identifier: MIT
#include "page_walker.hpp"

#include <gtest/gtest.h>

#include <map>

using namespace sluice::emu;

namespace {

// Entries by address; everything else is a hole.
class Tables {
public:
	std::map<std::pair<bool, u64>, u64> entries;

	void put(u64 table, u64 index, u64 value, bool system = false)
	{
		entries[{system, table + index * 8}] = value;
	}
	auto walk(const PageTable &t, u64 va)
	{
		return sluice::emu::walk(t, va, [this](u64 a, bool system) {
			auto it = entries.find({system, a});
			return it == entries.end() ? std::nullopt
						   : std::optional(it->second);
		});
	}
};

constexpr u64 rw = pte::valid | pte::readable | pte::writable;

PageTable deep(unsigned depth, unsigned block = 0)
{
	PageTable t;
	t.enabled = true;
	t.depth = depth;
	t.block = block;
	t.base = 0x1000 | pte::valid;
	t.end = (1ull << 48) - 1;
	return t;
}

constexpr u64 va(u64 a, u64 b, u64 c, u64 d, u64 rest)
{
	return a << 39 | b << 30 | c << 21 | d << 12 | rest;
}

TEST(Walker, FlatTable)
{
	Tables m;
	PageTable t = deep(0);
	t.start = 0x7f0000000000;
	m.put(0x1000, 3, 0xabc000 | rw | pte::system);
	auto r = m.walk(t, t.start + 0x3456);
	ASSERT_TRUE(r);
	EXPECT_EQ(r->address, 0xabc000u);
	EXPECT_EQ(r->shift, 12u);
	EXPECT_TRUE(r->system && r->readable && r->writable);
}

TEST(Walker, FourLevels)
{
	Tables m;
	m.put(0x1000, 1, 0x2000 | pte::valid);
	m.put(0x2000, 2, 0x3000 | pte::valid);
	// a directory in system memory, aligned to 64 bytes only
	m.put(0x3000, 3, 0x40c0 | pte::valid | pte::system);
	m.put(0x40c0, 4, 0x9000 | pte::valid | pte::readable, true);
	auto r = m.walk(deep(3), va(1, 2, 3, 4, 5));
	ASSERT_TRUE(r);
	EXPECT_EQ(r->address, 0x9000u);
	EXPECT_TRUE(r->readable);
	EXPECT_FALSE(r->writable || r->system);
}

// The driver maps 1 GiB with a base that is no multiple of 1 GiB.
TEST(Walker, HugeEntryKeepsItsBase)
{
	Tables m;
	m.put(0x1000, 0, 0x2000 | pte::valid);
	m.put(0x2000, 5, 0x12345000 | rw | pte::is_pte);
	auto r = m.walk(deep(3), va(0, 5, 7, 8, 9));
	ASSERT_TRUE(r);
	EXPECT_EQ(r->shift, 30u);
	EXPECT_EQ(r->address, 0x12345000u);
}

TEST(Walker, TwoMegabyteEntry)
{
	Tables m;
	m.put(0x1000, 0, 0x2000 | pte::valid);
	m.put(0x2000, 0, 0x3000 | pte::valid);
	m.put(0x3000, 6, 0x600000 | rw | pte::is_pte);
	auto r = m.walk(deep(3), va(0, 0, 6, 1, 2));
	ASSERT_TRUE(r);
	EXPECT_EQ(r->shift, 21u);
	EXPECT_EQ(r->address, 0x600000u);
}

// As the driver sets contexts up: the last level holds entries of 2 MiB that
// are pages, or tables of single pages.
TEST(Walker, TranslateFurther)
{
	Tables m;
	PageTable t = deep(2, 9);
	m.put(0x1000, 1, 0x2000 | pte::valid);
	m.put(0x2000, 2, 0x3000 | pte::valid | 9ull << 59);
	m.put(0x3000, 3, 0x4000 | pte::valid | pte::further);
	m.put(0x3000, 4, 0x800000 | rw);
	m.put(0x4000, 5, 0x5000 | rw);
	auto small = m.walk(t, va(1, 2, 3, 5, 0));
	ASSERT_TRUE(small);
	EXPECT_EQ(small->shift, 12u);
	EXPECT_EQ(small->address, 0x5000u);
	auto large = m.walk(t, va(1, 2, 4, 5, 0));
	ASSERT_TRUE(large);
	EXPECT_EQ(large->shift, 21u);
	EXPECT_EQ(large->address, 0x800000u);
}

TEST(Walker, Prt)
{
	Tables m;
	m.put(0x1000, 0, pte::prt);
	auto r = m.walk(deep(0), 0);
	ASSERT_TRUE(r);
	EXPECT_TRUE(r->prt);
}

TEST(Walker, Errors)
{
	Tables m;
	PageTable off = deep(3), no_base = deep(3), narrow = deep(3);
	off.enabled = false;
	no_base.base = 0x1000;
	narrow.start = 0x10000;
	narrow.end = 0x1ffff;
	m.put(0x1000, 0, 0x2000 | pte::valid);
	m.put(0x2000, 0, 0x3000 | pte::valid);
	m.put(0x3000, 0, 0x4000 | pte::valid);
	m.put(0x4000, 0, pte::no_retry);
	m.put(0x1000, 1, 0);

	auto cause = [&](const PageTable &t, u64 a) {
		auto r = m.walk(t, a);
		EXPECT_FALSE(r);
		return r ? WalkError::disabled : r.error().cause;
	};
	EXPECT_EQ(cause(off, 0), WalkError::disabled);
	EXPECT_EQ(cause(no_base, 0), WalkError::directory);
	EXPECT_EQ(cause(narrow, 0xffff), WalkError::range);
	EXPECT_EQ(cause(narrow, 0x20000), WalkError::range);
	EXPECT_EQ(cause(deep(3), va(1, 0, 0, 0, 0)), WalkError::directory);
	EXPECT_EQ(cause(deep(3), va(2, 0, 0, 0, 0)), WalkError::unreachable);
	EXPECT_EQ(cause(deep(3), 0), WalkError::entry);
	auto r = m.walk(deep(3), 0);
	EXPECT_EQ(r.error().value, pte::no_retry);
}

} // namespace
