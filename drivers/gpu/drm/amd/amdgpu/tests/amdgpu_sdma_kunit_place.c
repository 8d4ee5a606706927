// SPDX-License-Identifier: MIT
/* KUnit tests of the shares and the engines of SDMA batches. */

#include "amdgpu_sdma_kunit.h"

#define FAN_OUT	AMDGPU_SDMA_PLACE_FAN_OUT
#define AUTO	AMDGPU_SDMA_PLACE_AUTO
#define ONE	AMDGPU_SDMA_PLACE_ONE_ENGINE

static void checked(struct kunit *test, struct amdgpu_sdma_plan *plan,
		    const struct drm_amdgpu_sdma_desc *d, u32 n)
{
	kunit_plan(plan, kunit_format(test), d, n);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(plan), 0);
}

/* Shares of large copies are equal in bytes, of small ones in number. */
static void place_balance(struct kunit *test)
{
	const u32 num = 1000, engines = 16;
	struct drm_amdgpu_sdma_desc *d;
	static struct amdgpu_sdma_plan plan;
	u32 i, begin = 0;

	d = kunit_kcalloc(test, num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < num; i++)
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
	checked(test, &plan, d, num);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, engines));
	KUNIT_EXPECT_EQ(test, plan.shares, engines);
	for (i = 0; i < engines; i++) {
		u32 n = plan.end[i].desc - begin;

		KUNIT_EXPECT_GE(test, n, num / engines - 1);
		KUNIT_EXPECT_LE(test, n, num / engines + 2);
		begin = plan.end[i].desc;
	}
	KUNIT_EXPECT_EQ(test, begin, num);

	d[0].size = 1600ULL << 20;
	checked(test, &plan, d, 1);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, engines));
	for (i = 0; i < engines - 1; i++) {
		KUNIT_EXPECT_EQ(test, plan.end[i].desc, 0);
		KUNIT_EXPECT_LE(test, abs_diff(plan.end[i].offset,
					       (i + 1) * (100ULL << 20)),
				8192);
		KUNIT_EXPECT_EQ(test, plan.end[i].offset % 4096, 0);
	}
	KUNIT_EXPECT_EQ(test, plan.end[i].desc, 1);
	KUNIT_EXPECT_EQ(test, plan.end[i].offset, 0);
}

/* Exactly where: of two copies, and of a large one behind a small one. */
static void place_cuts(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[2] = {
		kunit_good(AMDGPU_SDMA_OP_COPY), kunit_good(AMDGPU_SDMA_OP_COPY),
	};
	static struct amdgpu_sdma_plan plan;

	checked(test, &plan, d, 2);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 2));
	KUNIT_EXPECT_EQ(test, plan.end[0].desc, 1);
	KUNIT_EXPECT_EQ(test, plan.end[0].offset, 0);
	KUNIT_EXPECT_EQ(test, plan.end[1].desc, 2);
	KUNIT_EXPECT_EQ(test, sdma_share_begin(&plan, 0).desc, 0);
	KUNIT_EXPECT_EQ(test, sdma_share_begin(&plan, 1).desc, 1);
	/* 4096 + 4096 and 20480 + 4096: half is 16384, 8192 into the second */
	d[1].size = 20480;
	checked(test, &plan, d, 2);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 2));
	KUNIT_EXPECT_EQ(test, plan.end[0].desc, 1);
	KUNIT_EXPECT_EQ(test, plan.end[0].offset, 8192);
	KUNIT_EXPECT_EQ(test, sdma_share_begin(&plan, 1).offset, 8192);
	/* a record is not cut, nor is a row */
	d[1].flags = AMDGPU_SDMA_DESC_RECORD;
	d[1].record = 0x40000;
	checked(test, &plan, d, 2);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 2));
	KUNIT_EXPECT_EQ(test, plan.end[0].desc, 1);
	KUNIT_EXPECT_EQ(test, plan.end[0].offset, 0);
	d[1] = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
	d[1].size = 3000;
	d[1].rows = 7;
	d[1].src_pitch = 5000;
	d[1].dst_pitch = 6000;
	checked(test, &plan, d, 2);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 2));
	KUNIT_EXPECT_EQ(test, plan.end[0].desc, 1);
	KUNIT_EXPECT_EQ(test, plan.end[0].offset, 2 * 3000);
	/* without gaps it is cut as a copy is */
	d[1].src_pitch = 3000;
	d[1].dst_pitch = 3000;
	checked(test, &plan, d, 2);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 2));
	KUNIT_EXPECT_EQ(test, plan.end[0].offset, 8192);
}

