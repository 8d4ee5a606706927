// SPDX-License-Identifier: MIT
/*
 * KUnit tests of SDMA batches: packets dword by dword; every rule of a
 * descriptor; and random batches, whose packets are run by a small engine on a
 * small memory and compared with what the descriptors say.
 */

#include <kunit/test.h>
#include <linux/prandom.h>
#include <linux/unaligned.h>

#include "amdgpu.h"
#include "amdgpu_sdma_plan.h"
#include "vega10_sdma_pkt_open.h"

MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");

#define HOLE_START	0x0000800000000000ULL
#define HOLE_END	0xffff800000000000ULL

static const struct amdgpu_sdma_format *v4_4_2(struct kunit *test)
{
	const struct amdgpu_sdma_format *f;

	f = amdgpu_sdma_format(IP_VERSION(4, 4, 2));
	KUNIT_ASSERT_NOT_NULL(test, f);
	return f;
}

#define EXPECT_DWORDS(test, end, words, ...)				\
	do {								\
		const u32 want_[] = { __VA_ARGS__ };			\
		struct kunit *test_ = (test);				\
		const u32 *words_ = (words);				\
									\
		KUNIT_EXPECT_EQ(test_, (end) - words_, ARRAY_SIZE(want_)); \
		KUNIT_EXPECT_MEMEQ(test_, words_, want_, sizeof(want_)); \
	} while (0)

static void formats(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = v4_4_2(test);

	KUNIT_EXPECT_PTR_EQ(test, f, amdgpu_sdma_format(IP_VERSION(4, 4, 5)));
	KUNIT_EXPECT_NULL(test, amdgpu_sdma_format(IP_VERSION(3, 0, 0)));
	KUNIT_EXPECT_NULL(test, amdgpu_sdma_format(IP_VERSION(8, 0, 0)));
	KUNIT_EXPECT_NULL(test, amdgpu_sdma_format(0));
	KUNIT_EXPECT_EQ(test, f->max_swap % f->swap_align, 0);
	KUNIT_EXPECT_LE(test, f->max_bounce, AMDGPU_SDMA_SCRATCH_SIZE);
	KUNIT_EXPECT_LE(test, f->max_bounce, f->max_copy);
	KUNIT_EXPECT_EQ(test, f->max_fill % 4, 0);
	/* What the count fields of the packets hold, less one. */
	KUNIT_EXPECT_LE(test, f->max_copy - 1, 0x3fffffff);
	KUNIT_EXPECT_LE(test, f->max_swap, 0x3fffffe0);
	KUNIT_EXPECT_LE(test, f->max_skip,
			SDMA_PKT_COND_EXE_EXEC_COUNT_exec_count_mask);
}

static void encode_copies(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = v4_4_2(test);
	u32 w[16], *end;

	end = amdgpu_sdma_put_copy(w, f, 0x123456789a, 0xffff800000000abc,
				   1 << 30);
	EXPECT_DWORDS(test, end, w, 1, 0x3fffffff, 0, 0x3456789a, 0x12, 0xabc,
		      0xffff8000);
	end = amdgpu_sdma_put_broadcast(w, f, 0x1000, 0x2000, 0x300000020, 1);
	EXPECT_DWORDS(test, end, w, 1 | 1 << 27, 0, 0, 0x1000, 0, 0x2000, 0,
		      0x20, 3);
	end = amdgpu_sdma_put_swap(w, 0x40, 0x100000080, 64);
	EXPECT_DWORDS(test, end, w, 1 | 9 << 8, 63, 0, 0x40, 0, 0x80, 1);
}

static void encode_fills(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = v4_4_2(test);
	u32 w[16], *end;

	end = amdgpu_sdma_put_fill(w, f, 0x200000004, 0x12345678, 8);
	EXPECT_DWORDS(test, end, w, 11 | 2u << 30, 4, 2, 0x12345678, 7);
	end = amdgpu_sdma_put_fill_bytes(w, f, 3, 0xab, 1);
	EXPECT_DWORDS(test, end, w, 11, 3, 0, 0xabababab, 0);
	end = amdgpu_sdma_put_write64(w, 0x10, 0x1122334455667788);
	EXPECT_DWORDS(test, end, w, 2, 0x10, 0, 1, 0x55667788, 0x11223344);
}

static void encode_sync(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = v4_4_2(test);
	u32 w[16], *end;

	end = amdgpu_sdma_put_fence(w, f, 0x500000010, 7);
	EXPECT_DWORDS(test, end, w, 5, 0x10, 5, 7);
	end = amdgpu_sdma_put_timestamp(w, 0x500000020);
	EXPECT_DWORDS(test, end, w, 13 | 2 << 8, 0x20, 5);
	end = amdgpu_sdma_put_poll(w, 0x500000004, AMDGPU_SDMA_POLL_GE, 6, 0xff,
				   10, AMDGPU_SDMA_MAX_POLLS);
	EXPECT_DWORDS(test, end, w, 8 | 5 << 28 | 1u << 31, 4, 5, 6, 0xff,
		      10 | 0xffe << 16);
	end = amdgpu_sdma_put_cond(w, 0x500000004, 1, 0x3fff);
	EXPECT_DWORDS(test, end, w, 9, 4, 5, 1, 0x3fff);
	end = amdgpu_sdma_put_atomic(w, AMDGPU_SDMA_ATOMIC_ADD64, 0x18,
				     0x900000001);
	EXPECT_DWORDS(test, end, w, 10 | 0x6fu << 25, 0x18, 0, 1, 9, 0, 0, 0);
}

/* Descriptors that are right, one of each operation. */
static struct drm_amdgpu_sdma_desc good(u32 op)
{
	struct drm_amdgpu_sdma_desc d = { .op = op };

	if (op <= AMDGPU_SDMA_OP_SWAP) {
		d.dst = 0x20000;
		d.size = 4096;
	}
	switch (op) {
	case AMDGPU_SDMA_OP_BROADCAST:
		d.dst_more[0] = 0x30000;
		fallthrough;
	case AMDGPU_SDMA_OP_COPY:
	case AMDGPU_SDMA_OP_SWAP:
		d.src = 0x10000;
		break;
	case AMDGPU_SDMA_OP_WAIT:
		d.src = 0x10000;
		d.mask = 1;
		d.polls = 1;
		break;
	case AMDGPU_SDMA_OP_WRITE:
	case AMDGPU_SDMA_OP_ADD:
		d.dst = 0x20000;
		break;
	}
	return d;
}

