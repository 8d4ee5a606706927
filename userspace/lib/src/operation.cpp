// SPDX-License-Identifier: MIT
#include <exception>

#include "engine.hpp"

namespace sluice {

operation &operation::operator=(operation &&other) noexcept
{
	if (this != &other) {
		drain();
		state_ = std::exchange(other.state_, nullptr);
	}
	return *this;
}

bool operation::poll() noexcept
{
	// Until nothing is left: a later wait for fd() must be woken by new
	// completions.
	while (state_ && !state_->done)
		if (state_->in->reap(deadline{}) < 0)
			return state_->done;
	return true;
}

bool operation::done() const noexcept
{
	return !state_ || state_->done;
}

result<size_t> operation::wait_until(deadline until) noexcept
{
	if (!state_)
		return fail(errc::usage, "operation", "there is none");
	while (!state_->done) {
		int err = state_->in->reap(until);

		if (state_->done)
			break;
		if (err == -ETIME && clock::now() >= until)
			return fail(errc::timeout, state_->what, "not done in time");
		if (err < 0 && err != -ETIME)
			return detail::ring_failed(state_->what, -err);
	}
	return state_->outcome;
}

void operation::cancel() noexcept
{
	if (!poll() && state_->stop)
		state_->stop(*state_);
}

int operation::fd() const noexcept
{
	return state_ ? state_->in->fd() : -1;
}

// Completions are reaped when all coroutines that can run have run: doing it for each
// operation would be a system call for each.
bool operation::awaiter::await_ready() noexcept
{
	return !of_.state_ || of_.state_->done;
}

void operation::awaiter::await_suspend(std::coroutine_handle<> waiter) noexcept
{
	waits_for_ = of_.state_;
	waiter_ = waiter;
	waits_for_->waiter = waiter;
}

result<size_t> operation::awaiter::await_resume() noexcept
{
	// It may have been moved meanwhile.
	auto *op = std::exchange(waits_for_, nullptr);

	return op ? op->outcome : of_.wait();
}

operation::awaiter::~awaiter()
{
	// The state may belong to another operation by now, with another waiter.
	if (waits_for_ && waits_for_->waiter == waiter_)
		waits_for_->in->leave_asleep(*waits_for_);
}

// A device may write to the memory, and the kernel to the state, until it is done. So
// the only choice is to wait for it, or to leave both to the engine.
void operation::drain() noexcept
{
	if (!state_)
		return;
	if (state_->done) {
		auto *done = std::exchange(state_, nullptr);
		return done->in->give_back(done);
	}
	// A child of fork() has no device that accesses its memory.
	if (!state_->in->is_ours()) {
		state_ = nullptr;
		return;
	}
	cancel();
	auto *op = std::exchange(state_, nullptr);
	const deadline until = op->in->grace_for(*op);
	while (!op->done) {
		int err = op->in->reap(until);

		if (err < 0 && err != -ETIME)
			std::terminate(); // the ring is broken
		if (!op->done && clock::now() >= until)
			return op->in->leave_behind(*op);
	}
	op->in->give_back(op);
}

} // namespace sluice
