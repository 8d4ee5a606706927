// SPDX-License-Identifier: MIT
#include "simulate.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace sluice::timing {

namespace {

class Run {
public:
	Run(const Program &p, const Machine &m)
		: p_(p), m_(m), lanes_(p.lanes.size()), spans_(p.steps.size()),
		  known_(p.steps.size())
	{
		for (u32 i = 0; i < p.steps.size(); i++)
			lanes_.at(p.steps[i].lane).steps.push_back(i);
	}

	Result operator()()
	{
		for (std::size_t i = 0; i < p_.steps.size(); i++)
			step(choose());
		Result r{std::move(spans_), {}, 0};
		for (const Span &s : r.spans)
			r.end = std::max({r.end, s.end, s.effect});
		collect(r);
		return r;
	}

private:
	struct LaneState {
		std::vector<u32> steps;
		std::size_t next = 0;
		Time free = 0;
		Time drained = 0; // of a queue: when all its copies are in memory
		Time rung = 0;	  // of a thread: when its last doorbell has arrived
	};
	using Engine = std::pair<unsigned, unsigned>;
	// from one end to the other; the host is an end, too
	using Link = std::pair<unsigned, unsigned>;
	static constexpr unsigned host_end = ~0u;

	// When the next step of a lane can begin, if that is known yet.
	std::optional<Time> ready(const LaneState &l) const
	{
		if (l.next == l.steps.size())
			return {};
		const Step &s = p_.steps[l.steps[l.next]];
		if (!std::ranges::all_of(s.after,
					 [this](u32 a) { return known_.at(a); }))
			return {};
		if (s.batch == Step::none)
			return l.free;
		if (!known_.at(s.batch))
			return {};
		// the doorbell has come and the packets are fetched
		return std::max(l.free, spans_[s.batch].effect + m_.fetch());
	}

	// The next step that begins first, so that links and engines are taken in the
	// order of time.
	LaneState &choose()
	{
		LaneState *best = nullptr;
		Time first = std::numeric_limits<Time>::infinity();

		for (LaneState &l : lanes_)
			if (auto t = ready(l); t && *t < first) {
				first = *t;
				best = &l;
			}
		if (!best)
			throw std::runtime_error(
				"steps of the timeline wait for each other in a circle");
		now_ = first;
		return *best;
	}

	void step(LaneState &l)
	{
		u32 i = l.steps[l.next++];
		const Step &s = p_.steps[i];
		Span span = is_packet(s.kind) ? packet(l, s) : host(l, s);

		l.free = span.end;
		spans_[i] = span;
		known_[i] = true;
	}

	Span host(LaneState &l, const Step &s)
	{
		Time start = now_, end;

		switch (s.kind) {
		case Kind::submit: return submit(l, s);
		case Kind::store:
			start = released(s);
			end = start + m_.host_store;
			return {start, end, end};
		case Kind::await: return see(s, 0);
		default: // sleep
			return see(s, m_.interrupt);
		}
	}

	// A doorbell is a store that the processor does not wait for, but the next
	// doorbell waits until it has arrived: many in a row take longer than one.
	Span submit(LaneState &l, const Step &s)
	{
		Time ready = now_ + m_.host_submit + s.packets * m_.host_packet;
		Time rung = std::max(ready, l.rung);

		l.rung = rung + m_.doorbell;
		return {now_, rung, l.rung};
	}

	// The thread looks at the words in turn until it has seen each. Or the driver
	// does so for it, told of each by an interrupt.
	Span see(const Step &s, Time told) const
	{
		std::vector<Time> written;
		Time t = now_;

		for (u32 a : s.after)
			written.push_back(spans_[a].effect);
		std::ranges::sort(written);
		for (Time w : written)
			t = std::max(t, w + told) + m_.host_word;
		return {now_, t, t};
	}

