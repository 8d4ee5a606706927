// SPDX-License-Identifier: MIT
// Video memory of a GPU: anonymous memory goes there by amdkfd's SVM.
#pragma once

#include "xfer/device_memory.hpp"
#include "xfer/unique_fd.hpp"

namespace xfer {

/// What /sys/kernel/debug/hmm/alias has for one device: a key and its value.
/// Fields that are not there are 0.
uint64_t alias_field(const std::string &line, const std::string &key);

/// The pages that KFD's event @p line says leave the GPU @p gpu_id; 0 if it is
/// another event.
uint64_t pages_leaving(const std::string &line, uint32_t gpu_id);

/// Needs the rights to read debugfs, /proc/iomem and page frame numbers: root.
class GpuMemory : public DeviceMemory {
public:
	/// @param address PCI address. Throws Error of kind errc::device.
	explicit GpuMemory(const std::string &address);

	result<PeerInfo> info() const override;
	result<void> publish_without_cpu() const override;
	result<void> publish() const override;

private:
	void acquire_nodes();
	void watch();
	void find_pages();
	uint64_t moved_out() const;
	result<void> migrate(std::span<std::byte> range) const override;
	result<std::vector<uint64_t>>
	offsets(std::span<std::byte> range) const override;

	UniqueFd kfd_, pagemap_, events_;
	std::vector<UniqueFd> nodes_;	///< render nodes, as KFD uses them
	uint32_t gpu_id_ = 0;
	uint64_t first_page_ = 0;	///< address of the first private page
	mutable uint64_t moved_out_ = 0;
};

} // namespace xfer
