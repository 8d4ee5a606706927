/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of the process that gets new pages while many batches run. The old
 * pages get a pattern of their own, which reveals a batch that still reads or
 * writes them.
 */
#ifndef _SELFTEST_SDMA_MOVER_H
#define _SELFTEST_SDMA_MOVER_H

#include <pthread.h>
#include <unistd.h>

#include "sdma_desc.h"

/* Many small copies, so that submitting them takes some time. */
#define MOVER_PARTS	4080

/* Patterns of the pages in use, and of the old ones after a move. */
#define MOVER_NEW	0x66
#define MOVER_OLD	0x99

struct mover {
	struct gpu *gpu;
	/* Called before and during a batch: 0 or a negative errno. */
	int (*prepare)(struct mover *m);
	int (*move)(struct mover *m);
	void *data;		/* for these callbacks */
	uint64_t part;		/* bytes of a copy */
	uint32_t flags;		/* of descriptors */
	unsigned int seed;
	pthread_t thread;
	unsigned int batch_us;	/* duration of a batch */
	unsigned int batches;	/* that have begun */
	bool stop;
	unsigned int moves;
	int error;
};

static inline int mover_copy(struct mover *m, uint64_t src, uint64_t dst)
{
	static struct drm_amdgpu_sdma_desc d[MOVER_PARTS];
	struct drm_amdgpu_sdma_batch batch = batch_of(m->gpu, d, MOVER_PARTS);
	unsigned int i;
	int ret;

	for (i = 0; i < MOVER_PARTS; i++) {
		d[i] = copy_desc(src + i * m->part, dst + i * m->part, m->part);
		d[i].flags = m->flags;
	}
	__atomic_add_fetch(&m->batches, 1, __ATOMIC_RELEASE);
	/* the memory has no pages for a moment */
	do {
		ret = batch_run(m->gpu, &batch);
	} while (ret == -EFAULT);
	return ret;
}

/* Waits until a batch has begun. False if there will be none. */
static inline bool mover_wait(struct mover *m, unsigned int seen)
{
	while (!__atomic_load_n(&m->stop, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&m->batches, __ATOMIC_ACQUIRE) != seen)
			return true;
		usleep(10);
	}
	return false;
}

static inline void *mover_run(void *arg)
{
	struct mover *m = arg;
	unsigned int seen;

	while (!m->error) {
		m->error = m->prepare(m);
		seen = __atomic_load_n(&m->batches, __ATOMIC_ACQUIRE);
		if (m->error || !mover_wait(m, seen))
			break;
		usleep(next_random(&m->seed) % m->batch_us);
		m->error = m->move(m);
		m->moves++;
	}
	return NULL;
}

static inline unsigned int now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Copies twice, times the second copy, and starts to move the memory. */
static inline int mover_start(struct mover *m, uint64_t src, uint64_t dst)
{
	unsigned int start;
	int ret = mover_copy(m, src, dst);

	start = now_us();
	if (!ret)
		ret = mover_copy(m, src, dst);
	m->batch_us = now_us() - start;
	m->batches = 0;
	return ret ? ret : -pthread_create(&m->thread, NULL, mover_run, m);
}

static inline void mover_stop(struct mover *m)
{
	__atomic_store_n(&m->stop, true, __ATOMIC_RELEASE);
	pthread_join(m->thread, NULL);
}

/* The batch that runs during a move must not write to the old pages. */
static inline int mover_check_old(struct mover *m, uint8_t *old, size_t size)
{
	memset(old, MOVER_OLD, size);
	usleep(m->batch_us);
	return all_are(old, size, MOVER_OLD) ? 0 : -EIO;
}

#endif
