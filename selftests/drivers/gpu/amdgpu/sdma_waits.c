// SPDX-License-Identifier: GPL-2.0
/*
 * Waits of SDMA batches: those that hold, give up or are released late.
 */
#include "sdma_model.h"

/* What the context has been charged with: AMDGPU_CTX_QUERY2_FLAGS_*, or -errno. */
static long context_flags(struct gpu *gpu)
{
	union drm_amdgpu_ctx arg = {
		.in.op = AMDGPU_CTX_OP_QUERY_STATE2,
		.in.ctx_id = gpu->ctx,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_CTX, &arg);

	return ret ? ret : (long)arg.out.state.flags;
}

/* Conditions that hold from the start. */
TEST_F(sdma, wait_holds)
{
	static const struct {
		uint32_t compare, memory, value, mask;
	} cases[] = {
		{ AMDGPU_SDMA_COMPARE_EQ, 7, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_EQ, 0xab07, 7, 0xff },
		{ AMDGPU_SDMA_COMPARE_NE, 6, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_GE, 7, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_GE, 0xfffffff0, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_LE, 7, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_LE, 0, 7, ~0u },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct drm_amdgpu_sdma_desc d[] = {
			wait_desc(SYSTEM_VA + MIB, cases[i].compare,
				  cases[i].value, wait_ns(&self->gpu, 3)),
			copy_desc(SYSTEM_VA + i * 4096, VRAM_VA, 4096),
		};

		d[0].mask = cases[i].mask;
		memcpy(self->system.cpu + MIB, &cases[i].memory, 4);
		memcpy(self->want_system + MIB, &cases[i].memory, 4);
		ASSERT_EQ(0, run(self, d, 2)) TH_LOG("case %u", i);
		ASSERT_EQ(-1, differs(self)) TH_LOG("case %u", i);
	}
}

/* Conditions that never hold: nothing after them runs; the fence says so. */
TEST_F(sdma, wait_times_out)
{
	static const struct {
		uint32_t compare, memory, value;
	} cases[] = {
		{ AMDGPU_SDMA_COMPARE_EQ, 6, 7 },
		{ AMDGPU_SDMA_COMPARE_NE, 7, 7 },
		{ AMDGPU_SDMA_COMPARE_GE, 6, 7 },
		{ AMDGPU_SDMA_COMPARE_LE, 8, 7 },
	};
	const struct drm_amdgpu_sdma_desc after = copy_desc(SYSTEM_VA, VRAM_VA,
							    SIZE);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct drm_amdgpu_sdma_desc d[] = {
			copy_desc(SYSTEM_VA + i * 4096, VRAM_VA, 4096),
			wait_desc(SYSTEM_VA + MIB, cases[i].compare,
				  cases[i].value, wait_ns(&self->gpu, 3)),
			copy_desc(SYSTEM_VA, VRAM_VA + MIB, MIB / 2),
			add_desc(VRAM_VA + 2 * MIB, 1),
			wait_desc(SYSTEM_VA + MIB + 4, AMDGPU_SDMA_COMPARE_LE,
				  ~0u, wait_ns(&self->gpu, 3)),
			copy_desc(SYSTEM_VA, VRAM_VA + MIB, MIB / 2),
		};

		memcpy(self->system.cpu + MIB, &cases[i].memory, 4);
		memcpy(self->want_system + MIB, &cases[i].memory, 4);
		ASSERT_EQ(-ETIME, run(self, d, 6)) TH_LOG("case %u", i);
		model(self, &d[0]);
		ASSERT_EQ(-1, differs(self)) TH_LOG("case %u", i);
	}
	/* The context is not charged, and still works. */
	EXPECT_EQ(0, context_flags(&self->gpu));
	ASSERT_EQ(0, run(self, &after, 1));
	EXPECT_EQ(-1, differs(self));
}

/* More than one packet can skip: 40000 dwords after a wait. */
TEST_F(sdma, wait_skips_much)
{
	const uint32_t n = 8000;
	struct drm_amdgpu_sdma_desc *d = calloc(n + 1, sizeof(*d));
	uint32_t i, one = 1;

	ASSERT_NE(NULL, d);
	d[0] = wait_eq(SYSTEM_VA + 4 * MIB, 2, wait_ns(&self->gpu, 2));
	for (i = 0; i < n; i++)
		d[i + 1] = copy_desc(SYSTEM_VA + i * 128, VRAM_VA + i * 64, 64);
	memcpy(self->system.cpu + 4 * MIB, &one, 4);
	memcpy(self->want_system + 4 * MIB, &one, 4);
	ASSERT_EQ(-ETIME, run(self, d, n + 1));
	ASSERT_EQ(-1, differs(self));
	d[0].value = 1;
	ASSERT_EQ(0, run(self, d, n + 1));
	EXPECT_EQ(-1, differs(self));
	free(d);
}

