// SPDX-License-Identifier: GPL-2.0
/*
 * Prepared SDMA batches: that each run does what the batch says, once; what
 * outlives eviction, other contexts and the death of processes; what does not
 * outlive a changed mapping; what is refused, one test for each reason.
 *
 * SEED=N in the environment takes other random data.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "emulator.h"
#include "sdma_prepared.h"

#define SYSTEM_VA	(1024 * MIB)
#define VRAM_VA		(2048 * MIB)
#define OTHER_VA	(3072 * MIB)
#define SIZE		(4 * MIB)
/* Where the counter of runs is: apart from all that is copied. */
#define COUNT_AT	(SIZE - 4096)
#define COUNT_VA	(VRAM_VA + COUNT_AT)

FIXTURE(prepared)
{
	struct gpu gpu;
	struct buffer system;
	struct buffer vram;
	unsigned int seed;
};

FIXTURE_SETUP(prepared)
{
	self->seed = env("SEED", 1);
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (!(self->gpu.info.features & AMDGPU_SDMA_FEATURE_PREPARED))
		SKIP(return, "no prepared batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->system, SIZE,
				AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA));
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	randomize(self->system.cpu, SIZE, &self->seed);
	memset(self->vram.cpu, 0, SIZE);
}

FIXTURE_TEARDOWN(prepared)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static uint64_t count(struct _test_data_prepared *self)
{
	return __atomic_load_n((uint64_t *)(self->vram.cpu + COUNT_AT),
			       __ATOMIC_ACQUIRE);
}

#define COPIES	64

/* Copies of 4 KiB, none of which continues another. */
static void scatter(struct drm_amdgpu_sdma_desc d[COPIES])
{
	unsigned int i;

	for (i = 0; i < COPIES; i++)
		d[i] = copy_desc(SYSTEM_VA + (COPIES - 1 - i) * 8192,
				 VRAM_VA + i * 4096, 4096);
}

static bool scattered(struct _test_data_prepared *self)
{
	unsigned int i;

	for (i = 0; i < COPIES; i++)
		if (memcmp(self->system.cpu + (COPIES - 1 - i) * 8192,
			   self->vram.cpu + i * 4096, 4096))
			return false;
	return true;
}

TEST_F(prepared, info)
{
	EXPECT_LE(16, self->gpu.info.max_prepared);
	EXPECT_LE(MIB, self->gpu.info.max_prepared_bytes);
}

/* Prepared once, run on what the memory holds each time. */
TEST_F(prepared, runs)
{
	struct drm_amdgpu_sdma_desc d[COPIES];
	unsigned int i;
	uint32_t h;

	scatter(d);
	ASSERT_EQ(0, prepare(&self->gpu, d, COPIES, &h));
	EXPECT_NE(0, h);
	EXPECT_EQ(0, self->vram.cpu[0]) TH_LOG("it ran");
	memset(d, 0xff, sizeof(d)); /* descriptors are not looked at again */
	for (i = 0; i < 5; i++) {
		randomize(self->system.cpu, COPIES * 8192, &self->seed);
		ASSERT_EQ(0, run_prepared(&self->gpu, h));
		ASSERT_TRUE(scattered(self)) TH_LOG("run %u", i);
	}
	EXPECT_EQ(0, forget(&self->gpu, h));
}

/* No run is lost or made twice, however many are on their way. */
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

/* A run begins when the run before has ended, also on another engine. */
TEST_F(prepared, one_after_the_other)
{
	/* moves a value one step each run */
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, MIB),
		copy_desc(SYSTEM_VA + 2 * MIB, SYSTEM_VA + 3 * MIB, 4096),
		{ .op = AMDGPU_SDMA_OP_COPY, .flags = AMDGPU_SDMA_DESC_BARRIER,
		  .src = SYSTEM_VA + MIB, .dst = SYSTEM_VA + 2 * MIB,
		  .size = 4096 },
		{ .op = AMDGPU_SDMA_OP_COPY, .flags = AMDGPU_SDMA_DESC_BARRIER,
		  .src = SYSTEM_VA, .dst = SYSTEM_VA + MIB, .size = 4096 },
	};
	struct drm_amdgpu_sdma_batch batch;
	struct gpu other = self->gpu;
	unsigned int round, i;
	uint8_t want[4096];
	uint32_t h;

	ASSERT_EQ(0, gpu_context(&other, &other.ctx));
	ASSERT_EQ(0, prepare(&self->gpu, d, 4, &h));
	for (round = 0; round < 10; round++) {
		memcpy(want, self->system.cpu, 4096);
		for (i = 0; i < 2; i++) {
			batch = run_of(i % 2 ? &other : &self->gpu, h);
			ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
		}
		batch = run_of(round % 2 ? &other : &self->gpu, h);
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		ASSERT_EQ(0, memcmp(want, self->system.cpu + 3 * MIB, 4096))
			TH_LOG("round %u", round);
		randomize(self->system.cpu, 4096, &self->seed);
	}
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

