// SPDX-License-Identifier: MIT
#include "connection.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <format>
#include <netdb.h>
#include <utility>

#include "try.hpp"

namespace sluice::detail {

namespace {

// What rdma_cm may spend on a step; the caller's deadline is checked separately.
constexpr int step_ms = 2000;

// So many sends may wait for a credit, or twice the window if that is more.
constexpr unsigned least_sends = 64;

// rdma_cm's reasons to reject, from InfiniBand's specification, 12.6.7.2.
constexpr int nobody_listens = 8;
constexpr int by_consumer = 28;

// A listener that answers has this time, or the silence time, to say welcome.
constexpr clock::duration least_welcome = std::chrono::seconds(5);

constexpr std::string_view left_early = "it left before the connection was made";

std::string number_text(const sockaddr &address, uint16_t port)
{
	char host[NI_MAXHOST];
	bool v6 = address.sa_family == AF_INET6;
	socklen_t size = v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);

	if (::getnameinfo(&address, size, host, sizeof(host), nullptr, 0,
			  NI_NUMERICHOST))
		return "peer";
	return v6 ? std::format("[{}]:{}", host, port)
		  : std::format("{}:{}", host, port);
}

// Cards answer "not ready" while they fault in a page: 7 means to retry without end. A
// peer that is silent, or takes nothing, for too long is lost all the same.
constexpr uint8_t retries = 7;

uint8_t clamped(unsigned wanted, unsigned most)
{
	return static_cast<uint8_t>(std::min(wanted, most));
}

unsigned receives_of(const endpoint_options &options)
{
	return options.messages + flow::reserve;
}

unsigned sends_of(const endpoint_options &options)
{
	return std::max(2 * options.messages, least_sends) +
	       connection::sends_in_reserve;
}

} // namespace

std::string text_of(const sockaddr &address)
{
	// The port is at the same place in both.
	auto &v4 = reinterpret_cast<const sockaddr_in &>(address);

	return number_text(address, ntohs(v4.sin_port));
}

result<void> check_options(const endpoint_options &options, const card &by)
{
	if (options.messages < 1 || options.messages > most_messages)
		return sluice::fail(errc::usage, "endpoint",
				    std::format("messages must be between 1 and {}",
						most_messages));
	if (options.depth < 1 || options.depth > most_depth)
		return sluice::fail(
			errc::usage, "endpoint",
			std::format("depth must be between 1 and {}", most_depth));
	if (options.handshakes < 1 || options.handshakes > most_handshakes)
		return sluice::fail(errc::usage, "endpoint",
				    std::format("handshakes must be between 1 and {}",
						most_handshakes));
	if (options.silence < least_silence)
		return sluice::fail(errc::usage, "endpoint",
				    "silence must be 30 ms at least");
	if (options.silence > most_silence)
		return sluice::fail(errc::usage, "endpoint",
				    "silence must be a day at most");
	if (options.token.size() > most_token)
		return sluice::fail(
			errc::usage, "endpoint",
			std::format("the token is longer than {} bytes", most_token));
	auto queue = std::max(sends_of(options) + connection::controls + options.depth,
			      receives_of(options));
	if (queue > by.info.max_sends)
		return sluice::fail(
			errc::usage, by.info.name,
			std::format(
				"messages and depth need queues of {}, and it has {}",
				queue, by.info.max_sends));
	return {};
}

connection::connection(std::shared_ptr<card> c,
		       const endpoint_options &options) noexcept
	: card_(std::move(c)), in_(card_->in), options_(options),
	  receives_(receives_of(options)), sends_(sends_of(options)),
	  flow_(options.messages), waiting_(options.depth),
	  posted_(sends_ + controls + options.depth), wanted_(options.messages),
	  arrived_(options.messages)
{
	card_->add(*this);
	flusher_.of = this;
	flusher_.run = [](chore &self) noexcept {
		static_cast<flusher &>(self).of->flush();
	};
	free_slots_.reserve(sends_);
	for (unsigned i = sends_; i-- > 0;)
		free_slots_.push_back(static_cast<uint16_t>(i));
}

connection::~connection()
{
	if (!cause_)
		cause_.emplace(errc::cancelled, peer_,
			       "this side closed the connection");
	close();
	in_.forget(flusher_);
	if (cq_)
		card_->queues--;
	card_->remove(*this);
}

void connection::fail(const error &why) noexcept
{
	if (!cause_)
		cause_ = why;
	card_->settle_later(*this);
}

void connection::fail(errc code, std::string_view what, int number) noexcept
{
	fail(error(code, peer_, what, number));
}

void connection::note(result<void> step) noexcept
{
	if (!step)
		fail(step.error());
}

