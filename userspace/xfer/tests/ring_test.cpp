// SPDX-License-Identifier: MIT
#include <array>
#include <unistd.h>

#include <gtest/gtest.h>

#include "xfer/ring.hpp"
#include "xfer/unique_fd.hpp"

using namespace xfer;
using namespace std::chrono_literals;

namespace {

// A kernel may forbid io_uring altogether; the ring cannot be tested there.
std::unique_ptr<Ring> ring_or_skip(unsigned entries)
try {
	return std::make_unique<Ring>(entries);
} catch (const Error &) {
	return nullptr;
}

struct RingTest : ::testing::Test {
	void SetUp() override
	{
		int fds[2];

		ring = ring_or_skip(2);
		if (!ring)
			GTEST_SKIP() << "no io_uring here";
		ASSERT_EQ(::pipe(fds), 0);
		out = UniqueFd(fds[0]);
		in = UniqueFd(fds[1]);
	}

	Operation start()
	{
		return or_throw(ring->start_read(out.get(),
						 std::as_writable_bytes(
							std::span(buffer)), 0));
	}

	// After out, in and buffer: its operations must be gone first.
	UniqueFd out, in;
	std::array<char, 16> buffer{};
	std::unique_ptr<Ring> ring;
};

} // namespace

TEST_F(RingTest, Reads)
{
	ASSERT_EQ(::write(in.get(), "abc", 3), 3);
	EXPECT_EQ(start().wait(), 3u);
	EXPECT_EQ(buffer[2], 'c');
}

TEST_F(RingTest, PollDoesNotWait)
{
	auto operation = start();

	EXPECT_FALSE(operation.poll());
	ASSERT_EQ(::write(in.get(), "abc", 3), 3);
	EXPECT_EQ(operation.wait(), 3u);
	EXPECT_TRUE(operation.poll());
}

TEST_F(RingTest, DeadlinePassesAndTheOperationGoesOn)
{
	auto operation = start();

	EXPECT_EQ(operation.wait_until(after(20ms)).error().code(),
		  errc::timeout);
	ASSERT_EQ(::write(in.get(), "abc", 3), 3);
	EXPECT_EQ(operation.wait_until(after(5s)), 3u);
}

TEST_F(RingTest, CancelIsARequest)
{
	auto operation = start();

	operation.cancel();
	EXPECT_FALSE(operation.wait());
}

// Nobody may write to the buffer once the handle is gone.
TEST_F(RingTest, DestructorDrains)
{
	{
		auto operation = start();
	}
	ASSERT_EQ(::write(in.get(), "abc", 3), 3);
	EXPECT_EQ(buffer[0], 0);
	EXPECT_EQ(start().wait(), 3u);
}

TEST_F(RingTest, MoveKeepsTheOperation)
{
	auto first = start();
	auto second = std::move(first);

	ASSERT_EQ(::write(in.get(), "abc", 3), 3);
	EXPECT_EQ(second.wait(), 3u);
}

TEST_F(RingTest, AssignmentDrainsTheOldOne)
{
	auto first = start();
	auto second = start();

	first = std::move(second);
	ASSERT_EQ(::write(in.get(), "abc", 3), 3);
	EXPECT_EQ(first.wait(), 3u);
}

TEST_F(RingTest, NoMoreThanItsEntries)
{
	auto first = start();
	auto second = start();
	auto third = ring->start_read(out.get(), std::as_writable_bytes(
					      std::span(buffer)), 0);

	ASSERT_FALSE(third);
	EXPECT_EQ(third.error().code(), errc::usage);
}

TEST_F(RingTest, BadDescriptor)
{
	EXPECT_FALSE(ring->read(-1, std::as_writable_bytes(std::span(buffer)), 0));
}
