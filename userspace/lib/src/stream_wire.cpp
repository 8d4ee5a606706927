// SPDX-License-Identifier: MIT
#include "stream_wire.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "sluice/buffer.hpp"

namespace sluice::wire {

namespace {

/// Takes values off the front of a message. A message that is too short gives zeros,
/// and good() says so at the end.
class reader {
public:
	/// A message of type @p t, which comes first.
	reader(std::span<const std::byte> m, type t) noexcept : left_(m)
	{
		good_ = u8() == static_cast<uint8_t>(t);
	}

	uint8_t u8() noexcept { return static_cast<uint8_t>(take(1)); }
	uint32_t u32() noexcept { return static_cast<uint32_t>(take(4)); }
	uint64_t u64() noexcept { return take(8); }
	/// A byte that says yes or no.
	bool yes_no() noexcept
	{
		uint8_t v = u8();

		good_ = good_ && v <= 1;
		return v;
	}
	sha256_digest digest() noexcept
	{
		sha256_digest d{};

		if (has(d.size()))
			std::ranges::copy(cut(d.size()), d.begin());
		return d;
	}
	/// The rest of the message.
	std::string_view rest() noexcept
	{
		auto all = cut(left_.size());

		return {reinterpret_cast<const char *>(all.data()), all.size()};
	}
	/// The same, printable ASCII.
	std::string_view text() noexcept
	{
		auto t = rest();

		good_ = good_ && std::ranges::all_of(t, [](char c) {
			return c >= ' ' && c <= '~';
		});
		return t;
	}
	void require(bool what) noexcept { good_ = good_ && what; }
	/// Was everything there, and nothing more?
	bool good() const noexcept { return good_ && left_.empty(); }

private:
	bool has(size_t n) noexcept
	{
		good_ = good_ && left_.size() >= n;
		return good_;
	}
	std::span<const std::byte> cut(size_t n) noexcept
	{
		auto front = left_.first(n);

		left_ = left_.subspan(n);
		return front;
	}
	uint64_t take(size_t n) noexcept
	{
		uint64_t v = 0;

		if (!has(n))
			return 0;
		auto front = cut(n);
		for (size_t i = n; i--;)
			v = v << 8 | static_cast<uint8_t>(front[i]);
		return v;
	}

