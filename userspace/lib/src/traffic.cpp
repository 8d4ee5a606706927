// SPDX-License-Identifier: MIT
#include "connection.hpp"

#include <algorithm>
#include <cstring>
#include <format>

namespace sluice::detail {

using wire::header;
using wire::kind;

// --- what is started --------------------------------------------------------------

operation connection::begin(const char *what, op_state *op) noexcept
{
	op->what = what;
	op->owner = this;
	op->stop = [](op_state &self) noexcept {
		static_cast<connection *>(self.owner)->stop(self);
	};
	return operation(op);
}

operation connection::send(std::span<const std::byte> message) noexcept
{
	return send(message, false);
}

operation connection::send_first(std::span<const std::byte> message) noexcept
{
	return send(message, true);
}

operation connection::send(std::span<const std::byte> message, bool first) noexcept
{
	const size_t reserve = first ? 0 : sends_in_reserve;

	if (in_.chaining())
		return in_.no_part_of_a_chain("send");
	if (message.size() > max_message)
		return in_.failed({errc::usage, peer_,
				   std::format("a message of {} bytes; {} is the most",
					       message.size(), max_message)});
	if (over())
		return in_.failed(*cause_);
	if (free_slots_.size() <= reserve)
		return in_.failed(
			{errc::busy, peer_,
			 std::format("{} messages are under way", sends_ - reserve)});
	op_state *op = in_.take();

	if (!op)
		return in_.refused();
	uint16_t slot = free_slots_.back();

	free_slots_.pop_back();
	std::ranges::copy(message, send_slot(slot) + header::size);
	work w{.op = op,
	       .length = static_cast<uint32_t>(message.size()),
	       .whole = static_cast<uint32_t>(message.size()),
	       .slot = slot,
	       .what = action::send};
	if (first)
		waiting_.push_front_or_grow(std::move(w));
	else
		waiting_.push_or_grow(std::move(w));
	schedule();
	return begin("send", op);
}

operation connection::receive(std::span<std::byte> to) noexcept
{
	if (in_.chaining())
		return in_.no_part_of_a_chain("receive");
	// Messages that have arrived are received, even if the connection has ended
	// since.
	if (arrived_.empty() && over())
		return in_.failed(*cause_);
	op_state *op = in_.take();

	if (!op)
		return in_.refused();
	operation out = begin("receive", op);

	if (arrived_.empty())
		wanted_.push_or_grow({op, to});
	else
		deliver(*op, to, arrived_.pop());
	return out;
}

// What is wrong with a transfer, if anything.
static std::optional<std::string> wrong(const slice &local, bool covered,
					const remote_memory &there, uint64_t offset,
					uint64_t most)
{
	if (!local.valid())
		return "outside of its buffer";
	if (!covered)
		return "the registration does not cover it, or is of another card";
	if (!local.size() || local.size() > most)
		return std::format("{} bytes; 1 to {} can be moved at once",
				   local.size(), most);
	if (offset > there.size || local.size() > there.size - offset ||
	    there.address > UINT64_MAX - there.size)
		return std::format("{} bytes at {} do not fit into the peer's {}",
				   local.size(), offset, there.size);
	return {};
}

operation connection::transfer(bool write, const slice &local, const registration &by,
			       const remote_memory &there, uint64_t offset) noexcept
{
	const char *what = write ? "RDMA write" : "RDMA read";
	bool covered = by && by.inside()->covers(local, *card_);

	if (in_.chaining())
		return in_.no_part_of_a_chain(what);
	if (auto why = wrong(local, covered, there, offset, card_->most_bytes))
		return in_.failed({errc::usage, write ? "write" : "read", *why});
	if (!write && !read_depth_)
		return in_.failed(
			{errc::unsupported, peer_, "its card answers no reads"});
	if (over())
		return in_.failed(*cause_);
	op_state *op = in_.take();

	if (!op)
		return in_.refused();
	op->keep = local;
	waiting_.push_or_grow({.op = op,
			       .memory = by.share(),
			       .local = local.address(),
			       .remote = there.address + offset,
			       .length = static_cast<uint32_t>(local.size()),
			       .remote_key = there.key,
			       .whole = static_cast<uint32_t>(local.size()),
			       .what = write ? action::write : action::read});
	schedule();
	return begin(what, op);
}

static std::unexpected<error> cancelled(const op_state &op)
{
	return fail(errc::cancelled, op.what, "cancelled");
}

// What the card has cannot be taken back: the operation ends with it.
void connection::stop(op_state &op) noexcept
{
	for (size_t i = 0; i < waiting_.size(); i++)
		if (waiting_[i].op == &op) {
			work w = waiting_.extract(i);

			if (w.what == action::send)
				free_slots_.push_back(w.slot);
			if (w.length == w.whole || !end_early(op))
				in_.finish(op, cancelled(op));
			return;
		}
	for (size_t i = 0; i < wanted_.size(); i++)
		if (wanted_[i].op == &op) {
			wanted_.extract(i);
			return in_.finish(op, cancelled(op));
		}
}

// The card gets no more parts of an operation. Does it have one still?
bool connection::end_early(const op_state &op) noexcept
{
	for (size_t i = posted_.size(); i-- > 0;)
		if (posted_[i].op == &op) {
			posted_[i].last = posted_[i].stopped = true;
			return true;
		}
	return false;
}

// --- to the card --------------------------------------------------------------------

void connection::schedule() noexcept
{
	in_.before_wait(flusher_);
}

void connection::flush() noexcept
{
	if (over() || state_ != state::up)
		return;
	while (flush_waiting())
		post();
	flush_controls();
	post();
	settle();
}

// Is there more than one call to the card takes?
bool connection::flush_waiting() noexcept
{
	while (!waiting_.empty() && may_post(waiting_.front())) {
		if (to_post_ == most_posted_at_once)
			return true;
		add(next_to_post());
	}
	return false;
}

// The operation ends with the last part.
connection::work connection::next_to_post() noexcept
{
	work &first = waiting_.front();

	if (first.what == action::send || first.length <= most_of_a_part)
		return waiting_.pop();
	work part = first;
	part.last = false;
	part.length = most_of_a_part;
	first.local += most_of_a_part;
	first.remote += most_of_a_part;
	first.length -= most_of_a_part;
	return part;
}

// The queue has room for all slots and `depth` transfers. If `depth` was reached, no
// more transfers are posted before half of it is free: otherwise a call to the card
// would post only the few for which the last completion made room.
bool connection::may_post(const work &w) const noexcept
{
	return w.what == action::send ? flow_.may_send_data()
				      : !full_ && bytes_posted_ < 2 * most_of_a_part;
}

// After the data, which may carry the same information.
void connection::flush_controls() noexcept
{
	if (flow_.pong_is_due())
		send_control(kind::pong);
	if (flow_.credit_is_due())
		send_control(kind::credit);
}

unsigned connection::control_slot(kind what) const noexcept
{
	switch (what) {
	case kind::credit: return 1;
	case kind::ping: return 2;
	case kind::pong: return 3;
	default: return 0;
	}
}

void connection::send_control(kind what, uint16_t length) noexcept
{
	unsigned control = control_slot(what);

	// The card may still have the one before, although the peer has seen it. Its
	// completion leads here again.
	if (control_used_[control])
		return;
	if (to_post_ == most_posted_at_once)
		post();
	control_used_[control] = true;
	add({.length = length, .slot = static_cast<uint16_t>(sends_ + control)}, what);
}

void connection::add(work w, kind what) noexcept
{
	auto n = to_post_++;

	w.number = next_number_++;
	if (w.what == action::send) {
		auto head = flow_.send(what, static_cast<uint16_t>(w.length));

		wire::encode(head, std::span<std::byte, header::size>(send_slot(w.slot),
								      header::size));
	} else {
		full_ = ++transfers_ == options_.depth;
		bytes_posted_ += w.length;
	}
	if (posted_.empty())
		progress_ = clock::now();
	describe(requests_[n], parts_[n], w);
	if (n)
		requests_[n - 1].next = &requests_[n];
	posted_.push(std::move(w));
}

void connection::describe(ibv_send_wr &wr, ibv_sge &part, const work &w) const noexcept
{
	wr = {};
	wr.wr_id = w.number;
	wr.sg_list = &part;
	wr.num_sge = 1;
	if (w.what == action::send) {
		wr.opcode = IBV_WR_SEND;
		part = {.addr = reinterpret_cast<uintptr_t>(send_slot(w.slot)),
			.length = static_cast<uint32_t>(header::size + w.length),
			.lkey = ring_registration_->region().lkey};
		return;
	}
	wr.opcode = w.what == action::write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
	wr.wr.rdma = {.remote_addr = w.remote, .rkey = w.remote_key};
	part = {.addr = w.local, .length = w.length, .lkey = w.memory->region().lkey};
	// The card gets the next one when a large one is over.
	if (w.length >= most_of_a_part / 4)
		wr.send_flags = IBV_SEND_SIGNALED;
}

void connection::post() noexcept
{
	ibv_send_wr *refused = nullptr;

	if (!to_post_)
		return;
	// Requests end in order, so the last one signals for all, and one in the middle
	// does while the card still has work. One that fails signals on its own.
	requests_[to_post_ - 1].send_flags = IBV_SEND_SIGNALED;
	if (to_post_ >= 8)
		requests_[to_post_ / 2 - 1].send_flags = IBV_SEND_SIGNALED;
	to_post_ = 0;
	if (int err = ibv_post_send(qp_.get(), requests_.data(), &refused))
		fail(errc::device, "our card refuses a request to send", err);
}

void connection::post_receive(uint16_t slot) noexcept
{
	ibv_sge part = {.addr = reinterpret_cast<uintptr_t>(receive_slot(slot)),
			.length = wire::most_bytes,
			.lkey = ring_registration_->region().lkey};
	ibv_recv_wr wr = {.wr_id = receive_mark | slot,
			  .next = nullptr,
			  .sg_list = &part,
			  .num_sge = 1};
	ibv_recv_wr *refused = nullptr;

	if (!qp_ || over())
		return;
	if (int err = ibv_post_recv(qp_.get(), &wr, &refused))
		fail(errc::device, "our card refuses a request to receive", err);
}

// --- from the card ------------------------------------------------------------------

// There is an event for the first completion only, until the next is asked for: listen()
// does so when there is nothing else to do.
void connection::on_completion() noexcept
{
	listening_ = false;
	if (state_ == state::ended)
		return;
	card_->listen_later(*this);
	take_completions();
}

void connection::listen() noexcept
{
	unsigned before = in_.finished();

	if (listening_ || over() || !cq_)
		return;
	take_completions();
	if (in_.finished() != before)
		return card_->listen_later(*this);
	listening_ = true;
	if (int err = ibv_req_notify_cq(cq_.get(), 0))
		return fail(errc::device, "ibv_req_notify_cq", err);
	// Completions from before the request raise no event: look again.
	take_completions();
}

void connection::take_completions() noexcept
{
	ibv_wc some[16];
	int n;

	do {
		std::ranges::fill(some, ibv_wc{});
		n = ibv_poll_cq(cq_.get(), std::size(some), some);
		for (int i = 0; i < n; i++)
			completed(some[i]);
	} while (n == std::ssize(some));
	if (n < 0)
		fail(errc::device, "ibv_poll_cq failed", -n);
	if (!waiting_.empty() || flow_.credit_is_due() || flow_.pong_is_due())
		schedule();
}

void connection::completed(const ibv_wc &wc) noexcept
{
	// The opcode of one that failed is not defined.
	if (wc.wr_id & receive_mark)
		received(wc);
	else
		sent(wc);
}

void connection::sent(const ibv_wc &wc) noexcept
{
	ibv_wc well = wc;

	if (posted_.empty() || wc.wr_id - posted_.front().number >= posted_.size())
		return fail(errc::device,
			    "our card completes a request that it did not have");
	progress_ = clock::now();
	excused_ = false;
	well.status = IBV_WC_SUCCESS;
	while (posted_.front().number != wc.wr_id)
		gone(posted_.pop(), well);
	gone(posted_.pop(), wc);
}

void connection::gone(const work &w, const ibv_wc &how) noexcept
{
	if (w.what != action::send) {
		transfers_--;
		bytes_posted_ -= w.length;
		full_ = full_ && transfers_ > options_.depth / 2;
	} else if (w.slot >= sends_) {
		control_used_[w.slot - sends_] = false;
	} else {
		free_slots_.push_back(w.slot);
	}
	if (how.status != IBV_WC_SUCCESS)
		broken(w, how);
	if (!w.op || !w.last)
		return;
	if (how.status != IBV_WC_SUCCESS)
		in_.finish(*w.op, std::unexpected(*cause_));
	else if (w.stopped)
		in_.finish(*w.op, cancelled(*w.op));
	else
		in_.finish(*w.op, w.whole);
}

// A request failed, and the connection with it. Requests after it are flushed, and end
// with the same cause.
void connection::broken(const work &w, const ibv_wc &wc) noexcept
{
	switch (wc.status) {
	case IBV_WC_WR_FLUSH_ERR:
		card_->take_device_events();
		return fail(errc::peer_lost, "our card broke the connection");
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		// If the listener died before it said welcome, another one may come.
		unanswered_ = active_ && state_ == state::proving;
		return fail(errc::peer_lost, "its card does not answer any more");
	case IBV_WC_REM_ACCESS_ERR:
		return fail(
			errc::denied,
			std::format(
				"we may not {} {} bytes at {:#x}: it took them back, or they are not its",
				w.what == action::read ? "read" : "write", w.length,
				w.remote));
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
		return fail(errc::peer_error,
			    std::format("its card refuses: {}",
					ibv_wc_status_str(wc.status)));
	default:
		return fail(errc::device, std::format("our card {}: {}", card_name(),
						      ibv_wc_status_str(wc.status)));
	}
}

void connection::receive_broken(const ibv_wc &wc) noexcept
{
	switch (wc.status) {
	case IBV_WC_WR_FLUSH_ERR:
		// The reason comes another way: settle().
		flushed_ = true;
		card_->settle_later(*this);
		return;
	case IBV_WC_LOC_LEN_ERR:
	case IBV_WC_LOC_QP_OP_ERR: // what soft RoCE reports
		return fail(errc::protocol,
			    std::format("a message of more than {} bytes",
					wire::most_bytes));
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_LOC_ACCESS_ERR: // by the specification, for immediate data
	case IBV_WC_REM_OP_ERR:
		return fail(errc::protocol,
			    std::format("our card refused what it sent: {}",
					ibv_wc_status_str(wc.status)));
	default:
		return fail(errc::device, std::format("our card {}: {}", card_name(),
						      ibv_wc_status_str(wc.status)));
	}
}

void connection::received(const ibv_wc &wc) noexcept
{
	auto slot = static_cast<uint16_t>(wc.wr_id);

	if (wc.status != IBV_WC_SUCCESS)
		return receive_broken(wc);
	// After a protocol error nothing else counts.
	if (over() && cause_->code() == errc::protocol)
		return;
	heard_ = clock::now();
	if (wc.opcode != IBV_WC_RECV ||
	    (wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)))
		return fail(errc::protocol, "a message with immediate data");
	if (wc.byte_len > wire::most_bytes)
		return fail(errc::protocol, "a message that is too long");
	auto head = wire::read_header(peer_, {receive_slot(slot), wc.byte_len});
	if (!head)
		return fail(head.error());
	if (const char *why = flow_.receive(*head))
		return fail(errc::protocol, why);
	if (state_ == state::proving)
		handle_first(*head, slot);
	else
		handle(*head, slot);
}