/* More engines than work: some share has no packets. */
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

/* The fences are of the run: a chain of runs and batches on a timeline. */
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
		wait_desc(SYSTEM_VA, 1, 10),
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

/* Waits of runs on their way count like those of batches. */
TEST_F(prepared, waits_are_capped)
{
	const uint32_t polls = 250, n = 4 * self->gpu.info.max_polls / polls;
	struct drm_amdgpu_sdma_desc d = wait_desc(SYSTEM_VA, 1, polls);
	struct drm_amdgpu_sdma_fence out[2] = { };
	struct drm_amdgpu_sdma_batch batch;
	uint32_t i, h[128];

	ASSERT_GT(128, n + 1);
	memset(self->system.cpu, 0, 4);
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out[0].handle));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out[1].handle));
	for (i = 0; i <= n; i++)
		ASSERT_EQ(0, prepare(&self->gpu, &d, 1, &h[i]));
	for (i = 0; i <= n; i++) {
		batch = run_of(&self->gpu, h[i]);
		batch.out_fences = (uintptr_t)&out[!!i];
		batch.num_out_fences = 1;
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	}
	/* The last was let in when the first had ended. */
	EXPECT_EQ(-ETIME, syncobj_status(&self->gpu, out[0].handle));
	__atomic_store_n((uint32_t *)self->system.cpu, 1, __ATOMIC_RELEASE);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, out[1].handle, 0, WAIT_SECONDS));
	EXPECT_EQ(1, syncobj_status(&self->gpu, out[1].handle));
}

#define BIG		(64 * MIB)
#define BIG_VA		(4096 * MIB)
#define MAX_BIG		40

#define REFILLS		8

/* A batch that takes long, for a run to wait for. */
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

/* So many buffers that the memory of all others leaves video memory. */
static void take_memory(struct __test_metadata *_metadata, struct gpu *other,
			struct buffer b[MAX_BIG])
{
	const unsigned int n = gpu_too_many(other, BIG);
	unsigned int i;

	for (i = 0; i < n; i++)
		ASSERT_EQ(0, buffer_new(other, &b[i], BIG,
					AMDGPU_GEM_DOMAIN_VRAM));
}

/* Buffers leave video memory between runs, and while a run is on its way. */
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

/* What a changed mapping leaves: it is said, and nothing ran. */
#define EXPECT_STALE()							\
	do {								\
		uint32_t h = self->handle;				\
									\
		EXPECT_EQ(-ESTALE, run_prepared(&self->gpu, h));	\
		EXPECT_EQ(-ESTALE, run_prepared(&self->gpu, h));	\
		EXPECT_EQ(0, self->vram.cpu[0]);			\
		EXPECT_EQ(0, forget(&self->gpu, h));			\
	} while (0)

FIXTURE(stale)
{
	struct gpu gpu;
	struct buffer vram;
	struct buffer other;
	uint32_t handle;
};

/* A fill of the begin and the end of what is mapped at OTHER_VA. */
FIXTURE_SETUP(stale)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA, 4096, 1),
		fill_desc(OTHER_VA, 4096, 1),
		fill_desc(OTHER_VA + SIZE - 4096, 4096, 1),
	};

	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->other, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, OTHER_VA));
	memset(self->vram.cpu, 0, SIZE);
	ASSERT_EQ(0, prepare(&self->gpu, d, 3, &self->handle));
}

