// SPDX-License-Identifier: MIT
/* KUnit tests of the packets of whole SDMA batches: random ones, and limits. */

#include "amdgpu_sdma_kunit.h"
#include "vega10_sdma_pkt_open.h"

static void kunit_fill(u8 *memory)
{
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 7);
	prandom_bytes_state(&rnd, memory, MEMORY_SIZE);
}

/* The engine's memory is as the model says, but for records. */
static void expect_memory(struct engine *e, u8 *want,
			  const struct drm_amdgpu_sdma_desc *d, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (d[i].flags & AMDGPU_SDMA_DESC_RECORD)
			memcpy(want + (d[i].record - MEMORY),
			       engine_at(e, d[i].record, 64), 64);
	for (i = 0; i < MEMORY_SIZE && want[i] == e->memory[i]; i++)
		;
	KUNIT_ASSERT_EQ_MSG(e->test, i, MEMORY_SIZE, "operation %u, byte %llu",
			    d[i / PLACE].op, i % PLACE);
}

static void expect_done(struct engine *e, u64 addr, u32 instance)
{
	struct drm_amdgpu_sdma_record r = engine_record(e, addr);

	KUNIT_ASSERT_EQ(e->test, r.status, AMDGPU_SDMA_RECORD_DONE);
	KUNIT_ASSERT_EQ(e->test, r.engine, instance);
	KUNIT_ASSERT_LE(e->test, r.start, r.end);
}

static void random_batch(struct kunit *test, struct engine *e, u8 *want,
			 struct drm_amdgpu_sdma_desc *d, struct rnd_state *rnd,
			 u32 ops)
{
	u32 i, n = 1 + random_below(rnd, PLACES);
	u32 engines = 1 + random_below(rnd, 8);
	static struct amdgpu_sdma_plan plan;

	kunit_plan(&plan, e->format, d, n);
	for (i = 0; i < n; i++) {
		d[i] = random_desc(rnd, i, ops);
		if (random_below(rnd, 4))
			continue;
		d[i].flags = AMDGPU_SDMA_DESC_RECORD;
		d[i].record = record_of(i);
	}
	plan.records = random_below(rnd, 2) ? RECORDS : 0;
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_overlap(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_place(&plan, plan.first_ordered < n ?
				    AMDGPU_SDMA_PLACE_ONE_ENGINE :
				    AMDGPU_SDMA_PLACE_FAN_OUT, engines));
	engine_run_plan(e, &plan);
	for (i = 0; i < n; i++)
		model(want, &d[i]);
	if (plan.shares == 1 && plan.records)
		expect_done(e, RECORDS, 0);
	expect_memory(e, want, d, n);
	for (i = 0; i < n; i++)
		if (d[i].flags && plan.shares == 1)
			expect_done(e, d[i].record, 0);
}