/* Both ways to have a small batch on many engines: some have nothing to do. */
static void place_more_engines(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_COPY);
	static struct amdgpu_sdma_plan plan;
	struct amdgpu_sdma_stream s;
	u32 share, used = 0;
	struct engine e;

	engine_init(&e, test, kunit_format(test));
	checked(test, &plan, &d, 1);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 32));
	KUNIT_EXPECT_EQ(test, plan.shares, 32);
	for (share = 0; share < 32; share++) {
		engine_emit(&e, &plan, share, &s);
		used += s.num_ibs;
		kvfree(s.base);
	}
	KUNIT_EXPECT_EQ(test, used, 1);
}

static u32 shares_of(struct kunit *test, const struct drm_amdgpu_sdma_desc *d,
		     u32 n, u32 engines)
{
	static struct amdgpu_sdma_plan plan;

	checked(test, &plan, d, n);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, AUTO, engines));
	KUNIT_EXPECT_EQ(test, plan.placement, AUTO);
	return plan.shares;
}

static void place_auto(struct kunit *test)
{
	const u64 start = AMDGPU_SDMA_AUTO_START_BYTES;
	struct drm_amdgpu_sdma_desc d[] = {
		kunit_good(AMDGPU_SDMA_OP_COPY), kunit_good(AMDGPU_SDMA_OP_FILL),
	};
	u32 n;

	for (n = 2; n <= 16; n++) {
		d[0].size = n * n * start - 1;
		KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), n - 1);
		d[0].size++;
		KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), n);
		KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 4), min(n, 4));
	}
	/* as documented */
	d[0].size = SZ_1M;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 4);
	d[0].size = SZ_4M;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 8);
	d[0].size = 1ULL << 30;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 16);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 32), 32);
	/* Each destination takes the time of a copy. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_BROADCAST);
	d[0].size = 8 * start - 1;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 3);
	d[0].size++;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 4);
	d[0] = kunit_good(AMDGPU_SDMA_OP_COPY);
	d[0].size = 1ULL << 30;
	/* An order inside keeps it on one engine, and so do most waits. */
	d[1].flags = AMDGPU_SDMA_DESC_BARRIER;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 2, 16), 1);
	d[1] = d[0];
	d[0] = kunit_good(AMDGPU_SDMA_OP_WAIT);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 2, 16), 1);
	d[0].compare = AMDGPU_SDMA_COMPARE_GE;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 2, 16), 16);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 1, 16), 1);
}

/* Packets of many small copies keep an engine busy, however few their bytes. */
static void place_auto_small(struct kunit *test)
{
	/* so many take two engines, and four times as many take four */
	const u32 least = 4 * AMDGPU_SDMA_AUTO_START_BYTES /
			  AMDGPU_SDMA_AUTO_SMALL_BYTES;
	struct drm_amdgpu_sdma_desc *d;
	u32 i;

	d = kunit_kcalloc(test, 4 * least, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < 4 * least; i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
		d[i].size = 64;
	}
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least - 1, 16), 1);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least, 16), 2);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 4 * least - 1, 16), 3);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 4 * least, 16), 4);
	/* as documented */
	KUNIT_EXPECT_EQ(test, shares_of(test, d, 64, 16), 4);
	/* The mean counts: a large one among them adds nothing, up to it. */
	d[0].size = least / 2 * AMDGPU_SDMA_AUTO_SMALL_BYTES;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least - 1, 16), 1);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least, 16), 2);
	/* Waits in front are no work. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_WAIT);
	d[0].compare = AMDGPU_SDMA_COMPARE_GE;
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least, 16), 1);
	KUNIT_EXPECT_EQ(test, shares_of(test, d, least + 1, 16), 2);
}

/* One engine fills a link, but for what small copies leave of its time. */
static void place_auto_links(struct kunit *test)
{
	struct amdgpu_sdma_engines e = { .usable = 0xffff };
	static struct amdgpu_sdma_plan plan;
	struct drm_amdgpu_sdma_desc *d;
	u32 i;

	d = kunit_kcalloc(test, 256, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < 256; i++)
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);

