// SPDX-License-Identifier: MIT
#include "peer_rules.hpp"

#include <algorithm>
#include <array>
#include <format>
#include <span>

namespace sluice {

namespace {

/// A function and the bridges above it.
struct hop {
	const std::string &address;
	acs redirect;
	const pci_link &link;
};

std::vector<hop> way_up(const pci_function &of)
{
	std::vector<hop> way{{of.address, of.redirect, of.link}};

	for (const pci_port &port : of.ports)
		way.push_back({port.address, port.redirect, port.link});
	return way;
}

// pci_p2pdma_whitelist[]: host bridges that forward between their root ports, and,
// if not only_inside, to other host bridges. Device 0 is any.
constexpr uint32_t intel = 0x8086, google = 0x1ae0, nvidia = 0x10de;
struct listed_bridge {
	uint32_t vendor, device;
	bool only_inside = false;
};
constexpr std::array whitelist = {
	listed_bridge{intel, 0x3c00, true}, listed_bridge{intel, 0x3c01, true},
	listed_bridge{intel, 0x2f00, true}, listed_bridge{intel, 0x2f01, true},
	listed_bridge{intel, 0x2030},	    listed_bridge{intel, 0x2031},
	listed_bridge{intel, 0x2032},	    listed_bridge{intel, 0x2033},
	listed_bridge{intel, 0x2020},	    listed_bridge{intel, 0x09a2},
	listed_bridge{intel, 0x0b25},	    listed_bridge{intel, 0x0cfe},
	listed_bridge{intel, 0x11fb},	    listed_bridge{intel, 0x1212},
	listed_bridge{intel, 0x1216},	    listed_bridge{intel, 0x4940},
	listed_bridge{intel, 0x4942},	    listed_bridge{intel, 0x4944},
	listed_bridge{intel, 0x4946},	    listed_bridge{intel, 0x4948},
	listed_bridge{google, 0},	    listed_bridge{nvidia, 0x2f95},
	listed_bridge{nvidia, 0x2f96},	    listed_bridge{nvidia, 0x2f97},
	listed_bridge{nvidia, 0x2f98},
};

/// What the bridges on the way say about ACS.
void note_acs(peer_verdict &verdict, std::span<const hop> way)
{
	for (const hop &at : way) {
		if (at.redirect == acs::redirected) {
			verdict.redirected = true;
			verdict.redirecting.push_back(at.address);
		} else if (at.redirect == acs::not_known) {
			verdict.acs_known = false;
		}
	}
}

/// A user who may not read the registers sees the IOMMU groups. ACS isolates devices of
/// different groups from each other. A group in common tells nothing: it is enough that
/// a bridge above both lacks a part of ACS.
void infer_acs(peer_verdict &verdict, const pci_function &a, const pci_function &b)
{
	if (verdict.acs_known || verdict.redirected)
		return;
	if (a.iommu_group < 0 || b.iommu_group < 0 || a.iommu_group == b.iommu_group)
		return;
	verdict.acs_known = verdict.redirected = true;
}

void note_links(peer_verdict &verdict, std::span<const hop> way)
{
	for (const hop &at : way)
		verdict.links.emplace_back(at.address, at.link);
}

} // namespace

const topology::host_bridge *peer_rules::bridge(const std::string &name) const
{
	auto found = std::ranges::find(topology_.bridges_, name,
				       &topology::host_bridge::name);

	return found == topology_.bridges_.end() ? nullptr : &*found;
}

bool peer_rules::listed(const std::string &host_bridge, bool same) const
{
	const topology::host_bridge *is = bridge(host_bridge);

	return is && std::ranges::any_of(whitelist, [&](const listed_bridge &entry) {
		return entry.vendor == is->vendor &&
		       (entry.device == 0 || entry.device == is->device) &&
		       (same || !entry.only_inside);
	});
}

bool peer_rules::forwards(const pci_function &a, const pci_function &b) const
{
	bool same = a.host_bridge == b.host_bridge;

	return topology_.kernel_.cpu_forwards ||
	       (listed(a.host_bridge, same) && listed(b.host_bridge, same));
}

std::string peer_rules::unlisted(const pci_function &a, const pci_function &b) const
{
	bool same = a.host_bridge == b.host_bridge;
	std::string text;

	for (const std::string *name : {&a.host_bridge, &b.host_bridge}) {
		const topology::host_bridge *is = bridge(*name);

		if (listed(*name, same) || (name == &b.host_bridge && same))
			continue;
		text += text.empty() ? "" : ", ";
		text += is ? std::format("{} ({:04x}:{:04x})", *name, is->vendor,
					 is->device)
			   : *name;
	}
	return text;
}

peer_verdict peer_rules::ask(const pci_function &provider,
			     const pci_function &client) const
{
	peer_verdict verdict;
	auto from = way_up(provider), to = way_up(client);
	auto same = [](const hop &a, const hop &b) { return a.address == b.address; };
	auto at = std::ranges::find_first_of(from, to, same);

	verdict.below_one_port = at != from.end();
	if (verdict.below_one_port) {
		auto other = std::ranges::find_if(
			to, [&](const hop &h) { return same(h, *at); });

		// The kernel counts the bridge above both on one side.
		note_acs(verdict, {from.begin(), at + 1});
		note_acs(verdict, {to.begin(), other});
		infer_acs(verdict, provider, client);
		note_links(verdict, {from.begin(), at});
		note_links(verdict, {to.begin(), other});
		if (!verdict.redirected) {
			verdict.how = peer_verdict::map::bus;
			return verdict;
		}
	}
	verdict.links.clear();
	note_links(verdict, from);
	note_links(verdict, to);
	if (forwards(provider, client))
		verdict.how = peer_verdict::map::host_bridge;
	return verdict;
}

} // namespace sluice
