// SPDX-License-Identifier: MIT
/**
 * DOC: SDMA batches
 *
 * DRM_IOCTL_AMDGPU_SDMA_BATCH works in phases:
 *
 * 1. copy in: arguments, descriptors, fences; all of user space's memory is
 *    read here, so nothing below can fault or see it change
 *    (amdgpu_sdma_batch_args.c);
 * 2. check and plan, without locks (amdgpu_sdma_plan.c);
 * 3. charge the file for packet memory and engine work. A call waits for
 *    earlier batches here;
 * 4. lock the VM, and each buffer that a descriptor names by its address; make
 *    the buffers resident and the page tables up to date
 *    (amdgpu_sdma_batch_vm.c);
 * 5. make jobs, tell them what to wait for, store the packets
 *    (amdgpu_sdma_batch_build.c);
 * 6. commit: nothing can fail after this point.
 *
 * Preparing a batch is phases 1 to 5 without jobs and fences; running it is the
 * rest of phases 3 to 6: see amdgpu_sdma_prepared.c.
 *
 * A batch is an ordinary job of the file's VM, with its context's priority. How
 * long it may take, and how long it may keep others waiting, is bounded: see
 * amdgpu_sdma_batch_limits.c and amdgpu_sdma_batch_turns.c.
 */

#include <linux/dma-fence-chain.h>

#include <drm/amdgpu_drm.h>
#include <drm/drm_syncobj.h>

#include "amdgpu.h"
#include "amdgpu_gmc.h"
#include "amdgpu_ras.h"
#include "amdgpu_sdma_arena.h"
#include "amdgpu_sdma_batch.h"
#include "amdgpu_sdma_batch_ctx.h"
#include "amdgpu_sdma_batch_internal.h"
#include "amdgpu_sdma_batch_limits.h"
#include "amdgpu_sdma_batch_stats.h"
#include "amdgpu_sdma_batch_trace.h"
#include "amdgpu_sdma_prepared.h"
#include "amdgpu_sdma_user_pages.h"

/* Translates user space's mask to indices in the context's engines. */
static int find_batch_engines(struct amdgpu_sdma_batch *b, u32 engines)
{
	u32 i, wanted = engines;

	b->mask = 0;
	if (!engines || engines == b->bctx->instances) {
		b->mask = GENMASK(b->bctx->num - 1, 0);
		return 0;
	}
	for (i = 0; i < b->bctx->num; i++) {
		u32 bit = BIT(b->bctx->engines[i].instance);

		if (wanted & bit)
			b->mask |= BIT(i);
		wanted &= ~bit;
	}
	/* An engine that does not exist, or belongs to another partition. */
	return wanted ? -EINVAL : 0;
}

/**
 * amdgpu_sdma_batch_find_context - find the context and its engines
 * @b: call
 * @engines: mask of those that may be used, by instance, or 0 for all
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_find_context(struct amdgpu_sdma_batch *b, u32 engines)
{
	b->ctx = amdgpu_ctx_get(b->fpriv, b->args->ctx_id);
	if (!b->ctx)
		return -EINVAL;
	b->bctx = amdgpu_sdma_batch_ctx_get(b->ctx);
	if (IS_ERR(b->bctx))
		return PTR_ERR(b->bctx);
	return find_batch_engines(b, engines);
}

/* What is known of the engines, by their indices in the context. */
static void describe_engines(const struct amdgpu_sdma_batch *b,
			     struct amdgpu_sdma_engines *e)
{
	u32 i, all = 0, host;

	for (i = 0; i < b->bctx->num; i++)
		all |= BIT(b->bctx->engines[i].instance);
	host = amdgpu_sdma_batch_host_engines(b->adev, all);
	e->usable = b->mask;
	for (i = 0; i < b->bctx->num; i++) {
		u32 instance = b->bctx->engines[i].instance;

		if (amdgpu_sdma_has_waits(&b->adev->sdma, instance))
			e->may_wait |= BIT(i);
		if (host & BIT(instance))
			e->host |= BIT(i);
	}
}

