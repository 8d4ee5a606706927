// SPDX-License-Identifier: MIT
#pragma once

#include <deque>

/// In a program with ioctl_answers.cpp, calls of ioctl(2) with @ref request, whatever the
/// size of its argument, get these answers instead of the kernel's. Each is an errno value,
/// or 0 for success. Once there is none left, calls reach the kernel.
struct ioctl_answers {
	unsigned long request = 0;
	std::deque<int> left;
};
extern ioctl_answers answers;
