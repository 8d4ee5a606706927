// SPDX-License-Identifier: MIT
// Endpoints on two cards in two network namespaces. The tests run in the node a; their
// peers are processes in the node b. Run by scripts/guest/rdma.
#include "base_kernel.hpp"
#include "rdma_fixture.hpp"

#include <deque>
#include <poll.h>
#include <thread>

#include "sluice/task.hpp"

using namespace sluice;
using namespace rdma_tests;

namespace {

/// A peer that offers memory.
struct OfferTest : RdmaTest {
	void begin(const char *who = "offer")
	{
		listen();
		other = std::make_unique<process>(words{who, port()});
		with = std::make_unique<endpoint>(accept());
		auto got = with->receive(std::as_writable_bytes(std::span(&there, 1)))
				   .wait();
		ASSERT_EQ(got, sizeof(there));
		mine = *buffer::host(there.size);
		auto made = card->register_memory(mine, remote::none);
		ASSERT_TRUE(made) << made.error().message();
		local = std::move(*made);
	}

	char ask(char what, uint32_t seed)
	{
		struct {
			char what;
			uint32_t seed;
		} request = {what, seed};
		char answer = 0;

		EXPECT_TRUE(with->send(std::as_bytes(std::span(&request, 1))).wait());
		EXPECT_TRUE(with->receive(std::as_writable_bytes(std::span(&answer, 1)))
				    .wait());
		return answer;
	}

	std::unique_ptr<process> other;
	std::unique_ptr<endpoint> with;
	remote_memory there;
	buffer mine;
	registration local;
};

} // namespace

TEST_F(RdmaTest, NicsAreListed)
{
	for (auto &nic : list_nics()) {
		EXPECT_TRUE(nic.active) << nic.name;
		EXPECT_FALSE(nic.infiniband);
		// On the base's kernel, it moves wrong bytes.
		EXPECT_NE(nic.on_demand, base_kernel()) << nic.name;
		EXPECT_EQ(nic.on_demand_wrong, base_kernel()) << nic.name;
		EXPECT_EQ(nic.driver, "rdma_rxe");
		EXPECT_GT(nic.max_read_atomic, 0u);
	}
	EXPECT_EQ(card->info().interface, "veth-a");
	auto none = nic::open(*ring, "no-such-card");
	ASSERT_FALSE(none);
	EXPECT_EQ(none.error().code(), errc::device);
	EXPECT_EQ(none.error().where(), "no-such-card");
	auto which = nic::open(*ring, "");
	ASSERT_FALSE(which);
	EXPECT_EQ(which.error().code(), errc::usage);
	EXPECT_NE(which.error().message().find("rxe-b"), std::string_view::npos);
}

TEST_F(RdmaTest, Registrations)
{
	auto memory = *buffer::host(4 * page_size);
	{
		auto best = card->register_memory(memory, remote::write);
		ASSERT_TRUE(best) << best.error().message();
		EXPECT_EQ(best->path(), base_kernel() ? registration_path::pinned
						      : registration_path::on_demand);
		EXPECT_EQ(memory.users(), 2u);
		auto pinned = card->register_memory(memory, remote::none,
						    registration_path::pinned);
		EXPECT_TRUE(pinned);
	}
	EXPECT_EQ(memory.users(), 1u);
	auto none =
		card->register_memory(memory, remote::none, registration_path::dmabuf);
	ASSERT_FALSE(none);
	EXPECT_EQ(none.error().code(), errc::no_path);
	auto outside = card->register_memory(memory.part(page_size, 4 * page_size),
					     remote::none);
	ASSERT_FALSE(outside);
	EXPECT_EQ(outside.error().code(), errc::usage);
}

namespace {

/// SVM memory, as far as paths can tell.
struct svm_block : detail::memory_block {
	svm_block() : memory_block(memory::svm, host.data(), host.size()) {}
	inline static buffer host = *buffer::host(page_size);
};

} // namespace

