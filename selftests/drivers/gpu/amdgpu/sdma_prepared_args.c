// SPDX-License-Identifier: GPL-2.0
/*
 * Prepared SDMA batches: changed mappings that make them stale, and calls that
 * are refused. One test for each reason.
 */
#include "../../../kselftest_harness.h"
#include "sdma_prepared.h"

#define VRAM_VA		(2048 * MIB)
#define OTHER_VA	(3072 * MIB)
#define SIZE		(4 * MIB)
#define COUNT_AT	(SIZE - 4096)
#define COUNT_VA	(VRAM_VA + COUNT_AT)

/* After a mapping has changed, a run fails with ESTALE: nothing is written. */
#define EXPECT_STALE()							\
	do {								\
		uint32_t h = self->handle;				\
									\
		EXPECT_EQ(-ESTALE, run_prepared(&self->gpu, h));	\
		EXPECT_EQ(-ESTALE, run_prepared(&self->gpu, h));	\
		EXPECT_EQ(0, self->vram.cpu[0]);			\
		EXPECT_EQ(0, forget(&self->gpu, h));			\
	} while (0)

FIXTURE(stale)
{
	struct gpu gpu;
	struct buffer vram;
	struct buffer other;
	uint32_t handle;
};

/* Fills the first page at VRAM_VA, and the first and last at OTHER_VA. */
FIXTURE_SETUP(stale)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA, 4096, 1),
		fill_desc(OTHER_VA, 4096, 1),
		fill_desc(OTHER_VA + SIZE - 4096, 4096, 1),
	};

	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->other, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, OTHER_VA));
	memset(self->vram.cpu, 0, SIZE);
	ASSERT_EQ(0, prepare(&self->gpu, d, 3, &self->handle));
}

FIXTURE_TEARDOWN(stale)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

TEST_F(stale, unmapped)
{
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->other, AMDGPU_VA_OP_UNMAP,
			       OTHER_VA, 0));
	EXPECT_STALE();
}

/* The same buffer at the same address is another mapping. */
TEST_F(stale, mapped_again)
{
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->other, AMDGPU_VA_OP_UNMAP,
			       OTHER_VA, 0));
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->other, AMDGPU_VA_OP_MAP,
			       OTHER_VA, GPU_RW));
	EXPECT_STALE();
}

TEST_F(stale, replaced)
{
	struct buffer b;

	ASSERT_EQ(0, buffer_new(&self->gpu, &b, SIZE, AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_REPLACE, OTHER_VA,
			       GPU_RW));
	EXPECT_STALE();
}

/* A hole in the middle, which the batch does not use, splits the mapping. */
TEST_F(stale, split)
{
	struct buffer b = self->other;

	b.size = 4096;
	ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_CLEAR,
			       OTHER_VA + MIB, 0));
	EXPECT_STALE();
}

TEST_F(stale, read_only)
{
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->other, AMDGPU_VA_OP_REPLACE,
			       OTHER_VA, AMDGPU_VM_PAGE_READABLE));
	EXPECT_STALE();
}

/* The buffer's last handle is closed: a prepared batch holds no reference. */
TEST_F(stale, closed)
{
	buffer_free(&self->gpu, &self->other);
	EXPECT_STALE();
}

/* Mappings that the batch does not use may change. */
TEST_F(stale, not_by_others)
{
	struct buffer b;
	unsigned int i;

	ASSERT_EQ(0, buffer_new(&self->gpu, &b, SIZE, AMDGPU_GEM_DOMAIN_GTT));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_MAP,
				       OTHER_VA + 2 * SIZE, GPU_RW));
		ASSERT_EQ(0, run_prepared(&self->gpu, self->handle));
		ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_UNMAP,
				       OTHER_VA + 2 * SIZE, 0));
		ASSERT_EQ(0, run_prepared(&self->gpu, self->handle));
	}
	EXPECT_EQ(1, self->vram.cpu[0]);
	EXPECT_EQ(1, self->other.cpu[SIZE - 4096]);
}

/*
 * Calls that are refused. Each test spoils one member of a valid call: to
 * prepare, to run or to forget a batch that adds one to the counter.
 */
FIXTURE(refused)
{
	struct gpu gpu;
	struct buffer vram;
	struct drm_amdgpu_sdma_desc desc;
	struct drm_amdgpu_sdma_fence fence;
	uint32_t handle;
	uint64_t runs;
};

FIXTURE_SETUP(refused)
{
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	memset(self->vram.cpu, 0, SIZE);
	self->desc = add_desc(COUNT_VA, 1);
	ASSERT_EQ(0, prepare(&self->gpu, &self->desc, 1, &self->handle));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &self->fence.handle));
}

FIXTURE_TEARDOWN(refused)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static struct drm_amdgpu_sdma_batch good(struct _test_data_refused *self,
					 uint32_t op)
{
	struct drm_amdgpu_sdma_batch batch = { };

	if (op == AMDGPU_SDMA_BATCH_PREPARE)
		batch = batch_of(&self->gpu, &self->desc, 1);
	else if (op == AMDGPU_SDMA_BATCH_RUN)
		batch = run_of(&self->gpu, self->handle);
	else
		batch.handle = self->handle;
	batch.op = op;
	return batch;
}

#define OP_PREPARE	AMDGPU_SDMA_BATCH_PREPARE
#define OP_RUN		AMDGPU_SDMA_BATCH_RUN
#define OP_FORGET	AMDGPU_SDMA_BATCH_FORGET