FIXTURE_TEARDOWN(stale)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

TEST_F(stale, unmapped)
{
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->other, AMDGPU_VA_OP_UNMAP,
			       OTHER_VA, 0));
	EXPECT_STALE();
}

/* The same buffer at the same address is another mapping. */
TEST_F(stale, mapped_again)
{
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->other, AMDGPU_VA_OP_UNMAP,
			       OTHER_VA, 0));
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->other, AMDGPU_VA_OP_MAP,
			       OTHER_VA, GPU_RW));
	EXPECT_STALE();
}

TEST_F(stale, replaced)
{
	struct buffer b;

	ASSERT_EQ(0, buffer_new(&self->gpu, &b, SIZE, AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_REPLACE, OTHER_VA,
			       GPU_RW));
	EXPECT_STALE();
}

/* A hole in the middle, where the batch has nothing, splits the mapping. */
TEST_F(stale, split)
{
	struct buffer b = self->other;

	b.size = 4096;
	ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_CLEAR,
			       OTHER_VA + MIB, 0));
	EXPECT_STALE();
}

TEST_F(stale, read_only)
{
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->other, AMDGPU_VA_OP_REPLACE,
			       OTHER_VA, AMDGPU_VM_PAGE_READABLE));
	EXPECT_STALE();
}

/* Its last handle is gone: a prepared batch holds no buffer. */
TEST_F(stale, closed)
{
	buffer_free(&self->gpu, &self->other);
	EXPECT_STALE();
}

/* What the batch does not use may change. */
TEST_F(stale, not_by_others)
{
	struct buffer b;
	unsigned int i;

	ASSERT_EQ(0, buffer_new(&self->gpu, &b, SIZE, AMDGPU_GEM_DOMAIN_GTT));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_MAP,
				       OTHER_VA + 2 * SIZE, GPU_RW));
		ASSERT_EQ(0, run_prepared(&self->gpu, self->handle));
		ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_UNMAP,
				       OTHER_VA + 2 * SIZE, 0));
		ASSERT_EQ(0, run_prepared(&self->gpu, self->handle));
	}
	EXPECT_EQ(1, self->vram.cpu[0]);
	EXPECT_EQ(1, self->other.cpu[SIZE - 4096]);
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
	/* those before may have run on other engines */
	for (i = 0; i < 100 && count(self) != 51; i++)
		usleep(10000);
	EXPECT_EQ(51, count(self));
}

/* Another file's handles are none here. */
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

/* The context that prepared a batch may go. */
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

TEST_F(prepared, capped_in_number)
{
	const uint32_t max = self->gpu.info.max_prepared;
	struct drm_amdgpu_sdma_desc d = add_desc(COUNT_VA, 1);
	uint32_t i, *h = calloc(max, sizeof(*h)), more;

	ASSERT_NE(NULL, h);
	for (i = 0; i < max; i++)
		ASSERT_EQ(0, prepare(&self->gpu, &d, 1, &h[i]));
	EXPECT_EQ(-EMFILE, prepare(&self->gpu, &d, 1, &more));
	EXPECT_EQ(0, forget(&self->gpu, h[max / 2]));
	EXPECT_EQ(0, prepare(&self->gpu, &d, 1, &more));
	EXPECT_EQ(-EMFILE, prepare(&self->gpu, &d, 1, &more));
	for (i = 0; i < max; i++)
		if (i != max / 2)
			ASSERT_EQ(0, run_prepared(&self->gpu, h[i]));
	EXPECT_EQ(max - 1, count(self));
	free(h);
}

/* Packets have a limit too, which leaves room for batches. */
TEST_F(prepared, capped_in_bytes)
{
	const uint32_t n = 65536;
	struct drm_amdgpu_sdma_desc *d = calloc(n, sizeof(*d));
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, n);
	uint32_t i, h, last = 0;
	int ret = 0;

	ASSERT_NE(NULL, d);
	for (i = 0; i < n; i++)
		d[i] = copy_desc(SYSTEM_VA + (i * 2) % (SIZE / 64) * 64,
				 VRAM_VA + i * 32, 32);
	for (i = 0; i < 64 && !ret; i++) {
		ret = prepare(&self->gpu, d, n, &h);
		if (!ret)
			last = h;
	}
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_LE(2, i);
	EXPECT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, run_prepared(&self->gpu, last));
	EXPECT_EQ(0, forget(&self->gpu, last));
	EXPECT_EQ(0, prepare(&self->gpu, d, n, &h));
	free(d);
}

