// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers keep their data when SDMA moves them between system and video memory,
 * the CPU and the GPU access them, they are mapped again, or full video memory
 * evicts them. And they are freed while others are evicted.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"

#define SIZE	(2 * MIB)

FIXTURE(memory) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer ib, sys, vram, out;
	int kmsg;
};

FIXTURE_SETUP(memory)
{
	struct gpu *gpu = &self->gpu;

	if (!find_gpus(self->gpus))
		SKIP(return, "no GPU");
	self->kmsg = kmsg_open();
	ASSERT_EQ(0, open_gpu(gpu, self->gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(gpu, &self->ib, 4096,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, new_mapped_buffer(gpu, &self->sys, SIZE,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, new_mapped_buffer(gpu, &self->vram, SIZE,
				       AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, new_mapped_buffer(gpu, &self->out, SIZE,
				       AMDGPU_GEM_DOMAIN_GTT));
}

FIXTURE_TEARDOWN(memory)
{
	if (self->kmsg >= 0)
		EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->gpu.fd);
}

static void fill(void *at, uint64_t size, uint32_t seed)
{
	uint32_t *p = at;

	for (uint64_t i = 0; i < size / 4; i++)
		p[i] = (uint32_t)(i * 2654435761U) ^ seed;
}

/* Have SDMA copy, and wait for it. */
static int copy(FIXTURE_DATA(memory) *self, uint64_t from, uint64_t to)
{
	struct buffer *all[] = {
		&self->ib, &self->sys, &self->vram, &self->out,
	};
	const uint32_t packet[8] = {
		1, SIZE - 1, 0, LO(from), HI(from), LO(to), HI(to),
	};
	uint64_t fence;
	int ret;

	memcpy(self->ib.cpu, packet, sizeof(packet));
	ret = submit(&self->gpu, all, ARRAY_SIZE(all), 8, &fence);
	return ret ? ret : wait_fence(&self->gpu, fence, 30);
}

TEST_F(memory, to_video_memory_and_back)
{
	fill(self->sys.cpu, SIZE, 1);
	memset(self->out.cpu, 0, SIZE);
	ASSERT_EQ(0, copy(self, self->sys.va, self->vram.va));
	EXPECT_EQ(0, memcmp(self->sys.cpu, self->vram.cpu, SIZE));
	ASSERT_EQ(0, copy(self, self->vram.va, self->out.va));
	EXPECT_EQ(0, memcmp(self->sys.cpu, self->out.cpu, SIZE));
}

/* The next job reads what the CPU writes to video memory. */
TEST_F(memory, cpu_writes)
{
	for (uint32_t round = 0; round < 10; round++) {
		fill(self->vram.cpu, SIZE, round);
		ASSERT_EQ(0, copy(self, self->vram.va, self->out.va));
		ASSERT_EQ(0, memcmp(self->vram.cpu, self->out.cpu, SIZE));
	}
}

static int map_at(struct gpu *gpu, struct buffer *b, uint64_t va, uint32_t op)
{
	return gem_va(gpu, b, op, PAGE_RW, va, b->size);
}

/* One address maps the one buffer, then the other. */
TEST_F(memory, map_anew)
{
	struct buffer *b[] = { &self->sys, &self->vram };
	const uint64_t va = 0x40000000;

	for (int i = 0; i < 10; i++) {
		fill(b[i % 2]->cpu, SIZE, i);
		ASSERT_EQ(0, map_at(&self->gpu, b[i % 2], va,
				    AMDGPU_VA_OP_MAP));
		ASSERT_EQ(0, copy(self, va, self->out.va));
		ASSERT_EQ(0, memcmp(b[i % 2]->cpu, self->out.cpu, SIZE));
		ASSERT_EQ(0, map_at(&self->gpu, b[i % 2], va,
				    AMDGPU_VA_OP_UNMAP));
	}
}

/* Mark one word of each page with its place and @number, or check that. */
static int mark(struct gpu *gpu, struct buffer *b, uint32_t number, bool check)
{
	int ret = map_cpu(gpu, b, NULL);
	uint32_t *p = b->cpu;

	for (uint64_t i = 0; !ret && i < b->size / 4; i += 1024) {
		if (!check)
			p[i] = number << 24 | i;
		else if (p[i] != (number << 24 | (uint32_t)i))
			ret = -EIO;
	}
	munmap(b->cpu, b->size);
	return ret;
}

/* A quarter more than the video memory: every buffer moves out and in again. */
TEST_F_TIMEOUT(memory, eviction, 200)
{
	const uint64_t each = 64 * MIB, total = video_memory(&self->gpu);
	struct buffer b[64];
	unsigned int count = total / 4 * 5 / each + 1;

	if (count > ARRAY_SIZE(b))
		SKIP(return, "there is too much video memory to fill");
	for (unsigned int i = 0; i < count; i++) {
		ASSERT_EQ(0, new_buffer(&self->gpu, &b[i], each,
					AMDGPU_GEM_DOMAIN_VRAM));
		ASSERT_EQ(0, mark(&self->gpu, &b[i], i, false));
	}
	for (unsigned int i = 0; i < count; i++)
		ASSERT_EQ(0, mark(&self->gpu, &b[i], i, true));
}

struct evictor {
	struct gpu *gpu;
	struct buffer *list[3];
	atomic_bool stop;
	unsigned int jobs;
	int err;
};

/* For each job the driver looks for room for the last buffer of the list. */
static void *evict(void *arg)
{
	struct evictor *e = arg;
	uint64_t fence;

	while (!e->err && !e->stop) {
		e->err = submit(e->gpu, e->list, 3, 8, &fence);
		if (!e->err)
			e->err = wait_fence(e->gpu, fence, 30);
		e->jobs++;
	}
	return NULL;
}

/* Eviction comes upon buffers that are being freed, and leaves them alone. */
TEST_F_TIMEOUT(memory, go_beside_eviction, 200)
{
	const uint64_t tenth = video_memory(&self->gpu) / 10 & -MIB;
	struct buffer away, there, b;
	struct evictor e = {
		.gpu = &self->gpu, .list = { &self->ib, &there, &away },
	};
	pthread_t thread;
	int ret = 0;

	/*
	 * The two do not fit beside each other. Some room is left; otherwise
	 * the driver, having moved so much already, would not look for more.
	 */
	ASSERT_EQ(0, new_buffer(&self->gpu, &away, 7 * tenth,
				AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, new_buffer(&self->gpu, &there, 4 * tenth,
				AMDGPU_GEM_DOMAIN_VRAM));
	memset(self->ib.cpu, 0, 32);
	ASSERT_EQ(0, pthread_create(&thread, NULL, evict, &e));
	for (int i = 0; i < 2000 && !ret; i++) {
		ret = new_buffer(&self->gpu, &b, 4096, AMDGPU_GEM_DOMAIN_VRAM);
		if (!ret)
			ret = free_buffer(&self->gpu, &b);
	}
	e.stop = true;
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, e.err);
	TH_LOG("%u jobs", e.jobs);
}

TEST_HARNESS_MAIN
