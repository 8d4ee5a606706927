// SPDX-License-Identifier: MIT
// A context is one io_uring, and the only place where anything waits: for files,
// batches, network cards, peers and time. An operation is something in flight in it.
//
// A context and all that was opened on it belong to the thread that opened it. Nothing runs behind its
// back: completions are reaped when an operation is polled or waited for, or in
// run_once().
//
// All of it also belongs to the process that opened it. A child of fork() must neither
// use nor destroy it: the child must call exec or _exit(). It may open its own.
//
// Starting an operation allocates nothing and does not fail: one that could not be
// started is done, with the error. Only an endpoint allocates, if more of its messages
// and transfers wait than ever before. Requests go to the kernel together, when the thread
// waits or calls submit().
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
class engine; // the inside of a context
struct op_state;
} // namespace detail

/// Something in flight. Moving it moves the ownership. Destroying it cancels it if it
/// is not done, and waits until no device can access its memory any more. Only a file
/// may never answer, nor what waits for it in a chain: an operation that is not
/// returned within a second is left to the context, which keeps its memory alive. See
/// context::left_behind().
class [[nodiscard]] operation {
public:
	/// No operation; poll() is true, and the result is errc::usage.
	operation() noexcept = default;
	explicit operation(detail::op_state *state) noexcept : state_(state) {}
	operation(operation &&other) noexcept
		: state_(std::exchange(other.state_, nullptr))
	{
	}
	operation &operator=(operation &&other) noexcept;
	~operation() { drain(); }

	/// Is it done? Reaps completions, and does not wait.
	bool poll() noexcept;
	/// The same without reaping completions.
	bool done() const noexcept;

	/// Wait until it is done. Returns the bytes transferred, or its error.
	result<size_t> wait() noexcept { return wait_until(never); }

	/// The same, or errc::timeout at @p until; the operation then continues.
	result<size_t> wait_until(deadline until) noexcept;

	/// Ask it to stop. It is done only when it says so, and may have succeeded. One
	/// that waits for those before it in a chain never begins: see context::chain.
	void cancel() noexcept;

	/// The descriptor of its context: see context::fd().
	int fd() const noexcept;

	/// For co_await: see task.hpp. It is part of the coroutine that waits: if the
	/// coroutine is destroyed first, the operation wakes nothing. If the operation
	/// is destroyed first, the coroutine is never resumed.
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
		/// Operations that may exist at once, done or not; streams have some,
		/// too. 1 to 65536. One too many is done at once, with errc::busy.
		unsigned operations = 1024;
	};

	/// errc::unsupported if the kernel has no io_uring for this process,
	/// errc::system.
	static result<context> open(options wanted);
	static result<context> open() { return open({}); }

	context(context &&) noexcept;
	context &operator=(context &&) noexcept;
	/// All that was opened on it must have been destroyed.
	~context();

	/// Read from a file, or write to it. As with read(2) and write(2), fewer bytes
	/// may be transferred than requested. The buffer is kept alive.
	/// errc::input, errc::output: also if a pipe or a socket has no reader. Before
	/// Linux 6.18, that also raises SIGPIPE.
	/// @param file a descriptor, which must stay open
	/// @param offset in the file, in bytes; current: its position, as for a pipe
	operation read(int file, slice to, uint64_t offset);
	operation write(int file, slice from, uint64_t offset);
	static constexpr uint64_t current = UINT64_MAX;

	/// Flush to its medium what was written to @p file before this begins.
	/// Operations outside of a chain run in any order: wait for the writes first, or
	/// make them and the sync parts of a chain.
	operation sync(int file);

	/// Wait for @p events (POLLIN, ...) of a descriptor; the result is those that
	/// occurred.
	operation ready(int fd, short events);

	/// Wait until a point in time. The result is 0.
	operation sleep_until(deadline until);

	/// Operations that are started while a chain exists begin one after the other,
	/// each when the one before has succeeded in full. If one fails, those after it
	/// are errc::cancelled. The thread does not wake up in between. Reads, writes,
	/// syncs, batches by the ring, ready() and sleeps can be part; what is not a
	/// request of the ring (messages, RDMA, arrivals) cannot: errc::usage. A context
	/// has one chain at a time, of 2048 parts at most.
	///
	/// A part that is cancelled while it waits for those before it never begins.
	/// Those continue unaffected; when the last of them has ended, it and the parts
	/// after it are errc::cancelled. A part that has begun is cancelled as if it
	/// were alone. On a kernel where no ring may have a table of files, parts that
	/// wait are stopped only once they have begun.
	///
	/// The kernel gets a chain when it is whole: while it exists, poll() and submit()
	/// do nothing. To connect or to listen is errc::usage then.
	/// To wait for, cancel or destroy an operation, or to open or close
	/// a device or a NIC cuts the chain: what is started after that is errc::usage.
	/// A part that reads or writes a file moves 1 GiB at most.
	class chain {
	public:
		/// @param length how many operations will be part, at most
		chain(context &in, unsigned length);
		chain(const chain &) = delete;
		~chain();

	private:
		detail::engine *engine_;
	};

	/// Submit what was started to the kernel. Waiting does so itself.
	result<void> submit();

	/// Reap completions; if there are none, wait for one. Then resume the
	/// coroutines that waited for them. Returns how many operations were completed:
	/// 0 at @p until, or if only something else came, such as a message.
	result<unsigned> run_once(deadline until);

	/// Readable when something has completed, for use in another event loop. Call
	/// submit() before each wait for it. When it is readable, call
	/// run_once(deadline{}) until it returns 0. A negative errno if there is none.
	int fd() const noexcept;

	/// How many reads, writes and syncs, and waiting parts of chains, were destroyed
	/// before they ended, as when a network is down or a disk hangs, and have not
	/// ended yet. Their memory may still be read
	/// or written, so do not use it for anything else. It is freed when the file
	/// returns it, or with the process.
	unsigned left_behind() const noexcept;

	/// How often it has entered the kernel, for measurements.
	uint64_t system_calls() const noexcept;

	detail::engine &inside() noexcept { return *engine_; }

private:
	explicit context(std::unique_ptr<detail::engine> engine) noexcept;

	std::unique_ptr<detail::engine> engine_;
};

} // namespace sluice
