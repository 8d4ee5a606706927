// SPDX-License-Identifier: MIT
/*
 * The packets of a planned SDMA batch: splits at the engine's limits, merges
 * neighbours, and puts waits, barriers and records between. As testable without
 * a device as the plan itself.
 */

#include <kunit/visibility.h>
#include <linux/align.h>
#include <linux/bitops.h>
#include <linux/minmax.h>

#include "amdgpu.h"
#include "amdgpu_sdma_plan.h"

/* Cycles between two reads of a wait: the longest that the packet has. */
#define WAIT_INTERVAL	0xffff

static void close_guard(struct amdgpu_sdma_stream *s)
{
	if (!s->guard)
		return;
	amdgpu_sdma_put_cond(s->guard, s->slot + AMDGPU_SDMA_SLOT_STATUS,
			     AMDGPU_SDMA_STATUS_OK,
			     s->p - s->guard - AMDGPU_SDMA_COND_DW);
	s->guard = NULL;
}

/* The engine takes what is left of an aligned IB as NOPs. */
static bool close_ib(struct amdgpu_sdma_stream *s)
{
	u32 length = s->p - s->ib;

	close_guard(s);
	if (!length)
		return true;
	if (s->num_ibs == AMDGPU_SDMA_MAX_IBS ||
	    s->end - s->ib < ALIGN(length, 8))
		return false;
	while (length % 8) {
		*s->p++ = 0;
		length++;
	}
	s->ibs[s->num_ibs].offset = s->ib - s->base;
	s->ibs[s->num_ibs].length = length;
	s->num_ibs++;
	s->ib = s->p;
	return true;
}

/*
 * Room for packets of @dw dwords in one IB and behind one guard. False if there
 * is none: then the bounds above are wrong.
 */
static bool reserve(struct amdgpu_sdma_stream *s, u32 dw)
{
	u32 need = dw + AMDGPU_SDMA_COND_DW;

	if (s->p - s->ib + need > AMDGPU_SDMA_MAX_IB_DW && !close_ib(s))
		return false;
	if (s->end - s->p < need)
		return false;
	if (s->guard && s->p - s->guard + dw > s->format->max_skip)
		close_guard(s);
	if (s->guarded && !s->guard) {
		s->guard = s->p;
		s->p += AMDGPU_SDMA_COND_DW;
	}
	return true;
}

/* What follows does not begin before what came before is in memory. */
static void put_barrier(struct amdgpu_sdma_stream *s)
{
	u64 addr = s->slot + AMDGPU_SDMA_SLOT_BARRIER;

	s->sequence++;
	s->p = amdgpu_sdma_put_fence(s->p, s->format, addr, s->sequence);
	/*
	 * Not a user's wait: the engine itself has stored it, or will. To give
	 * up would let what follows run too early; the ring's timeout ends it
	 * if somebody's shader overwrites the word.
	 */
	s->p = amdgpu_sdma_put_poll(s->p, addr, AMDGPU_SDMA_POLL_EQ,
				    s->sequence, ~0, 0,
				    AMDGPU_SDMA_POLL_FOR_EVER);
}

static bool emit_barrier(struct amdgpu_sdma_stream *s)
{
	if (!reserve(s, AMDGPU_SDMA_BARRIER_DW))
		return false;
	put_barrier(s);
	return true;
}

static bool emit_copy(struct amdgpu_sdma_stream *s, u64 src, u64 dst, u64 size)
{
	while (size) {
		u64 n = min(size, s->format->max_copy);

		if (!reserve(s, s->format->copy_dw))
			return false;
		s->p = amdgpu_sdma_put_copy(s->p, s->format, src, dst, n);
		src += n;
		dst += n;
		size -= n;
	}
	return true;
}

static bool emit_pair(struct amdgpu_sdma_stream *s, u64 src, u64 dst, u64 dst2,
		      u64 size)
{
	while (size) {
		u64 n = min(size, s->format->max_copy);

		if (!reserve(s, AMDGPU_SDMA_BROADCAST_DW))
			return false;
		s->p = amdgpu_sdma_put_broadcast(s->p, s->format, src, dst,
						 dst2, n);
		src += n;
		dst += n;
		dst2 += n;
		size -= n;
	}
	return true;
}

/*
 * A destination behind @i that one packet can serve together with it: equal
 * modulo broadcast_align. None if there is no such packet.
 */
