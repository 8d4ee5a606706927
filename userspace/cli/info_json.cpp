// SPDX-License-Identifier: MIT
#include <nlohmann/json.hpp>

#include "info.hpp"

namespace sluice::cli {

namespace {

using nlohmann::json;

/// A number, or null if it is not known.
json known(double value)
{
	return value > 0 ? json(value) : json();
}

json known(int value)
{
	return value >= 0 ? json(value) : json();
}

const char *text(acs redirect)
{
	return redirect == acs::direct	     ? "direct"
	       : redirect == acs::redirected ? "redirected"
					     : "not known";
}

json pci_json(const pci_function &pci)
{
	json ports = json::array();

	for (const pci_port &port : pci.ports)
		ports.push_back(
			{{"address", port.address}, {"acs", text(port.redirect)}});
	return {
		{"address", pci.address},
		{"host_bridge", pci.host_bridge},
		{"numa_node", known(pci.numa_node)},
		{"iommu_group", known(pci.iommu_group)},
		{"iommu_mode", pci.iommu_mode},
		{"lanes", pci.link.lanes},
		{"most_lanes", pci.link.most_lanes},
		{"bytes_per_second", known(pci.link.bytes_per_second())},
		{"bridges", std::move(ports)},
	};
}

json gpu_json(const topology &t, const topology::gpu &g)
{
	json links = json::array();

	for (const auto &link : g.links)
		links.push_back({{"gpu", t.gpus()[link.gpu].name},
				 {"hops", link.hops},
				 {"bytes_per_second", known(link.bytes_per_second)}});
	return {
		{"name", g.name},
		{"driver", g.driver},
		{"product", g.product},
		{"render_node", g.render_node},
		{"pci", pci_json(g.pci)},
		{"vram_bytes", g.vram_bytes},
		{"visible_vram_bytes", g.visible_vram_bytes},
		{"kfd_id", g.kfd_id},
		{"hive", g.hive},
		{"engines", g.engines},
		{"svm", g.svm},
		{"xgmi", std::move(links)},
	};
}

json kernel_json(const topology::kernel &k)
{
	auto found = [&k](bool is) { return k.symbols ? json(is) : json(); };

	return {
		{"release", k.release},
		{"p2pdma", found(k.p2pdma)},
		{"device_memory_alias", found(k.alias)},
		{"amdkfd_alias", found(k.kfd_alias)},
		{"cpu_forwards", k.cpu_forwards},
		{"iommu", k.iommu},
	};
}

} // namespace

json route_json(std::string_view a, std::string_view b, const route &way)
{
	return {
		{"between", {a, b}},
		{"path", name(way.how)},
		{"steps", way.steps},
		{"limit", way.limit},
		{"bytes_per_second", known(way.bytes_per_second)},
		{"why_not_better", way.why_not_better},
		{"remedies", way.remedies},
		{"not_known", way.not_known},
	};
}

json info_json(const topology &t)
{
	json all{{"kernel", kernel_json(t.running())}};
	auto locations = t.locations();

	for (const char *list : {"nodes", "gpus", "nics", "disks", "routes"})
		all[list] = json::array();
	for (const auto &n : t.nodes())
		all["nodes"].push_back({{"id", n.id},
					{"cpus", n.cpus},
					{"bytes", n.bytes},
					{"distances", n.distances}});
	for (const auto &g : t.gpus())
		all["gpus"].push_back(gpu_json(t, g));
	for (const auto &n : t.nics())
		all["nics"].push_back({{"name", n.name},
				       {"driver", n.driver},
				       {"interface", n.interface},
				       {"pci", n.pci ? pci_json(*n.pci) : json()},
				       {"software", !n.pci},
				       {"infiniband", n.infiniband},
				       {"active", n.active},
				       {"bits_per_second", known(n.bits_per_second)}});
	for (const auto &d : t.disks())
		all["disks"].push_back({{"name", d.name},
					{"model", d.model},
					{"bytes", d.bytes},
					{"pci", pci_json(d.pci)}});
	for (size_t i = 0; i < locations.size(); i++)
		for (size_t j = i + 1; j < locations.size(); j++)
			if (auto way = t.explain(locations[i], locations[j]))
				all["routes"].push_back(
					route_json(t.name_of(locations[i]),
						   t.name_of(locations[j]), *way));
	return all;
}

} // namespace sluice::cli