TEST_F(RdmaTest, SvmIsNotPinned)
{
	buffer svm(new svm_block);
	auto pinned =
		card->register_memory(svm, remote::none, registration_path::pinned);

	ASSERT_FALSE(pinned);
	EXPECT_EQ(pinned.error().code(), errc::no_path);
	EXPECT_NE(pinned.error().message().find("GPU"), std::string_view::npos);
	auto best = card->register_memory(svm, remote::none);
	if (base_kernel()) {
		ASSERT_FALSE(best);
		EXPECT_EQ(best.error().code(), errc::no_path);
		EXPECT_NE(best.error().message().find("wrong bytes"),
			  std::string_view::npos)
			<< best.error().message();
		return;
	}
	ASSERT_TRUE(best) << best.error().message();
	EXPECT_EQ(best->path(), registration_path::on_demand);
}

TEST_F(RdmaTest, OptionsAreChecked)
{
	for (endpoint_options bad :
	     {endpoint_options{.messages = 0}, endpoint_options{.messages = 1025},
	      endpoint_options{.depth = 0}, endpoint_options{.depth = 4097},
	      endpoint_options{.silence = 1ms}, endpoint_options{.silence = 25h}}) {
		auto refused = listener::open(*ring, *card, address_a, 0, bad);
		ASSERT_FALSE(refused);
		EXPECT_EQ(refused.error().code(), errc::usage);
	}
}

TEST_F(RdmaTest, FloodBothWays)
{
	for (unsigned here : {1, 2, 32})
		for (const char *there : {"1", "2", "32"}) {
			listen({.messages = here});
			process other({"chat", port(), there, "500"});
			SCOPED_TRACE(std::to_string(here) + " " + there);
			chat(accept(), 500);
			EXPECT_EQ(other.wait(*ring), 0);
		}
}

TEST_F(RdmaTest, WrongTokenIsDeniedAtOnceAndOthersGoOn)
{
	listen();
	auto start = clock::now();
	process liar({"token", port(), "wrong"});
	auto nobody = door->accept(after(3s));

	ASSERT_FALSE(nobody);
	EXPECT_EQ(nobody.error().code(), errc::timeout);
	EXPECT_EQ(liar.wait(*ring), exit_status(errc::denied));
	EXPECT_LT(clock::now() - start, 8s);
	process none({"no-token", port()});
	works();
	EXPECT_EQ(none.wait(*ring), exit_status(errc::denied));
}

TEST_F(RdmaTest, NobodyListens)
{
	auto start = clock::now();
	// To ourselves, where the card's address is.
	auto none = endpoint::connect(*ring, *card, address_a, 9, {}, after(1s));

	ASSERT_FALSE(none);
	EXPECT_EQ(none.error().code(), errc::peer_lost) << none.error().message();
	EXPECT_GT(clock::now() - start, 700ms) << "it tries again";
	EXPECT_LT(clock::now() - start, 3s);
	auto unknown = endpoint::connect(*ring, *card, "no.such.host.invalid", 9, {},
					 after(2s));
	ASSERT_FALSE(unknown);
	EXPECT_EQ(unknown.error().where(), "no.such.host.invalid");
}

TEST_F(RdmaTest, AListenerThatDoesNotAnswer)
{
	// Its context is never run.
	context idle = *context::open();
	{
		nic same = *nic::open(idle, card_a);
		auto deaf = *listener::open(idle, same, address_a, 0, {});
		auto start = clock::now();
		auto none = endpoint::connect(*ring, *card, address_a, deaf.port(), {},
					      after(1s));

		ASSERT_FALSE(none);
		EXPECT_EQ(none.error().code(), errc::timeout) << none.error().message();
		EXPECT_LT(clock::now() - start, 3s);
	}
}

TEST_F(OfferTest, WritesAndReads)
{
	begin();
	fill(mine.bytes(), 7);
	std::vector<operation> parts;
	for (size_t at = 0; at < there.size; at += 4099) {
		size_t size = std::min<size_t>(4099, there.size - at);
		parts.push_back(with->write(mine.part(at, size), local, there, at));
	}
	// The message comes after all writes.
	EXPECT_EQ(ask('c', 7), 'y');
	for (auto &p : parts)
		EXPECT_TRUE(p.wait());
	EXPECT_EQ(ask('c', 8), 'n') << "the check cannot fail";
	EXPECT_EQ(ask('f', 9), 'f');
	EXPECT_EQ(with->read(mine, local, there, 0).wait(), mine.size());
	EXPECT_TRUE(filled(mine.bytes(), 9));
	with.reset();
	EXPECT_EQ(other->wait(*ring), exit_status(errc::peer_lost));
}

