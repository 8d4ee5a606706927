// SPDX-License-Identifier: MIT
// What sysfs tells about GPUs.
#pragma once

#include <filesystem>
#include <vector>

#include "sluice/device.hpp"

namespace sluice::detail {

/// A GPU, with details that only this library needs.
struct gpu_entry : device_info {
	bool svm = false; ///< amdkfd shares memory with it
};

/// All amdgpu GPUs, in the order of their addresses.
/// @param sys where sysfs is
std::vector<gpu_entry> find_gpus(const std::filesystem::path &sys = "/sys");

/// The GPU called @p name, an address or an index; nullptr: none.
const gpu_entry *choose_gpu(const std::vector<gpu_entry> &all, std::string_view name);

} // namespace sluice::detail
