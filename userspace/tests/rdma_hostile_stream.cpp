// SPDX-License-Identifier: MIT
// One end of a stream, on an endpoint that keeps to the protocol, that sends messages that
// are not due or not true. Its exit status: 0 if the other end said that it gives up,
// otherwise why the connection ended.
#include "rdma_tools.hpp"

#include <csignal>
#include <functional>
#include <map>

#include "stream_wire.hpp"

namespace rdma_tests {

using namespace sluice;

namespace {

struct ended {
	int status;
};

constexpr size_t pages = (streamed + page_size - 1) / page_size;
/// Lies of an end with room for one message: it is a grant, or an offer.
constexpr std::string_view takes_no_ack = "takes-no-ack";
constexpr std::string_view takes_no_piece = "takes-no-piece";
/// Bytes between two messages of an end that checks existing data: docs/wire.md.
constexpr uint64_t looked_at_each = 16 << 20;

bool has_little_room(std::string_view lie)
{
	return lie == takes_no_ack || lie == takes_no_piece;
}

struct liar {
	explicit liar(const words &args)
		: ring(*context::open()), card(*nic::open(ring, card_b)),
		  with(*endpoint::connect(
			  ring, card, address_a,
			  static_cast<uint16_t>(std::stoi(args.at(1))),
			  {.token = token,
			   .messages = has_little_room(args.at(2)) ? 1u : 32u,
			   .silence = 3s},
			  after(20s))),
		  memory(*buffer::host(pages * page_size)),
		  mine(*card.register_memory(memory, remote::write))
	{
		fill(memory.bytes().first(streamed), 1);
	}

	void say(const wire::bytes &m) { say(m.span()); }
	void say(std::span<const std::byte> m)
	{
		if (with.send(m).wait())
			return;
		// The connection has ended; before that the other end may have said why.
		hear(wire::type::failed);
		throw ended{0};
	}
	/// The next message of that type, with no failure before it.
	std::span<const std::byte> hear(wire::type wanted)
	{
		for (;;) {
			auto n = with.receive(message).wait();

			if (!n)
				throw ended{exit_status(n.error().code())};
			auto heard = std::span<const std::byte>(message).first(*n);
			if (wire::type_of(heard) == wanted)
				return heard;
			if (wire::type_of(heard) == wire::type::failed)
				throw ended{0};
		}
	}

	void busy(uint64_t looked_at)
	{
		say(wire::encode(wire::busy_message{looked_at}));
	}
	/// Take no message, with signs of life.
	void idle(clock::duration how_long)
	{
		for (auto until = after(how_long); clock::now() < until;)
			(void)ring.run_once(after(100ms));
	}
	/// For longer than the patience of any end here.
	void busy_for_long()
	{
		for (uint64_t at : {1, 2}) {
			idle(3s);
			busy(at * looked_at_each);
		}
		give_up();
	}
	void give_up() { say(wire::encode_text(wire::type::failed, "no more")); }

	// A receiver.
	void accept(uint64_t from = 0, uint64_t piece = page_size)
	{
		say(wire::encode(wire::accept_message{from, piece, {}}));
	}
	void grant(uint64_t size = page_size)
	{
		say(wire::encode(wire::grant_message{
			{memory.address(), size, mine.remote_key()}}));
	}
	void acknowledge(uint64_t upto) { say(wire::encode(wire::ack_message{upto})); }
	void done(const wire::end_message &m) { say(wire::encode_done(m)); }
	/// For 18 s.
	void grant_and_grant()
	{
		for (int i = 0; i < 60; i++) {
			idle(300ms);
			grant();
		}
	}
	void accept_and_take_one()
	{
		accept();
		grant();
		hear(wire::type::piece);
	}

