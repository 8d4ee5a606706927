/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_BATCH_STATS_H__
#define __AMDGPU_SDMA_BATCH_STATS_H__

#include <linux/kref.h>
#include <linux/types.h>

#include "amdgpu_sdma_plan.h"

struct amdgpu_device;
struct amdgpu_fpriv;
struct amdgpu_job;
struct amdgpu_sdma_batch_file;
struct amdgpu_sdma_batch_limits;
struct amdgpu_sdma_batch_note;
struct amdgpu_sdma_turns;
struct dma_fence;
struct drm_printer;

int amdgpu_sdma_batch_dev_init(struct amdgpu_device *adev);
void amdgpu_sdma_batch_debugfs_init(struct amdgpu_device *adev);

struct amdgpu_sdma_batch_file *amdgpu_sdma_batch_file_create(void);
void amdgpu_sdma_batch_file_put(struct amdgpu_sdma_batch_file *file);
u64 amdgpu_sdma_batch_usage(struct amdgpu_fpriv *fpriv);
void amdgpu_sdma_batch_show_fdinfo(struct drm_printer *p,
				   struct amdgpu_fpriv *fpriv);

struct amdgpu_sdma_turns *amdgpu_sdma_batch_turns(struct amdgpu_device *adev);
struct amdgpu_sdma_batch_limits *
amdgpu_sdma_batch_limits(struct amdgpu_device *adev);

/**
 * struct amdgpu_sdma_hangs - which engines the batches of a context have hung
 * @ref: one of the context, one of each batch
 * @engines: their instances
 *
 * An entity only knows the error of the job that it has given to its ring last.
 * That may be another one than the job that hung.
 */
struct amdgpu_sdma_hangs {
	struct kref ref;
	unsigned long engines;
};

struct amdgpu_sdma_hangs *amdgpu_sdma_hangs_create(void);
struct amdgpu_sdma_hangs *amdgpu_sdma_hangs_get(struct amdgpu_sdma_hangs *hangs);
void amdgpu_sdma_hangs_put(struct amdgpu_sdma_hangs *hangs);

/**
 * struct amdgpu_sdma_batch_charge - what a batch is charged to its file
 * @jobs: maximum number of jobs
 * @engines: instance of the engine of each job
 * @work: work of each job, in bytes
 * @hangs: of the context
 * @max_work: work that the file may have in flight for each engine
 * @longest_wait: nanoseconds of all waits together; 0 without waits
 * @nonblock: fail instead of waiting
 */
struct amdgpu_sdma_batch_charge {
	unsigned int jobs;
	u32 engines[AMDGPU_SDMA_MAX_SHARES];
	u64 work[AMDGPU_SDMA_MAX_SHARES];
	struct amdgpu_sdma_hangs *hangs;
	u64 max_work;
	u64 longest_wait;
	bool nonblock;
};

struct amdgpu_sdma_batch_note *
amdgpu_sdma_batch_note_create(struct amdgpu_device *adev,
			      struct amdgpu_fpriv *fpriv,
			      const struct amdgpu_sdma_batch_charge *charge);
void amdgpu_sdma_batch_note_drop(struct amdgpu_sdma_batch_note *note,
				 unsigned int job);
void amdgpu_sdma_batch_note_free(struct amdgpu_sdma_batch_note *note);
void amdgpu_sdma_batch_note_arm(struct amdgpu_sdma_batch_note *note,
				struct amdgpu_job *const *jobs,
				unsigned int num,
				const struct amdgpu_sdma_plan *plan,
				const struct dma_fence *joined);

#endif