static void plan_init(struct amdgpu_sdma_plan *plan,
		      const struct amdgpu_sdma_format *f,
		      const struct drm_amdgpu_sdma_desc *d, u32 n)
{
	memset(plan, 0, sizeof(*plan));
	plan->format = f;
	plan->descs = d;
	plan->num = n;
	plan->max_bytes = AMDGPU_SDMA_MAX_BYTES;
	plan->hole_start = HOLE_START;
	plan->hole_end = HOLE_END;
	plan->error_index = ~0;
	plan->error_index2 = ~0;
}

static int place_one(struct amdgpu_sdma_plan *plan)
{
	return amdgpu_sdma_plan_place(plan, AMDGPU_SDMA_PLACE_ONE_ENGINE, 1);
}

struct rule {
	const char *what;
	u32 op;
	int error;
	void (*spoil)(struct drm_amdgpu_sdma_desc *d);
};

#define SPOIL(name, ...)						\
	static void name(struct drm_amdgpu_sdma_desc *d) { __VA_ARGS__; }

SPOIL(nothing)
SPOIL(set_op, d->op = AMDGPU_SDMA_OP_ADD + 1)
SPOIL(set_flags, d->flags = 4)
SPOIL(set_pad, d->pad = 1)
SPOIL(set_reserved, d->reserved = 1)
SPOIL(set_src, d->src = 4)
SPOIL(set_dst, d->dst = 4)
SPOIL(set_size, d->size = 4)
SPOIL(clear_size, d->size = 0)
SPOIL(set_value, d->value = 1)
SPOIL(set_value_high, d->value = 1ULL << 32)
SPOIL(set_more, d->dst_more[0] = 0x40000)
SPOIL(clear_more, d->dst_more[0] = 0)
SPOIL(gap_in_more, d->dst_more[2] = 0x40000)
SPOIL(set_mask, d->mask = 1)
SPOIL(clear_mask, d->mask = 0)
SPOIL(set_compare, d->compare = AMDGPU_SDMA_COMPARE_LE + 1)
SPOIL(set_polls, d->polls = 1)
SPOIL(clear_polls, d->polls = 0)
SPOIL(most_polls, d->polls = AMDGPU_SDMA_POLL_FOR_EVER)
SPOIL(set_record, d->record = 0x40000)
SPOIL(record_odd, d->record = 0x40010; d->flags = AMDGPU_SDMA_DESC_RECORD)
SPOIL(src_odd, d->src += 2)
SPOIL(src_byte, d->src += 1)
SPOIL(dst_half, d->dst += 4)
SPOIL(wraps, d->dst = -4095ULL)
SPOIL(in_hole, d->src = HOLE_START)
SPOIL(below_hole_end, d->src = HOLE_END - 1)
SPOIL(into_hole, d->src = HOLE_START - 4095)
SPOIL(value_off_mask, d->value = 2)
SPOIL(too_large, d->size = AMDGPU_SDMA_MAX_BYTES + 1)

static const struct rule rules[] = {
	{ "good copy", AMDGPU_SDMA_OP_COPY, 0, nothing },
	{ "good fill", AMDGPU_SDMA_OP_FILL, 0, nothing },
	{ "good broadcast", AMDGPU_SDMA_OP_BROADCAST, 0, nothing },
	{ "good swap", AMDGPU_SDMA_OP_SWAP, 0, nothing },
	{ "good wait", AMDGPU_SDMA_OP_WAIT, 0, nothing },
	{ "good write", AMDGPU_SDMA_OP_WRITE, 0, nothing },
	{ "good add", AMDGPU_SDMA_OP_ADD, 0, nothing },
	{ "operation", 0, -EINVAL, set_op },
	{ "flags", 0, -EINVAL, set_flags },
	{ "pad", 0, -EINVAL, set_pad },
	{ "reserved", 0, -EINVAL, set_reserved },
	{ "source of fill", AMDGPU_SDMA_OP_FILL, -EINVAL, set_src },
	{ "destination of wait", AMDGPU_SDMA_OP_WAIT, -EINVAL, set_dst },
	{ "size of add", AMDGPU_SDMA_OP_ADD, -EINVAL, set_size },
	{ "no size", 0, -EINVAL, clear_size },
	{ "value of copy", 0, -EINVAL, set_value },
	{ "64 bits of fill", AMDGPU_SDMA_OP_FILL, -EINVAL, set_value_high },
	{ "64 bits of wait", AMDGPU_SDMA_OP_WAIT, -EINVAL, set_value_high },
	{ "value off mask", AMDGPU_SDMA_OP_WAIT, -EINVAL, value_off_mask },
	{ "more of copy", 0, -EINVAL, set_more },
	{ "no more", AMDGPU_SDMA_OP_BROADCAST, -EINVAL, clear_more },
	{ "gap", AMDGPU_SDMA_OP_BROADCAST, -EINVAL, gap_in_more },
	{ "mask of copy", 0, -EINVAL, set_mask },
	{ "no mask", AMDGPU_SDMA_OP_WAIT, -EINVAL, clear_mask },
	{ "compare", AMDGPU_SDMA_OP_WAIT, -EINVAL, set_compare },
	{ "polls of copy", 0, -EINVAL, set_polls },
	{ "no polls", AMDGPU_SDMA_OP_WAIT, -EINVAL, clear_polls },
	{ "for ever", AMDGPU_SDMA_OP_WAIT, -EINVAL, most_polls },
	{ "record without flag", 0, -EINVAL, set_record },
	{ "record alignment", 0, -EINVAL, record_odd },
	{ "wait alignment", AMDGPU_SDMA_OP_WAIT, -EINVAL, src_odd },
	{ "swap at any alignment", AMDGPU_SDMA_OP_SWAP, 0, src_byte },
	{ "add alignment", AMDGPU_SDMA_OP_ADD, -EINVAL, dst_half },
	{ "wraps", 0, -ERANGE, wraps },
	{ "hole", 0, -ERANGE, in_hole },
	{ "hole's end", 0, -ERANGE, below_hole_end },
	{ "into hole", 0, -ERANGE, into_hole },
	{ "too large", 0, -E2BIG, too_large },
};

