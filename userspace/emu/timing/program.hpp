// SPDX-License-Identifier: MIT
// What hosts and engines did, without times: steps in lanes. A lane is a queue of
// an engine or a thread of the host, and does one step after the other. A step
// begins when its lane is free and the steps that it comes after have taken effect.
#pragma once

#include "types.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace sluice::timing {

using emu::Path;
using emu::Place;
using emu::u32;
using emu::u64;
using emu::u8;

enum class Kind : u8 {
	// of a thread of the host
	submit, // packets are stored and a doorbell is rung
	store,	// a word that an engine polls is written
	await,	// by looking at the words that the steps in `after` write
	sleep,	// until the interrupts of the steps in `after`
	// of an engine: packets
	nop,
	copy,
	broadcast,
	window,
	swap,
	fill,
	write,
	indirect,
	fence,
	trap,
	poll,
	cond_exe,
	atomic,
	ptepde,
	timestamp,
	srbm_write,
};

constexpr bool is_packet(Kind k)
{
	return k >= Kind::nop;
}
const char *name(Kind k);
// Throws std::runtime_error if there is no such name.
Kind kind(std::string_view name);

struct Step {
	Kind kind = Kind::nop;
	u32 lane = 0;
	u64 bytes = 0;	 // that a packet reads, once
	u32 packets = 0; // of a submit: how many it stores
	Place from{}, to{}, to2{};
	std::vector<u32> after{}; // steps, by number
	u32 batch = none;	  // of a packet: the submit that it came by

	static constexpr u32 none = ~0u;
};

struct Lane {
	std::string name;
	bool host = false;
	unsigned gpu = 0, engine = 0; // of a queue
};

struct Program {
	std::vector<Lane> lanes;
	std::vector<Step> steps; // those of a lane are in order

	u32 add(Step s)
	{
		steps.push_back(std::move(s));
		return static_cast<u32>(steps.size() - 1);
	}
};

} // namespace sluice::timing
