// SPDX-License-Identifier: MIT
// Collectives of libsluice's group: the library's own code plans which rank copies what
// on which engines, the kernel's makes the packets.
#pragma once

#include "latte.hpp"

#include "group_plan.hpp"

#include <optional>

namespace sluice::timing {

struct Exchange {
	detail::pattern kind;
	unsigned ranks;
	u64 block; // bytes that one rank has for another; in a send, of a message
	bool in_place = false, prelaunch = false;
	// For a send: messages of each sender, which go in turns to the receivers that
	// follow it.
	u32 messages = 1;
	unsigned senders = 1, receivers = 1;
};

std::string name(const Exchange &e);

// A variant, or what the library chooses.
Program exchange_program(const Exchange &e, variant how);
Time exchange_time(const Exchange &e, variant how, const Machine &m);
variant chosen(const Exchange &e);

// The same work as DMA-Latte's, size of all ranks together.
Exchange exchange_of(Collective c, Way way, bool prelaunch, u64 size);
variant variant_of(Collective c, Way way);

} // namespace sluice::timing
