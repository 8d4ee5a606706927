// SPDX-License-Identifier: MIT
// Counters of one GPU. Relaxed: they order nothing.
#pragma once

#include "types.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace sluice::emu {

class Counter {
public:
	void add(u64 n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
	u64 get() const { return value_.load(std::memory_order_relaxed); }
	void clear() { value_.store(0, std::memory_order_relaxed); }

private:
	std::atomic<u64> value_{0};
};

struct Stats {
	Counter packets, illegal_packets;
	Counter doorbells, engine_doorbells, stray_doorbells;
	Counter bytes_vram, bytes_system, bytes_peer, bytes_message, bytes_xgmi;
	Counter interrupts, faults, retry_faults;
	Counter tlb_hits, tlb_misses, tlb_flushes, hdp_flushes;
	Counter register_reads, register_writes, resets;

	void moved(Path path, u64 n)
	{
		switch (path) {
		case Path::vram: bytes_vram.add(n); break;
		case Path::system: bytes_system.add(n); break;
		case Path::peer: bytes_peer.add(n); break;
		case Path::message: bytes_message.add(n); break;
		case Path::xgmi: bytes_xgmi.add(n); break;
		case Path::none:
		case Path::off: break;
		}
	}

	using Entry = std::pair<std::string_view, Counter Stats::*>;
	static constexpr std::array<Entry, 20> entries{{
		{"packets", &Stats::packets},
		{"illegal_packets", &Stats::illegal_packets},
		{"doorbells", &Stats::doorbells},
		{"engine_doorbells", &Stats::engine_doorbells},
		{"stray_doorbells", &Stats::stray_doorbells},
		{"bytes_vram", &Stats::bytes_vram},
		{"bytes_system", &Stats::bytes_system},
		{"bytes_peer", &Stats::bytes_peer},
		{"bytes_message", &Stats::bytes_message},
		{"bytes_xgmi", &Stats::bytes_xgmi},
		{"interrupts", &Stats::interrupts},
		{"faults", &Stats::faults},
		{"retry_faults", &Stats::retry_faults},
		{"tlb_hits", &Stats::tlb_hits},
		{"tlb_misses", &Stats::tlb_misses},
		{"tlb_flushes", &Stats::tlb_flushes},
		{"hdp_flushes", &Stats::hdp_flushes},
		{"register_reads", &Stats::register_reads},
		{"register_writes", &Stats::register_writes},
		{"resets", &Stats::resets},
	}};
};

} // namespace sluice::emu
