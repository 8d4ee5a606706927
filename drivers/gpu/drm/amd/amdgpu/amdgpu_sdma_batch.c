// SPDX-License-Identifier: MIT
/**
 * DOC: SDMA batches
 *
 * DRM_IOCTL_AMDGPU_SDMA_BATCH in phases, each a function below:
 *
 * 1. copy in: arguments, descriptors, fences; all of user space's memory is
 *    read here, so nothing below can fault or see it change;
 * 2. check and plan: see amdgpu_sdma_plan.c, no locks;
 * 3. allocate: memory for packets, jobs, fences;
 * 4. lock: the VM, and each buffer that a descriptor names by its address;
 * 5. validate: buffers resident, page tables up to date, dependencies known;
 * 6. build: packets;
 * 7. commit: nothing can fail after this point.
 *
 * To prepare a batch is 1 to 6 without jobs and fences; to run it is the rest of
 * 3 to 7: see amdgpu_sdma_prepared.c.
 *
 * A batch is an ordinary job of the file's VM, with its context's priority. The
 * kernel's page table updates have the priority that contexts have by default:
 * where they share a ring with users, they take turns with users' jobs. One
 * batch polls AMDGPU_SDMA_MAX_POLLS times at most, all batches of a file that
 * have not ended AMDGPU_SDMA_MAX_FILE_POLLS times, those of all files on one
 * engine AMDGPU_SDMA_MAX_ENGINE_POLLS times, and a batch moves no more than
 * AMDGPU_SDMA_MAX_BYTES: what AMDGPU_CS puts on a ring is bounded by the ring's
 * timeout only.
 */

#include <linux/dma-fence-chain.h>
#include <linux/overflow.h>
#include <linux/uaccess.h>

#include <drm/amdgpu_drm.h>
#include <drm/drm_exec.h>
#include <drm/drm_syncobj.h>

#include "amdgpu.h"
#include "amdgpu_gmc.h"
#include "amdgpu_ras.h"
#include "amdgpu_sdma_arena.h"
#include "amdgpu_sdma_batch.h"
#include "amdgpu_sdma_batch_ctx.h"
#include "amdgpu_sdma_batch_stats.h"
#include "amdgpu_sdma_batch_trace.h"
#include "amdgpu_sdma_join.h"
#include "amdgpu_sdma_plan.h"
#include "amdgpu_sdma_prepared.h"

#define MAX_FENCES	64
#define MAX_STRIDE	4096
/* Mappings that a batch may look up: more than six for each descriptor. */
#define MAX_LOOKUPS	BIT(19)

/* A syncobj to signal, and what that needs. */
struct batch_out {
	struct drm_syncobj *syncobj;
	struct dma_fence_chain *chain;
	u64 point;
};

/**
 * struct batch - one call
 * @adev: device
 * @fpriv: file
 * @filp: file
 * @args: user space's arguments, copied back at the end, also after an error
 * @ctx: context
 * @bctx: engines of @ctx
 * @descs: descriptors
 * @prepared: what is being prepared, or the prepared batch that is run: locked
 * @mask: indices of engines in @bctx that may be used
 * @sync: what the batch waits for
 * @exec: locks
 * @exec_ready: @exec is initialized
 * @found: what was found last, by read and write: most batches name few
 * @lookups: mappings looked up so far
 * @chunk: memory for packets
 * @scratch: GPU address of memory for swaps, if the plan needs it
 * @num_jobs: of @jobs and @engines
 * @note: accounts for the batch
 * @joined: fence of all jobs, if it takes more than the job's own
 * @outs: syncobjs to signal: @out, or an array if there are more
 * @num_outs: of @outs
 * @out: the usual one
 * @fence: where to put a reference to the batch's fence, or NULL
 * @plan: what to do
 * @jobs: one for each share that is not empty
 * @engines: of each job
 */
struct batch {
	struct amdgpu_device *adev;
	struct amdgpu_fpriv *fpriv;
	struct drm_file *filp;
	struct drm_amdgpu_sdma_batch *args;
	struct amdgpu_ctx *ctx;
	struct amdgpu_sdma_batch_ctx *bctx;
	struct drm_amdgpu_sdma_desc *descs;
	struct amdgpu_sdma_prepared *prepared;
	u32 mask;
	struct amdgpu_sync sync;
	struct drm_exec exec;
	bool exec_ready;
	struct {
		u64 first;
		u64 last;
	} found[4];
	u32 lookups;
	struct amdgpu_sdma_chunk *chunk;
	u64 scratch;
	unsigned int num_jobs;
	struct amdgpu_sdma_batch_note *note;
	struct dma_fence *joined;
	struct batch_out *outs;
	unsigned int num_outs;
	struct batch_out out;
	struct dma_fence **fence;
	struct amdgpu_sdma_plan plan;
	/* From plan.end on nothing is cleared first: it is set as it is used. */
	struct amdgpu_job *jobs[AMDGPU_SDMA_MAX_SHARES];
	struct amdgpu_sdma_batch_engine *engines[AMDGPU_SDMA_MAX_SHARES];
};

static bool preparing(const struct batch *b)
{
	return b->args->flags & AMDGPU_SDMA_BATCH_PREPARE;
}

static bool running(const struct batch *b)
{
	return b->args->flags & AMDGPU_SDMA_BATCH_RUN;
}

static int check_descs(const struct drm_amdgpu_sdma_batch *args)
{
	if (args->handle || args->placement > AMDGPU_SDMA_PLACE_FAN_OUT)
		return -EINVAL;
	if (!args->num_descs || args->desc_stride % 8 ||
	    args->desc_stride < AMDGPU_SDMA_DESC_SIZE_MIN ||
	    args->desc_stride > MAX_STRIDE)
		return -EINVAL;
	return args->num_descs > AMDGPU_SDMA_MAX_DESCS ? -E2BIG : 0;
}

static int check_fences(const struct drm_amdgpu_sdma_batch *args)
{
	return args->num_in_fences > MAX_FENCES ||
	       args->num_out_fences > MAX_FENCES ? -E2BIG : 0;
}

static int check_no_descs(const struct drm_amdgpu_sdma_batch *args)
{
	return args->descs || args->num_descs || args->desc_stride ||
	       args->placement || args->engine_mask ? -EINVAL : 0;
}

