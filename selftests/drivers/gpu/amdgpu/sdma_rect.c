// SPDX-License-Identifier: GPL-2.0
/*
 * Rectangle copies of SDMA batches, compared with what the CPU makes of them:
 * pitches, interleaved rows, copies that are split, copies that are refused.
 */
#include "sdma_model.h"

/* Rows of a batch, if a side is not contiguous. */
#define MAX_ROWS	0x40000u

static struct drm_amdgpu_sdma_desc
rect_desc(uint64_t src, uint64_t src_pitch, uint64_t dst, uint64_t dst_pitch,
	  uint64_t size, uint32_t rows)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_COPY_RECT,
		.src = src,
		.src_pitch = src_pitch,
		.dst = dst,
		.dst_pitch = dst_pitch,
		.size = size,
		.rows = rows,
	};
}

static bool has_rect(struct _test_data_sdma *self)
{
	return self->gpu.info.ops & 1u << AMDGPU_SDMA_OP_COPY_RECT;
}

/* Sizes and pitches of tiles, images and KV caches, and some odd ones. */
TEST_F(sdma, rect)
{
	static const struct {
		uint64_t size, src_pitch, dst_pitch;
		uint32_t rows;
	} cases[] = {
		{ 64, 64, 64, 1 }, { 64, 64, 64, 16 }, { 64, 256, 64, 16 },
		{ 64, 64, 256, 16 }, { 4096, 8192, 4096, 64 },
		{ 8192, 65536, 16384, 32 }, { 1, 4, 4, 1000 },
		{ 4, 4, 8, 5000 }, { 3, 17, 5, 777 }, { 65536, 65536, 65536, 16 },
		{ 16, 32 * KIB, 16, 100 }, { 100000, 100001, 100003, 9 },
	};
	unsigned int i, way;

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (way = 0; way < 4; way++) {
			uint64_t src = way & 1 ? SYSTEM_VA : VRAM_VA;
			uint64_t dst = way & 2 ? SYSTEM_VA : VRAM_VA;
			struct drm_amdgpu_sdma_desc d =
				rect_desc(src, cases[i].src_pitch,
					  dst + 4 * MIB, cases[i].dst_pitch,
					  cases[i].size, cases[i].rows);

			ASSERT_EQ(0, run(self, &d, 1)) TH_LOG("case %u", i);
			ASSERT_EQ(-1, differs(self)) TH_LOG("case %u", i);
		}
	}
}

/* Any size, any pitch, any alignment; bytes between the rows stay. */
TEST_F(sdma, rect_random)
{
	struct drm_amdgpu_sdma_desc d[8];
	unsigned int round, i, n;

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	for (round = 0; round < 60; round++) {
		n = 1 + next_random(&self->seed) % ARRAY_SIZE(d);
		for (i = 0; i < n; i++) {
			uint64_t size = 1 + next_random(&self->seed) %
					    (round % 2 ? 64 : 3000);
			uint32_t rows = 1 + next_random(&self->seed) % 40;
			uint32_t gap = next_random(&self->seed) % 5 ?
				       next_random(&self->seed) % 3000 : 0;
			uint32_t other = next_random(&self->seed) % 4 ?
					 next_random(&self->seed) % 64 : 0;
			/* at most 40 rows of 6000 bytes */
			uint64_t at = i * 256 * KIB +
				      next_random(&self->seed) % 64;

			d[i] = rect_desc(SYSTEM_VA + at, size + gap,
					 VRAM_VA + at + other, size + other,
					 size, rows);
			if (next_random(&self->seed) % 2) {
				d[i].src = VRAM_VA + 4 * MIB + at;
				d[i].dst_pitch = size + gap;
				d[i].src_pitch = size + other;
			}
		}
		ASSERT_EQ(0, run_placed(self, d, n,
					next_random(&self->seed) % 3, NULL));
		ASSERT_EQ(-1, differs(self)) TH_LOG("round %u", round);
	}
}

