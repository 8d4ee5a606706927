// SPDX-License-Identifier: MIT
// Fills a topology from the files below a root.
#pragma once

#include "sysfs.hpp"
#include "sluice/topology.hpp"

namespace sluice {

class topology_reader {
public:
	explicit topology_reader(std::string_view root) : files_(root) {}

	result<topology> read(std::string_view root);

private:
	void read_nodes(topology &to) const;
	/// amdkfd's node, and the index of its GPU.
	using kfd_indices = std::vector<std::pair<uint64_t, size_t>>;

	void read_gpus(topology &to) const;
	void read_kfd(topology &to) const;
	void read_nics(topology &to) const;
	void read_disks(topology &to) const;
	void read_host_bridges(topology &to) const;
	void read_kernel(topology &to) const;

	std::vector<topology::xgmi_link> read_links(uint64_t node,
						    const kfd_indices &indices) const;
	topology::nic read_nic(const std::string &name) const;
	std::string pci_of_disk(const std::string &name) const;

	/// The PCI function that a path without links belongs to or is below.
	std::optional<pci_function> pci(const std::string &real) const;
	pci_link link(const std::string &directory) const;
	acs redirect(const std::string &directory) const;

	sysfs files_;
};

/// Is it a PCI address, as "0000:03:00.0"?
bool is_pci_address(std::string_view name) noexcept;

} // namespace sluice
