// SPDX-License-Identifier: MIT
// Plans of collectives, carried out on bytes and compared with the defined effect of the
// operations.
#include <bit>
#include <set>

#include "group_cases.hpp"

using namespace sluice;
using namespace sluice::detail;

namespace {

/// The operations of a group, only planned.
struct planner {
	unsigned ranks;

	auto all_gather(auto &&...a) { return plan_all_gather(ranks, a...); }
	auto all_to_all(auto &&...a) { return plan_all_to_all(ranks, a...); }
	auto broadcast(auto &&...a) { return plan_broadcast(ranks, a...); }
	auto gather(auto &&...a) { return plan_gather(ranks, a...); }
	auto scatter(auto &&...a) { return plan_scatter(ranks, a...); }
	auto send(auto &&...a) { return plan_send(ranks, a...); }
};

buffer some_memory()
{
	return *buffer::host(256 << 10, {.huge_pages = false});
}

result<plan> plan_for(world &w, const collective_case &c)
{
	planner by{c.ranks};

	return do_collective(w, by, c);
}

size_t steps_of(const plan &p)
{
	size_t all = 0;

	for (const auto &rank : p.ranks)
		all += rank.size();
	return all;
}

struct GroupPlanTest : ::testing::TestWithParam<pattern> {
	/// All numbers of ranks, roots, placements and variants.
	template <class F> void for_each(size_t block, F what)
	{
		const pattern kind = GetParam();
		const bool rooted = has_root(kind);

		for (unsigned ranks = 1; ranks <= 8; ranks++)
			for (unsigned root = 0; root < (rooted ? ranks : 1); root++)
				for (bool in_place : {false, true})
					for (variant how : all_variants)
						if (!in_place || has_in_place(kind))
							what({kind, ranks, root, block,
							      in_place, how});
	}
};

INSTANTIATE_TEST_SUITE_P(Operation, GroupPlanTest, ::testing::ValuesIn(all_patterns),
			 name_of_pattern);

} // namespace

TEST_P(GroupPlanTest, DoesWhatItIsDefinedToDo)
{
	const buffer memory = some_memory();
	uint32_t seed = 1;
	unsigned refused = 0, done = 0;

	for (size_t block : {1, 2, 31, 64, 65, 1000, 1537})
		for_each(block, [&](const collective_case &c) {
			world w({&memory, 1}, seed++);
			auto p = plan_for(w, c);
			bool has = allows(c.kind, c.in_place, c.how);

			ASSERT_EQ(p.has_value(), has)
				<< c.text() << ": " << (p ? "" : p.error().message());
			(has ? done : refused)++;
			if (!has)
				return;
			EXPECT_NE(p->how, variant::automatic);
			ASSERT_EQ(p->ranks.size(), c.ranks);
			carry_out(*p, w.random());
			ASSERT_TRUE(w.right()) << c.text();
		});
	EXPECT_GT(done, 100u);
	EXPECT_GT(refused, 50u);
}

// Copies: one per block that has to move. Swaps: one per pair of ranks. Broadcasts: one
// per two destinations.
TEST_P(GroupPlanTest, HasNoMoreStepsThanNeeded)
{
	const buffer memory = some_memory();

	for_each(64, [&](const collective_case &c) {
		if (c.kind == pattern::send || !allows(c.kind, c.in_place, c.how))
			return;
		world w({&memory, 1}, 1);
		auto p = plan_for(w, c).value();
		unsigned n = c.ranks, own = c.in_place ? 0 : 1;
		size_t steps = steps_of(p), most = 0, fewest = SIZE_MAX;

		for (const auto &rank : p.ranks) {
			most = std::max(most, rank.size());
			fewest = std::min(fewest, rank.size());
		}
		bool pairs = p.how == variant::bcst;
		unsigned each = n - 1 + own;
		if (c.kind == pattern::broadcast)
			EXPECT_EQ(steps, pairs ? n / 2 : n - 1) << c.text();
		else if (c.kind == pattern::all_gather)
			EXPECT_EQ(steps, n * (pairs ? (each + 1) / 2 : each))
				<< c.text();
		else if (p.how == variant::swap)
			EXPECT_EQ(steps, n * (n - 1) / 2) << c.text();
		else if (c.kind == pattern::all_to_all)
			EXPECT_EQ(steps, n * each) << c.text();
		else
			EXPECT_EQ(steps, each) << c.text();
		if (c.kind == pattern::all_gather || c.kind == pattern::all_to_all) {
			EXPECT_LE(most - fewest, 1u) << c.text();
		}
	});
}

