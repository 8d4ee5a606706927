// SPDX-License-Identifier: MIT
#include "interrupt_ring.hpp"

#include <algorithm>
#include <format>

namespace sluice::emu {

namespace {
constexpr u32 cntl_enable = 1u << 0, cntl_interrupt = 1u << 17,
	      cntl_clear_overflow = 1u << 31;
// bits that make it another ring: on or off, its size
constexpr u32 cntl_setup = 0x3f;
constexpr u32 wptr_overflow = 1u << 0;
constexpr u32 doorbell_enable = 1u << 28, doorbell_mask = 0x03ffffff;
} // namespace

InterruptRing::InterruptRing(RegisterFile &regs, Host &host, Stats &stats)
	: regs_(regs), host_(host), stats_(stats)
{
	regs.hook(reg::ih_cntl, {}, [this](u32 v) { write_cntl(v); });
	regs.know(reg::oss, reg::oss + 0xff);
}

void InterruptRing::write_cntl(u32 value)
{
	std::lock_guard guard(state_lock_);

	if ((value ^ regs_.get(reg::ih_cntl)) & cntl_setup)
		setups_++;
	regs_.set(reg::ih_cntl, value);
	if (value & cntl_clear_overflow)
		regs_.set(reg::ih_wptr, regs_.get(reg::ih_wptr) & ~wptr_overflow);
}

InterruptRing::Place InterruptRing::next_place()
{
	std::lock_guard guard(state_lock_);
	u32 cntl = regs_.get(reg::ih_cntl);
	u32 mask = (4u << std::min(field(cntl, 1, 5), u64{20})) - 1;

	return {setups_, (cntl & cntl_enable) != 0, mask,
		join(regs_.get(reg::ih_base), regs_.get(reg::ih_base_hi) & 0xff) << 8,
		regs_.get(reg::ih_wptr) & mask & ~(entry_size - 1)};
}

// The new write pointer, unless the ring has been set up anew meanwhile.
std::optional<u32> InterruptRing::advance(const Place &p)
{
	std::lock_guard guard(state_lock_);

	if (setups_ != p.setup)
		return std::nullopt;
	u32 wptr = (p.wptr + entry_size) & p.mask;
	if (wptr == (regs_.get(reg::ih_rptr) & p.mask))
		wptr |= wptr_overflow;
	regs_.set(reg::ih_wptr, wptr);
	return wptr;
}

void InterruptRing::publish_wptr(u32 wptr)
{
	u64 at = join(regs_.get(reg::ih_wptr_addr_lo),
		      regs_.get(reg::ih_wptr_addr_hi) & 0xffff);

	if (!reached(host_.write(at, as_const_bytes(wptr))))
		host_.log(Log::info,
			  std::format("interrupt write pointer at {:#x}", at));
}

void InterruptRing::push(const Interrupt &irq)
{
	std::lock_guard guard(push_lock_);
	Place p = next_place();

	if (!p.enabled)
		return;
	u64 time = host_.now() / 10;
	const std::array<u32, 8> entry{irq.client | irq.source << 8 | irq.ring << 16 |
					       irq.vmid << 24 | irq.vmid_source << 31,
				       lower(time),
				       upper(time) & 0xffff,
				       irq.pasid | irq.node << 16,
				       irq.data[0],
				       irq.data[1],
				       irq.data[2],
				       irq.data[3]};

	if (!reached(host_.write(p.base + p.wptr, std::as_bytes(std::span(entry))))) {
		host_.log(Log::info, std::format("interrupt ring at {:#x}", p.base));
		return;
	}
	auto wptr = advance(p);
	if (!wptr)
		return;
	publish_wptr(*wptr);
	if (regs_.get(reg::ih_cntl) & cntl_interrupt) {
		stats_.interrupts.add();
		host_.interrupt();
	}
}

std::optional<u32> InterruptRing::cam_enter(u32 vmid, u64 page, bool write)
{
	std::lock_guard guard(cam_lock_);
	std::pair key{static_cast<u64>(vmid) << 48 | page, write};

	if (cam_.size() >= cam_entries || cam_.contains(key))
		return std::nullopt;
	auto used = [this](u32 i) {
		return std::ranges::any_of(
			cam_, [i](const auto &e) { return e.second == i; });
	};
	do
		next_cam_ = (next_cam_ + 1) % cam_entries;
	while (used(next_cam_));
	cam_[key] = next_cam_;
	return next_cam_;
}

void InterruptRing::cam_leave(u32 index)
{
	std::lock_guard guard(cam_lock_);

	std::erase_if(cam_, [index](const auto &e) { return e.second == index; });
}

bool InterruptRing::doorbell(u32 dword, u32 value)
{
	auto ours = [&](u32 index) {
		u32 v = regs_.get(index);
		return v & doorbell_enable && (v & doorbell_mask) == dword;
	};

	if (ours(reg::ih_doorbell)) {
		regs_.set(reg::ih_rptr, value);
		return true;
	}
	if (ours(reg::ih_cam_doorbell)) {
		cam_leave(value & (cam_entries - 1));
		host_.kick();
		return true;
	}
	return false;
}

void InterruptRing::reset()
{
	{
		std::lock_guard guard(cam_lock_);
		cam_.clear();
	}
	write_cntl(0);
}

} // namespace sluice::emu
