// SPDX-License-Identifier: MIT
#include <array>

#include <gtest/gtest.h>

#include "sluice/batch.hpp"
#include "sluice/kv.hpp"

using namespace sluice;

namespace {

constexpr kv_layout small{.layers = 2, .planes = 2, .blocks = 8, .block_bytes = 256};

struct KvTest : ::testing::Test {
	slice cache{*buffer::host(2 * page_size)};

	std::vector<size_t> offsets(const kv_layout &l, std::vector<uint32_t> blocks)
	{
		auto source = kv_source(l, cache, blocks);
		std::vector<size_t> all;

		EXPECT_TRUE(source) << source.error().message();
		for (const slice &part : source->from)
			all.push_back(part.offset());
		return all;
	}

	std::string refused(const kv_layout &l)
	{
		auto checked = l.check(cache);

		EXPECT_FALSE(checked);
		return checked ? "" : std::string(checked.error().message());
	}
};

bool has(const std::string &text, const char *part)
{
	return text.find(part) != std::string::npos;
}

} // namespace

TEST_F(KvTest, GoesThroughPlanesAndLayers)
{
	EXPECT_EQ(small.size(), 2 * page_size);
	EXPECT_EQ(small.bytes_each(), 1024u);
	EXPECT_EQ(offsets(small, {5, 2}),
		  (std::vector<size_t>{1280, 512, 3328, 2560, 5376, 4608, 7424, 6656}));
}

TEST_F(KvTest, KeepsToStrides)
{
	kv_layout l{.layers = 1,
		    .planes = 2,
		    .blocks = 3,
		    .block_bytes = 100,
		    .block_stride = 128,
		    .plane_stride = 1000};

	EXPECT_EQ(l.size(), 1356u);
	EXPECT_EQ(offsets(l, {2, 0}), (std::vector<size_t>{256, 0, 1256, 1000}));
}

TEST_F(KvTest, JoinsNeighbours)
{
	auto source = kv_source(small, cache, std::array<uint32_t, 3>{3, 4, 6});

	ASSERT_TRUE(source);
	ASSERT_EQ(source->from.size(), 8u);
	EXPECT_EQ(source->from[0].size(), 512u);
	EXPECT_EQ(source->from[1].offset(), 1536u);
	EXPECT_EQ(source->size, 3 * 1024u);
}

TEST_F(KvTest, CountsFromWhereTheCacheBegins)
{
	buffer all = *buffer::host(4 * page_size);
	auto sink = kv_sink(small, all.part(page_size, 2 * page_size),
			    std::array<uint32_t, 1>{1});

	ASSERT_TRUE(sink);
	EXPECT_EQ(sink->to[0].offset(), page_size + 256);
}

TEST_F(KvTest, IsGatheredByABatch)
{
	auto parts =
		kv_parts(small, cache, std::array<uint32_t, 2>{5, 2}, kv_use::read);
	buffer row = *buffer::host(page_size);
	batch b(16);

	ASSERT_TRUE(parts);
	b.gather(row.part(0, 2048), *parts)
		.barrier()
		.scatter(*parts, row.part(0, 2048));
	ASSERT_TRUE(b.check());
	EXPECT_EQ(b.size(), 16u);
	EXPECT_EQ(b.bytes(), 4096u);
	b.scatter(*parts, row.part(0, 2047));
	EXPECT_TRUE(has(std::string(b.check().error().message()),
			"8 parts have 2048 bytes"));
}

TEST_F(KvTest, NamesTheBlockAtFault)
{
	auto beyond = kv_source(small, cache, std::array<uint32_t, 3>{0, 1, 8});
	auto twice = kv_sink(small, cache, std::array<uint32_t, 3>{7, 1, 7});

	ASSERT_FALSE(beyond);
	EXPECT_EQ(beyond.error().index(), 2u);
	EXPECT_TRUE(has(std::string(beyond.error().message()), "block 8 is none of 8"));
	ASSERT_FALSE(twice);
	EXPECT_EQ(twice.error().index(), 2u);
	EXPECT_TRUE(kv_source(small, cache, std::array<uint32_t, 2>{7, 7}));
	EXPECT_FALSE(kv_source(small, cache, {}));
}

TEST_F(KvTest, RefusesShapesThatCannotBe)
{
	kv_layout l = small;

	l.blocks = 9;
	EXPECT_TRUE(has(refused(l), "the layout has 9216 bytes, the memory 8192"));
	l = small;
	l.block_stride = 255;
	EXPECT_TRUE(has(refused(l), "overlaps"));
	l = small;
	l.plane_stride = 2047;
	EXPECT_TRUE(has(refused(l), "overlaps"));
	l = small;
	l.layers = 0;
	EXPECT_TRUE(has(refused(l), "must not be 0"));
	l = small;
	l.block_stride = SIZE_MAX / 4;
	EXPECT_TRUE(has(refused(l), "64 bits"));
}

TEST_F(KvTest, ComparesShapes)
{
	auto source = *kv_source(small, cache, std::array<uint32_t, 2>{1, 2});
	stream_offer offer{source.name, source.size};
	kv_layout roomy = small, other = small;

	roomy.blocks = 4;
	roomy.block_stride = 300;
	EXPECT_TRUE(kv_fits(offer, roomy, 2));
	EXPECT_FALSE(kv_fits(offer, small, 3));
	other.block_bytes = 512;
	other.layers = 1;
	EXPECT_FALSE(kv_fits(offer, other, 2));
	offer.size++;
	EXPECT_FALSE(kv_fits(offer, small, 2));
}
