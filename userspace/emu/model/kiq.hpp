// SPDX-License-Identifier: MIT
// The kernel interface queue of the compute microengine, as far as a driver
// without compute rings needs it: register writes, waits, fences and TLB
// invalidations by PASID. Other compute queues can be set up and removed, but run
// nothing. Threads: as for SdmaEngine.
#pragma once

#include "memory_port.hpp"
#include "timeline.hpp"

namespace sluice::emu {

class Kiq {
public:
	enum class Status : u8 { idle, progressed, blocked };
	static constexpr unsigned track = 100; // in the timeline

	Kiq(RegisterFile &regs, VmHub &gfx, std::vector<VmHub *> mm,
	    Timeline &timeline);

	Status step();
	bool doorbell(u32 dword, u64 value);
	void reset();
	void power_on();

private:
	enum class Outcome : u8 { done, wait };
	using Words = std::span<const u32>;

	// A queue by its number: engine, pipe and queue, as in RLC_CP_SCHEDULERS.
	static constexpr unsigned queues = 128;
	static constexpr u32 words = reg::hqd_last - reg::hqd_first + 1;

	void hook_queues();
	unsigned selected() const;
	bool is_own(unsigned queue) const;
	std::atomic<u32> &word(unsigned queue, u32 index);
	u32 own(u32 index);
	u64 own64(u32 index);
	void activate(unsigned queue, u32 value);
	Access fetch(u64 position, std::span<u32> out);
	void complain(std::string_view what);
	Status run_packet();
	Outcome execute(u32 op, Words args);
	void set_uconfig(Words a);
	void write_data(Words a);
	Outcome wait_reg_mem(Words a);
	void release_mem(Words a);
	void copy_data(Words a);
	Outcome invalidate_tlbs(Words a);
	void report(u64 rptr);

	RegisterFile &regs_;
	VmHub &gfx_;
	std::vector<VmHub *> mm_;
	Timeline &timeline_;
	MemoryPort port_;
	std::array<std::atomic<u32>, std::size_t{queues} * words> hqd_{};
	std::atomic<bool> on_{false};
	std::atomic<u64> wptr_{0}, rptr_{0}; // in words, never wrapped
	bool started_ = false;		     // the side effect of a packet that waits
};

} // namespace sluice::emu
