// SPDX-License-Identifier: MIT
/**
 * DOC: Waits of SDMA batches take turns
 *
 * A wait occupies its engine. How long one wait lasts is bounded, but any
 * number of files may submit waits. So an engine has one job with a wait at a
 * time in its ring: the next one stays with the scheduler until its turn. If
 * others had work for the engine meanwhile, the next turn comes only after a
 * pause: as long as the last job was on the engine, or as its waits may last at
 * most, if that is less. So waits take at most half of an engine's time: a job
 * without waits queues after one wait, and then has its turn.
 *
 * A job takes its turn when the scheduler gives it to the ring: when all its
 * dependencies have ended and it has a VMID. So a user who holds back an
 * in-fence holds back only their own batch, and no turn of another. Turns are
 * taken in the order of priority, then of submission.
 *
 * A job that finds the engine taken is put in line with a fence of its own, its
 * call, which is a dependency for the scheduler. The end of a turn calls only
 * the first in line, so its cost does not depend on how many jobs wait. A call
 * grants nothing: until a job takes the turn, any job may take it that gets to
 * the ring earlier. So a call may be in vain, and no call may be lost:
 *
 * - a called job that finds the engine taken again gets in line again, and the
 *   end of that turn calls the next;
 * - a called job that has to wait for something else first, such as a VMID,
 *   passes the call on, see amdgpu_sdma_turn_pass();
 * - a called job that fails or is killed passes the call on when it ends.
 *
 * So as long as the engine is free and a job is in line, some job that was
 * called has not asked yet.
 *
 * A call depends on nothing that user space can hold back: it comes when a job
 * has ended, which is bounded by the engine, or from a timer that starts then.
 */

#include <kunit/visibility.h>
#include <linux/dma-fence.h>
#include <linux/hrtimer.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "amdgpu_sdma_batch_turns.h"

/**
 * struct amdgpu_sdma_turn - a job's turn to wait
 * @base: signals when the next job may wait
 * @lock: of @base
 * @timer: signals @base; has a reference while it runs
 * @turns: turns of the device
 * @engine: instance
 * @others: count of other jobs of the engine when the turn was taken
 * @taken: the job was given to the engine
 * @call: fence of the job in line, or for the next time it gets in line; NULL
 *	if it was used
 * @node: place in line, or empty
 * @priority: order in line; a smaller one is first
 * @submitted: order in line among those of the same priority
 */
struct amdgpu_sdma_turn {
	struct dma_fence base;
	spinlock_t lock; /* of base */
	struct hrtimer timer;
	struct amdgpu_sdma_turns *turns;
	u32 engine;
	u32 others;
	bool taken;
	struct dma_fence *call;
	struct rb_node node;
	unsigned int priority;
	ktime_t submitted;
};

static const char *turn_driver_name(struct dma_fence *fence)
{
	return "amdgpu";
}

static const char *turn_timeline_name(struct dma_fence *fence)
{
	return "sdma turn";
}

static void turn_release(struct dma_fence *fence)
{
	dma_fence_put(container_of(fence, struct amdgpu_sdma_turn, base)->call);
	dma_fence_free(fence);
}

static const struct dma_fence_ops turn_ops = {
	.get_driver_name = turn_driver_name,
	.get_timeline_name = turn_timeline_name,
	.release = turn_release,
};

static const struct dma_fence_ops call_ops = {
	.get_driver_name = turn_driver_name,
	.get_timeline_name = turn_timeline_name,
};

static struct dma_fence *call_create(gfp_t gfp)
{
	struct dma_fence *call = kzalloc_obj(*call, gfp);

	if (call)
		dma_fence_init(call, &call_ops, NULL,
			       dma_fence_context_alloc(1), 1);
	return call;
}

/* Consumes the reference. In any context, without the lock of the turns. */
static void call_signal(struct dma_fence *call)
{
	if (call)
		dma_fence_signal(call);
	dma_fence_put(call);
}

static bool goes_first(struct rb_node *a, const struct rb_node *b)
{
	const struct amdgpu_sdma_turn *x, *y;

	x = rb_entry(a, struct amdgpu_sdma_turn, node);
	y = rb_entry(b, struct amdgpu_sdma_turn, node);
	if (x->priority != y->priority)
		return x->priority < y->priority;
	return ktime_before(x->submitted, y->submitted);
}

static bool is_free(const struct amdgpu_sdma_turns_engine *e)
{
	return !e->turn || dma_fence_is_signaled(&e->turn->base);
}

