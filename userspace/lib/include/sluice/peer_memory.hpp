// SPDX-License-Identifier: MIT
// A peer memory device: migrates anonymous memory into its BAR.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/device_memory.hpp"
#include "sluice/error.hpp"
#include "sluice/unique_fd.hpp"

namespace sluice {

/// Join the pages' BAR offsets, in the order of user memory, to extents, and
/// cut the last one so that they cover @p length bytes. errc::device names the
/// first page that is not in the device.
result<std::vector<Extent>> join_pages(std::span<const uint64_t> offsets,
				       uint64_t length);

class PeerMemory : public DeviceMemory {
public:
	/// Open e.g. /dev/peer_mem0. Throws Error of kind errc::device.
	explicit PeerMemory(const std::string &path);

	const std::string &path() const noexcept { return path_; }
	result<PeerInfo> info() const override;

	/// Migrate all pages of @p range to the device. Memory that was never
	/// touched is populated. Tries for a second; errc::device if a page
	/// stays behind all the same.
	result<void> to_device(std::span<std::byte> range) const override;

	/// Where in the BAR @p range lies; page aligned start.
	result<std::vector<Extent>>
	lookup(std::span<std::byte> range) const override;

	/// Offer the memory to peers that have a path of their own to the BAR,
	/// but not to those that use the CPU, such as rxe: these fall back.
	result<void> publish_without_cpu() const override;

	/// Offer all of the memory to all peers, as after binding.
	result<void> publish() const override;

private:
	result<void> migrate(std::span<std::byte> range) const;
	result<std::vector<uint64_t>> offsets(std::span<std::byte> range) const;
	result<void> publish(uint32_t flags) const;

	std::string path_;
	UniqueFd fd_;
};

} // namespace sluice
