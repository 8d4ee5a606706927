// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches and the memory they name: mappings that are made, replaced or
 * removed meanwhile, evictions, and files that are closed.
 */
#include <pthread.h>

#include "sdma_hold.h"
#include "sdma_killed.h"
#include "sdma_model.h"

/*
 * One address maps one buffer, then another: a translation that survives the
 * change reads the data of the first one.
 */
TEST_F(sdma, remap)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(512 * MIB, SYSTEM_VA, MIB);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct buffer b[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, buffer_new(&self->gpu, &b[i], MIB,
					AMDGPU_GEM_DOMAIN_VRAM));
		ASSERT_EQ(0, buffer_cpu(&self->gpu, &b[i]));
		memset(b[i].cpu, i + 1, MIB);
	}
	for (i = 0; i < 20; i++) {
		struct buffer *shown = &b[i % 2];

		ASSERT_EQ(0, buffer_va(&self->gpu, shown, AMDGPU_VA_OP_MAP,
				       d.src, GPU_RW));
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		ASSERT_EQ(0, memcmp(self->system.cpu, shown->cpu, MIB))
			TH_LOG("round %u", i);
		ASSERT_EQ(0, buffer_va(&self->gpu, shown, AMDGPU_VA_OP_UNMAP,
				       d.src, 0));
	}
}

/* A mapping whose page table update was left to the next submission. */
TEST_F(sdma, delayed_update)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, 512 * MIB, MIB);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct buffer b;

	ASSERT_EQ(0, buffer_new(&self->gpu, &b, MIB, AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, buffer_cpu(&self->gpu, &b));
	ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_MAP, d.dst,
			       GPU_RW | AMDGPU_VM_DELAY_UPDATE));
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, memcmp(self->system.cpu, b.cpu, MIB));
}

#define BIG		(64 * MIB)
#define BIG_VA(i)	((4UL + (i)) * 1024 * MIB)
#define MAX_BIG		40

static uint32_t last_engine(const struct gpu *gpu)
{
	return 1u << (31 - __builtin_clz(gpu->info.engine_mask));
}

/* Submits to the last engine, which the kernel's moves do not use. */
static int submit_at(struct gpu *gpu, const struct drm_amdgpu_sdma_desc *d,
		     uint32_t n, uint32_t timeline, uint64_t point)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, d, n);

	batch.engine_mask = last_engine(gpu);
	return batch_submit_to(gpu, &batch, timeline, point);
}

static int big_new(struct gpu *gpu, struct buffer *b, uint64_t va)
{
	int ret = buffer_new(gpu, b, BIG, AMDGPU_GEM_DOMAIN_VRAM);

	return ret ? ret : buffer_va(gpu, b, AMDGPU_VA_OP_MAP, va, GPU_RW);
}

struct eviction {
	struct gpu *gpu;
	struct hold hold;
	uint32_t timeline;
	uint64_t before;
	bool busy;
};

/* Releases the held batch once its buffer, the first, is being evicted. */
static void *release_later(void *arg)
{
	struct eviction *e = arg;
	unsigned int i;

	for (i = 0; i < 500 && gpu_evictions(e->gpu) == e->before; i++)
		usleep(10000);
	e->busy = gpu_evictions(e->gpu) != e->before &&
		  syncobj_wait(e->gpu, e->timeline, 1, 0);
	hold_release(&e->hold);
	return NULL;
}

/*
 * Buffers that do not fit in video memory together: the next one evicts the
 * oldest, whose batch has not ended.
 */
