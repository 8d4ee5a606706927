/* SPDX-License-Identifier: MIT */
/*
 * KUnit tests of the packets of one generation of SDMA, dword by dword against
 * the macros of a packet header file. Header files define the same names, so
 * each is included by a source file of its own before this one. That defines
 * PACKETS_SUITE, and below packets_of[], the versions that use the header file.
 */
#include <kunit/test.h>

#include "amdgpu.h"
#include "amdgpu_sdma_encode.h"

#define A	0x0000123456789abcULL
#define B	0xffff8fedcba98764ULL
#define C	0x0000000500000004ULL

struct packets_of {
	u32 version;
	/* What the driver's own moves of memory add to the header file. */
	u32 copy_extra;
	u32 fill_extra;
	u32 fence_extra;
	u32 copy_dw;
	/* Broadcasts and sub-window copies. */
	bool broadcast;
	/* Bytes; more than the header file's fields have if wider is true. */
	u64 max;
	bool wider;
};

static void packets_name(const struct packets_of *p, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "%u.%u.%u",
		 IP_VERSION_MAJ(p->version), IP_VERSION_MIN(p->version),
		 IP_VERSION_REV(p->version));
}

static const struct amdgpu_sdma_format *packets_format(struct kunit *test)
{
	const struct packets_of *p = test->param_value;
	const struct amdgpu_sdma_format *f = amdgpu_sdma_format(p->version);

	KUNIT_ASSERT_NOT_NULL(test, f);
	return f;
}

/* The packet that @end ends, against @n dwords. */
static void packets_expect(struct kunit *test, const u32 *got, const u32 *end,
			   const u32 *want, u32 n)
{
	u32 i;

	KUNIT_ASSERT_EQ(test, end - got, n);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ_MSG(test, got[i], want[i], "dword %u", i);
}

