// SPDX-License-Identifier: MIT
#include "page_walker.hpp"

namespace sluice::emu {

using Result = std::expected<Translation, WalkError>;

namespace {

Result fail(WalkError::Cause cause, u64 value)
{
	return std::unexpected(WalkError{cause, value});
}

std::optional<u64> fetch(const ReadEntry &read, u64 directory, u64 index)
{
	return read((directory & pte::directory_mask) + index * 8,
		    directory & pte::system);
}

// The base is used unchanged. The driver maps 1 GiB entries with bases that
// are not multiples of 1 GiB: cutting the base down to the page's size would
// address other memory.
Result leaf(u64 entry, unsigned shift)
{
	Translation t;

	if (pte::ends_retries(entry))
		return fail(WalkError::entry, entry);
	if (!(entry & pte::valid)) {
		if (!(entry & pte::prt))
			return fail(WalkError::entry, entry);
		t.prt = t.readable = t.writable = true;
		return t;
	}
	t.address = entry & pte::address_mask;
	t.shift = shift;
	t.system = entry & pte::system;
	t.readable = entry & pte::readable;
	t.writable = entry & pte::writable;
	return t;
}

// The last level. Its entries cover 2^fragment pages each; one that says
// "further" points at a table of single pages instead.
Result last_level(const PageTable &table, u64 directory, u64 page, unsigned fragment,
		  const ReadEntry &read)
{
	u64 index = page;

	if (table.depth) {
		u64 covered = 1ull << (9 + table.block);
		index = (page & (covered - 1)) >> fragment;
	}
	auto entry = fetch(read, directory, index);
	if (!entry)
		return fail(WalkError::unreachable, directory);
	if (!(*entry & pte::valid) || !(*entry & pte::further))
		return leaf(*entry, page_shift + fragment);

	auto single = fetch(read, *entry, page & ((1ull << fragment) - 1));
	if (!single)
		return fail(WalkError::unreachable, *entry);
	return leaf(*single, page_shift);
}

} // namespace

Result walk(const PageTable &table, u64 va, const ReadEntry &read)
{
	if (!table.enabled)
		return fail(WalkError::disabled, 0);
	if (va < table.start || va > table.end)
		return fail(WalkError::range, va);
	if (!(table.base & pte::valid))
		return fail(WalkError::directory, table.base);

	u64 page = (va - table.start) >> page_shift;
	u64 directory = table.base;
	unsigned fragment = 0;

	for (unsigned level = table.depth; level > 0; level--) {
		unsigned bits = 9 + table.block + 9 * (level - 1);
		auto entry = fetch(read, directory, page >> bits & 511);
		if (!entry)
			return fail(WalkError::unreachable, directory);
		if (!(*entry & pte::valid))
			return fail(WalkError::directory, *entry);
		if (*entry & pte::is_pte)
			return leaf(*entry, page_shift + bits);
		directory = *entry;
		fragment = pte::fragment(*entry);
	}
	return last_level(table, directory, page, fragment, read);
}

} // namespace sluice::emu
