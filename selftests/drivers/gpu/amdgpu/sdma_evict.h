/* SPDX-License-Identifier: GPL-2.0 */
/* Moves of buffers that a test can wait for, one at a time. */
#ifndef _SELFTEST_SDMA_EVICT_H
#define _SELFTEST_SDMA_EVICT_H

#include "sdma_batch.h"

#define EVICT_SIZE	(64 * MIB)
#define EVICT_MOST	64

/* Buffers, each with a CPU mapping; the oldest leaves video memory first. */
struct evict {
	struct gpu gpu;
	struct buffer b[EVICT_MOST];
	unsigned int num, old;	/* the first @old, of evict_open(), have data */
};

static inline int evict_add(struct evict *e)
{
	struct buffer *b = &e->b[e->num++];
	int ret = buffer_new(&e->gpu, b, EVICT_SIZE, AMDGPU_GEM_DOMAIN_VRAM);

	return ret ? ret : buffer_cpu(&e->gpu, b);
}

/* Fill video memory; -E2BIG if there is too much of it. */
static inline int evict_open(struct evict *e)
{
	int i, ret;

	memset(e, 0, sizeof(*e));
	ret = gpu_open(&e->gpu, 0);
	if (ret)
		return ret;
	i = gpu_too_many(&e->gpu, EVICT_SIZE);
	if (i > EVICT_MOST / 2)
		return -E2BIG;
	while (i-- && !ret)
		ret = evict_add(e);
	/* touch all: buffers are cleared then, and evictions have ended */
	for (i = 0; i < (int)e->num && !ret; i++)
		*(volatile uint8_t *)e->b[i].cpu = i;
	e->old = e->num;
	return ret;
}

/*
 * One more buffer evicts others. Returns how many, or a negative errno, when
 * they have been moved; the new one may not have been cleared by then.
 */
static inline int evict_once(struct evict *e)
{
	uint64_t before = gpu_evictions(&e->gpu);
	int i, moved, ret = evict_add(e);

	if (ret)
		return ret;
	moved = gpu_evictions(&e->gpu) - before;
	/* the CPU's access waits for a move */
	for (i = 0; i < (int)e->old; i++)
		if (*(volatile uint8_t *)e->b[i].cpu != (uint8_t)i)
			return -EILSEQ;
	return moved;
}

static inline void evict_close(struct evict *e)
{
	unsigned int i;

	for (i = 0; i < e->num; i++)
		buffer_free(&e->gpu, &e->b[i]);
	close(e->gpu.fd);
}

#endif
