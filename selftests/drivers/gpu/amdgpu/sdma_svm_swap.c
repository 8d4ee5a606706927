// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on SVM memory that is reclaimed: pages in swap are brought back
 * if a descriptor asks for it, and what a batch has written survives.
 *
 * A page that came back from swap for a read can be writable and clean, with a
 * copy in swap. If an engine writes to it, only the driver can mark it dirty.
 *
 * This needs retry faults: without them the compute driver brings memory back
 * on its own, for writing.
 */
#include "../../../kselftest_harness.h"
#include "../../../rdma/loop_swap.h"
#include "cgroup.h"
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
	if (svm_enable_xnack(self->kfd.fd))
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
	/* it is swapped out again, though a batch has used it */
	ASSERT_TRUE(swap_out(self->at, SIZE));
	EXPECT_EQ(-ENXIO, copy(self, false, 0));
}

TEST_F_TIMEOUT(swap, written_survives, 120)
{
	ASSERT_TRUE(swap_out(self->at, SIZE));
	ASSERT_TRUE(all_are(self->at, SIZE, 0xaa));
	/* pages that are not writable now are not the subject of this test */
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

/* Memory is reclaimed all the time. */
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

/*
 * A process that may not have all of its memory at once: a batch brings back a
 * part, and others are swapped out. In video memory they would count, and stay.
 */
#define PARTS		48

static int copy_part(struct _test_data_swap *self, const uint8_t *at, bool in)
{
	const uint64_t va = (uintptr_t)at;
	struct drm_amdgpu_sdma_desc d = faulting(in ?
		copy_desc(VRAM_VA, va, SIZE) : copy_desc(va, VRAM_VA, SIZE));
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	return batch_run(&self->gpu, &batch);
}

TEST_F_TIMEOUT(swap, within_a_limit, 120)
{
	/* and no more at a time than a batch asks for */
	const struct kfd_ioctl_svm_attribute in_system_memory[] = {
		{ KFD_IOCTL_SVM_ATTR_PREFERRED_LOC,
		  KFD_IOCTL_SVM_LOCATION_SYSMEM },
		{ KFD_IOCTL_SVM_ATTR_GRANULARITY, 4 },
	};
	unsigned int round, i, way;
	uint8_t *parts;
	char limit[32];

	if (cgroup_make())
		SKIP(return, "no memory cgroups");
	parts = svm_map(PARTS * SIZE);
	ASSERT_NE(NULL, parts);
	ASSERT_EQ(0, madvise(parts, PARTS * SIZE, MADV_NOHUGEPAGE));
	ASSERT_EQ(0, svm_access(&self->svm, parts, PARTS * SIZE,
				&self->svm.gpu[0]));
	ASSERT_EQ(0, svm_set(&self->svm, parts, PARTS * SIZE, in_system_memory,
			     ARRAY_SIZE(in_system_memory)));
	ASSERT_EQ(0, cgroup_enter());
	snprintf(limit, sizeof(limit), "%ld",
		 cgroup_charged() + (long)(PARTS / 2 * SIZE));
	EXPECT_EQ(0, write_file(CGROUP "memory.max", limit));
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 2 * PARTS; i++) {
			uint8_t *part = parts + i % PARTS * SIZE;
			const uint8_t value = round + 5 * (i % PARTS);

			way = i / PARTS;
			memset(self->vram.cpu, way ? ~value : value, SIZE);
			EXPECT_EQ(0, copy_part(self, part, !way));
			EXPECT_TRUE(all_are(self->vram.cpu, SIZE, value))
				TH_LOG("round %u, part %u", round, i % PARTS);
		}
		EXPECT_LT(PARTS / 3 * PAGES,
			  count_swapped(parts, PARTS * SIZE));
		EXPECT_GE(atol(limit), cgroup_charged());
	}
	EXPECT_EQ(0, cgroup_read(CGROUP "memory.events", "oom_kill "));
	write_file(CGROUP "memory.max", "max");
	cgroup_leave();
}

TEST_HARNESS_MAIN
