// SPDX-License-Identifier: MIT
#include "router.hpp"

#include <algorithm>
#include <format>

namespace sluice {

namespace {

constexpr const char *patched_kernel = "boot a kernel with the patch series of Sluice";
constexpr unsigned near = 10; // as ACPI counts distances
constexpr const char *alias_not_known =
	"whether the kernel lets peers reach the memory of GPUs in place: /proc/kallsyms "
	"tells nothing";

route unknown_driver(const topology::gpu &g)
{
	route to;

	to.limit = "no path";
	to.why_not_better.push_back(
		std::format("{} has {}, and Sluice moves data only with amdgpu", g.name,
			    g.driver.empty() ? "no driver" : "the driver " + g.driver));
	to.remedies.push_back(
		std::format("bind {} to amdgpu, if it is an AMD GPU", g.pci.address));
	return to;
}

std::string gib(uint64_t bytes)
{
	if (bytes < 1ull << 30)
		return std::format("{} MiB", bytes >> 20);
	return std::format("{:.3g} GiB", static_cast<double>(bytes) / (1ull << 30));
}

} // namespace

route router::find(location a, location b) const
{
	using enum location::kind;

	if (a == b && (a.what == node || a.what == gpu)) {
		route to{.how = path::same_memory, .limit = "the memory itself"};

		to.steps.push_back(std::format("all of it is in {}", t_.name_of(a)));
		return to;
	}
	if (a.what == node)
		return b.what == node ? between_nodes(a.index, b.index)
				      : to_node(a.index, b);
	if (a.what == gpu && !t_.gpus_[a.index].has_amdgpu())
		return unknown_driver(t_.gpus_[a.index]);
	if (a.what == gpu && b.what == gpu)
		return between_gpus(a, b);
	if (a.what == gpu && b.what == nic)
		return gpu_and_nic(a, b);
	if (a.what == gpu)
		return gpu_and_disk(a, b);
	return by_host_memory(a, b);
}

route router::between_nodes(size_t a, size_t b) const
{
	const topology::node &from = t_.nodes_[a], &other = t_.nodes_[b];
	unsigned distance = b < from.distances.size() ? from.distances[b] : 0;
	route to{.how = path::by_cpu};

	to.steps.push_back(std::format("a CPU copies between node{} and node{}",
				       from.id, other.id));
	to.limit = distance ? std::format("the link between the nodes: distance {}, "
					  "where {} is near",
					  distance, near)
			    : "the link between the nodes";
	to.why_not_better.push_back("they are different memory");
	return to;
}

route router::to_node(size_t node, location device) const
{
	const topology::node &host = t_.nodes_[node];
	int own = node_of(device);
	std::string name = t_.name_of(device);
	route to{.how = path::host_memory};

	if (device.what == location::kind::gpu && !t_.gpus_[device.index].has_amdgpu())
		return unknown_driver(t_.gpus_[device.index]);
	if (!pci_of(device)) {
		to.how = path::by_cpu;
		to.steps.push_back(std::format("the CPU moves data between node{} and "
					       "the packets of {}",
					       host.id, name));
		to.limit = "the CPU";
		to.why_not_better.push_back(name +
					    " is software: it has no DMA engine");
		to.remedies.push_back("use a NIC that does RDMA in hardware");
		return to;
	}
	to.steps.push_back(std::format("{} has DMA to the memory of node{}",
				       mover(device), host.id));
	bound_by_link(to, device);
	if (own >= 0 && own != host.id && t_.nodes_.size() > 1) {
		to.why_not_better.push_back(
			std::format("{} is at node{}: the data cross the link "
				    "between the nodes",
				    name, own));
		to.remedies.push_back(std::format("use memory of node{}", own));
	}
	return to;
}

route router::by_xgmi(const gpu &a, const gpu &b, const topology::xgmi_link &link) const
{
	route to{.how = path::xgmi};

	to.steps.push_back(
		std::format("an SDMA engine of either copies between the video "
			    "memory of {} and {}",
			    a.name, b.name));
	bound(to, std::format("xGMI between {} and {}", a.name, b.name),
	      link.bytes_per_second);
	if (link.hops > 1)
		to.why_not_better.push_back(
			std::format("the link has {} hops", link.hops));
	return to;
}

route router::between_gpus(location first, location second) const
{
	const gpu &a = t_.gpus_[first.index], &b = t_.gpus_[second.index];

	if (!b.has_amdgpu())
		return unknown_driver(b);
	auto link = std::ranges::find(a.links, second.index, &topology::xgmi_link::gpu);
	if (link != a.links.end())
		return by_xgmi(a, b, *link);

	route to;
	judge_peers(to, b.pci, a.pci);
	if (to.how != path::peer_to_peer)
		note_nodes(to, first, second);
	if (to.how == path::staged) {
		to.steps = {mover(first) + " copies to host memory",
			    mover(second) + " copies from there"};
		return to;
	}
	to.steps.push_back(
		std::format("an SDMA engine of either copies between the video "
			    "memory of {} and {}, through the BAR of the other",
			    a.name, b.name));
	to.why_not_better.push_back(
		"xGMI does not link them; memory that they share with "
		"the process (SVM) goes through host memory");
	note_bar(to, a);
	note_bar(to, b);
	return to;
}

route router::gpu_and_software(const gpu &g, const nic &n) const
{
	route to{.how = path::by_cpu, .limit = "the CPU, which reads a BAR slowly"};

	to.why_not_better.push_back(n.name + " is software: it has no DMA engine");
	to.remedies.push_back("use a NIC that does RDMA in hardware");
	if (!t_.kernel_.symbols)
		to.not_known.push_back(alias_not_known);
	if (t_.kernel_.symbols && !t_.kernel_.kfd_alias) {
		to.how = path::staged;
		to.limit = "the CPU, and host memory, which each byte crosses twice";
		to.steps = {
			std::format("an SDMA engine of {} copies to or from host "
				    "memory",
				    g.name),
			std::format("the CPU moves data between there and the packets "
				    "of {}",
				    n.name)};
		note_alias(to);
		return to;
	}
	to.steps.push_back(
		std::format("the CPU moves data between the BAR of {} and the "
			    "packets of {}",
			    g.name, n.name));
	note_bar(to, g);
	return to;
}

route router::gpu_and_nic(location first, location second) const
{
	const gpu &g = t_.gpus_[first.index];
	const nic &n = t_.nics_[second.index];

	if (!n.pci)
		return gpu_and_software(g, n);

	route to;
	judge_peers(to, g.pci, *n.pci);
	if (to.how == path::staged) {
		to.steps = {std::format("an SDMA engine of {} copies to or from "
					"host memory",
					g.name),
			    std::format("{} has DMA to it there", n.name)};
	} else {
		to.steps.push_back(std::format("{} has DMA to the video memory of {}, "
					       "through its BAR",
					       n.name, g.name));
		note_bar(to, g);
		if (t_.kernel_.symbols && !t_.kernel_.kfd_alias)
			note_alias(to);
		if (!t_.kernel_.symbols)
			to.not_known.push_back(alias_not_known);
	}
	if (to.how != path::peer_to_peer)
		note_nodes(to, first, second);
	bound_by_port(to, n);
	return to;
}

route router::gpu_and_disk(location a, location b) const
{
	route to = by_host_memory(a, b);

	to.why_not_better.front() =
		"Linux reads files to memory that has pages which a "
		"disk can reach; video memory has none";
	return to;
}

route router::by_host_memory(location a, location b) const
{
	route to{.how = path::staged};

	for (location device : {a, b})
		if (pci_of(device))
			to.steps.push_back(std::format("{} has DMA to {}",
						       mover(device),
						       memory_near(device)));
		else
			to.steps.push_back(
				std::format("the CPU moves data between host "
					    "memory and the packets of {}",
					    t_.name_of(device)));
	if (pci_of(a) && pci_of(b)) {
		bound_by_link(to, a);
		bound_by_link(to, b);
	} else {
		to.limit = "the CPU";
	}
	to.why_not_better.push_back("nothing but host memory is between them");
	note_nodes(to, a, b);
	return to;
}

/// What goes through a host bridge or host memory may have to cross to another socket.
void router::note_nodes(route &to, location a, location b) const
{
	int from = node_of(a), other = node_of(b);

	if (from < 0 || other < 0 || from == other || t_.nodes_.size() < 2)
		return;
	to.why_not_better.push_back(
		std::format("{} is at node{} and {} at node{}: the data cross the link "
			    "between the nodes",
			    t_.name_of(a), from, t_.name_of(b), other));
}

/// Memory of @p g outside its BAR takes another path.
void router::note_bar(route &to, const gpu &g) const
{
	if (g.visible_vram_bytes >= g.vram_bytes)
		return;
	to.why_not_better.push_back(
		std::format("{} of {} of {}'s memory are within its BAR; the rest "
			    "moves to host memory "
			    "first",
			    gib(g.visible_vram_bytes), gib(g.vram_bytes), g.name));
	to.remedies.push_back("turn on resizable BAR (above 4G decoding) in the "
			      "firmware's setup");
}

void router::note_alias(route &to) const
{
	const char *why = t_.kernel_.alias
				  ? "amdkfd shows the memory that GPUs share with "
				    "a process to no peer: it "
				    "moves to host memory first"
				  : "this kernel lets no peer reach memory that a "
				    "GPU shares with a process "
				    "(SVM): it moves to host memory first";

	to.why_not_better.push_back(why);
	to.remedies.push_back(patched_kernel);
}

void router::note_redirect(route &to, const peer_verdict &verdict) const
{
	std::string ports;

	for (const std::string &address : verdict.redirecting)
		ports += (ports.empty() ? "" : ";") + address;
	to.why_not_better.push_back(
		"one PCI switch has both below it, but ACS sends peers to the host "
		"bridge" +
		(ports.empty() ? std::string() : " at " + ports));
	// Only root can see the ports.
	to.remedies.push_back(
		"boot with pci=disable_acs_redir=" +
		(ports.empty() ? "PORTS (run this as root to see which)" : ports) +
		": the devices are not isolated from each other then");
}

void router::judge_peers(route &to, const pci_function &provider,
			 const pci_function &client) const
{
	peer_verdict verdict = rules_.ask(provider, client);

	if (t_.kernel_.symbols && !t_.kernel_.p2pdma) {
		to.why_not_better.push_back("this kernel has no P2PDMA");
		to.remedies.push_back("build the kernel with CONFIG_PCI_P2PDMA=y");
		verdict.how = peer_verdict::map::none;
	}
	if (!t_.kernel_.symbols)
		to.not_known.push_back("whether the kernel has P2PDMA: /proc/kallsyms "
				       "tells nothing");
	bound_by_links(to, verdict);
	if (!verdict.acs_known)
		to.not_known.push_back("ACS: only root can read what the bridges do; "
				       "without it, peers go straight");
	switch (verdict.how) {
	case peer_verdict::map::bus: to.how = path::peer_to_peer; return;
	case peer_verdict::map::host_bridge:
		to.how = path::host_bridge;
		if (!verdict.redirected)
			to.why_not_better.push_back("no PCI switch has both below it");
		break;
	case peer_verdict::map::none:
		to.how = path::staged;
		if (!to.why_not_better.empty())
			return;
		to.why_not_better.push_back(
			std::format("P2PDMA: the kernel does not know that {} "
				    "forwards between devices",
				    rules_.unlisted(provider, client)));
		to.remedies.push_back("put both below one PCI switch, or use a machine "
				      "whose CPU forwards: AMD since Zen, Xeon since "
				      "Skylake");
	}
	if (verdict.redirected)
		note_redirect(to, verdict);
}

} // namespace sluice
