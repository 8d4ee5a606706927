// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on SVM memory: addresses of the process, whose pages are in
 * system memory or in the GPU and may move at any time. A batch reads and
 * writes the pages that the process has, where they are, or the call fails and
 * says why. See sdma_svm_waits.c for memory that changes while a batch uses it.
 */
#include <linux/kfd_sysfs.h>
#include <sys/wait.h>

#include "sdma_evict.h"
#include "sdma_prepared.h"
#include "sdma_svm_test.h"

/* Offered if the compute driver has SVM; without it, all other tests skip. */
TEST(offered)
{
	struct gpu gpu;
	int node;

	if (gpu_open(&gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	node = kfd_node_of(gpu.name);
	if (node < 0)
		SKIP(return, "the compute driver does not have this GPU");
	EXPECT_EQ(!!(kfd_property(node, "properties", "capability") &
		     HSA_CAP_SVMAPI_SUPPORTED),
		  !!(gpu.info.features & AMDGPU_SDMA_FEATURE_SVM));
	close(gpu.fd);
}

TEST_F(svm, system_source)
{
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	/* the same window */
	self->at[0] ^= 1;
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(self->want[0] ^ 1, self->vram.cpu[0]);
	EXPECT_EQ(0, svm_away(&self->svm, self->at, SIZE));
}

TEST_F(svm, system_destination)
{
	memcpy(self->vram.cpu, self->want, SIZE);
	memset(self->at + LEN, 0x11, SIZE - LEN);
	ASSERT_EQ(0, copy_in(self));
	EXPECT_EQ(0, memcmp(self->at, self->want, LEN));
	EXPECT_EQ(0x11, self->at[LEN]);
	EXPECT_EQ(0, svm_away(&self->svm, self->at, SIZE));
}

/* Pages in video memory are read and written there. */
TEST_F(svm, video_memory)
{
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, send_away(self));
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	randomize(self->want, SIZE, &self->seed);
	memcpy(self->vram.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy_in(self));
	EXPECT_EQ(0, svm_here(&self->svm, self->at, SIZE));
	/* the CPU's access brings it back */
	EXPECT_EQ(0, memcmp(self->at, self->want, LEN));
}

/* A batch finds the memory wherever it moves to. */
TEST_F(svm, follows)
{
	unsigned int round;

	for (round = 0; round < 8; round++) {
		randomize(self->want, SIZE, &self->seed);
		memcpy(self->at, self->want, SIZE);
		if (round % 2)
			ASSERT_EQ(0, send_away(self));
		ASSERT_EQ(0, copy_out(self)) TH_LOG("round %u", round);
		ASSERT_EQ(0, memcmp(self->vram.cpu, self->want, LEN))
			TH_LOG("round %u", round);
	}
}

/* Some pages are in system memory, some in video memory. */
TEST_F_TIMEOUT(svm, mixed, 200)
{
	const struct kfd_ioctl_svm_attribute one_by_one = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 0
	}, many = { KFD_IOCTL_SVM_ATTR_GRANULARITY, 9 };
	size_t i;

	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, svm_set(&self->svm, self->at, SIZE, &one_by_one, 1));
	ASSERT_EQ(0, send_away(self));
	for (i = 0; i < SIZE; i += 7 * PAGE)
		*(volatile uint8_t *)(self->at + i);
	ASSERT_LT(0, svm_here(&self->svm, self->at, SIZE));
	ASSERT_LT(0, svm_away(&self->svm, self->at, SIZE));
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	randomize(self->want, SIZE, &self->seed);
	memcpy(self->vram.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy_in(self));
	/* without XNACK, all is mapped again for each page that comes back */
	ASSERT_EQ(0, svm_set(&self->svm, self->at, SIZE, &many, 1));
	EXPECT_EQ(0, memcmp(self->at, self->want, LEN));
}