/* Takes a job out of the line, if it is in it. Returns its call, to signal. */
static struct dma_fence *leave_line(struct amdgpu_sdma_turn *turn)
{
	struct dma_fence *call = turn->call;

	lockdep_assert_held(&turn->turns->lock);
	if (RB_EMPTY_NODE(&turn->node))
		return NULL;
	rb_erase_cached(&turn->node, &turn->turns->engines[turn->engine].line);
	RB_CLEAR_NODE(&turn->node);
	turn->call = NULL;
	return call;
}

/* Makes the first job in line ask again, if the engine is free. */
static void call_first(struct amdgpu_sdma_turns *turns, u32 engine)
{
	struct amdgpu_sdma_turns_engine *e = &turns->engines[engine];
	struct dma_fence *call = NULL;
	unsigned long flags;
	struct rb_node *first;

	spin_lock_irqsave(&turns->lock, flags);
	first = rb_first_cached(&e->line);
	if (first && is_free(e))
		call = leave_line(rb_entry(first, struct amdgpu_sdma_turn,
					   node));
	spin_unlock_irqrestore(&turns->lock, flags);
	call_signal(call);
}

/* Jobs that ask after this find the engine free, or were in line before. */
static void turn_over(struct amdgpu_sdma_turn *turn)
{
	dma_fence_signal(&turn->base);
	call_first(turn->turns, turn->engine);
}

static enum hrtimer_restart turn_pause_ended(struct hrtimer *timer)
{
	struct amdgpu_sdma_turn *turn = container_of(timer,
						     struct amdgpu_sdma_turn,
						     timer);

	turn_over(turn);
	dma_fence_put(&turn->base);
	return HRTIMER_NORESTART;
}

void amdgpu_sdma_turns_init(struct amdgpu_sdma_turns *turns)
{
	unsigned int i;

	spin_lock_init(&turns->lock);
	for (i = 0; i < ARRAY_SIZE(turns->engines); i++)
		turns->engines[i].line = RB_ROOT_CACHED;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turns_init);

/**
 * amdgpu_sdma_turns_fini - the device goes away
 * @turns: of the device
 *
 * The schedulers are gone: no job takes a turn any more. A killed job that
 * depends on another device may still end, without a turn, and be in line
 * until then.
 */
void amdgpu_sdma_turns_fini(struct amdgpu_sdma_turns *turns)
{
	struct amdgpu_sdma_turn *turn;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(turns->engines); i++) {
		spin_lock_irq(&turns->lock);
		turn = turns->engines[i].turn;
		turns->engines[i].turn = NULL;
		spin_unlock_irq(&turns->lock);
		if (turn && hrtimer_cancel(&turn->timer))
			turn_pause_ended(&turn->timer);
		amdgpu_sdma_turn_put(turn);
	}
	/* An earlier turn's timer interrupt may not have quite ended. */
	synchronize_rcu();
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turns_fini);

/**
 * amdgpu_sdma_turn_create - prepare a job's turn
 * @turns: of the device; they stay until the job has ended
 * @engine: instance that the job is for
 *
 * Returns: a turn, or NULL if there is no memory.
 */
struct amdgpu_sdma_turn *
amdgpu_sdma_turn_create(struct amdgpu_sdma_turns *turns, u32 engine)
{
	struct amdgpu_sdma_turn *turn;

	turn = kzalloc_obj(*turn, GFP_KERNEL_ACCOUNT);
	if (!turn)
		return NULL;
	spin_lock_init(&turn->lock);
	turn->turns = turns;
	turn->engine = engine;
	RB_CLEAR_NODE(&turn->node);
	hrtimer_setup(&turn->timer, turn_pause_ended, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL);
	dma_fence_init(&turn->base, &turn_ops, &turn->lock,
		       dma_fence_context_alloc(1), 1);
	turn->call = call_create(GFP_KERNEL_ACCOUNT);
	if (turn->call)
		return turn;
	amdgpu_sdma_turn_put(turn);
	return NULL;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turn_create);

/**
 * amdgpu_sdma_turn_put - drop a reference
 * @turn: turn, or NULL
 */
void amdgpu_sdma_turn_put(struct amdgpu_sdma_turn *turn)
{
	if (turn)
		dma_fence_put(&turn->base);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turn_put);