	// A sender.
	static wire::bytes offer(uint64_t size = streamed)
	{
		return wire::encode(wire::open_message{.size = size,
						       .piece = page_size,
						       .chunk = page_size,
						       .checksum = true,
						       .digest = true,
						       .name = "lies"});
	}
	void open(uint64_t size = streamed) { say(offer(size)); }
	remote_memory await_grant()
	{
		return wire::decode_grant(hear(wire::type::grant))->memory;
	}
	/// The true description of a piece.
	wire::piece_message piece(size_t i)
	{
		wire::piece_message m{
			.offset = i * page_size, .length = 0, .chunks = 1, .crc = {}};

		m.length = std::min(page_size, streamed - i * page_size);
		m.crc[0] = crc32c(memory.bytes().subspan(m.offset, m.length));
		return m;
	}
	void write(const remote_memory &to, size_t i)
	{
		auto m = piece(i);

		(void)with.write(memory.part(m.offset, m.length), mine, to, 0).wait();
	}
	/// Send a piece correctly. Returns the memory that took it.
	remote_memory send(size_t i)
	{
		auto to = await_grant();

		write(to, i);
		say(wire::encode(piece(i)));
		return to;
	}
	/// Offer, and send a piece that is described by @p m.
	void open_and_send(const wire::piece_message &m)
	{
		open();
		write(await_grant(), 0);
		say(wire::encode(m));
	}
	wire::piece_message
	changed(const std::function<void(wire::piece_message &)> &by)
	{
		auto m = piece(0);

		by(m);
		return m;
	}
	void end(sha256_digest digest)
	{
		say(wire::encode(wire::end_message{streamed, digest}));
	}