/* Operations on SVM memory, at odd places too. */
TEST_F(svm, operations)
{
	const uint64_t at = va(self->at);
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(at + 3, at + MIB + 77, 300000),
		swap_desc(at + 512 * KIB, VRAM_VA, 64 * KIB),
		fill_desc(at + 2 * MIB, 4096, 0x7e7e7e7e),
		write_desc(at + 3 * MIB, 0x1122334455667788),
		wait_eq(at + 3 * MIB, 0x55667788, wait_ns(&self->gpu, 100)),
		recorded(fill_desc(at + 3 * MIB + PAGE, 8, 1),
			 at + 3 * MIB + 2 * PAGE),
	};
	const struct drm_amdgpu_sdma_record *record =
		(void *)(self->at + 3 * MIB + 2 * PAGE);

	memcpy(self->at, self->want, MIB);
	memset(self->vram.cpu, 0x22, SIZE);
	ASSERT_EQ(0, run_descs(self, d, 6, NULL));
	EXPECT_EQ(0, memcmp(self->at + MIB + 77, self->want + 3, 300000));
	EXPECT_EQ(0, self->at[MIB + 76]);
	EXPECT_EQ(0, self->at[MIB + 77 + 300000]);
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want + 512 * KIB, 64 * KIB));
	EXPECT_EQ(0x22, self->at[512 * KIB]);
	EXPECT_EQ(0x7e, self->at[2 * MIB + 4095]);
	EXPECT_EQ(0x1122334455667788, *(uint64_t *)(self->at + 3 * MIB));
	EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, record->status);
}

/* What the call reports on where it reads and writes. */
TEST_F(svm, path)
{
	const struct drm_amdgpu_sdma_desc d =
		copy_desc(va(self->at) + 5, VRAM_VA, 3 * MIB);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(3 * MIB, batch.system_bytes);
	EXPECT_EQ(3 * MIB, batch.vram_bytes);
	EXPECT_EQ(0, batch.peer_bytes);
	/* records do not count for the path */
	batch.records = va(self->at) + 3 * MIB + PAGE;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(3 * MIB, batch.system_bytes);
	batch.records = 0;
	ASSERT_EQ(0, send_away(self));
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, batch.system_bytes);
	EXPECT_EQ(6 * MIB, batch.vram_bytes);
}

/* A batch's work decides where it runs, wherever the memory is. */
TEST_F(svm, auto_placement)
{
	const uint32_t all = self->gpu.info.engine_mask;
	struct drm_amdgpu_sdma_desc d = copy_desc(va(self->at), VRAM_VA, LEN);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	const int most = __builtin_popcount(all) < 2 ? 1 : 2;
	unsigned int away;

	batch.placement = AMDGPU_SDMA_PLACE_AUTO;
	batch.engine_mask = 0;
	memcpy(self->at, self->want, SIZE);
	for (away = 0; away < 2; away++) {
		if (away)
			ASSERT_EQ(0, send_away(self));
		d.size = 64 * KIB;
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		EXPECT_EQ(1, __builtin_popcount(batch.engines_used));
		d.size = LEN;
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		EXPECT_LE(most, __builtin_popcount(batch.engines_used));
		EXPECT_EQ(0, batch.engines_used & ~all);
		EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
		memset(self->vram.cpu, 0, SIZE);
	}
}

/* An ADD in system memory takes PCIe atomics, as in a buffer there. */
TEST_F(svm, add)
{
	const struct drm_amdgpu_sdma_desc d = add_desc(va(self->at) + 8, 5);
	uint64_t *word = (void *)self->at;
	int ret;

	word[1] = 7;
	ret = run_descs(self, &d, 1, NULL);
	if (ret != -EOPNOTSUPP) {
		ASSERT_EQ(0, ret);
		EXPECT_EQ(12, word[1]);
	}
	word[1] = 20;
	ASSERT_EQ(0, send_away(self));
	ASSERT_EQ(0, run_descs(self, &d, 1, NULL));
	EXPECT_EQ(25, word[1]);
}

