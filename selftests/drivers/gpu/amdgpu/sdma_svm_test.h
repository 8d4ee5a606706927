/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixture for tests of SDMA batches on SVM memory: a GPU, a buffer, and memory
 * of the process that the GPU may use.
 */
#ifndef _SELFTEST_SDMA_SVM_TEST_H
#define _SELFTEST_SDMA_SVM_TEST_H

#include "../../../kselftest_harness.h"
#include "emulator.h"
#include "sdma_svm.h"

#define SIZE		(4 * MIB)
#define PAGE		SVM_PAGE
#define VRAM_VA		(1024 * MIB)

FIXTURE(svm)
{
	struct gpu gpu;
	struct kfd kfd;
	struct svm svm;
	struct buffer vram;
	uint8_t *at;		/* SVM memory */
	uint8_t *want;
	unsigned int seed;
	int emulator;		/* -1: it is hardware */
	long faults;		/* of engines, before the test */
};

FIXTURE_VARIANT(svm)
{
	bool xnack;
};

FIXTURE_VARIANT_ADD(svm, no_xnack) { };
FIXTURE_VARIANT_ADD(svm, xnack) { .xnack = true, };

/* Jobs of the kernel find their memory mapped: engines must not fault. */
static inline long count_faults(int emulator)
{
	return emulator < 0 ? 0 : emulator_count(emulator, "faults") +
				  emulator_count(emulator, "retry_faults");
}

FIXTURE_SETUP(svm)
{
	self->seed = 1;
	self->kfd.fd = -1;
	self->emulator = -1;
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (!(self->gpu.info.features & AMDGPU_SDMA_FEATURE_SVM))
		SKIP(return, "no SVM memory");
	if (kfd_open(&self->kfd, &self->gpu))
		SKIP(return, "the compute driver does not have this GPU");
	if (variant->xnack && svm_enable_xnack(self->kfd.fd))
		SKIP(return, "no retry faults");
	self->svm = svm_of(&self->kfd, &self->gpu);
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	ASSERT_EQ(0, svm_new(&self->svm, &self->at, SIZE));
	self->want = malloc(SIZE);
	ASSERT_NE(NULL, self->want);
	randomize(self->want, SIZE, &self->seed);
	memset(self->vram.cpu, 0, SIZE);
	self->emulator = emulator_open();
	self->faults = count_faults(self->emulator);
	ASSERT_LE(0, self->faults);
}

FIXTURE_TEARDOWN(svm)
{
	EXPECT_EQ(self->faults, count_faults(self->emulator));
	if (self->emulator >= 0)
		close(self->emulator);
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
	if (self->kfd.fd >= 0)
		close(self->kfd.fd);
	free(self->want);
}

static inline uint64_t va(const void *at)
{
	return (uintptr_t)at;
}

static inline int run_descs(struct _test_data_svm *self,
			    const struct drm_amdgpu_sdma_desc *d,
			    unsigned int n, uint32_t *index)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, n);
	int ret = batch_run(&self->gpu, &batch);

	if (index)
		*index = batch.error_index;
	return ret;
}

/* Makes one copy, the second descriptor. @index: of the one at fault. */
static inline int copy_flags(struct _test_data_svm *self, uint64_t src,
			     uint64_t dst, uint64_t size, uint32_t flags,
			     uint32_t *index)
{
	struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA + SIZE - PAGE, 4, 0),
		copy_desc(src, dst, size),
	};

	d[1].flags = flags;
	return run_descs(self, d, 2, index);
}

static inline int copy(struct _test_data_svm *self, uint64_t src, uint64_t dst,
		       uint64_t size)
{
	return copy_flags(self, src, dst, size, 0, NULL);
}

#define LEN	(SIZE - PAGE)

static inline int copy_in(struct _test_data_svm *self)
{
	return copy(self, VRAM_VA, va(self->at), LEN);
}

static inline int copy_out(struct _test_data_svm *self)
{
	return copy(self, va(self->at), VRAM_VA, LEN);
}

/* Moves all of the memory to video memory. */
static inline int send_away(struct _test_data_svm *self)
{
	int ret = svm_prefetch(&self->svm, self->at, SIZE, &self->svm.gpu[0]);

	if (ret)
		return ret;
	return svm_here(&self->svm, self->at, SIZE) ? -EXDEV : 0;
}

/* Moves all of the memory to a GPU that is linked to this one. */
static inline int send_to_linked(struct _test_data_svm *self, struct gpu *peer)
{
	struct kfd kfd = { .fd = self->kfd.fd };
	struct svm_gpu other;
	int ret;

	if (gpu_open(peer, 1))
		return -ENODEV;
	ret = gpu_linked(peer->name) ? kfd_acquire(&kfd, peer) : -ENODEV;
	if (ret)
		return ret;
	other = svm_of(&kfd, peer).gpu[0];
	ret = svm_prefetch(&self->svm, self->at, SIZE, &other);
	if (ret)
		return ret;
	return svm_here(&self->svm, self->at, SIZE) ? -EXDEV : 0;
}

#endif
