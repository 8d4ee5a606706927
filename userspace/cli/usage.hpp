// SPDX-License-Identifier: MIT
// What processes use GPUs for, as the kernel reports it for each open file. Source:
// Documentation/gpu/drm-usage-stats.rst of the kernel; amd-sdma-* are of the series.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nic_counters.hpp"
#include "power.hpp"

namespace sluice::cli {

struct gpu_client {
	uint64_t pid = 0;
	std::string command;
	std::string gpu; ///< PCI address
	uint64_t id = 0; ///< drm-client-id: equal for the same file
	std::map<std::string, uint64_t> busy_ns;      ///< by the kind of engine
	uint64_t vram = 0, gtt = 0;		      ///< bytes
	std::optional<uint64_t> batches, batch_bytes; ///< none: no series
};

/// No value: not a file of amdgpu.
std::optional<gpu_client> parse_fdinfo(std::string_view text);

/// The name in /proc/PID/comm. The user of the process chooses it.
std::string command_in(std::string_view comm);

/// The state of a machine at one time.
struct usage {
	double us = 0;			 ///< CLOCK_MONOTONIC
	std::vector<gpu_client> clients; ///< each file once
	std::vector<nic_sample> counters;
	std::vector<energy_sample> energy{};
	std::vector<std::string> no_energy{}; ///< why, for each other GPU of amdgpu
};

/// Only root sees the processes of other users.
/// @param root where sys and proc are
usage read_usage(std::string_view root);

/// One row of top: what was done between two samples.
struct gpu_rates {
	uint64_t pid = 0;
	std::string command, gpu;
	std::map<std::string, double> busy; ///< 1: one engine, all the time
	uint64_t vram = 0, gtt = 0;
	std::optional<double> batches, batch_bytes; ///< per second
	/// Its share of the power of AIDs, by the busy time of SDMA engines, and of HBM, by
	/// batch bytes: an upper bound for its copies, as other work and idling are
	/// included.
	std::optional<double> copy_watts{};
};

struct gpu_power {
	std::string gpu;
	energy_used used;
	/// Of AIDs and HBM, for what batches moved. No value: they moved nothing.
	std::optional<double> joules_per_gb{};
};

struct nic_rate {
	std::string nic, counter;
	double a_second = 0;
	uint64_t total = 0;
};

struct usage_rates {
	double seconds = 0;
	std::vector<gpu_rates> gpus; ///< most batch bytes first
	std::vector<nic_rate> nics;
	std::vector<gpu_power> power{};
	std::vector<std::string> no_energy{};
};

/// Entries that were not there before start at 0. Files of a process on a GPU form one
/// row.
usage_rates rates_between(const usage &before, const usage &now);

} // namespace sluice::cli
