// SPDX-License-Identifier: MIT
/*
 * What a batch of SDMA descriptors means: whether it is well-formed, in how
 * many parts it runs, and each part's packets. No device, no locks, no user
 * memory: KUnit tests all of it.
 */

#include <kunit/visibility.h>
#include <linux/align.h>
#include <linux/bitops.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "amdgpu.h"
#include "amdgpu_sdma_plan.h"

/*
 * What a descriptor costs besides its bytes, in bytes: makes shares of many
 * small copies equal in number.
 */
#define SHARE_OVERHEAD	4096
/*
 * Shares are cut here, counted from a descriptor's begin: keeps the alignment
 * of swaps and the phase of fill patterns.
 */
#define SHARE_ALIGN	4096

/*
 * Where a cut makes more packets than the whole descriptor has: of a swap, what
 * bounces behind the cut and one packet more.
 */
#define CUT_DW		(4 * AMDGPU_SDMA_COPY_DW + AMDGPU_SDMA_FILL_EDGES_DW + \
			 AMDGPU_SDMA_BOUNCE_DW)

/* Runs at the same time as none of those before it. */
static bool begins_group(const struct drm_amdgpu_sdma_desc *descs, u32 i)
{
	return !i || sdma_is_ordered(&descs[i]) ||
	       sdma_is_wait(&descs[i - 1]);
}

/* Not wrapped, and all in one half of the canonical addresses. */
static int check_range(const struct amdgpu_sdma_plan *plan,
		       const struct amdgpu_sdma_range *r)
{
	if (r->last < r->start)
		return -ERANGE;
	if (r->start < plan->hole_start)
		return r->last < plan->hole_start ? 0 : -ERANGE;
	return r->start >= plan->hole_end ? 0 : -ERANGE;
}

/* What each operation uses; the rest must be zero. */
enum {
	USES_SRC = BIT(0),
	USES_DST = BIT(1),
	USES_SIZE = BIT(2),
	USES_VALUE = BIT(3),
	USES_MORE = BIT(4),
	USES_WAIT = BIT(5),
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
};

static int check_unused(const struct drm_amdgpu_sdma_desc *d)
{
	u8 uses = op_uses[d->op];

	u64 zero = d->pad | d->reserved;

	zero |= d->flags & ~(AMDGPU_SDMA_DESC_BARRIER | AMDGPU_SDMA_DESC_RECORD);
	if (!(uses & USES_SRC))
		zero |= d->src;
	if (!(uses & USES_DST))
		zero |= d->dst;
	if (!(uses & USES_VALUE))
		zero |= d->value;
	if (!(uses & USES_MORE))
		zero |= d->dst_more[0] | d->dst_more[1] | d->dst_more[2];
	if (!(uses & USES_WAIT))
		zero |= d->mask | d->compare | d->polls;
	if (!(d->flags & AMDGPU_SDMA_DESC_RECORD))
		zero |= d->record;
	if (zero || !(uses & USES_SIZE) == !!d->size)
		return -EINVAL;
	return 0;
}

static int check_operands(const struct drm_amdgpu_sdma_desc *d)
{
	switch (d->op) {
	case AMDGPU_SDMA_OP_FILL:
		return upper_32_bits(d->value) ? -EINVAL : 0;
	case AMDGPU_SDMA_OP_BROADCAST:
		/* at least two, and none behind a zero */
		if (!d->dst_more[0] || (!d->dst_more[1] && d->dst_more[2]))
			return -EINVAL;
		return 0;
	case AMDGPU_SDMA_OP_WAIT:
		if (d->compare > AMDGPU_SDMA_COMPARE_LE || !d->polls ||
		    d->polls > AMDGPU_SDMA_MAX_POLLS || !d->mask)
			return -EINVAL;
		return d->value & ~(u64)d->mask || !IS_ALIGNED(d->src, 4) ?
			-EINVAL : 0;
	case AMDGPU_SDMA_OP_WRITE:
	case AMDGPU_SDMA_OP_ADD:
		return IS_ALIGNED(d->dst, 8) ? 0 : -EINVAL;
	default:
		return 0;
	}
}

/*
 * The usual batch writes its destinations in ascending order, and reads
 * elsewhere: then nothing overlaps, and there is nothing to sort. What a group
 * has written and read so far; first is above last if nothing.
 */
struct hulls {
	u64 write_first;
	u64 write_last;
	u64 read_first;
	u64 read_last;
};

static void hulls_begin(struct hulls *h)
{
	h->write_first = U64_MAX;
	h->write_last = 0;
	h->read_first = U64_MAX;
	h->read_last = 0;
}

