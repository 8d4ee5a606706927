// SPDX-License-Identifier: MIT
// Collectives of emulated GPUs that are slow, hang, or disappear: no call waits forever,
// and each rank reports its result. The last test removes a GPU for good.
#include <bit>
#include <thread>

#include "emulator.hpp"
#include "group_test.hpp"
#include "host_threads.hpp"
#include "try.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

struct GroupFaultTest : GroupTest {
	void SetUp() override
	{
		GroupTest::SetUp();
		if (!IsSkipped() && !emulator_.there())
			GTEST_SKIP() << "nobody can disturb these GPUs";
	}

	/// A collective that has run once. Before the first run, engines bring memory and
	/// page tables up to date, which takes long, and which a hung engine does not do.
	static collective warm(world &w, group &by, const collective_case &c)
	{
		auto made = good(do_collective(w, by, c));
		auto first = run_in_time(made);

		EXPECT_GOOD(first);
		return made;
	}
	/// A run that the first GPU does not complete.
	collective_run hung(collective &by)
	{
		emulator_.tell(0, "engine all hang");
		auto running = by.run();

		EXPECT_FALSE(ends(running, 0, 100ms))
			<< (running.of(0) ? "done" : running.of(0).error().message());
		return running;
	}
	unsigned engines() const
	{
		return static_cast<unsigned>(std::popcount(gpus[0].limits().engines));
	}
	/// The number of ranks that failed. All must be done.
	unsigned failed(collective_run &running)
	{
		unsigned n = 0;

		for (unsigned r = 0; r < running.ranks(); r++) {
			auto moved = running.of(r);

			n += !moved;
			if (!moved) {
				EXPECT_EQ(moved.error().code(), errc::device)
					<< moved.error().message();
				EXPECT_EQ(moved.error().index(), r);
				EXPECT_EQ(moved.error().where(),
					  gpus[r].info().address);
			}
		}
		return n;
	}

	/// Waits until all GPUs work after a reset.
	void works_again()
	{
		const deadline patience = after(30s);
		auto moved = gathers();

		while (!moved && clock::now() < patience) {
			EXPECT_EQ(moved.error().code(), errc::device)
				<< moved.error().message();
			std::this_thread::sleep_for(100ms);
			open_all();
			moved = gathers();
		}
		ASSERT_GOOD(moved);
	}

	/// The result of a second gather over the GPUs of two hosts. A GPU of host 0 hangs.
	result<size_t> run_as_host(hub &place, unsigned host)
	{
		context own = good(context::open());
		std::vector<device> two;
		std::vector<buffer> here;
		std::vector<slice> to, from;
		const auto all = list_devices();

		for (unsigned i = 2 * host; i < 2 * host + 2; i++) {
			two.push_back(good(device::open(own, all[i].address)));
			here.push_back(good(two.back().vram(5 * page_size)));
			to.push_back(here.back().part(0, 4 * page_size));
			from.push_back(here.back().part(4 * page_size, page_size));
		}
		auto local = good(group::make(own, two));
		thread_transport over(place, host);
		auto hosts = good(host_group::make(local, over));
		auto gather = good(hosts.all_gather(to, from));
		EXPECT_GOOD(gather.run());
		if (host == 0)
			emulator_.tell(0, "engine all hang");
		return gather.run();
	}

	emulator emulator_;

private:
	result<size_t> gathers()
	{
		group by = all();
		world w(memory, 1);
		SLUICE_TRY(auto made,
			   do_collective(w, by, a_case(variant::automatic, false)));
		auto moved = made.run().wait();

		EXPECT_TRUE(!moved || w.right());
		return moved;
	}
};

} // namespace

// Each batch rings the doorbell of its engine once.
TEST_F(GroupFaultTest, VariantsUseAsManyEnginesAsTheySay)
{
	const unsigned peers = ranks() - 1;
	const std::pair<variant, unsigned> each[] = {{variant::pcpy, peers},
						     {variant::bcst, (peers + 1) / 2},
						     {variant::b2b, 1}};
	group by = all();

	for (auto [how, wanted] : each) {
		world w(memory, 1);
		collective_case c = a_case(how, false);
		long rung = 0;

		c.in_place = true;
		auto made = warm(w, by, c);

		for (unsigned gpu = 0; gpu < ranks(); gpu++)
			rung -= emulator_.count(gpu, "engine_doorbells");
		auto moved = made.run().wait();
		ASSERT_GOOD(moved);
		for (unsigned gpu = 0; gpu < ranks(); gpu++)
			rung += emulator_.count(gpu, "engine_doorbells");
		EXPECT_EQ(rung, ranks() * std::min(wanted, engines())) << name(how);
	}
}

