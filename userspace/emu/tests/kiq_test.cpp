// SPDX-License-Identifier: MIT
// The kernel interface queue, the interrupt ring, the timeline.
#include "rig.hpp"

#include <gtest/gtest.h>

using namespace sluice::emu;
using namespace sluice::emu::test;

namespace {

constexpr u32 pm4(u32 op, u32 count)
{
	return 3u << 30 | (count - 1) << 16 | op << 8;
}

class KiqTest : public testing::Test {
protected:
	static constexpr u64 ring = 8 * MiB, report = 9 * MiB;
	Rig r;
	u64 wptr = 0;

	// whose registers are seen; engine 2, pipe 1, queue 0 is the KIQ
	void select(u32 me, u32 pipe, u32 queue)
	{
		r.set(reg::grbm_gfx_cntl, queue << 8 | me << 2 | pipe);
	}
	void SetUp() override
	{
		r.set(reg::rlc_cp_schedulers, 0x80 | 2 << 5 | 1 << 3);
		select(2, 1, 0);
		r.set64(reg::hqd_base, (Rig::aperture + ring) >> 8);
		r.set(reg::hqd_control, 9); // 1024 words
		r.set64(reg::hqd_report, Rig::aperture + report);
		r.set(reg::hqd_doorbell, 1u << 30);
		r.set(reg::hqd_active, 1);
	}
	void submit(std::initializer_list<u32> words)
	{
		for (u32 w : words)
			r.vram<u32>(ring + wptr++ % 1024 * 4) = w;
		r.gpu.doorbell(0, wptr, 8);
		r.gpu.run();
	}
	bool idle() { return r.vram<u32>(report) == wptr % 1024; }
};

TEST_F(KiqTest, RingTest)
{
	submit({pm4(0x79, 2), 0x40, 0xdeadbeef});
	EXPECT_EQ(r.get(reg::uconfig + 0x40), 0xdeadbeefu);
	EXPECT_TRUE(idle());
}

TEST_F(KiqTest, WrapsAroundItsRing)
{
	for (u32 i = 0; i < 500; i++) {
		submit({pm4(0x79, 2), 0x40, i});
		ASSERT_EQ(r.get(reg::uconfig + 0x40), i);
	}
	EXPECT_TRUE(idle());
}

TEST_F(KiqTest, WritesWaitsAndFences)
{
	submit({pm4(0x37, 4), 0, 0x38123, 0, 5, pm4(0x3c, 6), 3, 0x38124, 0, 1, ~0u, 10,
		pm4(0x49, 6), 0, 1u << 29, lower(Rig::aperture), upper(Rig::aperture),
		77, 0});
	EXPECT_EQ(r.get(0x38123), 5u);
	EXPECT_EQ(r.vram<u32>(0), 0u) << "did not wait";
	r.set(0x38124, 1);
	r.gpu.run();
	EXPECT_EQ(r.vram<u32>(0), 77u);
	EXPECT_TRUE(idle());
}

TEST_F(KiqTest, FlushByRegisterWriteAndWait)
{
	u32 hub = reg::mmhub_base(0);
	MemoryPort port(r.gpu.mm_hub(0));
	u32 v;
	r.enable_vmid(1);
	r.map_vram(1, 0x10000, 0x1000);
	port.read(1, 0x10000, as_mutable_bytes(v));
	r.vram<u32>(0x2000) = 3;
	r.map_vram(1, 0x10000, 0x2000);
	submit({pm4(0x3c, 6), 3 | 1 << 6, hub + reg::mm_layout.inv_req,
		hub + reg::mm_layout.inv_ack, 0x7c0002, 2, 0x20});
	EXPECT_TRUE(idle());
	port.read(1, 0x10000, as_mutable_bytes(v));
	EXPECT_EQ(v, 3u);
}

TEST_F(KiqTest, InvalidatesByPasid)
{
	MemoryPort port(r.gpu.mm_hub(0));
	u32 v;
	auto value = [&] {
		port.read(8, 0x10000, as_mutable_bytes(v));
		return v;
	};
	r.set(reg::atc_pasid + 8, 1u << 31 | 0x8001);
	EXPECT_EQ(r.get(reg::atc_update_status), 1u << 8);
	r.set(reg::atc_update_status, 1u << 8);
	EXPECT_EQ(r.get(reg::atc_update_status), 0u);
	r.enable_vmid(8);
	r.map_vram(8, 0x10000, 0x1000);
	EXPECT_EQ(value(), 0u);
	r.vram<u32>(0x2000) = 3;
	r.map_vram(8, 0x10000, 0x2000);
	submit({pm4(0x98, 1), 1 | 1 << 4 | 0x8002 << 5});
	EXPECT_EQ(value(), 0u) << "another PASID";
	submit({pm4(0x98, 1), 1 | 0x8001 << 5});
	EXPECT_EQ(value(), 0u) << "the graphics hub alone";
	submit({pm4(0x98, 1), 1 | 1 << 4 | 0x8001 << 5});
	EXPECT_EQ(value(), 3u);
}

TEST_F(KiqTest, CopiesARegister)
{
	r.set(0x38123, 21);
	submit({pm4(0x40, 5), 5 << 8 | 1 << 20, 0x38123, 0, lower(Rig::aperture),
		upper(Rig::aperture)});
	EXPECT_EQ(r.vram<u32>(0), 21u);
}

TEST_F(KiqTest, CutShortAndUnknown)
{
	submit({pm4(0x37, 4), 0, 0x38123});
	EXPECT_EQ(r.get(0x38123), 0u);
	submit({pm4(0x37, 2), 0, 0x38123});
	EXPECT_EQ(r.get(0x38123), 0u);
	submit({pm4(0x11, 1), 0});
	EXPECT_EQ(r.gpu.stats().illegal_packets.get(), 1u);
	submit({0xffff1000, pm4(0x79, 2), 0x40, 4});
	EXPECT_EQ(r.get(reg::uconfig + 0x40), 4u);
}

TEST_F(KiqTest, Dequeue)
{
	r.set(reg::hqd_dequeue, 1);
	EXPECT_EQ(r.get(reg::hqd_active), 0u);
	submit({pm4(0x79, 2), 0x40, 1});
	EXPECT_EQ(r.get(reg::uconfig + 0x40), 0u);
	EXPECT_EQ(r.gpu.stats().stray_doorbells.get(), 1u);
}

// A process's queues come and go while the KIQ works.
TEST_F(KiqTest, OtherQueuesAreNotIts)
{
	u32 at = 0;
	for (auto [me, pipe, queue] :
	     {std::array{2u, 1u, 1u}, {2u, 0u, 0u}, {1u, 1u, 0u}, {0u, 0u, 0u}}) {
		select(me, pipe, queue);
		EXPECT_EQ(r.get(reg::hqd_active), 0u);
		r.set64(reg::hqd_base, 0x1000);
		r.set(reg::hqd_rptr, 40);
		r.set(reg::hqd_active, 1);
		EXPECT_EQ(r.get(reg::hqd_active), 1u);
		submit({pm4(0x79, 2), 0x40, ++at});
		EXPECT_EQ(r.get(reg::uconfig + 0x40), at);
		r.set(reg::hqd_dequeue, 2);
		EXPECT_EQ(r.get(reg::hqd_active), 0u);
		submit({pm4(0x79, 2), 0x40, ++at});
		EXPECT_EQ(r.get(reg::uconfig + 0x40), at);
		EXPECT_TRUE(idle());
	}
	select(2, 1, 0);
	EXPECT_EQ(r.get(reg::hqd_active), 1u);
	EXPECT_EQ(r.get(reg::hqd_base), lower((Rig::aperture + ring) >> 8));
}

TEST_F(KiqTest, ResetEndsAllQueues)
{
	select(1, 0, 3);
	r.set(reg::hqd_active, 1);
	r.gpu.reset();
	EXPECT_EQ(r.get(reg::hqd_active), 0u);
	select(2, 1, 0);
	EXPECT_EQ(r.get(reg::hqd_active), 0u);
	EXPECT_NE(r.get(reg::hqd_base), 0u) << "reset is not power-on";
	r.gpu.power_on();
	select(2, 1, 0);
	EXPECT_EQ(r.get(reg::hqd_base), 0u);
}

// A packet that waits has its side effect once; one after a reset is another.
TEST_F(KiqTest, ResetForgetsThePacketThatWaits)
{
	submit({pm4(0x3c, 6), 3 | 1 << 6, 0x38126, 0x38127, 1, ~0u, 10});
	EXPECT_EQ(r.get(0x38126), 1u);
	r.gpu.reset();
	r.set(0x38126, 0);
	wptr = 0;
	SetUp();
	submit({pm4(0x3c, 6), 3 | 1 << 6, 0x38126, 0x38127, 1, ~0u, 10});
	EXPECT_EQ(r.get(0x38126), 1u);
}

TEST(InterruptRing, WrapsAndReportsOverflow)
{
	Rig r;
	InterruptRing ih(r.gpu.registers(), r.host, r.gpu.stats());
	const unsigned entries = 64 * 1024 / 32;
	for (unsigned i = 0; i < entries - 1; i++)
		ih.push({.client = i});
	EXPECT_EQ(r.get(reg::ih_wptr), (entries - 1) * 32);
	ih.push({.client = 5});
	EXPECT_EQ(r.get(reg::ih_wptr), 1u) << "overflow";
	r.set(reg::ih_cntl, r.get(reg::ih_cntl) | 1u << 31);
	EXPECT_EQ(r.get(reg::ih_wptr), 0u);
	EXPECT_EQ(r.host.interrupts, entries);
}

TEST(InterruptRing, OffAndNowhere)
{
	Rig r;
	InterruptRing ih(r.gpu.registers(), r.host, r.gpu.stats());
	r.set(reg::ih_base, 0x42);
	r.set(reg::ih_base_hi, 0);
	ih.push({});
	EXPECT_EQ(r.host.interrupts, 0u);
	r.set(reg::ih_cntl, 0);
	ih.push({});
	EXPECT_EQ(r.host.interrupts, 0u);
}

TEST(InterruptRing, CamIsBounded)
{
	Rig r;
	InterruptRing ih(r.gpu.registers(), r.host, r.gpu.stats());
	std::vector<bool> used(1024);
	for (unsigned i = 0; i < 1024; i++) {
		auto slot = ih.cam_enter(5, i, false);
		ASSERT_TRUE(slot && *slot < 1024);
		EXPECT_FALSE(used[*slot]);
		used[*slot] = true;
	}
	EXPECT_FALSE(ih.cam_enter(5, 5000, false));
	ih.cam_leave(17);
	EXPECT_EQ(ih.cam_enter(5, 5000, false), 17u);
	EXPECT_FALSE(ih.cam_enter(5, 5000, false)) << "twice";
}

TEST(Timeline, ChromeTrace)
{
	Timeline t(2);
	t.record({.name = "off", .end = 1});
	t.enable(true);
	t.record({.name = "copy",
		  .start = 1000,
		  .end = 3500,
		  .track = 3,
		  .queue = 1,
		  .ring = 64,
		  .words = 7,
		  .bytes = 512,
		  .from = {Path::vram, 2, 16},
		  .to = {Path::xgmi, 5, 32}});
	t.record({.name = "fence", .start = 4000, .end = 4100, .track = 3});
	t.record({.name = "lost", .start = 5000, .end = 5100});
	std::string json = t.json(2);
	EXPECT_NE(json.find(R"("name":"copy","pid":2,"tid":3,"ts":1.000,"dur":2.500)"),
		  std::string::npos);
	EXPECT_NE(json.find(R"("args":{"queue":1,"ring":64,"words":7,"bytes":512,)"
			    R"("from":["vram",2,16],"to":["xgmi",5,32]})"),
		  std::string::npos);
	EXPECT_NE(json.find(R"("lost_events":1)"), std::string::npos);
	EXPECT_EQ(json.find("off"), std::string::npos);
	t.clear();
	EXPECT_EQ(t.json(0).find("copy"), std::string::npos);
}

} // namespace
