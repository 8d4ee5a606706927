/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_BATCH_TURNS_H__
#define __AMDGPU_SDMA_BATCH_TURNS_H__

#include <linux/ktime.h>
#include <linux/rbtree_types.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "amdgpu_sdma_plan.h"

struct amdgpu_sdma_turn;
struct dma_fence;

/**
 * struct amdgpu_sdma_turns_engine - whose turn it is to wait
 * @turn: of the last job with a wait that was given to the ring, or NULL
 * @line: jobs that want to have the next turn
 * @others: number of jobs without waits so far
 */
struct amdgpu_sdma_turns_engine {
	struct amdgpu_sdma_turn *turn;
	struct rb_root_cached line;
	u32 others;
};

/**
 * struct amdgpu_sdma_turns - the turns of each engine
 * @lock: protects @engines, except the counts of others; taken in interrupts
 * @engines: by instance
 */
struct amdgpu_sdma_turns {
	spinlock_t lock; /* see above */
	struct amdgpu_sdma_turns_engine engines[AMDGPU_SDMA_MAX_SHARES];
};

void amdgpu_sdma_turns_init(struct amdgpu_sdma_turns *turns);
void amdgpu_sdma_turns_fini(struct amdgpu_sdma_turns *turns);

struct amdgpu_sdma_turn *
amdgpu_sdma_turn_create(struct amdgpu_sdma_turns *turns, u32 engine);
void amdgpu_sdma_turn_put(struct amdgpu_sdma_turn *turn);
struct dma_fence *amdgpu_sdma_turn_before(struct amdgpu_sdma_turn *turn,
					  unsigned int priority,
					  ktime_t submitted);
void amdgpu_sdma_turn_pass(struct amdgpu_sdma_turn *turn);
void amdgpu_sdma_turn_take(struct amdgpu_sdma_turns *turns, u32 engine,
			   struct amdgpu_sdma_turn *turn);
void amdgpu_sdma_turn_end(struct amdgpu_sdma_turn *turn, ktime_t pause);

#endif
