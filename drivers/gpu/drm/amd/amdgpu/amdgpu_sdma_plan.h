/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_PLAN_H__
#define __AMDGPU_SDMA_PLAN_H__

#include <linux/align.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/minmax.h>
#include <linux/sizes.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>

#include <drm/amdgpu_drm.h>

#include "amdgpu_sdma_encode.h"

#define AMDGPU_SDMA_MAX_DESCS		65536
/* Bytes that one batch may move: see also amdgpu_sdma_batch_limits.c. */
#define AMDGPU_SDMA_MAX_BYTES		BIT_ULL(33)
/* Rows of all COPY_RECT of a batch that are not contiguous. */
#define AMDGPU_SDMA_MAX_ROWS		BIT(18)
/* Packets of a batch: see also amdgpu_sdma_batch_limits.c. */
#define AMDGPU_SDMA_MAX_DWORDS		(4U << 20)
#define AMDGPU_SDMA_MAX_SHARES		32
/* Destinations of a BROADCAST. */
#define AMDGPU_SDMA_MAX_DST		8
/* INDIRECT has 20 bits for the length; IBs are padded to 8 dwords. */
#define AMDGPU_SDMA_MAX_IB_DW		0xffff8
#define AMDGPU_SDMA_MAX_IBS		8

/*
 * A small copy keeps an engine busy as long as one of this many bytes: AUTO
 * counts each descriptor of a batch with a smaller mean size as this much.
 */
#define AMDGPU_SDMA_AUTO_SMALL_BYTES	SZ_16K
/* Bytes that an engine moves while the host starts one more engine. */
#define AMDGPU_SDMA_AUTO_START_BYTES	SZ_64K

/* Alignment of records, which the TIMESTAMP packet requires. */
#define AMDGPU_SDMA_RECORD_ALIGN	32
/* Engine clocks between two reads of a wait: the maximum of the packet. */
#define AMDGPU_SDMA_POLL_CLOCKS		0xffff

/* Offsets in a share's slot, its own memory that the engine may write. */
#define AMDGPU_SDMA_SLOT_BARRIER	0
#define AMDGPU_SDMA_SLOT_STATUS		4
#define AMDGPU_SDMA_SLOT_SIZE		64

/*
 * Dwords of sequences of packets. A wait is: status, poll, sample, three
 * barriers, three atomics, test, status.
 */
#define AMDGPU_SDMA_BARRIER_DW		\
	(AMDGPU_SDMA_FENCE_DW + AMDGPU_SDMA_POLL_DW)
#define AMDGPU_SDMA_WAIT_DW		\
	(2 * AMDGPU_SDMA_FENCE_DW + AMDGPU_SDMA_POLL_DW +	\
	 AMDGPU_SDMA_COPY_DW + 3 * AMDGPU_SDMA_BARRIER_DW +	\
	 3 * AMDGPU_SDMA_ATOMIC_DW + AMDGPU_SDMA_COND_DW)
#define AMDGPU_SDMA_FILL_EDGES_DW	(6 * AMDGPU_SDMA_FILL_DW)

/* The end of a record: wait for the data, time, engine, status. */
#define AMDGPU_SDMA_RECORD_END_DW	\
	(3 * AMDGPU_SDMA_FENCE_DW + AMDGPU_SDMA_TIMESTAMP_DW)
/* A record of what is skipped: engine and status. */
#define AMDGPU_SDMA_RECORD_SKIP_DW	(2 * AMDGPU_SDMA_FENCE_DW)
/* A record of a wait that gave up, and the status that it leaves. */
#define AMDGPU_SDMA_RECORD_FAIL_DW	\
	(AMDGPU_SDMA_RECORD_END_DW + AMDGPU_SDMA_FENCE_DW +	\
	 AMDGPU_SDMA_BARRIER_DW)
/* All that a record may take, with the guards around it. */
#define AMDGPU_SDMA_RECORD_DW		\
	(AMDGPU_SDMA_TIMESTAMP_DW + AMDGPU_SDMA_RECORD_END_DW +	\
	 AMDGPU_SDMA_RECORD_SKIP_DW + AMDGPU_SDMA_RECORD_FAIL_DW + \
	 5 * AMDGPU_SDMA_COND_DW)

