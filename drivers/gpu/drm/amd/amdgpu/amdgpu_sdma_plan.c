// SPDX-License-Identifier: MIT
/*
 * Checks that a batch of SDMA descriptors is well-formed, and adds it up. There
 * is no device, lock or user memory here: KUnit tests all of it, as it tests
 * amdgpu_sdma_ranges.c, which finds overlaps, amdgpu_sdma_place.c, which cuts
 * the batch into shares, and amdgpu_sdma_emit.c, which makes packets of them.
 */

#include <kunit/visibility.h>
#include <linux/align.h>
#include <linux/bitops.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>

#include "amdgpu.h"
#include "amdgpu_sdma_plan.h"

/* The members that each operation uses; the rest must be zero. */
enum {
	USES_SRC = BIT(0),
	USES_DST = BIT(1),
	USES_SIZE = BIT(2),
	USES_VALUE = BIT(3),
	USES_MORE = BIT(4),
	USES_WAIT = BIT(5),
	USES_RECT = BIT(6),
};

static const u8 op_uses[] = {
	[AMDGPU_SDMA_OP_COPY] = USES_SRC | USES_DST | USES_SIZE,
	[AMDGPU_SDMA_OP_FILL] = USES_DST | USES_SIZE | USES_VALUE,
	[AMDGPU_SDMA_OP_BROADCAST] = USES_SRC | USES_DST | USES_SIZE |
				     USES_MORE,
	[AMDGPU_SDMA_OP_SWAP] = USES_SRC | USES_DST | USES_SIZE,
	[AMDGPU_SDMA_OP_WAIT] = USES_SRC | USES_VALUE | USES_WAIT,
	[AMDGPU_SDMA_OP_WRITE] = USES_DST | USES_VALUE,
	[AMDGPU_SDMA_OP_ADD] = USES_DST | USES_VALUE,
	[AMDGPU_SDMA_OP_COPY_RECT] = USES_SRC | USES_DST | USES_SIZE |
				     USES_RECT,
};

/* Zero if all destinations from @i on are zero. */
static u64 more_from(const struct drm_amdgpu_sdma_desc *d, unsigned int i)
{
	u64 any = 0;

	for (; i < ARRAY_SIZE(d->dst_more); i++)
		any |= d->dst_more[i];
	return any;
}

static int check_unused(const struct drm_amdgpu_sdma_desc *d)
{
	u8 uses = op_uses[d->op];
	u64 zero = d->pad | d->reserved[0] | d->reserved[1];

	zero |= d->flags & ~(AMDGPU_SDMA_DESC_BARRIER |
			     AMDGPU_SDMA_DESC_RECORD | AMDGPU_SDMA_DESC_FAULT);
	if (!(uses & USES_SRC))
		zero |= d->src;
	if (!(uses & USES_DST))
		zero |= d->dst;
	if (!(uses & USES_VALUE))
		zero |= d->value;
	if (!(uses & USES_MORE))
		zero |= more_from(d, 0);
	if (!(uses & USES_WAIT))
		zero |= d->mask | d->compare | d->timeout_ns;
	if (!(uses & USES_RECT))
		zero |= d->dst_pitch | d->src_pitch | d->rows;
	if (!(d->flags & AMDGPU_SDMA_DESC_RECORD))
		zero |= d->record;
	if (zero || !(uses & USES_SIZE) == !!d->size)
		return -EINVAL;
	return 0;
}

static int check_size(const struct amdgpu_sdma_plan *plan,
		      const struct drm_amdgpu_sdma_desc *d)
{
	u64 bytes = d->size;

	if (d->op == AMDGPU_SDMA_OP_COPY_RECT &&
	    check_mul_overflow(d->size, (u64)d->rows, &bytes))
		return -EMSGSIZE;
	return bytes > AMDGPU_SDMA_MAX_BYTES ||
	       d->timeout_ns > plan->max_wait_ns ? -EMSGSIZE : 0;
}