/* False if the write might overlap one before it. */
static bool hulls_add(struct hulls *h, const struct amdgpu_sdma_range *r)
{
	if (!r->write) {
		h->read_first = min(h->read_first, r->start);
		h->read_last = max(h->read_last, r->last);
		return true;
	}
	if (h->write_first <= h->write_last && r->start <= h->write_last)
		return false;
	h->write_first = min(h->write_first, r->start);
	h->write_last = r->last;
	return true;
}

static bool hulls_meet(const struct hulls *h)
{
	return h->write_first <= h->read_last && h->read_first <= h->write_last;
}

static int check_addresses(struct amdgpu_sdma_plan *plan, struct hulls *h,
			   const struct drm_amdgpu_sdma_desc *d)
{
	struct amdgpu_sdma_range r[AMDGPU_SDMA_MAX_RANGES];
	unsigned int i, n;
	int ret;

	if (d->flags & AMDGPU_SDMA_DESC_RECORD &&
	    !IS_ALIGNED(d->record, sizeof(struct drm_amdgpu_sdma_record)))
		return -EINVAL;
	n = amdgpu_sdma_ranges(d, 0, r);
	for (i = 0; i < n; i++) {
		ret = check_range(plan, &r[i]);
		if (ret)
			return ret;
		plan->sort |= !hulls_add(h, &r[i]);
	}
	return 0;
}

static int check_desc(struct amdgpu_sdma_plan *plan, struct hulls *h,
		      const struct drm_amdgpu_sdma_desc *d)
{
	const struct amdgpu_sdma_format *f = plan->format;
	int ret;

	if (d->op >= ARRAY_SIZE(op_uses))
		return -EINVAL;
	if (!(amdgpu_sdma_ops(f) & BIT(d->op)))
		return -EOPNOTSUPP;
	ret = check_unused(d);
	if (ret)
		return ret;
	if (d->size > AMDGPU_SDMA_MAX_BYTES)
		return -E2BIG;
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

/* Upper bound, however it is merged with others or cut once. */
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
	default:
		return packets(d->size, f->max_copy) * sdma_num_dst(d) *
		       f->copy_dw;
	}
}

static u64 desc_dwords(const struct amdgpu_sdma_format *f,
		       const struct drm_amdgpu_sdma_desc *d)
{
	u64 dw = op_dwords(f, d);

	if (sdma_is_ordered(d))
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
		return d->size * sdma_num_dst(d);
	bounce = sdma_swap_bounce(plan->format, d->src, d->dst, d->size);
	plan->bounces |= !!bounce;
	return 2 * d->size + bounce;
}

/* Adds a checked descriptor to the totals. */
static int count_desc(struct amdgpu_sdma_plan *plan, u32 i)
{
	const struct drm_amdgpu_sdma_desc *d = &plan->descs[i];

	plan->bytes += d->size;
	plan->moved += count_moved(plan, d);
	plan->dwords += desc_dwords(plan->format, d);
	plan->polls += d->polls;
	plan->waits |= sdma_is_wait(d);
	plan->adds |= d->op == AMDGPU_SDMA_OP_ADD;
	if (plan->moved > plan->max_bytes ||
	    plan->dwords > AMDGPU_SDMA_MAX_DWORDS ||
	    plan->polls > AMDGPU_SDMA_MAX_POLLS)
		return -E2BIG;
	/* The first one begins after none, but others begin after a wait. */
	if (sdma_is_wait(d) || (i && sdma_is_ordered(d)))
		plan->first_ordered = min(plan->first_ordered, i);
	return 0;
}

static bool is_bare_copy(const struct drm_amdgpu_sdma_desc *d)
{
	return sdma_is_plain_copy(d) &&
	       !(d->value | d->record | d->dst_more[0] | d->dst_more[1] |
		 d->dst_more[2] | d->mask | d->compare | d->polls | d->pad |
		 d->reserved);
}

/* In few enough packets, and in the lower half of the addresses. */
static bool is_short_copy(const struct amdgpu_sdma_plan *plan,
			  const struct drm_amdgpu_sdma_desc *d)
{
	u64 last = d->size - 1;

	return is_bare_copy(d) && last < plan->format->max_copy &&
	       d->src + last >= d->src && d->src + last < plan->hole_start &&
	       d->dst + last >= d->dst && d->dst + last < plan->hole_start;
}

/*
 * The short way for what most descriptors are, from @i on. Ends before what is
 * anything else, has anything wrong with it, or makes the batch too large: then
 * the long way tells what.
 */