static int check_no_fences(const struct drm_amdgpu_sdma_batch *args)
{
	return args->in_fences || args->out_fences || args->num_in_fences ||
	       args->num_out_fences ? -EINVAL : 0;
}

static int check_args(const struct drm_amdgpu_sdma_batch *args)
{
	if (memchr_inv(args->reserved, 0, sizeof(args->reserved)))
		return -EINVAL;
	switch (args->flags) {
	case 0:
		return check_descs(args) ?: check_fences(args);
	case AMDGPU_SDMA_BATCH_PREPARE:
		return check_descs(args) ?: check_no_fences(args);
	case AMDGPU_SDMA_BATCH_RUN:
		return check_no_descs(args) ?: check_fences(args);
	case AMDGPU_SDMA_BATCH_FORGET:
		return args->ctx_id ? -EINVAL : check_no_descs(args) ?:
						check_no_fences(args);
	default:
		return -EINVAL;
	}
}

/* Descriptors of another size than the kernel's: shorter or longer ones. */
static int copy_strided(struct batch *b, const void __user *from)
{
	const size_t size = sizeof(*b->descs);
	u32 i, stride = b->args->desc_stride;
	int r;

	for (i = 0; i < b->args->num_descs; i++) {
		r = copy_struct_from_user(&b->descs[i], size, from, stride);
		if (r) {
			b->args->error_index = i;
			return r;
		}
		from += stride;
	}
	return 0;
}

static int copy_descs(struct batch *b)
{
	const void __user *from = u64_to_user_ptr(b->args->descs);
	size_t size = array_size(b->args->num_descs, sizeof(*b->descs));

	b->descs = kvmalloc(size, GFP_KERNEL_ACCOUNT);
	if (!b->descs)
		return -ENOMEM;
	if (b->args->desc_stride != sizeof(*b->descs))
		return copy_strided(b, from);
	return copy_from_user(b->descs, from, size) ? -EFAULT : 0;
}

static int copy_fence(u64 from, u32 i, struct drm_amdgpu_sdma_fence *fence)
{
	const struct drm_amdgpu_sdma_fence __user *all = u64_to_user_ptr(from);

	if (copy_from_user(fence, &all[i], sizeof(*fence)))
		return -EFAULT;
	return fence->pad ? -EINVAL : 0;
}

static int copy_in_fence(struct batch *b, u32 i)
{
	struct drm_amdgpu_sdma_fence from;
	struct dma_fence *fence;
	int r;

	r = copy_fence(b->args->in_fences, i, &from);
	if (!r)
		r = drm_syncobj_find_fence(b->filp, from.handle, from.point, 0,
					   &fence);
	if (r)
		return r;
	r = amdgpu_sync_fence(&b->sync, fence, GFP_KERNEL);
	dma_fence_put(fence);
	return r;
}

static int copy_in_fences(struct batch *b)
{
	int r = 0;
	u32 i;

	for (i = 0; !r && i < b->args->num_in_fences; i++)
		r = copy_in_fence(b, i);
	return r;
}

static int find_out(struct batch *b, const struct drm_amdgpu_sdma_fence *f)
{
	struct batch_out *out = &b->outs[b->num_outs];

	out->syncobj = drm_syncobj_find(b->filp, f->handle);
	if (!out->syncobj)
		return -ENOENT;
	b->num_outs++;
	out->point = f->point;
	if (!f->point)
		return 0;
	out->chain = dma_fence_chain_alloc();
	return out->chain ? 0 : -ENOMEM;
}

static int copy_out_fences(struct batch *b)
{
	u32 i, num = b->args->num_out_fences;
	struct drm_amdgpu_sdma_fence fence;
	int r = 0;

	if (!num)
		return 0;
	b->outs = num == 1 ? &b->out :
			     kzalloc_objs(*b->outs, num, GFP_KERNEL_ACCOUNT);
	if (!b->outs)
		return -ENOMEM;
	for (i = 0; !r && i < num; i++) {
		r = copy_fence(b->args->out_fences, i, &fence);
		if (!r)
			r = find_out(b, &fence);
	}
	return r;
}

static int copy_in(struct batch *b)
{
	int r;

	r = copy_descs(b);
	if (r)
		return r;
	r = copy_in_fences(b);
	if (r)
		return r;
	return copy_out_fences(b);
}

/* Indices, in the context's engines, of those in user space's mask. */
static int find_engines(struct batch *b)
{
	u32 engines = running(b) ? b->prepared->mask : b->args->engine_mask;
	u32 i, wanted = engines;

	if (!engines) {
		b->mask = GENMASK(b->bctx->num - 1, 0);
		return 0;
	}
	for (i = 0; i < b->bctx->num; i++) {
		u32 bit = BIT(b->bctx->engines[i].instance);

		if (wanted & bit)
			b->mask |= BIT(i);
		wanted &= ~bit;
	}
	/* An engine that is not there, or is another partition's. */
	return wanted ? -EINVAL : 0;
}

static int find_context(struct batch *b)
{
	b->ctx = amdgpu_ctx_get(b->fpriv, b->args->ctx_id);
	if (!b->ctx)
		return -EINVAL;
	b->bctx = amdgpu_sdma_batch_ctx_get(b->ctx);
	if (IS_ERR(b->bctx))
		return PTR_ERR(b->bctx);
	return find_engines(b);
}

/*
 * A job that moves this much ends within a quarter of the ring's timeout if the
 * engine moves 4 GB/s.
 */
static u64 max_bytes(struct amdgpu_device *adev)
{
	u64 ms = jiffies_to_msecs(clamp(adev->sdma_timeout, 1L, 60L * HZ));

	return min(AMDGPU_SDMA_MAX_BYTES, ms * 1000000);
}