/* Three copies, each with a barrier after it. */
#define AMDGPU_SDMA_BOUNCE_DW		\
	(3 * (AMDGPU_SDMA_COPY_DW + AMDGPU_SDMA_BARRIER_DW))

/*
 * Status of a slot: all waits have held so far; one gave up; or, while a wait
 * that has a record runs, that wait has not held yet. When the share has ended,
 * it is one of the first two.
 */
#define AMDGPU_SDMA_STATUS_OK		0
#define AMDGPU_SDMA_STATUS_TIMEOUT	1
#define AMDGPU_SDMA_STATUS_FAILING	2

/**
 * struct amdgpu_sdma_head - what every descriptor has
 * @op: AMDGPU_SDMA_OP_*
 * @flags: AMDGPU_SDMA_DESC_*
 * @dst: what is written
 * @src: what is read
 * @size: bytes, of COPY_RECT in a row
 *
 * The first members of &struct drm_amdgpu_sdma_desc, up to the smallest stride.
 */
struct amdgpu_sdma_head {
	u32 op;
	u32 flags;
	u64 dst;
	u64 src;
	u64 size;
};

static_assert(sizeof(struct amdgpu_sdma_head) == AMDGPU_SDMA_DESC_SIZE_MIN);
static_assert(offsetofend(struct drm_amdgpu_sdma_desc, size) ==
	      AMDGPU_SDMA_DESC_SIZE_MIN);
static_assert(offsetof(struct amdgpu_sdma_head, dst) ==
	      offsetof(struct drm_amdgpu_sdma_desc, dst));
static_assert(offsetof(struct amdgpu_sdma_head, src) ==
	      offsetof(struct drm_amdgpu_sdma_desc, src));

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
 * struct amdgpu_sdma_hull - the range from the lowest address to the highest
 * @first: above @last if the range is empty
 * @last: inclusive
 */
struct amdgpu_sdma_hull {
	u64 first;
	u64 last;
};

/**
 * struct amdgpu_sdma_plan - a batch, its totals and its shares
 * @format: packets of the engines
 * @descs: the batch: the kernel's copy of what user space wrote
 * @stride: bytes from one descriptor to the next: at least
 *	AMDGPU_SDMA_DESC_SIZE_MIN, at most the size of a whole one
 * @num: number of @descs
 * @long_way: for tests: check and emit each descriptor separately
 * @hole_start: first address of the VM that is not canonical
 * @hole_end: first address after those
 * @error_index: descriptor at fault, if a function here failed for one
 * @error_index2: the descriptor that it overlaps
 * @max_bytes: bytes that the batch may move
 * @max_wait_ns: sum of the timeouts that all waits may have
 * @max_dwords: what @dwords and @rows may be together, AMDGPU_SDMA_MAX_DWORDS or
 *	less
 * @mhz: fastest clock that the engine may have
 * @records: GPU address of a record for each engine, by instance, or 0
 * @prelude: number of waits before the first descriptor that is no wait
 * @first_ordered: first descriptor that must begin after others, or that others
 *	must begin after, or @num; in the prelude, only if engines cannot each
 *	repeat it
 * @waits: there are waits
 * @adds: there are ADDs
 * @recorded: there are descriptors with a record
 * @bounces: scratch memory is needed
 * @sort: descriptors might overlap
 * @bytes: bytes that the descriptors name
 * @moved: bytes moved, counted once for each destination
 * @rows: rows of rectangles that are not contiguous
 * @wait_ns: sum of the timeouts of all waits
 * @polls: polls of all waits
 * @dwords: upper bound of the packets if all are in one share
 * @plain: number of descriptors that are plain copies
 * @reads: what the plain copies read
 * @writes: what they write
 * @placement: the one that was requested, AMDGPU_SDMA_PLACE_*
 * @engines: those that may be chosen, see &struct amdgpu_sdma_engines
 * @shares: number of parts that run in parallel
 * @end: where each share ends and the next one begins
 */
