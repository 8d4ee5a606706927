// SPDX-License-Identifier: MIT
// A machine of round numbers, on which times are worked out by hand.
#pragma once

#include "simulate.hpp"

namespace sluice::timing::test {

inline Machine simple()
{
	return {.xgmi_link = 10,
		.pcie_link = 5,
		.engine = 10,
		.broadcast_rate = 0.5,
		.swap_rate = 0.8,
		.doorbell = 30,
		.schedule = 100,
		.indirect = 40,
		.packet = 20,
		.copy_latency = 200,
		.sync_host = 300,
		.sync_local = 50,
		.poll = 70,
		.interrupt = 1000,
		.host_submit = 10,
		.host_packet = 1,
		.host_store = 2,
		.host_word = 3,
		.host_instruction = 0.5};
}

constexpr Place own{Path::vram, 0, 0}, host{Path::system, 0, 0};
constexpr Place peer(unsigned gpu)
{
	return {Path::xgmi, gpu, 0};
}

// One thread, and queues on engines of GPU 0.
inline Program program(std::initializer_list<unsigned> engines)
{
	Program p;

	p.lanes.push_back({"host", true});
	for (unsigned e : engines)
		p.lanes.push_back({"", false, 0, e});
	return p;
}

} // namespace sluice::timing::test