static int check_wait(const struct drm_amdgpu_sdma_desc *d)
{
	if (d->compare > AMDGPU_SDMA_COMPARE_LE || !d->timeout_ns || !d->mask)
		return -EINVAL;
	return d->value & ~(u64)d->mask || !IS_ALIGNED(d->src, 4) ? -EINVAL : 0;
}

static int check_operands(const struct drm_amdgpu_sdma_desc *d)
{
	switch (d->op) {
	case AMDGPU_SDMA_OP_FILL:
		return upper_32_bits(d->value) ? -EINVAL : 0;
	case AMDGPU_SDMA_OP_BROADCAST:
		/* at least two, and none after a zero */
		if (!d->dst_more[0] || more_from(d, sdma_num_dst(d)))
			return -EINVAL;
		return 0;
	case AMDGPU_SDMA_OP_WAIT:
		return check_wait(d);
	case AMDGPU_SDMA_OP_WRITE:
	case AMDGPU_SDMA_OP_ADD:
		return IS_ALIGNED(d->dst, 8) ? 0 : -EINVAL;
	case AMDGPU_SDMA_OP_COPY_RECT:
		return !d->rows || d->src_pitch < d->size ||
		       d->dst_pitch < d->size ? -EINVAL : 0;
	default:
		return 0;
	}
}

/* Not wrapped, and all in one half of the canonical addresses. */
static int check_range(const struct amdgpu_sdma_plan *plan,
		       const struct amdgpu_sdma_range *r, u64 *last)
{
	u64 rows;

	if (r->last < r->start ||
	    check_mul_overflow(r->pitch, (u64)r->rows - 1, &rows) ||
	    check_add_overflow(r->last, rows, last))
		return -ERANGE;
	if (r->start < plan->hole_start)
		return *last < plan->hole_start ? 0 : -ERANGE;
	return r->start >= plan->hole_end ? 0 : -ERANGE;
}

static const struct amdgpu_sdma_hull no_hull = { .first = U64_MAX };

static void hull_add(struct amdgpu_sdma_hull *h, u64 first, u64 last)
{
	h->first = min(h->first, first);
	h->last = max(h->last, last);
}

/*
 * What a group has written and read so far. The usual batch writes its
 * destinations in ascending order, and reads elsewhere: then nothing overlaps,
 * and there is nothing to sort.
 */
struct hulls {
	struct amdgpu_sdma_hull write;
	struct amdgpu_sdma_hull read;
};

static void hulls_begin(struct hulls *h)
{
	h->write = no_hull;
	h->read = no_hull;
}

static bool hulls_meet(const struct hulls *h)
{
	return h->write.first <= h->read.last && h->read.first <= h->write.last;
}

static int check_addresses(struct amdgpu_sdma_plan *plan, struct hulls *h,
			   const struct drm_amdgpu_sdma_desc *d)
{
	struct amdgpu_sdma_range r[AMDGPU_SDMA_MAX_RANGES];
	unsigned int i, n;
	u64 last;
	int ret;

	if (!IS_ALIGNED(d->record, AMDGPU_SDMA_RECORD_ALIGN))
		return -EINVAL;
	n = amdgpu_sdma_desc_ranges(d, 0, r);
	for (i = 0; i < n; i++) {
		ret = check_range(plan, &r[i], &last);
		if (ret)
			return ret;
		if (r[i].write) {
			plan->sort |= r[i].start <= h->write.last;
			hull_add(&h->write, r[i].start, last);
		} else {
			hull_add(&h->read, r[i].start, last);
		}
	}
	return 0;
}

static int check_desc(struct amdgpu_sdma_plan *plan, struct hulls *h,
		      const struct drm_amdgpu_sdma_desc *d)
{
	int ret;

	if (d->op >= ARRAY_SIZE(op_uses))
		return -EINVAL;
	if (!(amdgpu_sdma_ops(plan->format) & BIT(d->op)))
		return -EOPNOTSUPP;
	ret = check_unused(d);
	if (ret)
		return ret;
	ret = check_size(plan, d);
	if (ret)
		return ret;
	ret = check_operands(d);
	if (ret)
		return ret;
	return check_addresses(plan, h, d);
}

