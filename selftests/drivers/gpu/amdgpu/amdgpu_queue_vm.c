// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA queues of a process do not reach unmapped memory, whichever driver
 * unmapped it: their VM is that of a DRM file, too. See kfd_svm.h for GPU=.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_import.h"
#include "kfd_svm.h"

#define LEN	(4 * SVM_PAGE)

/* Interval, in seconds, of the limit on fault messages; 0: no limit */
#define RATELIMIT	"/proc/sys/kernel/printk_ratelimit"

FIXTURE(queue_vm) {
	struct svm svm;
	struct svm_gpu *at;
	struct gpu gpu;
	struct svm_queue queue;
	struct buffer b, ib;
	char *to;
	int kmsg, faults;
};

FIXTURE_SETUP(queue_vm)
{
	self->svm.kfd = -1;
	if (svm_find(&self->svm))
		SKIP(return, "no KFD");
	self->kmsg = kmsg_open();
	self->faults = kmsg_open();
	if (self->kmsg < 0)
		SKIP(return, "the kernel's log is not readable");
	ASSERT_EQ(0, write_file(RATELIMIT, "0"));
	/* amdkfd reports faults by this signal if no thread waits for events */
	signal(SIGSEGV, SIG_IGN);
	self->at = &self->svm.gpu[0];
	ASSERT_EQ(0, open_gpu(&self->gpu, self->at->pci));
	self->at->drm = self->gpu.fd;
	ASSERT_EQ(0, svm_acquire(&self->svm, self->at));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->ib, 4096,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, svm_queue_open(&self->svm, self->at, &self->queue));
	self->to = svm_map(LEN);
	ASSERT_NE(NULL, self->to);
	ASSERT_EQ(0, svm_access(&self->svm, self->to, LEN, self->at));
}

FIXTURE_TEARDOWN(queue_vm)
{
	if (self->svm.kfd < 0 || self->kmsg < 0)
		return;
	svm_close(&self->svm);
	write_file(RATELIMIT, "5");
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

static int copy(FIXTURE_DATA(queue_vm) *self)
{
	memset(self->to, 0, LEN);
	return svm_queue_copy(&self->queue, (void *)self->b.va, self->to, LEN);
}

/* The queue reads the buffer, so that TLBs have its translations. */
static bool is_copied(FIXTURE_DATA(queue_vm) *self)
{
	pattern_fill(self->b.cpu, LEN, 1);
	return !copy(self) && pattern_check(self->to, LEN, 1) == -1;
}

static bool new_buffer_is_copied(FIXTURE_DATA(queue_vm) *self)
{
	return !new_mapped_buffer(&self->gpu, &self->b, LEN,
				  AMDGPU_GEM_DOMAIN_VRAM) && is_copied(self);
}

/* A fault may end the queue. */
static bool queue_faults(FIXTURE_DATA(queue_vm) *self)
{
	char address[32];

	snprintf(address, sizeof(address), "address 0x%016llx",
		 (unsigned long long)self->b.va);
	svm_queue_start_copy(&self->queue, (void *)self->b.va, self->to, LEN);
	return kmsg_comes(self->faults, self->at->pci, address);
}

static int unmap(FIXTURE_DATA(queue_vm) *self, uint32_t flags)
{
	return gem_va(&self->gpu, &self->b, AMDGPU_VA_OP_UNMAP, flags,
		      self->b.va, LEN);
}

TEST_F_TIMEOUT(queue_vm, unmapped, 60)
{
	ASSERT_TRUE(new_buffer_is_copied(self));
	ASSERT_EQ(0, unmap(self, 0));
	EXPECT_TRUE(queue_faults(self));
}

/* The next job has the page tables cleared. */
TEST_F_TIMEOUT(queue_vm, unmapped_later, 60)
{
	struct buffer *all[] = { &self->ib };

	ASSERT_TRUE(new_buffer_is_copied(self));
	ASSERT_EQ(0, unmap(self, AMDGPU_VM_DELAY_UPDATE));
	memset(self->ib.cpu, 0, 32);
	ASSERT_EQ(0, run(&self->gpu, all, 1));
	EXPECT_TRUE(queue_faults(self));
}

/* The CPU's mapping keeps the buffer alive. */
TEST_F_TIMEOUT(queue_vm, closed, 60)
{
	ASSERT_TRUE(new_buffer_is_copied(self));
	ASSERT_EQ(0, free_buffer(&self->gpu, &self->b));
	EXPECT_TRUE(queue_faults(self));
}

/*
 * Page tables are evicted, so the queue is stopped. The driver does not update
 * them until it restores the queue, a tenth of a second later or more.
 */
TEST_F_TIMEOUT(queue_vm, closed_while_evicted, 60)
{
	ASSERT_TRUE(new_buffer_is_copied(self));
	ASSERT_EQ(0, evict_vram(self->at->pci));
	ASSERT_EQ(0, free_buffer(&self->gpu, &self->b));
	EXPECT_TRUE(queue_faults(self));
}

/* The same with memory of the process. On a slow machine, tables may be back. */
TEST_F_TIMEOUT(queue_vm, svm_unmapped_while_evicted, 60)
{
	self->b.cpu = svm_map(LEN);
	self->b.va = (uintptr_t)self->b.cpu;
	ASSERT_NE(NULL, self->b.cpu);
	ASSERT_EQ(0, svm_access(&self->svm, self->b.cpu, LEN, self->at));
	ASSERT_TRUE(is_copied(self));
	ASSERT_EQ(0, evict_vram(self->at->pci));
	ASSERT_EQ(0, munmap(self->b.cpu, LEN));
	EXPECT_TRUE(queue_faults(self));
}

/*
 * Memory of amdkfd that the DRM file maps at another address, too. The file
 * closes it first: its mapping is removed when amdkfd frees the memory.
 */
TEST_F_TIMEOUT(queue_vm, freed, 60)
{
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.device_ids_array_ptr = (uintptr_t)&self->at->id,
		.n_devices = 1,
	};
	struct kfd_ioctl_unmap_memory_from_gpu_args unmap = {
		.device_ids_array_ptr = (uintptr_t)&self->at->id,
		.n_devices = 1,
	};
	struct kfd_ioctl_free_memory_of_gpu_args free = {};
	const int kfd = self->svm.kfd;
	uint64_t handle = 0;
	int fd = svm_export_vram(&self->svm, self->at, LEN, &handle);

	ASSERT_LE(0, fd);
	map.handle = handle;
	unmap.handle = handle;
	free.handle = handle;
	ASSERT_EQ(0, ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map));
	ASSERT_EQ(0, import_fd(&self->gpu, fd, LEN, &self->b));
	ASSERT_EQ(0, map_gpu(&self->gpu, &self->b));
	self->b.cpu = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);
	ASSERT_NE(MAP_FAILED, self->b.cpu);
	ASSERT_EQ(0, free_buffer(&self->gpu, &self->b));
	ASSERT_EQ(0, ioctl(kfd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &unmap));
	ASSERT_TRUE(is_copied(self));
	ASSERT_EQ(0, ioctl(kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &free));
	EXPECT_TRUE(queue_faults(self));
}

TEST_HARNESS_MAIN
