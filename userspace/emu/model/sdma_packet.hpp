// SPDX-License-Identifier: MIT
// SDMA 4.4.2 packets, decoded and checked. Decoding touches no memory; what
// hardware would reject, or leaves undefined, is Malformed.
#pragma once

#include "types.hpp"

#include <array>
#include <expected>
#include <string_view>
#include <variant>

namespace sluice::emu::sdma {

enum class Op : u8 {
	nop = 0,
	copy = 1,
	write = 2,
	indirect = 4,
	fence = 5,
	trap = 6,
	poll = 8,
	cond_exe = 9,
	atomic = 10,
	fill = 11,
	ptepde = 12,
	timestamp = 13,
	srbm_write = 14,
};

struct Nop {};
struct Copy {
	u64 count, source;
	u64 destination[2];
	unsigned destinations; // 2: broadcast
};
// Rows of bytes: one slice of a sub-window of two linear surfaces, starting at the
// addresses.
struct Window {
	u64 source, destination, source_pitch, destination_pitch, width, rows;
};
struct Swap {
	u64 count, a, b;
};
constexpr u32 write_header_words = 4;
struct Write {
	u64 address;
	u32 words; // of data, after the header
};
struct Indirect {
	u64 base;
	u32 words;
	unsigned vmid;
};
struct Fence {
	u64 address;
	u32 value;
};
struct Trap {
	u32 context;
};
enum class Compare : u8 { always, lt, le, eq, ne, ge, gt };
struct Poll {
	// nothing: ROCr's flush of the host data path, below
	enum Kind : u8 { memory, reg, hdp_flush, nothing } kind;
	Compare compare;
	u64 address; // or register, or the flush's done register
	u32 request; // hdp_flush: register to write
	u32 reference, mask;
	u32 interval, retries; // 0xfff: for ever
};
struct CondExe {
	u64 address;
	u32 reference, words;
};
enum class AtomicOp : u8 {
	swap = 0x07,
	cmpswap = 0x08,
	add = 0x0f,
	sub = 0x10,
	smin = 0x11,
	umin = 0x12,
	smax = 0x13,
	umax = 0x14,
	and_ = 0x15,
	or_ = 0x16,
	xor_ = 0x17,
	inc = 0x18,
	dec = 0x19,
};
struct Atomic {
	AtomicOp op;
	unsigned size;
	bool loop; // cmpswap: until it succeeds
	u64 address, source, compare;
};
struct Fill {
	u64 address, count;
	u32 value;
	bool words;
};
struct PtePde {
	u64 address, mask, value, increment;
	u32 entries;
};
struct Timestamp {
	u64 address;
	bool set;
};
struct SrbmWrite {
	u32 index, value, byte_enable;
};

using Body = std::variant<Nop, Copy, Window, Swap, Write, Indirect, Fence, Trap, Poll,
			  CondExe, Atomic, Fill, PtePde, Timestamp, SrbmWrite>;

struct Packet {
	u32 words;	  // its whole length
	const char *name; // for the timeline
	Body body;
};

struct Malformed {
	// A packet that only needs more words than were given.
	bool truncated;
	std::string_view why;
};

// Enough for every packet except the data of Write and the padding of Nop: these
// need only the header.
constexpr u32 max_fixed_words = 13;
constexpr u64 max_copy = 1ull << 30, max_swap = 0x3fffffe0;
constexpr u32 poll_for_ever = 0xfff;
// What ROCr uses as a flush of the host data path: a poll of a register that is
// always satisfied. Engines accept it from a user; it is not known to do anything.
constexpr std::array<u32, 6> user_flush{8, 0, 0x80000000, 0, 0, 0};

std::expected<Packet, Malformed> decode(std::span<const u32> words);

bool satisfied(Compare compare, u32 value, u32 reference);
u64 apply(const Atomic &a, u64 old);

} // namespace sluice::emu::sdma
