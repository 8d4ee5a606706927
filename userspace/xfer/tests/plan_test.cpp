// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "xfer/plan.hpp"

using namespace xfer;

namespace {

constexpr uint64_t K = 1024, M = 1024 * K;

// Pieces and chunks must be the file: nothing twice, nothing left out.
void expect_whole(const Plan &plan, uint64_t window)
{
	uint64_t at = 0, number = 0;

	for (uint64_t i = 0; i < plan.pieces(); i++) {
		Piece piece = plan.piece(i);
		uint64_t inside = 0;

		ASSERT_EQ(piece.file.offset, at);
		ASSERT_EQ(piece.first, number);
		ASSERT_GT(piece.chunks, 0u);
		ASSERT_LE(piece.file.length, window);
		for (uint64_t j = 0; j < piece.chunks; j++) {
			Slice chunk = plan.chunk(piece, j);

			ASSERT_EQ(chunk.offset, inside);
			ASSERT_GT(chunk.length, 0u);
			ASSERT_LE(chunk.length, plan.chunk_size());
			inside += chunk.length;
		}
		ASSERT_EQ(inside, piece.file.length);
		at += inside;
		number += piece.chunks;
	}
	ASSERT_EQ(at, plan.size());
	ASSERT_EQ(number, plan.chunks());
}

} // namespace

TEST(Plan, CoversTheFile)
{
	for (uint64_t size : {uint64_t{1}, 4 * K - 1, 4 * K, 4 * K + 1, M - 1, M,
			      M + 1, 7 * M + 12345, 64 * M})
		for (uint64_t window : {4 * K, 12 * K, M, 3 * M + 4 * K, 64 * M})
			for (uint64_t chunk : {4 * K, 12 * K, M}) {
				auto plan = Plan::make(size, window, chunk);
				if (chunk > window) {
					EXPECT_FALSE(plan);
					continue;
				}
				ASSERT_TRUE(plan);
				expect_whole(*plan, window);
			}
}

TEST(Plan, FileLargerThanTheWindow)
{
	auto plan = Plan::make(10 * M + 1, 4 * M, M);

	ASSERT_TRUE(plan);
	EXPECT_EQ(plan->pieces(), 3u);
	EXPECT_EQ(plan->chunks(), 11u);
	EXPECT_EQ(plan->piece(2).file, (Slice{8 * M, 2 * M + 1}));
	EXPECT_EQ(plan->chunk(plan->piece(2), 2), (Slice{2 * M, 1}));
}

TEST(Plan, WindowOfBrokenChunks)
{
	auto plan = Plan::make(10 * M, 5 * M / 2, M);

	ASSERT_TRUE(plan);
	EXPECT_EQ(plan->piece_size(), 2 * M);
}

TEST(Plan, RefusesNonsense)
{
	for (uint64_t chunk : {uint64_t{0}, uint64_t{1}, 4 * K - 1, 4 * K + 1,
			       65 * M, UINT64_MAX})
		EXPECT_EQ(Plan::make(M, 128 * M, chunk).error().code(),
			  errc::usage) << chunk;
	EXPECT_FALSE(Plan::make(0, M, M));
	EXPECT_FALSE(Plan::make(M, M - 1, M));
	EXPECT_FALSE(Plan::make(M, 0, M));
}