static u32 count_copies(struct amdgpu_sdma_plan *plan, struct hulls *h, u32 i)
{
	u64 dwords = AMDGPU_SDMA_MAX_DWORDS - plan->dwords;
	u64 room = plan->max_bytes - plan->moved, left = room;
	u32 end = min_t(u64, plan->num, i + dwords / plan->format->copy_dw);
	const struct drm_amdgpu_sdma_desc *d = &plan->descs[i];
	struct hulls x = *h;
	u32 begin = i;

	for (; i < end; i++, d++) {
		if (!is_short_copy(plan, d) || d->size > left)
			break;
		left -= d->size;
		x.read_first = min(x.read_first, d->src);
		x.read_last = max(x.read_last, d->src + d->size - 1);
		if (d->dst <= x.write_last && x.write_first <= x.write_last) {
			plan->sort = true;
			continue;
		}
		x.write_first = min(x.write_first, d->dst);
		x.write_last = d->dst + d->size - 1;
	}
	plan->bytes += room - left;
	plan->moved += room - left;
	plan->dwords += (u64)(i - begin) * plan->format->copy_dw;
	*h = x;
	return i;
}

/**
 * amdgpu_sdma_plan_check - check each descriptor, add up the totals
 * @plan: has @format, @descs, @num, @max_bytes and the hole; the rest is zero
 *
 * Returns: 0, or an error that @error_index is at fault for: -EINVAL for a
 * malformed descriptor, -EOPNOTSUPP for an operation that the engine lacks,
 * -ERANGE for an address that does not exist, -E2BIG if the batch is larger up
 * to here than one may be.
 */
int amdgpu_sdma_plan_check(struct amdgpu_sdma_plan *plan)
{
	struct hulls h;
	u32 i = 0, next;
	int ret;

	plan->first_ordered = plan->num;
	hulls_begin(&h);
	for (; i < plan->num; i = next) {
		if (begins_group(plan->descs, i)) {
			plan->sort |= hulls_meet(&h);
			hulls_begin(&h);
		}
		next = count_copies(plan, &h, i);
		if (next > i)
			continue;
		next = i + 1;
		ret = check_desc(plan, &h, &plan->descs[i]);
		if (!ret)
			ret = count_desc(plan, i);
		if (ret) {
			plan->error_index = i;
			return ret;
		}
	}
	plan->sort |= hulls_meet(&h);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_check);

static struct amdgpu_sdma_range range(u64 start, u64 size, u32 index,
				      bool read, bool write)
{
	return (struct amdgpu_sdma_range) {
		.start = start, .last = start + size - 1,
		.desc = index, .read = read, .write = write,
	};
}

/**
 * amdgpu_sdma_ranges - the memory that a descriptor touches
 * @d: descriptor, with members that it does not use zero
 * @index: of @d
 * @out: room for AMDGPU_SDMA_MAX_RANGES
 *
 * Returns: how many ranges.
 */
unsigned int amdgpu_sdma_ranges(const struct drm_amdgpu_sdma_desc *d, u32 index,
				struct amdgpu_sdma_range *out)
{
	bool swap = d->op == AMDGPU_SDMA_OP_SWAP;
	bool both = swap || d->op == AMDGPU_SDMA_OP_ADD;
	u8 uses = op_uses[d->op];
	unsigned int i, n = 0;
	u64 size = d->size;

	/* what most descriptors are */
	if (sdma_is_plain_copy(d)) {
		out[0] = range(d->src, size, index, true, false);
		out[1] = range(d->dst, size, index, false, true);
		return 2;
	}
	if (!size)
		size = sdma_is_wait(d) ? 4 : 8;
	if (uses & USES_SRC)
		out[n++] = range(d->src, size, index, true, swap);
	if (uses & USES_DST)
		for (i = 0; i < sdma_num_dst(d); i++)
			out[n++] = range(sdma_nth_dst(d, i), size, index,
					 both, true);
	if (d->flags & AMDGPU_SDMA_DESC_RECORD)
		out[n++] = range(d->record, 16, index, false, true);
	return n;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_ranges);

/* Few ranges, or many that are nearly in order. */
static void sort_few(struct amdgpu_sdma_range *r, u32 n)
{
	u32 i, j;

	for (i = 1; i < n; i++) {
		struct amdgpu_sdma_range x = r[i];

		for (j = i; j && r[j - 1].start > x.start; j--)
			r[j] = r[j - 1];
		r[j] = x;
	}
}

#define RADIX_DIGITS	8

