/* SPDX-License-Identifier: MIT */
/*
 * What the KUnit tests of SDMA batches have in common: batches as user space
 * hands them over, a small engine that runs their packets on a small memory, and
 * what their descriptors say, byte by byte.
 */
#ifndef __AMDGPU_SDMA_KUNIT_H__
#define __AMDGPU_SDMA_KUNIT_H__

#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/unaligned.h>

#include "amdgpu.h"
#include "amdgpu_sdma_plan.h"

/* Tests run one after the other: plans are static where stacks would be large. */
#define HOLE_START	0x0000800000000000ULL
#define HOLE_END	0xffff800000000000ULL

/* One read of a wait is this many ns from the next. */
#define MHZ		1000
#define POLL_NS		((u64)AMDGPU_SDMA_POLL_CLOCKS * 1000 / MHZ)
#define MAX_WAIT_NS	(100000000ULL)

const struct amdgpu_sdma_format *kunit_format(struct kunit *test);
struct drm_amdgpu_sdma_desc kunit_good(u32 op);
void kunit_plan(struct amdgpu_sdma_plan *plan,
		const struct amdgpu_sdma_format *f,
		const struct drm_amdgpu_sdma_desc *d, u32 n);
int kunit_place(struct amdgpu_sdma_plan *plan, u32 placement, u32 engines);

/*
 * The engine's memory begins at MEMORY; the slot and scratch memory are behind
 * it. Packets that break a limit of the format end the test. Copies are late: they
 * run when a fence waits for them, the last one first.
 */
#define MEMORY		0x1000000ULL
#define MEMORY_SIZE	0x20000
#define SLOT		(MEMORY + MEMORY_SIZE)
#define SCRATCH		(SLOT + AMDGPU_SDMA_SLOT_SIZE)
#define SCRATCH_SIZE	128
#define RECORDS		(SCRATCH + SCRATCH_SIZE)
#define RECORDS_SIZE	(32 * sizeof(struct drm_amdgpu_sdma_record))
#define MEMORY_ALL	(RECORDS + RECORDS_SIZE - MEMORY)

/**
 * struct engine - a small engine
 * @test: that it is part of
 * @format: of its packets
 * @memory: what is at MEMORY
 * @packets: how many it ran
 * @barriers: polls for ever that it ran
 * @windows: sub-window copies that it ran
 * @statuses: how often the status of an engine's record was stored
 * @polls: reads of the last wait
 * @clock: copies that have ended
 * @late: copies that have not
 * @copies: those
 */
struct engine {
	struct kunit *test;
	const struct amdgpu_sdma_format *format;
	u8 *memory;
	u32 packets;
	u32 barriers;
	u32 windows;
	u32 statuses;
	u32 polls;
	u64 clock;
	u32 late;
	const u32 *copies[32];
};

void engine_init(struct engine *e, struct kunit *test,
		 const struct amdgpu_sdma_format *f);
u8 *engine_at(struct engine *e, u64 addr, u64 size);
void engine_run(struct engine *e, const struct amdgpu_sdma_stream *s);
/* Emits share @share into memory that it allocates, within the plan's bound. */
void engine_emit(struct engine *e, const struct amdgpu_sdma_plan *plan,
		 u32 share, struct amdgpu_sdma_stream *s);
/* Emits all shares, runs them one after the other, last first. */
void engine_run_plan(struct engine *e, const struct amdgpu_sdma_plan *plan);
u32 engine_status(struct engine *e);
struct drm_amdgpu_sdma_record engine_record(struct engine *e, u64 addr);

/* What a descriptor does to the memory, byte by byte, but for its record. */
void model(u8 *memory, const struct drm_amdgpu_sdma_desc *d);

#define PLACES	24
#define PLACE	((u64)MEMORY_SIZE / PLACES / 64 * 64)

/* Where the record of what is in a place goes. */
static inline u64 record_of(u32 place)
{
	return MEMORY + (place + 1) * PLACE -
	       sizeof(struct drm_amdgpu_sdma_record);
}

/* A random descriptor that touches a place only, so that none overlap. */
struct drm_amdgpu_sdma_desc random_desc(struct rnd_state *rnd, u32 place,
					u32 ops);

static inline u32 random_below(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

/* Limits so small that most descriptors meet them, and all packets. */
extern const struct amdgpu_sdma_format tiny;
/* One that lacks what others have, with longer copies. */
extern const struct amdgpu_sdma_format lacking;

#define ALL_OPS		(AMDGPU_SDMA_OP_COPY_RECT + 1)

#endif