result<void> connection::connect(const sockaddr &to, deadline until)
{
	rdma_cm_id *id = nullptr;
	auto *self = static_cast<card_user *>(this);

	active_ = true;
	until_ = until;
	peer_ = text_of(to);
	if (!wire::fill(greeting_.number))
		return sluice::fail(errc::system, "libcrypto", "no random numbers");
	if (rdma_create_id(card_->cm.get(), &id, self, RDMA_PS_TCP))
		return fail_errno("rdma_cm", "no identifier", errno, errc::device);
	id_.reset(id);
	state_ = state::resolving;
	if (rdma_resolve_addr(id, nullptr, const_cast<sockaddr *>(&to), step_ms))
		return fail_errno(peer_, "no RDMA device has a route to it", errno,
				  errc::device);
	return {};
}

result<void> connection::next_step(const cm_event &event)
{
	switch (event.what) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (!card_->reaches(*id_))
			return sluice::fail(
				errc::device, peer_,
				std::format("the route to it is by {}, not by {}",
					    ibv_get_device_name(id_->verbs->device),
					    card_name()));
		if (rdma_resolve_route(id_.get(), step_ms))
			return fail_errno(peer_, "no route", errno, errc::device);
		return {};
	case RDMA_CM_EVENT_ROUTE_RESOLVED: return ask();
	case RDMA_CM_EVENT_CONNECT_RESPONSE: return answered(event);
	default: return {};
	}
}

void connection::on_cm(const cm_event &event) noexcept
{
	if (over())
		return;
	switch (event.what) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE: return note(next_step(event));
	// A peer rejects us if it closes before its kernel has seen the handshake end.
	case RDMA_CM_EVENT_REJECTED: return connected_ ? left() : refused(event);
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR: return not_connected(event);
	case RDMA_CM_EVENT_DISCONNECTED: return left();
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return fail({errc::device, card_name(), "the device was removed"});
	default: return;
	}
}

// The end came by another queue pair than its last messages and than what the card says of
// it: those may be there already, and not looked at yet.
void connection::left() noexcept
{
	if (cq_)
		take_completions();
	card_->take_device_events();
	if (over())
		return;
	if (state_ == state::up)
		return fail(errc::peer_lost, "it closed the connection, or died");
	unanswered_ = active_;
	fail(errc::peer_lost, left_early);
}

// A call about a connection that is being made failed. EINVAL: it has ended, and the event
// that says so is still to come.
std::unexpected<error> connection::not_made(const char *call) noexcept
{
	if (errno != EINVAL)
		return fail_errno(peer_, call, errno, errc::device);
	unanswered_ = active_;
	return sluice::fail(errc::peer_lost, peer_, left_early);
}

void connection::not_connected(const cm_event &event) noexcept
{
	// A missing route is final; an address that does not answer may do so later.
	if (event.status == -ENODEV)
		return fail(errc::device, "no RDMA device has a route to it", ENODEV);
	unanswered_ = true;
	fail(errc::peer_lost, "it does not answer", std::max(-event.status, 0));
}

void connection::refused(const cm_event &event) noexcept
{
	auto why = wire::read_refusal(event.data);

	if (event.status == nobody_listens || event.status == -ECONNREFUSED) {
		unanswered_ = true;
		return fail(errc::peer_lost, "nobody listens there");
	}
	if (event.status != by_consumer || !why) {
		// So does the kernel for a listener that is closed, or dies.
		unanswered_ = event.status == by_consumer &&
			      std::ranges::count(event.data, std::byte{0}) ==
				      std::ssize(event.data);
		return fail(errc::peer_lost,
			    std::format("it rejects the connection, rdma_cm status {}",
					event.status));
	}
	switch (*why) {
	case wire::refusal::busy:
		unanswered_ = true;
		return fail(errc::peer_lost, "it has too many peers at once");
	case wire::refusal::wrong_card:
		return fail(errc::device, "it listens on another card");
	case wire::refusal::misunderstood: break;
	}
	fail(errc::protocol, "it does not speak our version of the protocol");
}

