// SPDX-License-Identifier: MIT
/**
 * DOC: Prepared SDMA batches
 *
 * A prepared batch keeps what is the same each time it runs: the check, the
 * choice of shares, and the packets. Packets hold GPU virtual addresses and so
 * outlive the eviction of the memory behind them. A run validates the buffers
 * again, updates page tables, and makes jobs and fences like any submission.
 *
 * The packets are valid as long as the mappings that were looked up exist. A
 * mapping has an id that no other has had in its VM, so ids are compared. A
 * prepared batch holds no reference to a buffer: closing a buffer also removes
 * its mappings.
 *
 * Runs of one prepared batch execute one after the other: they share packets
 * and slots. Each depends on the fence of the one before, which like all fences
 * of batches is bounded by the engine. Barriers rely on slots that are zero at
 * first. The packets end with stores that clear the slots, for a run that is
 * queued after this one. A run that finds the one before ended clears them
 * itself, because that one may have failed half-way. If a run hangs with others
 * queued after it, the scheduler cancels those: they are made to use the same
 * entities.
 *
 * Lifetime: the file's table has one reference, which forgetting the batch or
 * closing the file drops. A call that runs it has another, and holds the file.
 * Jobs have none: they need only the packets. The memory of those shares the
 * reservation of the VM's root page directory and thus has the jobs' fences.
 * TTM frees it, and page tables drop it, only after them.
 */

#include <linux/bsearch.h>
#include <linux/dma-fence.h>
#include <linux/sort.h>

#include "amdgpu.h"
#include "amdgpu_gmc.h"
#include "amdgpu_sdma_arena.h"
#include "amdgpu_sdma_batch_ctx.h"
#include "amdgpu_sdma_batch_internal.h"
#include "amdgpu_sdma_batch_stats.h"
#include "amdgpu_sdma_prepared.h"

/*
 * Packets that wait, bounce or write records name their engine or its memory.
 * Any other batch may run on any of the engines that its caller allows.
 */
static bool must_be_bound(const struct amdgpu_sdma_plan *plan)
{
	return plan->waits || plan->bounces || plan->recorded || plan->records;
}

static u32 allowed_instances(const struct amdgpu_sdma_batch *b)
{
	u32 i, mask = 0;

	for (i = 0; i < b->bctx->num; i++)
		if (b->mask & BIT(i))
			mask |= BIT(b->bctx->engines[i].instance);
	return mask;
}

static struct amdgpu_sdma_prepared *
prepared_create(const struct amdgpu_sdma_batch *b)
{
	const struct amdgpu_sdma_plan *plan = &b->plan;
	struct amdgpu_sdma_prepared *p;

	p = kvzalloc(struct_size(p, jobs, plan->shares), GFP_KERNEL_ACCOUNT);
	if (!p)
		return NULL;
	refcount_set(&p->ref, 1);
	mutex_init(&p->lock);
	p->plan = *plan;
	p->plan.descs = NULL;
	p->num_jobs = plan->shares;
	p->bound = must_be_bound(plan);
	p->mask = allowed_instances(b);
	return p;
}

static void prepared_free(struct amdgpu_fpriv *fpriv,
			  struct amdgpu_sdma_prepared *p)
{
	if (p->chunk)
		amdgpu_sdma_chunk_put_kept(fpriv, p->chunk, p->fence);
	dma_fence_put(p->fence);
	mutex_destroy(&p->lock);
	kvfree(p->used);
	kvfree(p->svm.ranges);
	kvfree(p);
}

static void prepared_put(struct amdgpu_fpriv *fpriv,
			 struct amdgpu_sdma_prepared *p)
{
	if (refcount_dec_and_test(&p->ref))
		prepared_free(fpriv, p);
}

/**
 * amdgpu_sdma_prepared_end - the call has ended
 * @b: call; holds no reservation any more
 */
void amdgpu_sdma_prepared_end(struct amdgpu_sdma_batch *b)
{
	if (b->locked)
		mutex_unlock(&b->prepared->lock);
	if (b->prepared)
		prepared_put(b->fpriv, b->prepared);
}

/* The file's table takes the caller's reference if this succeeds. */
static int publish_prepared(struct amdgpu_sdma_batch *b)
{
	int r = xa_alloc(amdgpu_sdma_arena_prepared(b->fpriv), &b->args->handle,
			 b->prepared, xa_limit_31b, GFP_KERNEL_ACCOUNT);

	if (r)
		b->args->handle = 0; /* it may have been written */
	return r;
}

