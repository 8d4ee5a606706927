// SPDX-License-Identifier: MIT
// The messages between the two sides of a bench. The other side is not trusted.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>

#include "sluice/endpoint.hpp"

namespace sluice::cli {

/// All messages have this layout.
struct bench_message {
	enum : uint64_t { ask = 1, memory, compare, started, refused, end };

	uint64_t magic = magic_number;
	uint64_t what = 0;
	uint64_t size = 0, address = 0, key = 0; ///< of memory
	uint64_t count = 0, depth = 0;		 ///< of ib_write_bw

	static constexpr uint64_t magic_number = 0x31484342434c53; // "SLCBCH1"
};
static_assert(std::endian::native == std::endian::little);

/// The most memory, and the most writes, that a peer may ask for.
inline constexpr uint64_t most_asked = uint64_t{1} << 30, most_writes = 10'000'000;

/// No value: a message of another program.
std::optional<bench_message> read_message(std::span<const std::byte> of);

/// Whether the request can be granted.
bool asks_for_memory(const bench_message &m);
bool asks_for_writes(const bench_message &m);

/// The memory that the message offers. No value: less than @p least, or none at all.
std::optional<remote_memory> memory_in(const bench_message &m, uint64_t least);

} // namespace sluice::cli
