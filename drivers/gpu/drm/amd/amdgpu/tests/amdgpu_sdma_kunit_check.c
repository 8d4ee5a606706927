// SPDX-License-Identifier: MIT
/* KUnit tests of the totals of SDMA batches, and of the short way to them. */

#include "amdgpu_sdma_kunit.h"

static int check(struct kunit *test, struct amdgpu_sdma_plan *plan,
		 const struct drm_amdgpu_sdma_desc *d, u32 n)
{
	kunit_plan(plan, kunit_format(test), d, n);
	return amdgpu_sdma_plan_check(plan);
}

static void check_waits(struct kunit *test)
{
	const u32 polls = amdgpu_sdma_wait_polls(MHZ, MAX_WAIT_NS);
	struct drm_amdgpu_sdma_desc d[] = {
		kunit_good(AMDGPU_SDMA_OP_WAIT), kunit_good(AMDGPU_SDMA_OP_WAIT),
	};
	static struct amdgpu_sdma_plan plan;

	d[0].timeout_ns = MAX_WAIT_NS - 2 * POLL_NS;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), 0);
	KUNIT_EXPECT_TRUE(test, plan.waits);
	KUNIT_EXPECT_EQ(test, plan.wait_ns, MAX_WAIT_NS - 2 * POLL_NS + 1);
	KUNIT_EXPECT_EQ(test, plan.polls, polls);
	/* What a read takes counts, be the time as short as it may. */
	d[0].timeout_ns = MAX_WAIT_NS - POLL_NS;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, plan.error_index, 1);
	d[0].timeout_ns = MAX_WAIT_NS / 2;
	d[1].timeout_ns = MAX_WAIT_NS / 2 + 1;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, plan.error_index, 1);
	/* No more reads than one packet has, whatever the time. */
	kunit_plan(&plan, kunit_format(test), d, 1);
	plan.max_wait_ns = U64_MAX;
	d[0].timeout_ns = (AMDGPU_SDMA_MAX_POLLS - 1) * POLL_NS;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_EXPECT_EQ(test, plan.polls, AMDGPU_SDMA_MAX_POLLS);
	d[0].timeout_ns++;
	kunit_plan(&plan, kunit_format(test), d, 1);
	plan.max_wait_ns = U64_MAX;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -EMSGSIZE);
	/* No waits: their clock does not matter. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_FILL);
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 1), 0);
	KUNIT_EXPECT_FALSE(test, plan.waits);
}

static void check_totals(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[] = {
		kunit_good(AMDGPU_SDMA_OP_COPY), kunit_good(AMDGPU_SDMA_OP_COPY),
	};
	static struct amdgpu_sdma_plan plan;
	u32 i;

	d[0].size = AMDGPU_SDMA_MAX_BYTES;
	d[0].dst = 1ULL << 40;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 1), 0);
	d[0].size = AMDGPU_SDMA_MAX_BYTES - 4096;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), 0);
	KUNIT_EXPECT_EQ(test, plan.bytes, AMDGPU_SDMA_MAX_BYTES);
	KUNIT_EXPECT_EQ(test, plan.moved, AMDGPU_SDMA_MAX_BYTES);
	KUNIT_EXPECT_EQ(test, plan.plain, 2);
	d[0].size++;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, plan.error_index, 1);
	/* Each destination counts. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_BROADCAST);
	for (i = 1; i < 7; i++)
		d[0].dst_more[i] = 0x30000 + ((u64)i << 40);
	d[0].size = AMDGPU_SDMA_MAX_BYTES / 8;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.bytes, AMDGPU_SDMA_MAX_BYTES / 8);
	KUNIT_EXPECT_EQ(test, plan.moved, AMDGPU_SDMA_MAX_BYTES);
	d[0].size++;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 1), -EMSGSIZE);
	/* All rows of a rectangle. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.moved, 4 * 64);
	KUNIT_EXPECT_EQ(test, plan.bytes, 4 * 64);
	KUNIT_EXPECT_EQ(test, plan.rows, 4);
	KUNIT_EXPECT_EQ(test, plan.plain, 0);
	KUNIT_EXPECT_FALSE(test, plan.adds || plan.recorded || plan.waits ||
			   plan.bounces);
	d[0] = kunit_good(AMDGPU_SDMA_OP_ADD);
	d[0].record = 0x40000;
	d[0].flags = AMDGPU_SDMA_DESC_RECORD;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 1), 0);
	KUNIT_EXPECT_TRUE(test, plan.adds && plan.recorded);
	d[1] = kunit_good(AMDGPU_SDMA_OP_FILL);
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), 0);
	KUNIT_EXPECT_TRUE(test, plan.adds && plan.recorded);
	KUNIT_EXPECT_EQ(test, plan.bytes, 4096);
	/* Of all rectangles together. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
	d[0].rows = AMDGPU_SDMA_MAX_ROWS - 1;
	d[1] = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
	d[1].rows = 2;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, plan.error_index, 1);
	d[1].rows = 1;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), 0);
	/* A swap that bounces, and one that does not. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_SWAP);
	d[0].src++;
	d[1] = kunit_good(AMDGPU_SDMA_OP_SWAP);
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), 0);
	KUNIT_EXPECT_TRUE(test, plan.bounces);
}

/* Exact bounds of what is simple. */
static void check_dwords(struct kunit *test)
{
	static const u32 dwords[] = { 7, 5, 14, 7, 101, 16, 18, 13 };
	struct drm_amdgpu_sdma_desc d;
	static struct amdgpu_sdma_plan plan;
	u32 op;

	for (op = 0; op < ALL_OPS; op++) {
		d = kunit_good(op);
		KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
		KUNIT_EXPECT_EQ(test, plan.dwords, dwords[op]);
	}
	/* One byte more than packets hold. */
	d = kunit_good(AMDGPU_SDMA_OP_COPY);
	d.size = (1 << 30) + 1;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, 14);
	d = kunit_good(AMDGPU_SDMA_OP_FILL);
	d.size = (1 << 30) + 4;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, 10);
	d.size++;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, 10 + AMDGPU_SDMA_FILL_EDGES_DW);
	d = kunit_good(AMDGPU_SDMA_OP_SWAP);
	d.src = 0x40;
	d.dst = 1ULL << 40;
	d.size = (1 << 30) - 63;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, 14);
	/* Up to the first multiple of 64 it bounces, the rest is one packet. */
	d.src = 0x41;
	d.dst = (1ULL << 40) + 1;
	d.size = (1 << 30) - 1;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, AMDGPU_SDMA_BOUNCE_DW + 7);
	d.dst--;
	d.size = 65537;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, 2 * AMDGPU_SDMA_BOUNCE_DW);
	/* A rectangle: windows, rows, or one range. */
	d = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
	d.rows = (1 << 14) + 1;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, 26);
	d.size = 63;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, 7 * d.rows);
	d.src_pitch = 63;
	d.dst_pitch = 63;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, 7);
	KUNIT_EXPECT_EQ(test, plan.rows, 0);
	d.flags = AMDGPU_SDMA_DESC_BARRIER | AMDGPU_SDMA_DESC_RECORD;
	d.record = 0x40000;
	KUNIT_EXPECT_EQ(test, check(test, &plan, &d, 1), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, 7 + AMDGPU_SDMA_BARRIER_DW +
			AMDGPU_SDMA_RECORD_DW);
}

