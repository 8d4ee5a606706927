/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_BATCH_INTERNAL_H__
#define __AMDGPU_SDMA_BATCH_INTERNAL_H__

/* What the files of SDMA batches share. Read amdgpu_sdma_batch.c first. */

#include <drm/amdgpu_drm.h>
#include <drm/drm_exec.h>

#include "amdgpu.h"
#include "amdgpu_sdma_plan.h"
#include "amdgpu_sdma_svm.h"

struct amdgpu_bo_va;
struct amdgpu_sdma_batch_ctx;
struct amdgpu_sdma_batch_engine;
struct amdgpu_sdma_batch_note;
struct amdgpu_sdma_chunk;
struct amdgpu_sdma_prepared;
struct amdgpu_sdma_user_pages;
struct dma_fence_chain;
struct drm_syncobj;

#define AMDGPU_SDMA_MAX_FENCES	64
/* Buffers that a batch usually names at most. */
#define AMDGPU_SDMA_FEW_BOS	8

/* A syncobj to signal, and what signaling it needs. */
struct amdgpu_sdma_batch_out {
	struct drm_syncobj *syncobj;
	struct dma_fence_chain *chain;
	u64 point;
};

/**
 * struct amdgpu_sdma_batch - one call
 * @adev: device
 * @fpriv: file
 * @filp: file
 * @args: user space's arguments, copied back at the end, also after an error
 * @nonblock: fail instead of waiting for earlier batches
 * @ctx: context
 * @bctx: engines of @ctx
 * @descs: descriptors
 * @stride: bytes from one descriptor to the next
 * @prepared: batch that is being prepared, or prepared batch that is run
 * @locked: @prepared is locked
 * @mask: indices of engines in @bctx that may be used
 * @exec_ready: @exec is initialized
 * @syncs: @sync is initialized
 * @stamp: marks each &amdgpu_bo_va that is in @bo_vas
 * @lookups: mappings looked up so far
 * @bo_vas: buffers that descriptors name, each once, all locked
 * @num_bo_vas: number of @bo_vas
 * @num_user: how many of @bo_vas, the first, are user pointers; 0 before
 *	amdgpu_sdma_user_pages_use()
 * @max_bo_vas: room in @bo_vas
 * @chunk: memory for packets
 * @scratch: GPU address of memory for swaps, if the plan needs it
 * @num_engines: number of @engines
 * @num_jobs: number of @jobs
 * @note: accounts for the batch
 * @joined: fence of all jobs, if the batch needs more than the job's own fence
 * @outs: syncobjs to signal: @out, or an array if there are more
 * @num_outs: number of @outs
 * @out: used if there is only one
 * @fence: where to put a reference to the batch's fence, or NULL
 * @user: memory of the process that the call has obtained
 * @svm: SVM memory that the batch names: @own_svm, or that of @prepared
 * @own_svm: SVM memory of a batch with descriptors
 * @svm_reserved: there is room for the fences of jobs that use SVM memory
 * @notifier_locks: locks that notifiers of user pointers in @bo_vas take; 0 if
 *	there is no user pointer
 * @plan: what to do
 * @sync: what the batch waits for
 * @exec: locks
 * @found: addresses of the mappings that were found last, by read and write:
 *	most batches name few
 * @counted: the mappings whose bytes were counted last, likewise
 * @few: array that @bo_vas usually is
 * @share_bytes: room for the packets of each share
 * @jobs: one for each share that is not empty
 * @engines: engine of each job
 */
struct amdgpu_sdma_batch {
	struct amdgpu_device *adev;
	struct amdgpu_fpriv *fpriv;
	struct drm_file *filp;
	struct drm_amdgpu_sdma_batch *args;
	bool nonblock;
	struct amdgpu_ctx *ctx;
	struct amdgpu_sdma_batch_ctx *bctx;
	void *descs;
	u32 stride;
	struct amdgpu_sdma_prepared *prepared;
	bool locked;
	u32 mask;
	bool exec_ready;
	bool syncs;
	u64 stamp;
	u32 lookups;
	struct amdgpu_bo_va **bo_vas;
	u32 num_bo_vas;
	u32 num_user;
	u32 max_bo_vas;
	struct amdgpu_sdma_chunk *chunk;
	u64 scratch;
	unsigned int num_engines;
	unsigned int num_jobs;
	struct amdgpu_sdma_batch_note *note;
	struct dma_fence *joined;
	struct amdgpu_sdma_batch_out *outs;
	unsigned int num_outs;
	struct amdgpu_sdma_batch_out out;
	struct dma_fence **fence;
	struct amdgpu_sdma_user_pages *user;
	struct amdgpu_sdma_svm *svm;
	struct amdgpu_sdma_svm own_svm;
	bool svm_reserved;
	u32 notifier_locks;
	struct amdgpu_sdma_plan plan;
	/* Members from plan.end on are not cleared first, but set when used. */
	struct amdgpu_sync sync;
	struct drm_exec exec;
	struct amdgpu_sdma_hull found[4];
	struct amdgpu_bo_va_mapping *counted[4];
	struct amdgpu_bo_va *few[AMDGPU_SDMA_FEW_BOS];
	u64 share_bytes[AMDGPU_SDMA_MAX_SHARES];
	struct amdgpu_job *jobs[AMDGPU_SDMA_MAX_SHARES];
	struct amdgpu_sdma_batch_engine *engines[AMDGPU_SDMA_MAX_SHARES];
};