TEST_F(OfferTest, TransfersAreChecked)
{
	begin();
	auto other_memory = *buffer::host(page_size);
	auto code = [](operation op) { return op.wait().error().code(); };

	EXPECT_EQ(code(with->write(mine, local, there, 1)), errc::usage);
	EXPECT_EQ(code(with->write(mine, local, there, UINT64_MAX)), errc::usage);
	EXPECT_EQ(code(with->write(other_memory, local, there, 0)), errc::usage);
	EXPECT_EQ(code(with->write(mine.part(1, mine.size()), local, there, 0)),
		  errc::usage);
	EXPECT_EQ(code(with->write(mine, {}, there, 0)), errc::usage);
	std::vector<std::byte> long_one(max_message + 1);
	EXPECT_EQ(code(with->send(long_one)), errc::usage);
	EXPECT_TRUE(with->alive());
	EXPECT_EQ(ask('f', 1), 'f');
}

TEST_F(OfferTest, OutsideOfThePeersMemory)
{
	begin();
	auto lie = there;
	lie.size += page_size;
	auto op = with->write(mine.part(0, page_size), local, lie, there.size);
	auto end = op.wait();

	ASSERT_FALSE(end);
	EXPECT_EQ(end.error().code(), errc::denied) << end.error().message();
	EXPECT_EQ(end.error().where(), with->peer());
	EXPECT_FALSE(with->alive());
	EXPECT_EQ(with->alive().error().code(), errc::denied);
	EXPECT_EQ(other->wait(*ring), exit_status(errc::denied));
}

TEST_F(OfferTest, RevokedMemory)
{
	begin();
	EXPECT_TRUE(with->write(mine.part(0, 4096), local, there, 0).wait());
	EXPECT_EQ(ask('r', 0), 'r');
	auto op = with->write(mine.part(0, 4096), local, there, 0);
	auto behind = with->send({});
	auto end = op.wait();

	ASSERT_FALSE(end);
	EXPECT_EQ(end.error().code(), errc::denied) << end.error().message();
	EXPECT_EQ(behind.wait().error().code(), errc::denied);
	EXPECT_EQ(other->wait(*ring), exit_status(errc::denied));
}

TEST_F(OfferTest, AnOrdinaryUserWhoMayPinNothing)
{
	if (base_kernel())
		GTEST_SKIP() << "without ODP, memory must be pinned";
	begin("nobody");
	fill(mine.bytes(), 3);
	EXPECT_EQ(with->write(mine, local, there, 0).wait(), mine.size());
	EXPECT_EQ(ask('c', 3), 'y');
	EXPECT_EQ(with->read(mine, local, there, 0).wait(), mine.size());
	EXPECT_TRUE(filled(mine.bytes(), 3));
}

TEST_F(OfferTest, CannotBePartOfAChain)
{
	begin();
	std::byte memory[8];
	std::vector<operation> none;
	{
		context::chain chain(*ring, 5);
		none.push_back(with->send({}));
		none.push_back(with->receive(memory));
		none.push_back(with->write(mine.part(0, 64), local, there, 0));
		none.push_back(with->read(mine.part(0, 64), local, there, 0));
		none.push_back(door->arrival());
		auto late = endpoint::connect(*ring, *card, "localhost", 1, {}, never);
		ASSERT_FALSE(late);
		EXPECT_EQ(late.error().code(), errc::usage);
		auto second = listener::open(*ring, *card, "localhost", 0, {});
		ASSERT_FALSE(second);
		EXPECT_EQ(second.error().code(), errc::usage);
	}
	for (auto &op : none) {
		auto end = op.wait_until(after(5s));
		ASSERT_FALSE(end);
		EXPECT_EQ(end.error().code(), errc::usage) << end.error().message();
	}
	// None of them was begun.
	EXPECT_EQ(ask('f', 1), 'f');
}

