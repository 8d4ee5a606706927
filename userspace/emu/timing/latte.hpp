// SPDX-License-Identifier: MIT
// The collectives of DMA-Latte (arXiv 2511.06605) as its public program runs them:
// eight GPUs and one host thread. It stores the packets of one command after the
// other, each in an engine's queue, and rings a doorbell after each. Every command
// ends with an atomic on a word of host memory, which the thread polls.
#pragma once

#include "simulate.hpp"

namespace sluice::timing {

enum class Collective : u8 { all_gather, all_to_all };
// pair: broadcast in an all-gather, swap in an all-to-all
enum class Way : u8 { pcpy, pair, b2b };

struct Variant {
	Collective collective;
	Way way;
	bool prelaunch;
};

// What one engine of one GPU does: copies to these GPUs, or one packet for all.
struct Command {
	unsigned gpu, engine;
	Kind kind;
	std::vector<unsigned> to;
};

constexpr unsigned latte_gpus = 8;

std::vector<Command> latte_commands(Collective c, Way way);
// size: of the whole collective; each copy has an eighth of it.
Program latte_program(const Variant &v, u64 size);
// As the program times it: prelaunched, from the first store that releases a poll.
Time latte_time(const Variant &v, u64 size, const Machine &m);

// One copy to another GPU, as the program splits its time.
struct Phases {
	Time control, schedule, copy, sync;

	Time total() const { return control + schedule + copy + sync; }
};

Phases copy_phases(u64 bytes, const Machine &m);

} // namespace sluice::timing
