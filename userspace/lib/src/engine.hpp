// SPDX-License-Identifier: MIT
// The inside of a context: the ring, and what is in flight in it.
#pragma once

#include <cerrno>
#include <climits>
#include <coroutine>
#include <cstdint>
#include <vector>

#include <liburing.h>

#include "sluice/context.hpp"
#include "sluice/unique_fd.hpp"

namespace sluice::detail {

/// A receiver of completions of the ring: its address is their user data.
struct request {
	/// @param flags IORING_CQE_F_*. Must not wait.
	void (*complete)(request &self, int res, unsigned flags) noexcept = nullptr;
};

/// A request before a part of a chain, which begins only if this one succeeds. The
/// kernel reads the number only when it gets there: so a part that waits can be kept
/// from beginning, which a request to cancel cannot do.
struct gate : request {
	static constexpr int open = IORING_REGISTER_FILES_SKIP;
	static constexpr int shut = INT_MAX; ///< no process has such a file

	int number = open;
	bool ahead = false; ///< of what the kernel has done, as far as is known
};

/// What an operation refers to. It returns to its pool when it is both done and
/// disowned.
struct op_state : request {
	engine *in = nullptr;
	op_state *next = nullptr; ///< of those that are free
	std::coroutine_handle<> waiter;
	/// Asks it to stop. nullptr: it cannot be stopped.
	void (*stop)(op_state &self) noexcept = nullptr;
	void *owner = nullptr;	     ///< for the code that started it
	const char *what = "";	     ///< "read", for errors
	errc failure = errc::system; ///< the kind of error of a failed request
	uint64_t tag = 0;	     ///< for the code that started it
	slice keep;		     ///< memory that it uses
	gate held_by;		     ///< in a chain
	__kernel_timespec time{};    ///< of a timer
	bool done = true;
	bool of_file = false; ///< which may not answer
	bool orphan = false;  ///< left behind by its owner
	result<size_t> outcome = 0;
};

/// Deferred work.
struct chore {
	void (*run)(chore &self) noexcept = nullptr;
	chore *next = nullptr;
	bool queued = false;
};

class chore_list {
public:
	/// A chore that is here already is not added twice.
	void add(chore &what) noexcept;
	void forget(chore &what) noexcept;
	/// Run each chore that is here once. Those added meanwhile stay.
	void run_once() noexcept;
	bool empty() const noexcept { return !first_; }

private:
	static bool take_from(chore *&list, chore &what) noexcept;

	chore *first_ = nullptr;
	chore *running_ = nullptr; ///< those whose turn it is
};

/// In the form that the ring takes.
__kernel_timespec timespec_of(deadline at) noexcept;

class engine {
public:
	explicit engine(unsigned operations);
	~engine();
	engine(const engine &) = delete;

	int open(unsigned operations); ///< 0 or -errno

	/// A state that is not done; nullptr if all are in use.
	op_state *take() noexcept;
	/// It is over: keep the outcome, release the memory, wake the waiter.
	void finish(op_state &op, result<size_t> outcome) noexcept;
	/// The coroutine that waits for it is destroyed.
	void leave_asleep(op_state &op) noexcept;
	/// Its owner does not need it any more.
	void give_back(op_state *op) noexcept;
	/// The same for one that is not done.
	void leave_behind(op_state &op) noexcept;
	/// Until when to wait for an operation that was cancelled.
	deadline grace_for(const op_state &op) const noexcept;
	unsigned left_behind() const noexcept { return orphans_; }

	/// An operation that is over already.
	operation failed(error why) noexcept;
	operation done(size_t bytes) noexcept;
	/// What to return if take() returns nothing.
	operation refused() noexcept;
	/// For what is not a request of the ring, while a chain is built.
	operation no_part_of_a_chain(const char *what) noexcept;

	/// An entry of the ring that completes to @p to; nullptr if the ring is broken.
	/// Call submit() or wait before what it points to is destroyed. It cuts an open
	/// chain.
	io_uring_sqe *entry(request &to) noexcept;
	/// The same for an operation, which becomes part of an open chain; nullptr if
	/// that was cut. cancel() keeps it from beginning while it waits for those
	/// before it.
	io_uring_sqe *entry(op_state &op) noexcept;
	/// Why entry() returned nothing.
	error no_entry(const char *what) const noexcept;
	operation sleep_until(deadline until) noexcept;
	/// An operation of one entry, which @p prepare fills in. The entry's result is
	/// that of the operation.
	template <class Prepare>
	operation start(const char *what, errc failure, const slice &keep,
			Prepare prepare) noexcept
	{
		return begin(what, failure, keep, false, prepare);
	}
	/// The same for a file.
	template <class Prepare>
	operation start_on_file(const char *what, errc failure, const slice &keep,
				Prepare prepare) noexcept
	{
		return begin(what, failure, keep, true, prepare);
	}

	/// Cancel what has @p to as its request; @p to still completes.
	void cancel(request &to) noexcept;
	void cancel(op_state &op) noexcept;

