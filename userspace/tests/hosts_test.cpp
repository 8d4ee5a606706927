// SPDX-License-Identifier: MIT
// Collectives over several hosts, without a GPU: their plans, carried out on bytes, and
// the messages between hosts, by a transport between threads.
#include <format>
#include <thread>

#include "host_set.hpp"
#include "host_threads.hpp"

using namespace sluice;
using namespace sluice::detail;
using namespace std::chrono_literals;

namespace {

struct shape {
	unsigned hosts, ranks, leader;
	size_t block;
	bool in_place;

	host_place at(unsigned host) const { return {hosts, host, ranks, leader}; }
	std::string text() const
	{
		return std::format("{} hosts of {} ranks, leader {}, {} bytes{}", hosts,
				   ranks, leader, block, in_place ? ", in place" : "");
	}
};

/// Memory of all ranks, with one buffer per host.
struct all_hosts {
	all_hosts(const shape &s, uint32_t seed) : of(s), w(memory_of(s.hosts), seed) {}

	static std::vector<buffer> memory_of(unsigned hosts)
	{
		static const std::vector<buffer> all = [] {
			std::vector<buffer> made;

			for (int h = 0; h < 4; h++)
				made.push_back(*buffer::host(128 << 10,
							     {.huge_pages = false}));
			return made;
		}();
		return {all.begin(), all.begin() + hosts};
	}
	slices take(unsigned host, size_t size)
	{
		slices made;

		for (unsigned r = 0; r < of.ranks; r++)
			made.push_back(w.take(host, size));
		return made;
	}
	/// The place of the block of rank @p r of @p host.
	size_t place(unsigned host, unsigned r) const
	{
		return (host * of.ranks + r) * of.block;
	}

	/// The exchange between leaders.
	void exchange(const host_plan &what, const slices &shared) const
	{
		const unsigned root = what.root / of.ranks;
		slices out, in;

		switch (what.kind) {
		case pattern::all_gather: return gather_all(shared);
		case pattern::broadcast: return broadcast_all(shared, root);
		case pattern::gather: return scatter_all(shared, root, true);
		case pattern::scatter: return scatter_all(shared, root, false);
		default: break;
		}
		for (const slice &one : shared) {
			out.push_back(one.part(0, one.size() / 2));
			in.push_back(one.part(one.size() / 2, one.size() / 2));
		}
		exchange_all(in, out);
	}

	/// In each phase, one host after the other.
	void carry_out(const std::vector<host_plan> &plans)
	{
		slices shared;

		for (const host_plan &p : plans) {
			for (const plan &one : p.before)
				sluice::carry_out(one, w.random());
			shared.push_back(p.shared);
		}
		exchange(plans[0], shared);
		for (const host_plan &p : plans)
			for (const plan &one : p.after)
				sluice::carry_out(one, w.random());
		for (const slice &one : staging)
			w.accept(one);
	}
	slice take_staging(unsigned host, size_t size)
	{
		staging.push_back(w.take(host, size));
		return staging.back();
	}

	std::vector<host_plan> gathers()
	{
		std::vector<slices> to, from;
		std::vector<host_plan> plans;

		for (unsigned h = 0; h < of.hosts; h++) {
			to.push_back(take(h, of.hosts * of.ranks * of.block));
			from.push_back(take(h, of.block));
			for (unsigned r = 0; r < of.ranks && of.in_place; r++)
				from[h][r] = to[h][r].part(place(h, r), of.block);
			plans.push_back(
				plan_all_gather(of.at(h), to[h], from[h]).value());
		}
		for (const slices &host : to)
			for (const slice &one : host)
				for (unsigned h = 0; h < of.hosts; h++)
					for (unsigned r = 0; r < of.ranks; r++)
						w.expect(
							one.part(place(h, r), of.block),
							from[h][r]);
		return plans;
	}
	std::vector<host_plan> broadcasts(unsigned root)
	{
		std::vector<slices> memory;
		std::vector<host_plan> plans;

		for (unsigned h = 0; h < of.hosts; h++) {
			memory.push_back(take(h, of.block));
			plans.push_back(
				plan_broadcast(of.at(h), root, memory[h]).value());
		}
		for (const slices &host : memory)
			for (const slice &one : host)
				w.expect(one, memory[root / of.ranks][root % of.ranks]);
		return plans;
	}

