// SPDX-License-Identifier: MIT
/**
 * DOC: Prepared SDMA batches
 *
 * What of a batch is the same each time it runs is kept: the check, the choice
 * of shares, and the packets, which are GPU virtual addresses and so outlive the
 * eviction of what is behind them. A run validates the buffers again, updates
 * page tables, and makes jobs and fences, as any submission does.
 *
 * The packets are right as long as the mappings that were looked up are there.
 * A mapping has an id that no other has had in its VM, so ids are compared. A
 * prepared batch holds no reference to a buffer: one that is closed takes its
 * mappings with it.
 *
 * Runs of one prepared batch happen one after the other: they have the same
 * packets, and slots. Each depends on the fence of the one before, which like
 * all fences of batches is bounded by the engine. Barriers rely on slots that
 * are zero at first. The packets end with stores that make them so, for a run
 * that is queued behind another; a run that finds the one before ended clears
 * them itself, because that one may have failed half-way. If a run that others
 * are queued behind hangs, the scheduler cancels those: they are made to have
 * the same entities.
 *
 * Lifetime: the file's table has one reference, which forgetting the batch or
 * closing the file drops; a call that runs it has another, and with it the
 * file. Jobs have none. They need the packets only, whose memory shares the
 * reservation of the VM's root page directory and thus has the jobs' fences:
 * TTM does not free it before them, and page tables let go of it behind them.
 */

#include <linux/bsearch.h>
#include <linux/dma-fence.h>
#include <linux/sched/signal.h>
#include <linux/sort.h>

#include <drm/drm_exec.h>

#include "amdgpu.h"
#include "amdgpu_sdma_arena.h"
#include "amdgpu_sdma_prepared.h"

/**
 * amdgpu_sdma_prepared_create - begin to prepare a batch
 * @plan: placed
 * @mask: engines, by instance, that it may run on, or 0 for all
 *
 * Returns: a batch that only the caller knows, or NULL without memory.
 */
struct amdgpu_sdma_prepared *
amdgpu_sdma_prepared_create(const struct amdgpu_sdma_plan *plan, u32 mask)
{
	struct amdgpu_sdma_prepared *p;

	p = kvzalloc(struct_size(p, jobs, plan->shares), GFP_KERNEL_ACCOUNT);
	if (!p)
		return NULL;
	refcount_set(&p->ref, 1);
	mutex_init(&p->lock);
	p->plan = *plan;
	p->plan.descs = NULL;
	p->num_jobs = plan->shares;
	p->mask = mask;
	return p;
}

static void prepared_free(struct amdgpu_fpriv *fpriv,
			  struct amdgpu_sdma_prepared *p)
{
	if (p->chunk) {
		/* cannot fail: it waits for nothing without polls */
		amdgpu_sdma_chunk_reuse(fpriv, p->chunk, 0);
		amdgpu_sdma_chunk_put_kept(fpriv, p->chunk);
	}
	dma_fence_put(p->fence);
	mutex_destroy(&p->lock);
	kvfree(p->used);
	kvfree(p);
}

/**
 * amdgpu_sdma_prepared_put - drop a reference
 * @fpriv: file
 * @p: batch, or NULL; not locked if this is the last reference
 */
void amdgpu_sdma_prepared_put(struct amdgpu_fpriv *fpriv,
			      struct amdgpu_sdma_prepared *p)
{
	if (p && refcount_dec_and_test(&p->ref))
		prepared_free(fpriv, p);
}

/**
 * amdgpu_sdma_prepared_publish - give a batch to user space
 * @fpriv: file
 * @p: complete; the table takes the caller's reference if this succeeds
 * @handle: result
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_prepared_publish(struct amdgpu_fpriv *fpriv,
				 struct amdgpu_sdma_prepared *p, u32 *handle)
{
	return xa_alloc(amdgpu_sdma_arena_prepared(fpriv), handle, p,
			xa_limit_31b, GFP_KERNEL_ACCOUNT);
}

/**
 * amdgpu_sdma_prepared_find - look a batch up
 * @fpriv: file
 * @handle: from amdgpu_sdma_prepared_publish()
 *
 * Returns: the batch, with a reference for the caller, or NULL.
 */
struct amdgpu_sdma_prepared *
amdgpu_sdma_prepared_find(struct amdgpu_fpriv *fpriv, u32 handle)
{
	struct xarray *all = amdgpu_sdma_arena_prepared(fpriv);
	struct amdgpu_sdma_prepared *p;

	if (!all)
		return NULL;
	xa_lock(all);
	p = xa_load(all, handle);
	/* The table's own reference is dropped behind xa_erase(). */
	if (p)
		refcount_inc(&p->ref);
	xa_unlock(all);
	return p;
}

