// SPDX-License-Identifier: MIT
// Blocks of a KV cache, from the GPU to host memory.
#pragma once

#include "simulate.hpp"

namespace sluice::timing {

enum class Fetch : u8 {
	loop,	    // a submission for each block, which waits for the one before
	batch,	    // one batch, placed by AUTO
	prelaunched // the same, behind a wait
};

Program fetch_program(Fetch how, u32 blocks, u64 bytes);
Time fetch_time(Fetch how, u32 blocks, u64 bytes, const Machine &m);

} // namespace sluice::timing
