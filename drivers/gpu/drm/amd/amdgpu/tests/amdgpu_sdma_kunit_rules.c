// SPDX-License-Identifier: MIT
/* KUnit tests of the rules of SDMA descriptors: each broken, and just kept. */

#include "amdgpu_sdma_kunit.h"

struct rule {
	const char *what;
	u32 op;
	int error;
	void (*spoil)(struct drm_amdgpu_sdma_desc *d);
};

#define SPOIL(name, ...)						\
	static void name(struct drm_amdgpu_sdma_desc *d) { __VA_ARGS__; }

SPOIL(nothing)
SPOIL(set_op, d->op = ALL_OPS)
SPOIL(set_op_far, d->op = 32)
SPOIL(set_flags, d->flags = 8)
SPOIL(set_pad, d->pad = 1)
SPOIL(set_reserved, d->reserved[0] = 1)
SPOIL(set_reserved2, d->reserved[1] = 1ULL << 63)
SPOIL(set_src, d->src = 4)
SPOIL(set_dst, d->dst = 4)
SPOIL(set_size, d->size = 4)
SPOIL(clear_size, d->size = 0)
SPOIL(set_value, d->value = 1)
SPOIL(set_value_high, d->value = 1ULL << 32)
SPOIL(set_more, d->dst_more[0] = 0x40000)
SPOIL(set_last_more, d->dst_more[6] = 0x40000)
SPOIL(clear_more, d->dst_more[0] = 0)
SPOIL(gap_in_more, d->dst_more[2] = 0x40000)
SPOIL(gap_at_end, d->dst_more[6] = 0x40000)

static void most_more(struct drm_amdgpu_sdma_desc *d)
{
	int i;

	for (i = 1; i < 7; i++)
		d->dst_more[i] = 0x40000 + i * 0x10000;
}

SPOIL(bad_second, d->dst_more[0] = HOLE_START)
SPOIL(bad_third, d->dst_more[1] = -4095ULL)
SPOIL(bad_last, most_more(d); d->dst_more[6] = HOLE_START - 4095)
SPOIL(set_mask, d->mask = 1)
SPOIL(clear_mask, d->mask = 0)
SPOIL(set_compare, d->compare = AMDGPU_SDMA_COMPARE_LE + 1)
SPOIL(set_le, d->compare = AMDGPU_SDMA_COMPARE_LE)
SPOIL(set_timeout, d->timeout_ns = 1)
SPOIL(clear_timeout, d->timeout_ns = 0)
SPOIL(longest, d->timeout_ns = MAX_WAIT_NS)
SPOIL(too_long, d->timeout_ns = MAX_WAIT_NS + 1)
SPOIL(for_ever, d->timeout_ns = U64_MAX)
SPOIL(set_record, d->record = 0x90000)
SPOIL(good_record, d->record = 0x90020; d->flags = AMDGPU_SDMA_DESC_RECORD)
SPOIL(record_odd, d->record = 0x90010; d->flags = AMDGPU_SDMA_DESC_RECORD)
SPOIL(record_byte, d->record = 0x90001; d->flags = AMDGPU_SDMA_DESC_RECORD)

static void record_in_hole(struct drm_amdgpu_sdma_desc *d)
{
	d->record = HOLE_START - 32;
	d->flags = AMDGPU_SDMA_DESC_RECORD;
}

static void record_fits(struct drm_amdgpu_sdma_desc *d)
{
	d->record = HOLE_START - 64;
	d->flags = AMDGPU_SDMA_DESC_RECORD;
}

