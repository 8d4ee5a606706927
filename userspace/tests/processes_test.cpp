// SPDX-License-Identifier: MIT
// Processes that meet, as threads with a context each: who comes, who does not, and who
// goes away.
#include <filesystem>
#include <functional>
#include <latch>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "process_set.hpp"
#include "sluice/processes.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using detail::note;

namespace {

struct ProcessesTest : ::testing::Test {
	using body = std::function<void(processes &)>;

	ProcessesTest()
	{
		char name[] = "/tmp/processes-XXXXXX";

		directory = ::mkdtemp(name);
		path = directory + "/socket";
	}
	~ProcessesTest() override { std::filesystem::remove_all(directory); }

	result<processes> meet(context &in, unsigned rank, unsigned ranks)
	{
		return processes::meet(in, path, rank, ranks, patience);
	}
	/// Have @p ranks of them meet, and each do @p what.
	void together(unsigned ranks, const body &what)
	{
		std::vector<std::jthread> all;

		for (unsigned r = 0; r < ranks; r++)
			all.emplace_back([this, r, ranks, what] {
				auto ring = context::open();
				ASSERT_TRUE(ring);
				auto met = meet(*ring, r, ranks);
				ASSERT_TRUE(met) << met.error().message();
				EXPECT_EQ(met->rank(), r);
				EXPECT_EQ(met->ranks(), ranks);
				what(*met);
			});
	}
	/// What each of them is told who says that it has this rank, of so many.
	std::vector<std::optional<error>>
	refused(const std::vector<std::pair<unsigned, unsigned>> &who)
	{
		std::vector<std::optional<error>> why(who.size());
		std::vector<std::jthread> all;

		for (size_t i = 0; i < who.size(); i++)
			all.emplace_back([this, i, &who, &why] {
				auto ring = context::open();
				ASSERT_TRUE(ring);
				auto met = meet(*ring, who[i].first, who[i].second);
				if (!met)
					why[i] = met.error();
			});
		all.clear();
		return why;
	}

	std::string directory, path;
	clock::duration patience = 20s;
};

void expect_error(const auto &got, errc code, uint32_t rank)
{
	ASSERT_FALSE(got);
	EXPECT_EQ(got.error().code(), code) << got.error().message();
	EXPECT_EQ(got.error().index(), rank) << got.error().message();
}

} // namespace

TEST_F(ProcessesTest, AllHearWhatEachSays)
{
	for (unsigned ranks : {2u, 3u, 8u})
		together(ranks, [=](processes &with) {
			for (uint64_t round = 0; round < 20; round++) {
				auto said = with.inside()->agree(
					note::kind::plan, 100 * round + with.rank());
				ASSERT_TRUE(said) << said.error().message();
				for (unsigned r = 0; r < ranks; r++)
					EXPECT_EQ((*said)[r], 100 * round + r);
			}
			EXPECT_TRUE(with.barrier());
		});
	EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ProcessesTest, AnErrorOfOneIsToldToAll)
{
	together(3, [](processes &with) {
		result<uint64_t> mine = 7;

		if (with.rank() == 1)
			mine = fail(errc::device, "0000:03:00.0", "it is on fire", 5);
		auto said = with.inside()->agree(note::kind::plan, mine);
		ASSERT_FALSE(said);
		EXPECT_EQ(said.error().code(), errc::device);
		EXPECT_EQ(said.error().where(), "0000:03:00.0");
		EXPECT_EQ(said.error().message(), "0000:03:00.0: it is on fire");
		EXPECT_EQ(said.error().number(), 5);
		EXPECT_EQ(said.error().index(),
			  with.rank() == 1 ? error::no_index : 1u);
		// and all are at the same place
		EXPECT_TRUE(with.barrier());
	});
}

TEST_F(ProcessesTest, WhoEndsIsLost)
{
	together(3, [](processes &with) {
		if (with.rank() == 2)
			return;
		auto begun = clock::now();
		expect_error(with.barrier(), errc::peer_lost, 2);
		expect_error(with.barrier(), errc::peer_lost, 2);
		EXPECT_LT(clock::now() - begun, 10s);
	});
}

