// SPDX-License-Identifier: MIT
// Virtual time: runs a program on a machine. No clock, no threads, no randomness.
#pragma once

#include "machine.hpp"
#include "program.hpp"

namespace sluice::timing {

// The lane of a step is busy until end and then goes on with the next step; other
// lanes see what it did at effect, which may be later.
struct Span {
	Time start = 0, end = 0, effect = 0;
};

struct Batch {
	u32 submit;
	Time start, end; // from the host's first store until the last effect
};

struct Result {
	std::vector<Span> spans; // of each step
	std::vector<Batch> batches;
	Time end = 0;
};

// When the last step of the host ends, from the first store that releases a poll or,
// if there is none, from the start.
Time measured(const Program &program, const Machine &machine);

// Throws std::runtime_error if steps wait for each other in a circle.
Result simulate(const Program &program, const Machine &machine);

} // namespace sluice::timing
