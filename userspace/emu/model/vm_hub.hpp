// SPDX-License-Identifier: MIT
// A VM hub: sixteen contexts with their page tables, invalidation engines,
// fault reporting. Engines reach memory through ports (memory_port.hpp).
#pragma once

#include "hive.hpp"
#include "interrupt_ring.hpp"
#include "page_walker.hpp"
#include "vram.hpp"

#include <array>
#include <vector>

namespace sluice::emu {

class MemoryPort;

struct HubIdentity {
	reg::HubLayout layout;
	u32 base;
	u32 client;    // of its fault interrupts
	u32 node;      // the die, as interrupt entries name it
	bool graphics; // else multimedia: SDMA
	HiveMember member;
};

struct VmPolicy {
	bool retry = true;	 // XNACK
	unsigned retry_from = 3; // below: the graphics driver's VMIDs
};

// What an engine does after a fault.
enum class Verdict : u8 {
	default_page, // go on: reads give zero, writes vanish
	retry,	      // park, try again when told
	hang,	      // the driver turned the default page off
};

class VmHub {
public:
	VmHub(const HubIdentity &id, RegisterFile &regs, Vram &vram, Host &host,
	      InterruptRing &ih, Stats &stats);

	// A walk of the tables, never the TLB.
	std::expected<Translation, WalkError> translate(unsigned vmid, u64 va);
	// Context 0 sees video memory at an aperture of its own, untranslated.
	std::optional<u64> aperture(unsigned vmid, u64 va, u64 &left) const;
	u64 frame_buffer_offset() const;
	const HiveMember &member() const { return id_.member; }
	// How much of one GPU's video memory begins at this offset of the frame
	// buffer, which is that of the hive or, without one, of this GPU.
	u64 room(u64 offset) const;
	// Is it in a GPU that has left the hive?
	bool lost(u64 offset) const;

	Verdict fault(unsigned vmid, u64 va, bool write, bool permission, u64 entry);

	// Start to drop these VMIDs' translations. Ports in the middle of an
	// access follow when it ends; the acknowledge registers say when.
	void invalidate(u32 vmids);
	bool invalidating(u32 vmids);
	u32 pasid(unsigned vmid) const;

	void attach(MemoryPort &port) { ports_.push_back(&port); }
	void set_policy(const VmPolicy &p);
	void reset();

	Vram &vram() { return vram_; }
	Host &host() { return host_; }
	Stats &stats() { return stats_; }

private:
	u32 at(u32 offset) const { return id_.base + offset; }
	PageTable table(unsigned vmid) const;
	std::optional<u64> read_entry(u64 address, bool system, bool &off);
	void latch_fault(unsigned vmid, u64 va, bool write, bool permission, u64 entry);
	u32 invalidate_ack(unsigned engine);
	void hook_invalidation();

	HubIdentity id_;
	RegisterFile &regs_;
	Vram &vram_;
	Host &host_;
	InterruptRing &ih_;
	Stats &stats_;
	std::vector<MemoryPort *> ports_;
	std::atomic<bool> retry_{true};
	std::atomic<unsigned> retry_from_{3};
	std::array<std::atomic<u32>, reg::invalidate_engines> requested_{};
};

} // namespace sluice::emu
