// SPDX-License-Identifier: MIT
#include "irq_gate.hpp"

namespace sluice::emu {

IrqGate::IrqGate(std::function<void()> deliver)
	: deliver_(std::move(deliver)),
	  thread_([this](const std::stop_token &stop) { run(stop); })
{
}

bool IrqGate::spend(std::atomic<u32> &budget)
{
	u32 left = budget;

	while (left)
		if (budget.compare_exchange_weak(left, left - 1))
			return true;
	return false;
}

void IrqGate::raise()
{
	if (spend(drop))
		return;
	if (u64 us = delay_us) {
		std::lock_guard guard(lock_);
		late_.push_back(Clock::now() + std::chrono::microseconds(us));
		wake_.notify_one();
		return;
	}
	deliver_();
	if (spend(duplicate))
		deliver_();
}

void IrqGate::run(const std::stop_token &stop)
{
	std::unique_lock guard(lock_);

	while (!stop.stop_requested()) {
		if (!wake_.wait(guard, stop, [this] { return !late_.empty(); }))
			return;
		auto due = late_.front();
		late_.pop_front();
		// Until it is due, or until a stop, which delivers it at once.
		wake_.wait_until(guard, stop, due, [] { return false; });
		guard.unlock();
		deliver_();
		guard.lock();
	}
}

} // namespace sluice::emu
