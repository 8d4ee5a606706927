// SPDX-License-Identifier: MIT
// Counters of RDMA cards. Source: Documentation/ABI/stable/sysfs-class-infiniband of the
// kernel; hw_counters are each driver's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct nic_sample {
	double us = 0; ///< CLOCK_MONOTONIC
	std::string nic, counter;
	uint64_t value = 0;
};

/// The value in a counter's file. No value: not a number, as "N/A (not supported)".
std::optional<uint64_t> parse_counter(std::string_view text);

/// All counters of all ports of all cards, by name. "counters" has words of four bytes,
/// which are bytes here.
/// @param root where sys is
std::vector<nic_sample> read_nic_counters(std::string_view root);

/// Only the counters of traffic: bytes or, without those, packets.
std::vector<nic_sample> traffic_of(const std::vector<nic_sample> &all);

/// How far a counter has advanced. One that was reset has restarted at 0.
inline uint64_t counted_since(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

/// CLOCK_MONOTONIC now, in microseconds.
double monotonic_us();

} // namespace sluice::cli