static unsigned int find_pair(const struct amdgpu_sdma_format *f,
			      const struct drm_amdgpu_sdma_desc *d,
			      unsigned int i, unsigned long done)
{
	unsigned int j, n = sdma_num_dst(d);

	if (!(f->native & BIT(AMDGPU_SDMA_OP_BROADCAST)))
		return n;
	for (j = i + 1; j < n; j++)
		if (!(done & BIT(j)) &&
		    IS_ALIGNED(sdma_nth_dst(d, i) - sdma_nth_dst(d, j),
			       f->broadcast_align))
			break;
	return j;
}

/* Pairs what one packet can serve, copies to each of the rest. */
static bool emit_broadcast(struct amdgpu_sdma_stream *s,
			   const struct drm_amdgpu_sdma_desc *d, u64 offset,
			   u64 size)
{
	unsigned int i, j, n = sdma_num_dst(d);
	u64 src = d->src + offset;
	unsigned long done = 0;
	bool ok;

	for (i = 0; i < n; i++) {
		u64 dst = sdma_nth_dst(d, i) + offset;

		if (done & BIT(i))
			continue;
		j = find_pair(s->format, d, i, done);
		if (j < n) {
			done |= BIT(j);
			ok = emit_pair(s, src, dst,
				       sdma_nth_dst(d, j) + offset, size);
		} else {
			ok = emit_copy(s, src, dst, size);
		}
		if (!ok)
			return false;
	}
	return true;
}

/* Stores a copy, and what follows does not begin before it is in memory. */
static void put_copy_and_wait(struct amdgpu_sdma_stream *s, u64 src, u64 dst,
			      u64 size)
{
	s->p = amdgpu_sdma_put_copy(s->p, s->format, src, dst, size);
	put_barrier(s);
}

/*
 * What no packet exchanges goes through scratch memory. That is free again
 * behind the last barrier: for the next part, and for the file's next job on
 * the engine.
 */
static bool emit_bounce(struct amdgpu_sdma_stream *s, u64 a, u64 b, u64 size)
{
	while (size) {
		u64 n = min_t(u64, size, s->format->max_bounce);

		if (!reserve(s, AMDGPU_SDMA_BOUNCE_DW))
			return false;
		put_copy_and_wait(s, a, s->scratch, n);
		put_copy_and_wait(s, b, a, n);
		put_copy_and_wait(s, s->scratch, b, n);
		a += n;
		b += n;
		size -= n;
	}
	return true;
}

static bool emit_swap(struct amdgpu_sdma_stream *s, u64 a, u64 b, u64 size)
{
	u64 bounce = sdma_swap_bounce(s->format, a, b, size);

	if (!emit_bounce(s, a, b, bounce))
		return false;
	a += bounce;
	b += bounce;
	size -= bounce;
	while (size) {
		u64 n = min(size, s->format->max_swap);

		if (!reserve(s, AMDGPU_SDMA_SWAP_DW))
			return false;
		s->p = amdgpu_sdma_put_swap(s->p, a, b, n);
		a += n;
		b += n;
		size -= n;
	}
	return true;
}

/* At most three bytes before or after the words of a fill. */
static bool emit_fill_edge(struct amdgpu_sdma_stream *s, u64 dst, u32 pattern,
			   unsigned int size)
{
	unsigned int i;

	if (!reserve(s, size * AMDGPU_SDMA_FILL_DW))
		return false;
	for (i = 0; i < size; i++)
		s->p = amdgpu_sdma_put_fill_bytes(s->p, s->format, dst + i,
						  pattern >> 8 * i, 1);
	return true;
}

/* @dst is a whole number of patterns behind the begin of the descriptor. */
static bool emit_fill(struct amdgpu_sdma_stream *s, u64 dst, u32 pattern,
		      u64 size)
{
	unsigned int edge = min_t(u64, -dst & 3, size);

	if (!emit_fill_edge(s, dst, pattern, edge))
		return false;
	dst += edge;
	size -= edge;
	pattern = ror32(pattern, 8 * edge);
	while (size > 3) {
		u64 n = min(ALIGN_DOWN(size, 4), s->format->max_fill);

		if (!reserve(s, AMDGPU_SDMA_FILL_DW))
			return false;
		s->p = amdgpu_sdma_put_fill(s->p, s->format, dst, pattern, n);
		dst += n;
		size -= n;
	}
	return emit_fill_edge(s, dst, pattern, size);
}

/*
 * Make the sample one value if the wait's condition holds and another if not:
 * COND_EXE only knows equality. The sample is in video memory, because PCIe has
 * none of these atomics. Returns the value for "holds".
 */