/* Fewer bytes and descriptors than a batch may have, but too many packets. */
static void check_packets(struct kunit *test)
{
	const u32 dw = AMDGPU_SDMA_BOUNCE_DW + AMDGPU_SDMA_BARRIER_DW +
		       AMDGPU_SDMA_RECORD_DW;
	struct drm_amdgpu_sdma_desc *d;
	static struct amdgpu_sdma_plan plan;
	u32 i;

	d = kvcalloc(AMDGPU_SDMA_MAX_DESCS, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < AMDGPU_SDMA_MAX_DESCS; i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_SWAP);
		d[i].src += 1;
		d[i].flags = AMDGPU_SDMA_DESC_BARRIER | AMDGPU_SDMA_DESC_RECORD;
		d[i].record = 0x40000;
	}
	i = AMDGPU_SDMA_MAX_DWORDS / dw;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, i), 0);
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, AMDGPU_SDMA_MAX_DESCS),
			-EMSGSIZE);
	KUNIT_EXPECT_EQ(test, plan.error_index, i);
	kvfree(d);
}

/* Plain copies take the short way until there is no room for their packets. */
static void check_packets_of_copies(struct kunit *test)
{
	struct amdgpu_sdma_format f = *kunit_format(test);
	const u32 num = 100, fit = 64;
	struct drm_amdgpu_sdma_desc *d;
	static struct amdgpu_sdma_plan plan;
	u32 i;

	d = kunit_kcalloc(test, num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < num; i++)
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
	f.copy_dw = AMDGPU_SDMA_MAX_DWORDS / fit;
	kunit_plan(&plan, &f, d, num);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, plan.error_index, fit);
	kunit_plan(&plan, &f, d, fit);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_EXPECT_EQ(test, plan.dwords, AMDGPU_SDMA_MAX_DWORDS);
	kunit_plan(&plan, &f, d, fit);
	plan.long_way = true;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	/* A device with a short timeout allows less. */
	for (i = 0; i < 2; i++) {
		kunit_plan(&plan, &f, d, fit);
		plan.max_dwords -= i;
		plan.long_way = true;
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan),
				i ? -EMSGSIZE : 0);
		kunit_plan(&plan, &f, d, fit);
		plan.max_dwords -= i;
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan),
				i ? -EMSGSIZE : 0);
	}
	/* Behind something else there is as much less room. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_BROADCAST);
	kunit_plan(&plan, &f, d, num);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, plan.error_index, fit - 1);
}

/* An engine without an operation. */
static void check_lacking(struct kunit *test)
{
	struct amdgpu_sdma_format f = *kunit_format(test);
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_ADD);
	static struct amdgpu_sdma_plan plan;

	kunit_plan(&plan, &f, &d, 1);
	f.native &= ~BIT(AMDGPU_SDMA_OP_ADD);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, plan.error_index, 0);
}