/* Submitted first, released by the CPU later. */
TEST_F(sdma, prelaunch)
{
	uint32_t *flag = (uint32_t *)(self->system.cpu + 4 * MIB), placement;

	for (placement = AMDGPU_SDMA_PLACE_AUTO;
	     placement <= AMDGPU_SDMA_PLACE_ONE_ENGINE; placement++) {
		struct drm_amdgpu_sdma_desc d[] = {
			wait_ge(SYSTEM_VA + 4 * MIB, placement + 1,
				wait_ns(&self->gpu, 500)),
			copy_desc(SYSTEM_VA, VRAM_VA, 2 * MIB),
		};
		struct drm_amdgpu_sdma_batch batch =
			batch_of(&self->gpu, d, 2);
		struct drm_amdgpu_sdma_fence out = { 0 };

		*flag = 0;
		randomize(self->system.cpu, 2 * MIB, &self->seed);
		ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
		batch.placement = placement;
		batch.out_fences = (uintptr_t)&out;
		batch.num_out_fences = 1;
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
		EXPECT_EQ(-ETIME, syncobj_wait(&self->gpu, out.handle, 0, 0.1));
		EXPECT_NE(0, memcmp(self->system.cpu, self->vram.cpu, 2 * MIB));
		__atomic_store_n(flag, placement + 1, __ATOMIC_RELEASE);
		ASSERT_EQ(0, syncobj_wait(&self->gpu, out.handle, 0,
					  WAIT_SECONDS));
		EXPECT_EQ(1, syncobj_status(&self->gpu, out.handle));
		EXPECT_EQ(0, memcmp(self->system.cpu, self->vram.cpu, 2 * MIB));
		syncobj_free(&self->gpu, out.handle);
	}
}

/*
 * A fan-out of less than a page runs on one engine; with three or more, not on
 * the first. It has to take the turn of its engine, and to give it back.
 */
TEST_F(sdma, wait_of_small_fan_out)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		wait_ge(SYSTEM_VA + 4 * MIB, 1, wait_ns(&self->gpu, 500)),
		copy_desc(SYSTEM_VA, VRAM_VA, 3 * KIB),
	};
	struct drm_amdgpu_sdma_batch few = batch_of(&self->gpu, d, 2);
	struct drm_amdgpu_sdma_batch next = batch_of(&self->gpu, d, 2);
	uint32_t timeline;

	few.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	memset(self->system.cpu + 4 * MIB, 0, 4);
	ASSERT_EQ(0, syncobj_new(&self->gpu, &timeline));
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &few, timeline, 1));
	ASSERT_EQ(1, __builtin_popcount(few.engines_used));
	next.engine_mask = few.engines_used;
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &next, timeline, 2));
	/* the second has asked for its turn */
	EXPECT_EQ(-ETIME, syncobj_wait(&self->gpu, timeline, 1, 0.1));
	memset(self->system.cpu + 4 * MIB, 1, 4);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 2, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->system.cpu, self->vram.cpu, 3 * KIB));
	syncobj_free(&self->gpu, timeline);
}

#define FILES	12
#define ROUNDS	8

struct other {
	struct gpu gpu;
	struct buffer buffer;
	uint32_t timeline;
	uint64_t point;
};

static int other_submit(struct other *o, uint32_t engine,
			const struct drm_amdgpu_sdma_desc *d, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&o->gpu, d, n);

	batch.engine_mask = engine;
	return batch_submit_to(&o->gpu, &batch, o->timeline, ++o->point);
}

/*
 * More VMs than a GPU has IDs for, which are used up on all engines: a job
 * whose turn it is to wait may have no ID. Then another job gets the turn.
 */
TEST_F_TIMEOUT(sdma, waits_of_many_vms, 120)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		wait_desc(VRAM_VA, AMDGPU_SDMA_COMPARE_LE, ~0u,
			  wait_ns(&self->gpu, 1)),
		copy_desc(VRAM_VA, VRAM_VA + MIB, MIB),
	};
	struct other others[FILES] = { };
	unsigned int i, round, engine;
	uint32_t mask;

	for (i = 0; i < FILES; i++) {
		struct other *o = &others[i];

		ASSERT_EQ(0, gpu_open(&o->gpu, 0));
		ASSERT_EQ(0, buffer_map(&o->gpu, &o->buffer, 2 * MIB,
					AMDGPU_GEM_DOMAIN_GTT, VRAM_VA));
		ASSERT_EQ(0, syncobj_new(&o->gpu, &o->timeline));
	}
	for (round = 0; round < ROUNDS; round++)
		for (i = 0; i < FILES; i++)
			for (engine = 0; engine < 32; engine++) {
				mask = 1u << engine;
				if (mask & self->gpu.info.wait_engine_mask)
					ASSERT_EQ(0, other_submit(&others[i],
								  mask, d, 2));
				if (mask & self->gpu.info.engine_mask)
					ASSERT_EQ(0, other_submit(&others[i],
								  mask, d + 1,
								  1));
			}
	for (i = 0; i < FILES; i++) {
		struct other *o = &others[i];

		EXPECT_EQ(0, syncobj_wait(&o->gpu, o->timeline, o->point,
					  WAIT_SECONDS));
		close(o->gpu.fd);
	}
}

TEST_HARNESS_MAIN
