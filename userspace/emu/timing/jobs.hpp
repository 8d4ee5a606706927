// SPDX-License-Identifier: MIT
// Batches of Sluice as steps of a program. The kernel's own code makes their packets.
#pragma once

#include "plan.h"
#include "program.hpp"

#include <map>
#include <span>

namespace sluice::emu::sdma {
struct Packet;
struct Poll;
} // namespace sluice::emu::sdma

namespace sluice::timing {

// Where things are in the addresses of these batches. There is as much room again
// behind a GPU's data, and in host memory.
constexpr u64 gpu_memory(unsigned gpu)
{
	return u64{gpu + 1} << 40;
}
constexpr u64 host_memory = u64{64} << 40;
constexpr u64 own_memory = u64{1} << 39;

// For an MI300X: a bit for each engine, and for those that face the host.
constexpr u32 all_engines = 0xffff, host_engines = 3;

// What the planner is told besides descriptors.
struct Placing {
	plan_placement placement;
	u32 engines = all_engines;
	bool to_host = false;
	u32 links = 0; // to other GPUs that the batch goes over
};

// One thread hands over batches one after the other, and then sleeps until the last
// job's interrupt. A batch with a wait waits for a word that the thread writes once
// all engines have got there.
class Jobs {
public:
	Jobs();
	void submit(unsigned gpu, std::vector<plan_desc> descs, const Placing &how,
		    bool prelaunch);
	Program finish();

private:
	void add_job(unsigned gpu, u32 engine, std::span<const u32> words);
	void add_packet(unsigned gpu, u32 lane, u32 submit,
			const emu::sdma::Packet &packet);
	void bind(unsigned gpu, u32 step, const emu::sdma::Poll &poll);
	u32 lane(unsigned gpu, u32 engine);
	void release();

	Program p_;
	std::map<std::pair<unsigned, u32>, u32> lanes_;
	std::map<u64, u32> fences_;
	std::map<unsigned, std::vector<u32>> held_;
	std::vector<u32> traps_;
};

} // namespace sluice::timing
