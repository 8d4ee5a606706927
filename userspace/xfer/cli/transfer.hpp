// SPDX-License-Identifier: MIT
// The two ends of a transfer.
//
//	receiver				sender
//	listens on TCP			<--	connects
//	hello: queue pair, window,	-->
//	       credits
//				<--	hello: queue pair, size, chunk, piece
//	ready				-->
//	for each piece:
//				<--	piece index
//				<==	its chunks by RDMA write, immediate data:
//					the number of the chunk modulo 2^32
//	credits (see credit.hpp)	==>
//	verified index			-->	may overwrite the window now
//	at last:
//				<--	finish
//	finished: SHA-256, counters	-->
//				<--	closes
//
// Either end may say "error" instead and close. A closed connection is noticed
// at once since both ends sleep on it together with their completion queue; a
// host that vanished is noticed by TCP's keep-alive, or by RDMA's retries,
// whichever is sooner.
#pragma once

#include <functional>

#include "options.hpp"
#include "report.hpp"
#include "xfer/channel.hpp"
#include "xfer/verbs.hpp"

namespace xfer {

inline constexpr uint64_t protocol_version = 1;

/// Send a file over the connection @p control. Throws Error if it cannot
/// start.
result<Report> send_file(const Options &o, Channel &control);

/// Receive one. Throws Error if it cannot start.
result<void> receive_file(const Options &o, Channel &control);

/// Sleep until work completes or the other end says something; either way not
/// beyond @p until. Completions go to @p completed one by one, as far as it
/// returns success. During a piece the other end has nothing to say but errors:
/// a message, a closed connection and the deadline are errors that name it.
result<void> wait_for_work(CompletionQueue &cq, Channel &control, deadline until,
			   const std::function<result<void>(const ibv_wc &)> &completed);

} // namespace xfer