#define THREADS		4
#define EACH		200

struct worker {
	struct gpu gpu;
	uint32_t handle;
	int ret;
};

static void *run_many(void *arg)
{
	struct worker *w = arg;
	struct drm_amdgpu_sdma_batch batch = run_of(&w->gpu, w->handle);
	int i;

	for (i = 0; i < EACH - 1 && !w->ret; i++)
		w->ret = batch_submit(&w->gpu, &batch);
	if (!w->ret)
		w->ret = batch_run(&w->gpu, &batch);
	return NULL;
}

/* Threads run one batch at once, each with a context of its own. */
TEST_F(prepared, threads)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, 4096),
		add_desc(COUNT_VA, 1),
	};
	struct worker w[THREADS] = { };
	pthread_t threads[THREADS];
	unsigned int i;
	uint32_t h;

	ASSERT_EQ(0, prepare(&self->gpu, d, 2, &h));
	for (i = 0; i < THREADS; i++) {
		w[i].gpu = self->gpu;
		w[i].handle = h;
		if (i % 2)
			ASSERT_EQ(0, gpu_context(&w[i].gpu, &w[i].gpu.ctx));
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run_many,
					    &w[i]));
	}
	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, w[i].ret);
	}
	EXPECT_EQ(THREADS * EACH, count(self));
}

/* Batches that a file may have on their way. */
#define ON_THEIR_WAY	1024

struct runner {
	struct worker w;
	unsigned int runs;
};

static unsigned int runs(struct runner *r)
{
	return __atomic_load_n(&r->runs, __ATOMIC_ACQUIRE);
}

/* One run more than there may be. */
static void *run_too_many(void *arg)
{
	struct runner *r = arg;
	struct drm_amdgpu_sdma_batch batch = run_of(&r->w.gpu, r->w.handle);

	while (!r->w.ret && runs(r) <= ON_THEIR_WAY) {
		r->w.ret = batch_submit(&r->w.gpu, &batch);
		__atomic_add_fetch(&r->runs, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* While the engines stand still, one call waits; then all of them run. */
TEST_F(prepared, runs_are_capped)
{
	const struct drm_amdgpu_sdma_desc d = add_desc(COUNT_VA, 1);
	struct runner r = { .w.gpu = self->gpu };
	int port = emulator_open(), waited = 0;
	pthread_t thread;

	if (port < 0)
		SKIP(return, "no emulator to stop the engines of");
	ASSERT_EQ(0, prepare(&self->gpu, &d, 1, &r.w.handle));
	/* or what stands still is the update of page tables */
	ASSERT_EQ(0, run_prepared(&self->gpu, r.w.handle));
	ASSERT_EQ(0, emulator_all(port, "engine all hang"));
	ASSERT_EQ(0, pthread_create(&thread, NULL, run_too_many, &r));
	while (runs(&r) < ON_THEIR_WAY && waited++ < 500)
		usleep(10000);
	usleep(100000);
	EXPECT_EQ(ON_THEIR_WAY, runs(&r));
	EXPECT_EQ(0, emulator_all(port, "engine all resume"));
	close(port);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, r.w.ret);
	ASSERT_EQ(0, run_prepared(&self->gpu, r.w.handle));
	EXPECT_EQ(ON_THEIR_WAY + 3, count(self));
}

static void on_signal(int sig)
{
}

/* One call, never made again here. */
static void *run_once(void *arg)
{
	struct worker *w = arg;
	struct drm_amdgpu_sdma_batch batch = run_of(&w->gpu, w->handle);

	if (ioctl(w->gpu.fd, DRM_IOCTL_AMDGPU_SDMA_BATCH, &batch))
		w->ret = -errno;
	return NULL;
}

/*
 * Behind a run that waits for a flag, two threads are in the call: one for the
 * run to end, one for the other's lock. A signal whose handler wants calls made
 * again ends neither.
 */
TEST_F(prepared, signals_restart)
{
	struct sigaction action = {
		.sa_handler = on_signal, .sa_flags = SA_RESTART,
	};
	struct drm_amdgpu_sdma_desc d[] = {
		wait_desc(SYSTEM_VA, 1, self->gpu.info.max_polls),
		add_desc(COUNT_VA, 1),
	};
	struct worker w[3] = { };
	pthread_t threads[3];
	unsigned int i;

	memset(self->system.cpu, 0, 4);
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	w[0].gpu = self->gpu;
	ASSERT_EQ(0, prepare(&self->gpu, d, 2, &w[0].handle));
	for (i = 0; i < 3; i++) {
		w[i] = w[0];
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run_once,
					    &w[i]));
		usleep(50000);
	}
	/* first who waits for the lock, while that is held */
	pthread_kill(threads[2], SIGUSR1);
	usleep(50000);
	pthread_kill(threads[1], SIGUSR1);
	usleep(50000);
	__atomic_store_n((uint32_t *)self->system.cpu, 1, __ATOMIC_RELEASE);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, w[i].ret);
	}
	/* behind all of them */
	ASSERT_EQ(0, run_prepared(&self->gpu, w[0].handle));
	EXPECT_EQ(4, count(self));
}