TEST_F(GroupFaultTest, ASlowGpuOnlyTakesLonger)
{
	group by = all();

	for (variant how : {variant::pcpy, variant::bcst, variant::b2b}) {
		world w(memory, 1);
		auto made = good(do_collective(w, by, a_case(how, false)));
		auto begun = clock::now();

		emulator_.tell(0, "engine all slow 20000");
		auto moved = made.run().wait();
		emulator_.tell(0, "engine all resume");
		EXPECT_GE(clock::now() - begun, 20ms);
		ASSERT_GOOD(moved);
		EXPECT_TRUE(w.right());
	}
}

TEST_F(GroupFaultTest, ASlowEngineOnlyTakesLonger)
{
	group by = all();

	for (unsigned e = 0; e < engines(); e++) {
		world w(memory, e);
		auto made = good(do_collective(w, by, a_case(variant::pcpy, true)));

		emulator_.tell(0, std::format("engine {} slow 1000", e));
		auto moved = run_in_time(made);
		emulator_.tell(0, std::format("engine {} resume", e));
		ASSERT_GOOD(moved);
		EXPECT_TRUE(w.right());
	}
}

// One engine after the other. Only the rank that uses a hung engine is held up.
TEST_F(GroupFaultTest, AnEngineThatHangsHoldsItsRankAlone)
{
	group by = all();
	unsigned used = 0;

	for (unsigned e = 0; e < engines(); e++) {
		world w(memory, e);
		auto made = warm(w, by, a_case(variant::pcpy, false));

		emulator_.tell(0, std::format("engine {} hang", e));
		auto running = made.run();
		for (unsigned r = 1; r < ranks(); r++)
			EXPECT_TRUE(ends(running, r, 30s)) << r;
		used += !ends(running, 0, 100ms);
		emulator_.tell(0, std::format("engine {} resume", e));
		auto moved = running.wait();
		ASSERT_GOOD(moved);
		EXPECT_TRUE(w.right());
	}
	EXPECT_GE(used, std::min(ranks() - 1, engines()));
}

// The driver resets a GPU whose engines hang; with xGMI links, the others as well.
TEST_F(GroupFaultTest, AHungGpuIsToldOfItsRank)
{
	group by = all();
	world w(memory, 1);
	auto made = warm(w, by, a_case(variant::b2b, false));
	auto running = hung(made);
	auto moved = running.wait_until(after(120s));

	ASSERT_FALSE(moved);
	ASSERT_EQ(moved.error().code(), errc::device) << moved.error().message();
	unsigned lost = failed(running);
	EXPECT_TRUE(std::getenv("XGMI") ? lost >= 1 : lost == 1) << lost;
	EXPECT_LT(moved.error().index(), ranks());
}

// Files that were open during a reset cannot be used any more. New ones can, once it is
// over: the rank is told before.
TEST_F(GroupFaultTest, GroupsAreMadeAgainAfterAReset)
{
	works_again();
}

// Two threads act as hosts with two GPUs each.
TEST_F(GroupFaultTest, AHungGpuIsToldToOtherHosts)
{
	if (ranks() < 4)
		GTEST_SKIP() << "there are no four GPUs";
	hub place(2);
	std::array<result<size_t>, 2> end;

	memory.clear();
	gpus.clear();
	place.patience = 120s;
	{
		std::vector<std::jthread> hosts;

		for (unsigned h = 0; h < 2; h++)
			hosts.emplace_back([&, h] { end[h] = run_as_host(place, h); });
	}
	ASSERT_FALSE(end[0]);
	EXPECT_EQ(end[0].error().code(), errc::device) << end[0].error().message();
	ASSERT_FALSE(end[1]);
	EXPECT_EQ(end[1].error().code(), errc::peer_error) << end[1].error().message();
	EXPECT_EQ(end[1].error().index(), 0u);
	open_all();
	works_again();
}

// The kernel is not told. Its driver finds out when jobs time out.
TEST_F(GroupFaultTest, ZAGpuThatIsPulledOutIsToldOfItsRank)
{
	group by = all();
	world w(memory, 1);
	auto made = warm(w, by, a_case(variant::b2b, false));
	auto running = hung(made);

	emulator_.tell(0, "remove");
	auto moved = running.wait_until(after(120s));

	ASSERT_FALSE(moved);
	ASSERT_EQ(moved.error().code(), errc::device) << moved.error().message();
	EXPECT_GE(failed(running), 1u);
}
