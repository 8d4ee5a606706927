// SPDX-License-Identifier: MIT
/*
 * Where SDMA batches run and when they end: scheduler entities of a context,
 * and the fence that joins a batch's jobs.
 */

#include <linux/dma-fence.h>

#include "amdgpu.h"
#include "amdgpu_ctx.h"
#include "amdgpu_sdma_batch.h"
#include "amdgpu_sdma_batch_ctx.h"
#include "amdgpu_sdma_batch_stats.h"
#include "amdgpu_sdma_plan.h"

#define CREATE_TRACE_POINTS
#include "amdgpu_sdma_batch_trace.h"

/* Whether user space may submit to it: not to the kernel's own queue. */
static bool usable(struct drm_gpu_scheduler *sched)
{
	struct amdgpu_ring *ring = to_amdgpu_ring(sched);
	struct amdgpu_sdma *sdma = &ring->adev->sdma;

	if (ring->no_user_submission || !sched->ready ||
	    ring->me >= sdma->num_instances)
		return false;
	return ring == &sdma->instance[ring->me].ring;
}

static int batch_ctx_add(struct amdgpu_sdma_batch_ctx *bctx,
			 struct drm_gpu_scheduler *sched,
			 enum drm_sched_priority priority)
{
	struct amdgpu_sdma_batch_engine *e = &bctx->engines[bctx->num];
	int r;

	e->sched = sched;
	e->instance = to_amdgpu_ring(sched)->me;
	r = drm_sched_entity_init(&e->entity, priority, &e->sched, 1, NULL);
	if (r)
		return r;
	bctx->num++;
	bctx->instances |= BIT(e->instance);
	return 0;
}

static void batch_ctx_free(struct amdgpu_sdma_batch_ctx *bctx)
{
	u32 i;

	for (i = 0; i < bctx->num; i++)
		drm_sched_entity_destroy(&bctx->engines[i].entity);
	amdgpu_sdma_hangs_put(bctx->hangs);
	kfree(bctx);
}

static struct amdgpu_sdma_batch_ctx *
batch_ctx_create(struct drm_sched_entity *entity,
		 enum drm_sched_priority priority)
{
	struct drm_gpu_scheduler *one = entity->rq->sched, **list = &one;
	u32 i, num = entity->num_sched_list;
	struct amdgpu_sdma_batch_ctx *bctx;
	int r = -EOPNOTSUPP;

	/* An entity with only one scheduler keeps no list. */
	if (entity->sched_list)
		list = entity->sched_list;
	bctx = kzalloc(struct_size(bctx, engines, num), GFP_KERNEL_ACCOUNT);
	if (!bctx)
		return ERR_PTR(-ENOMEM);
	bctx->hangs = amdgpu_sdma_hangs_create();
	if (!bctx->hangs) {
		kfree(bctx);
		return ERR_PTR(-ENOMEM);
	}
	for (i = 0; i < num; i++) {
		if (!usable(list[i]))
			continue;
		r = batch_ctx_add(bctx, list[i], priority);
		if (r)
			break;
	}
	if (!r)
		return bctx;
	batch_ctx_free(bctx);
	return ERR_PTR(r);
}

/*
 * Two threads may submit a context's first batch. Also, a thread may override
 * the priority meanwhile: it either finds the engines, or has stored its value
 * before they are published here. Returns false if the priority has changed.
 */
static bool batch_ctx_publish(struct amdgpu_ctx *ctx,
			      struct amdgpu_sdma_batch_ctx *bctx,
			      enum drm_sched_priority priority)
{
	bool ok;

	spin_lock(&ctx->ring_lock);
	ok = ctx->sdma_batch || amdgpu_ctx_sched_priority(ctx) == priority;
	if (!ctx->sdma_batch && ok)
		/* Readers of the pointer do not take the lock. */
		smp_store_release(&ctx->sdma_batch, bctx);
	spin_unlock(&ctx->ring_lock);
	return ok;
}

/**
 * amdgpu_sdma_batch_ctx_get - the engines of a context
 * @ctx: context
 *
 * They come from the context's own SDMA entity, which has chosen a partition of
 * the device and keeps it.
 *
 * Returns: engines, which live as long as @ctx, or an ERR_PTR(): -EOPNOTSUPP if
 * user space may not submit to any.
 */
