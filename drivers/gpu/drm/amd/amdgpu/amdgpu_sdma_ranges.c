// SPDX-License-Identifier: MIT
/*
 * The memory that descriptors of an SDMA batch touch, and whether two of them
 * that may run in parallel touch the same bytes.
 *
 * A rectangle is treated as its rows, each a range of its own. A range around
 * them would refuse two rectangles that lie between each other's rows, as the
 * columns of a matrix do. Rows are compared one by one, so a batch has at most
 * AMDGPU_SDMA_MAX_ROWS of them. A side of a rectangle that has no gaps is one
 * range, however many rows it has.
 */

#include <kunit/visibility.h>
#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "amdgpu.h"
#include "amdgpu_sdma_plan.h"

static struct amdgpu_sdma_range range(u64 start, u64 size, u32 i, bool read,
				      bool write)
{
	return (struct amdgpu_sdma_range) {
		.start = start, .last = start + size - 1, .rows = 1,
		.desc = i, .read = read, .write = write,
	};
}

/* One side of a rectangle. */
static struct amdgpu_sdma_range side(const struct drm_amdgpu_sdma_desc *d,
				     u64 start, u64 pitch, u32 i, bool write)
{
	struct amdgpu_sdma_range r = range(start, d->size, i, !write, write);

	if (pitch == d->size) {
		r.last = start + d->size * d->rows - 1;
	} else {
		r.pitch = pitch;
		r.rows = d->rows;
	}
	return r;
}

/* Bytes of an operand that is no rectangle. */
static u64 operand_size(const struct drm_amdgpu_sdma_desc *d)
{
	if (d->size)
		return d->size;
	return d->op == AMDGPU_SDMA_OP_WAIT ? sizeof(u32) : sizeof(u64);
}

static unsigned int dst_ranges(const struct drm_amdgpu_sdma_desc *d, u32 i,
			       struct amdgpu_sdma_range *out)
{
	bool both = d->op == AMDGPU_SDMA_OP_SWAP || d->op == AMDGPU_SDMA_OP_ADD;
	unsigned int n, num = sdma_num_dst(d);

	for (n = 0; n < num; n++)
		out[n] = range(sdma_nth_dst(d, n), operand_size(d), i, both,
			       true);
	return num;
}

static unsigned int op_ranges(const struct drm_amdgpu_sdma_desc *d, u32 i,
			      struct amdgpu_sdma_range *out)
{
	switch (d->op) {
	case AMDGPU_SDMA_OP_COPY_RECT:
		out[0] = side(d, d->src, d->src_pitch, i, false);
		out[1] = side(d, d->dst, d->dst_pitch, i, true);
		return 2;
	case AMDGPU_SDMA_OP_FILL:
	case AMDGPU_SDMA_OP_WRITE:
	case AMDGPU_SDMA_OP_ADD:
		return dst_ranges(d, i, out);
	default:
		out[0] = range(d->src, operand_size(d), i, true,
			       d->op == AMDGPU_SDMA_OP_SWAP);
		if (d->op == AMDGPU_SDMA_OP_WAIT)
			return 1;
		return 1 + dst_ranges(d, i, out + 1);
	}
}

/**
 * amdgpu_sdma_desc_ranges - the memory that a descriptor touches
 * @d: descriptor; members that it does not use are zero
 * @i: index of @d
 * @out: room for AMDGPU_SDMA_MAX_RANGES
 *
 * Returns: number of ranges.
 */
unsigned int amdgpu_sdma_desc_ranges(const struct drm_amdgpu_sdma_desc *d,
				     u32 i, struct amdgpu_sdma_range *out)
{
	unsigned int n = op_ranges(d, i, out);

	if (d->flags & AMDGPU_SDMA_DESC_RECORD)
		out[n++] = range(d->record,
				 sizeof(struct drm_amdgpu_sdma_record), i,
				 false, true);
	return n;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_desc_ranges);

/**
 * amdgpu_sdma_ranges - the memory that a descriptor of a batch touches
 * @plan: checked
 * @i: descriptor
 * @out: room for AMDGPU_SDMA_MAX_RANGES
 *
 * Returns: number of ranges.
 */
unsigned int amdgpu_sdma_ranges(const struct amdgpu_sdma_plan *plan, u32 i,
				struct amdgpu_sdma_range *out)
{
	struct drm_amdgpu_sdma_desc tmp;

	return amdgpu_sdma_desc_ranges(sdma_desc(plan, i, &tmp), i, out);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_ranges);

/* One row of a range, to be sorted. */
struct span {
	u64 start;
	u64 last;
	u32 desc;
	bool write;
};

/* Few spans, or many that are nearly in order. */
static void sort_few(struct span *s, u32 n)
{
	u32 i, j;

	for (i = 1; i < n; i++) {
		struct span x = s[i];

		for (j = i; j && s[j - 1].start > x.start; j--)
			s[j] = s[j - 1];
		s[j] = x;
	}
}

