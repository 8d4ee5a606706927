// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "xfer/gpu_memory.hpp"

namespace xfer {

TEST(GpuMemory, AliasField)
{
	const std::string line =
		"0000:01:00.0 published=1 start=0x383800000000 size=1073741824 "
		"cpu=1 mapped=512 unreachable=3 no_cpu=4 revokes=2";

	EXPECT_EQ(alias_field(line, "published"), 1u);
	EXPECT_EQ(alias_field(line, "start"), 0x383800000000u);
	EXPECT_EQ(alias_field(line, "mapped"), 512u);
	EXPECT_EQ(alias_field(line, "no_cpu"), 4u);
	EXPECT_EQ(alias_field(line, "cpu"), 1u);
	EXPECT_EQ(alias_field(line, "missing"), 0u);
	EXPECT_EQ(alias_field("", "mapped"), 0u);
}

TEST(GpuMemory, PagesLeaving)
{
	const char *out = "5 123456789 -77 @7f0000000(200) b1e5->0 0:b1e5 1";
	const char *in = "5 123456789 -77 @7f0000000(200) 0->b1e5 b1e5:0 0";
	const char *end = "6 123456789 -77 @7f0000000(200) b1e5->0 1 0";

	EXPECT_EQ(pages_leaving(out, 0xb1e5), 0x200u);
	EXPECT_EQ(pages_leaving(out, 0xb1e6), 0u);
	EXPECT_EQ(pages_leaving(in, 0xb1e5), 0u);
	EXPECT_EQ(pages_leaving(end, 0xb1e5), 0u);
	EXPECT_EQ(pages_leaving("nonsense", 0xb1e5), 0u);
	EXPECT_EQ(pages_leaving("", 0xb1e5), 0u);
}

} // namespace xfer