	std::vector<host_plan> all_to_alls()
	{
		const size_t whole = of.hosts * of.ranks * of.block;
		std::vector<slices> to, from;
		std::vector<host_plan> plans;

		for (unsigned h = 0; h < of.hosts; h++) {
			from.push_back(take(h, whole));
			to.push_back(of.in_place ? from[h] : take(h, whole));
			plans.push_back(
				plan_all_to_all(of.at(h), to[h], from[h],
						take_staging(h, 2 * of.ranks * whole))
					.value());
		}
		for (unsigned i = 0; i < of.hosts * of.ranks; i++)
			for (unsigned j = 0; j < of.hosts * of.ranks; j++)
				w.expect(to[j / of.ranks][j % of.ranks].part(
						 i * of.block, of.block),
					 from[i / of.ranks][i % of.ranks].part(
						 j * of.block, of.block));
		return plans;
	}
	/// Gathers, or scatters.
	std::vector<host_plan> rooted(pattern kind, unsigned root)
	{
		const unsigned host = root / of.ranks, rank = root % of.ranks;
		const size_t own = of.ranks * of.block, whole = of.hosts * own;
		const slice all = w.take(host, whole);
		std::vector<host_plan> plans;

		for (unsigned h = 0; h < of.hosts; h++) {
			const bool here = h == host;
			slice by;
			slices each = take(h, of.block);

			if (here && of.in_place)
				each[rank] = all.part(place(h, rank), of.block);
			if (!here || rank != of.leader)
				by = take_staging(h, here ? whole : own);
			const slice &its = here ? all : slice();
			plans.push_back(
				kind == pattern::gather
					? plan_gather(of.at(h), root, its, each, by)
						  .value()
					: plan_scatter(of.at(h), root, each, its, by)
						  .value());
			for (unsigned r = 0; r < of.ranks; r++) {
				slice part = all.part(place(h, r), of.block);

				if (kind == pattern::gather)
					w.expect(part, each[r]);
				else
					w.expect(each[r], part);
			}
		}
		return plans;
	}

	shape of;
	world w;
	slices staging;
};

template <class F> void for_each_shape(F what)
{
	for (unsigned hosts = 1; hosts <= 4; hosts++)
		for (unsigned ranks : {1, 2, 3, 8})
			for (unsigned leader = 0; leader < ranks; leader++)
				for (size_t block : {1, 33, 400})
					for (bool in_place : {false, true})
						what(shape{hosts, ranks, leader, block,
							   in_place});
}

size_t bytes_of(const std::vector<plan> &all)
{
	size_t bytes = 0;

	for (const plan &p : all)
		for (const auto &rank : p.ranks)
			for (const step &s : rank)
				bytes += s.from.size() * s.to.size();
	return bytes;
}

} // namespace

TEST(HostPlan, GathersFromAllToAll)
{
	uint32_t seed = 1;

	for_each_shape([&](const shape &s) {
		all_hosts all(s, seed++);

		all.carry_out(all.gathers());
		ASSERT_TRUE(all.w.right()) << s.text();
	});
}

TEST(HostPlan, BroadcastsFromEachRank)
{
	uint32_t seed = 1;

	for_each_shape([&](const shape &s) {
		for (unsigned root = 0; root < s.hosts * s.ranks; root++) {
			all_hosts all(s, seed++);

			all.carry_out(all.broadcasts(root));
			ASSERT_TRUE(all.w.right()) << s.text() << ", root " << root;
		}
	});
}

TEST(HostPlan, ExchangesBlocksOfAll)
{
	uint32_t seed = 1;

	for_each_shape([&](shape s) {
		s.block = std::min<size_t>(s.block, 120); // memory is staged, too
		all_hosts all(s, seed++);

		all.carry_out(all.all_to_alls());
		ASSERT_TRUE(all.w.right()) << s.text();
	});
}

