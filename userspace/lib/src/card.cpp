// SPDX-License-Identifier: MIT
#include "card.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <format>
#include <utility>

#include "try.hpp"

namespace sluice::detail {

namespace {

// Events of rdma_cm that are handled in one go.
constexpr int most_at_once = 8;

bool never_wait(int fd) noexcept
{
	int flags = ::fcntl(fd, F_GETFL);

	return flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

struct device_list {
	int count = 0;
	owned<ibv_device *, ibv_free_device_list> all{ibv_get_device_list(&count)};

	std::span<ibv_device *> devices() const noexcept
	{
		return {all.get(), static_cast<size_t>(all ? count : 0)};
	}
};

error which_of(std::span<ibv_device *> devices)
{
	std::string names;

	for (ibv_device *d : devices)
		names +=
			std::string(names.empty() ? "" : ", ") + ibv_get_device_name(d);
	return {errc::usage, "RDMA", "there are several devices, name one: " + names};
}

result<ibv_device *> choose(std::span<ibv_device *> devices, std::string_view name)
{
	if (devices.empty())
		return fail(errc::device, name.empty() ? "RDMA" : name,
			    "there is no RDMA device");
	if (name.empty() && devices.size() > 1)
		return std::unexpected(which_of(devices));
	for (ibv_device *d : devices)
		if (name.empty() || name == ibv_get_device_name(d))
			return d;
	return fail(errc::device, name, "there is no RDMA device of this name");
}

} // namespace

card::card(engine &of) noexcept : in(of)
{
	listener_.of = this;
	listener_.run = [](chore &self) noexcept {
		static_cast<listener &>(self).of->listen();
	};
}

// The kernel must not write to the watchers any more when they are destroyed.
card::~card()
{
	closing_ = true;
	in.forget(listener_);
	for (watcher *w : {&completion_watch_, &device_watch_, &cm_watch_})
		if (w->armed)
			in.cancel(*w);
	if (ticker_.armed)
		in.cancel(ticker_);
	if (in.reap_until([this] { return quiet(); }))
		std::terminate(); // the ring is broken
}

bool card::quiet() const noexcept
{
	return !completion_watch_.armed && !device_watch_.armed && !cm_watch_.armed &&
	       !ticker_.armed && !reminder_.armed;
}

result<void> card::open(std::string_view name)
{
	SLUICE_CHECK(open_device(name));
	SLUICE_CHECK(open_channels());
	ticker_.of = this;
	ticker_.complete = [](request &self, int, unsigned) noexcept {
		static_cast<ticker &>(self).of->ticked();
	};
	reminder_.of = this;
	reminder_.complete = [](request &self, int, unsigned) noexcept {
		auto &one = static_cast<reminder &>(self);

		one.armed = false;
		if (one.of->closing_)
			return;
		one.of->take_cm_events();
		one.of->settle();
	};
	SLUICE_CHECK(
		start(completion_watch_, completions->fd, &card::take_completions));
	SLUICE_CHECK(start(device_watch_, verbs->async_fd, &card::take_device_events));
	return start(cm_watch_, cm->fd, &card::take_cm_events);
}

result<void> card::open_device(std::string_view name)
{
	device_list list;
	ibv_device_attr_ex attributes{};
	ibv_port_attr port{};

	SLUICE_TRY(ibv_device * found, choose(list.devices(), name));
	verbs.reset(ibv_open_device(found));
	if (!verbs)
		return fail_errno(ibv_get_device_name(found), "cannot be opened", errno,
				  errc::device);
	SLUICE_TRY(info, describe(verbs.get()));
	if (int err = ibv_query_device_ex(verbs.get(), nullptr, &attributes))
		return fail_errno(info.name, "ibv_query_device", err, errc::device);
	if (!info.active)
		return fail(errc::device, info.name, "no port of it is active");
	uint32_t rc = attributes.odp_caps.per_transport_caps.rc_odp_caps;
	on_demand_messages = info.on_demand && (rc & IBV_ODP_SUPPORT_SEND) &&
			     (rc & IBV_ODP_SUPPORT_RECV);
	read_resources = static_cast<uint16_t>(
		std::clamp(attributes.orig_attr.max_qp_rd_atom, 0, 255));
	ports = attributes.orig_attr.phys_port_cnt;
	most_bytes = uint64_t{1} << 30;
	if (ibv_query_port(verbs.get(), 1, &port) == 0 && port.max_msg_sz)
		most_bytes = port.max_msg_sz;
	pd.reset(ibv_alloc_pd(verbs.get()));
	if (!pd)
		return fail_errno(info.name, "ibv_alloc_pd", errno, errc::device);
	return {};
}

result<void> card::open_channels()
{
	completions.reset(ibv_create_comp_channel(verbs.get()));
	if (!completions)
		return fail_errno(info.name, "ibv_create_comp_channel", errno,
				  errc::device);
	cm.reset(rdma_create_event_channel());
	if (!cm)
		return fail_errno("rdma_cm", "no event channel", errno, errc::device);
	for (int fd : {completions->fd, verbs->async_fd, cm->fd})
		if (!never_wait(fd))
			return fail_errno(info.name, "fcntl");
	return {};
}

result<void> card::start(watcher &w, int fd, void (card::*handle)() noexcept)
{
	w.of = this;
	w.fd = fd;
	w.handle = handle;
	w.complete = [](request &self, int res, unsigned flags) noexcept {
		auto &watch = static_cast<watcher &>(self);

		watch.of->watched(watch, res, flags);
	};
	w.armed = true;
	in.watch(fd, w);
	return {};
}

void card::watched(watcher &w, int res, unsigned flags) noexcept
{
	if (!(flags & IORING_CQE_F_MORE))
		w.armed = false;
	if (closing_)
		return;
	if (res < 0 && !w.armed) {
		fail_all("the ring cannot watch it");
		return settle();
	}
	if (!w.armed) {
		w.armed = true;
		in.watch(w.fd, w);
	}
	(this->*w.handle)();
	settle();
}

void card::add(card_user &user)
{
	to_settle_.reserve(users_.size() + 1);
	to_listen_.reserve(2 * (users_.size() + 1));
	users_.push_back(&user);
}

void card::remove(card_user &user) noexcept
{
	std::erase(users_, &user);
	std::erase(to_settle_, &user);
	std::erase(to_listen_, &user);
}

void card::add_door(card_user &user)
{
	add(user);
	doors_.push_back(&user);
}

void card::remove_door(card_user &user) noexcept
{
	std::erase(doors_, &user);
	remove(user);
}

void card::listen_later(card_user &user) noexcept
{
	if (!std::exchange(user.to_listen_, true))
		to_listen_.push_back(&user);
	in.before_sleep(listener_);
}

void card::settle_later(card_user &user) noexcept
{
	if (!std::exchange(user.to_settle_, true))
		to_settle_.push_back(&user);
	// A failure in a call of the program is not followed by an event.
	in.before_sleep(listener_);
}

void card::tick_by(deadline when) noexcept
{
	if (ticker_.armed && ticker_.at <= when)
		return;
	io_uring_sqe *sqe = in.entry(ticker_);

	if (!sqe)
		return;
	ticker_.at = when;
	ticker_.time = timespec_of(when);
	if (ticker_.armed) {
		// If it expires just now, nothing is updated, and nothing need be.
		io_uring_prep_timeout_update(
			sqe, &ticker_.time,
			reinterpret_cast<uintptr_t>(static_cast<request *>(&ticker_)),
			IORING_TIMEOUT_ABS);
		io_uring_sqe_set_data(sqe, nullptr);
		return;
	}
	io_uring_prep_timeout(sqe, &ticker_.time, 0, IORING_TIMEOUT_ABS);
	io_uring_sqe_set_data(sqe, static_cast<request *>(&ticker_));
	ticker_.armed = true;
}

void card::ticked() noexcept
{
	ticker_.armed = false;
	if (closing_)
		return;
	deadline now = clock::now(), next = never;

	for (card_user *user : users_)
		next = std::min(next, user->on_tick(now));
	settle();
	if (next != never)
		tick_by(next);
}

void card::settle() noexcept
{
	while (!to_settle_.empty()) {
		card_user *user = to_settle_.back();

		to_settle_.pop_back();
		user->to_settle_ = false;
		user->settle();
	}
	// A door may destroy connections, and knows their state by now.
	for (card_user *door : doors_)
		door->settle();
}

void card::fail_all(std::string_view what) noexcept
{
	error why(errc::device, info.name, what);

	for (card_user *user : users_)
		user->fail(why);
}

// It may be up again by now. Then requests are repeated, and nothing is lost.
void card::port_failed(uint8_t port) noexcept
{
	ibv_port_attr now{};

	if (ibv_query_port(verbs.get(), port, &now) == 0 &&
	    now.state == IBV_PORT_ACTIVE)
		return;
	error why(errc::device, info.name, std::format("its port {} went down", port));

	for (card_user *user : users_)
		if (ports == 1 || user->card_port() == port)
			user->on_port_down(why);
}

void card::take_completions() noexcept
{
	ibv_cq *cq;
	void *user;

	// The poll reports the first event only, so read until there is none. A single
	// queue raises no other before it is asked.
	while (ibv_get_cq_event(completions.get(), &cq, &user) == 0) {
		ibv_ack_cq_events(cq, 1);
		static_cast<card_user *>(user)->on_completion();
		if (queues == 1)
			break;
	}
}

void card::listen() noexcept
{
	const auto asked = std::ssize(to_listen_);

	// A user that finds something asks again, for the next time: after these.
	for (ptrdiff_t i = 0; i < asked; i++) {
		to_listen_[i]->to_listen_ = false;
		to_listen_[i]->listen();
	}
	to_listen_.erase(to_listen_.begin(), to_listen_.begin() + asked);
	settle();
}

void card::take_device_events() noexcept
{
	ibv_async_event event;

	while (ibv_get_async_event(verbs.get(), &event) == 0) {
		ibv_ack_async_event(&event);
		on_device_event(event);
	}
}

void card::on_device_event(const ibv_async_event &event) noexcept
{
	switch (event.event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		// Acknowledged, but no other code could have destroyed it meanwhile.
		static_cast<card_user *>(event.element.qp->qp_context)
			->on_broken(event.event_type);
		break;
	case IBV_EVENT_CQ_ERR:
		static_cast<card_user *>(event.element.cq->cq_context)
			->fail({errc::device, info.name,
				"a completion queue overflowed"});
		break;
	case IBV_EVENT_PORT_ERR:
		port_failed(static_cast<uint8_t>(event.element.port_num));
		break;
	case IBV_EVENT_DEVICE_FATAL: fail_all("the device failed"); break;
	default: break;
	}
}

// Strangers may come as fast as they are taken: what else has happened gets its turn. The
// poll does not report again what is there already.
void card::take_cm_events() noexcept
{
	for (int i = 0; i < most_at_once; i++)
		if (!take_cm_event())
			return;
	come_back();
}

void card::come_back() noexcept
{
	// To make room, entry() may take in completions, and so come here again.
	if (std::exchange(reminder_.armed, true))
		return;
	io_uring_sqe *sqe = in.entry(reminder_);
	reminder_.armed = sqe;
	if (!sqe)
		return;
	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data(sqe, static_cast<request *>(&reminder_));
}

bool card::take_cm_event() noexcept
{
	rdma_cm_event *event;
	std::array<std::byte, 256> data;

	if (rdma_get_cm_event(cm.get(), &event))
		return false;
	auto &told = event->param.conn;
	size_t size = told.private_data ? told.private_data_len : 0;

	if (size)
		std::memcpy(data.data(), told.private_data, size);
	auto *owner = event->event == RDMA_CM_EVENT_CONNECT_REQUEST
			      ? event->listen_id->context
			      : event->id->context;
	cm_event copy{
		event->event, event->status, event->id, told, {data.data(), size}};

	copy.parameters.private_data = nullptr;
	// Before the identifier is destroyed, which waits for this.
	rdma_ack_cm_event(event);
	static_cast<card_user *>(owner)->on_cm(copy);
	return true;
}

bool card::reaches(const rdma_cm_id &id) const noexcept
{
	return id.verbs && info.name == ibv_get_device_name(id.verbs->device);
}

} // namespace sluice::detail
