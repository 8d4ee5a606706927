// SPDX-License-Identifier: MIT
// The page table walk of one context of a VM hub, as gfx9 does it.
#pragma once

#include "types.hpp"

#include <expected>
#include <functional>
#include <optional>

namespace sluice::emu {

namespace pte {
constexpr u64 valid = 1ull << 0, system = 1ull << 1, executable = 1ull << 4,
	      readable = 1ull << 5, writable = 1ull << 6, prt = 1ull << 51,
	      is_pte = 1ull << 54, further = 1ull << 56;
constexpr u64 address_mask = 0x0000fffffffff000ull;
// A base of a directory may be aligned to 64 bytes only.
constexpr u64 directory_mask = 0x0000ffffffffffc0ull;

constexpr unsigned fragment(u64 e)
{
	return static_cast<unsigned>(field(e, 59, 5));
}

// A client that faults at one of these is never asked to retry. The first is not
// valid; the second is what drivers write where entries may be translated further.
constexpr u64 no_retry = executable | is_pte | further;
constexpr u64 no_retry_further = valid | system | prt;

constexpr bool ends_retries(u64 e)
{
	return (e & (no_retry | valid)) == no_retry ||
	       (e & no_retry_further) == no_retry_further;
}
} // namespace pte

// One context's registers.
struct PageTable {
	bool enabled = false;
	unsigned depth = 0; // levels of directories above the page table
	unsigned block = 0; // a last-level directory entry covers 2^(9+block)
	u64 base = 0;	    // like an entry: valid and system bits, address
	u64 start = 0, end = 0;
	bool retry = false;
};

struct Translation {
	u64 address = 0; // of the page's first byte
	unsigned shift = page_shift;
	bool system = false, readable = false, writable = false;
	bool prt = false; // reads zero, swallows writes
};

struct WalkError {
	// off: the table is on the bus, which the GPU may not use
	enum Cause : u8 { disabled, range, directory, entry, unreachable, off };
	Cause cause;
	u64 value; // the entry that stopped the walk
};

// Reads the eight bytes of an entry; nothing if no memory is there.
using ReadEntry = std::function<std::optional<u64>(u64 address, bool system)>;

std::expected<Translation, WalkError> walk(const PageTable &table, u64 va,
					   const ReadEntry &read);

} // namespace sluice::emu
