// SPDX-License-Identifier: MIT
#include "vm_hub.hpp"

#include "memory_port.hpp"

#include <format>

namespace sluice::emu {

namespace {

constexpr u64 va_mask = 0x0000ffffffffffffull;
constexpr u32 status_more = 1u << 0, status_permission_read = 1u << 6,
	      status_permission_write = 1u << 7, status_valid = 1u << 4,
	      status_write = 1u << 18;
constexpr u32 cntl_clear_status = 1u << 0, cntl_default_valid = 1u << 9,
	      cntl_crash = 1u << 30;
constexpr u32 data_write = 0x20, data_read = 0x40, data_retry = 0x80;
constexpr u32 vmid_mask = 0xffff;

} // namespace

VmHub::VmHub(const HubIdentity &id, RegisterFile &regs, Vram &vram, Host &host,
	     InterruptRing &ih, Stats &stats)
	: id_(id), regs_(regs), vram_(vram), host_(host), ih_(ih), stats_(stats)
{
	const reg::HubLayout &l = id.layout;

	regs.know(at(l.context_cntl), at(l.context_cntl + 15));
	regs.know(at(l.page_table_base), at(l.page_table_end + 31));
	regs.know(at(l.fault_cntl), at(l.fault_addr + 8));
	regs.hook(at(l.fault_cntl), {}, [this, &l = id_.layout](u32 v) {
		regs_.set(at(l.fault_cntl), v & ~cntl_clear_status);
		if (v & cntl_clear_status)
			regs_.set(at(l.fault_status), 0);
	});
	hook_invalidation();
}

void VmHub::hook_invalidation()
{
	const reg::HubLayout &l = id_.layout;

	for (unsigned e = 0; e < reg::invalidate_engines; e++) {
		// reading 1 takes the semaphore; there is no contention here
		regs_.hook(at(l.inv_sem + e), [] { return 1u; }, [](u32) {});
		regs_.hook(at(l.inv_req + e), {}, [this, e](u32 v) {
			regs_.set(at(id_.layout.inv_req + e), v);
			requested_[e] = v & vmid_mask;
			invalidate(v & vmid_mask);
		});
		regs_.hook(at(l.inv_ack + e), [this, e] { return invalidate_ack(e); },
			   [](u32) {});
	}
}

u32 VmHub::invalidate_ack(unsigned engine)
{
	u32 done = requested_[engine];

	for (MemoryPort *port : ports_)
		done &= ~port->drain();
	return done;
}

void VmHub::invalidate(u32 vmids)
{
	stats_.tlb_flushes.add();
	for (MemoryPort *port : ports_)
		port->invalidate(vmids);
}

bool VmHub::invalidating(u32 vmids)
{
	u32 left = 0;

	for (MemoryPort *port : ports_)
		left |= port->drain();
	return left & vmids;
}

PageTable VmHub::table(unsigned vmid) const
{
	const reg::HubLayout &l = id_.layout;
	u32 cntl = regs_.get(at(l.context_cntl + vmid));
	PageTable t;

	t.enabled = cntl & 1;
	t.depth = static_cast<unsigned>(field(cntl, 1, 2));
	t.block = static_cast<unsigned>(field(cntl, 3, 4));
	t.retry = field(cntl, 7, 1);
	t.base = regs_.get64(at(l.page_table_base + 2 * vmid));
	t.start = regs_.get64(at(l.page_table_start + 2 * vmid)) << page_shift;
	t.end = (regs_.get64(at(l.page_table_end + 2 * vmid)) << page_shift) |
		(page_size - 1);
	return t;
}

std::optional<u64> VmHub::read_entry(u64 address, bool system, bool &off)
{
	u64 entry = 0;

	if (system) {
		Path path = host_.read(address, as_mutable_bytes(entry));
		off |= path == Path::off;
		return reached(path) ? std::optional(entry) : std::nullopt;
	}
	// page tables in another GPU's memory are not followed
	const std::byte *p =
		vram_.device(address - frame_buffer_offset() - id_.member.start(), 8);
	if (!p)
		return std::nullopt;
	copy_shared(reinterpret_cast<std::byte *>(&entry), p, 8);
	return entry;
}

std::expected<Translation, WalkError> VmHub::translate(unsigned vmid, u64 va)
{
	bool off = false;
	auto found = walk(table(vmid), va & va_mask, [&](u64 a, bool system) {
		return read_entry(a, system, off);
	});

	if (off)
		return std::unexpected(WalkError{WalkError::off, 0});
	return found;
}

std::optional<u64> VmHub::aperture(unsigned vmid, u64 va, u64 &left) const
{
	if (vmid)
		return std::nullopt;
	u64 base = static_cast<u64>(regs_.get(at(id_.layout.fb_base))) << 24;
	u64 offset = va - base;
	if (va < base)
		return std::nullopt;
	left = room(offset);
	return left ? std::optional(offset) : std::nullopt;
}

// A GPU that has left its hive still has its own memory.
u64 VmHub::room(u64 offset) const
{
	const HiveMember &m = id_.member;
	u64 own = offset - m.start();

	if (own < vram_.size())
		return vram_.size() - own;
	return m.hive ? m.hive->room(offset) : 0;
}

bool VmHub::lost(u64 offset) const
{
	const Hive *hive = member().hive;

	return hive && hive->lost(offset);
}

u64 VmHub::frame_buffer_offset() const
{
	return static_cast<u64>(regs_.get(at(id_.layout.fb_offset))) << 24;
}

u32 VmHub::pasid(unsigned vmid) const
{
	u32 lut = id_.graphics ? reg::ih_pasid_gfx : reg::ih_pasid_mm;

	return vmid ? regs_.get(lut + vmid) & 0xffff : 0;
}

void VmHub::latch_fault(unsigned vmid, u64 va, bool write, bool permission, u64 entry)
{
	u32 status = regs_.get(at(id_.layout.fault_status));

	if (status) {
		regs_.set(at(id_.layout.fault_status), status | status_more);
		return;
	}
	status = vmid << 20 | (write ? status_write : 0);
	if (!permission)
		status |= status_valid;
	else
		status |= write ? status_permission_write : status_permission_read;
	regs_.set(at(id_.layout.fault_status), status);
	regs_.set(at(id_.layout.fault_addr), lower(va >> page_shift));
	regs_.set(at(id_.layout.fault_addr + 1), upper(va >> page_shift));
	host_.log(Log::info, std::format("VM fault: vmid {} {} at {:#x}, entry {:#x}",
					 vmid, write ? "write" : "read", va, entry));
}

Verdict VmHub::fault(unsigned vmid, u64 va, bool write, bool permission, u64 entry)
{
	Interrupt irq;
	bool retry = retry_ && vmid >= retry_from_ && table(vmid).retry &&
		     !pte::ends_retries(entry);

	va &= va_mask;
	irq.client = id_.client;
	irq.vmid = vmid;
	irq.vmid_source = !id_.graphics;
	irq.pasid = pasid(vmid);
	irq.node = id_.node;
	irq.data[0] = lower(va >> page_shift);
	irq.data[1] =
		(upper(va >> page_shift) & 0xf) | (write ? data_write : data_read);
	if (retry) {
		auto slot = ih_.cam_enter(vmid, va >> page_shift, write);
		if (slot) {
			stats_.retry_faults.add();
			irq.data[1] |= data_retry;
			irq.data[2] = *slot;
			ih_.push(irq);
		}
		return Verdict::retry;
	}
	stats_.faults.add();
	latch_fault(vmid, va, write, permission, entry);
	ih_.push(irq);
	u32 cntl = regs_.get(at(id_.layout.fault_cntl));
	return cntl & cntl_default_valid && !(cntl & cntl_crash) ? Verdict::default_page
								 : Verdict::hang;
}

void VmHub::set_policy(const VmPolicy &p)
{
	retry_ = p.retry;
	retry_from_ = p.retry_from;
}

void VmHub::reset()
{
	for (auto &r : requested_)
		r = 0;
	invalidate(vmid_mask);
}

} // namespace sluice::emu