TEST(HostPlan, GathersToEachRankAndScattersFromIt)
{
	uint32_t seed = 1;

	for_each_shape([&](const shape &s) {
		for (unsigned root = 0; root < s.hosts * s.ranks; root++)
			for (pattern kind : {pattern::gather, pattern::scatter}) {
				all_hosts all(s, seed++);

				all.carry_out(all.rooted(kind, root));
				ASSERT_TRUE(all.w.right())
					<< name(kind) << ", " << s.text() << ", root "
					<< root;
			}
	});
}

// Except what arrives by the leader, and what is there already.
TEST(HostPlan, WritesEachByteOnce)
{
	for_each_shape([&](const shape &s) {
		all_hosts all(s, 1);
		const size_t own = s.ranks * s.block, whole = s.hosts * own;

		for (const host_plan &p : all.gathers())
			EXPECT_EQ(bytes_of(p.before) + bytes_of(p.after),
				  s.ranks * whole - (whole - own) -
					  (s.in_place ? own : 0))
				<< s.text();
		for (const host_plan &p : all.broadcasts(0))
			EXPECT_EQ(bytes_of(p.before) + bytes_of(p.after),
				  (s.ranks - 1) * s.block)
				<< s.text();
	});
}

// Data of other hosts are written once more if staged: by all, and by the leader.
TEST(HostPlan, StagesWhatOtherHostsHave)
{
	for_each_shape([&](shape s) {
		if (s.in_place)
			return;
		s.block = std::min<size_t>(s.block, 120);
		all_hosts all(s, 1);
		const size_t own = s.ranks * s.block, whole = s.hosts * own;

		for (const host_plan &p : all.all_to_alls()) {
			EXPECT_EQ(bytes_of(p.before), s.ranks * whole) << s.text();
			EXPECT_EQ(bytes_of(p.after), s.ranks * (whole - own))
				<< s.text();
		}
		for (pattern kind : {pattern::gather, pattern::scatter}) {
			all_hosts more(s, 1);
			const auto plans = more.rooted(kind, 0);
			const size_t staged = s.leader ? whole - own : 0;

			for (unsigned h = 0; h < s.hosts; h++)
				EXPECT_EQ(bytes_of(plans[h].before) +
						  bytes_of(plans[h].after),
					  own + (h ? 0 : staged))
					<< name(kind) << ", " << s.text();
		}
	});
}

namespace {

template <class T>
void expect(const result<T> &got, errc code, uint32_t index, std::string_view message)
{
	ASSERT_FALSE(got) << message;
	EXPECT_EQ(got.error().code(), code);
	EXPECT_EQ(got.error().index(), index);
	EXPECT_EQ(got.error().message(), message);
}

constexpr uint32_t none = error::no_index;

/// Mistakes on the second of three hosts with two ranks each.
struct HostMistakeTest : ::testing::Test {
	all_hosts all{{3, 2, 0, 100, false}, 1};
	host_place at = all.of.at(1);
	slices to = all.take(1, 600), from = all.take(1, 100);
};

} // namespace

TEST_F(HostMistakeTest, PlacesThatThereAreNot)
{
	EXPECT_TRUE(check_place({4096, 4095, 8, 7}));
	expect(check_place({0, 0, 1, 0}), errc::usage, none,
	       "host_group: 0 hosts: there are 1 to 4096");
	expect(check_place({4097, 0, 1, 0}), errc::usage, none,
	       "host_group: 4097 hosts: there are 1 to 4096");
	expect(check_place({3, 3, 1, 0}), errc::usage, none,
	       "host_group: this is host 3, there are 3, from 0 on");
	expect(check_place({3, 2, 2, 2}), errc::usage, none,
	       "host_group: rank 2 is the leader, the group has 2");
	expect(plan_broadcast(at, 6, from), errc::usage, none,
	       "broadcast: rank 6 is the root, the group has 6 ranks");
	expect(plan_gather(at, 6, {}, from, {}), errc::usage, none,
	       "gather: rank 6 is the root, the group has 6 ranks");
	expect(plan_scatter(at, 6, from, {}, {}), errc::usage, none,
	       "scatter: rank 6 is the root, the group has 6 ranks");
}

