// SPDX-License-Identifier: MIT
// Any text in place of the kernel's trace, and the timeline that is made from it. An
// input whose first byte is "t" is text, one line each; lines that begin with "@" are
// samples of cards' counters. Any other input is rows of four bytes: an event, its
// subject, the time since the last one, and a value, which are printed as the kernel does.
#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <map>
#include <set>
#include <sstream>

#include "edge.hpp"
#include "timeline.hpp"

using namespace sluice::cli;
using sluice::fuzz::must;
using sluice::fuzz::next_part;
using json = nlohmann::ordered_json;

namespace {

/// The result of an input.
struct recorded {
	std::vector<trace_event> events;
	std::vector<nic_sample> samples;
};

/// The time is the one in the line, to the microsecond.
void is_of(const trace_event &e, std::string_view line)
{
	must(e.us >= 0 && e.us < 0x1p53);
	auto us = static_cast<uint64_t>(e.us);
	must(line.contains(std::format("{}.{:06}: ", us / 1'000'000, us % 1'000'000)));
	must(line.contains(e.task) && line.contains(e.text));
	for (const auto &[key, value] : e.fields) {
		must(e.text.contains(key) && e.text.contains(value));
		must(!e.number(key) || !e.field(key).empty());
	}
}

void add_sample(std::string_view line, std::vector<nic_sample> &to)
{
	std::istringstream words{std::string(line)};
	uint32_t us;
	nic_sample s;

	if (words >> s.nic >> s.counter >> us >> s.value) {
		s.us = us;
		to.push_back(std::move(s));
	}
}

recorded from_text(std::string_view text)
{
	recorded all;

	while (!text.empty()) {
		std::string_view line = next_part(text, '\n');

		if (uint64_t lost = lost_events(line))
			must(line.contains(std::to_string(lost)));
		if (line.starts_with('@'))
			add_sample(line.substr(1), all.samples);
		else if (auto e = parse_trace_line(line)) {
			is_of(*e, line);
			all.events.push_back(std::move(*e));
		}
	}
	return all;
}

/// A machine with activity, and how many slices it makes.
class scribe {
public:
	void row(std::string_view four, recorded &to);
	size_t slices() const { return ended_ + batches_.size() + jobs_.size(); }

private:
	std::string said(unsigned kind, unsigned value);
	std::string batch(unsigned kind, unsigned value);
	std::string job(unsigned kind);
	std::string request(bool done, unsigned value);
	std::string step(unsigned value);
	std::string other(unsigned kind);