static inline bool sdma_batch_prepares(const struct amdgpu_sdma_batch *b)
{
	return b->args->op == AMDGPU_SDMA_BATCH_PREPARE;
}

/* amdgpu_sdma_batch_args.c */
int amdgpu_sdma_batch_check_args(const struct drm_amdgpu_sdma_batch *args);
int amdgpu_sdma_batch_copy_descs(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_copy_fences(struct amdgpu_sdma_batch *b);
void amdgpu_sdma_batch_put_fences(struct amdgpu_sdma_batch *b);

/* amdgpu_sdma_batch_vm.c */
int amdgpu_sdma_batch_lock(struct amdgpu_sdma_batch *b,
			   int (*lock_buffers)(struct amdgpu_sdma_batch *b));
int amdgpu_sdma_batch_lock_ranges(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_use(struct amdgpu_sdma_batch *b,
			  struct amdgpu_bo_va *bo_va);
int amdgpu_sdma_batch_charge_lookup(struct amdgpu_sdma_batch *b);
struct amdgpu_bo_va_mapping *
amdgpu_sdma_batch_mapping(const struct amdgpu_sdma_batch *b, u64 va);
int amdgpu_sdma_batch_validate(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_check_adds(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_wait_for(struct amdgpu_sdma_batch *b,
			       struct dma_fence *fence);
int amdgpu_sdma_batch_update_vm(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_sync_jobs(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_reserve_fences(struct amdgpu_sdma_batch *b);
void amdgpu_sdma_batch_fence_bos(struct amdgpu_sdma_batch *b);

/* amdgpu_sdma_batch_path.c */
enum amdgpu_sdma_batch_place {
	AMDGPU_SDMA_IN_VRAM,
	AMDGPU_SDMA_IN_SYSTEM,
	AMDGPU_SDMA_IN_PEER,
};

enum amdgpu_sdma_batch_place
amdgpu_sdma_batch_place(struct amdgpu_device *adev, struct amdgpu_bo *bo);
bool amdgpu_sdma_batch_can_add(struct amdgpu_device *adev,
			       struct amdgpu_bo_va *bo_va);
void amdgpu_sdma_batch_add_path(struct amdgpu_sdma_batch *b,
				struct amdgpu_bo *bo, u64 bytes);
int amdgpu_sdma_batch_count_path(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_guess_way(struct amdgpu_sdma_batch *b,
				struct amdgpu_sdma_engines *engines);

/* amdgpu_sdma_batch_build.c */
u64 amdgpu_sdma_batch_packet_bytes(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_emit_share(struct amdgpu_sdma_batch *b, u32 share,
				 u32 instance, void *cpu, u64 offset,
				 struct amdgpu_sdma_stream *s);
int amdgpu_sdma_batch_build(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_join(struct amdgpu_sdma_batch *b, void *slots);

/* amdgpu_sdma_batch.c */
int amdgpu_sdma_batch_find_context(struct amdgpu_sdma_batch *b, u32 engines);
int amdgpu_sdma_batch_make_plan(struct amdgpu_sdma_batch *b);
void amdgpu_sdma_batch_pick_engines(struct amdgpu_sdma_batch *b, u32 num);
int amdgpu_sdma_batch_charge(struct amdgpu_sdma_batch *b,
			     u64 (*work)(const struct amdgpu_sdma_batch *b,
					 u32 job));
u64 amdgpu_sdma_batch_share_work(const struct amdgpu_sdma_batch *b, u32 share);
int amdgpu_sdma_batch_alloc_job(struct amdgpu_sdma_batch *b, u32 ibs);
struct dma_fence *amdgpu_sdma_batch_commit(struct amdgpu_sdma_batch *b);

/* amdgpu_sdma_prepared.c */
int amdgpu_sdma_batch_prepare(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_batch_run(struct amdgpu_sdma_batch *b,
			  struct dma_fence **fence);
void amdgpu_sdma_prepared_end(struct amdgpu_sdma_batch *b);

#endif