TEST_F(HostMistakeTest, SizesThatDiffer)
{
	EXPECT_TRUE(plan_all_gather(at, to, from));
	expect(plan_all_gather(at, from, from), errc::usage, 0,
	       "all_gather: rank 0: 100 bytes where 600 are wanted");
	expect(plan_all_gather(at, to, std::span(from).first(1)), errc::usage, none,
	       "all_gather: memory of 1 ranks, the group has 2");
	from[1] = from[1].part(0, 99);
	expect(plan_all_gather(at, to, from), errc::usage, 1,
	       "all_gather: rank 1: 99 bytes where 100 are wanted");
	expect(plan_broadcast(at, 0, from), errc::usage, 1,
	       "broadcast: rank 1: 99 bytes where 100 are wanted");
	for (slice &s : from)
		s = s.part(0, 0);
	expect(plan_all_gather(at, to, from), errc::usage, none,
	       "all_gather: blocks of 0 bytes");
}

TEST_F(HostMistakeTest, BlocksWhereOthersCome)
{
	// a block of its own host, but not its own; a block of another host
	for (unsigned block : {3, 0, 5}) {
		from[0] = to[0].part(block * 100, 100);
		EXPECT_FALSE(plan_all_gather(at, to, from)) << block;
	}
	from[0] = to[0].part(201, 100);
	expect(plan_all_gather(at, to, from), errc::usage, 0,
	       "all_gather: rank 0: its memory overlaps memory of rank 0, and one of "
	       "the two is written");
	from[0] = to[0].part(200, 100);
	EXPECT_TRUE(plan_all_gather(at, to, from));
}

// Ranks never write to the same bytes at once, and yet one ends up with the other's data.
TEST_F(HostMistakeTest, GatheredOverAnother)
{
	const slice both = all.w.take(1, 1200);

	to = {both.part(0, 600), both.part(200, 600)};
	expect(plan_all_gather(at, to, from), errc::usage, 1,
	       "all_gather: rank 1: its memory overlaps memory of rank 0, and one of "
	       "the two is written");
	to[1] = both.part(600, 600);
	EXPECT_TRUE(plan_all_gather(at, to, from));
}

TEST_F(HostMistakeTest, StagingOfOtherSizes)
{
	const slice much = all.w.take(1, 2400), block = much.part(0, 200);
	const slices blocks = all.take(1, 600);

	EXPECT_TRUE(plan_all_to_all(at, to, blocks, much));
	EXPECT_TRUE(plan_all_to_all(at, to, to, much));
	expect(plan_all_to_all(at, to, blocks, much.part(0, 2399)), errc::usage, 0,
	       "all_to_all: rank 0: 2399 bytes where 2400 are wanted");
	expect(plan_all_to_all(at, from, from, block), errc::usage, none,
	       "all_to_all: 100 bytes are not 6 blocks of one size");
	expect(plan_all_to_all(at, slices(2), blocks, much), errc::usage, 0,
	       "all_to_all: rank 0: no memory");
	// the root is the leader, rank 2 of all; another rank; a rank of another host
	EXPECT_TRUE(plan_gather(at, 2, to[0], from, {}));
	EXPECT_TRUE(plan_gather(at, 3, to[1], from, to[0]));
	EXPECT_TRUE(plan_gather(at, 0, {}, from, block));
	EXPECT_TRUE(plan_scatter(at, 0, from, {}, block));
	expect(plan_gather(at, 3, to[1], from, block), errc::usage, 0,
	       "gather: rank 0: 200 bytes where 600 are wanted");
	expect(plan_gather(at, 3, to[1].part(0, 599), from, to[0]), errc::usage, 1,
	       "gather: rank 1: 599 bytes where 600 are wanted");
	expect(plan_scatter(at, 0, from, {}, {}), errc::usage, 0,
	       "scatter: rank 0: no memory");
}

