// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on SVM memory that reclaim takes: what is in swap is brought back
 * if a descriptor asks for it, and what a batch has written survives.
 *
 * A page that came back from swap for a read can be writable and clean, with a
 * copy in swap. If an engine writes to it, nothing but the driver can say so.
 *
 * With retry faults: without them the compute driver brings memory back by itself,
 * for writing.
 */
#include "../../../kselftest_harness.h"
#include "../../../rdma/loop_swap.h"
#include "sdma_svm.h"

#define PAGES		16
#define SIZE		(PAGES * SVM_PAGE)
#define VRAM_VA		(1024 * MIB)

FIXTURE(swap)
{
	struct gpu gpu;
	struct kfd kfd;
	struct svm svm;
	struct buffer vram;
	struct loop_swap swap;
	uint8_t *at;
};

FIXTURE_SETUP(swap)
{
	stay_on_this_cpu();
	self->kfd.fd = -1;
	self->swap.loop = -1;
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (!(self->gpu.info.features & AMDGPU_SDMA_FEATURE_SVM) ||
	    kfd_open(&self->kfd, &self->gpu))
		SKIP(return, "no SVM memory");
	if (svm_enable_xnack(&self->kfd))
		SKIP(return, "no retry faults");
	if (loop_swap_open(&self->swap))
		SKIP(return, "no swap: it takes root, and the loop module");
	self->svm = svm_of(&self->kfd, &self->gpu);
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	self->at = svm_map(SIZE);
	ASSERT_NE(NULL, self->at);
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_NOHUGEPAGE));
	memset(self->at, 0xaa, SIZE);
	ASSERT_EQ(0, svm_access(&self->svm, self->at, SIZE,
				&self->svm.gpu[0]));
	memset(self->vram.cpu, 0x55, SIZE);
}

FIXTURE_TEARDOWN(swap)
{
	loop_swap_close(&self->swap);
	if (self->kfd.fd >= 0)
		close(self->kfd.fd);
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static int copy(struct _test_data_swap *self, bool in, uint32_t flags)
{
	const uint64_t at = (uintptr_t)self->at;
	struct drm_amdgpu_sdma_desc d = in ? copy_desc(VRAM_VA, at, SIZE) :
					     copy_desc(at, VRAM_VA, SIZE);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	d.flags = flags;
	return batch_run(&self->gpu, &batch);
}

TEST_F_TIMEOUT(swap, read_from_swap, 120)
{
	ASSERT_TRUE(swap_out(self->at, SIZE));
	EXPECT_EQ(-ENXIO, copy(self, false, 0));
	ASSERT_EQ(0, copy(self, false, AMDGPU_SDMA_DESC_FAULT));
	EXPECT_TRUE(all_are(self->vram.cpu, SIZE, 0xaa));
	/* and goes there again, though a batch has used it */
	ASSERT_TRUE(swap_out(self->at, SIZE));
	EXPECT_EQ(-ENXIO, copy(self, false, 0));
}

TEST_F_TIMEOUT(swap, written_survives, 120)
{
	ASSERT_TRUE(swap_out(self->at, SIZE));
	ASSERT_TRUE(all_are(self->at, SIZE, 0xaa));
	/* pages that are not writable by now are no subject of this test */
	if (copy(self, true, 0))
		SKIP(return, "this kernel maps what it read in for reading");
	ASSERT_TRUE(swap_out(self->at, SIZE));
	EXPECT_TRUE(all_are(self->at, SIZE, 0x55));
}

TEST_F_TIMEOUT(swap, written_by_fault_survives, 120)
{
	ASSERT_TRUE(swap_out(self->at, SIZE));
	ASSERT_EQ(0, copy(self, true, AMDGPU_SDMA_DESC_FAULT));
	ASSERT_TRUE(swap_out(self->at, SIZE));
	EXPECT_TRUE(all_are(self->at, SIZE, 0x55));
}

/* Reclaim all the time. */
TEST_F_TIMEOUT(swap, taken_all_the_time, 120)
{
	unsigned int round;

	for (round = 0; round < 30; round++) {
		memset(self->vram.cpu, round, SIZE);
		ASSERT_EQ(0, copy(self, true, AMDGPU_SDMA_DESC_FAULT));
		madvise(self->at, SIZE, MADV_PAGEOUT);
		memset(self->vram.cpu, 0, SIZE);
		ASSERT_EQ(0, copy(self, false, AMDGPU_SDMA_DESC_FAULT));
		ASSERT_TRUE(all_are(self->vram.cpu, SIZE, round))
			TH_LOG("round %u", round);
	}
}

TEST_HARNESS_MAIN