/* Records of engines: no descriptor is at fault. */
static void check_records(struct kunit *test)
{
	const u64 size = 32 * sizeof(struct drm_amdgpu_sdma_record);
	const struct { u64 addr; int error; } of[] = {
		{ 0, 0 }, { 32, 0 }, { 0x100010, -EINVAL }, { 1, -EINVAL },
		{ HOLE_START - size, 0 }, { HOLE_START - size + 32, -ERANGE },
		{ HOLE_START, -ERANGE }, { HOLE_END, 0 }, { -size, 0 },
		{ 32 - size, -ERANGE },
	};
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_COPY);
	static struct amdgpu_sdma_plan plan;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(of); i++) {
		kunit_plan(&plan, kunit_format(test), &d, 1);
		plan.records = of[i].addr;
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan),
				of[i].error);
		KUNIT_EXPECT_EQ(test, plan.error_index, ~0);
	}
}

/* What needs an order, and which waits are in front of all. */
static void check_order(struct kunit *test)
{
	static struct drm_amdgpu_sdma_desc d[4];
	static struct amdgpu_sdma_plan plan;

	d[0] = kunit_good(AMDGPU_SDMA_OP_WAIT);
	d[0].compare = AMDGPU_SDMA_COMPARE_GE;
	d[1] = d[0];
	d[2] = kunit_good(AMDGPU_SDMA_OP_ADD);
	d[3] = kunit_good(AMDGPU_SDMA_OP_COPY);
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 4), 0);
	KUNIT_EXPECT_EQ(test, plan.prelude, 2);
	KUNIT_EXPECT_EQ(test, plan.first_ordered, 4);
	d[1].compare = AMDGPU_SDMA_COMPARE_LE;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 4), 0);
	KUNIT_EXPECT_EQ(test, plan.prelude, 2);
	KUNIT_EXPECT_EQ(test, plan.first_ordered, 1);
	d[1] = d[0];
	d[0].flags = AMDGPU_SDMA_DESC_RECORD;
	d[0].record = 0x40000;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 4), 0);
	KUNIT_EXPECT_EQ(test, plan.first_ordered, 0);
	d[0] = d[1];
	swap(d[2], d[3]);
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 4), 0);
	KUNIT_EXPECT_EQ(test, plan.first_ordered, 3);
	/* A wait behind something else is not in front. */
	swap(d[1], d[2]);
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 4), 0);
	KUNIT_EXPECT_EQ(test, plan.prelude, 1);
	KUNIT_EXPECT_EQ(test, plan.first_ordered, 2);
	/* A barrier of the first one is none. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_COPY);
	d[0].flags = AMDGPU_SDMA_DESC_BARRIER;
	d[1] = kunit_good(AMDGPU_SDMA_OP_FILL);
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), 0);
	KUNIT_EXPECT_EQ(test, plan.prelude, 0);
	KUNIT_EXPECT_EQ(test, plan.first_ordered, 2);
	d[1].flags = AMDGPU_SDMA_DESC_BARRIER;
	KUNIT_EXPECT_EQ(test, check(test, &plan, d, 2), 0);
	KUNIT_EXPECT_EQ(test, plan.first_ordered, 1);
}

/* Copies that write in ascending order, and read elsewhere, need no sorting. */
static void check_sort(struct kunit *test)
{
	static struct drm_amdgpu_sdma_desc d[4];
	static struct amdgpu_sdma_plan plan;
	bool long_way = false;
	u32 i, j;

	do {
		for (i = 0; i < 4; i++) {
			d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
			d[i].dst += i * 4096;
		}
		kunit_plan(&plan, kunit_format(test), d, 4);
		plan.long_way = long_way;
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		KUNIT_EXPECT_FALSE(test, plan.sort);
		KUNIT_EXPECT_EQ(test, plan.reads.first, 0x10000);
		KUNIT_EXPECT_EQ(test, plan.reads.last, 0x10fff);
		KUNIT_EXPECT_EQ(test, plan.writes.first, 0x20000);
		KUNIT_EXPECT_EQ(test, plan.writes.last, 0x23fff);
		/* One byte of what is written, or read. */
		d[3].dst--;
		kunit_plan(&plan, kunit_format(test), d, 4);
		plan.long_way = long_way;
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		KUNIT_EXPECT_TRUE(test, plan.sort);
		d[3].dst++;
		for (i = 0; i < 4; i++) {
			static const u64 src[] = {
				0x24000, 0x23fff, 0x1f000, 0x1f001,
			};

			for (j = 0; j < 4; j++)
				d[j].src = src[i];
			kunit_plan(&plan, kunit_format(test), d, 4);
			plan.long_way = long_way;
			KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
			KUNIT_EXPECT_EQ(test, plan.sort, i % 2);
		}
		/* What a barrier divides is not compared. */
		for (j = 0; j < 3; j++)
			d[j].src = 0x10000;
		d[3].src = 0x20000;
		d[3].flags = AMDGPU_SDMA_DESC_BARRIER;
		kunit_plan(&plan, kunit_format(test), d, 4);
		plan.long_way = long_way;
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		KUNIT_EXPECT_FALSE(test, plan.sort);
		/* Behind what is no copy, one byte of which is written again. */
		d[0] = kunit_good(AMDGPU_SDMA_OP_FILL);
		for (i = 1; i < 4; i++) {
			d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
			d[i].dst += i * 4096;
		}
		for (i = 0; i < 2; i++) {
			d[1].dst -= i;
			kunit_plan(&plan, kunit_format(test), d, 4);
			plan.long_way = long_way;
			KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
			KUNIT_EXPECT_EQ(test, plan.sort, i);
		}
		long_way = !long_way;
	} while (long_way);
}

