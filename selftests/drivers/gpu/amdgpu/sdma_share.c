// SPDX-License-Identifier: GPL-2.0
/*
 * What others wait for when a process has as many SDMA batches in flight as it
 * may: batches of another process, the kernel's moves of buffers and its page
 * table updates. Measured not in time, but in batches and waits that are ahead
 * of them, in the scheduler's trace: it shows the order of jobs however late it
 * is read.
 */
#include <pthread.h>

#include "sdma_evict.h"
#include "sdma_hold.h"
#include "sdma_model.h"
#include "sdma_queue.h"

#define TRACE	TRACE_INSTANCES "/sluice_share"
#define MAPPED_VA	(4096 * MIB)
#define LARGE_VA	(8192 * MIB)
#define LARGE		(64 * MIB)

/*
 * A file that always has as many fills in flight on one engine as it may:
 * @depth of them, with their packets, are max_queued_bytes.
 */
struct flood {
	struct gpu gpu;
	struct buffer buffer;
	pthread_t thread;
	uint32_t engine;
	unsigned int depth;
	bool full, stop;
	int ret;
};

static int flood_once(struct flood *f)
{
	const uint64_t size = f->gpu.info.max_queued_bytes / f->depth - MIB;
	struct drm_amdgpu_sdma_desc d = fill_desc(LARGE_VA, size, 1);
	struct drm_amdgpu_sdma_batch batch = batch_of(&f->gpu, &d, 1);

	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	batch.engine_mask = f->engine;
	return batch_submit(&f->gpu, &batch);
}

static void *keep_flooding(void *arg)
{
	struct flood *f = arg;
	int ret;

	while (!__atomic_load_n(&f->stop, __ATOMIC_ACQUIRE) && !f->ret) {
		ret = flood_once(f);
		if (ret == -EAGAIN) {
			__atomic_store_n(&f->full, true, __ATOMIC_RELEASE);
			usleep(1000);
		} else {
			f->ret = ret;
		}
	}
	return NULL;
}

static int flood_start(struct flood *f, uint32_t engine, unsigned int depth)
{
	uint64_t size;
	int i, ret = gpu_open(&f->gpu, 0);

	f->engine = engine;
	f->depth = depth;
	size = f->gpu.info.max_queued_bytes / depth - MIB;
	if (!ret)
		ret = buffer_new(&f->gpu, &f->buffer, LARGE,
				 AMDGPU_GEM_DOMAIN_GTT);
	if (!ret)
		ret = map_repeatedly(&f->gpu, &f->buffer, LARGE_VA,
				     (size + LARGE - 1) / LARGE * LARGE);
	if (!ret)
		ret = -pthread_create(&f->thread, NULL, keep_flooding, f);
	for (i = 0; !ret && i < 1000; i++) {
		if (__atomic_load_n(&f->full, __ATOMIC_ACQUIRE))
			return 0;
		usleep(10000);
	}
	return ret ? ret : -ETIMEDOUT;
}

static int flood_stop(struct flood *f)
{
	__atomic_store_n(&f->stop, true, __ATOMIC_RELEASE);
	pthread_join(f->thread, NULL);
	close(f->gpu.fd);
	return f->ret;
}

/* One for each engine of @engines: no job of the kernel finds an idle one. */
static void floods_start(struct __test_metadata *_metadata, struct flood *f,
			 uint32_t engines, unsigned int depth)
{
	int i, num = __builtin_popcount(engines);

	for (i = 0; i < num; i++)
		ASSERT_EQ(0, flood_start(&f[i], nth_engine(engines, i), depth));
}

static void floods_stop(struct __test_metadata *_metadata, struct flood *f)
{
	for (; f->engine; f++)
		EXPECT_EQ(0, flood_stop(f));
}

/* Makes a page table update and waits for it. */
static int map_and_wait(struct gpu *gpu, struct buffer *b, uint32_t op,
			uint64_t va, uint32_t timeline, uint64_t point)
{
	struct drm_amdgpu_gem_va arg = {
		.handle = b->handle,
		.operation = op,
		.flags = op == AMDGPU_VA_OP_MAP ? GPU_RW : 0,
		.va_address = va,
		.map_size = b->size,
		.vm_timeline_syncobj_out = timeline,
		.vm_timeline_point = point,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_VA, &arg);

	return ret ? ret : syncobj_wait(gpu, timeline, point, WAIT_SECONDS);
}

