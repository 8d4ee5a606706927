// SPDX-License-Identifier: MIT
// The wire protocol and its credits, without a device.
#include <algorithm>
#include <cstring>
#include <deque>
#include <random>

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "flow.hpp"
#include "wire.hpp"

using namespace sluice;
using namespace sluice::detail;
using wire::kind;

namespace {

std::vector<std::byte> message(const wire::header &head, size_t length)
{
	std::vector<std::byte> bytes(wire::header::size + length);

	wire::encode(head, std::span<std::byte, wire::header::size>(
				   bytes.data(), wire::header::size));
	return bytes;
}

errc code_of(std::span<const std::byte> bytes)
{
	auto head = wire::read_header("peer", bytes);

	return head ? errc::usage : head.error().code();
}

} // namespace

TEST(WireTest, HeaderIsWhatTheDocumentSays)
{
	auto bytes = message({.what = kind::data,
			      .length = 0x0102,
			      .sequence = 0x03040506,
			      .granted = 0x0708090a,
			      .credits_seen = 0x0b0c0d0e},
			     0x102);
	const uint8_t expected[] = {3,	 0, 2, 1, 6,   5,   4,	 3,
				    0xa, 9, 8, 7, 0xe, 0xd, 0xc, 0xb};

	EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof(expected)), 0);
	auto head = wire::read_header("peer", bytes);
	ASSERT_TRUE(head);
	EXPECT_EQ(head->what, kind::data);
	EXPECT_EQ(head->length, 0x102);
	EXPECT_EQ(head->sequence, 0x03040506u);
	EXPECT_EQ(head->granted, 0x0708090au);
	EXPECT_EQ(head->credits_seen, 0x0b0c0d0eu);
}

TEST(WireTest, LengthsAreChecked)
{
	EXPECT_EQ(code_of({}), errc::protocol);
	auto whole = message({}, 0);
	EXPECT_EQ(code_of(std::span(whole).first(15)), errc::protocol);
	EXPECT_EQ(code_of(message({.length = 1}, 0)), errc::protocol);
	EXPECT_EQ(code_of(message({.length = 0}, 1)), errc::protocol);
	EXPECT_EQ(code_of(message({.length = max_message}, max_message)), errc::usage);
	EXPECT_EQ(code_of(message({.length = max_message + 1}, max_message + 1)),
		  errc::protocol);
}

TEST(WireTest, KindsAreChecked)
{
	EXPECT_EQ(code_of(message({.what = kind{0}}, 0)), errc::protocol);
	EXPECT_EQ(code_of(message({.what = kind{7}}, 0)), errc::protocol);
	EXPECT_EQ(code_of(message({.what = kind{255}}, 0)), errc::protocol);
	for (auto what : {kind::welcome, kind::credit, kind::ping, kind::pong}) {
		EXPECT_EQ(code_of(message({.what = what}, 0)), errc::usage);
		EXPECT_EQ(code_of(message({.what = what, .length = 1}, 1)),
			  errc::protocol);
	}
	EXPECT_EQ(code_of(message({.what = kind::proof, .length = 32}, 32)),
		  errc::usage);
	EXPECT_EQ(code_of(message({.what = kind::proof, .length = 31}, 31)),
		  errc::protocol);
	auto flags = message({}, 0);
	flags[1] = std::byte{1};
	EXPECT_EQ(code_of(flags), errc::protocol);
}

// Whatever the bytes are, nothing is read outside of them (under the sanitizers), and
// what is accepted is consistent.
TEST(WireTest, RandomBytes)
{
	std::mt19937 random(1);

	for (int i = 0; i < 20000; i++) {
		std::vector<std::byte> bytes(random() % (wire::most_bytes + 8));

		for (auto &b : bytes)
			b = static_cast<std::byte>(random() % (i % 2 ? 8 : 256));
		auto head = wire::read_header("peer", bytes);

		EXPECT_TRUE(!head || bytes.size() == wire::header::size + head->length);
		(void)wire::read_greeting(bytes);
		(void)wire::read_answer(bytes);
		(void)wire::read_refusal(bytes);
	}
}