/* Something wrong with a member of a copy, or nothing. */
static void spoil_copy(struct rnd_state *rnd, struct drm_amdgpu_sdma_desc *d)
{
	switch (random_below(rnd, 60)) {
	case 0:
		d->flags = AMDGPU_SDMA_DESC_BARRIER;
		break;
	case 1:
		d->flags = AMDGPU_SDMA_DESC_RECORD;
		d->record = 0x100000000000ULL + random_below(rnd, 3) * 32;
		break;
	case 2:
		*d = kunit_good(random_below(rnd, ALL_OPS));
		break;
	case 3:
		/* any word, zero for the most part */
		((u64 *)d)[random_below(rnd, sizeof(*d) / 8)] =
			1ULL << random_below(rnd, 64);
		break;
	case 4:
		d->size = (1ULL << 30) + random_below(rnd, 3) - 1;
		break;
	case 5:
		d->dst = HOLE_START - d->size + random_below(rnd, 3) - 1;
		break;
	case 6:
		d->src = HOLE_END + random_below(rnd, 3) - 1;
		break;
	case 7:
		d->dst = -d->size + random_below(rnd, 3) - 1;
		break;
	case 8:
		d->dst = 0;
		break;
	}
}

static void random_copies(struct rnd_state *rnd, u8 *packed,
			  struct amdgpu_sdma_plan *plan, u32 stride)
{
	struct drm_amdgpu_sdma_desc d;
	u32 i;