/* False if this kernel does not trace, or not for this user. */
static bool begin_trace(struct __test_metadata *_metadata)
{
	int ret = queue_begin(TRACE);

	if (ret == -ENOENT || ret == -EACCES)
		return false;
	ASSERT_EQ(0, ret);
	return true;
}

static int read_trace(struct queue *queue)
{
	int ret = queue_read(TRACE, queue);

	rmdir(TRACE);
	return ret;
}

/* One batch at a time, on @engine. */
static void run_alone(struct __test_metadata *_metadata,
		      struct _test_data_sdma *self,
		      const struct drm_amdgpu_sdma_desc *d, uint32_t engine,
		      unsigned int rounds)
{
	struct drm_amdgpu_sdma_batch batch;

	while (rounds--) {
		batch = batch_of(&self->gpu, d, 1);
		batch.engine_mask = engine;
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	}
}

/* Makes page table updates and waits for each. */
static void update(struct __test_metadata *_metadata,
		   struct _test_data_sdma *self, unsigned int times)
{
	uint32_t timeline;
	struct buffer b;
	unsigned int i;

	ASSERT_EQ(0, syncobj_new(&self->gpu, &timeline));
	ASSERT_EQ(0, buffer_new(&self->gpu, &b, 4 * MIB,
				AMDGPU_GEM_DOMAIN_GTT));
	for (i = 0; i < times; i++)
		ASSERT_EQ(0, map_and_wait(&self->gpu, &b, i % 2 ?
					  AMDGPU_VA_OP_UNMAP : AMDGPU_VA_OP_MAP,
					  MAPPED_VA, timeline, i + 1));
}

/* Moves of buffers that leave video memory. */
static void move(struct __test_metadata *_metadata, struct evict *e,
		 unsigned int times)
{
	while (times--)
		ASSERT_LE(0, evict_once(e));
}

#define DEPTH	16
/* Jobs that a ring takes at once: amdgpu.sched_hw_submission. */
#define RING_JOBS	2
/*
 * The trace shows a job just before the scheduler knows it, and the end of
 * another just after the ring has room again: this many may slip in between.
 */
#define TRACED_LATE	2
#define ROUNDS	3

/*
 * A file with one batch in flight finds at most as many bytes of another file
 * ahead of it as that file may have in flight, and what the ring holds.
 */
TEST_F_TIMEOUT(sdma, fair, 200)
{
	const uint32_t engine = nth_engine(self->gpu.info.engine_mask, 0);
	struct drm_amdgpu_sdma_desc d = fill_desc(VRAM_VA, SIZE, 1);
	struct queue ours = { OF_A_FILE, drm_client(self->gpu.fd) };
	struct flood other = { };

	ASSERT_EQ(0, run(self, &d, 1));
	if (!begin_trace(_metadata))
		SKIP(return, "no tracepoints");
	ASSERT_EQ(0, flood_start(&other, engine, DEPTH));
	run_alone(_metadata, self, &d, engine, ROUNDS);
	EXPECT_EQ(0, flood_stop(&other));
	ASSERT_EQ(0, read_trace(&ours));
	TH_LOG("%ld of their batches before one of ours, of %d on their way",
	       ours.before, DEPTH);
	EXPECT_GE(DEPTH + TRACED_LATE, ours.before);
	/* else the engine was not shared */
	EXPECT_LT(0, ours.before);
}

/* The kernel's engines, which take no waits; all if there are none. */
static uint32_t kernels(struct _test_data_sdma *self)
{
	const struct drm_amdgpu_info_sdma_batch *info = &self->gpu.info;
	uint32_t engines = info->engine_mask & ~info->wait_engine_mask;

	return engines ? engines : info->engine_mask;
}

/*
 * A page table update does not queue: only the jobs that the ring holds are
 * ahead of it, and of a second job of the same update. Where there is only one
 * engine it queues, or updates could keep the engine from all users.
 */
TEST_F_TIMEOUT(sdma, page_tables_under_a_flood, 200)
{
	struct queue updates = { UPDATES };
	struct flood other[33] = { };

	if (__builtin_popcount(self->gpu.info.engine_mask) < 2)
		SKIP(return, "the only engine is shared in order");
	if (!begin_trace(_metadata))
		SKIP(return, "no tracepoints");
	floods_start(_metadata, other, kernels(self), DEPTH);
	update(_metadata, self, 2 * ROUNDS);
	floods_stop(_metadata, other);
	ASSERT_EQ(0, read_trace(&updates));
	TH_LOG("%ld of their batches before one of %ld updates, of %d on their way",
	       updates.before, updates.jobs, DEPTH);
	EXPECT_GE(RING_JOBS + TRACED_LATE, updates.before);
	EXPECT_LT(0, updates.before);
}