TEST_F(OfferTest, DestroyedWhileMuchIsUnderWay)
{
	begin();
	std::vector<operation> all;
	for (int i = 0; i < 300; i++)
		all.push_back(with->write(mine.part(0, 65536), local, there, 0));
	EXPECT_TRUE(ring->submit());
	with.reset();
	unsigned cancelled = 0;
	for (auto &op : all) {
		EXPECT_TRUE(op.poll());
		if (auto end = op.wait(); !end)
			cancelled += end.error().code() == errc::cancelled;
	}
	EXPECT_GT(cancelled, 0u);
	all.clear();
	local = {};
	EXPECT_EQ(mine.users(), 1u);
	EXPECT_EQ(other->wait(*ring), exit_status(errc::peer_lost));
}

TEST_F(OfferTest, OperationsThatAreDestroyedFirst)
{
	begin();
	for (int i = 0; i < 300; i++)
		(void)with->write(mine.part(0, 4096), local, there, 0);
	{
		std::byte memory[8];
		auto wanted = with->receive(memory);
	}
	EXPECT_EQ(ask('f', 2), 'f') << "the receive that was cancelled takes nothing";
}

TEST_F(OfferTest, ManyRequestsGoInFewCalls)
{
	begin();
	auto before = ring->system_calls();
	std::vector<operation> all;
	for (int i = 0; i < 128; i++)
		all.push_back(with->write(mine.part(0, 64), local, there, 0));
	for (auto &op : all)
		EXPECT_EQ(op.wait(), 64u);
	// They go to the card together, and the last completion covers all.
	EXPECT_LT(ring->system_calls() - before, 8u);
}

// Another event loop is told of each completion, however the earlier ones were taken.
TEST_F(OfferTest, InAnotherEventLoop)
{
	begin();
	for (int i = 0; i < 60; i++) {
		auto one = with->write(mine.part(0, 64), local, there, 0);
		auto two = with->read(mine.part(64, 64), local, there, 64);

		if (i % 3 == 0)
			(void)one.wait();
		if (i % 3 == 1)
			(void)two.poll();
		ASSERT_TRUE(ring->submit());
		for (pollfd p = {ring->fd(), POLLIN, 0}; !one.poll() || !two.poll();)
			ASSERT_EQ(::poll(&p, 1, 10000), 1) << "round " << i;
		EXPECT_EQ(one.wait(), 64u);
		EXPECT_EQ(two.wait(), 64u);
	}
}

TEST_F(RdmaTest, KilledPeerIsLost)
{
	listen({.silence = 2s});
	process other({"hold", port()});
	auto with = accept();
	auto start = clock::now();

	other.signal(SIGKILL);
	auto why = end_of(with);
	EXPECT_EQ(why.code(), errc::peer_lost) << why.message();
	EXPECT_LT(clock::now() - start, 4s);
	works();
}

TEST_F(RdmaTest, StoppedPeerIsLost)
{
	listen({.silence = 1s});
	process other({"hold", port(), "1000"});
	auto with = accept();
	auto start = clock::now();

	other.signal(SIGSTOP);
	auto why = end_of(with);
	EXPECT_EQ(why.code(), errc::peer_lost) << why.message();
	EXPECT_GT(clock::now() - start, 800ms);
	EXPECT_LT(clock::now() - start, 4s);
	other.signal(SIGCONT);
	EXPECT_EQ(other.wait(*ring), exit_status(errc::peer_lost));
}

// The peer finds the welcome and the end of the connection at once, the end first.
TEST_F(RdmaTest, WhoStopsBehindItsAnswerWasNotTurnedAway)
{
	listen({.silence = 1s});
	process other({"stop", port(), "answer"});
	auto with = accept();

	EXPECT_EQ(end_of(with).code(), errc::peer_lost);
	std::this_thread::sleep_for(300ms); // the end has arrived
	ASSERT_TRUE(other.resume());
	EXPECT_EQ(other.wait(*ring), exit_status(errc::peer_lost));
}