/* Columns of one matrix: their rows are interleaved. */
TEST_F(sdma, rect_interleaved)
{
	struct drm_amdgpu_sdma_desc d[4];
	unsigned int i;

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	for (i = 0; i < 4; i++)
		d[i] = rect_desc(SYSTEM_VA + i * MIB, 1000,
				 VRAM_VA + i * 1000, 4000, 1000, 500);
	ASSERT_EQ(0, run(self, d, 4));
	EXPECT_EQ(-1, differs(self));
	/* one buffer is read and written, in alternating columns */
	for (i = 0; i < 2; i++)
		d[i] = rect_desc(VRAM_VA + 2 * i * 1000, 4000,
				 VRAM_VA + (2 * i + 1) * 1000, 4000, 1000, 500);
	ASSERT_EQ(0, run(self, d, 2));
	EXPECT_EQ(-1, differs(self));
	/* a rectangle copied to the gaps between its own rows */
	d[0] = rect_desc(VRAM_VA, 4000, VRAM_VA + 2000, 4000, 1000, 500);
	ASSERT_EQ(0, run(self, d, 1));
	EXPECT_EQ(-1, differs(self));
}

/* More rows, wider rows and larger pitches than a packet has fields for. */
TEST_F(sdma, rect_large)
{
	struct drm_amdgpu_sdma_desc d[] = {
		rect_desc(SYSTEM_VA, 4, VRAM_VA, 5, 4, 60000),
		rect_desc(SYSTEM_VA + 2 * MIB, 20, VRAM_VA + 2 * MIB, 24, 16,
			  40000),
		rect_desc(SYSTEM_VA + 4 * MIB, MIB + 1, VRAM_VA + 4 * MIB,
			  MIB + 3, MIB, 3),
	};

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	ASSERT_EQ(0, run(self, d, 3));
	EXPECT_EQ(-1, differs(self));
}

/* One row is a plain copy, whatever its pitch. */
TEST_F(sdma, rect_of_one_row)
{
	struct drm_amdgpu_sdma_desc d =
		rect_desc(SYSTEM_VA, 1UL << 40, VRAM_VA, 1UL << 46, 4096, 1);

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	ASSERT_EQ(0, run(self, &d, 1));
	EXPECT_EQ(-1, differs(self));
}

/* Up to the last byte of a mapping; a byte or a row more is outside. */
TEST_F(sdma, rect_at_the_end)
{
	struct drm_amdgpu_sdma_desc d =
		rect_desc(SYSTEM_VA, 512, VRAM_VA + SIZE - 9 * 8192 - 512, 8192,
			  512, 10);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	ASSERT_EQ(0, run(self, &d, 1));
	EXPECT_EQ(-1, differs(self));
	d.dst++;
	EXPECT_EQ(-ENOENT, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, batch.error_index);
	d.dst--;
	d.rows++;
	EXPECT_EQ(-ENOENT, batch_run(&self->gpu, &batch));
	d = rect_desc(VRAM_VA + SIZE - 9 * 8192 - 511, 8192, SYSTEM_VA, 512,
		      512, 10);
	EXPECT_EQ(-ENOENT, batch_run(&self->gpu, &batch));
	EXPECT_EQ(-1, differs(self));
}

/* A hole between two rows does not matter, one in a row does. */
TEST_F(sdma, rect_over_a_hole)
{
	struct drm_amdgpu_sdma_desc d =
		rect_desc(512 * MIB, 3 * MIB, SYSTEM_VA, 4096, 4096, 2);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct buffer b[2];

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	ASSERT_EQ(0, buffer_map(&self->gpu, &b[0], MIB, AMDGPU_GEM_DOMAIN_GTT,
				512 * MIB));
	ASSERT_EQ(0, buffer_map(&self->gpu, &b[1], MIB, AMDGPU_GEM_DOMAIN_GTT,
				512 * MIB + 3 * MIB));
	memset(b[0].cpu, 1, MIB);
	memset(b[1].cpu, 2, MIB);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(1, self->system.cpu[4095]);
	EXPECT_EQ(2, self->system.cpu[4096]);
	EXPECT_EQ(2, self->system.cpu[8191]);
	EXPECT_EQ(self->want_system[8192], self->system.cpu[8192]);
	/* a row in the hole, the last byte of a row, some of many rows */
	d.src_pitch = 2 * MIB;
	EXPECT_EQ(-ENOENT, batch_run(&self->gpu, &batch));
	d.src_pitch = MIB - 4095;
	EXPECT_EQ(-ENOENT, batch_run(&self->gpu, &batch));
	d.src_pitch = MIB;
	d.rows = 4;
	EXPECT_EQ(-ENOENT, batch_run(&self->gpu, &batch));
}

