// SPDX-License-Identifier: MIT
/* KUnit tests of waits in SDMA batches, and of what records tell of them. */

#include "amdgpu_sdma_kunit.h"

#define WORD	(MEMORY + MEMORY_SIZE - 4)
#define UNTOUCHED	0xeeeeeeee

/* A wait that holds if @word is what it waits for. */
static struct drm_amdgpu_sdma_desc wait_for(u64 word, u32 value, u32 compare)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_WAIT, .src = word, .mask = ~0,
		.timeout_ns = 1, .value = value, .compare = compare,
	};
}

static void add_record(struct drm_amdgpu_sdma_desc *d, u32 i)
{
	d->flags |= AMDGPU_SDMA_DESC_RECORD;
	d->record = record_of(i);
}

static void run(struct engine *e, const struct drm_amdgpu_sdma_desc *d, u32 n,
		u64 records)
{
	static struct amdgpu_sdma_plan plan;

	memset(engine_at(e, RECORDS, RECORDS_SIZE), 0xee, RECORDS_SIZE);
	kunit_plan(&plan, e->format, d, n);
	plan.records = records;
	KUNIT_ASSERT_EQ(e->test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(e->test, 0,
			kunit_place(&plan, AMDGPU_SDMA_PLACE_ONE_ENGINE, 1));
	engine_run_plan(e, &plan);
}

/* A wait that fails: everything behind it is skipped, and it is said. */
static void wait_skips(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc *d;
	struct rnd_state rnd;
	struct engine e;
	u32 i;
	u8 *want;

	engine_init(&e, test, &tiny);
	d = kunit_kcalloc(test, PLACES, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	want = kunit_kzalloc(test, MEMORY_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, want);
	prandom_seed_state(&rnd, 4);
	for (i = 0; i < PLACES; i++)
		d[i] = random_desc(&rnd, i, ALL_OPS);
	d[5] = wait_for(WORD, 1, AMDGPU_SDMA_COMPARE_EQ);
	run(&e, d, PLACES, 0);
	for (i = 0; i < 5; i++)
		model(want, &d[i]);
	KUNIT_EXPECT_EQ(test, memcmp(want, e.memory, MEMORY_SIZE), 0);
	KUNIT_EXPECT_EQ(test, engine_status(&e), AMDGPU_SDMA_STATUS_TIMEOUT);
	/* The same if it holds. */
	put_unaligned(1U, (u32 *)engine_at(&e, WORD, 4));
	run(&e, d, PLACES, 0);
	KUNIT_EXPECT_EQ(test, engine_status(&e), AMDGPU_SDMA_STATUS_OK);
}

#define OTHER	(MEMORY + 0x100)

/*
 * Does a wait for the word to compare to 5 hold? Bits off the mask are set, and
 * so is what follows the word. Another wait before it may have held.
 */
static bool holds(struct engine *e, u32 word, u32 compare, bool behind)
{
	struct drm_amdgpu_sdma_desc d[] = {
		wait_for(OTHER + 64, 0, AMDGPU_SDMA_COMPARE_GE),
		wait_for(OTHER, 5, compare),
		{ .op = AMDGPU_SDMA_OP_WRITE, .dst = MEMORY, .value = 1 },
	};
	bool ran;

	d[1].mask = 0xff;
	put_unaligned(word | 0x7777777777777700, (u64 *)engine_at(e, OTHER, 8));
	put_unaligned(0ULL, (u64 *)engine_at(e, MEMORY, 8));
	run(e, d + !behind, 2 + behind, 0);
	ran = get_unaligned((u64 *)engine_at(e, MEMORY, 8));
	KUNIT_EXPECT_EQ(e->test, engine_status(e), ran ?
			AMDGPU_SDMA_STATUS_OK : AMDGPU_SDMA_STATUS_TIMEOUT);
	/* Only the sample was written. */
	KUNIT_EXPECT_NULL(e->test, memchr_inv(engine_at(e, SLOT + 36, 28), 0,
					      28));
	return ran;
}

static void wait_compares(struct kunit *test)
{
	struct engine e;
	u32 i, behind;

	engine_init(&e, test, kunit_format(test));
	for (i = 0; i < 512; i++) {
		u32 word = i / 2;

		behind = i % 2;
		KUNIT_EXPECT_EQ(test, word == 5,
				holds(&e, word,
				      AMDGPU_SDMA_COMPARE_EQ, behind));
		KUNIT_EXPECT_EQ(test, word != 5,
				holds(&e, word,
				      AMDGPU_SDMA_COMPARE_NE, behind));
		KUNIT_EXPECT_EQ(test, word >= 5,
				holds(&e, word,
				      AMDGPU_SDMA_COMPARE_GE, behind));
		KUNIT_EXPECT_EQ(test, word <= 5,
				holds(&e, word,
				      AMDGPU_SDMA_COMPARE_LE, behind));
	}
}

/* The packet says what the wait says. */
static void wait_polls(struct kunit *test)
{
	static const u32 func[] = {
		[AMDGPU_SDMA_COMPARE_EQ] = AMDGPU_SDMA_POLL_EQ,
		[AMDGPU_SDMA_COMPARE_NE] = AMDGPU_SDMA_POLL_NE,
		[AMDGPU_SDMA_COMPARE_GE] = AMDGPU_SDMA_POLL_GE,
		[AMDGPU_SDMA_COMPARE_LE] = AMDGPU_SDMA_POLL_LE,
	};
	struct drm_amdgpu_sdma_desc d;
	struct amdgpu_sdma_stream s;
	static struct amdgpu_sdma_plan plan;
	struct engine e;
	const u32 *w;
	u32 i;

	engine_init(&e, test, kunit_format(test));
	for (i = 0; i < ARRAY_SIZE(func); i++) {
		d = wait_for(WORD, 0x1234, i);
		d.mask = 0xffff;
		d.timeout_ns = 7 * POLL_NS;
		kunit_plan(&plan, e.format, &d, 1);
		KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, 1, 1));
		engine_emit(&e, &plan, 0, &s);
		/* Behind the fence that says that it gave up. */
		w = s.base + AMDGPU_SDMA_FENCE_DW;
		KUNIT_EXPECT_EQ(test, s.base[3], AMDGPU_SDMA_STATUS_TIMEOUT);
		KUNIT_EXPECT_EQ(test, w[0] & 0xff, 8);
		KUNIT_EXPECT_EQ(test, w[0] >> 28 & 7, func[i]);
		KUNIT_EXPECT_EQ(test, w[1], (u32)WORD);
		KUNIT_EXPECT_EQ(test, w[3], 0x1234);
		KUNIT_EXPECT_EQ(test, w[4], 0xffff);
		KUNIT_EXPECT_EQ(test, w[5], 0xffff | 8 << 16);
		kvfree(s.base);
	}
}