static void rule_name(const struct rule *r, char *name)
{
	strscpy(name, r->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rules, rules, rule_name);

static void check_rule(struct kunit *test)
{
	const struct rule *r = test->param_value;
	struct drm_amdgpu_sdma_desc d[] = {
		good(AMDGPU_SDMA_OP_COPY), good(r->op),
	};
	struct amdgpu_sdma_plan plan;

	plan_init(&plan, v4_4_2(test), d, 2);
	r->spoil(&d[1]);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), r->error);
	KUNIT_EXPECT_EQ(test, plan.error_index, r->error ? 1 : ~0);
}

static void check_totals(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = v4_4_2(test);
	struct drm_amdgpu_sdma_desc d[] = {
		good(AMDGPU_SDMA_OP_WAIT), good(AMDGPU_SDMA_OP_WAIT),
	};
	struct amdgpu_sdma_plan plan;

	plan_init(&plan, f, d, 2);
	d[0].polls = AMDGPU_SDMA_MAX_POLLS - 1;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	d[1].polls = 2;
	plan_init(&plan, f, d, 2);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -E2BIG);
	KUNIT_EXPECT_EQ(test, plan.error_index, 1);
	d[0] = good(AMDGPU_SDMA_OP_COPY);
	d[0].size = AMDGPU_SDMA_MAX_BYTES;
	d[1] = good(AMDGPU_SDMA_OP_COPY);
	plan_init(&plan, f, d, 2);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -E2BIG);
	KUNIT_EXPECT_EQ(test, plan.error_index, 1);
	/* Each destination counts. */
	d[0] = good(AMDGPU_SDMA_OP_BROADCAST);
	d[0].size = AMDGPU_SDMA_MAX_BYTES / 2;
	plan_init(&plan, f, d, 1);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	d[0].size++;
	plan_init(&plan, f, d, 1);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -E2BIG);
}

/* Fewer bytes and descriptors than a batch may have, but too many packets. */
static void check_packets(struct kunit *test)
{
	const u32 dw = AMDGPU_SDMA_BOUNCE_DW + AMDGPU_SDMA_BARRIER_DW +
		       AMDGPU_SDMA_RECORD_DW;
	struct drm_amdgpu_sdma_desc *d;
	struct amdgpu_sdma_plan plan;
	u32 i;

	d = kvcalloc(AMDGPU_SDMA_MAX_DESCS, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < AMDGPU_SDMA_MAX_DESCS; i++) {
		d[i] = good(AMDGPU_SDMA_OP_SWAP);
		d[i].src += 1;
		d[i].flags = AMDGPU_SDMA_DESC_BARRIER | AMDGPU_SDMA_DESC_RECORD;
		d[i].record = 0x40000;
	}
	i = AMDGPU_SDMA_MAX_DWORDS / dw;
	plan_init(&plan, v4_4_2(test), d, i);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	plan_init(&plan, v4_4_2(test), d, AMDGPU_SDMA_MAX_DESCS);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -E2BIG);
	KUNIT_EXPECT_EQ(test, plan.error_index, i);
	kvfree(d);
}

/* An engine without an operation. */
static void check_lacking(struct kunit *test)
{
	struct amdgpu_sdma_format f = *v4_4_2(test);
	struct drm_amdgpu_sdma_desc d = good(AMDGPU_SDMA_OP_ADD);
	struct amdgpu_sdma_plan plan;

	plan_init(&plan, &f, &d, 1);
	f.native &= ~BIT(AMDGPU_SDMA_OP_ADD);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -EOPNOTSUPP);
}

/* Ranges of all in order: the slow way to look for overlaps. */
static bool overlaps(const struct drm_amdgpu_sdma_desc *d, u32 n)
{
	struct amdgpu_sdma_range *r;
	bool found = false;
	u32 i, j, num = 0;

	r = kmalloc_array(n, AMDGPU_SDMA_MAX_RANGES * sizeof(*r), GFP_KERNEL);
	if (!r)
		return false;
	for (i = 0; i < n; i++)
		num += amdgpu_sdma_ranges(&d[i], i, r + num);
	for (i = 0; i < num; i++)
		for (j = 0; j < i; j++)
			found |= (r[i].write || r[j].write) &&
				 r[i].start <= r[j].last &&
				 r[j].start <= r[i].last;
	kfree(r);
	return found;
}

/* Two that are said to overlap do. */
static void check_pair(struct kunit *test, const struct amdgpu_sdma_plan *plan)
{
	struct drm_amdgpu_sdma_desc pair[2];

	KUNIT_ASSERT_LT(test, plan->error_index, plan->num);
	KUNIT_ASSERT_LE(test, plan->error_index2, plan->error_index);
	pair[0] = plan->descs[plan->error_index2];
	pair[1] = plan->descs[plan->error_index];
	KUNIT_EXPECT_TRUE(test, overlaps(pair, plan->error_index ==
					 plan->error_index2 ? 1 : 2));
}

