// SPDX-License-Identifier: MIT
/* A small engine for KUnit tests of SDMA batches, and what they should do. */

#include "amdgpu_sdma_kunit.h"
#include "vega10_sdma_pkt_open.h"

const struct amdgpu_sdma_format tiny = {
	.native = ~0,
	.max_copy = 200,
	.max_fill = 60,
	.max_swap = 192,
	.swap_align = 64,
	.max_bounce = SCRATCH_SIZE,
	.broadcast_align = 32,
	.max_window = 6,
	.max_pitch = 32,
	.max_skip = 120,
	.copy_dw = 7,
	.copy_header = SDMA_OP_COPY,
	.fill_header = SDMA_OP_CONST_FILL,
	.fence_header = SDMA_OP_FENCE,
};

const struct amdgpu_sdma_format lacking = {
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

void engine_init(struct engine *e, struct kunit *test,
		 const struct amdgpu_sdma_format *f)
{
	memset(e, 0, sizeof(*e));
	e->test = test;
	e->format = f;
	e->memory = kunit_kzalloc(test, MEMORY_ALL, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, e->memory);
}

u8 *engine_at(struct engine *e, u64 addr, u64 size)
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

static void run_swap(struct engine *e, const u32 *w)
{
	u64 size = w[1] + 1ULL, a = get_unaligned((u64 *)(w + 3));
	u64 b = get_unaligned((u64 *)(w + 5));

	KUNIT_ASSERT_NE(e->test, e->format->swap_align, 0);
	KUNIT_ASSERT_LE(e->test, size, e->format->max_swap);
	KUNIT_ASSERT_EQ(e->test, (a | b) % e->format->swap_align, 0);
	swap_bytes(engine_at(e, a, size), engine_at(e, b, size), size);
}

static void run_window(struct engine *e, const u32 *w)
{
	u32 element = 1 << (w[0] >> 29), rows = (w[11] >> 16) + 1;
	u32 width = (w[11] & 0xffff) + 1, row;
	u64 src = get_unaligned((u64 *)(w + 1));
	u64 dst = get_unaligned((u64 *)(w + 6));
	u64 src_pitch = (w[4] >> 13) + 1, dst_pitch = (w[9] >> 13) + 1;

	KUNIT_ASSERT_TRUE(e->test,
			  e->format->native & BIT(AMDGPU_SDMA_OP_COPY_RECT));
	KUNIT_ASSERT_LE(e->test, element, 16);
	KUNIT_ASSERT_LE(e->test, width, e->format->max_window);
	KUNIT_ASSERT_LE(e->test, rows, e->format->max_window);
	KUNIT_ASSERT_LE(e->test, src_pitch, e->format->max_pitch);
	KUNIT_ASSERT_LE(e->test, dst_pitch, e->format->max_pitch);
	KUNIT_ASSERT_EQ(e->test, (src | dst) % max(element, 4U), 0);
	KUNIT_ASSERT_EQ(e->test, (src_pitch | dst_pitch) % 4, 0);
	KUNIT_ASSERT_EQ(e->test, w[3] | w[5] | w[8] | w[10] | w[12], 0);
	for (row = 0; row < rows; row++, src += src_pitch * element,
	     dst += dst_pitch * element)
		memcpy(engine_at(e, dst, width * element),
		       engine_at(e, src, width * element), width * element);
	e->windows++;
}

static void run_linear(struct engine *e, const u32 *w)
{
	u64 size = w[1] + 1ULL, a = get_unaligned((u64 *)(w + 3));
	u64 b = get_unaligned((u64 *)(w + 5)), c;

	KUNIT_ASSERT_LE(e->test, size, e->format->max_copy);
	memcpy(engine_at(e, b, size), engine_at(e, a, size), size);
	if (!(w[0] & 1 << 27))
		return;
	KUNIT_ASSERT_TRUE(e->test,
			  e->format->native & BIT(AMDGPU_SDMA_OP_BROADCAST));
	c = get_unaligned((u64 *)(w + 7));
	KUNIT_ASSERT_EQ(e->test, (c - b) % e->format->broadcast_align, 0);
	memcpy(engine_at(e, c, size), engine_at(e, a, size), size);
}

static void run_copy(struct engine *e, const u32 *w)
{
	switch (w[0] >> 8 & 0xff) {
	case 0:
		run_linear(e, w);
		break;
	case SDMA_SUBOP_COPY_LINEAR_SUB_WIND:
		run_window(e, w);
		break;
	case 9:
		run_swap(e, w);
		break;
	default:
		KUNIT_FAIL_AND_ABORT(e->test, "copy %#x", w[0]);
	}
	e->clock++;
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
	switch (w[0] >> 8 & 0xff) {
	case SDMA_SUBOP_COPY_LINEAR_SUB_WIND:
		return w + AMDGPU_SDMA_SUBWIN_DW;
	case 9:
		return w + AMDGPU_SDMA_SWAP_DW;
	default:
		return w + (w[0] & 1 << 27 ? AMDGPU_SDMA_BROADCAST_DW :
					     e->format->copy_dw);
	}
}

static const u32 *run_fill(struct engine *e, const u32 *w)
{
	u64 dst = get_unaligned((u64 *)(w + 1)), size = w[4] + 1ULL, i;

	KUNIT_ASSERT_LE(e->test, size, e->format->max_fill);
	if (w[0] >> 30)
		KUNIT_ASSERT_EQ(e->test, (dst | size) % 4, 0);
	for (i = 0; i < size; i++)
		*engine_at(e, dst + i, 1) =
			w[3] >> 8 * (w[0] >> 30 ? i % 4 : 0);
	return w + AMDGPU_SDMA_FILL_DW;
}

static const u32 *run_poll(struct engine *e, const u32 *w)
{
	u8 *p = engine_at(e, get_unaligned((u64 *)(w + 1)), 4);
	u32 value = get_unaligned((u32 *)p);

	/* Without others to change memory, "for ever" must hold at once. */
	if (w[5] >> 16 == AMDGPU_SDMA_POLL_FOR_EVER) {
		KUNIT_ASSERT_EQ(e->test, value & w[4], w[3]);
		KUNIT_ASSERT_EQ(e->test, w[0] >> 28 & 7, AMDGPU_SDMA_POLL_EQ);
		KUNIT_ASSERT_EQ(e->test, w[5] & 0xffff, 0);
		e->barriers++;
	} else {
		KUNIT_ASSERT_EQ(e->test, w[5] & 0xffff,
				AMDGPU_SDMA_POLL_CLOCKS);
		e->polls = w[5] >> 16;
	}
	return w + AMDGPU_SDMA_POLL_DW;
}

static const u32 *run_atomic(struct engine *e, const u32 *w)
{
	u8 *p = engine_at(e, get_unaligned((u64 *)(w + 1)), 8);
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
	u8 *p = engine_at(e, get_unaligned((u64 *)(w + 1)), 4);
	const u32 *next = w + AMDGPU_SDMA_COND_DW;

	KUNIT_ASSERT_LE(e->test, w[4], e->format->max_skip);
	KUNIT_ASSERT_LE(e->test, w[4], end - next);
	return get_unaligned((u32 *)p) == w[3] ? next : next + w[4];
}

/* Not one byte behind the time may be relied on, up to the alignment. */
static const u32 *run_timestamp(struct engine *e, u64 addr, const u32 *w)
{
	u8 *p = engine_at(e, addr, AMDGPU_SDMA_RECORD_ALIGN);

	KUNIT_ASSERT_EQ(e->test, addr % AMDGPU_SDMA_RECORD_ALIGN, 0);
	memset(p, 0x11, AMDGPU_SDMA_RECORD_ALIGN);
	put_unaligned(e->clock, (u64 *)p);
	return w + AMDGPU_SDMA_TIMESTAMP_DW;
}

/* What a barrier polls for must not be there before. */
static const u32 *run_fence(struct engine *e, u64 addr, const u32 *w)
{
	u32 *p = (u32 *)engine_at(e, addr, 4);

	if (addr == SLOT + AMDGPU_SDMA_SLOT_BARRIER)
		KUNIT_ASSERT_NE(e->test, get_unaligned(p), w[3]);
	if (addr >= RECORDS && (addr - RECORDS) % 64 ==
			       offsetof(struct drm_amdgpu_sdma_record, status))
		e->statuses++;
	run_late(e);
	put_unaligned(w[3], p);
	return w + AMDGPU_SDMA_FENCE_DW;
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
		memcpy(engine_at(e, addr, 8), w + 4, 8);
		return w + AMDGPU_SDMA_WRITE64_DW;
	case SDMA_OP_FENCE:
		return run_fence(e, addr, w);
	case SDMA_OP_POLL_REGMEM:
		return run_poll(e, w);
	case SDMA_OP_COND_EXE:
		return run_cond(e, w, end);
	case SDMA_OP_ATOMIC:
		return run_atomic(e, w);
	case SDMA_OP_CONST_FILL:
		return run_fill(e, w);
	case SDMA_OP_TIMESTAMP:
		return run_timestamp(e, addr, w);
	default:
		KUNIT_FAIL_AND_ABORT(e->test, "packet %#x", w[0]);
		return end;
	}
}

