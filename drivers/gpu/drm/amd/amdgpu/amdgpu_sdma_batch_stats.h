/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_BATCH_STATS_H__
#define __AMDGPU_SDMA_BATCH_STATS_H__

#include <linux/types.h>

struct amdgpu_device;
struct amdgpu_fpriv;
struct amdgpu_job;
struct amdgpu_sdma_batch_file;
struct amdgpu_sdma_batch_note;
struct amdgpu_sdma_plan;
struct dma_fence;
struct drm_printer;

int amdgpu_sdma_batch_dev_init(struct amdgpu_device *adev);
void amdgpu_sdma_batch_debugfs_init(struct amdgpu_device *adev);

struct amdgpu_sdma_batch_file *amdgpu_sdma_batch_file_create(void);
void amdgpu_sdma_batch_file_put(struct amdgpu_sdma_batch_file *file);
u64 amdgpu_sdma_batch_usage(struct amdgpu_fpriv *fpriv);
void amdgpu_sdma_batch_show_fdinfo(struct drm_printer *p,
				   struct amdgpu_fpriv *fpriv);

struct amdgpu_sdma_batch_note *
amdgpu_sdma_batch_note_create(struct amdgpu_device *adev,
			      struct amdgpu_fpriv *fpriv, unsigned int num);
int amdgpu_sdma_batch_note_polls(struct amdgpu_sdma_batch_note *note,
				 u32 engine, u32 polls);
void amdgpu_sdma_batch_note_free(struct amdgpu_sdma_batch_note *note);
void amdgpu_sdma_batch_note_arm(struct amdgpu_sdma_batch_note *note,
				struct amdgpu_job *const *jobs,
				unsigned int num,
				const struct amdgpu_sdma_plan *plan,
				const struct dma_fence *joined);

#endif