static void run_random(struct kunit *test, const struct amdgpu_sdma_format *f,
		       u32 ops, u32 seed)
{
	struct drm_amdgpu_sdma_desc *d;
	struct rnd_state rnd;
	struct engine e;
	u32 round;
	u8 *want;

	engine_init(&e, test, f);
	d = kunit_kcalloc(test, PLACES, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	want = kunit_kzalloc(test, MEMORY_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, want);
	prandom_seed_state(&rnd, seed);
	/* Each batch finds what the one before left. */
	kunit_fill(want);
	memcpy(e.memory, want, MEMORY_SIZE);
	for (round = 0; round < 300; round++)
		random_batch(test, &e, want, d, &rnd, ops);
	if (f->native & BIT(AMDGPU_SDMA_OP_COPY_RECT) && ops == ALL_OPS)
		KUNIT_EXPECT_GT(test, e.windows, 100);
}

static void emit_random_unordered(struct kunit *test)
{
	run_random(test, &tiny, AMDGPU_SDMA_OP_SWAP + 1, 2);
}

static void emit_random_ordered(struct kunit *test)
{
	run_random(test, &tiny, ALL_OPS, 3);
}

static void emit_random_lacking(struct kunit *test)
{
	run_random(test, &lacking, ALL_OPS, 5);
}

/* Rectangles only, in several shares: cut between rows. */
static void emit_random_rects(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc *d;
	static struct amdgpu_sdma_plan plan;
	struct rnd_state rnd;
	struct engine e;
	u32 round, i;
	u8 *want;

	engine_init(&e, test, &tiny);
	d = kunit_kcalloc(test, PLACES, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	want = kunit_kzalloc(test, MEMORY_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, want);
	prandom_seed_state(&rnd, 8);
	kunit_fill(want);
	memcpy(e.memory, want, MEMORY_SIZE);
	for (round = 0; round < 100; round++) {
		for (i = 0; i < PLACES; i++) {
			do {
				d[i] = random_desc(&rnd, i, ALL_OPS);
			} while (d[i].op != AMDGPU_SDMA_OP_COPY_RECT);
		}
		kunit_plan(&plan, &tiny, d, PLACES);
		KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_overlap(&plan), 0);
		KUNIT_ASSERT_EQ(test, 0,
				kunit_place(&plan, AMDGPU_SDMA_PLACE_FAN_OUT,
					    1 + random_below(&rnd, 30)));
		engine_run_plan(&e, &plan);
		for (i = 0; i < PLACES; i++)
			model(want, &d[i]);
		expect_memory(&e, want, d, PLACES);
	}
}

/* Cut in the middle: each operation goes on where the share before ended. */
static void emit_cut(struct kunit *test)
{
	static const u32 ops[] = {
		AMDGPU_SDMA_OP_COPY, AMDGPU_SDMA_OP_FILL, AMDGPU_SDMA_OP_SWAP,
		AMDGPU_SDMA_OP_BROADCAST,
	};
	static struct amdgpu_sdma_plan plan;
	struct drm_amdgpu_sdma_desc d;
	struct engine e;
	u32 i, engines;
	u8 *want;

	engine_init(&e, test, &tiny);
	want = kunit_kzalloc(test, MEMORY_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, want);
	kunit_fill(want);
	memcpy(e.memory, want, MEMORY_SIZE);
	for (i = 0; i < 4 * ARRAY_SIZE(ops); i++) {
		d = kunit_good(ops[i % 4]);
		d.size = 0x7000 + i;
		d.dst = MEMORY + 0x8000 + i / 4;
		d.value = d.op == AMDGPU_SDMA_OP_FILL ? 0x12345678 : 0;
		if (d.src)
			d.src = MEMORY + i / 8;
		if (d.op == AMDGPU_SDMA_OP_BROADCAST) {
			d.dst_more[0] = MEMORY + 0x10000 + i / 4;
			d.dst_more[1] = MEMORY + 0x18000 + 7;
		}
		for (engines = 2; engines < 8; engines++) {
			kunit_plan(&plan, &tiny, &d, 1);
			KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
			KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, 2, engines));
			KUNIT_EXPECT_GT(test, plan.end[0].offset, 0);
			engine_run_plan(&e, &plan);
			model(want, &d);
			KUNIT_ASSERT_EQ(test, 0, memcmp(want, e.memory,
							MEMORY_SIZE));
		}
	}
}

/* One large rectangle in shares of whole rows; a row is in one packet. */
static void emit_rect_shares(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
	const struct amdgpu_sdma_format *f = &lacking;
	static struct amdgpu_sdma_plan plan;
	struct engine e;
	u64 before = 0;
	u8 *want;
	u32 i;

	engine_init(&e, test, f);
	want = kunit_kzalloc(test, MEMORY_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, want);
	kunit_fill(want);
	memcpy(e.memory, want, MEMORY_SIZE);
	d.src = MEMORY + 1;
	d.dst = MEMORY + MEMORY_SIZE / 2;
	d.size = 97;
	d.rows = 600;
	d.src_pitch = 101;
	d.dst_pitch = 103;
	kunit_plan(&plan, f, &d, 1);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, AMDGPU_SDMA_PLACE_FAN_OUT,
					     4));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, plan.end[i].desc, 0);
		KUNIT_EXPECT_EQ(test, plan.end[i].offset % 97, 0);
		KUNIT_EXPECT_GT(test, plan.end[i].offset, before);
		before = plan.end[i].offset;
	}
	engine_run_plan(&e, &plan);
	KUNIT_EXPECT_EQ(test, e.clock, 600);
	model(want, &d);
	KUNIT_EXPECT_EQ(test, memcmp(want, e.memory, MEMORY_SIZE), 0);
}