// DMA-Latte's figures for eight GPUs, in place.
TEST(GroupPlan, HasThePapersNumberOfCopies)
{
	auto count = [](pattern kind, variant how) {
		const buffer memory = some_memory();
		world w({&memory, 1}, 1);

		return steps_of(plan_for(w, {kind, 8, 0, 64, true, how}).value());
	};

	EXPECT_EQ(count(pattern::all_gather, variant::pcpy), 56u);
	EXPECT_EQ(count(pattern::all_gather, variant::bcst), 32u);
	EXPECT_EQ(count(pattern::all_to_all, variant::swap), 28u);
}

// No two ranks have the same first peer.
TEST(GroupPlan, SpreadsOverPeers)
{
	const buffer memory = some_memory();
	world w({&memory, 1}, 1);
	std::set<std::byte *> first;
	slices to = w.take_each(8, 8 * 64), from = w.take_each(8, 64);
	auto p = plan_all_gather(8, to, from, {.how = variant::b2b});

	ASSERT_TRUE(p);
	for (unsigned r = 0; r < 8; r++)
		first.insert(p->ranks[r][0].to[0].data() - r * 64);
	EXPECT_EQ(first.size(), 8u);
}

namespace {

/// Mistakes, and the messages for them.
struct GroupMistakeTest : ::testing::Test {
	const buffer memory = some_memory();
	world w{{&memory, 1}, 1};
	slices to = w.take_each(4, 400), from = w.take_each(4, 100);
	slices wide = w.take_each(4, 400);

	template <class T>
	static void expect(const result<T> &got, uint32_t index,
			   std::string_view message)
	{
		ASSERT_FALSE(got);
		EXPECT_EQ(got.error().code(), errc::usage);
		EXPECT_EQ(got.error().index(), index);
		EXPECT_EQ(got.error().message(), message);
	}
	static constexpr uint32_t none = error::no_index;
};

} // namespace

TEST_F(GroupMistakeTest, SizesThatDiffer)
{
	from[2] = from[2].part(0, 99);
	expect(plan_all_gather(4, to, from, {}), 2,
	       "all_gather: rank 2: 99 bytes where 100 are wanted");
	from[2] = to[2] = w.take(0, 100);
	expect(plan_all_gather(4, to, from, {}), 2,
	       "all_gather: rank 2: 100 bytes where 400 are wanted");
	expect(plan_all_to_all(4, to, wide, {}), 2,
	       "all_to_all: rank 2: 100 bytes where 400 are wanted");
	expect(plan_broadcast(4, 0, to, {}), 2,
	       "broadcast: rank 2: 100 bytes where 400 are wanted");
	expect(plan_gather(4, 1, to[2], from, {}), 1,
	       "gather: rank 1: 100 bytes where 400 are wanted");
	expect(plan_scatter(4, 1, from, to[2], {}), 1,
	       "scatter: rank 1: 100 bytes where 400 are wanted");
	const message wrong[] = {{0, 3, to[0], from[0]}};
	expect(plan_send(4, wrong, {}), 3,
	       "send: rank 3: 400 bytes where 100 are wanted");
}

