// SPDX-License-Identifier: MIT
#include "engine.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <format>
#include <mutex>
#include <poll.h>
#include <sys/eventfd.h>

namespace sluice::detail {

// Entries that wait to be submitted. The completion queue has at least twice as many;
// the kernel keeps what does not fit.
static constexpr unsigned most_entries = 4096;

__kernel_timespec timespec_of(deadline at) noexcept
{
	auto since = std::max(at, deadline{}).time_since_epoch();
	auto seconds = std::chrono::floor<std::chrono::seconds>(since);

	return {seconds.count(), (since - seconds).count()};
}

engine::engine(unsigned operations) : states_(operations)
{
	for (op_state &op : states_) {
		op.in = this;
		op.held_by.complete = [](request &self, int, unsigned) noexcept {
			static_cast<gate &>(self).ahead = false;
		};
		op.next = free_;
		free_ = &op;
	}
	none_left_.in = this;
	none_left_.outcome =
		fail(errc::busy, "context",
		     std::format("all its {} operations are under way", operations));
	// Each waiter waits for one operation: nothing is allocated later.
	awake_.reserve(operations);
}

int engine::open(unsigned operations)
{
	// One thread, which asks for its completions: the kernel need not
	// interrupt it for each.
	unsigned flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			 IORING_SETUP_TASKRUN_FLAG;
	unsigned entries = std::min(2 * operations, most_entries); // with gates
	int err = io_uring_queue_init(entries, &ring_, flags);

	if (err == -EINVAL) // before Linux 6.1
		err = io_uring_queue_init(entries, &ring_, 0);
	opened_ = err == 0;
	// Gates need a table of files to change, or not to change.
	if (const int none = -1; opened_)
		gates_ = io_uring_register_files(&ring_, &none, 1) == 0;
	return err;
}

// The kernel continues with what is left behind when the ring is closed, and does not
// tell when it releases the memory.
static void keep_for_ever(slice memory)
{
	static auto *kept = new std::vector<slice>;
	static std::mutex lock; // contexts may belong to different threads
	std::scoped_lock held(lock);

	kept->push_back(std::move(memory));
}

engine::~engine()
{
	for (op_state &op : states_)
		if (op.orphan)
			keep_for_ever(std::move(op.keep));
	if (opened_)
		io_uring_queue_exit(&ring_);
}

op_state *engine::take() noexcept
{
	op_state *op = free_;

	if (op) {
		free_ = op->next;
		op->done = false;
		op->waiter = {};
		op->stop = nullptr;
		op->owner = nullptr;
		op->of_file = false;
		op->held_by.number = gate::open;
		op->held_by.ahead = false;
		op->tag = 0;
	}
	return op;
}

void engine::finish(op_state &op, result<size_t> outcome) noexcept
{
	op.outcome = std::move(outcome);
	op.done = true;
	op.keep = {};
	op.stop = nullptr;
	finished_++;
	if (op.waiter)
		awake_.push_back(&op);
	if (std::exchange(op.orphan, false)) {
		orphans_--;
		give_back(&op);
	}
}

void engine::leave_behind(op_state &op) noexcept
{
	if (op.waiter)
		leave_asleep(op);
	op.orphan = true;
	orphans_++;
}

// If many are left behind because one file hangs, there is no wait for each.
deadline engine::grace_for(const op_state &op) const noexcept
{
	using namespace std::chrono_literals;

	if (!op.of_file && !op.held_by.ahead)
		return never;
	return after(orphans_ ? 20ms : 1000ms);
}

void engine::leave_asleep(op_state &op) noexcept
{
	op.waiter = {};
	std::erase(awake_, &op);
}

void engine::give_back(op_state *op) noexcept
{
	if (op == &none_left_)
		return;
	if (op->waiter)
		leave_asleep(*op);
	op->next = free_;
	free_ = op;
}

operation engine::failed(error why) noexcept
{
	op_state *op = take();

	if (!op)
		return refused();
	break_chain();
	finish(*op, std::unexpected(why));
	return operation(op);
}

operation engine::refused() noexcept
{
	break_chain();
	return operation(&none_left_);
}

operation engine::sleep_until(deadline until) noexcept
{
	op_state *op = take();

	if (!op)
		return refused();
	op->what = "timer";
	op->time = timespec_of(until);
	op->stop = [](op_state &self) noexcept { self.in->cancel(self); };
	op->complete = [](request &self, int res, unsigned) noexcept {
		auto &state = static_cast<op_state &>(self);

		if (res == 0 || res == -ETIME)
			state.in->finish(state, 0);
		else
			state.in->finish(state, fail_errno("timer", "failed", -res));
	};
	if (io_uring_sqe *sqe = entry(*op)) {
		// The timeout is the expected result here, and ends no chain.
		const unsigned flags = chaining() ? IORING_TIMEOUT_ETIME_SUCCESS : 0;

		io_uring_prep_timeout(sqe, &op->time, 0, IORING_TIMEOUT_ABS | flags);
		io_uring_sqe_set_data(sqe, static_cast<request *>(op));
	} else {
		finish(*op, std::unexpected(no_entry("timer")));
	}
	return operation(op);
}

operation engine::no_part_of_a_chain(const char *what) noexcept
{
	return failed({errc::usage, what,
		       "it is no request of the ring, and cannot be "
		       "part of a chain"});
}

// Otherwise what comes after would be linked with what comes before. No file is -1.
void engine::break_chain() noexcept
{
	static request nobody;
	io_uring_sqe *sqe = chaining_ ? part(nobody) : nullptr;

	if (!sqe)
		return;
	io_uring_prep_read(sqe, -1, nullptr, 0, 0);
	io_uring_sqe_set_data(sqe, nullptr);
}

operation engine::done(size_t bytes) noexcept
{
	op_state *op = take();

	if (!op)
		return operation(&none_left_);
	finish(*op, bytes);
	return operation(op);
}

error engine::no_entry(const char *what) const noexcept
{
	if (cut_)
		return {errc::usage, what,
			"something was waited for, cancelled or dropped while the chain "
			"was open, which cut it"};
	return {errc::busy, what, "the ring takes nothing"};
}

// An entry that is not part of an open chain would come between its parts.
io_uring_sqe *engine::entry(request &to) noexcept
{
	io_uring_sqe *sqe = io_uring_get_sqe(&ring_);

	cut_ = chaining_;
	while (!sqe) {
		int err = submit();

		if (err == -EBUSY || err == -EAGAIN)
			err = take_in();
		if (err < 0)
			return nullptr;
		sqe = io_uring_get_sqe(&ring_);
	}
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data(sqe, &to);
	return sqe;
}

// A chain has room from its beginning.
io_uring_sqe *engine::part(request &to) noexcept
{
	io_uring_sqe *sqe = cut_ ? nullptr : io_uring_get_sqe(&ring_);

	if (!sqe)
		return nullptr;
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data(sqe, &to);
	if (last_)
		last_->flags |= IOSQE_IO_LINK;
	last_ = sqe;
	return sqe;
}

io_uring_sqe *engine::entry(op_state &op) noexcept
{
	gate &held_by = op.held_by;

	if (!chaining_)
		return entry(static_cast<request &>(op));
	if (!last_ || !gates_)
		return part(op);
	// Neither is of use alone. There is no room if the chain is too long.
	if (io_uring_sq_space_left(&ring_) < 2)
		return nullptr;
	if (io_uring_sqe *sqe = part(held_by)) {
		io_uring_prep_files_update(sqe, &held_by.number, 1, 0);
		io_uring_sqe_set_data(sqe, static_cast<request *>(&held_by));
		held_by.ahead = true;
	}
	return part(op);
}

// If it has begun, its gate is of no use, but the kernel finds it.
void engine::cancel(op_state &op) noexcept
{
	std::atomic_ref(op.held_by.number).store(gate::shut, std::memory_order_relaxed);
	cancel(static_cast<request &>(op));
}

void engine::cancel(request &to) noexcept
{
	static request nobody;

	// It may not have been submitted yet: the request to cancel comes after it.
	if (io_uring_sqe *sqe = entry(nobody)) {
		io_uring_prep_cancel(sqe, &to, 0);
		io_uring_sqe_set_data(sqe, nullptr);
	}
}

void engine::watch(int fd, request &to) noexcept
{
	if (io_uring_sqe *sqe = entry(to)) {
		io_uring_prep_poll_multishot(sqe, fd, POLLIN);
		io_uring_sqe_set_data(sqe, &to);
	}
}

void chore_list::add(chore &what) noexcept
{
	if (what.queued)
		return;
	what.queued = true;
	what.next = first_;
	first_ = &what;
}

bool chore_list::take_from(chore *&list, chore &what) noexcept
{
	for (chore **at = &list; *at; at = &(*at)->next)
		if (*at == &what) {
			*at = what.next;
			what.queued = false;
			return true;
		}
	return false;
}

void chore_list::forget(chore &what) noexcept
{
	if (what.queued && !take_from(first_, what))
		take_from(running_, what);
}

// A chore that runs may forget others, and may run the remaining ones itself.
void chore_list::run_once() noexcept
{
	while (chore *next = first_) {
		first_ = next->next;
		next->next = running_;
		running_ = next;
	}
	while (chore *next = running_) {
		running_ = next->next;
		next->queued = false;
		next->run(*next);
	}
}

void engine::forget(chore &what) noexcept
{
	chores_.forget(what);
	last_chores_.forget(what);
}

// A chore may add itself or another one, which then runs as well. This ends: each has
// something to do only after something else has happened.
void engine::do_chores() noexcept
{
	while (!chores_.empty())
		chores_.run_once();
}

// If an operation finishes here, sleep is needless. Chores that the last chores add run
// here, too.
bool engine::idle(unsigned since) noexcept
{
	do_chores();
	if (finished_ == since)
		last_chores_.run_once();
	do_chores();
	return finished_ == since;
}

int engine::submit_entries() noexcept
{
	int err;

	if (!io_uring_sq_ready(&ring_))
		return 0;
	do {
		entered_++;
		err = io_uring_submit(&ring_);
	} while (err == -EINTR);
	return err;
}

int engine::submit() noexcept
{
	if (held_back())
		return 0;
	do_chores();
	return submit_entries();
}

// What finishes here has no completion in the ring, and fd() signals only those. Nor has a
// coroutine whose operation was taken in by somebody else's poll().
int engine::submit_and_listen() noexcept
{
	static request nobody;

	if (held_back())
		return 0;
	if (!idle(finished_) || !awake_.empty())
		if (io_uring_sqe *sqe = entry(nobody))
			io_uring_sqe_set_data(sqe, nullptr);
	return submit_entries();
}

// The ring's own descriptor wakes no waiter: with deferred task work, only an eventfd
// tells of it.
int engine::fd() noexcept
{
	if (told_)
		return told_.get();
	unique_fd made(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (!made)
		return -errno;
	if (int err = io_uring_register_eventfd(&ring_, made.get()); err < 0)
		return err;
	told_ = std::move(made);
	// What came before is not signaled.
	if (io_uring_cq_ready(&ring_) ||
	    IO_URING_READ_ONCE(*ring_.sq.kflags) & IORING_SQ_TASKRUN)
		::eventfd_write(told_.get(), 1);
	return told_.get();
}

// Before looking at what is there: what comes after that is signaled again.
void engine::hear() noexcept
{
	eventfd_t times;

	if (told_)
		::eventfd_read(told_.get(), &times);
}

int engine::take_in() noexcept
{
	io_uring_cqe *cqe;
	int taken = 0;

	// Enters the kernel only if the ring says that it has something to do.
	while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
		auto *to = static_cast<request *>(io_uring_cqe_get_data(cqe));
		int res = cqe->res;
		unsigned flags = cqe->flags;

		// Before the call, which may look for completions itself.
		io_uring_cqe_seen(&ring_, cqe);
		if (to)
			to->complete(*to, res, flags);
		taken++;
	}
	return taken;
}

int engine::wait(deadline until) noexcept
{
	io_uring_cqe *cqe;

	if (until == deadline{}) {
		int err = submit_entries();

		return err < 0 ? err : -ETIME;
	}
	entered_++;
	if (until == never)
		return io_uring_submit_and_wait(&ring_, 1);
	auto now = clock::now();
	auto left = until > now ? until - now : clock::duration::zero();
	auto seconds = std::chrono::floor<std::chrono::seconds>(left);
	__kernel_timespec ts = {seconds.count(), (left - seconds).count()};

	return io_uring_submit_and_wait_timeout(&ring_, &cqe, 1, &ts, nullptr);
}

int engine::reap(deadline until) noexcept
{
	unsigned before = finished_;
	int err = 0;

	if (held_back() && until == deadline{})
		return -ETIME;
	cut_ = chaining_;
	if (until == deadline{})
		hear();
	if (!take_in() && idle(before)) {
		err = wait(until);
		if (!take_in() && err == -ETIME)
			return err;
	}
	if (err == -ETIME || err == -EINTR || err == -EBUSY || err == -EAGAIN)
		err = 0;
	return err < 0 ? err : static_cast<int>(finished_ - before);
}

// A resumed coroutine may start, await and destroy operations, some of which are in the
// list.
void engine::wake() noexcept
{
	while (!awake_.empty()) {
		op_state *op = awake_.front();

		awake_.erase(awake_.begin());
		std::exchange(op->waiter, {}).resume();
	}
}

// An open chain is cut, as by all that waits. What a coroutine starts is not part of
// it.
int engine::run(deadline until) noexcept
{
	if (held_back() && until == deadline{})
		return -ETIME;
	cut_ = chaining_;
	int finished = reap(awake_.empty() ? until : deadline{});
	// What coroutines start is still to be submitted: the caller may wait for fd().
	const bool woken = !awake_.empty();
	if (chaining_)
		wake_beside_chain();
	else
		wake();
	return finished == -ETIME && woken ? 0 : finished;
}

// The resumed coroutine may be the one that ends the chain.
void engine::wake_beside_chain() noexcept
{
	chaining_ = false;
	set_aside_ = true;
	wake();
	if (std::exchange(set_aside_, false))
		chaining_ = cut_ = true;
}

void engine::begin_chain(unsigned length) noexcept
{
	if (io_uring_sq_space_left(&ring_) < 2 * length) // with gates
		submit();
	chaining_ = true;
	cut_ = false;
	last_ = nullptr;
}

void engine::end_chain() noexcept
{
	if (!chaining_)
		set_aside_ = false;
	chaining_ = cut_ = false;
}

} // namespace sluice::detail