/* Counts of each byte of all addresses. */
struct radix_counts {
	u32 of[RADIX_DIGITS][256];
};

static void radix_pass(const struct amdgpu_sdma_range *from,
		       struct amdgpu_sdma_range *to, u32 n, u32 *counts,
		       unsigned int shift)
{
	u32 i, at = 0;

	for (i = 0; i < 256; i++) {
		u32 count = counts[i];

		counts[i] = at;
		at += count;
	}
	for (i = 0; i < n; i++)
		to[counts[from[i].start >> shift & 0xff]++] = from[i];
}

/*
 * By address, in time that grows with n only: 65536 descriptors must not cost
 * more each than 512. Returns which of r and spare holds the result.
 */
static struct amdgpu_sdma_range *
sort_many(struct amdgpu_sdma_range *r, struct amdgpu_sdma_range *spare, u32 n,
	  struct radix_counts *c)
{
	u32 i, digit;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < n; i++)
		for (digit = 0; digit < RADIX_DIGITS; digit++)
			c->of[digit][r[i].start >> 8 * digit & 0xff]++;
	for (digit = 0; digit < RADIX_DIGITS; digit++) {
		/* A digit that all have in common does not change the order. */
		if (c->of[digit][r[0].start >> 8 * digit & 0xff] == n)
			continue;
		radix_pass(r, spare, n, c->of[digit], 8 * digit);
		swap(r, spare);
	}
	return r;
}

/*
 * By address, each range meets those before it that reach furthest: the
 * furthest write, and for a write also the furthest read.
 */
static bool find_overlap(const struct amdgpu_sdma_range *r, u32 n,
			 struct amdgpu_sdma_plan *plan)
{
	const struct amdgpu_sdma_range *read = NULL, *write = NULL, *hit;
	u32 i;

	for (i = 0; i < n; i++) {
		hit = NULL;
		if (write && r[i].start <= write->last)
			hit = write;
		else if (r[i].write && read && r[i].start <= read->last)
			hit = read;
		if (hit) {
			plan->error_index = max(hit->desc, r[i].desc);
			plan->error_index2 = min(hit->desc, r[i].desc);
			return true;
		}
		if (r[i].write) {
			if (!write || r[i].last > write->last)
				write = &r[i];
		} else if (!read || r[i].last > read->last) {
			read = &r[i];
		}
	}
	return false;
}

#define SORT_FEW	32

/* Working memory of one check. */
struct overlap {
	struct amdgpu_sdma_range *ranges;
	struct amdgpu_sdma_range *spare;
	struct radix_counts *counts;
};

static int overlap_alloc(struct overlap *o, u32 n)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT;

	o->ranges = kvmalloc_array(n, sizeof(*o->ranges), gfp);
	if (!o->ranges)
		return -ENOMEM;
	if (n <= SORT_FEW)
		return 0;
	o->spare = kvmalloc_array(n, sizeof(*o->spare), gfp);
	o->counts = kvmalloc_obj(*o->counts, gfp);
	return o->spare && o->counts ? 0 : -ENOMEM;
}

static void overlap_free(struct overlap *o)
{
	kvfree(o->counts);
	kvfree(o->spare);
	kvfree(o->ranges);
}

static bool check_group(struct amdgpu_sdma_plan *plan, struct overlap *o, u32 n)
{
	struct amdgpu_sdma_range *sorted = o->ranges;

	if (n <= SORT_FEW)
		sort_few(sorted, n);
	else
		sorted = sort_many(sorted, o->spare, n, o->counts);
	return find_overlap(sorted, n, plan);
}

static int check_groups(struct amdgpu_sdma_plan *plan, struct overlap *o)
{
	u32 i, n = 0;

	for (i = 0; i < plan->num; i++) {
		if (begins_group(plan->descs, i)) {
			if (check_group(plan, o, n))
				return -EEXIST;
			n = 0;
		}
		n += amdgpu_sdma_ranges(&plan->descs[i], i, o->ranges + n);
	}
	return check_group(plan, o, n) ? -EEXIST : 0;
}

/**
 * amdgpu_sdma_plan_overlap - look for descriptors whose order would matter
 * @plan: checked
 *
 * Returns: 0, -ENOMEM, or -EEXIST if two that may run in parallel, or the
 * operands of one, overlap where one of them writes: @error_index and
 * @error_index2 say which.
 */
