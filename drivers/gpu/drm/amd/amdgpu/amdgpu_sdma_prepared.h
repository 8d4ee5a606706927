/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_PREPARED_H__
#define __AMDGPU_SDMA_PREPARED_H__

#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include "amdgpu_sdma_plan.h"

struct amdgpu_bo_va_mapping;
struct amdgpu_fpriv;
struct amdgpu_job;
struct amdgpu_sdma_chunk;
struct amdgpu_vm;
struct drm_exec;

/* Of a file: how many, and bytes of their packets; the rest is for batches. */
#define AMDGPU_SDMA_MAX_PREPARED	256
#define AMDGPU_SDMA_MAX_PREPARED_BYTES	SZ_32M

/* What a share with barriers has more: an IB that clears its slot. */
#define AMDGPU_SDMA_RESET_DW		8

/**
 * struct amdgpu_sdma_used - a mapping that a prepared batch uses
 * @start: its first page
 * @id: its &amdgpu_bo_va_mapping.id
 * @add: an ADD goes to it
 */
struct amdgpu_sdma_used {
	u64 start;
	u64 id;
	bool add;
};

/**
 * struct amdgpu_sdma_job_ibs - packets of one job
 * @num: of @ib
 * @ib: GPU address and length in dwords of each
 */
struct amdgpu_sdma_job_ibs {
	u32 num;
	struct {
		u64 va;
		u32 length;
	} ib[AMDGPU_SDMA_MAX_IBS];
};

/**
 * struct amdgpu_sdma_prepared - a batch that is checked and built
 * @ref: one of the file's table, one of each call that uses it
 * @lock: for a call that runs it: taken before reservations, protects what
 *	follows
 * @plan: totals; there are no descriptors any more
 * @mask: engines, by instance, that it may run on, or 0 for all
 * @slots: the engine writes slots, which must be zero when a run begins
 * @chunk: its packets
 * @used: mappings, sorted by @start
 * @num_used: of @used
 * @max_used: room in @used
 * @entity: fence context of the entity of the last run's first job
 * @engines: of the last run, as indices in its context's engines
 * @fence: end of the last run, or NULL
 * @num_jobs: of @jobs
 * @jobs: packets of each job
 */
struct amdgpu_sdma_prepared {
	refcount_t ref;
	struct mutex lock; /* see above */
	struct amdgpu_sdma_plan plan;
	u32 mask;
	bool slots;
	struct amdgpu_sdma_chunk *chunk;
	struct amdgpu_sdma_used *used;
	u32 num_used;
	u32 max_used;
	u64 entity;
	u8 engines[AMDGPU_SDMA_MAX_SHARES];
	struct dma_fence *fence;
	u32 num_jobs;
	struct amdgpu_sdma_job_ibs jobs[] __counted_by(num_jobs);
};

struct amdgpu_sdma_prepared *
amdgpu_sdma_prepared_create(const struct amdgpu_sdma_plan *plan, u32 mask);
void amdgpu_sdma_prepared_put(struct amdgpu_fpriv *fpriv,
			      struct amdgpu_sdma_prepared *p);
int amdgpu_sdma_prepared_publish(struct amdgpu_fpriv *fpriv,
				 struct amdgpu_sdma_prepared *p, u32 *handle);
struct amdgpu_sdma_prepared *
amdgpu_sdma_prepared_find(struct amdgpu_fpriv *fpriv, u32 handle);
int amdgpu_sdma_prepared_forget(struct amdgpu_fpriv *fpriv, u32 handle);
void amdgpu_sdma_prepared_fini(struct amdgpu_fpriv *fpriv);

int amdgpu_sdma_prepared_use(struct amdgpu_sdma_prepared *p,
			     const struct amdgpu_bo_va_mapping *m);
void amdgpu_sdma_prepared_used(struct amdgpu_sdma_prepared *p);
void amdgpu_sdma_prepared_adds(struct amdgpu_sdma_prepared *p,
			       const struct amdgpu_bo_va_mapping *m);
int amdgpu_sdma_prepared_job(struct amdgpu_sdma_prepared *p,
			     struct amdgpu_sdma_stream *s, u64 va);
void amdgpu_sdma_prepared_ibs(const struct amdgpu_sdma_prepared *p, u32 i,
			      struct amdgpu_job *job);
int amdgpu_sdma_prepared_lock(struct amdgpu_sdma_prepared *p,
			      struct amdgpu_vm *vm, struct drm_exec *exec,
			      unsigned int num_fences);
int amdgpu_sdma_prepared_check_adds(const struct amdgpu_sdma_prepared *p,
				    struct amdgpu_vm *vm);

#endif
