// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments of an SDMA batch that are refused: one test for each reason.
 */
#include "sdma_args.h"

/* The batch that all tests spoil is good. */
TEST_F(args, good)
{
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
	EXPECT_EQ(NONE, self->batch.error_index);
	EXPECT_EQ(1, self->buffer.cpu[2 * 64 * KIB + 4095]);
}

TEST_F(args, batch_op)
{
	EXPECT_BATCH_REFUSED(-EINVAL, op = AMDGPU_SDMA_BATCH_FORGET + 1);
}

TEST_F(args, batch_op_huge)
{
	EXPECT_BATCH_REFUSED(-EINVAL, op = ~0u);
}

TEST_F(args, batch_flags)
{
	EXPECT_BATCH_REFUSED(-EINVAL, flags = 4);
}

TEST_F(args, batch_flags_high)
{
	EXPECT_BATCH_REFUSED(-EINVAL, flags = 1u << 31);
}

TEST_F(args, batch_handle)
{
	EXPECT_BATCH_REFUSED(-EINVAL, handle = 1);
}

TEST_F(args, batch_reserved_first)
{
	EXPECT_BATCH_REFUSED(-EINVAL, reserved[0] = 1);
}

TEST_F(args, batch_reserved_last)
{
	EXPECT_BATCH_REFUSED(-EINVAL, reserved[1] = 1ULL << 63);
}

TEST_F(args, batch_placement)
{
	EXPECT_BATCH_REFUSED(-EINVAL,
			     placement = AMDGPU_SDMA_PLACE_FAN_OUT + 1);
}

TEST_F(args, batch_context)
{
	EXPECT_BATCH_REFUSED(-EINVAL, ctx_id = 0xdead);
}

TEST_F(args, batch_no_descs)
{
	EXPECT_BATCH_REFUSED(-EINVAL, num_descs = 0);
}

TEST_F(args, batch_many_descs)
{
	EXPECT_BATCH_REFUSED(-EMSGSIZE, num_descs = 65537);
}

TEST_F(args, batch_most_descs)
{
	EXPECT_BATCH_REFUSED(-EMSGSIZE, num_descs = ~0u);
}

TEST_F(args, batch_null_descs)
{
	EXPECT_BATCH_REFUSED(-EFAULT, descs = 0);
}

TEST_F(args, batch_kernel_descs)
{
	EXPECT_BATCH_REFUSED(-EFAULT, descs = ~0xfffUL);
}

/*
 * A part of the second descriptor is not mapped. Descriptors of up to the
 * kernel's size are read together, longer ones one by one: only then is the
 * index known.
 */
static void cut_descs(struct __test_metadata *_metadata,
		      struct _test_data_args *self, size_t stride, size_t there)
{
	uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = p + 4096 - stride - there;

	ASSERT_TRUE(p != MAP_FAILED);
	memcpy(at, self->d, sizeof(self->d[0]));
	memcpy(at + stride, &self->d[1], there);
	ASSERT_EQ(0, munmap(p + 4096, 4096));
	self->batch.descs = (uintptr_t)at;
	self->batch.num_descs = 2;
	self->batch.desc_stride = stride;
}

TEST_F(args, batch_descs_cut)
{
	cut_descs(_metadata, self, sizeof(self->d[0]), 64);
	EXPECT_REFUSED(-EFAULT, NONE);
}

TEST_F(args, batch_short_descs_cut)
{
	/* a shorter descriptor has no value: make it a copy */
	self->d[0].op = AMDGPU_SDMA_OP_COPY;
	self->d[0].src = VA + 512 * KIB;
	cut_descs(_metadata, self, AMDGPU_SDMA_DESC_SIZE_MIN, 16);
	EXPECT_REFUSED(-EFAULT, NONE);
}

TEST_F(args, batch_long_descs_cut)
{
	cut_descs(_metadata, self, sizeof(self->d[0]) + 8, sizeof(self->d[0]));
	EXPECT_REFUSED(-EFAULT, 1);
}

TEST_F(args, batch_stride_short)
{
	EXPECT_BATCH_REFUSED(-EINVAL,
			     desc_stride = AMDGPU_SDMA_DESC_SIZE_MIN - 8);
}

TEST_F(args, batch_stride_odd)
{
	EXPECT_BATCH_REFUSED(-EINVAL, desc_stride += 1);
}

