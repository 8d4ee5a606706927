// SPDX-License-Identifier: MIT
// Processes that meet, as threads with a context each: which of them come, which do not,
// and which leave.
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <latch>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "process_set.hpp"
#include "sluice/processes.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using detail::note;

namespace {

sockaddr_un address_of(const std::string &path)
{
	sockaddr_un to{};

	to.sun_family = AF_UNIX;
	path.copy(to.sun_path, sizeof(to.sun_path) - 1);
	return to;
}

/// A socket at @p path with no listener yet.
unique_fd socket_at(const std::string &path, int type = SOCK_SEQPACKET)
{
	unique_fd made(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
	auto there = address_of(path);

	EXPECT_EQ(
		::bind(made.get(), reinterpret_cast<sockaddr *>(&there), sizeof(there)),
		0);
	return made;
}

/// The number of descriptors of this process.
auto descriptors()
{
	return std::ranges::distance(
		std::filesystem::directory_iterator("/proc/self/fd"));
}

/// From here on, this thread belongs to another user.
void become(uid_t user)
{
	ASSERT_EQ(::syscall(SYS_setresuid, -1, user, -1), 0);
}

/// A rank that sends what the test wants, in any order.
struct stranger {
	bool knock(const std::string &path)
	{
		auto to = address_of(path);

		socket = unique_fd(::socket(
			AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
		return !::connect(socket.get(), reinterpret_cast<sockaddr *>(&to),
				  sizeof(to));
	}
	bool connect(const std::string &path)
	{
		for (auto until = after(20s); clock::now() < until;) {
			if (knock(path))
				return true;
			std::this_thread::sleep_for(10ms);
		}
		return false;
	}
	/// Like a process that meets others, and has entered their first barrier.
	void come(const std::string &path, unsigned rank = 1, unsigned ranks = 2)
	{
		ASSERT_TRUE(connect(path));
		say(note::kind::hello, uint64_t{ranks} << 32 | rank, 0);
		say(note::kind::barrier, 0, 1);
	}
	void say(note::kind what, uint64_t value, uint32_t number,
		 std::span<const int> with = {}, size_t more_bytes = 0)
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
	/// The next message that it was sent.
	note hears() const
	{
		note n;

		EXPECT_EQ(::recv(socket.get(), &n, sizeof(n), MSG_DONTWAIT),
			  static_cast<ssize_t>(sizeof(n)));
		return n;
	}
	/// Whether the end follows the messages that it was sent.
	bool hears_the_end() const
	{
		note n;
		ssize_t got;

		do
			got = ::recv(socket.get(), &n, sizeof(n), MSG_DONTWAIT);
		while (got > 0);
		return got == 0;
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
	/// The error of each process that claims this rank, of so many.
	std::vector<std::optional<error>>
	refused(const std::vector<std::pair<unsigned, unsigned>> &who)
	{
		std::vector<std::optional<error>> why(who.size());
		std::vector<std::jthread> all;

		for (size_t i = 0; i < who.size(); i++)
			all.emplace_back([this, i, &who, &why] {
				become(user);
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
	uid_t user = ::geteuid(); ///< of the one that is refused
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
		// and all are at the same call
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

// What a collective run has left behind does not disturb the next call.
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

// The kernel reports the end first if the other one had unread messages.
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

// A message that comes too late is not taken for the next one.
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
		// and it is not taken for the end of the next run
		ASSERT_TRUE(set.begin_run());
		EXPECT_FALSE(set.heard_of_run(1));
		set.end_run();
	});
}

TEST_F(ProcessesTest, ACallThatComesEarlyIsKept)
{
	beside([](processes &with, stranger &other) {
		auto &set = *with.inside();

		ASSERT_TRUE(set.begin_run());
		other.say(note::kind::barrier, 0, 2);
		EXPECT_FALSE(set.heard_of_run(1));
		other.say(note::kind::run, 42, 1);
		auto said = set.heard_of_run(1);
		ASSERT_TRUE(said && *said);
		EXPECT_EQ(**said, 42u);
		set.end_run();
		EXPECT_TRUE(with.barrier());
	});
}

// It cannot hear the others then, and they do not wait for it.
TEST_F(ProcessesTest, ACallInAChainFailsForAll)
{
	together(2, [](processes &with) {
		auto &ring = with.inside()->ring();
		const auto begun = clock::now();

		if (with.rank())
			ring.begin_chain(1);
		expect_error(with.barrier(), errc::usage, 1);
		ring.end_chain();
		EXPECT_LT(clock::now() - begun, 10s);
		// and all are at the same call
		EXPECT_TRUE(with.barrier());
	});
}

TEST_F(ProcessesTest, WhatCameEarlyForACallInAChainIsDropped)
{
	beside([](processes &with, stranger &other) {
		auto &set = *with.inside();

		ASSERT_TRUE(set.begin_run());
		other.say(note::kind::barrier, 0, 2);
		EXPECT_FALSE(set.heard_of_run(1));
		set.ring().begin_chain(1);
		expect_error(with.barrier(), errc::usage, 0);
		set.ring().end_chain();
		other.say(note::kind::barrier, 0, 3);
		EXPECT_FALSE(set.heard_of_run(1));
		set.end_run();
		EXPECT_TRUE(with.barrier());
	});
}

TEST_F(ProcessesTest, WhoIsTwoCallsAheadIsToldSo)
{
	beside([](processes &with, stranger &other) {
		auto &set = *with.inside();

		ASSERT_TRUE(set.begin_run());
		other.say(note::kind::barrier, 0, 2);
		other.say(note::kind::barrier, 0, 2);
		auto said = set.heard_of_run(1);
		ASSERT_TRUE(said);
		expect_error(*said, errc::protocol, 1);
		set.end_run();
	});
}

TEST_F(ProcessesTest, WhoIsAtAnotherRunIsToldSo)
{
	patience = 500ms;
	beside([](processes &with, stranger &other) {
		auto &set = *with.inside();

		// late for a call that was given up
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

		for (int i = 0; i < 64; i++)
			other.say(note::kind::run, 0, 0);
		other.say(note::kind::barrier, 0, 1);
		expect_error(set.hear(1, note::kind::barrier, clock::now()),
			     errc::timeout, 1);
	});
}

namespace {

/// Holds up this thread for two seconds, from a moment after it was made.
class holdup {
public:
	holdup()
	{
		struct sigaction sleeps{};

		sleeps.sa_handler = [](int) { ::sleep(2); };
		::sigaction(SIGUSR1, &sleeps, nullptr);
		signals_ = std::jthread([whom = ::pthread_self()] {
			std::this_thread::sleep_for(300ms);
			::pthread_kill(whom, SIGUSR1);
		});
	}

private:
	std::jthread signals_;
};

} // namespace

TEST_F(ProcessesTest, WhatWasSaidInTimeCounts)
{
	patience = 1s;
	beside([](processes &with, stranger &other) {
		std::jthread says([&] {
			std::this_thread::sleep_for(700ms);
			other.say(note::kind::barrier, 0, 2);
		});
		holdup late;
		auto all = with.barrier();
		EXPECT_TRUE(all) << all.error().message();
	});
}

TEST_F(ProcessesTest, AllWhoCameInTimeHaveCome)
{
	auto ring = context::open();
	stranger one, two;
	std::jthread come([&] {
		std::this_thread::sleep_for(700ms);
		one.come(path, 1, 3);
		two.come(path, 2, 3);
	});
	holdup late;

	patience = 1s;
	auto met = meet(*ring, 0, 3);
	EXPECT_TRUE(met) << met.error().message();
}

// Who has died before all have come may come again.
struct RestartTest : ProcessesTest, testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(BeforeTheLast, RestartTest, testing::Bool());

TEST_P(RestartTest, ARankMayBeStartedAgain)
{
	auto ring = context::open();
	ASSERT_TRUE(ring);
	std::jthread comes([&, before_the_last = GetParam()] {
		stranger early, first, second;

		ASSERT_TRUE(early.connect(path));
		early.socket = {};
		ASSERT_TRUE(first.connect(path));
		first.say(note::kind::hello, uint64_t{3} << 32 | 1, 0);
		first.socket = {};
		if (before_the_last)
			first.come(path, 1, 3);
		second.come(path, 2, 3);
		if (!before_the_last)
			first.come(path, 1, 3);
		// Until rank 0 has met them.
		pollfd end = {first.socket.get(), POLLRDHUP, 0};
		::poll(&end, 1, 20000);
	});
	auto met = meet(*ring, 0, 3);
	EXPECT_TRUE(met) << met.error().message();
	met = fail(errc::cancelled, "test", "over");
}

// Rank 0 does not leave the others, which would then miss it instead. This one has come,
// but cannot be told of the others.
TEST_F(ProcessesTest, WhoEndsWhileTheyMeetIsNamed)
{
	stranger gone;
	std::jthread comes([&] {
		ASSERT_TRUE(gone.connect(path));
		::shutdown(gone.socket.get(), SHUT_RD);
		gone.say(note::kind::hello, uint64_t{3} << 32 | 2, 0);
		gone.say(note::kind::barrier, 0, 1);
	});
	auto why = refused({{0, 3}, {1, 3}});
	for (const auto &one : why) {
		ASSERT_TRUE(one);
		EXPECT_EQ(one->code(), errc::peer_lost) << one->message();
		EXPECT_EQ(one->index(), 2u) << one->message();
	}
}

// It cannot hear the others, and says so: else they would go on without it.
TEST_F(ProcessesTest, AContextThatIsFullIsAnError)
{
	beside([](processes &with, stranger &other) {
		auto &ring = with.inside()->ring();
		std::vector<operation> all;

		while (all.size() < ring.capacity())
			all.push_back(with.inside()->listen(1));
		EXPECT_EQ(other.hears().what, note::kind::hello);
		EXPECT_EQ(other.hears().what, note::kind::barrier); // of meet()
		expect_error(with.barrier(), errc::busy, 0);
		note told = other.hears();
		EXPECT_EQ(told.what, note::kind::barrier);
		EXPECT_EQ(told.failed, 1 + static_cast<uint32_t>(errc::busy));
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
	// All that have come are told.
	for (int i : {1, 2}) {
		ASSERT_TRUE(why[i]);
		EXPECT_EQ(why[i]->message(), why[0]->message());
		EXPECT_EQ(why[i]->index(), 0u);
	}
	why = refused({{0, 2}, {1, 3}});
	ASSERT_TRUE(why[0]);
	EXPECT_EQ(why[0]->message(), "processes: rank 1 knows of 3 ranks, rank 0 of 2");
	ASSERT_TRUE(why[1]);
	EXPECT_EQ(why[1]->message(), why[0]->message());
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

// A process that does not read its messages must know that it has missed some.
TEST_F(ProcessesTest, WhoLeavesTooMuchUnreadIsGivenUp)
{
	beside([](processes &with, stranger &other) {
		auto &set = *with.inside();
		auto begun = clock::now();

		// Nor is it listened to any more.
		other.say(note::kind::barrier, 0, 2);
		other.say(note::kind::run, 0, 10001);
		for (int i = 0; i < 10000; i++) {
			ASSERT_TRUE(set.begin_run());
			set.end_run();
		}
		expect_error(with.barrier(), errc::peer_lost, 1);
		ASSERT_TRUE(set.begin_run());
		auto said = set.heard_of_run(1);
		ASSERT_TRUE(said);
		expect_error(*said, errc::peer_lost, 1);
		EXPECT_LT(clock::now() - begun, 15s);
		EXPECT_TRUE(other.hears_the_end());
	});
}

TEST_F(ProcessesTest, WhoComesAfterOneThatWasGivenUpIsHeard)
{
	beside([](processes &with, stranger &) {
		auto &set = *with.inside();
		constexpr unsigned at = detail::process_set::newcomer;
		const note anything = note_of(note::kind::run, 0);

		for (auto until : {never, clock::now()}) {
			int ends[2];

			ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
			set.link(at, unique_fd(ends[0]));
			stranger other{unique_fd(ends[1])};
			other.say(note::kind::barrier, 7, 1);
			while (until == never && set.tell(at, anything))
				;
			auto heard = set.hear(at, note::kind::barrier, until);
			EXPECT_EQ(heard.has_value(), until != never);
		}
	});
}

// Only who has ended is lost; whatever else fails is reported with its errno.
TEST_F(ProcessesTest, WhoCannotBeHeardIsNotLost)
{
	beside([](processes &with, stranger &) {
		auto &set = *with.inside();
		constexpr unsigned at = detail::process_set::newcomer;

		set.link(at, unique_fd(::memfd_create("no socket", MFD_CLOEXEC)));
		auto heard = set.hear(at, note::kind::barrier, clock::now());
		expect_error(heard, errc::system, error::no_index);
		EXPECT_EQ(heard.error().number(), ENOTSOCK);
	});
}

// It has received nothing from this process, and does not know what the others agree on.
TEST_F(ProcessesTest, WhoComesAndDoesNotStayHasNotAgreed)
{
	beside([](processes &with, stranger &other) {
		other.say(note::kind::barrier, 0, 2);
		other.socket = {};
		expect_error(with.barrier(), errc::peer_lost, 1);
	});
}

TEST_F(ProcessesTest, DescriptorsThatNobodyWantsAreClosed)
{
	beside([](processes &with, stranger &other) {
		unique_fd file(::memfd_create("file", MFD_CLOEXEC));
		const int f = file.get();
		const auto before = descriptors();

		other.say(note::kind::barrier, 0, 2, std::array{f});
		EXPECT_TRUE(with.barrier());
		EXPECT_EQ(descriptors(), before);
		other.say(note::kind::barrier, 0, 3, std::array{f, f});
		expect_error(with.barrier(), errc::protocol, 1);
		EXPECT_EQ(descriptors(), before);
		other.say(note::kind::barrier, 0, 4, std::array{f, f, f, f});
		expect_error(with.barrier(), errc::protocol, 1);
		EXPECT_EQ(descriptors(), before);
	});
}

TEST_F(ProcessesTest, ADescriptorTooManyIsAnError)
{
	beside([](processes &with, stranger &other) {
		const int next = ::dup(other.socket.get());
		rlimit before{};

		::close(next);
		ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
		rlimit full = {static_cast<rlim_t>(next), before.rlim_max};
		other.say(note::kind::barrier, 0, 2, std::array{other.socket.get()});
		ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
		auto got = with.barrier();
		ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
		expect_error(got, errc::system, 1);
	});
}

TEST_F(ProcessesTest, ANoteThatIsTooLongIsNone)
{
	beside([](processes &with, stranger &other) {
		other.say(note::kind::barrier, 0, 2, {}, 8);
		expect_error(with.barrier(), errc::protocol, 1);
	});
}

// No process that goes on waits for one that does not.
TEST_F(ProcessesTest, MemoryThatOneCannotTakeNobodyHas)
{
	together(3, [](processes &with) {
		const bool fails = with.rank() == 2;
		const buffer mine = *buffer::host(page_size);
		result<unique_fd> own(::memfd_create("memory", MFD_CLOEXEC));
		auto take = [&](int) { return buffer::host(page_size); };
		auto refuse = [](int) -> result<buffer> {
			return fail(errc::device, "0000:03:00.0", "it is full");
		};

		auto got = fails ? with.inside()->exchange(mine, own, refuse)
				 : with.inside()->exchange(mine, own, take);
		expect_error(got, errc::device, fails ? 0 : 2);
		// the failure affects only that exchange
		got = with.inside()->exchange(mine, own, take);
		ASSERT_TRUE(got) << got.error().message();
		EXPECT_EQ(got->size(), 3u);
		EXPECT_EQ((*got)[with.rank()].data(), mine.data());
		// the same for a process that has nothing to give
		if (fails)
			own = fail(errc::unsupported, "memory",
				   "it is no video memory");
		expect_error(with.inside()->exchange(mine, own, take),
			     errc::unsupported, fails ? error::no_index : 2);
		EXPECT_TRUE(with.barrier());
	});
}

TEST_F(ProcessesTest, WhoGivesNoMemoryIsNamed)
{
	beside([](processes &with, stranger &other) {
		unique_fd own(::memfd_create("memory", MFD_CLOEXEC));

		other.say(note::kind::memory, 0, 2);
		other.say(note::kind::memory, 0, 3);
		auto got = with.inside()->exchange({}, std::move(own), [](int) {
			return buffer::host(page_size);
		});
		expect_error(got, errc::protocol, 1);
	});
}

TEST_F(ProcessesTest, Rank0IsMissed)
{
	auto ring = context::open();
	ASSERT_TRUE(ring);
	patience = 300ms;
	expect_error(meet(*ring, 1, 2), errc::timeout, 0);
}

// Its rank is not known.
TEST_F(ProcessesTest, WhoSaysNoRankHasNone)
{
	auto ring = context::open();
	ASSERT_TRUE(ring);
	patience = 1s;
	{
		std::jthread comes([&] { EXPECT_TRUE(stranger().connect(path)); });
		auto met = meet(*ring, 0, 3);
		expect_error(met, errc::timeout, 1);
		EXPECT_TRUE(met.error().message().contains("a newcomer: it has ended"))
			<< met.error().message();
	}
	stranger silent;
	std::jthread comes([&] { EXPECT_TRUE(silent.connect(path)); });
	auto met = meet(*ring, 0, 3);
	expect_error(met, errc::timeout, error::no_index);
	EXPECT_EQ(met.error().where(), "a newcomer");
}

// One patience covers all steps.
TEST_F(ProcessesTest, ToMeetTakesOnePatience)
{
	patience = 4s;
	auto ring = context::open();
	ASSERT_TRUE(ring);
	const auto begun = clock::now();
	stranger late;
	std::jthread comes([&] {
		ASSERT_TRUE(late.connect(path));
		std::this_thread::sleep_until(begun + 2500ms);
		late.say(note::kind::hello, uint64_t{2} << 32 | 1, 0);
	});
	expect_error(meet(*ring, 0, 2), errc::timeout, 1);
	EXPECT_GE(clock::now() - begun, patience);
	EXPECT_LT(clock::now() - begun, 5500ms);
}

TEST_F(ProcessesTest, ToExchangeTakesOnePatience)
{
	patience = 2s;
	beside([&](processes &with, stranger &) {
		unique_fd own(::memfd_create("memory", MFD_CLOEXEC));
		const auto begun = clock::now();

		expect_error(with.inside()->exchange({}, std::move(own), {}),
			     errc::timeout, 1);
		EXPECT_LT(clock::now() - begun, 3500ms);
	});
}

TEST_F(ProcessesTest, PatienceMayHaveNoEnd)
{
	patience = clock::duration::max();
	together(2, [](processes &with) { EXPECT_TRUE(with.barrier()); });
}

// Rank 0 does not give rank 2 a socket to rank 1.
TEST_F(ProcessesTest, WhoIntroducesWronglyIsNamed)
{
	auto expect_wrong = [&](unsigned rank, bool with_socket) {
		auto place = socket_at(path);
		const int given = place.get();
		ASSERT_EQ(::listen(place.get(), 1), 0);
		stranger first;
		std::jthread serves([&] {
			first.socket =
				unique_fd(::accept(place.get(), nullptr, nullptr));
			first.say(note::kind::hello, 0, 0);
			first.say(note::kind::link, rank, 0,
				  {&given, with_socket ? 1u : 0u});
		});
		auto why = refused({{2, 3}});
		ASSERT_TRUE(why[0]);
		EXPECT_EQ(why[0]->code(), errc::protocol) << why[0]->message();
		EXPECT_EQ(why[0]->index(), 0u) << why[0]->message();
		std::filesystem::remove(path);
	};

	for (unsigned rank : {0u, 2u, 3u})
		expect_wrong(rank, true);
	expect_wrong(1, false);
}

TEST_F(ProcessesTest, RankZeroMayComeLate)
{
	patience = 500ms;
	auto expect_late = [&](int number) {
		auto begun = clock::now();
		auto why = refused({{1, 2}});

		ASSERT_TRUE(why[0]);
		EXPECT_EQ(why[0]->code(), errc::timeout) << why[0]->message();
		EXPECT_EQ(why[0]->number(), number) << why[0]->message();
		EXPECT_GE(clock::now() - begun, patience);
	};

	expect_late(ENOENT);
	auto place = socket_at(path);
	expect_late(ECONNREFUSED);
	ASSERT_EQ(::listen(place.get(), 0), 0);
	stranger first;
	ASSERT_TRUE(first.connect(path));
	expect_late(EAGAIN);
}

TEST_F(ProcessesTest, WhereRankZeroCannotBeNobodyWaits)
{
	auto begun = clock::now();
	auto other_kind = socket_at(path, SOCK_STREAM);
	ASSERT_EQ(::listen(other_kind.get(), 1), 0);
	auto why = refused({{1, 2}});
	ASSERT_TRUE(why[0]);
	EXPECT_EQ(why[0]->code(), errc::system);
	EXPECT_EQ(why[0]->number(), EPROTOTYPE);
	path += "/socket";
	why = refused({{1, 2}});
	ASSERT_TRUE(why[0]);
	EXPECT_EQ(why[0]->code(), errc::system);
	EXPECT_EQ(why[0]->number(), ENOTDIR);
	EXPECT_LT(clock::now() - begun, 15s);
}

/// All users can reach the socket.
struct ProcessesOfUsersTest : ProcessesTest {
	static constexpr uid_t one = 12345, other = 12346;

	void SetUp() override
	{
		mask = ::umask(0);
		if (::geteuid())
			GTEST_SKIP() << "only root can be another user";
		std::filesystem::permissions(directory, std::filesystem::perms::all);
	}
	void TearDown() override { ::umask(mask); }

	/// Rank 0 of two, as user @p of.
	std::jthread first(uid_t of, std::optional<error> &why)
	{
		return std::jthread([this, of, &why] {
			become(of);
			auto ring = context::open();
			ASSERT_TRUE(ring);
			auto met = meet(*ring, 0, 2);
			if (!met)
				why = met.error();
		});
	}
	/// Rank 1 is told so.
	void expect_denied(std::string_view message)
	{
		auto why = refused({{1, 2}});

		ASSERT_TRUE(why[0]);
		EXPECT_EQ(why[0]->code(), errc::denied);
		EXPECT_EQ(why[0]->message(), message);
	}

	mode_t mask = 0;
};

TEST_F(ProcessesOfUsersTest, OthersAreRefused)
{
	std::optional<error> why;
	auto waits = first(0, why);

	user = one;
	expect_denied("processes: a process of uid 0 cannot meet one of uid 12345");
	// Those that it waits for can still come.
	auto ring = context::open();
	ASSERT_TRUE(ring);
	auto met = meet(*ring, 1, 2);
	EXPECT_TRUE(met) << met.error().message();
	waits.join();
	EXPECT_FALSE(why) << why->message();
}

// Not even root: it would keep all others out.
TEST_F(ProcessesOfUsersTest, NobodyComesToOthers)
{
	patience = 2s;
	std::optional<error> why;
	auto waits = first(one, why);

	user = other;
	expect_denied("processes: a process of uid 12345 cannot meet one of uid 12346");
	user = 0;
	expect_denied("processes: a process of uid 12345 cannot meet one of uid 0");
	waits.join();
	ASSERT_TRUE(why);
	EXPECT_EQ(why->message(), "rank 1: it has not come; processes: a process of "
				  "uid 0 cannot meet one of uid 12345");
}

TEST_F(ProcessesOfUsersTest, WhoWasRefusedIsNamed)
{
	patience = 2s;
	std::optional<error> why;
	auto waits = first(0, why);

	user = one;
	expect_denied("processes: a process of uid 0 cannot meet one of uid 12345");
	waits.join();
	ASSERT_TRUE(why);
	EXPECT_EQ(why->code(), errc::timeout);
	EXPECT_EQ(why->message(), "rank 1: it has not come; processes: a process of "
				  "uid 12345 cannot meet one of uid 0");
}

TEST_F(ProcessesOfUsersTest, WhoCannotComeInDoesNotHoldUp)
{
	patience = 1s;
	std::optional<error> why;
	std::atomic<bool> over = false;
	std::vector<std::jthread> all;

	for (int i = 0; i < 4; i++)
		all.emplace_back([&] {
			become(one);
			while (!over)
				stranger().knock(path);
		});
	const auto begun = clock::now();
	first(0, why).join();
	EXPECT_LT(clock::now() - begun, 10s);
	over = true;
	ASSERT_TRUE(why);
	EXPECT_EQ(why->code(), errc::timeout) << why->message();
}
