// SPDX-License-Identifier: MIT
// Points in monotonic time by which something must have happened.
#pragma once

#include <algorithm>
#include <chrono>
#include <climits>

namespace xfer {

using clock = std::chrono::steady_clock;
using deadline = clock::time_point;

/// @p d from now.
inline deadline after(clock::duration d)
{
	return clock::now() + d;
}

/// What is left until @p until as a poll(2) timeout: milliseconds, rounded
/// up so that a wait never ends early; 0 if it has passed.
inline int poll_timeout(deadline until)
{
	auto left = std::chrono::ceil<std::chrono::milliseconds>(
		until - clock::now()).count();

	return static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
}

/// Seconds since @p start.
inline double seconds_since(clock::time_point start)
{
	return std::chrono::duration<double>(clock::now() - start).count();
}

} // namespace xfer
