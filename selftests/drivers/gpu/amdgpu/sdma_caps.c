// SPDX-License-Identifier: GPL-2.0
/*
 * How many SDMA batches, and of what size, a file may have pending: at each cap
 * a call waits, a signal ends the wait, and with AMDGPU_SDMA_BATCH_NONBLOCK the
 * call returns -EAGAIN instead.
 */
#include <pthread.h>
#include <signal.h>

#include "../../../kselftest_harness.h"
#include "sdma_hold.h"

#define VA		(1024 * MIB)
#define SIZE		(4 * MIB)
#define LARGE_VA	0x100000000UL
#define LARGE		(64 * MIB)
/* Caps of a file: batches, and bytes of their packets. */
#define MAX_BATCHES	1024
#define MAX_PACKETS	(64 * MIB)

FIXTURE(caps)
{
	struct gpu gpu;
	struct buffer buffer;
	struct hold hold;
	struct drm_amdgpu_sdma_desc d;
	struct drm_amdgpu_sdma_batch batch;	/* adds one to the first word */
	uint32_t engine;
};

FIXTURE_SETUP(caps)
{
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->buffer, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VA));
	memset(self->buffer.cpu, 0, SIZE);
	if (hold_open(&self->gpu, &self->hold))
		SKIP(return, "no sw_sync to hold batches back with");
	self->engine = nth_engine(self->gpu.info.engine_mask, 0);
	self->d = add_desc(VA, 1);
	self->batch = batch_of(&self->gpu, &self->d, 1);
	self->batch.engine_mask = self->engine;
}

FIXTURE_TEARDOWN(caps)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static uint64_t count(struct _test_data_caps *self)
{
	return __atomic_load_n((uint64_t *)self->buffer.cpu, __ATOMIC_ACQUIRE);
}

/* One call that waits for room. */
struct caller {
	struct gpu *gpu;
	struct drm_amdgpu_sdma_batch batch;
	bool returned;
	int ret;
	pthread_t thread;
};

