// SPDX-License-Identifier: MIT
#include "wire.hpp"

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstring>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace sluice::detail::wire {

namespace {

// Numbers are little endian.
template <std::unsigned_integral T> T ordered(T value) noexcept
{
	return std::endian::native == std::endian::little ? value
							  : std::byteswap(value);
}

template <std::unsigned_integral T> void put(std::byte *to, T value) noexcept
{
	value = ordered(value);
	std::memcpy(to, &value, sizeof(value));
}

template <std::unsigned_integral T> T get(const std::byte *from) noexcept
{
	T value;

	std::memcpy(&value, from, sizeof(value));
	return ordered(value);
}

// All private data begin with it: the magic, the version, and one number.
constexpr size_t preamble = 8;

void put_preamble(std::byte *to, uint16_t number) noexcept
{
	put(to, magic);
	put(to + 4, version);
	put(to + 6, number);
}

bool ours(std::span<const std::byte> data, size_t size) noexcept
{
	return data.size() >= size && get<uint32_t>(data.data()) == magic &&
	       get<uint16_t>(data.data() + 4) == version;
}

// The window that a side offers; 0: not a valid one.
uint16_t window(std::span<const std::byte> data) noexcept
{
	auto n = get<uint16_t>(data.data() + 6);

	return n <= most_messages ? n : 0;
}

void copy_in(std::byte *to, std::span<const std::byte> from) noexcept
{
	std::ranges::copy(from, to);
}

template <size_t N>
void copy_out(std::array<std::byte, N> &to, const std::byte *from) noexcept
{
	std::copy_n(from, N, to.begin());
}

const char *wrong_length(kind what, size_t length) noexcept
{
	switch (what) {
	case kind::proof:
		return length == sizeof(mac) ? nullptr : "a proof of a wrong length";
	case kind::data:
		return length <= max_message ? nullptr : "a message that is too long";
	case kind::welcome:
	case kind::credit:
	case kind::ping:
	case kind::pong: return length == 0 ? nullptr : "a control message with data";
	}
	return "a message of an unknown type";
}

} // namespace

std::array<std::byte, greeting::size> encode(const greeting &from) noexcept
{
	std::array<std::byte, greeting::size> to{};

	put_preamble(to.data(), from.messages);
	copy_in(to.data() + preamble, from.number);
	return to;
}

std::array<std::byte, answer::size> encode(const answer &from) noexcept
{
	std::array<std::byte, answer::size> to{};

	put_preamble(to.data(), from.messages);
	copy_in(to.data() + preamble, from.number);
	copy_in(to.data() + preamble + sizeof(nonce), from.of_listener);
	return to;
}

std::array<std::byte, refusal_size> encode(refusal why) noexcept
{
	std::array<std::byte, refusal_size> to{};

	put_preamble(to.data(), static_cast<uint16_t>(why));
	return to;
}

std::optional<greeting> read_greeting(std::span<const std::byte> data) noexcept
{
	greeting to;

	if (!ours(data, greeting::size) || !window(data))
		return {};
	to.messages = window(data);
	copy_out(to.number, data.data() + preamble);
	return to;
}

std::optional<answer> read_answer(std::span<const std::byte> data) noexcept
{
	answer to;

	if (!ours(data, answer::size) || !window(data))
		return {};
	to.messages = window(data);
	copy_out(to.number, data.data() + preamble);
	copy_out(to.of_listener, data.data() + preamble + sizeof(nonce));
	return to;
}

std::optional<refusal> read_refusal(std::span<const std::byte> data) noexcept
{
	// Any version will do: a different version may be the reason.
	if (data.size() < refusal_size || get<uint32_t>(data.data()) != magic)
		return {};
	return static_cast<refusal>(get<uint16_t>(data.data() + 6));
}

std::optional<mac> prove(std::string_view token, side who, const greeting &asked,
			 const answer &answered) noexcept
{
	// All that was said except the listener's proof, which depends on it.
	constexpr size_t said = greeting::size + answer::size - sizeof(mac);
	std::array<std::byte, 1 + said> over;
	auto question = encode(asked);
	auto reply = encode(answered);
	unsigned length = 0;
	mac out;

	over[0] = static_cast<std::byte>(who);
	copy_in(over.data() + 1, question);
	copy_in(over.data() + 1 + greeting::size,
		std::span(reply).first(answer::size - sizeof(mac)));
	if (!HMAC(EVP_sha256(), token.empty() ? "" : token.data(),
		  static_cast<int>(token.size()),
		  reinterpret_cast<const unsigned char *>(over.data()), over.size(),
		  reinterpret_cast<unsigned char *>(out.data()), &length) ||
	    length != out.size())
		return {};
	return out;
}

bool same(const mac &a, const mac &b) noexcept
{
	return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool fill(nonce &number) noexcept
{
	return RAND_bytes(reinterpret_cast<unsigned char *>(number.data()),
			  static_cast<int>(number.size())) == 1;
}

void encode(const header &from, std::span<std::byte, header::size> to) noexcept
{
	to[0] = static_cast<std::byte>(from.what);
	to[1] = std::byte{0};
	put(&to[2], from.length);
	put(&to[4], from.sequence);
	put(&to[8], from.granted);
	put(&to[12], from.credits_seen);
}

result<header> read_header(std::string_view peer,
			   std::span<const std::byte> bytes) noexcept
{
	header to;

	if (bytes.size() < header::size)
		return fail(errc::protocol, peer, "a message that is too short");
	to.what = static_cast<kind>(bytes[0]);
	to.length = get<uint16_t>(&bytes[2]);
	to.sequence = get<uint32_t>(&bytes[4]);
	to.granted = get<uint32_t>(&bytes[8]);
	to.credits_seen = get<uint32_t>(&bytes[12]);
	if (bytes[1] != std::byte{0})
		return fail(errc::protocol, peer, "a message with unknown flags");
	if (const char *wrong = wrong_length(to.what, to.length))
		return fail(errc::protocol, peer, wrong);
	if (bytes.size() != header::size + to.length)
		return fail(errc::protocol, peer,
			    "a message whose length is not what it says");
	return to;
}

} // namespace sluice::detail::wire