// Staging memory, and data that are already there when other hosts' arrive.
TEST_F(HostMistakeTest, MemoryThatOverlaps)
{
	const slice much = all.w.take(1, 4200), stage = much.part(0, 2400);
	const slices apart = {much.part(2400, 600), much.part(3000, 600)};
	const auto overlaps = [](const auto &got, unsigned rank, unsigned other) {
		expect(got, errc::usage, rank,
		       std::format("{}: rank {}: its memory overlaps memory of rank "
				   "{}, and one of the two is written",
				   got ? "" : got.error().where(), rank, other));
	};

	EXPECT_TRUE(plan_all_to_all(at, to, apart, stage));
	overlaps(plan_all_to_all(at, to, {{much.part(2399, 600), apart[1]}}, stage), 0,
		 0);
	overlaps(plan_all_to_all(at, {{apart[0], much.part(2999, 600)}}, to, stage), 1,
		 0);
	// in place for one rank only
	overlaps(plan_all_to_all(at, to, {{apart[0], to[1]}}, stage), 1, 1);
	EXPECT_TRUE(plan_gather(at, 3, to[1], from, to[0]));
	overlaps(plan_gather(at, 3, to[1], from, to[1]), 0, 1);
	overlaps(plan_gather(at, 0, {}, {{stage.part(0, 100), from[1]}},
			     stage.part(99, 200)),
		 0, 0);
	// its own block of the result, and another rank's
	EXPECT_TRUE(plan_gather(at, 2, to[0], {{to[0].part(200, 100), from[1]}}, {}));
	overlaps(plan_gather(at, 2, to[0], {{to[0].part(300, 100), from[1]}}, {}), 0,
		 0);
	EXPECT_TRUE(plan_scatter(at, 2, {{to[0].part(200, 100), from[1]}}, to[0], {}));
	overlaps(plan_scatter(at, 2, {{to[0].part(0, 100), from[1]}}, to[0], {}), 0, 0);
}

namespace {

struct HostsTest : ::testing::Test {
	using body = std::function<void(unsigned host, host_set &set)>;

	/// Each host except @p absent does @p what.
	void together(const body &what, unsigned absent = 3)
	{
		std::vector<std::jthread> all;

		for (unsigned h = 0; h < 3; h++)
			if (h != absent)
				all.emplace_back([this, h, what] {
					thread_transport over(place, h);

					what(h, *host_set::make(over).value());
				});
	}

	static host_call a_call(pattern kind = pattern::all_gather)
	{
		return {host_call::step::prepare,
			1,
			static_cast<uint64_t>(kind),
			2,
			3 * 4096,
			0,
			0};
	}
	static host_call a_run(pattern kind, unsigned root)
	{
		host_call made = a_call(kind);

		made.what = host_call::step::run;
		made.root = root;
		return made;
	}

	hub place{3};
	const result<size_t> well = 0;
	const result<size_t> badly =
		std::unexpected(error(errc::device, "0000:01:00.0", "it hangs").at(1));

	/// The result @p got at @p host, if host @p bad failed.
	template <class T>
	static void expect_failed(const result<T> &got, unsigned host, unsigned bad)
	{
		if (host == bad)
			expect(got, errc::device, 1, "0000:01:00.0: it hangs");
		else
			expect(got, errc::peer_error, bad,
			       std::format("host {}: it failed there: device", bad));
	}

	/// The memory of the leader of each of three hosts: two parts per host, or a part
	/// of a gather to, and a scatter from, host 1.
	static slices shared_of(all_hosts &all, pattern kind)
	{
		const bool rooted = kind == pattern::gather || kind == pattern::scatter;
		slices shared;

		for (unsigned h = 0; h < 3; h++)
			shared.push_back(
				all.w.take(h, (rooted && h != 1 ? 2 : 6) * 2048));
		return shared;
	}

	static void expect_parts(world &w, pattern kind, const slices &shared)
	{
		const auto part = [&](unsigned host, unsigned n) {
			return shared[host].part(n * 2048, 2048);
		};

		for (unsigned h = 0; h < 3; h++)
			for (unsigned n = 0; n < 6; n++)
				if (kind == pattern::all_gather)
					w.expect(part(h, n), part(n / 2, n));
				else if (kind == pattern::broadcast)
					w.expect(part(h, n), part(1, n));
				else if (kind == pattern::all_to_all && n >= 3 &&
					 n - 3 != h)
					w.expect(part(h, n), part(n - 3, h));
				else if (kind == pattern::gather && h != 1 && n < 2)
					w.expect(part(1, 2 * h + n), part(h, n));
				else if (kind == pattern::scatter && h != 1 && n < 2)
					w.expect(part(h, n), part(1, 2 * h + n));
	}
};

} // namespace

