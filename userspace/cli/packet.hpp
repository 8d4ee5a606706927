// SPDX-License-Identifier: MIT
// Messages of one layout, with a number that identifies the program.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

namespace sluice::cli {

/// No value: another size, or a message of another program.
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
