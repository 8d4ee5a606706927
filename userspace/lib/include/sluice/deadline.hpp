// SPDX-License-Identifier: MIT
// Points in monotonic time by which something must have happened.
#pragma once

#include <chrono>

namespace sluice {

using clock = std::chrono::steady_clock;
using deadline = clock::time_point;

/// No limit.
inline constexpr deadline never = deadline::max();

/// @p d from now; never if that is beyond the range of the clock.
inline deadline after(clock::duration d)
{
	const deadline now = clock::now();

	return d < never - now ? now + d : never;
}

} // namespace sluice