TEST_F(HostsTest, AgreeAgainAndAgain)
{
	together([&](unsigned, host_set &set) {
		for (uint64_t n = 1; n < 100; n++) {
			host_call call = a_call();

			call.number = set.next();
			ASSERT_EQ(call.number, n);
			ASSERT_TRUE(set.agree(call, well));
		}
	});
}

// The host that differs from this one is named. All are told.
TEST_F(HostsTest, HearThatOneDiffers)
{
	together([&](unsigned host, host_set &set) {
		host_call call = a_call();
		const unsigned other = host == 1 ? 0 : 1;

		call.bytes += host == 1;
		auto got = set.agree(call, well);
		ASSERT_FALSE(got);
		EXPECT_EQ(got.error().code(), errc::protocol);
		EXPECT_EQ(got.error().index(), other);
		if (host == 1)
			return;
		EXPECT_EQ(got.error().message(),
			  "host 1: preparation 1, all_gather of 2 ranks, root 0, "
			  "12289 bytes; here: preparation 1, all_gather of 2 "
			  "ranks, root 0, 12288 bytes");
	});
	const auto differs = [&](auto change) {
		together([&, change](unsigned host, host_set &set) {
			host_call call = a_call();

			if (host == 2)
				change(call);
			auto got = set.agree(call, well);
			ASSERT_FALSE(got);
			EXPECT_EQ(got.error().code(), errc::protocol);
			EXPECT_EQ(got.error().index(), host == 2 ? 0u : 2u);
		});
	};
	differs([](host_call &c) { c.what = host_call::step::run; });
	differs([](host_call &c) { c.number++; });
	differs([](host_call &c) { c.kind = UINT64_MAX; });
	differs([](host_call &c) { c.ranks = 1; });
	differs([](host_call &c) { c.root = 1; });
}

TEST_F(HostsTest, HearThatOneHasFailed)
{
	together([&](unsigned host, host_set &set) {
		auto got = set.agree(host == 1 ? host_call{} : a_call(),
				     host == 1 ? badly : well);

		expect_failed(got, host, 1);
	});
}

TEST_F(HostsTest, HearThatOneIsMissing)
{
	place.patience = 20ms;
	together([&](unsigned, host_set &set) {
		expect(set.agree(a_call(), well), errc::peer_lost, 1,
		       "hub: somebody is missing");
	}, 1);
}

TEST_F(HostsTest, DoNotBelieveAnything)
{
	together([&](unsigned host, host_set &set) {
		host_call call = a_call();

		call.failed = host == 2 ? 1000 : 0;
		expect(set.agree(call, well), errc::protocol, 2,
		       "host 2: it says what makes no sense");
	});
}

TEST_F(HostsTest, ExchangeWhatTheLeadersHave)
{
	for (pattern kind : all_patterns) {
		all_hosts all({3, 2, 0, 2048, false}, 7);
		slices shared = shared_of(all, kind);

		if (kind == pattern::send)
			continue;
		expect_parts(all.w, kind, shared);
		// root 3 is the second rank of host 1
		together([&](unsigned host, host_set &set) {
			EXPECT_TRUE(set.exchange(a_run(kind, 3), shared[host], well));
		});
		EXPECT_TRUE(all.w.right()) << name(kind);
	}
}

// No host waits, and nothing is moved.
TEST_F(HostsTest, ExchangeNothingIfOneHasFailed)
{
	all_hosts all({3, 2, 0, 2048, false}, 7);
	slices shared = shared_of(all, pattern::all_gather);

	together([&](unsigned host, host_set &set) {
		auto got = set.exchange(a_run(pattern::all_gather, 0), shared[host],
					host == 2 ? badly : well);

		expect_failed(got, host, 2);
	});
	EXPECT_TRUE(all.w.untouched());
}