TEST_F(GroupMistakeTest, NoBytesAndNoMemory)
{
	for (slice &s : from)
		s = s.part(0, 0);
	expect(plan_all_gather(4, to, from, {}), none, "all_gather: blocks of 0 bytes");
	expect(plan_broadcast(4, 0, from, {}), none, "broadcast: blocks of 0 bytes");
	expect(plan_all_to_all(4, from, from, {}), none,
	       "all_to_all: blocks of 0 bytes");
	expect(plan_gather(4, 0, to[0], from, {}), none, "gather: blocks of 0 bytes");
	expect(plan_scatter(4, 0, from, to[0], {}), none, "scatter: blocks of 0 bytes");
	const message nothing[] = {{0, 1, from[0], from[1]}};
	expect(plan_send(4, nothing, {}), none, "send: blocks of 0 bytes");
	to[3] = slice();
	expect(plan_broadcast(4, 0, to, {}), 3, "broadcast: rank 3: no memory");
	const message of_nowhere[] = {{1, 0, to[0], slice()}};
	expect(plan_send(4, of_nowhere, {}), 1, "send: rank 1: no memory");
	to[3] = slice(to[0].of(), to[0].of().size(), 400);
	expect(plan_broadcast(4, 0, to, {}), 3,
	       "broadcast: rank 3: memory outside of its buffer");
}

TEST_F(GroupMistakeTest, BlocksThatAreNotOfOneSize)
{
	for (auto *all : {&to, &wide})
		for (slice &s : *all)
			s = s.part(0, 399);
	expect(plan_all_to_all(4, to, wide, {}), none,
	       "all_to_all: 399 bytes are not 4 blocks of one size");
}

TEST_F(GroupMistakeTest, RanksThatThereAreNot)
{
	expect(plan_broadcast(4, 4, to, {}), none,
	       "broadcast: rank 4 is the root, the group has 4 ranks");
	expect(plan_gather(4, 5, to[0], from, {}), none,
	       "gather: rank 5 is the root, the group has 4 ranks");
	expect(plan_scatter(4, 5, from, to[0], {}), none,
	       "scatter: rank 5 is the root, the group has 4 ranks");
	expect(plan_all_gather(3, to, from, {}), none,
	       "all_gather: memory of 4 ranks, the group has 3");
	const message far[] = {{0, 1, from[0], from[1]}, {4, 1, from[2], from[3]}};
	expect(plan_send(4, far, {}), none,
	       "send: from rank 4 to rank 1, the group has 4 ranks");
	const message away[] = {{0, 9, from[0], from[1]}};
	expect(plan_send(4, away, {}), none,
	       "send: from rank 0 to rank 9, the group has 4 ranks");
}

TEST_F(GroupMistakeTest, VariantsThatThereAreNot)
{
	expect(plan_all_gather(4, to, from, {.how = variant::swap}), none,
	       "all_gather: has no variant swap");
	expect(plan_all_to_all(4, to, wide, {.how = variant::swap}), none,
	       "all_to_all: has no variant swap");
	expect(plan_all_to_all(4, to, to, {.how = variant::b2b}), none,
	       "all_to_all: in place it has no variant b2b");
	expect(plan_gather(4, 0, to[0], from, {.how = variant::bcst}), none,
	       "gather: has no variant bcst");
}

TEST_F(GroupMistakeTest, MemoryThatOverlaps)
{
	slices swapped = to;

	std::swap(swapped[0], swapped[1]);
	EXPECT_FALSE(plan_all_to_all(4, to, swapped, {}));
	// Overlap by one byte of a neighbour.
	slice both = w.take(0, 900);
	to[1] = both.part(0, 400);
	to[2] = both.part(399, 400);
	EXPECT_FALSE(plan_all_gather(4, to, from, {}));
	to[2] = both.part(400, 400);
	EXPECT_TRUE(plan_all_gather(4, to, from, {}));
	// Two ranks with the same memory.
	EXPECT_FALSE(plan_broadcast(4, 0, slices(4, wide[0]), {}));
	// In place, but in the block of another rank.
	from[2] = to[2].part(300, 100);
	EXPECT_FALSE(plan_all_gather(4, to, from, {}));
	// Several ranks may read the same memory.
	const message same[] = {
		{0, 1, to[1], wide[0]}, {0, 2, to[2], wide[0]}, {3, 2, to[3], wide[0]}};
	EXPECT_TRUE(plan_send(4, same, {}));
	const message ring[] = {{0, 1, to[1], to[0]}, {1, 0, to[3], to[1]}};
	expect(plan_send(4, ring, {}), 1,
	       "send: rank 1: its memory overlaps memory of rank 1, and one of "
	       "the two is written");
	// It is named whose memory it is, not who would write there.
	to[3] = to[2] = wide[1];
	expect(plan_all_gather(4, to, from, {}), 3,
	       "all_gather: rank 3: its memory overlaps memory of rank 2, and one of "
	       "the two is written");
}

