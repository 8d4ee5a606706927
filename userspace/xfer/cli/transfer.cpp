// SPDX-License-Identifier: MIT
#include "transfer.hpp"

#include <array>

namespace xfer {

result<void> wait_for_work(CompletionQueue &cq, Channel &control, deadline until,
			   const std::function<result<void>(const ibv_wc &)> &completed)
{
	std::array<ibv_wc, 32> done;
	auto n = cq.next(done, control.fd(), until);

	if (!n)
		return fail(n.error().code(), control.peer() + ": " +
			    n.error().what());
	if (*n == 0) {
		auto message = control.receive(until);
		return message ? fail(errc::protocol, control.peer() +
				      ": said \"" + message->verb() +
				      "\" in the middle of a piece")
			       : result<void>(std::unexpected(message.error()));
	}
	for (const auto &wc : std::span(done).first(*n))
		if (auto handled = completed(wc); !handled)
			return handled;
	return {};
}

} // namespace xfer
