// SPDX-License-Identifier: MIT
// When libsluice-preload.so moves memory again that has come back to the host.
#pragma once

#include <algorithm>
#include <chrono>

namespace sluice::preload {

/// Moving takes time, and a thread that registers memory waits for it. So memory that the
/// CPU uses all the time is moved rarely, and moving takes a tenth of the time at most.
class pace {
public:
	using clock = std::chrono::steady_clock;
	using duration = clock::duration;

	/// Pages have come back. Returns how long no more may come before all are moved.
	duration quiet_from(clock::time_point now) noexcept
	{
		bool soon = now - moved_ < longest;

		quiet_ = soon ? std::min(2 * quiet_, longest) : shortest;
		return std::max(quiet_, 10 * cost_);
	}

	/// The pages were moved.
	/// @param some_left some pages were not, for example because they were in use
	void moved(clock::time_point start, clock::time_point end,
		   bool some_left) noexcept
	{
		moved_ = end;
		cost_ = end - start;
		some_left_ = some_left;
		retry_ = some_left ? std::min(2 * retry_, most_patient) : shortest;
	}

	/// Whether it is time to try the remaining pages again.
	bool retry_at(clock::time_point now) const noexcept
	{
		return some_left_ && now >= moved_ + retry_pause();
	}

	/// How long to wait at most for more pages to come back.
	duration patience_at(clock::time_point now) const noexcept
	{
		return some_left_ ? std::max(moved_ + retry_pause() - now, duration(0))
				  : longest;
	}

private:
	static constexpr duration shortest = std::chrono::milliseconds(10);
	static constexpr duration longest = std::chrono::seconds(1);
	static constexpr duration most_patient = std::chrono::minutes(1);

	duration retry_pause() const noexcept { return std::max(retry_, 10 * cost_); }

	duration quiet_ = shortest, retry_ = shortest, cost_{};
	clock::time_point moved_{};
	bool some_left_ = false;
};

} // namespace sluice::preload
