// SPDX-License-Identifier: MIT
// Hives: where addresses lead, what reaches a peer's memory and what does not.
#include "control.hpp"
#include "rig.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <format>

using namespace sluice::emu;
using namespace sluice::emu::test;

namespace {

constexpr u64 va = 0x10000000, segment = 32 * MiB, memory = 16 * MiB;

GpuConfig seat(Hive &hive, unsigned node)
{
	GpuConfig c;

	c.member = {&hive, node};
	return c;
}

// Two GPUs of a hive that has room for four.
struct Pair {
	Hive hive{4, segment};
	Rig a{seat(hive, 0)}, b{seat(hive, 1)};
	MemoryPort port{a.gpu.mm_hub(0)};

	Pair() { a.enable_vmid(1); }
	u64 linked() { return a.gpu.stats().bytes_xgmi.get(); }
};

long refused(const Rig &r)
{
	return std::ranges::count_if(r.host.messages, [](const auto &m) {
		return m.contains("outside video memory");
	});
}

TEST(Hive, Room)
{
	Hive hive(4, segment);
	Zeroed one(memory), two(memory);
	Vram a(one, false), b(two, false);

	EXPECT_EQ(hive.room(0), 0u) << "nobody has joined";
	hive.join(0, a);
	hive.join(2, b);
	EXPECT_EQ(hive.room(0), memory);
	EXPECT_EQ(hive.room(memory - 1), 1u);
	EXPECT_EQ(hive.room(memory), 0u) << "the rest of a segment is empty";
	EXPECT_EQ(hive.room(segment), 0u) << "node 1 has not joined";
	EXPECT_EQ(hive.room(2 * segment + 5), memory - 5);
	EXPECT_EQ(hive.room(4 * segment), 0u);
	EXPECT_EQ(hive.room(~0ull), 0u);
	hive.leave(2);
	EXPECT_EQ(hive.room(2 * segment), 0u);
}

TEST(Hive, Use)
{
	Hive hive(2, segment);
	Zeroed one(memory);
	Vram a(one, false);
	std::byte *seen = nullptr;
	auto look = [&](std::byte *at) { seen = at; };

	hive.join(1, a);
	EXPECT_TRUE(hive.use(segment + 64, 64, look));
	EXPECT_EQ(seen, one.data() + 64);
	EXPECT_TRUE(hive.use(segment + memory - 64, 64, look));
	seen = nullptr;
	EXPECT_FALSE(hive.use(segment + memory - 63, 64, look));
	EXPECT_FALSE(hive.use(64, 64, look));
	EXPECT_EQ(seen, nullptr);
}

TEST(Hive, RegistersTellOfIt)
{
	Hive hive(4, segment);
	Rig r(seat(hive, 3));

	for (int i = 0; i < 2; i++) {
		for (u32 hub : {reg::gc0 + 0x957, reg::mmhub_base(0) + 0xc97}) {
			EXPECT_EQ(r.get(hub), 0x33u);
			EXPECT_EQ(r.get(hub + 1), segment >> 24);
		}
		EXPECT_EQ(r.get(reg::gc0 + 0x95d) - r.get(reg::gc0 + 0x95c),
			  (4 * segment >> 24) - 1)
			<< "the frame buffer is that of all";
		r.set(reg::gc0 + 0x957, 0);
		r.gpu.power_on();
	}
	Rig alone;
	EXPECT_EQ(alone.get(reg::gc0 + 0x957), 0u);
	EXPECT_EQ(alone.get(reg::gc0 + 0x95d), alone.get(reg::gc0 + 0x95c));
}

TEST(Hive, PagesOfAPeer)
{
	Pair p;
	u32 v = 77;
	u64 old;

	p.a.map_hive(1, va, segment + 0x5000);
	EXPECT_EQ(p.port.write(1, va + 8, as_const_bytes(v)), Access::ok);
	EXPECT_EQ(p.b.vram<u32>(0x5008), 77u);
	EXPECT_EQ(p.a.vram<u32>(0x5008), 0u);
	EXPECT_EQ(p.linked(), 4u);
	p.b.vram<u32>(0x5008) = 78;
	EXPECT_EQ(p.port.read(1, va + 8, as_mutable_bytes(v)), Access::ok);
	EXPECT_EQ(v, 78u);
	EXPECT_EQ(p.port.update(1, va + 8, 8, [](u64 x) { return x + 1; }, old),
		  Access::ok);
	EXPECT_EQ(old, 78u);
	EXPECT_EQ(p.b.vram<u64>(0x5008), 79u);
	EXPECT_EQ(p.linked(), 16u);
	EXPECT_EQ(p.b.gpu.stats().bytes_xgmi.get(), 0u);
	EXPECT_EQ(p.a.gpu.stats().bytes_peer.get(), 0u);
	EXPECT_EQ(refused(p.a), 0);
}

// A GPU's own memory begins at its segment, and is not reached by the link.
TEST(Hive, OwnPages)
{
	Pair p;
	MemoryPort port(p.b.gpu.mm_hub(0));
	u32 v = 77;

	p.b.enable_vmid(1);
	p.b.map_vram(1, va, 0x6000);
	p.b.map_hive(1, va + 0x1000, 0x7000);
	EXPECT_EQ(port.write(1, va, as_const_bytes(v)), Access::ok);
	EXPECT_EQ(p.b.vram<u32>(0x6000), 77u);
	EXPECT_EQ(p.b.gpu.stats().bytes_xgmi.get(), 0u);
	EXPECT_EQ(port.write(1, va + 0x1000, as_const_bytes(v)), Access::ok);
	EXPECT_EQ(p.a.vram<u32>(0x7000), 77u);
	EXPECT_EQ(p.b.gpu.stats().bytes_xgmi.get(), 4u);
	p.hive.leave(1);
	EXPECT_EQ(port.write(1, va + 4, as_const_bytes(v)), Access::ok);
	EXPECT_EQ(p.b.vram<u32>(0x6004), 77u);
	EXPECT_EQ(refused(p.b), 0);
}

TEST(Hive, Aperture)
{
	Pair p;
	u32 v = 77;

	EXPECT_EQ(p.port.write(0, Rig::aperture + segment + 0x5000, as_const_bytes(v)),
		  Access::ok);
	EXPECT_EQ(p.b.vram<u32>(0x5000), 77u);
	EXPECT_EQ(p.linked(), 4u);
	EXPECT_EQ(p.port.write(0, Rig::aperture + 0x5000, as_const_bytes(v)),
		  Access::ok);
	EXPECT_EQ(p.a.vram<u32>(0x5000), 77u);
	EXPECT_EQ(p.linked(), 4u);
	EXPECT_EQ(p.a.gpu.stats().faults.get(), 0u);
	p.port.write(0, Rig::aperture + memory, as_const_bytes(v));
	EXPECT_EQ(p.a.gpu.stats().faults.get(), 1u);
}

// The ring and the tables of each GPU are at its own segment.
TEST(Hive, EngineCopies)
{
	Pair p;

	p.b.enable_vmid(1);
	p.b.map_hive(1, va, 0x5000);
	p.b.map_vram(1, va + 0x1000, 0x6000);
	p.b.map_vram(1, va + 0x2000, 0x80000);
	p.a.vram<u32>(0x5000) = 77;
	const u32 copy[]{1, 3, 0, lower(va), 0, lower(va + 0x1000), 0, 0};
	std::memcpy(&p.b.vram<u32>(0x80000), copy, sizeof(copy));
	p.b.submit_ib(1, va + 0x2000, 8);
	EXPECT_TRUE(p.b.idle());
	EXPECT_EQ(p.b.vram<u32>(0x6000), 77u);
	EXPECT_EQ(p.b.gpu.stats().bytes_xgmi.get(), 4u);
}

TEST(Hive, TimelineTellsWhoseMemory)
{
	Pair p;

	p.a.map_hive(1, va, segment + 4 * MiB);
	p.a.map_vram(1, va + page_size, 4 * MiB);
	const u32 ib[]{
		1, 63, 0, static_cast<u32>(va + page_size), 0, static_cast<u32>(va),
		0, 0};
	std::ranges::copy(ib, &p.a.vram<u32>(512 << 10));
	p.a.map_vram(1, 2 * va, 512 << 10);
	p.a.gpu.timeline().enable(true);
	p.a.submit_ib(1, 2 * va, 8);
	EXPECT_NE(p.a.gpu.timeline().json(0).find(
			  R"("from":["vram",0,4194304],"to":["xgmi",1,4194304])"),
		  std::string::npos);
}

TEST(Hive, WhatIsSentToAGpuThatHasLeftIsLost)
{
	Pair p;
	u32 v = 77;

	p.a.map_hive(1, va, segment + 0x5000);
	p.hive.leave(1);
	p.hive.leave(1);
	EXPECT_EQ(p.port.write(1, va, as_const_bytes(v)), Access::ok);
	EXPECT_EQ(p.port.read(1, va, as_mutable_bytes(v)), Access::ok);
	EXPECT_EQ(v, 0u);
	EXPECT_EQ(p.b.vram<u32>(0x5000), 0u);
	EXPECT_EQ(refused(p.a), 0);
}

TEST(Hive, OutsideEverySegmentIsRefused)
{
	Pair p;

	for (u64 offset :
	     {memory, segment + memory, 2 * segment, 4 * segment, 64 * segment}) {
		u32 v = 77;
		u64 old;
		p.a.host.messages.clear();
		p.a.map_hive(1, va, offset);
		p.a.invalidate(1 << 1);
		p.port.write(1, va, as_const_bytes(v));
		p.port.update(1, va, 4, [](u64 x) { return x + 1; }, old);
		p.port.read(1, va, as_mutable_bytes(v));
		EXPECT_EQ(v, 0u);
		EXPECT_EQ(refused(p.a), 3) << offset;
	}
	EXPECT_EQ(p.linked(), 0u);
}

// A directory leads to tables of the same GPU.
TEST(Hive, TablesOfAPeerAreNotFollowed)
{
	Pair p;
	u32 v = 77;
	u32 root = reg::mmhub_base(0) + reg::mm_layout.page_table_base + 2;

	p.b.enable_vmid(1);
	p.b.map_vram(1, va, 0x5000);
	p.a.set64(root, p.b.gpu.registers().get64(root));
	p.port.write(1, va, as_const_bytes(v));
	EXPECT_EQ(p.b.vram<u32>(0x5000), 0u);
	EXPECT_EQ(p.a.gpu.stats().faults.get(), 1u);
}

TEST(Hive, WhoVanishesIsNotReached)
{
	vfio::Fabric fabric;
	Hive hive(2, segment);
	Control::Endpoints endpoints;

	for (unsigned i = 0; i < 2; i++) {
		EndpointConfig c;
		c.index = i;
		c.vram = memory;
		c.verbosity = Log::error;
		c.gpu.member = {&hive, i};
		c.socket = std::format("{}emu-hive-{}-{}", testing::TempDir(), getpid(),
				       i);
		endpoints.push_back(std::make_unique<Endpoint>(c, fabric));
	}
	EXPECT_EQ(hive.room(0), memory);
	EXPECT_EQ(hive.room(segment), memory);
	EXPECT_EQ(Control::execute("gpu1 vanish", endpoints), "ok\n");
	EXPECT_EQ(hive.room(0), memory);
	EXPECT_EQ(hive.room(segment), 0u);
	endpoints.clear();
	EXPECT_EQ(hive.room(0), 0u);
}

} // namespace
