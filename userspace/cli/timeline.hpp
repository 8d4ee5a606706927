// SPDX-License-Identifier: MIT
// A trace in the "Trace Event Format", as JSON, which Perfetto (https://ui.perfetto.dev)
// and chrome://tracing read.
#pragma once

#include <istream>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "nic_counters.hpp"
#include "sluice/error.hpp"
#include "trace_text.hpp"

namespace sluice::cli {

/// What a node knows of another node's clock: add it to the node's own time.
struct clock_offset {
	std::string boot_id; ///< of the other node
	int64_t ns = 0, uncertainty_ns = 0;
};

/// The node that recorded the trace, and its clock.
struct trace_node {
	std::string name, boot_id, kernel;
	int64_t realtime_ns = 0; ///< CLOCK_REALTIME minus CLOCK_MONOTONIC
	uint64_t lost = 0;	 ///< events for which there was no room
	std::vector<clock_offset> others;
};

/// Tracks with slices, by the names of a group (a GPU, a NIC, a process) and of the
/// track in it.
class timeline {
public:
	using arguments = nlohmann::ordered_json;

	void slice(const std::string &group, const std::string &track,
		   const std::string &name, double from_us, double to_us,
		   arguments args = {});
	/// Slices that may overlap: they go to as many tracks as it takes.
	void span(const std::string &group, const std::string &track,
		  const std::string &name, double from_us, double to_us,
		  arguments args = {});
	void instant(const std::string &group, const std::string &track,
		     const std::string &name, double us, arguments args = {});
	void counter(const std::string &group, const std::string &name, double us,
		     double value);

	/// Puts the spans on tracks, in order of their beginning.
	nlohmann::ordered_json json(const trace_node &node);

private:
	struct place {
		int pid, tid;
	};
	struct waiting {
		std::string name;
		double from, to;
		arguments args;
	};
	/// @p lane 0: for slices; 1 and up: for spans, the first of which has no number.
	place place_of(const std::string &group, const std::string &track, size_t lane);
	void add_slice(place where, const std::string &name, double from_us,
		       double to_us, arguments args);
	int group_of(const std::string &group);
	void lay_out();

	nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
	std::map<std::string, int> groups_;
	std::map<std::tuple<std::string, std::string, size_t>, place> tracks_;
	std::map<std::pair<std::string, std::string>, std::vector<waiting>> spans_;
};

/// A track for each ring of each GPU; for each process one for its batches, one for its
/// io_uring requests and one for each stream step; and one for each NIC.
timeline timeline_of(const std::vector<trace_event> &events,
		     const std::vector<nic_sample> &samples);

/// Read a trace. @p name: of the file, for errors. errc::input: it is not JSON, or is
/// nested deeper than any trace.
result<nlohmann::ordered_json> read_trace(std::istream &from, const std::string &name);

struct merged_trace {
	nlohmann::ordered_json json;
	clock_offset offset;  ///< what was added to the times of the second
	std::string how;      ///< how the offset was found
	bool bounded = false; ///< uncertainty_ns is known
};

/// Two traces on the clock of the first. @p given: the offset, if the user knows it.
/// errc::input: one of them is not a trace of sluice.
result<merged_trace> merge_traces(const nlohmann::ordered_json &a,
				  const nlohmann::ordered_json &b,
				  std::optional<int64_t> given);

} // namespace sluice::cli