TEST_F(args, batch_stride_of_4)
{
	EXPECT_BATCH_REFUSED(-EINVAL, desc_stride -= 4);
}

TEST_F(args, batch_stride_zero)
{
	EXPECT_BATCH_REFUSED(-EINVAL, desc_stride = 0);
}

TEST_F(args, batch_stride_huge)
{
	EXPECT_BATCH_REFUSED(-EINVAL, desc_stride = 8192);
}

/* A larger descriptor that is not zero where this kernel knows no member. */
TEST_F(args, batch_stride_tail)
{
	struct {
		struct drm_amdgpu_sdma_desc d;
		uint64_t tail;
	} large[3] = { };
	int i;

	for (i = 0; i < 3; i++)
		large[i].d = self->d[i];
	large[2].tail = 1;
	self->batch.descs = (uintptr_t)large;
	self->batch.desc_stride = sizeof(large[0]);
	EXPECT_REFUSED(-E2BIG, 2);
	large[2].tail = 0;
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
}

TEST_F(args, batch_in_fences)
{
	EXPECT_BATCH_REFUSED(-EMSGSIZE, num_in_fences = 65);
}

TEST_F(args, batch_in_fences_null)
{
	self->batch.num_in_fences = 1;
	EXPECT_FAULT(-EFAULT, AMDGPU_SDMA_ERROR_IN_FENCE, 0);
}

/* Pointers to fences are ignored if there are no fences. */
TEST_F(args, batch_fences_of_none)
{
	self->batch.in_fences = 8;
	self->batch.out_fences = 8;
	EXPECT_EQ(0, batch_submit(&self->gpu, &self->batch));
}

TEST_F(args, batch_engine)
{
	self->batch.engine_mask = ~self->gpu.info.engine_mask;
	EXPECT_REFUSED(-EINVAL, NONE);
}

/* The engine exists, but no wait may run on it. */
TEST_F(args, batch_engine_for_waits)
{
	const struct drm_amdgpu_info_sdma_batch *info = &self->gpu.info;

	if (info->wait_engine_mask == info->engine_mask)
		SKIP(return, "waits may run on all engines");
	self->batch.engine_mask = info->engine_mask & ~info->wait_engine_mask;
	wait_of(&self->d[1]);
	EXPECT_REFUSED(-EINVAL, 1);
}

/* Records of a batch must be aligned, mapped and writable. */
TEST_F(args, batch_records)
{
	EXPECT_BATCH_REFUSED(-EINVAL, records = VA + 512 * KIB + 8);
	EXPECT_BATCH_REFUSED(-ENOENT, records = UNMAPPED_VA);
	EXPECT_BATCH_REFUSED(-EACCES, records = READ_ONLY_VA + 512 * KIB);
	EXPECT_BATCH_REFUSED(-ERANGE, records = -32ULL);
}

/* The records of the last engine are past the end, of the first are not. */
TEST_F(args, batch_records_past_the_end)
{
	const uint32_t engines = self->gpu.info.engine_mask;
	const uint32_t last = 31 - __builtin_clz(engines);

	if (!last)
		SKIP(return, "one engine");
	self->batch.records = VA + SIZE - 64 * last;
	self->batch.engine_mask = 1u << last;
	EXPECT_REFUSED(-ENOENT, NONE);
	self->batch.engine_mask = nth_engine(engines, 0);
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
}

/* batch_run() submits with an out-fence of its own: not used here. */
static int submit_out(struct _test_data_args *self,
		      const struct drm_amdgpu_sdma_fence *out, uint32_t n)
{
	self->batch.out_fences = (uintptr_t)out;
	self->batch.num_out_fences = n;
	return batch_submit(&self->gpu, &self->batch);
}

#define EXPECT_OUT_REFUSED(error, array, index, out, n)			\
	do {								\
		EXPECT_EQ(error, submit_out(self, out, n));		\
		EXPECT_EQ(array, self->batch.error_array);		\
		EXPECT_EQ(index, self->batch.error_index);		\
		EXPECT_EQ(0, self->batch.engines_used);			\
		EXPECT_TRUE(untouched(self));				\
	} while (0)

TEST_F(args, batch_out_fences)
{
	struct drm_amdgpu_sdma_fence out[3] = { };

	EXPECT_OUT_REFUSED(-EMSGSIZE, AMDGPU_SDMA_ERROR_NONE, NONE, out,
			   self->gpu.info.max_fences + 1);
	EXPECT_OUT_REFUSED(-EFAULT, AMDGPU_SDMA_ERROR_OUT_FENCE, 0, NULL, 1);
}