	context ring;
	nic card;
	endpoint with;
	buffer memory;
	registration mine;
	std::array<std::byte, max_message> message;
};

using lies = std::map<std::string, std::function<void(liar &)>>;

// Lies to a sender, which has made an offer.
const lies to_sender = {
	{"grant-first", [](liar &l) { l.grant(); }},
	{"small-grant",
	 [](liar &l) {
	l.accept();
	l.grant(page_size - 1);
}},
	{"many-grants",
	 [](liar &l) {
	l.accept();
	for (int i = 0; i < 80; i++)
		l.grant();
}},
	{"large-pieces", [](liar &l) { l.accept(0, 2 * page_size); }},
	{"has-more", [](liar &l) { l.accept(streamed + 1); }},
	{"second-accept",
	 [](liar &l) {
	l.accept();
	l.accept();
}},
	{"late-refusal",
	 [](liar &l) {
	l.accept();
	l.say(wire::encode_text(wire::type::refuse, "no"));
}},
	{"early-ack",
	 [](liar &l) {
	l.accept_and_take_one();
	l.acknowledge(2 * page_size);
}},
	{"ack-goes-back",
	 [](liar &l) {
	l.accept_and_take_one();
	l.acknowledge(page_size);
	l.acknowledge(0);
}},
	{"acks-nothing",
	 [](liar &l) {
	l.accept();
	l.idle(300ms); // it has received that
	l.acknowledge(0);
}},
	{"acks-again",
	 [](liar &l) {
	l.accept_and_take_one();
	l.acknowledge(page_size);
	l.acknowledge(page_size);
}},
	{"acks-a-byte",
	 [](liar &l) {
	l.accept_and_take_one();
	l.acknowledge(1);
}},
	{"grants-behind-the-end",
	 [](liar &l) {
	l.accept();
	for (size_t i = 0; i < pages; i++)
		l.grant();
	l.hear(wire::type::end);
	l.grant_and_grant();
}},
	{std::string(takes_no_piece),
	 [](liar &l) {
	l.accept();
	l.grant_and_grant();
}},
	{"early-done",
	 [](liar &l) {
	l.accept();
	l.done({streamed, {}});
}},
	{"wrong-done",
	 [](liar &l) {
	l.accept();
	for (size_t i = 0; i < pages; i++)
		l.grant();
	auto end = *wire::decode_end(l.hear(wire::type::end));
	end.digest[0] ^= std::byte{1};
	l.done(end);
}},
	{"no-message", [](liar &l) { l.say(std::span<const std::byte>()); }},
	{"gives-up", [](liar &l) { l.give_up(); }},
	{"busy-with-nothing", [](liar &l) { l.busy(0); }},
	{"busy-with-more", [](liar &l) { l.busy(streamed + 1); }},
	{"busy-again",
	 [](liar &l) {
	l.busy(looked_at_each);
	l.busy(looked_at_each);
}},
	{"busy-by-a-byte",
	 [](liar &l) {
	l.busy(looked_at_each);
	l.busy(looked_at_each + 1);
}},
	{"late-busy",
	 [](liar &l) {
	l.accept();
	l.busy(looked_at_each);
}},
	{"slow-answer", [](liar &l) { l.busy_for_long(); }},
	{"has-much",
	 [](liar &l) {
	l.accept(had);
	l.hear(wire::type::busy);
	l.hear(wire::type::busy);
	l.give_up();
}},
};

// Lies to a receiver.
const lies to_receiver = {
	{"no-offer", [](liar &l) { l.acknowledge(0); }},
	{"too-much", [](liar &l) { l.open(1 << 30); }},
	{"second-offer",
	 [](liar &l) {
	l.open();
	l.hear(wire::type::accept);
	l.open();
}},
	{"early-finish",
	 [](liar &l) {
	l.open();
	l.hear(wire::type::accept);
	l.say(wire::encode_finish());
}},
	{"early-end",
	 [](liar &l) {
	l.open();
	l.send(0);
	l.end({});
}},
	{"gap",
	 [](liar &l) {
	l.open_and_send(l.changed([](auto &m) { m.offset = page_size; }));
}},
	{"long-piece",
	 [](liar &l) {
	l.open_and_send(l.changed([](auto &m) { m.length = 2 * page_size; }));
}},
	{"short-pieces",
	 [](liar &l) {
	auto m = l.changed([&](auto &all) {
		all.length = 1;
		all.crc[0] = crc32c(l.memory.bytes().first(1));
	});

	l.open_and_send(m);
	l.write(l.await_grant(), 0);
	m.offset = 1;
	l.say(wire::encode(m));
}},
	{"behind-the-end",
	 [](liar &l) {
	l.open(100);
	l.write(l.await_grant(), 0);
	l.say(wire::encode(l.piece(0)));
}},
	{"no-crc",
	 [](liar &l) { l.open_and_send(l.changed([](auto &m) { m.chunks = 0; })); }},
	{"wrong-crc",
	 [](liar &l) { l.open_and_send(l.changed([](auto &m) { m.crc[0] ^= 1; })); }},
	{"ungranted",
	 [](liar &l) {
	// The other end looks at none of them before both are there. So it cannot have granted
	// anything.
	auto open = l.with.send(l.offer().span());
	auto piece = l.with.send(wire::encode(l.piece(0)).span());

	(void)open.wait();
	(void)piece.wait();
	::raise(SIGSTOP);
}},
	{"sends-one-and-gives-up",
	 [](liar &l) {
	l.open();
	l.send(0);
	::raise(SIGSTOP);
	l.give_up();
	throw ended{0};
}},
	{"ends-and-gives-up",
	 [](liar &l) {
	sha256 sum;

	sum.add(l.memory.bytes().first(page_size));
	l.open(page_size);
	l.send(0);
	::raise(SIGSTOP);
	l.say(wire::encode(wire::end_message{page_size, sum.digest()}));
	l.give_up();
	throw ended{0};
}},
	{"write-behind-piece",
	 [](liar &l) {
	l.open();
	auto old = l.send(0);
	l.hear(wire::type::ack);
	l.write(old, 1);
}},
	{"busy-with-nothing-here",
	 [](liar &l) {
	l.open();
	l.hear(wire::type::accept);
	l.busy(1);
}},
	{"slow-start",
	 [](liar &l) {
	l.open(had + streamed);
	l.hear(wire::type::accept);
	l.busy_for_long();
}},
	{"offers-to-resume",
	 [](liar &l) {
	l.open(had + streamed);
	l.hear(wire::type::busy);
	l.hear(wire::type::busy);
	l.give_up();
}},
	{std::string(takes_no_ack),
	 [](liar &l) {
	l.open();
	l.send(0);
	l.idle(6s); // patience of 1 s lasts for two at most, and a second for FAILED
}},
	{"wrong-end",
	 [](liar &l) {
	l.open();
	for (size_t i = 0; i < pages; i++)
		l.send(i);
	l.end({});
}},
};

} // namespace

int be_hostile_stream(const words &args)
{
	liar l(args);
	const std::string &what = args.at(2);

	try {
		if (auto lie = to_receiver.find(what); lie != to_receiver.end()) {
			lie->second(l);
		} else {
			l.hear(wire::type::open);
			to_sender.at(what)(l);
		}
		// Only the end follows.
		l.hear(wire::type::failed);
	} catch (const ended &how) {
		return how.status;
	}
	return 0;
}

} // namespace rdma_tests