/* Memory without pages. Without XNACK, the compute driver faults them in. */
TEST_F(svm, not_there)
{
	uint32_t index;

	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_DONTNEED));
	if (variant->xnack) {
		EXPECT_EQ(-ENXIO, copy_flags(self, VRAM_VA, va(self->at), LEN,
					     0, &index));
		EXPECT_EQ(1, index);
	} else {
		EXPECT_EQ(0, copy_in(self));
	}
	memcpy(self->vram.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy_flags(self, VRAM_VA, va(self->at), LEN,
				AMDGPU_SDMA_DESC_FAULT, &index));
	EXPECT_EQ(0, memcmp(self->at, self->want, LEN));
}

/* Memory that is not registered with the compute driver. */
TEST_F(svm, not_registered)
{
	uint8_t *at = svm_map(SIZE);
	uint32_t index;
	int ret;

	ASSERT_NE(NULL, at);
	memcpy(at, self->want, SIZE);
	EXPECT_EQ(-ENOENT, copy_flags(self, va(at), VRAM_VA, LEN, 0, &index));
	EXPECT_EQ(1, index);
	ret = copy_flags(self, va(at), VRAM_VA, LEN, AMDGPU_SDMA_DESC_FAULT,
			 &index);
	if (!variant->xnack) {
		EXPECT_EQ(-ENOENT, ret);
		return;
	}
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

TEST_F(svm, rights)
{
	const struct kfd_ioctl_svm_attribute read_only = {
		KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_RO
	};
	const struct kfd_ioctl_svm_attribute no_access = {
		KFD_IOCTL_SVM_ATTR_NO_ACCESS, self->kfd.id
	};
	const uint32_t fault = AMDGPU_SDMA_DESC_FAULT;
	uint32_t index;

	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, copy_in(self));
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, mprotect(self->at, SIZE, PROT_READ));
	EXPECT_EQ(-EACCES, copy_flags(self, VRAM_VA, va(self->at), LEN, fault,
				      &index));
	EXPECT_EQ(1, index);
	EXPECT_EQ(0, memcmp(self->at, self->want, SIZE));
	EXPECT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	ASSERT_EQ(0, mprotect(self->at, SIZE, PROT_NONE));
	EXPECT_EQ(-EACCES, copy_flags(self, va(self->at), VRAM_VA, LEN, fault,
				      &index));
	ASSERT_EQ(0, mprotect(self->at, SIZE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, copy_in(self));

	ASSERT_EQ(0, svm_set(&self->svm, self->at, SIZE, &read_only, 1));
	EXPECT_EQ(-EACCES, copy_in(self));
	EXPECT_EQ(0, copy_out(self));
	ASSERT_EQ(0, svm_set(&self->svm, self->at, SIZE, &no_access, 1));
	EXPECT_EQ(-EACCES, copy_out(self));
	EXPECT_EQ(-EACCES, copy_flags(self, va(self->at), VRAM_VA, LEN, fault,
				      &index));
}

/* A page without access does not hinder access to the others. */
TEST_F(svm, end_without_access)
{
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, mprotect(self->at + LEN, PAGE, PROT_NONE));
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	EXPECT_EQ(-EACCES, copy(self, va(self->at) + LEN, VRAM_VA, PAGE));
}

/* The rest of a huge page, when an attribute of one page in it is set. */
TEST_F(svm, split_huge_page)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 5
	};
	uint8_t *at = svm_map(SVM_ALIGN);

	ASSERT_NE(NULL, at);
	madvise(at, SVM_ALIGN, MADV_HUGEPAGE);
	memcpy(at, self->want, SVM_ALIGN);
	ASSERT_EQ(0, svm_access(&self->svm, at, SVM_ALIGN,
				&self->svm.gpu[0]));
	ASSERT_EQ(0, copy(self, va(at), VRAM_VA, SVM_ALIGN));
	memset(self->vram.cpu, 0, SIZE);
	ASSERT_EQ(0, svm_set(&self->svm, at + SVM_ALIGN / 2, PAGE, &attr, 1));
	ASSERT_EQ(0, copy(self, va(at), VRAM_VA, SVM_ALIGN));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, SVM_ALIGN));
}