/* The fence at fault is reported, and no other syncobj has got a fence. */
TEST_F(args, batch_out_fence)
{
	struct drm_amdgpu_sdma_fence out[3] = { };
	int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, syncobj_new(&self->gpu, &out[i].handle));
	out[1].pad = 1;
	EXPECT_OUT_REFUSED(-EINVAL, AMDGPU_SDMA_ERROR_OUT_FENCE, 1, out, 3);
	out[1].pad = 0;
	out[2].handle = 0xdead;
	EXPECT_OUT_REFUSED(-ENOENT, AMDGPU_SDMA_ERROR_OUT_FENCE, 2, out, 3);
	EXPECT_EQ(-EINVAL, syncobj_status(&self->gpu, out[0].handle));
	EXPECT_EQ(-EINVAL, syncobj_status(&self->gpu, out[1].handle));
	EXPECT_EQ(0, submit_out(self, out, 2));
	EXPECT_EQ(0, syncobj_wait(&self->gpu, out[1].handle, 0, WAIT_SECONDS));
	EXPECT_EQ(AMDGPU_SDMA_ERROR_NONE, self->batch.error_array);
	EXPECT_EQ(NONE, self->batch.error_index);
}

/* In-fences that are unknown, have a pad, or have no fence yet. */
TEST_F(args, batch_in_fence)
{
	struct drm_amdgpu_sdma_fence in[2] = { { .handle = 0xdead } };

	ASSERT_EQ(0, syncobj_new(&self->gpu, &in[1].handle));
	self->batch.in_fences = (uintptr_t)in;
	self->batch.num_in_fences = 2;
	EXPECT_FAULT(-ENOENT, AMDGPU_SDMA_ERROR_IN_FENCE, 0);
	in[0].pad = 1;
	EXPECT_FAULT(-EINVAL, AMDGPU_SDMA_ERROR_IN_FENCE, 0);
	self->batch.in_fences = (uintptr_t)&in[1];
	self->batch.num_in_fences = 1;
	EXPECT_FAULT(-EINVAL, AMDGPU_SDMA_ERROR_IN_FENCE, 0);
}

/* A good one before the bad one: the index is not always 0. */
TEST_F(args, batch_second_in_fence)
{
	struct drm_amdgpu_sdma_fence fence[2] = { };

	ASSERT_EQ(0, syncobj_new(&self->gpu, &fence[0].handle));
	ASSERT_EQ(0, submit_out(self, fence, 1));
	ASSERT_EQ(0, syncobj_wait(&self->gpu, fence[0].handle, 0,
				  WAIT_SECONDS));
	memset(self->buffer.cpu, BYTE, SIZE);
	fence[1].handle = 0xdead;
	self->batch.in_fences = (uintptr_t)fence;
	self->batch.num_in_fences = 2;
	EXPECT_FAULT(-ENOENT, AMDGPU_SDMA_ERROR_IN_FENCE, 1);
	/* a point that the timeline does not have yet */
	fence[1] = (struct drm_amdgpu_sdma_fence) {
		.handle = fence[0].handle, .point = 1000,
	};
	EXPECT_FAULT(-EINVAL, AMDGPU_SDMA_ERROR_IN_FENCE, 1);
}

/*
 * The DRM core takes shorter and longer arguments: missing members are zero,
 * additional ones are ignored. A call that is cut after @descs has no
 * descriptors; one that is cut before the in-fences is complete.
 */
TEST_F(args, length)
{
	const size_t full = sizeof(self->batch);
	struct {
		struct drm_amdgpu_sdma_batch batch;
		uint64_t more[4];
	} longer = { .batch = self->batch, .more = { 1, 2, 3, 4 } };
	size_t size;

	for (size = 8; size <= full + 32; size += 8) {
		unsigned long cmd = _IOC(_IOC_READ | _IOC_WRITE,
					 DRM_IOCTL_BASE, DRM_COMMAND_BASE +
					 DRM_AMDGPU_SDMA_BATCH, size);
		int want = size < offsetof(struct drm_amdgpu_sdma_batch,
					   in_fences) ? -EINVAL : 0;

		longer.batch = self->batch;
		EXPECT_EQ(want, gpu_ioctl(&self->gpu, cmd, &longer))
			TH_LOG("size %zu", size);
	}
}

