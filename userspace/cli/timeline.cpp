// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <algorithm>

namespace sluice::cli {

namespace {

using json = nlohmann::ordered_json;

json named(const char *what, int pid, int tid, const std::string &name)
{
	return {{"ph", "M"},
		{"name", what},
		{"pid", pid},
		{"tid", tid},
		{"args", {{"name", name}}}};
}

json complete(int pid, int tid, const std::string &name, double from, double to,
	      json args)
{
	json e = {{"ph", "X"},	{"name", name}, {"pid", pid},
		  {"tid", tid}, {"ts", from},	{"dur", to - from}};

	if (!args.is_null())
		e["args"] = std::move(args);
	return e;
}

} // namespace

int timeline::group_of(const std::string &group)
{
	auto [at, made] =
		groups_.try_emplace(group, static_cast<int>(groups_.size()) + 1);

	if (made)
		events_.push_back(named("process_name", at->second, 0, group));
	return at->second;
}

timeline::place timeline::place_of(const std::string &group, const std::string &track,
				   size_t lane)
{
	int pid = group_of(group);
	auto [at, made] = tracks_.try_emplace(
		{group, track, lane}, place{pid, static_cast<int>(tracks_.size()) + 1});

	if (made)
		events_.push_back(
			named("thread_name", pid, at->second.tid,
			      lane > 1 ? track + " " + std::to_string(lane) : track));
	return at->second;
}

void timeline::add_slice(place where, const std::string &name, double from_us,
			 double to_us, arguments args)
{
	events_.push_back(
		complete(where.pid, where.tid, name, from_us, to_us, std::move(args)));
}

void timeline::slice(const std::string &group, const std::string &track,
		     const std::string &name, double from_us, double to_us,
		     arguments args)
{
	add_slice(place_of(group, track, 0), name, from_us, std::max(from_us, to_us),
		  std::move(args));
}

void timeline::span(const std::string &group, const std::string &track,
		    const std::string &name, double from_us, double to_us,
		    arguments args)
{
	spans_[{group, track}].push_back(
		{name, from_us, std::max(from_us, to_us), std::move(args)});
}

void timeline::instant(const std::string &group, const std::string &track,
		       const std::string &name, double us, arguments args)
{
	auto [pid, tid] = place_of(group, track, 0);

	events_.push_back({{"ph", "i"},
			   {"s", "t"},
			   {"name", name},
			   {"pid", pid},
			   {"tid", tid},
			   {"ts", us}});
	if (!args.is_null())
		events_.back()["args"] = std::move(args);
}

void timeline::counter(const std::string &group, const std::string &name, double us,
		       double value)
{
	events_.push_back({{"ph", "C"},
			   {"name", name},
			   {"pid", group_of(group)},
			   {"ts", us},
			   {"args", {{"value", value}}}});
}

// Each span goes to the first track on which the previous one has ended.
void timeline::lay_out()
{
	for (auto &[where, all] : spans_) {
		std::vector<double> ends;

		std::ranges::stable_sort(all, {}, &waiting::from);
		for (waiting &w : all) {
			auto lane = static_cast<size_t>(
				std::ranges::find_if(ends, [&](double end) {
				return end <= w.from;
			}) - ends.begin());

			if (lane == ends.size())
				ends.push_back(0);
			ends[lane] = w.to;
			add_slice(place_of(where.first, where.second, lane + 1), w.name,
				  w.from, w.to, std::move(w.args));
		}
	}
	spans_.clear();
}

json timeline::json(const trace_node &node)
{
	nlohmann::ordered_json others = nlohmann::ordered_json::array();

	lay_out();
	for (const clock_offset &other : node.others)
		others.push_back({{"boot_id", other.boot_id},
				  {"offset_ns", other.ns},
				  {"uncertainty_ns", other.uncertainty_ns}});
	return {{"displayTimeUnit", "ns"},
		{"otherData",
		 {{"made_by", "sluice trace"},
		  {"node", node.name},
		  {"kernel", node.kernel},
		  {"boot_id", node.boot_id},
		  {"clock", "CLOCK_MONOTONIC"},
		  {"realtime_minus_monotonic_ns", node.realtime_ns},
		  {"lost_events", node.lost},
		  {"other_clocks", std::move(others)}}},
		{"traceEvents", events_}};
}

} // namespace sluice::cli
