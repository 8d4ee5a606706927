// SPDX-License-Identifier: MIT
// What peers have in common that speak the protocol with plain verbs, and break it. They
// free nothing: they end by _exit(), which skips the check for leaks.
#pragma once

#include "rdma_tools.hpp"

#include <poll.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "wire.hpp"

namespace rdma_tests {

struct failed {
	const char *where;
};

inline void need(bool ok, const char *where)
{
	if (!ok)
		throw failed{where};
}

class raw_peer {
public:
	static constexpr unsigned slots = 8;

	void send(sluice::detail::wire::kind what, uint16_t length,
		  ibv_wr_opcode by = IBV_WR_SEND)
	{
		using namespace sluice::detail;

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

	/// How the last request ended.
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

protected:
	/// @param window the most messages that it takes
	explicit raw_peer(uint16_t window)
		: window_(window), channel_(rdma_create_event_channel())
	{
		need(channel_, "channel");
	}

	/// @param receives what it posts
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
	bool is(unsigned slot, sluice::detail::wire::kind what)
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

	/// Wait for the first message, which must be this.
	void await(sluice::detail::wire::kind what, const char *name)
	{
		ibv_wc wc{};

		while (ibv_poll_cq(id_->recv_cq, 1, &wc) == 0)
			::usleep(1000);
		need(wc.status == IBV_WC_SUCCESS &&
			     is(static_cast<unsigned>(wc.wr_id), what),
		     name);
	}

	/// The next event, which must be this. To be acknowledged.
	rdma_cm_event *next(rdma_cm_event_type what)
	{
		rdma_cm_event *event;

		need(!rdma_get_cm_event(channel_, &event), "event");
		need(event->event == what, rdma_event_str(event->event));
		return event;
	}

	/// What follows the header of a message to send.
	std::byte *text() { return memory_ + sluice::detail::wire::header::size; }

	uint16_t window_;
	rdma_event_channel *channel_;
	rdma_cm_id *id_ = nullptr;

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

	ibv_mr *region_ = nullptr;
	uint32_t sequence_ = 0;
	bool ended_ = false;
	ibv_wc_status status_ = IBV_WC_SUCCESS;
	std::byte memory_[4096 + slots * slot_size]{};
};

} // namespace rdma_tests
