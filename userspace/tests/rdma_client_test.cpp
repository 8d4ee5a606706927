// SPDX-License-Identifier: MIT
// What a client does about listeners that break the protocol.
#include "rdma_fixture.hpp"

namespace rdma_tests {

namespace {

constexpr uint16_t its_port = 7479;

struct RdmaClientTest : RdmaTest {
	result<endpoint> connect(clock::duration limit = 20s)
	{
		return endpoint::connect(*ring, *card, address_b, its_port,
					 with_silence({.token = token}), after(limit));
	}

	static words listener_that(const char *lies)
	{
		return {"hostile-listener", std::to_string(its_port), lies};
	}

	/// It stops when it listens, so that nobody is told that nobody does.
	void go(process &listener)
	{
		ASSERT_TRUE(listener.stops(ring.get()));
		listener.signal(SIGCONT);
	}
};

} // namespace

TEST_F(RdmaClientTest, ListenersThatBreakTheHandshake)
{
	// The client connects to the last three again until its time is over.
	const clock::duration all = 20s, some = is_slow() ? 15s : 3s;
	const struct {
		const char *what;
		errc code;
		clock::duration limit;
	} lies[] = {
		{"short-answer", errc::protocol, all},
		{"no-window", errc::protocol, all},
		{"wide-window", errc::protocol, all},
		{"data-first", errc::protocol, all},
		{"rejects", errc::peer_lost, all},
		{"leaves", errc::peer_lost, some},
		{"mute", errc::timeout, some},
		{"no-welcome", errc::timeout, some},
	};

	for (auto [what, code, limit] : lies) {
		SCOPED_TRACE(what);
		process other(listener_that(what));
		go(other);
		auto with = connect(limit);

		ASSERT_FALSE(with);
		EXPECT_EQ(with.error().code(), code) << with.error().message();
	}
}

TEST_F(RdmaClientTest, AListenerWithoutTheTokenGetsNoProof)
{
	process other(listener_that("lie"));
	go(other);
	auto with = connect();

	ASSERT_FALSE(with);
	EXPECT_EQ(with.error().code(), errc::denied) << with.error().message();
	EXPECT_EQ(other.wait(*ring), 0);
}

TEST_F(RdmaClientTest, NoRightsBeforeTheWelcome)
{
	auto memory = *buffer::host(page_size);
	auto open = *card->register_memory(memory, remote::write);
	auto lie = listener_that("early-write");

	lie.push_back(std::to_string(memory.address()));
	lie.push_back(std::to_string(open.remote_key()));
	process other(lie);
	go(other);
	EXPECT_FALSE(connect());
	EXPECT_EQ(other.wait(*ring), 0);
	for (auto b : memory.bytes())
		ASSERT_EQ(b, std::byte{0});
}

TEST_F(RdmaClientTest, ListenersThatBreakTheConnection)
{
	for (const char *what : {"two-welcomes", "proof", "pongs"}) {
		SCOPED_TRACE(what);
		process other(listener_that(what));
		go(other);
		auto with = connect();
		// It may be told of both messages at once.
		auto why = with ? end_of(*with) : with.error();

		EXPECT_EQ(why.code(), errc::protocol) << why.message();
		EXPECT_EQ(other.wait(*ring), 0);
	}
}

} // namespace rdma_tests
