// SPDX-License-Identifier: GPL-2.0
/*
 * Prepared SDMA batches: each run does what the batch says, once. They survive
 * eviction, the end of a context and the death of other processes.
 */
#include "sdma_killed.h"
#include "sdma_runs.h"

TEST_F(prepared, info)
{
	EXPECT_LE(16, self->gpu.info.max_prepared);
	EXPECT_LE(MIB, self->gpu.info.max_prepared_bytes);
}

/* Prepared once; each run uses what the memory holds at that time. */
TEST_F(prepared, runs)
{
	struct drm_amdgpu_sdma_desc d[COPIES];
	unsigned int i;
	uint32_t h;

	scatter(d);
	ASSERT_EQ(0, prepare(&self->gpu, d, COPIES, &h));
	EXPECT_NE(0, h);
	EXPECT_EQ(0, self->vram.cpu[0]) TH_LOG("it ran");
	memset(d, 0xff, sizeof(d)); /* descriptors are not read again */
	for (i = 0; i < 5; i++) {
		randomize(self->system.cpu, COPIES * 8192, &self->seed);
		ASSERT_EQ(0, run_prepared(&self->gpu, h));
		ASSERT_TRUE(scattered(self)) TH_LOG("run %u", i);
	}
	EXPECT_EQ(0, forget(&self->gpu, h));
}

/* No run is lost or executed twice, however many are in flight. */
TEST_F_TIMEOUT(prepared, ten_thousand, 280)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, 4096),
		add_desc(COUNT_VA, 1),
	};
	const unsigned int n = env("RUNS", 10000);
	struct drm_amdgpu_sdma_batch batch;
	unsigned int i;
	uint32_t h;

	ASSERT_EQ(0, prepare(&self->gpu, d, 2, &h));
	batch = run_of(&self->gpu, h);
	for (i = 0; i < n - 1; i++)
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(n, count(self));
	EXPECT_EQ(0, memcmp(self->system.cpu, self->vram.cpu, 4096));
}

TEST_F(prepared, fan_out)
{
	struct drm_amdgpu_sdma_desc d[COPIES];
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, COPIES);
	unsigned int i;
	uint32_t h;

	scatter(d);
	batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	ASSERT_EQ(0, batch_prepare(&self->gpu, &batch, &h));
	EXPECT_EQ(0, batch.engines_used);
	for (i = 0; i < 5; i++) {
		randomize(self->system.cpu, COPIES * 8192, &self->seed);
		batch = run_of(&self->gpu, h);
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		EXPECT_EQ(self->gpu.info.engine_mask, batch.engines_used);
		ASSERT_TRUE(scattered(self)) TH_LOG("run %u", i);
	}
}

/* More engines than work: some shares have no packets. */
TEST_F(prepared, fan_out_of_little)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA, 64);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	uint32_t h;

	batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	ASSERT_EQ(0, batch_prepare(&self->gpu, &batch, &h));
	ASSERT_EQ(0, run_prepared(&self->gpu, h));
	EXPECT_EQ(0, memcmp(self->system.cpu, self->vram.cpu, 64));
}

TEST_F(prepared, engine_mask)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA, 4096);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	uint32_t h, engine;

	for (engine = 0; engine < 32; engine++) {
		if (!(self->gpu.info.engine_mask & 1u << engine))
			continue;
		batch = batch_of(&self->gpu, &d, 1);
		batch.engine_mask = 1u << engine;
		ASSERT_EQ(0, batch_prepare(&self->gpu, &batch, &h));
		batch = run_of(&self->gpu, h);
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		EXPECT_EQ(1u << engine, batch.engines_used);
	}
}

/* Fences belong to the run: a chain of runs and batches on a timeline. */
TEST_F(prepared, fences)
{
	const struct drm_amdgpu_sdma_desc add = add_desc(COUNT_VA, 1);
	const struct drm_amdgpu_sdma_desc copy =
		copy_desc(COUNT_VA, SYSTEM_VA, 8);
	struct drm_amdgpu_sdma_fence in = { }, out = { };
	struct drm_amdgpu_sdma_batch batch;
	unsigned int i;
	uint32_t h;

	ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
	in.handle = out.handle;
	ASSERT_EQ(0, prepare(&self->gpu, &add, 1, &h));
	for (i = 0; i < 20; i++) {
		batch = i % 2 ? batch_of(&self->gpu, &copy, 1) :
				run_of(&self->gpu, h);
		in.point = i;
		out.point = i + 1;
		batch.in_fences = (uintptr_t)&in;
		batch.num_in_fences = !!i;
		batch.out_fences = (uintptr_t)&out;
		batch.num_out_fences = 1;
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	}
	ASSERT_EQ(0, syncobj_wait(&self->gpu, out.handle, 20, WAIT_SECONDS));
	EXPECT_EQ(10, *(uint64_t *)self->system.cpu);
}

