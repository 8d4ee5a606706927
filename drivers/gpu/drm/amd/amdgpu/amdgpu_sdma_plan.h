/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_PLAN_H__
#define __AMDGPU_SDMA_PLAN_H__

#include <linux/align.h>
#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include <drm/amdgpu_drm.h>

#include "amdgpu_sdma_encode.h"

#define AMDGPU_SDMA_MAX_DESCS		65536
/* Moved by one batch: see also max_bytes() in amdgpu_sdma_batch.c. */
#define AMDGPU_SDMA_MAX_BYTES		BIT_ULL(33)
/* Of all batches of a file that have not ended. */
#define AMDGPU_SDMA_MAX_FILE_POLLS	(4 * AMDGPU_SDMA_MAX_POLLS)
/* Of all batches on one engine that have not ended. */
#define AMDGPU_SDMA_MAX_ENGINE_POLLS	(2 * AMDGPU_SDMA_MAX_POLLS)
#define AMDGPU_SDMA_MAX_DWORDS		(4U << 20)
#define AMDGPU_SDMA_MAX_SHARES		32
/* INDIRECT has 20 bits for the length; IBs are padded to 8 dwords. */
#define AMDGPU_SDMA_MAX_IB_DW		0xffff8
#define AMDGPU_SDMA_MAX_IBS		8

/* A share's own memory, that the engine may write: offsets. */
#define AMDGPU_SDMA_SLOT_BARRIER	0
#define AMDGPU_SDMA_SLOT_STATUS		4
#define AMDGPU_SDMA_SLOT_SIZE		64

/*
 * Dwords of what is more than one packet. A wait is: status, poll, sample,
 * three barriers, three atomics, test, status.
 */
#define AMDGPU_SDMA_BARRIER_DW		\
	(AMDGPU_SDMA_FENCE_DW + AMDGPU_SDMA_POLL_DW)
#define AMDGPU_SDMA_WAIT_DW		\
	(2 * AMDGPU_SDMA_FENCE_DW + AMDGPU_SDMA_POLL_DW +	\
	 AMDGPU_SDMA_COPY_DW + 3 * AMDGPU_SDMA_BARRIER_DW +	\
	 3 * AMDGPU_SDMA_ATOMIC_DW + AMDGPU_SDMA_COND_DW)
#define AMDGPU_SDMA_RECORD_DW		\
	(2 * AMDGPU_SDMA_FENCE_DW + AMDGPU_SDMA_TIMESTAMP_DW)
#define AMDGPU_SDMA_FILL_EDGES_DW	(6 * AMDGPU_SDMA_FILL_DW)

/* Three copies, each with a barrier behind it. */
#define AMDGPU_SDMA_BOUNCE_DW		\
	(3 * (AMDGPU_SDMA_COPY_DW + AMDGPU_SDMA_BARRIER_DW))

#define AMDGPU_SDMA_STATUS_OK		0
#define AMDGPU_SDMA_STATUS_TIMEOUT	1

/**
 * struct amdgpu_sdma_cursor - a place between two bytes of a batch
 * @desc: descriptor
 * @offset: bytes of @desc before the place
 */
struct amdgpu_sdma_cursor {
	u32 desc;
	u64 offset;
};

/**
 * struct amdgpu_sdma_plan - a batch, its totals and who runs what
 * @format: packets of the engines
 * @descs: the batch
 * @num: of @descs
 * @hole_start: first address of the VM that is not canonical
 * @hole_end: first one behind those
 * @error_index: descriptor at fault, if a function here failed for one
 * @error_index2: the one that it overlaps
 * @max_bytes: that the batch may move
 * @first_ordered: first descriptor that must begin after others, or that others
 *	must begin after, or @num
 * @waits: there are waits
 * @adds: there are ADDs
 * @bounces: scratch memory is needed
 * @sort: descriptors might overlap
 * @bytes: that the descriptors name
 * @moved: bytes, counted once for each destination
 * @polls: of all waits
 * @dwords: upper bound of the packets of one share that has it all
 * @placement: that was asked for, AMDGPU_SDMA_PLACE_*
 * @shares: how many parts run in parallel
 * @end: where each share ends; it begins where the one before ends
 */
