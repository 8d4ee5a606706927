// SPDX-License-Identifier: MIT
// Collectives over several hosts, without a GPU: their plans, carried out on bytes, and
// what hosts say to each other, by a transport between threads.
#include <condition_variable>
#include <format>
#include <functional>
#include <mutex>
#include <thread>

#include "group_cases.hpp"
#include "host_set.hpp"

using namespace sluice;
using namespace sluice::detail;
using namespace std::chrono_literals;

namespace {

// What a transport is defined to do, with the memory of all hosts.

void gather_all(std::span<const slice> memory)
{
	const size_t part = memory[0].size() / memory.size();

	for (size_t from = 0; from < memory.size(); from++)
		for (size_t to = 0; to < memory.size(); to++)
			if (from != to)
				std::ranges::copy(
					memory[from].part(from * part, part).bytes(),
					memory[to].part(from * part, part).data());
}

void broadcast_all(std::span<const slice> memory, unsigned root)
{
	for (size_t to = 0; to < memory.size(); to++)
		if (to != root)
			std::ranges::copy(memory[root].bytes(), memory[to].data());
}

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

/// Memory of all ranks, of each host one buffer.
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
	/// Where the block of rank @p r of @p host goes.
	size_t place(unsigned host, unsigned r) const
	{
		return (host * of.ranks + r) * of.block;
	}

	/// One host after the other, in each phase.
	void carry_out(const std::vector<host_plan> &plans)
	{
		slices shared;

		for (const host_plan &p : plans) {
			for (const plan &one : p.before)
				sluice::carry_out(one, w.random());
			shared.push_back(p.shared);
		}
		if (plans[0].kind == pattern::all_gather)
			gather_all(shared);
		else
			broadcast_all(shared, plans[0].root / of.ranks);
		for (const host_plan &p : plans)
			for (const plan &one : p.after)
				sluice::carry_out(one, w.random());
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

	shape of;
	world w;
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

// But for what comes by the leader, and what is there.
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

/// Mistakes of the second of three hosts, of two ranks each.
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
	// a block of its own host, but not its own; one of another host
	for (unsigned block : {3, 0, 5}) {
		from[0] = to[0].part(block * 100, 100);
		EXPECT_FALSE(plan_all_gather(at, to, from)) << block;
	}
	from[0] = to[0].part(201, 100);
	expect(plan_all_gather(at, to, from), errc::usage, 0,
	       "all_gather: rank 0: its block overlaps what is to be gathered");
	from[0] = to[0].part(200, 100);
	EXPECT_TRUE(plan_all_gather(at, to, from));
}

// At no time do ranks write to the same bytes, and yet one has what is for the other.
TEST_F(HostMistakeTest, GatheredOverAnother)
{
	const slice both = all.w.take(1, 1200);

	to = {both.part(0, 600), both.part(200, 600)};
	expect(plan_all_gather(at, to, from), errc::usage, 1,
	       "all_gather: rank 1: what it gathers overlaps what rank 0 does");
	to[1] = both.part(600, 600);
	EXPECT_TRUE(plan_all_gather(at, to, from));
}

namespace {

/// Where threads that are hosts meet: who comes last moves the data of all.
class hub {
public:
	using mover = std::function<void(std::span<const slice>)>;

	explicit hub(unsigned hosts) : come_(hosts) {}

	unsigned hosts() const { return static_cast<unsigned>(come_.size()); }
	result<void> meet(unsigned host, const slice &memory, const mover &move)
	{
		std::unique_lock guard(lock_);
		const unsigned turn = turn_;

		come_[host] = memory;
		if (missing() == hosts()) {
			move(come_);
			come_.assign(hosts(), {});
			turn_++;
			changed_.notify_all();
			return {};
		}
		if (changed_.wait_for(guard, patience, [&] { return turn_ != turn; }))
			return {};
		return std::unexpected(
			error(errc::peer_lost, "hub", "somebody is missing")
				.at(missing()));
	}

	std::chrono::milliseconds patience = 20s;

private:
	unsigned missing() const
	{
		auto nobody = [](const slice &s) { return !s.of(); };

		return static_cast<unsigned>(std::ranges::find_if(come_, nobody) -
					     come_.begin());
	}

	std::mutex lock_;
	std::condition_variable changed_;
	slices come_;
	unsigned turn_ = 0;
};

class thread_transport : public host_transport {
public:
	thread_transport(hub &place, unsigned host) : hub_(place), host_(host) {}

	unsigned hosts() const noexcept override { return hub_.hosts(); }
	unsigned host() const noexcept override { return host_; }
	result<void> all_gather(const slice &all) override
	{
		return hub_.meet(host_, all, gather_all);
	}
	result<void> broadcast(unsigned root, const slice &memory) override
	{
		return hub_.meet(host_, memory, [root](std::span<const slice> all) {
			broadcast_all(all, root);
		});
	}

private:
	hub &hub_;
	unsigned host_;
};

struct HostsTest : ::testing::Test {
	using body = std::function<void(unsigned host, host_set &set)>;

	/// Each host but @p absent does @p what.
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

	/// @p got at @p host, where it went badly at @p bad.
	template <class T>
	static void expect_failed(const result<T> &got, unsigned host, unsigned bad)
	{
		if (host == bad)
			expect(got, errc::device, 1, "0000:01:00.0: it hangs");
		else
			expect(got, errc::peer_error, bad,
			       std::format("host {}: it failed there: device", bad));
	}

	/// What the leader of each of three hosts has for the blocks of all.
	static slices shared_of(all_hosts &all)
	{
		slices shared;

		for (unsigned h = 0; h < 3; h++)
			shared.push_back(all.w.take(h, 3 * 4096));
		return shared;
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

// Who differs from what is here is named. All are told.
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
	for (pattern kind : {pattern::all_gather, pattern::broadcast}) {
		all_hosts all({3, 2, 0, 2048, false}, 7);
		slices shared = shared_of(all);

		// root 3 is the second rank of host 1
		for (unsigned h = 0; h < 3; h++)
			for (unsigned part = 0; part < 3; part++)
				all.w.expect(
					shared[h].part(part * 4096, 4096),
					shared[kind == pattern::broadcast ? 1 : part]
						.part(part * 4096, 4096));
		together([&](unsigned host, host_set &set) {
			EXPECT_TRUE(set.exchange(a_run(kind, 3), shared[host], well));
		});
		EXPECT_TRUE(all.w.right());
	}
}

// Nobody waits for it, and nothing is moved.
TEST_F(HostsTest, ExchangeNothingIfOneHasFailed)
{
	all_hosts all({3, 2, 0, 2048, false}, 7);
	slices shared = shared_of(all);

	together([&](unsigned host, host_set &set) {
		auto got = set.exchange(a_run(pattern::all_gather, 0), shared[host],
					host == 2 ? badly : well);

		expect_failed(got, host, 2);
	});
	EXPECT_TRUE(all.w.untouched());
}