/* Memory that is unmapped, and then mapped again with other pages. */
TEST_F(svm, unmapped)
{
	uint32_t index;
	int ret;

	ASSERT_EQ(0, copy_out(self));
	ASSERT_EQ(0, munmap(self->at, SIZE));
	memset(self->vram.cpu, 0x33, SIZE);
	ret = copy_flags(self, va(self->at), VRAM_VA, LEN,
			 AMDGPU_SDMA_DESC_FAULT, &index);
	EXPECT_TRUE(ret == -EFAULT || ret == -ENOENT) TH_LOG("%d", ret);
	EXPECT_EQ(1, index);
	EXPECT_EQ(0x33, self->vram.cpu[0]);
	ASSERT_EQ(self->at, mmap(self->at, SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				 0));
	memset(self->at, 0x44, SIZE);
	ASSERT_EQ(0, svm_access(&self->svm, self->at, SIZE,
				&self->svm.gpu[0]));
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0x44, self->vram.cpu[0]);
	EXPECT_EQ(0x44, self->vram.cpu[LEN - 1]);
}

/* A page in the middle is unmapped. */
TEST_F(svm, hole)
{
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, copy_out(self));
	ASSERT_EQ(0, munmap(self->at + MIB, PAGE));
	memset(self->vram.cpu, 0, SIZE);
	EXPECT_GT(0, copy_out(self));
	EXPECT_EQ(0, copy(self, va(self->at), VRAM_VA, MIB));
	EXPECT_EQ(0, copy(self, va(self->at) + MIB + PAGE, VRAM_VA + MIB + PAGE,
			  MIB));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, MIB));
	EXPECT_EQ(0, memcmp(self->vram.cpu + MIB + PAGE,
			    self->want + MIB + PAGE, MIB));
}

/* A child has the file, but not the parent's memory. */
TEST_F(svm, fork)
{
	const struct drm_amdgpu_sdma_desc out =
		copy_desc(va(self->at), VRAM_VA, LEN);
	int go[2], status;
	uint32_t handle;
	pid_t child;
	char c;

	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, copy_out(self));
	ASSERT_EQ(0, prepare(&self->gpu, &out, 1, &handle));
	ASSERT_EQ(0, pipe(go));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		close(go[1]);
		if (copy_out(self) != -ENOENT ||
		    run_prepared(&self->gpu, handle) != -ESTALE)
			_exit(3);
		if (read(go[0], &c, 1))
			_exit(2);
		_exit(!!memcmp(self->at, self->want, SIZE));
	}
	memset(self->vram.cpu, 0x55, SIZE);
	/* pages that both share cannot be written before they are copied */
	EXPECT_EQ(variant->xnack ? -ENXIO : 0, copy_in(self));
	ASSERT_EQ(0, copy_flags(self, VRAM_VA, va(self->at), LEN,
				AMDGPU_SDMA_DESC_FAULT, NULL));
	EXPECT_EQ(0x55, self->at[0]);
	EXPECT_EQ(0x55, self->at[LEN - 1]);
	close(go[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

/*
 * One window has pages that can only be read and pages that can be written. One
 * batch reads and writes them.
 */
TEST_F(svm, mixed_rights)
{
	const uint64_t at = va(self->at);
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(at + 300 * PAGE, at, PAGE),
		copy_desc(at + 301 * PAGE, at + 5 * PAGE, PAGE),
		fill_desc(at + 3 * PAGE, PAGE, 0x44444444),
	};
	size_t i;

	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_NOHUGEPAGE));
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_DONTNEED));
	for (i = 0; i < SIZE; i += PAGE)
		*(volatile uint8_t *)(self->at + i);
	memset(self->at, 0x33, 100 * PAGE);
	ASSERT_EQ(0, run_descs(self, d, 3, NULL));
	EXPECT_TRUE(all_are(self->at, PAGE, 0));
	EXPECT_TRUE(all_are(self->at + PAGE, 2 * PAGE, 0x33));
	EXPECT_TRUE(all_are(self->at + 3 * PAGE, PAGE, 0x44));
	EXPECT_TRUE(all_are(self->at + 5 * PAGE, PAGE, 0));
	EXPECT_TRUE(all_are(self->at + 6 * PAGE, 94 * PAGE, 0x33));
}