/* Refused with @error, nothing done; @first and @second are reported. */
static void refuse(struct __test_metadata *_metadata,
		   struct _test_data_sdma *self,
		   const struct drm_amdgpu_sdma_desc *d, uint32_t n, int error,
		   uint32_t first, uint32_t second)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, n);

	EXPECT_EQ(error, batch_run(&self->gpu, &batch));
	EXPECT_EQ(AMDGPU_SDMA_ERROR_DESC, batch.error_array);
	EXPECT_EQ(second, batch.error_index);
	EXPECT_EQ(first, batch.error_index2);
	EXPECT_EQ(0, batch.engines_used);
	EXPECT_EQ(-1, differs(self));
}

/* Rows of two operands that share a byte are refused, whichever they are. */
TEST_F(sdma, rect_overlap)
{
	const struct drm_amdgpu_sdma_desc one =
		rect_desc(SYSTEM_VA, 1000, VRAM_VA, 4000, 1000, 500);
	struct drm_amdgpu_sdma_desc d[2] = { one, one };

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	d[1].src = SYSTEM_VA + MIB;
	/* the same rows, one byte into the other's column */
	d[1].dst = VRAM_VA + 999;
	refuse(_metadata, self, d, 2, -EEXIST, 0, 1);
	/* another pitch: some rows overlap */
	d[1].dst = VRAM_VA + 1000;
	d[1].dst_pitch = 4007;
	refuse(_metadata, self, d, 2, -EEXIST, 0, 1);
	/* the first such row is the 287th, with its last bytes */
	d[1].rows = 286;
	ASSERT_EQ(0, run(self, d, 2));
	ASSERT_EQ(-1, differs(self));
	/* a copy over the last byte of the last row */
	d[1] = copy_desc(SYSTEM_VA + MIB, VRAM_VA + 499 * 4000 + 999, 2);
	refuse(_metadata, self, d, 2, -EEXIST, 0, 1);
	/* overlaps its own source */
	d[0] = rect_desc(VRAM_VA, 4000, VRAM_VA + 999, 4000, 1000, 500);
	refuse(_metadata, self, d, 1, -EEXIST, 0, 0);
	/* its own rows overlap: a pitch must not be below the size */
	d[0] = rect_desc(SYSTEM_VA, 1000, VRAM_VA, 999, 1000, 2);
	refuse(_metadata, self, d, 1, -EINVAL, AMDGPU_SDMA_NO_INDEX, 0);
	d[0] = rect_desc(SYSTEM_VA, 999, VRAM_VA, 1000, 1000, 2);
	refuse(_metadata, self, d, 1, -EINVAL, AMDGPU_SDMA_NO_INDEX, 0);
}

/* With a barrier between them, they may overlap. */
TEST_F(sdma, rect_behind_a_barrier)
{
	struct drm_amdgpu_sdma_desc d[] = {
		rect_desc(SYSTEM_VA, 1000, VRAM_VA, 4000, 1000, 500),
		behind(rect_desc(VRAM_VA, 4000, VRAM_VA + 4 * MIB, 1001, 1000,
				 500)),
		behind(rect_desc(VRAM_VA + 4 * MIB, 1001, SYSTEM_VA + 4 * MIB,
				 1000, 1000, 500)),
	};

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	ASSERT_EQ(0, run(self, d, 3));
	EXPECT_EQ(-1, differs(self));
}

/* Rows and pitches whose product wraps around. */
TEST_F(sdma, rect_wraps)
{
	struct drm_amdgpu_sdma_desc d =
		rect_desc(SYSTEM_VA, 4096, VRAM_VA, 1UL << 63, 4096, 3);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	if (!has_rect(self))
		SKIP(return, "no rectangle copies");
	EXPECT_EQ(-ERANGE, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, batch.error_index);
	d = rect_desc(SYSTEM_VA, 1UL << 63, VRAM_VA, 4096, 4096, 3);
	EXPECT_EQ(-ERANGE, batch_run(&self->gpu, &batch));
	/* more bytes than a batch may move, more rows than it may have */
	d = rect_desc(SYSTEM_VA, MIB, VRAM_VA, MIB, MIB, ~0u);
	EXPECT_EQ(-EMSGSIZE, batch_run(&self->gpu, &batch));
	d = rect_desc(SYSTEM_VA, 1, VRAM_VA, 2, 1, MAX_ROWS + 1);
	EXPECT_EQ(-EMSGSIZE, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, batch.error_index);
	EXPECT_EQ(-1, differs(self));
}

TEST_HARNESS_MAIN
