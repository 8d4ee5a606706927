// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches that fan out and wait before they begin: all engines are
 * released at once. If one gives up, the fence says so; records tell what ran.
 */
#include "emulator.h"
#include "sdma_model.h"

#define FLAG_VA		(SYSTEM_VA + 4 * MIB)
#define RECORDS_VA	(SYSTEM_VA + 6 * MIB)
#define COPIES		32
#define PIECE		(32 * KIB)

/* A wait for the flag, and copies that need no order. */
static void make_copies(struct _test_data_sdma *self,
			struct drm_amdgpu_sdma_desc d[COPIES + 1],
			uint32_t value, unsigned int parts)
{
	unsigned int i;

	d[0] = wait_ge(FLAG_VA, value, wait_ns(&self->gpu, parts));
	for (i = 0; i < COPIES; i++)
		d[i + 1] = recorded(copy_desc(SYSTEM_VA + i * PIECE,
					      VRAM_VA + i * 2 * PIECE, PIECE),
				    RECORDS_VA + (64 + i) * 64);
	memset(self->system.cpu + 6 * MIB, 0, 64 * KIB);
}

static struct drm_amdgpu_sdma_batch
fan_out_of(struct _test_data_sdma *self, const struct drm_amdgpu_sdma_desc *d)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d,
						      COPIES + 1);

	batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	batch.records = RECORDS_VA;
	return batch;
}

static volatile struct drm_amdgpu_sdma_record *
records(struct _test_data_sdma *self)
{
	return (void *)(self->system.cpu + 6 * MIB);
}

static uint32_t *flag(struct _test_data_sdma *self)
{
	return (uint32_t *)(self->system.cpu + 4 * MIB);
}

static unsigned int count_copied(struct _test_data_sdma *self)
{
	unsigned int i, n = 0;

	for (i = 0; i < COPIES; i++)
		n += !memcmp(self->system.cpu + i * PIECE,
			     self->vram.cpu + i * 2 * PIECE, PIECE);
	return n;
}

static unsigned int count_records(struct _test_data_sdma *self, uint32_t status)
{
	unsigned int i, n = 0;

	for (i = 0; i < COPIES; i++)
		n += records(self)[64 + i].status == status;
	return n;
}

/* No engine copies before the flag is set; then all of them do. */
TEST_F(sdma, prelaunch_of_fan_out)
{
	struct drm_amdgpu_sdma_desc d[COPIES + 1];
	struct drm_amdgpu_sdma_batch batch;
	unsigned int round, i;
	uint32_t done;

	ASSERT_EQ(0, syncobj_new(&self->gpu, &done));
	for (round = 1; round <= 5; round++) {
		make_copies(self, d, round, 300);
		*flag(self) = round - 1;
		randomize(self->system.cpu, COPIES * PIECE, &self->seed);
		batch = fan_out_of(self, d);
		ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, done, 0));
		EXPECT_EQ(self->gpu.info.wait_engine_mask, batch.engines_used);
		EXPECT_EQ(-ETIME, syncobj_wait(&self->gpu, done, 0, 0.05));
		EXPECT_EQ(0, count_copied(self));
		__atomic_store_n(flag(self), round, __ATOMIC_RELEASE);
		ASSERT_EQ(0, syncobj_wait(&self->gpu, done, 0, WAIT_SECONDS));
		EXPECT_EQ(1, syncobj_status(&self->gpu, done));
		EXPECT_EQ(COPIES, count_copied(self));
		EXPECT_EQ(COPIES,
			  count_records(self, AMDGPU_SDMA_RECORD_DONE));
		for (i = 0; i < 32; i++)
			EXPECT_EQ(batch.engines_used >> i & 1 ?
				  AMDGPU_SDMA_RECORD_DONE : 0,
				  records(self)[i].status);
	}
}

/* Waits for two words; the second one is set last. */
TEST_F(sdma, prelaunch_by_two_words)
{
	struct drm_amdgpu_sdma_desc d[COPIES + 1];
	struct drm_amdgpu_sdma_batch batch;
	uint32_t done;

	ASSERT_EQ(0, syncobj_new(&self->gpu, &done));
	make_copies(self, d, 1, 300);
	d[1] = wait_ge(FLAG_VA + 64, 1, wait_ns(&self->gpu, 300));
	memset(flag(self), 0, 128);
	batch = fan_out_of(self, d);
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, done, 0));
	__atomic_store_n(flag(self), 1, __ATOMIC_RELEASE);
	EXPECT_EQ(-ETIME, syncobj_wait(&self->gpu, done, 0, 0.05));
	EXPECT_EQ(0, count_copied(self));
	__atomic_store_n(flag(self) + 16, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, done, 0, WAIT_SECONDS));
	EXPECT_EQ(1, syncobj_status(&self->gpu, done));
	EXPECT_EQ(COPIES - 1, count_copied(self));
}

