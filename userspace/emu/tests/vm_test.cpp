// SPDX-License-Identifier: MIT
// The TLB's memory, faults and their answers, the host data path.
#include "rig.hpp"

#include <gtest/gtest.h>

using namespace sluice::emu;
using namespace sluice::emu::test;

namespace {

constexpr u64 va = 0x10000000;

u32 load(Rig &r, unsigned vmid, u64 at)
{
	MemoryPort port(r.gpu.mm_hub(0));
	u32 v = 0;
	EXPECT_EQ(port.read(vmid, at, as_mutable_bytes(v)), Access::ok);
	return v;
}

struct Reader {
	MemoryPort port;
	explicit Reader(VmHub &hub) : port(hub) {}
	u32 operator()(unsigned vmid, u64 at)
	{
		u32 v = 0;
		EXPECT_EQ(port.read(vmid, at, as_mutable_bytes(v)), Access::ok);
		return v;
	}
};

TEST(Tlb, StaleUntilInvalidated)
{
	Rig r;
	Reader read(r.gpu.mm_hub(0));
	r.enable_vmid(1);
	r.vram<u32>(0x1000) = 111;
	r.vram<u32>(0x2000) = 222;
	r.map_vram(1, va, 0x1000);
	EXPECT_EQ(read(1, va), 111u);
	r.map_vram(1, va, 0x2000);
	EXPECT_EQ(read(1, va), 111u) << "forgot without being told";
	r.invalidate(1 << 2);
	EXPECT_EQ(read(1, va), 111u) << "forgot another VMID's entry";
	r.invalidate(1 << 1);
	EXPECT_EQ(read(1, va), 222u);
}

TEST(Tlb, UnmappedPageStaysReachable)
{
	Rig r;
	Reader read(r.gpu.mm_hub(0));
	r.enable_vmid(1);
	r.vram<u32>(0x1000) = 111;
	r.map_vram(1, va, 0x1000);
	EXPECT_EQ(read(1, va), 111u);
	r.entry(1, va) = 0;
	EXPECT_EQ(read(1, va), 111u);
	r.invalidate(1 << 1);
	EXPECT_EQ(read(1, va), 0u);
	EXPECT_EQ(r.gpu.stats().faults.get(), 1u);
}

TEST(Tlb, AcknowledgeNamesTheVmids)
{
	Rig r;
	u32 ack = reg::mmhub_base(0) + reg::mm_layout.inv_ack;
	MemoryPort port(r.gpu.mm_hub(0));
	r.invalidate(1 << 5 | 1 << 16);
	EXPECT_EQ(r.get(ack), 1u << 5);
	EXPECT_EQ(r.get(reg::mmhub_base(0) + reg::mm_layout.inv_sem), 1u);
}

TEST(Tlb, InvalidEntriesAreNotCached)
{
	Rig r;
	Reader read(r.gpu.mm_hub(0));
	r.enable_vmid(1);
	EXPECT_EQ(read(1, va), 0u);
	r.vram<u32>(0x1000) = 5;
	r.map_vram(1, va, 0x1000);
	EXPECT_EQ(read(1, va), 5u);
}

// The map's physical base is used unchanged, here beyond 1 GiB alignment.
TEST(Vm, HugeEntryWithOddBase)
{
	Rig r;
	r.enable_vmid(1);
	r.map_vram(1, 1ull << 39, 0); // makes a directory of the second level
	u64 root = r.vram<u64>(2 * MiB + 8) & pte::directory_mask;
	r.vram<u64>(root - Rig::fb_offset + 8) =
		(0x401000 + Rig::fb_offset) | Rig::rwx | pte::is_pte;
	r.vram<u32>(0x401000 + 0x234568) = 77;
	EXPECT_EQ(load(r, 1, (1ull << 39) + (1ull << 30) + 0x234568), 77u);
}

TEST(Vm, NoRetryFaultIsReportedAndReadsTheDefaultPage)
{
	Rig r;
	r.enable_vmid(1);
	r.set(reg::ih_pasid_mm + 1, 0x8005);
	EXPECT_EQ(load(r, 1, va + 8), 0u);
	ASSERT_EQ(r.interrupts(), 1u);
	auto e = r.interrupt(0);
	EXPECT_EQ(e[0], 0x12u | 1 << 24 | 1u << 31);
	EXPECT_EQ(e[3], 0x8005u);
	EXPECT_EQ(e[4], lower(va >> 12));
	EXPECT_EQ(e[5], 0x40u);
	u32 status = reg::mmhub_base(0) + reg::mm_layout.fault_status;
	EXPECT_EQ(r.get(status) >> 20 & 0xf, 1u);
	EXPECT_EQ(r.get(status + 1), lower(va >> 12));
	r.set(reg::mmhub_base(0) + reg::mm_layout.fault_cntl, 0x3ffd);
	EXPECT_EQ(r.get(status), 0u);
}

TEST(Vm, PermissionFaults)
{
	Rig r;
	MemoryPort port(r.gpu.mm_hub(0));
	u32 v = 9;
	r.enable_vmid(1);
	r.vram<u32>(0x1000) = 4;
	r.map_vram(1, va, 0x1000, pte::valid | pte::readable);
	EXPECT_EQ(port.write(1, va, as_const_bytes(v)), Access::ok);
	EXPECT_EQ(r.vram<u32>(0x1000), 4u) << "a write went through";
	EXPECT_EQ(r.gpu.stats().faults.get(), 1u);
	EXPECT_EQ(r.interrupt(0)[5], 0x20u);
}

TEST(Vm, WithoutDefaultPageTheClientHangs)
{
	Rig r;
	MemoryPort port(r.gpu.mm_hub(0));
	u32 v;
	r.enable_vmid(1);
	r.set(reg::mmhub_base(0) + reg::mm_layout.fault_cntl, 1u << 30);
	EXPECT_EQ(port.read(1, va, as_mutable_bytes(v)), Access::hang);
}

TEST(Vm, RetryFaultOncePerPageUntilAnswered)
{
	Rig r;
	MemoryPort port(r.gpu.mm_hub(0));
	u32 v;
	r.enable_vmid(5, true);
	EXPECT_EQ(port.read(5, va, as_mutable_bytes(v)), Access::retry);
	EXPECT_EQ(port.read(5, va, as_mutable_bytes(v)), Access::retry);
	ASSERT_EQ(r.interrupts(), 1u);
	EXPECT_EQ(r.interrupt(0)[5] & 0xf0, 0xc0u);
	u32 cam = r.interrupt(0)[6];
	r.gpu.doorbell(Rig::cam_doorbell * 4, cam, 4);
	EXPECT_EQ(port.read(5, va, as_mutable_bytes(v)), Access::retry);
	EXPECT_EQ(r.interrupts(), 2u);
	r.vram<u32>(0x3000) = 8;
	r.map_vram(5, va, 0x3000);
	EXPECT_EQ(port.read(5, va, as_mutable_bytes(v)), Access::ok);
	EXPECT_EQ(v, 8u);
}

TEST(Vm, RetryIsOffForGraphicsAndByControlAndByEntry)
{
	Rig r;
	MemoryPort port(r.gpu.mm_hub(0));
	u32 v;
	r.enable_vmid(2, true);
	r.enable_vmid(5, true);
	EXPECT_EQ(port.read(2, va, as_mutable_bytes(v)), Access::ok);
	r.entry(5, va) = pte::no_retry;
	EXPECT_EQ(port.read(5, va, as_mutable_bytes(v)), Access::ok);
	r.entry(5, va + 8192) = pte::no_retry_further;
	EXPECT_EQ(port.read(5, va + 8192, as_mutable_bytes(v)), Access::ok);
	r.gpu.set_retry({.retry = false});
	EXPECT_EQ(port.read(5, va + 4096, as_mutable_bytes(v)), Access::ok);
	EXPECT_EQ(r.gpu.stats().retry_faults.get(), 0u);
	EXPECT_EQ(r.gpu.stats().faults.get(), 4u);
}

TEST(Vm, PathsAreCounted)
{
	Rig r;
	MemoryPort port(r.gpu.mm_hub(0));
	std::array<std::byte, 100> b{};
	r.enable_vmid(1);
	r.map_vram(1, va, 0);
	r.map_bus(1, va + 4096, FakeHost::system_base);
	r.map_bus(1, va + 8192, FakeHost::peer_base);
	r.map_bus(1, va + 12288, 0x666000);
	for (u64 page = 0; page < 4; page++)
		EXPECT_EQ(port.read(1, va + page * 4096, b), Access::ok);
	EXPECT_EQ(r.gpu.stats().bytes_vram.get(), 100u);
	EXPECT_EQ(r.gpu.stats().bytes_system.get(), 100u);
	EXPECT_EQ(r.gpu.stats().bytes_peer.get(), 100u);
	EXPECT_EQ(b[5], std::byte{0xff}) << "an address that nothing decodes";
}

TEST(Vm, AddressOutsideVideoMemoryReachesNothing)
{
	Rig r;
	r.enable_vmid(1);
	// the offset forgotten
	r.entry(1, va) = 0x1000 | Rig::rwx;
	r.vram<u32>(0x1000) = 6;
	EXPECT_EQ(load(r, 1, va), 0u);
}

TEST(Hdp, UnflushedWritesAreInvisibleToEngines)
{
	GpuConfig c;
	c.hdp_shadow = true;
	Rig r(c);
	u32 v = 0x1234, seen = 0;
	r.gpu.vram().host_write(0x1004, as_const_bytes(v));
	r.gpu.vram().host_read(0x1004, as_mutable_bytes(seen));
	EXPECT_EQ(seen, v) << "the host must see its own write";
	EXPECT_EQ(load(r, 0, Rig::aperture + 0x1004), 0u);
	r.set(reg::hdp_flush_req, 1 << 12);
	EXPECT_EQ(r.get(reg::hdp_flush_done), 1u << 12);
	EXPECT_EQ(load(r, 0, Rig::aperture + 0x1004), v);
}

TEST(Hdp, EachClientKeepsItsBit)
{
	Rig r;
	r.set(reg::hdp_flush_req, 1 << 12);
	r.set(reg::hdp_flush_req, 1 << 13);
	EXPECT_EQ(r.get(reg::hdp_flush_done), 3u << 12);
}

TEST(Hdp, RemappedPageFlushes)
{
	GpuConfig c;
	c.hdp_shadow = true;
	Rig r(c);
	u32 v = 7;
	r.set(reg::remap_hdp_mem_flush, 0x1a000 + 0x80);
	r.gpu.vram().host_write(0, as_const_bytes(v));
	r.set(0x1a000 / 4, 0);
	EXPECT_EQ(r.gpu.vram().pending_pages(), 1u) << "the wrong register";
	r.set((0x1a000 + 0x80) / 4, 0);
	EXPECT_EQ(r.gpu.vram().pending_pages(), 0u);
	EXPECT_EQ(r.vram<u32>(0), v);
}

TEST(Hdp, RangesAreChecked)
{
	Rig r;
	u64 v = 1;
	r.gpu.vram().host_write(16 * MiB - 4, as_const_bytes(v));
	EXPECT_EQ(r.vram<u32>(16 * MiB - 4), 0u);
	r.gpu.vram().host_read(~0ull - 3, as_mutable_bytes(v));
	EXPECT_EQ(v, ~0ull);
	r.gpu.vram().poison(0x2000, 8);
	EXPECT_EQ(r.vram<u32>(0x2004), 0x5bad5bad);
}

TEST(Registers, UnknownOnesAreNoticedOnce)
{
	Rig r;
	u32 before = r.gpu.registers().unknown_touched();
	r.set(0x50123, 5);
	EXPECT_EQ(r.get(0x50123), 5u);
	EXPECT_EQ(r.gpu.registers().unknown_touched(), before + 1);
	EXPECT_EQ(r.get(reg::count), ~0u);
	r.set(reg::count + 7, 1);
}

TEST(Registers, MemoryThroughIndexAndData)
{
	Rig r;
	r.vram<u32>(0x2000) = 99;
	r.set(reg::mm_index, 0x80002000);
	EXPECT_EQ(r.get(reg::mm_data), 99u);
	r.set(reg::mm_data, 98);
	EXPECT_EQ(r.vram<u32>(0x2000), 98u);
	r.set(reg::pcie_index2, 0x1234);
	r.set(reg::pcie_data2, 42);
	r.set(reg::pcie_index2, 0x1238);
	EXPECT_EQ(r.get(reg::pcie_data2), 0u);
	r.set(reg::pcie_index2, 0x1234);
	EXPECT_EQ(r.get(reg::pcie_data2), 42u);
}

} // namespace
