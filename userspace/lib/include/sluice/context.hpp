// SPDX-License-Identifier: MIT
// A context is one io_uring, and the only thing that waits: for files, batches,
// network cards, peers and time. An operation is something under way in it.
//
// A context and all that hangs on it belong to one thread. Nothing runs behind its
// back: completions are taken in when an operation is polled or waited for, or in
// run_once().
//
// All of it belongs to the process that opened it, too. A child of fork() must neither
// use nor destroy it: it goes on by exec, or ends by _exit(). It may open its own.
//
// To start an operation allocates nothing and does not fail: one that could not be
// started is done, with the error. Requests go to the kernel together, when somebody
// waits, or at submit().
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "sluice/buffer.hpp"
#include "sluice/deadline.hpp"
#include "sluice/error.hpp"

namespace sluice {

namespace detail {
class engine; // a context's inside
struct op_state;
} // namespace detail

/// Something under way. Moving it moves the ownership. Destroying it cancels what is
/// not done and waits until no device can touch its memory any more. Only a file may
/// never answer, and with it what waits for it in a chain: what is not given back
/// within a second is left to the context, which keeps its memory alive. See
/// context::left_behind().
class [[nodiscard]] operation {
public:
	/// None; poll() is true, and the result is errc::usage.
	operation() noexcept = default;
	explicit operation(detail::op_state *state) noexcept : state_(state) {}
	operation(operation &&other) noexcept
		: state_(std::exchange(other.state_, nullptr))
	{
	}
	operation &operator=(operation &&other) noexcept;
	~operation() { drain(); }

	/// Is it done? Takes in what has completed, and does not wait.
	bool poll() noexcept;
	/// The same, of what was taken in before: takes in nothing.
	bool done() const noexcept;

	/// Wait until it is done: what was transferred, in bytes, or its error.
	result<size_t> wait() noexcept { return wait_until(never); }

	/// The same, or errc::timeout at @p until; it goes on then.
	result<size_t> wait_until(deadline until) noexcept;

	/// Ask to stop it. It is done only when it says so, and may have succeeded. One
	/// that waits for what is before it in a chain never begins: see context::chain.
	void cancel() noexcept;

	/// That of its context: see context::fd().
	int fd() const noexcept;

	/// For co_await: see task.hpp. It is part of the coroutine that waits: if
	/// that goes away first, the operation has nobody to wake any more. If the
	/// operation goes first, the coroutine is never resumed.
	class awaiter {
	public:
		explicit awaiter(operation &of) noexcept : of_(of) {}
		awaiter(const awaiter &) = delete;
		~awaiter();

		bool await_ready() noexcept;
		void await_suspend(std::coroutine_handle<> waiter) noexcept;
		result<size_t> await_resume() noexcept;

	private:
		operation &of_;
		detail::op_state *waits_for_ = nullptr; ///< while it does
		std::coroutine_handle<> waiter_;
	};
	awaiter operator co_await() noexcept { return awaiter(*this); }

private:
	void drain() noexcept;

	detail::op_state *state_ = nullptr;
};

class context {
public:
	struct options {
		/// Operations that may be under way at once.
		unsigned operations = 1024;
	};

	/// errc::unsupported if the kernel has no io_uring for this process,
	/// errc::system.
	static result<context> open(options wanted);
	static result<context> open() { return open({}); }

	context(context &&) noexcept;
	context &operator=(context &&) noexcept;
	/// All that hangs on it must be gone.
	~context();

	/// Read into or write from a file. As read(2) and write(2), fewer bytes may
	/// be transferred than asked for. The buffer is kept alive.
	/// errc::input, errc::output: also where nobody reads what is written to a
	/// pipe or a socket. Before Linux 6.18, that raises SIGPIPE besides.
	/// @param file a descriptor, which must stay open
	/// @param offset in the file, bytes; current: at its position, as for a pipe
	operation read(int file, slice to, uint64_t offset);
	operation write(int file, slice from, uint64_t offset);
	static constexpr uint64_t current = UINT64_MAX;

	/// Have all that was written to @p file on its medium.
	operation sync(int file);

	/// Wait until @p events (POLLIN, ...) of a descriptor are there; the result
	/// is what is there.
	operation ready(int fd, short events);

	/// Wait until a point in time. 0 bytes.
	operation sleep_until(deadline until);

	/// Let what is started while a chain exists begin one after the other, each
	/// when the one before has succeeded in full. If one fails, what is behind it
	/// is errc::cancelled. Nobody wakes up in between. Reads, writes, syncs,
	/// batches by the ring and sleeps are such; what is no request of the ring
	/// (messages, RDMA, arrivals) cannot be part: errc::usage.
	///
	/// A part that is cancelled while it waits for those before it never begins.
	/// They go on as if nothing had happened; when the last of them has ended, it
	/// and what is behind it are errc::cancelled. A part that has begun is
	/// cancelled as if it were alone. A kernel that lets no ring have a table of
	/// files stops the former only once they have begun.
	///
	/// The kernel gets a chain when it is whole: while it exists, poll() and submit()
	/// do nothing. To wait, to cancel and to destroy an operation, and to open a device
	/// or to open or close a NIC, cut it: what is started behind that is errc::usage.
	class chain {
	public:
		/// @param length how many operations will be part, at most
		chain(context &in, unsigned length);
		chain(const chain &) = delete;
		~chain();

	private:
		detail::engine *engine_;
	};

	/// Give the kernel what was started. Waiting does so by itself.
	result<void> submit();

	/// Take in what has completed, wait for something if nothing has, and resume
	/// the coroutines that waited for it. How many operations were completed: 0 at
	/// @p until, and if only something came that is no operation, as a message.
	result<unsigned> run_once(deadline until);

	/// Readable when something has completed: to use it in another event loop.
	/// Call run_once(deadline{}) then until it returns 0, and submit() after what
	/// was started elsewhere.
	int fd() const noexcept;

	/// Reads, writes and syncs whose operation was destroyed, and which their file
	/// still has: on a network that is down, or a disk that hangs; and parts of
	/// chains that were destroyed while they waited for others. Their memory
	/// may still be read or written to, so do not use it for something else. It is
	/// freed when the file lets go of it, or with the process.
	unsigned left_behind() const noexcept;

	/// How often it has entered the kernel, to measure.
	uint64_t system_calls() const noexcept;

	detail::engine &inside() noexcept { return *engine_; }

private:
	explicit context(std::unique_ptr<detail::engine> engine) noexcept;

	std::unique_ptr<detail::engine> engine_;
};

} // namespace sluice
