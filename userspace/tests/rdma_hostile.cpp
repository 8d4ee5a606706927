// SPDX-License-Identifier: MIT
// A client that speaks the protocol with plain verbs, and breaks it.
#include "rdma_raw_peer.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <memory>

namespace rdma_tests {

using namespace sluice;
using namespace sluice::detail;
using wire::kind;

namespace {

class raw_client : public raw_peer {
public:
	/// @param window the most messages that it takes
	/// @param receives what it posts for them
	raw_client(uint16_t port, std::string_view secret, uint16_t window = 4,
		   unsigned receives = slots)
		: raw_peer(window), secret_(secret)
	{
		need(!rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP), "id");
		sockaddr_in to{};
		to.sin_family = AF_INET;
		to.sin_port = htons(port);
		inet_pton(AF_INET, address_a, &to.sin_addr);
		need(!rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr *>(&to),
					2000),
		     "address");
		rdma_ack_cm_event(next(RDMA_CM_EVENT_ADDR_RESOLVED));
		need(!rdma_resolve_route(id_, 2000), "route");
		rdma_ack_cm_event(next(RDMA_CM_EVENT_ROUTE_RESOLVED));
		make_queues(receives);
	}

	/// @param retries how often our card is to send what this one is not ready for
	void connect(bool sane = true, uint8_t retries = 7)
	{
		asked_.messages = window_;
		need(wire::fill(asked_.number), "nonce");
		auto data = wire::encode(asked_);
		rdma_conn_param p{};

		p.private_data = data.data();
		p.private_data_len = sane ? data.size() : 5;
		p.responder_resources = p.initiator_depth = 1;
		p.retry_count = 7;
		p.rnr_retry_count = retries;
		need(!rdma_connect(id_, &p), "connect");
		if (sane)
			take_answer();
		else
			rdma_ack_cm_event(next(RDMA_CM_EVENT_REJECTED));
	}

	void prove(bool truly = true)
	{
		auto mine = *wire::prove(truly ? secret_ : "a lie", wire::side::client,
					 asked_, answer_);

		std::memcpy(text(), mine.data(), mine.size());
		send(kind::proof, sizeof(mine));
	}

	void await_welcome() { await(kind::welcome, "welcome"); }

	/// Answer pings, and nothing else, until the connection ends.
	bool stays_alive_until_the_end(int ms)
	{
		for (; ms > 0; ms -= 10) {
			ibv_wc wc{};

			if (ends(10))
				return true;
			if (ibv_poll_cq(id_->recv_cq, 1, &wc) != 1 ||
			    wc.status != IBV_WC_SUCCESS)
				continue;
			auto slot = static_cast<unsigned>(wc.wr_id);
			bool ping = is(slot, kind::ping);
			post_receive(slot);
			if (ping)
				send(kind::pong, 0);
		}
		return false;
	}

private:
	void take_answer()
	{
		auto *event = next(RDMA_CM_EVENT_ESTABLISHED);
		auto &said = event->param.conn;
		auto answer = wire::read_answer(
			{static_cast<const std::byte *>(said.private_data),
			 said.private_data_len});

		need(answer.has_value(), "answer");
		answer_ = *answer;
		rdma_ack_cm_event(event);
	}

	std::string_view secret_;
	wire::greeting asked_;
	wire::answer answer_;
};

// Exit status 0: the other side ended the connection.
int ended(raw_client &c)
{
	return c.ends(5000) ? 0 : exit_wrong;
}

// Without a proof, writes to memory that others may write to.
int write_unproved(raw_client &c, const words &args)
{
	c.connect();
	c.post(IBV_WR_RDMA_WRITE, 64, std::strtoull(args.at(3).c_str(), nullptr, 0),
	       static_cast<uint32_t>(std::strtoul(args.at(4).c_str(), nullptr, 0)));
	return c.status() == IBV_WC_SUCCESS ? exit_wrong : 0;
}

// Talks, and is not ready for what it is told.
int take_nothing(raw_client &c, int pause_ms)
{
	c.connect(true, 0);
	c.prove();
	c.await_welcome();
	for (int i = 0; i < 128 && !c.ends(pause_ms); i++)
		c.send(kind::data, 1);
	return ended(c);
}

// More strangers than a listener lets into the handshake.
int be_a_crowd(uint16_t port, int count)
{
	std::vector<std::unique_ptr<raw_client>> all;

	for (int i = 0; i < count; i++) {
		all.push_back(std::make_unique<raw_client>(port, token));
		all.back()->connect();
	}
	::raise(SIGSTOP);
	return 0;
}

int after_proof(raw_client &c, std::string_view what)
{
	c.connect();
	c.prove();
	c.await_welcome();
	if (what == "no-credits")
		return c.stays_alive_until_the_end(20000) ? 0 : exit_wrong;
	if (what == "long")
		c.post(IBV_WR_SEND, 1100);
	else if (what == "short")
		c.post(IBV_WR_SEND, 8);
	else if (what == "type")
		c.send(kind{99}, 0);
	else if (what == "immediate")
		c.send(kind::data, 0, IBV_WR_SEND_WITH_IMM); // otherwise valid
	else if (what == "write-immediate")
		c.post(IBV_WR_RDMA_WRITE_WITH_IMM, 0);
	else if (what == "second-proof")
		c.prove();
	else if (what == "write-later") {
		::raise(SIGSTOP);
		c.post(IBV_WR_RDMA_WRITE, 64, 0, 1);
		return c.status() == IBV_WC_SUCCESS ? exit_wrong : 0;
	} else if (what == "flood")
		for (int i = 0; i < 5; i++)
			c.send(kind::data, 1);
	else
		return exit_wrong;
	return ended(c);
}

int be(const words &args)
{
	const std::string &what = args.at(2);
	const auto port = static_cast<uint16_t>(std::stoi(args.at(1)));

	if (what == "crowd")
		return be_a_crowd(port, std::stoi(args.at(3)));
	raw_client c(port, token, what == "no-credits" ? 1 : 4,
		     what == "no-receives" ? 1 : raw_client::slots);

	if (what == "no-receives")
		return take_nothing(c, std::stoi(args.at(3)));
	if (what == "unproved-write")
		return write_unproved(c, args);
	if (what == "no-greeting")
		return c.connect(false), 0;
	if (what == "silent") {
		c.connect();
		return c.ends(30000) ? 0 : exit_wrong;
	}
	if (what == "lie") {
		c.connect();
		c.prove(false);
		return ended(c);
	}
	return after_proof(c, what);
}

} // namespace

int be_hostile(const words &args)
{
	try {
		::_exit(be(args));
	} catch (const failed &f) {
		std::fprintf(stderr, "hostile peer: %s failed\n", f.where);
		return exit_wrong;
	}
}

} // namespace rdma_tests