void engine_run(struct engine *e, const struct amdgpu_sdma_stream *s)
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

void engine_emit(struct engine *e, const struct amdgpu_sdma_plan *plan,
		 u32 share, struct amdgpu_sdma_stream *s)
{
	u64 dw = amdgpu_sdma_plan_dwords(plan, share);

	KUNIT_EXPECT_EQ(e->test, dw % 8, 0);
	*s = (struct amdgpu_sdma_stream) {
		.format = plan->format, .slot = SLOT,
		.sample = SLOT + AMDGPU_SDMA_SLOT_SIZE / 2,
		.scratch = SCRATCH, .instance = share,
		.base = kvcalloc(dw, sizeof(u32), GFP_KERNEL),
	};
	KUNIT_ASSERT_NOT_NULL(e->test, s->base);
	s->end = s->base + dw;
	KUNIT_EXPECT_EQ(e->test, amdgpu_sdma_plan_emit(plan, share, s), 0);
}

void engine_run_plan(struct engine *e, const struct amdgpu_sdma_plan *plan)
{
	struct amdgpu_sdma_stream s;
	u32 share = plan->shares;

	while (share--) {
		memset(engine_at(e, SLOT, AMDGPU_SDMA_SLOT_SIZE), 0,
		       AMDGPU_SDMA_SLOT_SIZE);
		engine_emit(e, plan, share, &s);
		engine_run(e, &s);
		kvfree(s.base);
	}
}

