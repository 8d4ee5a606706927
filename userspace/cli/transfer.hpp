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

#include "options.hpp"
#include "report.hpp"
#include "sluice/channel.hpp"

namespace sluice {

inline constexpr uint64_t protocol_version = 1;

/// Send a file over the connection @p control. Throws Error if it cannot
/// start.
result<Report> send_file(const Options &o, Channel &control);

/// Receive one. Throws Error if it cannot start.
result<void> receive_file(const Options &o, Channel &control);

} // namespace sluice
