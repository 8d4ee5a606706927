// SPDX-License-Identifier: MIT
// A translation cache that forgets only when told to: an entry survives any
// change of the page tables until an invalidation names its VMID. Hardware
// may forget sooner; a driver that counts on that is wrong. Invalid entries
// are not cached. Not locked: the memory port that owns it is.
#pragma once

#include "page_walker.hpp"

#include <map>
#include <unordered_map>

namespace sluice::emu {

class Tlb {
public:
	const Translation *find(unsigned vmid, u64 va) const
	{
		for (const auto &[shift, level] : levels_) {
			auto it = level.find(key(vmid, va >> shift));
			if (it != level.end())
				return &it->second;
		}
		return nullptr;
	}

	// The address space is 48 bits: the VMID fits above the page number.
	void insert(unsigned vmid, u64 va, const Translation &t)
	{
		levels_[t.shift][key(vmid, va >> t.shift)] = t;
	}

	void flush(u32 vmids)
	{
		for (auto &[shift, level] : levels_)
			std::erase_if(level, [&](const auto &e) {
				return vmids >> (e.first >> vmid_shift) & 1;
			});
	}

	std::size_t size() const
	{
		std::size_t n = 0;
		for (const auto &[shift, level] : levels_)
			n += level.size();
		return n;
	}

private:
	static constexpr unsigned vmid_shift = 48;

	static u64 key(unsigned vmid, u64 page)
	{
		return static_cast<u64>(vmid) << vmid_shift | page;
	}

	std::map<unsigned, std::unordered_map<u64, Translation>> levels_;
};

} // namespace sluice::emu
