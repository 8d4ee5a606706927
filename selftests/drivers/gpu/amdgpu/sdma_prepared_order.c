// SPDX-License-Identifier: GPL-2.0
/*
 * Runs of prepared SDMA batches, many at a time: their order, threads, caps.
 */
#include <pthread.h>
#include <signal.h>

#include "sdma_hold.h"
#include "sdma_runs.h"

/* A run begins when the run before has ended, even on another engine. */
TEST_F(prepared, one_after_the_other)
{
	/* each run moves a value by one step */
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

#define STEP_VA(i)	(VRAM_VA + (i) * 64 * KIB)

/* Whether one run has exchanged this part: two of them restore its zeros. */
static bool begun(struct _test_data_prepared *self, unsigned int i)
{
	return self->vram.cpu[i * 64 * KIB];
}

/*
 * While the first run hangs, the second one has an engine that works. It must
 * not begin, though none of its descriptors asks for an order.
 */
static void run_behind_a_run(struct __test_metadata *_metadata,
			     struct _test_data_prepared *self, int port,
			     struct gpu *other)
{
	const uint32_t two = nth_engine(self->gpu.info.engine_mask, 0) |
			     nth_engine(self->gpu.info.engine_mask, 1);
	struct drm_amdgpu_sdma_desc d = swap_desc(SYSTEM_VA, VRAM_VA, 4096);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1), run;
	uint32_t h, first, second, done[2];
	uint8_t was[4096];

	memcpy(was, self->system.cpu, 4096);
	memset(self->vram.cpu, 0, 4096);
	ASSERT_EQ(0, syncobj_new(&self->gpu, &done[0]));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &done[1]));
	batch.engine_mask = two;
	ASSERT_EQ(0, batch_prepare(&self->gpu, &batch, &h));
	ASSERT_EQ(0, emulator_engines(port, two, "hang"));
	run = run_of(&self->gpu, h);
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &run, done[0], 0));
	first = run.engines_used;
	run = run_of(other, h);
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &run, done[1], 0));
	second = run.engines_used;
	ASSERT_EQ(0, emulator_engines(port, two & ~first, "resume"));
	TH_LOG("engines %#x, then %#x", first, second);
	EXPECT_EQ(-ETIME, syncobj_wait(&self->gpu, done[1], 0, 0.3));
	EXPECT_EQ(0, begun(self, 0));
	ASSERT_EQ(0, emulator_engines(port, first, "resume"));
	ASSERT_EQ(0, syncobj_wait(&self->gpu, done[1], 0, WAIT_SECONDS));
	EXPECT_EQ(1, syncobj_status(&self->gpu, done[0]));
	/* exchanged twice: unchanged */
	EXPECT_EQ(0, memcmp(was, self->system.cpu, 4096));
	EXPECT_EQ(0, self->vram.cpu[0]);
	ASSERT_EQ(0, forget(&self->gpu, h));
}

TEST_F(prepared, begins_behind_the_run_before)
{
	const struct drm_amdgpu_sdma_desc d = swap_desc(SYSTEM_VA, VRAM_VA,
							4096);
	struct gpu other = self->gpu;
	int port = emulator_open();
	unsigned int round;

	if (port < 0)
		SKIP(return, "no emulator to stop the engines of");
	if (!nth_engine(self->gpu.info.engine_mask, 1))
		SKIP(return, "one engine");
	ASSERT_EQ(0, gpu_context(&other, &other.ctx));
	/* sets up page tables and scratch memory */
	for (round = 0; round < 2; round++) {
		struct drm_amdgpu_sdma_batch batch = batch_of(&other, &d, 1);

		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	}
	for (round = 0; round < 4; round++)
		run_behind_a_run(_metadata, self, port,
				 round % 2 ? &other : &self->gpu);
	close(port);
}

/*
 * One share of the first run hangs: the other engines have run their shares
 * once, not twice.
 */
TEST_F(prepared, all_shares_behind_the_run_before)
{
	const uint32_t all = self->gpu.info.engine_mask;
	const unsigned int n = __builtin_popcount(all);
	struct drm_amdgpu_sdma_desc d[32];
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, n), run;
	int port = emulator_open();
	uint32_t h, done[2];
	unsigned int i, once = 0;

	if (port < 0 || n < 2)
		SKIP(return, "no emulator to stop one of many engines of");
	for (i = 0; i < n; i++)
		d[i] = swap_desc(SYSTEM_VA + i * 64 * KIB, STEP_VA(i),
				 64 * KIB);
	ASSERT_EQ(0, syncobj_new(&self->gpu, &done[0]));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &done[1]));
	batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	ASSERT_EQ(0, batch_prepare(&self->gpu, &batch, &h));
	/* sets up page tables */
	ASSERT_EQ(0, run_prepared(&self->gpu, h));
	ASSERT_EQ(0, run_prepared(&self->gpu, h));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, begun(self, i));
	memset(self->system.cpu, 0x77, n * 64 * KIB);
	ASSERT_EQ(0, emulator_engines(port, nth_engine(all, n - 1), "hang"));
	for (i = 0; i < 2; i++) {
		run = run_of(&self->gpu, h);
		ASSERT_EQ(0, batch_submit_to(&self->gpu, &run, done[i], 0));
	}
	EXPECT_EQ(-ETIME, syncobj_wait(&self->gpu, done[1], 0, 0.3));
	for (i = 0; i < n; i++)
		once += begun(self, i);
	EXPECT_EQ(n - 1, once);
	ASSERT_EQ(0, emulator_engines(port, all, "resume"));
	ASSERT_EQ(0, syncobj_wait(&self->gpu, done[1], 0, WAIT_SECONDS));
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, begun(self, i));
	close(port);
}