static void *call_once(void *arg)
{
	struct caller *c = arg;

	c->ret = batch_call(c->gpu, &c->batch);
	__atomic_store_n(&c->returned, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool returned(struct caller *c)
{
	return __atomic_load_n(&c->returned, __ATOMIC_ACQUIRE);
}

static int caller_start(struct caller *c, struct gpu *gpu,
			const struct drm_amdgpu_sdma_batch *batch)
{
	*c = (struct caller) { .gpu = gpu, .batch = *batch };
	return -pthread_create(&c->thread, NULL, call_once, c);
}

/*
 * The cap is reached. A call that is refused reports only that; a call that may
 * wait does, and goes on when the others have ended. Batches end with @end.
 */
static void check_full(struct __test_metadata *_metadata,
		       struct _test_data_caps *self,
		       const struct drm_amdgpu_sdma_batch *like, int end)
{
	struct drm_amdgpu_sdma_batch batch = *like;
	struct caller c;

	batch.flags |= AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, batch_submit(&self->gpu, &batch));
	EXPECT_EQ(AMDGPU_SDMA_NO_INDEX, batch.error_index);
	EXPECT_EQ(AMDGPU_SDMA_ERROR_NONE, batch.error_array);
	EXPECT_EQ(0, batch.engines_used);
	batch.flags = 0;
	ASSERT_EQ(0, caller_start(&c, &self->gpu, &batch));
	usleep(100000);
	EXPECT_FALSE(returned(&c));
	hold_release(&self->hold);
	ASSERT_EQ(0, pthread_join(c.thread, NULL));
	EXPECT_EQ(0, c.ret);
	/* then there is room again */
	batch.flags = 0;
	ASSERT_EQ(end, batch_run(&self->gpu, &batch));
	batch = *like;
	batch.flags |= AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(0, batch_submit(&self->gpu, &batch));
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
}

TEST_F_TIMEOUT(caps, batches, 200)
{
	ASSERT_EQ(MAX_BATCHES,
		  hold_many(&self->gpu, &self->hold, &self->batch));
	EXPECT_EQ(0, count(self));
	check_full(_metadata, self, &self->batch, 0);
	EXPECT_EQ(MAX_BATCHES + 4, count(self));
}

/* Runs of prepared batches count like batches. */
TEST_F_TIMEOUT(caps, runs, 200)
{
	struct drm_amdgpu_sdma_batch run;
	uint32_t h;
	int n;

	ASSERT_EQ(0, prepare(&self->gpu, &self->d, 1, &h));
	run = run_of(&self->gpu, h);
	n = hold_many(&self->gpu, &self->hold, &run);
	ASSERT_EQ(MAX_BATCHES, n);
	check_full(_metadata, self, &run, 0);
	EXPECT_EQ(MAX_BATCHES + 4, count(self));
}

/* A large fill, a few of which are as much as allowed. */
static int make_large(struct _test_data_caps *self, struct buffer *b,
		      struct drm_amdgpu_sdma_desc *d, unsigned int parts)
{
	/* a batch is charged for its packets too */
	const uint64_t most = self->gpu.info.max_queued_bytes / parts - MIB;
	int ret = buffer_new(&self->gpu, b, LARGE, AMDGPU_GEM_DOMAIN_GTT);

	*d = fill_desc(LARGE_VA, most, 0x12345678);
	return ret ? ret : map_repeatedly(&self->gpu, b, LARGE_VA,
					  (most + LARGE - 1) / LARGE * LARGE);
}

/* Into how many batches of allowed size max_queued_bytes is split. */
static unsigned int parts_of(const struct gpu *gpu)
{
	unsigned int parts = 4;

	while (gpu->info.max_queued_bytes / parts > gpu->info.max_bytes)
		parts *= 2;
	return parts;
}

TEST_F_TIMEOUT(caps, bytes, 200)
{
	const unsigned int parts = parts_of(&self->gpu);
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	struct buffer b;

	ASSERT_EQ(0, make_large(self, &b, &d, parts));
	batch = batch_of(&self->gpu, &d, 1);
	batch.engine_mask = self->engine;
	EXPECT_EQ(parts, hold_many(&self->gpu, &self->hold, &batch));
	/* a batch that moves less may find room */
	check_full(_metadata, self, &batch, 0);
}

/* T, the timeout of SDMA rings: one for all rings, or the third. */
static uint64_t ring_timeout_ns(void)
{
	FILE *f = fopen("/sys/module/amdgpu/parameters/lockup_timeout", "r");
	unsigned int all = 0, third = 0;

	if (f) {
		if (fscanf(f, "%u,%*u,%u", &all, &third) < 1)
			all = 0;
		fclose(f);
	}
	return 1000000ULL * (third ? third : all ? all : 2000);
}

/* The time of waits counts as bytes do, for the file that submits them. */
TEST_F(caps, time_of_waits)
{
	struct drm_amdgpu_sdma_desc d = wait_ge(VA, 0, wait_ns(&self->gpu, 900));
	/* half of T; the time added for poll intervals makes them fewer */
	const int most = ring_timeout_ns() / 2 / d.timeout_ns + 1;
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct buffer theirs;
	struct gpu file;
	int n;

	batch.engine_mask = nth_engine(self->gpu.info.wait_engine_mask, 0);
	n = hold_many(&self->gpu, &self->hold, &batch);
	TH_LOG("%d waits of %lu ns", n, (unsigned long)d.timeout_ns);
	EXPECT_LE(1, n);
	EXPECT_GE(most, n);
	ASSERT_EQ(0, gpu_open(&file, 0));
	ASSERT_EQ(0, buffer_map(&file, &theirs, SIZE, AMDGPU_GEM_DOMAIN_GTT,
				VA));
	batch.ctx_id = file.ctx;
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(0, batch_run(&file, &batch));
	close(file.fd);
	batch.ctx_id = self->gpu.ctx;
	batch.flags = 0;
	batch.out_fences = 0;
	batch.num_out_fences = 0;
	check_full(_metadata, self, &batch, 0);
}

/* The cap applies to each engine and to each file. */
TEST_F(caps, bytes_of_others)
{
	const unsigned int parts = parts_of(&self->gpu);
	uint32_t other = nth_engine(self->gpu.info.engine_mask, 1);
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	struct buffer b, theirs;
	struct gpu file;

	ASSERT_EQ(0, make_large(self, &b, &d, parts));
	batch = batch_of(&self->gpu, &d, 1);
	batch.engine_mask = self->engine;
	ASSERT_EQ(parts, hold_many(&self->gpu, &self->hold, &batch));
	if (other) {
		batch.engine_mask = other;
		EXPECT_EQ(parts, hold_many(&self->gpu, &self->hold, &batch));
	}
	ASSERT_EQ(0, gpu_open(&file, 0));
	ASSERT_EQ(0, buffer_map(&file, &theirs, SIZE, AMDGPU_GEM_DOMAIN_GTT,
				VA));
	batch = batch_of(&file, &self->d, 1);
	batch.engine_mask = self->engine;
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	self->d = fill_desc(VA, SIZE, 7);
	EXPECT_EQ(0, batch_run(&file, &batch));
	EXPECT_EQ(7, theirs.cpu[0]);
	close(file.fd);
	hold_release(&self->hold);
}

/* Each engine is charged with its share of a fan-out. */
TEST_F(caps, bytes_of_fan_out)
{
	const uint32_t engines = self->gpu.info.engine_mask;
	const unsigned int num = __builtin_popcount(engines);
	const uint64_t piece = self->gpu.info.max_queued_bytes / 8 - MIB;
	struct drm_amdgpu_sdma_desc d[32];
	struct drm_amdgpu_sdma_batch batch;
	struct buffer b;
	unsigned int i;

	if (num < 2 || piece * num > self->gpu.info.max_bytes)
		SKIP(return, "no fan-out may be so large");
	ASSERT_EQ(0, buffer_new(&self->gpu, &b, LARGE, AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, map_repeatedly(&self->gpu, &b, LARGE_VA,
				    (piece * num + LARGE - 1) / LARGE * LARGE));
	for (i = 0; i < num; i++)
		d[i] = fill_desc(LARGE_VA + i * piece, piece, i);
	batch = batch_of(&self->gpu, d, num);
	batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	EXPECT_EQ(8, hold_many(&self->gpu, &self->hold, &batch));
	hold_release(&self->hold);
	/* so that their end does not disturb the next test */
	self->batch.engine_mask = 0;
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
}

/*
 * Packets of all batches together, on three engines in turn: on one, so many
 * would be more work than it may have queued. A wait that gives up skips them.
 */
TEST_F_TIMEOUT(caps, packets, 200)
{
	const uint32_t n = 65536, engines = self->gpu.info.wait_engine_mask;
	struct drm_amdgpu_sdma_desc *d = calloc(n, sizeof(*d));
	struct drm_amdgpu_sdma_batch batch;
	unsigned int i, most;
	int full = 0;

	if (__builtin_popcount(engines) < 3)
		SKIP(return, "this needs three engines");
	ASSERT_NE(NULL, d);
	d[0] = wait_eq(VA + 8, 1, 1000);
	for (i = 1; i < n; i++)
		d[i] = behind(copy_desc(VA + 8, VA + SIZE / 2 + i * 8, 4));
	for (most = 0; most < 64 && !full; most++) {
		batch = batch_of(&self->gpu, d, n);
		batch.engine_mask = nth_engine(engines, most % 3);
		batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
		hold_batch(&self->hold, &batch);
		full = batch_submit(&self->gpu, &batch);
		ASSERT_TRUE(!full || full == -EAGAIN);
	}
	TH_LOG("%u batches", --most);
	/* a copy alone is 28 bytes, and a batch takes at most 16 MiB */
	EXPECT_LE(4, most);
	EXPECT_GE(MAX_PACKETS / (n * 28), most);
	batch = batch_of(&self->gpu, d, n);
	check_full(_metadata, self, &batch, -ETIME);
	free(d);
}

#define CONTEXTS	24

/* One batch waits per context: the VM's reservation has all their fences. */
static int hold_contexts(struct _test_data_caps *self, struct hold *hold)
{
	struct drm_amdgpu_sdma_batch batch;
	unsigned int i;
	int ret = hold_open(&self->gpu, hold);

	for (i = 0; i < CONTEXTS && !ret; i++) {
		batch = batch_of(&self->gpu, &self->d, 1);
		hold_batch(hold, &batch);
		ret = gpu_context(&self->gpu, &batch.ctx_id);
		if (!ret)
			ret = batch_submit(&self->gpu, &batch);
	}
	return ret;
}

/*
 * Memory for packets that is idle but too small is freed for larger batches,
 * without waiting.
 */
TEST_F_TIMEOUT(caps, packets_of_other_sizes, 200)
{
	/* more than 64 KiB each, which is what a small batch has */
	static const uint32_t sizes[] = { 4096, 16384, 65536 };
	struct drm_amdgpu_sdma_desc *d = calloc(65536, sizeof(*d));
	uint32_t *from = (uint32_t *)(self->buffer.cpu + 8);
	uint32_t *to = (uint32_t *)(self->buffer.cpu + SIZE / 2);
	struct drm_amdgpu_sdma_batch batch;
	struct hold others;
	uint32_t i, j, h;

	ASSERT_NE(NULL, d);
	/* all packet memory that the file may have is in small pieces */
	ASSERT_EQ(MAX_PACKETS / MAX_BATCHES, 64 * KIB);
	ASSERT_EQ(MAX_BATCHES,
		  hold_many(&self->gpu, &self->hold, &self->batch));
	hold_release(&self->hold);
	ASSERT_EQ(0, batch_run(&self->gpu, &self->batch));
	for (i = 0; i < 65536; i++)
		d[i] = copy_desc(VA + 8, VA + SIZE / 2 + i * 8, 4);
	ASSERT_EQ(0, hold_contexts(self, &others));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &h));
	batch = batch_of(&self->gpu, d, sizes[0]);
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, h, 0));
	hold_release(&others);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, h, 0, WAIT_SECONDS));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		*from = i + 1;
		batch = batch_of(&self->gpu, d, sizes[i]);
		batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
		batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		for (j = 0; j < sizes[i]; j++)
			ASSERT_EQ(i + 1, to[2 * j]);
		/* prepared batches keep it, and need one of this very size */
		ASSERT_EQ(0, prepare(&self->gpu, d, sizes[i], &h));
		*from = i + 11;
		ASSERT_EQ(0, run_prepared(&self->gpu, h));
		for (j = 0; j < sizes[i]; j++)
			ASSERT_EQ(i + 11, to[2 * j]);
	}
	free(d);
}

