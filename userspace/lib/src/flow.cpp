// SPDX-License-Identifier: MIT
#include "flow.hpp"

namespace sluice::detail {

using wire::kind;

wire::header flow::send(kind what, uint16_t length) noexcept
{
	sent_data_ += what == kind::data;
	credits_sent_ += what == kind::credit;
	if (what == kind::ping)
		ping_is_out_ = true;
	if (what == kind::pong)
		pong_is_due_ = false;
	said_ = posted_;
	credits_told_ = credits_seen_;
	return {.what = what,
		.length = length,
		.sequence = sent_++,
		.granted = said_,
		.credits_seen = credits_told_};
}

const char *flow::receive(const wire::header &that) noexcept
{
	if (that.sequence != received_++)
		return "a message out of order";
	// Credits neither decrease, nor exceed what was sent by more than the window.
	if (that.granted - granted_ > peers_ || that.granted - sent_data_ > peers_)
		return "credits that it cannot have";
	if (that.credits_seen - credits_acked_ > credits_sent_ - credits_acked_)
		return "it says that it has seen what was not sent";
	granted_ = that.granted;
	credits_acked_ = that.credits_seen;
	return receive_kind(that.what);
}

const char *flow::receive_kind(kind what) noexcept
{
	switch (what) {
	case kind::data:
		if (received_data_ == said_)
			return "more messages than it has credits for";
		received_data_++;
		return nullptr;
	case kind::credit:
		if (credits_seen_ != credits_told_)
			return "more credit messages than it may send";
		credits_seen_++;
		return nullptr;
	case kind::ping:
		if (pong_is_due_)
			return "a ping before the answer to the last";
		pong_is_due_ = true;
		return nullptr;
	case kind::pong:
		if (!ping_is_out_)
			return "an answer to no ping";
		ping_is_out_ = false;
		return nullptr;
	case kind::proof:
	case kind::welcome:
		return received_ == 1
			       ? nullptr
			       : "a proof or a welcome that is not the first message";
	}
	return "a message of an unknown type";
}

} // namespace sluice::detail
