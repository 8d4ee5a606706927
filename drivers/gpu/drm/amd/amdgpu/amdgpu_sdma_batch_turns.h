/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_BATCH_TURNS_H__
#define __AMDGPU_SDMA_BATCH_TURNS_H__

#include <linux/ktime.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "amdgpu_sdma_plan.h"

struct amdgpu_ring;
struct amdgpu_sdma_turn;
struct dma_fence;

/**
 * struct amdgpu_sdma_turns - whose turn it is to wait, on each engine
 * @lock: protects @engines
 * @engines: @turn is that of the last job with a wait that was given to the
 *	ring, or NULL; @others counts jobs without waits
 */
struct amdgpu_sdma_turns {
	spinlock_t lock; /* see above */
	struct {
		struct amdgpu_sdma_turn *turn;
		u32 others;
	} engines[AMDGPU_SDMA_MAX_SHARES];
};

void amdgpu_sdma_turns_init(struct amdgpu_sdma_turns *turns);
void amdgpu_sdma_turns_fini(struct amdgpu_sdma_turns *turns);

struct amdgpu_sdma_turn *
amdgpu_sdma_turn_create(struct amdgpu_sdma_turns *turns);
void amdgpu_sdma_turn_put(struct amdgpu_sdma_turn *turn);
struct dma_fence *amdgpu_sdma_turn_before(struct amdgpu_ring *ring,
					  struct amdgpu_sdma_turn *turn);
void amdgpu_sdma_turn_take(struct amdgpu_ring *ring,
			   struct amdgpu_sdma_turn *turn);
void amdgpu_sdma_turn_end(struct amdgpu_sdma_turn *turn, ktime_t pause);

#endif
