// SPDX-License-Identifier: MIT
#include "group_plan.hpp"

#include <algorithm>
#include <bit>
#include <format>
#include <map>

#include "sluice/hosts.hpp"
#include "try.hpp"

namespace sluice::detail {

namespace {

/// Bytes that rank @p by has for rank @p receiver, which may be itself.
struct transfer {
	unsigned by, receiver;
	slice to, from;
};

using transfers = std::vector<transfer>;

// A packet has room for two.
constexpr size_t broadcast_at_once = 2;

std::unexpected<error> wrong(pattern kind, unsigned rank, std::string_view why)
{
	return std::unexpected(
		error(errc::usage, name(kind), std::format("rank {}: {}", rank, why))
			.at(rank));
}

bool same_place(const slice &a, const slice &b)
{
	return a.address() == b.address() && a.size() == b.size();
}

result<void> check_size(pattern kind, unsigned rank, const slice &memory, size_t wanted)
{
	if (!memory.of())
		return wrong(kind, rank, "no memory");
	if (!memory.valid())
		return wrong(kind, rank, "memory outside of its buffer");
	if (memory.size() != wanted)
		return wrong(kind, rank,
			     std::format("{} bytes where {} are wanted", memory.size(),
					 wanted));
	return {};
}

/// One slice for each rank, of @p wanted bytes.
result<void> check_all(pattern kind, unsigned ranks, std::span<const slice> memory,
		       size_t wanted)
{
	if (memory.size() != ranks)
		return fail(errc::usage, name(kind),
			    std::format("memory of {} ranks, the group has {}",
					memory.size(), ranks));
	for (unsigned r = 0; r < ranks; r++)
		SLUICE_CHECK(check_size(kind, r, memory[r], wanted));
	return {};
}

result<void> check_root(pattern kind, unsigned ranks, unsigned root)
{
	if (root >= ranks)
		return fail(errc::usage, name(kind),
			    std::format("rank {} is the root, the group has {} ranks",
					root, ranks));
	return {};
}

/// The size of the first rank's memory is the one that all must have.
size_t size_of_first(std::span<const slice> memory)
{
	return memory.empty() ? 0 : memory[0].size();
}

result<void> check_block(pattern kind, size_t bytes)
{
	if (!bytes)
		return fail(errc::usage, name(kind), "blocks of 0 bytes");
	return {};
}

result<void> check_blocks(pattern kind, size_t whole, unsigned count)
{
	SLUICE_CHECK(check_block(kind, whole));
	if (whole % count)
		return fail(errc::usage, name(kind),
			    std::format("{} bytes are not {} blocks of one size", whole,
					count));
	return {};
}

slice block(const slice &of, unsigned index, size_t bytes)
{
	return of.part(index * bytes, bytes);
}

std::vector<slice> parts(std::span<const slice> all, size_t offset, size_t length)
{
	std::vector<slice> made;

	for (const slice &one : all)
		made.push_back(one.part(offset, length));
	return made;
}

/// Bytes of memory that a plan uses.
struct use {
	uint64_t begin, end;
	unsigned rank; ///< whose memory it is
	bool writes;
};

use use_of(const slice &memory, unsigned rank, bool writes)
{
	return {memory.address(), memory.address() + memory.size(), rank, writes};
}

/// The one of two uses that reaches further.
const use *further(const use *a, const use &b)
{
	return !a || b.end > a->end ? &b : a;
}

/// Memory that is written has no other use. Each use is compared with one before it
/// only, the one that reaches furthest: very many may read the same memory.
result<void> check_apart(pattern kind, std::vector<use> all)
{
	const use *any = nullptr, *written = nullptr;

	std::ranges::stable_sort(all, {}, &use::begin);
	for (const use &b : all) {
		const use *a = b.writes ? any : written;

		if (a && a->end > b.begin)
			return wrong(
				kind, b.rank,
				std::format("its memory overlaps memory of rank {}, "
					    "and one of the two is written",
					    a->rank));
		any = further(any, b);
		if (b.writes)
			written = further(written, b);
	}
	return {};
}

/// What a rank has in place is not moved.
bool stays(const transfer &t)
{
	return t.by == t.receiver && same_place(t.to, t.from);
}

// All of it runs at the same time. The kernel looks only within a batch. What stays is
// not to be overwritten, as if it were read.
result<void> check_overlaps(pattern kind, bool swaps, const transfers &all)
{
	std::vector<use> uses;

	for (const transfer &t : all) {
		if (!stays(t))
			uses.push_back(use_of(t.to, t.receiver, true));
		// what is swapped is written by the opposite transfer
		if (stays(t) || !swaps)
			uses.push_back(use_of(t.from, t.by, false));
	}
	return check_apart(kind, std::move(uses));
}

void add_copies(plan &p, const transfers &all)
{
	for (const transfer &t : all)
		p.ranks[t.by].push_back({{t.to}, t.from, false});
}

void add_broadcasts(plan &p, const transfers &all)
{
	for (const transfer &t : all) {
		auto &steps = p.ranks[t.by];

		if (steps.empty() || steps.back().to.size() == broadcast_at_once ||
		    !same_place(steps.back().from, t.from))
			steps.push_back({{}, t.from, false});
		steps.back().to.push_back(t.to);
	}
}

// Of two opposite transfers, one is left. It is made by the rank from which the way to
// the other one, counted round the ranks, is not longer than back: so all have equally
// much to do, or one more.
void add_swaps(plan &p, const transfers &all)
{
	for (auto t = all.begin(); t != all.end(); ++t) {
		auto back = std::find_if(all.begin(), t, [&](const transfer &other) {
			return same_place(other.to, t->from) &&
			       same_place(other.from, t->to);
		});

		if (back == t)
			continue;
		bool near = t->by - back->by <= p.ranks.size() / 2;
		p.ranks[near ? back->by : t->by].push_back({{t->to}, t->from, true});
	}
}

void add_steps(plan &p, const transfers &all)
{
	if (p.how == variant::swap)
		add_swaps(p, all);
	else if (p.how == variant::bcst)
		add_broadcasts(p, all);
	else
		add_copies(p, all);
}

question question_of(pattern kind, bool in_place, bool prelaunch, const transfers &all)
{
	question q{kind, in_place, prelaunch, 0, 0, 0, 0};
	std::map<unsigned, std::map<unsigned, size_t>> copies; // by rank, for rank

	for (const transfer &t : all) {
		copies[t.by][t.receiver]++;
		q.block = std::max<uint64_t>(q.block, t.to.size());
	}
	q.senders = copies.size();
	for (const auto &[by, receivers] : copies) {
		size_t sum = 0;

		for (const auto &[receiver, count] : receivers) {
			sum += count;
			q.for_one = std::max(q.for_one, count);
		}
		q.copies = std::max(q.copies, sum);
	}
	return q;
}

result<plan> plan_of(pattern kind, unsigned ranks, bool in_place, transfers all,
		     const collective_options &how)
{
	if (!allows(kind, in_place, how.how))
		return fail(errc::usage, name(kind),
			    std::format("{}has no variant {}",
					in_place ? "in place it " : "",
					sluice::name(how.how)));
	// In place there is no other variant than swap.
	SLUICE_CHECK(check_overlaps(kind, in_place, all));
	std::erase_if(all, stays);
	plan p{kind, how.how, std::vector<std::vector<step>>(ranks),
	       std::vector<std::vector<unsigned>>(ranks)};
	if (p.how == variant::automatic)
		p.how = choose(question_of(kind, in_place, how.prelaunch, all));
	add_steps(p, all);
	for (const transfer &t : all)
		p.receivers[t.by].push_back(t.receiver);
	return p;
}

} // namespace

const char *name(pattern kind) noexcept
{
	constexpr std::array names = {
		"all_gather", "all_to_all", "broadcast", "gather", "scatter", "send",
	};
	return names[static_cast<size_t>(kind)];
}

// Ranks begin with different peers, so that not all write to the same one at once.
result<plan> plan_all_gather(unsigned ranks, std::span<const slice> to,
			     std::span<const slice> from, const collective_options &how)
{
	const auto kind = pattern::all_gather;
	const size_t bytes = size_of_first(from);
	transfers all;

	SLUICE_CHECK(check_all(kind, ranks, from, bytes));
	SLUICE_CHECK(check_block(kind, bytes));
	SLUICE_CHECK(check_all(kind, ranks, to, ranks * bytes));
	for (unsigned r = 0; r < ranks; r++)
		for (unsigned d = 1; d <= ranks; d++) {
			unsigned peer = (r + d) % ranks;

			all.push_back({r, peer, block(to[peer], r, bytes), from[r]});
		}
	return plan_of(kind, ranks, false, std::move(all), how);
}

result<plan> plan_all_to_all(unsigned ranks, std::span<const slice> to,
			     std::span<const slice> from, const collective_options &how)
{
	const auto kind = pattern::all_to_all;
	const size_t whole = size_of_first(from), bytes = whole / ranks;
	transfers all;

	SLUICE_CHECK(check_all(kind, ranks, from, whole));
	SLUICE_CHECK(check_all(kind, ranks, to, whole));
	SLUICE_CHECK(check_blocks(kind, whole, ranks));
	for (unsigned r = 0; r < ranks; r++)
		for (unsigned d = 1; d <= ranks; d++) {
			unsigned peer = (r + d) % ranks;

			all.push_back({r, peer, block(to[peer], r, bytes),
				       block(from[r], peer, bytes)});
		}
	return plan_of(kind, ranks, std::ranges::equal(to, from, same_place),
		       std::move(all), how);
}

result<plan> plan_broadcast(unsigned ranks, unsigned root,
			    std::span<const slice> memory,
			    const collective_options &how)
{
	const auto kind = pattern::broadcast;
	const size_t bytes = size_of_first(memory);
	transfers all;

	SLUICE_CHECK(check_root(kind, ranks, root));
	SLUICE_CHECK(check_all(kind, ranks, memory, bytes));
	SLUICE_CHECK(check_block(kind, bytes));
	for (unsigned d = 1; d < ranks; d++) {
		unsigned peer = (root + d) % ranks;

		all.push_back({root, peer, memory[peer], memory[root]});
	}
	return plan_of(kind, ranks, false, std::move(all), how);
}

result<plan> plan_gather(unsigned ranks, unsigned root, const slice &to,
			 std::span<const slice> from, const collective_options &how)
{
	const auto kind = pattern::gather;
	const size_t bytes = size_of_first(from);
	transfers all;

	SLUICE_CHECK(check_root(kind, ranks, root));
	SLUICE_CHECK(check_all(kind, ranks, from, bytes));
	SLUICE_CHECK(check_block(kind, bytes));
	SLUICE_CHECK(check_size(kind, root, to, ranks * bytes));
	for (unsigned r = 0; r < ranks; r++)
		all.push_back({r, root, block(to, r, bytes), from[r]});
	return plan_of(kind, ranks, false, std::move(all), how);
}

result<plan> plan_scatter(unsigned ranks, unsigned root, std::span<const slice> to,
			  const slice &from, const collective_options &how)
{
	const auto kind = pattern::scatter;
	const size_t bytes = size_of_first(to);
	transfers all;

	SLUICE_CHECK(check_root(kind, ranks, root));
	SLUICE_CHECK(check_all(kind, ranks, to, bytes));
	SLUICE_CHECK(check_block(kind, bytes));
	SLUICE_CHECK(check_size(kind, root, from, ranks * bytes));
	for (unsigned r = 0; r < ranks; r++)
		all.push_back({root, r, to[r], block(from, r, bytes)});
	return plan_of(kind, ranks, false, std::move(all), how);
}

result<plan> plan_send(unsigned ranks, std::span<const message> all,
		       const collective_options &how)
{
	const auto kind = pattern::send;
	transfers moved;

	for (const message &m : all) {
		if (m.from >= ranks || m.to >= ranks)
			return fail(
				errc::usage, name(kind),
				std::format(
					"from rank {} to rank {}, the group has {} ranks",
					m.from, m.to, ranks));
		SLUICE_CHECK(check_size(kind, m.from, m.source, m.source.size()));
		SLUICE_CHECK(check_block(kind, m.source.size()));
		SLUICE_CHECK(check_size(kind, m.to, m.target, m.source.size()));
		moved.push_back({m.from, m.to, m.target, m.source});
	}
	return plan_of(kind, ranks, false, std::move(moved), how);
}

result<void> check_place(const host_place &at)
{
	if (!at.hosts || at.hosts > host_group::most_hosts)
		return fail(errc::usage, "host_group",
			    std::format("{} hosts: there are 1 to {}", at.hosts,
					host_group::most_hosts));
	if (at.host >= at.hosts)
		return fail(errc::usage, "host_group",
			    std::format("this is host {}, there are {}, from 0 on",
					at.host, at.hosts));
	if (at.leader >= at.ranks)
		return fail(errc::usage, "host_group",
			    std::format("rank {} is the leader, the group has {}",
					at.leader, at.ranks));
	return {};
}

result<void> check_gpus(size_t count)
{
	if (!count || count > group::most_ranks)
		return fail(errc::usage, "group",
			    std::format("{} GPUs: a group has 1 to {}", count,
					group::most_ranks));
	return {};
}

namespace {

/// Parts of memory with @p own bytes for each host, by offset and length: those before
/// this host's, and those after it.
std::vector<std::pair<size_t, size_t>> of_others(const host_place &at, size_t own)
{
	const size_t begin = at.host * own, end = begin + own;
	std::vector<std::pair<size_t, size_t>> made = {{0, begin},
						       {end, at.hosts * own - end}};

	std::erase_if(made, [](const auto &part) { return !part.second; });
	return made;
}

/// Messages between ranks of this host, if any.
result<void> add_sends(std::vector<plan> &to, const host_place &at,
		       std::span<const message> all)
{
	if (all.empty())
		return {};
	SLUICE_TRY(auto sent, plan_send(at.ranks, all, {}));
	to.push_back(std::move(sent));
	return {};
}

result<void> check_all_to_all(const host_place &at, std::span<const slice> to,
			      std::span<const slice> from, const slice &staging)
{
	const auto kind = pattern::all_to_all;
	const size_t whole = size_of_first(from);
	std::vector<use> uses;

	SLUICE_CHECK(check_all(kind, at.ranks, from, whole));
	SLUICE_CHECK(check_all(kind, at.ranks, to, whole));
	SLUICE_CHECK(check_blocks(kind, whole, at.hosts * at.ranks));
	SLUICE_CHECK(check_size(kind, at.leader, staging, 2 * whole * at.ranks));
	const bool in_place = std::ranges::equal(to, from, same_place);
	uses.push_back(use_of(staging, at.leader, true));
	for (unsigned r = 0; r < at.ranks; r++) {
		uses.push_back(use_of(to[r], r, true));
		if (!in_place)
			uses.push_back(use_of(from[r], r, false));
	}
	return check_apart(kind, std::move(uses));
}

/// A gather, or a scatter: the root has @p all, of which each rank has a block in @p each.
struct rooted {
	pattern kind;
	const host_place &at;
	unsigned root;
	const slice &all;
	std::span<const slice> each;
	const slice &staging;

