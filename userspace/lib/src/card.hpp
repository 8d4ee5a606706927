// SPDX-License-Identifier: MIT
// The inside of a nic: an opened device, and its three descriptors, which the context's
// ring watches: completions, asynchronous events of the device, and events of rdma_cm.
//
// The device is opened for this card alone, so that no other code in the process takes
// its asynchronous events. rdma_cm opens devices of its own; its identifiers are used
// for addresses and the handshake, and queue pairs are made here (rdma_init_qp_attr(3)
// says how to set them up). All identifiers of a card share one event channel.
//
// Nothing is destroyed while events are handed out: a user that finds something wrong
// notes it, and settle() acts on it at the end. Only users that noted something or ask
// for completions are visited: a wake-up costs no more with a thousand connections.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "engine.hpp"
#include "sluice/nic.hpp"

namespace sluice::detail {

/// Calls a C function on what it owns.
template <auto destroy> struct with {
	template <class T> void operator()(T *p) const noexcept { destroy(p); }
};
template <class T, auto destroy> using owned = std::unique_ptr<T, with<destroy>>;

using context_ptr = owned<ibv_context, ibv_close_device>;
using pd_ptr = owned<ibv_pd, ibv_dealloc_pd>;
using channel_ptr = owned<ibv_comp_channel, ibv_destroy_comp_channel>;
using cm_channel_ptr = owned<rdma_event_channel, rdma_destroy_event_channel>;
using cq_ptr = owned<ibv_cq, ibv_destroy_cq>;
using qp_ptr = owned<ibv_qp, ibv_destroy_qp>;
using mr_ptr = owned<ibv_mr, ibv_dereg_mr>;
using cm_id_ptr = owned<rdma_cm_id, rdma_destroy_id>;

/// An event of rdma_cm, which was acknowledged already.
struct cm_event {
	rdma_cm_event_type what;
	int status;
	rdma_cm_id *id;
	rdma_conn_param parameters;	 ///< without private data
	std::span<const std::byte> data; ///< the private data
};

/// A receiver of a card's events: a connection or a door.
class card_user {
public:
	virtual ~card_user() = default;

	virtual void on_cm(const cm_event &event) noexcept = 0;
	/// Completions have arrived.
	virtual void on_completion() noexcept {}
	/// Nothing is left to do but wait for completions: ask for an event.
	virtual void listen() noexcept {}
	/// The device reports that the queue pair broke.
	virtual void on_broken(ibv_event_type) noexcept {}
	/// The card does not work any more.
	virtual void fail(const error &why) noexcept = 0;
	/// Its port does not work now.
	virtual void on_port_down(const error &why) noexcept { fail(why); }
	/// The only port of the card that it uses; 0: any.
	virtual uint8_t card_port() const noexcept = 0;
	/// Time passes. @return when to call again at the latest
	virtual deadline on_tick(deadline now) noexcept = 0;
	/// Act on what was noted.
	virtual void settle() noexcept = 0;

private:
	friend class card;
	bool to_settle_ = false, to_listen_ = false; ///< in a list of the card
};

class card : public std::enable_shared_from_this<card> {
public:
	explicit card(engine &of) noexcept;
	~card();
	card(const card &) = delete;

	result<void> open(std::string_view name);

	engine &in;
	nic_info info;
	uint64_t most_bytes = 0;	 ///< that one request may move
	bool on_demand_messages = false; ///< for sends and receives as well
	uint16_t read_resources = 0;	 ///< reads of a peer that are served at once
	uint8_t ports = 0;
	context_ptr verbs;
	pd_ptr pd;
	channel_ptr completions;
	cm_channel_ptr cm;

	unsigned queues = 0; ///< completion queues of its users

	/// Have listen() called before the context sleeps.
	void listen_later(card_user &user) noexcept;
	/// Have settle() called when events have been handed out, or before the context
	/// sleeps.
	void settle_later(card_user &user) noexcept;

	void add(card_user &user);
	void remove(card_user &user) noexcept;
	/// Its settle() is called each time.
	void add_door(card_user &user);
	void remove_door(card_user &user) noexcept;

	/// Have on_tick() called by then.
	void tick_by(deadline when) noexcept;
	/// Read what the device reports about itself.
	void take_device_events() noexcept;
	/// Is an identifier of rdma_cm bound to this device?
	bool reaches(const rdma_cm_id &id) const noexcept;

private:
	struct watcher : request {
		card *of = nullptr;
		int fd = -1;
		bool armed = false;
		void (card::*handle)() noexcept = nullptr;
	};
	struct ticker : request {
		card *of = nullptr;
		bool armed = false;
		deadline at = never;
		__kernel_timespec time{};
	};

	result<void> open_device(std::string_view name);
	result<void> open_channels();
	result<void> start(watcher &w, int fd, void (card::*handle)() noexcept);
	void watched(watcher &w, int res, unsigned flags) noexcept;
	void ticked() noexcept;
	void take_completions() noexcept;
	void listen() noexcept;
	void take_cm_events() noexcept;
	bool take_cm_event() noexcept;
	void come_back() noexcept;
	void on_device_event(const ibv_async_event &event) noexcept;
	/// Note for all users that it is over. settle() destroys some later, not in the
	/// middle of a handler.
	void fail_all(std::string_view what) noexcept;
	/// The same for all users that have no other port.
	void port_failed(uint8_t port) noexcept;
	void settle() noexcept;
	bool quiet() const noexcept;

	/// Done at once, but after what else the ring has: more events are there.
	struct reminder : request {
		card *of = nullptr;
		bool armed = false;
	};

	watcher completion_watch_, device_watch_, cm_watch_;
	reminder reminder_;
	ticker ticker_;
	struct listener : chore {
		card *of = nullptr;
	} listener_;
	std::vector<card_user *> users_, doors_;
	std::vector<card_user *> to_settle_, to_listen_; ///< with room for all
	bool closing_ = false;
};

/// Fill in what is known of a device that is open.
result<nic_info> describe(ibv_context *device);

/// Memory that a card can reach.
class registration_data {
public:
	registration_data(std::shared_ptr<card> c, slice what, registration_path by,
			  mr_ptr region) noexcept
		: card_(std::move(c)), memory_(std::move(what)), path_(by),
		  region_(std::move(region))
	{
	}

	/// Does it cover @p part, for @p user?
	bool covers(const slice &part, const card &user) const noexcept;

	const slice &memory() const noexcept { return memory_; }
	registration_path path() const noexcept { return path_; }
	const ibv_mr &region() const noexcept { return *region_; }

private:
	// In this order: the region is destroyed before what it needs.
	std::shared_ptr<card> card_;
	slice memory_;
	registration_path path_;
	mr_ptr region_;
};

/// Register by one path. errc::no_path says why not.
result<std::shared_ptr<registration_data>> register_by(const std::shared_ptr<card> &c,
						       const slice &memory,
						       remote rights,
						       registration_path path);

/// For the rings of messages, which are small: pinned, or else on demand.
result<std::shared_ptr<registration_data>> register_ring(const std::shared_ptr<card> &c,
							 const slice &memory);

} // namespace sluice::detail
