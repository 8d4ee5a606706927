/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_BATCH_WAITS_H__
#define __AMDGPU_SDMA_BATCH_WAITS_H__

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "amdgpu_sdma_plan.h"

/**
 * struct amdgpu_sdma_waits - the waits of all files on the engines of a device
 * @lock: protects @polls; taken in interrupts
 * @polls: of the batches on each engine that have not ended
 * @freed: some have
 * @turn: who is next to get polls on each engine; held while waiting for them
 */
struct amdgpu_sdma_waits {
	spinlock_t lock; /* see above */
	u32 polls[AMDGPU_SDMA_MAX_SHARES];
	wait_queue_head_t freed;
	struct mutex turn[AMDGPU_SDMA_MAX_SHARES]; /* see above */
};

void amdgpu_sdma_waits_init(struct amdgpu_sdma_waits *waits);
int amdgpu_sdma_waits_get(struct amdgpu_sdma_waits *waits, u32 engine,
			  u32 polls);
void amdgpu_sdma_waits_put(struct amdgpu_sdma_waits *waits, u32 engine,
			   u32 polls);

#endif
