// SPDX-License-Identifier: MIT
/* KUnit tests of what SDMA descriptors touch, and of overlaps. */

#include "amdgpu_sdma_kunit.h"

static void expect_range(struct kunit *test, const struct amdgpu_sdma_range *r,
			 u64 start, u64 last, bool read, bool write)
{
	KUNIT_EXPECT_EQ(test, r->start, start);
	KUNIT_EXPECT_EQ(test, r->last, last);
	KUNIT_EXPECT_EQ(test, r->rows, 1);
	KUNIT_EXPECT_EQ(test, r->desc, 1);
	KUNIT_EXPECT_EQ(test, r->read, read);
	KUNIT_EXPECT_EQ(test, r->write, write);
}

static u32 ranges_of(struct kunit *test, struct drm_amdgpu_sdma_desc d,
		     struct amdgpu_sdma_range *r)
{
	struct drm_amdgpu_sdma_desc all[] = { { }, d };
	static struct amdgpu_sdma_plan plan;

	kunit_plan(&plan, kunit_format(test), all, 2);
	return amdgpu_sdma_ranges(&plan, 1, r);
}

static void ranges_of_ops(struct kunit *test)
{
	struct amdgpu_sdma_range r[AMDGPU_SDMA_MAX_RANGES];
	struct drm_amdgpu_sdma_desc d;
	u32 i;

	d = kunit_good(AMDGPU_SDMA_OP_COPY);
	KUNIT_EXPECT_EQ(test, ranges_of(test, d, r), 2);
	expect_range(test, &r[0], 0x10000, 0x10fff, true, false);
	expect_range(test, &r[1], 0x20000, 0x20fff, false, true);
	d = kunit_good(AMDGPU_SDMA_OP_FILL);
	KUNIT_EXPECT_EQ(test, ranges_of(test, d, r), 1);
	expect_range(test, &r[0], 0x20000, 0x20fff, false, true);
	d = kunit_good(AMDGPU_SDMA_OP_SWAP);
	KUNIT_EXPECT_EQ(test, ranges_of(test, d, r), 2);
	expect_range(test, &r[0], 0x10000, 0x10fff, true, true);
	expect_range(test, &r[1], 0x20000, 0x20fff, true, true);
	d = kunit_good(AMDGPU_SDMA_OP_WAIT);
	KUNIT_EXPECT_EQ(test, ranges_of(test, d, r), 1);
	expect_range(test, &r[0], 0x10000, 0x10003, true, false);
	d = kunit_good(AMDGPU_SDMA_OP_WRITE);
	KUNIT_EXPECT_EQ(test, ranges_of(test, d, r), 1);
	expect_range(test, &r[0], 0x20000, 0x20007, false, true);
	d = kunit_good(AMDGPU_SDMA_OP_ADD);
	KUNIT_EXPECT_EQ(test, ranges_of(test, d, r), 1);
	expect_range(test, &r[0], 0x20000, 0x20007, true, true);
	d = kunit_good(AMDGPU_SDMA_OP_BROADCAST);
	for (i = 0; i < 7; i++)
		d.dst_more[i] = 0x30000 + i * 0x10000;
	d.record = 0x200020;
	d.flags = AMDGPU_SDMA_DESC_RECORD;
	KUNIT_EXPECT_EQ(test, ranges_of(test, d, r), AMDGPU_SDMA_MAX_RANGES);
	expect_range(test, &r[0], 0x10000, 0x10fff, true, false);
	for (i = 1; i < 9; i++)
		expect_range(test, &r[i], 0x10000 + i * 0x10000,
			     0x10fff + i * 0x10000, false, true);
	expect_range(test, &r[9], 0x200020, 0x20005f, false, true);
}

static void ranges_of_rect(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
	struct amdgpu_sdma_range r[AMDGPU_SDMA_MAX_RANGES];

	KUNIT_EXPECT_EQ(test, ranges_of(test, d, r), 2);
	KUNIT_EXPECT_EQ(test, r[0].start, 0x10000);
	KUNIT_EXPECT_EQ(test, r[0].last, 0x1003f);
	KUNIT_EXPECT_EQ(test, r[0].pitch, 1024);
	KUNIT_EXPECT_EQ(test, r[0].rows, 4);
	KUNIT_EXPECT_TRUE(test, r[0].read && !r[0].write);
	KUNIT_EXPECT_EQ(test, r[1].start, 0x20000);
	KUNIT_EXPECT_EQ(test, r[1].pitch, 512);
	KUNIT_EXPECT_EQ(test, r[1].rows, 4);
	KUNIT_EXPECT_TRUE(test, !r[1].read && r[1].write);
	/* A side without gaps is one range. */
	d.src_pitch = 64;
	KUNIT_EXPECT_EQ(test, ranges_of(test, d, r), 2);
	expect_range(test, &r[0], 0x10000, 0x100ff, true, false);
	KUNIT_EXPECT_EQ(test, r[1].rows, 4);
}