	int submit() noexcept;
	/// The same, and be ready for a wait until fd() is readable.
	int submit_and_listen() noexcept;
	/// Reap completions; if there are none, wait for one until then. Returns how
	/// many operations finished; -ETIME: nothing came; or -errno. deadline{}:
	/// enters the kernel only to submit or fetch something.
	int reap(deadline until) noexcept;
	/// The same, and resume the coroutines whose operations are done. 0: only that.
	int run(deadline until) noexcept;

	/// Reap completions until @p over() is true: 0, or -errno if the ring is
	/// broken.
	template <class Over> int reap_until(Over over) noexcept
	{
		while (!over())
			if (int err = reap(never); err < 0 && err != -ETIME)
				return err;
		return 0;
	}

	/// Poll @p fd for input repeatedly; @p to is called each time. Each call has
	/// IORING_CQE_F_MORE, or is the last one.
	void watch(int fd, request &to) noexcept;

	/// Run @p what once, at submit() or before the context waits. If it is added
	/// again before that, it still runs once.
	void before_wait(chore &what) noexcept { chores_.add(what); }
	/// Run it once when there is nothing to do but to wait.
	void before_sleep(chore &what) noexcept { last_chores_.add(what); }
	/// Remove it from both: it is about to be destroyed.
	void forget(chore &what) noexcept;

	/// Operations that have finished so far, modulo 2^32.
	unsigned finished() const noexcept { return finished_; }

	/// False in a child of fork(), which must leave the ring as it is.
	bool is_ours() const noexcept { return process_ == ::getpid(); }

	/// How many operations may be in flight.
	size_t capacity() const noexcept { return states_.size(); }
	/// Is there no place for another operation?
	bool full() const noexcept { return !free_; }

	/// Readable when something has completed, or -errno.
	int fd() noexcept;
	uint64_t entered() const noexcept { return entered_; }

	void begin_chain(unsigned length) noexcept;
	void end_chain() noexcept;
	bool chaining() const noexcept { return chaining_; }
	/// For a call that waits. In a chain it would wait for requests that the kernel
	/// does not have yet: errc::usage.
	result<void> may_wait(std::string_view where) const
	{
		if (!chaining_)
			return {};
		return fail(errc::usage, where, "a chain is open, and this waits");
	}

private:
	template <class Prepare>
	operation begin(const char *what, errc failure, const slice &keep, bool of_file,
			Prepare prepare) noexcept;
	/// Add a failing entry to the chain that is built, if any.
	void break_chain() noexcept;
	io_uring_sqe *part(request &to) noexcept;
	/// The kernel links entries of one call only, so it gets a chain as a whole.
	bool held_back() const noexcept { return chaining_ && !cut_; }
	void hear() noexcept;	///< what fd() signals is known now
	int take_in() noexcept; ///< how many completions
	int wait(deadline until) noexcept;
	void wake() noexcept;
	void wake_beside_chain() noexcept;
	void do_chores() noexcept;
	/// Nothing has finished since, after all deferred work was done.
	bool idle(unsigned since) noexcept;
	int submit_entries() noexcept;

	const pid_t process_ = ::getpid(); ///< that opened it
	io_uring ring_{};
	unique_fd told_; ///< an eventfd: fd()
	bool opened_ = false, chaining_ = false;
	bool cut_ = false;	       ///< the open chain takes no more
	bool set_aside_ = false;       ///< it is open while coroutines run
	bool gates_ = false;	       ///< the kernel allows gates
	io_uring_sqe *last_ = nullptr; ///< of a chain
	std::vector<op_state> states_;
	op_state *free_ = nullptr;
	op_state none_left_;		///< stands for one too many
	std::vector<op_state *> awake_; ///< done, and awaited
	chore_list chores_, last_chores_;
	unsigned finished_ = 0;
	unsigned orphans_ = 0;
	uint64_t entered_ = 0;
};

template <class Prepare>
operation engine::begin(const char *what, errc failure, const slice &keep, bool of_file,
			Prepare prepare) noexcept
{
	op_state *op = take();

	if (!op)
		return refused();
	op->what = what;
	op->failure = failure;
	op->keep = keep;
	op->of_file = of_file;
	op->stop = [](op_state &self) noexcept { self.in->cancel(self); };
	op->complete = [](request &self, int res, unsigned) noexcept {
		auto &state = static_cast<op_state &>(self);

		if (res < 0)
			state.in->finish(state, fail_errno(state.what, "failed", -res,
							   state.failure));
		else
			state.in->finish(state, static_cast<size_t>(res));
	};
	if (io_uring_sqe *sqe = entry(*op)) {
		prepare(sqe);
		io_uring_sqe_set_data(sqe, static_cast<request *>(op));
	} else {
		finish(*op, std::unexpected(no_entry(what)));
	}
	return operation(op);
}

/// What to return if the ring has failed with -@p number.
inline std::unexpected<error> ring_failed(std::string_view where, int number) noexcept
{
	if (number == EEXIST)
		return fail(errc::usage, where,
			    "a context belongs to the thread that opened it");
	return fail_errno(where, "io_uring_enter", number);
}

/// The engine of a context, for the library's own parts.
inline engine &engine_of(context &c) noexcept
{
	return c.inside();
}

} // namespace sluice::detail