TEST_F(refused, nothing)
{
	const uint32_t ops[] = { OP_PREPARE, OP_RUN, OP_FORGET };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct drm_amdgpu_sdma_batch b = good(self, ops[i]);

		EXPECT_EQ(0, batch_submit(&self->gpu, &b));
	}
}

/* Whatever was wrong, the batch still exists and has not run. */
#define EXPECT_SPOILED(op, error, spoil)				\
	do {								\
		struct drm_amdgpu_sdma_batch b = good(self, OP_ ## op);	\
									\
		b.spoil;						\
		EXPECT_EQ(error, batch_submit(&self->gpu, &b));		\
		EXPECT_EQ(AMDGPU_SDMA_NO_INDEX, b.error_index);		\
		EXPECT_EQ(AMDGPU_SDMA_ERROR_NONE, b.error_array);	\
		EXPECT_EQ(0, b.engines_used);				\
		EXPECT_EQ(0, run_prepared(&self->gpu, self->handle));	\
		EXPECT_EQ(++self->runs,					\
			  *(uint64_t *)(self->vram.cpu + COUNT_AT));	\
	} while (0)

TEST_F(refused, unknown_flag)
{
	EXPECT_SPOILED(PREPARE, -EINVAL, flags = 1u << 31);
	EXPECT_SPOILED(RUN, -EINVAL, flags = 1u << 31);
	EXPECT_SPOILED(FORGET, -EINVAL, flags = 1u << 31);
}

TEST_F(refused, reserved)
{
	EXPECT_SPOILED(PREPARE, -EINVAL, reserved[1] = 1);
	EXPECT_SPOILED(RUN, -EINVAL, reserved[1] = 1);
	EXPECT_SPOILED(FORGET, -EINVAL, reserved[1] = 1);
}

TEST_F(refused, nonblock)
{
	EXPECT_SPOILED(FORGET, -EINVAL, flags = AMDGPU_SDMA_BATCH_NONBLOCK);
}

TEST_F(refused, path)
{
	EXPECT_SPOILED(FORGET, -EINVAL, flags = AMDGPU_SDMA_BATCH_PATH);
}

TEST_F(refused, context)
{
	EXPECT_SPOILED(RUN, -EINVAL, ctx_id = 4711);
	EXPECT_SPOILED(FORGET, -EINVAL, ctx_id = 4711);
}

/* Members that only PREPARE takes. */
TEST_F(refused, records)
{
	EXPECT_SPOILED(RUN, -EINVAL, records = VRAM_VA);
	EXPECT_SPOILED(FORGET, -EINVAL, records = VRAM_VA);
}

TEST_F(refused, descs)
{
	EXPECT_SPOILED(RUN, -EINVAL, descs = (uintptr_t)&self->desc);
	EXPECT_SPOILED(FORGET, -EINVAL, descs = (uintptr_t)&self->desc);
}

TEST_F(refused, num_descs)
{
	EXPECT_SPOILED(RUN, -EINVAL, num_descs = 1);
	EXPECT_SPOILED(FORGET, -EINVAL, num_descs = 1);
}

TEST_F(refused, desc_stride)
{
	EXPECT_SPOILED(RUN, -EINVAL, desc_stride = sizeof(self->desc));
	EXPECT_SPOILED(FORGET, -EINVAL, desc_stride = sizeof(self->desc));
}

TEST_F(refused, placement)
{
	EXPECT_SPOILED(RUN, -EINVAL, placement = AMDGPU_SDMA_PLACE_ONE_ENGINE);
	EXPECT_SPOILED(FORGET, -EINVAL,
		       placement = AMDGPU_SDMA_PLACE_ONE_ENGINE);
}

TEST_F(refused, engine_mask)
{
	EXPECT_SPOILED(RUN, -EINVAL, engine_mask = 1);
	EXPECT_SPOILED(FORGET, -EINVAL, engine_mask = 1);
}

TEST_F(refused, handle)
{
	EXPECT_SPOILED(PREPARE, -EINVAL, handle = 1);
}

TEST_F(refused, unknown_handle)
{
	EXPECT_SPOILED(RUN, -ENOENT, handle = 1u << 30);
	EXPECT_SPOILED(FORGET, -ENOENT, handle = 1u << 30);
}

/* Members that only RUN takes. */
TEST_F(refused, in_fences)
{
	EXPECT_SPOILED(PREPARE, -EINVAL, in_fences = (uintptr_t)&self->fence);
	EXPECT_SPOILED(FORGET, -EINVAL, in_fences = (uintptr_t)&self->fence);
}

TEST_F(refused, num_in_fences)
{
	EXPECT_SPOILED(PREPARE, -EINVAL, num_in_fences = 1);
	EXPECT_SPOILED(FORGET, -EINVAL, num_in_fences = 1);
}

TEST_F(refused, out_fences)
{
	EXPECT_SPOILED(PREPARE, -EINVAL, out_fences = (uintptr_t)&self->fence);
	EXPECT_SPOILED(FORGET, -EINVAL, out_fences = (uintptr_t)&self->fence);
}

TEST_F(refused, num_out_fences)
{
	EXPECT_SPOILED(PREPARE, -EINVAL, num_out_fences = 1);
	EXPECT_SPOILED(FORGET, -EINVAL, num_out_fences = 1);
}

TEST_F(refused, too_many_in_fences)
{
	EXPECT_SPOILED(RUN, -EMSGSIZE,
		       num_in_fences = self->gpu.info.max_fences + 1);
}

TEST_F(refused, too_many_out_fences)
{
	EXPECT_SPOILED(RUN, -EMSGSIZE,
		       num_out_fences = self->gpu.info.max_fences + 1);
}

TEST_HARNESS_MAIN
