// SPDX-License-Identifier: MIT
/*
 * The packets of a planned SDMA batch: splits at the engine's limits, merges
 * neighbours, and puts barriers and records between them. Like the plan itself,
 * it can be tested without a device.
 */

#include <kunit/visibility.h>
#include <linux/align.h>
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "amdgpu.h"
#include "amdgpu_sdma_stream.h"

static bool emit_barrier(struct amdgpu_sdma_stream *s)
{
	if (!amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_BARRIER_DW))
		return false;
	amdgpu_sdma_stream_barrier(s);
	return true;
}

static bool emit_copy(struct amdgpu_sdma_stream *s, u64 src, u64 dst, u64 size)
{
	while (size) {
		u64 n = min(size, s->format->max_copy);

		if (!amdgpu_sdma_stream_reserve(s, s->format->copy_dw))
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

		if (!amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_BROADCAST_DW))
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
 * Finds a destination after @i that one packet can serve together with @i: both
 * are equal modulo broadcast_align. Returns sdma_num_dst() if there is none.
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

/* Pairs destinations that one packet can serve, copies to each of the rest. */
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

/* Stores a copy; later packets do not begin before its data is in memory. */
static void put_copy_and_wait(struct amdgpu_sdma_stream *s, u64 src, u64 dst,
			      u64 size)
{
	s->p = amdgpu_sdma_put_copy(s->p, s->format, src, dst, size);
	amdgpu_sdma_stream_barrier(s);
}

/*
 * Data that no packet can exchange is copied through scratch memory. That is
 * free again after the last barrier: for the next part, and for the file's next
 * job on the engine.
 */
static bool emit_bounce(struct amdgpu_sdma_stream *s, u64 a, u64 b, u64 size)
{
	while (size) {
		u64 n = min_t(u64, size, s->format->max_bounce);

		if (!amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_BOUNCE_DW))
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

		if (!amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_SWAP_DW))
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

	if (!amdgpu_sdma_stream_reserve(s, size * AMDGPU_SDMA_FILL_DW))
		return false;
	for (i = 0; i < size; i++)
		s->p = amdgpu_sdma_put_fill_bytes(s->p, s->format, dst + i,
						  pattern >> 8 * i, 1);
	return true;
}

/* @dst is a whole number of patterns after the start of the descriptor. */
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

		if (!amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_FILL_DW))
			return false;
		s->p = amdgpu_sdma_put_fill(s->p, s->format, dst, pattern, n);
		dst += n;
		size -= n;
	}
	return emit_fill_edge(s, dst, pattern, size);
}

static bool emit_signal(struct amdgpu_sdma_stream *s,
			const struct drm_amdgpu_sdma_desc *d)
{
	if (!amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_ATOMIC_DW))
		return false;
	if (d->op == AMDGPU_SDMA_OP_ADD)
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_ADD64,
					      d->dst, d->value);
	else
		s->p = amdgpu_sdma_put_write64(s->p, d->dst, d->value);
	return true;
}

/* Rows one by one, if no other packet can copy them. */
static bool emit_rows(struct amdgpu_sdma_stream *s,
		      const struct drm_amdgpu_sdma_desc *d, u64 row, u64 end)
{
	for (; row < end; row++)
		if (!emit_copy(s, d->src + row * d->src_pitch,
			       d->dst + row * d->dst_pitch, d->size))
			return false;
	return true;
}

static bool emit_windows(struct amdgpu_sdma_stream *s,
			 const struct drm_amdgpu_sdma_desc *d, u32 element,
			 u64 row, u64 end)
{
	struct amdgpu_sdma_window w = {
		.src_pitch = d->src_pitch, .dst_pitch = d->dst_pitch,
		.width = d->size, .element = element,
	};

	for (; row < end; row += w.rows) {
		w.src = d->src + row * d->src_pitch;
		w.dst = d->dst + row * d->dst_pitch;
		w.rows = min_t(u64, end - row, s->format->max_window);
		if (!amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_SUBWIN_DW))
			return false;
		s->p = amdgpu_sdma_put_subwin(s->p, s->format, &w);
	}
	return true;
}

/* @offset and @size are whole rows, unless the rectangle is one range. */
static bool emit_rect(struct amdgpu_sdma_stream *s,
		      const struct drm_amdgpu_sdma_desc *d, u64 offset,
		      u64 size)
{
	u32 element;
	u64 row, end;

	if (sdma_is_linear(d))
		return emit_copy(s, d->src + offset, d->dst + offset, size);
	row = div64_u64(offset, d->size);
	end = div64_u64(offset + size, d->size);
	element = amdgpu_sdma_subwin_element(s->format, d);
	return element ? emit_windows(s, d, element, row, end) :
			 emit_rows(s, d, row, end);
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
	case AMDGPU_SDMA_OP_COPY_RECT:
		return emit_rect(s, d, offset, size);
	default:
		return emit_signal(s, d);
	}
}

/* @next continues, in both ranges, a plain copy of @size bytes. */
static bool continues(const struct amdgpu_sdma_head *d, u64 size,
		      const struct amdgpu_sdma_head *next)
{
	return next->src == d->src + size && next->dst == d->dst + size &&
	       sdma_is_plain_copy(next);
}