static void expect_record(struct engine *e, u64 addr, u32 status)
{
	struct drm_amdgpu_sdma_record r = engine_record(e, addr);

	KUNIT_EXPECT_EQ(e->test, r.status, status);
	if (status == UNTOUCHED)
		return;
	KUNIT_EXPECT_EQ(e->test, r.engine, 0);
	if (status == AMDGPU_SDMA_RECORD_SKIPPED) {
		KUNIT_EXPECT_EQ(e->test, r.start, 0xeeeeeeeeeeeeeeee);
		KUNIT_EXPECT_EQ(e->test, r.end, 0xeeeeeeeeeeeeeeee);
	} else {
		KUNIT_EXPECT_LE(e->test, r.start, r.end);
		KUNIT_EXPECT_NE(e->test, r.end, 0xeeeeeeeeeeeeeeee);
	}
}

/*
 * Copy, wait, copy, wait, copy, wait, copy: all with a record, or only the
 * copies. The words of the waits hold or not, as @bits says.
 */
static void run_three(struct engine *e, u32 bits, bool record_waits)
{
	static struct drm_amdgpu_sdma_desc d[7];
	u32 i, status = AMDGPU_SDMA_RECORD_DONE;

	memset(e->memory, 0xee, MEMORY_SIZE);
	for (i = 0; i < 7; i++) {
		u64 word = MEMORY + i * PLACE + 0x200;

		put_unaligned(bits >> i / 2 & 1, (u32 *)engine_at(e, word, 4));
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
		d[i].src = MEMORY + i * PLACE;
		d[i].dst = MEMORY + i * PLACE + 0x100;
		d[i].size = 16;
		*engine_at(e, d[i].src, 1) = 1;
		if (i % 2)
			d[i] = wait_for(word, 1, AMDGPU_SDMA_COMPARE_EQ);
		if (i % 2 == 0 || record_waits)
			add_record(&d[i], i);
	}
	e->statuses = 0;
	run(e, d, 7, RECORDS);
	/* Nobody saw another one before. */
	KUNIT_EXPECT_EQ(e->test, e->statuses, 1);
	for (i = 0; i < 7; i++) {
		bool fails = i % 2 && !(bits >> i / 2 & 1) &&
			     status == AMDGPU_SDMA_RECORD_DONE;

		if (fails)
			status = AMDGPU_SDMA_RECORD_FAILED;
		expect_record(e, record_of(i), i % 2 && !record_waits ?
			      UNTOUCHED : status);
		if (fails)
			status = AMDGPU_SDMA_RECORD_SKIPPED;
		if (i % 2 == 0)
			KUNIT_EXPECT_EQ(e->test, status ==
					AMDGPU_SDMA_RECORD_DONE,
					*engine_at(e, d[i].dst, 1) == 1);
	}
	/* That of the engine: the last one tells whether all waits held. */
	expect_record(e, RECORDS, status == AMDGPU_SDMA_RECORD_DONE ? status :
		      AMDGPU_SDMA_RECORD_FAILED);
	expect_record(e, RECORDS + 64, UNTOUCHED);
	KUNIT_EXPECT_EQ(e->test, engine_status(e),
			status == AMDGPU_SDMA_RECORD_DONE ?
			AMDGPU_SDMA_STATUS_OK : AMDGPU_SDMA_STATUS_TIMEOUT);
}

