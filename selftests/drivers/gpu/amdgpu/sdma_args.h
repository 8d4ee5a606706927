/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What DRM_IOCTL_AMDGPU_SDMA_BATCH refuses: the fixture of tests that each
 * spoil one member of a good batch. They check the errno, what is reported to
 * be at fault, and that nothing of the batch ran.
 */
#ifndef _SELFTEST_SDMA_ARGS_H
#define _SELFTEST_SDMA_ARGS_H

#include "../../../kselftest_harness.h"
#include "sdma_desc.h"

#define VA		(1024 * MIB)
#define READ_ONLY_VA	(VA + 2 * MIB)
#define WRITE_ONLY_VA	(VA + 4 * MIB)
#define UNMAPPED_VA	(VA + 8 * MIB)
#define SIZE		MIB
#define BYTE		0x5a

#define NONE		AMDGPU_SDMA_NO_INDEX

FIXTURE(args)
{
	struct gpu gpu;
	struct buffer buffer;
	struct drm_amdgpu_sdma_desc d[3];
	struct drm_amdgpu_sdma_batch batch;
};

/* A batch of three good descriptors, for tests to spoil. */
FIXTURE_SETUP(args)
{
	int i;

	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->buffer, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VA));
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->buffer, AMDGPU_VA_OP_MAP,
			       READ_ONLY_VA, AMDGPU_VM_PAGE_READABLE));
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->buffer, AMDGPU_VA_OP_MAP,
			       WRITE_ONLY_VA, AMDGPU_VM_PAGE_WRITEABLE));
	memset(self->buffer.cpu, BYTE, SIZE);
	for (i = 0; i < 3; i++)
		self->d[i] = fill_desc(VA + i * 64 * KIB, 4096, 0x01010101);
	self->batch = batch_of(&self->gpu, self->d, 3);
}

FIXTURE_TEARDOWN(args)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static bool untouched(struct _test_data_args *self)
{
	size_t i;

	/* Anything that ran by mistake has ended when a good batch has. */
	struct drm_amdgpu_sdma_desc d = {
		.op = AMDGPU_SDMA_OP_FILL, .dst = VA, .size = 1, .value = BYTE,
	};
	struct drm_amdgpu_sdma_batch good = batch_of(&self->gpu, &d, 1);

	if (batch_run(&self->gpu, &good))
		return false;
	for (i = 0; i < SIZE; i++)
		if (self->buffer.cpu[i] != BYTE)
			return false;
	return true;
}

#define EXPECT_FAULT(error, array, index)				\
	do {								\
		EXPECT_EQ(error, batch_run(&self->gpu, &self->batch));	\
		EXPECT_EQ(array, self->batch.error_array);		\
		EXPECT_EQ(index, self->batch.error_index);		\
		EXPECT_EQ(0, self->batch.engines_used);			\
		EXPECT_TRUE(untouched(self));				\
	} while (0)

/* Descriptor @index is at fault, or none if that is NONE. */
#define EXPECT_REFUSED(error, index)					\
	do {								\
		const uint32_t _index = (index);			\
									\
		EXPECT_FAULT(error, _index == NONE ?			\
			     AMDGPU_SDMA_ERROR_NONE :			\
			     AMDGPU_SDMA_ERROR_DESC, _index);		\
	} while (0)

/* Spoils one member of the call. */
#define EXPECT_BATCH_REFUSED(error, spoil)				\
	do {								\
		self->batch.spoil;					\
		EXPECT_REFUSED(error, NONE);				\
	} while (0)

static void copy_of(struct drm_amdgpu_sdma_desc *d)
{
	d->op = AMDGPU_SDMA_OP_COPY;
	d->src = VA + 512 * KIB;
	d->value = 0;
}

static void wait_of(struct drm_amdgpu_sdma_desc *d)
{
	*d = (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_WAIT, .src = VA + 512 * KIB,
		.value = BYTE * 0x01010101u, .mask = ~0u,
		.timeout_ns = 300000,
	};
}

static void rect_of(struct drm_amdgpu_sdma_desc *d)
{
	*d = (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_COPY_RECT,
		.src = VA + 512 * KIB, .src_pitch = 256,
		.dst = VA + 64 * KIB, .dst_pitch = 128,
		.size = 128, .rows = 8,
	};
}

static void broadcast_of(struct drm_amdgpu_sdma_desc *d)
{
	copy_of(d);
	d->op = AMDGPU_SDMA_OP_BROADCAST;
	d->dst_more[0] = VA + 600 * KIB;
}

static void add_of(struct drm_amdgpu_sdma_desc *d)
{
	*d = (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_ADD, .dst = VA + 512 * KIB,
	};
}

/* Spoils the second descriptor. */
#define EXPECT_DESC_REFUSED(error, spoil)				\
	do {								\
		struct drm_amdgpu_sdma_desc *d = &self->d[1];		\
									\
		spoil;							\
		EXPECT_REFUSED(error, 1);				\
	} while (0)

#endif
