// SPDX-License-Identifier: MIT
#pragma once

#include "sluice/endpoint.hpp"

namespace sluice::detail {

/// End the connection, for this reason if it has not ended yet. All operations on it
/// are then done: the card accesses no memory any more.
void hang_up(endpoint &on, const error &why) noexcept;

/// Say why, before that: ahead of all that waits to be sent, and even if nothing else
/// has room.
operation send_first(endpoint &on, std::span<const std::byte> message) noexcept;

/// Has a message come that nobody has received? To receive it takes no time then.
bool has_message(endpoint &on) noexcept;

} // namespace sluice::detail
