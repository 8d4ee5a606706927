// SPDX-License-Identifier: MIT
#include "trace.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <format>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace sluice::timing {

namespace {

using nlohmann::json;

struct Event {
	Kind kind = Kind::nop; // submit: a doorbell
	double start = 0, end = 0;
	unsigned gpu = 0, engine = 0, queue = 0;
	u64 ring = 0, bytes = 0;
	Place from{}, to{}, to2{};
};

Place read_place(const json &args, const char *key)
{
	auto found = args.find(key);

	if (found == args.end())
		return {};
	auto path = std::ranges::find(emu::path_names, found->at(0).get<std::string>());
	if (path == emu::path_names.end())
		throw std::runtime_error(std::format("'{}' has no such path", key));
	return {static_cast<Path>(path - emu::path_names.begin()),
		found->at(1).get<unsigned>(), found->at(2).get<u64>()};
}

// A timeline without some of its events would give wrong times.
void check_whole(const json &j)
{
	u64 lost = j.at("args").value("lost_events", u64{0});

	if (lost)
		throw std::runtime_error(std::format(
			"{} events were lost: the emulator keeps no more than 262144",
			lost));
}

// Nothing for an event that is neither a packet nor a doorbell (names of tracks, the
// KIQ's packets), and nothing for padding.
std::optional<Event> read_event(const json &j)
{
	Event e;

	if (j.at("ph") == "M")
		check_whole(j);
	if (j.at("ph") != "X" || j.at("name") == "pm4" || j.at("name") == "nop")
		return {};
	const json &args = j.at("args");
	std::string called = j.at("name");
	e.kind = called == "doorbell" ? Kind::submit : kind(called);
	if (called != "doorbell" && !is_packet(e.kind))
		throw std::runtime_error(std::format("'{}' is no packet", called));
	e.start = j.at("ts");
	e.end = e.start + j.at("dur").get<double>();
	e.gpu = j.at("pid");
	e.engine = j.at("tid");
	e.queue = args.at("queue");
	e.ring = args.at("ring");
	e.bytes = args.at("bytes");
	e.from = read_place(args, "from");
	e.to = read_place(args, "to");
	e.to2 = read_place(args, "to2");
	return e;
}

json parse(const TraceFile &file)
try {
	json all = json::parse(file.text);
	if (!all.is_array())
		throw std::runtime_error("is no list of events");
	return all;
} catch (const std::exception &e) {
	throw std::runtime_error(std::format("{}: {}", file.name, e.what()));
}

std::vector<Event> read_events(std::span<const TraceFile> files)
{
	std::vector<Event> out;

	for (const TraceFile &file : files) {
		std::size_t n = 0;
		for (const json &j : parse(file)) {
			try {
				if (auto e = read_event(j))
					out.push_back(*e);
			} catch (const std::exception &e) {
				throw std::runtime_error(std::format(
					"{}: event {}: {}", file.name, n, e.what()));
			}
			n++;
		}
	}
	// Doorbells first of events that begin together: they let the others begin.
	std::ranges::stable_sort(out, {}, [](const Event &e) {
		return std::pair(e.start, e.kind != Kind::submit);
	});
	return out;
}

class Builder {
public:
	explicit Builder(std::vector<Event> events) : events_(std::move(events))
	{
		p_.lanes.push_back({"host", true});
	}

	Program operator()()
	{
		for (const Event &e : events_) {
			if (e.kind == Kind::submit)
				ring(e);
			else
				packet(e);
		}
		sleep(std::numeric_limits<double>::infinity());
		bind_polls();
		return std::move(p_);
	}

private:
	using QueueName = std::tuple<unsigned, unsigned, unsigned>;
	using Word = std::tuple<Path, unsigned, u64>;
	struct Queue {
		u32 lane;
		std::vector<std::pair<u64, u32>> doorbells; // ring, step
		u64 written = ~0ull;			    // where the last packet is
	};
	struct Seen {
		const Event *event;
		u32 step;
	};

	static Word word(const Place &p) { return {p.path, p.gpu, p.address}; }

