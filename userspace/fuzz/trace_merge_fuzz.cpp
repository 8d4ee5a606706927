// SPDX-License-Identifier: MIT
// Any two files as traces to merge. An input is one file, a zero byte, the other file,
// and after another zero byte the offset that the user gives, if any.
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <sstream>

#include "edge.hpp"
#include "timeline.hpp"

using namespace sluice::cli;
using sluice::fuzz::must;
using sluice::fuzz::next_part;
using json = nlohmann::ordered_json;

namespace {

std::optional<json> read(std::string_view text)
{
	std::istringstream file{std::string(text)};
	auto all = read_trace(file, "a file");

	if (all)
		return *all;
	must(all.error().code() == sluice::errc::input);
	return std::nullopt;
}

std::optional<int64_t> offset_in(std::string_view text)
{
	int64_t n;
	auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), n);

	return err == std::errc() ? std::optional(n) : std::nullopt;
}

/// Pids as in Perfetto: other numbers are no pids.
std::optional<int32_t> pid_of(const json &event)
{
	if (!event.is_object() || !event.contains("pid"))
		return std::nullopt;
	const json &pid = event["pid"];
	if (!pid.is_number_integer() ||
	    (pid.is_number_unsigned() &&
	     pid.get<uint64_t>() > std::numeric_limits<int32_t>::max()) ||
	    pid.get<int64_t>() < std::numeric_limits<int32_t>::min() ||
	    pid.get<int64_t>() > std::numeric_limits<int32_t>::max())
		return std::nullopt;
	return pid.get<int32_t>();
}

/// No process of one trace is a process of the other.
void stay_apart(const json &merged, const json &a, const json &b)
{
	std::set<int64_t> pids;
	size_t i = 0;

	for (const json &event : a)
		if (i++; pid_of(event))
			pids.insert(*pid_of(merged[i - 1]));
	for (const json &event : b)
		if (i++; pid_of(event))
			must(!pids.contains(merged[i - 1]["pid"].get<int64_t>()));
}

void is_moved(const json &was, const json &is, double us)
{
	if (!was.is_object() || !was.contains("ts") || !was["ts"].is_number())
		return;
	must(is["ts"].is_number() && std::isfinite(is["ts"].get<double>()));
	must(is["ts"].get<double>() == was["ts"].get<double>() + us);
}

void check(const merged_trace &m, const json &a, const json &b)
{
	const json &all = m.json["traceEvents"], &from_a = a["traceEvents"],
		   &from_b = b["traceEvents"];
	double us = static_cast<double>(m.offset.ns) / 1e3;

	must(all.size() == from_a.size() + from_b.size());
	for (size_t i = 0; i < from_a.size(); i++)
		is_moved(from_a[i], all[i], 0);
	for (size_t i = 0; i < from_b.size(); i++)
		is_moved(from_b[i], all[from_a.size() + i], us);
	stay_apart(all, from_a, from_b);
	must(m.json["otherData"]["offset_ns"] == m.offset.ns && !m.how.empty());
	must(m.json["otherData"]["uncertainty_ns"].is_null() != m.bounded);
	must(json::accept(m.json.dump(-1, ' ', false, json::error_handler_t::replace)));
}

/// The offset of b to a is the negative of that of a to b.
void check_other_way(const merged_trace &m, const json &a, const json &b)
{
	auto other = merge_traces(b, a, {});

	must(other.has_value());
	if (m.how == other->how && !m.how.contains("pings"))
		must(m.offset.ns == -other->offset.ns);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	auto text = sluice::fuzz::text_at_the_edge(data, size);
	auto a = read(next_part(text, '\0')), b = read(next_part(text, '\0'));
	auto given = offset_in(text);

	if (!a || !b)
		return 0;
	auto merged = merge_traces(*a, *b, given);
	if (!merged) {
		must(merged.error().code() == sluice::errc::input);
		return 0;
	}
	check(*merged, *a, *b);
	if (!given)
		check_other_way(*merged, *a, *b);
	return 0;
}