/* Both halves of a 64-bit value, where the header file has them. */
#define PUT64(want, name, field, value)					\
	do {								\
		u32 *want_ = (want);					\
		u64 value_ = (value);					\
									\
		want_[SDMA_PKT_##name##_LO_##field##_31_0_offset] =	\
			lower_32_bits(value_);				\
		want_[SDMA_PKT_##name##_HI_##field##_63_32_offset] =	\
			upper_32_bits(value_);				\
	} while (0)

static void packets_copy(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = packets_format(test);
	const struct packets_of *p = test->param_value;
	u32 want[16] = { }, got[16], *end;

	want[0] = SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY) |
		  SDMA_PKT_COPY_LINEAR_HEADER_SUB_OP(SDMA_SUBOP_COPY_LINEAR) |
		  p->copy_extra;
	want[SDMA_PKT_COPY_LINEAR_COUNT_count_offset] =
		SDMA_PKT_COPY_LINEAR_COUNT_COUNT(4095);
	PUT64(want, COPY_LINEAR_SRC_ADDR, src_addr, A);
	PUT64(want, COPY_LINEAR_DST_ADDR, dst_addr, B);
	end = amdgpu_sdma_put_copy(got, f, A, B, 4096);
	packets_expect(test, got, end, want, p->copy_dw);
	KUNIT_EXPECT_EQ(test, f->copy_dw, p->copy_dw);
	KUNIT_EXPECT_LE(test, f->copy_dw, AMDGPU_SDMA_COPY_DW);
}

static void packets_broadcast(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = packets_format(test);
	const struct packets_of *p = test->param_value;
	u32 want[16] = { }, got[16], *end;

	KUNIT_EXPECT_EQ(test, p->broadcast,
			!!(f->native & BIT(AMDGPU_SDMA_OP_BROADCAST)));
	KUNIT_EXPECT_TRUE(test,
			  amdgpu_sdma_ops(f) & BIT(AMDGPU_SDMA_OP_BROADCAST));
	if (!p->broadcast)
		return;
	want[0] = SDMA_PKT_COPY_BROADCAST_LINEAR_HEADER_OP(SDMA_OP_COPY) |
		  SDMA_PKT_COPY_BROADCAST_LINEAR_HEADER_BROADCAST(1) |
		  p->copy_extra;
	want[SDMA_PKT_COPY_BROADCAST_LINEAR_COUNT_count_offset] =
		SDMA_PKT_COPY_BROADCAST_LINEAR_COUNT_COUNT(99);
	PUT64(want, COPY_BROADCAST_LINEAR_SRC_ADDR, src_addr, A);
	PUT64(want, COPY_BROADCAST_LINEAR_DST1_ADDR, dst1_addr, B);
	PUT64(want, COPY_BROADCAST_LINEAR_DST2_ADDR, dst2_addr, C);
	end = amdgpu_sdma_put_broadcast(got, f, A, B, C, 100);
	packets_expect(test, got, end, want, AMDGPU_SDMA_BROADCAST_DW);
}

static void packets_window(struct kunit *test)
{
	const struct amdgpu_sdma_window win = {
		.src = A & ~15ULL, .dst = B & ~15ULL, .src_pitch = 16 << 19,
		.dst_pitch = 64, .width = 16 << 14, .rows = 1 << 14,
		.element = 16,
	};
	const struct amdgpu_sdma_format *f = packets_format(test);
	const struct packets_of *p = test->param_value;
	u32 sub = SDMA_SUBOP_COPY_LINEAR_SUB_WIND;
	u32 want[16] = { }, got[16], *end;

	KUNIT_EXPECT_EQ(test, p->broadcast,
			!!(f->native & BIT(AMDGPU_SDMA_OP_COPY_RECT)));
	KUNIT_EXPECT_TRUE(test,
			  amdgpu_sdma_ops(f) & BIT(AMDGPU_SDMA_OP_COPY_RECT));
	if (!p->broadcast)
		return;
	want[0] = SDMA_PKT_COPY_LINEAR_SUBWIN_HEADER_OP(SDMA_OP_COPY) |
		  SDMA_PKT_COPY_LINEAR_SUBWIN_HEADER_SUB_OP(sub) |
		  SDMA_PKT_COPY_LINEAR_SUBWIN_HEADER_ELEMENTSIZE(4);
	PUT64(want, COPY_LINEAR_SUBWIN_SRC_ADDR, src_addr, win.src);
	PUT64(want, COPY_LINEAR_SUBWIN_DST_ADDR, dst_addr, win.dst);
	want[SDMA_PKT_COPY_LINEAR_SUBWIN_DW_4_src_pitch_offset] =
		SDMA_PKT_COPY_LINEAR_SUBWIN_DW_4_SRC_PITCH((1 << 19) - 1);
	want[SDMA_PKT_COPY_LINEAR_SUBWIN_DW_9_dst_pitch_offset] =
		SDMA_PKT_COPY_LINEAR_SUBWIN_DW_9_DST_PITCH(3);
	want[SDMA_PKT_COPY_LINEAR_SUBWIN_DW_11_rect_x_offset] =
		SDMA_PKT_COPY_LINEAR_SUBWIN_DW_11_RECT_X((1 << 14) - 1) |
		SDMA_PKT_COPY_LINEAR_SUBWIN_DW_11_RECT_Y((1 << 14) - 1);
	end = amdgpu_sdma_put_subwin(got, f, &win);
	packets_expect(test, got, end, want, AMDGPU_SDMA_SUBWIN_DW);
	/* Sizes are stored less one: they fill the fields. */
	KUNIT_EXPECT_EQ(test, f->max_window - 1,
			SDMA_PKT_COPY_LINEAR_SUBWIN_DW_11_rect_x_mask);
	KUNIT_EXPECT_EQ(test, f->max_window - 1,
			SDMA_PKT_COPY_LINEAR_SUBWIN_DW_11_rect_y_mask);
	KUNIT_EXPECT_EQ(test, f->max_pitch - 1,
			SDMA_PKT_COPY_LINEAR_SUBWIN_DW_4_src_pitch_mask);
	KUNIT_EXPECT_EQ(test, f->max_pitch - 1,
			SDMA_PKT_COPY_LINEAR_SUBWIN_DW_9_dst_pitch_mask);
}

static void packets_fill(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = packets_format(test);
	const struct packets_of *p = test->param_value;
	u32 want[16] = { }, got[16], *end;
	u32 op = SDMA_PKT_CONSTANT_FILL_HEADER_OP(SDMA_OP_CONST_FILL) |
		 p->fill_extra;

	want[0] = op | SDMA_PKT_CONSTANT_FILL_HEADER_FILLSIZE(2);
	PUT64(want, CONSTANT_FILL_DST_ADDR, dst_addr, B);
	want[SDMA_PKT_CONSTANT_FILL_DATA_src_data_31_0_offset] = 0x12345678;
	want[SDMA_PKT_CONSTANT_FILL_COUNT_count_offset] =
		SDMA_PKT_CONSTANT_FILL_COUNT_COUNT(4095);
	end = amdgpu_sdma_put_fill(got, f, B, 0x12345678, 4096);
	packets_expect(test, got, end, want, AMDGPU_SDMA_FILL_DW);
	want[0] = op;
	want[SDMA_PKT_CONSTANT_FILL_DATA_src_data_31_0_offset] = 0x5a5a5a5a;
	want[SDMA_PKT_CONSTANT_FILL_COUNT_count_offset] =
		SDMA_PKT_CONSTANT_FILL_COUNT_COUNT(2);
	end = amdgpu_sdma_put_fill_bytes(got, f, B, 0x5a, 3);
	packets_expect(test, got, end, want, AMDGPU_SDMA_FILL_DW);
}

static void packets_write(struct kunit *test)
{
	u32 want[16] = { }, got[16], *end;

	want[0] = SDMA_PKT_WRITE_UNTILED_HEADER_OP(SDMA_OP_WRITE) |
		  SDMA_PKT_WRITE_UNTILED_HEADER_SUB_OP(SDMA_SUBOP_WRITE_LINEAR);
	PUT64(want, WRITE_UNTILED_DST_ADDR, dst_addr, B);
	want[SDMA_PKT_WRITE_UNTILED_DW_3_count_offset] =
		SDMA_PKT_WRITE_UNTILED_DW_3_COUNT(1);
	want[SDMA_PKT_WRITE_UNTILED_DATA0_data0_offset] = lower_32_bits(A);
	want[SDMA_PKT_WRITE_UNTILED_DATA0_data0_offset + 1] = upper_32_bits(A);
	end = amdgpu_sdma_put_write64(got, B, A);
	packets_expect(test, got, end, want, AMDGPU_SDMA_WRITE64_DW);
}

static void packets_fence(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = packets_format(test);
	const struct packets_of *p = test->param_value;
	u32 want[16] = { }, got[16], *end;

	want[0] = SDMA_PKT_FENCE_HEADER_OP(SDMA_OP_FENCE) | p->fence_extra;
	PUT64(want, FENCE_ADDR, addr, C);
	want[SDMA_PKT_FENCE_DATA_data_offset] = SDMA_PKT_FENCE_DATA_DATA(77);
	end = amdgpu_sdma_put_fence(got, f, C, 77);
	packets_expect(test, got, end, want, AMDGPU_SDMA_FENCE_DW);
}

static void packets_timestamp(struct kunit *test)
{
	u32 sub = SDMA_SUBOP_TIMESTAMP_GET_GLOBAL;
	u32 want[16] = { }, got[16], *end;

	want[0] = SDMA_PKT_TIMESTAMP_GET_GLOBAL_HEADER_OP(SDMA_OP_TIMESTAMP) |
		  SDMA_PKT_TIMESTAMP_GET_GLOBAL_HEADER_SUB_OP(sub);
	want[1] = lower_32_bits(C & ~31ULL);
	want[2] = upper_32_bits(C);
	end = amdgpu_sdma_put_timestamp(got, C & ~31ULL);
	packets_expect(test, got, end, want, AMDGPU_SDMA_TIMESTAMP_DW);
}

static void packets_poll(struct kunit *test)
{
	u32 want[16] = { }, got[16], *end;

	want[0] = SDMA_PKT_POLL_REGMEM_HEADER_OP(SDMA_OP_POLL_REGMEM) |
		  SDMA_PKT_POLL_REGMEM_HEADER_FUNC(AMDGPU_SDMA_POLL_NE) |
		  SDMA_PKT_POLL_REGMEM_HEADER_MEM_POLL(1);
	PUT64(want, POLL_REGMEM_ADDR, addr, C);
	want[SDMA_PKT_POLL_REGMEM_VALUE_value_offset] = 5;
	want[SDMA_PKT_POLL_REGMEM_MASK_mask_offset] = 7;
	want[SDMA_PKT_POLL_REGMEM_DW5_interval_offset] =
		SDMA_PKT_POLL_REGMEM_DW5_INTERVAL(0xffff) |
		SDMA_PKT_POLL_REGMEM_DW5_RETRY_COUNT(AMDGPU_SDMA_MAX_POLLS);
	end = amdgpu_sdma_put_poll(got, C, AMDGPU_SDMA_POLL_NE, 5, 7, 0xffff,
				   AMDGPU_SDMA_MAX_POLLS);
	packets_expect(test, got, end, want, AMDGPU_SDMA_POLL_DW);
	KUNIT_EXPECT_EQ(test, AMDGPU_SDMA_POLL_FOR_EVER,
			SDMA_PKT_POLL_REGMEM_DW5_retry_count_mask);
}

static void packets_cond(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = packets_format(test);
	u32 want[16] = { }, got[16], *end;

	want[0] = SDMA_PKT_COND_EXE_HEADER_OP(SDMA_OP_COND_EXE);
	PUT64(want, COND_EXE_ADDR, addr, C);
	want[SDMA_PKT_COND_EXE_REFERENCE_reference_offset] = 9;
	want[SDMA_PKT_COND_EXE_EXEC_COUNT_exec_count_offset] =
		SDMA_PKT_COND_EXE_EXEC_COUNT_EXEC_COUNT(f->max_skip);
	end = amdgpu_sdma_put_cond(got, C, 9, f->max_skip);
	packets_expect(test, got, end, want, AMDGPU_SDMA_COND_DW);
}

static void packets_atomic(struct kunit *test)
{
	u32 want[16] = { }, got[16], *end;

	want[0] = SDMA_PKT_ATOMIC_HEADER_OP(SDMA_OP_ATOMIC) |
		  SDMA_PKT_ATOMIC_HEADER_ATOMIC_OP(AMDGPU_SDMA_ATOMIC_ADD64);
	PUT64(want, ATOMIC_ADDR, addr, C);
	PUT64(want, ATOMIC_SRC_DATA, src_data, A);
	end = amdgpu_sdma_put_atomic(got, AMDGPU_SDMA_ATOMIC_ADD64, C, A);
	packets_expect(test, got, end, want, AMDGPU_SDMA_ATOMIC_DW);
}

/* Counts are stored less one: they fit, in the header file or in the driver. */
static void packets_limits(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = packets_format(test);
	const struct packets_of *p = test->param_value;

	KUNIT_EXPECT_EQ(test, f->max_copy, p->max);
	KUNIT_EXPECT_EQ(test, f->max_fill, p->max);
	KUNIT_EXPECT_EQ(test, f->max_fill % 4, 0);
	KUNIT_EXPECT_LE(test, f->max_skip,
			SDMA_PKT_COND_EXE_EXEC_COUNT_exec_count_mask);
	if (p->wider)
		return;
	KUNIT_EXPECT_LE(test, f->max_copy - 1,
			SDMA_PKT_COPY_LINEAR_COUNT_count_mask);
	KUNIT_EXPECT_LE(test, f->max_copy - 1,
			SDMA_PKT_COPY_BROADCAST_LINEAR_COUNT_count_mask);
	KUNIT_EXPECT_LE(test, f->max_fill - 1,
			SDMA_PKT_CONSTANT_FILL_COUNT_count_mask);
}

#define PACKETS_CASE(name) KUNIT_CASE_PARAM(packets_##name, packets_gen_params)

#define PACKETS_TESTS							\
	KUNIT_ARRAY_PARAM(packets, packets_of, packets_name);		\
	static struct kunit_case packets_cases[] = {			\
		PACKETS_CASE(copy),					\
		PACKETS_CASE(broadcast),				\
		PACKETS_CASE(window),					\
		PACKETS_CASE(fill),					\
		PACKETS_CASE(write),					\
		PACKETS_CASE(fence),					\
		PACKETS_CASE(timestamp),				\
		PACKETS_CASE(poll),					\
		PACKETS_CASE(cond),					\
		PACKETS_CASE(atomic),					\
		PACKETS_CASE(limits),					\
		{ }							\
	};								\
	static struct kunit_suite packets_suite = {			\
		.name = PACKETS_SUITE,					\
		.test_cases = packets_cases,				\
	};								\
	kunit_test_suite(packets_suite)
