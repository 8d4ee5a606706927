// SPDX-License-Identifier: MIT
// A machine made of files: what sysfs and procfs would show of it, in a temporary
// directory that is removed with it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <format>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>

namespace sluice {

class fake_machine {
public:
	fake_machine()
	{
		std::string name =
			std::filesystem::temp_directory_path() / "machine.XXXXXX";

		if (!::mkdtemp(name.data()))
			throw std::runtime_error("mkdtemp");
		root_ = name;
		std::filesystem::create_directories(root_ / "sys/devices");
		kernel("7.3.4");
		cpu("GenuineIntel", 6);
	}
	fake_machine(const fake_machine &) = delete;
	~fake_machine()
	{
		std::error_code ignored;
		std::filesystem::remove_all(root_, ignored);
	}

	std::string root() const { return root_; }

	void file(std::string_view path, std::string_view text) const
	{
		std::filesystem::create_directories((root_ / path).parent_path());
		std::ofstream(root_ / path, std::ios::binary) << text;
	}

	/// Relative, as in sysfs.
	void link(std::string_view path, std::string_view target) const
	{
		auto from = root_ / path;

		std::filesystem::create_directories(from.parent_path());
		std::filesystem::create_symlink(
			std::filesystem::relative(root_ / target, from.parent_path()),
			from);
	}

	void kernel(std::string_view release,
		    std::string_view symbols = "pci_p2pdma_distance_many") const
	{
		std::string text = "0000000000000000 T schedule\n";

		for (size_t at = 0; at < symbols.size();) {
			size_t end = std::min(symbols.find(' ', at), symbols.size());
			text += std::format("0000000000000000 T {}\n",
					    symbols.substr(at, end - at));
			at = end + 1;
		}
		file("proc/sys/kernel/osrelease", std::string(release) + "\n");
		file("proc/kallsyms", text);
	}
	void patched_kernel() const
	{
		kernel("7.3.4-sluice",
		       "pci_p2pdma_distance_many dev_pagemap_publish_alias "
		       "svm_alias_init");
	}

	void cpu(std::string_view vendor, int family) const
	{
		file("proc/cpuinfo", std::format("processor\t: 0\nvendor_id\t: {}\n"
						 "cpu family\t: {}\n\n",
						 vendor, family));
	}

	void node(int id, std::string_view cpus, std::string_view distances,
		  uint64_t gib = 64) const
	{
		auto directory = std::format("sys/devices/system/node/node{}/", id);

		file(directory + "cpulist", std::string(cpus) + "\n");
		file(directory + "distance", std::string(distances) + "\n");
		file(directory + "meminfo",
		     std::format("Node {} MemTotal:  {} kB\n", id, gib << 20));
	}

	/// A PCI function. @p directory: "pci0000:00/0000:00:01.0/0000:01:00.0"
	std::string pci(std::string_view directory, uint32_t vendor = 0x1022,
			uint32_t device = 1, uint32_t class_code = 0x060400,
			int node = -1) const
	{
		auto path = std::format("sys/devices/{}", directory);

		file(path + "/vendor", std::format("{:#06x}\n", vendor));
		file(path + "/device", std::format("{:#06x}\n", device));
		file(path + "/class", std::format("{:#08x}\n", class_code));
		file(path + "/numa_node", std::format("{}\n", node));
		file(path + "/current_link_speed", "32.0 GT/s PCIe\n");
		file(path + "/current_link_width", "16\n");
		file(path + "/max_link_width", "16\n");
		file(path + "/config", std::string(64, '\0'));
		return path;
	}

	/// The config space of a function as root reads it: an ACS capability with
	/// @p control, after another one.
	void acs(std::string_view path, uint16_t control) const
	{
		std::string space(4096, '\0');

		space[0x100] = 1; // AER, next at 0x140
		space[0x102] = 1;
		space[0x103] = 0x14;
		space[0x140] = 0x0d;
		space[0x142] = 1;
		space[0x146] = static_cast<char>(control);
		file(std::string(path) + "/config", space);
	}