TEST(WireTest, GreetingAndAnswerGoThereAndBack)
{
	wire::greeting asked{.messages = 32};
	wire::answer answered{.messages = 1024};

	asked.number.fill(std::byte{7});
	answered.number.fill(std::byte{8});
	answered.of_listener.fill(std::byte{9});
	auto question = wire::encode(asked);
	auto reply = wire::encode(answered);

	// rdma_cm's room for them: 92 and 196 bytes, of which it takes 36 itself.
	EXPECT_LE(question.size(), 56u);
	EXPECT_LE(reply.size(), 196u);
	EXPECT_EQ(wire::read_greeting(question)->messages, 32);
	EXPECT_EQ(wire::read_greeting(question)->number, asked.number);
	EXPECT_EQ(wire::read_answer(reply)->of_listener, answered.of_listener);
	EXPECT_FALSE(wire::read_greeting(std::span(question).first(39)));
	EXPECT_FALSE(wire::read_answer(std::span(reply).first(71)));
	question[4] = std::byte{2};
	EXPECT_FALSE(wire::read_greeting(question)) << "another version";
	reply[0] = std::byte{0};
	EXPECT_FALSE(wire::read_answer(reply)) << "not ours";
}

TEST(WireTest, WindowsAreChecked)
{
	for (unsigned n : {0u, 1025u, 65535u}) {
		auto bytes = wire::encode(
			wire::greeting{.messages = static_cast<uint16_t>(n)});
		EXPECT_FALSE(wire::read_greeting(bytes)) << n;
	}
}

// Computed with another interface of libcrypto, as the document says.
TEST(WireTest, ProofIsWhatTheDocumentSays)
{
	wire::greeting asked{.messages = 5};
	wire::answer answered{.messages = 6};

	asked.number.fill(std::byte{1});
	answered.number.fill(std::byte{2});
	std::vector<unsigned char> over{1, 'S', 'L', 'C', 'E', 1, 0, 5, 0};
	over.insert(over.end(), 32, 1);
	for (unsigned char c : {'S', 'L', 'C', 'E', '\1', '\0', '\6', '\0'})
		over.push_back(c);
	over.insert(over.end(), 32, 2);
	unsigned char expected[32];
	size_t length = 0;
	ASSERT_TRUE(EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA256", nullptr, "secret", 6,
			      over.data(), over.size(), expected, 32, &length));
	auto listener = wire::prove("secret", wire::side::listener, asked, answered);
	ASSERT_TRUE(listener);
	EXPECT_EQ(std::memcmp(listener->data(), expected, 32), 0);
	auto client = wire::prove("secret", wire::side::client, asked, answered);
	EXPECT_FALSE(wire::same(*client, *listener)) << "it could be sent back";
	EXPECT_FALSE(wire::same(*client,
				*wire::prove("", wire::side::client, asked, answered)));
	asked.messages = 7;
	EXPECT_FALSE(wire::same(
		*client, *wire::prove("secret", wire::side::client, asked, answered)));
}

namespace {

/// One side of a connection without a card: receives are only counted.
struct station {
	explicit station(uint32_t window)
		: account(window), receives(window + flow::reserve)
	{
	}

	flow account;
	uint32_t receives;		 ///< posted
	std::deque<wire::header> coming; ///< in flight to it
	std::deque<wire::header> landed; ///< in a receive, not looked at yet
	uint32_t unread = 0; ///< data messages that its program did not take
	uint32_t to_send = 0, got = 0, not_ready = 0;

	void put(station &to, kind what) { to.coming.push_back(account.send(what, 0)); }

	// What a card does.
	void land_one()
	{
		not_ready += receives == 0;
		receives -= receives != 0;
		landed.push_back(coming.front());
		coming.pop_front();
	}

	// What an endpoint does with an arrival.
	void take_one()
	{
		auto head = landed.front();

		landed.pop_front();
		const char *wrong = account.receive(head);
		ASSERT_EQ(wrong, nullptr) << wrong;
		if (head.what == kind::data)
			unread++;
		else
			receives++;
	}

	void read_one()
	{
		unread--;
		got++;
		receives++;
		account.reposted();
	}

