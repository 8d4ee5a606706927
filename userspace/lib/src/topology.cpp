// SPDX-License-Identifier: MIT
#include "sluice/topology.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <format>

#include "topology_reader.hpp"

namespace sluice {

namespace {

constexpr std::array path_names = {
	"same-memory", "xgmi",	 "peer-to-peer", "host-memory",
	"host-bridge", "by-cpu", "staged",	 "unreachable",
};
static_assert(path_names.size() == static_cast<size_t>(path::unreachable) + 1);

std::string field_of(std::string_view lines, std::string_view key)
{
	size_t at = lines.find(key);

	if (at == lines.npos)
		return {};
	std::string_view line = lines.substr(at, lines.find('\n', at) - at);
	size_t value = line.find_first_not_of(" \t:", key.size());
	return value == line.npos ? std::string() : std::string(line.substr(value));
}

/// As cpu_supports_p2pdma() in drivers/pci/p2pdma.c: AMD since Zen.
bool forwards(std::string_view cpuinfo)
{
	return field_of(cpuinfo, "vendor_id") == "AuthenticAMD" &&
	       sysfs::integer(field_of(cpuinfo, "cpu family"), 0) >= 0x17;
}

} // namespace

const char *name(path how) noexcept
{
	return path_names[static_cast<size_t>(how)];
}

void topology_reader::read_nodes(topology &to) const
{
	const std::string top = "sys/devices/system/node";

	for (const std::string &entry : files_.list(top)) {
		topology::node node;
		auto number = std::from_chars(entry.data() +
						      std::min<size_t>(4, entry.size()),
					      entry.data() + entry.size(), node.id);

		if (!entry.starts_with("node") || number.ec != std::errc())
			continue;
		const std::string directory = top + "/" + entry;
		node.cpus = files_.text(directory + "/cpulist");
		std::string memory = files_.text(directory + "/meminfo");
		node.bytes =
			std::strtoull(field_of(memory, "MemTotal").c_str(), nullptr, 10)
			<< 10;
		std::string distances = files_.text(directory + "/distance");
		for (char *at = distances.data(), *end = at;; at = end) {
			unsigned long distance = std::strtoul(at, &end, 10);

			if (end == at)
				break;
			node.distances.push_back(static_cast<unsigned>(distance));
		}
		to.nodes_.push_back(std::move(node));
	}
	if (to.nodes_.empty()) // CONFIG_NUMA is not set
		to.nodes_.push_back({
			.cpus = files_.text("sys/devices/system/cpu/online"),
			.bytes = std::strtoull(field_of(files_.text("proc/meminfo"),
							"MemTotal")
						       .c_str(),
					       nullptr, 10)
				 << 10,
			.distances = {10},
		});
}

void topology_reader::read_kernel(topology &to) const
{
	static constexpr std::array<std::string_view, 4> symbols = {
		"schedule",
		"pci_p2pdma_distance_many",
		"dev_pagemap_publish_alias",
		"svm_alias_init",
	};
	topology::kernel &k = to.kernel_;

	k.release = files_.text("proc/sys/kernel/osrelease");
	k.cpu_forwards = forwards(files_.text("proc/cpuinfo"));
	k.iommu = !files_.list("sys/class/iommu").empty();
	// All users may read the names, though not the addresses.
	auto found = files_.words("proc/kallsyms", symbols);
	k.symbols = !found.empty() && found[0];
	if (!k.symbols)
		return;
	k.p2pdma = found[1];
	k.alias = found[2];
	k.kfd_alias = found[3];
}

result<topology> topology_reader::read(std::string_view root)
{
	topology found;

	if (!files_.has("sys/devices"))
		return fail(errc::system, root,
			    "it has no sys/devices: sysfs is not there");
	read_kernel(found);
	read_nodes(found);
	read_host_bridges(found);
	read_gpus(found);
	read_kfd(found);
	read_nics(found);
	read_disks(found);
	return found;
}

result<topology> topology::read(std::string_view root)
{
	return topology_reader(root).read(root);
}

std::vector<location> topology::locations() const
{
	std::vector<location> all;
	auto add = [&all](location::kind what, size_t n) {
		for (size_t i = 0; i < n; i++)
			all.push_back({what, i});
	};

	add(location::kind::node, nodes_.size());
	add(location::kind::gpu, gpus_.size());
	add(location::kind::nic, nics_.size());
	add(location::kind::disk, disks_.size());
	return all;
}

std::string topology::name_of(location where) const
{
	auto of = [&where](const auto &list) {
		return where.index < list.size() ? list[where.index].name
						 : std::string();
	};

	switch (where.what) {
	case location::kind::node:
		return where.index < nodes_.size()
			       ? std::format("node{}", nodes_[where.index].id)
			       : std::string();
	case location::kind::gpu: return of(gpus_);
	case location::kind::nic: return of(nics_);
	case location::kind::disk: return of(disks_);
	}
	return {};
}

result<location> topology::find(std::string_view wanted) const
{
	std::string names;

	if (wanted.empty())
		return fail(errc::usage, "location", "its name is empty");
	for (location where : locations()) {
		std::string own = name_of(where);
		std::string_view address, render;

		if (where.what == location::kind::gpu) {
			address = gpus_[where.index].pci.address;
			render = gpus_[where.index].render_node;
		} else if (where.what == location::kind::nic &&
			   nics_[where.index].pci) {
			address = nics_[where.index].pci->address;
		} else if (where.what == location::kind::disk) {
			address = disks_[where.index].pci.address;
		}
		if (wanted == own || wanted == address || wanted == render ||
		    (!render.empty() && render.ends_with("/" + std::string(wanted))))
			return where;
		names += " " + own;
	}
	return fail(errc::device, wanted, "there is no such thing; there is" + names);
}

} // namespace sluice
