// SPDX-License-Identifier: MIT
// Finds the route between two locations, and says why it is that one.
#pragma once

#include "peer_rules.hpp"
#include "sluice/topology.hpp"

namespace sluice {

class router {
public:
	explicit router(const topology &of) : t_(of), rules_(of) {}

	/// Both exist; the kind of @p a is not after that of @p b.
	route find(location a, location b) const;

private:
	using gpu = topology::gpu;
	using nic = topology::nic;
	using disk = topology::disk;

	route between_nodes(size_t a, size_t b) const;
	route to_node(size_t node, location device) const;
	route between_gpus(location first, location second) const;
	route gpu_and_nic(location first, location second) const;
	route gpu_and_software(const gpu &g, const nic &n) const;
	route gpu_and_disk(location a, location b) const;
	route by_host_memory(location a, location b) const;

	route by_xgmi(const gpu &a, const gpu &b,
		      const topology::xgmi_link &link) const;
	void judge_peers(route &to, const pci_function &provider,
			 const pci_function &client) const;
	void note_nodes(route &to, location a, location b) const;
	void note_redirect(route &to, const peer_verdict &verdict) const;
	void note_bar(route &to, const gpu &g) const;
	void note_alias(route &to) const;

	const pci_function *pci_of(location device) const;
	int node_of(location device) const;
	/// "node0", or "host memory" where it is not known.
	std::string memory_near(location device) const;
	std::string mover(location device) const;
	void bound(route &to, std::string_view what, double bytes_per_second) const;
	void bound_by_link(route &to, location device) const;
	void bound_by_links(route &to, const peer_verdict &verdict) const;
	void bound_by_port(route &to, const nic &n) const;
	std::string label(const std::string &address) const;

	const topology &t_;
	peer_rules rules_;
};

/// "63.0 GB/s"
std::string rate_text(double bytes_per_second);

} // namespace sluice
