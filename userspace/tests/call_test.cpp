// SPDX-License-Identifier: MIT
// Calls of a driver that asks to be called again.
#include "call.hpp"

#include <cstdarg>
#include <deque>
#include <sys/syscall.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace {

constexpr unsigned long of_test = 0xdeadbeef;
std::deque<int> answers; // errno values; 0: success

} // namespace

// Replaces the C library's function in this program.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept
{
	va_list list;

	va_start(list, request);
	void *argument = va_arg(list, void *);
	va_end(list);
	if (request != of_test)
		return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
	errno = answers.front();
	answers.pop_front();
	return errno ? -1 : 0;
}

TEST(Call, IsMadeAgainIfASignalInterruptsIt)
{
	answers = {EINTR, EINTR, 0};
	EXPECT_EQ(sluice::detail::call(-1, of_test, nullptr), 0);
	answers = {EINTR, EAGAIN};
	EXPECT_EQ(sluice::detail::call(-1, of_test, nullptr), -EAGAIN);
}

TEST(Call, IsMadeAgainIfTheDriverWantsThat)
{
	answers = {EAGAIN, EINTR, EAGAIN, 0};
	EXPECT_EQ(sluice::detail::call_again(-1, of_test, nullptr), 0);
	answers = {EAGAIN, ENOMEM};
	EXPECT_EQ(sluice::detail::call_again(-1, of_test, nullptr), -ENOMEM);
	EXPECT_TRUE(answers.empty());
}
