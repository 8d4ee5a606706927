// SPDX-License-Identifier: MIT
#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <format>

#include "connection.hpp"
#include "one_context.hpp"
#include "resolve.hpp"
#include "try.hpp"

namespace sluice {

namespace detail {

namespace {

// Peers that wait to be accepted. If they are still there, more are told to retry.
constexpr size_t most_ready = 128;

// A peer that does not prove itself keeps its place for this long.
constexpr clock::duration longest_handshake = std::chrono::seconds(5);

/// Has it proved itself, and can it be used, if only to receive what it said?
bool can_be_taken(const connection &one)
{
	return one.over() ? one.has_arrived() : one.now() == connection::state::up;
}

bool has_left(const std::unique_ptr<connection> &one)
{
	return one->over();
}

/// Was it passed on, or is nothing left of it?
bool gone(const std::unique_ptr<connection> &one)
{
	return !one || (one->over() && !one->has_arrived());
}

cm_id_ptr new_id(card &c, card_user &user)
{
	rdma_cm_id *id = nullptr;

	if (rdma_create_id(c.cm.get(), &id, &user, RDMA_PS_TCP))
		return nullptr;
	return cm_id_ptr(id);
}

sockaddr_storage any_address(sa_family_t family, uint16_t port)
{
	sockaddr_storage any{};

	any.ss_family = family;
	// The port is at the same place in both.
	reinterpret_cast<sockaddr_in &>(any).sin_port = htons(port);
	return any;
}

} // namespace

/// The inside of a listener. Several peers may shake hands at once, and each has its
/// own deadline, so that none holds up the others.
class door : public card_user {
public:
	door(std::shared_ptr<card> c, const endpoint_options &options)
		: card_(std::move(c)), options_(options), waiting_(card_->in.capacity())
	{
		card_->add_door(*this);
	}
	~door() override;

	result<void> open(context &in, std::string_view host, uint16_t port);
	uint16_t port() const noexcept { return ntohs(rdma_get_src_port(id_.get())); }
	operation arrival() noexcept;
	std::unique_ptr<connection> take() noexcept;
	result<void> working() const;
	std::unexpected<error> nobody_came() const;
	engine &in() noexcept { return card_->in; }

	void on_cm(const cm_event &event) noexcept override;
	void fail(const error &why) noexcept override;
	/// It listens again when the port is back.
	void on_port_down(const error &) noexcept override {}
	uint8_t card_port() const noexcept override { return id_ ? id_->port_num : 0; }
	deadline on_tick(deadline) noexcept override { return never; }
	void settle() noexcept override;

private:
	result<void> bind(const sockaddr_storage &to);
	void refuse(rdma_cm_id &id, wire::refusal why) noexcept;
	bool make_room() noexcept;
	void is_ready(std::unique_ptr<connection> one) noexcept;
	void stop(op_state &op) noexcept;