/* Each copy reads what the one before wrote: one barrier between two. */
static void emit_barriers(struct kunit *test)
{
	const u32 num = 16, size = 256;
	struct drm_amdgpu_sdma_desc *d;
	static struct amdgpu_sdma_plan plan;
	struct engine e;
	u32 i;

	engine_init(&e, test, kunit_format(test));
	d = kunit_kcalloc(test, num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < num; i++) {
		memset(e.memory + i * size, i + 1, size);
		d[i].src = MEMORY + i * size;
		d[i].dst = d[i].src + size;
		d[i].size = size;
		d[i].flags = AMDGPU_SDMA_DESC_BARRIER;
	}
	kunit_plan(&plan, e.format, d, num);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_overlap(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan,
					     AMDGPU_SDMA_PLACE_ONE_ENGINE, 1));
	engine_run_plan(&e, &plan);
	KUNIT_EXPECT_EQ(test, e.barriers, num - 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(e.memory, 1, (num + 1) * size));
}

/* Packets of a batch of copies of 256 bytes, each of which continues the last. */
static u32 packets_of_chain(struct kunit *test, struct drm_amdgpu_sdma_desc *d,
			    u32 n)
{
	static struct amdgpu_sdma_plan plan;
	struct engine e;
	u8 *want;
	u32 i;

	engine_init(&e, test, kunit_format(test));
	want = kunit_kzalloc(test, MEMORY_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, want);
	kunit_fill(want);
	memcpy(e.memory, want, MEMORY_SIZE);
	kunit_plan(&plan, e.format, d, n);
	for (i = 0; i < n; i++)
		model(want, &d[i]);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan,
					     AMDGPU_SDMA_PLACE_ONE_ENGINE, 1));
	engine_run_plan(&e, &plan);
	KUNIT_EXPECT_EQ(test, memcmp(want, e.memory, MEMORY_SIZE), 0);
	return e.clock;
}

static void emit_neighbours(struct kunit *test)
{
	static struct drm_amdgpu_sdma_desc d[8];
	u32 i;

	for (i = 0; i < 8; i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
		d[i].src = MEMORY + i * 256;
		d[i].dst = MEMORY + MEMORY_SIZE / 2 + i * 256;
		d[i].size = 256;
	}
	KUNIT_EXPECT_EQ(test, packets_of_chain(test, d, 8), 1);
	/* A byte is missing, in both or in one. */
	d[3].size = 255;
	KUNIT_EXPECT_EQ(test, packets_of_chain(test, d, 8), 2);
	d[3].size = 256;
	d[3].src += 4096;
	KUNIT_EXPECT_EQ(test, packets_of_chain(test, d, 8), 3);
	d[3].src -= 4096;
	d[3].dst += 4096;
	KUNIT_EXPECT_EQ(test, packets_of_chain(test, d, 8), 3);
	d[3].dst -= 4096;
	/* What is behind a barrier, or has a record, is on its own. */
	d[3].flags = AMDGPU_SDMA_DESC_BARRIER;
	KUNIT_EXPECT_EQ(test, packets_of_chain(test, d, 8), 3);
	d[3].flags = 0;
	/* Another operation is no copy that continues one. */
	d[3].op = AMDGPU_SDMA_OP_BROADCAST;
	d[3].dst_more[0] = MEMORY + 0x8000 + 4;
	KUNIT_EXPECT_EQ(test, packets_of_chain(test, d, 8), 4);
	d[3].dst_more[0] = MEMORY + 0x8000;
	KUNIT_EXPECT_EQ(test, packets_of_chain(test, d, 8), 3);
}

/* Long ways and short ways, in one share and in many, make the same packets. */
static void emit_short_way(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc *d;
	struct amdgpu_sdma_stream a, b;
	static struct amdgpu_sdma_plan plan;
	u32 round, i, share, placement;
	struct rnd_state rnd;
	struct engine e;

	engine_init(&e, test, &tiny);
	d = kunit_kcalloc(test, 64, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	prandom_seed_state(&rnd, 9);
	for (round = 0; round < 300; round++) {
		u64 at = 0x10000;

		for (i = 0; i < 64; i++, at += d[i - 1].size) {
			d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
			d[i].size = 1 + random_below(&rnd, 300);
			if (!random_below(&rnd, 8))
				d[i].size = 199 + random_below(&rnd, 3);
			at += !random_below(&rnd, 2);
			d[i].src = at;
			d[i].dst = at + 0x100000;
			if (!random_below(&rnd, 16))
				d[i].flags = AMDGPU_SDMA_DESC_BARRIER;
		}
		kunit_plan(&plan, &tiny, d, 64);
		plan.stride = sizeof(*d);
		KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		placement = plan.first_ordered < 64 ? 1 : 2;
		KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, placement, 5));
		for (share = 0; share < plan.shares; share++) {
			plan.long_way = false;
			engine_emit(&e, &plan, share, &a);
			plan.long_way = true;
			engine_emit(&e, &plan, share, &b);
			KUNIT_ASSERT_EQ(test, a.p - a.base, b.p - b.base);
			KUNIT_ASSERT_EQ(test, a.num_ibs, b.num_ibs);
			KUNIT_EXPECT_EQ(test, 0,
					memcmp(a.base, b.base,
					       (a.p - a.base) * sizeof(u32)));
			kvfree(a.base);
			kvfree(b.base);
		}
	}
}

