// SPDX-License-Identifier: MIT
// Messages of a stream, as in docs/wire.md: little endian, a type in the first byte.
// Parsing checks lengths and ranges; the stream decides whether a message is due.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sluice/digest.hpp"
#include "sluice/endpoint.hpp"

namespace sluice::wire {

inline constexpr uint32_t version = 1;
inline constexpr unsigned most_chunks = 128; ///< of a piece
inline constexpr size_t longest_name = 255;

/// Is it a valid name of a source: a file's name, in readable UTF-8?
bool is_name(std::string_view text) noexcept;
/// The error to return if it is not.
std::unexpected<error> is_no_name(std::string_view text);

enum class type : uint8_t {
	open = 1, ///< sender: a source is offered
	accept,	  ///< receiver: it is wanted, from an offset on
	refuse,	  ///< receiver: it is not
	grant,	  ///< receiver: memory for one more piece
	piece,	  ///< sender: a piece has been written
	ack,	  ///< receiver: all before an offset is in its place
	end,	  ///< sender: that was all of the source
	done,	  ///< receiver: all of it is there
	finish,	  ///< sender: no more sources
	failed,	  ///< either: it gives up
	busy,	  ///< either: it still checks what the receiver has already
};

struct open_message {
	uint64_t size;	///< bytes, or UINT64_MAX: unknown
	uint64_t piece; ///< bytes of the sender's pieces
	uint32_t chunk; ///< bytes, for CRCs
	bool checksum, digest;
	std::string_view name; ///< a file's, without a path
};

struct accept_message {
	uint64_t from;	      ///< the first byte to send
	uint64_t piece;	      ///< bytes of a piece, at most the sender's
	sha256_digest digest; ///< of what is before
};

struct grant_message {
	remote_memory memory;
};

struct piece_message {
	uint64_t offset; ///< in the source
	uint64_t length;
	unsigned chunks = 0; ///< of them have a CRC
	std::array<uint32_t, most_chunks> crc;
};

struct ack_message {
	uint64_t upto; ///< all before this offset is in its place
};

struct busy_message {
	uint64_t looked_at; ///< bytes so far
};

struct end_message {
	uint64_t size;	      ///< of the source, as it turned out
	sha256_digest digest; ///< of all of it; zero if there is none
};

struct text_message {	       ///< refuse, failed
	std::string_view text; ///< printable
};

/// A message as bytes.
class bytes {
public:
	std::span<const std::byte> span() const noexcept
	{
		return {data_.data(), size_};
	}

	bytes &u8(uint8_t v) noexcept { return put(v, 1); }
	bytes &u32(uint32_t v) noexcept { return put(v, 4); }
	bytes &u64(uint64_t v) noexcept { return put(v, 8); }
	bytes &raw(std::span<const std::byte> from) noexcept;

private:
	bytes &put(uint64_t v, unsigned n) noexcept;

	std::array<std::byte, max_message> data_;
	size_t size_ = 0;
};

bytes encode(const open_message &m) noexcept;
bytes encode(const accept_message &m) noexcept;
bytes encode(const grant_message &m) noexcept;
bytes encode(const piece_message &m) noexcept;
bytes encode(const ack_message &m) noexcept;
bytes encode(const busy_message &m) noexcept;
bytes encode(const end_message &m) noexcept;
bytes encode_done(const end_message &m) noexcept;
bytes encode_finish() noexcept;
/// What does not fit, or is not printable, is left out or replaced.
bytes encode_text(type t, std::string_view text) noexcept;

/// The type of a message, or nothing if it has none that is known.
std::optional<type> type_of(std::span<const std::byte> message) noexcept;

// Nothing if it is not of that form. Texts point into the message.
std::optional<open_message> decode_open(std::span<const std::byte> m) noexcept;
std::optional<accept_message> decode_accept(std::span<const std::byte> m) noexcept;
std::optional<grant_message> decode_grant(std::span<const std::byte> m) noexcept;
std::optional<piece_message> decode_piece(std::span<const std::byte> m) noexcept;
std::optional<ack_message> decode_ack(std::span<const std::byte> m) noexcept;
std::optional<busy_message> decode_busy(std::span<const std::byte> m) noexcept;
std::optional<end_message> decode_end(std::span<const std::byte> m) noexcept;
std::optional<end_message> decode_done(std::span<const std::byte> m) noexcept;
bool decode_finish(std::span<const std::byte> m) noexcept;
std::optional<text_message> decode_text(std::span<const std::byte> m) noexcept;

} // namespace sluice::wire
