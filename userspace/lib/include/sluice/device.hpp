// SPDX-License-Identifier: MIT
// A GPU: its video memory, memory that it shares with the process, and its SDMA
// engines. AMD's, through amdgpu and amdkfd.
//
// Source: include/uapi/drm/amdgpu_drm.h and include/uapi/linux/kfd_ioctl.h of the
// kernel; docs/uapi.md for batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/batch.hpp"
#include "sluice/buffer.hpp"
#include "sluice/context.hpp"

namespace sluice {

namespace detail {
class gpu;
}

/// A GPU that can be opened.
struct device_info {
	std::string address;	 ///< PCI, "0000:03:00.0"
	std::string render_node; ///< "/dev/dri/renderD128"
	std::string product;	 ///< e.g. "gfx942"
	int numa_node = -1;
	uint32_t kfd_id = 0; ///< amdkfd's gpu_id; 0: not known to amdkfd
	uint64_t vram_bytes = 0;
	uint64_t visible_vram_bytes = 0; ///< within the CPU's reach
};

/// All amdgpu GPUs, in the order of their addresses. Empty if there are none.
std::vector<device_info> list_devices();

/// How batches run on a device, best first.
enum class engine_path : uint8_t {
	batch,	 ///< by the SDMA batch ioctl
	command, ///< by AMDGPU_CS, one submission for each batch
};

/// Pages of this process that migrated to and from a device since it was opened. They
/// are counted when a migration begins; a migration that is retried counts again. amdkfd
/// names processes by their number in their own namespace: the super user of a container
/// also counts those of processes that have the same number in another one.
struct device_counters {
	uint64_t migrated_in = 0;  ///< pages to video memory
	uint64_t migrated_out = 0; ///< pages back to the host, for whatever reason
	uint64_t lost_events = 0;  ///< not 0: the two above are lower bounds
};

class device {
public:
	/// @param name a PCI address, "0000:03:00.0", or the index in list_devices(),
	///	"0". An index refers to the GPUs that were there when the process
	///	opened its first one
	/// If the process uses HIP, initialise HIP first: amdkfd lets only one file own
	/// the process's address space on a GPU, and HIP does not share ours.
	/// errc::device if there is no such GPU, the user may not open it, or something
	/// else in the process owns its address space and does not share it;
	/// errc::unsupported if its SDMA engines need a kernel with batches.
	static result<device> open(context &in, std::string_view name);

	device(device &&) noexcept;
	device &operator=(device &&) noexcept;
	~device();

	const device_info &info() const noexcept;

	/// Zeroed video memory. It is mapped on the CPU as well if all of the GPU's is
	/// visible; otherwise bytes() must not be touched. errc::device if there is not
	/// enough. @param size bytes, rounded up to whole pages
	result<buffer> vram(size_t size);

	/// Memory of the process that is shared with this GPU, and prefers its video
	/// memory; with @p prefetch it is there at once.
	/// errc::unsupported without amdkfd's SVM, or where path() is
	/// engine_path::command; errc::device if @p prefetch does not move all pages;
	/// errc::usage if @p size is 0.
	result<buffer> svm(size_t size, bool prefetch = true);

	/// Memory of another driver or process, given as a dma-buf. This GPU can reach
	/// it, and so can the CPU if its exporter allows mapping. Its kind is vram,
	/// wherever it is.
	/// errc::usage if it is not a dma-buf; errc::device.
	/// @param dmabuf still the caller's, who may close it afterwards
	result<buffer> import_dmabuf(int dmabuf);

	/// Let this GPU's engines reach a host, SVM or (of another GPU) video memory
	/// buffer in place, for the life of the buffer. Further calls do nothing.
	/// errc::device if the driver refuses; errc::unsupported for SVM memory where
	/// amdkfd shares none with this GPU, or where path() is engine_path::command.
	result<void> attach(const buffer &memory);

	/// Move memory of an SVM buffer to video memory, or back: all pages that
	/// @p memory touches. Waits for that, and retries for about a second.
	/// errc::usage if it is not SVM memory; errc::device if pages did not move
	/// because they are held or there is no room.
	result<void> prefetch(const slice &memory);
	result<void> bring_back(const slice &memory);

	/// Run a batch. The result is the bytes that it moves; batch::outcome() tells
	/// more when it is done. errc::usage (index() is the descriptor at fault),
	/// errc::unsupported (this kernel or GPU lacks the operation), errc::busy (too
	/// much in flight; batch_limits::batches, if it is not 0, counts for all
	/// batches), errc::timeout (a wait gave up), errc::device (a hang or a reset),
	/// errc::stale, errc::cancelled, errc::system (no memory).
	operation submit(batch &what);

	/// Check a batch and build its packets once, to run it often. Runs are
	/// nonblocking if the batch is.
	/// errc::unsupported on a kernel without batches; errc::usage if it begins after
	/// fences, which signal only once; errc::busy if the process has 256 prepared
	/// batches on this GPU; errc::device if there is no room for its packets. It may
	/// have 64 runs in flight, else errc::busy.
	result<prepared_batch> prepare(const batch &what);

	const batch_limits &limits() const noexcept;
	engine_path path() const noexcept;

	result<device_counters> counters() const;

	detail::gpu &inside() noexcept { return *gpu_; }

private:
	explicit device(std::shared_ptr<detail::gpu> gpu) noexcept;

	std::shared_ptr<detail::gpu> gpu_;
};

} // namespace sluice
