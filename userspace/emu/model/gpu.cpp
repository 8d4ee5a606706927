// SPDX-License-Identifier: MIT
#include "gpu.hpp"

#include <format>

namespace sluice::emu {

namespace {

// Where the driver finds video memory, in units of 16 MiB. The offset is not
// zero, so that a driver that forgets to add or to subtract it hits nothing.
constexpr u32 frame_buffer_base = 0x8000, frame_buffer_offset = 0x40;
// The hole in the aperture that the driver uses for it; 4 KiB.
constexpr u32 remap_page = 0x1a000 / 4;

} // namespace

Gpu::Gpu(const GpuConfig &config, bytes vram, Host &host)
	: config_(config), host_(host), regs_(host), vram_(vram, config.hdp_shadow),
	  ih_(regs_, host, stats_)
{
	unsigned dies =
		(config.engines + reg::engines_per_die - 1) / reg::engines_per_die;
	std::vector<VmHub *> mm;

	gfx_ = std::make_unique<VmHub>(HubIdentity{reg::gfx_layout, reg::gc0,
						   ih_client::utcl2, 1, true,
						   config.member},
				       regs_, vram_, host, ih_, stats_);
	for (unsigned d = 0; d < dies; d++) {
		mm_.push_back(std::make_unique<VmHub>(
			HubIdentity{reg::mm_layout, reg::mmhub_base(d), ih_client::vmc,
				    4 * d, false, config.member},
			regs_, vram_, host, ih_, stats_));
		mm.push_back(mm_.back().get());
	}
	for (unsigned e = 0; e < config.engines; e++)
		sdma_.push_back(std::make_unique<SdmaEngine>(
			e, regs_, *mm_[e / reg::engines_per_die], ih_, timeline_,
			config.seed ? config.seed + e : 0));
	kiq_ = std::make_unique<Kiq>(regs_, *gfx_, mm, timeline_);
	for (VmHub *hub : mm)
		hub->set_policy(config.vm);
	gfx_->set_policy(config.vm);
	hook_nbio();
	hook_hdp();
	hook_graphics();
	hook_atc();
	identify();
}

void Gpu::constant(u32 index, u32 value)
{
	regs_.set(index, value);
	regs_.hook(index, [value] { return value; }, [](u32) {});
	constants_.emplace_back(index, value);
}

// In a hive a hub's frame buffer is the memory of all GPUs.
void Gpu::identify_hub(u32 base, const reg::HubLayout &layout)
{
	const HiveMember &m = config_.member;
	u64 size = m.hive ? m.hive->nodes() * m.hive->segment() : vram_.size();

	constant(base + layout.fb_base, frame_buffer_base);
	constant(base + layout.fb_top,
		 frame_buffer_base + static_cast<u32>((size - 1) >> 24));
	constant(base + layout.fb_offset, frame_buffer_offset);
	if (!m.hive)
		return;
	constant(base + layout.xgmi_cntl, m.node | (m.hive->nodes() - 1) << 4);
	constant(base + layout.xgmi_size, static_cast<u32>(m.hive->segment() >> 24));
}

// Registers that no reset and no driver changes.
void Gpu::identify()
{
	constant(reg::virt_detect, 0);
	constant(reg::memory_size, static_cast<u32>(vram_.size() >> 20));
	constant(reg::revision_strap, 1u << 24);
	constant(reg::memory_partition_status, 1u << 4);
	constant(reg::memory_partition_cap, 1);
	constant(reg::compute_partition_status, 0);
	constant(reg::firmware_ready, 1u << 31);
	identify_hub(reg::gc0, reg::gfx_layout);
	for (unsigned d = 0; d < mm_.size(); d++)
		identify_hub(reg::mmhub_base(d), reg::mm_layout);
}

u32 Gpu::read_mm_data()
{
	u64 at = (regs_.get(reg::mm_index) & 0x7fffffff) |
		 static_cast<u64>(regs_.get(reg::mm_index_hi)) << 31;
	u32 value = ~0u;

	if (const std::byte *p = vram_.device(at, 4))
		std::memcpy(&value, p, 4);
	return value;
}

void Gpu::write_mm_data(u32 value)
{
	u64 at = (regs_.get(reg::mm_index) & 0x7fffffff) |
		 static_cast<u64>(regs_.get(reg::mm_index_hi)) << 31;

	if (std::byte *p = vram_.device(at, 4))
		std::memcpy(p, &value, 4);
}

void Gpu::hook_nbio()
{
	auto smn_address = [this] {
		return join(regs_.get(reg::pcie_index2),
			    regs_.get(reg::pcie_index2_hi) & 0xff);
	};

	regs_.know(reg::mm_index, reg::pcie_index2_hi);
	regs_.hook(reg::mm_data, [this] { return read_mm_data(); },
		   [this](u32 v) { write_mm_data(v); });
	regs_.hook(reg::pcie_data2, [this, smn_address] {
		std::lock_guard guard(smn_lock_);
		auto it = smn_.find(smn_address());
		return it == smn_.end() ? 0 : it->second;
	}, [this, smn_address](u32 v) {
		std::lock_guard guard(smn_lock_);
		smn_[smn_address()] = v;
	});
}

// A flush is requested through the request register, or through a page of
// registers that the driver remaps so that user space can reach it. Each client
// waits for a bit of its own: the next request must not clear it.
void Gpu::hook_hdp()
{
	auto flush = [this] {
		stats_.hdp_flushes.add();
		vram_.hdp_flush();
	};

	regs_.hook(reg::hdp_flush_req, {}, [this, flush](u32 v) {
		flush();
		regs_.set(reg::hdp_flush_req, v);
		regs_.set_bits(reg::hdp_flush_done, v);
	});
	regs_.hook(reg::hdp_flush_done,
		   [this] { return regs_.get(reg::hdp_flush_done); }, [](u32) {});
	for (u32 i = 0; i < page_size / 4; i++)
		regs_.hook(remap_page + i, {}, [this, flush, i](u32 v) {
			u32 index = remap_page + i;
			regs_.set(index, v);
			if (regs_.get(reg::remap_hdp_mem_flush) / 4 == index)
				flush();
		});
}

void Gpu::hook_graphics()
{
	regs_.know(reg::gc0, reg::gc0 + 0x13ff);
	regs_.know(reg::gc1, reg::gc1 + 0x5fff);
	regs_.hook(reg::rlc_safe_mode, {},
		   [this](u32 v) { regs_.set(reg::rlc_safe_mode, v & ~1u); });
	// reading the low half latches the high one
	regs_.hook(reg::clock_lsb, [this] {
		u64 ticks = host_.now() / 10;
		regs_.set(reg::clock_msb, upper(ticks));
		return lower(ticks);
	}, {});
}

void Gpu::hook_atc()
{
	for (u32 v = 0; v < reg::contexts; v++)
		regs_.hook(reg::atc_pasid + v, {}, [this, v](u32 value) {
			regs_.set(reg::atc_pasid + v, value);
			regs_.set(reg::atc_update_status,
				  regs_.get(reg::atc_update_status) | 1u << v);
		});
	regs_.hook(reg::atc_update_status, {}, [this](u32 v) {
		regs_.set(reg::atc_update_status,
			  regs_.get(reg::atc_update_status) & ~v);
	});
}

u32 Gpu::mmio_read(u32 index)
{
	stats_.register_reads.add();
	return regs_.read(index);
}

void Gpu::mmio_write(u32 index, u32 value)
{
	stats_.register_writes.add();
	regs_.write(index, value);
}

void Gpu::doorbell(u64 offset, u64 value, unsigned size)
{
	u32 dword = static_cast<u32>(offset / 4);

	stats_.doorbells.add();
	if (ih_.doorbell(dword, lower(value)) || kiq_->doorbell(dword, value))
		return;
	for (auto &engine : sdma_)
		if (engine->doorbell(dword, value, size)) {
			stats_.engine_doorbells.add();
			return;
		}
	stats_.stray_doorbells.add();
	// a process may ring for a queue that the driver has just taken away
	host_.log(Log::notice,
		  std::format("doorbell {:#x} = {:#x} is nobody's", dword, value));
}

// Engines stop, translations and pending faults are dropped. Registers that the
// driver programs keep their values, as the driver programs them all again.
void Gpu::reset()
{
	stats_.resets.add();
	host_.log(Log::info, "reset");
	kiq_->reset();
	for (auto &engine : sdma_)
		engine->reset();
	ih_.reset();
	gfx_->reset();
	for (auto &hub : mm_)
		hub->reset();
	for (unsigned e = 0; e < engines(); e++)
		for (unsigned q = 0; q < reg::sdma_queues; q++)
			regs_.set(reg::sdma_base(e) + reg::sdma_queue(q), 0);
}

void Gpu::power_on()
{
	reset();
	regs_.reset();
	kiq_->power_on();
	for (auto [index, value] : constants_)
		regs_.set(index, value);
	std::lock_guard guard(smn_lock_);
	smn_.clear();
}

void Gpu::set_retry(const VmPolicy &policy)
{
	gfx_->set_policy(policy);
	for (auto &hub : mm_)
		hub->set_policy(policy);
}

void Gpu::run(unsigned limit)
{
	bool moved = true;

	while (moved && limit--) {
		moved = kiq_->step() == Kiq::Status::progressed;
		for (auto &engine : sdma_)
			moved |= engine->step() == SdmaEngine::Status::progressed;
	}
}

} // namespace sluice::emu
