// SPDX-License-Identifier: GPL-2.0
/* Not in KUnit: allocations that fail, and checks that none is made. */
#include "amdgpu_sdma_kunit.h"

static struct drm_amdgpu_sdma_desc descs[40];

/* @num fills at descending addresses: they do not overlap, but are sorted. */
static int overlap(struct kunit *test, u32 num, int allocations)
{
	struct amdgpu_sdma_plan plan;
	int ret;
	u32 i;

	for (i = 0; i < num; i++) {
		descs[i] = kunit_good(AMDGPU_SDMA_OP_FILL);
		descs[i].dst = 0x1000000 - i * 4096;
	}
	kunit_plan(&plan, kunit_format(test), descs, num);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	allocations_left = allocations;
	ret = amdgpu_sdma_plan_overlap(&plan);
	allocations_left = -1;
	return ret;
}

static void overlap_memory(struct kunit *test)
{
	/* Nothing to sort, few to sort, many to sort. */
	KUNIT_EXPECT_EQ(test, overlap(test, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, overlap(test, 2, 0), -ENOMEM);
	KUNIT_EXPECT_EQ(test, overlap(test, 2, 1), 0);
	KUNIT_EXPECT_EQ(test, overlap(test, 32, 1), 0);
	KUNIT_EXPECT_EQ(test, overlap(test, 33, 0), -ENOMEM);
	KUNIT_EXPECT_EQ(test, overlap(test, 33, 1), -ENOMEM);
	KUNIT_EXPECT_EQ(test, overlap(test, 33, 2), -ENOMEM);
	KUNIT_EXPECT_EQ(test, overlap(test, 33, 3), 0);
}

static struct kunit_case memory_cases[] = {
	KUNIT_CASE(overlap_memory),
	{ }
};

static struct kunit_suite memory_suite = {
	.name = "memory",
	.test_cases = memory_cases,
};

kunit_test_suite(memory_suite);