	uint64_t now_ = 5'000'000;
	unsigned who_ = 0; ///< the fence, the request
	size_t ended_ = 0;
	std::set<unsigned> batches_, jobs_, requests_;
};

std::string scribe::batch(unsigned kind, unsigned value)
{
	switch (kind) {
	case 0:
		batches_.insert(who_);
		return std::format("amdgpu_sdma_batch_submit: fence=5:{}, descs={}, "
				   "bytes={}, placement=0, placed=1, shares=1, "
				   "engines=0x1, wait_ns=0",
				   who_, value, value << 12);
	case 1:
		ended_ += batches_.erase(who_);
		return std::format("amdgpu_sdma_batch_done: fence=5:{}, error={}", who_,
				   value & 1 ? -110 : 0);
	default:
		return std::format("amdgpu_sdma_batch_job: fence=5:{}, engine=0, "
				   "job=8:{}",
				   who_, value & 15);
	}
}

std::string scribe::job(unsigned kind)
{
	switch (kind) {
	case 3:
		return std::format("drm_sched_job_queue: dev=0000:01:00.0, fence=8:{}, "
				   "ring=sdma0, job count:1",
				   who_);
	case 4:
		jobs_.insert(who_);
		return std::format("drm_sched_job_run: dev=0000:0{}:00.0, fence=8:{}, "
				   "ring=sdma{}, job count:1, hw job count:0, "
				   "client_id:9",
				   who_ & 1, who_, who_ >> 1 & 1);
	default:
		ended_ += jobs_.erase(who_);
		return std::format("drm_sched_job_done: fence=8:{} signaled", who_);
	}
}

// Rings and requests of different lengths: joined, they must not be confused.
std::string scribe::request(bool done, unsigned value)
{
	std::string of = who_ & 8 ? std::format("ring 1{}, req {}", who_ & 1, who_)
				  : std::format("ring 1, req {}{}", who_ & 1, who_ | 8);

	if (!done) {
		requests_.insert(who_);
		return std::format("io_uring_submit_req: {}, user_data 0x{:x}, opcode "
				   "READ, flags 0x0, sq_thread 0",
				   of, value);
	}
	ended_ += requests_.erase(who_);
	return std::format(
		"io_uring_complete: {}, user_data 0x0, result {}, cflags 0x0 "
		"extra1 0 extra2 0 ",
		of, static_cast<int>(value) - 128);
}

std::string scribe::step(unsigned value)
{
	ended_++;
	return std::format("tracing_mark_write: sluice: step=send.{} piece={} begin={} "
			   "end={}",
			   who_ & 1 ? "wire" : "copy", value, now_ * 1000 - value * 500,
			   now_ * 1000);
}

std::string scribe::other(unsigned kind)
{
	switch (kind) {
	case 9: return std::format("hmm_alias_map: 0000:01:00.0 nr={}", who_);
	case 10: return std::format("cm_req_handler: id={}, it came", who_);
	default: return "sched_switch: prev=1 next=2";
	}
}

std::string scribe::said(unsigned kind, unsigned value)
{
	if (kind < 3)
		return batch(kind, value);
	if (kind < 6)
		return job(kind);
	if (kind < 8)
		return request(kind == 7, value);
	return kind == 8 ? step(value) : other(kind);
}

// Time advances.
void scribe::row(std::string_view four, recorded &to)
{
	const char *tasks[] = {"a-b (0) c", "d"};
	std::array<unsigned char, 4> of;
	four.copy(reinterpret_cast<char *>(of.data()), of.size());
	unsigned kind = of[0] % 13, task = of[1] >> 7;

	who_ = of[1] & 15;
	now_ += of[2];
	if (kind == 12) {
		to.samples.push_back({static_cast<double>(now_),
				      who_ & 1 ? "rxe" : "rx", who_ & 2 ? "exx" : "xx",
				      of[3]});
		return;
	}
	std::string line = std::format("  {}-{}  [003] d..1. {:>6}.{:06}: {}",
				       tasks[task], 77 + task, now_ / 1'000'000,
				       now_ % 1'000'000, said(kind, of[3]));
	auto e = parse_trace_line(line);
	must(e.has_value());
	is_of(*e, line);
	must(e->us == static_cast<double>(now_));
	must(e->task == tasks[task] && e->pid == 77 + task);
	to.events.push_back(std::move(*e));
}

/// Slices of a track, by their beginning.
using track = std::multimap<double, double>;

struct seen {
	std::set<int> groups;
	std::map<int, int> group_of; ///< by track
	std::map<int, track> slices;
	size_t counters = 0;
};

void name_is_new(const json &e, seen &all)
{
	int pid = e["pid"], tid = e["tid"];

	must(e["args"]["name"].is_string());
	if (e["name"] == "process_name") {
		must(all.groups.insert(pid).second);
		return;
	}
	must(all.groups.contains(pid) && all.group_of.emplace(tid, pid).second);
}

void take(const json &e, seen &all)
{
	if (e["ph"] == "M")
		return name_is_new(e, all);
	must(all.groups.contains(e["pid"].get<int>()));
	double at = e["ts"];
	must(std::isfinite(at) && at >= 0);
	if (e["ph"] == "C") {
		double value = e["args"]["value"];

		must(std::isfinite(value) && value >= 0);
		all.counters++;
		return;
	}
	int tid = e["tid"];
	must(all.group_of.at(tid) == e["pid"].get<int>());
	if (e["ph"] != "X")
		return;
	double took = e["dur"];
	must(std::isfinite(took) && took >= 0);
	all.slices[tid].emplace(at, at + took);
}

/// Perfetto requires that a slice on a track ends before the next one begins. The
/// rounding of a sum of two doubles is no overlap.
void do_not_overlap(const track &of)
{
	double end = 0;

	for (auto [from, to] : of) {
		must(end <= from || end - from <= end * 0x1p-50);
		end = std::max(end, to);
	}
}

size_t check(const json &trace)
{
	seen all;
	size_t slices = 0;

	for (const json &e : trace["traceEvents"])
		take(e, all);
	for (const auto &[tid, of] : all.slices) {
		do_not_overlap(of);
		slices += of.size();
	}
	return slices;
}

/// A rate is from two samples of one counter of one card, and not above the counted value.
void check_rates(const json &trace, const std::vector<nic_sample> &samples)
{
	std::map<std::pair<std::string, std::string>, const nic_sample *> before;
	std::vector<std::pair<double, double>> most;
	size_t i = 0;

	for (const nic_sample &s : samples) {
		const nic_sample *&was = before[{s.nic, s.counter}];

		if (was && s.us > was->us)
			most.emplace_back(s.us, static_cast<double>(s.value) /
							((s.us - was->us) / 1e6));
		was = &s;
	}
	for (const json &e : trace["traceEvents"])
		if (e["ph"] == "C") {
			must(i < most.size() && e["ts"] == most[i].first);
			must(e["args"]["value"].get<double>() <= most[i++].second);
		}
	must(i == most.size());
}

/// The trace as it is written, and merged with itself.
void check_file(const json &trace, size_t slices)
{
	std::string text = trace.dump(-1, ' ', false, json::error_handler_t::replace);
	auto again = json::parse(text, nullptr, false);

	must(!again.is_discarded());
	auto both = merge_traces(again, again, {});
	must(both && both->offset.ns == 0);
	must(both->json["traceEvents"].size() == 2 * trace["traceEvents"].size());
	must(slices <= trace["traceEvents"].size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	auto text = sluice::fuzz::text_at_the_edge(data, size);
	bool is_text = text.starts_with('t');
	recorded all;
	scribe writes;

	if (is_text)
		all = from_text(text.substr(1));
	for (; !is_text && text.size() >= 4; text.remove_prefix(4))
		writes.row(text, all);
	auto trace = timeline_of(all.events, all.samples)
			     .json({.name = "n", .boot_id = "b"});
	size_t slices = check(trace);
	must(is_text || slices == writes.slices());
	check_rates(trace, all.samples);
	check_file(trace, slices);
	return 0;
}