// The listener gives it up before it reads the listener's answer, or before its proof.
TEST_F(RdmaTest, WhoStopsTooLongWhileItConnectsConnectsAgain)
{
	listen({.silence = 1s});
	for (const char *where : {"rdma_connect", "rdma_establish"}) {
		process other({"stop", port(), where});

		ASSERT_TRUE(other.stops(ring.get())) << where;
		run_for(2s);
		other.signal(SIGCONT);
		auto with = accept();
		EXPECT_TRUE(with.alive());
	}
}

// This process is stopped, too: a timer of an earlier peer is behind the limit by then. A
// peer that had to connect again would stop again.
TEST_F(RdmaTest, AProofThatCameInTimeCounts)
{
	listen({.silence = 3s});
	process earlier({"hold", port(), "60000"});
	auto with = accept();
	process other({"stop", port(), "rdma_establish", "2"});

	ASSERT_TRUE(other.stops(ring.get()));
	std::this_thread::sleep_for(700ms); // the timer
	other.signal(SIGCONT);
	std::this_thread::sleep_for(3s);
	auto come = door->accept(after(5s));
	EXPECT_TRUE(come) << come.error().message();
}

// The request of another peer, before it, leads to the end first.
TEST_F(RdmaTest, TheCardsReasonCountsThoughTheEndIsHeardFirst)
{
	listen();
	process other({"hostile", port(), "write-later"});
	auto with = accept();

	ASSERT_TRUE(other.stops(ring.get()));
	process another({"hold", port()});
	std::this_thread::sleep_for(1s);
	other.signal(SIGCONT);
	std::this_thread::sleep_for(1s);
	auto why = end_of(with);
	EXPECT_EQ(why.code(), errc::denied) << why.message();
	EXPECT_EQ(other.wait(*ring), 0);
}

// It was not asked for a sign of life while this process was stopped, and is slow to resume.
TEST_F(RdmaTest, APeerGetsTimeToAnswerWhoWasStopped)
{
	listen({.silence = 3s});
	process other({"hold", port(), "60000"});
	auto with = accept();

	other.signal(SIGSTOP);
	std::this_thread::sleep_for(4s);
	run_for(1s);
	other.signal(SIGCONT);
	run_for(3s);
	EXPECT_TRUE(with.alive()) << with.alive().error().message();
}

// A program that computes in between looks less often than signs of life are due.
TEST_F(RdmaTest, AStoppedPeerIsLostToWhoLooksRarely)
{
	listen({.silence = 1s});
	process other({"hold", port(), "1000"});
	auto with = accept();
	auto start = clock::now();

	other.signal(SIGSTOP);
	while (with.alive() && clock::now() - start < 10s) {
		std::this_thread::sleep_for(500ms);
		(void)ring->run_once(deadline{});
	}
	ASSERT_FALSE(with.alive()) << "it is waited for, for ever";
	EXPECT_EQ(with.alive().error().code(), errc::peer_lost);
	EXPECT_LT(clock::now() - start, 5s);
	other.signal(SIGCONT);
}

TEST_F(RdmaTest, IdlePeersStayTogether)
{
	listen({.silence = 600ms});
	process other({"hold", port(), "600"});
	auto with = accept();
	std::byte memory[8];
	auto got = with.receive(memory);

	EXPECT_EQ(got.wait_until(after(4s)).error().code(), errc::timeout);
	EXPECT_TRUE(with.alive());
}

TEST_F(RdmaTest, CutLink)
{
	listen({.silence = 1s});
	process other({"hold", port(), "1000"});
	auto with = std::make_unique<endpoint>(accept());
	auto start = clock::now();

	ASSERT_EQ(std::system("ip link set veth-a down"), 0);
	auto why = end_of(*with);
	EXPECT_TRUE(why.code() == errc::peer_lost || why.code() == errc::device)
		<< why.message();
	EXPECT_LT(clock::now() - start, 4s);
	int status = other.wait(*ring);
	EXPECT_TRUE(status == exit_status(errc::peer_lost) ||
		    status == exit_status(errc::device))
		<< status;
	// The listener outlives it.
	auto nobody = door->accept(after(100ms));
	ASSERT_FALSE(nobody);
	EXPECT_EQ(nobody.error().code(), errc::timeout) << nobody.error().message();
	// Soft RoCE's queue pair for management does not survive a send while the link is
	// down: make new devices once the old ones are closed.
	door.reset();
	with.reset();
	card.reset();
	ring.reset();
	ASSERT_EQ(std::system("ip link set veth-a up && rdma link delete rxe-a && "
			      "rdma link delete rxe-b && "
			      "rdma link add rxe-a type rxe netdev veth-a && "
			      "ip netns exec b rdma link add rxe-b type rxe "
			      "netdev veth-b && "
			      "ping -c1 -w10 10.77.0.2 >/dev/null"),
		  0);
}

