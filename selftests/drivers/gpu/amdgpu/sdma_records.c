// SPDX-License-Identifier: GPL-2.0
/*
 * What SDMA batches report: records of descriptors and of engines, and the kind
 * of memory that their bytes went through.
 */
#include "emulator.h"
#include "sdma_hold.h"
#include "sdma_model.h"

#define RECORDS_AT	(6 * MIB)
#define RECORD_VA(i)	(SYSTEM_VA + RECORDS_AT +			\
			 (i) * sizeof(struct drm_amdgpu_sdma_record))
#define MAX_RECORDS	64

/* Cleared: no engine writes a status of 0. */
static volatile struct drm_amdgpu_sdma_record *
new_records(struct _test_data_sdma *self)
{
	struct drm_amdgpu_sdma_record *r =
		(void *)(self->system.cpu + RECORDS_AT);

	memset(r, 0, MAX_RECORDS * sizeof(*r));
	return r;
}

#define EXPECT_TIMES(r)							\
	do {								\
		volatile struct drm_amdgpu_sdma_record *_r = (r);	\
									\
		EXPECT_NE(0, _r->start);				\
		EXPECT_LE(_r->start, _r->end);				\
	} while (0)

TEST_F(sdma, record)
{
	volatile struct drm_amdgpu_sdma_record *r = new_records(self);
	struct drm_amdgpu_sdma_desc d[] = {
		recorded(copy_desc(SYSTEM_VA, VRAM_VA, 64 * KIB),
			 RECORD_VA(0)),
		copy_desc(SYSTEM_VA + MIB, VRAM_VA + MIB, 64 * KIB),
		recorded(behind(copy_desc(VRAM_VA, SYSTEM_VA + 2 * MIB,
					  64 * KIB)), RECORD_VA(2)),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 3);

	batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, r[0].status);
	EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, r[2].status);
	EXPECT_TIMES(&r[0]);
	EXPECT_TIMES(&r[2]);
	/* ordered after the first, it began when that had ended */
	EXPECT_LE(r[0].end, r[2].end);
	EXPECT_LE(r[0].start, r[2].start);
	EXPECT_EQ(batch.engines_used, 1u << r[0].engine);
	EXPECT_EQ(batch.engines_used, 1u << r[2].engine);
	/* a descriptor without a record gets none */
	EXPECT_EQ(0, r[1].status);
	EXPECT_EQ(0, r[1].start | r[1].end | r[1].engine);
	EXPECT_EQ(0, r[3].status);
}

/* Each operation has its record, and its data, when it has ended. */
TEST_F(sdma, record_of_each)
{
	struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA, MIB, 0x5a5a5a5a),
		copy_desc(SYSTEM_VA, VRAM_VA + MIB, 100001),
		swap_desc(SYSTEM_VA + MIB + 3, VRAM_VA + 2 * MIB, 70001),
		swap_desc(SYSTEM_VA + 2 * MIB, VRAM_VA + 3 * MIB, 4096),
		{ .op = AMDGPU_SDMA_OP_BROADCAST, .src = SYSTEM_VA + 3 * MIB,
		  .dst = VRAM_VA + 4 * MIB, .size = 5000,
		  .dst_more = { VRAM_VA + 5 * MIB } },
		write_desc(VRAM_VA + 6 * MIB, 1),
		add_desc(VRAM_VA + 6 * MIB + 8, 1),
		wait_eq(VRAM_VA + 6 * MIB, 1, wait_ns(&self->gpu, 10)),
		{ .op = AMDGPU_SDMA_OP_COPY_RECT, .src = SYSTEM_VA + 4 * MIB,
		  .dst = VRAM_VA + 7 * MIB, .src_pitch = 512, .dst_pitch = 600,
		  .size = 500, .rows = 100 },
	};
	const unsigned int n = ARRAY_SIZE(d);
	volatile struct drm_amdgpu_sdma_record *r = new_records(self);
	uint64_t last = 0;
	unsigned int i;

	for (i = 0; i < n; i++)
		d[i] = recorded(behind(d[i]), RECORD_VA(i));
	memset(self->want_vram + 6 * MIB, 0, 16);
	memset(self->vram.cpu + 6 * MIB, 0, 16);
	ASSERT_EQ(0, run(self, d, n));
	for (i = 0; i < n; i++) {
		EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, r[i].status)
			TH_LOG("descriptor %u", i);
		EXPECT_TIMES(&r[i]);
		EXPECT_LE(last, r[i].end);
		last = r[i].end;
	}
	memcpy(self->want_system + RECORDS_AT, self->system.cpu + RECORDS_AT,
	       MAX_RECORDS * sizeof(*r));
	EXPECT_EQ(-1, differs(self));
}

