// SPDX-License-Identifier: MIT
// Flow control of messages. Each message consumes a posted receive. Without one, the
// receiving card would answer "not ready", and the sender would retry blindly.
//
// Each side of a connection has a window of N data messages, and tells the other side
// its size before there is a connection. It posts N + reserve receives before that. The
// header of every message (wire.hpp) says
//
//	granted		N + how many receives of data messages were reposted so far
//	credits_seen	how many credit messages were received so far
//
// modulo 2^32. When a side may send what:
//
//	data		while fewer were sent than the other side has granted
//	first message	(proof, welcome) once, before all others
//	credit		if the other side has seen the one before
//	ping		if the pong of the one before has come
//	pong		once for each ping
//
// Messages other than data are consumed as they arrive: their receive is reposted
// before anything is sent that says that they have arrived.
//
// 1. There is a receive for each message. Of the messages that were sent and whose
// receive is not reposted, at most N are data, since a receive is granted after it is
// posted; at most one is the first, one a credit message, one a ping and one a pong,
// since the next of each is sent after something that was sent when its receive was
// reposted. (A pong comes before the next ping of the other side, which comes before
// the next pong.) That is N + 4, and a receive takes whatever message comes.
//
// 2. No side waits for a credit for ever. Let A wait with data to send, and all else
// have arrived. B grants with everything that it sends; it owes a credit message when
// the grants that it did not tell are half of the window (at least 1), which is the
// case at the latest when its program has taken all N. B may not send it only while A
// has not said that it has seen the one before, c. But c carried a credit (else it was
// not due), and A uses it before it waits. What A sent by it says that c was seen, and
// B can send the next. So A does not wait, which contradicts the assumption.
//
// 3. A ping is always answered: by 1 there are receives for it and for its pong, and
// neither needs a credit. So a live side is heard, whatever the programs do with their
// messages.
#pragma once

#include <algorithm>
#include <cstdint>

#include "wire.hpp"

namespace sluice::detail {

class flow {
public:
	/// Receives in addition to those of the window.
	static constexpr unsigned reserve = 4;

	/// @param window of data messages that this side receives
	explicit flow(uint32_t window) noexcept
		: window_(window), posted_(window), said_(window)
	{
	}

	/// The other side's window, when it is known.
	void begin(uint32_t peers) noexcept { peers_ = granted_ = peers; }

	bool may_send_data() const noexcept { return granted_ != sent_data_; }
	bool credit_is_due() const noexcept
	{
		return credits_sent_ == credits_acked_ &&
		       posted_ - said_ >= std::max(window_ / 2, 1u);
	}
	bool may_ping() const noexcept { return !ping_is_out_; }
	bool pong_is_due() const noexcept { return pong_is_due_; }

	/// Account for a message that is sent now. Returns its header.
	wire::header send(wire::kind what, uint16_t length) noexcept;

	/// Account for a message that has come. Returns what is wrong with it, or
	/// nullptr.
	const char *receive(const wire::header &that) noexcept;

	/// The receive of a data message was reposted.
	void reposted() noexcept { posted_++; }

private:
	const char *receive_kind(wire::kind what) noexcept;

	// of this side's receives
	uint32_t window_;
	uint32_t posted_, said_; ///< for data; and that the other side knows of
	uint32_t received_ = 0, received_data_ = 0;
	uint32_t credits_seen_ = 0, credits_told_ = 0;
	bool pong_is_due_ = false;
	// of the other side's
	uint32_t peers_ = 0, granted_ = 0;
	uint32_t sent_ = 0, sent_data_ = 0;
	uint32_t credits_sent_ = 0, credits_acked_ = 0;
	bool ping_is_out_ = false;
};

} // namespace sluice::detail