	void group(std::string_view path, int number) const
	{
		auto directory = std::format("sys/kernel/iommu_groups/{}", number);

		file(directory + "/type", "DMA\n");
		link(std::string(path) + "/iommu_group", directory);
		file("sys/class/iommu/ivhd0/x", "");
	}

	std::string gpu(std::string_view directory, int minor, int node = -1,
			uint64_t vram = 16ull << 30,
			uint64_t visible = 16ull << 30) const
	{
		auto path = pci(directory, 0x1002, 0x74a1, 0x120000, node);

		file(path + "/mem_info_vram_total", std::format("{}\n", vram));
		file(path + "/mem_info_vis_vram_total", std::format("{}\n", visible));
		driver(path, "amdgpu");
		auto drm = std::format("{}/drm/renderD{}", path, minor);
		file(drm + "/dev", "226:128\n");
		link(drm + "/device", path);
		link(std::format("sys/class/drm/renderD{}", minor), drm);
		return path;
	}

	/// What amdkfd knows of the GPU at @p location of the bus.
	void kfd(int node, uint32_t id, uint32_t location, uint64_t hive = 0) const
	{
		auto directory = kfd_node(node);

		file(directory + "/gpu_id", std::format("{}\n", id));
		file(directory + "/properties",
		     std::format("gfx_target_version 90402\ncapability "
				 "{}\nlocation_id {}\n"
				 "domain 0\nhive_id {}\nnum_sdma_engines 2\n"
				 "num_sdma_xgmi_engines 14\n",
				 id ? 0x08000000 : 0, location, hive));
	}
	void kfd_link(int from, int number, int to, int type, int weight = 15) const
	{
		file(std::format("{}/io_links/{}/properties", kfd_node(from), number),
		     std::format("type {}\nnode_from {}\nnode_to {}\nweight {}\n"
				 "max_bandwidth 64000\n",
				 type, from, to, weight));
	}

	std::string nic(std::string_view directory, std::string_view name,
			int node = -1) const
	{
		auto path = pci(directory, 0x15b3, 0x1021, 0x020000, node);

		driver(path, "mlx5_core");
		rdma(std::format("{}/infiniband/{}", path, name), name,
		     "400 Gb/sec (4X NDR)");
		link(std::format("{}/infiniband/{}/device", path, name), path);
		return path;
	}
	void soft_nic(std::string_view name, std::string_view interface) const
	{
		auto path = std::format("sys/devices/virtual/infiniband/{}", name);

		rdma(path, name, "2.5 Gb/sec (1X SDR)");
		file(path + "/parent", std::string(interface) + "\n");
	}

	std::string disk(std::string_view directory, std::string_view name,
			 int node = -1) const
	{
		auto path = pci(directory, 0x144d, 0xa80a, 0x010802, node);
		auto block = std::format("{}/nvme/nvme0/{}", path, name);

		file(block + "/size", "2000409264\n");
		file(path + "/nvme/nvme0/model", "Flash 1000  \n");
		link(block + "/device", path + "/nvme/nvme0");
		link(std::format("sys/block/{}", name), block);
		return path;
	}

	/// In place of another one.
	void driver(std::string_view path, std::string_view name) const
	{
		auto directory = std::format("sys/bus/pci/drivers/{}", name);

		std::filesystem::create_directories(root_ / directory);
		std::filesystem::remove(root_ / path / "driver");
		link(std::string(path) + "/driver", directory);
	}

private:
	static std::string kfd_node(int node)
	{
		return std::format("sys/class/kfd/kfd/topology/nodes/{}", node);
	}
	void rdma(const std::string &path, std::string_view name,
		  std::string_view rate) const
	{
		file(path + "/ports/1/state", "4: ACTIVE\n");
		file(path + "/ports/1/link_layer", "Ethernet\n");
		file(path + "/ports/1/rate", std::string(rate) + "\n");
		file(path + "/ports/1/gid_attrs/ndevs/0", "eth0\n");
		link(std::format("sys/class/infiniband/{}", name), path);
	}

	std::filesystem::path root_;
};

} // namespace sluice