TEST_F(prepared, wait)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		wait_eq(SYSTEM_VA, 1, wait_ns(&self->gpu, 3)),
		add_desc(COUNT_VA, 1),
	};
	uint32_t *flag = (uint32_t *)self->system.cpu, h;
	unsigned int i;

	ASSERT_EQ(0, prepare(&self->gpu, d, 2, &h));
	for (i = 0; i < 6; i++) {
		__atomic_store_n(flag, i % 2, __ATOMIC_RELEASE);
		ASSERT_EQ(i % 2 ? 0 : -ETIME, run_prepared(&self->gpu, h));
		EXPECT_EQ((i + 1) / 2, count(self));
	}
}

#define BIG		(64 * MIB)
#define BIG_VA		(4096 * MIB)
#define MAX_BIG		40

#define REFILLS		8

/* A slow batch, for a run to wait for. */
static int submit_slow(struct gpu *gpu, uint64_t va, uint32_t syncobj)
{
	struct drm_amdgpu_sdma_desc d[REFILLS];
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, d, REFILLS);
	unsigned int i;

	for (i = 0; i < REFILLS; i++) {
		d[i] = fill_desc(va, BIG, i);
		d[i].flags = AMDGPU_SDMA_DESC_BARRIER;
	}
	batch.engine_mask = 1u << (31 - __builtin_clz(gpu->info.engine_mask));
	return batch_submit_to(gpu, &batch, syncobj, 0);
}

static int run_behind(struct gpu *gpu, uint32_t h, uint32_t syncobj,
		      uint32_t out_syncobj)
{
	struct drm_amdgpu_sdma_fence in = { .handle = syncobj };
	struct drm_amdgpu_sdma_batch run = run_of(gpu, h);

	run.in_fences = (uintptr_t)&in;
	run.num_in_fences = 1;
	return batch_submit_to(gpu, &run, out_syncobj, 0);
}

/* Allocates so much that the buffers of other files leave video memory. */
static void take_memory(struct __test_metadata *_metadata, struct gpu *other,
			struct buffer b[MAX_BIG])
{
	const unsigned int n = gpu_too_many(other, BIG);
	unsigned int i;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, buffer_new(other, &b[i], BIG,
					AMDGPU_GEM_DOMAIN_VRAM));
}

/* Buffers leave video memory between runs, and while a run is pending. */
TEST_F_TIMEOUT(prepared, eviction, 120)
{
	uint64_t evicted = gpu_evictions(&self->gpu);
	struct drm_amdgpu_sdma_desc d[COPIES];
	struct buffer slow, b[MAX_BIG] = { };
	uint32_t h, before, after;
	struct gpu other;
	unsigned int i;
	bool busy;

	if (gpu_too_many(&self->gpu, BIG) > MAX_BIG)
		SKIP(return, "too much video memory");
	ASSERT_EQ(0, gpu_open(&other, 0));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &before));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &after));
	ASSERT_EQ(0, buffer_new(&self->gpu, &slow, BIG,
				AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, buffer_va(&self->gpu, &slow, AMDGPU_VA_OP_MAP, BIG_VA,
			       GPU_RW));
	scatter(d);
	ASSERT_EQ(0, prepare(&self->gpu, d, COPIES, &h));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, submit_slow(&self->gpu, BIG_VA, before));
	ASSERT_EQ(0, run_behind(&self->gpu, h, before, after));
	take_memory(_metadata, &other, b);
	EXPECT_LT(evicted, gpu_evictions(&self->gpu));
	busy = !syncobj_status(&self->gpu, after);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, after, 0, WAIT_SECONDS));
	EXPECT_TRUE(scattered(self));
	randomize(self->system.cpu, COPIES * 8192, &self->seed);
	ASSERT_EQ(0, run_prepared(&self->gpu, h));
	EXPECT_TRUE(scattered(self));
	close(other.fd);
	if (!busy)
		SKIP(return, "the run had ended when its buffers moved");
}

TEST_F(prepared, forget)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, MIB),
		add_desc(COUNT_VA, 1),
	};
	struct drm_amdgpu_sdma_batch batch;
	unsigned int i;
	uint32_t h;

	EXPECT_EQ(-ENOENT, run_prepared(&self->gpu, 0));
	EXPECT_EQ(-ENOENT, forget(&self->gpu, 0));
	EXPECT_EQ(-ENOENT, forget(&self->gpu, 1));
	/* Runs that were submitted go on. */
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, prepare(&self->gpu, d, 2, &h));
		batch = run_of(&self->gpu, h);
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
		ASSERT_EQ(0, forget(&self->gpu, h));
		ASSERT_EQ(-ENOENT, forget(&self->gpu, h));
		ASSERT_EQ(-ENOENT, run_prepared(&self->gpu, h));
	}
	ASSERT_EQ(0, prepare(&self->gpu, d, 2, &h));
	ASSERT_EQ(0, run_prepared(&self->gpu, h));
	/* earlier runs may not have ended yet, on other engines */
	for (i = 0; i < 100 && count(self) != 51; i++)
		usleep(10000);
	EXPECT_EQ(51, count(self));
}

