// SPDX-License-Identifier: MIT
// GPUs, NICs and disks: where sysfs lists them, and what it tells about them.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <format>

#include "gpu_list.hpp"
#include "topology_reader.hpp"

namespace sluice {

namespace {

// From include/uapi/linux/kfd_sysfs.h and drivers/gpu/drm/amd/amdkfd/kfd_crat.h.
constexpr uint64_t svm_supported = 0x08000000;
constexpr uint64_t xgmi_type = 11, weight_of_a_hop = 15;

constexpr const char *kfd_nodes = "sys/class/kfd/kfd/topology/nodes";

/// "gfx942" of 90402: the last two digits count in hexadecimal.
std::string target_name(uint64_t version)
{
	return version ? std::format("gfx{}{:x}{:x}", version / 10000,
				     version / 100 % 100, version % 100)
		       : std::string();
}

std::string address_of(uint64_t domain, uint64_t location)
{
	return std::format("{:04x}:{:02x}:{:02x}.{:x}", domain, location >> 8 & 0xff,
			   location >> 3 & 0x1f, location & 7);
}

double megabytes(const std::string &properties, std::string_view key)
{
	return static_cast<double>(sysfs::value(properties, key).value_or(0)) * 1e6;
}

} // namespace

void topology_reader::read_gpus(topology &to) const
{
	const std::string top = "sys/class/drm/";

	for (const std::string &entry : files_.list(top)) {
		if (!entry.starts_with("renderD"))
			continue;
		const std::string directory = files_.real(top + entry + "/device");
		auto function = pci(directory);

		// A partition of a GPU has a render node, but is no PCI function.
		if (!function || !directory.ends_with(function->address))
			continue;
		topology::gpu gpu{.pci = std::move(*function)};
		gpu.render_node = "/dev/dri/" + entry;
		gpu.driver = files_.target(directory + "/driver");
		gpu.vram_bytes =
			files_.number(directory + "/mem_info_vram_total").value_or(0);
		gpu.visible_vram_bytes =
			files_.number(directory + "/mem_info_vis_vram_total")
				.value_or(0);
		to.gpus_.push_back(std::move(gpu));
	}
	detail::keep_given<topology::gpu>(to.gpus_, files_.path("dev/dri"),
					  &topology::gpu::has_amdgpu);
	// The GPUs that device::open() counts come first.
	std::ranges::sort(to.gpus_, {}, [](const topology::gpu &gpu) {
		return std::pair(!gpu.has_amdgpu(), detail::bus_order(gpu.pci.address));
	});
	for (size_t i = 0; i < to.gpus_.size(); i++)
		to.gpus_[i].name = std::format("gpu{}", i);
}

void topology_reader::read_kfd(topology &to) const
{
	kfd_indices indices;
	std::vector<std::string> names = files_.list(kfd_nodes);

	for (const std::string &name : names) {
		std::string properties =
			files_.text(std::format("{}/{}/properties", kfd_nodes, name));
		auto of = [&properties](std::string_view key) {
			return sysfs::value(properties, key).value_or(0);
		};
		auto gpu = std::ranges::find(
			to.gpus_, address_of(of("domain"), of("location_id")),
			[](const auto &g) { return g.pci.address; });
		auto id = files_.number(std::format("{}/{}/gpu_id", kfd_nodes, name))
				  .value_or(0);

		// The first partition speaks for all.
		if (!id || gpu == to.gpus_.end() || gpu->kfd_id)
			continue;
		gpu->kfd_id = static_cast<uint32_t>(id);
		gpu->product = target_name(of("gfx_target_version"));
		gpu->hive = of("hive_id");
		gpu->engines = static_cast<unsigned>(of("num_sdma_engines") +
						     of("num_sdma_xgmi_engines"));
		gpu->svm = of("capability") & svm_supported;
		indices.emplace_back(std::strtoull(name.c_str(), nullptr, 10),
				     gpu - to.gpus_.begin());
	}
	for (auto [node, index] : indices)
		to.gpus_[index].links = read_links(node, indices);
}

std::vector<topology::xgmi_link>
topology_reader::read_links(uint64_t node, const kfd_indices &indices) const
{
	const std::string top = std::format("{}/{}/io_links", kfd_nodes, node);
	std::vector<topology::xgmi_link> links;

	for (const std::string &link : files_.list(top)) {
		std::string lines = files_.text(top + "/" + link + "/properties");
		auto peer = std::ranges::find(indices, sysfs::value(lines, "node_to"),
					      &kfd_indices::value_type::first);

		if (sysfs::value(lines, "type") != xgmi_type || peer == indices.end())
			continue;
		uint64_t weight = sysfs::value(lines, "weight").value_or(0);
		links.push_back({
			.gpu = peer->second,
			.hops = static_cast<unsigned>(weight / weight_of_a_hop),
			.bytes_per_second = megabytes(lines, "max_bandwidth"),
		});
	}
	return links;
}

topology::nic topology_reader::read_nic(const std::string &name) const
{
	const std::string directory = "sys/class/infiniband/" + name;
	const std::string port = directory + "/ports/1";
	topology::nic nic{.name = name};

	nic.pci = pci(files_.real(directory));
	nic.driver = files_.target(directory + "/device/driver");
	// Soft RoCE names the interface that it is on.
	nic.interface = files_.text(directory + "/parent", 64);
	if (nic.driver.empty())
		nic.driver = nic.interface.empty() ? "" : "rdma_rxe";
	if (nic.interface.empty())
		nic.interface = files_.text(port + "/gid_attrs/ndevs/0", 64);
	nic.infiniband = files_.text(port + "/link_layer", 64) == "InfiniBand";
	nic.active = files_.text(port + "/state", 64).starts_with("4:");
	// "400 Gb/sec (4X NDR)"
	nic.bits_per_second = files_.fraction(port + "/rate") * 1e9;
	return nic;
}

void topology_reader::read_nics(topology &to) const
{
	for (const std::string &name : files_.list("sys/class/infiniband"))
		to.nics_.push_back(read_nic(name));
}

/// Where the PCI function of a disk is. A disk with several paths is below none of
/// them, but below a subsystem that links to its controllers: the first is taken.
std::string topology_reader::pci_of_disk(const std::string &name) const
{
	std::string real = files_.real("sys/block/" + name);
	size_t up = real.rfind('/');

	if (real.find("/nvme-subsystem/") == real.npos || up == real.npos)
		return real;
	std::string subsystem = real.substr(0, up);
	for (const std::string &entry : files_.list(subsystem)) {
		std::string controller = files_.real(subsystem + "/" + entry);

		if (entry.starts_with("nvme") && pci(controller))
			return controller;
	}
	return real;
}

void topology_reader::read_disks(topology &to) const
{
	for (const std::string &name : files_.list("sys/block")) {
		const std::string directory = "sys/block/" + name;
		auto function = pci(pci_of_disk(name));
		uint64_t sectors = files_.number(directory + "/size").value_or(0);

		// A single path of a disk with several is hidden; optical drives are
		// empty.
		if (!function || sectors == 0 ||
		    files_.number(directory + "/hidden").value_or(0))
			continue;
		to.disks_.push_back({
			.name = name,
			.model = files_.text(directory + "/device/model", 64),
			.bytes = sectors * 512,
			.pci = std::move(*function),
		});
	}
}

} // namespace sluice