/* The kernel's moves of buffers do not queue either. */
TEST_F_TIMEOUT(sdma, moves_under_a_flood, 280)
{
	struct queue moves = { MOVES };
	struct flood other[33] = { };
	static struct evict e;
	int ret = evict_open(&e);

	if (ret == -E2BIG)
		SKIP(return, "too much video memory");
	ASSERT_EQ(0, ret);
	if (!begin_trace(_metadata))
		SKIP(return, "no tracepoints");
	floods_start(_metadata, other, kernels(self), 4 * DEPTH);
	move(_metadata, &e, 6);
	floods_stop(_metadata, other);
	evict_close(&e);
	ASSERT_EQ(0, read_trace(&moves));
	TH_LOG("%ld of their batches before one of %ld moves, of %u on their way",
	       moves.before, moves.jobs, 4 * DEPTH);
	EXPECT_GE(RING_JOBS + TRACED_LATE, moves.before);
	EXPECT_LT(0, moves.before);
}

/* How many batches that signal a timeline have ended, or a negative errno. */
static long count_ended(struct gpu *gpu, uint32_t timeline)
{
	uint64_t point = 0;
	struct drm_syncobj_timeline_array arg = {
		.handles = (uintptr_t)&timeline,
		.points = (uintptr_t)&point,
		.count_handles = 1,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_SYNCOBJ_QUERY, &arg);

	return ret ? ret : (long)point;
}

/* Files whose batches wait in vain, each with two on every engine. */
#define WAITERS	3
/*
 * In the unit of wait_ns(). An emulated engine polls at the pace of a busy
 * host: no wait may last so long that it is taken for a hang.
 */
#define LONG_WAIT	80
#define SHORT_WAIT	40

struct waiting {
	struct gpu gpu;
	struct buffer system;
	pthread_t thread;
	uint32_t engines;
	unsigned int parts;	/* see wait_ns() */
	uint32_t timeline[32];
	uint64_t point[32];
	bool stop;
	int ret;
};

static int wait_again(struct waiting *w, unsigned int engine)
{
	struct drm_amdgpu_sdma_desc d =
		wait_eq(SYSTEM_VA, 1, wait_ns(&w->gpu, w->parts));
	struct drm_amdgpu_sdma_batch batch = batch_of(&w->gpu, &d, 1);
	const uint32_t timeline = w->timeline[engine];
	const uint64_t point = w->point[engine] + 1;
	int ret;

	batch.engine_mask = 1u << engine;
	ret = batch_submit_to(&w->gpu, &batch, timeline, point);
	if (!ret)
		__atomic_store_n(&w->point[engine], point, __ATOMIC_RELEASE);
	return ret;
}

/* Submits one more on each engine that has fewer than two. */
static void *keep_waiting(void *arg)
{
	struct waiting *w = arg;
	unsigned int engine;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE) && !w->ret) {
		for (engine = 0; engine < 32 && !w->ret; engine++) {
			if (!(w->engines & 1u << engine))
				continue;
			if (count_ended(&w->gpu, w->timeline[engine]) + 2 >
			    (long)w->point[engine])
				w->ret = wait_again(w, engine);
		}
		usleep(1000);
	}
	return NULL;
}

static int waiting_start(struct waiting *w, uint32_t engines,
			 unsigned int parts)
{
	int ret = gpu_open(&w->gpu, 0);
	unsigned int engine;

	w->engines = engines;
	w->parts = parts;
	if (!ret)
		ret = buffer_map(&w->gpu, &w->system, MIB,
				 AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA);
	for (engine = 0; engine < 32 && !ret; engine++)
		ret = syncobj_new(&w->gpu, &w->timeline[engine]);
	if (!ret)
		ret = -pthread_create(&w->thread, NULL, keep_waiting, w);
	for (engine = 0; engine < 32 && !ret; engine++)
		while (engines & 1u << engine &&
		       __atomic_load_n(&w->point[engine], __ATOMIC_ACQUIRE) < 2)
			usleep(1000);
	return ret;
}

static int waiting_stop(struct waiting *w)
{
	__atomic_store_n(&w->stop, true, __ATOMIC_RELEASE);
	__atomic_store_n((uint32_t *)w->system.cpu, 1, __ATOMIC_RELEASE);
	pthread_join(w->thread, NULL);
	close(w->gpu.fd);
	return w->ret;
}