/**
 * amdgpu_sdma_prepared_forget - take a batch out of the table
 * @fpriv: file
 * @handle: from amdgpu_sdma_prepared_publish()
 *
 * Returns: 0, or -ENOENT if there is no such batch.
 */
int amdgpu_sdma_prepared_forget(struct amdgpu_fpriv *fpriv, u32 handle)
{
	struct xarray *all = amdgpu_sdma_arena_prepared(fpriv);
	struct amdgpu_sdma_prepared *p = all ? xa_erase(all, handle) : NULL;

	if (!p)
		return -ENOENT;
	amdgpu_sdma_prepared_put(fpriv, p);
	return 0;
}

/**
 * amdgpu_sdma_prepared_fini - forget all batches of a file
 * @fpriv: file, about to be closed: no call uses it
 */
void amdgpu_sdma_prepared_fini(struct amdgpu_fpriv *fpriv)
{
	struct xarray *all = amdgpu_sdma_arena_prepared(fpriv);
	struct amdgpu_sdma_prepared *p;
	unsigned long handle;

	xa_for_each(all, handle, p)
		amdgpu_sdma_prepared_put(fpriv, p);
	xa_destroy(all);
}

/**
 * amdgpu_sdma_prepared_use - remember a mapping
 * @p: being prepared
 * @m: that the batch uses; may be told again
 *
 * Returns: 0 or -ENOMEM.
 */
int amdgpu_sdma_prepared_use(struct amdgpu_sdma_prepared *p,
			     const struct amdgpu_bo_va_mapping *m)
{
	struct amdgpu_sdma_used *used;
	u32 room;

	if (p->num_used == p->max_used) {
		room = max(2 * p->max_used, 16);
		used = kvrealloc(p->used, array_size(room, sizeof(*used)),
				 GFP_KERNEL_ACCOUNT);
		if (!used)
			return -ENOMEM;
		p->used = used;
		p->max_used = room;
	}
	p->used[p->num_used++] = (struct amdgpu_sdma_used) {
		.start = m->start,
		.id = m->id,
	};
	return 0;
}