/* The engine's real limits, without its memory. */
static void emit_real_limits(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = kunit_format(test);
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_SWAP);
	struct amdgpu_sdma_stream s = { .format = f };
	static struct amdgpu_sdma_plan plan;
	u64 done = 0;
	u32 i, *buf;

	kunit_plan(&plan, f, &d, 1);
	d.src = 1ULL << 40;
	d.dst = 1ULL << 42;
	d.size = 3 * f->max_swap + 65;
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan,
					     AMDGPU_SDMA_PLACE_ONE_ENGINE, 1));
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

/* Destinations in pairs: equal modulo 32, whatever is between them. */
static void emit_pairs(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_BROADCAST);
	static const u8 low[8] = { 0, 1, 0, 2, 1, 0, 3, 0 };
	static struct amdgpu_sdma_plan plan;
	struct engine e;
	u32 i;

	engine_init(&e, test, kunit_format(test));
	memset(e.memory, 7, 512);
	d.src = MEMORY;
	d.size = 512;
	d.dst = MEMORY + 0x1000;
	for (i = 1; i < 8; i++)
		d.dst_more[i - 1] = MEMORY + 0x1000 * (i + 1) + low[i];
	kunit_plan(&plan, e.format, &d, 1);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan,
					     AMDGPU_SDMA_PLACE_ONE_ENGINE, 1));
	engine_run_plan(&e, &plan);
	/* 0-2, 1-4, 3, 5-7, 6 */
	KUNIT_EXPECT_EQ(test, e.clock, 5);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_NULL(test, memchr_inv(e.memory + 0x1000 * (i + 1) +
						   low[i], 7, 512));
}

/* Dwords that a plan takes in @room dwords, or 0 if it does not fit. */
static u32 emit_into(struct kunit *test, const struct amdgpu_sdma_plan *plan,
		     u32 *buf, u32 room)
{
	struct amdgpu_sdma_stream s = {
		.format = plan->format, .slot = SLOT, .sample = SLOT + 32,
		.scratch = SCRATCH, .base = buf, .end = buf + room,
	};

	memset(buf, 0xee, 4096);
	if (amdgpu_sdma_plan_emit(plan, 0, &s))
		return 0;
	KUNIT_EXPECT_EQ(test, s.num_ibs, 1);
	KUNIT_EXPECT_GT(test, s.p - s.base, 0);
	KUNIT_EXPECT_EQ(test, s.ibs[0].length, s.p - s.base);
	return s.p - s.base;
}

/* Less room than is needed is refused, never overrun, and nothing is left out. */
static void no_room(struct kunit *test, const struct amdgpu_sdma_plan *plan,
		    u32 *buf, u32 *all)
{
	u32 room, used, needed = emit_into(test, plan, all, 1000);

	KUNIT_EXPECT_GT(test, needed, 0);
	for (room = 0; room < 1000; room++) {
		used = emit_into(test, plan, buf, room);
		KUNIT_EXPECT_NULL(test, memchr_inv(buf + room, 0xee,
						   (1024 - room) * 4));
		if (used)
			break;
	}
	KUNIT_EXPECT_EQ(test, used, needed);
	KUNIT_EXPECT_EQ(test, memcmp(all, buf, needed * sizeof(u32)), 0);
	KUNIT_EXPECT_LE(test, needed, room);
	KUNIT_EXPECT_LE(test, room, amdgpu_sdma_plan_dwords(plan, 0));
}