/* All rows of all ranges, in order: the slow way to look for overlaps. */
static bool overlaps(struct kunit *test, const struct drm_amdgpu_sdma_desc *d,
		     u32 n)
{
	struct row { u64 start, last; bool write; } *all;
	struct amdgpu_sdma_range r[AMDGPU_SDMA_MAX_RANGES];
	u32 i, j, k, num = 0;
	bool found = false;

	all = kmalloc_array(n, 128 * sizeof(*all), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, all);
	for (i = 0; i < n; i++)
		for (j = amdgpu_sdma_desc_ranges(&d[i], i, r); j--;)
			for (k = 0; k < r[j].rows; k++)
				all[num++] = (struct row) {
					r[j].start + k * r[j].pitch,
					r[j].last + k * r[j].pitch, r[j].write,
				};
	for (i = 0; i < num; i++)
		for (j = 0; j < i; j++)
			found |= (all[i].write || all[j].write) &&
				 all[i].start <= all[j].last &&
				 all[j].start <= all[i].last;
	kfree(all);
	return found;
}

/* Two that are said to overlap do. */
static noinline_for_stack void
check_pair(struct kunit *test, const struct amdgpu_sdma_plan *plan)
{
	struct drm_amdgpu_sdma_desc pair[2], tmp;

	KUNIT_ASSERT_LT(test, plan->error_index, plan->num);
	KUNIT_ASSERT_LE(test, plan->error_index2, plan->error_index);
	pair[0] = *sdma_desc(plan, plan->error_index2, &tmp);
	pair[1] = *sdma_desc(plan, plan->error_index, &tmp);
	KUNIT_EXPECT_TRUE(test, overlaps(test, pair, plan->error_index ==
					 plan->error_index2 ? 1 : 2));
}

/* A descriptor that reads and writes somewhere in @space bytes. */
static struct drm_amdgpu_sdma_desc somewhere(struct rnd_state *rnd, u32 ops,
					     u64 space)
{
	u32 op = random_below(rnd, ops);
	struct drm_amdgpu_sdma_desc d;

	if (op == AMDGPU_SDMA_OP_WAIT || op == AMDGPU_SDMA_OP_WRITE ||
	    op == AMDGPU_SDMA_OP_ADD)
		op = AMDGPU_SDMA_OP_COPY_RECT;
	d = kunit_good(op);
	d.size = 1 + random_below(rnd, 64);
	d.dst = random_below(rnd, space);
	if (d.src)
		d.src = random_below(rnd, space);
	if (op == AMDGPU_SDMA_OP_COPY_RECT) {
		d.rows = 1 + random_below(rnd, 20);
		d.src_pitch = d.size + random_below(rnd, 3) * 64;
		d.dst_pitch = d.size + random_below(rnd, 3) * 64;
	}
	return d;
}

