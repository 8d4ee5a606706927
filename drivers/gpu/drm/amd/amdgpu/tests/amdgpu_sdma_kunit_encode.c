// SPDX-License-Identifier: MIT
/* KUnit tests of the packets of SDMA batches, dword by dword, and of polls. */

#include "amdgpu_sdma_kunit.h"
#include "vega10_sdma_pkt_open.h"

MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");

#define EXPECT_DWORDS(test, end, words, ...)				\
	do {								\
		const u32 want_[] = { __VA_ARGS__ };			\
		struct kunit *test_ = (test);				\
		const u32 *words_ = (words);				\
									\
		KUNIT_EXPECT_EQ(test_, (end) - words_, ARRAY_SIZE(want_)); \
		KUNIT_EXPECT_MEMEQ(test_, words_, want_, sizeof(want_)); \
	} while (0)

static void formats(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = kunit_format(test);

	KUNIT_EXPECT_PTR_EQ(test, f, amdgpu_sdma_format(IP_VERSION(4, 4, 5)));
	KUNIT_EXPECT_NULL(test, amdgpu_sdma_format(IP_VERSION(3, 0, 0)));
	KUNIT_EXPECT_NULL(test, amdgpu_sdma_format(IP_VERSION(8, 0, 0)));
	KUNIT_EXPECT_NULL(test, amdgpu_sdma_format(0));
	KUNIT_EXPECT_EQ(test, f->max_swap % f->swap_align, 0);
	KUNIT_EXPECT_LE(test, f->max_bounce, AMDGPU_SDMA_SCRATCH_SIZE);
	KUNIT_EXPECT_LE(test, f->max_bounce, f->max_copy);
	KUNIT_EXPECT_EQ(test, f->max_fill % 4, 0);
	/* What the count fields of the packets hold, less one. */
	KUNIT_EXPECT_LE(test, f->max_copy - 1, 0x3fffffff);
	KUNIT_EXPECT_LE(test, f->max_swap, 0x3fffffe0);
	KUNIT_EXPECT_LE(test, f->max_skip,
			SDMA_PKT_COND_EXE_EXEC_COUNT_exec_count_mask);
	/* All that has a packet, and what is made of others. */
	KUNIT_EXPECT_EQ(test, f->native, BIT(ALL_OPS) - 1);
	f = amdgpu_sdma_format(IP_VERSION(7, 0, 0));
	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_ops(f), BIT(ALL_OPS) - 1);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_ops(&lacking), BIT(ALL_OPS) - 1);
}

static void encode_copies(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = kunit_format(test);
	u32 w[16] = { }, *end;

	end = amdgpu_sdma_put_copy(w, f, 0x123456789a, 0xffff800000000abc,
				   1 << 30);
	EXPECT_DWORDS(test, end, w, 1, 0x3fffffff, 0, 0x3456789a, 0x12, 0xabc,
		      0xffff8000);
	KUNIT_EXPECT_EQ(test, w[7], 0);
	end = amdgpu_sdma_put_broadcast(w, f, 0x1000, 0x2000, 0x300000020, 1);
	EXPECT_DWORDS(test, end, w, 1 | 1 << 27, 0, 0, 0x1000, 0, 0x2000, 0,
		      0x20, 3);
	end = amdgpu_sdma_put_swap(w, 0x40, 0x100000080, 64);
	EXPECT_DWORDS(test, end, w, 1 | 9 << 8, 63, 0, 0x40, 0, 0x80, 1);
	/* Where a copy has eight dwords, the last one is zero. */
	w[7] = 1;
	w[8] = 2;
	end = amdgpu_sdma_put_copy(w, &lacking, 1, 2, 3);
	EXPECT_DWORDS(test, end, w, 1, 2, 0, 1, 0, 2, 0, 0);
	/* And where it has seven nothing is stored behind them. */
	w[7] = 1;
	amdgpu_sdma_put_copy(w, f, 1, 2, 3);
	KUNIT_EXPECT_EQ(test, w[7], 1);
}

