// SPDX-License-Identifier: MIT
// For small programs, which can only report an error: or_exit(open(name)) returns what
// open() gave, or ends the program.
#pragma once

#include <utility>

#include "sluice/error.hpp"

namespace sluice {

/// Print the message of @p why to standard error, and end the program with exit status
/// 1 as by std::exit(): destructors of the stack do not run; the kernel releases all
/// resources.
[[noreturn]] void exit_for(const error &why) noexcept;

/// Return the value of @p got; if it is an error, call exit_for() with it.
template <class T> T or_exit(result<T> got)
{
	if (!got)
		exit_for(got.error());
	return *std::move(got);
}

} // namespace sluice