TEST_F(RdmaTest, RemovedCard)
{
	listen();
	process other({"hold", port()});
	auto with = std::make_unique<endpoint>(accept());

	ASSERT_EQ(std::system("rdma link delete rxe-a &"), 0);
	auto why = end_of(*with);
	EXPECT_EQ(why.code(), errc::device) << why.message();
	auto nobody = door->accept(after(5s));
	ASSERT_FALSE(nobody);
	EXPECT_EQ(nobody.error().code(), errc::device) << nobody.error().message();
	with.reset();
	door.reset();
	card.reset();
	ring.reset();
	// Its name disappears before the device does.
	ASSERT_EQ(std::system(
			  "for i in $(seq 200); do rdma link add rxe-a type rxe netdev "
			  "veth-a 2>/dev/null && exit; sleep 0.1; done; exit 1"),
		  0);
}

/// A mistake of a peer, and the text of the error.
struct wrong {
	const char *what, *said;
};

struct HostileTest : RdmaTest, ::testing::WithParamInterface<wrong> {};

TEST_P(HostileTest, EndsInProtocolAndTheListenerGoesOn)
{
	listen({.messages = 4});
	process other({"hostile", port(), GetParam().what});
	auto with = accept();
	auto why = end_of(with);

	EXPECT_EQ(why.code(), errc::protocol);
	EXPECT_NE(why.message().find(GetParam().said), std::string_view::npos)
		<< why.message();
	EXPECT_EQ(other.wait(*ring), 0);
	works();
}

INSTANTIATE_TEST_SUITE_P(
	Messages, HostileTest,
	::testing::Values(wrong{"long", "more than 1040"}, wrong{"short", "too short"},
			  wrong{"type", "unknown type"},
			  wrong{"immediate", "immediate"},
			  wrong{"write-immediate", "immediate"},
			  wrong{"second-proof", "that is not the first message"}));

TEST_F(RdmaTest, MoreMessagesThanCredits)
{
	listen({.messages = 4});
	process other({"hostile", port(), "flood"});
	auto with = accept();

	// Nothing is received, so no credit goes back.
	while (with.alive())
		ASSERT_TRUE(ring->run_once(after(5s)));
	EXPECT_EQ(with.alive().error().code(), errc::protocol)
		<< with.alive().error().message();
	EXPECT_EQ(other.wait(*ring), 0);
	works();
}

TEST_F(RdmaTest, StrangersAreTurnedAway)
{
	listen();
	process lie({"hostile", port(), "lie"});
	process mute({"hostile", port(), "silent"});
	process mute2({"hostile", port(), "silent"});
	process nonsense({"hostile", port(), "no-greeting"});

	works();
	// The silent peers lose their place after a while.
	auto nobody = door->accept(after(5s));
	EXPECT_FALSE(nobody);
	EXPECT_EQ(lie.wait(*ring), 0);
	EXPECT_EQ(nonsense.wait(*ring), 0);
	EXPECT_EQ(mute.wait(*ring), 0);
	EXPECT_EQ(mute2.wait(*ring), 0);
}

// Nor do they take the place of one that has proved itself, and left.
TEST_F(RdmaTest, ACrowdOfStrangersKeepsNobodyOut)
{
	listen({.handshakes = 4});
	process polite({"say-and-leave", port(), "1"});
	EXPECT_EQ(polite.wait(*ring), 0);
	process crowd({"hostile", port(), "crowd", "8"});
	ASSERT_TRUE(crowd.stops(ring.get())) << "one of them was told to come later";
	std::byte said{};
	EXPECT_EQ(accept().receive({&said, 1}).wait(), 1u);
	works();
}

