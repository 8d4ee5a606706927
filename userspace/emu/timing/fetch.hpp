// SPDX-License-Identifier: MIT
// Blocks of a KV cache, between a GPU and host memory.
#pragma once

#include "simulate.hpp"

namespace sluice::timing {

enum class Fetch : u8 {
	loop,	    // a submission for each block, which waits for the one before
	batch,	    // one batch, placed by AUTO
	prepared,   // the same, with its packets there already
	prelaunched // the same after a wait, timed from its release
};

enum class Direction : u8 {
	swap_out, // from the GPU to host memory
	fetch,	  // from host memory to the GPU
	both,	  // by turns: a scheduler that makes room for what it fetches
};

Program fetch_program(Fetch how, Direction where, u32 blocks, u64 bytes);
// Time until the engines of a batch begin: the instructions of docs/uapi.md at the rate
// of the parameter host_instruction.
Time host_time(Fetch how, u32 blocks, std::size_t engines, const Machine &m);
// Time of host and engines.
Time fetch_time(Fetch how, Direction where, u32 blocks, u64 bytes, const Machine &m);

} // namespace sluice::timing