u32 engine_status(struct engine *e)
{
	return get_unaligned((u32 *)engine_at(e, SLOT +
					      AMDGPU_SDMA_SLOT_STATUS, 4));
}

struct drm_amdgpu_sdma_record engine_record(struct engine *e, u64 addr)
{
	struct drm_amdgpu_sdma_record r;

	memcpy(&r, engine_at(e, addr, sizeof(r)), sizeof(r));
	return r;
}

void model(u8 *memory, const struct drm_amdgpu_sdma_desc *d)
{
	u8 *dst = memory + (d->dst - MEMORY), *src = memory + (d->src - MEMORY);
	u64 i;

	switch (d->op) {
	case AMDGPU_SDMA_OP_BROADCAST:
		for (i = 0; i < ARRAY_SIZE(d->dst_more) && d->dst_more[i]; i++)
			memcpy(memory + (d->dst_more[i] - MEMORY), src,
			       d->size);
		fallthrough;
	case AMDGPU_SDMA_OP_COPY:
		memcpy(dst, src, d->size);
		break;
	case AMDGPU_SDMA_OP_COPY_RECT:
		for (i = 0; i < d->rows; i++)
			memcpy(dst + i * d->dst_pitch, src + i * d->src_pitch,
			       d->size);
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

#define PART	(PLACE / 4 / 64 * 64)

/* Two to eight destinations, some pairs of which are equal modulo 32. */
static void random_more(struct rnd_state *rnd, struct drm_amdgpu_sdma_desc *d,
			u64 base)
{
	u32 i, num = 1 + random_below(rnd, AMDGPU_SDMA_MAX_DST - 1);

	d->size = 1 + random_below(rnd, 280);
	for (i = 0; i < num; i++)
		d->dst_more[i] = base + 2 * PART + i * 320 +
				 (random_below(rnd, 2) ? d->dst % 32 :
							 random_below(rnd, 32));
}

/* Any rectangle, or one that a sub-window packet can copy. */
static void random_rect(struct rnd_state *rnd, struct drm_amdgpu_sdma_desc *d,
			u64 base)
{
	u32 unit = 4 << random_below(rnd, 3), i = random_below(rnd, 4);

	d->rows = 1 + random_below(rnd, 15);
	d->size = 1 + random_below(rnd, 40);
	d->src_pitch = d->size + random_below(rnd, 40);
	d->dst_pitch = i ? d->size + random_below(rnd, 40) : d->size;
	if (i > 1)
		d->src_pitch = d->size;
	if (random_below(rnd, 2))
		return;
	d->rows = 1 + random_below(rnd, 8);
	d->size = unit * (1 + random_below(rnd, 3));
	d->src_pitch = 4 * unit * (1 + random_below(rnd, 2));
	d->dst_pitch = 4 * unit * (1 + random_below(rnd, 2));
	d->dst = base + random_below(rnd, 2) * 4;
	d->src = base + PART + random_below(rnd, 2) * 8;
}

static struct drm_amdgpu_sdma_desc random_wait(u64 base)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_WAIT, .src = base, .mask = ~0,
		.timeout_ns = 1, .compare = AMDGPU_SDMA_COMPARE_GE,
	};
}

