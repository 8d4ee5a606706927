// SPDX-License-Identifier: MIT
/*
 * How many polls the batches of all files together may have on an engine.
 *
 * A wait keeps its engine from everybody. One batch polls for a bounded time
 * and one file has a bounded number of polls on their way, but a user opens as
 * many files as there are descriptors. So each engine has a budget, which
 * batches with waits get before they take any lock, and give back when they
 * have ended; those that find none left wait in their ioctl, one behind the
 * other, where a signal ends that. What has been submitted and what the kernel
 * itself puts on the engine never waits for more than the budget.
 *
 * A batch that has its polls needs nothing that others wait for here have, so
 * it ends, and its polls come back.
 */

#include <linux/sched.h>

#include "amdgpu_sdma_batch_waits.h"

void amdgpu_sdma_waits_init(struct amdgpu_sdma_waits *waits)
{
	unsigned int i;

	spin_lock_init(&waits->lock);
	init_waitqueue_head(&waits->freed);
	for (i = 0; i < ARRAY_SIZE(waits->turn); i++)
		mutex_init(&waits->turn[i]);
}

static bool waits_try(struct amdgpu_sdma_waits *waits, u32 engine, u32 polls)
{
	bool ok;

	spin_lock_irq(&waits->lock);
	ok = waits->polls[engine] + polls <= AMDGPU_SDMA_MAX_ENGINE_POLLS;
	if (ok)
		waits->polls[engine] += polls;
	spin_unlock_irq(&waits->lock);
	return ok;
}

/**
 * amdgpu_sdma_waits_get - get polls of an engine's budget
 * @waits: of the device
 * @engine: instance
 * @polls: of one batch, at most AMDGPU_SDMA_MAX_POLLS
 *
 * Waits for those of others to end, in turn: many small ones do not keep a large
 * one from ever getting its share. The caller holds no reservation.
 *
 * Returns: 0, or -ERESTARTSYS if a signal came.
 */
int amdgpu_sdma_waits_get(struct amdgpu_sdma_waits *waits, u32 engine,
			  u32 polls)
{
	int r;

	r = mutex_lock_interruptible(&waits->turn[engine]);
	if (r)
		return r == -EINTR ? -ERESTARTSYS : r;
	r = wait_event_interruptible(waits->freed,
				     waits_try(waits, engine, polls));
	mutex_unlock(&waits->turn[engine]);
	return r;
}

/* May be called in an interrupt. */
void amdgpu_sdma_waits_put(struct amdgpu_sdma_waits *waits, u32 engine,
			   u32 polls)
{
	unsigned long flags;

	spin_lock_irqsave(&waits->lock, flags);
	waits->polls[engine] -= polls;
	spin_unlock_irqrestore(&waits->lock, flags);
	wake_up(&waits->freed);
}
