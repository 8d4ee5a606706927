// SPDX-License-Identifier: MIT
// Messages of one form, with a number that says whose they are.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

namespace sluice::cli {

/// None: it has another size, or is another program's.
template <class T> std::optional<T> packet_in(std::span<const std::byte> of)
{
	T packet;

	if (of.size() != sizeof(packet))
		return std::nullopt;
	std::memcpy(&packet, of.data(), sizeof(packet));
	if (packet.magic != T::magic_number)
		return std::nullopt;
	return packet;
}

} // namespace sluice::cli