SPOIL(set_barrier, d->flags = AMDGPU_SDMA_DESC_BARRIER)
SPOIL(src_odd, d->src += 2)
SPOIL(src_byte, d->src += 1)
SPOIL(dst_half, d->dst += 4)
SPOIL(dst_byte, d->dst += 1)
SPOIL(wraps, d->dst = -4095ULL)
SPOIL(at_top, d->dst = -4096ULL)
SPOIL(in_hole, d->src = HOLE_START)
SPOIL(below_hole_end, d->src = HOLE_END - 1)
SPOIL(at_hole_end, d->src = HOLE_END)
SPOIL(into_hole, d->src = HOLE_START - 4095)
SPOIL(up_to_hole, d->src = HOLE_START - 4096)
SPOIL(dst_into_hole, d->dst = HOLE_START - 4095)
SPOIL(dst_up_to_hole, d->dst = HOLE_START - 4096)
SPOIL(over_hole, d->src = HOLE_START - 1; d->size = 1 + HOLE_END - HOLE_START)
SPOIL(wait_in_hole, d->src = HOLE_START)
SPOIL(add_in_hole, d->dst = HOLE_START)
SPOIL(value_off_mask, d->value = 2)
SPOIL(too_large, d->size = AMDGPU_SDMA_MAX_BYTES + 1)
SPOIL(largest, d->size = AMDGPU_SDMA_MAX_BYTES; d->dst = 1ULL << 40)
SPOIL(set_rows, d->rows = 1)
SPOIL(clear_rows, d->rows = 0)
SPOIL(one_row, d->rows = 1)
SPOIL(set_src_pitch, d->src_pitch = 4096)
SPOIL(set_dst_pitch, d->dst_pitch = 4096)
SPOIL(small_src_pitch, d->src_pitch = d->size - 1)
SPOIL(small_dst_pitch, d->dst_pitch = d->size - 1)
SPOIL(least_pitches, d->src_pitch = d->size; d->dst_pitch = d->size)
SPOIL(rows_up_to_hole, d->src = HOLE_START - 3 * 1024 - 64)
SPOIL(rows_into_hole, d->src = HOLE_START - 3 * 1024 - 63)
SPOIL(rows_over_hole, d->src_pitch = HOLE_END; d->rows = 2)
SPOIL(rows_wrap, d->dst_pitch = 1ULL << 62; d->rows = 5)
SPOIL(rows_wrap_end, d->dst = -1088ULL; d->dst_pitch = 512)

static void rect_too_large(struct drm_amdgpu_sdma_desc *d)
{
	d->size = AMDGPU_SDMA_MAX_BYTES / 4 + 1;
	d->src_pitch = d->size;
	d->dst_pitch = d->size;
}

static void rect_overflows(struct drm_amdgpu_sdma_desc *d)
{
	d->size = 1ULL << 33;
	d->src_pitch = d->size;
	d->dst_pitch = d->size;
	d->rows = 1U << 31;
}

SPOIL(too_many_rows, d->rows = AMDGPU_SDMA_MAX_ROWS + 1)
SPOIL(most_rows, d->rows = AMDGPU_SDMA_MAX_ROWS)

static void linear_rows(struct drm_amdgpu_sdma_desc *d)
{
	d->rows = AMDGPU_SDMA_MAX_ROWS + 1;
	d->src_pitch = d->size;
	d->dst_pitch = d->size;
}

#define OP(name)	AMDGPU_SDMA_OP_##name