struct amdgpu_sdma_batch_ctx *amdgpu_sdma_batch_ctx_get(struct amdgpu_ctx *ctx)
{
	struct amdgpu_sdma_batch_ctx *bctx = READ_ONCE(ctx->sdma_batch);
	enum drm_sched_priority priority;
	struct drm_sched_entity *entity;
	bool ok;
	int r;

	if (bctx)
		return bctx;
	r = amdgpu_ctx_get_entity(ctx, AMDGPU_HW_IP_DMA, 0, 0, &entity);
	if (r)
		return ERR_PTR(r);
	do {
		priority = amdgpu_ctx_sched_priority(ctx);
		bctx = batch_ctx_create(entity, priority);
		if (IS_ERR(bctx))
			return bctx;
		ok = batch_ctx_publish(ctx, bctx, priority);
		if (READ_ONCE(ctx->sdma_batch) != bctx)
			batch_ctx_free(bctx);
	} while (!ok);
	return READ_ONCE(ctx->sdma_batch);
}

void amdgpu_sdma_batch_ctx_fini(struct amdgpu_ctx *ctx)
{
	if (ctx->sdma_batch)
		batch_ctx_free(ctx->sdma_batch);
	ctx->sdma_batch = NULL;
}

long amdgpu_sdma_batch_ctx_flush(struct amdgpu_ctx *ctx, long timeout)
{
	struct amdgpu_sdma_batch_ctx *bctx = READ_ONCE(ctx->sdma_batch);
	u32 i;

	for (i = 0; bctx && i < bctx->num; i++)
		timeout = drm_sched_entity_flush(&bctx->engines[i].entity,
						 timeout);
	return timeout;
}

/* True if one of the context's batches hung an engine. */
bool amdgpu_sdma_batch_ctx_guilty(struct amdgpu_ctx *ctx)
{
	struct amdgpu_sdma_batch_ctx *bctx = READ_ONCE(ctx->sdma_batch);
	u32 i;

	if (!bctx)
		return false;
	/* A job that hangs has its error before it ends, which a reset does. */
	for (i = 0; i < bctx->num; i++)
		if (drm_sched_entity_error(&bctx->engines[i].entity) == -ETIME)
			return true;
	return READ_ONCE(bctx->hangs->engines);
}

/**
 * amdgpu_sdma_batch_engine_error - why a context can use an engine no more
 * @bctx: context
 * @e: one of its engines
 *
 * Returns: 0, -ETIME after a hang, -ECANCELED if the process was killed, or the
 * error of the last job.
 */
int amdgpu_sdma_batch_engine_error(struct amdgpu_sdma_batch_ctx *bctx,
				   struct amdgpu_sdma_batch_engine *e)
{
	/* A process that shares the file was killed, and the context with it. */
	if (READ_ONCE(e->entity.stopped))
		return -ECANCELED;
	if (test_bit(e->instance, &bctx->hangs->engines))
		return -ETIME;
	return drm_sched_entity_error(&e->entity);
}

/* Under the lock that batch_ctx_publish() takes, so no engines are missed. */
void amdgpu_sdma_batch_ctx_set_priority(struct amdgpu_ctx *ctx,
					enum drm_sched_priority priority)
{
	struct amdgpu_sdma_batch_ctx *bctx = ctx->sdma_batch;
	u32 i;

	lockdep_assert_held(&ctx->ring_lock);
	for (i = 0; bctx && i < bctx->num; i++)
		drm_sched_entity_set_priority(&bctx->engines[i].entity,
					      priority);
}

struct batch_fence;

/* Called when one job has ended. */
struct batch_fence_cb {
	struct dma_fence_cb cb;
	struct batch_fence *fence;
};

/**
 * struct batch_fence - the end of all jobs of a batch
 * @base: fence
 * @lock: of @base
 * @pending: number of jobs that have not ended
 * @error: error of the first job that failed
 * @slots: the shares' slots, where waits leave their result
 * @num_slots: number of @slots, 0 if the batch has no waits
 * @num: number of jobs
 * @cbs: one for each job
 */