/* With a reference for the caller, or NULL. */
static struct amdgpu_sdma_prepared *find_prepared(struct amdgpu_fpriv *fpriv,
						  u32 handle)
{
	struct xarray *all = amdgpu_sdma_arena_prepared(fpriv);
	struct amdgpu_sdma_prepared *p;

	if (!all)
		return NULL;
	xa_lock(all);
	p = xa_load(all, handle);
	/* The table's own reference is dropped after xa_erase(). */
	if (p)
		refcount_inc(&p->ref);
	xa_unlock(all);
	return p;
}

/**
 * amdgpu_sdma_prepared_forget - take a batch out of the table
 * @fpriv: file
 * @handle: of the batch
 *
 * Returns: 0, or -ENOENT if there is no such batch.
 */
int amdgpu_sdma_prepared_forget(struct amdgpu_fpriv *fpriv, u32 handle)
{
	struct xarray *all = amdgpu_sdma_arena_prepared(fpriv);
	struct amdgpu_sdma_prepared *p = all ? xa_erase(all, handle) : NULL;

	if (!p)
		return -ENOENT;
	prepared_put(fpriv, p);
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
		prepared_put(fpriv, p);
	xa_destroy(all);
}

/**
 * amdgpu_sdma_prepared_use - remember a mapping
 * @p: being prepared
 * @m: mapping that the batch uses; may be passed again
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

/* All mappings have been passed: sorts them, and keeps each once. */
static void sort_used(struct amdgpu_sdma_prepared *p)
{
	struct amdgpu_sdma_used *used;
	u32 i, n = 0;

	if (!p->num_used)
		return;
	sort_nonatomic(p->used, p->num_used, sizeof(*p->used), compare_used,
		       NULL);
	for (i = 0; i < p->num_used; i++)
		if (!n || p->used[i].start != p->used[n - 1].start)
			p->used[n++] = p->used[i];
	p->num_used = n;
	/* If this fails, the array only has more memory than it needs. */
	used = kvrealloc(p->used, array_size(n, sizeof(*used)),
			 GFP_KERNEL_ACCOUNT);
	if (used) {
		p->used = used;
		p->max_used = n;
	}
}

static struct amdgpu_sdma_used *
find_used(const struct amdgpu_sdma_prepared *p,
	  const struct amdgpu_bo_va_mapping *m)
{
	const struct amdgpu_sdma_used key = { .start = m->start };
	struct amdgpu_sdma_used *used;

	used = bsearch(&key, p->used, p->num_used, sizeof(key), compare_used);
	WARN_ON_ONCE(!used);
	return used;
}

/**
 * amdgpu_sdma_prepared_adds - remember that an ADD writes to a mapping
 * @p: being prepared; all mappings have been passed
 * @m: one of them
 */
void amdgpu_sdma_prepared_adds(struct amdgpu_sdma_prepared *p,
			       const struct amdgpu_bo_va_mapping *m)
{
	struct amdgpu_sdma_used *used = find_used(p, m);

	if (used)
		used->add = true;
}

/**
 * amdgpu_sdma_prepared_path - count bytes of the batch in a mapping
 * @p: being prepared; all mappings have been passed
 * @m: one of them
 * @bytes: bytes that are read and written there
 */
void amdgpu_sdma_prepared_path(struct amdgpu_sdma_prepared *p,
			       const struct amdgpu_bo_va_mapping *m, u64 bytes)
{
	struct amdgpu_sdma_used *used = find_used(p, m);

	if (used)
		used->bytes += bytes;
}

/* Last IB of a share with barriers: makes the next run's first barrier wait. */
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

/* Remembers the packets of a share: none if there are more engines than work. */
static int add_job(struct amdgpu_sdma_prepared *p, struct amdgpu_sdma_stream *s,
		   u64 va, u64 work)
{
	struct amdgpu_sdma_job_ibs *job;
	u32 i;

	if (!s->num_ibs)
		return 0;
	job = &p->jobs[p->num_jobs++];
	job->work = work;
	for (i = 0; i < s->num_ibs; i++) {
		job->ib[i].va = va + s->ibs[i].offset * sizeof(u32);
		job->ib[i].length = s->ibs[i].length;
	}
	job->num = s->num_ibs;
	job->instance = s->instance;
	if (!s->sequence)
		return 0;
	p->slots = true;
	return WARN_ON_ONCE(!add_reset(job, s, va)) ? -ENOSPC : 0;
}

