// SPDX-License-Identifier: MIT
#include "exchange.hpp"

#include "jobs.hpp"

#include <format>
#include <stdexcept>

namespace sluice::timing {

namespace {

using detail::pattern;

// Unallocated video memory of a rank: only its addresses are used.
slice memory_of(unsigned rank, u64 offset, u64 size)
{
	auto *at = reinterpret_cast<std::byte *>(gpu_memory(rank) + offset);

	return buffer(new detail::memory_block(memory::vram, at, size));
}

std::vector<slice> memory_of_all(unsigned ranks, u64 offset, u64 size)
{
	std::vector<slice> out;

	for (unsigned r = 0; r < ranks; r++)
		out.push_back(memory_of(r, offset, size));
	return out;
}

constexpr u64 half = own_memory / 2;

// No two messages are neighbours, or the planner of the kernel would join them.
std::vector<message> messages_of(const Exchange &e)
{
	std::vector<message> out;

	for (unsigned from = 0; from < e.senders; from++) {
		for (u32 i = 0; i < e.messages; i++) {
			unsigned to = (from + 1 + i % e.receivers) % e.ranks;
			u64 there = half + (u64{from} * e.messages + i) * 2 * e.block;

			out.push_back({from, to, memory_of(to, there, e.block),
				       memory_of(from, u64{i} * 2 * e.block, e.block)});
		}
	}
	return out;
}

result<detail::plan> try_plan(const Exchange &e, variant how)
{
	const collective_options o{how, e.prelaunch, {}};
	const u64 whole = e.ranks * e.block;
	const auto all = [&](u64 offset, u64 size) {
		return memory_of_all(e.ranks, offset, size);
	};

	switch (e.kind) {
	case pattern::all_gather: {
		auto to = all(half, whole), from = all(0, e.block);
		for (unsigned r = 0; e.in_place && r < e.ranks; r++)
			from[r] = to[r].part(r * e.block, e.block);
		return detail::plan_all_gather(e.ranks, to, from, o);
	}
	case pattern::all_to_all: {
		auto to = all(half, whole);
		return detail::plan_all_to_all(e.ranks, to,
					       e.in_place ? to : all(0, whole), o);
	}
	case pattern::broadcast:
		return detail::plan_broadcast(e.ranks, 0, all(0, e.block), o);
	case pattern::gather:
		return detail::plan_gather(e.ranks, 0, memory_of(0, half, whole),
					   all(0, e.block), o);
	case pattern::scatter:
		return detail::plan_scatter(e.ranks, 0, all(half, e.block),
					    memory_of(0, 0, whole), o);
	case pattern::send: break;
	}
	return detail::plan_send(e.ranks, messages_of(e), o);
}

detail::plan plan_of(const Exchange &e, variant how)
{
	auto p = try_plan(e, how);

	if (!p)
		throw std::runtime_error(std::string(p.error().message()));
	return *std::move(p);
}

plan_desc descriptor(const detail::step &s)
{
	const plan_op op = s.swaps	     ? PLAN_SWAP
			   : s.to.size() > 1 ? PLAN_BROADCAST
					     : PLAN_COPY;

	return {op, s.from.address(), s.to[0].address(),
		s.to.size() > 1 ? s.to[1].address() : 0, s.from.size()};
}

} // namespace

std::string name(const Exchange &e)
{
	std::string out = std::format("{} of {}{}", detail::name(e.kind), e.ranks,
				      e.in_place ? " in place" : "");

	if (e.kind == pattern::send)
		out += std::format(", {} to {}, {} messages each", e.senders,
				   e.receivers, e.messages);
	return out +
	       std::format(", {} bytes{}", e.block, e.prelaunch ? ", prelaunched" : "");
}

Program exchange_program(const Exchange &e, variant how)
{
	const detail::plan p = plan_of(e, how);
	Jobs jobs;

	for (unsigned r = 0; r < e.ranks; r++) {
		const auto &steps = p.ranks[r];
		std::vector<plan_desc> descs;

		if (steps.empty())
			continue;
		for (const detail::step &s : steps)
			descs.push_back(descriptor(s));
		u32 engines =
			detail::pick_engines(all_engines, host_engines,
					     detail::engines_wanted(p.how, steps), 0);
		jobs.submit(r, std::move(descs), {PLAN_FAN_OUT, engines}, e.prelaunch);
	}
	return jobs.finish();
}

Time exchange_time(const Exchange &e, variant how, const Machine &m)
{
	return measured(exchange_program(e, how), m);
}

variant chosen(const Exchange &e)
{
	return plan_of(e, variant::automatic).how;
}

variant variant_of(Collective c, Way way)
{
	if (way == Way::pair)
		return c == Collective::all_gather ? variant::bcst : variant::swap;
	return way == Way::pcpy ? variant::pcpy : variant::b2b;
}

Exchange exchange_of(Collective c, Way way, bool prelaunch, u64 size)
{
	bool gather = c == Collective::all_gather;

	return {gather ? pattern::all_gather : pattern::all_to_all, latte_gpus,
		size / latte_gpus, gather || way == Way::pair, prelaunch};
}

} // namespace sluice::timing
