// SPDX-License-Identifier: MIT
#include "xfer/ring.hpp"

#include <cassert>
#include <cstring>

namespace xfer {

Ring::Ring(unsigned entries) : entries_(entries)
{
	int err = io_uring_queue_init(entries, &ring_, 0);

	if (err < 0)
		throw system_error("io_uring_setup", -err);
}

Ring::~Ring()
{
	assert(busy_ == 0 && "a Ring must outlive its operations");
	io_uring_queue_exit(&ring_);
}

result<Operation> Ring::start_read(int fd, std::span<std::byte> to,
				   uint64_t offset)
{
	io_uring_sqe *sqe;
	int err;

	if (busy_ == entries_)
		return fail(errc::usage, "all entries of the ring are busy");
	sqe = io_uring_get_sqe(&ring_);
	if (!sqe)
		return fail(errc::system, "the submission queue is full");

	auto state = std::make_unique<State>();
	io_uring_prep_read(sqe, fd, to.data(),
			   static_cast<unsigned>(to.size()), offset);
	io_uring_sqe_set_data(sqe, state.get());
	do
		err = io_uring_submit(&ring_);
	while (err == -EINTR || err == -EAGAIN || err == -EBUSY);
	if (err < 0) {
		// The entry stays in the queue, and must not be found there
		// later with a state that is gone.
		io_uring_prep_nop(sqe);
		io_uring_sqe_set_data(sqe, nullptr);
		return fail_errno("io_uring_enter", -err);
	}
	busy_++;
	return Operation(this, std::move(state));
}

result<size_t> Ring::read(int fd, std::span<std::byte> to, uint64_t offset)
{
	auto operation = start_read(fd, to, offset);

	if (!operation)
		return std::unexpected(operation.error());
	return operation->wait();
}

// Mark the operations whose completions are here. Cancel requests complete
// too, without a state.
void Ring::reap_ready() noexcept
{
	io_uring_cqe *cqe;
	unsigned head, seen = 0;

	io_uring_for_each_cqe(&ring_, head, cqe) {
		if (auto *state = static_cast<State *>(io_uring_cqe_get_data(cqe))) {
			state->res = cqe->res;
			state->done = true;
			busy_--;
		}
		seen++;
	}
	io_uring_cq_advance(&ring_, seen);
}

result<void> Ring::reap(bool wait, deadline until)
{
	io_uring_cqe *cqe;
	int err = 0;

	if (!wait) {
		reap_ready();
		return {};
	}
	if (until == deadline::max()) {
		err = io_uring_wait_cqe(&ring_, &cqe);
	} else {
		auto left = std::max(until - clock::now(),
				     clock::duration::zero());
		auto seconds = std::chrono::floor<std::chrono::seconds>(left);
		__kernel_timespec ts = {seconds.count(), (left - seconds).count()};

		err = io_uring_wait_cqe_timeout(&ring_, &cqe, &ts);
	}
	reap_ready();
	if (err == -ETIME)
		return fail(errc::timeout, "the operation is not done in time");
	if (err < 0 && err != -EINTR)
		return fail_errno("io_uring_enter", -err);
	return {};
}

void Ring::request_cancel(State *state) noexcept
{
	if (io_uring_sqe *sqe = io_uring_get_sqe(&ring_)) {
		io_uring_prep_cancel(sqe, state, 0);
		io_uring_sqe_set_data(sqe, nullptr);
		io_uring_submit(&ring_);
	}
}

Operation &Operation::operator=(Operation &&other) noexcept
{
	if (this != &other) {
		drain();
		ring_ = other.ring_;
		state_ = std::move(other.state_);
	}
	return *this;
}

bool Operation::poll() noexcept
{
	ring_->reap_ready();
	return state_->done;
}

result<size_t> Operation::outcome() const
{
	if (state_->res < 0)
		return fail_errno("read", -state_->res);
	return static_cast<size_t>(state_->res);
}

result<size_t> Operation::wait()
{
	return wait_until(deadline::max());
}

result<size_t> Operation::wait_until(deadline until)
{
	while (!poll()) {
		if (auto reaped = ring_->reap(true, until);
		    !reaped && !state_->done)
			return std::unexpected(reaped.error());
	}
	return outcome();
}

void Operation::cancel() noexcept
{
	if (!poll())
		ring_->request_cancel(state_.get());
}

// The kernel may write to the buffer and to the state until the completion is
// here, so there is nothing to do but wait for it.
void Operation::drain() noexcept
{
	if (!state_)
		return;
	cancel();
	while (!poll())
		(void)ring_->reap(true, deadline::max());
}

} // namespace xfer