static int place_plan(struct amdgpu_sdma_batch *b)
{
	struct amdgpu_sdma_engines engines = { };
	struct amdgpu_sdma_plan *plan = &b->plan;
	int r = 0;

	describe_engines(b, &engines);
	/* A partition might have no engine that may execute waits. */
	if (plan->waits && !engines.may_wait)
		return -EOPNOTSUPP;
	if (b->args->placement == AMDGPU_SDMA_PLACE_AUTO &&
	    (engines.host || amdgpu_sdma_plan_may_fan_out(plan)))
		r = amdgpu_sdma_batch_guess_way(b, &engines);
	if (!r)
		r = amdgpu_sdma_plan_place(plan, b->args->placement, &engines);
	b->mask = plan->engines;
	return r;
}

static int check_batch_plan(struct amdgpu_sdma_batch *b)
{
	int r;

	r = amdgpu_sdma_plan_check(&b->plan);
	if (!r)
		r = amdgpu_sdma_plan_overlap(&b->plan);
	return r ? r : place_plan(b);
}

/**
 * amdgpu_sdma_batch_make_plan - check the descriptors, and cut them into shares
 * @b: call that has copied them
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_make_plan(struct amdgpu_sdma_batch *b)
{
	const struct amdgpu_sdma_batch_limits *l;
	struct amdgpu_sdma_plan *plan = &b->plan;
	struct amdgpu_device *adev = b->adev;
	int r;

	plan->format = amdgpu_sdma_format(amdgpu_ip_version(adev, SDMA0_HWIP,
							    0));
	if (!plan->format)
		return -EOPNOTSUPP;
	l = amdgpu_sdma_batch_limits(adev);
	plan->descs = b->descs;
	plan->stride = b->stride;
	plan->num = b->args->num_descs;
	plan->hole_start = AMDGPU_GMC_HOLE_START;
	plan->hole_end = AMDGPU_GMC_HOLE_END;
	plan->error_index = AMDGPU_SDMA_NO_INDEX;
	plan->error_index2 = AMDGPU_SDMA_NO_INDEX;
	plan->max_bytes = l->max_bytes;
	plan->max_dwords = l->max_dwords;
	plan->max_wait_ns = l->max_wait_ns;
	plan->mhz = l->high_mhz;
	plan->records = b->args->records;
	r = check_batch_plan(b);
	b->args->error_index = plan->error_index;
	b->args->error_index2 = plan->error_index2;
	return r;
}

/* The least loaded of the engines that may be used. */
static u32 best_engine(const struct amdgpu_sdma_batch *b)
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

/* The next engine of the mask from @i on, wrapping around. */
static u32 next_engine(const struct amdgpu_sdma_batch *b, u32 i)
{
	while (!(b->mask & BIT(i % b->bctx->num)))
		i++;
	return i % b->bctx->num;
}

/**
 * amdgpu_sdma_batch_pick_engines - choose the engines that run the batch
 * @b: call that knows its context
 * @num: number of engines: 1, or not more than may be used
 */
void amdgpu_sdma_batch_pick_engines(struct amdgpu_sdma_batch *b, u32 num)
{
	u32 i, engine;

	engine = num == 1 ? best_engine(b) :
			    (u32)atomic_inc_return(&b->bctx->next);
	for (i = 0; i < num; i++) {
		engine = next_engine(b, engine);
		b->engines[i] = &b->bctx->engines[engine++];
	}
	b->num_engines = num;
}

/**
 * amdgpu_sdma_batch_charge - charge the file for the work of the engines
 * @b: call that has picked engines, and holds no reservation
 * @work: returns the work that a job is charged
 *
 * Returns: 0 or a negative error; -EAGAIN instead of waiting.
 */
int amdgpu_sdma_batch_charge(struct amdgpu_sdma_batch *b,
			     u64 (*work)(const struct amdgpu_sdma_batch *b,
					 u32 job))
{
	const struct amdgpu_sdma_batch_limits *l;
	struct amdgpu_sdma_batch_charge charge;
	struct amdgpu_sdma_batch_note *note;
	unsigned int i;

	l = amdgpu_sdma_batch_limits(b->adev);
	charge.jobs = b->num_engines;
	charge.max_work = l->max_work;
	charge.nonblock = b->nonblock;
	charge.hangs = b->bctx->hangs;
	charge.longest_wait = 0;
	if (b->plan.waits)
		charge.longest_wait = amdgpu_sdma_batch_longest_wait(l,
								     &b->plan);
	for (i = 0; i < b->num_engines; i++) {
		charge.engines[i] = b->engines[i]->instance;
		charge.work[i] = work(b, i);
	}
	note = amdgpu_sdma_batch_note_create(b->adev, b->fpriv, &charge);
	if (IS_ERR(note))
		return PTR_ERR(note);
	b->note = note;
	return 0;
}

