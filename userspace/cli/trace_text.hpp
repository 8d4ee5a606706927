// SPDX-License-Identifier: MIT
// Lines of tracefs. Source: Documentation/trace/ftrace.rst of the kernel; the text of
// events is in their TP_printk().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cli {

struct trace_event {
	std::string task; ///< name of the thread that it was on
	uint64_t pid = 0;
	double us = 0;	  ///< CLOCK_MONOTONIC
	std::string name; ///< "drm_sched_job_run"
	std::string text; ///< what follows
	/// "a=1, b=2" and "a 1, b 2" alike.
	std::vector<std::pair<std::string, std::string>> fields;

	/// Empty if there is no such field.
	std::string_view field(std::string_view key) const;
	/// No value if it is missing or not a number; 0x is understood.
	std::optional<int64_t> number(std::string_view key) const;
};

/// No value: a comment, or an unexpected line.
std::optional<trace_event> parse_trace_line(std::string_view line);

/// Is it no event, but a comment or a note about lost events?
bool is_remark(std::string_view line);

/// How many events were lost according to a line of per_cpu/cpuN/stats.
uint64_t lost_events(std::string_view line);

} // namespace sluice::cli
