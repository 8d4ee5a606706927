// SPDX-License-Identifier: MIT
// A peer memory device: migrates anonymous memory into its BAR.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "xfer/device_memory.hpp"
#include "xfer/error.hpp"
#include "xfer/unique_fd.hpp"

namespace xfer {

class PeerMemory : public DeviceMemory {
public:
	/// Open e.g. /dev/peer_mem0. Throws Error of kind errc::device.
	explicit PeerMemory(const std::string &path);

	result<PeerInfo> info() const override;

	/// Offer the memory to peers that have a path of their own to the BAR,
	/// but not to those that use the CPU, such as rxe: these fall back.
	result<void> publish_without_cpu() const override;

	/// Offer all of the memory to all peers, as after binding.
	result<void> publish() const override;

private:
	result<void> migrate(std::span<std::byte> range) const override;
	result<std::vector<uint64_t>>
	offsets(std::span<std::byte> range) const override;
	result<void> publish(uint32_t flags) const;

	UniqueFd fd_;
};

} // namespace xfer
