// SPDX-License-Identifier: MIT
#include "fetch.hpp"

#include "jobs.hpp"

namespace sluice::timing {

namespace {

plan_desc block(u32 i, u64 bytes)
{
	// no two blocks are neighbours, or the planner would join them
	return {PLAN_COPY, gpu_memory(0) + u64{2} * i * bytes,
		host_memory + own_memory / 2 + u64{2} * i * bytes, 0, bytes};
}

// What a runtime does that submits each copy by itself, in a stream's order.
Program fetch_loop(u32 blocks, u64 bytes)
{
	Program p;
	Place host{Path::system, 0, 0};
	std::vector<u32> before;

	p.lanes.push_back({"host", true});
	p.lanes.push_back({"", false, 0, 0});
	for (u32 i = 0; i < blocks; i++) {
		u32 submit = p.add({.kind = Kind::submit, .packets = 3});
		p.add({.kind = Kind::poll,
		       .lane = 1,
		       .from = host,
		       .after = before,
		       .batch = submit});
		p.add({.kind = Kind::copy,
		       .lane = 1,
		       .bytes = bytes,
		       .from = {Path::vram, 0, 0},
		       .to = host,
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

Program fetch_program(Fetch how, u32 blocks, u64 bytes)
{
	Jobs jobs;
	std::vector<plan_desc> descs;

	if (how == Fetch::loop)
		return fetch_loop(blocks, bytes);
	for (u32 i = 0; i < blocks; i++)
		descs.push_back(block(i, bytes));
	jobs.submit(0, std::move(descs), {.placement = PLAN_AUTO, .to_host = true},
		    how == Fetch::prelaunched);
	return jobs.finish();
}

Time host_time(Fetch how, u32 blocks, std::size_t engines, const Machine &m)
{
	// what docs/uapi.md has for 64, 512 and 4096 copies, within 5 %
	constexpr double call = 11100, copy = 121, prepared = 8300;
	// for each engine more, and for each copy of which several engines have a part
	constexpr double engine = 4000, shared = 240;
	const double jobs = static_cast<double>(engines - 1) * engine;
	const double copies = copy + (engines > 1 ? shared : 0);

	switch (how) {
	case Fetch::batch: return (call + jobs + copies * blocks) * m.host_instruction;
	case Fetch::prepared: return (prepared + jobs) * m.host_instruction;
	default: return 0;
	}
}

Time fetch_time(Fetch how, u32 blocks, u64 bytes, const Machine &m)
{
	const Program p = fetch_program(how, blocks, bytes);

	return host_time(how, blocks, p.lanes.size() - 1, m) + measured(p, m);
}

} // namespace sluice::timing