/* A child registers memory of its parent, which is in video memory. */
TEST_F(svm, memory_of_the_parent)
{
	struct _test_data_svm child = { .kfd.fd = -1 };
	int status, ret;
	pid_t pid;

	if (!variant->xnack)
		SKIP(return, "the compute driver would bring it back");
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, send_away(self));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (gpu_open(&child.gpu, 0) || kfd_open(&child.kfd, &child.gpu) ||
		    svm_enable_xnack(child.kfd.fd))
			_exit(1);
		child.svm = svm_of(&child.kfd, &child.gpu);
		child.at = self->at;
		if (buffer_map(&child.gpu, &child.vram, SIZE,
			       AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA) ||
		    svm_access(&child.svm, child.at, SIZE, &child.svm.gpu[0]))
			_exit(2);
		ret = copy_out(&child);
		if (ret != -ENXIO)
			_exit(3);
		/* the compute driver cannot move it either */
		_exit(copy_flags(&child, va(child.at), VRAM_VA, LEN,
				 AMDGPU_SDMA_DESC_FAULT, NULL) != -EFAULT);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, copy_flags(self, va(self->at), VRAM_VA, LEN,
				AMDGPU_SDMA_DESC_FAULT, NULL));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

/* A buffer and SVM memory cannot be at the same address. */
TEST_F(svm, buffer_in_its_place)
{
	struct buffer b;

	ASSERT_EQ(0, buffer_new(&self->gpu, &b, SIZE, AMDGPU_GEM_DOMAIN_VRAM));
	EXPECT_EQ(-EADDRINUSE, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_MAP,
					 va(self->at) + SIZE - PAGE, GPU_RW));
	EXPECT_EQ(-EADDRINUSE, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_REPLACE,
					 va(self->at), GPU_RW));
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	ASSERT_EQ(0, munmap(self->at, SIZE));
	EXPECT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_MAP, va(self->at),
			       GPU_RW));
}

/*
 * Registers memory, from @offset on, between a buffer's allocation and its
 * mapping. Returns the result of the mapping.
 */
static int map_over_svm(struct _test_data_svm *self, uint32_t flags,
			uint64_t offset)
{
	uint64_t handle, place = 0;
	int ret;

	if (munmap(self->at, SIZE))
		return -errno;
	ret = kfd_alloc(&self->kfd, va(self->at), SIZE,
			flags | KFD_IOC_ALLOC_MEM_FLAGS_VRAM, &place, &handle);
	if (ret)
		return ret;
	if (mmap(self->at, SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != self->at)
		return -errno;
	memcpy(self->at, self->want, SIZE);
	ret = svm_access(&self->svm, self->at + offset, SIZE - offset,
			 &self->svm.gpu[0]);
	return ret ? ret : kfd_map(&self->kfd, handle);
}

TEST_F(svm, buffer_of_kfd_in_its_place)
{
	EXPECT_EQ(-EADDRINUSE, map_over_svm(self, 0, 0));
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

/* The buffer of a queue, which is mapped twice. */
TEST_F(svm, buffer_of_a_queue_in_its_place)
{
	EXPECT_EQ(-EADDRINUSE,
		  map_over_svm(self, KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM,
			       SIZE / 2));
}

/* Memory in the place of a buffer whose unmapping is delayed. */
TEST_F(svm, where_a_buffer_was)
{
	struct buffer b;

	ASSERT_EQ(0, munmap(self->at, SIZE));
	ASSERT_EQ(0, buffer_map(&self->gpu, &b, SIZE, AMDGPU_GEM_DOMAIN_VRAM,
				va(self->at)));
	ASSERT_EQ(0, copy_in(self));
	ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_UNMAP, va(self->at),
			       AMDGPU_VM_DELAY_UPDATE));
	ASSERT_EQ(self->at, mmap(self->at, SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				 0));
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, svm_access(&self->svm, self->at, SIZE,
				&self->svm.gpu[0]));
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

