// SPDX-License-Identifier: MIT
// From names of hosts to addresses.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "sluice/context.hpp"

namespace sluice::detail {

/// Looks for the addresses of a host, with the port. Numbers need no one's help. A name
/// is looked for in a thread, since the C library waits for answers.
class lookup {
public:
	lookup(context &in, std::string_view host, uint16_t port);

	/// Done when the addresses are there; it waits for nothing else.
	operation &told() noexcept { return told_; }
	/// Then: errc::peer_lost (no such host), errc::system. Before: errc::timeout.
	result<std::vector<sockaddr_storage>> take();

private:
	struct query;

	std::shared_ptr<query> query_;
	operation told_;
};

/// The same, for who waits; nobody waits longer than @p until.
result<std::vector<sockaddr_storage>> resolve(context &in, std::string_view host,
					      uint16_t port, deadline until);

} // namespace sluice::detail
