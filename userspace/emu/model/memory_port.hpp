// SPDX-License-Identifier: MIT
// One engine's way to memory: its own TLB in front of a hub's page tables.
// Used by one engine thread; invalidations come from any other.
#pragma once

#include "tlb.hpp"
#include "vm_hub.hpp"

#include <mutex>

namespace sluice::emu {

enum class Access : u8 { ok, retry, hang };

class MemoryPort {
public:
	explicit MemoryPort(VmHub &hub);

	// Transfers stop at the first page that wants a retry or hangs; done
	// says how many bytes went through before. A read hangs if the GPU may not
	// use the bus: there is nothing that an engine could take for data.
	Access read(unsigned vmid, u64 va, bytes out, u64 &done);
	Access write(unsigned vmid, u64 va, const_bytes in, u64 &done);
	Access read(unsigned vmid, u64 va, bytes out);
	Access write(unsigned vmid, u64 va, const_bytes in);
	Access update(unsigned vmid, u64 va, unsigned size, const AtomicUpdate &fn,
		      u64 &old);
	// Where the last access ended.
	const Place &last() const { return last_; }
	// Could the first byte of the range be written now?
	Access probe(unsigned vmid, u64 va, bool write);

	// From other threads: forget now, or when the present access ends.
	void invalidate(u32 vmids);
	// Tries to forget; returns the VMIDs that are still pending.
	u32 drain();

private:
	// A run of bytes that is contiguous at its destination.
	struct Target {
		enum Kind : u8 { vram, peer, system, zero } kind = zero;
		// in this GPU's memory, in the hive's, on the bus
		u64 address = 0;
		u64 length = 0;
	};
	static constexpr u64 chunk = 64 << 10;

	Access locate(unsigned vmid, u64 va, u64 n, bool write, Target &out);
	Access place(const Translation &t, u64 va, u64 n, Target &out);
	void place_memory(u64 offset, Target &out);
	Access faulted(unsigned vmid, u64 va, u64 n, bool write, bool permission,
		       u64 entry, Target &out);
	Access load(const Target &t, std::byte *to);
	void store(const Target &t, const std::byte *from);
	Path by_link(const Target &t, const Hive::Use &fn);
	void account(const Target &t, Path path, u64 n);
	void forget();

	VmHub &hub_;
	std::mutex lock_; // held for the length of one chunk
	Tlb tlb_;
	std::atomic<u32> pending_{0};
	u64 last_fault_ = ~0ull;
	Place last_; // the engine thread's own
};

} // namespace sluice::emu
