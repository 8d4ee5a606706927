// SPDX-License-Identifier: MIT
// One MI300X, cut down: register aperture, video memory, VM hubs, SDMA
// engines, the kernel interface queue and the interrupt ring. No I/O: the
// device in front of it supplies a Host and the threads that call step().
#pragma once

#include "kiq.hpp"
#include "sdma_engine.hpp"

#include <map>
#include <memory>

namespace sluice::emu {

struct GpuConfig {
	unsigned engines = 2;	 // 1 to reg::max_engines
	u64 seed = 0;		 // 0: no delays, no reordering
	bool hdp_shadow = false; // hold host writes back until a flush
	VmPolicy vm;
	HiveMember member;
};

class Gpu {
public:
	Gpu(const GpuConfig &config, bytes vram, Host &host);

	u32 mmio_read(u32 index);
	void mmio_write(u32 index, u32 value);
	// offset in bytes; size 4 or 8
	void doorbell(u64 offset, u64 value, unsigned size);
	// What a driver's reset does; power_on() forgets the registers too.
	void reset();
	void power_on();

	unsigned engines() const { return static_cast<unsigned>(sdma_.size()); }
	SdmaEngine &engine(unsigned i) { return *sdma_[i]; }
	Kiq &kiq() { return *kiq_; }
	Vram &vram() { return vram_; }
	Stats &stats() { return stats_; }
	Timeline &timeline() { return timeline_; }
	RegisterFile &registers() { return regs_; }
	VmHub &mm_hub(unsigned die) { return *mm_[die]; }
	VmHub &gfx_hub() { return *gfx_; }
	void set_retry(const VmPolicy &policy);
	// Run everything runnable until nothing moves: for tests and fuzzers.
	void run(unsigned limit = 100000);

private:
	void identify();
	void constant(u32 index, u32 value);
	void identify_hub(u32 base, const reg::HubLayout &layout);
	void hook_nbio();
	void hook_graphics();
	void hook_atc();
	void hook_hdp();
	void write_mm_data(u32 value);
	u32 read_mm_data();

	GpuConfig config_;
	Host &host_;
	Stats stats_;
	Timeline timeline_;
	RegisterFile regs_;
	Vram vram_;
	InterruptRing ih_;
	std::unique_ptr<VmHub> gfx_;
	std::vector<std::unique_ptr<VmHub>> mm_;
	std::vector<std::unique_ptr<SdmaEngine>> sdma_;
	std::unique_ptr<Kiq> kiq_;
	std::vector<std::pair<u32, u32>> constants_;
	std::mutex smn_lock_;
	std::map<u64, u32> smn_;
};

} // namespace sluice::emu
