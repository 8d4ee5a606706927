// SPDX-License-Identifier: GPL-2.0
/*
 * A process of the compute driver imports a buffer of one GPU into the VM of
 * its queues on another GPU. Another file owns the buffer and moves it
 * repeatedly: the queues see it wherever it is, never its old place.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_import.h"
#include "kfd_svm.h"

#define SIZE	(256UL * 1024)

FIXTURE(import_kfd) {
	struct svm svm;
	struct svm_queue queue;
	struct gpu owner, user;
	struct buffer ib, shared, user_ib, theirs;
	uint32_t *out;
	uint64_t moved;
	int kmsg;
};

FIXTURE_VARIANT(import_kfd) {
	bool early;	/* imported before amdkfd gets the VM */
};

FIXTURE_VARIANT_ADD(import_kfd, into_its_vm) { .early = false };
FIXTURE_VARIANT_ADD(import_kfd, before_it_has_the_vm) { .early = true };

static int import_shared(FIXTURE_DATA(import_kfd) *self)
{
	self->moved = bytes_moved(&self->owner);
	return import(&self->owner, &self->shared, &self->user, &self->theirs);
}

FIXTURE_SETUP(import_kfd)
{
	struct svm *svm = &self->svm;
	struct svm_gpu *gpu = &svm->gpu[1];

	if (svm_find(svm))
		SKIP(return, "no KFD");
	if (svm->nr < 2)
		SKIP(return, "needs two GPUs");
	self->kmsg = kmsg_open();
	ASSERT_EQ(0, open_gpu(&self->owner, svm->gpu[0].pci));
	if (is_apu(&self->owner))
		SKIP(return, "the first GPU is an APU");
	ASSERT_EQ(0, new_mapped_buffer(&self->owner, &self->ib, 4096,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, new_mapped_buffer(&self->owner, &self->shared, SIZE,
				       AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, open_gpu(&self->user, gpu->pci));
	gpu->drm = self->user.fd;
	if (variant->early)
		ASSERT_EQ(0, import_shared(self));
	ASSERT_EQ(0, svm_acquire(svm, &svm->gpu[0]));
	ASSERT_EQ(0, svm_acquire(svm, gpu));
	if (!variant->early)
		ASSERT_EQ(0, import_shared(self));
	ASSERT_EQ(0, new_mapped_buffer(&self->user, &self->user_ib, 4096,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, svm_queue_open(svm, gpu, &self->queue));
	self->out = svm_map(SIZE);
	ASSERT_NE(NULL, self->out);
	ASSERT_EQ(0, svm_access(svm, self->out, SIZE, gpu));
}

FIXTURE_TEARDOWN(import_kfd)
{
	if (self->svm.kfd < 0)
		return;
	svm_close(&self->svm);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

static int use_by_job(FIXTURE_DATA(import_kfd) *self)
{
	struct buffer *all[] = { &self->user_ib, &self->theirs };

	memset(self->user_ib.cpu, 0, 32);
	return run(&self->user, all, 2);
}

/* Does the queue see what the CPU has written? */
static int use_by_queue(FIXTURE_DATA(import_kfd) *self, uint32_t seed)
{
	int ret;

	pattern_fill(self->shared.cpu, SIZE, seed);
	memset(self->out, 0, SIZE);
	ret = svm_queue_copy(&self->queue, (void *)self->theirs.va, self->out,
			     SIZE);
	return ret ? ret : pattern_check(self->out, SIZE, seed);
}

TEST_F_TIMEOUT(import_kfd, moves_under_queues, 300)
{
	/* Jobs move the buffer to their place and update the page tables. */
	ASSERT_EQ(0, use_by_job(self));
	ASSERT_EQ(-1, use_by_queue(self, 1));
	for (int round = 0; round < 6; round++) {
		ASSERT_EQ(0, move_buffer(&self->owner, &self->ib, &self->shared,
					 round % 2 ? AMDGPU_GEM_DOMAIN_VRAM :
						     AMDGPU_GEM_DOMAIN_GTT));
		ASSERT_EQ(-1, use_by_queue(self, 2 + round));
	}
}

TEST_F(import_kfd, stays_where_xgmi_reaches_it)
{
	if (!gpu_linked(self->svm.gpu[0].pci))
		SKIP(return, "XGMI does not link the GPUs");
	ASSERT_EQ(0, use_by_job(self));
	ASSERT_EQ(-1, use_by_queue(self, 1));
	EXPECT_EQ(self->moved, bytes_moved(&self->owner));
}

/* The buffer is in system memory when it is imported. */
TEST_F(import_kfd, placed_later)
{
	ASSERT_EQ(0, new_mapped_buffer(&self->owner, &self->shared, SIZE,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, import(&self->owner, &self->shared, &self->user,
			    &self->theirs));
	ASSERT_EQ(-1, use_by_queue(self, 1));
	ASSERT_EQ(0, move_buffer(&self->owner, &self->ib, &self->shared,
				 AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, use_by_job(self));
	ASSERT_EQ(-1, use_by_queue(self, 2));
}

/* Video memory of amdkfd that its own process imports and then frees. */
TEST_F_TIMEOUT(import_kfd, freed_by_its_owner, 120)
{
	struct kfd_ioctl_free_memory_of_gpu_args free = {};
	struct buffer same;
	uint64_t handle = 0;
	int fd = svm_export_vram(&self->svm, &self->svm.gpu[0], SIZE, &handle);

	ASSERT_LE(0, fd);
	free.handle = handle;
	ASSERT_EQ(0, import_fd(&self->user, fd, SIZE, &self->theirs));
	ASSERT_EQ(0, map_gpu(&self->user, &self->theirs));
	self->shared.cpu = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
				fd, 0);
	ASSERT_NE(MAP_FAILED, self->shared.cpu);
	ASSERT_EQ(0, use_by_job(self));
	ASSERT_EQ(-1, use_by_queue(self, 1));
	ASSERT_EQ(0, ioctl(self->svm.kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &free));
	ASSERT_EQ(0, import_fd(&self->owner, fd, SIZE, &same));
	ASSERT_EQ(0, move_buffer(&self->owner, &self->ib, &same,
				 AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(-1, use_by_queue(self, 2));
}

TEST_HARNESS_MAIN