static const struct rule rules[] = {
	{ "good copy", OP(COPY), 0, nothing },
	{ "good fill", OP(FILL), 0, nothing },
	{ "good broadcast", OP(BROADCAST), 0, nothing },
	{ "good swap", OP(SWAP), 0, nothing },
	{ "good wait", OP(WAIT), 0, nothing },
	{ "good write", OP(WRITE), 0, nothing },
	{ "good add", OP(ADD), 0, nothing },
	{ "good rectangle", OP(COPY_RECT), 0, nothing },
	{ "barrier", OP(COPY), 0, set_barrier },
	{ "operation", 0, -EINVAL, set_op },
	{ "far operation", 0, -EINVAL, set_op_far },
	{ "flags", 0, -EINVAL, set_flags },
	{ "pad", 0, -EINVAL, set_pad },
	{ "reserved", 0, -EINVAL, set_reserved },
	{ "reserved 2", 0, -EINVAL, set_reserved2 },
	{ "source of fill", OP(FILL), -EINVAL, set_src },
	{ "source of write", OP(WRITE), -EINVAL, set_src },
	{ "source of add", OP(ADD), -EINVAL, set_src },
	{ "destination of wait", OP(WAIT), -EINVAL, set_dst },
	{ "size of wait", OP(WAIT), -EINVAL, set_size },
	{ "size of write", OP(WRITE), -EINVAL, set_size },
	{ "size of add", OP(ADD), -EINVAL, set_size },
	{ "no size", 0, -EINVAL, clear_size },
	{ "no size of rectangle", OP(COPY_RECT), -EINVAL, clear_size },
	{ "value of copy", 0, -EINVAL, set_value },
	{ "value of rectangle", OP(COPY_RECT), -EINVAL, set_value },
	{ "value of write", OP(WRITE), 0, set_value_high },
	{ "64 bits of fill", OP(FILL), -EINVAL, set_value_high },
	{ "64 bits of wait", OP(WAIT), -EINVAL, set_value_high },
	{ "value off mask", OP(WAIT), -EINVAL, value_off_mask },
	{ "value in mask", OP(WAIT), 0, set_value },
	{ "more of copy", 0, -EINVAL, set_more },
	{ "last more of copy", 0, -EINVAL, set_last_more },
	{ "no more", OP(BROADCAST), -EINVAL, clear_more },
	{ "gap", OP(BROADCAST), -EINVAL, gap_in_more },
	{ "gap at the end", OP(BROADCAST), -EINVAL, gap_at_end },
	{ "eight destinations", OP(BROADCAST), 0, most_more },
	{ "second destination", OP(BROADCAST), -ERANGE, bad_second },
	{ "third destination", OP(BROADCAST), -ERANGE, bad_third },
	{ "last destination", OP(BROADCAST), -ERANGE, bad_last },
	{ "mask of copy", 0, -EINVAL, set_mask },
	{ "no mask", OP(WAIT), -EINVAL, clear_mask },
	{ "compare", OP(WAIT), -EINVAL, set_compare },
	{ "last compare", OP(WAIT), 0, set_le },
	{ "compare of copy", 0, -EINVAL, set_le },
	{ "timeout of copy", 0, -EINVAL, set_timeout },
	{ "no timeout", OP(WAIT), -EINVAL, clear_timeout },
	{ "longest timeout", OP(WAIT), 0, longest },
	{ "too long", OP(WAIT), -EMSGSIZE, too_long },
	{ "for ever", OP(WAIT), -EMSGSIZE, for_ever },
	{ "record", 0, 0, good_record },
	{ "record without flag", 0, -EINVAL, set_record },
	{ "record alignment", 0, -EINVAL, record_odd },
	{ "record at a byte", 0, -EINVAL, record_byte },
	{ "record in hole", 0, -ERANGE, record_in_hole },
	{ "record at hole", 0, 0, record_fits },
	{ "wait alignment", OP(WAIT), -EINVAL, src_odd },
	{ "wait at a byte", OP(WAIT), -EINVAL, src_byte },
	{ "wait in hole", OP(WAIT), -ERANGE, wait_in_hole },
	{ "swap at any alignment", OP(SWAP), 0, src_byte },
	{ "write alignment", OP(WRITE), -EINVAL, dst_half },
	{ "write at a byte", OP(WRITE), -EINVAL, dst_byte },
	{ "add alignment", OP(ADD), -EINVAL, dst_half },
	{ "add in hole", OP(ADD), -ERANGE, add_in_hole },
	{ "wraps", 0, -ERANGE, wraps },
	{ "fill wraps", OP(FILL), -ERANGE, wraps },
	{ "at the top", 0, 0, at_top },
	{ "hole", 0, -ERANGE, in_hole },
	{ "hole's end", 0, -ERANGE, below_hole_end },
	{ "behind hole", 0, 0, at_hole_end },
	{ "into hole", 0, -ERANGE, into_hole },
	{ "up to hole", 0, 0, up_to_hole },
	{ "destination into hole", 0, -ERANGE, dst_into_hole },
	{ "destination up to hole", 0, 0, dst_up_to_hole },
	{ "over hole", 0, -EMSGSIZE, over_hole },
	{ "largest", 0, -EMSGSIZE, largest },
	{ "too large", 0, -EMSGSIZE, too_large },
	{ "rows of copy", 0, -EINVAL, set_rows },
	{ "source pitch of copy", 0, -EINVAL, set_src_pitch },
	{ "destination pitch of copy", 0, -EINVAL, set_dst_pitch },
	{ "no rows", OP(COPY_RECT), -EINVAL, clear_rows },
	{ "one row", OP(COPY_RECT), 0, one_row },
	{ "small source pitch", OP(COPY_RECT), -EINVAL, small_src_pitch },
	{ "small destination pitch", OP(COPY_RECT), -EINVAL, small_dst_pitch },
	{ "least pitches", OP(COPY_RECT), 0, least_pitches },
	{ "rows up to hole", OP(COPY_RECT), 0, rows_up_to_hole },
	{ "rows into hole", OP(COPY_RECT), -ERANGE, rows_into_hole },
	{ "rows over hole", OP(COPY_RECT), -ERANGE, rows_over_hole },
	{ "rows wrap", OP(COPY_RECT), -ERANGE, rows_wrap },
	{ "end of rows wraps", OP(COPY_RECT), -ERANGE, rows_wrap_end },
	{ "rectangle too large", OP(COPY_RECT), -EMSGSIZE, rect_too_large },
	{ "rectangle overflows", OP(COPY_RECT), -EMSGSIZE, rect_overflows },
	{ "too many rows", OP(COPY_RECT), -EMSGSIZE, too_many_rows },
	{ "most rows", OP(COPY_RECT), 0, most_rows },
	{ "rows without gaps", OP(COPY_RECT), 0, linear_rows },
};