/*
 * Runs execute in the order of the calls, whatever the contexts and engines:
 * each run of a prepared batch exchanges two pairs of ranges.
 */
TEST_F(prepared, in_the_order_of_the_calls)
{
	/* d overlaps its own source; the exchanges need no order */
	const struct drm_amdgpu_sdma_desc d = copy_desc(VRAM_VA, VRAM_VA + 256,
							MIB);
	const struct drm_amdgpu_sdma_desc move[] = {
		swap_desc(SYSTEM_VA, VRAM_VA, 512 * KIB),
		swap_desc(SYSTEM_VA + MIB, VRAM_VA + MIB, 512 * KIB),
	};
	struct gpu other = self->gpu;
	uint8_t *was = malloc(2 * MIB);
	unsigned int i;
	uint32_t h;

	ASSERT_NE(NULL, was);
	/* overlaps its own source: refused */
	EXPECT_EQ(-EEXIST, prepare(&self->gpu, &d, 1, &h));
	ASSERT_EQ(0, gpu_context(&other, &other.ctx));
	ASSERT_EQ(0, prepare(&self->gpu, move, 2, &h));
	memcpy(was, self->system.cpu, 2 * MIB);
	for (i = 1; i <= 40; i++) {
		struct drm_amdgpu_sdma_batch run =
			run_of(i % 3 ? &other : &self->gpu, h);

		if (i % 8) {
			ASSERT_EQ(0, batch_submit(&self->gpu, &run));
			continue;
		}
		/* an even number of runs has ended, one after the other */
		ASSERT_EQ(0, batch_run(&self->gpu, &run));
		ASSERT_EQ(0, memcmp(was, self->system.cpu, 512 * KIB))
			TH_LOG("after %u runs", i);
		ASSERT_EQ(0, memcmp(was + MIB, self->system.cpu + MIB,
				    512 * KIB)) TH_LOG("after %u runs", i);
	}
	free(was);
}

/*
 * A run follows one that is held back, and needs its slots too: if it cannot be
 * queued, a call with NONBLOCK fails at once.
 */
TEST_F(prepared, nonblock_behind_a_run)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, 4096),
		behind(add_desc(COUNT_VA, 1)),
	};
	struct gpu other = self->gpu;
	struct drm_amdgpu_sdma_batch run;
	struct hold hold;
	unsigned int i;
	uint32_t h, n = 1;
	int ret;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, gpu_context(&other, &other.ctx));
	ASSERT_EQ(0, prepare(&self->gpu, d, 2, &h));
	run = run_of(&self->gpu, h);
	hold_batch(&hold, &run);
	ASSERT_EQ(0, batch_submit(&self->gpu, &run));
	for (i = 0; i < 4; i++) {
		run = run_of(i % 2 ? &self->gpu : &other, h);
		run.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
		ret = batch_submit(&self->gpu, &run);
		/* it can only be queued in the context of the run before */
		EXPECT_EQ(i % 2 ? 0 : -EAGAIN, ret) TH_LOG("call %u", i);
		EXPECT_EQ(!ret, !!run.engines_used);
		n += !ret;
	}
	EXPECT_EQ(3, n);
	usleep(50000);
	EXPECT_EQ(0, count(self));
	hold_release(&hold);
	ASSERT_EQ(0, run_prepared(&self->gpu, h));
	EXPECT_EQ(n + 1, count(self));
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

/* Packets are limited too, which leaves room for batches. */
TEST_F_TIMEOUT(prepared, capped_in_bytes, 120)
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

/* Threads run one batch concurrently, every second with its own context. */
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

static void on_signal(int sig)
{
}

/* One call, which is not repeated here. */
static void *run_once(void *arg)
{
	struct worker *w = arg;
	struct drm_amdgpu_sdma_batch batch = run_of(&w->gpu, w->handle);

	if (ioctl(w->gpu.fd, DRM_IOCTL_AMDGPU_SDMA_BATCH, &batch))
		w->ret = -errno;
	return NULL;
}

/*
 * After a run that waits for a flag, two threads are in the call: one waits for
 * the run to end, one for the lock that the other holds. A signal whose handler
 * restarts calls ends neither.
 */
TEST_F(prepared, signals_restart)
{
	struct sigaction action = {
		.sa_handler = on_signal, .sa_flags = SA_RESTART,
	};
	struct drm_amdgpu_sdma_desc d[] = {
		wait_eq(SYSTEM_VA, 1, wait_ns(&self->gpu, 990)),
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
	/* first the thread that waits for the lock, while it is held */
	pthread_kill(threads[2], SIGUSR1);
	usleep(50000);
	pthread_kill(threads[1], SIGUSR1);
	usleep(50000);
	__atomic_store_n((uint32_t *)self->system.cpu, 1, __ATOMIC_RELEASE);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, w[i].ret);
	}
	/* after all of them */
	ASSERT_EQ(0, run_prepared(&self->gpu, w[0].handle));
	EXPECT_EQ(4, count(self));
}

TEST_HARNESS_MAIN