/* Idle memory for packets is freed, whatever was submitted before it. */
TEST_F_TIMEOUT(caps, packets_behind_one_that_waits, 200)
{
	struct drm_amdgpu_sdma_desc *d = calloc(4096, sizeof(*d));
	struct drm_amdgpu_sdma_batch batch = self->batch;
	struct hold others;
	uint32_t i;
	int ret;

	ASSERT_NE(NULL, d);
	ASSERT_EQ(0, gpu_context(&self->gpu, &batch.ctx_id));
	hold_batch(&self->hold, &batch);
	ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	/* all other packet memory of the file is in small pieces */
	ASSERT_EQ(0, hold_open(&self->gpu, &others));
	ASSERT_EQ(MAX_BATCHES - 1,
		  hold_many(&self->gpu, &others, &self->batch));
	hold_release(&others);
	do {
		batch = self->batch;
		batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
		ret = batch_run(&self->gpu, &batch);
	} while (ret == -EAGAIN);
	ASSERT_EQ(0, ret);
	for (i = 0; i < 4096; i++)
		d[i] = copy_desc(VA + 8, VA + SIZE / 2 + i * 8, 4);
	batch = batch_of(&self->gpu, d, 4096);
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(0, answer_now(&self->gpu, &self->hold, &batch));
	batch = batch_of(&self->gpu, d, 4096);
	EXPECT_EQ(0, answer_now(&self->gpu, &self->hold, &batch));
	if (self->hold.timeline >= 0)
		hold_release(&self->hold);
	free(d);
}