/* Handles of another file are not valid here. */
TEST_F(prepared, is_of_the_file)
{
	struct drm_amdgpu_sdma_desc d = fill_desc(VRAM_VA, 4096, 1);
	struct buffer vram;
	struct gpu other;
	uint32_t h;

	ASSERT_EQ(0, gpu_open(&other, 0));
	ASSERT_EQ(0, buffer_map(&other, &vram, SIZE, AMDGPU_GEM_DOMAIN_VRAM,
				VRAM_VA));
	ASSERT_EQ(0, prepare(&other, &d, 1, &h));
	EXPECT_EQ(-ENOENT, run_prepared(&self->gpu, h));
	EXPECT_EQ(-ENOENT, forget(&self->gpu, h));
	EXPECT_EQ(0, run_prepared(&other, h));
	EXPECT_EQ(0, self->vram.cpu[0]);
	close(other.fd);
}

/* The context that prepared a batch may be freed. */
TEST_F(prepared, any_context)
{
	struct drm_amdgpu_sdma_desc d = add_desc(COUNT_VA, 1);
	union drm_amdgpu_ctx arg = { .in.op = AMDGPU_CTX_OP_FREE_CTX };
	struct gpu other = self->gpu;
	uint32_t h;

	ASSERT_EQ(0, gpu_context(&other, &other.ctx));
	ASSERT_EQ(0, prepare(&other, &d, 1, &h));
	ASSERT_EQ(0, run_prepared(&other, h));
	arg.in.ctx_id = other.ctx;
	ASSERT_EQ(0, gpu_ioctl(&self->gpu, DRM_IOCTL_AMDGPU_CTX, &arg));
	EXPECT_EQ(-EINVAL, run_prepared(&other, h));
	EXPECT_EQ(0, run_prepared(&self->gpu, h));
	EXPECT_EQ(2, count(self));
}

/* The file is closed, with its prepared batches, while runs are in flight. */
TEST_F(prepared, close_busy)
{
	struct drm_amdgpu_sdma_desc d = fill_desc(VRAM_VA, MIB, 1);
	struct drm_amdgpu_sdma_batch batch;
	struct buffer vram;
	struct gpu gpu;
	unsigned int i, j;
	uint32_t h;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, gpu_open(&gpu, 0));
		ASSERT_EQ(0, buffer_map(&gpu, &vram, SIZE,
					AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
		ASSERT_EQ(0, prepare(&gpu, &d, 1, &h));
		batch = run_of(&gpu, h);
		for (j = 0; j < i; j++)
			ASSERT_EQ(0, batch_submit(&gpu, &batch));
		munmap(vram.cpu, vram.size);
		close(gpu.fd);
	}
	EXPECT_EQ(0, self->vram.cpu[0]);
}

/* Prepares, runs and forgets at random, at the addresses of the fixture. */
static void use_for_ever(unsigned int seed)
{
	struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA, 256 * KIB, 0xdddddddd),
		add_desc(COUNT_VA, 1),
		wait_eq(COUNT_VA, 0, 500000),
	};
	struct drm_amdgpu_sdma_batch batch;
	uint32_t h[8] = { };
	struct buffer vram;
	struct gpu gpu;

	if (gpu_open(&gpu, 0) ||
	    buffer_map(&gpu, &vram, SIZE, AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA))
		_exit(1);
	while (1) {
		unsigned int i = next_random(&seed) % 8;
		int ret;

		if (!h[i]) {
			batch = batch_of(&gpu, d, 1 + seed % 3);
			batch.placement = AMDGPU_SDMA_PLACE_AUTO;
			ret = batch_prepare(&gpu, &batch, &h[i]);
		} else if (next_random(&seed) % 8) {
			batch = run_of(&gpu, h[i]);
			ret = batch_submit(&gpu, &batch);
		} else {
			ret = forget(&gpu, h[i]);
			h[i] = 0;
		}
		if (ret)
			_exit(2);
	}
}

/* Processes are killed at a random moment. */
TEST_F(prepared, killed)
{
	struct drm_amdgpu_sdma_desc d[COPIES];
	unsigned int round;
	uint32_t h;

	scatter(d);
	ASSERT_EQ(0, prepare(&self->gpu, d, COPIES, &h));
	for (round = 0; round < 12; round++) {
		ASSERT_EQ(0, kill_sometime(use_for_ever, round, &self->seed));
		EXPECT_EQ(0, count(self));
		randomize(self->system.cpu, COPIES * 8192, &self->seed);
		ASSERT_EQ(0, run_prepared(&self->gpu, h));
		ASSERT_TRUE(scattered(self));
	}
}

/* The index of a bad descriptor is reported, as when a batch is submitted. */
TEST_F(prepared, names_the_descriptor)
{
	struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA, 4096, 1), fill_desc(OTHER_VA, 4096, 1),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);
	uint32_t h;

	EXPECT_EQ(-ENOENT, batch_prepare(&self->gpu, &batch, &h));
	EXPECT_EQ(1, batch.error_index);
	EXPECT_EQ(0, h);
}

TEST_HARNESS_MAIN
