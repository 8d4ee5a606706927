// SPDX-License-Identifier: MIT
// The inside of an endpoint. setup.cpp brings it up and down, traffic.cpp moves data.
//
// Started work is in one of three queues: `waiting` holds work that has no credit or no
// room in the send queue yet, in the order in which it was started; `posted` holds work
// that the card has, in the order of its completions; `wanted` holds receives without a
// message. Messages without a receive stay in the slot that they arrived in: `arrived`.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "card.hpp"
#include "fifo.hpp"
#include "flow.hpp"
#include "sluice/endpoint.hpp"

namespace sluice::detail {

/// errc::usage if no card, or not this one, can do that.
result<void> check_options(const endpoint_options &options, const card &by);

/// "10.0.0.1:7471", "[fe80::1]:7471"
std::string text_of(const sockaddr &address);

/// Part of the memory for messages: one message.
inline constexpr size_t slot_size = (wire::most_bytes + 63) / 64 * 64;

class connection : public card_user {
public:
	static constexpr unsigned controls = 4; ///< slots: first, credit, ping, pong
	/// Slots for messages that are sent before all others.
	static constexpr unsigned sends_in_reserve = 1;

	enum class state : uint8_t {
		idle,
		resolving, ///< how to get there
		asking,	   ///< the client asked to connect
		proving,   ///< the first messages are in flight
		up,
		ended,
	};

	connection(std::shared_ptr<card> c, const endpoint_options &options) noexcept;
	~connection() override;

	// To bring it up: setup.cpp. Progress is by events.

	/// Begin to connect, to be up by @p until.
	result<void> connect(const sockaddr &to, deadline until);
	/// Accept a request that a listener got. The connection takes over @p id.
	result<void> adopt(cm_id_ptr id, const rdma_conn_param &asked,
			   const wire::greeting &greeting, deadline until);

	state now() const noexcept { return state_; }
	bool over() const noexcept { return cause_.has_value(); }
	/// No listener accepts requests yet, or it has left again; one may come.
	bool unanswered() const noexcept { return unanswered_; }
	const error &cause() const noexcept { return *cause_; }
	const std::string &peer() const noexcept { return peer_; }
	card &user() noexcept { return *card_; }

	// To move data: traffic.cpp.

	operation send(std::span<const std::byte> message) noexcept;
	/// The same, ahead of all that waits, and even if nothing else has room: tells
	/// why this end gives up. One at a time.
	operation send_first(std::span<const std::byte> message) noexcept;
	operation receive(std::span<std::byte> to) noexcept;
	/// Has a message come that nobody has received?
	bool has_message() noexcept;
	/// The same, without asking the card.
	bool has_arrived() const noexcept { return !arrived_.empty(); }
	operation transfer(bool write, const slice &local, const registration &by,
			   const remote_memory &there, uint64_t offset) noexcept;

	void on_cm(const cm_event &event) noexcept override;
	void on_completion() noexcept override;
	void listen() noexcept override;
	void on_broken(ibv_event_type what) noexcept override;
	void fail(const error &why) noexcept override;
	uint8_t card_port() const noexcept override { return id_ ? id_->port_num : 0; }
	deadline on_tick(deadline now) noexcept override;
	void settle() noexcept override;

private:
	enum class action : uint8_t { send, write, read };
	static constexpr unsigned most_posted_at_once = 128;
	/// A sign of life queues after the work that the card has. So the card gets
	/// large transfers in parts, and no more of them while it has twice as much.
	static constexpr uint32_t most_of_a_part = 16 << 20;
	static constexpr uint64_t receive_mark = uint64_t{1} << 63;

	/// Something that the card does or will do.
	struct work {
		op_state *op = nullptr; ///< none: a message of our own
		bool last = true;	///< the operation ends with it
		bool stopped = false;	///< the operation was cancelled
		std::shared_ptr<registration_data> memory;
		uint64_t local = 0, remote = 0;
		uint32_t length = 0, remote_key = 0;
		uint32_t whole = 0; ///< length, before the card got a part
		uint16_t slot = 0;
		action what = action::send;
		uint64_t number = 0;
	};
	struct wanted_message {
		op_state *op = nullptr;
		std::span<std::byte> to;
	};
	struct arrived_message {
		uint16_t slot = 0, length = 0;
	};