/* If the packets name nothing of their engine, any engine will do here. */
static int build_prepared(struct amdgpu_sdma_batch *b)
{
	struct amdgpu_sdma_prepared *p = b->prepared;
	u64 offset = AMDGPU_SDMA_CHUNK_SLOTS;
	void *cpu;
	u32 share;
	int r;

	r = amdgpu_sdma_chunk_cpu(b->chunk, &cpu);
	if (r)
		return r;
	p->num_jobs = 0;
	amdgpu_sdma_batch_pick_engines(b, b->plan.shares);
	for (share = 0; share < b->plan.shares; share++) {
		struct amdgpu_sdma_stream s = { };

		r = amdgpu_sdma_batch_emit_share(b, share,
						 b->engines[share]->instance,
						 cpu, offset, &s);
		if (!r)
			r = add_job(p, &s, b->chunk->va + offset,
				    amdgpu_sdma_batch_share_work(b, share));
		if (r)
			return r;
		offset += b->share_bytes[share];
	}
	return 0;
}

static int get_prepared_memory(struct amdgpu_sdma_batch *b)
{
	struct amdgpu_sdma_chunk *chunk;

	chunk = amdgpu_sdma_chunk_get_kept(b->adev, b->fpriv,
					   amdgpu_sdma_batch_packet_bytes(b),
					   b->plan.waits, b->nonblock);
	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	/* The prepared batch owns it from here on. */
	b->chunk = chunk;
	b->prepared->chunk = chunk;
	return b->plan.bounces ?
		amdgpu_sdma_scratch_get(b->adev, b->fpriv, &b->scratch) : 0;
}

static int fill_prepared(struct amdgpu_sdma_batch *b)
{
	int r;

	r = amdgpu_sdma_batch_lock(b, amdgpu_sdma_batch_lock_ranges);
	if (r)
		return r;
	sort_used(b->prepared);
	r = amdgpu_sdma_batch_validate(b);
	if (!r)
		r = amdgpu_sdma_batch_check_adds(b);
	if (!r)
		r = amdgpu_sdma_batch_count_path(b);
	return r ? r : build_prepared(b);
}

/**
 * amdgpu_sdma_batch_prepare - check and build a batch to be run later
 * @b: call
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_prepare(struct amdgpu_sdma_batch *b)
{
	int r;

	r = amdgpu_sdma_batch_find_context(b, b->args->engine_mask);
	if (!r)
		r = amdgpu_sdma_batch_copy_descs(b);
	if (!r)
		r = amdgpu_sdma_batch_make_plan(b);
	if (r)
		return r;
	b->prepared = prepared_create(b);
	if (!b->prepared)
		return -ENOMEM;
	r = get_prepared_memory(b);
	if (!r)
		r = fill_prepared(b);
	if (r)
		return r;
	swap(b->prepared->svm, b->own_svm);
	r = publish_prepared(b);
	if (!r)
		b->prepared = NULL;
	return r;
}

static bool is_busy(const struct amdgpu_sdma_prepared *p)
{
	return p->fence && !dma_fence_is_signaled(p->fence);
}

/* True if the entities of the run before belong to this context. */
static bool same_engines(const struct amdgpu_sdma_batch *b)
{
	const struct amdgpu_sdma_prepared *p = b->prepared;
	u8 first = p->engines[0];

	return first < b->bctx->num &&
	       b->bctx->engines[first].entity.fence_context == p->entity;
}

/*
 * If the run before has not ended, this one queues after it on the same engines
 * with no wait here. On others, it waits here if both use the slots. The CPU
 * reads what waits leave in the slots, so a run with waits always waits here.
 */
static int wait_for_slots(const struct amdgpu_sdma_batch *b, bool *same)
{
	const struct amdgpu_sdma_prepared *p = b->prepared;

	*same = is_busy(p) && same_engines(b);
	if (!is_busy(p) || (!p->plan.waits && (*same || !p->slots)))
		return 0;
	return b->nonblock ? -EAGAIN : dma_fence_wait(p->fence, true);
}

