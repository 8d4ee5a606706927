// SPDX-License-Identifier: MIT
// Parts of libsluice-preload.so that need no GPU.
#include <array>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <gtest/gtest.h>

#include "own_file.hpp"
#include "pace.hpp"

using namespace std::chrono_literals;
using sluice::unique_fd;
using sluice::preload::own_file;
using sluice::preload::pace;

namespace {

struct PaceTest : ::testing::Test {
	/// All is moved as often as allowed while the CPU touches a page at this interval:
	/// how often that is, and how much of the time it takes, in percent.
	std::pair<int, int64_t> moves_in(pace::duration time, pace::duration each,
					 pace::duration cost)
	{
		auto end = now + time;
		int moves = 0;

		one = pace();
		for (; now < end; moves++) {
			now += each;
			now += one.quiet_from(now);
			move(cost, false);
		}
		return {moves, 100 * (moves * cost) / time};
	}

	void move(pace::duration cost, bool some_left)
	{
		one.moved(now, now + cost, some_left);
		now += cost;
	}

	pace one;
	pace::clock::time_point now{1h};
};

TEST_F(PaceTest, WhatComesBackOnceGoesAfter10ms)
{
	for (int i = 0; i < 3; i++, now += 1s) {
		EXPECT_EQ(one.quiet_from(now), 10ms);
		move(1ms, false);
	}
}

TEST_F(PaceTest, WhatTheCpuTouchesAllTheTimeGoesOnceASecond)
{
	for (auto each : {0ms, 20ms, 50ms, 900ms})
		EXPECT_LE(moves_in(100s, each, 1ms).first, 108) << each.count();
}

TEST_F(PaceTest, ItTakesATenthOfTheTimeAtMost)
{
	for (auto each : {20ms, 2000ms})
		EXPECT_LE(moves_in(1000s, each, 500ms).second, 10) << each.count();
}

TEST_F(PaceTest, ItIsQuickAgainWhenTheCpuHasLeftItAlone)
{
	moves_in(10s, 20ms, 1ms);
	now += 1s;
	EXPECT_EQ(one.quiet_from(now), 10ms);
}

TEST_F(PaceTest, WhatIsLeftIsTriedAgainLessAndLessOften)
{
	pace::duration before{}, pause{};

	move(1ms, true);
	for (int i = 0; i < 20; i++, before = pause) {
		pause = one.patience_at(now);
		EXPECT_GE(pause, before);
		EXPECT_FALSE(one.retry_at(now + pause - 1ns));
		now += pause;
		EXPECT_TRUE(one.retry_at(now));
		EXPECT_EQ(one.patience_at(now + 1s), 0s);
		move(1ms, true);
	}
	EXPECT_EQ(pause, 1min);
	move(100s, true);
	EXPECT_EQ(one.patience_at(now), 1000s);
}

TEST_F(PaceTest, WhereNothingIsLeftNothingIsTried)
{
	EXPECT_FALSE(one.retry_at(now));
	move(1ms, true);
	move(1ms, false);
	EXPECT_FALSE(one.retry_at(now + 1h));
	EXPECT_EQ(one.patience_at(now + 1h), 1s);
	move(1ms, true);
	EXPECT_LE(one.patience_at(now), 20ms);
}

// The first one has the same inode as the file.
TEST(OwnFileTest, AFileOfTheProgramsIsNotTakenForIt)
{
	std::array<int, 2> pipe;
	ASSERT_EQ(::pipe(pipe.data()), 0);
	for (int other : {::epoll_create1(0), pipe[0]}) {
		own_file file(unique_fd(::eventfd(0, 0)));
		int number = file.get();

		ASSERT_GE(number, 0);
		::close(number);
		EXPECT_EQ(file.get(), -1);
		ASSERT_EQ(::dup2(other, number), number);
		::close(other);
		EXPECT_EQ(file.get(), -1);
		::close(number);
	}
	::close(pipe[1]);
}

} // namespace
