// SPDX-License-Identifier: MIT
// From names of hosts to addresses.
#pragma once

#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "sluice/context.hpp"

namespace sluice::detail {

/// Addresses of a host, with the port; numbers need no one's help. A name is looked
/// for in a thread, since the C library waits for answers, and nobody waits longer
/// than @p until. errc::peer_lost (no such host), errc::timeout.
result<std::vector<sockaddr_storage>> resolve(context &in, std::string_view host,
					      uint16_t port, deadline until);

/// The same of a number. None: it is no number.
std::vector<sockaddr_storage> numeric(std::string_view host, uint16_t port);

} // namespace sluice::detail
