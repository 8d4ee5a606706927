// SPDX-License-Identifier: MIT
// Between the model and the eventfd: loses, doubles or delays interrupts when
// told to.
#pragma once

#include "types.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace sluice::emu {

class IrqGate {
public:
	explicit IrqGate(std::function<void()> deliver);

	void raise();

	std::atomic<u32> drop{0}, duplicate{0}; // how many of the next
	std::atomic<u64> delay_us{0};		// all of them

private:
	using Clock = std::chrono::steady_clock;
	void run(const std::stop_token &stop);
	static bool spend(std::atomic<u32> &budget);

	std::function<void()> deliver_;
	std::mutex lock_;
	std::condition_variable_any wake_;
	std::deque<Clock::time_point> late_;
	std::jthread thread_;
};

} // namespace sluice::emu
