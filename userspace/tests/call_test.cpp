// SPDX-License-Identifier: MIT
// Calls of a driver that asks to be called again.
#include "call.hpp"
#include "ioctl_answers.hpp"

#include <gtest/gtest.h>

namespace {

constexpr unsigned long of_test = 0xdeadbeef;

void will_answer(std::deque<int> those)
{
	answers = {.request = of_test, .left = std::move(those)};
}

} // namespace

TEST(Call, IsMadeAgainIfASignalInterruptsIt)
{
	will_answer({EINTR, EINTR, 0});
	EXPECT_EQ(sluice::detail::call(-1, of_test, nullptr), 0);
	will_answer({EINTR, EAGAIN});
	EXPECT_EQ(sluice::detail::call(-1, of_test, nullptr), -EAGAIN);
}

TEST(Call, IsMadeAgainIfTheDriverWantsThat)
{
	will_answer({EAGAIN, EINTR, EAGAIN, 0});
	EXPECT_EQ(sluice::detail::call_again(-1, of_test, nullptr), 0);
	will_answer({EAGAIN, ENOMEM});
	EXPECT_EQ(sluice::detail::call_again(-1, of_test, nullptr), -ENOMEM);
	EXPECT_TRUE(answers.left.empty());
}