/**
 * amdgpu_sdma_batch_alloc_job - allocate the next job
 * @b: call
 * @ibs: number of IBs that it needs
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_alloc_job(struct amdgpu_sdma_batch *b, u32 ibs)
{
	struct amdgpu_sdma_batch_engine *e = b->engines[b->num_jobs];
	u8 isolation = b->adev->enforce_isolation[b->fpriv->xcp_id];
	struct amdgpu_vm *vm = &b->fpriv->vm;
	struct amdgpu_job *job;
	int r;

	r = amdgpu_sdma_batch_engine_error(b->bctx, e);
	if (r)
		return r;
	r = amdgpu_job_alloc(b->adev, vm, &e->entity, vm, ibs,
			     b->filp->client_id, GFP_KERNEL, &job);
	if (r)
		return r;
	job->flush_by_seq = true;
	job->enforce_isolation = isolation != AMDGPU_ENFORCE_ISOLATION_DISABLE;
	job->run_cleaner_shader = isolation == AMDGPU_ENFORCE_ISOLATION_ENABLE;
	b->jobs[b->num_jobs++] = job;
	/* The VM's memory has been lost since the context was made. */
	return b->ctx->generation == job->generation ? 0 : -ECANCELED;
}

static int alloc_batch_jobs(struct amdgpu_sdma_batch *b)
{
	int r = 0;

	while (!r && b->num_jobs < b->num_engines)
		r = amdgpu_sdma_batch_alloc_job(b, AMDGPU_SDMA_MAX_IBS);
	return r;
}

static void signal_outs(struct amdgpu_sdma_batch *b, struct dma_fence *fence)
{
	unsigned int i;

	for (i = 0; i < b->num_outs; i++) {
		struct amdgpu_sdma_batch_out *out = &b->outs[i];

		if (out->chain)
			drm_syncobj_add_point(out->syncobj, out->chain, fence,
					      out->point);
		else
			drm_syncobj_replace_fence(out->syncobj, fence);
		out->chain = NULL;
	}
}

static void trace_batch(struct amdgpu_sdma_batch *b,
			const struct dma_fence *fence)
{
	unsigned int i;

	trace_amdgpu_sdma_batch_submit(&b->plan, b->args->engines_used, fence);
	if (!trace_amdgpu_sdma_batch_job_enabled())
		return;
	for (i = 0; i < b->num_jobs; i++)
		trace_amdgpu_sdma_batch_job(fence, b->engines[i]->instance,
					    &b->jobs[i]->base.s_fence->finished);
}

/*
 * The notifier of a GEM user pointer waits for the fences of the VM, after it
 * has taken a lock of the device. So they come first, and the lock is released
 * before the buffers' fences are added: there may be many. Those of the VM are
 * added again then, which changes nothing.
 */
static void fence_vm(struct amdgpu_sdma_batch *b)
{
	struct dma_resv *resv = b->fpriv->vm.root.bo->tbo.base.resv;
	unsigned int i;

	for (i = 0; i < b->num_jobs; i++)
		dma_resv_add_fence(resv, &b->jobs[i]->base.s_fence->finished,
				   DMA_RESV_USAGE_WRITE);
}

static void arm_batch_jobs(struct amdgpu_sdma_batch *b)
{
	unsigned int i;

	for (i = 0; i < b->num_jobs; i++) {
		drm_sched_job_arm(&b->jobs[i]->base);
		b->args->engines_used |= BIT(b->engines[i]->instance);
	}
	amdgpu_sdma_batch_note_arm(b->note, b->jobs, b->num_jobs, &b->plan,
				   b->joined);
	b->note = NULL;
	if (b->joined)
		amdgpu_sdma_batch_fence_arm(b->joined, b->jobs);
}