	// setup.cpp
	result<void> make_queues();
	result<void> post_receives();
	result<void> move_to(ibv_qp_state to);
	result<void> grant_rights();
	result<void> ask();
	result<void> answered(const cm_event &event);
	result<void> accept(const wire::greeting &greeting);
	result<void> next_step(const cm_event &event);
	void refused(const cm_event &event) noexcept;
	void left() noexcept;
	std::unexpected<error> not_made(const char *call) noexcept;
	void not_connected(const cm_event &event) noexcept;
	void fail(errc code, std::string_view what, int number = 0) noexcept;
	void note(result<void> step) noexcept;
	void close() noexcept;
	std::string_view card_name() const noexcept { return card_->info.name; }

	// traffic.cpp
	operation begin(const char *what, op_state *op) noexcept;
	operation send(std::span<const std::byte> message, bool first) noexcept;
	void schedule() noexcept;
	void flush() noexcept;
	bool flush_waiting() noexcept;
	void flush_controls() noexcept;
	void send_control(wire::kind what, uint16_t length = 0) noexcept;
	void ping(deadline now) noexcept;
	bool may_post(const work &w) const noexcept;
	work next_to_post() noexcept;
	void add(work w, wire::kind what = wire::kind::data) noexcept;
	void describe(ibv_send_wr &wr, ibv_sge &part, const work &w) const noexcept;
	void post() noexcept;
	void gone(const work &w, const ibv_wc &how) noexcept;
	void finish_all(fifo<work> &which) noexcept;
	bool end_early(const op_state &op) noexcept;
	void stop(op_state &op) noexcept;
	void take_completions() noexcept;
	void completed(const ibv_wc &wc) noexcept;
	void sent(const ibv_wc &wc) noexcept;
	void received(const ibv_wc &wc) noexcept;
	void broken(const work &w, const ibv_wc &wc) noexcept;
	void receive_broken(const ibv_wc &wc) noexcept;
	void handle(const wire::header &header, uint16_t slot) noexcept;
	void handle_first(const wire::header &header, uint16_t slot) noexcept;
	void arrive(arrived_message message) noexcept;
	void deliver(op_state &op, std::span<std::byte> to,
		     arrived_message message) noexcept;
	void post_receive(uint16_t slot) noexcept;

	std::byte *receive_slot(size_t i) const noexcept
	{
		return ring_.data() + i * slot_size;
	}
	std::byte *send_slot(size_t i) const noexcept
	{
		return receive_slot(receives_ + i);
	}
	unsigned control_slot(wire::kind what) const noexcept;

	std::shared_ptr<card> card_;
	engine &in_;
	endpoint_options options_;
	unsigned receives_, sends_; ///< slots, without those for controls
	std::string peer_ = "peer";

	// In this order: the queues are destroyed before the memory that they use.
	buffer ring_;
	std::shared_ptr<registration_data> ring_registration_;
	cm_id_ptr id_;
	cq_ptr cq_;
	qp_ptr qp_;

	state state_ = state::idle;
	bool active_ = false, connected_ = false, unanswered_ = false;
	bool listening_ = false; ///< the next completion raises an event
	bool flushed_ = false;	 ///< the card flushed requests without a reason
	uint8_t read_depth_ = 0, read_resources_ = 0;
	std::optional<error> cause_;
	wire::greeting greeting_;
	wire::answer answer_;
	deadline until_ = never;
	deadline heard_{}, ticked_{}, pinged_{};
	deadline progress_{};  ///< of what is posted
	bool excused_ = false; ///< since then, as this process did not look

	flow flow_;
	std::vector<uint16_t> free_slots_; ///< for sends
	std::array<bool, controls> control_used_{};
	fifo<work> waiting_, posted_;
	fifo<wanted_message> wanted_;
	fifo<arrived_message> arrived_;
	unsigned transfers_ = 0;    ///< writes and reads that are posted
	uint64_t bytes_posted_ = 0; ///< of them
	bool full_ = false;	    ///< `depth` was reached, and more than half remain
	uint64_t next_number_ = 0;

	std::array<ibv_send_wr, most_posted_at_once> requests_;
	std::array<ibv_sge, most_posted_at_once> parts_;
	unsigned to_post_ = 0;

	struct flusher : chore {
		connection *of = nullptr;
	} flusher_;
};

} // namespace sluice::detail