/* A wait that gives up: all before it is done, nothing after it is. */
TEST_F(sdma, record_of_a_wait)
{
	static const uint32_t want[] = {
		AMDGPU_SDMA_RECORD_DONE, AMDGPU_SDMA_RECORD_DONE,
		AMDGPU_SDMA_RECORD_FAILED, AMDGPU_SDMA_RECORD_SKIPPED,
		AMDGPU_SDMA_RECORD_SKIPPED, AMDGPU_SDMA_RECORD_SKIPPED, 0,
	};
	volatile struct drm_amdgpu_sdma_record *r = new_records(self);
	struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, 4096),
		wait_ge(VRAM_VA + 4 * MIB, 0, wait_ns(&self->gpu, 3)),
		wait_eq(VRAM_VA + 4 * MIB, 1, wait_ns(&self->gpu, 3)),
		copy_desc(SYSTEM_VA + MIB, VRAM_VA + MIB, 4096),
		wait_ge(VRAM_VA + 4 * MIB, 0, wait_ns(&self->gpu, 3)),
		add_desc(VRAM_VA + 4 * MIB, 1),
		copy_desc(SYSTEM_VA + MIB, VRAM_VA + 2 * MIB, 4096),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 7);
	unsigned int i;

	memset(self->vram.cpu + 4 * MIB, 0, 8);
	memset(self->want_vram + 4 * MIB, 0, 8);
	for (i = 0; i < 6; i++)
		d[i] = recorded(d[i], RECORD_VA(i));
	EXPECT_EQ(-ETIME, batch_run(&self->gpu, &batch));
	for (i = 0; i < 7; i++) {
		EXPECT_EQ(want[i], r[i].status) TH_LOG("descriptor %u", i);
		if (want[i] == AMDGPU_SDMA_RECORD_DONE)
			EXPECT_TIMES(&r[i]);
		if (want[i])
			EXPECT_EQ(batch.engines_used, 1u << r[i].engine);
	}
	model(self, &d[0]);
	memcpy(self->want_system + RECORDS_AT, self->system.cpu + RECORDS_AT,
	       MAX_RECORDS * sizeof(*r));
	EXPECT_EQ(-1, differs(self));
}