static u64 packets(u64 size, u64 max)
{
	return DIV_ROUND_UP_ULL(size, max);
}

static u64 swap_dwords(const struct amdgpu_sdma_format *f,
		       const struct drm_amdgpu_sdma_desc *d)
{
	u64 bounce = sdma_swap_bounce(f, d->src, d->dst, d->size);
	u64 dw = packets(bounce, f->max_bounce) * AMDGPU_SDMA_BOUNCE_DW;

	if (bounce < d->size)
		dw += packets(d->size - bounce, f->max_swap) *
		      AMDGPU_SDMA_SWAP_DW;
	return dw;
}

static u64 rect_dwords(const struct amdgpu_sdma_format *f,
		       const struct drm_amdgpu_sdma_desc *d)
{
	if (sdma_is_linear(d))
		return packets(sdma_bytes(d), f->max_copy) * f->copy_dw;
	if (amdgpu_sdma_subwin_element(f, d))
		return packets(d->rows, f->max_window) * AMDGPU_SDMA_SUBWIN_DW;
	return packets(d->size, f->max_copy) * d->rows * f->copy_dw;
}

/* Upper bound, even if the descriptor is merged with others or cut once. */
static u64 op_dwords(const struct amdgpu_sdma_format *f,
		     const struct drm_amdgpu_sdma_desc *d)
{
	u64 dw;

	switch (d->op) {
	case AMDGPU_SDMA_OP_FILL:
		dw = packets(d->size, f->max_fill) * AMDGPU_SDMA_FILL_DW;
		if (!IS_ALIGNED(d->dst | d->size, 4))
			dw += AMDGPU_SDMA_FILL_EDGES_DW;
		return dw;
	case AMDGPU_SDMA_OP_SWAP:
		return swap_dwords(f, d);
	case AMDGPU_SDMA_OP_WAIT:
		/* and the guards before and after it */
		return AMDGPU_SDMA_WAIT_DW + 2 * AMDGPU_SDMA_COND_DW;
	case AMDGPU_SDMA_OP_WRITE:
		return AMDGPU_SDMA_WRITE64_DW;
	case AMDGPU_SDMA_OP_ADD:
		return AMDGPU_SDMA_ATOMIC_DW;
	case AMDGPU_SDMA_OP_COPY_RECT:
		return rect_dwords(f, d);
	default:
		return packets(d->size, f->max_copy) * sdma_num_dst(d) *
		       f->copy_dw;
	}
}

/**
 * amdgpu_sdma_desc_dwords - upper bound of the packets of a descriptor
 * @plan: its batch
 * @i: descriptor, checked
 *
 * Returns: dwords, even if it is merged with others or cut once, without what
 * the cut itself adds.
 */
u64 amdgpu_sdma_desc_dwords(const struct amdgpu_sdma_plan *plan, u32 i)
{
	const struct amdgpu_sdma_head *head = sdma_head(plan, i);
	const struct drm_amdgpu_sdma_desc *d;
	struct drm_amdgpu_sdma_desc tmp;
	u64 dw;

	if (sdma_is_plain_copy(head))
		return packets(head->size, plan->format->max_copy) *
		       plan->format->copy_dw;
	d = sdma_desc(plan, i, &tmp);
	dw = op_dwords(plan->format, d);
	if (sdma_is_ordered(sdma_head(plan, i)))
		dw += AMDGPU_SDMA_BARRIER_DW;
	if (d->flags & AMDGPU_SDMA_DESC_RECORD)
		dw += AMDGPU_SDMA_RECORD_DW;
	return dw;
}