	Span packet(LaneState &l, const Step &s)
	{
		switch (s.kind) {
		case Kind::copy:
		case Kind::window:
		case Kind::broadcast:
		case Kind::swap:
		case Kind::fill:
		case Kind::write:
		case Kind::ptepde: return move(l, s);
		case Kind::poll:
			return lasts(released(s),
				     away(s.from) ? m_.poll : m_.sync_local);
		case Kind::fence:
		case Kind::atomic:
			// what they announce is in memory first
			return lasts(std::max(now_, l.drained),
				     away(s.to) ? m_.sync_host : m_.sync_local);
		case Kind::indirect: return lasts(now_, m_.indirect);
		default: return lasts(now_, m_.packet);
		}
	}

	Span lasts(Time from, Time how_long) const
	{
		return {now_, from + how_long, from + how_long};
	}

	static bool away(Place p)
	{
		return p.path != Path::vram && p.path != Path::none;
	}

	// When the steps before it have taken effect: the word of a poll is written.
	Time released(const Step &s) const
	{
		Time t = now_;

		for (u32 a : s.after)
			t = std::max(t, spans_[a].effect);
		return t;
	}

	Span move(LaneState &l, const Step &s)
	{
		const Lane &lane = p_.lanes[s.lane];
		Time &engine = engines_[{lane.gpu, lane.engine}];
		Time start = std::max(now_, engine), end = start;
		auto over = [&](Place a, Place b) {
			end = std::max(end, cross(lane.gpu, a, b, s.bytes, start));
		};

		end += moved(s);
		over(s.from, s.to);
		if (s.kind == Kind::broadcast)
			over(s.from, s.to2);
		if (s.kind == Kind::swap)
			over(s.to, s.from);
		l.drained = std::max(l.drained, end + m_.copy_latency);
		engine = std::max(end, start + m_.packet);
		return {start, engine, l.drained};
	}

	// How long the engine is busy with the bytes.
	Time moved(const Step &s) const
	{
		Time t = static_cast<Time>(s.bytes) / m_.engine;

		switch (s.kind) {
		case Kind::broadcast: return 2 * t / m_.broadcast_rate;
		case Kind::swap: return 2 * t / m_.swap_rate;
		default: return t;
		}
	}

	static unsigned end_of(unsigned gpu, Place p)
	{
		switch (p.path) {
		case Path::xgmi:
		case Path::peer: return p.gpu;
		case Path::system:
		case Path::message: return host_end;
		default: return gpu;
		}
	}

	// Takes the link from a to b for the bytes; nothing if there is none between.
	Time cross(unsigned gpu, Place a, Place b, u64 bytes, Time start)
	{
		Link link{end_of(gpu, a), end_of(gpu, b)};
		if (link.first == link.second)
			return start;
		bool pcie = link.first == host_end || link.second == host_end ||
			    a.path == Path::peer || b.path == Path::peer;
		Time &free = links_[link];
		free = std::max(free, start) +
		       static_cast<Time>(bytes) / (pcie ? m_.pcie_link : m_.xgmi_link);
		return free;
	}

	void collect(Result &r) const
	{
		std::map<u32, Batch> found;

		for (std::size_t i = 0; i < p_.steps.size(); i++) {
			u32 b = p_.steps[i].batch;
			if (b == Step::none)
				continue;
			Batch &batch =
				found.try_emplace(b, Batch{b, r.spans[b].start, 0})
					.first->second;
			batch.end = std::max(batch.end, r.spans[i].effect);
		}
		for (auto &[submit, batch] : found)
			r.batches.push_back(batch);
	}

	const Program &p_;
	const Machine &m_;
	std::vector<LaneState> lanes_;
	std::vector<Span> spans_;
	std::vector<char> known_;
	std::map<Engine, Time> engines_;
	std::map<Link, Time> links_;
	Time now_ = 0;
};

} // namespace

Result simulate(const Program &program, const Machine &machine)
{
	return Run(program, machine)();
}

Time measured(const Program &p, const Machine &machine)
{
	Result r = simulate(p, machine);
	auto store = std::ranges::find(p.steps, Kind::store, &Step::kind);
	Time from = 0;

	if (store != p.steps.end())
		from = r.spans[static_cast<std::size_t>(store - p.steps.begin())].start;
	return r.spans.back().end - from;
}

} // namespace sluice::timing
