// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors of an SDMA batch that are refused, whatever memory they name: one
 * test for each reason.
 */
#include "sdma_args.h"

TEST_F(args, desc_op)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->op = AMDGPU_SDMA_OP_COPY_RECT + 1);
}

TEST_F(args, desc_op_huge)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->op = ~0u);
}

TEST_F(args, desc_flags)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->flags = 8);
}

TEST_F(args, desc_flags_high)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->flags = 1u << 31);
}

TEST_F(args, desc_pad)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->pad = 1);
}

TEST_F(args, desc_reserved_first)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->reserved[0] = 1);
}

TEST_F(args, desc_reserved_last)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->reserved[1] = 1ULL << 63);
}

TEST_F(args, desc_size_zero)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->size = 0);
}

TEST_F(args, desc_size_huge)
{
	EXPECT_DESC_REFUSED(-EMSGSIZE, d->size = (1ULL << 40) + 1);
}

TEST_F(args, desc_size_total)
{
	EXPECT_DESC_REFUSED(-EMSGSIZE,
			    self->d[0].size = self->gpu.info.max_bytes / 2;
			    d->size = self->gpu.info.max_bytes / 2 + 1);
}

TEST_F(args, desc_size_wraps)
{
	EXPECT_DESC_REFUSED(-ERANGE, d->dst = -4096ULL; d->size = 4097);
}

TEST_F(args, desc_canonical)
{
	EXPECT_DESC_REFUSED(-ERANGE, d->dst = 1ULL << 50);
}

TEST_F(args, desc_into_hole)
{
	EXPECT_DESC_REFUSED(-ERANGE, d->dst = (1ULL << 47) - 1; d->size = 2);
}

TEST_F(args, desc_unused_src)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->src = VA);
}

TEST_F(args, desc_unused_dst)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->dst = VA);
}

TEST_F(args, desc_unused_size)
{
	EXPECT_DESC_REFUSED(-EINVAL, add_of(d); d->size = 8);
}

TEST_F(args, desc_unused_value)
{
	EXPECT_DESC_REFUSED(-EINVAL, copy_of(d); d->value = 1);
}

TEST_F(args, desc_unused_more)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->dst_more[0] = VA);
}

TEST_F(args, desc_unused_more_last)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->dst_more[6] = VA);
}

TEST_F(args, desc_unused_mask)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->mask = 1);
}

TEST_F(args, desc_unused_compare)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->compare = 1);
}

TEST_F(args, desc_unused_timeout)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->timeout_ns = 1);
}

TEST_F(args, desc_unused_src_pitch)
{
	EXPECT_DESC_REFUSED(-EINVAL, copy_of(d); d->src_pitch = 4096);
}

TEST_F(args, desc_unused_dst_pitch)
{
	EXPECT_DESC_REFUSED(-EINVAL, copy_of(d); d->dst_pitch = 4096);
}

TEST_F(args, desc_unused_rows)
{
	EXPECT_DESC_REFUSED(-EINVAL, copy_of(d); d->rows = 1);
}

TEST_F(args, desc_unused_rows_of_wait)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->rows = 1);
}

TEST_F(args, desc_unused_value_of_rect)
{
	EXPECT_DESC_REFUSED(-EINVAL, rect_of(d); d->value = 1);
}

TEST_F(args, desc_unused_more_of_rect)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    rect_of(d);
			    d->dst_more[0] = VA + 512 * KIB);
}

TEST_F(args, desc_rect_no_rows)
{
	EXPECT_DESC_REFUSED(-EINVAL, rect_of(d); d->rows = 0);
}

TEST_F(args, desc_rect_no_size)
{
	EXPECT_DESC_REFUSED(-EINVAL, rect_of(d); d->size = 0);
}

TEST_F(args, desc_rect_src_pitch)
{
	EXPECT_DESC_REFUSED(-EINVAL, rect_of(d); d->src_pitch = 127);
}

TEST_F(args, desc_rect_dst_pitch)
{
	EXPECT_DESC_REFUSED(-EINVAL, rect_of(d); d->dst_pitch = 127);
}

TEST_F(args, desc_rect_pitch_of_one_row)
{
	EXPECT_DESC_REFUSED(-EINVAL, rect_of(d); d->rows = 1; d->src_pitch = 0);
}

TEST_F(args, desc_unused_record)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->record = VA + 512 * KIB);
}

TEST_F(args, desc_record_unaligned)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    d->flags = AMDGPU_SDMA_DESC_RECORD;
			    d->record = VA + 512 * KIB + 8);
}

TEST_F(args, desc_record_read_only)
{
	EXPECT_DESC_REFUSED(-EACCES,
			    d->flags = AMDGPU_SDMA_DESC_RECORD;
			    d->record = READ_ONLY_VA + 512 * KIB);
}

TEST_F(args, desc_fill_pattern)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->value = 1ULL << 32);
}

TEST_F(args, desc_broadcast_one)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    copy_of(d);
			    d->op = AMDGPU_SDMA_OP_BROADCAST);
}

TEST_F(args, desc_broadcast_gap)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    copy_of(d);
			    d->op = AMDGPU_SDMA_OP_BROADCAST;
			    d->dst_more[0] = VA + 600 * KIB;
			    d->dst_more[2] = VA + 700 * KIB);
}

TEST_F(args, desc_wait_compare)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    wait_of(d);
			    d->compare = AMDGPU_SDMA_COMPARE_LE + 1);
}

TEST_F(args, desc_wait_no_timeout)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->timeout_ns = 0);
}

TEST_F(args, desc_wait_long)
{
	EXPECT_DESC_REFUSED(-EMSGSIZE,
			    wait_of(d);
			    d->timeout_ns = self->gpu.info.max_wait_ns + 1000000);
}

TEST_F(args, desc_wait_for_ever)
{
	EXPECT_DESC_REFUSED(-EMSGSIZE, wait_of(d); d->timeout_ns = ~0ULL);
}

TEST_F(args, desc_wait_together)
{
	EXPECT_DESC_REFUSED(-EMSGSIZE,
			    wait_of(d);
			    d->timeout_ns = self->gpu.info.max_wait_ns / 2 + 1000000;
			    self->d[0] = *d);
}

/* As long as a wait may be. */
TEST_F(args, desc_wait_longest)
{
	wait_of(&self->d[1]);
	self->d[1].timeout_ns = self->gpu.info.max_wait_ns;
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
	EXPECT_EQ(1, self->buffer.cpu[2 * 64 * KIB]);
}

TEST_F(args, desc_wait_no_mask)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->mask = 0);
}

TEST_F(args, desc_wait_value)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->value = 1ULL << 32);
}

TEST_F(args, desc_wait_value_off_mask)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->mask = 0xff);
}

TEST_F(args, desc_wait_unaligned)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->src += 2);
}

TEST_F(args, desc_add_unaligned)
{
	EXPECT_DESC_REFUSED(-EINVAL, add_of(d); d->dst += 4);
}

TEST_F(args, desc_write_unaligned)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    add_of(d);
			    d->op = AMDGPU_SDMA_OP_WRITE;
			    d->dst += 4);
}

TEST_HARNESS_MAIN