static void encode_window(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = kunit_format(test);
	struct amdgpu_sdma_window win = {
		.src = 0x100000010, .dst = 0x200000020, .src_pitch = 1024,
		.dst_pitch = 64 << 13, .width = 256, .rows = 100,
		.element = 16,
	};
	u32 w[16], *end;

	end = amdgpu_sdma_put_subwin(w, f, &win);
	EXPECT_DWORDS(test, end, w, 1 | 4 << 8 | 4u << 29, 0x10, 1, 0,
		      63 << 13, 0, 0x20, 2, 0, 32767 << 13, 0,
		      15 | 99 << 16, 0);
	win.element = 4;
	win.dst_pitch = 2048;
	end = amdgpu_sdma_put_subwin(w, f, &win);
	EXPECT_DWORDS(test, end, w, 1 | 4 << 8 | 2u << 29, 0x10, 1, 0,
		      255 << 13, 0, 0x20, 2, 0, 511 << 13, 0, 63 | 99 << 16, 0);
}

/* The largest element that all but the rows is a multiple of. */
static void window_element(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = kunit_format(test);
	struct drm_amdgpu_sdma_desc d = kunit_good(AMDGPU_SDMA_OP_COPY_RECT);
	struct amdgpu_sdma_format none = *f;
	const struct drm_amdgpu_sdma_desc good = d;

	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 16);
	none.native &= ~BIT(AMDGPU_SDMA_OP_COPY_RECT);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(&none, &d), 0);
	d.src += 8;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 8);
	d.dst += 4;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 4);
	d.dst += 2;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 0);
	d = good;
	d.size -= 4;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 4);
	d = good;
	d.src_pitch += 32;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 8);
	d.dst_pitch += 16;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 4);
	d.dst_pitch += 8;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 0);
	/* The longest row and pitch. */
	d = good;
	d.size = 16 << 14;
	d.src_pitch = 16 << 19;
	d.dst_pitch = 16 << 19;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 16);
	d.size += 16;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 0);
	d.size = 64;
	d.src_pitch += 64;
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 0);
	swap(d.src_pitch, d.dst_pitch);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_subwin_element(f, &d), 0);
}

static void encode_fills(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = kunit_format(test);
	u32 w[16], *end;

	end = amdgpu_sdma_put_fill(w, f, 0x200000004, 0x12345678, 8);
	EXPECT_DWORDS(test, end, w, 11 | 2u << 30, 4, 2, 0x12345678, 7);
	end = amdgpu_sdma_put_fill_bytes(w, f, 3, 0xab, 1);
	EXPECT_DWORDS(test, end, w, 11, 3, 0, 0xabababab, 0);
	end = amdgpu_sdma_put_write64(w, 0x10, 0x1122334455667788);
	EXPECT_DWORDS(test, end, w, 2, 0x10, 0, 1, 0x55667788, 0x11223344);
}

static void encode_sync(struct kunit *test)
{
	const struct amdgpu_sdma_format *f = kunit_format(test);
	u32 w[16], *end;

	end = amdgpu_sdma_put_fence(w, f, 0x500000010, 7);
	EXPECT_DWORDS(test, end, w, 5, 0x10, 5, 7);
	end = amdgpu_sdma_put_timestamp(w, 0x500000020);
	EXPECT_DWORDS(test, end, w, 13 | 2 << 8, 0x20, 5);
	end = amdgpu_sdma_put_poll(w, 0x500000004, AMDGPU_SDMA_POLL_GE, 6, 0xff,
				   10, AMDGPU_SDMA_MAX_POLLS);
	EXPECT_DWORDS(test, end, w, 8 | 5 << 28 | 1u << 31, 4, 5, 6, 0xff,
		      10 | 0xffe << 16);
	end = amdgpu_sdma_put_cond(w, 0x500000004, 1, 0x3fff);
	EXPECT_DWORDS(test, end, w, 9, 4, 5, 1, 0x3fff);
	end = amdgpu_sdma_put_atomic(w, AMDGPU_SDMA_ATOMIC_ADD64, 0x18,
				     0x900000001);
	EXPECT_DWORDS(test, end, w, 10 | 0x6fu << 25, 0x18, 0, 1, 9, 0, 0, 0);
}