static void push_batch_jobs(struct amdgpu_sdma_batch *b)
{
	unsigned int i;

	for (i = 0; i < b->num_jobs; i++) {
		amdgpu_job_free_resources(b->jobs[i]);
		drm_sched_entity_push_job(&b->jobs[i]->base);
	}
	b->num_jobs = 0;
}

/**
 * amdgpu_sdma_batch_commit - hand the jobs to the scheduler
 * @b: call that has done everything else
 *
 * The lock of the VM, which all batches of the file take, keeps armed jobs in
 * the order in which they are pushed.
 *
 * Returns: a reference to the batch's fence; or -EAGAIN if memory of the
 * process was taken away, and the call has to start again; or another error of
 * amdgpu_sdma_user_pages_lock().
 */
struct dma_fence *amdgpu_sdma_batch_commit(struct amdgpu_sdma_batch *b)
{
	struct dma_fence *fence;
	bool cookie;
	int r;

	r = amdgpu_sdma_user_pages_lock(b);
	if (r)
		return ERR_PTR(r);
	/*
	 * Nothing can fail from here on, and nothing may wait for a fence or
	 * for memory: the fences of jobs that do not run yet become visible.
	 */
	cookie = dma_fence_begin_signalling();
	arm_batch_jobs(b);
	fence = b->joined ? b->joined : &b->jobs[0]->base.s_fence->finished;
	dma_fence_get(fence);
	fence_vm(b);
	amdgpu_sdma_user_pages_unlock_device(b);
	amdgpu_sdma_batch_fence_bos(b);
	signal_outs(b, fence);
	trace_batch(b, fence);
	push_batch_jobs(b);
	dma_fence_end_signalling(cookie);
	amdgpu_vm_move_to_lru_tail(b->adev, &b->fpriv->vm);
	amdgpu_sdma_user_pages_unlock(b);
	return fence;
}

static int get_packet_memory(struct amdgpu_sdma_batch *b)
{
	struct amdgpu_sdma_chunk *chunk;

	chunk = amdgpu_sdma_chunk_get(b->adev, b->fpriv,
				      amdgpu_sdma_batch_packet_bytes(b),
				      b->plan.waits, b->nonblock);
	if (IS_ERR(chunk))
		return PTR_ERR(chunk);
	b->chunk = chunk;
	return b->plan.bounces ?
		amdgpu_sdma_scratch_get(b->adev, b->fpriv, &b->scratch) : 0;
}

static int copy_and_plan(struct amdgpu_sdma_batch *b)
{
	int r;

	r = amdgpu_sdma_batch_find_context(b, b->args->engine_mask);
	if (!r)
		r = amdgpu_sdma_batch_copy_descs(b);
	if (!r)
		r = amdgpu_sdma_batch_copy_fences(b);
	return r ? r : amdgpu_sdma_batch_make_plan(b);
}

/**
 * amdgpu_sdma_batch_share_work - what a share of a batch is charged
 * @b: call that knows the room for its packets
 * @share: which
 *
 * Returns: bytes, see amdgpu_sdma_batch_work().
 */
u64 amdgpu_sdma_batch_share_work(const struct amdgpu_sdma_batch *b, u32 share)
{
	return amdgpu_sdma_batch_work(amdgpu_sdma_batch_limits(b->adev),
				      &b->plan, share, b->share_bytes[share]);
}

/* The call waits for earlier batches here, while it holds no reservation. */
static int get_batch_caps(struct amdgpu_sdma_batch *b)
{
	int r = get_packet_memory(b);

	if (r)
		return r;
	amdgpu_sdma_batch_pick_engines(b, b->plan.shares);
	return amdgpu_sdma_batch_charge(b, amdgpu_sdma_batch_share_work);
}

static int lock_batch_memory(struct amdgpu_sdma_batch *b)
{
	int r;

	r = amdgpu_sdma_batch_lock(b, amdgpu_sdma_batch_lock_ranges);
	if (!r)
		r = amdgpu_sdma_batch_validate(b);
	if (!r)
		r = amdgpu_sdma_batch_check_adds(b);
	if (!r)
		r = amdgpu_sdma_batch_count_path(b);
	return r;
}

