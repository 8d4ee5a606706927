// SPDX-License-Identifier: MIT
/* KUnit tests of how long batches take at most, and of what they are charged. */

#include "amdgpu_sdma_kunit.h"
#include "amdgpu_sdma_batch_limits.h"

/* All engines move their batches over the link at once: it has the time. */
static void rate_of_link(struct kunit *test)
{
	const u32 rates[] = { 250, 1000, 16000, 48000 }; /* MB/s */
	const u32 engines[] = { 1, 2, 5, 16 };
	u32 i, j;

	KUNIT_EXPECT_EQ(test, amdgpu_sdma_batch_rate(0, 16), 4000);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_batch_rate(8000, 2), 4000);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_batch_rate(8000, 4), 2000);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_batch_rate(1, 16), 1);
	for (i = 0; i < ARRAY_SIZE(rates); i++)
		for (j = 0; j < ARRAY_SIZE(engines); j++) {
			u32 rate = amdgpu_sdma_batch_rate(rates[i], engines[j]);

			KUNIT_EXPECT_GT(test, rate, 0);
			KUNIT_EXPECT_LE(test, rate * engines[j], rates[i]);
		}
}

static u64 work_at(u32 rate, const struct drm_amdgpu_sdma_desc *d, u32 n,
		   u64 packets)
{
	const struct amdgpu_sdma_batch_limits l = { .rate = rate };
	static struct amdgpu_sdma_plan plan;

	kunit_plan(&plan, &tiny, d, n);
	if (amdgpu_sdma_plan_check(&plan) ||
	    kunit_place(&plan, AMDGPU_SDMA_PLACE_ONE_ENGINE, 1))
		return 0;
	return amdgpu_sdma_batch_work(&l, &plan, 0, packets);
}

/* At 4 GB/s, the 128 ns of a dword or a row are 512 bytes. */
static u64 work_of(const struct drm_amdgpu_sdma_desc *d, u32 n, u64 packets)
{
	return work_at(4000, d, n, packets);
}

/* Bytes and packets take their time one after the other. */
static void work_of_copies(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_COPY);

	KUNIT_EXPECT_EQ(test, work_of(&d, 1, 0), d.size);
	KUNIT_EXPECT_EQ(test, work_of(&d, 1, 4), d.size + 512);
	KUNIT_EXPECT_EQ(test, work_of(&d, 1, 4000), d.size + 512000);
	/* a slower engine would move less meanwhile */
	KUNIT_EXPECT_EQ(test, work_at(1000, &d, 1, 4000), d.size + 128000);
}

/* Rows need few packets, and may be far apart. */
static void work_of_rows(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d = {
		.op = AMDGPU_SDMA_OP_COPY_RECT, .src = MEMORY, .dst = 2 * MEMORY,
		.size = 4, .rows = 1000, .src_pitch = 4096, .dst_pitch = 4096,
	};

	KUNIT_EXPECT_EQ(test, work_of(&d, 1, 0), 4 * 1000 + 512 * 1000);
	/* without gaps it is a copy */
	d.src_pitch = 4;
	d.dst_pitch = 4;
	KUNIT_EXPECT_EQ(test, work_of(&d, 1, 0), 4 * 1000);
}

/* A share is charged for its own rows, and a batch may not have any number. */
static void rows_of_shares(struct kunit *test)
{
	static struct drm_amdgpu_sdma_desc d[2];
	const struct amdgpu_sdma_batch_limits l = { .rate = 4000 };
	static struct amdgpu_sdma_plan plan;
	u32 i, dwords;
	u64 work;

	for (i = 0; i < 2; i++)
		d[i] = (struct drm_amdgpu_sdma_desc) {
			.op = AMDGPU_SDMA_OP_COPY_RECT, .src = (1 + i) * MEMORY,
			.dst = (4 + i) * MEMORY, .size = 64, .rows = 100,
			.src_pitch = 4096, .dst_pitch = 4096,
		};
	kunit_plan(&plan, &tiny, d, 2);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, kunit_place(&plan, AMDGPU_SDMA_PLACE_FAN_OUT, 2), 0);
	KUNIT_ASSERT_EQ(test, plan.shares, 2);
	work = amdgpu_sdma_batch_work(&l, &plan, 0, 0) +
	       amdgpu_sdma_batch_work(&l, &plan, 1, 0);
	/* A row that is cut may count twice. */
	KUNIT_EXPECT_GE(test, work, 2 * 100 * (64 + 512));
	KUNIT_EXPECT_LE(test, work, 2 * 100 * (64 + 512) + 512);
	dwords = plan.dwords;
	kunit_plan(&plan, &tiny, d, 2);
	plan.max_dwords = dwords + 199;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), -EMSGSIZE);
	kunit_plan(&plan, &tiny, d, 2);
	plan.max_dwords = dwords + 200;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
}

/* The shortest wait polls twice. */
static void work_of_waits(struct kunit *test)
{
	static struct drm_amdgpu_sdma_desc d[10];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(d); i++)
		d[i] = (struct drm_amdgpu_sdma_desc) {
			.op = AMDGPU_SDMA_OP_WAIT, .src = MEMORY, .mask = ~0,
			.timeout_ns = 1, .compare = AMDGPU_SDMA_COMPARE_EQ,
		};
	KUNIT_EXPECT_GE(test, work_of(d, ARRAY_SIZE(d), 0),
			ARRAY_SIZE(d) * POLL_NS * 4);
}

static struct kunit_case limits_cases[] = {
	KUNIT_CASE(rate_of_link),
	KUNIT_CASE(work_of_copies),
	KUNIT_CASE(work_of_rows),
	KUNIT_CASE(rows_of_shares),
	KUNIT_CASE(work_of_waits),
	{ }
};

static struct kunit_suite limits_suite = {
	.name = "amdgpu_sdma_limits",
	.test_cases = limits_cases,
};

kunit_test_suite(limits_suite);
