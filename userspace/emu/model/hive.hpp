// SPDX-License-Identifier: MIT
// GPUs that xGMI links. Their video memory forms one address space, in which
// each GPU has a segment. The end of a segment holds nothing, so that an
// access past a GPU's memory does not hit the next GPU's.
#pragma once

#include "vram.hpp"

#include <functional>
#include <shared_mutex>
#include <vector>

namespace sluice::emu {

class Hive {
public:
	static constexpr unsigned most_nodes = 8;
	using Use = std::function<void(std::byte *at)>;

	Hive(unsigned nodes, u64 segment)
		: segment_(segment), members_(nodes), left_(nodes)
	{
	}

	unsigned nodes() const { return static_cast<unsigned>(members_.size()); }
	u64 segment() const { return segment_; }
	void join(unsigned node, Vram &vram);
	// Returns when the memory is no longer in use.
	void leave(unsigned node);

	// How much memory begins at this offset; 0: there is none.
	u64 room(u64 offset) const;
	// Is it in the segment of a GPU that has left?
	bool lost(u64 offset) const;
	// Let fn work on these bytes; false: they are not one GPU's memory.
	bool use(u64 offset, u64 n, const Use &fn) const;

private:
	Vram *member(u64 offset) const;

	u64 segment_;
	mutable std::shared_mutex lock_;
	std::vector<Vram *> members_;
	std::vector<bool> left_;
};

// A GPU's place in a hive, or in none.
struct HiveMember {
	Hive *hive = nullptr;
	unsigned node = 0;

	// Where its own memory begins.
	u64 start() const { return hive ? node * hive->segment() : 0; }
};

} // namespace sluice::emu