/* More descriptors than one packet can skip: all their records say so. */
TEST_F(sdma, records_skipped)
{
	const unsigned int n = 3000;
	struct drm_amdgpu_sdma_desc *d = calloc(n + 1, sizeof(*d));
	volatile struct drm_amdgpu_sdma_record *r =
		(void *)(self->system.cpu + 4 * MIB);
	unsigned int i, skipped = 0, done = 0;
	struct drm_amdgpu_sdma_batch batch;

	ASSERT_NE(NULL, d);
	memset(self->system.cpu + 4 * MIB, 0, MIB);
	d[0] = wait_eq(SYSTEM_VA + 5 * MIB, 1, wait_ns(&self->gpu, 3));
	for (i = 1; i <= n; i++)
		d[i] = recorded(fill_desc(VRAM_VA + i * 64, 64, i),
				SYSTEM_VA + 4 * MIB + i * sizeof(*r));
	memset(self->system.cpu + 5 * MIB, 0, 4);
	batch = batch_of(&self->gpu, d, n + 1);
	EXPECT_EQ(-ETIME, batch_run(&self->gpu, &batch));
	for (i = 1; i <= n; i++)
		skipped += r[i].status == AMDGPU_SDMA_RECORD_SKIPPED;
	EXPECT_EQ(n, skipped);
	EXPECT_EQ(self->want_vram[64], self->vram.cpu[64]);
	*(uint32_t *)(self->system.cpu + 5 * MIB) = 1;
	batch = batch_of(&self->gpu, d, n + 1);
	EXPECT_EQ(0, batch_run(&self->gpu, &batch));
	for (i = 1; i <= n; i++)
		done += r[i].status == AMDGPU_SDMA_RECORD_DONE &&
			r[i].start <= r[i].end && r[i].start;
	EXPECT_EQ(n, done);
	free(d);
}

static void check_engines(struct __test_metadata *_metadata,
			  volatile struct drm_amdgpu_sdma_record *r,
			  uint32_t used, uint32_t status)
{
	unsigned int i;

	for (i = 0; i < 32; i++) {
		if (!(used & 1u << i)) {
			EXPECT_EQ(0, r[i].status) TH_LOG("engine %u", i);
			EXPECT_EQ(0, r[i].start | r[i].end);
			continue;
		}
		EXPECT_EQ(status, r[i].status) TH_LOG("engine %u", i);
		EXPECT_EQ(i, r[i].engine);
		EXPECT_TIMES(&r[i]);
	}
}

/* One record for each engine that was used, and none for others. */
TEST_F(sdma, records_of_the_batch)
{
	volatile struct drm_amdgpu_sdma_record *r;
	struct drm_amdgpu_sdma_desc d[32];
	struct drm_amdgpu_sdma_batch batch;
	unsigned int i, place;

	for (i = 0; i < 32; i++)
		d[i] = fill_desc(VRAM_VA + i * 128 * KIB, 100 * KIB, i);
	for (place = 0; place < 3; place++) {
		r = new_records(self);
		batch = batch_of(&self->gpu, d, 32);
		batch.placement = place;
		batch.records = RECORD_VA(0);
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		check_engines(_metadata, r, batch.engines_used,
			      AMDGPU_SDMA_RECORD_DONE);
	}
	EXPECT_EQ(self->gpu.info.engine_mask, batch.engines_used);
}

/* An engine's record spans its descriptors, and is written if a wait fails. */
TEST_F(sdma, records_span)
{
	volatile struct drm_amdgpu_sdma_record *r = new_records(self);
	struct drm_amdgpu_sdma_desc d[] = {
		recorded(fill_desc(VRAM_VA, MIB, 1), RECORD_VA(40)),
		recorded(behind(fill_desc(VRAM_VA, MIB, 2)), RECORD_VA(41)),
		recorded(wait_eq(VRAM_VA, 3, wait_ns(&self->gpu, 3)),
			 RECORD_VA(42)),
		fill_desc(VRAM_VA, MIB, 3),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);
	unsigned int engine;

	batch.records = RECORD_VA(0);
	batch.engine_mask = nth_engine(self->gpu.info.wait_engine_mask, 0);
	engine = __builtin_ctz(batch.engine_mask);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_LE(r[engine].start, r[40].start);
	EXPECT_LE(r[41].end, r[engine].end);
	r = new_records(self);
	batch.num_descs = 4;
	batch.out_fences = 0;
	ASSERT_EQ(-ETIME, batch_run(&self->gpu, &batch));
	check_engines(_metadata, r, batch.engines_used,
		      AMDGPU_SDMA_RECORD_FAILED);
	EXPECT_EQ(AMDGPU_SDMA_RECORD_FAILED, r[42].status);
	EXPECT_EQ(2, self->vram.cpu[0]);
}

