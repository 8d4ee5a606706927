// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/socket.h>
#include <thread>

#include <gtest/gtest.h>

#include "xfer/channel.hpp"
#include "xfer/verbs.hpp"

using namespace xfer;
using namespace std::chrono_literals;

namespace {

struct Pair {
	Pair()
	{
		int fds[2];

		if (::socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
			throw system_error("socketpair");
		raw = UniqueFd(fds[0]);
		channel.emplace(UniqueFd(fds[1]), "peer");
	}

	void write(const std::string &text)
	{
		ASSERT_EQ(::write(raw.get(), text.data(), text.size()),
			  static_cast<ssize_t>(text.size()));
	}

	UniqueFd raw;
	std::optional<Channel> channel;
};

} // namespace

TEST(Message, ThereAndBack)
{
	auto message = Message::parse(
		Message("piece").set("index", 7).set("text", "a b=c").line());

	ASSERT_TRUE(message);
	EXPECT_EQ(message->verb(), "piece");
	EXPECT_EQ(message->number("index"), 7u);
	EXPECT_EQ(message->string("text"), "a b=c");
}

TEST(Message, RefusesNonsense)
{
	for (const char *line : {"", "a b", "a =b", "a\x1b[2J", "a b=\xff"})
		EXPECT_FALSE(Message::parse(line)) << line;
}

TEST(Message, Numbers)
{
	auto m = *Message::parse("m a=18446744073709551615 b=18446744073709551616"
				 " c= d=-1 e=1x f=0x1 g=5");

	EXPECT_EQ(m.number("a"), UINT64_MAX);
	for (const char *key : {"b", "c", "d", "e", "f", "missing"})
		EXPECT_EQ(m.number(key).error().code(), errc::protocol) << key;
	EXPECT_TRUE(m.number("g", 5));
	EXPECT_FALSE(m.number("g", 4));
}

TEST(Message, TextIsFitForATerminal)
{
	EXPECT_EQ(Message("m").set("text", "a\nb\x1b").line(), "m text=a?b?");
}

TEST(Channel, SplitAndJoinedLines)
{
	Pair pair;

	pair.write("one a=1\ntwo");
	EXPECT_EQ(pair.channel->receive(after(1s))->verb(), "one");
	EXPECT_FALSE(pair.channel->pending());
	pair.write(" b=2\nthree\n");
	EXPECT_EQ(pair.channel->receive(after(1s))->number("b"), 2u);
	EXPECT_TRUE(pair.channel->pending());
	EXPECT_EQ(pair.channel->receive(after(1s))->verb(), "three");
}

TEST(Channel, PeerCloses)
{
	Pair pair;

	pair.raw = UniqueFd();
	EXPECT_EQ(pair.channel->receive(after(1s)).error().code(),
		  errc::peer_lost);
}

TEST(Channel, PeerClosesInTheMiddleOfALine)
{
	Pair pair;

	pair.write("half");
	::shutdown(pair.raw.get(), SHUT_WR);
	EXPECT_EQ(pair.channel->receive(after(1s)).error().code(),
		  errc::peer_lost);
}

TEST(Channel, SilentPeer)
{
	Pair pair;
	auto start = clock::now();

	EXPECT_EQ(pair.channel->receive(after(50ms)).error().code(),
		  errc::timeout);
	EXPECT_GE(clock::now() - start, 50ms);
}

TEST(Channel, PeerReportsAnError)
{
	Pair pair;

	pair.write("error kind=corrupt text=byte 5 differs\n");
	auto message = pair.channel->receive(after(1s));
	ASSERT_FALSE(message);
	EXPECT_EQ(message.error().code(), errc::corrupt);
	EXPECT_STREQ(message.error().what(), "peer: byte 5 differs");
}

TEST(Channel, UnknownKindOfError)
{
	Pair pair;

	pair.write("error kind=sunspots\n");
	EXPECT_EQ(pair.channel->receive(after(1s)).error().code(),
		  errc::peer_error);
}

TEST(Channel, EndlessLine)
{
	Pair pair;

	pair.write(std::string(2 * Channel::max_line, 'x'));
	EXPECT_EQ(pair.channel->receive(after(1s)).error().code(),
		  errc::protocol);
}

TEST(Channel, UnexpectedVerb)
{
	Pair pair;

	pair.write("hello\n");
	EXPECT_EQ(pair.channel->expect("ready", after(1s)).error().code(),
		  errc::protocol);
}

TEST(Channel, PeerThatDoesNotRead)
{
	Pair pair;
	Message big("m");
	result<void> sent;

	big.set("x", std::string(4000, 'x'));
	for (int i = 0; i < 10000 && sent; i++)
		sent = pair.channel->send(big, after(50ms));
	ASSERT_FALSE(sent);
	EXPECT_EQ(sent.error().code(), errc::timeout);
}

TEST(Channel, TcpThereAndBack)
{
	std::thread server([] {
		auto channel = accept_one(18599, after(5s));
		ASSERT_TRUE(channel) << channel.error().what();
		auto message = channel->receive(after(5s));
		ASSERT_TRUE(message);
		EXPECT_TRUE(channel->send(*message, after(5s)));
	});
	auto channel = connect_to("127.0.0.1", 18599, after(5s));

	ASSERT_TRUE(channel) << channel.error().what();
	EXPECT_TRUE(channel->send(Message("echo"), after(5s)));
	EXPECT_EQ(channel->receive(after(5s))->verb(), "echo");
	server.join();
}

TEST(Channel, NobodyListens)
{
	auto channel = connect_to("127.0.0.1", 18598, after(100ms));

	ASSERT_FALSE(channel);
	EXPECT_EQ(channel.error().code(), errc::peer_lost);
}

TEST(Channel, NobodyConnects)
{
	EXPECT_EQ(accept_one(18597, after(50ms)).error().code(), errc::timeout);
}

TEST(Channel, NoSuchPort)
{
	EXPECT_EQ(open_virtio_port("sluice.test.none").error().code(),
		  errc::device);
}

TEST(QpAddress, ThereAndBack)
{
	QpAddress address;
	Message message("hello");

	address.qpn = 0xabcdef;
	address.psn = 42;
	address.mtu = IBV_MTU_4096;
	for (uint8_t i = 0; i < 16; i++)
		address.gid.raw[i] = static_cast<uint8_t>(i * 17);
	address.to(message);
	auto back = QpAddress::from(*Message::parse(message.line()));
	ASSERT_TRUE(back);
	EXPECT_EQ(back->qpn, address.qpn);
	EXPECT_EQ(back->psn, address.psn);
	EXPECT_EQ(back->mtu, address.mtu);
	EXPECT_EQ(gid_to_string(back->gid), gid_to_string(address.gid));
}

TEST(QpAddress, RefusesNonsense)
{
	const char *gid = "00112233445566778899aabbccddeeff";

	for (std::string fields : {
		"qpn=16777216 psn=1 mtu=5 gid=" + std::string(gid),
		"qpn=1 psn=16777216 mtu=5 gid=" + std::string(gid),
		"qpn=1 psn=1 mtu=0 gid=" + std::string(gid),
		"qpn=1 psn=1 mtu=6 gid=" + std::string(gid),
		"qpn=1 psn=1 mtu=5 gid=" + std::string(gid) + "0",
		"qpn=1 psn=1 mtu=5 gid=" + std::string(gid, 31) + "g",
		std::string("qpn=1 psn=1 mtu=5"),
		"psn=1 mtu=5 gid=" + std::string(gid)})
		EXPECT_FALSE(QpAddress::from(*Message::parse("hello " + fields)))
			<< fields;
}
