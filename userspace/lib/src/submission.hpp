// SPDX-License-Identifier: MIT
// One run of a batch: what the kernel reads and writes meanwhile, and what has to
// outlive it.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "gpu_node.hpp"
#include "sluice/batch.hpp"

namespace sluice::detail {

/// A place in the kernel for a fence, of one node.
class syncobj {
public:
	syncobj() noexcept = default;
	syncobj(const syncobj &) = delete;
	syncobj &operator=(const syncobj &) = delete;
	~syncobj() { drop(); }

	/// Create it on @p node: 0 or -errno. It is kept for the next time.
	int make(const gpu_node &node) noexcept;
	uint32_t handle() const noexcept { return handle_; }
	/// Readable when the fence has signaled. -1: there is none; errno says why.
	unique_fd file() const noexcept;
	/// Import the fence of @p sync_file into it: 0 or -errno.
	int take(const unique_fd &sync_file) noexcept;
	/// Wait without a file: batches always end soon. 0 or -errno.
	int wait() const noexcept;

private:
	void drop() noexcept;

	const gpu_node *node_ = nullptr;
	uint32_t handle_ = 0;
};

/// A fence that a batch begins after.
struct earlier {
	unique_fd file;
	syncobj sync;
};

/// error_index of arguments that the kernel has not written to.
inline constexpr uint32_t untouched = 0xdeadbeef;

struct submission {
	drm_amdgpu_sdma_batch args{};
	drm_amdgpu_sdma_fence out{};
	syncobj sync;
	std::deque<earlier> after;
	std::vector<drm_amdgpu_sdma_fence> in; ///< the same, for the kernel
	unique_fd fence;		       ///< while it is waited for
	uint64_t bytes = 0;		       ///< that it moves
	bool waits = false;		       ///< it has waits
	bool faults = false;	 ///< it moves shared memory to where it can be reached
	bool background = false; ///< it runs when nothing else does
	bool stopped = false;	 ///< it was asked to stop
	bool chained = false;	 ///< it is part of a chain
	int commands = -1;	 ///< its slot of the command_queue, while it has one
	std::shared_ptr<gpu> on; ///< while it is in flight
	std::shared_ptr<const void> owner; ///< of this, while it is in flight
	batch_outcome outcome;

	/// Put the fences that it begins after where @p node finds them: 0 or -errno.
	int take_fences(const gpu_node &node) noexcept;
	bool under_way() const noexcept { return on != nullptr; }
	/// Has it been given to engines?
	bool given() const noexcept { return args.engines_used || commands >= 0; }
};

/// What is wrong with @p run, which ended with errno @p number on @p device.
error batch_error(const submission &run, std::string_view device, int number) noexcept;

struct batch_data {
	explicit batch_data(size_t expected);

	std::vector<drm_amdgpu_sdma_desc> descs;
	std::vector<buffer> buffers;	    ///< that they name
	result<void> right;		    ///< or the first mistake
	uint32_t flags = 0, next_flags = 0; ///< of all, and of the next one
	uint64_t next_record = 0;
	bool ordered = false; ///< an operation begins after others
	bool wide = false;    ///< a hint wants all engines
	place placed = place::automatic;
	submission run;

	/// A hint is never a mistake, but a fan-out of ordered operations would be.
	uint32_t placement() const noexcept
	{
		return static_cast<uint32_t>(wide && ordered ? place::automatic
							     : placed);
	}
};

/// Runs of one prepared batch that may be in flight at once.
inline constexpr unsigned most_runs = 64;

struct prepared_data {
	~prepared_data();

	std::shared_ptr<gpu> on;
	uint32_t handle = 0;
	std::vector<buffer> buffers;
	std::array<submission, most_runs> runs;
};

} // namespace sluice::detail
