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
 * depends on has ended and it has a VMID. So a user who holds back an in-fence
 * holds back his own batch and nobody's turn. Turns are taken in the order of
 * priority, then of submission.
 *
 * Who finds the engine taken is put in line with a fence of his own, his call,
 * which the scheduler takes for a dependency. The end of a turn calls the first
 * in line only, so what it costs does not depend on how many wait. To be called
 * gives no right: until a job takes the turn, anybody may whom the scheduler
 * gives to the ring before. So a call may be in vain, and no call may be lost:
 *
 * - who is called and finds the engine taken again gets in line again, and the
 *   end of that turn calls the next;
 * - who is called and has to wait for something else first, as a VMID, passes
 *   the call on, see amdgpu_sdma_turn_pass();
 * - who is called and dies, or is killed, passes it on as he ends.
 *
 * So as long as the engine is free and somebody is in line, somebody who was
 * called has not asked yet.
 *
 * Nothing that user space can hold back is in front of a call: it comes when a
 * job has ended, which is bounded by the engine, or by a timer behind that.
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
 * @turns: of the device
 * @engine: instance
 * @others: of the engine, when the turn was taken
 * @taken: the job was given to the engine
 * @call: fence of the job in line, or for the next time it gets there; NULL
 *	if it was used
 * @node: in line, or empty
 * @priority: place in line; a smaller one goes first
 * @submitted: place in line among those of the same priority
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

/* Takes the reference. In any context, without the lock of the turns. */
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

/* Takes a job out of the line, if it is there. Returns its call, to signal. */
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

/* The first in line should ask, if the engine is free. */
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

/* Those that ask from here on find the engine free, or were in line before. */
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
 * amdgpu_sdma_turns_fini - the device goes
 * @turns: of the device
 *
 * The schedulers are gone: no job takes a turn any more. One that was killed and
 * depends on another device may still end, without a turn, and be in line until
 * then.
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
	/* A timer of a turn before, whose interrupt has not quite ended. */
	synchronize_rcu();
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turns_fini);

/**
 * amdgpu_sdma_turn_create - prepare a job's turn
 * @turns: of the device, which stay until the job has ended
 * @engine: that the job is for, by instance
 *
 * Returns: a turn, or NULL without memory.
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
	 * Only who was called in vain has none. Fences may depend on this, so
	 * memory must not be waited for; without it, the job is woken by the end
	 * of this turn along with those who are called.
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
 * @turn: of the job, or NULL if it does not wait
 * @priority: of the job, a smaller one goes first
 * @submitted: when the job was
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
 * @turn: of the job, or NULL if it does not wait
 *
 * It has to wait for something else, and asks again. If it was called, the next
 * in line is called instead.
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
 * @turn: of the job, or NULL if it does not wait
 *
 * In the same call of the scheduler as amdgpu_sdma_turn_before(), and last: the
 * job is in the ring next, where its end is bounded. The scheduler prepares one
 * job of a ring at a time, so nobody comes in between.
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
	/* Else nobody calls those who are in line for @engine. */
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

/* Whoever waits for its call must not do so for ever. */
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
 * @pause: until the next turn, if others had work for the engine
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
	/* The ring has room for another job, so these came to it meanwhile. */
	if (READ_ONCE(turn->turns->engines[turn->engine].others) ==
	    turn->others) {
		turn_over(turn);
		return;
	}
	dma_fence_get(&turn->base);
	hrtimer_start(&turn->timer, pause, HRTIMER_MODE_REL);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_turn_end);