static int compare_used(const void *a, const void *b)
{
	const struct amdgpu_sdma_used *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/**
 * amdgpu_sdma_prepared_used - all mappings have been told
 * @p: being prepared
 */
void amdgpu_sdma_prepared_used(struct amdgpu_sdma_prepared *p)
{
	struct amdgpu_sdma_used *used;
	u32 i, n = 0;

	sort_nonatomic(p->used, p->num_used, sizeof(*p->used), compare_used,
		       NULL);
	for (i = 0; i < p->num_used; i++)
		if (!n || p->used[i].start != p->used[n - 1].start)
			p->used[n++] = p->used[i];
	p->num_used = n;
	/* It is as good with more memory than it needs. */
	used = kvrealloc(p->used, array_size(n, sizeof(*used)),
			 GFP_KERNEL_ACCOUNT);
	if (used) {
		p->used = used;
		p->max_used = n;
	}
}

/**
 * amdgpu_sdma_prepared_adds - an ADD goes to a mapping
 * @p: being prepared, after amdgpu_sdma_prepared_used()
 * @m: one of those that were told
 */
void amdgpu_sdma_prepared_adds(struct amdgpu_sdma_prepared *p,
			       const struct amdgpu_bo_va_mapping *m)
{
	const struct amdgpu_sdma_used key = { .start = m->start };
	struct amdgpu_sdma_used *used;

	used = bsearch(&key, p->used, p->num_used, sizeof(key), compare_used);
	if (!WARN_ON_ONCE(!used))
		used->add = true;
}

/* The last IB of a share that has barriers: the next run's first must wait. */
static bool add_reset(struct amdgpu_sdma_job_ibs *job,
		      struct amdgpu_sdma_stream *s, u64 va)
{
	u64 slot = s->slot + AMDGPU_SDMA_SLOT_BARRIER;
	u32 *p = s->p;

	if (job->num == AMDGPU_SDMA_MAX_IBS ||
	    s->end - p < AMDGPU_SDMA_RESET_DW)
		return false;
	job->ib[job->num].va = va + (p - s->base) * sizeof(u32);
	job->ib[job->num++].length = AMDGPU_SDMA_RESET_DW;
	p = amdgpu_sdma_put_fence(p, s->format, slot, 0);
	while (p < s->p + AMDGPU_SDMA_RESET_DW)
		*p++ = 0;
	return true;
}

/**
 * amdgpu_sdma_prepared_job - remember the packets of a share
 * @p: being prepared
 * @s: its packets, none if there are more engines than work
 * @va: GPU address of @s->base
 *
 * Returns: 0, or -ENOSPC if there is no room for what makes it run again.
 */
int amdgpu_sdma_prepared_job(struct amdgpu_sdma_prepared *p,
			     struct amdgpu_sdma_stream *s, u64 va)
{
	struct amdgpu_sdma_job_ibs *job = &p->jobs[p->num_jobs];
	u32 i;

	if (!s->num_ibs)
		return 0;
	p->num_jobs++;
	for (i = 0; i < s->num_ibs; i++) {
		job->ib[i].va = va + s->ibs[i].offset * sizeof(u32);
		job->ib[i].length = s->ibs[i].length;
	}
	job->num = s->num_ibs;
	if (!s->sequence)
		return 0;
	p->slots = true;
	return WARN_ON_ONCE(!add_reset(job, s, va)) ? -ENOSPC : 0;
}

/**
 * amdgpu_sdma_prepared_ibs - let a job execute its packets
 * @p: batch
 * @i: which job
 * @job: without IBs
 */
void amdgpu_sdma_prepared_ibs(const struct amdgpu_sdma_prepared *p, u32 i,
			      struct amdgpu_job *job)
{
	const struct amdgpu_sdma_job_ibs *from = &p->jobs[i];

	for (i = 0; i < from->num; i++) {
		job->ibs[i].gpu_addr = from->ib[i].va;
		job->ibs[i].length_dw = from->ib[i].length;
	}
	job->num_ibs = from->num;
}

static struct amdgpu_bo *used_bo(struct amdgpu_vm *vm,
				 const struct amdgpu_sdma_used *used)
{
	struct amdgpu_bo_va_mapping *m;

	m = amdgpu_vm_bo_lookup_mapping(vm, used->start);
	/* Sparse mappings, which have no buffer, were refused. */
	return m && m->id == used->id ? m->bo_va->base.bo : NULL;
}

/**
 * amdgpu_sdma_prepared_lock - lock the buffers of a batch
 * @p: batch, locked
 * @vm: the file's, locked
 * @exec: for the locks
 * @num_fences: slots to reserve
 *
 * Returns: 0, -ESTALE if a mapping has changed, -EINTR for a dead task, or an
 * error of @exec.
 */
int amdgpu_sdma_prepared_lock(struct amdgpu_sdma_prepared *p,
			      struct amdgpu_vm *vm, struct drm_exec *exec,
			      unsigned int num_fences)
{
	struct amdgpu_bo *bo, *last = NULL;
	u32 i;
	int r;

	lockdep_assert_held(&p->lock);
	for (i = 0; i < p->num_used; i++) {
		/* There may be many, and nobody may wait for the dead. */
		if (i % 256 == 255) {
			cond_resched();
			if (fatal_signal_pending(current))
				return -EINTR;
		}
		bo = used_bo(vm, &p->used[i]);
		if (!bo)
			return -ESTALE;
		/* One that is always valid has the lock of the VM. */
		if (bo == last || amdgpu_vm_is_bo_always_valid(vm, bo))
			continue;
		r = drm_exec_prepare_obj(exec, &bo->tbo.base, num_fences);
		if (r)
			return r;
		last = bo;
	}
	return 0;
}

/**
 * amdgpu_sdma_prepared_check_adds - see that ADDs reach video memory
 * @p: batch, locked, its buffers too, and valid
 * @vm: the file's
 *
 * Returns: 0 or -EOPNOTSUPP.
 */
int amdgpu_sdma_prepared_check_adds(const struct amdgpu_sdma_prepared *p,
				    struct amdgpu_vm *vm)
{
	struct ttm_resource *res;
	struct amdgpu_bo *bo;
	u32 i;

	for (i = 0; i < p->num_used; i++) {
		if (!p->used[i].add)
			continue;
		bo = used_bo(vm, &p->used[i]);
		if (WARN_ON_ONCE(!bo))
			return -ESTALE;
		res = bo->tbo.resource;
		if (!res || res->mem_type != TTM_PL_VRAM)
			return -EOPNOTSUPP;
	}
	return 0;
}