/* Each run of a prepared batch writes its records. */
TEST_F(sdma, records_of_runs)
{
	struct drm_amdgpu_sdma_desc d[32];
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 32), run;
	unsigned int i, round;
	volatile struct drm_amdgpu_sdma_record *r;
	uint64_t last = 0;

	for (i = 0; i < 32; i++)
		d[i] = fill_desc(VRAM_VA + i * 64 * KIB, 64 * KIB, i);
	d[5] = recorded(d[5], RECORD_VA(40));
	batch.op = AMDGPU_SDMA_BATCH_PREPARE;
	batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	batch.records = RECORD_VA(0);
	ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	for (round = 0; round < 4; round++) {
		r = new_records(self);
		run = (struct drm_amdgpu_sdma_batch) {
			.op = AMDGPU_SDMA_BATCH_RUN,
			.ctx_id = self->gpu.ctx,
			.handle = batch.handle,
		};
		ASSERT_EQ(0, batch_run(&self->gpu, &run));
		check_engines(_metadata, r, run.engines_used,
			      AMDGPU_SDMA_RECORD_DONE);
		EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, r[40].status);
		EXPECT_LT(last, r[40].start);
		last = r[40].end;
	}
}

#define BUSY	16

/* Any engine may run it: its memory does not decide which. */
static int prepare_for_any(struct gpu *gpu, struct drm_amdgpu_sdma_desc *d,
			   uint32_t *handle)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, d, 1);

	batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
	return batch_prepare(gpu, &batch, handle);
}

/*
 * A record names the engine, so a run stays on it, however busy it is. A run
 * without a record goes to another engine. At least one of three engines has no
 * work of the kernel, which is page table updates here.
 */
TEST_F(sdma, record_keeps_the_engine)
{
	struct drm_amdgpu_sdma_desc d = recorded(fill_desc(VRAM_VA, 4096, 1),
						 RECORD_VA(0));
	struct drm_amdgpu_sdma_desc plain = fill_desc(VRAM_VA, 4096, 2);
	struct drm_amdgpu_sdma_batch busy = batch_of(&self->gpu, &d, 1), run;
	volatile struct drm_amdgpu_sdma_record *r = new_records(self);
	uint32_t handle, unbound, first, i;
	struct hold hold;

	if (__builtin_popcount(self->gpu.info.engine_mask) < 3)
		SKIP(return, "too few engines");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, prepare_for_any(&self->gpu, &d, &handle));
	ASSERT_EQ(0, prepare_for_any(&self->gpu, &plain, &unbound));
	run = run_of(&self->gpu, handle);
	ASSERT_EQ(0, batch_run(&self->gpu, &run));
	first = run.engines_used;
	EXPECT_EQ(first, 1u << r->engine);
	/* of another context, or the run would be queued after it */
	ASSERT_EQ(0, gpu_context(&self->gpu, &busy.ctx_id));
	busy.engine_mask = first;
	hold_batch(&hold, &busy);
	for (i = 0; i < BUSY; i++)
		ASSERT_EQ(0, batch_submit(&self->gpu, &busy));
	r = new_records(self);
	run = run_of(&self->gpu, handle);
	EXPECT_EQ(0, batch_run(&self->gpu, &run));
	EXPECT_EQ(first, run.engines_used);
	EXPECT_EQ(first, 1u << r->engine);
	run = run_of(&self->gpu, unbound);
	EXPECT_EQ(0, batch_run(&self->gpu, &run));
	EXPECT_NE(first, run.engines_used);
	hold_release(&hold);
}

/* Bytes are counted by where the memory is, and only if asked for. */
static void path_of(struct __test_metadata *_metadata,
		    struct _test_data_sdma *self,
		    const struct drm_amdgpu_sdma_desc *d, uint32_t n,
		    uint64_t vram, uint64_t system)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, n);

	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(vram, batch.vram_bytes);
	EXPECT_EQ(system, batch.system_bytes);
	EXPECT_EQ(0, batch.peer_bytes);
	batch.flags = 0;
	batch.vram_bytes = 0;
	batch.system_bytes = 0;
	batch.peer_bytes = 0;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, batch.vram_bytes | batch.system_bytes | batch.peer_bytes);
}