/*
 * A caller waits for the first batch's memory, and uses it as it is: unmapping
 * it would take until all the others have ended.
 */
TEST_F_TIMEOUT(caps, packets_are_used_again, 200)
{
	struct drm_amdgpu_sdma_batch batch = self->batch;
	struct drm_amdgpu_sdma_fence out = { };
	struct hold first;
	struct caller c;

	ASSERT_EQ(0, hold_open(&self->gpu, &first));
	hold_batch(&first, &batch);
	ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	ASSERT_EQ(MAX_BATCHES - 1,
		  hold_many(&self->gpu, &self->hold, &self->batch));
	batch = self->batch;
	ASSERT_EQ(0, gpu_context(&self->gpu, &batch.ctx_id));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
	batch.out_fences = (uintptr_t)&out;
	batch.num_out_fences = 1;
	ASSERT_EQ(0, caller_start(&c, &self->gpu, &batch));
	usleep(100000);
	EXPECT_FALSE(returned(&c));
	hold_release(&first);
	ASSERT_EQ(0, pthread_join(c.thread, NULL));
	EXPECT_EQ(0, c.ret);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, out.handle, 0, WAIT_SECONDS));
	EXPECT_EQ(2, count(self));
	hold_release(&self->hold);
}

/* Addresses in the same mappings cost no lookups, even if bytes are counted. */
TEST_F(caps, lookups)
{
	const uint32_t n = 65536, most = self->gpu.info.max_broadcast;
	struct drm_amdgpu_sdma_desc *d = calloc(n, sizeof(*d));
	uint32_t i, j, handle;

	ASSERT_NE(NULL, d);
	for (i = 0; i < n; i++) {
		d[i] = copy_desc(VA, VA + SIZE / 2 + i * most, 1);
		d[i].op = AMDGPU_SDMA_OP_BROADCAST;
		for (j = 1; j < most; j++)
			d[i].dst_more[j - 1] = d[i].dst + j;
	}
	EXPECT_EQ(0, prepare(&self->gpu, d, n, &handle));
	free(d);
}

