// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report.hpp"

using namespace xfer;

namespace {

Report example()
{
	Report r;

	r.file = "data";
	r.bytes = 3 << 20;
	r.chunks = 3;
	r.pieces = 1;
	r.chunk_size = 1 << 20;
	r.piece_size = 64 << 20;
	r.transfer_s = 2;
	r.stalls = 5;
	r.sender = {"/dev/peer_mem0", true, 768, 0, 0};
	r.receiver = {"system", false, 0, 0, 0};
	r.sha256 = "0123";
	return r;
}

} // namespace

TEST(Report, Json)
{
	auto j = nlohmann::json::parse(example().json());

	EXPECT_EQ(j["bytes"], 3 << 20);
	EXPECT_EQ(j["stalls"], 5);
	EXPECT_EQ(j["sender"]["pages_by_alias"], 768);
	EXPECT_EQ(j["sender"]["migrations"], 0);
	EXPECT_FALSE(j["receiver"].contains("migrations"));
	EXPECT_EQ(j["receiver"]["registration"], "pinned");
	EXPECT_NEAR(j["rdma_mb_per_s"].get<double>(), 1.57, 0.01);
}

TEST(Report, Table)
{
	auto table = example().table();

	for (const char *part : {"3145728", "3 of 1 MiB", "768", "0123",
				 "stalls for credit   5"})
		EXPECT_NE(table.find(part), std::string::npos) << part << "\n"
							       << table;
}

TEST(Report, NoTimeNoRate)
{
	EXPECT_EQ(Report().rate(), 0);
}

TEST(SideStats, ThereAndBack)
{
	SideStats side{"/dev/peer_mem1", true, 1, 2, 3};
	Message message("finished");

	side.to(message);
	auto back = SideStats::from(*Message::parse(message.line()));
	ASSERT_TRUE(back);
	EXPECT_EQ(back->memory, side.memory);
	EXPECT_EQ(back->by_alias, 1u);
	EXPECT_EQ(back->migrations, 2u);
	EXPECT_EQ(back->fallbacks, 3u);
	EXPECT_FALSE(SideStats::from(Message("finished")));
}
