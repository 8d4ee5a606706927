// SPDX-License-Identifier: GPL-2.0
/*
 * sdma_stall_bench [rounds]: what is ahead of the kernel's own work on the SDMA
 * engines, in bytes of copies and in waits, when a process has as many SDMA
 * batches in flight as it may. One line each for a move of a buffer and a page
 * table update; exits with 1 if one is above its documented bound.
 *
 * They are counted in the scheduler's trace, job by job, so they do not depend
 * on how fast an engine or the CPU is.
 */
#include <pthread.h>

#include "sdma_evict.h"
#include "sdma_hold.h"
#include "sdma_queue.h"

#define LARGE_VA	(8192 * MIB)
#define LARGE		(64 * MIB)
#define MAP_VA		(4096 * MIB)
#define DEPTH		64
#define TRACE		TRACE_INSTANCES "/sdma_stall_bench"
/*
 * Jobs that a ring already holds: amdgpu.sched_hw_submission. One more may be
 * about to enter it when the kernel's job is queued.
 */
#define RING_JOBS	(2 + 1)

static void check(const char *what, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-ret));
	exit(1);
}

/* A file that floods one engine, with copies or with waits. */
struct flood {
	struct gpu gpu;
	struct buffer buffer;
	struct drm_amdgpu_sdma_desc d;
	pthread_t thread;
	uint32_t engine, timeline;
	uint64_t submitted;
	bool full, stop;
};

static long ended(struct flood *f)
{
	uint64_t point = 0;
	struct drm_syncobj_timeline_array arg = {
		.handles = (uintptr_t)&f->timeline,
		.points = (uintptr_t)&point,
		.count_handles = 1,
	};

	check("query", gpu_ioctl(&f->gpu, DRM_IOCTL_SYNCOBJ_QUERY, &arg));
	return point;
}

static void *keep_flooding(void *arg)
{
	struct flood *f = arg;
	struct drm_amdgpu_sdma_batch batch;
	int ret;

	while (!__atomic_load_n(&f->stop, __ATOMIC_ACQUIRE)) {
		batch = batch_of(&f->gpu, &f->d, 1);
		batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
		batch.engine_mask = f->engine;
		ret = (long)f->submitted < ended(f) + DEPTH ?
		      batch_submit_to(&f->gpu, &batch, f->timeline,
				      f->submitted + 1) : -EAGAIN;
		if (!ret) {
			f->submitted++;
			continue;
		}
		if (ret != -EAGAIN)
			check("flood", ret);
		__atomic_store_n(&f->full, true, __ATOMIC_RELEASE);
		usleep(1000);
	}
	return NULL;
}

static void flood_start(struct flood *f, uint32_t engine, bool waits)
{
	uint64_t size;

	memset(f, 0, sizeof(*f));
	check("open", gpu_open(&f->gpu, 0));
	size = f->gpu.info.max_queued_bytes / DEPTH - MIB;
	f->engine = engine;
	f->d = waits ? wait_eq(LARGE_VA, 0xffffffff, wait_ns(&f->gpu, 950)) :
		       fill_desc(LARGE_VA, size, 1);
	check("buffer", buffer_new(&f->gpu, &f->buffer, LARGE,
				   AMDGPU_GEM_DOMAIN_GTT));
	check("map", map_repeatedly(&f->gpu, &f->buffer, LARGE_VA,
				    (size + LARGE - 1) / LARGE * LARGE));
	check("syncobj", syncobj_new(&f->gpu, &f->timeline));
	check("thread", -pthread_create(&f->thread, NULL, keep_flooding, f));
	while (!__atomic_load_n(&f->full, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static void flood_stop(struct flood *f)
{
	__atomic_store_n(&f->stop, true, __ATOMIC_RELEASE);
	pthread_join(f->thread, NULL);
	close(f->gpu.fd);
}

struct bench {
	struct gpu gpu;
	struct buffer mapped;
	struct evict evict;
	uint32_t timeline;
	uint64_t point;
};

/* Makes a page table update and waits for it. */
static void map(struct bench *b)
{
	struct drm_amdgpu_gem_va arg = {
		.handle = b->mapped.handle,
		.operation = b->point % 2 ? AMDGPU_VA_OP_UNMAP :
					    AMDGPU_VA_OP_MAP,
		.flags = b->point % 2 ? 0 : GPU_RW,
		.va_address = MAP_VA,
		.map_size = b->mapped.size,
		.vm_timeline_syncobj_out = b->timeline,
		.vm_timeline_point = b->point + 1,
	};

	b->point++;
	check("map", gpu_ioctl(&b->gpu, DRM_IOCTL_AMDGPU_GEM_VA, &arg));
	check("update", syncobj_wait(&b->gpu, b->timeline, b->point,
				     WAIT_SECONDS));
}

static void move(struct bench *b)
{
	int ret = evict_once(&b->evict);

	check("move", ret < 0 ? ret : 0);
}

static int line(const char *what, const char *flood, const struct queue *queue,
		long each, const char *unit, long bound)
{
	const bool met = queue->before <= bound;

	printf("%-6s %s, flood of %s: %ld %s before one of %ld jobs, bound: %ld\n",
	       met ? "met" : "MISSED", what, flood, queue->before * each, unit,
	       queue->jobs, bound * each);
	fflush(stdout);
	return !met;
}

/* The kernel's own work under a flood of @flood; a job is @each @unit. */
static int under(struct bench *b, int rounds, struct flood *f,
		 const char *flood, long each, const char *unit, long bound)
{
	struct queue updates = { .kind = UPDATES }, moves = { .kind = MOVES };

	while (rounds--) {
		map(b);
		move(b);
	}
	flood_stop(f);
	check("trace of updates", queue_read(TRACE, &updates));
	check("trace of moves", queue_read(TRACE, &moves));
	return line("page table update", flood, &updates, each, unit, bound) +
	       line("move of 64 MiB", flood, &moves, each, unit, bound);
}

static int under_copies(struct bench *b, int rounds, uint32_t engine)
{
	const uint64_t size = b->gpu.info.max_queued_bytes / DEPTH - MIB;
	struct flood f;

	check("trace", queue_begin(TRACE));
	flood_start(&f, engine, false);
	return under(b, rounds, &f, "copies", size, "bytes", RING_JOBS);
}

static int under_waits(struct bench *b, int rounds, uint32_t engine)
{
	struct flood f;

	check("trace", queue_begin(TRACE));
	flood_start(&f, engine, true);
	return under(b, rounds, &f, "waits", 1, "waits", 0);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	uint32_t kernels, waits;
	static struct bench b;
	int bad;

	if (gpu_open(&b.gpu, 0)) {
		puts("1..0 # SKIP no GPU with SDMA batches");
		return 4;
	}
	waits = b.gpu.info.wait_engine_mask;
	kernels = b.gpu.info.engine_mask & ~waits;
	if (!kernels)
		kernels = b.gpu.info.engine_mask;
	check("syncobj", syncobj_new(&b.gpu, &b.timeline));
	check("mapped", buffer_new(&b.gpu, &b.mapped, 4 * MIB,
				   AMDGPU_GEM_DOMAIN_GTT));
	check("evict", evict_open(&b.evict));
	bad = under_copies(&b, rounds, nth_engine(kernels, 0));
	if (kernels != b.gpu.info.engine_mask)
		bad += under_waits(&b, rounds, nth_engine(waits, 0));
	rmdir(TRACE);
	return bad ? 1 : 0;
}