/*
 * Files wait on every engine that takes waits. The kernel's own work meanwhile
 * does not queue after any of these waits.
 */
TEST_F_TIMEOUT(sdma, moves_behind_no_wait, 280)
{
	struct waiting other[WAITERS] = { };
	struct queue moves = { MOVES };
	static struct evict e;
	int ret, i;

	if (!(self->gpu.info.engine_mask & ~self->gpu.info.wait_engine_mask))
		SKIP(return, "the kernel has no engine for itself");
	ret = evict_open(&e);
	if (ret == -E2BIG)
		SKIP(return, "too much video memory");
	ASSERT_EQ(0, ret);
	if (!begin_trace(_metadata))
		SKIP(return, "no tracepoints");
	for (i = 0; i < WAITERS; i++)
		ASSERT_EQ(0, waiting_start(&other[i],
					   self->gpu.info.wait_engine_mask,
					   LONG_WAIT));
	move(_metadata, &e, 6);
	for (i = 0; i < WAITERS; i++)
		EXPECT_EQ(0, waiting_stop(&other[i]));
	evict_close(&e);
	ASSERT_EQ(0, read_trace(&moves));
	TH_LOG("%ld waits before one of %ld moves", moves.before, moves.jobs);
	EXPECT_EQ(0, moves.before);
}

TEST_F_TIMEOUT(sdma, page_tables_behind_no_wait, 200)
{
	struct waiting other[WAITERS] = { };
	struct queue updates = { UPDATES };
	int i;

	if (!(self->gpu.info.engine_mask & ~self->gpu.info.wait_engine_mask))
		SKIP(return, "the kernel has no engine for itself");
	if (!begin_trace(_metadata))
		SKIP(return, "no tracepoints");
	for (i = 0; i < WAITERS; i++)
		ASSERT_EQ(0, waiting_start(&other[i],
					   self->gpu.info.wait_engine_mask,
					   LONG_WAIT));
	update(_metadata, self, 20);
	for (i = 0; i < WAITERS; i++)
		EXPECT_EQ(0, waiting_stop(&other[i]));
	ASSERT_EQ(0, read_trace(&updates));
	TH_LOG("%ld waits before one of %ld updates", updates.before,
	       updates.jobs);
	EXPECT_EQ(0, updates.before);
}

/* Most waits of others ahead of @d on the engine, in @rounds rounds. */
static long waits_before(struct __test_metadata *_metadata,
			 struct _test_data_sdma *self,
			 const struct drm_amdgpu_sdma_desc *d, uint32_t engine,
			 unsigned int rounds)
{
	struct queue ours = { OF_A_FILE, drm_client(self->gpu.fd) };
	struct waiting other[WAITERS] = { };
	unsigned int i;

	for (i = 0; i < WAITERS; i++)
		ASSERT_EQ(0, waiting_start(&other[i], engine, SHORT_WAIT));
	run_alone(_metadata, self, d, engine, rounds);
	for (i = 0; i < WAITERS; i++)
		EXPECT_EQ(0, waiting_stop(&other[i]));
	ASSERT_EQ(0, read_trace(&ours));
	TH_LOG("%ld waits before ours, of %d on their way", ours.before,
	       2 * WAITERS);
	return ours.before;
}

/* One wait at a time is on the ring: a copy of another file gets its turn. */
TEST_F_TIMEOUT(sdma, copies_between_waits, 280)
{
	const uint32_t engine = nth_engine(self->gpu.info.wait_engine_mask, 0);
	const struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA,
							4096);

	ASSERT_EQ(0, run(self, &d, 1));
	if (!begin_trace(_metadata))
		SKIP(return, "no tracepoints");
	EXPECT_GE(2, waits_before(_metadata, self, &d, engine, 20));
}

/* Waits of other files do not keep ours from their turn. */
TEST_F_TIMEOUT(sdma, waits_between_waits, 280)
{
	const uint32_t engine = nth_engine(self->gpu.info.wait_engine_mask, 0);
	const struct drm_amdgpu_sdma_desc d =
		wait_ge(SYSTEM_VA, 0, wait_ns(&self->gpu, SHORT_WAIT));

	if (!begin_trace(_metadata))
		SKIP(return, "no tracepoints");
	EXPECT_GE(2 * WAITERS + 1,
		  waits_before(_metadata, self, &d, engine, 10));
}

TEST_HARNESS_MAIN
