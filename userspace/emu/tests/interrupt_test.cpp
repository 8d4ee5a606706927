// SPDX-License-Identifier: MIT
// The interrupt ring in slow memory: QEMU answers a message only after its own
// accesses, so no register access may wait for one.
#include "interrupt_ring.hpp"
#include "rig.hpp"

#include <gtest/gtest.h>

#include <future>
#include <latch>

using namespace sluice::emu;
using namespace sluice::emu::test;

namespace {

using namespace std::chrono_literals;

constexpr u64 ring_at = FakeHost::system_base,
	      wptr_at = FakeHost::system_base + 64 * 1024;
constexpr u32 doorbell = 0x1a3;
constexpr u32 on = 1 | 10 << 1 | 1u << 17; // 4 KiB, with interrupts

// Memory whose first write ends when the test says so.
class SlowHost : public FakeHost {
public:
	std::latch begun{1}, go_on{1};

	Path write(u64 address, const_bytes in) override
	{
		if (!slow.exchange(false))
			return FakeHost::write(address, in);
		begun.count_down();
		go_on.wait();
		return FakeHost::write(address, in);
	}

private:
	std::atomic<bool> slow{true};
};

class InterruptTest : public testing::Test {
protected:
	SlowHost host;
	Stats stats;
	RegisterFile regs{host};
	InterruptRing ring{regs, host, stats};
	std::future<void> pusher, register_access;

	void SetUp() override
	{
		set_up(ring_at);
		regs.write(reg::ih_cam_doorbell, 1u << 28 | doorbell);
		pusher = std::async(std::launch::async, [this] {
			Interrupt irq;
			irq.client = 8;
			ring.push(irq);
		});
		host.begun.wait();
	}
	void set_up(u64 base)
	{
		regs.write(reg::ih_cntl, 0);
		regs.write(reg::ih_base, lower(base >> 8));
		regs.write(reg::ih_base_hi, upper(base >> 8));
		regs.write(reg::ih_wptr_addr_lo, lower(wptr_at));
		regs.write(reg::ih_wptr_addr_hi, upper(wptr_at));
		regs.write(reg::ih_wptr, 0);
		regs.write(reg::ih_cntl, on);
	}
	// Acts as the thread that delivers the guest's accesses.
	template <class F> bool returns(F f)
	{
		register_access = std::async(std::launch::async, f);
		return register_access.wait_for(5s) == std::future_status::ready;
	}
	void finish()
	{
		host.go_on.count_down();
		pusher.wait();
	}
	u32 published()
	{
		u32 v = 0;
		host.read(wptr_at, as_mutable_bytes(v));
		return v;
	}
};

TEST_F(InterruptTest, RegistersDoNotWaitForMemory)
{
	EXPECT_TRUE(returns([this] { regs.write(reg::ih_cntl, on | 1u << 31); }));
	finish();
	EXPECT_EQ(published(), 32u);
	EXPECT_EQ(host.interrupts, 1u);
}

TEST_F(InterruptTest, DoorbellsDoNotWaitForMemory)
{
	EXPECT_TRUE(returns([this] { ring.doorbell(doorbell, 5); }));
	finish();
}

TEST_F(InterruptTest, FaultsDoNotWaitForMemory)
{
	EXPECT_TRUE(returns([this] { ring.cam_enter(3, 7, false); }));
	finish();
}

TEST_F(InterruptTest, ResetsDoNotWaitForMemory)
{
	EXPECT_TRUE(returns([this] { ring.reset(); }));
	finish();
	EXPECT_EQ(published(), 0u);
	EXPECT_EQ(host.interrupts, 0u);
}

// The entry in flight belongs to the old ring.
TEST_F(InterruptTest, NewRingBeginsEmpty)
{
	EXPECT_TRUE(returns([this] { set_up(ring_at + 0x1000); }));
	finish();
	EXPECT_EQ(regs.read(reg::ih_wptr), 0u);
	EXPECT_EQ(published(), 0u);
	EXPECT_EQ(host.interrupts, 0u);
	ring.push({});
	EXPECT_EQ(published(), 32u);
	EXPECT_EQ(host.interrupts, 1u);
}

} // namespace
