// SPDX-License-Identifier: MIT
// What routes name: devices, memory near them, and what limits the rate.
#include <algorithm>
#include <format>

#include "router.hpp"

namespace sluice {

std::string rate_text(double bytes_per_second)
{
	return std::format("{:.3g} GB/s", bytes_per_second / 1e9);
}

const pci_function *router::pci_of(location device) const
{
	switch (device.what) {
	case location::kind::gpu: return &t_.gpus_[device.index].pci;
	case location::kind::nic: {
		const nic &n = t_.nics_[device.index];
		return n.pci ? &*n.pci : nullptr;
	}
	case location::kind::disk: return &t_.disks_[device.index].pci;
	case location::kind::node: break;
	}
	return nullptr;
}

int router::node_of(location device) const
{
	const pci_function *pci = pci_of(device);

	if (!pci)
		return -1;
	return pci->numa_node < 0 && t_.nodes_.size() == 1 ? t_.nodes_[0].id
							   : pci->numa_node;
}

std::string router::memory_near(location device) const
{
	int node = node_of(device);

	return node < 0 ? "host memory" : std::format("host memory (node{})", node);
}

std::string router::mover(location device) const
{
	return (device.what == location::kind::gpu ? "an SDMA engine of " : "") +
	       t_.name_of(device);
}

void router::bound(route &to, std::string_view what, double bytes_per_second) const
{
	if (to.limit.empty())
		to.limit = what;
	if (bytes_per_second <= 0 ||
	    (to.bytes_per_second > 0 && to.bytes_per_second <= bytes_per_second))
		return;
	to.bytes_per_second = bytes_per_second;
	to.limit = std::format("{}: {}", what, rate_text(bytes_per_second));
}

void router::bound_by_port(route &to, const nic &n) const
{
	bound(to, "port of " + n.name, n.bits_per_second / 8);
}

void router::bound_by_links(route &to, const peer_verdict &verdict) const
{
	for (const auto &[address, link] : verdict.links)
		bound(to, std::format("PCI link of {}", label(address)),
		      link.bytes_per_second());
	if (to.limit.empty())
		to.limit = "not known";
}

void router::bound_by_link(route &to, location device) const
{
	const pci_function *pci = pci_of(device);

	bound(to, "PCI link of " + t_.name_of(device), pci->link.bytes_per_second());
	for (const pci_port &port : pci->ports)
		bound(to, "PCI link of " + label(port.address),
		      port.link.bytes_per_second());
	if (device.what == location::kind::nic)
		bound_by_port(to, t_.nics_[device.index]);
}

/// The name of a device, or its address, as for a bridge.
std::string router::label(const std::string &address) const
{
	for (location where : t_.locations())
		if (const pci_function *pci = pci_of(where);
		    pci && pci->address == address)
			return t_.name_of(where);
	return address;
}

result<route> topology::explain(location a, location b) const
{
	for (location each : {a, b})
		if (name_of(each).empty())
			return fail(
				errc::usage, "explain",
				std::format(
					"a location has the index {}, which is not there",
					each.index));
	if (std::pair(a.what, a.index) <= std::pair(b.what, b.index))
		return router(*this).find(a, b);
	route found = router(*this).find(b, a);
	std::ranges::reverse(found.steps);
	return found;
}

} // namespace sluice