	// What an endpoint does when its context waits.
	bool flush(station &to)
	{
		bool did = false;

		for (; to_send && account.may_send_data(); to_send--, did = true)
			put(to, kind::data);
		if (account.pong_is_due())
			put(to, kind::pong), did = true;
		if (account.credit_is_due())
			put(to, kind::credit), did = true;
		return did;
	}
};

void step(station &me, station &other, unsigned choice)
{
	switch (choice % 10) {
	case 0:
	case 1:
	case 2:
		if (!me.coming.empty())
			me.land_one();
		break;
	case 3:
	case 4:
		if (!me.landed.empty())
			me.take_one();
		break;
	case 5:
	case 8:
	case 9:
		if (me.unread)
			me.read_one();
		break;
	case 6:
		if (me.account.may_ping())
			me.put(other, kind::ping);
		break;
	case 7: me.flush(other); break;
	}
}

// Everything that happens without further requests: all must be there at the end.
void settle(station &a, station &b)
{
	for (bool did = true; did;) {
		did = false;
		for (auto [me, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
			did |= me->flush(*other);
			while (!me->coming.empty())
				me->land_one(), did = true;
			while (!me->landed.empty())
				me->take_one(), did = true;
			while (me->unread)
				me->read_one(), did = true;
		}
	}
}

struct FlowTest : ::testing::TestWithParam<std::pair<uint32_t, uint32_t>> {};

} // namespace

TEST_P(FlowTest, NobodyIsEverNotReadyOrStuck)
{
	auto [wa, wb] = GetParam();

	for (unsigned seed = 0; seed < 200; seed++) {
		std::mt19937 random(seed);
		station a(wa), b(wb);

		a.account.begin(wb);
		b.account.begin(wa);
		b.put(a, kind::welcome);
		a.put(b, kind::proof);
		a.to_send = random() % 3 ? 300 : 0;
		b.to_send = random() % 3 ? 300 : 0;
		uint32_t to_a = b.to_send, to_b = a.to_send;
		// For a while some sides do nothing, so that much piles up.
		unsigned lazy = 0;
		for (int i = 0; i < 2000 && !HasFatalFailure(); i++) {
			unsigned choice = random() % 20;

			if (i % 50 == 0)
				lazy = random();
			if (lazy >> choice & 1)
				continue;
			if (choice < 10)
				step(a, b, choice);
			else
				step(b, a, choice);
		}
		settle(a, b);
		ASSERT_EQ(a.not_ready + b.not_ready, 0u) << "seed " << seed;
		ASSERT_EQ(a.got, to_a) << "seed " << seed;
		ASSERT_EQ(b.got, to_b) << "seed " << seed;
		ASSERT_EQ(a.receives, wa + flow::reserve);
		ASSERT_EQ(b.receives, wb + flow::reserve);
		ASSERT_TRUE(a.account.may_ping() && b.account.may_ping());
	}
}

INSTANTIATE_TEST_SUITE_P(Windows, FlowTest,
			 ::testing::Values(std::pair(1u, 1u), std::pair(1u, 32u),
					   std::pair(2u, 2u), std::pair(3u, 1u),
					   std::pair(32u, 32u), std::pair(1024u, 5u)));

namespace {

struct HostileFlowTest : ::testing::Test {
	HostileFlowTest() : account(4)
	{
		account.begin(4);
		(void)account.send(kind::welcome, 0);
	}

	const char *come(wire::header head)
	{
		head.sequence = number++;
		if (!head.granted)
			head.granted = 4;
		return account.receive(head);
	}

	flow account;
	uint32_t number = 0;
};

} // namespace

TEST_F(HostileFlowTest, MoreDataThanCredits)
{
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(come({}), nullptr);
	// Reposted, but the peer was not told and does not know of it.
	account.reposted();
	EXPECT_NE(come({}), nullptr);
}

TEST_F(HostileFlowTest, Sequence)
{
	EXPECT_EQ(account.receive({.sequence = 0, .granted = 4}), nullptr);
	EXPECT_NE(account.receive({.sequence = 2, .granted = 4}), nullptr);
}

TEST_F(HostileFlowTest, Credits)
{
	EXPECT_NE(come({.granted = 3}), nullptr) << "taken back";
	number = 0;
	account = flow(4);
	account.begin(4);
	EXPECT_NE(come({.granted = 5}), nullptr) << "more than its window";
}

TEST_F(HostileFlowTest, CreditMessages)
{
	EXPECT_EQ(come({.what = kind::credit}), nullptr);
	EXPECT_NE(come({.what = kind::credit}), nullptr) << "the first is not seen";
}

TEST_F(HostileFlowTest, SeenWhatWasNotSent)
{
	EXPECT_NE(come({.credits_seen = 1}), nullptr);
}

TEST_F(HostileFlowTest, Pings)
{
	EXPECT_NE(come({.what = kind::pong}), nullptr);
	EXPECT_EQ(come({.what = kind::ping}), nullptr);
	EXPECT_NE(come({.what = kind::ping}), nullptr);
}

TEST_F(HostileFlowTest, FirstMessages)
{
	EXPECT_EQ(come({.what = kind::proof}), nullptr);
	EXPECT_NE(come({.what = kind::proof}), nullptr);
}
