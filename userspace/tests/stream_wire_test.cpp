// SPDX-License-Identifier: MIT
// Messages of a stream: what was encoded is decoded, and nothing else is.
#include <algorithm>
#include <format>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scattered.hpp"
#include "stream_wire.hpp"

using namespace sluice;
using namespace sluice::wire;

namespace {

using message = std::vector<std::byte>;

message bytes_of(const bytes &b)
{
	return {b.span().begin(), b.span().end()};
}

open_message an_open()
{
	return {.size = 12345678901,
		.piece = 4 << 20,
		.chunk = 1 << 20,
		.checksum = true,
		.digest = false,
		.name = "a file.bin"};
}

sha256_digest a_digest()
{
	sha256_digest d;

	for (size_t i = 0; i < d.size(); i++)
		d[i] = static_cast<std::byte>(i * 7);
	return d;
}

piece_message a_piece()
{
	piece_message m{
		.offset = 1ull << 40, .length = 3 << 20, .chunks = 3, .crc = {}};

	m.crc = {1, 0xffffffff, 0x12345678};
	return m;
}

/// One message of each type.
std::vector<message> all()
{
	return {bytes_of(encode(an_open())),
		bytes_of(encode(accept_message{4096, 1 << 20, a_digest()})),
		bytes_of(encode_text(type::refuse, "no")),
		bytes_of(encode(grant_message{{0x7f0000000000, 4 << 20, 77}})),
		bytes_of(encode(a_piece())),
		bytes_of(encode(ack_message{8192})),
		bytes_of(encode(end_message{99, a_digest()})),
		bytes_of(encode_done(end_message{99, a_digest()})),
		bytes_of(encode_finish()),
		bytes_of(encode_text(type::failed, "disk full")),
		bytes_of(encode(busy_message{1ull << 40}))};
}

/// How many decoders take @p m.
int taken(const message &m)
{
	return !!decode_open(m) + !!decode_accept(m) + !!decode_grant(m) +
	       !!decode_piece(m) + !!decode_ack(m) + !!decode_end(m) +
	       !!decode_done(m) + decode_finish(m) + !!decode_text(m) +
	       !!decode_busy(m);
}

} // namespace

TEST(StreamWire, ReadsWhatItWrites)
{
	auto open = bytes_of(encode(an_open()));
	auto o = decode_open(open);
	ASSERT_TRUE(o);
	EXPECT_EQ(o->size, 12345678901u);
	EXPECT_EQ(o->piece, 4u << 20);
	EXPECT_EQ(o->chunk, 1u << 20);
	EXPECT_TRUE(o->checksum);
	EXPECT_FALSE(o->digest);
	EXPECT_EQ(o->name, "a file.bin");

	auto accept = bytes_of(encode(accept_message{4096, 1 << 20, a_digest()}));
	auto a = decode_accept(accept);
	ASSERT_TRUE(a);
	EXPECT_EQ(a->from, 4096u);
	EXPECT_EQ(a->digest, a_digest());

	auto p = decode_piece(bytes_of(encode(a_piece())));
	ASSERT_TRUE(p);
	EXPECT_EQ(p->offset, 1ull << 40);
	EXPECT_EQ(p->length, 3u << 20);
	EXPECT_EQ(p->chunks, 3u);
	EXPECT_EQ(p->crc[1], 0xffffffffu);

	auto g = decode_grant(bytes_of(encode(grant_message{{1ull << 46, 4096, 9}})));
	ASSERT_TRUE(g);
	EXPECT_EQ(g->memory.address, 1ull << 46);
	EXPECT_EQ(g->memory.key, 9u);
	EXPECT_EQ(decode_ack(bytes_of(encode(ack_message{7})))->upto, 7u);
	EXPECT_EQ(decode_text(all()[9])->text, "disk full");
}

// The layout is the protocol: docs/wire.md.
TEST(StreamWire, IsLittleEndianWithoutHoles)
{
	auto m = bytes_of(encode(ack_message{0x0102030405060708}));

	ASSERT_EQ(m.size(), 9u);
	EXPECT_EQ(m[0], std::byte{6});
	EXPECT_EQ(m[1], std::byte{8});
	EXPECT_EQ(m[8], std::byte{1});
	EXPECT_EQ(bytes_of(encode(a_piece())).size(), 1 + 8 + 8 + 1 + 3 * 4u);
	piece_message full{.offset = 0, .length = 1, .chunks = most_chunks, .crc = {}};
	EXPECT_LE(bytes_of(encode(full)).size(), max_message);
}