	std::span<const std::byte> left_;
	bool good_ = true;
};

template <class T> std::optional<T> if_good(const reader &r, const T &m) noexcept
{
	return r.good() ? std::optional<T>(m) : std::nullopt;
}

/// A message that is one number.
template <class T>
std::optional<T> decode_number(type t, std::span<const std::byte> bytes) noexcept
{
	reader r(bytes, t);
	T m{r.u64()};

	return if_good(r, m);
}

bytes begin(type t) noexcept
{
	return bytes().u8(static_cast<uint8_t>(t));
}

std::span<const std::byte> as_bytes(std::string_view text) noexcept
{
	return std::as_bytes(std::span(text));
}

// Well-formed UTF-8 (RFC 3629) without control characters, including those that end or
// turn lines.
bool is_readable(std::string_view text) noexcept
{
	// of 1, 2, 3 and 4 bytes
	constexpr std::array<uint32_t, 4> least = {0x20, 0xa0, 0x800, 0x10000};

	while (!text.empty()) {
		auto ones = static_cast<unsigned>(
			std::countl_one(static_cast<uint8_t>(text[0])));
		size_t length = ones ? ones : 1;
		if (ones == 1 || length > least.size() || length > text.size())
			return false;
		uint32_t c = static_cast<uint8_t>(text[0]) & (0xffu >> (ones + 1));
		for (char next : text.substr(1, length - 1)) {
			if ((next & 0xc0) != 0x80)
				return false;
			c = c << 6 | (next & 0x3f);
		}
		if (c < least[length - 1] || c == 0x7f || c > 0x10ffff ||
		    (c >= 0xd800 && c < 0xe000) || (c >= 0x2028 && c <= 0x202e) ||
		    (c >= 0x2066 && c <= 0x2069))
			return false;
		text.remove_prefix(length);
	}
	return true;
}

} // namespace

bool is_name(std::string_view text) noexcept
{
	return !text.empty() && text.size() <= longest_name && text != "." &&
	       text != ".." && text.find('/') == text.npos && is_readable(text);
}

std::unexpected<error> is_no_name(std::string_view text)
{
	return fail(
		errc::usage, "stream",
		std::format(
			"a name has 1 to {} bytes of UTF-8 without \"/\" and control "
			"characters, not \"{}\"",
			longest_name, text));
}

bytes &bytes::raw(std::span<const std::byte> from) noexcept
{
	size_t n = std::min(from.size(), data_.size() - size_);

	std::memcpy(data_.data() + size_, from.data(), n);
	size_ += n;
	return *this;
}

bytes &bytes::put(uint64_t v, unsigned n) noexcept
{
	std::array<std::byte, 8> little;

	for (std::byte &b : little) {
		b = static_cast<std::byte>(v);
		v >>= 8;
	}
	return raw(std::span(little).first(n));
}

std::optional<type> type_of(std::span<const std::byte> m) noexcept
{
	if (m.empty() || m[0] < std::byte{1} ||
	    m[0] > static_cast<std::byte>(type::busy))
		return std::nullopt;
	return static_cast<type>(m[0]);
}

bytes encode(const open_message &m) noexcept
{
	return begin(type::open)
		.u32(version)
		.u64(m.size)
		.u64(m.piece)
		.u32(m.chunk)
		.u8(m.checksum)
		.u8(m.digest)
		.raw(as_bytes(m.name.substr(0, longest_name)));
}

std::optional<open_message> decode_open(std::span<const std::byte> bytes) noexcept
{
	reader r(bytes, type::open);
	open_message m{};

	r.require(r.u32() == version);
	m.size = r.u64();
	m.piece = r.u64();
	m.chunk = r.u32();
	m.checksum = r.yes_no();
	m.digest = r.yes_no();
	m.name = r.rest();
	r.require(is_name(m.name) && m.piece && m.piece % page_size == 0 && m.chunk &&
		  m.chunk % page_size == 0 && m.piece / m.chunk <= most_chunks);
	return if_good(r, m);
}

bytes encode(const accept_message &m) noexcept
{
	return begin(type::accept).u64(m.from).u64(m.piece).raw(m.digest);
}

std::optional<accept_message> decode_accept(std::span<const std::byte> bytes) noexcept
{
	reader r(bytes, type::accept);
	accept_message m{};

	m.from = r.u64();
	m.piece = r.u64();
	m.digest = r.digest();
	r.require(m.piece && m.piece % page_size == 0);
	return if_good(r, m);
}

bytes encode(const grant_message &m) noexcept
{
	return begin(type::grant)
		.u64(m.memory.address)
		.u64(m.memory.size)
		.u32(m.memory.key);
}

std::optional<grant_message> decode_grant(std::span<const std::byte> bytes) noexcept
{
	reader r(bytes, type::grant);
	grant_message m{};

	m.memory.address = r.u64();
	m.memory.size = r.u64();
	m.memory.key = r.u32();
	r.require(m.memory.size && m.memory.address <= UINT64_MAX - m.memory.size);
	return if_good(r, m);
}

bytes encode(const piece_message &m) noexcept
{
	auto out = begin(type::piece)
			   .u64(m.offset)
			   .u64(m.length)
			   .u8(static_cast<uint8_t>(m.chunks));

	for (unsigned i = 0; i < m.chunks; i++)
		out.u32(m.crc[i]);
	return out;
}

std::optional<piece_message> decode_piece(std::span<const std::byte> bytes) noexcept
{
	reader r(bytes, type::piece);
	piece_message m{};

	m.offset = r.u64();
	m.length = r.u64();
	m.chunks = r.u8();
	r.require(m.length && m.offset <= UINT64_MAX - m.length &&
		  m.chunks <= most_chunks);
	for (unsigned i = 0; i < std::min(m.chunks, most_chunks); i++)
		m.crc[i] = r.u32();
	return if_good(r, m);
}

bytes encode(const ack_message &m) noexcept
{
	return begin(type::ack).u64(m.upto);
}

std::optional<ack_message> decode_ack(std::span<const std::byte> bytes) noexcept
{
	return decode_number<ack_message>(type::ack, bytes);
}

bytes encode(const busy_message &m) noexcept
{
	return begin(type::busy).u64(m.looked_at);
}

std::optional<busy_message> decode_busy(std::span<const std::byte> bytes) noexcept
{
	return decode_number<busy_message>(type::busy, bytes);
}

static bytes encode_total(type t, const end_message &m) noexcept
{
	return begin(t).u64(m.size).raw(m.digest);
}

static std::optional<end_message>
decode_total(type t, std::span<const std::byte> bytes) noexcept
{
	reader r(bytes, t);
	end_message m{};

	m.size = r.u64();
	m.digest = r.digest();
	return if_good(r, m);
}

bytes encode(const end_message &m) noexcept
{
	return encode_total(type::end, m);
}

std::optional<end_message> decode_end(std::span<const std::byte> bytes) noexcept
{
	return decode_total(type::end, bytes);
}

bytes encode_done(const end_message &m) noexcept
{
	return encode_total(type::done, m);
}

std::optional<end_message> decode_done(std::span<const std::byte> bytes) noexcept
{
	return decode_total(type::done, bytes);
}

bytes encode_finish() noexcept
{
	return begin(type::finish);
}

bool decode_finish(std::span<const std::byte> bytes) noexcept
{
	return reader(bytes, type::finish).good();
}

bytes encode_text(type t, std::string_view text) noexcept
{
	constexpr size_t longest = 400;
	auto out = begin(t);

	for (char c : text.substr(0, longest))
		out.u8(static_cast<uint8_t>(c >= ' ' && c <= '~' ? c : '?'));
	return out;
}

std::optional<text_message> decode_text(std::span<const std::byte> bytes) noexcept
{
	auto t = type_of(bytes);

	if (t != type::refuse && t != type::failed)
		return std::nullopt;
	reader r(bytes, *t);
	text_message m{r.text()};
	return if_good(r, m);
}

} // namespace sluice::wire
