// SPDX-License-Identifier: MIT
// From names of hosts to addresses.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "sluice/context.hpp"

namespace sluice::detail {

/// Looks up the addresses of a host, with the port. Numeric ones need no lookup. A name
/// is looked up in a thread, since the C library waits for answers.
class lookup {
public:
	lookup(context &in, std::string_view host, uint16_t port);

	/// Done when the addresses are there; it waits for nothing else.
	operation &told() noexcept { return told_; }
	/// After that: errc::peer_lost (no such host), errc::system. Before:
	/// errc::timeout.
	result<std::vector<sockaddr_storage>> take();

private:
	struct query;

	std::shared_ptr<query> query_;
	operation told_;
};

/// The same with a wait, until @p until at most.
result<std::vector<sockaddr_storage>> resolve(context &in, std::string_view host,
					      uint16_t port, deadline until);

} // namespace sluice::detail
