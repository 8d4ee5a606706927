// SPDX-License-Identifier: MIT
#include "latte.hpp"

#include <algorithm>
#include <set>

namespace sluice::timing {

namespace {

// Every second engine of those for the fabric, one for each peer.
unsigned engine_to(unsigned gpu, unsigned peer)
{
	unsigned nth = (peer + latte_gpus - gpu) % latte_gpus - 1;

	return 2 + 2 * nth;
}

constexpr unsigned b2b_engine = 8;

std::vector<unsigned> peers(unsigned gpu)
{
	std::vector<unsigned> out;

	for (unsigned p = 0; p < latte_gpus; p++)
		if (p != gpu)
			out.push_back(p);
	return out;
}

void parallel_copies(unsigned gpu, std::vector<Command> &out)
{
	for (unsigned p : peers(gpu))
		out.push_back({gpu, engine_to(gpu, p), Kind::copy, {p}});
}

// Seven is odd: one peer has a copy of its own.
void broadcasts(unsigned gpu, std::vector<Command> &out)
{
	auto all = peers(gpu);

	out.push_back({gpu, engine_to(gpu, all[0]), Kind::copy, {all[0]}});
	for (std::size_t i = 1; i + 1 < all.size(); i += 2)
		out.push_back({gpu,
			       engine_to(gpu, all[i + 1]),
			       Kind::broadcast,
			       {all[i], all[i + 1]}});
}

// The first peers whose pair no earlier GPU has taken, four at most.
void swaps(unsigned gpu, std::set<std::pair<unsigned, unsigned>> &taken,
	   std::vector<Command> &out)
{
	constexpr unsigned most = (latte_gpus - 1 + 1) / 2;
	unsigned count = 0;

	for (unsigned p : peers(gpu)) {
		if (count == most || !taken.insert(std::minmax(gpu, p)).second)
			continue;
		out.push_back({gpu, engine_to(gpu, p), Kind::swap, {p}});
		count++;
	}
}

// Stores the packets of a command. Returns its poll, if it has one, and its atomic.
struct Ends {
	u32 poll, sync;
};

Ends add_command(Program &p, const Command &c, u64 bytes, bool prelaunch)
{
	u32 lane = static_cast<u32>(p.lanes.size());
	u32 moves = c.kind == Kind::copy ? static_cast<u32>(c.to.size()) : 1;
	Place host{Path::system, 0, 0};
	Ends ends{Step::none, 0};

	p.lanes.push_back({"", false, c.gpu, c.engine});
	u32 submit = p.add({.kind = Kind::submit, .packets = moves + 1 + prelaunch});
	if (prelaunch)
		ends.poll = p.add({.kind = Kind::poll,
				   .lane = lane,
				   .from = host,
				   .batch = submit});
	for (u32 i = 0; i < moves; i++)
		p.add({.kind = c.kind,
		       .lane = lane,
		       .bytes = bytes,
		       .from = {Path::vram, c.gpu, 0},
		       .to = {Path::xgmi, c.to[i], 0},
		       .to2 = {Path::xgmi, c.to.back(), 0},
		       .batch = submit});
	ends.sync = p.add(
		{.kind = Kind::atomic, .lane = lane, .to = host, .batch = submit});
	return ends;
}

} // namespace

std::vector<Command> latte_commands(Collective c, Way way)
{
	std::vector<Command> out;
	std::set<std::pair<unsigned, unsigned>> taken;

	for (unsigned gpu = 0; gpu < latte_gpus; gpu++) {
		if (way == Way::pcpy)
			parallel_copies(gpu, out);
		else if (way == Way::b2b)
			out.push_back({gpu, b2b_engine, Kind::copy, peers(gpu)});
		else if (c == Collective::all_gather)
			broadcasts(gpu, out);
		else
			swaps(gpu, taken, out);
	}
	return out;
}

Program latte_program(const Variant &v, u64 size)
{
	Program p;
	std::vector<u32> polls, syncs;

	p.lanes.push_back({"host", true});
	for (const Command &c : latte_commands(v.collective, v.way)) {
		Ends e = add_command(p, c, size / latte_gpus, v.prelaunch);
		polls.push_back(e.poll);
		syncs.push_back(e.sync);
	}
	if (v.prelaunch)
		for (u32 poll : polls) {
			u32 store = p.add({.kind = Kind::store});
			p.steps[poll].after = {store};
		}
	p.add({.kind = Kind::await, .after = syncs});
	return p;
}

Time latte_time(const Variant &v, u64 size, const Machine &m)
{
	return measured(latte_program(v, size), m);
}

Phases copy_phases(u64 bytes, const Machine &m)
{
	Program p;

	p.lanes.push_back({"host", true});
	u32 sync = add_command(p, {0, 2, Kind::copy, {1}}, bytes, false).sync;
	Result r = simulate(p, m);
	const Span &submit = r.spans[0], &copy = r.spans[sync - 1];

	return {submit.end - submit.start, copy.start - submit.end,
		copy.effect - copy.start, r.spans[sync].effect - copy.effect};
}

} // namespace sluice::timing