#define SHARES(bytes, over) ({						\
	for (i = 0; i < 256; i++)					\
		d[i].size = (bytes);					\
	checked(test, &plan, d, 256);					\
	e.links = (over);						\
	KUNIT_EXPECT_EQ(test, 0, amdgpu_sdma_plan_place(&plan, AUTO, &e)); \
	plan.shares; })

	KUNIT_EXPECT_EQ(test, SHARES(SZ_1M, 0), 16);
	KUNIT_EXPECT_EQ(test, SHARES(SZ_1M, 1), 1);
	KUNIT_EXPECT_EQ(test, SHARES(SZ_1M, 7), 7);
	KUNIT_EXPECT_EQ(test, SHARES(SZ_16K, 1), 1);
	KUNIT_EXPECT_EQ(test, SHARES(SZ_8K, 1), 2);
	KUNIT_EXPECT_EQ(test, SHARES(SZ_8K + 64, 1), 2);
	KUNIT_EXPECT_EQ(test, SHARES(SZ_8K - 64, 1), 3);
	KUNIT_EXPECT_EQ(test, SHARES(SZ_4K, 1), 4);
	/* of 8 that the work is worth, as without links */
	KUNIT_EXPECT_EQ(test, SHARES(64, 0), 8);
	KUNIT_EXPECT_EQ(test, SHARES(64, 1), 8);
#undef SHARES
}

static void place_ordered(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[] = {
		kunit_good(AMDGPU_SDMA_OP_COPY), kunit_good(AMDGPU_SDMA_OP_FILL),
		kunit_good(AMDGPU_SDMA_OP_ADD),
	};
	static struct amdgpu_sdma_plan plan;

	checked(test, &plan, d, 3);
	KUNIT_EXPECT_EQ(test, -EINVAL, kunit_place(&plan, FAN_OUT, 4));
	KUNIT_EXPECT_EQ(test, plan.error_index, 2);
	checked(test, &plan, d, 3);
	KUNIT_EXPECT_EQ(test, 0, kunit_place(&plan, ONE, 4));
	KUNIT_EXPECT_EQ(test, plan.shares, 1);
	KUNIT_EXPECT_EQ(test, plan.error_index, ~0);
	KUNIT_EXPECT_EQ(test, -EINVAL, kunit_place(&plan, FAN_OUT + 1, 4));
	KUNIT_EXPECT_EQ(test, plan.error_index, ~0);
	/* A wait for something else than a word that grows. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_WAIT);
	checked(test, &plan, d, 2);
	KUNIT_EXPECT_EQ(test, -EINVAL, kunit_place(&plan, FAN_OUT, 4));
	KUNIT_EXPECT_EQ(test, plan.error_index, 0);
	d[0].compare = AMDGPU_SDMA_COMPARE_GE;
	checked(test, &plan, d, 2);
	KUNIT_EXPECT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 4));
	KUNIT_EXPECT_EQ(test, plan.shares, 4);
	KUNIT_EXPECT_EQ(test, sdma_share_begin(&plan, 0).desc, 1);
	KUNIT_EXPECT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 2));
	KUNIT_EXPECT_EQ(test, sdma_share_begin(&plan, 0).desc, 1);
	KUNIT_EXPECT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 1));
	KUNIT_EXPECT_EQ(test, sdma_share_begin(&plan, 0).desc, 0);
	/* To wait and do nothing takes one engine, and so does one behind. */
	checked(test, &plan, d, 1);
	KUNIT_EXPECT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 4));
	KUNIT_EXPECT_EQ(test, plan.shares, 1);
	KUNIT_EXPECT_EQ(test, sdma_share_begin(&plan, 0).desc, 0);
	KUNIT_EXPECT_EQ(test, plan.end[0].desc, 1);
	swap(d[0], d[1]);
	checked(test, &plan, d, 2);
	KUNIT_EXPECT_EQ(test, -EINVAL, kunit_place(&plan, FAN_OUT, 4));
	KUNIT_EXPECT_EQ(test, plan.error_index, 1);
}

