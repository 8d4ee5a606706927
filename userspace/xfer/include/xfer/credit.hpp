// SPDX-License-Identifier: MIT
// Flow control of RDMA writes with immediate data.
//
// Each such write consumes one receive at the receiver. Were there none, the
// receiver would answer "not ready" and the sender would retry blindly, or
// fail. So a credit is a posted receive, and a write spends one.
//
//   receiver                              sender
//   posts D receives, says D in hello --> has D credits
//                                         spends 1 credit on each write
//   a write consumes a receive
//   posts a receive for it
//   after B of them: SEND, no data, --->  consumes one of its R receives
//   immediate data = receives posted      posts it again, and only then
//   so far, modulo 2^32                   takes the new credits
//
// The total is cumulative, so a message says everything that those before it
// said; both sides count modulo 2^32 and D is far smaller than that.
//
// Nothing is dropped and no one is ever "not ready":
//
// - Writes. Sender: written <= granted. Receiver: receives posted == granted,
//   and it grants after it posts. So a receive is there for each write.
//
// - Credit messages. A message carries at least B credits that no message
//   before it carried. Credits that the sender has not taken yet were not
//   spent, so all messages that it has not taken carry at most D credits
//   together: there are at most D / B of them. The sender posts R = D / B
//   receives before it says hello and re-posts one before it takes the credits
//   of its message.
//
// - Queues. The sender has at most D writes that are not complete, fewer if
//   its own depth is smaller, and the receiver sends only while its send queue
//   has room; what it may not send now goes with the next message. Completion
//   queues have room for all entries of both queues. None can overflow.
//
// - Deadlock. Suppose that the sender has no credit and waits. All D credits
//   are then with writes under way, receives not yet counted in a message
//   (fewer than B once the send queue has room), or messages under way. Writes
//   and messages under way arrive or break the connection, which both sides
//   see. If none is left, fewer than B <= D credits are missing: the sender
//   has one, which contradicts the assumption. The room in the send queue
//   comes back since completions of sends do not depend on the sender's
//   program, only on its receives, which are there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "xfer/error.hpp"

namespace xfer {

/// How many receives the receiver may offer. Half of the number space would
/// do; no device has queues of this size.
inline constexpr uint32_t max_credits = 1u << 16;

/// How many credits a message returns at least, for @p depth receives: a
/// quarter, so that credits come back while the sender still has some.
constexpr uint32_t credit_batch(uint32_t depth)
{
	return std::max(depth / 4, 1u);
}

/// How many receives the sender needs for credit messages.
constexpr uint32_t credit_receives(uint32_t depth)
{
	return depth / credit_batch(depth);
}

/// The sender's account.
class CreditAccount {
public:
	/// @param depth receives that the receiver posted before it said so
	explicit CreditAccount(uint32_t depth) : depth_(depth), granted_(depth) {}

	uint32_t available() const noexcept { return granted_ - spent_; }

	/// Spend one for a write about to be posted. False if there is none.
	bool spend() noexcept;

	/// Take in a credit message. errc::protocol if it would take credits
	/// back or grant more than the receiver has receives.
	result<void> take(uint32_t granted);

private:
	uint32_t depth_;
	uint32_t granted_;
	uint32_t spent_ = 0;
};

/// The receiver's account.
class CreditReturn {
public:
	/// @param depth receives posted at first
	/// @param room how many messages may be under way at once, not 0
	CreditReturn(uint32_t depth, uint32_t room)
		: batch_(credit_batch(depth)), room_(room), posted_(depth),
		  granted_(depth) {}

	/// A receive was consumed and posted again.
	void reposted() noexcept { posted_++; }

	/// The message to send now, if one is due and there is room for it.
	/// The caller must send it.
	std::optional<uint32_t> message() noexcept;

	/// A message's send completed.
	void sent() noexcept { under_way_--; }

	uint32_t under_way() const noexcept { return under_way_; }

private:
	uint32_t batch_;
	uint32_t room_;
	uint32_t posted_;	///< receives posted so far
	uint32_t granted_;	///< the part of them that was said
	uint32_t under_way_ = 0;
};

} // namespace xfer
