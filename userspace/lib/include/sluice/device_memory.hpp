// SPDX-License-Identifier: MIT
// Memory of a device that anonymous memory migrates to, seen through a BAR.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sluice/error.hpp"

namespace sluice {

/// Counters of a device since it was bound. Pages are of 4 KiB.
struct PeerInfo {
	uint64_t size = 0;	///< bytes of device memory
	uint64_t visible = 0;	///< bytes that peers may reach, 0: no alias
	uint64_t pages = 0;	///< pages in use now
	uint64_t moved_in = 0;	///< pages migrated to the device
	uint64_t moved_out = 0;	///< pages migrated back, for whatever reason
	uint64_t faults = 0;	///< times a touch made pages migrate back
	uint64_t by_alias = 0;	///< pages mapped for a peer through the alias
	/// Pages that a peer asked for and could not reach. A huge page moves
	/// as a whole at the first of them, and the others are not asked for.
	uint64_t fallbacks = 0;
};

/// What changed between two readings.
PeerInfo operator-(const PeerInfo &later, const PeerInfo &earlier);

/// Bytes of a device's BAR that hold consecutive bytes of user memory.
struct Extent {
	uint64_t offset;	///< in the BAR, bytes
	uint64_t length;	///< bytes

	bool operator==(const Extent &) const = default;
};

class DeviceMemory {
public:
	virtual ~DeviceMemory() = default;

	virtual result<PeerInfo> info() const = 0;

	/// Migrate all pages of @p range to the device. errc::device if a page
	/// stays behind.
	virtual result<void> to_device(std::span<std::byte> range) const = 0;

	/// Where in the BAR @p range lies; page aligned start.
	virtual result<std::vector<Extent>>
	lookup(std::span<std::byte> range) const = 0;

	/// See PeerMemory; errc::usage where the driver alone decides.
	virtual result<void> publish_without_cpu() const = 0;
	virtual result<void> publish() const = 0;
};

/// @p name is the path of a peer memory device, e.g. /dev/peer_mem0, or
/// gpu:ADDRESS, ADDRESS being the PCI address of a GPU. Throws Error.
std::unique_ptr<DeviceMemory> open_device_memory(const std::string &name);

} // namespace sluice