result<void> connection::make_queues()
{
	auto sends = static_cast<uint32_t>(sends_ + controls + options_.depth);
	auto entries = static_cast<int>(sends + receives_);
	auto *self = static_cast<card_user *>(this);

	SLUICE_TRY(ring_, buffer::host((receives_ + sends_ + controls) * slot_size,
				       {.huge_pages = false}));
	SLUICE_TRY(ring_registration_, register_ring(card_, ring_));
	cq_.reset(ibv_create_cq(card_->verbs.get(), entries, self,
				card_->completions.get(), 0));
	if (!cq_)
		return fail_errno(card_name(), "ibv_create_cq", errno, errc::device);
	card_->queues++;
	ibv_qp_init_attr wanted{};
	wanted.qp_context = self;
	wanted.send_cq = wanted.recv_cq = cq_.get();
	wanted.cap = {.max_send_wr = sends,
		      .max_recv_wr = receives_,
		      .max_send_sge = 1,
		      .max_recv_sge = 1,
		      .max_inline_data = 0};
	wanted.qp_type = IBV_QPT_RC;
	wanted.sq_sig_all = 0;
	qp_.reset(ibv_create_qp(card_->pd.get(), &wanted));
	if (!qp_)
		return fail_errno(card_name(), "ibv_create_qp", errno, errc::device);
	SLUICE_CHECK(move_to(IBV_QPS_INIT));
	return post_receives();
}

result<void> connection::post_receives()
{
	listening_ = true;
	if (int err = ibv_req_notify_cq(cq_.get(), 0))
		return fail_errno(card_name(), "ibv_req_notify_cq", err, errc::device);
	for (unsigned i = 0; i < receives_; i++)
		post_receive(static_cast<uint16_t>(i));
	return {};
}

// The peer may reach no memory until it has proved that it may connect: access rights
// are those of registrations, whose domain all connections of the card share.
result<void> connection::move_to(ibv_qp_state to)
{
	ibv_qp_attr attributes{};
	int mask = 0;

	attributes.qp_state = to;
	if (rdma_init_qp_attr(id_.get(), &attributes, &mask))
		return to == IBV_QPS_INIT ? fail_errno(peer_, "rdma_init_qp_attr",
						       errno, errc::device)
					  : not_made("rdma_init_qp_attr");
	attributes.qp_access_flags = 0;
	// rdma_cm has what the peer says; to a listener, which answers, that is adopt()'s.
	if (active_ && to == IBV_QPS_RTR)
		read_resources_ =
			clamped(attributes.max_dest_rd_atomic, card_->read_resources);
	if (active_ && to == IBV_QPS_RTS)
		read_depth_ =
			clamped(attributes.max_rd_atomic, card_->info.max_read_atomic);
	attributes.max_dest_rd_atomic = read_resources_;
	attributes.max_rd_atomic = read_depth_;
	attributes.retry_cnt = attributes.rnr_retry = retries;
	if (int err = ibv_modify_qp(qp_.get(), &attributes, mask))
		return fail_errno(peer_, "ibv_modify_qp", err, errc::device);
	return {};
}

result<void> connection::grant_rights()
{
	ibv_qp_attr attributes{};

	attributes.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	if (int err = ibv_modify_qp(qp_.get(), &attributes, IBV_QP_ACCESS_FLAGS))
		return fail_errno(peer_, "ibv_modify_qp", err, errc::device);
	return {};
}

static rdma_conn_param parameters(std::span<const std::byte> data, uint8_t resources,
				  uint8_t depth, uint32_t queue_pair) noexcept
{
	return {.private_data = data.data(),
		.private_data_len = static_cast<uint8_t>(data.size()),
		.responder_resources = resources,
		.initiator_depth = depth,
		.flow_control = 1,
		.retry_count = retries,
		.rnr_retry_count = retries,
		.srq = 0,
		.qp_num = queue_pair};
}

result<void> connection::ask()
{
	SLUICE_CHECK(make_queues());
	greeting_.messages = static_cast<uint16_t>(options_.messages);
	auto data = wire::encode(greeting_);
	auto depth = std::min(card_->info.max_read_atomic, 255u);
	auto asked = parameters(data, static_cast<uint8_t>(card_->read_resources),
				static_cast<uint8_t>(depth), qp_->qp_num);

	if (rdma_connect(id_.get(), &asked))
		return fail_errno(peer_, "rdma_connect", errno, errc::device);
	state_ = state::asking;
	return {};
}

// The listener proves first that it knows the token; then this side does.
result<void> connection::answered(const cm_event &event)
{
	auto answer = wire::read_answer(event.data);

	if (!answer)
		return sluice::fail(errc::protocol, peer_,
				    "its answer to our request is not valid");
	answer_ = *answer;
	auto of_listener =
		wire::prove(options_.token, wire::side::listener, greeting_, answer_);
	auto ours = wire::prove(options_.token, wire::side::client, greeting_, answer_);
	if (!of_listener || !ours)
		return sluice::fail(errc::system, "libcrypto", "no HMAC-SHA256");
	if (!wire::same(*of_listener, answer_.of_listener))
		return sluice::fail(errc::denied, peer_, "its token is not ours");
	SLUICE_CHECK(move_to(IBV_QPS_RTR));
	SLUICE_CHECK(move_to(IBV_QPS_RTS));
	if (rdma_establish(id_.get()))
		return not_made("rdma_establish");
	connected_ = true;
	flow_.begin(answer_.messages);
	state_ = state::proving;
	until_ = std::min(until_, after(std::max(options_.silence, least_welcome)));
	card_->tick_by(until_);
	std::memcpy(send_slot(sends_) + wire::header::size, ours->data(), ours->size());
	send_control(wire::kind::proof, sizeof(*ours));
	post();
	return {};
}