TEST_F(sdma, path)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, 10001),
		fill_desc(VRAM_VA + MIB, 4096, 1),
		swap_desc(SYSTEM_VA + MIB, VRAM_VA + 2 * MIB, 640),
		copy_desc(VRAM_VA + 3 * MIB, VRAM_VA + 4 * MIB, 5000),
		{ .op = AMDGPU_SDMA_OP_BROADCAST, .src = SYSTEM_VA + 2 * MIB,
		  .dst = VRAM_VA + 5 * MIB, .size = 1000,
		  .dst_more = { SYSTEM_VA + 3 * MIB, VRAM_VA + 6 * MIB } },
		{ .op = AMDGPU_SDMA_OP_COPY_RECT, .src = SYSTEM_VA + 4 * MIB,
		  .dst = VRAM_VA + 7 * MIB, .src_pitch = 512, .dst_pitch = 600,
		  .size = 500, .rows = 100 },
	};

	path_of(_metadata, self, &d[0], 1, 10001, 10001);
	path_of(_metadata, self, &d[1], 1, 4096, 0);
	path_of(_metadata, self, &d[2], 1, 2 * 640, 2 * 640);
	path_of(_metadata, self, &d[3], 1, 2 * 5000, 0);
	path_of(_metadata, self, &d[4], 1, 2 * 1000, 2 * 1000);
	path_of(_metadata, self, &d[5], 1, 50000, 50000);
	path_of(_metadata, self, d, 6,
		10001 + 4096 + 2 * 640 + 2 * 5000 + 2 * 1000 + 50000,
		10001 + 2 * 640 + 2 * 1000 + 50000);
}

/* Each run of a prepared batch reports it anew, as buffers may have moved. */
TEST_F(sdma, path_of_runs)
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA,
							MIB + 1);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	uint32_t handle;
	int i;

	batch.op = AMDGPU_SDMA_BATCH_PREPARE;
	ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	handle = batch.handle;
	for (i = 0; i < 2; i++) {
		batch = (struct drm_amdgpu_sdma_batch) {
			.op = AMDGPU_SDMA_BATCH_RUN,
			.flags = AMDGPU_SDMA_BATCH_PATH,
			.ctx_id = self->gpu.ctx,
			.handle = handle,
		};
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		EXPECT_EQ(MIB + 1, batch.vram_bytes);
		EXPECT_EQ(MIB + 1, batch.system_bytes);
		EXPECT_EQ(0, batch.peer_bytes);
	}
}

/*
 * A buffer that has left video memory may be back if there was room. Wherever
 * it is, each byte counts once.
 */
TEST_F(sdma, path_after_eviction)
{
	const struct drm_amdgpu_sdma_desc d = fill_desc(VRAM_VA, 4096, 1);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1), run;

	batch.op = AMDGPU_SDMA_BATCH_PREPARE;
	ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	run = (struct drm_amdgpu_sdma_batch) {
		.op = AMDGPU_SDMA_BATCH_RUN, .ctx_id = self->gpu.ctx,
		.flags = AMDGPU_SDMA_BATCH_PATH, .handle = batch.handle,
	};
	if (evict_vram(self->gpu.name))
		SKIP(return, "no debugfs");
	batch = batch_of(&self->gpu, &d, 1);
	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(4096, batch.system_bytes + batch.vram_bytes);
	EXPECT_EQ(0, batch.peer_bytes);
	ASSERT_EQ(0, batch_run(&self->gpu, &run));
	EXPECT_EQ(4096, run.system_bytes + run.vram_bytes);
}

TEST_HARNESS_MAIN