struct drm_amdgpu_sdma_desc random_desc(struct rnd_state *rnd, u32 place,
					u32 ops)
{
	u64 base = MEMORY + place * PLACE;
	struct drm_amdgpu_sdma_desc d = {
		.op = random_below(rnd, ops),
		.dst = base + random_below(rnd, 32),
		.src = base + PART,
		.size = 1 + random_below(rnd, PART - 64),
	};

	switch (d.op) {
	case AMDGPU_SDMA_OP_FILL:
		d.src = 0;
		d.value = prandom_u32_state(rnd);
		break;
	case AMDGPU_SDMA_OP_SWAP:
		/* aligned, equal modulo 64, neither */
		d.dst = base + (place % 3 ? random_below(rnd, 64) : 0);
		d.src = base + 2 * PART;
		d.src += place % 3 < 2 ? d.dst % 64 : random_below(rnd, 64);
		break;
	case AMDGPU_SDMA_OP_BROADCAST:
		random_more(rnd, &d, base);
		break;
	case AMDGPU_SDMA_OP_WAIT:
		return random_wait(base);
	case AMDGPU_SDMA_OP_WRITE:
	case AMDGPU_SDMA_OP_ADD:
		return (struct drm_amdgpu_sdma_desc) {
			.op = d.op, .dst = base,
			.value = prandom_u32_state(rnd),
		};
	case AMDGPU_SDMA_OP_COPY_RECT:
		random_rect(rnd, &d, base);
		break;
	}
	return d;
}

const struct amdgpu_sdma_format *kunit_format(struct kunit *test)
{
	const struct amdgpu_sdma_format *f;

	f = amdgpu_sdma_format(IP_VERSION(4, 4, 2));
	KUNIT_ASSERT_NOT_NULL(test, f);
	return f;
}

/* Descriptors that are right, one of each operation. */
struct drm_amdgpu_sdma_desc kunit_good(u32 op)
{
	struct drm_amdgpu_sdma_desc d = {
		.op = op, .dst = 0x20000, .src = 0x10000, .size = 4096,
	};

	switch (op) {
	case AMDGPU_SDMA_OP_BROADCAST:
		d.dst_more[0] = 0x30000;
		break;
	case AMDGPU_SDMA_OP_COPY_RECT:
		d.size = 64;
		d.rows = 4;
		d.src_pitch = 1024;
		d.dst_pitch = 512;
		break;
	case AMDGPU_SDMA_OP_WAIT:
		d.mask = 1;
		d.timeout_ns = 1;
		d.dst = 0;
		d.size = 0;
		break;
	case AMDGPU_SDMA_OP_WRITE:
	case AMDGPU_SDMA_OP_ADD:
		d.size = 0;
		fallthrough;
	case AMDGPU_SDMA_OP_FILL:
		d.src = 0;
		break;
	}
	return d;
}

void kunit_plan(struct amdgpu_sdma_plan *plan,
		const struct amdgpu_sdma_format *f,
		const struct drm_amdgpu_sdma_desc *d, u32 n)
{
	memset(plan, 0, sizeof(*plan));
	plan->format = f;
	plan->descs = d;
	plan->stride = sizeof(*d);
	plan->num = n;
	plan->max_bytes = AMDGPU_SDMA_MAX_BYTES;
	plan->max_dwords = AMDGPU_SDMA_MAX_DWORDS;
	plan->max_wait_ns = MAX_WAIT_NS;
	plan->mhz = MHZ;
	plan->hole_start = HOLE_START;
	plan->hole_end = HOLE_END;
	plan->error_index = ~0;
	plan->error_index2 = ~0;
}

int kunit_place(struct amdgpu_sdma_plan *plan, u32 placement, u32 engines)
{
	const struct amdgpu_sdma_engines e = {
		.usable = GENMASK(engines - 1, 0),
	};

	return amdgpu_sdma_plan_place(plan, placement, &e);
}