TEST_F_TIMEOUT(sdma, eviction, 120)
{
	struct eviction e = { .gpu = &self->gpu };
	const unsigned int n = gpu_too_many(&self->gpu, BIG);
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	struct buffer b[MAX_BIG];
	pthread_t thread;
	unsigned int i;

	if (n > MAX_BIG)
		SKIP(return, "too much video memory");
	if (hold_open(&self->gpu, &e.hold))
		SKIP(return, "no sw_sync to hold batches back with");
	e.before = gpu_evictions(&self->gpu);
	ASSERT_EQ(0, syncobj_new(&self->gpu, &e.timeline));
	ASSERT_EQ(0, pthread_create(&thread, NULL, release_later, &e));
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, big_new(&self->gpu, &b[i], BIG_VA(i)));
		d = fill_desc(BIG_VA(i) + BIG - 4096, 4096, 1 + i);
		batch = batch_of(&self->gpu, &d, 1);
		batch.engine_mask = last_engine(&self->gpu);
		if (!i)
			hold_batch(&e.hold, &batch);
		ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, e.timeline,
					     i + 1));
	}
	for (i = 0; i < n; i++) {
		d = copy_desc(BIG_VA(i) + BIG - 4096, SYSTEM_VA + i * 4096,
			      4096);
		ASSERT_EQ(0, submit_at(&self->gpu, &d, 1, e.timeline,
				       n + i + 1));
		model_fill(self->want_system + i * 4096, 4096, 1 + i);
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, syncobj_wait(&self->gpu, e.timeline, 2 * n, WAIT_SECONDS));
	EXPECT_EQ(-1, differs(self));
	EXPECT_TRUE(e.busy);
}

static void *set_flag_later(void *flag)
{
	usleep(50000);
	__atomic_store_n((uint32_t *)flag, 1, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * A mapping is removed while a waiting batch is going to write there. There is
 * no page fault: page tables change after those batches of the file have ended
 * that were submitted before, so the batch succeeds and its data is in the
 * buffer. A later batch finds the new mapping, or none.
 *
 * If page tables changed too early, only the data would tell: after a page
 * fault without retry the engine goes on, the fence and the record report
 * success, and the context is not charged.
 */
static void take_away(struct __test_metadata *_metadata,
		      struct _test_data_sdma *self, uint32_t op,
		      unsigned int engine)
{
	uint32_t *flag = (uint32_t *)(self->system.cpu + 4 * MIB);
	struct drm_amdgpu_sdma_record *r =
		(void *)(self->system.cpu + 5 * MIB);
	struct drm_amdgpu_sdma_desc d[] = {
		wait_eq(SYSTEM_VA + 4 * MIB, 1, wait_ns(&self->gpu, 500)),
		copy_desc(SYSTEM_VA, BIG_VA(0), MIB),
		copy_desc(SYSTEM_VA, VRAM_VA, MIB),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 3);
	union drm_amdgpu_ctx state = {
		.in.op = AMDGPU_CTX_OP_QUERY_STATE2,
		.in.ctx_id = self->gpu.ctx,
	};
	struct buffer b, other;
	uint32_t syncobj;
	pthread_t thread;

	ASSERT_EQ(0, buffer_map(&self->gpu, &b, MIB, AMDGPU_GEM_DOMAIN_VRAM,
				BIG_VA(0)));
	ASSERT_EQ(0, buffer_new(&self->gpu, &other, MIB,
				AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, buffer_cpu(&self->gpu, &other));
	memset(b.cpu, 0, MIB);
	memset(other.cpu, 0x77, MIB);
	memset(r, 0, sizeof(*r));
	*flag = 0;
	d[1].flags = AMDGPU_SDMA_DESC_RECORD;
	d[1].record = SYSTEM_VA + 5 * MIB;
	ASSERT_EQ(0, syncobj_new(&self->gpu, &syncobj));
	batch.engine_mask = 1u << engine;
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, syncobj, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, set_flag_later, flag));
	ASSERT_EQ(0, buffer_va(&self->gpu,
			       op == AMDGPU_VA_OP_REPLACE ? &other : &b, op,
			       BIG_VA(0), GPU_RW));
	ASSERT_EQ(0, syncobj_wait(&self->gpu, syncobj, 0, WAIT_SECONDS));
	EXPECT_EQ(1, syncobj_status(&self->gpu, syncobj));
	EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, r->status);
	EXPECT_EQ(0, memcmp(self->system.cpu, b.cpu, MIB));
	EXPECT_EQ(0, memcmp(self->system.cpu, self->vram.cpu, MIB));
	EXPECT_EQ(0x77, other.cpu[0]);
	EXPECT_EQ(0, gpu_ioctl(&self->gpu, DRM_IOCTL_AMDGPU_CTX, &state));
	EXPECT_EQ(0, state.out.state.flags);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	batch = batch_of(&self->gpu, d, 3);
	EXPECT_EQ(op == AMDGPU_VA_OP_REPLACE ? 0 : -ENOENT,
		  batch_run(&self->gpu, &batch));
	buffer_free(&self->gpu, &b);
	buffer_free(&self->gpu, &other);
}

