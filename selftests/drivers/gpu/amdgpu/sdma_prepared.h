/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of prepared batches and of batches by io_uring share: random
 * data, the usual descriptors, calls by handle.
 */
#ifndef _SELFTEST_SDMA_PREPARED_H
#define _SELFTEST_SDMA_PREPARED_H

#include "sdma_batch.h"

static inline unsigned int env(const char *name, unsigned int otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

static inline unsigned int next_random(unsigned int *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static inline void randomize(void *p, size_t size, unsigned int *seed)
{
	uint32_t *word = p;
	size_t i;

	for (i = 0; i < size / 4; i++)
		word[i] = next_random(seed) << 8 ^ next_random(seed);
}

static inline struct drm_amdgpu_sdma_desc
copy_desc(uint64_t src, uint64_t dst, uint64_t size)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_COPY,
		.src = src,
		.dst = dst,
		.size = size,
	};
}

static inline struct drm_amdgpu_sdma_desc
fill_desc(uint64_t dst, uint64_t size, uint32_t value)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_FILL,
		.dst = dst,
		.size = size,
		.value = value,
	};
}

static inline struct drm_amdgpu_sdma_desc add_desc(uint64_t dst, uint64_t value)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_ADD,
		.dst = dst,
		.value = value,
	};
}

static inline struct drm_amdgpu_sdma_desc
wait_desc(uint64_t src, uint32_t value, uint32_t polls)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_WAIT,
		.src = src,
		.compare = AMDGPU_SDMA_COMPARE_EQ,
		.value = value,
		.mask = ~0u,
		.polls = polls,
	};
}

static inline int batch_prepare(struct gpu *gpu,
				struct drm_amdgpu_sdma_batch *batch,
				uint32_t *handle)
{
	int ret;

	batch->flags = AMDGPU_SDMA_BATCH_PREPARE;
	ret = batch_submit(gpu, batch);
	*handle = batch->handle;
	return ret;
}

static inline int prepare(struct gpu *gpu,
			  const struct drm_amdgpu_sdma_desc *descs, uint32_t n,
			  uint32_t *handle)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, descs, n);

	return batch_prepare(gpu, &batch, handle);
}

/* A run of a prepared batch, for batch_submit() or batch_run(). */
static inline struct drm_amdgpu_sdma_batch run_of(struct gpu *gpu,
						  uint32_t handle)
{
	return (struct drm_amdgpu_sdma_batch) {
		.ctx_id = gpu->ctx,
		.flags = AMDGPU_SDMA_BATCH_RUN,
		.handle = handle,
	};
}

static inline int run_prepared(struct gpu *gpu, uint32_t handle)
{
	struct drm_amdgpu_sdma_batch batch = run_of(gpu, handle);

	return batch_run(gpu, &batch);
}

static inline int forget(struct gpu *gpu, uint32_t handle)
{
	struct drm_amdgpu_sdma_batch batch = {
		.flags = AMDGPU_SDMA_BATCH_FORGET,
		.handle = handle,
	};

	return batch_submit(gpu, &batch);
}

#endif
