// SPDX-License-Identifier: MIT
// Memory of a device that anonymous memory migrates to, seen through a BAR.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "xfer/error.hpp"

namespace xfer {

/// Counters of a device since it was bound. Pages are of 4 KiB.
struct PeerInfo {
	uint64_t size = 0;	///< bytes of device memory
	uint64_t visible = 0;	///< bytes that peers may reach, 0: no alias
	uint64_t pages = 0;	///< pages in use now
	uint64_t moved_in = 0;	///< pages migrated to the device
	uint64_t moved_out = 0;	///< pages migrated back, for whatever reason
	uint64_t faults = 0;	///< times a touch made pages migrate back
	uint64_t by_alias = 0;	///< pages mapped for a peer through the alias
	/// Pages that moved because a peer could not reach them. A huge page
	/// moves, and counts, as a whole.
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

/// Join the pages' BAR offsets, in the order of user memory, to extents, and
/// cut the last one so that they cover @p length bytes. errc::device names the
/// first page that is not in the device.
result<std::vector<Extent>> join_pages(std::span<const uint64_t> offsets,
				       uint64_t length);

class DeviceMemory {
public:
	virtual ~DeviceMemory() = default;

	virtual result<PeerInfo> info() const = 0;

	/// Migrate all pages of @p range to the device. Memory that was never
	/// touched is populated. Tries for a second; errc::device if a page
	/// stays behind all the same.
	result<void> to_device(std::span<std::byte> range) const;

	/// Where in the BAR @p range lies; page aligned start.
	result<std::vector<Extent>> lookup(std::span<std::byte> range) const;

	/// See PeerMemory; errc::usage where the driver alone decides.
	virtual result<void> publish_without_cpu() const = 0;
	virtual result<void> publish() const = 0;

	/// The offset of a page that is not in the device.
	static constexpr uint64_t nowhere = UINT64_MAX;

protected:
	explicit DeviceMemory(std::string name) : name_(std::move(name)) {}

	/// One attempt: pages that somebody holds stay behind.
	virtual result<void> migrate(std::span<std::byte> range) const = 0;

	/// Where in the BAR each page of @p range is, or nowhere.
	virtual result<std::vector<uint64_t>>
	offsets(std::span<std::byte> range) const = 0;

	std::string name_;	///< what errors begin with
};

/// @p name is the path of a peer memory device, e.g. /dev/peer_mem0, or
/// gpu:ADDRESS, ADDRESS being the PCI address of a GPU. Throws Error.
std::unique_ptr<DeviceMemory> open_device_memory(const std::string &name);

} // namespace xfer