int amdgpu_sdma_plan_overlap(struct amdgpu_sdma_plan *plan)
{
	struct overlap o = { };
	u32 i, n = 0;
	int ret;

	if (!plan->sort)
		return 0;
	for (i = 0; i < plan->num; i++) {
		struct amdgpu_sdma_range r[AMDGPU_SDMA_MAX_RANGES];

		n += amdgpu_sdma_ranges(&plan->descs[i], i, r);
	}
	ret = overlap_alloc(&o, n);
	if (!ret)
		ret = check_groups(plan, &o);
	overlap_free(&o);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_overlap);

/*
 * By what the engines have to do: move the bytes, or, if descriptors are small,
 * process their packets. See Documentation/gpu/amdgpu/sdma-batch.rst for where
 * the thresholds are from.
 */
static u32 auto_shares(const struct amdgpu_sdma_plan *plan, u32 engines)
{
	u64 work = max(plan->bytes,
		       (u64)plan->num * AMDGPU_SDMA_AUTO_SMALL_BYTES);

	if (plan->first_ordered != plan->num ||
	    work < AMDGPU_SDMA_AUTO_FAN_OUT_BYTES)
		return 1;
	return min_t(u64, engines,
		     div_u64(work, AMDGPU_SDMA_AUTO_SHARE_BYTES));
}

/* Where a share may end that should end @over bytes into descriptor @i. */
static struct amdgpu_sdma_cursor cut(const struct amdgpu_sdma_plan *plan, u32 i,
				     u64 over)
{
	const struct drm_amdgpu_sdma_desc *d = &plan->descs[i];
	struct amdgpu_sdma_cursor c = { .desc = i };

	/* A record tells the end of all of its descriptor. */
	if (d->flags & AMDGPU_SDMA_DESC_RECORD)
		return c;
	c.offset = min(over, d->size);
	if (c.offset == d->size) {
		c.desc++;
		c.offset = 0;
	}
	c.offset = ALIGN_DOWN(c.offset, SHARE_ALIGN);
	return c;
}

static void cut_shares(struct amdgpu_sdma_plan *plan)
{
	u64 total, before = 0, goal;
	u32 i, share = 0;

	total = plan->bytes + (u64)plan->num * SHARE_OVERHEAD;
	for (i = 0; i < plan->num; i++) {
		u64 weight = plan->descs[i].size + SHARE_OVERHEAD;

		while (share < plan->shares - 1) {
			goal = div_u64(total * (share + 1), plan->shares);
			if (before + weight <= goal)
				break;
			plan->end[share++] = cut(plan, i, goal - before);
		}
		before += weight;
	}
	while (share < plan->shares)
		plan->end[share++] = (struct amdgpu_sdma_cursor) {
			.desc = plan->num,
		};
}

/**
 * amdgpu_sdma_plan_place - cut the batch in shares that run in parallel
 * @plan: checked
 * @placement: AMDGPU_SDMA_PLACE_*
 * @engines: how many there are
 *
 * Returns: 0, -EINVAL if a fan-out was asked for of what needs an order:
 * @error_index says what.
 */
int amdgpu_sdma_plan_place(struct amdgpu_sdma_plan *plan, u32 placement,
			   u32 engines)
{
	engines = min(engines, AMDGPU_SDMA_MAX_SHARES);
	plan->placement = placement;
	switch (placement) {
	case AMDGPU_SDMA_PLACE_AUTO:
		plan->shares = auto_shares(plan, engines);
		break;
	case AMDGPU_SDMA_PLACE_ONE_ENGINE:
		plan->shares = 1;
		break;
	case AMDGPU_SDMA_PLACE_FAN_OUT:
		if (plan->first_ordered != plan->num) {
			plan->error_index = plan->first_ordered;
			return -EINVAL;
		}
		plan->shares = engines;
		break;
	default:
		return -EINVAL;
	}
	cut_shares(plan);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_place);

/**
 * amdgpu_sdma_plan_dwords - upper bound of the packets of a share
 * @plan: placed
 * @share: which
 *
 * Returns: dwords, a multiple of 8.
 */
u64 amdgpu_sdma_plan_dwords(const struct amdgpu_sdma_plan *plan, u32 share)
{
	u64 dw = 0;
	u32 i;

	if (plan->shares == 1)
		dw = plan->dwords;
	else
		for (i = sdma_share_begin(plan, share).desc;
		     i < plan->num && i <= plan->end[share].desc; i++)
			dw += desc_dwords(plan->format, &plan->descs[i]);
	/* Cut at both ends, padding, and a guard each max_skip at most. */
	dw += 2 * CUT_DW + 8 * AMDGPU_SDMA_MAX_IBS + 64 + dw / 64;
	return ALIGN(dw, 8);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_dwords);
