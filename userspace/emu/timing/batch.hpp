// SPDX-License-Identifier: MIT
// The same work by Sluice: batches, of which the kernel's own code makes the packets.
#pragma once

#include "latte.hpp"
#include "plan.h"

namespace sluice::timing {

// Where things are in the addresses of these batches.
constexpr u64 gpu_memory(unsigned gpu) { return u64{gpu + 1} << 40; }
constexpr u64 host_memory = u64{64} << 40;

// As a collective of DMA-Latte, one batch for each GPU, all handed over by one thread
// which then sleeps until the last job's interrupt. Prelaunched, each batch waits for a
// word that the thread writes when all are handed over.
Program batch_program(const Variant &v, u64 size);
Time batch_time(const Variant &v, u64 size, const Machine &m);

// Blocks of a KV cache, from the GPU to host memory.
enum class Fetch : u8 {
	loop,	    // a submission for each block, which waits for the one before
	batch,	    // one batch, placed by AUTO
	prelaunched // the same, behind a wait
};

Program fetch_program(Fetch how, u32 blocks, u64 bytes);
Time fetch_time(Fetch how, u32 blocks, u64 bytes, const Machine &m);

} // namespace sluice::timing
