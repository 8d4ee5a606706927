// SPDX-License-Identifier: MIT
// What the tests of RDMA share with their peers, which are processes of their own.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/endpoint.hpp"
#include "sluice/stream.hpp"

namespace rdma_tests {

using namespace std::chrono_literals;

// The two nodes of scripts/guest/nodes.sh: the tests run in a, peers in b.
inline constexpr const char *address_a = "10.77.0.1", *address_b = "10.77.0.2";
inline constexpr const char *card_a = "rxe-a", *card_b = "rxe-b";
inline constexpr const char *node_b = "/var/run/netns/b";
inline constexpr const char *token = "a token that is long and random, for tests";

/// A peer's exit status: 0, or why its connection ended.
inline constexpr int exit_wrong = 99, exit_cause = 100;
inline int exit_status(sluice::errc code)
{
	return exit_cause + static_cast<int>(code);
}

using words = std::vector<std::string>;

/// Bytes that depend on their position and on @p seed.
inline void fill(std::span<std::byte> memory, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (auto &b : memory) {
		x ^= x << 13, x ^= x >> 17, x ^= x << 5;
		b = static_cast<std::byte>(x >> 11);
	}
}

inline bool filled(std::span<const std::byte> memory, uint32_t seed)
{
	std::vector<std::byte> expected(memory.size());

	fill(expected, seed);
	return std::ranges::equal(memory, expected);
}

/// The size of streams of which a thousand fit into a process.
inline constexpr size_t streamed = 12345;
/// What a receiver has of a larger one, in whole chunks: it takes a while to check.
inline constexpr size_t had = 40 << 20;
inline const sluice::stream_options small_stream = {.piece = sluice::page_size,
						    .chunk = sluice::page_size,
						    .pieces = 2,
						    .require = {},
						    .patience = 60s};
inline const sluice::endpoint_options small_endpoint = {.token = token,
							.messages = 8,
							.depth = 8,
							.silence = 60s};
inline constexpr sluice::context::options many_operations = {.operations = 32768};

/// The kernel checks much, or this program does.
bool is_slow();

/// Let this process open as many files as it may.
void raise_limit_of_files();

/// Send @p count messages of all sizes and receive as many, both at once. Returns the
/// mistake, or nothing.
std::string flood(sluice::endpoint &with, unsigned count);

/// Run as a peer.
int be_peer(const words &args);
/// Run as a foreign client, with plain verbs.
int be_hostile(const words &args);
/// Run as a foreign listener, with plain verbs.
int be_hostile_listener(const words &args);
/// Run as one end of a stream that sends what is not due.
int be_hostile_stream(const words &args);

} // namespace rdma_tests
