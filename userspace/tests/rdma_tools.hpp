// SPDX-License-Identifier: MIT
// What the tests of RDMA and their peers, which are processes of their own, share.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/endpoint.hpp"

namespace rdma_tests {

using namespace std::chrono_literals;

// The two nodes of scripts/guest-lib.sh: the tests run in a, peers in b.
inline constexpr const char *address_a = "10.77.0.1";
inline constexpr const char *card_a = "rxe-a", *card_b = "rxe-b";
inline constexpr const char *node_b = "/var/run/netns/b";
inline constexpr const char *token = "a token that is long and random, for tests";

/// What a peer's exit status says: 0, or why its connection ended.
inline constexpr int exit_wrong = 99, exit_cause = 100;
inline int exit_status(sluice::errc code)
{
	return exit_cause + static_cast<int>(code);
}

using words = std::vector<std::string>;

/// Bytes that depend on where they are and on @p seed.
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

/// Send so many messages of all sizes and receive as many, both at once. What is
/// wrong, or nothing.
std::string flood(sluice::endpoint &with, unsigned count);

/// Run as a peer.
int be_peer(const words &args);
/// Run as a peer that is not ours, by bare verbs.
int be_hostile(const words &args);

} // namespace rdma_tests