	Queue &queue(const Event &e)
	{
		auto [found, is_new] = queues_.try_emplace(
			QueueName{e.gpu, e.engine, e.queue},
			Queue{static_cast<u32>(p_.lanes.size()), {}});
		if (is_new)
			p_.lanes.push_back(
				{std::format("engine {} queue {}", e.engine, e.queue),
				 false, e.gpu, e.engine});
		return found->second;
	}

	void ring(const Event &e)
	{
		sleep(e.start);
		u32 step = p_.add({.kind = Kind::submit});
		queue(e).doorbells.emplace_back(e.ring, step);
	}

	// Until all interrupts that came before this time.
	void sleep(double until)
	{
		std::vector<u32> slept;

		std::erase_if(traps_, [&](const Seen &t) {
			bool came = t.event->end <= until;
			if (came)
				slept.push_back(t.step);
			return came;
		});
		if (!slept.empty())
			p_.add({.kind = Kind::sleep, .after = std::move(slept)});
	}

	// The first doorbell that lets the engine go beyond the packet.
	static u32 batch(const Queue &q, u64 ring)
	{
		for (auto [limit, step] : q.doorbells)
			if (limit > ring)
				return step;
		return Step::none;
	}

	void packet(const Event &e)
	{
		Queue &q = queue(e);
		u32 b = batch(q, e.ring);
		u32 step = p_.add({.kind = e.kind,
				   .lane = q.lane,
				   .bytes = e.bytes,
				   .from = e.from,
				   .to = e.to,
				   .to2 = e.to2,
				   .batch = b});

		// The host wrote the packets of an indirect buffer before.
		if (b != Step::none && std::exchange(q.written, e.ring) != e.ring)
			p_.steps[b].packets++;
		if (e.kind == Kind::trap)
			traps_.push_back({&e, step});
		if (e.kind == Kind::poll)
			polls_.push_back({&e, step});
		if (e.kind == Kind::fence || e.kind == Kind::atomic)
			writers_[word(e.to)].push_back({&e, step});
	}

	void bind_polls()
	{
		for (const Seen &poll : polls_) {
			auto found = writers_.find(word(poll.event->from));
			if (found == writers_.end())
				continue;
			for (const Seen &w : found->second)
				if (w.event->start < poll.event->end)
					p_.steps[poll.step].after = {w.step};
		}
	}

	std::vector<Event> events_;
	Program p_;
	std::map<QueueName, Queue> queues_;
	std::map<Word, std::vector<Seen>> writers_;
	std::vector<Seen> traps_, polls_;
};

void put(std::string &out, const std::string &event)
{
	out += (out.empty() ? "[" : ",\n") + event;
}

constexpr unsigned host_pid = 1000;

void put_lane(std::string &out, const Lane &lane, unsigned pid, std::size_t tid)
{
	json name =
		lane.name.empty() ? std::format("engine {}", lane.engine) : lane.name;

	put(out, std::format(R"({{"ph":"M","name":"process_name","pid":{},)"
			     R"("args":{{"name":"{}, MODEL"}}}})",
			     pid, lane.host ? "host" : std::format("gpu{}", lane.gpu)));
	put(out, std::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},)"
			     R"("args":{{"name":{}}}}})",
			     pid, tid, name.dump()));
}

} // namespace

Program read_trace(std::span<const TraceFile> files)
{
	return Builder(read_events(files))();
}

std::string write_trace(const Program &p, const Result &r)
{
	std::string out;
	auto pid = [](const Lane &l) { return l.host ? host_pid : l.gpu; };

	for (std::size_t i = 0; i < p.lanes.size(); i++)
		put_lane(out, p.lanes[i], pid(p.lanes[i]), i);
	for (std::size_t i = 0; i < p.steps.size(); i++) {
		const Step &s = p.steps[i];
		const Span &span = r.spans[i];
		put(out,
		    std::format(
			    R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},)"
			    R"("dur":{:.3f},"args":{{"step":{},"bytes":{},"effect":{:.3f}}}}})",
			    name(s.kind), pid(p.lanes[s.lane]), s.lane,
			    span.start / 1e3, (span.end - span.start) / 1e3, i, s.bytes,
			    span.effect / 1e3));
	}
	return out.empty() ? "[]\n" : out + "]\n";
}

} // namespace sluice::timing