/* Memory that is in another GPU, but prefers system memory. */
TEST_F(svm, prefers_system_memory)
{
	const struct kfd_ioctl_svm_attribute prefer = {
		KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, KFD_IOCTL_SVM_LOCATION_SYSMEM
	};
	struct kfd kfd = { .fd = self->kfd.fd };
	struct svm_gpu other;
	struct gpu peer;

	if (gpu_open(&peer, 1))
		SKIP(return, "one GPU only");
	ASSERT_EQ(0, kfd_acquire(&kfd, &peer));
	other = svm_of(&kfd, &peer).gpu[0];
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, svm_prefetch(&self->svm, self->at, SIZE, &other));
	ASSERT_EQ(0, svm_set(&self->svm, self->at, SIZE, &prefer, 1));
	ASSERT_EQ(0, copy_flags(self, va(self->at), VRAM_VA, PAGE,
				AMDGPU_SDMA_DESC_FAULT, NULL));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	close(peer.fd);
}

/* Pages that the process has only read are the zero page: never written. */
TEST_F(svm, zero_page)
{
	size_t i;

	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_DONTNEED));
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_NOHUGEPAGE));
	for (i = 0; i < SIZE; i += PAGE)
		*(volatile uint8_t *)(self->at + i);
	memset(self->vram.cpu, 0x66, SIZE);
	EXPECT_EQ(variant->xnack ? -ENXIO : 0, copy_in(self));
	ASSERT_EQ(0, copy_flags(self, VRAM_VA, va(self->at), LEN,
				AMDGPU_SDMA_DESC_FAULT, NULL));
	EXPECT_EQ(0x66, self->at[0]);
	EXPECT_EQ(0x66, self->at[LEN - 1]);
}

/* Prepared once, a batch finds the current memory in each run. */
TEST_F(svm, prepared)
{
	const struct drm_amdgpu_sdma_desc d =
		faulting(copy_desc(va(self->at), VRAM_VA, LEN));
	struct drm_amdgpu_sdma_batch run;
	unsigned int round;
	uint32_t h;

	ASSERT_EQ(0, prepare(&self->gpu, &d, 1, &h));
	for (round = 0; round < 6; round++) {
		randomize(self->want, SIZE, &self->seed);
		memcpy(self->at, self->want, SIZE);
		if (round % 3 == 1)
			ASSERT_EQ(0, send_away(self));
		if (round % 3 == 2)
			ASSERT_EQ(0, mprotect(self->at, SIZE, PROT_READ));
		run = run_of(&self->gpu, h);
		run.flags = AMDGPU_SDMA_BATCH_PATH;
		ASSERT_EQ(0, batch_run(&self->gpu, &run));
		EXPECT_EQ(round % 3 == 1 ? 0 : LEN, run.system_bytes);
		EXPECT_EQ(2 * LEN, run.system_bytes + run.vram_bytes);
		ASSERT_EQ(0, memcmp(self->vram.cpu, self->want, LEN))
			TH_LOG("round %u", round);
		ASSERT_EQ(0, mprotect(self->at, SIZE, PROT_READ | PROT_WRITE));
	}
	ASSERT_EQ(0, munmap(self->at, SIZE));
	EXPECT_EQ(-ESTALE, run_prepared(&self->gpu, h));
}

