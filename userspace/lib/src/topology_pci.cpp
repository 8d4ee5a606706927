// SPDX-License-Identifier: MIT
// PCI functions and the bridges above them, from the canonical paths of sysfs: the
// path of a function names each bridge that it is below.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "topology_reader.hpp"

namespace sluice {

namespace {

// From include/uapi/linux/pci_regs.h.
constexpr size_t extended_space = 0x100, whole_space = 0x1000;
constexpr uint32_t acs_capability = 0x0d;
constexpr size_t acs_control = 6;
constexpr uint16_t acs_request_redirect = 0x04, acs_completion_redirect = 0x08,
		   acs_egress = 0x20;

uint32_t word(std::string_view space, size_t at, size_t size)
{
	uint32_t value = 0;

	for (size_t i = size; i-- > 0;)
		value = value << 8 | static_cast<unsigned char>(space[at + i]);
	return value;
}

/// Where the ACS capability is in a configuration space, 0: there is none.
size_t find_acs(std::string_view space)
{
	size_t at = extended_space;

	// Each entry takes 4 bytes or more, so a longer list has a loop.
	for (int left = (whole_space - extended_space) / 4; left > 0; left--) {
		if (at < extended_space || at + 8 > space.size())
			return 0;
		uint32_t header = word(space, at, 4);
		if ((header & 0xffff) == acs_capability)
			return at;
		at = header >> 20 & ~3u;
	}
	return 0;
}

std::vector<std::string_view> parts_of(std::string_view path)
{
	std::vector<std::string_view> parts;

	while (!path.empty()) {
		size_t end = std::min(path.find('/'), path.size());

		parts.push_back(path.substr(0, end));
		path.remove_prefix(std::min(end + 1, path.size()));
	}
	return parts;
}

double encoded_share(double gigatransfers)
{
	return gigatransfers < 8 ? 8.0 / 10 : gigatransfers < 64 ? 128.0 / 130 : 0.945;
}

} // namespace

double pci_link::bytes_per_second() const noexcept
{
	return gigatransfers * 1e9 / 8 * lanes * encoded_share(gigatransfers);
}

bool is_pci_address(std::string_view name) noexcept
{
	size_t colon = name.find(':');

	if (colon == name.npos || colon < 4 || name.size() != colon + 8 ||
	    name[colon + 3] != ':' || name[colon + 6] != '.')
		return false;
	return std::ranges::all_of(name, [](char c) {
		return std::isxdigit(static_cast<unsigned char>(c)) || c == ':' ||
		       c == '.';
	});
}

pci_link topology_reader::link(const std::string &directory) const
{
	pci_link link;

	// "32.0 GT/s PCIe", "Unknown"
	link.gigatransfers = files_.fraction(directory + "/current_link_speed");
	// 255: not known
	auto lanes = files_.number(directory + "/current_link_width").value_or(0);
	auto most = files_.number(directory + "/max_link_width").value_or(0);
	link.lanes = lanes < 255 ? static_cast<unsigned>(lanes) : 0;
	link.most_lanes = most < 255 ? static_cast<unsigned>(most) : 0;
	return link;
}

acs topology_reader::redirect(const std::string &directory) const
{
	std::string space = files_.bytes(directory + "/config", whole_space);

	// Users other than root get 64 bytes. PCI without Express has 256.
	if (space.size() < extended_space)
		return acs::not_known;
	size_t at = find_acs(space);
	if (at == 0)
		return acs::direct;
	uint32_t control = word(space, at + acs_control, 2);
	return control & (acs_request_redirect | acs_completion_redirect | acs_egress)
		       ? acs::redirected
		       : acs::direct;
}

std::optional<pci_function> topology_reader::pci(const std::string &real) const
{
	pci_function pci;
	std::string directory;
	std::vector<std::string> chain; // directories from the root port down

	for (auto part : parts_of(real)) {
		directory += directory.empty() ? "" : "/";
		directory += part;
		if (is_pci_address(part))
			chain.push_back(directory);
		else if (part.starts_with("pci") &&
			 is_pci_address(std::string(part.substr(3)) + ":00.0"))
			pci.host_bridge = part;
		else if (!chain.empty())
			break;
	}
	if (chain.empty())
		return std::nullopt;

	const std::string &own = chain.back();
	pci.address = own.substr(own.rfind('/') + 1);
	pci.numa_node = sysfs::integer(files_.text(own + "/numa_node", 16), -1);
	const std::string group = files_.target(own + "/iommu_group");
	pci.iommu_group = sysfs::integer(group, -1);
	if (pci.iommu_group >= 0)
		pci.iommu_mode =
			files_.text("sys/kernel/iommu_groups/" + group + "/type", 32);
	pci.redirect = redirect(own);
	pci.link = link(own);
	for (size_t i = chain.size() - 1; i-- > 0;)
		pci.ports.push_back({chain[i].substr(chain[i].rfind('/') + 1),
				     redirect(chain[i]), link(chain[i])});
	return pci;
}

/// As in pci_host_bridge_dev() of drivers/pci/p2pdma.c: the first device of the root
/// bus, if it is 00.0 or a root port.
void topology_reader::read_host_bridges(topology &to) const
{
	for (const std::string &name : files_.list("sys/devices")) {
		if (!name.starts_with("pci"))
			continue;
		topology::host_bridge bridge{.name = name};
		std::string directory = "sys/devices/" + name;
		auto names = files_.list(directory);
		auto first =
			std::ranges::min_element(names, {}, [](const std::string &n) {
			return std::pair(!is_pci_address(n), n);
		});

		if (first != names.end() && is_pci_address(*first)) {
			directory += "/" + *first;
			uint64_t class_code =
				files_.number(directory + "/class").value_or(0);
			if (first->ends_with(":00.0") || class_code >> 8 == 0x0604) {
				bridge.vendor = static_cast<uint32_t>(
					files_.number(directory + "/vendor")
						.value_or(0));
				bridge.device = static_cast<uint32_t>(
					files_.number(directory + "/device")
						.value_or(0));
			}
		}
		to.bridges_.push_back(std::move(bridge));
	}
}

} // namespace sluice