static void overlap_random(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = v4_4_2(test);
	struct drm_amdgpu_sdma_desc *d;
	struct rnd_state rnd;
	u32 round, i, n, hits = 0;

	d = kunit_kcalloc(test, 64, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	prandom_seed_state(&rnd, 1);
	for (round = 0; round < 2000; round++) {
		struct amdgpu_sdma_plan plan;
		u64 space = 0x1000ULL << prandom_u32_state(&rnd) % 24;
		int ret;

		n = 1 + prandom_u32_state(&rnd) % 64;
		for (i = 0; i < n; i++) {
			d[i] = good(prandom_u32_state(&rnd) %
				    AMDGPU_SDMA_OP_SWAP);
			d[i].size = 1 + prandom_u32_state(&rnd) % 64;
			d[i].dst = prandom_u32_state(&rnd) % space;
			/* the usual order, more or less */
			if (round % 2)
				d[i].dst = space * (i + 1) + d[i].dst % 512;
			if (d[i].src)
				d[i].src = prandom_u32_state(&rnd) % space;
			if (d[i].dst_more[0])
				d[i].dst_more[0] = 0x100000 + i * 64;
		}
		plan_init(&plan, f, d, n);
		KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		ret = amdgpu_sdma_plan_overlap(&plan);
		KUNIT_ASSERT_EQ(test, ret, overlaps(d, n) ? -EEXIST : 0);
		if (ret)
			check_pair(test, &plan);
		hits += !!ret;
	}
	/* Both answers were tried. */
	KUNIT_EXPECT_GT(test, hits, 100);
	KUNIT_EXPECT_LT(test, hits, 1900);
}

/* Checked anew, because descriptors have changed. */
static int overlap(struct amdgpu_sdma_plan *plan)
{
	int ret;

	plan_init(plan, plan->format, plan->descs, plan->num);
	ret = amdgpu_sdma_plan_check(plan);
	return ret ? ret : amdgpu_sdma_plan_overlap(plan);
}

static void overlap_groups(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[] = {
		good(AMDGPU_SDMA_OP_COPY), good(AMDGPU_SDMA_OP_COPY),
		good(AMDGPU_SDMA_OP_COPY),
	};
	struct amdgpu_sdma_plan plan;

	plan_init(&plan, v4_4_2(test), d, 3);
	d[0].dst = 0x100000;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	KUNIT_EXPECT_EQ(test, plan.error_index, 2);
	KUNIT_EXPECT_EQ(test, plan.error_index2, 1);
	d[2].flags = AMDGPU_SDMA_DESC_BARRIER;
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	/* An operand of a descriptor against another of the same. */
	d[2].src = d[2].dst + d[2].size - 1;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	KUNIT_EXPECT_EQ(test, plan.error_index, 2);
	KUNIT_EXPECT_EQ(test, plan.error_index2, 2);
}

/*
 * A small engine. Its memory begins at MEMORY; the slot and scratch memory are
 * behind it. Packets that break a limit of the format end the test. Copies are
 * late: they run when a fence waits for them, the last one first.
 */
#define MEMORY		0x1000000ULL
#define MEMORY_SIZE	0x20000
#define SLOT		(MEMORY + MEMORY_SIZE)
#define SCRATCH		(SLOT + AMDGPU_SDMA_SLOT_SIZE)
#define SCRATCH_SIZE	128
#define MEMORY_ALL	(MEMORY_SIZE + AMDGPU_SDMA_SLOT_SIZE + SCRATCH_SIZE)

struct engine {
	struct kunit *test;
	const struct amdgpu_sdma_format *format;
	u8 *memory;
	u32 packets;
	u32 barriers;
	u32 late;
	const u32 *copies[32];
};

static u8 *at(struct engine *e, u64 addr, u64 size)
{
	KUNIT_ASSERT_GE(e->test, addr, MEMORY);
	KUNIT_ASSERT_LE(e->test, addr + size, MEMORY + MEMORY_ALL);
	return e->memory + (addr - MEMORY);
}

static void swap_bytes(u8 *a, u8 *b, u64 size)
{
	for (; size; size--, a++, b++)
		swap(*a, *b);
}

static void run_copy(struct engine *e, const u32 *w)
{
	u64 size = w[1] + 1ULL, a = get_unaligned((u64 *)(w + 3));
	u64 b = get_unaligned((u64 *)(w + 5)), c;

	if (w[0] >> 8 & 0xff) {
		KUNIT_ASSERT_NE(e->test, e->format->swap_align, 0);
		KUNIT_ASSERT_LE(e->test, size, e->format->max_swap);
		KUNIT_ASSERT_EQ(e->test, (a | b) % e->format->swap_align, 0);
		swap_bytes(at(e, a, size), at(e, b, size), size);
		return;
	}
	KUNIT_ASSERT_LE(e->test, size, e->format->max_copy);
	memcpy(at(e, b, size), at(e, a, size), size);
	if (!(w[0] & 1 << 27))
		return;
	KUNIT_ASSERT_TRUE(e->test,
			  e->format->native & BIT(AMDGPU_SDMA_OP_BROADCAST));
	c = get_unaligned((u64 *)(w + 7));
	KUNIT_ASSERT_EQ(e->test, (c - b) % e->format->broadcast_align, 0);
	memcpy(at(e, c, size), at(e, a, size), size);
}

static void run_late(struct engine *e)
{
	while (e->late)
		run_copy(e, e->copies[--e->late]);
}

/* Where the packet ends; it runs later. */
static const u32 *queue_copy(struct engine *e, const u32 *w)
{
	if (e->late == ARRAY_SIZE(e->copies))
		run_late(e);
	e->copies[e->late++] = w;
	if (w[0] >> 8 & 0xff)
		return w + AMDGPU_SDMA_SWAP_DW;
	return w + (w[0] & 1 << 27 ? AMDGPU_SDMA_BROADCAST_DW :
				     e->format->copy_dw);
}

static const u32 *run_fill(struct engine *e, const u32 *w)
{
	u64 dst = get_unaligned((u64 *)(w + 1)), size = w[4] + 1ULL, i;

	KUNIT_ASSERT_LE(e->test, size, e->format->max_fill);
	if (w[0] >> 30)
		KUNIT_ASSERT_EQ(e->test, (dst | size) % 4, 0);
	for (i = 0; i < size; i++)
		*at(e, dst + i, 1) = w[3] >> 8 * (w[0] >> 30 ? i % 4 : 0);
	return w + AMDGPU_SDMA_FILL_DW;
}

static const u32 *run_poll(struct engine *e, const u32 *w)
{
	u32 value = get_unaligned((u32 *)at(e, get_unaligned((u64 *)(w + 1)),
					    4));

	/* Without others to change memory, "for ever" must hold at once. */
	if (w[5] >> 16 == AMDGPU_SDMA_POLL_FOR_EVER) {
		KUNIT_ASSERT_EQ(e->test, value & w[4], w[3]);
		e->barriers++;
	}
	return w + AMDGPU_SDMA_POLL_DW;
}

static const u32 *run_atomic(struct engine *e, const u32 *w)
{
	u8 *p = at(e, get_unaligned((u64 *)(w + 1)), 8);
	u64 add = get_unaligned((u64 *)(w + 3));
	u32 old = get_unaligned((u32 *)p), x = w[3];

	switch (w[0] >> 25) {
	case AMDGPU_SDMA_ATOMIC_ADD64:
		put_unaligned(get_unaligned((u64 *)p) + add, (u64 *)p);
		break;
	case AMDGPU_SDMA_ATOMIC_AND32:
		put_unaligned(old & x, (u32 *)p);
		break;
	case AMDGPU_SDMA_ATOMIC_XOR32:
		put_unaligned(old ^ x, (u32 *)p);
		break;
	case AMDGPU_SDMA_ATOMIC_UMIN32:
		put_unaligned(min(old, x), (u32 *)p);
		break;
	case AMDGPU_SDMA_ATOMIC_UMAX32:
		put_unaligned(max(old, x), (u32 *)p);
		break;
	default:
		KUNIT_FAIL_AND_ABORT(e->test, "atomic %#x", w[0]);
	}
	return w + AMDGPU_SDMA_ATOMIC_DW;
}

static const u32 *run_cond(struct engine *e, const u32 *w, const u32 *end)
{
	u8 *p = at(e, get_unaligned((u64 *)(w + 1)), 4);
	const u32 *next = w + AMDGPU_SDMA_COND_DW;

	KUNIT_ASSERT_LE(e->test, w[4], e->format->max_skip);
	KUNIT_ASSERT_LE(e->test, w[4], end - next);
	return get_unaligned((u32 *)p) == w[3] ? next : next + w[4];
}

static const u32 *run_packet(struct engine *e, const u32 *w, const u32 *end)
{
	u64 addr = get_unaligned((u64 *)(w + 1));

	e->packets++;
	switch (w[0] & 0xff) {
	case SDMA_OP_NOP:
		return w + 1;
	case SDMA_OP_COPY:
		return queue_copy(e, w);
	case SDMA_OP_WRITE:
		memcpy(at(e, addr, 8), w + 4, 8);
		return w + AMDGPU_SDMA_WRITE64_DW;
	case SDMA_OP_FENCE:
		run_late(e);
		put_unaligned(w[3], (u32 *)at(e, addr, 4));
		return w + AMDGPU_SDMA_FENCE_DW;
	case SDMA_OP_POLL_REGMEM:
		return run_poll(e, w);
	case SDMA_OP_COND_EXE:
		return run_cond(e, w, end);
	case SDMA_OP_ATOMIC:
		return run_atomic(e, w);
	case SDMA_OP_CONST_FILL:
		return run_fill(e, w);
	case SDMA_OP_TIMESTAMP:
		memset(at(e, addr, 8), 0x11, 8);
		return w + AMDGPU_SDMA_TIMESTAMP_DW;
	default:
		KUNIT_FAIL_AND_ABORT(e->test, "packet %#x", w[0]);
		return end;
	}
}

static void run_ibs(struct engine *e, const struct amdgpu_sdma_stream *s)
{
	u32 i;

	for (i = 0; i < s->num_ibs; i++) {
		const u32 *w = s->base + s->ibs[i].offset;
		const u32 *end = w + s->ibs[i].length;

		KUNIT_EXPECT_EQ(e->test, s->ibs[i].offset % 8, 0);
		KUNIT_EXPECT_EQ(e->test, s->ibs[i].length % 8, 0);
		KUNIT_EXPECT_LE(e->test, s->ibs[i].length,
				AMDGPU_SDMA_MAX_IB_DW);
		while (w < end)
			w = run_packet(e, w, end);
		KUNIT_EXPECT_PTR_EQ(e->test, w, end);
	}
	run_late(e);
}

/* Emits all shares, runs them one after the other, last first. */
static void run_plan(struct engine *e, const struct amdgpu_sdma_plan *plan)
{
	u32 share = plan->shares;

	while (share--) {
		u64 dw = amdgpu_sdma_plan_dwords(plan, share);
		struct amdgpu_sdma_stream s = {
			.format = plan->format, .slot = SLOT,
			.sample = SLOT + AMDGPU_SDMA_SLOT_SIZE / 2,
			.scratch = SCRATCH,
		};

		s.base = kvcalloc(dw, sizeof(u32), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(e->test, s.base);
		s.end = s.base + dw;
		memset(at(e, SLOT, AMDGPU_SDMA_SLOT_SIZE), 0,
		       AMDGPU_SDMA_SLOT_SIZE);
		KUNIT_EXPECT_EQ(e->test, amdgpu_sdma_plan_emit(plan, share, &s),
				0);
		run_ibs(e, &s);
		kvfree(s.base);
	}
}

/* What a descriptor does, byte by byte. */
static void model(u8 *memory, const struct drm_amdgpu_sdma_desc *d)
{
	u8 *dst = memory + (d->dst - MEMORY), *src = memory + (d->src - MEMORY);
	u64 i;

	switch (d->op) {
	case AMDGPU_SDMA_OP_BROADCAST:
		for (i = 0; i < 3 && d->dst_more[i]; i++)
			memcpy(memory + (d->dst_more[i] - MEMORY), src,
			       d->size);
		fallthrough;
	case AMDGPU_SDMA_OP_COPY:
		memcpy(dst, src, d->size);
		break;
	case AMDGPU_SDMA_OP_FILL:
		for (i = 0; i < d->size; i++)
			dst[i] = d->value >> 8 * (i % 4);
		break;
	case AMDGPU_SDMA_OP_SWAP:
		swap_bytes(src, dst, d->size);
		break;
	case AMDGPU_SDMA_OP_WRITE:
		put_unaligned(d->value, (u64 *)dst);
		break;
	case AMDGPU_SDMA_OP_ADD:
		put_unaligned(get_unaligned((u64 *)dst) + d->value, (u64 *)dst);
		break;
	}
}

#define PLACES	24
#define PLACE	((u64)MEMORY_SIZE / PLACES / 64 * 64)

/* A random descriptor that touches place i only, so that none overlap. */
static struct drm_amdgpu_sdma_desc random_desc(struct rnd_state *rnd, u32 i,
					       u32 ops)
{
	u64 base = MEMORY + i * PLACE, part = PLACE / 4 / 64 * 64;
	struct drm_amdgpu_sdma_desc d = {
		.op = prandom_u32_state(rnd) % ops,
		.dst = base + prandom_u32_state(rnd) % 32,
		.size = 1 + prandom_u32_state(rnd) % (part - 64),
	};

	switch (d.op) {
	case AMDGPU_SDMA_OP_FILL:
		d.value = prandom_u32_state(rnd);
		return d;
	case AMDGPU_SDMA_OP_SWAP:
		/* aligned, equal modulo 64, neither */
		d.dst = base + (i % 3 ? prandom_u32_state(rnd) % 64 : 0);
		d.src = base + 2 * part;
		d.src += i % 3 < 2 ? d.dst % 64 : prandom_u32_state(rnd) % 64;
		return d;
	case AMDGPU_SDMA_OP_BROADCAST:
		d.dst_more[0] = base + 2 * part + prandom_u32_state(rnd) % 32;
		if (prandom_u32_state(rnd) % 2)
			d.dst_more[1] = base + 3 * part + d.dst % 32;
		break;
	case AMDGPU_SDMA_OP_WAIT:
		return (struct drm_amdgpu_sdma_desc) {
			.op = d.op, .src = base, .mask = ~0, .polls = 1,
			.compare = AMDGPU_SDMA_COMPARE_GE,
		};
	case AMDGPU_SDMA_OP_WRITE:
	case AMDGPU_SDMA_OP_ADD:
		d.dst = base;
		d.size = 0;
		d.value = prandom_u32_state(rnd);
		return d;
	}
	d.src = base + part;
	return d;
}

/* Limits so small that most descriptors meet them. */
static const struct amdgpu_sdma_format tiny = {
	.native = ~0,
	.max_copy = 200,
	.max_fill = 60,
	.max_swap = 192,
	.swap_align = 64,
	.max_bounce = SCRATCH_SIZE,
	.broadcast_align = 32,
	.max_skip = 120,
	.copy_dw = 7,
	.copy_header = SDMA_OP_COPY,
	.fill_header = SDMA_OP_CONST_FILL,
	.fence_header = SDMA_OP_FENCE,
};

/* One that lacks what others have, with longer copies. */
static const struct amdgpu_sdma_format lacking = {
	.native = BIT(AMDGPU_SDMA_OP_COPY) | BIT(AMDGPU_SDMA_OP_FILL) |
		  BIT(AMDGPU_SDMA_OP_WAIT) | BIT(AMDGPU_SDMA_OP_WRITE) |
		  BIT(AMDGPU_SDMA_OP_ADD),
	.max_copy = 200,
	.max_fill = 60,
	.max_bounce = 100,
	.broadcast_align = 32,
	.max_skip = 120,
	.copy_dw = 8,
	.copy_header = SDMA_OP_COPY,
	.fill_header = SDMA_OP_CONST_FILL,
	.fence_header = SDMA_OP_FENCE,
};

static void random_batch(struct kunit *test, struct engine *e, u8 *want,
			 struct drm_amdgpu_sdma_desc *d, struct rnd_state *rnd,
			 u32 ops)
{
	u32 i, n = 1 + prandom_u32_state(rnd) % PLACES;
	u32 engines = 1 + prandom_u32_state(rnd) % 8;
	struct amdgpu_sdma_plan plan;

	plan_init(&plan, e->format, d, n);
	for (i = 0; i < n; i++)
		d[i] = random_desc(rnd, i, ops);
	prandom_bytes_state(rnd, want, MEMORY_SIZE);
	memcpy(e->memory, want, MEMORY_SIZE);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_overlap(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0,
			amdgpu_sdma_plan_place(&plan, plan.first_ordered < n ?
					       AMDGPU_SDMA_PLACE_ONE_ENGINE :
					       AMDGPU_SDMA_PLACE_FAN_OUT,
					       engines));
	run_plan(e, &plan);
	for (i = 0; i < n; i++)
		model(want, &d[i]);
	for (i = 0; i < MEMORY_SIZE && want[i] == e->memory[i]; i++)
		;
	KUNIT_ASSERT_EQ_MSG(test, i, MEMORY_SIZE, "operation %u, byte %llu",
			    d[i / PLACE].op, i % PLACE);
}

static void run_random(struct kunit *test, const struct amdgpu_sdma_format *f,
		       u32 ops, u32 seed)
{
	struct engine e = { .test = test, .format = f };
	struct drm_amdgpu_sdma_desc *d;
	struct rnd_state rnd;
	u32 round;
	u8 *want;

	d = kunit_kcalloc(test, PLACES, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	e.memory = kunit_kzalloc(test, MEMORY_ALL, GFP_KERNEL);
	want = kunit_kzalloc(test, MEMORY_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, e.memory);
	KUNIT_ASSERT_NOT_NULL(test, want);
	prandom_seed_state(&rnd, seed);
	for (round = 0; round < 300; round++)
		random_batch(test, &e, want, d, &rnd, ops);
}

static void emit_random_unordered(struct kunit *test)
{
	run_random(test, &tiny, AMDGPU_SDMA_OP_SWAP + 1, 2);
}

static void emit_random_ordered(struct kunit *test)
{
	run_random(test, &tiny, AMDGPU_SDMA_OP_ADD + 1, 3);
}

static void emit_random_lacking(struct kunit *test)
{
	run_random(test, &lacking, AMDGPU_SDMA_OP_ADD + 1, 5);
}

/* Each copy reads what the one before wrote: one barrier between two. */
static void emit_barriers(struct kunit *test)
{
	struct engine e = { .test = test, .format = v4_4_2(test) };
	const u32 num = 16, size = 256;
	struct drm_amdgpu_sdma_desc *d;
	struct amdgpu_sdma_plan plan;
	u32 i;

	d = kunit_kcalloc(test, num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	e.memory = kunit_kzalloc(test, MEMORY_ALL, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, e.memory);
	for (i = 0; i < num; i++) {
		memset(e.memory + i * size, i + 1, size);
		d[i].src = MEMORY + i * size;
		d[i].dst = d[i].src + size;
		d[i].size = size;
		d[i].flags = AMDGPU_SDMA_DESC_BARRIER;
	}
	plan_init(&plan, e.format, d, num);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_overlap(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, place_one(&plan));
	run_plan(&e, &plan);
	KUNIT_EXPECT_EQ(test, e.barriers, num - 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(e.memory, 1, (num + 1) * size));
}

/* Chains: each copy continues the one before, or nearly. */
static void emit_neighbours(struct kunit *test)
{
	struct engine e = { .test = test };
	const struct amdgpu_sdma_format *f = v4_4_2(test);
	struct drm_amdgpu_sdma_desc *d;
	struct amdgpu_sdma_plan plan;
	u8 *want;
	u32 i;

	d = kunit_kcalloc(test, 8, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	plan_init(&plan, f, d, 8);
	e.format = f;
	e.memory = kunit_kzalloc(test, MEMORY_ALL, GFP_KERNEL);
	want = kunit_kzalloc(test, MEMORY_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, e.memory);
	KUNIT_ASSERT_NOT_NULL(test, want);
	get_random_bytes(want, MEMORY_SIZE);
	memcpy(e.memory, want, MEMORY_SIZE);
	for (i = 0; i < 8; i++) {
		d[i].src = MEMORY + i * 256;
		d[i].dst = MEMORY + MEMORY_SIZE / 2 + i * 256;
		d[i].size = i == 3 ? 255 : 256;
		model(want, &d[i]);
	}
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, place_one(&plan));
	run_plan(&e, &plan);
	KUNIT_EXPECT_EQ(test, memcmp(want, e.memory, MEMORY_SIZE), 0);
	/* Two copies and the padding of 14 dwords to 16. */
	KUNIT_EXPECT_EQ(test, e.packets, 4);
}

/* The engine's real limits, without its memory. */
static void emit_real_limits(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = v4_4_2(test);
	struct drm_amdgpu_sdma_desc d = good(AMDGPU_SDMA_OP_SWAP);
	struct amdgpu_sdma_plan plan;
	struct amdgpu_sdma_stream s = { .format = f };
	u64 done = 0;
	u32 i, *buf;

	plan_init(&plan, f, &d, 1);
	d.src = 1ULL << 40;
	d.dst = 1ULL << 42;
	d.size = 3 * f->max_swap + 65;
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, place_one(&plan));
	buf = kunit_kcalloc(test, 256, sizeof(*buf), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	s.base = buf;
	s.end = buf + 256;
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_emit(&plan, 0, &s), 0);
	for (i = 0; i < 4; i++) {
		const u32 *w = buf + i * AMDGPU_SDMA_SWAP_DW;
		u64 src = get_unaligned((u64 *)(w + 3));

		KUNIT_EXPECT_EQ(test, src, d.src + done);
		KUNIT_EXPECT_EQ(test, src % 64, 0);
		KUNIT_EXPECT_LE(test, w[1] + 1ULL, 0x3fffffe0);
		done += w[1] + 1ULL;
	}
	KUNIT_EXPECT_EQ(test, done, d.size);
}

static u64 moved_by_swap(struct kunit *test, u32 version, u64 src, u64 dst)
{
	struct drm_amdgpu_sdma_desc d = good(AMDGPU_SDMA_OP_SWAP);
	struct amdgpu_sdma_plan plan;

	plan_init(&plan, amdgpu_sdma_format(version), &d, 1);
	KUNIT_ASSERT_NOT_NULL(test, plan.format);
	d.src = src;
	d.dst = dst;
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_EXPECT_EQ(test, plan.bounces, plan.moved > 2 * d.size);
	return plan.moved - 2 * d.size;
}

/* How much of a swap of 4096 bytes goes through scratch memory. */
static void swap_bounces(struct kunit *test)
{
	const u32 has = IP_VERSION(4, 4, 2), lacks = IP_VERSION(5, 0, 0);

	KUNIT_EXPECT_EQ(test, moved_by_swap(test, has, 0x10000, 0x20000), 0);
	KUNIT_EXPECT_EQ(test, moved_by_swap(test, has, 0x10001, 0x20001), 63);
	KUNIT_EXPECT_EQ(test, moved_by_swap(test, has, 0x1003f, 0x200bf), 1);
	KUNIT_EXPECT_EQ(test, moved_by_swap(test, has, 0x10000, 0x20020), 4096);
	KUNIT_EXPECT_EQ(test, moved_by_swap(test, lacks, 0x10000, 0x20000),
			4096);
}

/* Less room than the bound is refused, never overrun. */
static void emit_no_room(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d = good(AMDGPU_SDMA_OP_COPY);
	struct amdgpu_sdma_plan plan;
	u32 room, buf[16];

	plan_init(&plan, v4_4_2(test), &d, 1);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, place_one(&plan));
	for (room = 0; room < AMDGPU_SDMA_COPY_DW; room++) {
		struct amdgpu_sdma_stream s = {
			.format = plan.format, .base = buf, .end = buf + room,
		};

		memset(buf, 0xee, sizeof(buf));
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_emit(&plan, 0, &s),
				-ENOSPC);
		KUNIT_EXPECT_EQ(test, buf[room], 0xeeeeeeee);
	}
}

/* A wait that fails: everything behind it is skipped, and it is said. */
static void wait_skips(struct kunit *test)
{
	struct engine e = { .test = test, .format = &tiny };
	struct drm_amdgpu_sdma_desc *d;
	struct amdgpu_sdma_plan plan;
	struct rnd_state rnd;
	u32 i, status;
	u8 *want;

	d = kunit_kcalloc(test, PLACES, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	plan_init(&plan, &tiny, d, PLACES);
	e.memory = kunit_kzalloc(test, MEMORY_ALL, GFP_KERNEL);
	want = kunit_kzalloc(test, MEMORY_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, e.memory);
	KUNIT_ASSERT_NOT_NULL(test, want);
	prandom_seed_state(&rnd, 4);
	for (i = 0; i < PLACES; i++)
		d[i] = random_desc(&rnd, i, AMDGPU_SDMA_OP_ADD + 1);
	d[5] = (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_WAIT, .src = MEMORY + MEMORY_SIZE - 4,
		.mask = ~0, .polls = 1, .value = 1,
	};
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, place_one(&plan));
	run_plan(&e, &plan);
	for (i = 0; i < 5; i++)
		model(want, &d[i]);
	KUNIT_EXPECT_EQ(test, memcmp(want, e.memory, MEMORY_SIZE), 0);
	status = get_unaligned((u32 *)at(&e, SLOT + AMDGPU_SDMA_SLOT_STATUS,
					 4));
	KUNIT_EXPECT_EQ(test, status, AMDGPU_SDMA_STATUS_TIMEOUT);
}

/* Shares of large copies are equal in bytes, of small ones in number. */
static void place_balance(struct kunit *test)
{
	const u32 num = 1000, engines = 16;
	struct drm_amdgpu_sdma_desc *d;
	struct amdgpu_sdma_plan plan;
	u32 i, begin = 0;

	d = kunit_kcalloc(test, num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < num; i++)
		d[i] = good(AMDGPU_SDMA_OP_COPY);
	plan_init(&plan, v4_4_2(test), d, num);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0,
			amdgpu_sdma_plan_place(&plan, AMDGPU_SDMA_PLACE_FAN_OUT,
					       engines));
	for (i = 0; i < engines; i++) {
		u32 n = plan.end[i].desc - begin;

		KUNIT_EXPECT_GE(test, n, num / engines - 1);
		KUNIT_EXPECT_LE(test, n, num / engines + 2);
		begin = plan.end[i].desc;
	}
	KUNIT_EXPECT_EQ(test, begin, num);

	d[0].size = 1600ULL << 20;
	plan_init(&plan, v4_4_2(test), d, 1);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0,
			amdgpu_sdma_plan_place(&plan, AMDGPU_SDMA_PLACE_FAN_OUT,
					       engines));
	for (i = 0; i < engines - 1; i++) {
		KUNIT_EXPECT_EQ(test, plan.end[i].desc, 0);
		KUNIT_EXPECT_LE(test, abs_diff(plan.end[i].offset,
					       (i + 1) * (100ULL << 20)),
				8192);
	}
}