TEST_F(ProcessesTest, WhoDoesNotComeIsWaitedForInVain)
{
	std::latch waited(1);

	patience = 1s;
	together(2, [&](processes &with) {
		if (with.rank()) {
			waited.wait();
			return;
		}
		expect_error(with.barrier(), errc::timeout, 1);
		waited.count_down();
	});
	auto why = refused({{0, 2}});
	ASSERT_TRUE(why[0]);
	EXPECT_EQ(why[0]->code(), errc::timeout);
	EXPECT_EQ(why[0]->message(), "rank 1: it has not come");
	why = refused({{1, 2}});
	ASSERT_TRUE(why[0]);
	EXPECT_EQ(why[0]->code(), errc::timeout);
	EXPECT_EQ(why[0]->where(), path);
	EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ProcessesTest, WhoIsAtAnotherCallIsToldSo)
{
	together(2, [](processes &with) {
		if (with.rank())
			(void)with.inside()->agree(note::kind::plan, 0);
		else
			expect_error(with.barrier(), errc::protocol, 1);
	});
}

// What a run of a collective has left behind does not disturb the next call.
TEST_F(ProcessesTest, RunsThatAreGivenUpAreForgotten)
{
	together(2, [](processes &with) {
		auto &set = *with.inside();

		ASSERT_TRUE(set.begin_run());
		EXPECT_FALSE(set.begin_run());
		set.end_run();
		ASSERT_TRUE(set.begin_run());
		set.tell_of_run(10 + with.rank());
		std::optional<result<size_t>> other;
		while (!other) {
			auto waited = set.listen(1 - with.rank()).wait();
			ASSERT_TRUE(waited);
			other = set.heard_of_run(1 - with.rank());
		}
		ASSERT_TRUE(*other) << other->error().message();
		EXPECT_EQ(**other, 11 - with.rank());
		set.end_run();
		ASSERT_TRUE(set.begin_run());
		set.end_run();
		EXPECT_TRUE(with.barrier());
	});
}

// The kernel says of the end first, if the other one had not read all.
TEST_F(ProcessesTest, LastWordsAreHeard)
{
	std::latch told(1), ended(1);

	together(2, [&](processes &with) {
		auto &set = *with.inside();

		ASSERT_TRUE(set.begin_run());
		if (with.rank()) {
			told.wait();
			set.tell_of_run(5);
			{
				processes gone = std::move(with);
			}
			ended.count_down();
			return;
		}
		set.tell_of_run(3);
		told.count_down();
		ended.wait();
		auto said = set.heard_of_run(1);
		ASSERT_TRUE(said && *said);
		EXPECT_EQ(**said, 5u);
		set.end_run();
		expect_error(with.barrier(), errc::peer_lost, 1);
	});
}

TEST_F(ProcessesTest, SaysWhatIsWrong)
{
	auto why = refused({{2, 2}});
	ASSERT_TRUE(why[0]);
	EXPECT_EQ(why[0]->message(),
		  "processes: rank 2 of 2: there are 2 to 8, from 0 on");
	EXPECT_TRUE(refused({{0, 9}})[0]);
	EXPECT_TRUE(refused({{0, 1}})[0]);
	why = refused({{0, 3}, {1, 3}, {1, 3}});
	ASSERT_TRUE(why[0]);
	EXPECT_EQ(why[0]->message(), "processes: there are two of rank 1");
	EXPECT_TRUE(why[1]);
	EXPECT_TRUE(why[2]);
	why = refused({{0, 2}, {1, 3}});
	ASSERT_TRUE(why[0]);
	EXPECT_EQ(why[0]->message(), "processes: rank 1 knows of 3 ranks, rank 0 of 2");
	path.append(200, 'x');
	why = refused({{0, 2}});
	ASSERT_TRUE(why[0]);
	EXPECT_TRUE(why[0]->message().contains("a path of"));
	path = directory;
	why = refused({{0, 2}});
	ASSERT_TRUE(why[0]);
	EXPECT_EQ(why[0]->where(), directory);
	EXPECT_EQ(why[0]->number(), EADDRINUSE);
}