static u32 put_compare(struct amdgpu_sdma_stream *s,
		       const struct drm_amdgpu_sdma_desc *d)
{
	u64 at = s->sample;
	u32 value = lower_32_bits(d->value);

	s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_AND32, at,
				      d->mask);
	switch (d->compare) {
	case AMDGPU_SDMA_COMPARE_GE:
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_UMIN32,
					      at, value);
		return value;
	case AMDGPU_SDMA_COMPARE_LE:
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_UMAX32,
					      at, value);
		return value;
	case AMDGPU_SDMA_COMPARE_NE:
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_XOR32,
					      at, value);
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_UMIN32,
					      at, 1);
		return 1;
	default:
		return value;
	}
}

static const enum amdgpu_sdma_poll_func poll_func[] = {
	[AMDGPU_SDMA_COMPARE_EQ] = AMDGPU_SDMA_POLL_EQ,
	[AMDGPU_SDMA_COMPARE_NE] = AMDGPU_SDMA_POLL_NE,
	[AMDGPU_SDMA_COMPARE_GE] = AMDGPU_SDMA_POLL_GE,
	[AMDGPU_SDMA_COMPARE_LE] = AMDGPU_SDMA_POLL_LE,
};

/*
 * A POLL_REGMEM that gives up goes on with the next packet. So: say that it
 * gave up; poll; look once more; take it back if the condition holds. All that
 * follows is behind guards that skip it unless it was taken back.
 */
static bool emit_wait(struct amdgpu_sdma_stream *s,
		      const struct drm_amdgpu_sdma_desc *d)
{
	u64 status = s->slot + AMDGPU_SDMA_SLOT_STATUS;
	u64 sample = s->sample;
	u32 holds;

	if (!reserve(s, AMDGPU_SDMA_WAIT_DW))
		return false;
	s->p = amdgpu_sdma_put_fence(s->p, s->format, status,
				     AMDGPU_SDMA_STATUS_TIMEOUT);
	s->p = amdgpu_sdma_put_poll(s->p, d->src, poll_func[d->compare],
				    lower_32_bits(d->value), d->mask,
				    WAIT_INTERVAL, d->polls);
	s->p = amdgpu_sdma_put_copy(s->p, s->format, d->src, sample, 4);
	put_barrier(s);
	holds = put_compare(s, d);
	put_barrier(s);
	s->p = amdgpu_sdma_put_cond(s->p, sample, holds, AMDGPU_SDMA_FENCE_DW);
	s->p = amdgpu_sdma_put_fence(s->p, s->format, status,
				     AMDGPU_SDMA_STATUS_OK);
	/* The next guard reads the status. */
	put_barrier(s);
	close_guard(s);
	s->guarded = true;
	return true;
}

static bool emit_signal(struct amdgpu_sdma_stream *s,
			const struct drm_amdgpu_sdma_desc *d)
{
	if (!reserve(s, AMDGPU_SDMA_ATOMIC_DW))
		return false;
	if (d->op == AMDGPU_SDMA_OP_ADD)
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_ADD64,
					      d->dst, d->value);
	else
		s->p = amdgpu_sdma_put_write64(s->p, d->dst, d->value);
	return true;
}

/* The first fence only waits for the data, so that the time is the end's. */
static bool emit_record(struct amdgpu_sdma_stream *s, u64 record)
{
	u64 status = record + offsetof(struct drm_amdgpu_sdma_record, status);
	u64 reserved = record +
		       offsetof(struct drm_amdgpu_sdma_record, reserved);

	if (!reserve(s, AMDGPU_SDMA_RECORD_DW))
		return false;
	s->p = amdgpu_sdma_put_fence(s->p, s->format, reserved, 0);
	s->p = amdgpu_sdma_put_timestamp(s->p, record);
	s->p = amdgpu_sdma_put_fence(s->p, s->format, status,
				     AMDGPU_SDMA_RECORD_DONE);
	return true;
}

static bool emit_part(struct amdgpu_sdma_stream *s,
		      const struct drm_amdgpu_sdma_desc *d, u64 offset,
		      u64 size)
{
	switch (d->op) {
	case AMDGPU_SDMA_OP_COPY:
		return emit_copy(s, d->src + offset, d->dst + offset, size);
	case AMDGPU_SDMA_OP_FILL:
		return emit_fill(s, d->dst + offset, d->value, size);
	case AMDGPU_SDMA_OP_BROADCAST:
		return emit_broadcast(s, d, offset, size);
	case AMDGPU_SDMA_OP_SWAP:
		return emit_swap(s, d->src + offset, d->dst + offset, size);
	case AMDGPU_SDMA_OP_WAIT:
		return emit_wait(s, d);
	default:
		return emit_signal(s, d);
	}
}

