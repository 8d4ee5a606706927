// SPDX-License-Identifier: MIT
// Batches for the SDMA engines of a GPU: an array of operations that run by one call.
//
// Order, as docs/uapi.md has it: operations run in any order and in parallel, until
// one behind barrier(), a wait or a signal: that one begins after all before it have
// ended. What may run in parallel must not write what another of them reads or writes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "sluice/buffer.hpp"
#include "sluice/context.hpp"
#include "sluice/deadline.hpp"
#include "sluice/error.hpp"

namespace sluice {

namespace detail {
class gpu;
struct batch_data;
struct prepared_data;
} // namespace detail

/// What a device can do in one batch. Source: AMDGPU_INFO_SDMA_BATCH.
struct batch_limits {
	uint32_t operations = 0;   ///< in one batch
	uint32_t broadcast = 0;	   ///< destinations of one broadcast
	uint32_t fences = 0;	   ///< that a batch may begin after
	uint32_t batches = 0;	   ///< under way at once; 0: no fixed number
	uint32_t engines = 0;	   ///< mask of engines for batches
	uint32_t wait_engines = 0; ///< of those, for batches with waits
	uint64_t bytes = 0;	   ///< moved by one batch
	uint64_t queued_bytes = 0; ///< under way on one engine
	clock::duration wait{};	   ///< all waits of a batch together
	bool prepared = false, ring = false, user_memory = false, svm = false;

	/// How many batches may be under way for who wants @p wanted.
	unsigned at_once(unsigned wanted) const noexcept
	{
		return batches && batches < wanted ? batches : wanted;
	}
};

enum class place : uint8_t {
	automatic,  ///< the driver decides
	one_engine, ///< back to back on one engine
	fan_out,    ///< in equal shares on all of engines()
};

/// What matters of a batch. It changes where and when the batch runs, not what it does.
enum class hint : uint8_t {
	latency,    ///< its end: the driver decides how many engines that wants
	bandwidth,  ///< bytes per second: all of engines(), if nothing has an order
	background, ///< other batches: one engine, behind what anybody else has queued
};

/// memory COMPARE value, of 32 bits
enum class compare : uint8_t { equal, not_equal, greater_equal, less_equal };

/// What an engine noted of an operation, in memory that batch::record() named.
struct batch_record {
	enum : uint32_t { done = 1, skipped = 2, failed = 3 };

	uint64_t start; ///< GPU clock counter
	uint64_t unused[3];
	uint64_t end;	 ///< GPU clock counter
	uint32_t status; ///< done, skipped (behind a wait that gave up), failed
	uint32_t engine; ///< its instance
	uint64_t unused2[2];
};

/// How a batch ran.
struct batch_outcome {
	uint32_t engines = 0;	   ///< mask of engines that it was given to
	uint64_t vram_bytes = 0;   ///< read and written in the GPU's own memory
	uint64_t system_bytes = 0; ///< the same in the host's memory
	uint64_t peer_bytes = 0;   ///< the same in other devices' memory
};

/// Operations to be run together. It keeps the buffers that it names alive, as does
/// an operation that runs it. To add an operation allocates only if there are more than
/// @p expected. It can be submitted again, or changed, when the operation before is
/// done; the handle may go before.
class batch {
public:
	explicit batch(size_t expected = 64);
	batch(batch &&) noexcept;
	batch &operator=(batch &&) noexcept;
	~batch();