struct amdgpu_sdma_plan {
	const struct amdgpu_sdma_format *format;
	const void *descs;
	u32 stride;
	u32 num;
	bool long_way;
	u64 hole_start;
	u64 hole_end;
	u32 error_index;
	u32 error_index2;
	u64 max_bytes;
	u64 max_wait_ns;
	u32 max_dwords;
	u32 mhz;
	u64 records;
	u32 prelude;
	u32 first_ordered;
	bool waits;
	bool adds;
	bool recorded;
	bool bounces;
	bool sort;
	u64 bytes;
	u64 moved;
	u64 rows;
	u64 wait_ns;
	u64 polls;
	u64 dwords;
	u32 plain;
	struct amdgpu_sdma_hull reads;
	struct amdgpu_sdma_hull writes;
	u32 placement;
	u32 engines;
	u32 shares;
	struct amdgpu_sdma_cursor end[AMDGPU_SDMA_MAX_SHARES];
};

/**
 * struct amdgpu_sdma_range - memory that a descriptor touches: rows of bytes
 * @start: first byte of the first row
 * @last: last byte of the first row
 * @pitch: bytes from one row to the next
 * @rows: number of rows, one if it is not a rectangle
 * @desc: descriptor
 * @read: the descriptor reads them
 * @write: the descriptor writes them
 */
struct amdgpu_sdma_range {
	u64 start;
	u64 last;
	u64 pitch;
	u32 rows;
	u32 desc;
	bool read;
	bool write;
};

/* A descriptor's source, destinations and record. */
#define AMDGPU_SDMA_MAX_RANGES	(AMDGPU_SDMA_MAX_DST + 2)

/* Where most data of a batch goes, as far as the caller knows. */
enum amdgpu_sdma_path {
	AMDGPU_SDMA_PATH_UNKNOWN,
	/* between the GPU and the host's memory */
	AMDGPU_SDMA_PATH_HOST,
	/* inside of the GPU, or between GPUs */
	AMDGPU_SDMA_PATH_DEVICE,
};

/**
 * struct amdgpu_sdma_engines - what is known of the engines, a bit for each
 * @usable: engines that the batch may use
 * @may_wait: engines that batches with waits may use, 0 for all
 * @host: engines that face the host, 0 if that is not known
 * @path: where the batch's data goes
 * @links: number of links that all of it leaves by, 0 if that is not known
 */
struct amdgpu_sdma_engines {
	u32 usable;
	u32 may_wait;
	u32 host;
	enum amdgpu_sdma_path path;
	u32 links;
};

/**
 * struct amdgpu_sdma_stream - packets of one share under construction
 * @format: packets of the engine
 * @base: memory for the packets
 * @p: where the next packet goes
 * @end: end of the memory
 * @slot: GPU address of the share's slot
 * @sample: GPU address, in video memory, of 4 bytes that waits work in
 * @scratch: GPU address of AMDGPU_SDMA_SCRATCH_SIZE bytes, if they are needed
 * @mhz: of the plan
 * @instance: of the engine that will execute the packets
 * @sequence: number of barriers so far
 * @guarded: after a wait: packets are covered by a COND_EXE of the status
 * @guard: the COND_EXE that covers what is being stored, or NULL
 * @ib: start of the current IB
 * @num_ibs: number of finished IBs
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
	u32 mhz;
	u32 instance;
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

/**
 * sdma_head - what every descriptor of a batch has
 * @p: plan
 * @i: descriptor
 *
 * Returns: the descriptor in the batch; there may be nothing after its head.
 */
static inline const struct amdgpu_sdma_head *
sdma_head(const struct amdgpu_sdma_plan *p, u32 i)
{
	return p->descs + (size_t)i * p->stride;
}

/**
 * sdma_desc - a descriptor of a batch, filled up to its full size
 * @p: plan
 * @i: descriptor
 * @tmp: memory for it
 *
 * Returns: the descriptor, in the batch or in @tmp; what the stride leaves out
 * is zero.
 */
static inline const struct drm_amdgpu_sdma_desc *
sdma_desc(const struct amdgpu_sdma_plan *p, u32 i,
	  struct drm_amdgpu_sdma_desc *tmp)
{
	const void *d = sdma_head(p, i);

	if (p->stride == sizeof(*tmp))
		return d;
	memcpy(tmp, d, p->stride);
	memset((void *)tmp + p->stride, 0, sizeof(*tmp) - p->stride);
	return tmp;
}

/* Most descriptors are plain copies. */
static inline bool sdma_is_plain_copy(const struct amdgpu_sdma_head *d)
{
	return !(d->op | (d->flags & ~AMDGPU_SDMA_DESC_FAULT));
}

