// SPDX-License-Identifier: MIT
// Video memory with its two views. Engines see the memory itself. The host
// sees it through BAR 0 and the host data path (HDP), which may hold writes
// back until a flush: with the shadow on, a trapped host write stays invisible
// to the engines until then, so that a driver that forgets the flush reads
// stale data. With the BAR mapped the host writes straight to memory and
// nothing can be held back.
#pragma once

#include "types.hpp"

#include <array>
#include <bitset>
#include <map>
#include <mutex>

namespace sluice::emu {

class Vram {
public:
	Vram(bytes memory, bool shadow) : memory_(memory), shadow_(shadow) {}

	u64 size() const { return memory_.size(); }
	bool shadowed() const { return shadow_; }

	// The engines' view; nullptr if any of it lies outside.
	std::byte *device(u64 offset, u64 n);

	// The host's view. Out of range reads give ones, writes vanish.
	void host_read(u64 offset, bytes out);
	void host_write(u64 offset, const_bytes in);
	void hdp_flush();
	std::size_t pending_pages() const;

	// Fill with a pattern that no driver mistakes for its data.
	void poison(u64 offset, u64 n);

private:
	struct Page {
		std::array<std::byte, page_size> data;
		std::bitset<page_size> dirty;
	};

	bytes memory_;
	bool shadow_;
	mutable std::mutex lock_;
	std::map<u64, Page> pages_;
};

} // namespace sluice::emu