static int make_batch_jobs(struct amdgpu_sdma_batch *b)
{
	int r;

	r = alloc_batch_jobs(b);
	if (!r)
		r = amdgpu_sdma_batch_update_vm(b);
	if (!r)
		r = amdgpu_sdma_batch_sync_jobs(b);
	if (!r)
		r = amdgpu_sdma_batch_build(b);
	/* Last: nothing between this and the commit may use up fence slots. */
	return r ? r : amdgpu_sdma_batch_reserve_fences(b);
}

static void give_fence(struct amdgpu_sdma_batch *b, struct dma_fence *fence)
{
	if (b->fence)
		*b->fence = fence;
	else
		dma_fence_put(fence);
}

static int amdgpu_sdma_batch_submit(struct amdgpu_sdma_batch *b)
{
	struct dma_fence *fence;
	int r;

	r = copy_and_plan(b);
	if (!r)
		r = get_batch_caps(b);
	if (!r)
		r = lock_batch_memory(b);
	if (!r)
		r = make_batch_jobs(b);
	if (!r) {
		fence = amdgpu_sdma_batch_commit(b);
		r = PTR_ERR_OR_ZERO(fence);
	}
	if (!r) {
		amdgpu_sdma_chunk_put(b->fpriv, b->chunk, fence);
		b->chunk = NULL;
		give_fence(b, fence);
	}
	if (b->chunk)
		amdgpu_sdma_chunk_put(b->fpriv, b->chunk, NULL);
	return r;
}

/* Frees all but the chunk, which each operation returns to where it is from. */
static void cleanup_batch(struct amdgpu_sdma_batch *b)
{
	unsigned int i;

	for (i = 0; i < b->num_jobs; i++)
		amdgpu_job_free(b->jobs[i]);
	amdgpu_sdma_svm_unreserve(b);
	if (b->exec_ready)
		drm_exec_fini(&b->exec);
	amdgpu_sdma_batch_put_fences(b);
	amdgpu_sdma_batch_note_free(b->note);
	dma_fence_put(b->joined);
	if (b->syncs)
		amdgpu_sync_free(&b->sync);
	if (b->bo_vas != b->few)
		kvfree(b->bo_vas);
	kvfree(b->own_svm.ranges);
	kvfree(b->descs);
	if (b->ctx)
		amdgpu_ctx_put(b->ctx);
}

static int do_batch(struct amdgpu_sdma_batch *b)
{
	struct dma_fence *fence = NULL;
	int r;

	switch (b->args->op) {
	case AMDGPU_SDMA_BATCH_FORGET:
		return amdgpu_sdma_prepared_forget(b->fpriv, b->args->handle);
	case AMDGPU_SDMA_BATCH_PREPARE:
		return amdgpu_sdma_batch_prepare(b);
	case AMDGPU_SDMA_BATCH_RUN:
		r = amdgpu_sdma_batch_run(b, &fence);
		if (!r)
			give_fence(b, fence);
		return r;
	default:
		return amdgpu_sdma_batch_submit(b);
	}
}

static void clear_results(struct drm_amdgpu_sdma_batch *args)
{
	args->error_index = AMDGPU_SDMA_NO_INDEX;
	args->error_index2 = AMDGPU_SDMA_NO_INDEX;
	args->error_array = AMDGPU_SDMA_ERROR_NONE;
	args->engines_used = 0;
	args->vram_bytes = 0;
	args->system_bytes = 0;
	args->peer_bytes = 0;
}

/* Only a successful call has a path. An index is of descriptors by default. */
static void complete_results(struct drm_amdgpu_sdma_batch *args, int r)
{
	if (r) {
		args->vram_bytes = 0;
		args->system_bytes = 0;
		args->peer_bytes = 0;
	}
	if (args->error_index != AMDGPU_SDMA_NO_INDEX &&
	    args->error_array == AMDGPU_SDMA_ERROR_NONE)
		args->error_array = AMDGPU_SDMA_ERROR_DESC;
}

/* Starts from the beginning, with the process memory obtained so far. */
static int try_batch(struct amdgpu_sdma_batch *b, struct amdgpu_device *adev,
		     struct drm_file *filp, struct drm_amdgpu_sdma_batch *args,
		     bool nonblock, struct dma_fence **fence,
		     struct amdgpu_sdma_user_pages *user)
{
	int r;