static int make_plan(struct batch *b)
{
	struct amdgpu_sdma_plan *plan = &b->plan;
	struct amdgpu_device *adev = b->adev;
	int r;

	plan->format = amdgpu_sdma_format(amdgpu_ip_version(adev, SDMA0_HWIP,
							    0));
	if (!plan->format)
		return -EOPNOTSUPP;
	plan->descs = b->descs;
	plan->num = b->args->num_descs;
	plan->hole_start = AMDGPU_GMC_HOLE_START;
	plan->hole_end = AMDGPU_GMC_HOLE_END;
	plan->error_index = AMDGPU_SDMA_NO_INDEX;
	plan->error_index2 = AMDGPU_SDMA_NO_INDEX;
	plan->max_bytes = max_bytes(adev);
	r = amdgpu_sdma_plan_check(plan);
	if (!r)
		r = amdgpu_sdma_plan_overlap(plan);
	if (!r)
		r = amdgpu_sdma_plan_place(plan, b->args->placement,
					   hweight32(b->mask));
	b->args->error_index = plan->error_index;
	b->args->error_index2 = plan->error_index2;
	return r;
}

/* Each share's packets begin where an IB may. */
static u64 share_bytes(struct batch *b, u32 share)
{
	u64 dw = amdgpu_sdma_plan_dwords(&b->plan, share);

	return (preparing(b) ? dw + AMDGPU_SDMA_RESET_DW : dw) * sizeof(u32);
}

static int get_chunk(struct batch *b)
{
	struct amdgpu_sdma_chunk *chunk;
	u64 bytes = 0;
	u32 share;
	int r;

	if (running(b)) {
		r = amdgpu_sdma_chunk_reuse(b->fpriv, b->prepared->chunk,
					    b->plan.polls);
		if (!r)
			b->chunk = b->prepared->chunk;
		return r;
	}
	for (share = 0; share < b->plan.shares; share++)
		bytes += share_bytes(b, share);
	if (preparing(b))
		chunk = amdgpu_sdma_chunk_get_kept(b->adev, b->fpriv, bytes,
						   b->plan.waits);
	else
		chunk = amdgpu_sdma_chunk_get(b->adev, b->fpriv, bytes,
					      b->plan.polls);
	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	b->chunk = chunk;
	if (!b->plan.bounces)
		return 0;
	return amdgpu_sdma_scratch_get(b->adev, b->fpriv, &b->scratch);
}

/* The least loaded of the engines that may be used. */
static u32 best_engine(struct batch *b)
{
	u32 i, best = __ffs(b->mask), best_score = U32_MAX;
	unsigned long mask = b->mask;

	for_each_set_bit(i, &mask, 32) {
		u32 score = atomic_read(b->bctx->engines[i].sched->score);

		if (score < best_score) {
			best = i;
			best_score = score;
		}
	}
	return best;
}

/* The next engine of the mask from @i on, around. */
static u32 next_engine(struct batch *b, u32 i)
{
	while (!(b->mask & BIT(i % b->bctx->num)))
		i++;
	return i % b->bctx->num;
}

static int alloc_job(struct batch *b, u32 engine)
{
	u32 ibs = running(b) ? b->prepared->jobs[b->num_jobs].num :
			       AMDGPU_SDMA_MAX_IBS;
	struct amdgpu_sdma_batch_engine *e = &b->bctx->engines[engine];
	u8 isolation = b->adev->enforce_isolation[b->fpriv->xcp_id];
	struct amdgpu_vm *vm = &b->fpriv->vm;
	struct amdgpu_job *job;
	int r;

	r = drm_sched_entity_error(&e->entity);
	if (r)
		return r;
	r = amdgpu_job_alloc(b->adev, vm, &e->entity, vm, ibs,
			     b->filp->client_id, GFP_KERNEL, &job);
	if (r)
		return r;
	job->enforce_isolation = isolation != AMDGPU_ENFORCE_ISOLATION_DISABLE;
	job->run_cleaner_shader = isolation == AMDGPU_ENFORCE_ISOLATION_ENABLE;
	b->engines[b->num_jobs] = e;
	b->jobs[b->num_jobs++] = job;
	/* The VM's memory was lost since the context was made. */
	return b->ctx->generation == job->generation ? 0 : -ECANCELED;
}

static bool is_busy(const struct amdgpu_sdma_prepared *p)
{
	return p->fence && !dma_fence_is_signaled(p->fence);
}

/* The entities that the run before had, if they are this context's. */
static bool same_engines(struct batch *b)
{
	struct amdgpu_sdma_prepared *p = b->prepared;
	u8 first = p->engines[0];

	return first < b->bctx->num &&
	       b->bctx->engines[first].entity.fence_context == p->entity;
}

/*
 * Behind a run that has not ended: on the same engines, which need no wait
 * between the two; elsewhere not at all if both use the slots.
 */
static int wait_for_slots(struct batch *b, bool *same)
{
	struct amdgpu_sdma_prepared *p = b->prepared;

	*same = is_busy(p) && same_engines(b);
	if (*same || !p->slots || !is_busy(p))
		return 0;
	return dma_fence_wait(p->fence, true);
}

static int alloc_jobs(struct batch *b)
{
	u32 i, num = b->plan.shares, engine;
	bool same = false;
	int r;

	if (running(b)) {
		num = b->prepared->num_jobs;
		r = wait_for_slots(b, &same);
		if (r)
			return r;
	}
	engine = num == 1 ? best_engine(b) :
			    (u32)atomic_inc_return(&b->bctx->next);
	for (i = 0; i < num; i++) {
		engine = same ? b->prepared->engines[i] :
				next_engine(b, engine);
		r = alloc_job(b, engine++);
		if (r)
			return r;
	}
	return 0;
}

/* A batch with waits has one job, and waits here for its share of the engine. */
static int get_note(struct batch *b)
{
	struct amdgpu_sdma_batch_note *note;

	note = amdgpu_sdma_batch_note_create(b->adev, b->fpriv, b->num_jobs);
	if (IS_ERR(note))
		return PTR_ERR(note);
	b->note = note;
	if (!b->plan.polls)
		return 0;
	return amdgpu_sdma_batch_note_polls(b->note, b->engines[0]->instance,
					    b->plan.polls);
}

