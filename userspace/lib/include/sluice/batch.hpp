// SPDX-License-Identifier: MIT
// Batches for the SDMA engines of a GPU: an array of operations that run by one call.
//
// Order, as in docs/uapi.md: operations run in any order and in parallel, up to a wait,
// a signal, or the operation after barrier(): that one begins after all before it have
// ended. Of operations that may run in parallel, none may write what another reads or
// writes.
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
	uint32_t batches = 0;	   ///< in flight at once; 0: no fixed number
	uint32_t engines = 0;	   ///< mask of engines for batches
	uint32_t wait_engines = 0; ///< of those, for batches with waits
	uint64_t bytes = 0;	   ///< moved by one batch
	uint64_t queued_bytes = 0; ///< in flight on one engine
	clock::duration wait{};	   ///< all waits of a batch together
	bool prepared = false, ring = false, user_memory = false, svm = false;

	/// How many batches may be in flight for a caller that wants @p wanted.
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

/// What matters for a batch. It changes where and when the batch runs, not what it
/// does.
enum class hint : uint8_t {
	latency,    ///< when it ends: the driver decides on how many engines
	bandwidth,  ///< bytes per second: all of engines() if nothing is ordered
	background, ///< other batches: one engine, after whatever else is queued
};

/// memory COMPARE value, of 32 bits
enum class compare : uint8_t { equal, not_equal, greater_equal, less_equal };

/// What an engine recorded about an operation, in memory given to batch::record().
struct batch_record {
	enum : uint32_t { done = 1, skipped = 2, failed = 3 };

	uint64_t start; ///< GPU clock counter
	uint64_t unused[3];
	uint64_t end;	 ///< GPU clock counter
	uint32_t status; ///< done, skipped (after a wait that gave up), failed
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

/// Operations to be run together. A batch keeps its buffers alive, as does an operation
/// that runs it. Adding an operation allocates only if there are more than @p expected.
/// The batch can be submitted again, or changed, when its previous operation is done;
/// it may be destroyed before that.
class batch {
public:
	explicit batch(size_t expected = 64);
	batch(batch &&) noexcept;
	batch &operator=(batch &&) noexcept;
	~batch();

	/// @p to and @p from have the same size, at any alignment. An operation of no bytes
	/// is a mistake: this holds for all that follow, too.
	batch &copy(const slice &to, const slice &from);
	/// Many copies from one memory to another, each an operation: @p sizes[i] bytes at
	/// @p from_at[i] go to @p to_at[i]. If one is wrong, none is added.
	batch &copy_many(const slice &to, std::span<const uint64_t> to_at,
			 const slice &from, std::span<const uint64_t> from_at,
			 std::span<const uint64_t> sizes);
	/// Copy all of @p from, one after the other, to @p to. Each part is an
	/// operation.
	batch &gather(const slice &to, std::span<const slice> from);
	/// The reverse.
	batch &scatter(std::span<const slice> to, const slice &from);
	struct rectangle {
		uint64_t row_bytes;
		uint32_t rows;
		uint64_t to_pitch, from_pitch; ///< bytes from one row to the next
	};
	/// Copy rows. The first one is at the beginning of @p to and of @p from. It is
	/// a mistake if there are none, if they overlap because a pitch is less than
	/// row_bytes, or if the last one ends outside its memory.
	batch &copy_rectangle(const slice &to, const slice &from,
			      const rectangle &shape);
	/// Copy the same bytes to each of @p to: 2 to batch_limits::broadcast destinations,
	/// 8 at most, each as large as @p from.
	batch &broadcast(std::span<const slice> to, const slice &from);
	batch &swap(const slice &a, const slice &b);
	/// Fill with the 32 bits of @p value, repeated. @p to has any size but 0, and
	/// any alignment.
	batch &fill(const slice &to, uint32_t value);
	/// Wait until (the 32 bits at @p word & @p mask) compare with @p value as
	/// @p how says; later operations begin after that. After @p limit, which is
	/// above 0, the batch is errc::timeout: not before, and up to 25 times as late
	/// if the engine's clock is low. batch_limits::wait is for all waits of a batch.
	/// @param word 4 bytes, at a multiple of 4
	/// @param value has no bit outside @p mask
	batch &wait(const slice &word, compare how, uint32_t value,
		    clock::duration limit, uint32_t mask = UINT32_MAX);
	/// Write 64 bits to @p word, after all operations before. It is at a multiple
	/// of 8.
	batch &write(const slice &word, uint64_t value);
	/// Add to the 64 bits at @p word atomically, after all operations before. It is
	/// at a multiple of 8.
	batch &add(const slice &word, uint64_t value);

	/// The next operation begins after all operations before it have ended.
	batch &barrier();
	/// Have a batch_record of the next operation written to @p where: 64 bytes,
	/// at a multiple of 32.
	batch &record(const slice &where);
	/// Move SVM memory that the engine cannot reach to where it can, for all
	/// operations of this batch. Otherwise such memory is an error.
	batch &fault_in(bool yes = true);

	batch &placed(place how);
	/// Choose the placement, which a later placed() overrides, and the priority. A
	/// background batch has the low priority of AMDGPU_CTX: an engine takes it when
	/// no process has a batch of another priority ready; the engine finishes what
	/// it has begun. Batches of different priorities are not ordered.
	batch &hinted(hint what);
	/// Engines that may be used, as a mask; 0: all.
	batch &engines(uint32_t mask);
	/// Begin when the fence of @p sync_file has signaled: a fence of another
	/// driver, or of another user of this GPU. The file may be closed afterwards.
	/// At most batch_limits::fences of them. The batch begins even if that work
	/// failed.
	batch &after(int sync_file);
	/// errc::busy instead of waiting for room.
	batch &nonblocking(bool yes = true);

	void clear();
	size_t size() const noexcept;
	/// Bytes that it moves; each destination counts, and swap() counts both ways.
	uint64_t bytes() const noexcept;
	/// The first mistake in what was added (sizes that differ, a slice outside of
	/// its buffer), if any. submit() and prepare() return it too.
	result<void> check() const noexcept;
	/// Make @p why, for which a caller cannot add the next operation, such a mistake.
	/// An earlier one counts. Without an index(), it gets that of the next operation.
	void refuse(error why) noexcept;

	/// How the last submission ran, once it is done.
	const batch_outcome &outcome() const noexcept;

	detail::batch_data &inside() const noexcept { return *data_; }
	std::shared_ptr<const void> share() const noexcept { return data_; }

private:
	// Shared with the operation that runs it.
	std::shared_ptr<detail::batch_data> data_;
};

/// Packets that were built once. Its runs may overtake each other: wait for a run before
/// the next one if their order matters, or start them in a chain.
class prepared_batch {
public:
	prepared_batch(prepared_batch &&) noexcept;
	prepared_batch &operator=(prepared_batch &&) noexcept;
	~prepared_batch();

	/// errc::stale if a mapping that it uses has changed.
	operation run();
	uint64_t bytes() const noexcept;

private:
	friend class device;
	explicit prepared_batch(std::shared_ptr<detail::prepared_data> data) noexcept;

	std::shared_ptr<detail::prepared_data> data_;
};

} // namespace sluice