// It talks all the time, so it is not silent.
TEST_F(RdmaTest, APeerThatTakesNothingIsLost)
{
	const int slow = is_slow() ? 5 : 1;
	listen({.messages = 128, .silence = 2s * slow});
	process other({"hostile", port(), "no-receives", std::to_string(100 * slow)});
	auto with = accept();
	std::byte any{};
	auto said = with.send({&any, 1}).wait_until(after(20s * slow));

	ASSERT_FALSE(said);
	EXPECT_EQ(said.error().code(), errc::peer_lost) << said.error().message();
	EXPECT_NE(said.error().message().find("takes nothing"), std::string_view::npos)
		<< said.error().message();
	EXPECT_EQ(other.wait(*ring), 0);
	works();
}

TEST_F(RdmaTest, NoRightsBeforeTheProof)
{
	auto memory = *buffer::host(page_size);
	auto open = *card->register_memory(memory, remote::write);

	listen();
	process other({"hostile", port(), "unproved-write",
		       std::to_string(memory.address()),
		       std::to_string(open.remote_key())});
	EXPECT_FALSE(door->accept(after(4s)));
	EXPECT_EQ(other.wait(*ring), 0);
	for (auto b : memory.bytes())
		ASSERT_EQ(b, std::byte{0});
	works();
}

TEST_F(RdmaTest, AHundredEndpoints)
{
	constexpr uint32_t count = 100;
	listen({.messages = 4, .depth = 8, .silence = 20s});
	process other({"many", port(), std::to_string(count)});
	std::vector<endpoint> all;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		auto with = door->accept(after(30s));
		ASSERT_TRUE(with) << i << " " << with.error().message();
		uint32_t number = 0;
		ASSERT_TRUE(with->receive(std::as_writable_bytes(std::span(&number, 1)))
				    .wait());
		EXPECT_EQ(number, i);
		sum += number;
		all.push_back(std::move(*with));
	}
	EXPECT_EQ(sum, count * (count - 1) / 2);
	std::byte last{};
	EXPECT_TRUE(all[0].send({&last, 1}).wait());
	EXPECT_EQ(other.wait(*ring), 0);
}

TEST_F(RdmaTest, AThousandStreamsAtOnce)
{
	const uint32_t count = is_slow() ? 100 : 1000;
	struct outgoing {
		explicit outgoing(endpoint &&e) : with(std::move(e)) {}

		endpoint with;
		std::optional<sender> out;
		buffer memory = *buffer::host(streamed);
	};
	raise_limit_of_files();
	card.reset();
	ring = std::make_unique<context>(*context::open(many_operations));
	card = std::make_unique<nic>(*nic::open(*ring, card_a));
	listen(small_endpoint);
	process other({"streams", port(), std::to_string(count)});
	std::deque<outgoing> all;
	std::deque<task<result<stream_report>>> running;

	for (uint32_t i = 0; i < count; i++) {
		auto with = door->accept(after(120s));
		ASSERT_TRUE(with) << i << " " << with.error().message();
		auto &to = all.emplace_back(std::move(*with));
		auto out = sender::make(*ring, to.with, *card, small_stream);
		ASSERT_TRUE(out) << i << " " << out.error().message();
		to.out.emplace(std::move(*out));
		fill(to.memory.bytes().first(streamed), i);
	}
	for (auto &to : all)
		running.push_back(to.out->send({.name = "one of many",
						.file = -1,
						.from = {to.memory.part(0, streamed)},
						.size = 0}));
	for (auto &one : running) {
		auto report = one.run(*ring);
		ASSERT_TRUE(report) << report.error().message();
		EXPECT_EQ(report->bytes, streamed);
		EXPECT_TRUE(report->digest);
	}
	EXPECT_EQ(other.wait(*ring), 0);
}

TEST_F(RdmaTest, ArrivalAsAnOperation)
{
	listen();
	auto arrival = door->arrival();
	EXPECT_FALSE(arrival.poll());
	EXPECT_FALSE(door->take());
	process other({"chat", port(), "8", "20"});
	ASSERT_TRUE(arrival.wait_until(after(10s)));
	auto with = door->take();
	ASSERT_TRUE(with);
	chat(std::move(*with), 20);
	EXPECT_EQ(other.wait(*ring), 0);
	auto left = door->arrival();
	door.reset();
	EXPECT_EQ(left.wait().error().code(), errc::cancelled);
}

