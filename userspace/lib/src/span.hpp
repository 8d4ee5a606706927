// SPDX-License-Identifier: MIT
// Writes what a stream does to the kernel's trace: a line for each step of a piece.
// `sluice trace` gives its command a descriptor of a trace_marker, whose number is in
// SLUICE_TRACE_FD. Without that there is one test and no system call.
#pragma once

#include <cstdint>

#include "sluice/deadline.hpp"

namespace sluice::detail {

/// The descriptor, or -1.
int trace_descriptor() noexcept;

/// "sluice: step=send.storage piece=3 begin=NS end=NS": CLOCK_MONOTONIC.
void write_span(const char *step, uint64_t piece, clock::time_point begin,
		clock::time_point end) noexcept;

inline void span(const char *step, uint64_t piece, clock::time_point begin,
		 clock::time_point end) noexcept
{
	if (trace_descriptor() >= 0)
		write_span(step, piece, begin, end);
}

} // namespace sluice::detail
