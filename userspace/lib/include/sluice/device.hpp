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

/// What there is to be opened.
struct device_info {
	std::string address;	 ///< PCI, "0000:03:00.0"
	std::string render_node; ///< "/dev/dri/renderD128"
	std::string product;	 ///< e.g. "gfx942"
	int numa_node = -1;
	uint32_t kfd_id = 0; ///< amdkfd's gpu_id; 0: it does not know it
	uint64_t vram_bytes = 0;
	uint64_t visible_vram_bytes = 0; ///< within the CPU's reach
};

/// All GPUs of amdgpu, in the order of their addresses. Without any: empty.
std::vector<device_info> list_devices();

/// How batches run on a device, best first.
enum class engine_path : uint8_t {
	batch,	 ///< by the SDMA batch ioctl
	command, ///< by AMDGPU_CS, one submission for each batch
};

/// Pages that left and came to a device since it was opened, of this process. They
/// count as a migration begins; one that is tried again counts again.
struct device_counters {
	uint64_t migrated_in = 0;  ///< pages to video memory
	uint64_t migrated_out = 0; ///< pages back to the host, for whatever reason
	uint64_t lost_events = 0;  ///< not 0: the two above are lower bounds
};

class device {
public:
	/// @param name a PCI address, "0000:03:00.0", or the index in list_devices(),
	///	"0". An index counts what was there when the process opened its first
	///	GPU
	/// HIP in the same process must be initialised before: amdkfd lets one file
	/// have the process's address space on a GPU, and HIP does not share ours.
	/// errc::device if there is no such GPU, the user may not open it, or
	/// something else in the process has its address space and does not share it.
	static result<device> open(context &in, std::string_view name);

	device(device &&) noexcept;
	device &operator=(device &&) noexcept;
	~device();

	const device_info &info() const noexcept;

	/// Video memory, zeroed, and mapped on the CPU as well if all of the GPU's is
	/// visible; else bytes() must not be touched. errc::device if there is not
	/// enough. @param size bytes; whole pages are taken
	result<buffer> vram(size_t size);

	/// Memory of the process that this GPU shares, and that prefers to be in its
	/// video memory; it is there at once with @p prefetch.
	/// errc::unsupported without amdkfd's SVM.
	result<buffer> svm(size_t size, bool prefetch = true);

	/// Memory of another driver or process, given as a dma-buf, in reach of this
	/// GPU and, if its exporter lets it be mapped, of the CPU. It is of the kind
	/// vram, wherever it is.
	/// errc::usage if it is no dma-buf; errc::device.
	/// @param dmabuf stays the caller's, who may close it then
	result<buffer> import_dmabuf(int dmabuf);

	/// Let this GPU's engines reach a host, SVM or (of another GPU) video memory
	/// buffer, where it is. It stays so for the life of the buffer. Again does nothing.
	/// errc::device if the driver refuses; errc::unsupported for SVM memory where
	/// amdkfd shares none with this GPU, or where path() is engine_path::command.
	result<void> attach(const buffer &memory);

	/// Move memory of an SVM buffer to video memory, or back: all pages that
	/// @p memory touches. It waits for that, and tries for about a second.
	/// errc::usage if it is no SVM memory; errc::device if pages stay behind, as
	/// somebody holds them or there is no room.
	result<void> prefetch(const slice &memory);
	result<void> bring_back(const slice &memory);

	/// Run a batch. The result is the bytes that it moves; batch::outcome() tells
	/// more when it is done. errc::usage (index() is the descriptor at fault),
	/// errc::busy (too much in flight), errc::timeout (a wait gave up),
	/// errc::device (a hang or a reset), errc::stale.
	operation submit(batch &what);

	/// Check a batch and build its packets once, to run it often. Runs are
	/// nonblocking if it is.
	/// errc::unsupported on a kernel without batches; errc::usage if it begins after
	/// fences, which are of one time.
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
