// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "peer_test_uapi.h"
#include "xfer/peer_memory.hpp"

using namespace xfer;
using extents = std::vector<Extent>;

TEST(JoinPages, Neighbours)
{
	std::vector<uint64_t> pages = {0x5000, 0x6000, 0x7000};

	EXPECT_EQ(join_pages(pages, 3 * 4096), (extents{{0x5000, 3 * 4096}}));
}

TEST(JoinPages, OrderOfUserMemoryNotOfTheBar)
{
	std::vector<uint64_t> pages = {0x7000, 0x6000, 0x8000};

	EXPECT_EQ(join_pages(pages, 3 * 4096),
		  (extents{{0x7000, 4096}, {0x6000, 4096}, {0x8000, 4096}}));
}

TEST(JoinPages, IgnoresFlagBits)
{
	std::vector<uint64_t> pages = {0x5000 | PEER_MEM_WRITABLE,
				       0x6000 | PEER_MEM_HUGE};

	EXPECT_EQ(join_pages(pages, 2 * 4096), (extents{{0x5000, 2 * 4096}}));
}

TEST(JoinPages, LastPageInPart)
{
	std::vector<uint64_t> pages = {0x5000, 0x6000};

	EXPECT_EQ(join_pages(pages, 4097), (extents{{0x5000, 4097}}));
	EXPECT_EQ(join_pages(pages, 10), (extents{{0x5000, 10}}));
}

TEST(JoinPages, PageThatIsNotThere)
{
	std::vector<uint64_t> pages = {0x5000, PEER_MEM_NOWHERE};

	EXPECT_EQ(join_pages(pages, 4097).error().code(), errc::device);
	EXPECT_TRUE(join_pages(pages, 4096));	// does not need it
}

TEST(JoinPages, TooFewPages)
{
	std::vector<uint64_t> pages = {0x5000};

	EXPECT_EQ(join_pages(pages, 4097).error().code(), errc::usage);
}

TEST(PeerMemory, MissingDevice)
{
	try {
		PeerMemory memory("/dev/peer_mem_that_is_not_there");
		FAIL();
	} catch (const Error &e) {
		EXPECT_EQ(e.code(), errc::device);
	}
}

TEST(PeerMemory, NotSuchADevice)
{
	EXPECT_THROW(PeerMemory("/dev/null"), Error);
}

TEST(PeerInfo, Difference)
{
	PeerInfo a, b;

	a.moved_out = 3, b.moved_out = 10;
	a.by_alias = 1, b.by_alias = 100;
	b.fallbacks = 4;
	EXPECT_EQ((b - a).moved_out, 7u);
	EXPECT_EQ((b - a).by_alias, 99u);
	EXPECT_EQ((b - a).fallbacks, 4u);
}