/* May the descriptor use this mapping so? If yes, lock what is mapped. */
static int use_mapping(struct batch *b, struct amdgpu_bo_va_mapping *m,
		       const struct amdgpu_sdma_range *r)
{
	struct amdgpu_vm *vm = &b->fpriv->vm;
	struct amdgpu_bo *bo;
	int ret;

	/* Nothing is behind a sparse mapping. */
	bo = m->bo_va ? m->bo_va->base.bo : NULL;
	if (!bo)
		return -ENOENT;
	if ((r->read && !(m->flags & AMDGPU_VM_PAGE_READABLE)) ||
	    (r->write && !(m->flags & AMDGPU_VM_PAGE_WRITEABLE)))
		return -EACCES;
	/* The driver's own, batches' packets among it. */
	if (m->last >= b->adev->vm_manager.max_pfn -
		       (AMDGPU_VA_RESERVED_TOP >> AMDGPU_GPU_PAGE_SHIFT))
		return -EACCES;
	if (amdgpu_bo_encrypted(bo))
		return -EOPNOTSUPP;
	/* One that is always valid has the lock of the VM. */
	if (!amdgpu_vm_is_bo_always_valid(vm, bo)) {
		ret = drm_exec_prepare_obj(&b->exec, &bo->tbo.base,
					   TTM_NUM_MOVE_FENCES + b->num_jobs);
		if (ret)
			return ret;
	}
	/* The lock keeps the ttm. */
	return amdgpu_ttm_tt_get_usermm(bo->tbo.ttm) ? -EOPNOTSUPP : 0;
}

