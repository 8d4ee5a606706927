// SPDX-License-Identifier: MIT
// A listener that speaks the protocol with plain verbs, and breaks it.
#include "rdma_raw_peer.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>

namespace rdma_tests {

using namespace sluice;
using namespace sluice::detail;
using wire::kind;

namespace {

// Its exit status 0 says that it came to the end of its part.
class raw_listener : public raw_peer {
public:
	explicit raw_listener(uint16_t port) : raw_peer(4)
	{
		sockaddr_in at{};

		at.sin_family = AF_INET;
		at.sin_port = htons(port);
		inet_pton(AF_INET, address_b, &at.sin_addr);
		need(!rdma_create_id(channel_, &door_, nullptr, RDMA_PS_TCP), "id");
		need(!rdma_bind_addr(door_, reinterpret_cast<sockaddr *>(&at)), "bind");
		need(!rdma_listen(door_, 8), "listen");
	}

	/// The next client that asks.
	void await_request()
	{
		auto *event = next(RDMA_CM_EVENT_CONNECT_REQUEST);
		auto &said = event->param.conn;
		auto asked = wire::read_greeting(
			{static_cast<const std::byte *>(said.private_data),
			 said.private_data_len});

		need(asked.has_value(), "greeting");
		asked_ = *asked;
		id_ = event->id;
		rdma_ack_cm_event(event);
	}

	/// @param size of its answer
	/// @param secret which it says that it knows
	void answer(size_t size = wire::answer::size, std::string_view secret = token,
		    uint16_t messages = 4)
	{
		wire::answer mine{
			.messages = messages, .number = {}, .of_listener = {}};
		rdma_conn_param p{};

		make_queues(slots);
		need(wire::fill(mine.number), "nonce");
		mine.of_listener =
			*wire::prove(secret, wire::side::listener, asked_, mine);
		auto data = wire::encode(mine);
		p.private_data = data.data();
		p.private_data_len = static_cast<uint8_t>(size);
		p.responder_resources = p.initiator_depth = 1;
		p.rnr_retry_count = 7;
		need(!rdma_accept(id_, &p), "accept");
	}

	/// Of the next client, which gets a true answer.
	void hear_proof()
	{
		await_request();
		answer();
		rdma_ack_cm_event(next(RDMA_CM_EVENT_ESTABLISHED));
		await(kind::proof, "proof");
	}

	/// Whether no message has come on a connection that is over.
	bool heard_nothing()
	{
		ibv_wc wc{};

		while (ibv_poll_cq(id_->recv_cq, 1, &wc) == 1)
			if (wc.status == IBV_WC_SUCCESS)
				return false;
		return true;
	}

	void reject(std::string_view why)
	{
		need(!rdma_reject(id_, why.data(), static_cast<uint8_t>(why.size())),
		     "reject");
	}

	void leave() { need(!rdma_disconnect(id_), "disconnect"); }

	/// To a client that has shown that it knows the token.
	void welcome()
	{
		hear_proof();
		send(kind::welcome, 0);
	}

private:
	rdma_cm_id *door_ = nullptr;
	wire::greeting asked_;
};

// What goes wrong before there is a welcome. False: this is none of it.
bool break_handshake(raw_listener &l, std::string_view what, const words &args)
{
	if (what == "mute") {
		l.await_request();
		::pause();
	} else if (what == "rejects") {
		l.await_request();
		l.reject("no peers of mine");
	} else if (what == "short-answer") {
		l.await_request();
		l.answer(5);
	} else if (what == "no-window") {
		l.await_request();
		l.answer(wire::answer::size, token, 0);
	} else if (what == "wide-window") {
		l.await_request();
		l.answer(wire::answer::size, token, most_messages + 1);
	} else if (what == "lie") {
		l.await_request();
		l.answer(wire::answer::size, "a lie");
		need(l.ends(20000) && l.heard_nothing(), "silence of the client");
	} else if (what == "no-welcome") {
		l.hear_proof();
		::pause();
	} else if (what == "leaves") {
		for (;;) {
			l.hear_proof();
			l.leave();
		}
	} else if (what == "data-first") {
		l.hear_proof();
		l.send(kind::data, 1);
	} else if (what == "early-write") {
		l.hear_proof();
		l.post(IBV_WR_RDMA_WRITE, 64,
		       std::strtoull(args.at(3).c_str(), nullptr, 0),
		       static_cast<uint32_t>(
			       std::strtoul(args.at(4).c_str(), nullptr, 0)));
		need(l.status() != IBV_WC_SUCCESS, "refusal of a write");
	} else {
		return false;
	}
	return true;
}

void break_connection(raw_listener &l, std::string_view what)
{
	l.welcome();
	if (what == "two-welcomes")
		l.send(kind::welcome, 0);
	else if (what == "proof")
		l.send(kind::proof, 32);
	else if (what == "pongs")
		l.send(kind::pong, 0);
	else
		need(false, "choice");
}

} // namespace

int be_hostile_listener(const words &args)
{
	try {
		raw_listener l(static_cast<uint16_t>(std::stoi(args.at(1))));

		::raise(SIGSTOP);
		if (!break_handshake(l, args.at(2), args))
			break_connection(l, args.at(2));
		::_exit(l.ends(20000) ? 0 : exit_wrong);
	} catch (const failed &f) {
		std::fprintf(stderr, "hostile listener: %s failed\n", f.where);
		return exit_wrong;
	}
}

} // namespace rdma_tests