void connection::handle(const header &head, uint16_t slot) noexcept
{
	switch (head.what) {
	case kind::data: return arrive({slot, head.length});
	case kind::credit:
	case kind::ping:
	case kind::pong: return post_receive(slot);
	case kind::proof:
	case kind::welcome: return; // flow_ takes none that is not the first message
	}
}

// The client's first message is its proof; the listener's says that it is right.
void connection::handle_first(const header &head, uint16_t slot) noexcept
{
	if (head.what != (active_ ? kind::welcome : kind::proof))
		return fail(errc::protocol,
			    active_ ? "a first message that is no welcome"
				    : "a first message that is no proof");
	if (!active_) {
		auto right = wire::prove(options_.token, wire::side::client, greeting_,
					 answer_);
		wire::mac said;

		std::memcpy(said.data(), receive_slot(slot) + header::size,
			    said.size());
		if (!right || !wire::same(*right, said))
			return fail(errc::denied, "it does not know the token");
	}
	post_receive(slot);
	note(grant_rights());
	if (over())
		return;
	state_ = state::up;
	heard_ = ticked_ = clock::now();
	card_->tick_by(heard_ + options_.silence / 6);
	if (!active_) {
		send_control(kind::welcome);
		post();
	}
	schedule();
}

bool connection::has_message() noexcept
{
	if (!over())
		take_completions();
	return !arrived_.empty();
}