/* Picks the engines that the packets were built for. */
static int pick_bound_engines(struct amdgpu_sdma_batch *b)
{
	const struct amdgpu_sdma_prepared *p = b->prepared;
	u32 i, j;

	for (i = 0; i < p->num_jobs; i++) {
		for (j = 0; j < b->bctx->num; j++)
			if (b->bctx->engines[j].instance == p->jobs[i].instance)
				break;
		/* The context belongs to another partition. */
		if (j == b->bctx->num)
			return -EINVAL;
		b->engines[i] = &b->bctx->engines[j];
	}
	b->num_engines = p->num_jobs;
	return 0;
}

static int pick_run_engines(struct amdgpu_sdma_batch *b)
{
	const struct amdgpu_sdma_prepared *p = b->prepared;
	bool same;
	u32 i;
	int r;

	r = wait_for_slots(b, &same);
	if (r)
		return r;
	if (p->bound)
		return pick_bound_engines(b);
	amdgpu_sdma_batch_pick_engines(b, p->num_jobs);
	for (i = 0; same && i < p->num_jobs; i++)
		b->engines[i] = &b->bctx->engines[p->engines[i]];
	return 0;
}

static struct amdgpu_bo_va *used_bo_va(struct amdgpu_sdma_batch *b,
				       const struct amdgpu_sdma_used *used)
{
	struct amdgpu_bo_va_mapping *m;

	m = amdgpu_vm_bo_lookup_mapping(&b->fpriv->vm, used->start);
	/* Sparse mappings, which have no buffer, were refused. */
	return m && m->id == used->id ? m->bo_va : NULL;
}

/* -ESTALE if a mapping has changed. */
static int lock_used(struct amdgpu_sdma_batch *b)
{
	const struct amdgpu_sdma_prepared *p = b->prepared;
	struct amdgpu_bo_va *bo_va;
	u32 i;
	int r;

	b->lookups = 0;
	for (i = 0; i < p->num_used; i++) {
		r = amdgpu_sdma_batch_charge_lookup(b);
		if (r)
			return r;
		bo_va = used_bo_va(b, &p->used[i]);
		if (!bo_va)
			return -ESTALE;
		r = amdgpu_sdma_batch_use(b, bo_va);
		if (r)
			return r;
	}
	return 0;
}

/* Checks what depends on where the buffers are now. */
static int check_places(struct amdgpu_sdma_batch *b)
{
	const struct amdgpu_sdma_prepared *p = b->prepared;
	bool path = b->args->flags & AMDGPU_SDMA_BATCH_PATH;
	struct amdgpu_bo_va *bo_va;
	u32 i;

	if (!p->plan.adds && !path)
		return 0;
	for (i = 0; i < p->num_used; i++) {
		const struct amdgpu_sdma_used *used = &p->used[i];

		bo_va = used_bo_va(b, used);
		if (WARN_ON_ONCE(!bo_va))
			return -ESTALE;
		if (used->add && !amdgpu_sdma_batch_can_add(b->adev, bo_va))
			return -EOPNOTSUPP;
		if (path)
			amdgpu_sdma_batch_add_path(b, bo_va->base.bo,
						   used->bytes);
	}
	return 0;
}

static int lock_run_memory(struct amdgpu_sdma_batch *b)
{
	int r;

	r = amdgpu_sdma_batch_lock(b, lock_used);
	if (!r)
		r = amdgpu_sdma_batch_validate(b);
	return r ? r : check_places(b);
}

static int alloc_run_jobs(struct amdgpu_sdma_batch *b)
{
	int r = 0;

	while (!r && b->num_jobs < b->num_engines)
		r = amdgpu_sdma_batch_alloc_job(b,
						b->prepared->jobs[b->num_jobs].num);
	return r;
}

static void set_ibs(struct amdgpu_sdma_batch *b, u32 i)
{
	const struct amdgpu_sdma_job_ibs *from = &b->prepared->jobs[i];
	struct amdgpu_job *job = b->jobs[i];
	u32 j;

	for (j = 0; j < from->num; j++) {
		job->ibs[j].gpu_addr = from->ib[j].va;
		job->ibs[j].length_dw = from->ib[j].length;
	}
	job->num_ibs = from->num;
	job->vm_pd_addr = amdgpu_gmc_pd_addr(b->fpriv->vm.root.bo);
}