/* On each engine in turn: one of them may run the page table updates. */
static void take_away_each(struct __test_metadata *_metadata,
			   struct _test_data_sdma *self, uint32_t op)
{
	unsigned int engine;

	for (engine = 0; engine < 32; engine++)
		if (self->gpu.info.wait_engine_mask & 1u << engine)
			take_away(_metadata, self, op, engine);
}

TEST_F(sdma, unmapped_meanwhile)
{
	take_away_each(_metadata, self, AMDGPU_VA_OP_UNMAP);
}

TEST_F(sdma, replaced_meanwhile)
{
	take_away_each(_metadata, self, AMDGPU_VA_OP_REPLACE);
}

/* The file is closed while its batches run, and while they wait. */
TEST_F(sdma, close_busy)
{
	unsigned int i;

	for (i = 0; i < 20; i++) {
		struct drm_amdgpu_sdma_desc d[] = {
			wait_eq(SYSTEM_VA, 1, wait_ns(&self->gpu, 12)),
			copy_desc(SYSTEM_VA, VRAM_VA, MIB),
		};
		struct drm_amdgpu_sdma_batch batch;
		struct buffer system, vram;
		struct gpu gpu;

		ASSERT_EQ(0, gpu_open(&gpu, 0));
		ASSERT_EQ(0, buffer_map(&gpu, &system, MIB,
					AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA));
		ASSERT_EQ(0, buffer_map(&gpu, &vram, MIB,
					AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
		batch = batch_of(&gpu, d + i % 2, 2 - i % 2);
		if (i % 2)
			batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
		ASSERT_EQ(0, batch_submit(&gpu, &batch));
		munmap(system.cpu, system.size);
		munmap(vram.cpu, vram.size);
		close(gpu.fd);
	}
	EXPECT_EQ(-1, differs(self));
}

/* A process that fills its own memory, at the addresses of the fixture. */
static void submit_for_ever(unsigned int placement)
{
	struct drm_amdgpu_sdma_desc d = {
		.op = AMDGPU_SDMA_OP_FILL, .dst = VRAM_VA, .size = 256 * KIB,
		.value = 0xdddddddd,
	};
	struct drm_amdgpu_sdma_batch batch;
	struct buffer vram;
	struct gpu gpu;

	if (gpu_open(&gpu, 0) ||
	    buffer_map(&gpu, &vram, SIZE, AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA))
		_exit(1);
	while (1) {
		batch = batch_of(&gpu, &d, 1);
		batch.placement = placement % 3;
		if (batch_submit(&gpu, &batch))
			_exit(2);
	}
}

/* Another process submits all the time and is killed at a random moment. */
TEST_F(sdma, killed)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA, SIZE);
	unsigned int round;

	for (round = 0; round < 12; round++)
		ASSERT_EQ(0, kill_sometime(submit_for_ever, round,
					   &self->seed));
	/* They wrote at the same addresses, each in a VM of its own. */
	EXPECT_EQ(-1, differs(self));
	ASSERT_EQ(0, run(self, &d, 1));
	EXPECT_EQ(-1, differs(self));
}

/*
 * A child that shares the file uses a context and is killed, which kills the
 * context too: later batches are refused, instead of never ending.
 */
TEST_F(sdma, killed_with_a_context)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA, SIZE);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	int status;
	pid_t pid;

	ASSERT_EQ(0, gpu_context(&self->gpu, &batch.ctx_id));
	batch.engine_mask = nth_engine(self->gpu.info.engine_mask, 0);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (!batch_run(&self->gpu, &batch))
			raise(SIGKILL);
		_exit(1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(-ECANCELED, batch_run(&self->gpu, &batch));
	/* other contexts go on */
	ASSERT_EQ(0, gpu_context(&self->gpu, &batch.ctx_id));
	EXPECT_EQ(0, batch_run(&self->gpu, &batch));
}

TEST_HARNESS_MAIN
