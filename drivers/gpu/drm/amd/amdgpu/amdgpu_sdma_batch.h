/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_BATCH_H__
#define __AMDGPU_SDMA_BATCH_H__

#include <drm/amdgpu_drm.h>
#include <drm/gpu_scheduler.h>

struct amdgpu_ctx;
struct amdgpu_device;
struct amdgpu_vm;
struct dma_fence;
struct drm_device;
struct drm_file;

/**
 * struct amdgpu_sdma_batch_call - a submission whose caller waits for its end
 * @args: arguments and results
 * @nonblock: fail instead of waiting for earlier batches
 * @fence: out: a reference to the fence, NULL if nothing was submitted
 */
struct amdgpu_sdma_batch_call {
	struct drm_amdgpu_sdma_batch args;
	bool nonblock;
	struct dma_fence *fence;
};

int amdgpu_sdma_batch_ioctl(struct drm_device *dev, void *data,
			    struct drm_file *filp);
int amdgpu_sdma_batch_call(struct drm_device *dev, void *data,
			   struct drm_file *filp);
void amdgpu_sdma_batch_ctx_fini(struct amdgpu_ctx *ctx);
long amdgpu_sdma_batch_ctx_flush(struct amdgpu_ctx *ctx, long timeout);
bool amdgpu_sdma_batch_ctx_guilty(struct amdgpu_ctx *ctx);
void amdgpu_sdma_batch_ctx_set_priority(struct amdgpu_ctx *ctx,
					enum drm_sched_priority priority);

/* amdgpu_sdma_batch_vm.c */
int amdgpu_sdma_batch_validate_vm(struct amdgpu_device *adev,
				  struct amdgpu_vm *vm);

/* amdgpu_ctx.c: the priority to pass to amdgpu_sdma_batch_ctx_set_priority() */
enum drm_sched_priority amdgpu_ctx_sched_priority(struct amdgpu_ctx *ctx);

#endif
