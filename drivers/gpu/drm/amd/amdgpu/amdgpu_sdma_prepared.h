/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_PREPARED_H__
#define __AMDGPU_SDMA_PREPARED_H__

#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/types.h>

#include "amdgpu_sdma_plan.h"
#include "amdgpu_sdma_svm.h"

struct amdgpu_bo_va_mapping;
struct amdgpu_fpriv;
struct amdgpu_sdma_chunk;
struct dma_fence;

/* Prepared batches of a file, and their bytes; other batches have the rest. */
#define AMDGPU_SDMA_MAX_PREPARED	256
#define AMDGPU_SDMA_MAX_PREPARED_BYTES	SZ_32M

/* Dwords that a share with barriers adds: an IB that clears its slot. */
#define AMDGPU_SDMA_RESET_DW		8

/**
 * struct amdgpu_sdma_used - a mapping that a prepared batch uses
 * @start: its first page
 * @id: its &amdgpu_bo_va_mapping.id
 * @bytes: bytes that the batch reads and writes there
 * @add: an ADD writes to it
 */
struct amdgpu_sdma_used {
	u64 start;
	u64 id;
	u64 bytes;
	bool add;
};

/**
 * struct amdgpu_sdma_job_ibs - packets of one job
 * @instance: engine that must execute them, if the batch is bound
 * @work: work that a run of it is charged
 * @num: number of @ib
 * @ib: GPU address and length in dwords of each
 */
struct amdgpu_sdma_job_ibs {
	u32 instance;
	u64 work;
	u32 num;
	struct {
		u64 va;
		u32 length;
	} ib[AMDGPU_SDMA_MAX_IBS];
};

/**
 * struct amdgpu_sdma_prepared - a batch that is checked and built
 * @ref: one of the file's table, one of each call that uses it
 * @lock: held by a call that runs it; taken before reservations, protects what
 *	follows
 * @plan: totals; there are no descriptors any more
 * @mask: engines, by instance, that it may run on
 * @bound: each job has its engine, whose memory or number is in its packets
 * @slots: the engine writes slots, which must be zero when a run begins
 * @chunk: its packets
 * @used: mappings, sorted by @start
 * @num_used: number of @used
 * @max_used: room in @used
 * @svm: SVM memory
 * @fence: end of the last run, or NULL
 * @entity: fence context of the entity of the last run's first job
 * @engines: of the last run, as indices in its context's engines
 * @num_jobs: number of @jobs
 * @jobs: packets of each job
 */
struct amdgpu_sdma_prepared {
	refcount_t ref;
	struct mutex lock; /* see above */
	struct amdgpu_sdma_plan plan;
	u32 mask;
	bool bound;
	bool slots;
	struct amdgpu_sdma_chunk *chunk;
	struct amdgpu_sdma_used *used;
	u32 num_used;
	u32 max_used;
	struct amdgpu_sdma_svm svm;
	u64 entity;
	u8 engines[AMDGPU_SDMA_MAX_SHARES];
	struct dma_fence *fence;
	u32 num_jobs;
	struct amdgpu_sdma_job_ibs jobs[] __counted_by(num_jobs);
};

int amdgpu_sdma_prepared_forget(struct amdgpu_fpriv *fpriv, u32 handle);
void amdgpu_sdma_prepared_fini(struct amdgpu_fpriv *fpriv);

int amdgpu_sdma_prepared_use(struct amdgpu_sdma_prepared *p,
			     const struct amdgpu_bo_va_mapping *m);
void amdgpu_sdma_prepared_adds(struct amdgpu_sdma_prepared *p,
			       const struct amdgpu_bo_va_mapping *m);
void amdgpu_sdma_prepared_path(struct amdgpu_sdma_prepared *p,
			       const struct amdgpu_bo_va_mapping *m, u64 bytes);

#endif
