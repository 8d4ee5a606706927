// SPDX-License-Identifier: MIT
#pragma once

#include "sluice/endpoint.hpp"

namespace sluice::detail {

/// End the connection, for this reason if it has not ended yet. All that is under way
/// on it is done then: the card touches no memory any more.
void hang_up(endpoint &on, const error &why) noexcept;

/// Say why, before: in front of all that waits to be sent, and where nothing else has
/// room.
operation send_first(endpoint &on, std::span<const std::byte> message) noexcept;

} // namespace sluice::detail
