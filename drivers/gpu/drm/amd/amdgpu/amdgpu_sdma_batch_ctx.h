/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_BATCH_CTX_H__
#define __AMDGPU_SDMA_BATCH_CTX_H__

#include <drm/gpu_scheduler.h>

struct amdgpu_ctx;
struct amdgpu_device;
struct amdgpu_fpriv;
struct amdgpu_job;
struct amdgpu_sdma_hangs;

/**
 * struct amdgpu_sdma_batch_engine - an engine from the view of one context
 * @entity: the context's jobs on it
 * @sched: its scheduler
 * @instance: its number
 */
struct amdgpu_sdma_batch_engine {
	struct drm_sched_entity entity;
	struct drm_gpu_scheduler *sched;
	u32 instance;
};

/**
 * struct amdgpu_sdma_batch_ctx - a context's engines
 * @num: number of @engines
 * @instances: mask of the instances in @engines
 * @hangs: engines that its batches have hung
 * @next: where the next fan-out begins
 * @engines: engines of the file's partition
 */
struct amdgpu_sdma_batch_ctx {
	u32 num;
	u32 instances;
	struct amdgpu_sdma_hangs *hangs;
	atomic_t next;
	struct amdgpu_sdma_batch_engine engines[] __counted_by(num);
};

struct amdgpu_sdma_batch_ctx *amdgpu_sdma_batch_ctx_get(struct amdgpu_ctx *ctx);
int amdgpu_sdma_batch_engine_error(struct amdgpu_sdma_batch_ctx *bctx,
				   struct amdgpu_sdma_batch_engine *e);
struct dma_fence *
amdgpu_sdma_batch_fence_create(struct amdgpu_job *const *jobs, unsigned int num,
			       const u32 *slots, unsigned int num_slots);
void amdgpu_sdma_batch_fence_arm(struct dma_fence *fence,
				 struct amdgpu_job *const *jobs);

#endif
