// SPDX-License-Identifier: MIT
// What sysfs tells about GPUs.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/device.hpp"

namespace sluice::detail {

/// A GPU, with details that only this library needs.
struct gpu_entry : device_info {
	bool svm = false; ///< amdkfd shares memory with it
};

/// All amdgpu GPUs that this process has, in the order of their addresses.
/// @param sys where sysfs is
/// @param nodes where render nodes are
std::vector<gpu_entry> find_gpus(const std::filesystem::path &sys = "/sys",
				 const std::filesystem::path &nodes = "/dev/dri");

/// A container sees all GPUs of the machine in sysfs, and has the render nodes of those
/// that it was given: leave out the others. If it has none at all, keep all.
/// @param is_amd whether a GPU has the driver amdgpu: others are kept, and do not count
template <class T>
void keep_given(std::vector<T> &gpus, const std::filesystem::path &nodes,
		std::function<bool(const T &)> is_amd = [](const T &) { return true; })
{
	auto is_given = [&nodes](const T &gpu) {
		std::error_code none;
		return exists(nodes / std::filesystem::path(gpu.render_node).filename(),
			      none);
	};

	if (std::ranges::any_of(
		    gpus, [&](const T &gpu) { return is_amd(gpu) && is_given(gpu); }))
		std::erase_if(gpus, [&](const T &gpu) {
			return is_amd(gpu) && !is_given(gpu);
		});
}

/// Puts PCI addresses in the order of the bus: a long one has a high domain.
inline std::pair<size_t, std::string> bus_order(const std::string &address)
{
	return {address.size(), address};
}

/// The GPU called @p name, an address or an index; nullptr: none.
const gpu_entry *choose_gpu(const std::vector<gpu_entry> &all, std::string_view name);

} // namespace sluice::detail
