// SPDX-License-Identifier: MIT
// Published results, and how far the model is from them.
#pragma once

#include "latte.hpp"

#include <span>

namespace sluice::timing {

// Speed-up over pcpy without prelaunch, one row of the paper's artifact.
struct PaperRow {
	Collective collective;
	u64 size;
	// pcpy prelaunched; pair; pair prelaunched; b2b; b2b prelaunched
	std::array<double, 5> speedup;
	bool judge; // no parameter was fitted to it
};

constexpr std::array<std::pair<Way, bool>, 5> paper_columns{{{Way::pcpy, true},
							     {Way::pair, false},
							     {Way::pair, true},
							     {Way::b2b, false},
							     {Way::b2b, true}}};

std::span<const PaperRow> paper_rows();

// Which prelaunched variant is the quickest up to a size, of 1 KB to 1 GB.
Way paper_winner(Collective c, u64 size);
Way model_winner(Collective c, u64 size, const Machine &m);

struct PaperPhases {
	u64 bytes;
	std::array<double, 4> percent; // control, schedule, copy, sync
};

std::span<const PaperPhases> paper_phases();

// The speed-ups of a row by the model.
std::array<double, 5> model_row(const PaperRow &row, const Machine &m);

// Errors are model / paper - 1.
struct Score {
	double rms = 0, worst = 0; // worst has its sign
	const PaperRow *worst_row = nullptr;
	std::size_t worst_column = 0, cells = 0;
};

enum class Cells { fitted, judge, all };
Score score(Cells which, const Machine &m);

// The fitted parameters of mi300x.toml, moved until no step of 0.2 % improves the
// score of Cells::fitted. No chance in it: the same start gives the same end.
Machine fit(MachineFile from);

} // namespace sluice::timing
