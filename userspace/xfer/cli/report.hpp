// SPDX-License-Identifier: MIT
// What a transfer came to.
#pragma once

#include <cstdint>
#include <string>

#include "xfer/channel.hpp"

namespace xfer {

/// One side's memory. Pages are of 4 KiB; only what happened while RDMA was
/// using the memory counts.
struct SideStats {
	std::string memory;		///< "system" or the device's path
	bool on_demand = true;		///< else pinned
	uint64_t by_alias = 0;		///< pages mapped through the alias
	uint64_t migrations = 0;	///< pages that left the device
	uint64_t fallbacks = 0;		///< see PeerInfo::fallbacks

	void to(Message &message) const;
	static result<SideStats> from(const Message &message);
};

struct Report {
	std::string file;
	uint64_t bytes = 0, chunks = 0, pieces = 0;
	uint64_t chunk_size = 0, piece_size = 0;
	uint32_t depth = 0, credits = 0;
	double total_s = 0;		///< first byte read to last one verified
	double read_s = 0;		///< of it: io_uring
	double to_device_s = 0;		///< of it: migrating to the device
	double transfer_s = 0;		///< of it: RDMA
	double verify_s = 0;		///< of it: waiting for the verification
	uint64_t stalls = 0;		///< times without a credit
	double stalled_s = 0;
	uint32_t in_flight_max = 0;
	double in_flight_mean = 0;	///< over the writes, as each was posted
	SideStats sender, receiver;
	std::string sha256;		///< of what arrived
	std::string verified_by;

	double rate() const;		///< MB/s (10^6) while RDMA was running
	std::string table() const;
	std::string json() const;
};

} // namespace xfer
