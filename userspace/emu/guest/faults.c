// SPDX-License-Identifier: MIT
// Faults on purpose. Needs the emulator's control port.
#include "gpu.h"

#include <string.h>
#include <unistd.h>

#include <drm/amdgpu_drm.h>

static int open_first(struct gpu *gpu, struct buffer *b)
{
	int minors[MAX_GPUS], ret;

	if (!find_render_nodes(minors))
		return -1;
	ret = open_gpu(gpu, minors[0]);
	if (!ret)
		ret = new_buffer(gpu, b, 65536, IN_SYSTEM | MAP_GPU | MAP_CPU);
	if (!ret)
		memset(b->cpu, 0, b->size);
	return ret;
}

static int run_fence(struct gpu *gpu, struct buffer *b, uint32_t value)
{
	struct buffer *all[] = { b, NULL };
	struct commands c = start_commands(gpu);

	emit_fence(&c, b->va, value);
	if (submit_and_wait(gpu, &c, all))
		return -1;
	return *(volatile uint32_t *)b->cpu == value ? 0 : -1;
}

static int test_lost_interrupts(void)
{
	struct buffer b;
	struct gpu gpu;

	if (!have_emulator())
		return SKIP;
	CHECK(!open_first(&gpu, &b), "no GPU");
	for (uint32_t i = 1; i <= 6; i++) {
		CHECK(!emulator(i % 2 ? "irq drop 1" : "irq duplicate 1", NULL,
				0),
		      "control");
		CHECK(!run_fence(&gpu, &b, i), "round %u", i);
	}
	CHECK(!emulator("irq drop 0", NULL, 0), "control");
	CHECK(!emulator("irq duplicate 0", NULL, 0), "control");
	CHECK(!emulator("irq delay 20000", NULL, 0), "control");
	CHECK(!run_fence(&gpu, &b, 77), "late interrupt");
	CHECK(!emulator("irq delay 0", NULL, 0), "control");
	close_gpu(&gpu);
	return 0;
}

static int test_slow_engine(void)
{
	struct buffer b;
	struct gpu gpu;

	if (!have_emulator())
		return SKIP;
	CHECK(!open_first(&gpu, &b), "no GPU");
	CHECK(!emulator("engine all slow 2000", NULL, 0), "control");
	CHECK(!run_fence(&gpu, &b, 5), "slow");
	CHECK(!emulator("engine all resume", NULL, 0), "control");
	close_gpu(&gpu);
	return 0;
}

/* A bad address is reported and reads the default page; the job goes on. */
static int test_vm_fault(void)
{
	struct buffer b, *all[] = { &b, NULL };
	long long before = counter("faults");
	struct commands c;
	struct gpu gpu;

	if (!have_emulator())
		return SKIP;
	CHECK(!open_first(&gpu, &b), "no GPU");
	c = start_commands(&gpu);
	emit_copy(&c, 0x7000000000, b.va, 4096);
	emit_fence(&c, b.va + 8192, 3);
	CHECK(!submit_and_wait(&gpu, &c, all), "submission");
	CHECK(counter("faults") > before, "no fault");
	CHECK(((uint32_t *)b.cpu)[2048] == 3, "stopped");
	close_gpu(&gpu);
	return 0;
}

/* After a reset the old context is guilty and a new one works. */
static int recover(struct gpu *gpu, struct buffer *b, long long resets)
{
	double end = now() + 40;

	while (counter("resets") == resets && now() < end)
		usleep(50000);
	CHECK(counter("resets") > resets, "no reset");
	for (; now() < end; usleep(200000)) {
		if (!new_context(gpu) && !run_fence(gpu, b, 99))
			return 0;
	}
	CHECK(0, "no submission works after the reset");
}

static int test_hang(void)
{
	struct buffer b, *all[] = { &b, NULL };
	struct commands c;
	struct gpu gpu;
	uint64_t fence;
	long long resets = counter("resets");

	if (!have_emulator())
		return SKIP;
	CHECK(!open_first(&gpu, &b), "no GPU");
	CHECK(!emulator("engine all hang", NULL, 0), "control");
	c = start_commands(&gpu);
	emit_fence(&c, b.va, 1);
	CHECK(!submit(&gpu, &c, 0, all, &fence), "submission");
	CHECK(!recover(&gpu, &b, resets), "recovery");
	close_gpu(&gpu);
	return 0;
}

static int test_illegal_packet(void)
{
	struct buffer b, *all[] = { &b, NULL };
	struct commands c;
	struct gpu gpu;
	uint64_t fence;
	long long resets = counter("resets"),
		  illegal = counter("illegal_packets");

	if (!have_emulator())
		return SKIP;
	CHECK(!open_first(&gpu, &b), "no GPU");
	c = start_commands(&gpu);
	/* an exchange of addresses that are not aligned */
	EMIT(&c, 0x901, 63, 0, LO(b.va + 32), HI(b.va), LO(b.va + 4096),
	     HI(b.va));
	CHECK(!submit(&gpu, &c, 0, all, &fence), "submission");
	CHECK(!recover(&gpu, &b, resets), "recovery");
	CHECK(counter("illegal_packets") == illegal + 1, "not noticed");
	close_gpu(&gpu);
	return 0;
}

const struct test fault_tests[] = {
	{ "lost_interrupts", test_lost_interrupts },
	{ "slow_engine", test_slow_engine },
	{ "vm_fault", test_vm_fault },
	{ "hang_and_reset", test_hang },
	{ "illegal_packet_and_reset", test_illegal_packet },
	{ NULL, NULL },
};