static u32 shares_of(struct kunit *test, struct drm_amdgpu_sdma_desc *d, u32 n,
		     u32 engines)
{
	struct amdgpu_sdma_plan plan;

	plan_init(&plan, v4_4_2(test), d, n);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0,
			amdgpu_sdma_plan_place(&plan, AMDGPU_SDMA_PLACE_AUTO,
					       engines));
	return plan.shares;
}

static void place_auto(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[] = {
		good(AMDGPU_SDMA_OP_COPY), good(AMDGPU_SDMA_OP_FILL),
	};

	d[0].size = AMDGPU_SDMA_AUTO_FAN_OUT_BYTES - 1;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 1);
	d[0].size++;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 8);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 4), 4);
	d[0].size = 1ULL << 30;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 16);
	/* An order inside keeps it on one engine, and so does a wait. */
	d[1].flags = AMDGPU_SDMA_DESC_BARRIER;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 2, 16), 1);
	d[1] = d[0];
	d[0] = good(AMDGPU_SDMA_OP_WAIT);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 2, 16), 1);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 1);
}

/* Packets of many small copies keep an engine busy, however few their bytes. */
static void place_auto_small(struct kunit *test)
{
	const u32 least = AMDGPU_SDMA_AUTO_FAN_OUT_BYTES /
			  AMDGPU_SDMA_AUTO_SMALL_BYTES;
	struct drm_amdgpu_sdma_desc *d;
	u32 i;

	d = kunit_kcalloc(test, 2 * least, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < 2 * least; i++) {
		d[i] = good(AMDGPU_SDMA_OP_COPY);
		d[i].size = 64;
	}
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least - 1, 16), 1);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least, 16), 8);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 2 * least, 16), 16);
	/* The mean counts: a large one among them adds nothing, up to it. */
	d[0].size = least / 2 * AMDGPU_SDMA_AUTO_SMALL_BYTES;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least - 1, 16), 1);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least, 16), 8);
}