#define RADIX_DIGITS	8

/* Counts of each byte of all addresses. */
struct radix_counts {
	u32 of[RADIX_DIGITS][256];
};

static void radix_pass(const struct span *from, struct span *to, u32 n,
		       u32 *counts, unsigned int shift)
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
 * Sorts by address in time that grows only with n: each of 65536 descriptors
 * must cost no more than each of 512. Returns s or spare, where the result is.
 */
static struct span *sort_many(struct span *s, struct span *spare, u32 n,
			      struct radix_counts *c)
{
	u32 i, digit;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < n; i++)
		for (digit = 0; digit < RADIX_DIGITS; digit++)
			c->of[digit][s[i].start >> 8 * digit & 0xff]++;
	for (digit = 0; digit < RADIX_DIGITS; digit++) {
		/* A digit that all have in common does not change the order. */
		if (c->of[digit][s[0].start >> 8 * digit & 0xff] == n)
			continue;
		radix_pass(s, spare, n, c->of[digit], 8 * digit);
		swap(s, spare);
	}
	return s;
}

/*
 * In the order of addresses, each span meets those before it that reach
 * furthest: the furthest write, and for a write also the furthest read.
 */
static bool find_overlap(const struct span *s, u32 n,
			 struct amdgpu_sdma_plan *plan)
{
	const struct span *read = NULL, *write = NULL, *hit;
	u32 i;

	for (i = 0; i < n; i++) {
		hit = NULL;
		if (write && s[i].start <= write->last)
			hit = write;
		else if (s[i].write && read && s[i].start <= read->last)
			hit = read;
		if (hit) {
			plan->error_index = max(hit->desc, s[i].desc);
			plan->error_index2 = min(hit->desc, s[i].desc);
			return true;
		}
		if (s[i].write)
			/* Earlier writes end before this one begins. */
			write = &s[i];
		else if (!read || s[i].last > read->last)
			read = &s[i];
	}
	return false;
}

#define SORT_FEW	32

/* Working memory of one check. */
struct overlap {
	struct span *spans;
	struct span *spare;
	struct radix_counts *counts;
};

static int overlap_alloc(struct overlap *o, u32 n)
{
	const gfp_t gfp = GFP_KERNEL_ACCOUNT;

	o->spans = kvmalloc_array(n, sizeof(*o->spans), gfp);
	if (!o->spans)
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
	kvfree(o->spans);
}

static bool check_group(struct amdgpu_sdma_plan *plan, struct overlap *o, u32 n)
{
	struct span *sorted = o->spans;

	if (n <= SORT_FEW)
		sort_few(sorted, n);
	else
		sorted = sort_many(sorted, o->spare, n, o->counts);
	return find_overlap(sorted, n, plan);
}

/* The rows of a descriptor, to @out if there is one. Returns how many. */
static u32 desc_spans(const struct amdgpu_sdma_plan *plan, u32 i,
		      struct span *out)
{
	struct amdgpu_sdma_range r[AMDGPU_SDMA_MAX_RANGES];
	unsigned int j, num = amdgpu_sdma_ranges(plan, i, r);
	u32 row, n = 0;

	for (j = 0; j < num; j++) {
		for (row = 0; out && row < r[j].rows; row++)
			out[n + row] = (struct span) {
				.start = r[j].start + row * r[j].pitch,
				.last = r[j].last + row * r[j].pitch,
				.desc = i, .write = r[j].write,
			};
		n += r[j].rows;
	}
	return n;
}

static int check_groups(struct amdgpu_sdma_plan *plan, struct overlap *o)
{
	u32 i, n = 0;

	for (i = 0; i < plan->num; i++) {
		if (sdma_begins_group(plan, i)) {
			if (check_group(plan, o, n))
				return -EEXIST;
			n = 0;
		}
		n += desc_spans(plan, i, o->spans + n);
	}
	return check_group(plan, o, n) ? -EEXIST : 0;
}

/**
 * amdgpu_sdma_plan_overlap - look for descriptors whose order would matter
 * @plan: checked
 *
 * Returns: 0, -ENOMEM, or -EEXIST if two descriptors that may run in parallel,
 * or the operands of one, overlap and one of them writes: @error_index and
 * @error_index2 say which.
 */
int amdgpu_sdma_plan_overlap(struct amdgpu_sdma_plan *plan)
{
	struct overlap o = { };
	u32 i, n = 0;
	int ret;

	if (!plan->sort)
		return 0;
	for (i = 0; i < plan->num; i++)
		n += desc_spans(plan, i, NULL);
	ret = overlap_alloc(&o, n);
	if (!ret)
		ret = check_groups(plan, &o);
	overlap_free(&o);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_overlap);
