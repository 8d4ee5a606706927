// SPDX-License-Identifier: MIT
// Messages between endpoints, byte by byte: docs/wire.md. Nothing in here touches a
// device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sluice/endpoint.hpp"
#include "sluice/error.hpp"

namespace sluice::detail::wire {

inline constexpr uint32_t magic = 0x45434c53; // "SLCE"
inline constexpr uint16_t version = 1;

using nonce = std::array<std::byte, 32>;
using mac = std::array<std::byte, 32>;

/// What a client says with its request to connect.
struct greeting {
	static constexpr size_t size = 40;

	uint16_t messages = 0; ///< of the listener, received at once
	nonce number{};
};

/// What the listener answers.
struct answer {
	static constexpr size_t size = 72;

	uint16_t messages = 0; ///< of the client, received at once
	nonce number{};
	mac of_listener{};
};

/// Why a listener refuses a request.
enum class refusal : uint16_t {
	busy = 1,	   ///< too many want to connect; the same may succeed later
	misunderstood = 2, ///< not a greeting, or of another version
	wrong_card = 3,	   ///< it does not listen on this card
};

inline constexpr size_t refusal_size = 8;

std::array<std::byte, greeting::size> encode(const greeting &from) noexcept;
std::array<std::byte, answer::size> encode(const answer &from) noexcept;
std::array<std::byte, refusal_size> encode(refusal why) noexcept;

/// Private data of rdma_cm, which comes padded. None: it is not one of ours.
std::optional<greeting> read_greeting(std::span<const std::byte> data) noexcept;
std::optional<answer> read_answer(std::span<const std::byte> data) noexcept;
std::optional<refusal> read_refusal(std::span<const std::byte> data) noexcept;

enum class side : uint8_t { client, listener };

/// The proof that @p who knows the token: HMAC-SHA256, keyed by the token, over what
/// both said and which side it is. None: libcrypto fails.
std::optional<mac> prove(std::string_view token, side who, const greeting &asked,
			 const answer &answered) noexcept;

/// Takes the same time wherever they differ.
bool same(const mac &a, const mac &b) noexcept;

/// Fill with numbers that cannot be guessed. False: there are none.
bool fill(nonce &number) noexcept;

enum class kind : uint8_t {
	proof = 1,   ///< of the client, its first message
	welcome = 2, ///< of the listener, its first message
	data = 3,
	credit = 4,
	ping = 5,
	pong = 6,
};

/// What each message begins with.
struct header {
	static constexpr size_t size = 16;

	kind what = kind::data;
	uint16_t length = 0;	   ///< of what follows
	uint32_t sequence = 0;	   ///< number of the message, from 0
	uint32_t granted = 0;	   ///< data messages that its sender takes, so far
	uint32_t credits_seen = 0; ///< credit messages that its sender received
};

/// The most bytes that a message has.
inline constexpr size_t most_bytes = header::size + max_message;

void encode(const header &from, std::span<std::byte, header::size> to) noexcept;

/// The header of a message that was received as @p bytes. errc::protocol.
result<header> read_header(std::string_view peer,
			   std::span<const std::byte> bytes) noexcept;

} // namespace sluice::detail::wire
