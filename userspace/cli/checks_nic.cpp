// SPDX-License-Identifier: MIT
// NICs: ports, memory registration, slots.
#include <algorithm>
#include <cstring>
#include <format>
#include <span>
#include <string_view>

#include "doctor.hpp"
#include "text.hpp"

namespace sluice::cli {

namespace {

/// "0000:04:00" of "0000:04:00.1": the ports of a card are functions of one device.
std::string_view device_of(const topology::nic &n)
{
	return n.pci ? std::string_view(n.pci->address)
			       .substr(0, n.pci->address.find('.'))
		     : std::string_view();
}

check port(const topology::nic &n, std::span<const topology::nic> all)
{
	const std::string name = n.name + " port";
	auto is_up = [](const topology::nic &other) {
		return other.active && other.pci;
	};
	auto is_same_card = [&](const topology::nic &other) {
		return is_up(other) && device_of(other) == device_of(n);
	};

	// Few cards have a cable in each port.
	if (!n.active && std::ranges::any_of(all, is_same_card))
		return {name, verdict::ok, "down; another port of the card is up", ""};
	if (!n.active && n.pci && std::ranges::any_of(all, is_up))
		return {name, verdict::slower, "down; other cards are up",
			"plug in the cable, if a GPU near it needs this card"};
	if (!n.active)
		return {name, verdict::missing,
			std::format("down (interface {})",
				    n.interface.empty() ? "not known" : n.interface),
			"plug in the cable, and ip link set INTERFACE up"};
	// Whether it is software is judged with the paths.
	return {name, verdict::ok,
		std::format("up, {}, {}{}", bits_text(n.bits_per_second),
			    n.driver.empty() ? "driver not known" : n.driver,
			    n.pci ? "" : " (software: the CPU moves each byte)"),
		""};
}

check registration(const topology::nic &n, const nic_facts &known)
{
	const std::string name = n.name + " memory";

	if (known.open_errno.value_or(0) != 0)
		return {name, verdict::missing,
			std::format("verbs cannot open it: {}",
				    std::strerror(*known.open_errno)),
			"install rdma-core's library of its driver "
			"(ibverbs-providers), and "
			"see that /dev/infiniband/uverbs* may be opened"};
	if (!known.on_demand)
		return {name, verdict::not_known, "could not be asked", ""};
	std::string dmabuf =
		known.dmabuf ? *known.dmabuf ? "; dma-bufs too" : "; no dma-bufs" : "";
	if (*known.on_demand)
		return {name, verdict::ok,
			"on demand (ODP): nothing is pinned" + dmabuf, ""};
	if (known.on_demand_wrong)
		return {name, verdict::slower,
			"ODP moves wrong bytes on this kernel: host memory is pinned" +
				dmabuf,
			"boot a kernel with series 04, which mends it"};
	return {name, verdict::slower,
		"no paging on demand (ODP): host memory is pinned" + dmabuf,
		"use a NIC with ODP for RC, as ConnectX-5 and later"};
}

} // namespace

void check_nics(const facts &of, checks &to)
{
	auto all = of.machine.nics();

	if (all.empty()) {
		to.push_back({"NIC", verdict::missing,
			      "none with RDMA: nothing is sent",
			      "load the driver of the NIC; for a test, rdma link "
			      "add rxe0 "
			      "type rxe netdev INTERFACE"});
		return;
	}
	for (size_t i = 0; i < all.size(); i++) {
		const topology::nic &card = all[i];

		to.push_back(port(card, all));
		to.push_back(registration(card, of.nics[i]));
		if (card.pci)
			to.push_back(slot_check(card.name, card.pci->link));
	}
}

} // namespace sluice::cli