	for (i = 0; i < plan->num; i++) {
		d = kunit_good(AMDGPU_SDMA_OP_COPY);
		d.size = 1 + random_below(rnd, 8192);
		d.src += i * 8192;
		d.dst = 0x20000000 + i * 8192;
		if (!random_below(rnd, 8))
			d.dst = 0x20000000 + random_below(rnd, 32) * 8192;
		if (!random_below(rnd, 4))
			d.src = 0x10000000 + random_below(rnd, 1 << 20);
		spoil_copy(rnd, &d);
		memcpy(packed + i * stride, &d, stride);
	}
	plan->descs = packed;
	plan->stride = stride;
	if (!random_below(rnd, 8))
		plan->max_bytes = random_below(rnd, plan->num * 8192);
}

static void expect_same(struct kunit *test, const struct amdgpu_sdma_plan *a,
			const struct amdgpu_sdma_plan *b)
{
	KUNIT_EXPECT_EQ(test, a->prelude, b->prelude);
	KUNIT_EXPECT_EQ(test, a->first_ordered, b->first_ordered);
	KUNIT_EXPECT_EQ(test, a->sort, b->sort);
	KUNIT_EXPECT_EQ(test, a->recorded, b->recorded);
	KUNIT_EXPECT_EQ(test, a->bytes, b->bytes);
	KUNIT_EXPECT_EQ(test, a->moved, b->moved);
	KUNIT_EXPECT_EQ(test, a->dwords, b->dwords);
	KUNIT_EXPECT_EQ(test, a->plain, b->plain);
	KUNIT_EXPECT_EQ(test, a->reads.first, b->reads.first);
	KUNIT_EXPECT_EQ(test, a->reads.last, b->reads.last);
	KUNIT_EXPECT_EQ(test, a->writes.first, b->writes.first);
	KUNIT_EXPECT_EQ(test, a->writes.last, b->writes.last);
}

/* The short way decides as the long one does, and counts the same. */
static void check_short_way(struct kunit *test)
{
	const u32 num = 40;
	static struct amdgpu_sdma_plan plan, slow;
	u32 round, good = 0, bad = 0;
	struct rnd_state rnd;
	u8 *packed;
	int ret;

	packed = kunit_kcalloc(test, num, sizeof(struct drm_amdgpu_sdma_desc),
			       GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, packed);
	prandom_seed_state(&rnd, 6);
	for (round = 0; round < 3000; round++) {
		const u32 stride = AMDGPU_SDMA_DESC_SIZE_MIN +
				   8 * random_below(&rnd, 17);

		kunit_plan(&plan, kunit_format(test), NULL,
			   1 + random_below(&rnd, num));
		random_copies(&rnd, packed, &plan, stride);
		slow = plan;
		slow.long_way = true;
		ret = amdgpu_sdma_plan_check(&plan);
		KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&slow), ret);
		KUNIT_ASSERT_EQ(test, slow.error_index, plan.error_index);
		if (!ret)
			expect_same(test, &plan, &slow);
		good += !ret;
		bad += !!ret;
	}
	/* Both were tried. */
	KUNIT_EXPECT_GT(test, good, 300);
	KUNIT_EXPECT_GT(test, bad, 300);
}

