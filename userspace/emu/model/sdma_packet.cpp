// SPDX-License-Identifier: MIT
#include "sdma_packet.hpp"

#include <algorithm>

namespace sluice::emu::sdma {

namespace {

using Words = std::span<const u32>;
using Result = std::expected<Packet, Malformed>;

Result bad(std::string_view why)
{
	return std::unexpected(Malformed{false, why});
}

// Bits of a word that the packet does not define must be zero.
bool reserved(u32 word, u32 defined)
{
	return word & ~defined;
}

constexpr u32 op_bits = 0xff, sub_op_bits = 0xff00;
constexpr u32 broadcast_bit = 1u << 27, tmz_bit = 1u << 18;
constexpr u32 copy_linear = 0, copy_window = 4, copy_swap = 9;

bool overlap(u64 a, u64 b, u64 n)
{
	return a < b ? b - a < n : a - b < n;
}

Result decode_nop(Words w)
{
	if (reserved(w[0], op_bits | 0x3fff0000))
		return bad("reserved bits of NOP");
	return Packet{1 + static_cast<u32>(field(w[0], 16, 14)), "nop", Nop{}};
}

Result decode_swap(Words w)
{
	u64 count = field(w[1], 0, 30) + 1;
	Swap s{count, join(w[3], w[4]), join(w[5], w[6])};

	if (reserved(w[0], op_bits | sub_op_bits | tmz_bit))
		return bad("reserved bits of swap");
	if (reserved(w[1], 0x3fffffff) || w[2])
		return bad("reserved bits of swap");
	if (!aligned(s.a | s.b, 64))
		return bad("swap addresses are not aligned to 64 bytes");
	if (count > max_swap)
		return bad("swap is too long");
	if (overlap(s.a, s.b, count))
		return bad("swap ranges overlap");
	return Packet{7, "swap", s};
}

Result decode_copy(Words w)
{
	bool broadcast = w[0] & broadcast_bit;
	Copy c{field(w[1], 0, 30) + 1, join(w[3], w[4]), {join(w[5], w[6]), 0}, 1};

	if (reserved(w[0], op_bits | sub_op_bits | tmz_bit | broadcast_bit))
		return bad("reserved bits of COPY");
	if (reserved(w[1], 0x3fffffff) || w[2])
		return bad("reserved bits of COPY");
	if (!broadcast)
		return Packet{7, "copy", c};
	c.destination[1] = join(w[7], w[8]);
	c.destinations = 2;
	if (c.destination[0] % 32 != c.destination[1] % 32)
		return bad("broadcast destinations differ modulo 32");
	return Packet{9, "broadcast", c};
}

// Addresses and pitches as in public user space: multiples of 4 bytes and of
// the element. It uses neither coordinates nor slices other than the first.
Result decode_window(Words w)
{
	u64 element = 1ull << (w[0] >> 29);
	Window x{join(w[1], w[2]),
		 join(w[6], w[7]),
		 element * (field(w[4], 13, 19) + 1),
		 element * (field(w[9], 13, 19) + 1),
		 element * (field(w[11], 0, 14) + 1),
		 field(w[11], 16, 14) + 1};

	if (reserved(w[0], op_bits | sub_op_bits | tmz_bit | 7u << 29) ||
	    reserved(w[4], ~0x1fffu) || reserved(w[9], ~0x1fffu) ||
	    reserved(w[11], 0x3fff3fff) || w[3] || w[5] || w[8] || w[10] || w[12])
		return bad("reserved bits of sub-window copy");
	if (element > 16)
		return bad("element size of sub-window copy");
	if (!aligned(x.source | x.destination | x.source_pitch | x.destination_pitch,
		     std::max<u64>(element, 4)))
		return bad("sub-window copy is not aligned");
	if (x.width > x.source_pitch || x.width > x.destination_pitch)
		return bad("rows of sub-window copy overlap");
	return Packet{13, "window", x};
}

Result decode_write(Words w)
{
	u32 words = static_cast<u32>(field(w[3], 0, 20)) + 1;
	u64 address = join(w[1], w[2]);

	if (reserved(w[0], op_bits | tmz_bit) || reserved(w[3], 0xfffff))
		return bad("reserved bits of WRITE");
	if (!aligned(address, 4))
		return bad("WRITE is not aligned to 4 bytes");
	return Packet{write_header_words + words, "write", Write{address, words}};
}

Result decode_indirect(Words w)
{
	Indirect i{join(w[1], w[2]), static_cast<u32>(field(w[3], 0, 20)),
		   static_cast<unsigned>(field(w[0], 16, 4))};

	if (reserved(w[0], op_bits | 0xf0000) || reserved(w[3], 0xfffff))
		return bad("reserved bits of INDIRECT");
	if (!aligned(i.base, 32))
		return bad("indirect buffer is not aligned to 32 bytes");
	return Packet{6, "indirect", i};
}

Result decode_fence(Words w)
{
	Fence f{join(w[1], w[2]), w[3]};

	if (reserved(w[0], op_bits))
		return bad("reserved bits of FENCE");
	if (!aligned(f.address, 4))
		return bad("FENCE is not aligned to 4 bytes");
	return Packet{4, "fence", f};
}

Result decode_trap(Words w)
{
	if (reserved(w[0], op_bits) || reserved(w[1], 0x0fffffff))
		return bad("reserved bits of TRAP");
	return Packet{2, "trap", Trap{w[1]}};
}

Result decode_poll(Words w)
{
	bool memory = w[0] >> 31, flush = w[0] >> 26 & 1;
	Poll p{};

	if (std::ranges::equal(w.first(6), user_flush)) {
		p.kind = Poll::nothing;
		return Packet{6, "poll", p};
	}
	if (reserved(w[0], op_bits | 1u << 26 | 7u << 28 | 1u << 31) ||
	    reserved(w[5], 0x0fffffff))
		return bad("reserved bits of POLL_REGMEM");
	if (memory && flush)
		return bad("POLL_REGMEM of memory with an HDP flush");
	if (field(w[0], 28, 3) > static_cast<u64>(Compare::gt))
		return bad("comparison of POLL_REGMEM");
	p.kind = memory ? Poll::memory : flush ? Poll::hdp_flush : Poll::reg;
	p.compare = static_cast<Compare>(field(w[0], 28, 3));
	p.address = memory ? join(w[1], w[2]) : w[1];
	p.request = w[2] >> 2;
	p.reference = w[3];
	p.mask = w[4];
	p.interval = static_cast<u32>(field(w[5], 0, 16));
	p.retries = static_cast<u32>(field(w[5], 16, 12));
	if (!aligned(p.address, 4))
		return bad("POLL_REGMEM is not aligned to 4 bytes");
	if (!memory)
		p.address >>= 2;
	return Packet{6, "poll", p};
}

Result decode_cond_exe(Words w)
{
	CondExe c{join(w[1], w[2]), w[3], static_cast<u32>(field(w[4], 0, 14))};

	if (reserved(w[0], op_bits) || reserved(w[4], 0x3fff))
		return bad("reserved bits of COND_EXE");
	if (!aligned(c.address, 4))
		return bad("COND_EXE is not aligned to 4 bytes");
	return Packet{5, "cond_exe", c};
}

// The operation is a code of the texture cache: 0x20 selects 64 bits, 0x40
// says that the old value is not wanted, which makes no difference here.
Result decode_atomic(Words w)
{
	u32 code = static_cast<u32>(field(w[0], 25, 7)) & ~0x40u;
	u32 op = code & ~0x20u;
	Atomic a{static_cast<AtomicOp>(op),
		 code & 0x20 ? 8u : 4u,
		 static_cast<bool>(w[0] >> 16 & 1),
		 join(w[1], w[2]),
		 join(w[3], w[4]),
		 join(w[5], w[6])};

	if (reserved(w[0], op_bits | 1u << 16 | tmz_bit | 0x7fu << 25) ||
	    reserved(w[7], 0x1fff))
		return bad("reserved bits of ATOMIC");
	if (op != 0x07 && op != 0x08 && (op < 0x0f || op > 0x19))
		return bad("operation of ATOMIC");
	if (!aligned(a.address, a.size))
		return bad("ATOMIC is not naturally aligned");
	if (a.loop && a.op != AtomicOp::cmpswap)
		return bad("ATOMIC loops without a comparison");
	return Packet{8, "atomic", a};
}

Result decode_fill(Words w)
{
	u32 size = w[0] >> 30;
	Fill f{join(w[1], w[2]), field(w[4], 0, 30) + 1, w[3], size == 2};

	if (reserved(w[0], op_bits | 3u << 30) || reserved(w[4], 0x3fffffff))
		return bad("reserved bits of CONST_FILL");
	if (size != 0 && size != 2)
		return bad("element size of CONST_FILL");
	if (f.words && !aligned(f.address | f.count, 4))
		return bad("word fill is not aligned to 4 bytes");
	return Packet{5, "fill", f};
}

Result decode_ptepde(Words w)
{
	PtePde p{join(w[1], w[2]), join(w[3], w[4]), join(w[5], w[6]), join(w[7], w[8]),
		 static_cast<u32>(field(w[9], 0, 19)) + 1};

	if (reserved(w[0], op_bits) || reserved(w[9], 0x7ffff))
		return bad("reserved bits of PTEPDE");
	if (!aligned(p.address, 8))
		return bad("PTEPDE is not aligned to 8 bytes");
	return Packet{10, "ptepde", p};
}

Result decode_timestamp(Words w)
{
	u32 sub = w[0] >> 8 & 0xff;
	Timestamp t{join(w[1], w[2]), sub == 0};

	if (reserved(w[0], op_bits | sub_op_bits))
		return bad("reserved bits of TIMESTAMP");
	if (!t.set && !aligned(t.address, 32))
		return bad("TIMESTAMP is not aligned to 32 bytes");
	return Packet{3, "timestamp", t};
}

Result decode_srbm(Words w)
{
	SrbmWrite s{w[1], w[2], w[0] >> 28};

	if (reserved(w[0], op_bits | 0xfu << 28) || reserved(w[1], 0x3ffff))
		return bad("reserved bits of SRBM_WRITE");
	return Packet{3, "srbm_write", s};
}

struct Format {
	u8 op;
	u8 max_sub; // sub-operations 0 to this
	u32 words;  // that the decoder reads
	Result (*decode)(Words);
};

constexpr Format formats[] = {
	{0, 0, 1, decode_nop},	      {2, 0, 4, decode_write},
	{4, 0, 6, decode_indirect},   {5, 0, 4, decode_fence},
	{6, 0, 2, decode_trap},	      {8, 0, 6, decode_poll},
	{9, 0, 5, decode_cond_exe},   {10, 0, 8, decode_atomic},
	{11, 0, 5, decode_fill},      {12, 0, 10, decode_ptepde},
	{13, 2, 3, decode_timestamp}, {14, 0, 3, decode_srbm},
};

Result decode_as(Words w, u32 need, Result (*decode)(Words))
{
	if (w.size() < need)
		return std::unexpected(Malformed{true, "packet is cut short"});
	return decode(w);
}

} // namespace

Result decode(Words w)
{
	if (w.empty())
		return std::unexpected(Malformed{true, "no packet"});
	u32 op = w[0] & 0xff, sub = w[0] >> 8 & 0xff;

	if (op == static_cast<u32>(Op::copy)) {
		if (sub == copy_swap)
			return decode_as(w, 7, decode_swap);
		if (sub == copy_window)
			return decode_as(w, 13, decode_window);
		if (sub == copy_linear)
			return decode_as(w, w[0] & broadcast_bit ? 9 : 7, decode_copy);
		return bad("sub-operation of COPY");
	}
	auto f = std::ranges::find(formats, op, &Format::op);
	if (f == std::end(formats))
		return bad("unknown operation");
	if (sub > f->max_sub)
		return bad("unknown sub-operation");
	return decode_as(w, f->words, f->decode);
}

bool satisfied(Compare compare, u32 value, u32 reference)
{
	switch (compare) {
	case Compare::always: return true;
	case Compare::lt: return value < reference;
	case Compare::le: return value <= reference;
	case Compare::eq: return value == reference;
	case Compare::ne: return value != reference;
	case Compare::ge: return value >= reference;
	case Compare::gt: return value > reference;
	}
	return false;
}

namespace {

template <class U, class S> U apply_as(const Atomic &a, U old)
{
	U s = static_cast<U>(a.source);

	switch (a.op) {
	case AtomicOp::swap: return s;
	case AtomicOp::cmpswap: return old == static_cast<U>(a.compare) ? s : old;
	case AtomicOp::add: return old + s;
	case AtomicOp::sub: return old - s;
	case AtomicOp::smin: return static_cast<S>(s) < static_cast<S>(old) ? s : old;
	case AtomicOp::umin: return std::min(s, old);
	case AtomicOp::smax: return static_cast<S>(s) > static_cast<S>(old) ? s : old;
	case AtomicOp::umax: return std::max(s, old);
	case AtomicOp::and_: return old & s;
	case AtomicOp::or_: return old | s;
	case AtomicOp::xor_: return old ^ s;
	case AtomicOp::inc: return old >= s ? 0 : old + 1;
	case AtomicOp::dec: return old == 0 || old > s ? s : old - 1;
	}
	return old;
}

} // namespace

u64 apply(const Atomic &a, u64 old)
{
	if (a.size == 8)
		return apply_as<u64, std::int64_t>(a, old);
	return apply_as<u32, std::int32_t>(a, static_cast<u32>(old));
}

} // namespace sluice::emu::sdma
