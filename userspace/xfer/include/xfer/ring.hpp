// SPDX-License-Identifier: MIT
// io_uring: a ring and its operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <liburing.h>

#include "xfer/deadline.hpp"
#include "xfer/error.hpp"

namespace xfer {

class Operation;

/// An io_uring instance. Use it from one thread. It must outlive its
/// operations.
class Ring {
public:
	/// @param entries submission queue size, also the number of operations
	///	that may be under way at once. Throws Error.
	explicit Ring(unsigned entries);
	~Ring();
	Ring(const Ring &) = delete;
	Ring &operator=(const Ring &) = delete;

	/// Start reading @p to.size() bytes at @p offset of @p fd. Both the
	/// buffer and @p fd must live until the operation is done or destroyed.
	/// errc::usage if all entries are busy.
	result<Operation> start_read(int fd, std::span<std::byte> to,
				     uint64_t offset);

	/// Read and wait: how many bytes were read, which can be fewer than
	/// asked for, 0 at the end of the file.
	result<size_t> read(int fd, std::span<std::byte> to, uint64_t offset);

private:
	friend class Operation;
	struct State {
		bool done = false;
		int res = 0;
	};

	result<void> reap(bool wait, deadline until);
	void reap_ready() noexcept;
	void request_cancel(State *state) noexcept;

	io_uring ring_{};
	unsigned entries_;
	unsigned busy_ = 0;
};

/// A started operation. Moving it moves the ownership; destroying it before it
/// is done cancels it and waits for the kernel to let go of the buffer.
class Operation {
public:
	Operation(Operation &&) noexcept = default;
	Operation &operator=(Operation &&other) noexcept;
	~Operation() { drain(); }

	/// Is it done? Does not wait.
	bool poll() noexcept;

	/// Wait until it is done: bytes transferred, or its Error.
	result<size_t> wait();

	/// As wait(), but errc::timeout at @p until. The operation goes on then.
	result<size_t> wait_until(deadline until);

	/// Ask the kernel to stop it. It is done only when wait() says so, and
	/// may have succeeded all the same.
	void cancel() noexcept;

private:
	friend class Ring;
	Operation(Ring *ring, std::unique_ptr<Ring::State> state)
		: ring_(ring), state_(std::move(state)) {}

	result<size_t> outcome() const;
	void drain() noexcept;

	Ring *ring_;
	// On the heap: the kernel holds its address while this object moves.
	std::unique_ptr<Ring::State> state_;
};

} // namespace xfer
