// SPDX-License-Identifier: MIT
// A peer memory device: migrates anonymous memory into its BAR.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/unique_fd.hpp"

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

/// Join the pages' BAR offsets, in the order of user memory, to extents, and
/// cut the last one so that they cover @p length bytes. errc::device names the
/// first page that is not in the device.
result<std::vector<Extent>> join_pages(std::span<const uint64_t> offsets,
				       uint64_t length);

class PeerMemory {
public:
	/// Open e.g. /dev/peer_mem0. Throws Error of kind errc::device.
	explicit PeerMemory(const std::string &path);

	const std::string &path() const noexcept { return path_; }
	result<PeerInfo> info() const;

	/// Migrate all pages of @p range to the device. Memory that was never
	/// touched is populated. Tries for a second; errc::device if a page
	/// stays behind all the same.
	result<void> to_device(std::span<std::byte> range) const;

	/// Where in the BAR @p range lies; page aligned start.
	result<std::vector<Extent>> lookup(std::span<std::byte> range) const;

	/// Offer the memory to peers that have a path of their own to the BAR,
	/// but not to those that use the CPU, such as rxe: these fall back.
	result<void> publish_without_cpu() const;

	/// Offer all of the memory to all peers, as after binding.
	result<void> publish() const;

private:
	result<void> migrate(std::span<std::byte> range) const;
	result<std::vector<uint64_t>> offsets(std::span<std::byte> range) const;
	result<void> publish(uint32_t flags) const;

	std::string path_;
	UniqueFd fd_;
};

} // namespace sluice