	bool gathers() const { return kind == pattern::gather; }
	size_t bytes() const { return size_of_first(each); }
	/// Bytes of the ranks of a host.
	size_t own() const { return at.ranks * bytes(); }
	/// Is the root of this host?
	bool here() const { return root / at.ranks == at.host; }
	/// The root, or else the leader.
	unsigned rank() const { return here() ? root % at.ranks : at.leader; }
	/// The leader is the root: its memory needs no staging.
	bool direct() const { return here() && rank() == at.leader; }
	/// The memory that has the blocks of this host's ranks.
	slice blocks() const { return here() ? block(all, at.host, own()) : staging; }
	bool in_place(unsigned r) const
	{
		return here() && r == rank() &&
		       same_place(each[r], block(blocks(), r, bytes()));
	}
};

result<void> check_rooted(const rooted &c)
{
	const size_t whole = c.at.hosts * c.own();
	std::vector<use> uses;

	SLUICE_CHECK(check_root(c.kind, c.at.hosts * c.at.ranks, c.root));
	SLUICE_CHECK(check_all(c.kind, c.at.ranks, c.each, c.bytes()));
	SLUICE_CHECK(check_block(c.kind, c.bytes()));
	if (c.here()) {
		SLUICE_CHECK(check_size(c.kind, c.rank(), c.all, whole));
		uses.push_back(use_of(c.all, c.rank(), c.gathers()));
	}
	if (!c.direct()) {
		SLUICE_CHECK(check_size(c.kind, c.at.leader, c.staging,
					c.here() ? whole : c.own()));
		uses.push_back(use_of(c.staging, c.at.leader, true));
	}
	for (unsigned r = 0; r < c.at.ranks; r++)
		if (!c.in_place(r))
			uses.push_back(use_of(c.each[r], r, !c.gathers()));
	return check_apart(c.kind, std::move(uses));
}

/// Between the root and its host's leader: the blocks of other hosts' ranks.
std::vector<message> relayed(const rooted &c)
{
	std::vector<message> made;

	if (!c.here() || c.direct())
		return made;
	for (auto [offset, length] : of_others(c.at, c.own())) {
		const slice all = c.all.part(offset, length);
		const slice staging = c.staging.part(offset, length);

		if (c.gathers())
			made.push_back({c.at.leader, c.rank(), all, staging});
		else
			made.push_back({c.rank(), c.at.leader, staging, all});
	}
	return made;
}

result<host_plan> plan_rooted(const rooted &c)
{
	SLUICE_CHECK(check_rooted(c));
	const slice &shared = c.direct() ? c.all : c.staging;
	host_plan made{c.kind, c.root, c.bytes(), shared, {}, {}};
	auto inside =
		c.gathers()
			? plan_gather(c.at.ranks, c.rank(), c.blocks(), c.each, {})
			: plan_scatter(c.at.ranks, c.rank(), c.each, c.blocks(), {});
	if (!inside)
		return std::unexpected(inside.error());
	(c.gathers() || c.here() ? made.before : made.after)
		.push_back(*std::move(inside));
	SLUICE_CHECK(
		add_sends(c.gathers() ? made.after : made.before, c.at, relayed(c)));
	return made;
}

} // namespace

// Own blocks are sent within the host at once; those of other hosts come through the
// leader.
result<host_plan> plan_all_gather(const host_place &at, std::span<const slice> to,
				  std::span<const slice> from)
{
	const auto kind = pattern::all_gather;
	const size_t bytes = size_of_first(from), own = at.ranks * bytes;
	std::vector<use> uses;

	SLUICE_CHECK(check_all(kind, at.ranks, from, bytes));
	SLUICE_CHECK(check_block(kind, bytes));
	SLUICE_CHECK(check_all(kind, at.ranks, to, at.hosts * own));
	for (unsigned r = 0; r < at.ranks; r++) {
		uses.push_back(use_of(to[r], r, true));
		if (!same_place(from[r], block(to[r], at.host * at.ranks + r, bytes)))
			uses.push_back(use_of(from[r], r, false));
	}
	SLUICE_CHECK(check_apart(kind, std::move(uses)));
	host_plan made{kind, 0, at.hosts * own, to[at.leader], {}, {}};
	SLUICE_TRY(auto inside,
		   plan_all_gather(at.ranks, parts(to, at.host * own, own), from, {}));
	made.before.push_back(std::move(inside));
	for (auto [offset, length] : of_others(at, own)) {
		SLUICE_TRY(auto spread, plan_broadcast(at.ranks, at.leader,
						       parts(to, offset, length), {}));
		made.after.push_back(std::move(spread));
	}
	return made;
}

// The leaders have one message for each pair of hosts. The senders lay it out so that
// each receiver's blocks are contiguous: all of them share that work, and the leader
// has less.
result<host_plan> plan_all_to_all(const host_place &at, std::span<const slice> to,
				  std::span<const slice> from, const slice &staging)
{
	const size_t whole = size_of_first(from), own = whole / at.hosts;
	const size_t bytes = own / at.ranks, half = at.ranks * whole;
	std::vector<message> out, in;

	SLUICE_CHECK(check_all_to_all(at, to, from, staging));
	host_plan made{pattern::all_to_all, 0, whole, staging, {}, {}};
	SLUICE_TRY(auto inside, plan_all_to_all(at.ranks, parts(to, at.host * own, own),
						parts(from, at.host * own, own), {}));
	made.before.push_back(std::move(inside));
	for (unsigned peer = 0; peer < at.hosts * at.ranks; peer++) {
		const unsigned host = peer / at.ranks, there = peer % at.ranks;

		if (host == at.host)
			continue;
		for (unsigned r = 0; r < at.ranks; r++)
			out.push_back({r, at.leader,
				       block(staging, peer * at.ranks + r, bytes),
				       block(from[r], peer, bytes)});
		in.push_back({at.leader, there, block(to[there], host, own),
			      staging.part(half + peer * own, own)});
	}
	SLUICE_CHECK(add_sends(made.before, at, out));
	SLUICE_CHECK(add_sends(made.after, at, in));
	return made;
}

// On the root's host all get it at once, including the leader.
result<host_plan> plan_broadcast(const host_place &at, unsigned root,
				 std::span<const slice> memory)
{
	const auto kind = pattern::broadcast;

	SLUICE_CHECK(check_root(kind, at.hosts * at.ranks, root));
	const bool here = root / at.ranks == at.host;
	SLUICE_TRY(auto spread,
		   plan_broadcast(at.ranks, here ? root % at.ranks : at.leader, memory,
				  {}));
	const slice &shared = memory[at.leader];
	host_plan made{kind, root, shared.size(), shared, {}, {}};
	(here ? made.before : made.after).push_back(std::move(spread));
	return made;
}

result<host_plan> plan_gather(const host_place &at, unsigned root, const slice &to,
			      std::span<const slice> from, const slice &staging)
{
	return plan_rooted({pattern::gather, at, root, to, from, staging});
}

result<host_plan> plan_scatter(const host_place &at, unsigned root,
			       std::span<const slice> to, const slice &from,
			       const slice &staging)
{
	return plan_rooted({pattern::scatter, at, root, from, to, staging});
}

uint64_t bytes_of(std::span<const step> steps) noexcept
{
	uint64_t all = 0;

	for (const step &one : steps)
		all += one.from.size() * one.to.size() * (one.swaps ? 2 : 1);
	return all;
}

result<void> fits(const batch_limits &most, std::span<const step> steps)
{
	const uint64_t bytes = bytes_of(steps);

	// one is the wait of a prelaunched collective
	if (steps.size() >= most.operations)
		return fail(
			errc::usage, "collective",
			std::format("{} operations of one rank, a batch has at most "
				    "{}: do it in several",
				    steps.size(), most.operations - 1));
	if (bytes > most.bytes)
		return fail(errc::usage, "collective",
			    std::format("one rank moves {} bytes, a batch at most {}: "
					"do it in parts",
					bytes, most.bytes));
	return {};
}

unsigned engines_wanted(variant how, std::span<const step> steps) noexcept
{
	return how == variant::b2b ? 1u : static_cast<unsigned>(steps.size());
}

uint32_t pick_engines(uint32_t usable, uint32_t avoid, unsigned count,
		      unsigned skip) noexcept
{
	uint32_t good = usable & ~avoid, picked = 0;
	auto number = static_cast<unsigned>(std::popcount(good));
	auto lowest = [](uint32_t mask) { return mask & -mask; };

	for (skip = number ? skip % number : 0; skip; skip--)
		good &= good - 1;
	while (count-- && picked != usable) {
		if (!good) // wrap around, and then those to be avoided
			good = usable & ~avoid & ~picked;
		picked |= lowest(good ? good : usable & ~picked);
		good &= ~picked;
	}
	return picked;
}

} // namespace sluice::detail