// It is not moved, but another rank's block would overwrite it.
TEST_F(GroupMistakeTest, BlocksInPlaceThatAreOverwritten)
{
	const slice all = to[0].part(0, 200), own = all.part(0, 100);

	expect(plan_scatter(2, 0, slices(2, own), all, {}), 1,
	       "scatter: rank 1: its memory overlaps memory of rank 0, and one of the "
	       "two is written");
	EXPECT_TRUE(plan_scatter(2, 0, slices{own, from[1]}, all, {}));
	EXPECT_FALSE(plan_all_to_all(2, slices(2, all), slices(2, all), {}));
	const message kept[] = {{0, 0, own, own}, {1, 0, all, to[1].part(0, 200)}};
	EXPECT_FALSE(plan_send(2, kept, {}));
	// Nobody writes to a block that two have in place.
	const message both[] = {{0, 0, own, own}, {1, 1, own, own}};
	EXPECT_TRUE(plan_send(2, both, {}));
}

// Processes that differ in these would move the same bytes between the same places.
TEST_F(GroupMistakeTest, RootsAndReceiversAreCompared)
{
	const auto sum = [](const result<plan> &of) {
		return summary_of(of.value(), false);
	};
	const message one[] = {{0, 1, to[1], wide[0]}, {2, 3, to[3], wide[2]}};
	const message other[] = {{0, 1, to[1], wide[0]}, {2, 1, to[3], wide[2]}};
	const message turned[] = {one[1], one[0]};

	EXPECT_NE(sum(plan_gather(4, 0, to[0], from, {})),
		  sum(plan_gather(4, 1, to[0], from, {})));
	EXPECT_NE(sum(plan_scatter(4, 0, from, to[0], {})),
		  sum(plan_scatter(4, 1, from, to[0], {})));
	EXPECT_NE(sum(plan_send(4, one, {})), sum(plan_send(4, other, {})));
	EXPECT_EQ(sum(plan_send(4, one, {})), sum(plan_send(4, turned, {})));
}

// For eight ranks: the quickest ones in the paper's tables.
TEST(GroupChoice, IsThePapers)
{
	constexpr uint64_t KiB = 1024;
	// Bytes of the whole collective; a block has an eighth of them.
	auto chosen = [](pattern kind, bool in_place, bool prelaunch, uint64_t whole) {
		return choose({kind, in_place, prelaunch, 8, 7, 1, whole / 8});
	};
	auto gather = [&](bool prelaunch, uint64_t whole) {
		return chosen(pattern::all_gather, false, prelaunch, whole);
	};
	auto exchange = [&](bool prelaunch, uint64_t whole) {
		return chosen(pattern::all_to_all, false, prelaunch, whole);
	};

	for (bool prelaunch : {false, true}) {
		EXPECT_EQ(gather(prelaunch, 1 * KiB), variant::b2b);
		EXPECT_EQ(gather(prelaunch, 128 * KiB), variant::b2b);
		EXPECT_EQ(gather(prelaunch, 65536 * KiB), variant::pcpy);
		EXPECT_EQ(gather(prelaunch, uint64_t{1} << 40), variant::pcpy);
		EXPECT_EQ(exchange(prelaunch, 1 * KiB), variant::b2b);
		EXPECT_EQ(exchange(prelaunch, 64 * KiB), variant::b2b);
		EXPECT_EQ(exchange(prelaunch, 4096 * KiB), variant::pcpy);
		EXPECT_EQ(chosen(pattern::all_to_all, true, prelaunch, 64 * KiB),
			  variant::swap);
	}
	EXPECT_EQ(gather(false, 512 * KiB), variant::b2b);
	EXPECT_EQ(gather(false, 4096 * KiB), variant::bcst);
	EXPECT_EQ(gather(true, 512 * KiB), variant::bcst);
	EXPECT_EQ(gather(true, 4096 * KiB), variant::pcpy);
	EXPECT_EQ(exchange(false, 1024 * KiB), variant::b2b);
	EXPECT_EQ(exchange(true, 1024 * KiB), variant::pcpy);
}