/* The file goes while runs are on their way, prepared batches with it. */
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

/* Prepares, runs, forgets at random, at the addresses of the fixture. */
static void use_for_ever(unsigned int seed)
{
	struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA, 256 * KIB, 0xdddddddd),
		add_desc(COUNT_VA, 1),
		wait_desc(COUNT_VA, 0, 20),
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

/* Processes are killed at some moment. */
TEST_F(prepared, killed)
{
	struct drm_amdgpu_sdma_desc d[COPIES];
	unsigned int round;
	uint32_t h;

	scatter(d);
	ASSERT_EQ(0, prepare(&self->gpu, d, COPIES, &h));
	for (round = 0; round < 12; round++) {
		pid_t child = fork();
		int status;

		ASSERT_LE(0, child);
		if (!child)
			use_for_ever(round);
		usleep(50000 + next_random(&self->seed) % 100000);
		ASSERT_EQ(0, kill(child, SIGKILL));
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
		EXPECT_EQ(0, count(self));
		randomize(self->system.cpu, COPIES * 8192, &self->seed);
		ASSERT_EQ(0, run_prepared(&self->gpu, h));
		ASSERT_TRUE(scattered(self));
	}
}

/*
 * What is refused. Each test spoils one member of a call that is good: to
 * prepare, to run or to forget a batch that adds one to the counter.
 */
FIXTURE(refused)
{
	struct gpu gpu;
	struct buffer vram;
	struct drm_amdgpu_sdma_desc desc;
	struct drm_amdgpu_sdma_fence fence;
	uint32_t handle;
};

FIXTURE_VARIANT(refused)
{
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(refused, prepare)
{
	.flags = AMDGPU_SDMA_BATCH_PREPARE,
};

FIXTURE_VARIANT_ADD(refused, run)
{
	.flags = AMDGPU_SDMA_BATCH_RUN,
};

FIXTURE_VARIANT_ADD(refused, forget)
{
	.flags = AMDGPU_SDMA_BATCH_FORGET,
};

FIXTURE_SETUP(refused)
{
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	memset(self->vram.cpu, 0, SIZE);
	self->desc = add_desc(COUNT_VA, 1);
	ASSERT_EQ(0, prepare(&self->gpu, &self->desc, 1, &self->handle));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &self->fence.handle));
}

FIXTURE_TEARDOWN(refused)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static struct drm_amdgpu_sdma_batch good(struct _test_data_refused *self,
					 uint32_t flags)
{
	struct drm_amdgpu_sdma_batch batch = { };

	if (flags == AMDGPU_SDMA_BATCH_PREPARE)
		batch = batch_of(&self->gpu, &self->desc, 1);
	else if (flags == AMDGPU_SDMA_BATCH_RUN)
		batch = run_of(&self->gpu, self->handle);
	else
		batch.handle = self->handle;
	batch.flags = flags;
	return batch;
}