void connection::arrive(arrived_message message) noexcept
{
	if (wanted_.empty())
		return arrived_.push(message);
	auto wanted = wanted_.pop();

	deliver(*wanted.op, wanted.to, message);
}

void connection::deliver(op_state &op, std::span<std::byte> to,
			 arrived_message message) noexcept
{
	std::span<const std::byte> from{receive_slot(message.slot) + header::size,
					message.length};

	if (from.size() > to.size()) {
		// The connection may have ended for another reason.
		const error why(
			errc::protocol, peer_,
			std::format("a message of {} bytes where {} are expected",
				    from.size(), to.size()));
		fail(why);
		in_.finish(op, std::unexpected(why));
		return schedule();
	}
	std::ranges::copy(from, to.begin());
	in_.finish(op, from.size());
	post_receive(message.slot);
	flow_.reposted();
	if (flow_.credit_is_due())
		schedule();
}

void connection::finish_all(fifo<work> &which) noexcept
{
	while (!which.empty()) {
		work w = which.pop();

		if (w.op && w.last)
			in_.finish(*w.op, std::unexpected(*cause_));
	}
}

void connection::on_broken(ibv_event_type what) noexcept
{
	// The card has refused a request of the peer.
	if (what == IBV_EVENT_QP_ACCESS_ERR)
		return fail(errc::denied, "it used memory that it has no right to");
	if (what == IBV_EVENT_QP_REQ_ERR)
		return fail(errc::protocol, "its request to our card is not valid");
	fail(errc::device,
	     std::format("our card {} broke the connection", card_name()));
}

} // namespace sluice::detail
