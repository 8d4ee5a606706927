// SPDX-License-Identifier: MIT
// Timelines as files: what the emulator recorded, and virtual time for Perfetto.
#pragma once

#include "simulate.hpp"

#include <span>

namespace sluice::timing {

struct TraceFile {
	std::string name, text;
};

// A program of what "timeline dump" of one or more GPUs gave, in real time, of
// which only the order is used. The host is one thread: before it rings a doorbell
// it has slept until the earlier interrupts. A poll waits for the last fence or
// atomic on its word that began before the poll ended; if there is none, for
// nothing. Throws std::runtime_error that names file, event and error.
Program read_trace(std::span<const TraceFile> files);

// Chrome trace JSON, which Perfetto opens.
std::string write_trace(const Program &p, const Result &r);

} // namespace sluice::timing