static void place_engines(struct kunit *test)
{
	struct amdgpu_sdma_engines e = { .usable = 0xf };
	struct drm_amdgpu_sdma_desc d[] = {
		kunit_good(AMDGPU_SDMA_OP_COPY), kunit_good(AMDGPU_SDMA_OP_WAIT),
	};
	static struct amdgpu_sdma_plan plan;

#define ENGINES_OF(placement) ({					\
	plan.error_index = ~0;						\
	amdgpu_sdma_plan_place(&plan, placement, &e) ? 0 : plan.engines; })

	checked(test, &plan, d, 1);
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0xf);
	/* The direction matters if both are known, and one is usable. */
	e.path = AMDGPU_SDMA_PATH_HOST;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0xf);
	e.host = 0x13;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0x3);
	KUNIT_EXPECT_EQ(test, ENGINES_OF(ONE), 0xf);
	KUNIT_EXPECT_EQ(test, ENGINES_OF(FAN_OUT), 0xf);
	KUNIT_EXPECT_EQ(test, plan.shares, 4);
	e.path = AMDGPU_SDMA_PATH_DEVICE;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0xc);
	e.path = AMDGPU_SDMA_PATH_UNKNOWN;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0xf);
	e.path = AMDGPU_SDMA_PATH_DEVICE;
	e.host = 0xf;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0xf);
	e.host = 0;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0xf);
	/* Waits only where they may be. */
	e.may_wait = 0x6;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(ONE), 0xf);
	checked(test, &plan, d, 2);
	KUNIT_EXPECT_EQ(test, ENGINES_OF(ONE), 0x6);
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0x6);
	e.host = 0x2;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0x4);
	e.may_wait = 0x10;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(AUTO), 0);
	KUNIT_EXPECT_EQ(test, plan.error_index, 1);
	e.may_wait = 0;
	KUNIT_EXPECT_EQ(test, ENGINES_OF(ONE), 0xf);
#undef ENGINES_OF
}

/* Bounds of what is simple, exactly: none is so wide that it wastes memory. */
static void place_dwords(struct kunit *test)
{
	const u32 end = (8 + AMDGPU_SDMA_COND_DW) * AMDGPU_SDMA_MAX_IBS;
	const u32 cuts = 2 * (64 + AMDGPU_SDMA_FILL_EDGES_DW +
			      AMDGPU_SDMA_BOUNCE_DW);
	static struct drm_amdgpu_sdma_desc d[64];
	static struct amdgpu_sdma_plan plan;
	u64 sum = 0;
	u32 i, wait;

	for (i = 0; i < ARRAY_SIZE(d); i++)
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
	checked(test, &plan, d, 64);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, ONE, 4));
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_dwords(&plan, 0),
			ALIGN(64 * 7 + end, 8));
	plan.records = RECORDS;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_dwords(&plan, 0),
			ALIGN(64 * 7 + AMDGPU_SDMA_RECORD_DW + 4 + end, 8));
	plan.records = 0;
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 4));
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_dwords(&plan, 0),
			ALIGN(16 * 7 + cuts + end, 8));
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_dwords(&plan, 3),
			ALIGN(16 * 7 + cuts + end, 8));
	/* Each share has the waits in front, and a guard. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_WAIT);
	d[0].compare = AMDGPU_SDMA_COMPARE_GE;
	wait = AMDGPU_SDMA_WAIT_DW + 2 * AMDGPU_SDMA_COND_DW +
	       AMDGPU_SDMA_BARRIER_DW + AMDGPU_SDMA_COND_DW;
	checked(test, &plan, d, 64);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 3));
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_dwords(&plan, 0),
			ALIGN(21 * 7 + wait + cuts + end, 8));
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_dwords(&plan, 2),
			ALIGN(21 * 7 + wait + cuts + end, 8));
	/* What is cut counts once, in all shares together. */
	d[0] = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
	d[0].size = 8;
	d[0].rows = 4096;
	d[0].src_pitch = 16;
	d[0].dst_pitch = 16;
	checked(test, &plan, d, 1);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, FAN_OUT, 16));
	for (i = 0; i < 16; i++)
		sum += amdgpu_sdma_plan_dwords(&plan, i);
	KUNIT_EXPECT_GE(test, sum, plan.dwords);
	KUNIT_EXPECT_LE(test, sum, plan.dwords + 16 * (cuts + end + 8));
}

static struct kunit_case place_cases[] = {
	KUNIT_CASE(place_balance),
	KUNIT_CASE(place_cuts),
	KUNIT_CASE(place_more_engines),
	KUNIT_CASE(place_auto),
	KUNIT_CASE(place_auto_small),
	KUNIT_CASE(place_auto_links),
	KUNIT_CASE(place_ordered),
	KUNIT_CASE(place_engines),
	KUNIT_CASE(place_dwords),
	{ }
};

static struct kunit_suite place_suite = {
	.name = "amdgpu_sdma_place",
	.test_cases = place_cases,
};

kunit_test_suite(place_suite);
