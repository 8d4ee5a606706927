// SPDX-License-Identifier: MIT
#include "kiq.hpp"

#include <format>

namespace sluice::emu {

namespace {

enum Pm4 : u32 {
	nop = 0x10,
	write_data_op = 0x37,
	wait_reg_mem_op = 0x3c,
	copy_data_op = 0x40,
	release_mem_op = 0x49,
	acquire_mem = 0x58,
	set_uconfig_reg = 0x79,
	invalidate_tlbs_op = 0x98,
	set_resources = 0xa0,
	map_queues = 0xa2,
	unmap_queues = 0xa3,
	query_status = 0xa4,
};

constexpr u32 doorbell_enable = 1u << 30;
constexpr u32 pasid_valid = 1u << 31;

// Fewest words after the header that the handlers read.
unsigned needed(u32 op)
{
	switch (op) {
	case write_data_op: return 4;
	case wait_reg_mem_op: return 6;
	case copy_data_op: return 5;
	case release_mem_op: return 6;
	case set_uconfig_reg: return 2;
	case invalidate_tlbs_op: return 1;
	default: return 0;
	}
}

} // namespace

Kiq::Kiq(RegisterFile &regs, VmHub &gfx, std::vector<VmHub *> mm, Timeline &timeline)
	: regs_(regs), gfx_(gfx), mm_(std::move(mm)), timeline_(timeline), port_(gfx)
{
	hook_queues();
}

// Each queue has registers of its own at the same place.
void Kiq::hook_queues()
{
	for (u32 i = reg::hqd_first; i <= reg::hqd_last; i++)
		regs_.hook(i, [this, i] { return word(selected(), i).load(); },
			   [this, i](u32 v) { word(selected(), i) = v; });
	regs_.hook(reg::hqd_active, {}, [this](u32 v) { activate(selected(), v); });
	regs_.hook(reg::hqd_dequeue, {}, [this](u32 v) {
		word(selected(), reg::hqd_dequeue) = v;
		if (v & 0xf)
			activate(selected(), 0);
	});
}

unsigned Kiq::selected() const
{
	u32 v = regs_.get(reg::grbm_gfx_cntl);

	return (v >> 2 & 3) << 5 | (v & 3) << 3 | (v >> 8 & 7);
}

bool Kiq::is_own(unsigned queue) const
{
	return (regs_.get(reg::rlc_cp_schedulers) & 0xff) == (0x80 | queue);
}

std::atomic<u32> &Kiq::word(unsigned queue, u32 index)
{
	return hqd_[queue * words + index - reg::hqd_first];
}

u32 Kiq::own(u32 index)
{
	return word(regs_.get(reg::rlc_cp_schedulers) & 0x7f, index);
}

u64 Kiq::own64(u32 index)
{
	return join(own(index), own(index + 1));
}

void Kiq::activate(unsigned queue, u32 value)
{
	word(queue, reg::hqd_active) = value & 1;
	if (!is_own(queue))
		return;
	if (!(value & 1)) {
		on_ = false;
		return;
	}
	rptr_ = wptr_ = own(reg::hqd_rptr);
	on_ = true;
}

bool Kiq::doorbell(u32 dword, u64 value)
{
	u32 v = own(reg::hqd_doorbell);

	if (!on_ || !(v & doorbell_enable) || (v & 0x0ffffffc) >> 2 != dword)
		return false;
	wptr_ = value;
	gfx_.host().kick();
	return true;
}

void Kiq::reset()
{
	on_ = false;
	started_ = false;
	wptr_ = rptr_ = 0;
	for (unsigned q = 0; q < queues; q++)
		word(q, reg::hqd_active) = 0;
}

void Kiq::power_on()
{
	for (auto &w : hqd_)
		w = 0;
}

Access Kiq::fetch(u64 position, std::span<u32> out)
{
	u64 base = own64(reg::hqd_base) << 8;
	u64 mask = (2ull << (own(reg::hqd_control) & 0x3f)) - 1;

	for (u32 &word : out) {
		Access a = port_.read(0, base + (position++ & mask) * 4,
				      as_mutable_bytes(word));
		if (a != Access::ok)
			return a;
	}
	return Access::ok;
}

void Kiq::report(u64 rptr)
{
	u64 mask = (2ull << (own(reg::hqd_control) & 0x3f)) - 1;
	u32 value = static_cast<u32>(rptr & mask);

	port_.write(0, own64(reg::hqd_report), as_const_bytes(value));
}

// A queue that is reset while the engine looks at it has no packets.
void Kiq::complain(std::string_view what)
{
	if (on_)
		gfx_.host().log(Log::error, what);
}

Kiq::Status Kiq::step()
{
	if (!on_ || rptr_ == wptr_)
		return Status::idle;
	if (wptr_ - rptr_ > 2ull << (own(reg::hqd_control) & 0x3f)) {
		complain("KIQ write pointer outside the ring");
		rptr_ = wptr_.load();
		return Status::idle;
	}
	return run_packet();
}

Kiq::Status Kiq::run_packet()
{
	u64 start = gfx_.host().now();
	u32 header = 0;

	if (fetch(rptr_, {&header, 1}) != Access::ok)
		return Status::blocked;
	u32 op = header >> 8 & 0xff, count = (header >> 16 & 0x3fff) + 1;
	if (header >> 30 != 3 || (op == nop && count == 0x4000))
		count = 0; // a filler of one word
	std::vector<u32> args(count);
	if (count >= wptr_ - rptr_ || args.size() < needed(op)) {
		complain(std::format("KIQ packet {:#x} cut short", header));
		rptr_ = wptr_.load();
		return Status::progressed;
	}
	if (fetch(rptr_ + 1, args) != Access::ok)
		return Status::blocked;
	if (count && execute(op, args) == Outcome::wait)
		return Status::blocked;
	started_ = false;
	rptr_ += 1 + count;
	report(rptr_);
	gfx_.stats().packets.add();
	timeline_.record({.name = "pm4",
			  .start = start,
			  .end = gfx_.host().now(),
			  .track = track,
			  .words = 1 + count});
	return Status::progressed;
}

Kiq::Outcome Kiq::execute(u32 op, Words a)
{
	switch (op) {
	case set_uconfig_reg: set_uconfig(a); break;
	case write_data_op: write_data(a); break;
	case wait_reg_mem_op: return wait_reg_mem(a);
	case release_mem_op: release_mem(a); break;
	case copy_data_op: copy_data(a); break;
	case invalidate_tlbs_op: return invalidate_tlbs(a);
	case nop:
	case acquire_mem:
	case set_resources: break;
	case map_queues:
	case unmap_queues:
	case query_status:
		gfx_.host().log(Log::warning, "compute queues are not modelled");
		break;
	default:
		gfx_.stats().illegal_packets.add();
		complain(std::format("PM4 operation {:#x}", op));
	}
	return Outcome::done;
}

void Kiq::set_uconfig(Words a)
{
	for (u32 i = 1; i < a.size(); i++)
		regs_.write(reg::uconfig + (a[0] & 0xffff) + i - 1, a[i]);
}

void Kiq::write_data(Words a)
{
	u32 destination = a[0] >> 8 & 0xf;

	if (destination == 0)
		regs_.write(a[1], a[3]);
	else
		port_.write(0, join(a[1], a[2]), std::as_bytes(a.subspan(3)));
}

// Operation 1 writes a register first and waits on a second one.
Kiq::Outcome Kiq::wait_reg_mem(Words a)
{
	bool memory = a[0] >> 4 & 1, write_first = (a[0] >> 6 & 3) == 1;
	u32 function = a[0] & 7, reference = a[3] & a[4], value = 0;

	if (memory) {
		port_.read(0, join(a[1], a[2]), as_mutable_bytes(value));
	} else if (write_first) {
		if (!started_)
			regs_.write(a[1], a[3]);
		started_ = true;
		value = regs_.read(a[2]);
	} else {
		value = regs_.read(a[1]);
	}
	value &= a[4];
	bool equal = value == reference;
	bool ok = function == 0 || (function == 3 && equal) ||
		  (function == 4 && !equal) || (function == 5 && value >= reference) ||
		  (function == 6 && value > reference) ||
		  (function == 1 && value < reference) ||
		  (function == 2 && value <= reference);
	return ok ? Outcome::done : Outcome::wait;
}

void Kiq::release_mem(Words a)
{
	u64 address = join(a[2], a[3]), value = join(a[4], a[5]);
	u32 select = a[1] >> 29;

	if (select == 1)
		port_.write(0, address, as_const_bytes(value).first(4));
	else if (select == 2)
		port_.write(0, address, as_const_bytes(value));
}

void Kiq::copy_data(Words a)
{
	u32 source = a[0] & 0xf, destination = a[0] >> 8 & 0xf;
	u32 value = source == 0 ? regs_.read(a[1]) : 0;

	if (destination == 0)
		regs_.write(a[3], value);
	else
		port_.write(0, join(a[3], a[4]), as_const_bytes(value));
}

// Only the graphics hub unless the packet asks for all hubs.
Kiq::Outcome Kiq::invalidate_tlbs(Words a)
{
	u32 pasid = a[0] >> 5 & 0xffff, vmids = 0;
	bool all = a[0] >> 4 & 1, busy;

	for (unsigned v = 1; v < reg::contexts; v++) {
		u32 map = regs_.get(reg::atc_pasid + v);
		if (map & pasid_valid && (map & 0xffff) == pasid)
			vmids |= 1u << v;
	}
	if (!started_) {
		gfx_.invalidate(vmids);
		for (VmHub *hub : mm_)
			if (all)
				hub->invalidate(vmids);
		started_ = true;
	}
	busy = gfx_.invalidating(vmids);
	for (VmHub *hub : mm_)
		busy |= all && hub->invalidating(vmids);
	return busy ? Outcome::wait : Outcome::done;
}

} // namespace sluice::emu