/* Bytes that the engine writes. */
static u64 count_moved(struct amdgpu_sdma_plan *plan,
		       const struct drm_amdgpu_sdma_desc *d)
{
	u64 bounce;

	if (d->op != AMDGPU_SDMA_OP_SWAP)
		return sdma_bytes(d) * sdma_num_dst(d);
	bounce = sdma_swap_bounce(plan->format, d->src, d->dst, d->size);
	plan->bounces |= !!bounce;
	return 2 * d->size + bounce;
}

/*
 * Each engine of a fan-out can repeat the leading waits for itself, if what
 * holds for one will hold for all. A record has room for one engine only.
 */
static bool may_repeat(const struct drm_amdgpu_sdma_desc *d)
{
	return d->compare == AMDGPU_SDMA_COMPARE_GE &&
	       !(d->flags & AMDGPU_SDMA_DESC_RECORD);
}

static void count_wait(struct amdgpu_sdma_plan *plan, u32 i,
		       const struct drm_amdgpu_sdma_desc *d)
{
	bool in_front = i == plan->prelude;

	plan->waits = true;
	plan->wait_ns += d->timeout_ns;
	plan->polls += amdgpu_sdma_wait_polls(plan->mhz, d->timeout_ns);
	if (in_front)
		plan->prelude++;
	if (!in_front || !may_repeat(d))
		plan->first_ordered = min(plan->first_ordered, i);
}

/*
 * The polls of one wait for all of max_wait_ns. Several waits that together
 * last longer poll more often.
 */
static u64 max_polls(const struct amdgpu_sdma_plan *plan)
{
	return min(amdgpu_sdma_wait_polls(plan->mhz, plan->max_wait_ns),
		   AMDGPU_SDMA_MAX_POLLS);
}

static bool is_too_large(const struct amdgpu_sdma_plan *plan)
{
	return plan->moved > plan->max_bytes ||
	       plan->dwords + plan->rows > plan->max_dwords ||
	       plan->rows > AMDGPU_SDMA_MAX_ROWS ||
	       (plan->waits && plan->polls > max_polls(plan));
}

/* Adds a checked descriptor to the totals. */
static int count_desc(struct amdgpu_sdma_plan *plan, u32 i,
		      const struct drm_amdgpu_sdma_desc *d)
{
	const struct amdgpu_sdma_head *head = sdma_head(plan, i);

	plan->bytes += sdma_bytes(d);
	plan->moved += count_moved(plan, d);
	plan->dwords += amdgpu_sdma_desc_dwords(plan, i);
	if (!sdma_is_linear(d))
		plan->rows += d->rows;
	plan->adds |= d->op == AMDGPU_SDMA_OP_ADD;
	plan->recorded |= !!(d->flags & AMDGPU_SDMA_DESC_RECORD);
	if (sdma_is_plain_copy(head)) {
		plan->plain++;
		hull_add(&plan->reads, d->src, d->src + d->size - 1);
		hull_add(&plan->writes, d->dst, d->dst + d->size - 1);
	}
	/* The first one after the leading waits begins after nothing else. */
	if (sdma_is_wait(head))
		count_wait(plan, i, d);
	else if (i > plan->prelude && sdma_is_ordered(head))
		plan->first_ordered = min(plan->first_ordered, i);
	return is_too_large(plan) ? -EMSGSIZE : 0;
}

/* A copy uses only its head: the rest must be zero. */
static bool has_bare_tail(const struct amdgpu_sdma_head *d, u32 stride)
{
	const u64 *tail = (const u64 *)(d + 1);
	const u64 *end = (const void *)d + stride;
	u64 any = 0;

	while (tail < end)
		any |= *tail++;
	return !any;
}

/* A copy of one packet, in the lower half of the addresses. */
static bool is_short_copy(const struct amdgpu_sdma_plan *plan,
			  const struct amdgpu_sdma_head *d)
{
	u64 last = d->size - 1, limit = plan->hole_start - last;

	return sdma_is_plain_copy(d) && last < plan->format->max_copy &&
	       d->src < limit && d->dst < limit &&
	       has_bare_tail(d, plan->stride);
}