/* Lookups are made with locks held: not too many, and none for the dead. */
static int charge_lookup(struct batch *b)
{
	if (++b->lookups > MAX_LOOKUPS)
		return -E2BIG;
	if (b->lookups % 256)
		return 0;
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

static u64 va_page(const struct amdgpu_device *adev, u64 va)
{
	return (va & AMDGPU_GMC_HOLE_MASK) >> AMDGPU_GPU_PAGE_SHIFT;
}

/* Every page of the range is mapped; several mappings may do it together. */
static int lock_range(struct batch *b, const struct amdgpu_sdma_range *r)
{
	struct amdgpu_device *adev = b->adev;
	u64 page = va_page(adev, r->start);
	u64 last = va_page(adev, r->last);
	typeof(b->found[0]) *found = &b->found[r->read + 2 * r->write];
	struct amdgpu_bo_va_mapping *m;
	int ret;

	if (page >= found->first && last <= found->last)
		return 0;
	for (; page <= last; page = m->last + 1) {
		ret = charge_lookup(b);
		if (ret)
			return ret;
		m = amdgpu_vm_bo_lookup_mapping(&b->fpriv->vm, page);
		if (!m)
			return -ENOENT;
		ret = use_mapping(b, m, r);
		if (!ret && preparing(b))
			ret = amdgpu_sdma_prepared_use(b->prepared, m);
		if (ret)
			return ret;
		found->first = m->start;
		found->last = m->last;
	}
	return 0;
}

/* The short way for a plain copy from and to what was found last. */
static bool found_copy(const struct batch *b,
		       const struct drm_amdgpu_sdma_desc *d)
{
	const typeof(b->found[0]) *src = &b->found[1], *dst = &b->found[2];
	const struct amdgpu_device *adev = b->adev;
	u64 last = d->size - 1;

	if (!sdma_is_plain_copy(d))
		return false;
	return va_page(adev, d->src) >= src->first &&
	       va_page(adev, d->src + last) <= src->last &&
	       va_page(adev, d->dst) >= dst->first &&
	       va_page(adev, d->dst + last) <= dst->last;
}

static int lock_ranges(struct batch *b)
{
	struct amdgpu_sdma_range ranges[AMDGPU_SDMA_MAX_RANGES];
	unsigned int n, j;
	int r;
	u32 i;

	b->lookups = 0;
	if (preparing(b))
		b->prepared->num_used = 0;
	/* Mappings stay as long as the lock of the VM is held. */
	for (j = 0; j < ARRAY_SIZE(b->found); j++) {
		b->found[j].first = U64_MAX;
		b->found[j].last = 0;
	}
	for (i = 0; i < b->plan.num; i++) {
		if (found_copy(b, &b->descs[i]))
			continue;
		n = amdgpu_sdma_ranges(&b->descs[i], i, ranges);
		for (j = 0; j < n; j++) {
			r = lock_range(b, &ranges[j]);
			if (r == -ENOENT || r == -EACCES ||
			    r == -EOPNOTSUPP || r == -E2BIG)
				b->args->error_index = i;
			if (r)
				return r;
		}
	}
	return 0;
}

static int lock_buffers(struct batch *b)
{
	if (running(b))
		return amdgpu_sdma_prepared_lock(b->prepared, &b->fpriv->vm,
						 &b->exec, TTM_NUM_MOVE_FENCES +
						 b->num_jobs);
	return lock_ranges(b);
}

static int lock_all(struct batch *b)
{
	int r;

	drm_exec_init(&b->exec, DRM_EXEC_INTERRUPTIBLE_WAIT |
		      DRM_EXEC_IGNORE_DUPLICATES, 0);
	b->exec_ready = true;
	drm_exec_until_all_locked(&b->exec) {
		/* and a slot for the joined fence */
		r = amdgpu_vm_lock_pd(&b->fpriv->vm, &b->exec,
				      b->num_jobs + 1);
		drm_exec_retry_on_contention(&b->exec);
		if (r)
			return r;
		b->args->error_index = AMDGPU_SDMA_NO_INDEX;
		r = lock_buffers(b);
		drm_exec_retry_on_contention(&b->exec);
		if (r)
			return r;
	}
	return 0;
}

/*
 * ttm_bo_validate() would leave it where it is. What video memory had no room
 * for it would move back, if there is room by now.
 */
static bool may_stay(const struct amdgpu_bo *bo)
{
	const struct ttm_resource *res = bo->tbo.resource;

	if (bo->tbo.pin_count)
		return true;
	if (!res || res->placement & TTM_PL_FLAG_TEMPORARY)
		return false;
	if (res->mem_type == TTM_PL_VRAM)
		return bo->allowed_domains & AMDGPU_GEM_DOMAIN_VRAM;
	return res->mem_type == TTM_PL_TT &&
	       bo->allowed_domains == AMDGPU_GEM_DOMAIN_GTT;
}

/* Data stays where it is if the engine can reach it there. */
static int validate_bo(void *param, struct amdgpu_bo *bo)
{
	struct ttm_operation_ctx ctx = {
		.interruptible = true,
		.resv = bo->tbo.base.resv,
	};

	if (may_stay(bo))
		return 0;
	amdgpu_bo_placement_from_domain(bo, bo->allowed_domains);
	return ttm_bo_validate(&bo->tbo, &bo->placement, &ctx);
}

static int validate_bos(struct batch *b)
{
	struct amdgpu_vm *vm = &b->fpriv->vm;
	struct drm_gem_object *obj;
	int r;

	r = amdgpu_vm_validate(b->adev, vm, NULL, validate_bo, b);
	if (r)
		return r;
	drm_exec_for_each_locked_object(&b->exec, obj) {
		if (gem_to_amdgpu_bo(obj) == vm->root.bo)
			continue;
		r = validate_bo(b, gem_to_amdgpu_bo(obj));
		if (r)
			return r;
	}
	return 0;
}

/*
 * An engine adds to memory that is not its own by an atomic operation of PCIe.
 * The buffers are valid, and stay where they are until the batch has ended.
 */
static int check_add(struct batch *b, u64 va)
{
	struct amdgpu_device *adev = b->adev;
	u64 page = (va & AMDGPU_GMC_HOLE_MASK) >> AMDGPU_GPU_PAGE_SHIFT;
	struct amdgpu_bo_va_mapping *m;
	struct ttm_resource *res;

	m = amdgpu_vm_bo_lookup_mapping(&b->fpriv->vm, page);
	if (WARN_ON_ONCE(!m))
		return -ENOENT;
	if (preparing(b))
		amdgpu_sdma_prepared_adds(b->prepared, m);
	res = m->bo_va->base.bo->tbo.resource;
	return res && res->mem_type == TTM_PL_VRAM ? 0 : -EOPNOTSUPP;
}

static int check_adds(struct batch *b)
{
	int r = 0;
	u32 i;

	if (b->adev->have_atomics_support || !b->plan.adds)
		return 0;
	if (running(b))
		return amdgpu_sdma_prepared_check_adds(b->prepared,
						       &b->fpriv->vm);
	for (i = 0; !r && i < b->plan.num; i++) {
		if (b->descs[i].op != AMDGPU_SDMA_OP_ADD)
			continue;
		r = check_add(b, b->descs[i].dst);
		if (r)
			b->args->error_index = i;
	}
	return r;
}

/*
 * Neither the buffer nor its mappings have changed since the page tables were
 * updated. What says so is under the locks of the VM and the buffer.
 */
static bool is_up_to_date(const struct amdgpu_bo_va *bo_va)
{
	return !bo_va->base.moved && !bo_va->cleared &&
	       list_empty(&bo_va->invalids);
}

/* Most updates have ended long ago. */
static int sync_update(struct batch *b, struct dma_fence *fence)
{
	if (!fence || dma_fence_is_signaled(fence))
		return 0;
	return amdgpu_sync_fence(&b->sync, fence, GFP_KERNEL);
}

/* Page tables as the mappings say, and the batch behind their updates. */
static int update_vm(struct batch *b)
{
	struct amdgpu_vm *vm = &b->fpriv->vm;
	struct amdgpu_bo_va *bo_va;
	struct drm_gem_object *obj;
	int r;

	if (!amdgpu_vm_ready(vm))
		return -EINVAL;
	r = amdgpu_vm_clear_freed(b->adev, vm, NULL);
	if (r)
		return r;
	drm_exec_for_each_locked_object(&b->exec, obj) {
		/* The page directory is in the VM, but not mapped in it. */
		if (gem_to_amdgpu_bo(obj) == vm->root.bo)
			continue;
		bo_va = amdgpu_vm_bo_find(vm, gem_to_amdgpu_bo(obj));
		/* New mappings too, which amdgpu_vm_handle_moved() skips. */
		if (!is_up_to_date(bo_va))
			r = amdgpu_vm_bo_update(b->adev, bo_va, false);
		if (r)
			return r;
		r = sync_update(b, bo_va->last_pt_update);
		if (r)
			return r;
	}
	r = amdgpu_vm_handle_moved(b->adev, vm, drm_exec_ticket(&b->exec));
	if (r)
		return r;
	r = amdgpu_vm_update_pdes(b->adev, vm, false);
	if (r)
		return r;
	return sync_update(b, vm->last_update);
}

/* As command submission does: see amdgpu_cs_sync_rings(). */
static int sync_bos(struct batch *b)
{
	struct drm_gem_object *obj;
	int r;

	drm_exec_for_each_locked_object(&b->exec, obj) {
		struct amdgpu_bo *bo = gem_to_amdgpu_bo(obj);
		enum amdgpu_sync_mode mode;

		mode = amdgpu_bo_explicit_sync(bo) ? AMDGPU_SYNC_EXPLICIT :
						     AMDGPU_SYNC_NE_OWNER;
		r = amdgpu_sync_resv(b->adev, &b->sync, bo->tbo.base.resv, mode,
				     &b->fpriv->vm);
		if (r)
			return r;
	}
	return 0;
}

/*
 * What the batch waits for on its own ring the scheduler does not wait for: the
 * ring must let it end, caches included, before it goes on.
 */
static int sync_ring(struct batch *b, struct dma_fence *fence)
{
	struct drm_sched_fence *s_fence = to_drm_sched_fence(fence);
	unsigned int i;
	int r;

	for (i = 0; s_fence && i < b->num_jobs; i++) {
		if (s_fence->sched != b->engines[i]->sched)
			continue;
		r = amdgpu_sync_fence(&b->jobs[i]->explicit_sync, fence,
				      GFP_KERNEL);
		if (r)
			return r;
	}
	return 0;
}

static int sync_jobs(struct batch *b)
{
	struct dma_fence *fence;
	unsigned int i;
	int r;

	r = sync_bos(b);
	if (!r && running(b) && is_busy(b->prepared))
		r = amdgpu_sync_fence(&b->sync, b->prepared->fence, GFP_KERNEL);
	if (r || hash_empty(b->sync.fences))
		return r;
	for (i = 0; i < b->num_jobs; i++) {
		r = amdgpu_sync_push_to_job(&b->sync, b->jobs[i]);
		if (r)
			return r;
	}
	while ((fence = amdgpu_sync_get_fence(&b->sync))) {
		r = sync_ring(b, fence);
		dma_fence_put(fence);
		if (r)
			return r;
	}
	return 0;
}

/* Packets of a share, @offset bytes into the chunk, for engine @instance. */
static int emit_share(struct batch *b, u32 share, u32 instance, void *cpu,
		      u64 offset, struct amdgpu_sdma_stream *s)
{
	s->format = b->plan.format;
	s->base = cpu + offset;
	s->end = cpu + offset + share_bytes(b, share);
	s->slot = b->chunk->va + share * AMDGPU_SDMA_SLOT_SIZE;
	/* An engine runs the file's jobs one after the other. */
	s->sample = b->chunk->sample + instance * AMDGPU_SDMA_SLOT_SIZE;
	s->scratch = b->scratch + instance * AMDGPU_SDMA_SCRATCH_SIZE;
	return WARN_ON_ONCE(amdgpu_sdma_plan_emit(&b->plan, share, s)) ?
		-ENOSPC : 0;
}

/* A job's share; @offset is of its memory in the chunk, and moves on. */
static int build_share(struct batch *b, u32 share, void *cpu, u64 *offset)
{
	struct amdgpu_job *job = b->jobs[share];
	u64 bytes = share_bytes(b, share);
	struct amdgpu_sdma_stream s = { };
	u32 i;
	int r;

	r = emit_share(b, share, b->engines[share]->instance, cpu, *offset, &s);
	if (r)
		return r;
	for (i = 0; i < s.num_ibs; i++) {
		job->ibs[i].gpu_addr = b->chunk->va + *offset +
				       s.ibs[i].offset * sizeof(u32);
		job->ibs[i].length_dw = s.ibs[i].length;
	}
	job->num_ibs = s.num_ibs;
	job->vm_pd_addr = amdgpu_gmc_pd_addr(b->fpriv->vm.root.bo);
	*offset += bytes;
	return 0;
}

/* A fan-out of little leaves some engines without work. */
static void drop_empty_jobs(struct batch *b)
{
	unsigned int i, kept = 0;

	for (i = 0; i < b->num_jobs; i++) {
		if (!b->jobs[i]->num_ibs) {
			amdgpu_job_free(b->jobs[i]);
			continue;
		}
		b->engines[kept] = b->engines[i];
		b->jobs[kept++] = b->jobs[i];
	}
	b->num_jobs = kept;
}

/* The packets are there: clear the slots, if no run before it uses them. */
static int build_run(struct batch *b)
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
	for (i = 0; i < b->num_jobs; i++) {
		amdgpu_sdma_prepared_ibs(p, i, b->jobs[i]);
		b->jobs[i]->vm_pd_addr =
			amdgpu_gmc_pd_addr(b->fpriv->vm.root.bo);
	}
	if (b->num_jobs == 1 && !b->plan.waits)
		return 0;
	b->joined = amdgpu_sdma_batch_fence_create(b->jobs, b->num_jobs, cpu,
						   b->plan.waits ?
						   b->plan.shares : 0);
	return b->joined ? 0 : -ENOMEM;
}