	std::shared_ptr<card> card_;
	endpoint_options options_;
	cm_id_ptr id_;
	std::vector<std::unique_ptr<connection>> arriving_, ready_;
	fifo<op_state *> waiting_;
	std::optional<error> cause_;
	std::optional<error> not_taken_; ///< why the last one was rejected here
};

door::~door()
{
	if (!cause_)
		cause_.emplace(errc::cancelled, "listener", "closed");
	while (!waiting_.empty())
		card_->in.finish(*waiting_.pop(), std::unexpected(*cause_));
	card_->remove_door(*this);
}

result<void> door::bind(const sockaddr_storage &to)
{
	auto *address = const_cast<sockaddr *>(reinterpret_cast<const sockaddr *>(&to));

	id_ = new_id(*card_, *this);
	if (!id_)
		return fail_errno("rdma_cm", "no identifier", errno, errc::device);
	if (rdma_bind_addr(id_.get(), address))
		return fail_errno(text_of(*address), "cannot be bound", errno,
				  errc::device);
	if (id_->verbs && !card_->reaches(*id_))
		return sluice::fail(errc::device, text_of(*address),
				    "it is an address of another card");
	if (rdma_listen(id_.get(), most_handshakes))
		return fail_errno(text_of(*address), "cannot listen", errno,
				  errc::device);
	return {};
}

result<void> door::open(context &in, std::string_view host, uint16_t port)
{
	if (host.empty()) {
		// It accepts IPv4 as well, if there is IPv6 at all.
		if (bind(any_address(AF_INET6, port)))
			return {};
		return bind(any_address(AF_INET, port));
	}
	SLUICE_TRY(auto addresses, resolve(in, host, port, after(longest_handshake)));
	return bind(addresses.front());
}

// There is no endpoint yet: only the peer knows.
void door::refuse(rdma_cm_id &id, wire::refusal why) noexcept
{
	auto data = wire::encode(why);

	rdma_reject(&id, data.data(), data.size());
}

// Anybody gets a place in the handshake, which takes no time if both sides are honest: a
// stranger makes room for others, and never takes the place of a peer that proved itself.
bool door::make_room() noexcept
{
	if (ready_.size() >= most_ready && std::ranges::none_of(ready_, has_left))
		return false;
	if (arriving_.size() < options_.handshakes)
		return true;
	auto stranger = std::ranges::find_if(arriving_, [](auto &one) {
		one->has_message(); // its proof may be there
		return !can_be_taken(*one);
	});
	if (stranger == arriving_.end())
		return false;
	arriving_.erase(stranger);
	return true;
}

// A peer that has left makes room for one that has proved itself, too.
void door::is_ready(std::unique_ptr<connection> one) noexcept
{
	auto left = std::ranges::find_if(ready_, has_left);

	if (ready_.size() >= most_ready && left != ready_.end())
		ready_.erase(left);
	ready_.push_back(std::move(one));
}

void door::on_cm(const cm_event &event) noexcept
{
	if (event.what == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return fail({errc::device, card_->info.name, "the device was removed"});
	if (event.what != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	cm_id_ptr id(event.id);
	auto greeting = wire::read_greeting(event.data);

	id->context = static_cast<card_user *>(this);
	if (!card_->reaches(*id))
		return refuse(*id, wire::refusal::wrong_card);
	if (!greeting)
		return refuse(*id, wire::refusal::misunderstood);
	if (!make_room())
		return refuse(*id, wire::refusal::busy);
	auto made = std::make_unique<connection>(card_, options_);
	auto limit = std::min(options_.silence, longest_handshake);

	// If that fails, destroying the connection rejects the peer.
	if (auto done = made->adopt(std::move(id), event.parameters, *greeting,
				    after(limit)))
		arriving_.push_back(std::move(made));
	else
		not_taken_ = std::move(done.error());
}

void door::fail(const error &why) noexcept
{
	if (!cause_)
		cause_ = why;
}

// Sort out which peers have arrived, and which have died before they said anything.
void door::settle() noexcept
{
	size_t come = 0;

	for (auto &one : arriving_)
		if (can_be_taken(*one)) {
			is_ready(std::move(one));
			come++;
		}
	std::erase_if(arriving_, gone);
	std::erase_if(ready_, gone);
	// One for each peer. Operations wait only if no peer was ready.
	for (; !waiting_.empty() && (cause_ || come); come--)
		card_->in.finish(*waiting_.pop(),
				 cause_ ? std::unexpected(*cause_) : result<size_t>(0));
}

void door::stop(op_state &op) noexcept
{
	for (size_t i = 0; i < waiting_.size(); i++)
		if (waiting_[i] == &op) {
			waiting_.extract(i);
			return card_->in.finish(
				op,
				sluice::fail(errc::cancelled, "listener", "cancelled"));
		}
}

operation door::arrival() noexcept
{
	if (card_->in.chaining())
		return card_->in.no_part_of_a_chain("accept");
	if (cause_)
		return card_->in.failed(*cause_);
	std::erase_if(ready_, gone);
	if (!ready_.empty())
		return card_->in.done(0);
	op_state *op = card_->in.take();

	if (!op)
		return card_->in.refused();
	op->what = "accept";
	op->owner = this;
	op->stop = [](op_state &self) noexcept {
		static_cast<door *>(self.owner)->stop(self);
	};
	waiting_.push(op);
	return operation(op);
}

std::unique_ptr<connection> door::take() noexcept
{
	std::erase_if(ready_, gone);
	if (ready_.empty())
		return nullptr;
	auto first = std::move(ready_.front());

	not_taken_.reset();
	ready_.erase(ready_.begin());
	return first;
}

std::unexpected<error> door::nobody_came() const
{
	if (!not_taken_)
		return sluice::fail(errc::timeout, "listener", "no peer came in time");
	return sluice::fail(errc::timeout, "listener",
			    std::format("no peer came in time but one that failed: {}",
					not_taken_->message()),
			    not_taken_->number());
}

result<void> door::working() const
{
	if (cause_)
		return std::unexpected(*cause_);
	return {};
}

} // namespace detail

listener::listener(std::unique_ptr<detail::door> d) noexcept : door_(std::move(d)) {}
listener::listener(listener &&) noexcept = default;
listener &listener::operator=(listener &&) noexcept = default;
listener::~listener() = default;

result<listener> listener::open(context &in, nic &card, std::string_view host,
				uint16_t port, const endpoint_options &options)
{
	SLUICE_CHECK(
		detail::check_context(card.info().name, card.inside().in, in.inside()));
	SLUICE_CHECK(detail::check_options(options, card.inside()));
	SLUICE_CHECK(in.inside().may_wait("listener"));
	auto made = std::make_unique<detail::door>(card.inside().shared_from_this(),
						   options);

	SLUICE_CHECK(made->open(in, host, port));
	return listener(std::move(made));
}

uint16_t listener::port() const noexcept
{
	return door_->port();
}

result<endpoint> listener::accept(deadline until)
{
	for (;;) {
		if (auto first = door_->take())
			return endpoint(std::move(first));
		SLUICE_CHECK(door_->working());
		int err = door_->in().reap(until);

		if (err < 0 && err != -ETIME)
			return detail::ring_failed("listener", -err);
		if (err == -ETIME && clock::now() >= until)
			return door_->nobody_came();
	}
}

operation listener::arrival()
{
	return door_->arrival();
}

result<endpoint> listener::take()
{
	if (auto first = door_->take())
		return endpoint(std::move(first));
	return fail(errc::usage, "listener", "nobody is there: wait for arrival()");
}

} // namespace sluice