static void rule_name(const struct rule *r, char *name)
{
	strscpy(name, r->what, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rules, rules, rule_name);

/* As the second of two, by the short way and by the long one. */
static void check_rule(struct kunit *test)
{
	const struct rule *r = test->param_value;
	struct drm_amdgpu_sdma_desc d[] = {
		kunit_good(AMDGPU_SDMA_OP_COPY), kunit_good(r->op),
	};
	struct amdgpu_sdma_plan plan;
	bool long_way = false;

	r->spoil(&d[1]);
	do {
		kunit_plan(&plan, kunit_format(test), d, 2);
		plan.long_way = long_way;
		KUNIT_EXPECT_EQ(test, amdgpu_sdma_plan_check(&plan), r->error);
		KUNIT_EXPECT_EQ(test, plan.error_index, r->error ? 1 : ~0);
		long_way = !long_way;
	} while (long_way);
}

/* Words of a descriptor: what each operation uses. */
#define WORD(member)	BIT(offsetof(struct drm_amdgpu_sdma_desc, member) / 8)
#define WORD_HEAD	WORD(op)
#define WORDS_COPY	(WORD_HEAD | WORD(dst) | WORD(src) | WORD(size))
#define WORDS_MORE	GENMASK(19, 13)

static const u32 words_of[] = {
	[AMDGPU_SDMA_OP_COPY] = WORDS_COPY,
	[AMDGPU_SDMA_OP_FILL] = WORD_HEAD | WORD(dst) | WORD(size) |
				WORD(value),
	[AMDGPU_SDMA_OP_BROADCAST] = WORDS_COPY | WORDS_MORE,
	[AMDGPU_SDMA_OP_SWAP] = WORDS_COPY,
	[AMDGPU_SDMA_OP_WAIT] = WORD_HEAD | WORD(src) | WORD(value) |
				WORD(timeout_ns) | WORD(mask),
	[AMDGPU_SDMA_OP_WRITE] = WORD_HEAD | WORD(dst) | WORD(value),
	[AMDGPU_SDMA_OP_ADD] = WORD_HEAD | WORD(dst) | WORD(value),
	[AMDGPU_SDMA_OP_COPY_RECT] = WORDS_COPY | WORD(dst_pitch) |
				     WORD(src_pitch) | WORD(rows),
};

static int check_one(struct kunit *test, const struct drm_amdgpu_sdma_desc *d)
{
	struct amdgpu_sdma_plan plan;

	kunit_plan(&plan, kunit_format(test), d, 1);
	return amdgpu_sdma_plan_check(&plan);
}

/* Each bit of each word that an operation does not use. */
static void check_unused(struct kunit *test)
{
	struct drm_amdgpu_sdma_desc d;
	u32 op, word, bit;

	KUNIT_EXPECT_EQ(test, sizeof(d), 20 * 8);
	for (op = 0; op < ALL_OPS; op++)
		for (word = 0; word < 20; word++)
			for (bit = 0; bit < 64; bit++) {
				d = kunit_good(op);
				if (words_of[op] & BIT(word))
					continue;
				((u64 *)&d)[word] = 1ULL << bit;
				KUNIT_EXPECT_EQ(test, -EINVAL,
						check_one(test, &d));
			}
	/* Flags, and the pad behind the rows. */
	for (op = 0; op < ALL_OPS; op++) {
		for (bit = 3; bit < 32; bit++) {
			d = kunit_good(op);
			d.flags = BIT(bit);
			KUNIT_EXPECT_EQ(test, -EINVAL,
					check_one(test, &d));
		}
		d = kunit_good(op);
		d.pad = 1;
		KUNIT_EXPECT_EQ(test, -EINVAL, check_one(test, &d));
	}
}

static struct kunit_case rules_cases[] = {
	KUNIT_CASE_PARAM(check_rule, rules_gen_params),
	KUNIT_CASE(check_unused),
	{ }
};

static struct kunit_suite rules_suite = {
	.name = "amdgpu_sdma_rules",
	.test_cases = rules_cases,
};

kunit_test_suite(rules_suite);
