// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "placement.hpp"

using namespace sluice;
using namespace sluice::detail;

TEST(Placement, IsNearWhoReachesThePieces)
{
	using enum data_path;

	// the GPU reads and writes them, and the card video memory
	EXPECT_EQ(node_for_pieces(device_alias, 0, 1), 0);
	EXPECT_EQ(node_for_pieces(device_dmabuf, 0, 1), 0);
	// the card reads and writes them
	EXPECT_EQ(node_for_pieces(staged, 0, 1), 1);
	EXPECT_EQ(node_for_pieces(host, -1, 1), 1);
	// the card is software, or there is one node
	EXPECT_EQ(node_for_pieces(staged, 0, -1), 0);
	EXPECT_EQ(node_for_pieces(host, -1, -1), -1);
}

TEST(Placement, IsVerified)
{
	constexpr int none = 1000; // the kernel has 1024 at most
	constexpr size_t pages = 16;
	auto anywhere = memory_near(-1, page_size);

	ASSERT_TRUE(anywhere) << anywhere.error().message();
	EXPECT_EQ(anywhere->elsewhere, 0u);
	anywhere->memory.data()[0] = std::byte{1};
	auto where = anywhere->memory.nodes();
	if (!where)
		GTEST_SKIP() << where.error().message();

	auto near = memory_near(where->front(), pages * page_size);
	ASSERT_TRUE(near) << near.error().message();
	EXPECT_EQ(near->elsewhere, 0u);
	EXPECT_TRUE(near->memory.verify_node(where->front()));

	auto far = memory_near(none, pages * page_size);
	ASSERT_TRUE(far) << far.error().message();
	EXPECT_EQ(far->memory.size(), pages * page_size);
	EXPECT_EQ(far->elsewhere, pages);
}
