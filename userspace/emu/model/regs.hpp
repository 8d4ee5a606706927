// SPDX-License-Identifier: MIT
// Register numbers (in dwords) of the emulated part. The bases are ours, by
// way of the discovery table; the offsets are the hardware's. Bases are chosen
// so that the ranges which the driver folds to 16 bits in its command packets
// (0x2000-0x33ff and 0xa000-0xffff) hold graphics registers alone.
#pragma once

#include "types.hpp"

namespace sluice::emu::reg {

constexpr u32 count = 0x80000; // BAR 5, 2 MiB

constexpr unsigned max_engines = 16;
constexpr unsigned engines_per_die = 4;
constexpr unsigned max_dies = max_engines / engines_per_die;

constexpr u32 nbio0 = 0x0, nbio2 = 0xd20;
constexpr u32 gc0 = 0x2000, gc1 = 0xa000;
constexpr u32 athub = 0xc20, hdp = 0xf20, oss = 0x10a0;

constexpr u32 sdma_base(unsigned engine)
{
	return engine < 2 ? 0x1260 + 0x600 * engine : 0x24000 + 0x600 * (engine - 2);
}

// below 0x40000: an SDMA packet names a register with 18 bits
constexpr u32 mmhub_base(unsigned die)
{
	constexpr u32 bases[max_dies]{0x18340, 0x34340, 0x38340, 0x14340};
	return bases[die];
}

// NBIO
constexpr u32 mm_index = 0x0, mm_data = 0x1, mm_index_hi = 0x6;
constexpr u32 pcie_index2 = 0xe, pcie_data2 = 0xf, pcie_index2_hi = 0x11;
constexpr u32 virt_detect = nbio2 + 0xc5;
constexpr u32 memory_size = nbio2 + 0xc3;
constexpr u32 revision_strap = nbio2 + 0x16;
constexpr u32 hdp_flush_req = nbio2 + 0x106, hdp_flush_done = nbio2 + 0x107;
constexpr u32 remap_hdp_mem_flush = nbio2 + 0x12d;
constexpr u32 memory_partition_cap = nbio2 + 0x162;
constexpr u32 compute_partition_status = nbio2 + 0x163;
constexpr u32 memory_partition_status = nbio2 + 0x164;
constexpr u32 firmware_ready = 0x16061; // C2PMSG_33, bit 31

// Offsets inside a VM hub
struct HubLayout {
	u32 context_cntl, page_table_base, page_table_start, page_table_end;
	u32 inv_sem, inv_req, inv_ack;
	u32 fault_cntl, fault_status, fault_addr;
	u32 fb_base, fb_top, fb_offset;
	u32 xgmi_cntl, xgmi_size;
};
constexpr HubLayout gfx_layout{0x860, 0x8cb, 0x8eb, 0x90b, 0x871, 0x883, 0x895, 0x827,
			       0x82b, 0x82c, 0x95c, 0x95d, 0x947, 0x957, 0x958};
constexpr HubLayout mm_layout{0xba0, 0xc0b, 0xc2b, 0xc4b, 0xbb1, 0xbc3, 0xbd5, 0xb67,
			      0xb6b, 0xb6c, 0xc9c, 0xc9d, 0xc87, 0xc97, 0xc98};
constexpr unsigned contexts = 16, invalidate_engines = 18;

// OSSSYS: the interrupt handler
constexpr u32 ih_pasid_gfx = oss, ih_pasid_mm = oss + 0x10;
constexpr u32 ih_cntl = oss + 0x80, ih_base = oss + 0x81, ih_base_hi = oss + 0x82,
	      ih_rptr = oss + 0x83, ih_wptr = oss + 0x84, ih_wptr_addr_hi = oss + 0x85,
	      ih_wptr_addr_lo = oss + 0x86, ih_doorbell = oss + 0x87,
	      ih_cam_doorbell = oss + 0x88;

// ATHUB: the PASID of a VMID
constexpr u32 atc_update_status = athub + 0x3e, atc_pasid = athub + 0x3f;

// GC
constexpr u32 grbm_gfx_cntl = gc0 + 0x22;
constexpr u32 hqd_first = gc0 + 0x1245, hqd_last = gc0 + 0x127f;
constexpr u32 hqd_active = gc0 + 0x1247, hqd_base = gc0 + 0x124d,
	      hqd_base_hi = gc0 + 0x124e, hqd_rptr = gc0 + 0x124f,
	      hqd_report = gc0 + 0x1250, hqd_report_hi = gc0 + 0x1251,
	      hqd_doorbell = gc0 + 0x1254, hqd_control = gc0 + 0x1256,
	      hqd_dequeue = gc0 + 0x125d;
constexpr u32 uconfig = 0xc000;
constexpr u32 rlc_safe_mode = gc1 + 0x4c05;
constexpr u32 rlc_cp_schedulers = gc1 + 0x4caa; // the number of the KIQ
constexpr u32 clock_lsb = gc1 + 0x4c24, clock_msb = gc1 + 0x4c25;

// SDMA, from an engine's base
constexpr u32 sdma_size = 0x500;
constexpr u32 sdma_f32_cntl = 0x02, sdma_status = 0x25, sdma_cntl = 0x6d;
constexpr unsigned sdma_queues = 10; // GFX, PAGE, RLC 0 to 7

constexpr u32 sdma_queue(unsigned q)
{
	return q == 0 ? 0x80 : q == 1 ? 0xd8 : 0x130 + 0x58 * (q - 2);
}

// from a queue's base
constexpr u32 rb_cntl = 0, rb_base = 1, rb_base_hi = 2, rb_rptr = 3, rb_rptr_hi = 4,
	      rb_wptr = 5, rb_wptr_hi = 6, rb_report_hi = 8, rb_report_lo = 9,
	      rb_status = 0x11, rb_doorbell = 0x12, rb_doorbell_offset = 0x2b,
	      rb_minor_ptr = 0x34;

} // namespace sluice::emu::reg