static int build(struct batch *b)
{
	u64 offset = AMDGPU_SDMA_CHUNK_SLOTS;
	void *cpu;
	u32 share;
	int r;

	BUILD_BUG_ON(AMDGPU_SDMA_MAX_SHARES * AMDGPU_SDMA_SLOT_SIZE >
		     AMDGPU_SDMA_CHUNK_SLOTS);
	if (running(b))
		return build_run(b);
	r = amdgpu_sdma_chunk_cpu(b->chunk, &cpu);
	if (r)
		return r;
	memset(cpu, 0, b->plan.shares * AMDGPU_SDMA_SLOT_SIZE);
	for (share = 0; share < b->plan.shares; share++) {
		r = build_share(b, share, cpu, &offset);
		if (r)
			return r;
	}
	drop_empty_jobs(b);
	if (b->num_jobs == 1 && !b->plan.waits)
		return 0;
	b->joined = amdgpu_sdma_batch_fence_create(b->jobs, b->num_jobs,
						   cpu, b->plan.waits ?
						   b->plan.shares : 0);
	return b->joined ? 0 : -ENOMEM;
}

/*
 * Again: moves and page table updates may have taken what was reserved when the
 * buffers were locked.
 */
static int reserve_fences(struct batch *b)
{
	struct drm_gem_object *obj;
	int r;

	drm_exec_for_each_locked_object(&b->exec, obj) {
		r = dma_resv_reserve_fences(obj->resv, b->num_jobs + 1);
		if (r)
			return r;
	}
	return 0;
}

static void signal_outs(struct batch *b, struct dma_fence *fence)
{
	unsigned int i;

	for (i = 0; i < b->num_outs; i++) {
		struct batch_out *out = &b->outs[i];

		if (out->chain)
			drm_syncobj_add_point(out->syncobj, out->chain, fence,
					      out->point);
		else
			drm_syncobj_replace_fence(out->syncobj, fence);
		out->chain = NULL;
	}
}

/* All buffers are busy until the jobs have ended. */
static void fence_bos(struct batch *b)
{
	struct drm_gem_object *obj;
	unsigned int i;

	drm_exec_for_each_locked_object(&b->exec, obj) {
		ttm_bo_move_to_lru_tail_unlocked(&gem_to_amdgpu_bo(obj)->tbo);
		for (i = 0; i < b->num_jobs; i++)
			dma_resv_add_fence(obj->resv,
					   &b->jobs[i]->base.s_fence->finished,
					   DMA_RESV_USAGE_WRITE);
	}
	/*
	 * Nobody waits for this one to use the VM; but the chunk, which shares
	 * the VM's reservation, stays until its slots have been read.
	 */
	if (b->joined)
		dma_resv_add_fence(b->fpriv->vm.root.bo->tbo.base.resv,
				   b->joined, DMA_RESV_USAGE_BOOKKEEP);
}

static void trace_batch(struct batch *b, const struct dma_fence *fence)
{
	unsigned int i;

	trace_amdgpu_sdma_batch_submit(&b->plan, b->args->engines_used, fence);
	if (!trace_amdgpu_sdma_batch_job_enabled())
		return;
	for (i = 0; i < b->num_jobs; i++)
		trace_amdgpu_sdma_batch_job(fence, b->engines[i]->instance,
					    &b->jobs[i]->base.s_fence->finished);
}