#define EXPECT_OVERLAP(first, second)					\
	do {								\
		EXPECT_REFUSED(-EEXIST, second);			\
		EXPECT_EQ(first, self->batch.error_index2);		\
	} while (0)

TEST_F(args, overlap_writes)
{
	self->d[2].dst = self->d[0].dst + 4095;
	EXPECT_OVERLAP(0, 2);
}

TEST_F(args, overlap_read_and_write)
{
	struct drm_amdgpu_sdma_desc *d = &self->d[2];

	copy_of(d);
	d->src = self->d[1].dst - 4095;
	EXPECT_OVERLAP(1, 2);
}

TEST_F(args, overlap_itself)
{
	struct drm_amdgpu_sdma_desc *d = &self->d[1];

	copy_of(d);
	d->src = d->dst + 1;
	EXPECT_OVERLAP(1, 1);
}

/* Each further destination overlaps a fill, then the broadcast's first one. */
TEST_F(args, overlap_broadcast)
{
	struct drm_amdgpu_sdma_desc *d = &self->d[2];
	int i;

	broadcast_of(d);
	for (i = 1; i < 7; i++)
		d->dst_more[i] = VA + 600 * KIB + i * 8 * KIB;
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
	memset(self->buffer.cpu, BYTE, SIZE);
	for (i = 0; i < 7; i++) {
		d->dst_more[i] = self->d[1].dst + 4095;
		EXPECT_OVERLAP(1, 2);
		d->dst_more[i] = d->dst;
		EXPECT_OVERLAP(2, 2);
		d->dst_more[i] = VA + 600 * KIB + i * 8 * KIB;
	}
}

/* Records must not overlap each other, nor what another descriptor writes. */
TEST_F(args, overlap_records)
{
	self->d[0] = recorded(self->d[0], VA + 256 * KIB);
	self->d[2] = recorded(self->d[2], VA + 256 * KIB + 32);
	EXPECT_OVERLAP(0, 2);
	self->d[2].record = self->d[1].dst;
	EXPECT_OVERLAP(1, 2);
}

/* Reads may overlap, and so may accesses that a barrier separates. */
TEST_F(args, no_overlap)
{
	struct drm_amdgpu_sdma_desc *d = &self->d[1];

	copy_of(d);
	d = &self->d[2];
	copy_of(d);
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
	d->dst = self->d[0].dst;
	d->flags = AMDGPU_SDMA_DESC_BARRIER;
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
}

TEST_F(args, fan_out_with_order)
{
	self->batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	self->d[2].flags = AMDGPU_SDMA_DESC_BARRIER;
	EXPECT_REFUSED(-EINVAL, 2);
}

/* Every engine would write the same record. */
TEST_F(args, fan_out_with_record_of_wait)
{
	self->batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	wait_of(&self->d[0]);
	self->d[0].compare = AMDGPU_SDMA_COMPARE_GE;
	self->d[0] = recorded(self->d[0], VA + 600 * KIB);
	EXPECT_REFUSED(-EINVAL, 0);
}

/* Each engine polls by itself, so only a value that grows may be awaited. */
TEST_F(args, fan_out_with_wait)
{
	static const uint32_t compare[] = {
		AMDGPU_SDMA_COMPARE_EQ, AMDGPU_SDMA_COMPARE_NE,
		AMDGPU_SDMA_COMPARE_LE,
	};
	unsigned int i;

	self->batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	wait_of(&self->d[0]);
	for (i = 0; i < ARRAY_SIZE(compare); i++) {
		self->d[0].compare = compare[i];
		EXPECT_REFUSED(-EINVAL, 0);
	}
}

/* Waits come before all other descriptors, not between them. */
TEST_F(args, fan_out_with_wait_behind)
{
	self->batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	wait_of(&self->d[1]);
	self->d[1].compare = AMDGPU_SDMA_COMPARE_GE;
	EXPECT_REFUSED(-EINVAL, 1);
}

TEST_F(args, fan_out_with_signal)
{
	self->batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	add_of(&self->d[2]);
	EXPECT_REFUSED(-EINVAL, 2);
	self->d[2].op = AMDGPU_SDMA_OP_WRITE;
	EXPECT_REFUSED(-EINVAL, 2);
}

TEST_HARNESS_MAIN
