// SPDX-License-Identifier: MIT
// Two traces on one clock.
#include <cmath>
#include <format>
#include <utility>

#include "timeline.hpp"

namespace sluice::cli {

namespace {

using json = nlohmann::ordered_json;

/// The content of a trace of sluice. Any of it may be missing or of another type: the
/// file is not trusted.
struct opened {
	const json *events = nullptr;
	std::string node, boot_id;
	std::optional<int64_t> realtime;
	int64_t lost = 0; ///< events for which its buffer had no room
	std::vector<clock_offset> others;
};

std::string text_of(const json &in, const char *key)
{
	auto at = in.find(key);

	return at != in.end() && at->is_string() ? at->get<std::string>() : "";
}

/// No value, too, if the number is so large that the sum of two would overflow.
/// Nanoseconds since 1970 stay below that until 2116.
std::optional<int64_t> number_of(const json &in, const char *key)
{
	constexpr int64_t most = (int64_t{1} << 62) - 1;
	auto at = in.find(key);

	if (at == in.end() || !at->is_number_integer())
		return std::nullopt;
	// An unsigned number may be too large for a signed one.
	if (at->is_number_unsigned() && at->get<uint64_t>() > most)
		return std::nullopt;
	auto n = at->get<int64_t>();
	return n >= -most && n <= most ? std::optional(n) : std::nullopt;
}

/// A process of an event: an int, as in Perfetto.
std::optional<int64_t> pid_of(const json &event)
{
	auto pid = event.is_object() ? number_of(event, "pid") : std::nullopt;

	return pid && std::in_range<int32_t>(*pid) ? pid : std::nullopt;
}

void add_others(const json &data, opened &to)
{
	auto all = data.find("other_clocks");

	if (all == data.end() || !all->is_array())
		return;
	for (const json &each : *all) {
		if (!each.is_object())
			continue;
		auto ns = number_of(each, "offset_ns");
		auto bound = number_of(each, "uncertainty_ns");
		if (ns && bound)
			to.others.push_back({text_of(each, "boot_id"), *ns, *bound});
	}
}

result<opened> look_into(const json &trace, const char *which)
{
	opened o;

	if (!trace.is_object() || !trace.contains("traceEvents") ||
	    !trace["traceEvents"].is_array())
		return fail(errc::input, which,
			    "it is no trace: it has no array \"traceEvents\"");
	o.events = &trace["traceEvents"];
	auto data = trace.find("otherData");
	if (data == trace.end() || !data->is_object())
		return o;
	o.node = text_of(*data, "node");
	o.boot_id = text_of(*data, "boot_id");
	o.realtime = number_of(*data, "realtime_minus_monotonic_ns");
	o.lost = number_of(*data, "lost_events").value_or(0);
	add_others(*data, o);
	return o;
}

const clock_offset *measured(const opened &by, const opened &of)
{
	for (const clock_offset &each : by.others)
		if (!each.boot_id.empty() && each.boot_id == of.boot_id)
			return &each;
	return nullptr;
}

/// Finds what has to be added to the times of @p b.
result<void> find_offset(const opened &a, const opened &b, std::optional<int64_t> given,
			 merged_trace &to)
{
	to.bounded = true;
	if (given) {
		to.offset.ns = *given;
		to.how = "as given by --offset-ns";
		to.bounded = false;
	} else if (!a.boot_id.empty() && a.boot_id == b.boot_id) {
		to.how = "one kernel, one clock";
	} else if (const clock_offset *by_b = measured(b, a)) {
		to.offset = *by_b;
		to.how = "pings of the second to the first";
	} else if (const clock_offset *by_a = measured(a, b)) {
		to.offset = *by_a;
		to.offset.ns = -by_a->ns;
		to.how = "pings of the first to the second";
	} else if (a.realtime && b.realtime) {
		to.offset.ns = *b.realtime - *a.realtime;
		to.how = "the time of day of both, which may be wrong by whatever "
			 "they are set wrong";
		to.bounded = false;
	} else {
		return fail(errc::input, "merge",
			    "nothing tells how far the clocks are apart; say "
			    "--offset-ns");
	}
	return {};
}

/// Added to the pids of @p b, the result keeps them apart from those of @p a. The pids
/// that sluice writes begin at 1, those of other programs need not.
int64_t pids_apart(const json &a, const json &b)
{
	int64_t most = 0, least = 1;

	for (const json &e : a)
		most = std::max(most, pid_of(e).value_or(0));
	for (const json &e : b)
		least = std::min(least, pid_of(e).value_or(1));
	return most + 1 - least;
}

/// Prefixes the processes of a node with its name.
json moved(json e, const std::string &node, int64_t pids, double us)
{
	if (!e.is_object())
		return e;
	if (auto pid = pid_of(e))
		e["pid"] = *pid + pids;
	if (auto at = e.find("ts"); at != e.end() && at->is_number())
		*at = at->get<double>() + us;
	if (text_of(e, "name") == "process_name" && e.contains("args") &&
	    e["args"].is_object())
		e["args"]["name"] = node + ": " + text_of(e["args"], "name");
	return e;
}

} // namespace

// Copying and writing a value take stack for each level of nesting.
result<json> read_trace(std::istream &from, const std::string &name)
{
	constexpr int most_levels = 64;
	bool deep = false;
	auto enter = [&deep](int level, json::parse_event_t, const json &) {
		deep |= level > most_levels;
		return level <= most_levels;
	};
	json all = json::parse(from, enter, false);

	if (deep)
		return fail(errc::input, name, "it is nested too deep for a trace");
	if (all.is_discarded())
		return fail(errc::input, name, "it is no JSON");
	return all;
}

result<merged_trace> merge_traces(const json &first, const json &second,
				  std::optional<int64_t> given)
{
	merged_trace m;
	auto a = look_into(first, "the first"), b = look_into(second, "the second");

	if (!a || !b)
		return std::unexpected(a ? b.error() : a.error());
	if (auto found = find_offset(*a, *b, given, m); !found)
		return std::unexpected(found.error());
	std::string name_a = a->node.empty() ? "a" : a->node;
	std::string name_b = b->node.empty() ? "b" : b->node;
	if (name_a == name_b) {
		name_a += " (1)";
		name_b += " (2)";
	}
	json events = json::array();
	int64_t pids = pids_apart(*a->events, *b->events);
	for (const json &e : *a->events)
		events.push_back(moved(e, name_a, 0, 0));
	for (const json &e : *b->events)
		events.push_back(
			moved(e, name_b, pids, static_cast<double>(m.offset.ns) / 1e3));
	json bound = nullptr;
	if (m.bounded)
		bound = m.offset.uncertainty_ns;
	m.json = {{"displayTimeUnit", "ns"},
		  {"otherData",
		   {{"made_by", "sluice trace merge"},
		    {"clock", "CLOCK_MONOTONIC of " + name_a},
		    {"offset_ns", m.offset.ns},
		    {"uncertainty_ns", bound},
		    {"offset_by", m.how},
		    {"lost_events", a->lost + b->lost}}},
		  {"traceEvents", std::move(events)}};
	return m;
}

} // namespace sluice::cli