static void on_signal(int sig)
{
}

/* A signal ends a call that waits, or restarts it, as its handler wants. */
TEST_F(caps, signals)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct caller c;
	int i;

	ASSERT_EQ(MAX_BATCHES,
		  hold_many(&self->gpu, &self->hold, &self->batch));
	for (i = 0; i < 2; i++) {
		action.sa_flags = i ? SA_RESTART : 0;
		ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
		ASSERT_EQ(0, caller_start(&c, &self->gpu, &self->batch));
		usleep(50000);
		pthread_kill(c.thread, SIGUSR1);
		usleep(50000);
		EXPECT_EQ(!i, returned(&c));
		if (i)
			hold_release(&self->hold);
		ASSERT_EQ(0, pthread_join(c.thread, NULL));
		EXPECT_EQ(i ? 0 : -EINTR, c.ret);
	}
	ASSERT_EQ(0, batch_run(&self->gpu, &self->batch));
	EXPECT_EQ(MAX_BATCHES + 2, count(self));
}

/* A call that fails has used up nothing: room, handles or time. */
TEST_F_TIMEOUT(caps, failed, 200)
{
	struct drm_amdgpu_sdma_desc d[] = {
		wait_ge(VA, 0, wait_ns(&self->gpu, 900)),
		fill_desc(VA, SIZE, 1), fill_desc(512 * MIB, 4096, 1),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 3);
	unsigned int i;

	for (i = 0; i < MAX_BATCHES + 10; i++) {
		batch = batch_of(&self->gpu, d, 3);
		batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
		ASSERT_EQ(-ENOENT, batch_submit(&self->gpu, &batch));
		ASSERT_EQ(2, batch.error_index);
	}
	EXPECT_EQ(MAX_BATCHES,
		  hold_many(&self->gpu, &self->hold, &self->batch));
	hold_release(&self->hold);
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
}

/* Short waits have no cap of their own: many are taken, whatever they await. */
TEST_F(caps, waits_never_block)
{
	struct drm_amdgpu_sdma_desc d[] = {
		wait_ge(VA + 64, 1, wait_ns(&self->gpu, 5)),
		add_desc(VA, 1),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);
	unsigned int i;

	batch.engine_mask = nth_engine(self->gpu.info.wait_engine_mask, 0);
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	for (i = 0; i < 100; i++)
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	__atomic_store_n((uint32_t *)(self->buffer.cpu + 64), 1,
			 __ATOMIC_RELEASE);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	/* the batches whose wait had not given up */
	EXPECT_LE(1, count(self));
	hold_release(&self->hold);
}

TEST_HARNESS_MAIN
