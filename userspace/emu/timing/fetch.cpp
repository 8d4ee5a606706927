// SPDX-License-Identifier: MIT
#include "fetch.hpp"

#include "jobs.hpp"

namespace sluice::timing {

namespace {

bool is_fetched(Direction where, u32 block)
{
	return where == Direction::fetch ||
	       (where == Direction::both && block % 2 == 1);
}

plan_desc copy_of(Direction where, u32 block, u64 bytes)
{
	// no two blocks are neighbours, or the planner would join them
	const u64 gpu = gpu_memory(0) + u64{2} * block * bytes;
	const u64 host = host_memory + own_memory / 2 + u64{2} * block * bytes;

	return is_fetched(where, block) ? plan_desc{PLAN_COPY, host, gpu, 0, bytes}
					: plan_desc{PLAN_COPY, gpu, host, 0, bytes};
}

// A runtime that submits each copy separately, in a stream's order.
Program fetch_loop(Direction where, u32 blocks, u64 bytes)
{
	Program p;
	const Place host{Path::system, 0, 0}, gpu{Path::vram, 0, 0};
	std::vector<u32> before;

	p.lanes.push_back({"host", true});
	p.lanes.push_back({"", false, 0, 0});
	for (u32 i = 0; i < blocks; i++) {
		u32 submit = p.add({.kind = Kind::submit, .packets = 3});
		const bool fetched = is_fetched(where, i);
		p.add({.kind = Kind::poll,
		       .lane = 1,
		       .from = host,
		       .after = before,
		       .batch = submit});
		p.add({.kind = Kind::copy,
		       .lane = 1,
		       .bytes = bytes,
		       .from = fetched ? host : gpu,
		       .to = fetched ? gpu : host,
		       .batch = submit});
		before = {p.add({.kind = Kind::atomic,
				 .lane = 1,
				 .to = host,
				 .batch = submit})};
	}
	p.add({.kind = Kind::await, .after = before});
	return p;
}

} // namespace

Program fetch_program(Fetch how, Direction where, u32 blocks, u64 bytes)
{
	Jobs jobs;
	std::vector<plan_desc> descs;

	if (how == Fetch::loop)
		return fetch_loop(where, blocks, bytes);
	for (u32 i = 0; i < blocks; i++)
		descs.push_back(copy_of(where, i, bytes));
	jobs.submit(0, std::move(descs), {.placement = PLAN_AUTO, .to_host = true},
		    how == Fetch::prelaunched);
	return jobs.finish();
}

Time host_time(Fetch how, u32 blocks, std::size_t engines, const Machine &m)
{
	// the figures of docs/uapi.md for 64, 512 and 4096 copies, within 5 %
	constexpr double call = 11100, copy = 121, prepared = 8300;
	// for each further engine, and for each copy that several engines share
	constexpr double engine = 4000, shared = 240;
	const double jobs = static_cast<double>(engines - 1) * engine;
	const double copies = copy + (engines > 1 ? shared : 0);

	switch (how) {
	case Fetch::batch: return (call + jobs + copies * blocks) * m.host_instruction;
	case Fetch::prepared: return (prepared + jobs) * m.host_instruction;
	default: return 0;
	}
}

Time fetch_time(Fetch how, Direction where, u32 blocks, u64 bytes, const Machine &m)
{
	const Program p = fetch_program(how, where, blocks, bytes);

	return host_time(how, blocks, p.lanes.size() - 1, m) + measured(p, m);
}

} // namespace sluice::timing
