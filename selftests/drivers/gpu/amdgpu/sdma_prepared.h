/* SPDX-License-Identifier: GPL-2.0 */
/* Prepared SDMA batches, for tests: calls that prepare, run and forget them. */
#ifndef _SELFTEST_SDMA_PREPARED_H
#define _SELFTEST_SDMA_PREPARED_H

#include "sdma_desc.h"

static inline int batch_prepare(struct gpu *gpu,
				struct drm_amdgpu_sdma_batch *batch,
				uint32_t *handle)
{
	int ret;

	batch->op = AMDGPU_SDMA_BATCH_PREPARE;
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
		.op = AMDGPU_SDMA_BATCH_RUN,
		.ctx_id = gpu->ctx,
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
		.op = AMDGPU_SDMA_BATCH_FORGET,
		.handle = handle,
	};

	return batch_submit(gpu, &batch);
}

#endif