static void emit_no_room(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[3];
	static struct amdgpu_sdma_plan plan;
	u32 op, guard, records, *buf, *all;

	buf = kunit_kcalloc(test, 1024, sizeof(*buf), GFP_KERNEL);
	all = kunit_kcalloc(test, 1024, sizeof(*all), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_ASSERT_NOT_NULL(test, all);
	for (op = 0; op < ALL_OPS; op++)
		for (guard = 0; guard < 3; guard++)
			for (records = 0; records < 2; records++) {
				d[0] = kunit_good(guard ? AMDGPU_SDMA_OP_WAIT :
							  op);
				d[1] = kunit_good(op);
				d[1].dst += !!d[1].size;
				d[2] = d[1];
				if (guard != 1)
					d[2].flags = AMDGPU_SDMA_DESC_BARRIER |
						     AMDGPU_SDMA_DESC_RECORD;
				d[2].record = guard != 1 ? 0x90000 : 0;
				if (guard == 2) {
					d[0].flags = AMDGPU_SDMA_DESC_RECORD;
					d[0].record = 0xb0000;
				}
				kunit_plan(&plan, kunit_format(test), d, 3);
				plan.records = records ? RECORDS : 0;
				KUNIT_ASSERT_EQ(test, 0,
						amdgpu_sdma_plan_check(&plan));
				KUNIT_ASSERT_EQ(test, 0,
						kunit_place(&plan, 1, 1));
				no_room(test, &plan, buf, all);
			}
	/* By itself, in the best packets that there are. */
	for (op = 0; op < ALL_OPS; op++) {
		d[0] = kunit_good(op);
		kunit_plan(&plan, kunit_format(test), d, 1);
		KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		KUNIT_ASSERT_EQ(test, kunit_place(&plan, 1, 1), 0);
		no_room(test, &plan, buf, all);
	}
}

/* No more packets than it takes: nothing is guarded without a wait. */
static void emit_least(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_COPY);
	static struct amdgpu_sdma_plan plan;
	u32 *buf = kunit_kcalloc(test, 1024, sizeof(*buf), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	d.flags = AMDGPU_SDMA_DESC_RECORD;
	d.record = 0x90000;
	kunit_plan(&plan, kunit_format(test), &d, 1);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, 1, 1));
	KUNIT_EXPECT_EQ(test, emit_into(test, &plan, buf, 1000),
			ALIGN(7 + 3 + AMDGPU_SDMA_RECORD_END_DW, 8));
	/* The least that a word fill does. */
	d = kunit_good(AMDGPU_SDMA_OP_FILL);
	d.size = 4;
	kunit_plan(&plan, kunit_format(test), &d, 1);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, 1, 1));
	KUNIT_EXPECT_EQ(test, emit_into(test, &plan, buf, 1000), 8);
	d = kunit_good(AMDGPU_SDMA_OP_COPY);
	kunit_plan(&plan, kunit_format(test), &d, 1);
	plan.records = RECORDS;
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, 1, 1));
	KUNIT_EXPECT_EQ(test, emit_into(test, &plan, buf, 1000),
			ALIGN(7 + 3 + AMDGPU_SDMA_RECORD_END_DW, 8));
}

/* Exactly as much room as two fills and their padding take. */
static void emit_exact_room(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d[] = {
		kunit_good(AMDGPU_SDMA_OP_FILL), kunit_good(AMDGPU_SDMA_OP_FILL),
	};
	static struct amdgpu_sdma_plan plan;
	u32 buf[16];
	struct amdgpu_sdma_stream s = {
		.format = kunit_format(test), .base = buf, .end = buf + 16,
	};

	kunit_plan(&plan, s.format, d, 2);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, 1, 1));
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_emit(&plan, 0, &s), 0);
	KUNIT_EXPECT_EQ(test, s.ibs[0].length, 16);
	s.num_ibs = 0;
	s.end--;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_emit(&plan, 0, &s), -ENOSPC);
	KUNIT_EXPECT_EQ(test, s.num_ibs, 0);
	/* A packet leaves room for a guard. */
	kunit_plan(&plan, s.format, d, 1);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, 1, 1));
	s.end = buf + AMDGPU_SDMA_FILL_DW + AMDGPU_SDMA_COND_DW;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_emit(&plan, 0, &s), 0);
	s.num_ibs = 0;
	s.end--;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_emit(&plan, 0, &s), -ENOSPC);
}

