// SPDX-License-Identifier: MIT
// For small programs, which can do nothing about an error but say it: or_exit(open(name))
// is what open() gave, or the end of the program.
#pragma once

#include <utility>

#include "sluice/error.hpp"

namespace sluice {

/// Print the message of @p why to standard error, and end the program with exit status 1, as
/// by std::exit(): destructors of the stack do not run, the kernel takes back what is held.
[[noreturn]] void exit_for(const error &why) noexcept;

/// What @p got holds; if that is an error, exit_for() it.
template <class T> T or_exit(result<T> got)
{
	if (!got)
		exit_for(got.error());
	return *std::move(got);
}

} // namespace sluice