struct batch_fence {
	struct dma_fence base;
	spinlock_t lock; /* of base */
	atomic_t pending;
	int error;
	const u32 *slots;
	unsigned int num_slots;
	unsigned int num;
	struct batch_fence_cb cbs[] __counted_by(num);
};

static const char *batch_fence_driver_name(struct dma_fence *fence)
{
	return "amdgpu";
}

static const char *batch_fence_timeline_name(struct dma_fence *fence)
{
	return "sdma batch";
}

static const struct dma_fence_ops batch_fence_ops = {
	.get_driver_name = batch_fence_driver_name,
	.get_timeline_name = batch_fence_timeline_name,
};

static int batch_fence_status(const struct batch_fence *f)
{
	unsigned int i;

	/* The scheduler's error for a hang must not look like a wait's. */
	if (f->error)
		return f->error == -ETIME ? -EIO : f->error;
	for (i = 0; i < f->num_slots; i++) {
		const u32 *slot = f->slots +
				  i * AMDGPU_SDMA_SLOT_SIZE / sizeof(u32);

		if (READ_ONCE(slot[AMDGPU_SDMA_SLOT_STATUS / sizeof(u32)]) !=
		    AMDGPU_SDMA_STATUS_OK)
			return -ETIME;
	}
	return 0;
}

/*
 * The slots still exist: the reservation of their memory holds this fence, so
 * the memory is neither moved nor freed before the signal below.
 */
static void batch_fence_job_done(struct dma_fence *job, struct dma_fence_cb *cb)
{
	struct batch_fence *f = container_of(cb, struct batch_fence_cb,
					     cb)->fence;
	int error = job->error;

	if (error)
		cmpxchg(&f->error, 0, error);
	/* Orders the error stores of all jobs before the last job's reads. */
	if (!atomic_dec_and_test(&f->pending))
		return;
	error = batch_fence_status(f);
	trace_amdgpu_sdma_batch_done(&f->base, error);
	if (error)
		dma_fence_set_error(&f->base, error);
	dma_fence_signal(&f->base);
	dma_fence_put(&f->base);
}

/**
 * amdgpu_sdma_batch_fence_create - prepare the fence of several jobs
 * @jobs: not armed yet
 * @num: how many
 * @slots: slots of the batch's shares, if it has waits
 * @num_slots: how many
 *
 * Returns: a fence, or NULL if there is no memory. It may be dropped unused.
 */
struct dma_fence *
amdgpu_sdma_batch_fence_create(struct amdgpu_job *const *jobs, unsigned int num,
			       const u32 *slots, unsigned int num_slots)
{
	struct batch_fence *f;

	f = kzalloc(struct_size(f, cbs, num), GFP_KERNEL_ACCOUNT);
	if (!f)
		return NULL;
	spin_lock_init(&f->lock);
	f->num = num;
	f->slots = slots;
	f->num_slots = num_slots;
	atomic_set(&f->pending, num);
	/* Batches overtake each other: they have no common timeline. */
	dma_fence_init(&f->base, &batch_fence_ops, &f->lock,
		       dma_fence_context_alloc(1), 1);
	return &f->base;
}

/**
 * amdgpu_sdma_batch_fence_arm - let jobs signal the fence
 * @fence: from amdgpu_sdma_batch_fence_create()
 * @jobs: the same, armed and not pushed
 *
 * Cannot fail. The jobs keep a reference until the last of them has ended.
 */
void amdgpu_sdma_batch_fence_arm(struct dma_fence *fence,
				 struct amdgpu_job *const *jobs)
{
	struct batch_fence *f = container_of(fence, struct batch_fence, base);
	unsigned int i;

	dma_fence_get(fence);
	for (i = 0; i < f->num; i++) {
		struct dma_fence *job = &jobs[i]->base.s_fence->finished;

		f->cbs[i].fence = f;
		if (dma_fence_add_callback(job, &f->cbs[i].cb,
					   batch_fence_job_done))
			batch_fence_job_done(job, &f->cbs[i].cb);
	}
}
