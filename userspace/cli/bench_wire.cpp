// SPDX-License-Identifier: MIT
#include "bench_wire.hpp"

#include "packet.hpp"

namespace sluice::cli {

std::optional<bench_message> read_message(std::span<const std::byte> of)
{
	return packet_in<bench_message>(of);
}

bool asks_for_memory(const bench_message &m)
{
	return m.what == bench_message::ask && m.size && m.size <= most_asked;
}

bool asks_for_writes(const bench_message &m)
{
	return m.what == bench_message::compare && m.size && m.size <= most_asked &&
	       m.count >= 5 && m.count <= most_writes && m.depth &&
	       m.depth <= most_depth;
}

std::optional<remote_memory> memory_in(const bench_message &m, uint64_t least)
{
	if (m.what != bench_message::memory || m.size < least ||
	    m.address + m.size <= m.address || m.key > UINT32_MAX)
		return std::nullopt;
	return remote_memory{m.address, m.size, static_cast<uint32_t>(m.key)};
}

} // namespace sluice::cli
