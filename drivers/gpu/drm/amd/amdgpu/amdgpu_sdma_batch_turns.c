// SPDX-License-Identifier: MIT
/**
 * DOC: Waits of SDMA batches take turns
 *
 * A wait keeps its engine from everybody. How long one wait lasts is bounded,
 * but any number of files may submit waits. So an engine has one job with a wait
 * at a time in its ring: the next one stays with the scheduler until it is its
 * turn. If others had work for the engine meanwhile, the next turn comes only
 * after a pause: as long as the last job was on the engine, or as its waits may
 * last at most, if that is less. So waiting takes half of an engine's time at
 * most: a job without waits is behind one wait, and then has its turn.
 *
 * A job takes its turn when the scheduler gives it to the ring, when all that it
 * depends on has ended and it has a VMID. So a user who holds back an in-fence holds back his own
 * batch and nobody's turn. Turns are taken in the order of submission.
 *
 * A turn is a fence that others depend on. It signals when its job has ended,
 * which is bounded by the engine, or by a timer behind that: nothing that user
 * space can hold back is in front of it.
 */

#include <linux/dma-fence.h>
#include <linux/hrtimer.h>
#include <linux/slab.h>

#include "amdgpu.h"
#include "amdgpu_sdma_batch_stats.h"
#include "amdgpu_sdma_batch_turns.h"

/**
 * struct amdgpu_sdma_turn - a job's turn to wait
 * @base: signals when the next job may wait
 * @lock: of @base
 * @timer: signals @base; has a reference while it runs
 * @turns: of the device
 * @engine: instance; of a turn that was taken
 * @others: of the engine, when the turn was taken
 * @taken: the job was given to the engine
 */
struct amdgpu_sdma_turn {
	struct dma_fence base;
	spinlock_t lock; /* of base */
	struct hrtimer timer;
	struct amdgpu_sdma_turns *turns;
	u32 engine;
	u32 others;
	bool taken;
};

static const char *turn_driver_name(struct dma_fence *fence)
{
	return "amdgpu";
}

static const char *turn_timeline_name(struct dma_fence *fence)
{
	return "sdma turn";
}

static const struct dma_fence_ops turn_ops = {
	.get_driver_name = turn_driver_name,
	.get_timeline_name = turn_timeline_name,
};

static enum hrtimer_restart turn_pause_ended(struct hrtimer *timer)
{
	struct amdgpu_sdma_turn *turn = container_of(timer,
						     struct amdgpu_sdma_turn,
						     timer);

	dma_fence_signal(&turn->base);
	dma_fence_put(&turn->base);
	return HRTIMER_NORESTART;
}

void amdgpu_sdma_turns_init(struct amdgpu_sdma_turns *turns)
{
	spin_lock_init(&turns->lock);
}

/* The schedulers are gone: no job takes a turn or ends any more. */
void amdgpu_sdma_turns_fini(struct amdgpu_sdma_turns *turns)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(turns->engines); i++) {
		struct amdgpu_sdma_turn *turn = turns->engines[i].turn;

		if (!turn)
			continue;
		if (hrtimer_cancel(&turn->timer))
			turn_pause_ended(&turn->timer);
		amdgpu_sdma_turn_put(turn);
	}
}

/**
 * amdgpu_sdma_turn_create - prepare a job's turn
 * @turns: of the device
 *
 * Returns: a turn, or NULL without memory.
 */
struct amdgpu_sdma_turn *
amdgpu_sdma_turn_create(struct amdgpu_sdma_turns *turns)
{
	struct amdgpu_sdma_turn *turn;

	turn = kzalloc_obj(*turn, GFP_KERNEL_ACCOUNT);
	if (!turn)
		return NULL;
	spin_lock_init(&turn->lock);
	turn->turns = turns;
	hrtimer_setup(&turn->timer, turn_pause_ended, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL);
	dma_fence_init(&turn->base, &turn_ops, &turn->lock,
		       dma_fence_context_alloc(1), 1);
	return turn;
}

/**
 * amdgpu_sdma_turn_put - drop a reference
 * @turn: turn, or NULL
 */
void amdgpu_sdma_turn_put(struct amdgpu_sdma_turn *turn)
{
	if (turn)
		dma_fence_put(&turn->base);
}

/**
 * amdgpu_sdma_turn_before - whose turn a job has to wait for
 * @ring: ring
 * @turn: of the job, or NULL if it does not wait
 *
 * Returns: NULL if the job may take its turn, or a fence to wait for.
 */
struct dma_fence *amdgpu_sdma_turn_before(struct amdgpu_ring *ring,
					  struct amdgpu_sdma_turn *turn)
{
	struct amdgpu_sdma_turns *turns = amdgpu_sdma_batch_turns(ring->adev);
	struct amdgpu_sdma_turn *before;
	struct dma_fence *fence = NULL;

	if (!turn || turn->taken)
		return NULL;
	spin_lock(&turns->lock);
	before = turns->engines[ring->me].turn;
	if (before && !dma_fence_is_signaled(&before->base))
		fence = dma_fence_get(&before->base);
	spin_unlock(&turns->lock);
	return fence;
}

/**
 * amdgpu_sdma_turn_take - a job is given to an SDMA ring
 * @ring: ring
 * @turn: of the job, or NULL if it does not wait
 *
 * In the same call of the scheduler as amdgpu_sdma_turn_before(), and last: the
 * job is in the ring next, where its end is bounded. The scheduler prepares one
 * job of a ring at a time, so nobody comes in between.
 */
void amdgpu_sdma_turn_take(struct amdgpu_ring *ring,
			   struct amdgpu_sdma_turn *turn)
{
	struct amdgpu_sdma_turns *turns = amdgpu_sdma_batch_turns(ring->adev);
	typeof(turns->engines[0]) *e = &turns->engines[ring->me];
	struct amdgpu_sdma_turn *before;

	if (!turn) {
		WRITE_ONCE(e->others, e->others + 1);
		return;
	}
	if (turn->taken)
		return;
	dma_fence_get(&turn->base);
	spin_lock(&turns->lock);
	before = e->turn;
	e->turn = turn;
	spin_unlock(&turns->lock);
	turn->engine = ring->me;
	turn->others = READ_ONCE(e->others);
	turn->taken = true;
	amdgpu_sdma_turn_put(before);
}

/**
 * amdgpu_sdma_turn_end - a job has ended
 * @turn: of the job, taken or not; or NULL
 * @pause: until the next turn, if others had work for the engine
 *
 * May be called in an interrupt.
 */
void amdgpu_sdma_turn_end(struct amdgpu_sdma_turn *turn, ktime_t pause)
{
	if (!turn || !turn->taken)
		return;
	/* The ring has room for another job, so these came to it meanwhile. */
	if (READ_ONCE(turn->turns->engines[turn->engine].others) ==
	    turn->others) {
		dma_fence_signal(&turn->base);
		return;
	}
	dma_fence_get(&turn->base);
	hrtimer_start(&turn->timer, pause, HRTIMER_MODE_REL);
}