/*
 * The short way for plain copies, which most descriptors are, from @i on. Stops
 * before one that is anything else, has an error, or makes the batch too large:
 * then the long way tells which. A test compares the two.
 */
static u32 count_copies(struct amdgpu_sdma_plan *plan, struct hulls *h, u32 i)
{
	u64 left = plan->max_dwords - plan->dwords - plan->rows;
	u64 room = plan->max_bytes - plan->moved, bytes = 0;
	u64 end = min(plan->num, i + div_u64(left, plan->format->copy_dw));
	const struct amdgpu_sdma_head *d = sdma_head(plan, i);
	u32 stride = plan->stride, begin = i;
	struct hulls x;
	bool sort = false;

	hulls_begin(&x);
	for (; i < end; i++, d = (const void *)d + stride) {
		if (!is_short_copy(plan, d) || d->size > room - bytes)
			break;
		bytes += d->size;
		sort |= d->dst <= x.write.last;
		hull_add(&x.read, d->src, d->src + d->size - 1);
		hull_add(&x.write, d->dst, d->dst + d->size - 1);
	}
	plan->sort |= sort || x.write.first <= h->write.last;
	plan->bytes += bytes;
	plan->moved += bytes;
	plan->dwords += (u64)(i - begin) * plan->format->copy_dw;
	plan->plain += i - begin;
	hull_add(&h->read, x.read.first, x.read.last);
	hull_add(&h->write, x.write.first, x.write.last);
	hull_add(&plan->reads, x.read.first, x.read.last);
	hull_add(&plan->writes, x.write.first, x.write.last);
	return i;
}

/* Records of the engines: an array with one element for each engine. */
static int check_records(const struct amdgpu_sdma_plan *plan)
{
	const struct amdgpu_sdma_range r = {
		.start = plan->records,
		.last = plan->records + AMDGPU_SDMA_MAX_SHARES *
			sizeof(struct drm_amdgpu_sdma_record) - 1,
		.rows = 1,
	};
	u64 last;

	if (!plan->records)
		return 0;
	if (!IS_ALIGNED(plan->records, AMDGPU_SDMA_RECORD_ALIGN))
		return -EINVAL;
	return check_range(plan, &r, &last);
}

static int check_and_count(struct amdgpu_sdma_plan *plan, struct hulls *h,
			   u32 i)
{
	struct drm_amdgpu_sdma_desc tmp;
	const struct drm_amdgpu_sdma_desc *d = sdma_desc(plan, i, &tmp);
	int ret = check_desc(plan, h, d);

	if (!ret)
		ret = count_desc(plan, i, d);
	if (ret)
		plan->error_index = i;
	return ret;
}

/**
 * amdgpu_sdma_plan_check - check each descriptor, add up the totals
 * @plan: with @format, @descs, @stride, @num, @max_bytes, @max_wait_ns,
 *	@max_dwords, @mhz, @records and the hole; the rest is zero
 *
 * Returns: 0, or an error for which @error_index is at fault: -EINVAL for a
 * malformed descriptor, -EOPNOTSUPP for an operation that the engine lacks,
 * -ERANGE for an address that does not exist, -EMSGSIZE if the batch up to here
 * is too large for one. If @records is at fault, no descriptor is.
 */
int amdgpu_sdma_plan_check(struct amdgpu_sdma_plan *plan)
{
	u32 i, next;
	struct hulls h;
	int ret;

	plan->first_ordered = plan->num;
	plan->reads = no_hull;
	plan->writes = no_hull;
	ret = check_records(plan);
	hulls_begin(&h);
	for (i = 0; !ret && i < plan->num; i = next) {
		if (sdma_begins_group(plan, i)) {
			plan->sort |= hulls_meet(&h);
			hulls_begin(&h);
		}
		next = plan->long_way ? i : count_copies(plan, &h, i);
		if (next > i)
			continue;
		next = i + 1;
		ret = check_and_count(plan, &h, i);
	}
	plan->sort |= hulls_meet(&h);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_check);
