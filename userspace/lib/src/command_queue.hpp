// SPDX-License-Identifier: MIT
// Batches by AMDGPU_CS, for a kernel without the batch ioctl: copies and fills of
// memory that is an object of the GPU's file. Only the GPU checks such packets.
#pragma once

#include <array>

#include "gpu_memory.hpp"
#include "submission.hpp"

namespace sluice::detail {

/// Packets of SDMA 4 to 6 at @p at, which end before @p end.
/// @return where they end; nullptr: there is not enough room
uint32_t *put_copy(uint32_t *at, const uint32_t *end, uint64_t to, uint64_t from,
		   uint64_t size) noexcept;
uint32_t *put_fill(uint32_t *at, const uint32_t *end, uint64_t to, uint32_t value,
		   uint64_t size) noexcept;
/// The packets of an operation. errc::unsupported if packets alone cannot do it.
result<uint32_t *> put_operation(uint32_t *at, const uint32_t *end,
				 const drm_amdgpu_sdma_desc &what) noexcept;

class command_queue {
public:
	static result<std::unique_ptr<command_queue>> open(gpu_node &node);
	const batch_limits &limits() const noexcept { return limits_; }

	/// Send the packets of a batch; its syncobj gets their fence.
	result<void> send(batch_data &what) noexcept;
	/// The engine has read the packets in a slot.
	void release(int slot) noexcept { busy_ &= ~(uint64_t{1} << slot); }

private:
	explicit command_queue(gpu_node &node) noexcept : node_(node) {}
	result<void> map();
	result<void> ask_for_engines();
	uint32_t *slot_at(int slot) const noexcept;
	result<void> list_objects(const batch_data &what) noexcept;
	/// Is that object in the list already?
	bool lists(uint32_t handle) const noexcept;
	result<uint32_t> put_packets(const batch_data &what, int slot) noexcept;
	int submit(int slot, uint32_t bytes, const submission &run) noexcept;

	static constexpr int slots = 32;
	static constexpr size_t slot_bytes = 65536, most_objects = 1024;
	static constexpr size_t most_fences = 16;
	static constexpr uint64_t most_bytes = uint64_t{1} << 30;

	gpu_node &node_;
	batch_limits limits_;
	// Unmapped before the addresses are released.
	reserved_range range_;
	std::unique_ptr<gem_mapping> packets_;
	uint64_t busy_ = 0;
	size_t objects_ = 0;
	std::array<drm_amdgpu_bo_list_entry, most_objects> list_;
};

} // namespace sluice::detail