static void records_of_waits(struct kunit *test)
{
	struct engine e;
	u32 bits;

	engine_init(&e, test, &tiny);
	for (bits = 0; bits < 8; bits++) {
		run_three(&e, bits, false);
		run_three(&e, bits, true);
	}
	engine_init(&e, test, kunit_format(test));
	for (bits = 0; bits < 8; bits++) {
		run_three(&e, bits, false);
		run_three(&e, bits, true);
	}
}

/* Times are of when the copies before had ended, and the descriptor's own. */
static void records_of_times(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[3];
	struct drm_amdgpu_sdma_record r;
	struct engine e;
	u32 i;

	engine_init(&e, test, &tiny);
	for (i = 0; i < 3; i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
		d[i].src = MEMORY + i * PLACE;
		d[i].dst = d[i].src + 2048;
		d[i].size = 1000;
		add_record(&d[i], i);
	}
	d[2].flags |= AMDGPU_SDMA_DESC_BARRIER;
	run(&e, d, 3, RECORDS);
	for (i = 0; i < 3; i++) {
		r = engine_record(&e, d[i].record);
		KUNIT_EXPECT_EQ(test, r.start, 5 * i);
		KUNIT_EXPECT_EQ(test, r.end, 5 * i + 5);
		KUNIT_EXPECT_EQ(test, r.status, AMDGPU_SDMA_RECORD_DONE);
		KUNIT_EXPECT_EQ(test, r.engine, 0);
	}
	r = engine_record(&e, RECORDS);
	KUNIT_EXPECT_EQ(test, r.start, 0);
	KUNIT_EXPECT_EQ(test, r.end, 15);
	/* The engine waits for copies before it takes the last time. */
	for (i = 0; i < 3; i++) {
		d[i].flags = 0;
		d[i].record = 0;
	}
	e.clock = 0;
	run(&e, d, 3, RECORDS);
	r = engine_record(&e, RECORDS);
	KUNIT_EXPECT_EQ(test, r.start, 0);
	KUNIT_EXPECT_EQ(test, r.end, 15);
	KUNIT_EXPECT_EQ(test, r.status, AMDGPU_SDMA_RECORD_DONE);
}

/* Only what its own bits cover lies behind a guard: nothing may skip a record. */
static void wait_guards(struct kunit *test)
{
	const u32 num = 60;
	struct drm_amdgpu_sdma_desc *d;
	struct engine e;
	u32 i;

	engine_init(&e, test, &tiny);
	d = kunit_kcalloc(test, num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < num; i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
		d[i].src = MEMORY + 0x10000 + i;
		d[i].dst = MEMORY + i * 1024;
		d[i].size = 1000;
	}
	memset(e.memory + 0x10000, 3, 2000);
	d[0] = wait_for(WORD, 1, AMDGPU_SDMA_COMPARE_GE);
	run(&e, d, num, 0);
	for (i = 0; i < num; i++)
		KUNIT_EXPECT_NULL(test, memchr_inv(e.memory + i * 1024, 0,
						   1000));
	KUNIT_EXPECT_EQ(test, e.clock, 1);
	put_unaligned(2U, (u32 *)engine_at(&e, WORD, 4));
	run(&e, d, num, 0);
	for (i = 1; i < num; i++)
		KUNIT_EXPECT_NULL(test, memchr_inv(e.memory + i * 1024, 3,
						   1000));
}