	clear_results(args);
	/* A run of a prepared batch copies what it needs: see copy_totals(). */
	memset(b, 0, args->op == AMDGPU_SDMA_BATCH_RUN ?
		     offsetof(struct amdgpu_sdma_batch, plan) :
		     offsetof(struct amdgpu_sdma_batch, plan.end));
	b->bo_vas = b->few;
	b->max_bo_vas = AMDGPU_SDMA_FEW_BOS;
	b->adev = adev;
	b->fpriv = filp->driver_priv;
	b->filp = filp;
	b->args = args;
	b->nonblock = nonblock || args->flags & AMDGPU_SDMA_BATCH_NONBLOCK;
	b->fence = fence;
	b->user = user;
	b->svm = &b->own_svm;
	amdgpu_vm_set_task_info(&b->fpriv->vm);
	r = do_batch(b);
	complete_results(args, r);
	cleanup_batch(b);
	amdgpu_sdma_prepared_end(b);
	return r;
}

/*
 * The first attempt of io_uring holds the lock of the ring, so what may migrate
 * memory is left to a worker, unless the caller does not want to wait: then
 * there is no worker. Pages of user pointers, and of ranges that a reset has
 * unmapped, are got in any attempt.
 */
static bool starts_again(const struct amdgpu_sdma_user_pages *user,
			 const struct drm_amdgpu_sdma_batch *args,
			 bool nonblock)
{
	if (nonblock && !(args->flags & AMDGPU_SDMA_BATCH_NONBLOCK) &&
	    amdgpu_sdma_svm_faults_in(&user->svm))
		return false;
	return user->again;
}

static int call_batch(struct drm_device *dev, struct drm_file *filp,
		      struct drm_amdgpu_sdma_batch *args, bool nonblock,
		      struct dma_fence **fence)
{
	struct amdgpu_device *adev = drm_to_adev(dev);
	struct amdgpu_sdma_user_pages user;
	struct amdgpu_sdma_batch *b;
	int r;

	clear_results(args);
	if (amdgpu_ras_intr_triggered())
		return -EHWPOISON;
	if (!adev->accel_working)
		return -EBUSY;
	r = amdgpu_sdma_batch_check_args(args);
	if (r)
		return r;
	b = kmalloc_obj(*b, GFP_KERNEL_ACCOUNT);
	if (!b)
		return -ENOMEM;
	amdgpu_sdma_user_pages_init(&user);
	do {
		r = try_batch(b, adev, filp, args, nonblock, fence, &user);
		if (r != -EAGAIN || !starts_again(&user, args, nonblock))
			break;
		r = amdgpu_sdma_user_pages_get(&user, args);
	} while (!r);
	amdgpu_sdma_user_pages_fini(&user);
	kfree(b);
	return r;
}

/**
 * amdgpu_sdma_batch_ioctl - DRM_IOCTL_AMDGPU_SDMA_BATCH
 * @dev: device
 * @data: &struct drm_amdgpu_sdma_batch
 * @filp: file
 *
 * Returns: 0 if the batch runs or will run, or is prepared or forgotten; else
 * an error, and nothing was done.
 */
int amdgpu_sdma_batch_ioctl(struct drm_device *dev, void *data,
			    struct drm_file *filp)
{
	int r = call_batch(dev, filp, data, false, NULL);

	/*
	 * A signal came while the call waited for a lock. Nothing was done, so
	 * the call can be restarted, if the signal's handler wants that.
	 */
	return r == -EINTR ? -ERESTARTSYS : r;
}

/**
 * amdgpu_sdma_batch_call - the same for a caller that wants the fence
 * @dev: device
 * @data: &struct amdgpu_sdma_batch_call
 * @filp: file
 *
 * Returns: as amdgpu_sdma_batch_ioctl().
 */
int amdgpu_sdma_batch_call(struct drm_device *dev, void *data,
			   struct drm_file *filp)
{
	struct amdgpu_sdma_batch_call *call = data;

	return call_batch(dev, filp, &call->args, call->nonblock, &call->fence);
}