static_assert(AMDGPU_SDMA_OP_COPY == 0);

static inline bool sdma_is_wait(const struct amdgpu_sdma_head *d)
{
	return d->op == AMDGPU_SDMA_OP_WAIT;
}

/* True if it begins after all before it have ended. */
static inline bool sdma_is_ordered(const struct amdgpu_sdma_head *d)
{
	return d->flags & AMDGPU_SDMA_DESC_BARRIER ||
	       d->op == AMDGPU_SDMA_OP_WAIT || d->op == AMDGPU_SDMA_OP_WRITE ||
	       d->op == AMDGPU_SDMA_OP_ADD;
}

static inline unsigned int
sdma_num_dst(const struct drm_amdgpu_sdma_desc *d)
{
	unsigned int n = 1;

	while (n < AMDGPU_SDMA_MAX_DST && d->dst_more[n - 1])
		n++;
	return n;
}

static inline u64 sdma_nth_dst(const struct drm_amdgpu_sdma_desc *d,
			       unsigned int n)
{
	return n ? d->dst_more[n - 1] : d->dst;
}

/* No rectangle, or one without gaps on either side: one range to another. */
static inline bool sdma_is_linear(const struct drm_amdgpu_sdma_desc *d)
{
	return d->op != AMDGPU_SDMA_OP_COPY_RECT || d->rows == 1 ||
	       (d->src_pitch == d->size && d->dst_pitch == d->size);
}

/* Bytes that a checked descriptor names. */
static inline u64 sdma_bytes(const struct drm_amdgpu_sdma_desc *d)
{
	return d->op == AMDGPU_SDMA_OP_COPY_RECT ? d->size * d->rows : d->size;
}

/*
 * How many bytes at the start of a swap the engine's own packet cannot
 * exchange: none, those up to where both sides are aligned, or all.
 */
static inline u64 sdma_swap_bounce(const struct amdgpu_sdma_format *f, u64 a,
				   u64 b, u64 size)
{
	if (!f->swap_align || !IS_ALIGNED(a ^ b, f->swap_align))
		return size;
	return min_t(u64, size, -a & (f->swap_align - 1));
}

/* Where a share begins. Each of several shares repeats the prelude first. */
static inline struct amdgpu_sdma_cursor
sdma_share_begin(const struct amdgpu_sdma_plan *p, u32 share)
{
	if (share)
		return p->end[share - 1];
	return (struct amdgpu_sdma_cursor) {
		.desc = p->shares > 1 ? p->prelude : 0,
	};
}

u32 amdgpu_sdma_wait_polls(u32 mhz, u64 timeout_ns);
u64 amdgpu_sdma_polls_ns(u32 mhz, u32 polls);
u64 amdgpu_sdma_longest_wait(u32 low_mhz, u32 high_mhz, u64 bound_ns);
u64 amdgpu_sdma_desc_dwords(const struct amdgpu_sdma_plan *plan, u32 i);
int amdgpu_sdma_plan_check(struct amdgpu_sdma_plan *plan);
unsigned int amdgpu_sdma_ranges(const struct amdgpu_sdma_plan *plan, u32 i,
				struct amdgpu_sdma_range *out);
unsigned int amdgpu_sdma_desc_ranges(const struct drm_amdgpu_sdma_desc *d,
				     u32 i, struct amdgpu_sdma_range *out);
int amdgpu_sdma_plan_overlap(struct amdgpu_sdma_plan *plan);
bool amdgpu_sdma_plan_may_fan_out(const struct amdgpu_sdma_plan *plan);
int amdgpu_sdma_plan_place(struct amdgpu_sdma_plan *plan, u32 placement,
			   const struct amdgpu_sdma_engines *engines);
u64 amdgpu_sdma_plan_dwords(const struct amdgpu_sdma_plan *plan, u32 share);
int amdgpu_sdma_plan_emit(const struct amdgpu_sdma_plan *plan, u32 share,
			  struct amdgpu_sdma_stream *s);

/* True if it does not run in parallel with any of those before it. */
static inline bool sdma_begins_group(const struct amdgpu_sdma_plan *p, u32 i)
{
	return !i || sdma_is_ordered(sdma_head(p, i)) ||
	       sdma_is_wait(sdma_head(p, i - 1));
}

#endif