static void place_ordered(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[] = {
		good(AMDGPU_SDMA_OP_COPY), good(AMDGPU_SDMA_OP_FILL),
		good(AMDGPU_SDMA_OP_ADD),
	};
	struct amdgpu_sdma_plan plan;

	plan_init(&plan, v4_4_2(test), d, 3);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			amdgpu_sdma_plan_place(&plan, AMDGPU_SDMA_PLACE_FAN_OUT,
					       4));
	KUNIT_EXPECT_EQ(test, plan.error_index, 2);
	/* A wait in front would be polled by each engine for itself. */
	d[0] = good(AMDGPU_SDMA_OP_WAIT);
	plan_init(&plan, v4_4_2(test), d, 2);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_EXPECT_EQ(test, -EINVAL,
			amdgpu_sdma_plan_place(&plan, AMDGPU_SDMA_PLACE_FAN_OUT,
					       4));
	KUNIT_EXPECT_EQ(test, plan.error_index, 0);
}

static struct kunit_case amdgpu_sdma_cases[] = {
	KUNIT_CASE(formats),
	KUNIT_CASE(encode_copies),
	KUNIT_CASE(encode_fills),
	KUNIT_CASE(encode_sync),
	KUNIT_CASE_PARAM(check_rule, rules_gen_params),
	KUNIT_CASE(check_totals),
	KUNIT_CASE(check_packets),
	KUNIT_CASE(check_lacking),
	KUNIT_CASE(overlap_random),
	KUNIT_CASE(overlap_groups),
	KUNIT_CASE(emit_random_unordered),
	KUNIT_CASE(emit_random_ordered),
	KUNIT_CASE(emit_random_lacking),
	KUNIT_CASE(emit_barriers),
	KUNIT_CASE(emit_neighbours),
	KUNIT_CASE(emit_real_limits),
	KUNIT_CASE(swap_bounces),
	KUNIT_CASE(emit_no_room),
	KUNIT_CASE(wait_skips),
	KUNIT_CASE(place_balance),
	KUNIT_CASE(place_auto),
	KUNIT_CASE(place_auto_small),
	KUNIT_CASE(place_ordered),
	{ }
};

static struct kunit_suite amdgpu_sdma_suite = {
	.name = "amdgpu_sdma",
	.test_cases = amdgpu_sdma_cases,
};

kunit_test_suite(amdgpu_sdma_suite);

MODULE_DESCRIPTION("KUnit tests of amdgpu's SDMA batches");
MODULE_LICENSE("Dual MIT/GPL");