/* What the next run goes by. */
static void end_run(struct batch *b, struct dma_fence *fence)
{
	struct amdgpu_sdma_prepared *p = b->prepared;
	unsigned int i;

	dma_fence_put(p->fence);
	p->fence = dma_fence_get(fence);
	p->entity = b->engines[0]->entity.fence_context;
	for (i = 0; i < p->num_jobs; i++)
		p->engines[i] = b->engines[i] - b->bctx->engines;
	amdgpu_sdma_chunk_keep(b->fpriv, b->chunk, fence);
}

/*
 * Nothing can fail from here on. The lock of the VM, which all batches of the
 * file take, keeps armed jobs in the order in which they are pushed.
 */
static void commit(struct batch *b)
{
	struct dma_fence *fence = b->joined;
	unsigned int i;
	u64 join = 0;

	if (b->num_jobs > 1)
		join = amdgpu_sdma_join_get(b->adev, b->num_jobs);
	for (i = 0; i < b->num_jobs; i++) {
		b->jobs[i]->join_addr = join;
		drm_sched_job_arm(&b->jobs[i]->base);
		b->args->engines_used |= BIT(b->engines[i]->instance);
	}
	amdgpu_sdma_batch_note_arm(b->note, b->jobs, b->num_jobs, &b->plan,
				   fence);
	b->note = NULL;
	if (fence)
		amdgpu_sdma_batch_fence_arm(fence, b->jobs);
	else
		fence = &b->jobs[0]->base.s_fence->finished;
	dma_fence_get(fence);
	fence_bos(b);
	signal_outs(b, fence);
	trace_batch(b, fence);
	for (i = 0; i < b->num_jobs; i++) {
		amdgpu_job_free_resources(b->jobs[i]);
		drm_sched_entity_push_job(&b->jobs[i]->base);
	}
	b->num_jobs = 0;
	amdgpu_vm_move_to_lru_tail(b->adev, &b->fpriv->vm);
	if (running(b))
		end_run(b, fence);
	else
		amdgpu_sdma_chunk_put(b->fpriv, b->chunk, fence);
	b->chunk = NULL;
	if (b->fence)
		*b->fence = fence;
	else
		dma_fence_put(fence);
}

static int submit(struct batch *b)
{
	int r;

	r = get_chunk(b);
	if (r)
		return r;
	r = alloc_jobs(b);
	if (r)
		return r;
	r = get_note(b);
	if (r)
		return r;
	r = lock_all(b);
	if (r)
		return r;
	r = validate_bos(b);
	if (r)
		return r;
	r = check_adds(b);
	if (r)
		return r;
	r = update_vm(b);
	if (r)
		return r;
	r = sync_jobs(b);
	if (r)
		return r;
	r = build(b);
	if (r)
		return r;
	/* Last: nothing between this and the commit may use slots up. */
	r = reserve_fences(b);
	if (r)
		return r;
	commit(b);
	return 0;
}

/*
 * Packets that wait or bounce use memory of their engine: any other batch may
 * run on all engines that its caller allows.
 */
static u32 prepared_mask(struct batch *b)
{
	if (b->plan.waits || b->plan.bounces)
		return BIT(b->bctx->engines[best_engine(b)].instance);
	return b->args->engine_mask;
}

static int build_prepared(struct batch *b)
{
	struct amdgpu_sdma_prepared *p = b->prepared;
	u64 offset = AMDGPU_SDMA_CHUNK_SLOTS;
	/* If memory of the engine is used, there is one. */
	u32 share, instance = p->mask ? __ffs(p->mask) : 0;
	void *cpu;
	int r;

	r = amdgpu_sdma_chunk_cpu(b->chunk, &cpu);
	if (r)
		return r;
	p->num_jobs = 0;
	for (share = 0; share < b->plan.shares; share++) {
		struct amdgpu_sdma_stream s = { };

		r = emit_share(b, share, instance, cpu, offset, &s);
		if (!r)
			r = amdgpu_sdma_prepared_job(p, &s, b->chunk->va +
						     offset);
		if (r)
			return r;
		offset += share_bytes(b, share);
	}
	return 0;
}

static int fill_prepared(struct batch *b)
{
	int r;

	r = lock_all(b);
	if (r)
		return r;
	amdgpu_sdma_prepared_used(b->prepared);
	r = validate_bos(b);
	if (r)
		return r;
	r = check_adds(b);
	return r ? r : build_prepared(b);
}

static int prepare(struct batch *b)
{
	struct amdgpu_sdma_prepared *p;
	int r;

	r = find_context(b);
	if (!r)
		r = copy_descs(b);
	if (!r)
		r = make_plan(b);
	if (r)
		return r;
	p = amdgpu_sdma_prepared_create(&b->plan, prepared_mask(b));
	if (!p)
		return -ENOMEM;
	b->prepared = p;
	r = get_chunk(b);
	if (!r)
		r = fill_prepared(b);
	if (r)
		return r;
	p->chunk = b->chunk;
	amdgpu_sdma_chunk_keep(b->fpriv, b->chunk, NULL);
	b->chunk = NULL;
	r = amdgpu_sdma_prepared_publish(b->fpriv, p, &b->args->handle);
	if (!r)
		b->prepared = NULL;
	return r;
}

static int run_locked(struct batch *b)
{
	int r;

	memcpy(&b->plan, &b->prepared->plan,
	       offsetof(struct amdgpu_sdma_plan, end));
	r = find_context(b);
	if (!r)
		r = copy_in_fences(b);
	if (!r)
		r = copy_out_fences(b);
	return r ? r : submit(b);
}

static void put_chunk(struct batch *b)
{
	if (preparing(b))
		amdgpu_sdma_chunk_put_kept(b->fpriv, b->chunk);
	else if (running(b))
		amdgpu_sdma_chunk_keep(b->fpriv, b->chunk, NULL);
	else
		amdgpu_sdma_chunk_put(b->fpriv, b->chunk, NULL);
}