struct amdgpu_sdma_plan {
	const struct amdgpu_sdma_format *format;
	const struct drm_amdgpu_sdma_desc *descs;
	u32 num;
	u64 hole_start;
	u64 hole_end;
	u32 error_index;
	u32 error_index2;
	u64 max_bytes;
	u32 first_ordered;
	bool waits;
	bool adds;
	bool bounces;
	bool sort;
	u64 bytes;
	u64 moved;
	u32 polls;
	u64 dwords;
	u32 placement;
	u32 shares;
	struct amdgpu_sdma_cursor end[AMDGPU_SDMA_MAX_SHARES];
};

/* One range of memory that a descriptor touches. */
struct amdgpu_sdma_range {
	u64 start;
	u64 last;
	u32 desc;
	bool read;
	bool write;
};

/* A descriptor's source, four destinations and record. */
#define AMDGPU_SDMA_MAX_RANGES	6

/**
 * struct amdgpu_sdma_stream - packets of one share under construction
 * @format: packets of the engine
 * @base: memory for the packets
 * @p: where the next packet goes
 * @end: end of the memory
 * @slot: GPU address of the share's slot
 * @sample: GPU address, in video memory, of 4 bytes that waits work in
 * @scratch: GPU address of AMDGPU_SDMA_SCRATCH_SIZE bytes, if plan needs them
 * @sequence: of barriers
 * @guarded: a wait came before: packets go behind a COND_EXE of the status
 * @guard: the COND_EXE that covers what is being stored, or NULL
 * @ib: begin of the current IB
 * @num_ibs: finished IBs
 * @ibs: offset from @base and length of each, in dwords
 */
struct amdgpu_sdma_stream {
	const struct amdgpu_sdma_format *format;
	u32 *base;
	u32 *p;
	u32 *end;
	u64 slot;
	u64 sample;
	u64 scratch;
	u32 sequence;
	bool guarded;
	u32 *guard;
	u32 *ib;
	u32 num_ibs;
	struct {
		u32 offset;
		u32 length;
	} ibs[AMDGPU_SDMA_MAX_IBS];
};

static inline bool sdma_is_wait(const struct drm_amdgpu_sdma_desc *d)
{
	return d->op == AMDGPU_SDMA_OP_WAIT;
}

/* What most descriptors are. */
static inline bool sdma_is_plain_copy(const struct drm_amdgpu_sdma_desc *d)
{
	return d->op == AMDGPU_SDMA_OP_COPY && !d->flags;
}

/* Begins after all before it have ended. */
static inline bool sdma_is_ordered(const struct drm_amdgpu_sdma_desc *d)
{
	return d->flags & AMDGPU_SDMA_DESC_BARRIER ||
	       d->op == AMDGPU_SDMA_OP_WAIT || d->op == AMDGPU_SDMA_OP_WRITE ||
	       d->op == AMDGPU_SDMA_OP_ADD;
}

static inline unsigned int
sdma_num_dst(const struct drm_amdgpu_sdma_desc *d)
{
	unsigned int n = 1;

	while (n <= ARRAY_SIZE(d->dst_more) && d->dst_more[n - 1])
		n++;
	return n;
}

static inline u64 sdma_nth_dst(const struct drm_amdgpu_sdma_desc *d,
			       unsigned int n)
{
	return n ? d->dst_more[n - 1] : d->dst;
}

/*
 * How many bytes of a swap, from its begin, the engine's own packet cannot do:
 * none, those up to where both sides are aligned, or all.
 */
static inline u64 sdma_swap_bounce(const struct amdgpu_sdma_format *f, u64 a,
				   u64 b, u64 size)
{
	if (!f->swap_align || !IS_ALIGNED(a ^ b, f->swap_align))
		return size;
	return min_t(u64, size, -a & (f->swap_align - 1));
}

static inline struct amdgpu_sdma_cursor
sdma_share_begin(const struct amdgpu_sdma_plan *p, u32 share)
{
	if (share)
		return p->end[share - 1];
	return (struct amdgpu_sdma_cursor) { };
}

int amdgpu_sdma_plan_check(struct amdgpu_sdma_plan *plan);
int amdgpu_sdma_plan_overlap(struct amdgpu_sdma_plan *plan);
unsigned int amdgpu_sdma_ranges(const struct drm_amdgpu_sdma_desc *d, u32 index,
				struct amdgpu_sdma_range *out);
int amdgpu_sdma_plan_place(struct amdgpu_sdma_plan *plan, u32 placement,
			   u32 engines);
u64 amdgpu_sdma_plan_dwords(const struct amdgpu_sdma_plan *plan, u32 share);
int amdgpu_sdma_plan_emit(const struct amdgpu_sdma_plan *plan, u32 share,
			  struct amdgpu_sdma_stream *s);

#endif
