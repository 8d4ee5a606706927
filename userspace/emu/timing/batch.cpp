// SPDX-License-Identifier: MIT
#include "batch.hpp"

#include "sdma_packet.hpp"

#include <algorithm>
#include <format>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>

namespace sluice::timing {

using namespace emu;

namespace {

constexpr unsigned engines = 16, host_engines = 2;
constexpr u32 all_engines = (1u << engines) - 1;
constexpr u32 facing_host = (1u << host_engines) - 1;
// Behind the data of a GPU's memory, and in host memory.
constexpr u64 own_memory = u64{1} << 39;

Place place_of(unsigned gpu, u64 address)
{
	if (address >= host_memory)
		return {Path::system, 0, address};
	unsigned whose = static_cast<unsigned>(address >> 40) - 1;
	return {whose == gpu ? Path::vram : Path::xgmi, whose, address};
}

// Makes steps of a program from the packets of one GPU's batches.
class Batches {
public:
	Batches()
	{
		p_.lanes.push_back({"host", true});
	}

	void submit(unsigned gpu, const std::vector<plan_desc> &descs,
		    plan_placement placement, bool to_host)
	{
		plan_gpu g{all_engines, facing_host, to_host,
			   host_memory + own_memory + gpu * 65536,
			   gpu_memory(gpu) + own_memory,
			   gpu_memory(gpu) + own_memory + 65536};
		Job job{this, gpu};
		int error = plan_batch(descs.data(), static_cast<u32>(descs.size()),
				       placement, &g, add_ib, &job);
		if (error)
			throw std::runtime_error(
				std::format("the planner refuses a batch: {}", error));
	}

	// The word that a wait polls.
	static u64 release_word(unsigned gpu) { return host_memory + gpu * 64; }

	void release()
	{
		for (auto &[gpu, polls] : held_) {
			u32 store = p_.add({.kind = Kind::store});
			for (u32 poll : polls)
				p_.steps[poll].after = {store};
		}
	}

	Program finish()
	{
		p_.add({.kind = Kind::sleep, .after = traps_});
		return std::move(p_);
	}

private:
	struct Job {
		Batches *batches;
		unsigned gpu;
	};

	static void add_ib(void *arg, u32 engine, const u32 *words, u32 count)
	{
		Job *job = static_cast<Job *>(arg);

		job->batches->add(job->gpu, engine, {words, count});
	}

	u32 lane(unsigned gpu, u32 engine)
	{
		auto [found, is_new] = lanes_.try_emplace(
			{gpu, engine}, static_cast<u32>(p_.lanes.size()));
		if (is_new)
			p_.lanes.push_back({"", false, gpu, engine});
		return found->second;
	}

	// A job: the ring's packets around the indirect buffer's.
	void add(unsigned gpu, u32 engine, std::span<const u32> words)
	{
		u32 l = lane(gpu, engine);
		Place host{Path::system, 0, 0};
		u32 submit = p_.add({.kind = Kind::submit, .packets = 3});

		p_.add({.kind = Kind::indirect, .lane = l, .batch = submit});
		while (!words.empty()) {
			auto packet = sdma::decode(words);
			if (!packet || packet->words > words.size())
				throw std::runtime_error("the planner made no packet");
			add(gpu, l, submit, *packet);
			words = words.subspan(packet->words);
		}
		p_.add({.kind = Kind::fence, .lane = l, .to = host, .batch = submit});
		traps_.push_back(p_.add({.kind = Kind::trap, .lane = l,
					 .batch = submit}));
	}

	void add(unsigned gpu, u32 l, u32 submit, const sdma::Packet &packet)
	{
		Step s{.kind = kind(packet.name), .lane = l, .batch = submit};

		if (s.kind == Kind::nop) // the padding
			return;
		std::visit([&](const auto &body) { fill(s, gpu, body); }, packet.body);
		u32 step = p_.add(s);
		if (const auto *poll = std::get_if<sdma::Poll>(&packet.body))
			bind(gpu, step, *poll);
		if (const auto *fence = std::get_if<sdma::Fence>(&packet.body))
			fences_[fence->address] = step;
	}

	// A poll waits for the fence before it that wrote its word, or for the host.
	void bind(unsigned gpu, u32 step, const sdma::Poll &poll)
	{
		auto fence = fences_.find(poll.address);

		if (fence != fences_.end())
			p_.steps[step].after = {fence->second};
		else
			held_[gpu].push_back(step);
	}