// More engines do not speed up what one rank sends to another over one link, unless
// their packets take most of the time.
TEST(GroupChoice, GoesByWhatALinkCarries)
{
	constexpr uint64_t KiB = 1024;
	auto chosen = [](size_t for_one, uint64_t block) {
		return choose({pattern::send, false, false, 1, 512, for_one, block});
	};

	EXPECT_EQ(chosen(512, 32 * KiB), variant::b2b);
	EXPECT_EQ(chosen(512, 4 * KiB), variant::pcpy);
	EXPECT_EQ(chosen(128, 32 * KiB), variant::pcpy);
}

// One rank in place.
TEST(GroupChoice, HasSomethingForNothing)
{
	EXPECT_EQ(choose({pattern::all_gather, true, false, 0, 0, 0, 0}), variant::b2b);
}

// The choice is a variant that the operation has.
TEST(GroupChoice, IsAllowed)
{
	for (pattern kind : all_patterns)
		for (bool in_place : {false, true})
			for (bool prelaunch : {false, true})
				for (int shift = 0; shift < 64; shift++)
					EXPECT_TRUE(allows(
						kind, in_place,
						choose({kind, in_place, prelaunch, 8, 7,
							1, uint64_t{1} << shift})));
}

TEST(GroupSteps, AreOneBatch)
{
	buffer memory = some_memory();
	std::vector<step> steps(
		2, {{memory.part(0, 10), memory.part(20, 10)}, memory.part(40, 10)});

	steps.push_back({{memory.part(60, 5)}, memory.part(80, 5), true});
	EXPECT_EQ(bytes_of(steps), 50u);
	EXPECT_TRUE(fits({.operations = 4, .bytes = 50}, steps));
	EXPECT_EQ(
		fits({.operations = 3, .bytes = 50}, steps).error().message(),
		"collective: 3 operations of one rank, a batch has at most 2: do it in "
		"several");
	EXPECT_EQ(fits({.operations = 4, .bytes = 49}, steps).error().message(),
		  "collective: one rank moves 50 bytes, a batch at most 49: do it in "
		  "parts");
}

TEST(GroupEngines, ArePickedRoundAndRound)
{
	EXPECT_EQ(pick_engines(0xf, 0, 1, 0), 0x1u);
	EXPECT_EQ(pick_engines(0xf, 0, 1, 5), 0x2u);
	EXPECT_EQ(pick_engines(0xf, 0, 2, 3), 0x9u);
	EXPECT_EQ(pick_engines(0xf, 0x3, 1, 0), 0x4u);
	EXPECT_EQ(pick_engines(0xf, 0x3, 2, 1), 0xcu);
	EXPECT_EQ(pick_engines(0xf, 0x3, 3, 1), 0xdu);
	EXPECT_EQ(pick_engines(0xf, 0x3, 9, 1), 0xfu);
	EXPECT_EQ(pick_engines(0x3, 0x3, 1, 7), 0x1u);
	EXPECT_EQ(pick_engines(0, 0, 3, 7), 0u);
	for (unsigned count = 0; count <= 16; count++)
		for (unsigned skip = 0; skip < 20; skip++)
			EXPECT_EQ(std::popcount(pick_engines(0xeeee, 2, count, skip)),
				  static_cast<int>(std::min(count, 12u)));
}

TEST(Variant, HasAName)
{
	for (variant how : all_variants)
		EXPECT_EQ(variant_of(sluice::name(how)), how);
	auto none = variant_of("ring");
	ASSERT_FALSE(none);
	EXPECT_EQ(none.error().message(), "ring: no variant of collectives: automatic, "
					  "pcpy, bcst, swap or b2b");
}