	/// @p to and @p from have the same size, at any alignment.
	batch &copy(const slice &to, const slice &from);
	/// Many copies from one memory to another, each an operation: @p sizes[i] bytes at
	/// @p from_at[i] go to @p to_at[i]. If one is wrong, none is added.
	batch &copy_many(const slice &to, std::span<const uint64_t> to_at,
			 const slice &from, std::span<const uint64_t> from_at,
			 std::span<const uint64_t> sizes);
	/// Copy all of @p from to @p to, one behind the other. Each part is an operation.
	batch &gather(const slice &to, std::span<const slice> from);
	/// The reverse.
	batch &scatter(std::span<const slice> to, const slice &from);
	struct rectangle {
		uint64_t row_bytes;
		uint32_t rows;
		uint64_t to_pitch, from_pitch; ///< bytes from one row to the next
	};
	/// Copy rows. The first one is at the beginning of @p to and of @p from. A
	/// mistake: there are none, they overlap because a pitch is less than row_bytes,
	/// or the last one ends outside of its memory.
	batch &copy_rectangle(const slice &to, const slice &from,
			      const rectangle &shape);
	/// The same bytes to each of @p to.
	batch &broadcast(std::span<const slice> to, const slice &from);
	batch &swap(const slice &a, const slice &b);
	/// @p value repeated, 32 bits. @p to has any size and alignment.
	batch &fill(const slice &to, uint32_t value);
	/// Wait until (the 32 bits at @p word & @p mask) compare so with @p value; what
	/// follows begins after. After @p limit, which is above 0, the batch is
	/// errc::timeout.
	/// @param word 4 bytes, at a multiple of 4
	/// @param value no bit of it is outside of @p mask
	batch &wait(const slice &word, compare how, uint32_t value,
		    clock::duration limit, uint32_t mask = UINT32_MAX);
	/// Write 64 bits to @p word, behind all before. It is at a multiple of 8.
	batch &write(const slice &word, uint64_t value);
	/// Add to the 64 bits at @p word atomically, behind all before. It is at a
	/// multiple of 8.
	batch &add(const slice &word, uint64_t value);

	/// The next operation begins after all before it have ended.
	batch &barrier();
	/// Have a batch_record of the next operation written to @p where: 64 bytes,
	/// at a multiple of 32.
	batch &record(const slice &where);
	/// Bring SVM memory that the engine cannot reach to where it can, for all
	/// operations of this batch. Without it such memory is an error.
	batch &fault_in(bool yes = true);

	batch &placed(place how);
	/// Choose the placement, which a later placed() changes again, and the priority.
	/// A background batch has the low priority of AMDGPU_CTX: an engine takes it
	/// when no batch of another priority is ready, of any process; what an engine
	/// has begun it ends. Batches of both priorities are not ordered.
	batch &hinted(hint what);
	/// Engines that may be used: mask, 0 for all.
	batch &engines(uint32_t mask);
	/// Begin when the fence of @p sync_file has signaled: that of work of another
	/// driver, or of another user of this GPU. The file may be closed. At most
	/// batch_limits::fences of them. What that work ended in does not matter.
	batch &after(int sync_file);
	/// errc::busy instead of waiting for room.
	batch &nonblocking(bool yes = true);

	void clear();
	size_t size() const noexcept;
	/// Bytes that it moves, each destination counted; of swap() both ways.
	uint64_t bytes() const noexcept;
	/// The first mistake in what was added (sizes that differ, a slice outside of
	/// its buffer), if any. submit() and prepare() say so too.
	result<void> check() const noexcept;

	/// Of the last submission, once it is done.
	const batch_outcome &outcome() const noexcept;

	detail::batch_data &inside() const noexcept { return *data_; }
	std::shared_ptr<const void> share() const noexcept { return data_; }

private:
	// What runs it holds it, too.
	std::shared_ptr<detail::batch_data> data_;
};

/// Packets that were built once. Runs of one of them run in the order of the calls.
class prepared_batch {
public:
	prepared_batch(prepared_batch &&) noexcept;
	prepared_batch &operator=(prepared_batch &&) noexcept;
	~prepared_batch();

	/// errc::stale if a mapping that it names has changed.
	operation run();
	uint64_t bytes() const noexcept;

private:
	friend class device;
	explicit prepared_batch(std::shared_ptr<detail::prepared_data> data) noexcept;

	std::shared_ptr<detail::prepared_data> data_;
};

} // namespace sluice
