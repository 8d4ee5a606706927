// SPDX-License-Identifier: MIT
#include "jobs.hpp"

#include "sdma_packet.hpp"

#include <format>
#include <stdexcept>

namespace sluice::timing {

using namespace emu;

namespace {

Place place_of(unsigned gpu, u64 address)
{
	if (address >= host_memory)
		return {Path::system, 0, address};
	unsigned whose = static_cast<unsigned>(address >> 40) - 1;
	return {whose == gpu ? Path::vram : Path::xgmi, whose, address};
}

// The word that a wait polls.
u64 release_word(unsigned gpu)
{
	return host_memory + u64{64} * gpu;
}

void fill(Step &s, unsigned gpu, const sdma::Copy &p)
{
	s.bytes = p.count;
	s.from = place_of(gpu, p.source);
	s.to = place_of(gpu, p.destination[0]);
	if (p.destinations > 1)
		s.to2 = place_of(gpu, p.destination[1]);
}

void fill(Step &s, unsigned gpu, const sdma::Swap &p)
{
	s.bytes = p.count;
	s.from = place_of(gpu, p.a);
	s.to = place_of(gpu, p.b);
}

void fill(Step &s, unsigned gpu, const sdma::Fence &p)
{
	s.to = place_of(gpu, p.address);
}

void fill(Step &s, unsigned gpu, const sdma::Atomic &p)
{
	s.to = place_of(gpu, p.address);
}

void fill(Step &s, unsigned gpu, const sdma::Poll &p)
{
	s.from = place_of(gpu, p.address);
}

void fill(Step &, unsigned, const auto &) {}

} // namespace

Jobs::Jobs()
{
	p_.lanes.push_back({"host", true});
}

void Jobs::submit(unsigned gpu, std::vector<plan_desc> descs, const Placing &how,
		  bool prelaunch)
{
	plan_gpu g{how.engines,
		   host_engines,
		   how.to_host,
		   how.links,
		   host_memory + own_memory + u64{65536} * gpu,
		   gpu_memory(gpu) + own_memory,
		   gpu_memory(gpu) + own_memory + 65536};
	auto add = [&](u32 engine, std::span<const u32> words) {
		add_job(gpu, engine, words);
	};
	auto call = [](void *arg, u32 engine, const u32 *words, u32 count) {
		(*static_cast<decltype(add) *>(arg))(engine, {words, count});
	};

	if (prelaunch)
		descs.insert(descs.begin(), {PLAN_WAIT, release_word(gpu), 0, 0, 0});
	int error = plan_batch(descs.data(), static_cast<u32>(descs.size()),
			       how.placement, &g, call, &add);
	if (error)
		throw std::runtime_error(
			std::format("the planner refuses a batch: {}", error));
}

Program Jobs::finish()
{
	release();
	p_.add({.kind = Kind::sleep, .after = traps_});
	return std::move(p_);
}

void Jobs::release()
{
	std::vector<u32> there; // the step before each poll

	for (auto &[gpu, polls] : held_)
		for (u32 poll : polls)
			there.push_back(poll - 1);
	for (auto &[gpu, polls] : held_) {
		u32 store = p_.add({.kind = Kind::store, .after = there});
		for (u32 poll : polls)
			p_.steps[poll].after = {store};
	}
}

u32 Jobs::lane(unsigned gpu, u32 engine)
{
	auto [found, is_new] =
		lanes_.try_emplace({gpu, engine}, static_cast<u32>(p_.lanes.size()));
	if (is_new)
		p_.lanes.push_back({"", false, gpu, engine});
	return found->second;
}

// The ring's packets around the indirect buffer's. The first one flushes the host data
// path: it polls a register.
void Jobs::add_job(unsigned gpu, u32 engine, std::span<const u32> words)
{
	u32 l = lane(gpu, engine);
	Place host{Path::system, 0, 0};
	u32 submit = p_.add({.kind = Kind::submit, .packets = 4});

	p_.add({.kind = Kind::poll, .lane = l, .batch = submit});
	p_.add({.kind = Kind::indirect, .lane = l, .batch = submit});
	while (!words.empty()) {
		auto packet = sdma::decode(words);
		if (!packet || packet->words > words.size())
			throw std::runtime_error("the planner made no packet");
		add_packet(gpu, l, submit, *packet);
		words = words.subspan(packet->words);
	}
	p_.add({.kind = Kind::fence, .lane = l, .to = host, .batch = submit});
	traps_.push_back(p_.add({.kind = Kind::trap, .lane = l, .batch = submit}));
}

void Jobs::add_packet(unsigned gpu, u32 l, u32 submit, const sdma::Packet &packet)
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
void Jobs::bind(unsigned gpu, u32 step, const sdma::Poll &poll)
{
	auto fence = fences_.find(poll.address);

	if (fence != fences_.end())
		p_.steps[step].after = {fence->second};
	else
		held_[gpu].push_back(step);
}

} // namespace sluice::timing