/*
 * Waits in front of a fan-out: each share polls for itself. The word is
 * there for some of them only.
 */
static void prelude_of_shares(struct kunit *test)
{
	const u32 num = 18, engines = 4;
	struct drm_amdgpu_sdma_desc *d;
	struct amdgpu_sdma_stream s;
	static struct amdgpu_sdma_plan plan;
	u32 i, share, begin = 2;
	struct engine e;

	engine_init(&e, test, kunit_format(test));
	d = kunit_kcalloc(test, num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < num; i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
		d[i].src = MEMORY + 0x10000;
		d[i].dst = MEMORY + i * 2048;
		d[i].size = 100;
		add_record(&d[i], i);
		d[i].record = MEMORY + i * 2048 + 1024;
	}
	e.memory[0x10000] = 9;
	d[0] = wait_for(WORD, 1, AMDGPU_SDMA_COMPARE_GE);
	d[1] = wait_for(WORD - 8, 1, AMDGPU_SDMA_COMPARE_GE);
	put_unaligned(7U, (u32 *)engine_at(&e, WORD - 8, 4));
	kunit_plan(&plan, e.format, d, num);
	plan.records = RECORDS;
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, AMDGPU_SDMA_PLACE_FAN_OUT,
					     engines));
	KUNIT_EXPECT_EQ(test, plan.shares, engines);
	for (share = 0; share < engines; share++) {
		bool go = share % 2;
		u32 status = go ? AMDGPU_SDMA_RECORD_DONE :
				  AMDGPU_SDMA_RECORD_SKIPPED;
		struct drm_amdgpu_sdma_record r;

		put_unaligned(go ? 1U : 0U, (u32 *)engine_at(&e, WORD, 4));
		engine_emit(&e, &plan, share, &s);
		engine_run(&e, &s);
		kvfree(s.base);
		KUNIT_EXPECT_EQ(test, engine_status(&e), go ?
				AMDGPU_SDMA_STATUS_OK :
				AMDGPU_SDMA_STATUS_TIMEOUT);
		KUNIT_EXPECT_EQ(test, plan.end[share].desc, begin + 4);
		for (i = begin; i < plan.end[share].desc; i++) {
			r = engine_record(&e, d[i].record);
			KUNIT_EXPECT_EQ(test, r.status, status);
			KUNIT_EXPECT_EQ(test, r.engine, share);
			KUNIT_EXPECT_EQ(test, e.memory[i * 2048], go ? 9 : 0);
		}
		r = engine_record(&e, RECORDS + share * sizeof(r));
		KUNIT_EXPECT_EQ(test, r.status, go ? AMDGPU_SDMA_RECORD_DONE :
				AMDGPU_SDMA_RECORD_FAILED);
		KUNIT_EXPECT_EQ(test, r.engine, share);
		begin = plan.end[share].desc;
	}
	/* Shares without work do not wait either. */
	kunit_plan(&plan, e.format, d, 4);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, AMDGPU_SDMA_PLACE_FAN_OUT,
					     16));
	for (share = 0, i = 0; share < 16; share++) {
		engine_emit(&e, &plan, share, &s);
		i += !!s.num_ibs;
		kvfree(s.base);
	}
	KUNIT_EXPECT_EQ(test, i, 2);
}

static struct kunit_case wait_cases[] = {
	KUNIT_CASE(wait_polls),
	KUNIT_CASE(wait_compares),
	KUNIT_CASE(wait_skips),
	KUNIT_CASE(wait_guards),
	KUNIT_CASE(records_of_waits),
	KUNIT_CASE(records_of_times),
	KUNIT_CASE(prelude_of_shares),
	{ }
};

static struct kunit_suite wait_suite = {
	.name = "amdgpu_sdma_wait",
	.test_cases = wait_cases,
};

kunit_test_suite(wait_suite);