static struct dma_fence *get_in_line(struct amdgpu_sdma_turns_engine *e,
				     struct amdgpu_sdma_turn *turn)
{
	/*
	 * Only a job that was called in vain has no call. Fences may depend on
	 * this, so it must not wait for memory. Without memory, the end of the
	 * turn wakes the job, in addition to the job that is called.
	 */
	if (!turn->call)
		turn->call = call_create(GFP_NOWAIT);
	if (!turn->call)
		return dma_fence_get(&e->turn->base);
	if (RB_EMPTY_NODE(&turn->node))
		rb_add_cached(&turn->node, &e->line, goes_first);
	return dma_fence_get(turn->call);
}

/**
 * amdgpu_sdma_turn_before - what a job has to wait for
 * @turn: of the job, or NULL if the job has no wait
 * @priority: of the job; a smaller one is first
 * @submitted: when the job was submitted
 *
 * Returns: NULL if the job may take its turn, or a fence to wait for.
 */
struct dma_fence *amdgpu_sdma_turn_before(struct amdgpu_sdma_turn *turn,
					  unsigned int priority,
					  ktime_t submitted)
{
	struct amdgpu_sdma_turns_engine *e;
	struct dma_fence *fence = NULL;
	unsigned long flags;

	if (!turn)
		return NULL;
	e = &turn->turns->engines[turn->engine];
	spin_lock_irqsave(&turn->turns->lock, flags);
	if (!is_free(e)) {
		turn->priority = priority;
		turn->submitted = submitted;
		fence = get_in_line(e, turn);
	}
	spin_unlock_irqrestore(&turn->turns->lock, flags);
	return fence;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turn_before);

/**
 * amdgpu_sdma_turn_pass - a job does not take the turn that it may take
 * @turn: of the job, or NULL if the job has no wait
 *
 * The job has to wait for something else, and asks again. If it was called, the
 * next in line is called instead.
 */
void amdgpu_sdma_turn_pass(struct amdgpu_sdma_turn *turn)
{
	if (turn)
		call_first(turn->turns, turn->engine);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turn_pass);

/**
 * amdgpu_sdma_turn_take - a job is given to an SDMA ring
 * @turns: of the device
 * @engine: instance
 * @turn: of the job, or NULL if the job has no wait
 *
 * Called with amdgpu_sdma_turn_before() in one call of the scheduler, and last:
 * the job is in the ring next, where its end is bounded. The scheduler prepares
 * one job of a ring at a time, so no other job comes in between.
 */
void amdgpu_sdma_turn_take(struct amdgpu_sdma_turns *turns, u32 engine,
			   struct amdgpu_sdma_turn *turn)
{
	struct amdgpu_sdma_turns_engine *e = &turns->engines[engine];
	struct amdgpu_sdma_turn *before;
	unsigned long flags;

	if (!turn) {
		WRITE_ONCE(e->others, e->others + 1);
		return;
	}
	/* Otherwise the jobs in line for @engine would not be called. */
	WARN_ON_ONCE(turn->engine != engine);
	dma_fence_get(&turn->base);
	turn->others = READ_ONCE(e->others);
	turn->taken = true;
	spin_lock_irqsave(&turns->lock, flags);
	before = e->turn;
	e->turn = turn;
	spin_unlock_irqrestore(&turns->lock, flags);
	amdgpu_sdma_turn_put(before);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turn_take);

/* A job must not wait for its call forever. */
static void turn_dropped(struct amdgpu_sdma_turn *turn)
{
	struct dma_fence *call;
	unsigned long flags;

	spin_lock_irqsave(&turn->turns->lock, flags);
	call = leave_line(turn);
	spin_unlock_irqrestore(&turn->turns->lock, flags);
	call_signal(call);
	call_first(turn->turns, turn->engine);
}

/**
 * amdgpu_sdma_turn_end - a job has ended
 * @turn: of the job, taken or not; or NULL
 * @pause: time until the next turn, if others had work for the engine
 *
 * May be called in an interrupt.
 */
void amdgpu_sdma_turn_end(struct amdgpu_sdma_turn *turn, ktime_t pause)
{
	if (!turn)
		return;
	if (!turn->taken) {
		turn_dropped(turn);
		return;
	}
	/* Others' jobs would have come: the ring has room for another. */
	if (READ_ONCE(turn->turns->engines[turn->engine].others) ==
	    turn->others) {
		turn_over(turn);
		return;
	}
	dma_fence_get(&turn->base);
	hrtimer_start(&turn->timer, pause, HRTIMER_MODE_REL);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turn_end);