/* Each stride: what it leaves out is zero, what it holds is read. */
static void check_strides(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc tmp, d = kunit_good(AMDGPU_SDMA_OP_COPY);
	u8 packed[3 * sizeof(d)];
	static struct amdgpu_sdma_plan plan;
	u32 stride;

	for (stride = AMDGPU_SDMA_DESC_SIZE_MIN; stride <= sizeof(d);
	     stride += 8) {
		memset(packed, 0xee, sizeof(packed));
		memcpy(packed, &d, stride);
		memcpy(packed + stride, &d, stride);
		kunit_plan(&plan, kunit_format(test), (void *)packed, 2);
		plan.stride = stride;
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		KUNIT_EXPECT_MEMEQ(test, sdma_desc(&plan, 1, &tmp), &d,
				   sizeof(d));
		if (stride == AMDGPU_SDMA_DESC_SIZE_MIN)
			continue;
		/* The last word of the second one. */
		packed[2 * stride - 1] = 1;
		kunit_plan(&plan, kunit_format(test), (void *)packed, 2);
		plan.stride = stride;
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -EINVAL);
		KUNIT_EXPECT_EQ(test, plan.error_index, 1);
	}
}

static u64 moved_by_swap(struct kunit *test, u32 version, u64 src, u64 dst,
			 u64 size)
{
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_SWAP);
	static struct amdgpu_sdma_plan plan;

	kunit_plan(&plan, amdgpu_sdma_format(version), &d, 1);
	KUNIT_ASSERT_NOT_NULL(test, plan.format);
	d.src = src;
	d.dst = dst;
	d.size = size;
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_EXPECT_EQ(test, plan.bounces, plan.moved > 2 * d.size);
	return plan.moved - 2 * d.size;
}

/* How much of a swap goes through scratch memory. */
static void swap_bounces(struct kunit *test)
{
	const u32 has = IP_VERSION(4, 4, 2), lacks = IP_VERSION(5, 0, 0);

	KUNIT_EXPECT_EQ(test, 0,
			moved_by_swap(test, has, 0x10000, 0x20000, 4096));
	KUNIT_EXPECT_EQ(test, 63,
			moved_by_swap(test, has, 0x10001, 0x20001, 4096));
	KUNIT_EXPECT_EQ(test, 1,
			moved_by_swap(test, has, 0x1003f, 0x200bf, 4096));
	KUNIT_EXPECT_EQ(test, 4096,
			moved_by_swap(test, has, 0x10000, 0x20020, 4096));
	KUNIT_EXPECT_EQ(test, 4096,
			moved_by_swap(test, lacks, 0x10000, 0x20000, 4096));
	/* It ends before the first multiple. */
	KUNIT_EXPECT_EQ(test, 20,
			moved_by_swap(test, has, 0x10001, 0x20001, 20));
}

static struct kunit_case check_cases[] = {
	KUNIT_CASE(check_waits),
	KUNIT_CASE(check_totals),
	KUNIT_CASE(check_dwords),
	KUNIT_CASE(check_packets),
	KUNIT_CASE(check_packets_of_copies),
	KUNIT_CASE(check_lacking),
	KUNIT_CASE(check_records),
	KUNIT_CASE(check_order),
	KUNIT_CASE(check_sort),
	KUNIT_CASE(check_short_way),
	KUNIT_CASE(check_strides),
	KUNIT_CASE(swap_bounces),
	{ }
};

static struct kunit_suite check_suite = {
	.name = "amdgpu_sdma_check",
	.test_cases = check_cases,
};

kunit_test_suite(check_suite);