/* The packets exist already: clear the slots, if no earlier run uses them. */
static int build_run(struct amdgpu_sdma_batch *b)
{
	struct amdgpu_sdma_prepared *p = b->prepared;
	void *cpu = NULL;
	unsigned int i;
	int r;

	if (p->slots) {
		r = amdgpu_sdma_chunk_cpu(b->chunk, &cpu);
		if (r)
			return r;
		if (!is_busy(p))
			memset(cpu, 0, p->plan.shares * AMDGPU_SDMA_SLOT_SIZE);
	}
	for (i = 0; i < b->num_jobs; i++)
		set_ibs(b, i);
	return amdgpu_sdma_batch_join(b, cpu);
}

static int make_run_jobs(struct amdgpu_sdma_batch *b)
{
	int r;

	r = alloc_run_jobs(b);
	if (!r)
		r = amdgpu_sdma_batch_update_vm(b);
	if (!r)
		r = amdgpu_sdma_batch_wait_for(b, b->prepared->fence);
	if (!r)
		r = amdgpu_sdma_batch_sync_jobs(b);
	if (!r)
		r = build_run(b);
	/* Last: nothing between this and the commit may use up fence slots. */
	return r ? r : amdgpu_sdma_batch_reserve_fences(b);
}

/* Remembers what the next run depends on. */
static void end_run(struct amdgpu_sdma_batch *b, struct dma_fence *fence)
{
	struct amdgpu_sdma_prepared *p = b->prepared;
	unsigned int i;

	dma_fence_put(p->fence);
	p->fence = dma_fence_get(fence);
	p->entity = b->engines[0]->entity.fence_context;
	for (i = 0; i < p->num_jobs; i++)
		p->engines[i] = b->engines[i] - b->bctx->engines;
}

static int lock_prepared(struct amdgpu_sdma_batch *b)
{
	struct mutex *lock = &b->prepared->lock;
	int r = 0;

	if (!b->nonblock)
		r = mutex_lock_interruptible(lock);
	else if (!mutex_trylock(lock))
		r = -EAGAIN;
	b->locked = !r;
	return r;
}

static u64 run_work(const struct amdgpu_sdma_batch *b, u32 job)
{
	return b->prepared->jobs[job].work;
}

/* All that a run needs of the plan; the rest of @to is not even cleared. */
static void copy_totals(struct amdgpu_sdma_plan *to,
			const struct amdgpu_sdma_plan *from)
{
	to->num = from->num;
	to->waits = from->waits;
	to->bytes = from->bytes;
	to->moved = from->moved;
	to->wait_ns = from->wait_ns;
	to->polls = from->polls;
	to->placement = from->placement;
	to->shares = from->shares;
}

static int begin_run(struct amdgpu_sdma_batch *b)
{
	struct amdgpu_sdma_prepared *p = b->prepared;
	int r;

	r = lock_prepared(b);
	if (r)
		return r;
	copy_totals(&b->plan, &p->plan);
	b->chunk = p->chunk;
	b->svm = &p->svm;
	/* A child of the process has the file, but not its memory. */
	if (p->svm.num && !amdgpu_sdma_svm_find_process(b))
		return -ESTALE;
	r = amdgpu_sdma_batch_find_context(b, p->mask);
	if (!r)
		r = amdgpu_sdma_batch_copy_fences(b);
	if (!r)
		r = pick_run_engines(b);
	return r ? r : amdgpu_sdma_batch_charge(b, run_work);
}

/**
 * amdgpu_sdma_batch_run - run a prepared batch
 * @b: call
 * @fence: result: a reference to the fence of the run
 *
 * Returns: 0 or a negative error, -ESTALE if a mapping has changed.
 */
int amdgpu_sdma_batch_run(struct amdgpu_sdma_batch *b, struct dma_fence **fence)
{
	struct dma_fence *end;
	int r;

	b->prepared = find_prepared(b->fpriv, b->args->handle);
	if (!b->prepared)
		return -ENOENT;
	r = begin_run(b);
	if (!r)
		r = lock_run_memory(b);
	if (!r)
		r = make_run_jobs(b);
	if (r)
		return r;
	end = amdgpu_sdma_batch_commit(b);
	if (IS_ERR(end))
		return PTR_ERR(end);
	end_run(b, end);
	*fence = end;
	return 0;
}