/* Whatever it was, the batch is there and has not run. */
#define EXPECT_SPOILED(error, spoil)					\
	do {								\
		struct drm_amdgpu_sdma_batch b =			\
			good(self, variant->flags);			\
									\
		b.spoil;						\
		EXPECT_EQ(error, batch_submit(&self->gpu, &b));		\
		EXPECT_EQ(AMDGPU_SDMA_NO_INDEX, b.error_index);		\
		EXPECT_EQ(0, b.engines_used);				\
		EXPECT_EQ(0, run_prepared(&self->gpu, self->handle));	\
		EXPECT_EQ(1, *(uint64_t *)(self->vram.cpu + COUNT_AT));	\
	} while (0)

#define SKIP_FOR(which)							\
	do {								\
		if (variant->flags == AMDGPU_SDMA_BATCH_ ## which)	\
			SKIP(return, "it may be there");		\
	} while (0)

TEST_F(refused, nothing)
{
	struct drm_amdgpu_sdma_batch b = good(self, variant->flags);

	EXPECT_EQ(0, batch_submit(&self->gpu, &b));
}

TEST_F(refused, two_flags)
{
	EXPECT_SPOILED(-EINVAL, flags |= variant->flags << 1);
}

TEST_F(refused, unknown_flag)
{
	EXPECT_SPOILED(-EINVAL, flags |= 1u << 31);
}

TEST_F(refused, reserved)
{
	EXPECT_SPOILED(-EINVAL, reserved[2] = 1);
}

TEST_F(refused, handle)
{
	SKIP_FOR(RUN);
	SKIP_FOR(FORGET);
	EXPECT_SPOILED(-EINVAL, handle = 1);
}

TEST_F(refused, unknown_handle)
{
	SKIP_FOR(PREPARE);
	EXPECT_SPOILED(-ENOENT, handle = 1u << 30);
}

TEST_F(refused, context)
{
	SKIP_FOR(PREPARE);
	EXPECT_SPOILED(-EINVAL, ctx_id = 4711);
}

TEST_F(refused, descs)
{
	SKIP_FOR(PREPARE);
	EXPECT_SPOILED(-EINVAL, descs = (uintptr_t)&self->desc);
}

TEST_F(refused, num_descs)
{
	SKIP_FOR(PREPARE);
	EXPECT_SPOILED(-EINVAL, num_descs = 1);
}

TEST_F(refused, desc_stride)
{
	SKIP_FOR(PREPARE);
	EXPECT_SPOILED(-EINVAL, desc_stride = sizeof(self->desc));
}

TEST_F(refused, placement)
{
	SKIP_FOR(PREPARE);
	EXPECT_SPOILED(-EINVAL, placement = AMDGPU_SDMA_PLACE_ONE_ENGINE);
}

TEST_F(refused, engine_mask)
{
	SKIP_FOR(PREPARE);
	EXPECT_SPOILED(-EINVAL, engine_mask = 1);
}

TEST_F(refused, in_fences)
{
	SKIP_FOR(RUN);
	EXPECT_SPOILED(-EINVAL, in_fences = (uintptr_t)&self->fence);
}

TEST_F(refused, num_in_fences)
{
	SKIP_FOR(RUN);
	EXPECT_SPOILED(-EINVAL, num_in_fences = 1);
}

TEST_F(refused, out_fences)
{
	SKIP_FOR(RUN);
	EXPECT_SPOILED(-EINVAL, out_fences = (uintptr_t)&self->fence);
}

TEST_F(refused, num_out_fences)
{
	SKIP_FOR(RUN);
	EXPECT_SPOILED(-EINVAL, num_out_fences = 1);
}

TEST_F(refused, too_many_in_fences)
{
	SKIP_FOR(PREPARE);
	SKIP_FOR(FORGET);
	EXPECT_SPOILED(-E2BIG, num_in_fences = self->gpu.info.max_fences + 1);
}

TEST_F(refused, too_many_out_fences)
{
	SKIP_FOR(PREPARE);
	SKIP_FOR(FORGET);
	EXPECT_SPOILED(-E2BIG, num_out_fences = self->gpu.info.max_fences + 1);
}

/* A descriptor at fault is named, as in a batch. */
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