/* The flag is never set: all engines give up, and nothing runs. */
TEST_F(sdma, prelaunch_gives_up)
{
	struct drm_amdgpu_sdma_desc d[COPIES + 1];
	struct drm_amdgpu_sdma_batch batch;
	unsigned int i;

	make_copies(self, d, 1, 5);
	*flag(self) = 0;
	batch = fan_out_of(self, d);
	EXPECT_EQ(-ETIME, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, count_copied(self));
	EXPECT_EQ(COPIES, count_records(self, AMDGPU_SDMA_RECORD_SKIPPED));
	for (i = 0; i < 32; i++)
		EXPECT_EQ(batch.engines_used >> i & 1 ?
			  AMDGPU_SDMA_RECORD_FAILED : 0,
			  records(self)[i].status);
	/* the context still works */
	*flag(self) = 1;
	batch = fan_out_of(self, d);
	EXPECT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(COPIES, count_copied(self));
}

/*
 * One engine hangs until the word, which should only grow, is small again: it
 * gives up after the others have run.
 */
TEST_F(sdma, prelaunch_one_gives_up)
{
	const uint32_t engines = self->gpu.info.wait_engine_mask;
	const uint32_t last = 31 - __builtin_clz(engines);
	struct drm_amdgpu_sdma_desc d[COPIES + 1];
	unsigned int i, ran, port_tries = 100;
	struct drm_amdgpu_sdma_batch batch;
	int port = emulator_open();
	uint32_t done;

	if (port < 0 || __builtin_popcount(engines) < 2)
		SKIP(return, "no emulator to stop one of many engines of");
	ASSERT_EQ(0, syncobj_new(&self->gpu, &done));
	make_copies(self, d, 1, 10);
	*flag(self) = 1;
	batch = fan_out_of(self, d);
	/* sets up the page tables */
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	memset(self->vram.cpu, 0, COPIES * 2 * PIECE);
	memset(self->system.cpu + 6 * MIB, 0, 64 * KIB);
	ASSERT_EQ(0, emulator_engines(port, 1u << last, "hang"));
	batch = fan_out_of(self, d);
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, done, 0));
	for (i = 0; i < 32; i++) {
		if (i == last || !(engines & 1u << i))
			continue;
		while (!records(self)[i].status && port_tries--)
			usleep(10000);
		EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, records(self)[i].status);
	}
	EXPECT_EQ(0, records(self)[last].status);
	EXPECT_EQ(0, syncobj_status(&self->gpu, done));
	__atomic_store_n(flag(self), 0, __ATOMIC_RELEASE);
	ASSERT_EQ(0, emulator_engines(port, 1u << last, "resume"));
	close(port);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, done, 0, WAIT_SECONDS));
	EXPECT_EQ(-ETIME, syncobj_status(&self->gpu, done));
	EXPECT_EQ(AMDGPU_SDMA_RECORD_FAILED, records(self)[last].status);
	ran = count_records(self, AMDGPU_SDMA_RECORD_DONE);
	EXPECT_LT(0, ran);
	EXPECT_GT(COPIES, ran);
	EXPECT_EQ(COPIES - ran,
		  count_records(self, AMDGPU_SDMA_RECORD_SKIPPED));
	EXPECT_EQ(ran, count_copied(self));
}

/* Prepared, and released in each run by a word that grows. */
TEST_F(sdma, prelaunch_prepared)
{
	struct drm_amdgpu_sdma_desc d[COPIES + 1];
	struct drm_amdgpu_sdma_batch batch, run;
	uint32_t done, handle, i;

	ASSERT_EQ(0, syncobj_new(&self->gpu, &done));
	make_copies(self, d, 1, 300);
	batch = fan_out_of(self, d);
	batch.op = AMDGPU_SDMA_BATCH_PREPARE;
	ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	handle = batch.handle;
	for (i = 0; i < 4; i++) {
		*flag(self) = 0;
		randomize(self->system.cpu, COPIES * PIECE, &self->seed);
		run = (struct drm_amdgpu_sdma_batch) {
			.op = AMDGPU_SDMA_BATCH_RUN,
			.ctx_id = self->gpu.ctx,
			.handle = handle,
		};
		ASSERT_EQ(0, batch_submit_to(&self->gpu, &run, done, 0));
		EXPECT_EQ(self->gpu.info.wait_engine_mask, run.engines_used);
		EXPECT_EQ(-ETIME, syncobj_wait(&self->gpu, done, 0, 0.02));
		EXPECT_EQ(0, count_copied(self));
		__atomic_store_n(flag(self), 1, __ATOMIC_RELEASE);
		ASSERT_EQ(0, syncobj_wait(&self->gpu, done, 0, WAIT_SECONDS));
		EXPECT_EQ(1, syncobj_status(&self->gpu, done));
		EXPECT_EQ(COPIES, count_copied(self));
	}
}

TEST_HARNESS_MAIN