/* Reads of a wait: at the fastest clock they take the timeout, or longer. */
static void polls_of_wait(struct kunit *test)
{
	/* one read, and at 1 GHz each further one 65535 ns later */
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(1000, 0), 1);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(1000, 1), 2);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(1000, 65535), 2);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(1000, 65536), 3);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(1000, 2 * 65535), 3);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(1000, 2 * 65535 + 1), 4);
	/* twice the clock, twice the reads */
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(2000, 65535), 3);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(2000, 65536), 4);
	/* parts of a clock count as one */
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(1, 65535000), 2);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(1, 65535001), 3);
	/* nothing overflows */
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(2, U64_MAX), U32_MAX);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(U32_MAX, U64_MAX),
			U32_MAX);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_wait_polls(1, U64_MAX), U32_MAX);
	KUNIT_EXPECT_EQ(test,
			amdgpu_sdma_wait_polls(1, (U32_MAX - 2) * 65535000ULL),
			U32_MAX - 1);
}

static void polls_in_ns(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_polls_ns(1000, 0), 0);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_polls_ns(1000, 2), 2 * 65535);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_polls_ns(3, 1), 21845000);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_polls_ns(7, 1), 9362143);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_polls_ns(1, U32_MAX),
			U32_MAX * 65535000ULL);
}

/* What a wait lasts at the slowest clock is at most the bound, and not less. */
static void longest_wait(struct kunit *test)
{
	static const struct { u32 low, high; u64 bound; } of[] = {
		{ 1000, 1000, 100000000 }, { 500, 2000, 100000000 },
		{ 137, 2499, 333333333 }, { 500, 500, 131070 },
		{ 1, 1, 65535000 }, { 1, 4000, 2000000000 },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(of); i++) {
		u64 ns = amdgpu_sdma_longest_wait(of[i].low, of[i].high,
						  of[i].bound);
		u32 polls = amdgpu_sdma_wait_polls(of[i].high, ns);

		KUNIT_EXPECT_LE(test, amdgpu_sdma_polls_ns(of[i].low, polls),
				of[i].bound);
		polls = amdgpu_sdma_wait_polls(of[i].high, ns + 1);
		KUNIT_EXPECT_GT(test, amdgpu_sdma_polls_ns(of[i].low, polls),
				of[i].bound);
	}
	/* One read is no time; and none fits. */
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_longest_wait(1000, 1000, 65535), 0);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_longest_wait(1000, 1000, 65534), 0);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_longest_wait(1000, 1000, 2 * 65535),
			65535);
	/* The packet's field is the limit, and nothing overflows. */
	KUNIT_EXPECT_EQ(test,
			amdgpu_sdma_longest_wait(1000, 1000, 4094 * 65535),
			4093 * 65535);
	KUNIT_EXPECT_EQ(test,
			amdgpu_sdma_longest_wait(1000, 1000, 4095 * 65535),
			4093 * 65535);
	KUNIT_EXPECT_EQ(test, amdgpu_sdma_longest_wait(2, 1, U64_MAX),
			4093 * 65535000ULL);
}

static struct kunit_case encode_cases[] = {
	KUNIT_CASE(formats),
	KUNIT_CASE(encode_copies),
	KUNIT_CASE(encode_window),
	KUNIT_CASE(window_element),
	KUNIT_CASE(encode_fills),
	KUNIT_CASE(encode_sync),
	KUNIT_CASE(polls_of_wait),
	KUNIT_CASE(polls_in_ns),
	KUNIT_CASE(longest_wait),
	{ }
};

static struct kunit_suite encode_suite = {
	.name = "amdgpu_sdma_encode",
	.test_cases = encode_cases,
};

kunit_test_suite(encode_suite);

MODULE_DESCRIPTION("KUnit tests of amdgpu's SDMA batches");
MODULE_LICENSE("Dual MIT/GPL");
