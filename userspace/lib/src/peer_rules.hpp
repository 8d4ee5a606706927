// SPDX-License-Identifier: MIT
// Whether a PCI device reaches the memory of another, by the rules of the kernel:
// calc_map_type_and_dist() in drivers/pci/p2pdma.c.
#pragma once

#include <string>
#include <vector>

#include "sluice/topology.hpp"

namespace sluice {

struct peer_verdict {
	enum class map : uint8_t {
		bus,	     ///< by bus address: from port to port of a switch
		host_bridge, ///< by the host bridge
		none,
	} how = map::none;
	bool below_one_port = false; ///< a bridge has both below it
	bool redirected = false;     ///< ... but ACS sends them to the host bridge
	bool acs_known = true;
	std::vector<std::string> redirecting; ///< addresses of the bridges that do
	/// Links that the data take, for the rate.
	std::vector<std::pair<std::string, pci_link>> links;
};

class peer_rules {
public:
	explicit peer_rules(const topology &of) : topology_(of) {}

	/// @param provider whose memory it is
	peer_verdict ask(const pci_function &provider,
			 const pci_function &client) const;

	/// Host bridges of both that the kernel does not list, as text for people.
	std::string unlisted(const pci_function &a, const pci_function &b) const;

private:
	bool listed(const std::string &host_bridge, bool same) const;
	bool forwards(const pci_function &a, const pci_function &b) const;
	const topology::host_bridge *bridge(const std::string &name) const;

	const topology &topology_;
};

} // namespace sluice