	static void fill(Step &s, unsigned gpu, const sdma::Copy &p)
	{
		s.bytes = p.count;
		s.from = place_of(gpu, p.source);
		s.to = place_of(gpu, p.destination[0]);
		if (p.destinations > 1)
			s.to2 = place_of(gpu, p.destination[1]);
	}
	static void fill(Step &s, unsigned gpu, const sdma::Swap &p)
	{
		s.bytes = p.count;
		s.from = place_of(gpu, p.a);
		s.to = place_of(gpu, p.b);
	}
	static void fill(Step &s, unsigned gpu, const sdma::Fence &p)
	{
		s.to = place_of(gpu, p.address);
	}
	static void fill(Step &s, unsigned gpu, const sdma::Atomic &p)
	{
		s.to = place_of(gpu, p.address);
	}
	static void fill(Step &s, unsigned gpu, const sdma::Poll &p)
	{
		s.from = place_of(gpu, p.address);
	}
	static void fill(Step &, unsigned, const auto &) {}

	Program p_;
	std::map<std::pair<unsigned, u32>, u32> lanes_;
	std::map<u64, u32> fences_;
	std::map<unsigned, std::vector<u32>> held_;
	std::vector<u32> traps_;
};

// As DMA-Latte's: in place, each GPU's part of a peer's memory is its own.
std::vector<plan_desc> descriptors(Collective c, Way way, unsigned gpu, u64 bytes)
{
	constexpr plan_op op[]{PLAN_COPY, PLAN_BROADCAST, PLAN_SWAP};
	std::vector<plan_desc> out;

	for (const Command &cmd : latte_commands(c, way)) {
		if (cmd.gpu != gpu)
			continue;
		bool one = cmd.kind != Kind::copy;
		for (unsigned to : one ? std::vector{cmd.to[0]} : cmd.to) {
			u64 there = gpu_memory(to) + gpu * bytes;
			u64 part = c == Collective::all_gather ? gpu : to;
			plan_desc d{op[!one ? 0 : cmd.kind == Kind::swap ? 2 : 1],
				    gpu_memory(gpu) + part * bytes, there, 0, bytes};
			// a copy must not write what a peer still reads
			if (c == Collective::all_to_all && !one)
				d.dst += own_memory / 2;
			if (cmd.kind == Kind::broadcast)
				d.dst2 = gpu_memory(cmd.to[1]) + gpu * bytes;
			out.push_back(d);
		}
	}
	return out;
}

void wait_first(unsigned gpu, std::vector<plan_desc> &descs)
{
	descs.insert(descs.begin(),
		     {PLAN_WAIT, Batches::release_word(gpu), 0, 0, 0});
}

} // namespace

Program batch_program(const Variant &v, u64 size)
{
	Batches b;
	auto placement = v.way == Way::b2b ? PLAN_ONE_ENGINE : PLAN_FAN_OUT;

	for (unsigned gpu = 0; gpu < latte_gpus; gpu++) {
		auto descs = descriptors(v.collective, v.way, gpu, size / latte_gpus);
		if (descs.empty()) // all its swaps are others'
			continue;
		if (v.prelaunch)
			wait_first(gpu, descs);
		b.submit(gpu, descs, placement, false);
	}
	if (v.prelaunch)
		b.release();
	return b.finish();
}

Time batch_time(const Variant &v, u64 size, const Machine &m)
{
	return measured(batch_program(v, size), m);
}

namespace {

plan_desc block(u32 i, u64 bytes)
{
	// no two blocks are neighbours, or the planner would join them
	return {PLAN_COPY, gpu_memory(0) + 2 * i * bytes, host_memory +
		own_memory / 2 + 2 * i * bytes, 0, bytes};
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
		p.add({.kind = Kind::poll, .lane = 1, .from = host, .after = before,
		       .batch = submit});
		p.add({.kind = Kind::copy, .lane = 1, .bytes = bytes,
		       .from = {Path::vram, 0, 0}, .to = host, .batch = submit});
		before = {p.add({.kind = Kind::atomic, .lane = 1, .to = host,
				 .batch = submit})};
	}
	p.add({.kind = Kind::await, .after = before});
	return p;
}

} // namespace

Program fetch_program(Fetch how, u32 blocks, u64 bytes)
{
	Batches b;
	std::vector<plan_desc> descs;

	if (how == Fetch::loop)
		return fetch_loop(blocks, bytes);
	for (u32 i = 0; i < blocks; i++)
		descs.push_back(block(i, bytes));
	if (how == Fetch::prelaunched)
		wait_first(0, descs);
	b.submit(0, descs, PLAN_AUTO, true);
	if (how == Fetch::prelaunched)
		b.release();
	return b.finish();
}

Time fetch_time(Fetch how, u32 blocks, u64 bytes, const Machine &m)
{
	return measured(fetch_program(how, blocks, bytes), m);
}

} // namespace sluice::timing
