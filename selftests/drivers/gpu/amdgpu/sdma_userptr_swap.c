// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on user pointers that are reclaimed: what a batch has written
 * survives. See amdgpu_swap.c for pages that are writable and clean.
 */
#include "../../../kselftest_harness.h"
#include "../../../rdma/loop_swap.h"
#include "sdma_kfd.h"

#define PAGE		4096
#define PAGES		16
#define SIZE		(PAGES * PAGE)
#define VRAM_VA		(1024 * MIB)
#define USER_VA		(VRAM_VA + 16 * MIB)
#define ROUNDS		20

FIXTURE(swap)
{
	struct gpu gpu;
	struct kfd kfd;
	struct loop_swap swap;
	struct buffer vram;
	struct buffer user;
};

FIXTURE_VARIANT(swap)
{
	bool kfd;
};

FIXTURE_VARIANT_ADD(swap, gem) { };
FIXTURE_VARIANT_ADD(swap, kfd) { .kfd = true, };

static int user_new(struct _test_data_swap *self, bool by_kfd)
{
	uint64_t addr = (uintptr_t)self->user.cpu, handle;
	int ret;

	if (!by_kfd)
		return buffer_user(&self->gpu, &self->user, SIZE, USER_VA,
				   AMDGPU_GEM_USERPTR_REGISTER);
	ret = kfd_alloc(&self->kfd, USER_VA, SIZE,
			KFD_IOC_ALLOC_MEM_FLAGS_USERPTR |
			KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, &addr, &handle);
	return ret ? ret : kfd_map(&self->kfd, handle);
}

FIXTURE_SETUP(swap)
{
	stay_on_this_cpu();
	self->swap.loop = -1;
	self->kfd.fd = -1;
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (!(self->gpu.info.features & AMDGPU_SDMA_FEATURE_USERPTR))
		SKIP(return, "no user pointers");
	if (variant->kfd && kfd_open(&self->kfd, &self->gpu))
		SKIP(return, "the compute driver does not have this GPU");
	if (loop_swap_open(&self->swap))
		SKIP(return, "no swap: it takes root, and the loop module");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	self->user.cpu = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->user.cpu);
	ASSERT_EQ(0, madvise(self->user.cpu, SIZE, MADV_NOHUGEPAGE));
	memset(self->user.cpu, 0, SIZE);
	ASSERT_EQ(0, user_new(self, variant->kfd));
}

FIXTURE_TEARDOWN(swap)
{
	loop_swap_close(&self->swap);
	if (self->kfd.fd >= 0)
		close(self->kfd.fd);
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

/*
 * GEM's pages stay in swap until they are accessed. A worker of amdkfd brings
 * its pages back in a moment, dirty: pages accessed at once can still be clean.
 */
static bool take_pages(struct _test_data_swap *self, bool by_kfd)
{
	return by_kfd ? !madvise(self->user.cpu, SIZE, MADV_PAGEOUT) :
			swap_out(self->user.cpu, SIZE);
}

static int copy(struct _test_data_swap *self, uint64_t src, uint64_t dst)
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(src, dst, SIZE);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	return batch_run(&self->gpu, &batch);
}

TEST_F_TIMEOUT(swap, written_survives, 200)
{
	unsigned int round;

	for (round = 0; round < ROUNDS; round++) {
		memset(self->user.cpu, ~round, SIZE);
		memset(self->vram.cpu, round, SIZE);
		ASSERT_TRUE(take_pages(self, variant->kfd));
		ASSERT_TRUE(all_are(self->user.cpu, SIZE, ~round));
		ASSERT_EQ(0, copy(self, VRAM_VA, USER_VA));
		ASSERT_TRUE(take_pages(self, variant->kfd));
		ASSERT_TRUE(all_are(self->user.cpu, SIZE, round))
			TH_LOG("round %u", round);
	}
}

TEST_F_TIMEOUT(swap, read_from_swap, 200)
{
	memset(self->user.cpu, 0x77, SIZE);
	ASSERT_TRUE(take_pages(self, variant->kfd));
	ASSERT_EQ(0, copy(self, USER_VA, VRAM_VA));
	EXPECT_TRUE(all_are(self->vram.cpu, SIZE, 0x77));
}

TEST_HARNESS_MAIN