/* So many packets that they need several IBs, with guards and without. */
static void emit_ibs(struct kunit *test)
{
	const u32 num = 40000;
	struct drm_amdgpu_sdma_desc *d;
	struct amdgpu_sdma_stream s;
	static struct amdgpu_sdma_plan plan;
	struct engine e;
	u32 i, guard;

	engine_init(&e, test, kunit_format(test));
	d = kvcalloc(num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < num; i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_SWAP);
		d[i].src = MEMORY + 1;
		d[i].dst = MEMORY + 0x1000;
		d[i].size = 1;
		d[i].flags = AMDGPU_SDMA_DESC_BARRIER;
	}
	for (guard = 0; guard < 2; guard++) {
		if (guard) {
			d[0] = kunit_good(AMDGPU_SDMA_OP_WAIT);
			d[0].src = MEMORY + 0x4000;
		}
		e.barriers = 0;
		kunit_plan(&plan, e.format, d, num);
		KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
		KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, 1, 1));
		engine_emit(&e, &plan, 0, &s);
		KUNIT_EXPECT_EQ(test, s.num_ibs, 3);
		KUNIT_EXPECT_GT(test, s.ibs[0].length,
				AMDGPU_SDMA_MAX_IB_DW - 100);
		engine_run(&e, &s);
		/*
		 * Three of each swap and one before it; three of the wait, and
		 * none behind it.
		 */
		KUNIT_EXPECT_EQ(test, e.barriers, guard ?
				3 + 3 * (num - 1) + num - 2 :
				3 * num + num - 1);
		kvfree(s.base);
	}
	kvfree(d);
}

/* Plain copies up to the end of an IB: the short way stops in time. */
static void emit_ibs_of_copies(struct kunit *test)
{
	const u32 num = AMDGPU_SDMA_MAX_DESCS;
	struct amdgpu_sdma_format f = *kunit_format(test);
	struct drm_amdgpu_sdma_desc *d;
	struct amdgpu_sdma_stream s;
	static struct amdgpu_sdma_plan plan;
	struct engine e;
	u32 i;

	d = kvcalloc(num, sizeof(*d), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, d);
	for (i = 0; i < num; i++) {
		d[i] = kunit_good(AMDGPU_SDMA_OP_COPY);
		d[i].src = MEMORY + 1;
		d[i].dst = MEMORY + 0x1000 + i % 256;
		d[i].size = 1;
	}
	/* As if packets were so long that 9362 of them fill an IB. */
	f.copy_dw = 63;
	engine_init(&e, test, &f);
	kunit_plan(&plan, &f, d, num);
	KUNIT_ASSERT_EQ(test, amdgpu_sdma_plan_check(&plan), 0);
	KUNIT_ASSERT_EQ(test, 0, kunit_place(&plan, 1, 1));
	engine_emit(&e, &plan, 0, &s);
	KUNIT_EXPECT_EQ(test, s.num_ibs, 4);
	for (i = 0; i < s.num_ibs; i++) {
		KUNIT_EXPECT_LE(test, s.ibs[i].length, AMDGPU_SDMA_MAX_IB_DW);
		KUNIT_EXPECT_EQ(test, s.ibs[i].offset,
				i ? s.ibs[i - 1].offset + s.ibs[i - 1].length :
				    0);
	}
	KUNIT_EXPECT_GT(test, s.ibs[2].length, AMDGPU_SDMA_MAX_IB_DW - 80);
	kvfree(s.base);
	kvfree(d);
}

static struct kunit_case emit_cases[] = {
	KUNIT_CASE(emit_pairs),
	KUNIT_CASE(emit_barriers),
	KUNIT_CASE(emit_neighbours),
	KUNIT_CASE(emit_real_limits),
	KUNIT_CASE(emit_cut),
	KUNIT_CASE(emit_rect_shares),
	KUNIT_CASE(emit_random_unordered),
	KUNIT_CASE(emit_random_ordered),
	KUNIT_CASE(emit_random_lacking),
	KUNIT_CASE(emit_random_rects),
	KUNIT_CASE(emit_short_way),
	KUNIT_CASE(emit_no_room),
	KUNIT_CASE(emit_exact_room),
	KUNIT_CASE(emit_least),
	KUNIT_CASE(emit_ibs),
	KUNIT_CASE(emit_ibs_of_copies),
	{ }
};

static struct kunit_suite emit_suite = {
	.name = "amdgpu_sdma_emit",
	.test_cases = emit_cases,
};

kunit_test_suite(emit_suite);