/*
 * The short way for a run of plain copies, of one packet each. Stops before any
 * other descriptor, and where there might be no room. A test compares it with
 * the long way.
 */
static u32 emit_plain_copies(const struct amdgpu_sdma_plan *plan, u32 i,
			     u32 end, struct amdgpu_sdma_stream *s)
{
	const struct amdgpu_sdma_head *next, *d = sdma_head(plan, i);
	const struct amdgpu_sdma_format *f = s->format;
	u32 *limit = min(s->end, s->ib + AMDGPU_SDMA_MAX_IB_DW) -
		     f->copy_dw - AMDGPU_SDMA_COND_DW;
	u32 *p = s->p;

	if (s->guarded || plan->long_way)
		return i;
	for (; i < end && p <= limit; i++, d = next) {
		next = (const void *)d + plan->stride;
		if (!sdma_is_plain_copy(d) || d->size > f->max_copy)
			break;
		if (i + 1 < end && continues(d, d->size, next))
			break;
		p = amdgpu_sdma_put_copy(p, f, d->src, d->dst, d->size);
	}
	s->p = p;
	return i;
}

/* Adds to @size the copies that continue @i. Returns the next descriptor. */
static u32 merge_copies(const struct amdgpu_sdma_plan *plan, u32 i, u32 end,
			u64 *size)
{
	const struct amdgpu_sdma_head *d = sdma_head(plan, i);
	u32 next = i + 1;

	if (!sdma_is_plain_copy(d))
		return next;
	while (next < end && continues(d, *size, sdma_head(plan, next)))
		*size += sdma_head(plan, next++)->size;
	return next;
}

static bool emit_recorded(struct amdgpu_sdma_stream *s,
			  const struct drm_amdgpu_sdma_desc *d, u64 offset,
			  u64 size)
{
	if (!(d->flags & AMDGPU_SDMA_DESC_RECORD))
		return emit_part(s, d, offset, size);
	return amdgpu_sdma_stream_record_begin(s, d->record) &&
	       emit_part(s, d, offset, size) &&
	       amdgpu_sdma_stream_record_end(s, d->record);
}

/*
 * Emits descriptor i from offset on, with copies that continue it, up to the
 * end of the share. Returns the next descriptor, or 0 if there was no room.
 */
static u32 emit_desc(const struct amdgpu_sdma_plan *plan, u32 i, u64 offset,
		     const struct amdgpu_sdma_cursor *end,
		     struct amdgpu_sdma_stream *s)
{
	struct drm_amdgpu_sdma_desc tmp;
	const struct drm_amdgpu_sdma_desc *d = sdma_desc(plan, i, &tmp);
	u64 size = i < end->desc ? sdma_bytes(d) : end->offset;
	u32 next = merge_copies(plan, i, end->desc, &size);
	bool ok;

	if (d->op == AMDGPU_SDMA_OP_WAIT)
		ok = amdgpu_sdma_stream_wait(s, d);
	else
		ok = emit_recorded(s, d, offset, size - offset);
	return ok ? next : 0;
}

static bool needs_barrier(const struct amdgpu_sdma_plan *plan, u32 i)
{
	/* A wait lets all before it end, and holds back what follows. */
	return i && sdma_is_ordered(sdma_head(plan, i)) &&
	       !sdma_is_wait(sdma_head(plan, i - 1));
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

/* If there are several shares, each of them repeats the leading waits. */
static bool emit_prelude(const struct amdgpu_sdma_plan *plan,
			 struct amdgpu_sdma_stream *s)
{
	const struct amdgpu_sdma_cursor begin = { }, end = {
		.desc = plan->shares > 1 ? plan->prelude : 0,
	};

	return emit_range(plan, begin, &end, s);
}

/**
 * amdgpu_sdma_plan_emit - store the packets of a share
 * @plan: placed
 * @share: which
 * @s: with @format, @base, @end, @slot and @instance, @sample if the plan has
 *	waits, @scratch if the plan needs that; the rest is zero
 *
 * Returns: 0, or -ENOSPC if there is less room than amdgpu_sdma_plan_dwords()
 * asked for. The share is empty if @s has no IBs afterwards.
 */
int amdgpu_sdma_plan_emit(const struct amdgpu_sdma_plan *plan, u32 share,
			  struct amdgpu_sdma_stream *s)
{
	const struct amdgpu_sdma_cursor begin = sdma_share_begin(plan, share);
	const struct amdgpu_sdma_cursor *end = &plan->end[share];
	u64 record = plan->records +
		     s->instance * sizeof(struct drm_amdgpu_sdma_record);
	bool ok;

	/* There may be more engines than work. */
	if (plan->shares > 1 && begin.desc == end->desc &&
	    begin.offset == end->offset)
		return 0;
	s->mhz = plan->mhz;
	amdgpu_sdma_stream_begin(s);
	ok = !plan->records || amdgpu_sdma_stream_record_begin(s, record);
	ok = ok && emit_prelude(plan, s) && emit_range(plan, begin, end, s);
	if (ok && plan->records)
		ok = amdgpu_sdma_stream_record_share(s, record);
	return ok && amdgpu_sdma_stream_close_ib(s) ? 0 : -ENOSPC;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_emit);
