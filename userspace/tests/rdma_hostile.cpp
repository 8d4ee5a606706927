// SPDX-License-Identifier: MIT
// A peer that speaks the protocol with plain verbs, and breaks it.
#include "rdma_tools.hpp"

#include <arpa/inet.h>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <poll.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "wire.hpp"

namespace rdma_tests {

using namespace sluice;
using namespace sluice::detail;
using wire::kind;

namespace {

struct failed {
	const char *where;
};

void need(bool ok, const char *where)
{
	if (!ok)
		throw failed{where};
}

class raw_client {
public:
	static constexpr unsigned slots = 8;

	/// @param window the most messages that it takes
	/// @param receives what it posts for them
	raw_client(uint16_t port, std::string_view secret, uint16_t window = 4,
		   unsigned receives = slots)
		: secret_(secret), window_(window)
	{
		channel_ = rdma_create_event_channel();
		need(!rdma_create_id(channel_, &id_, nullptr, RDMA_PS_TCP), "id");
		sockaddr_in to{};
		to.sin_family = AF_INET;
		to.sin_port = htons(port);
		inet_pton(AF_INET, address_a, &to.sin_addr);
		need(!rdma_resolve_addr(id_, nullptr, reinterpret_cast<sockaddr *>(&to),
					2000),
		     "address");
		expect(RDMA_CM_EVENT_ADDR_RESOLVED);
		need(!rdma_resolve_route(id_, 2000), "route");
		expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
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
		expect(sane ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_REJECTED);
	}

	void prove(bool truly = true)
	{
		auto mine = *wire::prove(truly ? secret_ : "a lie", wire::side::client,
					 asked_, answer_);

		std::memcpy(memory_ + wire::header::size, mine.data(), mine.size());
		send(kind::proof, sizeof(mine));
	}

	void await_welcome()
	{
		ibv_wc wc{};

		while (ibv_poll_cq(id_->recv_cq, 1, &wc) == 0)
			::usleep(1000);
		need(wc.status == IBV_WC_SUCCESS &&
			     is(static_cast<unsigned>(wc.wr_id), kind::welcome),
		     "welcome");
	}

	void send(kind what, uint16_t length, ibv_wr_opcode by = IBV_WR_SEND)
	{
		wire::encode({.what = what,
			      .length = length,
			      .sequence = sequence_++,
			      .granted = window_,
			      .credits_seen = 0},
			     std::span<std::byte, 16>(memory_, 16));
		post(by, wire::header::size + length);
	}

	void post(ibv_wr_opcode what, size_t length, uint64_t there = 0,
		  uint32_t key = 0)
	{
		ibv_sge part = {reinterpret_cast<uintptr_t>(memory_),
				static_cast<uint32_t>(length), region_->lkey};
		ibv_send_wr wr{}, *bad;

		wr.sg_list = &part;
		wr.num_sge = length ? 1 : 0;
		wr.opcode = what;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.imm_data = 0x12345678;
		wr.wr.rdma = {.remote_addr = there, .rkey = key};
		need(!ibv_post_send(id_->qp, &wr, &bad), "send");
		await_sent();
	}

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

	ibv_wc_status status() const { return status_; }

	/// Whether the connection ends within that time.
	bool ends(int ms)
	{
		pollfd fd = {channel_->fd, POLLIN, 0};
		rdma_cm_event *event;

		if (!ended_ && ::poll(&fd, 1, ms) == 1 &&
		    !rdma_get_cm_event(channel_, &event))
			// We are rejected if the other side closes before its kernel has
			// seen the handshake end.
			ended_ = event->event == RDMA_CM_EVENT_DISCONNECTED ||
				 event->event == RDMA_CM_EVENT_REJECTED;
		return ended_;
	}

private:
	// With a retry count of 7, soft RoCE retries forever if there is no answer: work
	// requests that the other side left behind when it ended have no completion.
	void await_sent()
	{
		ibv_wc wc{};
		bool over = false;

		wc.status = IBV_WC_WR_FLUSH_ERR;
		while (ibv_poll_cq(id_->send_cq, 1, &wc) == 0 && !over)
			over = ends(1);
		status_ = wc.status;
	}

	static constexpr unsigned slot_size = 2048;

	void make_queues(unsigned receives)
	{
		ibv_qp_init_attr wanted{};

		wanted.cap = {.max_send_wr = 16,
			      .max_recv_wr = 16,
			      .max_send_sge = 1,
			      .max_recv_sge = 1,
			      .max_inline_data = 0};
		wanted.qp_type = IBV_QPT_RC;
		need(!rdma_create_qp(id_, nullptr, &wanted), "queues");
		region_ = ibv_reg_mr(id_->pd, memory_, sizeof(memory_),
				     IBV_ACCESS_LOCAL_WRITE);
		need(region_, "memory");
		for (unsigned i = 0; i < receives; i++)
			post_receive(i);
	}

	/// The place of that slot's message, after those to send.
	std::byte *slot_of(unsigned slot) { return memory_ + 4096 + slot * slot_size; }
	bool is(unsigned slot, kind what)
	{
		return *slot_of(slot) == static_cast<std::byte>(what);
	}

	void post_receive(unsigned slot)
	{
		ibv_sge part = {reinterpret_cast<uintptr_t>(slot_of(slot)), slot_size,
				region_->lkey};
		ibv_recv_wr wr{slot, nullptr, &part, 1}, *bad;

		need(!ibv_post_recv(id_->qp, &wr, &bad), "receive");
	}

	void expect(rdma_cm_event_type what)
	{
		rdma_cm_event *event;

		need(!rdma_get_cm_event(channel_, &event), "event");
		need(event->event == what, rdma_event_str(event->event));
		auto &said = event->param.conn;
		if (what == RDMA_CM_EVENT_ESTABLISHED) {
			auto answer = wire::read_answer(
				{static_cast<const std::byte *>(said.private_data),
				 said.private_data_len});
			need(answer.has_value(), "answer");
			answer_ = *answer;
		}
		rdma_ack_cm_event(event);
	}

	std::string_view secret_;
	uint16_t window_;
	rdma_event_channel *channel_ = nullptr;
	rdma_cm_id *id_ = nullptr;
	ibv_mr *region_ = nullptr;
	wire::greeting asked_;
	wire::answer answer_;
	uint32_t sequence_ = 0;
	bool ended_ = false;
	ibv_wc_status status_ = IBV_WC_SUCCESS;
	std::byte memory_[4096 + slots * slot_size]{};
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
		// It frees nothing: _exit() skips the check for leaks.
		::_exit(be(args));
	} catch (const failed &f) {
		std::fprintf(stderr, "hostile peer: %s failed\n", f.where);
		return exit_wrong;
	}
}

} // namespace rdma_tests
