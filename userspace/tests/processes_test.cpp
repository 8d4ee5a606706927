// SPDX-License-Identifier: MIT
// Processes that meet, as threads with a context each: who comes, who does not, and who
// goes away.
#include <cstring>
#include <filesystem>
#include <functional>
#include <latch>
#include <optional>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>

#include <gtest/gtest.h>

#include "process_set.hpp"
#include "sluice/processes.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using detail::note;

namespace {

/// Rank 1 of two, which says what the test wants, in whatever order.
struct stranger {
	bool connect(const std::string &path)
	{
		sockaddr_un to{};

		to.sun_family = AF_UNIX;
		path.copy(to.sun_path, sizeof(to.sun_path) - 1);
		socket = unique_fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
		for (auto until = after(20s); clock::now() < until;) {
			if (!::connect(socket.get(), reinterpret_cast<sockaddr *>(&to),
				       sizeof(to)))
				return true;
			std::this_thread::sleep_for(10ms);
		}
		return false;
	}
	/// As one does who meets others, and has come to their first barrier.
	void come(const std::string &path)
	{
		ASSERT_TRUE(connect(path));
		say(note::kind::hello, uint64_t{2} << 32 | 1, 0);
		say(note::kind::barrier, 0, 1);
	}
	void say(note::kind what, uint64_t value, uint32_t number,
		 const std::vector<int> &with = {}, size_t more_bytes = 0)
	{
		note n;
		char bytes[sizeof(n) + 8] = {};
		alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
		iovec data{bytes, sizeof(n) + more_bytes};
		msghdr m{};

		n.what = what;
		n.value = value;
		n.number = number;
		std::memcpy(bytes, &n, sizeof(n));
		m.msg_iov = &data;
		m.msg_iovlen = 1;
		if (!with.empty()) {
			const size_t size = with.size() * sizeof(int);

			m.msg_control = control;
			m.msg_controllen = CMSG_SPACE(size);
			*CMSG_FIRSTHDR(&m) = {CMSG_LEN(size), SOL_SOCKET, SCM_RIGHTS};
			std::memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), with.data(), size);
		}
		EXPECT_GT(::sendmsg(socket.get(), &m, MSG_NOSIGNAL), 0);
	}

	unique_fd socket;
};

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
	/// Have rank 0 and a stranger meet.
	void beside(const std::function<void(processes &, stranger &)> &what)
	{
		auto ring = context::open();
		ASSERT_TRUE(ring);
		stranger other;
		std::jthread comes([&] { other.come(path); });
		auto met = meet(*ring, 0, 2);
		comes.join();
		ASSERT_TRUE(met) << met.error().message();
		what(*met, other);
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

// What somebody says too late is not taken for what it says next.
TEST_F(ProcessesTest, CallsAreCounted)
{
	patience = 500ms;
	beside([](processes &with, stranger &other) {
		expect_error(with.barrier(), errc::timeout, 1);
		other.say(note::kind::barrier, 0, 2);
		expect_error(with.barrier(), errc::timeout, 1);
		other.say(note::kind::barrier, 0, 3);
		other.say(note::kind::plan, 5, 4);
		EXPECT_TRUE(with.inside()->agree(note::kind::plan, 5));
		other.say(note::kind::barrier, 0, 6);
		expect_error(with.barrier(), errc::protocol, 1);
	});
}

TEST_F(ProcessesTest, RunsEndWhileAnotherCallIsMade)
{
	beside([](processes &with, stranger &other) {
		auto &set = *with.inside();

		ASSERT_TRUE(set.begin_run());
		other.say(note::kind::run, 42, 1);
		other.say(note::kind::barrier, 0, 2);
		EXPECT_TRUE(with.barrier());
		auto said = set.heard_of_run(1);
		ASSERT_TRUE(said && *said);
		EXPECT_EQ(**said, 42u);
		set.end_run();
		// and it is not taken for the next one's end
		ASSERT_TRUE(set.begin_run());
		EXPECT_FALSE(set.heard_of_run(1));
		set.end_run();
	});
}

TEST_F(ProcessesTest, WhoIsAtAnotherRunIsToldSo)
{
	patience = 500ms;
	beside([](processes &with, stranger &other) {
		auto &set = *with.inside();

		// late to a call that was given up
		expect_error(with.barrier(), errc::timeout, 1);
		ASSERT_TRUE(set.begin_run());
		other.say(note::kind::barrier, 0, 2);
		EXPECT_FALSE(set.heard_of_run(1));
		other.say(note::kind::run, 0, 2);
		auto said = set.heard_of_run(1);
		ASSERT_TRUE(said);
		expect_error(*said, errc::protocol, 1);
		other.say(note::kind::run, 0, 3);
		expect_error(with.barrier(), errc::protocol, 1);
		set.end_run();
	});
}

TEST_F(ProcessesTest, NobodyIsHeardForEver)
{
	beside([](processes &with, stranger &other) {
		auto &set = *with.inside();

		for (int i = 0; i < 3; i++)
			other.say(note::kind::run, 0, 0);
		other.say(note::kind::barrier, 0, 1);
		expect_error(set.hear(1, note::kind::barrier, clock::now()),
			     errc::timeout, 1);
	});
}

TEST_F(ProcessesTest, AContextThatIsFullIsAnError)
{
	beside([](processes &with, stranger &) {
		auto &ring = with.inside()->ring();
		std::vector<operation> all;

		while (all.size() < ring.capacity())
			all.push_back(with.inside()->listen(1));
		expect_error(with.barrier(), errc::busy, 1);
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

TEST_F(ProcessesTest, PatienceMayHaveNoEnd)
{
	patience = clock::duration::max();
	together(2, [](processes &with) { EXPECT_TRUE(with.barrier()); });
}