// Byte for byte: encoder and decoder would agree on a mistake that both make.
TEST(StreamWire, IsWhatTheDocumentSays)
{
	auto text = [](std::string_view hex) {
		message m;

		for (size_t i = 0; i + 1 < hex.size(); i += 2)
			m.push_back(static_cast<std::byte>(
				std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
		return m;
	};
	sha256_digest digest;
	std::string of_digest;

	for (size_t i = 0; i < digest.size(); i++) {
		digest[i] = static_cast<std::byte>(i);
		of_digest += std::format("{:02x}", i);
	}
	EXPECT_EQ(bytes_of(encode(open_message{.size = 0x0807060504030201,
					       .piece = 0x2000,
					       .chunk = 0x1000,
					       .checksum = true,
					       .digest = false,
					       .name = "ab"})),
		  text("01"
		       "01000000"
		       "0102030405060708"
		       "0020000000000000"
		       "00100000"
		       "01"
		       "00"
		       "6162"));
	EXPECT_EQ(bytes_of(encode(accept_message{0x3000, 0x1000, digest})),
		  text("02"
		       "0030000000000000"
		       "0010000000000000" +
		       of_digest));
	EXPECT_EQ(bytes_of(encode_text(type::refuse, "no")), text("03"
								  "6e6f"));
	EXPECT_EQ(bytes_of(encode(grant_message{{0x0102, 0x1000, 0x0304}})),
		  text("04"
		       "0201000000000000"
		       "0010000000000000"
		       "04030000"));
	piece_message piece{.offset = 0x1000, .length = 0x1001, .chunks = 2, .crc = {}};
	piece.crc = {0x01020304, 5};
	EXPECT_EQ(bytes_of(encode(piece)), text("05"
						"0010000000000000"
						"0110000000000000"
						"02"
						"04030201"
						"05000000"));
	EXPECT_EQ(bytes_of(encode(ack_message{0x1000})), text("06"
							      "0010000000000000"));
	EXPECT_EQ(bytes_of(encode(end_message{0x1001, digest})),
		  text("07"
		       "0110000000000000" +
		       of_digest));
	EXPECT_EQ(bytes_of(encode_done(end_message{0x1001, digest})),
		  text("08"
		       "0110000000000000" +
		       of_digest));
	EXPECT_EQ(bytes_of(encode_finish()), text("09"));
	EXPECT_EQ(bytes_of(encode_text(type::failed, "no")), text("0a"
								  "6e6f"));
	EXPECT_EQ(bytes_of(encode(busy_message{0x1000000})), text("0b"
								  "0000000100000000"));
}

TEST(StreamWire, EachIsTakenByOneDecoderOnly)
{
	for (const message &m : all())
		EXPECT_EQ(taken(m), 1) << "type " << static_cast<int>(m[0]);
}

TEST(StreamWire, RefusesWhatIsTooShortOrTooLong)
{
	for (message m : all()) {
		bool text = decode_text(m) || decode_open(m);

		if (!text) { // those end where their text ends
			message longer = m;
			longer.push_back(std::byte{0});
			EXPECT_EQ(taken(longer), 0) << static_cast<int>(m[0]);
		}
		size_t shortest = decode_open(m) ? m.size() - 9 : text ? 1 : m.size();
		while (m.size() > 0) {
			m.pop_back();
			if (m.size() < shortest) {
				EXPECT_EQ(taken(m), 0);
			}
		}
	}
}

TEST(StreamWire, RefusesWhatMakesNoSense)
{
	auto piece = a_piece();
	piece.offset = UINT64_MAX;
	EXPECT_FALSE(decode_piece(bytes_of(encode(piece))));
	piece = a_piece();
	piece.length = 0;
	EXPECT_FALSE(decode_piece(bytes_of(encode(piece))));
	EXPECT_FALSE(decode_grant(bytes_of(encode(grant_message{{UINT64_MAX, 2, 1}}))));
	EXPECT_FALSE(decode_grant(bytes_of(encode(grant_message{{4096, 0, 1}}))));
	auto chunks = bytes_of(encode(a_piece()));
	chunks[17] = std::byte{255};
	EXPECT_FALSE(decode_piece(chunks));

	for (const char *name :
	     {"", ".", "..", "a/b", "/etc/passwd", "a\x1b[2J", "\x80", "\xc0\xaf",
	      "\xc2\x9b", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
	      "\xf8\x88\x80\x80\x80", "\xc3", "\xe2\x82 ", "a\x7f", "\xe2\x80\xae",
	      "\xe2\x81\xa6"}) {
		auto o = an_open();
		o.name = name;
		EXPECT_FALSE(decode_open(bytes_of(encode(o)))) << name;
	}
	auto o = an_open();
	o.chunk = 100;
	EXPECT_FALSE(decode_open(bytes_of(encode(o))));
	o.chunk = 4096; // 1024 of them
	EXPECT_FALSE(decode_open(bytes_of(encode(o))));
	o = an_open();
	o.piece = 0;
	EXPECT_FALSE(decode_open(bytes_of(encode(o))));
	auto other = bytes_of(encode(an_open()));
	other[1] = std::byte{2}; // the version
	EXPECT_FALSE(decode_open(other));
	auto maybe = bytes_of(encode(an_open()));
	maybe[25] = std::byte{2}; // neither yes nor no
	EXPECT_FALSE(decode_open(maybe));
}

TEST(StreamWire, CleansItsOwnTexts)
{
	auto m = bytes_of(
		encode_text(type::failed, "a\nb\x7f" + std::string(2000, 'x')));

	ASSERT_TRUE(decode_text(m));
	EXPECT_TRUE(decode_text(m)->text.starts_with("a?b?xxx"));
	EXPECT_LE(m.size(), max_message);
}

// Decoders stay within any bytes that they get: run it under a sanitizer.
TEST(StreamWire, SurvivesNoise)
{
	std::mt19937 random(1);

	for (int i = 0; i < 200000; i++) {
		message m;

		if (i % 2) {
			auto some = all();
			m = some[random() % some.size()];
			for (unsigned flips = 1 + random() % 3; flips--;)
				m[random() % m.size()] ^=
					static_cast<std::byte>(1 << random() % 8);
			m.resize(random() % (m.size() + 1));
		} else {
			m.resize(random() % 64);
			std::ranges::generate(
				m, [&] { return static_cast<std::byte>(random()); });
			if (!m.empty())
				m[0] = static_cast<std::byte>(random() % 12);
		}
		EXPECT_LE(taken(m), 1);
		if (auto o = decode_open(m)) {
			EXPECT_LE(o->name.size(), longest_name);
			EXPECT_EQ(o->name.find('/'), std::string_view::npos);
		}
	}
}

TEST(Digest, AreTheKnownOnes)
{
	auto text = std::as_bytes(std::span("123456789", 9));

	EXPECT_EQ(crc32c(text), 0xe3069283u);
	EXPECT_EQ(crc32c(text.subspan(4), crc32c(text.first(4))), 0xe3069283u);
	sha256 sum;
	sum.add(std::as_bytes(std::span("abc", 3)));
	EXPECT_EQ(to_string(sum.digest()), "ba7816bf8f01cfea414140de5dae2223"
					   "b00361a396177a9cb410ff61f20015ad");
	EXPECT_EQ(sum.digest(), sum.digest());
	sum = {};
	EXPECT_EQ(to_string(sum.digest()), "e3b0c44298fc1c149afbf4c8996fb924"
					   "27ae41e4649b934ca495991b7852b855");
}

TEST(Scattered, IsOne)
{
	auto a = *buffer::host(page_size), b = *buffer::host(2 * page_size);
	detail::scattered all(
		{a.part(10, 5), b.part(0, 0), b.part(100, 7), a.part(0, 3)});
	std::vector<std::pair<uint64_t, uint64_t>> seen;
	auto look = [&](uint64_t offset, uint64_t length) {
		seen.clear();
		all.each(offset, length, [&](const slice &part, uint64_t at) {
			seen.emplace_back(at, part.size());
		});
	};

	EXPECT_EQ(all.size(), 15u);
	look(0, 15);
	EXPECT_EQ(seen, (decltype(seen){{0, 5}, {5, 7}, {12, 3}}));
	look(4, 2);
	EXPECT_EQ(seen, (decltype(seen){{0, 1}, {1, 1}}));
	look(5, 7);
	EXPECT_EQ(seen, (decltype(seen){{0, 7}}));
	look(14, 1);
	EXPECT_EQ(seen, (decltype(seen){{0, 1}}));
	EXPECT_EQ(all.reach(0, 15, 1), 5u);
	EXPECT_EQ(all.reach(4, 11, 1), 1u);
	EXPECT_EQ(all.reach(4, 11, 3), 8u);
	EXPECT_EQ(all.reach(4, 7, 3), 7u);
	EXPECT_EQ(all.reach(0, 15, 3), 12u);
	EXPECT_EQ(all.reach(0, 15, 4), 15u);
	EXPECT_EQ(all.reach(12, 3, 1), 3u);
	EXPECT_EQ(all.reach(12, 3, 9), 3u);
	all.each(6, 1, [&](const slice &part, uint64_t) {
		EXPECT_EQ(part.address(), b.address() + 101);
	});
}
