// SPDX-License-Identifier: MIT
// What sysfs tells of GPUs.
#pragma once

#include <filesystem>
#include <vector>

#include "sluice/device.hpp"

namespace sluice::detail {

/// A GPU, and what of it only this library wants to know.
struct gpu_entry : device_info {
	bool svm = false; ///< amdkfd shares memory with it
};

/// All GPUs of amdgpu, in the order of their addresses.
/// @param sys where sysfs is
std::vector<gpu_entry> find_gpus(const std::filesystem::path &sys = "/sys");

/// The one of @p name, an address or an index; nullptr: none.
const gpu_entry *choose_gpu(const std::vector<gpu_entry> &all, std::string_view name);

} // namespace sluice::detail
