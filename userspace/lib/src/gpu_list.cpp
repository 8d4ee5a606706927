// SPDX-License-Identifier: MIT
#include "gpu_list.hpp"

#include <algorithm>
#include <charconv>
#include <format>
#include <fstream>
#include <map>

#include <linux/kfd_sysfs.h>

namespace sluice {

namespace detail {

namespace {

namespace fs = std::filesystem;

/// The number in a file; @p otherwise if there is none.
template <class T> T read_number(const fs::path &file, T otherwise)
{
	std::ifstream in(file);
	T value;

	return in >> value ? value : otherwise;
}

/// The lines "name number" of a file.
std::map<std::string, uint64_t> read_properties(const fs::path &file)
{
	std::map<std::string, uint64_t> found;
	std::ifstream in(file);
	std::string key;
	uint64_t value;

	while (in >> key >> value)
		found[key] = value;
	return found;
}

/// 90402 is gfx942, 90010 is gfx90a: the last two digits are one in hex.
std::string product_of(uint64_t version)
{
	return std::format("gfx{}{}{:x}", version / 10000, version / 100 % 100,
			   version % 100);
}

/// What amdkfd says about it, if it knows it.
void add_kfd(gpu_entry &gpu, const fs::path &sys)
{
	std::error_code none;

	for (const auto &node :
	     fs::directory_iterator(sys / "class/kfd/kfd/topology/nodes", none)) {
		auto id = read_number<uint32_t>(node.path() / "gpu_id", 0);
		auto all = read_properties(node.path() / "properties");

		if (!id || std::format("/dev/dri/renderD{}", all["drm_render_minor"]) !=
				   gpu.render_node)
			continue;
		gpu.kfd_id = id;
		gpu.svm = all["capability"] & HSA_CAP_SVMAPI_SUPPORTED;
		gpu.product = product_of(all["gfx_target_version"]);
	}
}

/// The GPU of a render node.
gpu_entry read_gpu(const fs::path &node, const fs::path &device, const fs::path &sys)
{
	gpu_entry gpu;
	std::string id;

	std::ifstream(device / "device") >> id;
	gpu.address = device.filename();
	gpu.render_node = "/dev/dri" / node.filename();
	gpu.product = "PCI device " + id;
	gpu.numa_node = read_number(device / "numa_node", -1);
	gpu.vram_bytes = read_number<uint64_t>(device / "mem_info_vram_total", 0);
	gpu.visible_vram_bytes =
		read_number<uint64_t>(device / "mem_info_vis_vram_total", 0);
	add_kfd(gpu, sys);
	return gpu;
}

} // namespace

std::vector<gpu_entry> find_gpus(const fs::path &sys, const fs::path &nodes)
{
	std::vector<gpu_entry> gpus;
	std::error_code none;

	for (const auto &entry : fs::directory_iterator(sys / "class/drm", none)) {
		if (!entry.path().filename().string().starts_with("renderD"))
			continue;
		auto device = fs::canonical(entry.path() / "device", none);
		auto driver = fs::canonical(device / "driver", none).filename();
		// Partitions of a GPU are not PCI devices, and their driver has
		// another name.
		if (!none && driver == "amdgpu")
			gpus.push_back(read_gpu(entry.path(), device, sys));
	}
	keep_given(gpus, nodes);
	std::ranges::sort(gpus, {},
			  [](const gpu_entry &gpu) { return bus_order(gpu.address); });
	return gpus;
}

const gpu_entry *choose_gpu(const std::vector<gpu_entry> &all, std::string_view name)
{
	size_t index;
	auto end = name.data() + name.size();
	auto number = std::from_chars(name.data(), end, index);

	if (number.ec == std::errc() && number.ptr == end)
		return index < all.size() ? &all[index] : nullptr;
	auto it = std::ranges::find(all, name, &gpu_entry::address);
	return it == all.end() ? nullptr : &*it;
}

} // namespace detail

std::vector<device_info> list_devices()
{
	auto found = detail::find_gpus();

	return {found.begin(), found.end()};
}

} // namespace sluice