static void cleanup(struct batch *b)
{
	unsigned int i;

	for (i = 0; i < b->num_jobs; i++)
		amdgpu_job_free(b->jobs[i]);
	if (b->exec_ready)
		drm_exec_fini(&b->exec);
	if (b->chunk)
		put_chunk(b);
	for (i = 0; i < b->num_outs; i++) {
		dma_fence_chain_free(b->outs[i].chain);
		drm_syncobj_put(b->outs[i].syncobj);
	}
	if (b->outs != &b->out)
		kfree(b->outs);
	amdgpu_sdma_batch_note_free(b->note);
	dma_fence_put(b->joined);
	amdgpu_sync_free(&b->sync);
	kvfree(b->descs);
	if (b->ctx)
		amdgpu_ctx_put(b->ctx);
}

static int run(struct batch *b)
{
	struct amdgpu_sdma_prepared *p;
	int r;

	p = amdgpu_sdma_prepared_find(b->fpriv, b->args->handle);
	if (!p)
		return -ENOENT;
	b->prepared = p;
	r = mutex_lock_interruptible(&p->lock);
	if (r)
		return r;
	r = run_locked(b);
	cleanup(b);
	mutex_unlock(&p->lock);
	return r;
}

static int do_batch(struct batch *b)
{
	int r;

	if (b->args->flags == AMDGPU_SDMA_BATCH_FORGET)
		return amdgpu_sdma_prepared_forget(b->fpriv, b->args->handle);
	if (running(b))
		return run(b);
	if (preparing(b)) {
		r = prepare(b);
	} else {
		r = find_context(b);
		if (!r)
			r = copy_in(b);
		if (!r)
			r = make_plan(b);
		if (!r)
			r = submit(b);
	}
	cleanup(b);
	return r;
}

static int call_batch(struct drm_device *dev, struct drm_file *filp,
		      struct drm_amdgpu_sdma_batch *args,
		      struct dma_fence **fence)
{
	struct amdgpu_device *adev = drm_to_adev(dev);
	struct batch *b;
	int r;

	args->error_index = AMDGPU_SDMA_NO_INDEX;
	args->error_index2 = AMDGPU_SDMA_NO_INDEX;
	args->engines_used = 0;
	if (amdgpu_ras_intr_triggered())
		return -EHWPOISON;
	if (!adev->accel_working)
		return -EBUSY;
	r = check_args(args);
	if (r)
		return r;
	b = kmalloc_obj(*b, GFP_KERNEL_ACCOUNT);
	if (!b)
		return -ENOMEM;
	memset(b, 0, offsetof(struct batch, plan.end));
	b->adev = adev;
	b->fpriv = filp->driver_priv;
	b->filp = filp;
	b->args = args;
	b->fence = fence;
	amdgpu_sync_create(&b->sync);
	amdgpu_vm_set_task_info(&b->fpriv->vm);
	r = do_batch(b);
	amdgpu_sdma_prepared_put(b->fpriv, b->prepared);
	kfree(b);
	return r;
}

/**
 * amdgpu_sdma_batch_ioctl - DRM_IOCTL_AMDGPU_SDMA_BATCH
 * @dev: device
 * @data: &struct drm_amdgpu_sdma_batch
 * @filp: file
 *
 * Returns: 0, and the batch runs or will, or is prepared or forgotten; else
 * nothing of it was done.
 */
int amdgpu_sdma_batch_ioctl(struct drm_device *dev, void *data,
			    struct drm_file *filp)
{
	int r = call_batch(dev, filp, data, NULL);

	/*
	 * A signal came while a lock was waited for. Nothing was done, so the
	 * call can be made again, as the signal's handler wants it.
	 */
	return r == -EINTR ? -ERESTARTSYS : r;
}

/**
 * amdgpu_sdma_batch_submit - the same for who wants to have the fence
 * @dev: device
 * @data: &struct amdgpu_sdma_batch_call
 * @filp: file
 *
 * Returns: as amdgpu_sdma_batch_ioctl().
 */
int amdgpu_sdma_batch_submit(struct drm_device *dev, void *data,
			     struct drm_file *filp)
{
	struct amdgpu_sdma_batch_call *call = data;

	return call_batch(dev, filp, &call->args, &call->fence);
}

/* Engines whose user queue the file can use. */
static u32 usable_engines(struct amdgpu_device *adev,
			  struct amdgpu_fpriv *fpriv)
{
	u32 i, mask = 0;

	for (i = 0; i < min(adev->sdma.num_instances, 32); i++) {
		struct amdgpu_ring *ring = &adev->sdma.instance[i].ring;

		if (ring->no_user_submission || !ring->sched.ready)
			continue;
		if (adev->xcp_mgr && fpriv->xcp_id != AMDGPU_XCP_NO_PARTITION &&
		    ring->xcp_id != fpriv->xcp_id)
			continue;
		mask |= BIT(i);
	}
	return mask;
}

/**
 * amdgpu_sdma_batch_info - AMDGPU_INFO_SDMA_BATCH
 * @adev: device
 * @fpriv: file
 * @info: result
 */
void amdgpu_sdma_batch_info(struct amdgpu_device *adev,
			    struct amdgpu_fpriv *fpriv,
			    struct drm_amdgpu_info_sdma_batch *info)
{
	const struct amdgpu_sdma_format *f;

	memset(info, 0, sizeof(*info));
	f = amdgpu_sdma_format(amdgpu_ip_version(adev, SDMA0_HWIP, 0));
	info->engine_mask = usable_engines(adev, fpriv);
	if (!f || !info->engine_mask) {
		info->engine_mask = 0;
		return;
	}
	info->ops = amdgpu_sdma_ops(f);
	info->native_ops = f->native;
	info->max_descs = AMDGPU_SDMA_MAX_DESCS;
	info->max_fences = MAX_FENCES;
	info->max_polls = AMDGPU_SDMA_MAX_POLLS;
	info->swap_alignment = f->swap_align;
	info->record_alignment = sizeof(struct drm_amdgpu_sdma_record);
	info->max_bytes = max_bytes(adev);
	info->max_packet_bytes = f->max_copy;
	info->features = AMDGPU_SDMA_FEATURE_PREPARED;
	if (IS_ENABLED(CONFIG_IO_URING))
		info->features |= AMDGPU_SDMA_FEATURE_URING;
	info->max_prepared = AMDGPU_SDMA_MAX_PREPARED;
	info->max_prepared_bytes = AMDGPU_SDMA_MAX_PREPARED_BYTES;
}