/* @next goes on, in both ranges, where a copy of @size bytes ends. */
static bool continues(const struct drm_amdgpu_sdma_desc *d, u64 size,
		      const struct drm_amdgpu_sdma_desc *next)
{
	return next->src == d->src + size && next->dst == d->dst + size &&
	       sdma_is_plain_copy(d) && sdma_is_plain_copy(next);
}

/*
 * The short way for a run of plain copies, of one packet each. Ends before what
 * is anything else, and where there might be no room.
 */
static u32 emit_plain_copies(const struct amdgpu_sdma_plan *plan, u32 i,
			     u32 end, struct amdgpu_sdma_stream *s)
{
	const struct drm_amdgpu_sdma_desc *d = &plan->descs[i];
	u32 *limit = min(s->end, s->ib + AMDGPU_SDMA_MAX_IB_DW) -
		     s->format->copy_dw - AMDGPU_SDMA_COND_DW;
	u32 *p = s->p;

	if (s->guarded)
		return i;
	for (; i < end && p <= limit; i++, d++) {
		if (!sdma_is_plain_copy(d) || d->size > s->format->max_copy)
			break;
		if (i + 1 < end && continues(d, d->size, d + 1))
			break;
		p = amdgpu_sdma_put_copy(p, s->format, d->src, d->dst,
					 d->size);
	}
	s->p = p;
	return i;
}

/*
 * Emits descriptor i from offset on, with copies that continue it, as far as
 * the share goes. Returns the next descriptor, or 0 if there was no room.
 */
static u32 emit_desc(const struct amdgpu_sdma_plan *plan, u32 i, u64 offset,
		     const struct amdgpu_sdma_cursor *end,
		     struct amdgpu_sdma_stream *s)
{
	const struct drm_amdgpu_sdma_desc *d = &plan->descs[i];
	u64 size = i < end->desc ? d->size : end->offset;
	u32 next = i + 1;

	while (next < end->desc && continues(d, size, &plan->descs[next]))
		size += plan->descs[next++].size;
	if (!emit_part(s, d, offset, size - offset))
		return 0;
	if (d->flags & AMDGPU_SDMA_DESC_RECORD && !emit_record(s, d->record))
		return 0;
	return next;
}

static bool needs_barrier(const struct amdgpu_sdma_plan *plan, u32 i)
{
	/* A wait has let all before it end, and holds back what follows. */
	return i && sdma_is_ordered(&plan->descs[i]) &&
	       !sdma_is_wait(&plan->descs[i - 1]);
}

static bool emit_range(const struct amdgpu_sdma_plan *plan,
		       struct amdgpu_sdma_cursor at,
		       const struct amdgpu_sdma_cursor *end,
		       struct amdgpu_sdma_stream *s)
{
	while (at.desc < end->desc ||
	       (at.desc == end->desc && at.offset < end->offset)) {
		if (!at.offset)
			at.desc = emit_plain_copies(plan, at.desc, end->desc, s);
		if (at.desc == end->desc && !end->offset)
			break;
		if (needs_barrier(plan, at.desc) && !emit_barrier(s))
			return false;
		at.desc = emit_desc(plan, at.desc, at.offset, end, s);
		at.offset = 0;
		if (!at.desc)
			return false;
	}
	return true;
}

/**
 * amdgpu_sdma_plan_emit - store the packets of a share
 * @plan: placed
 * @share: which
 * @s: has @format, @base, @end and @slot; the rest is zero
 *
 * Returns: 0, or -ENOSPC if there is less room than amdgpu_sdma_plan_dwords()
 * asked for. The share is empty if @s has no IBs then.
 */
int amdgpu_sdma_plan_emit(const struct amdgpu_sdma_plan *plan, u32 share,
			  struct amdgpu_sdma_stream *s)
{
	const struct amdgpu_sdma_cursor begin = sdma_share_begin(plan, share);
	bool ok;

	/* There may be more engines than work. */
	if (plan->shares > 1 && begin.desc == plan->end[share].desc &&
	    begin.offset == plan->end[share].offset)
		return 0;
	s->p = s->base;
	s->ib = s->base;
	ok = emit_range(plan, begin, &plan->end[share], s) && close_ib(s);
	return ok ? 0 : -ENOSPC;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_emit);