/* Other files fill video memory: memory that had to leave is found again. */
TEST_F_TIMEOUT(svm, evicted, 120)
{
	unsigned int round;
	struct evict e;
	int ret;

	for (round = 0; round < 3; round++) {
		memcpy(self->at, self->want, SIZE);
		ASSERT_EQ(0, send_away(self));
		ret = evict_open(&e);
		if (ret == -E2BIG)
			SKIP(return, "too much video memory");
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, copy_out(self));
		EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
		ASSERT_LE(0, evict_once(&e));
		memset(self->vram.cpu, 0, SIZE);
		ASSERT_EQ(0, copy_flags(self, va(self->at), VRAM_VA, LEN,
					AMDGPU_SDMA_DESC_FAULT, NULL));
		EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
		evict_close(&e);
	}
}

/* Memory in another GPU, which this one cannot reach: they are not linked. */
TEST_F(svm, peer)
{
	const struct kfd_ioctl_svm_attribute one_by_one = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 0
	};
	struct kfd kfd = { .fd = self->kfd.fd };
	struct svm_gpu other;
	struct gpu peer;
	uint32_t index;

	if (gpu_open(&peer, 1))
		SKIP(return, "one GPU only");
	if (gpu_linked(peer.name))
		SKIP(return, "the GPUs are linked");
	ASSERT_EQ(0, kfd_acquire(&kfd, &peer));
	other = svm_of(&kfd, &peer).gpu[0];
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, svm_set(&self->svm, self->at, SIZE, &one_by_one, 1));
	ASSERT_EQ(0, svm_prefetch(&self->svm, self->at, SIZE, &other));
	/* without retry faults it is placed where both GPUs reach it */
	if (svm_away(&self->svm, self->at, SIZE)) {
		EXPECT_EQ(-ENXIO, copy_flags(self, va(self->at), VRAM_VA, LEN,
					     0, &index));
		EXPECT_EQ(1, index);
		/* nor a page that came back: its range is still there */
		EXPECT_EQ(self->want[PAGE], *(volatile uint8_t *)
					    (self->at + PAGE));
		EXPECT_EQ(1, svm_here(&self->svm, self->at, SIZE));
		EXPECT_EQ(-ENXIO, copy(self, va(self->at) + PAGE, VRAM_VA,
				       PAGE));
	}
	EXPECT_EQ(variant->xnack, !!svm_away(&self->svm, self->at, SIZE));
	ASSERT_EQ(0, copy_flags(self, va(self->at), VRAM_VA, LEN,
				AMDGPU_SDMA_DESC_FAULT, NULL));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	close(peer.fd);
}

/* Memory in a linked GPU is read and written there. */
TEST_F(svm, linked)
{
	const struct drm_amdgpu_sdma_desc out =
		copy_desc(va(self->at), VRAM_VA, LEN);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &out, 1);
	struct gpu peer;
	int ret;

	memcpy(self->at, self->want, SIZE);
	ret = send_to_linked(self, &peer);
	if (ret == -ENODEV)
		SKIP(return, "no other GPU is linked");
	ASSERT_EQ(0, ret);
	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(LEN, batch.peer_bytes);
	EXPECT_EQ(LEN, batch.vram_bytes);
	EXPECT_EQ(0, batch.system_bytes);
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	randomize(self->want, SIZE, &self->seed);
	memcpy(self->vram.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy_in(self));
	EXPECT_EQ(0, svm_here(&self->svm, self->at, SIZE));
	EXPECT_EQ(0, memcmp(self->at, self->want, LEN));
	/* the CPU has brought it back */
	ASSERT_EQ(0, copy_out(self));
	close(peer.fd);
}

TEST_HARNESS_MAIN