/* Both answers are wanted, with and without radix sort. */
static void overlap_random(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc *d;
	u32 round, i, n, hits = 0;
	struct rnd_state rnd;

	d = kunit_kcalloc(test, 64, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	prandom_seed_state(&rnd, 1);
	for (round = 0; round < 1000; round++) {
		u64 space = 0x1000ULL << random_below(&rnd, 20);
		u32 ops = round % 3 ? AMDGPU_SDMA_OP_SWAP : ALL_OPS;
		struct amdgpu_sdma_plan plan;
		int ret;

		n = 1 + random_below(&rnd, round % 5 ? 64 : 8);
		for (i = 0; i < n; i++) {
			d[i] = somewhere(&rnd, ops, space);
			/* the usual order, more or less */
			if (round % 2)
				d[i].dst = space * (i + 1) + d[i].dst % 512;
			if (d[i].dst_more[0])
				d[i].dst_more[0] = (1ULL << 40) + i * 64;
		}
		kunit_plan(&plan, kunit_format(test), d, n);
		KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		ret = amdgpu_sdma_plan_overlap(&plan);
		KUNIT_ASSERT_EQ(test, ret,
				overlaps(test, d, n) ? -EEXIST : 0);
		if (ret)
			check_pair(test, &plan);
		hits += !!ret;
	}
	/* Both answers were tried. */
	KUNIT_EXPECT_GT(test, hits, 100);
	KUNIT_EXPECT_LT(test, hits, 900);
}

/* Checked anew, because descriptors have changed. */
static int overlap(struct amdgpu_sdma_plan *plan)
{
	int ret;

	kunit_plan(plan, plan->format, plan->descs, plan->num);
	ret = amdgpu_sdma_plan_check(plan);
	return ret ? ret : amdgpu_sdma_plan_overlap(plan);
}

static void overlap_groups(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[] = {
		kunit_good(AMDGPU_SDMA_OP_COPY), kunit_good(AMDGPU_SDMA_OP_COPY),
		kunit_good(AMDGPU_SDMA_OP_COPY),
	};
	static struct amdgpu_sdma_plan plan;

	kunit_plan(&plan, kunit_format(test), d, 3);
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
	/* In a group that is not the last one. */
	d[0].dst = d[1].dst;
	d[2].src++;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	KUNIT_EXPECT_EQ(test, plan.error_index, 1);
	KUNIT_EXPECT_EQ(test, plan.error_index2, 0);
	d[0].dst = 0x100000;
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	/* What follows a wait does not run beside what comes before it. */
	d[2].flags = 0;
	d[1] = d[2];
	d[0] = d[2];
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	d[1] = kunit_good(AMDGPU_SDMA_OP_WAIT);
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
}

/* The second, third, ... destination of a broadcast, and its record. */
static void overlap_operands(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[] = {
		kunit_good(AMDGPU_SDMA_OP_BROADCAST),
		kunit_good(AMDGPU_SDMA_OP_FILL),
	};
	static struct amdgpu_sdma_plan plan;
	u32 i;

	kunit_plan(&plan, kunit_format(test), d, 2);
	d[0].flags = AMDGPU_SDMA_DESC_RECORD;
	d[0].record = 0x300000;
	d[0].dst = 0x400000;
	for (i = 0; i < 7; i++)
		d[0].dst_more[i] = 0x500000 + i * 0x100000;
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	for (i = 0; i < 7; i++) {
		d[1].dst = d[0].dst_more[i] + 4095;
		KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
		KUNIT_EXPECT_EQ(test, plan.error_index, 1);
		KUNIT_EXPECT_EQ(test, plan.error_index2, 0);
	}
	d[1].dst = d[0].record + 63;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	d[1].dst++;
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	/* Two records, and two destinations of one. */
	d[1].flags = AMDGPU_SDMA_DESC_RECORD;
	d[1].record = d[0].record - 32;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	d[1].record = d[0].record - 64;
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	d[0].dst_more[5] = d[0].dst_more[3] + 4095;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	KUNIT_EXPECT_EQ(test, plan.error_index, 0);
	KUNIT_EXPECT_EQ(test, plan.error_index2, 0);
}

/* First read and then written, far apart, by more than can be sorted as few. */
static void overlap_read_then_written(struct kunit *test)
{
	const u32 num = 100;
	struct drm_amdgpu_sdma_desc *d;
	static struct amdgpu_sdma_plan plan;
	u32 i;

	d = kunit_kcalloc(test, num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < num; i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
		d[i].src = 0x100000000ULL + i * 8192;
		d[i].dst = 0x100000000ULL + i * 8192 + 4096;
	}
	kunit_plan(&plan, kunit_format(test), d, num);
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	for (i = 0; i < num; i++) {
		u64 src = d[i].src;

		/* a long read, over what is written far behind it */
		d[i].src = 0x100000000ULL + (i * 37 % num) * 8192 + 8191;
		KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
		d[i].src = src;
	}
	d[3].size = 0x200000;
	d[3].dst = 1ULL << 40;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	/* All that is read may be read twice. */
	for (i = 0; i < num; i++) {
		d[i].src = 0x100000000ULL + i;
		d[i].dst = (1ULL << 41) - i * 4096;
		d[i].size = 4096;
	}
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	d[99].dst = 0x100000000ULL + 98 + 4096;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	KUNIT_EXPECT_EQ(test, plan.error_index2, 99);
	d[99].dst++;
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
}

/* Columns of a matrix lie between the rows of one another. */
static void overlap_columns(struct kunit *test)
{
	static struct drm_amdgpu_sdma_desc d[8];
	static struct amdgpu_sdma_plan plan;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(d); i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
		d[i].rows = 16;
		d[i].src = 0x100000 + i * 64;
		d[i].src_pitch = 512;
		d[i].dst = 0x200000 + (7 - i) * 64;
		d[i].dst_pitch = 512;
	}
	kunit_plan(&plan, kunit_format(test), d, ARRAY_SIZE(d));
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	/* One row meets one row, the last ones. */
	d[5].dst++;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	KUNIT_EXPECT_EQ(test, plan.error_index, 5);
	KUNIT_EXPECT_EQ(test, plan.error_index2, 4);
	d[5].dst--;
	d[5].dst_pitch = 2 * 512;
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	d[7].dst_pitch = 3 * 512 + 32;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
	/* In place: rows are read between those that are written. */
	d[0].src = 0x300000;
	d[0].dst = 0x300000 + 64;
	kunit_plan(&plan, kunit_format(test), d, 1);
	KUNIT_EXPECT_EQ(test, overlap(&plan), 0);
	d[0].dst--;
	KUNIT_EXPECT_EQ(test, overlap(&plan), -EEXIST);
}

static struct kunit_case ranges_cases[] = {
	KUNIT_CASE(ranges_of_ops),
	KUNIT_CASE(ranges_of_rect),
	KUNIT_CASE(overlap_random),
	KUNIT_CASE(overlap_groups),
	KUNIT_CASE(overlap_operands),
	KUNIT_CASE(overlap_read_then_written),
	KUNIT_CASE(overlap_columns),
	{ }
};

static struct kunit_suite ranges_suite = {
	.name = "amdgpu_sdma_ranges",
	.test_cases = ranges_cases,
};

kunit_test_suite(ranges_suite);