result<void> connection::adopt(cm_id_ptr id, const rdma_conn_param &asked,
			       const wire::greeting &greeting, deadline until)
{
	id_ = std::move(id);
	id_->context = static_cast<card_user *>(this);
	until_ = until;
	peer_ = text_of(*rdma_get_peer_addr(id_.get()));
	read_resources_ = clamped(asked.responder_resources, card_->read_resources);
	read_depth_ = clamped(asked.initiator_depth, card_->info.max_read_atomic);
	SLUICE_CHECK(make_queues());
	return accept(greeting);
}

result<void> connection::accept(const wire::greeting &greeting)
{
	greeting_ = greeting;
	answer_.messages = static_cast<uint16_t>(options_.messages);
	if (!wire::fill(answer_.number))
		return sluice::fail(errc::system, "libcrypto", "no random numbers");
	auto proof =
		wire::prove(options_.token, wire::side::listener, greeting_, answer_);
	if (!proof)
		return sluice::fail(errc::system, "libcrypto", "no HMAC-SHA256");
	answer_.of_listener = *proof;
	flow_.begin(greeting_.messages);
	SLUICE_CHECK(move_to(IBV_QPS_RTR));
	SLUICE_CHECK(move_to(IBV_QPS_RTS));
	auto data = wire::encode(answer_);
	auto answer = parameters(data, read_resources_, read_depth_, qp_->qp_num);

	// The next message is the proof.
	state_ = state::proving;
	if (rdma_accept(id_.get(), &answer))
		return not_made("rdma_accept");
	connected_ = true;
	card_->tick_by(until_);
	return {};
}

deadline connection::on_tick(deadline now) noexcept
{
	if (over() || state_ == state::idle)
		return never;
	// Do not blame the peer for messages that this process has not looked at.
	if (state_ == state::proving || state_ == state::up)
		take_completions();
	if (state_ != state::up) {
		if (now < until_)
			return until_;
		unanswered_ = active_ && state_ == state::proving;
		fail(errc::timeout, active_ ? "it did not answer in time"
					    : "it did not prove itself in time");
		return never;
	}
	auto period = options_.silence / 6;
	bool late = now - ticked_ > options_.silence / 3;
	// The peer had had the time to answer by the previous look, and this is a later
	// one.
	bool asked = !flow_.may_ping() && ticked_ - pinged_ >= options_.silence;

	ticked_ = now;
	// It was not asked while this process did not look: it gets time to answer.
	if (late && flow_.may_ping())
		heard_ = std::max(heard_, now - options_.silence / 3);
	if (late && !std::exchange(excused_, true))
		progress_ = std::max(progress_, now - options_.silence);
	if (now - heard_ >= options_.silence && (!late || asked))
		fail(errc::peer_lost,
		     std::format("no sign of life for {} ms",
				 std::chrono::duration_cast<std::chrono::milliseconds>(
					 now - heard_)
					 .count()));
	else if (!posted_.empty() && now - progress_ >= 2 * options_.silence)
		fail(errc::peer_lost, "it takes nothing more");
	else if (now - heard_ >= options_.silence / 3 && flow_.may_ping())
		ping(now);
	schedule();
	return now + period;
}

void connection::ping(deadline now) noexcept
{
	pinged_ = now;
	send_control(wire::kind::ping);
}

// After a cause was noted.
void connection::settle() noexcept
{
	if (flushed_ && !over()) {
		card_->take_device_events();
		fail(errc::peer_lost, "the card broke the connection");
	}
	if (over() && state_ != state::ended)
		close();
}

// Without a queue pair the card accesses no memory any more: there is nothing to wait
// for.
void connection::close() noexcept
{
	if (state_ == state::ended)
		return;
	if (cq_)
		take_completions();
	state_ = state::ended;
	to_post_ = 0;
	qp_.reset();
	finish_all(posted_);
	finish_all(waiting_);
	while (!wanted_.empty())
		in_.finish(*wanted_.pop().op, std::unexpected(*cause_));
	if (connected_)
		rdma_disconnect(id_.get());
	connected_ = false;
}

} // namespace sluice::detail