TEST_F(RdmaTest, EachWaitHasAPeerOfItsOwn)
{
	listen();
	auto one = door->arrival(), two = door->arrival();
	process first({"hold", port()}), second({"hold", port()});

	ASSERT_TRUE(one.wait_until(after(10s)));
	ASSERT_TRUE(two.wait_until(after(10s)));
	auto a = door->take(), b = door->take();
	EXPECT_TRUE(a);
	EXPECT_TRUE(b);
	EXPECT_FALSE(door->take());
}

TEST_F(RdmaTest, APeerThatDiedBeforeItWasTakenIsNotGiven)
{
	listen({.silence = 1s});
	auto arrival = door->arrival();
	process other({"hold", port(), "1000"});

	ASSERT_TRUE(arrival.wait_until(after(10s)));
	other.signal(SIGKILL);
	for (auto until = after(4s); clock::now() < until;)
		(void)ring->run_once(after(100ms));
	EXPECT_FALSE(door->take());
	auto next = door->arrival();
	EXPECT_FALSE(next.poll()) << "nobody is there";
	works();
}

TEST_F(RdmaTest, WhatAPeerSaidBeforeItLeftIsReceived)
{
	listen();
	for (int i = 0; i < 2; i++) {
		auto arrival = door->arrival();
		process other({"say-and-leave", port(), "1"});

		ASSERT_TRUE(arrival.wait_until(after(20s)));
		EXPECT_EQ(other.wait(*ring), 0);
		for (auto until = after(1s); clock::now() < until;)
			(void)ring->run_once(after(100ms));
		// Both ways to take it.
		auto with = i ? door->accept(after(1s)) : door->take();
		ASSERT_TRUE(with) << with.error().message();
		EXPECT_FALSE(with->alive());
		for (auto expected : {std::byte{1}, std::byte{2}}) {
			std::byte said{};
			EXPECT_EQ(with->receive({&said, 1}).wait(), 1u);
			EXPECT_EQ(said, expected);
		}
		std::byte none{};
		auto end = with->receive({&none, 1}).wait();
		ASSERT_FALSE(end);
		EXPECT_EQ(end.error().code(), errc::peer_lost);
	}
	EXPECT_FALSE(door->take());
	// One that does not fit is a mistake, whatever the end was.
	process other({"say-and-leave", port(), "1"});
	EXPECT_EQ(other.wait(*ring), 0);
	auto with = accept();
	while (with.alive())
		(void)ring->run_once(after(100ms));
	auto end = with.receive({}).wait();
	ASSERT_FALSE(end);
	EXPECT_EQ(end.error().code(), errc::protocol) << end.error().message();
}

// The listener has 128 places.
TEST_F(RdmaTest, PeersThatLeftMakeRoom)
{
	listen();
	process many({"say-and-leave", port(), "140"});
	EXPECT_EQ(many.wait(*ring), 0);
	process other({"hold", port()});
	int given = 0;

	for (;; given++) {
		auto with = door->accept(after(20s));
		ASSERT_TRUE(with) << with.error().message();
		if (with->alive())
			break;
	}
	EXPECT_GT(given, 100);
	EXPECT_LE(given, 128);
}

TEST_F(RdmaTest, TooManyMessagesAreBusy)
{
	listen();
	process other({"hold", port()});
	auto with = accept();
	std::vector<operation> all;

	other.signal(SIGSTOP);
	for (int i = 0; i < 64; i++)
		all.push_back(with.send({}));
	EXPECT_EQ(with.send({}).wait().error().code(), errc::busy);
	other.signal(SIGCONT);
	for (auto &op : all)
		EXPECT_EQ(op.wait(), 0u);
}

int main(int argc, char **argv)
{
	if (argc > 2 && std::string_view(argv[1]) == "--peer")
		return be_peer(words(argv + 2, argv + argc));
	::testing::InitGoogleTest(&argc, argv);
	return RUN_ALL_TESTS();
}
