// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on SVM memory: addresses of the process, whose pages are in system
 * memory or in that of the GPU and may move at any time. What a batch reads and
 * writes is what the process has there, where it is; or the call says why not.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "sdma_evict.h"
#include "sdma_hold.h"
#include "sdma_mover.h"
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
};

FIXTURE_VARIANT(svm)
{
	bool xnack;
};

FIXTURE_VARIANT_ADD(svm, no_xnack) { };
FIXTURE_VARIANT_ADD(svm, xnack) { .xnack = true, };

FIXTURE_SETUP(svm)
{
	self->seed = 1;
	self->kfd.fd = -1;
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (!(self->gpu.info.features & AMDGPU_SDMA_FEATURE_SVM))
		SKIP(return, "no SVM memory");
	if (kfd_open(&self->kfd, &self->gpu))
		SKIP(return, "the compute driver does not have this GPU");
	if (variant->xnack && svm_enable_xnack(&self->kfd))
		SKIP(return, "no retry faults");
	self->svm = svm_of(&self->kfd, &self->gpu);
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	ASSERT_EQ(0, svm_new(&self->svm, &self->at, SIZE));
	self->want = malloc(SIZE);
	ASSERT_NE(NULL, self->want);
	randomize(self->want, SIZE, &self->seed);
	memset(self->vram.cpu, 0, SIZE);
}

FIXTURE_TEARDOWN(svm)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
	if (self->kfd.fd >= 0)
		close(self->kfd.fd);
	free(self->want);
}

static uint64_t va(const void *at)
{
	return (uintptr_t)at;
}

static int run_descs(struct _test_data_svm *self,
		     const struct drm_amdgpu_sdma_desc *d, unsigned int n,
		     uint32_t *index)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, n);
	int ret = batch_run(&self->gpu, &batch);

	if (index)
		*index = batch.error_index;
	return ret;
}

/* One copy, the second descriptor. @index: of the one at fault. */
static int copy_flags(struct _test_data_svm *self, uint64_t src, uint64_t dst,
		      uint64_t size, uint32_t flags, uint32_t *index)
{
	struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA + SIZE - PAGE, 4, 0),
		copy_desc(src, dst, size),
	};

	d[1].flags = flags;
	return run_descs(self, d, 2, index);
}

static int copy(struct _test_data_svm *self, uint64_t src, uint64_t dst,
		uint64_t size)
{
	return copy_flags(self, src, dst, size, 0, NULL);
}

#define LEN	(SIZE - PAGE)

static int copy_in(struct _test_data_svm *self)
{
	return copy(self, VRAM_VA, va(self->at), LEN);
}

static int copy_out(struct _test_data_svm *self)
{
	return copy(self, va(self->at), VRAM_VA, LEN);
}

/* To video memory, all of it. */
static int send_away(struct _test_data_svm *self)
{
	int ret = svm_prefetch(&self->svm, self->at, SIZE, &self->svm.gpu[0]);

	if (ret)
		return ret;
	return svm_here(&self->svm, self->at, SIZE) ? -EXDEV : 0;
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

/* What is in video memory is read and written there. */
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
	/* the CPU brings it back */
	EXPECT_EQ(0, memcmp(self->at, self->want, LEN));
}

/* Wherever it goes, a batch finds it. */
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

/* Some pages are here, some are away. */
TEST_F_TIMEOUT(svm, mixed, 200)
{
	const struct kfd_ioctl_svm_attribute one_by_one = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 0
	};
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
	EXPECT_EQ(0, memcmp(self->at, self->want, LEN));
}

/* Within SVM memory, at odd places; all operations. */
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

/* What the call tells of where it reads and writes. */
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
	/* records are not of the path */
	batch.records = va(self->at) + 3 * MIB + PAGE;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(3 * MIB, batch.system_bytes);
	batch.records = 0;
	ASSERT_EQ(0, send_away(self));
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, batch.system_bytes);
	EXPECT_EQ(6 * MIB, batch.vram_bytes);
}

/* To add in system memory takes PCIe atomics, as in a buffer there. */
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

/* Memory that has no pages yet. Without XNACK, the compute driver gets them. */
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

/* Memory that nobody has told the compute driver of. */
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

/* What nobody may touch is no hindrance for the rest. */
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

/* Memory that is gone, and then is there again: other pages. */
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

/* A part in the middle is gone. */
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

/* A child has the file, and not the memory. */
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
	/* pages that both have cannot be written before they are copied */
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
 * Within the pages of one window, some that can be read only, some that can be
 * written: they are read and written by one batch.
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

/* A child that registers the memory it has from its parent, in video memory. */
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
		    svm_enable_xnack(&child.kfd))
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

/* A buffer and SVM memory cannot be at one address. */
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

/* Memory that is registered between a buffer's allocation and its mapping. */
TEST_F(svm, buffer_of_kfd_in_its_place)
{
	uint64_t handle, offset = 0;

	ASSERT_EQ(0, munmap(self->at, SIZE));
	ASSERT_EQ(0, kfd_alloc(&self->kfd, va(self->at), SIZE,
			       KFD_IOC_ALLOC_MEM_FLAGS_VRAM, &offset, &handle));
	ASSERT_EQ(self->at, mmap(self->at, SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				 0));
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, svm_access(&self->svm, self->at, SIZE,
				&self->svm.gpu[0]));
	EXPECT_EQ(-EADDRINUSE, kfd_map(&self->kfd, handle));
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

/* Memory where a buffer was that the page tables are to forget later. */
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

/* Two GPUs, and a place in one of them that is the other's only. */
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

/* Pages that the process has only read are zero, and nobody's to write to. */
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

/* Prepared once, a batch finds the memory of each moment. */
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

/* Others fill video memory: what has to leave waits, and is found again. */
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

/* Memory in another GPU, which this one does not reach: none links them. */
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
	/* without retry faults it is where both GPUs reach it */
	if (svm_away(&self->svm, self->at, SIZE)) {
		EXPECT_EQ(-ENXIO, copy_flags(self, va(self->at), VRAM_VA, LEN,
					     0, &index));
		EXPECT_EQ(1, index);
		/* nor a page that comes back, while its range is there */
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

/* To a GPU that is linked to this one, all of it. */
static int send_to_linked(struct _test_data_svm *self, struct gpu *peer)
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
	/* here, and there again */
	ASSERT_EQ(0, copy_out(self));
	close(peer.fd);
}

/* Blocks of a cache that is all over the place, into one buffer and back. */
#define BLOCKS		512
#define BLOCK		4096

TEST_F_TIMEOUT(svm, gather_and_scatter, 120)
{
	static struct drm_amdgpu_sdma_desc d[BLOCKS];
	struct svm_gpu *gpu = &self->svm.gpu[0];
	uint8_t *at[BLOCKS];
	unsigned int i;
	int ret;

	for (i = 0; i < BLOCKS; i++) {
		/* a page of its own for each, with nothing beside it */
		at[i] = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, at[i]);
		at[i] += PAGE;
		memcpy(at[i], self->want + i * BLOCK, BLOCK);
		if (i % 3)
			ret = svm_access(&self->svm, at[i], PAGE, gpu);
		else
			ret = svm_prefetch(&self->svm, at[i], PAGE, gpu);
		ASSERT_EQ(0, ret);
		d[i] = copy_desc(va(at[i]), VRAM_VA + i * BLOCK, BLOCK);
	}
	ASSERT_EQ(0, run_descs(self, d, BLOCKS, NULL));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, BLOCKS * BLOCK));
	randomize(self->want, SIZE, &self->seed);
	memcpy(self->vram.cpu, self->want, SIZE);
	for (i = 0; i < BLOCKS; i++)
		d[i] = copy_desc(VRAM_VA + i * BLOCK, va(at[i]), BLOCK);
	ASSERT_EQ(0, run_descs(self, d, BLOCKS, NULL));
	for (i = 0; i < BLOCKS; i++) {
		EXPECT_EQ(i % 3 ? 0 : 1, svm_away(&self->svm, at[i], PAGE));
		ASSERT_EQ(0, memcmp(at[i], self->want + i * BLOCK, BLOCK))
			TH_LOG("block %u", i);
	}
}

/* As many copies as a long context has blocks, layers and heads. */
#define MANY		50000
#define PIECE		64

TEST_F_TIMEOUT(svm, fifty_thousand, 200)
{
	struct drm_amdgpu_sdma_desc *d = calloc(MANY, sizeof(*d));
	unsigned int i;

	ASSERT_NE(NULL, d);
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, svm_prefetch(&self->svm, self->at, SIZE / 2,
				  &self->svm.gpu[0]));
	/* 39119 and 50000 have no common divisor: each place once */
	for (i = 0; i < MANY; i++)
		d[i] = copy_desc(va(self->at) + i * 39119ul % MANY * PIECE,
				 VRAM_VA + i * PIECE, PIECE);
	ASSERT_EQ(0, run_descs(self, d, MANY, NULL));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, memcmp(self->vram.cpu + i * PIECE, self->want +
				    i * 39119ul % MANY * PIECE, PIECE))
			TH_LOG("piece %u", i);
	}
	free(d);
}

/* Ways to take memory away that a batch uses. */
struct taker {
	pthread_t thread;
	struct _test_data_svm *self;
	void (*take)(struct _test_data_svm *self);
	bool done;
};

static void take_by_munmap(struct _test_data_svm *self)
{
	munmap(self->at, SIZE);
}

static void take_by_madvise(struct _test_data_svm *self)
{
	madvise(self->at + MIB, PAGE, MADV_DONTNEED);
}

static void take_by_mprotect(struct _test_data_svm *self)
{
	mprotect(self->at, SIZE, PROT_NONE);
}

static void take_by_migration(struct _test_data_svm *self)
{
	svm_prefetch(&self->svm, self->at, SIZE, &self->svm.gpu[0]);
}

static void take_by_touch(struct _test_data_svm *self)
{
	*(volatile uint8_t *)(self->at + 2 * MIB);
}

static void take_by_attribute(struct _test_data_svm *self)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_NO_ACCESS, self->kfd.id
	};

	svm_set(&self->svm, self->at, SIZE, &attr, 1);
}

/* To map it anew, with other flags. */
static void take_by_remap(struct _test_data_svm *self)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_EXEC
	};

	svm_set(&self->svm, self->at, SIZE, &attr, 1);
}

static void take_by_split(struct _test_data_svm *self)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 5
	};

	svm_set(&self->svm, self->at + MIB, MIB, &attr, 1);
}

static void *take(void *arg)
{
	struct taker *t = arg;

	t->take(t->self);
	__atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Two of them at once: the second waits too. */
static void takers_wait(struct __test_metadata *_metadata,
			struct _test_data_svm *self,
			void (*first)(struct _test_data_svm *self),
			void (*second)(struct _test_data_svm *self))
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(va(self->at), VRAM_VA,
							LEN);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct taker t[] = {
		{ .self = self, .take = first },
		{ .self = self, .take = second },
	};
	struct hold hold;
	uint32_t timeline;
	unsigned int i;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, syncobj_new(&self->gpu, &timeline));
	hold_batch(&hold, &batch);
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, timeline, 1));
	for (i = 0; i < 2 && t[i].take; i++) {
		ASSERT_EQ(0, pthread_create(&t[i].thread, NULL, take, &t[i]));
		usleep(200000);
	}
	for (i = 0; i < 2 && t[i].take; i++)
		EXPECT_FALSE(__atomic_load_n(&t[i].done, __ATOMIC_ACQUIRE));
	hold_release(&hold);
	for (i = 0; i < 2 && t[i].take; i++)
		ASSERT_EQ(0, pthread_join(t[i].thread, NULL));
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

TEST_F(svm, munmap_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_munmap, NULL);
}

TEST_F(svm, mprotect_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_mprotect, NULL);
}

TEST_F(svm, migration_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_migration, NULL);
}

TEST_F(svm, attribute_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_attribute, NULL);
}

TEST_F(svm, remap_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_remap, NULL);
}

TEST_F(svm, split_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_split, NULL);
}

TEST_F(svm, two_wait)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_madvise, take_by_madvise);
}

/* Video memory that the CPU asks for. */
TEST_F(svm, touch_waits)
{
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, send_away(self));
	takers_wait(_metadata, self, take_by_touch, NULL);
}

/* The same in a linked GPU; and this GPU takes it from there. */
TEST_F(svm, linked_touch_waits)
{
	struct gpu peer;
	int ret;

	memcpy(self->at, self->want, SIZE);
	ret = send_to_linked(self, &peer);
	if (ret == -ENODEV)
		SKIP(return, "no other GPU is linked");
	ASSERT_EQ(0, ret);
	takers_wait(_metadata, self, take_by_touch, NULL);
	close(peer.fd);
}

TEST_F(svm, linked_migration_waits)
{
	struct gpu peer;
	int ret;

	memcpy(self->at, self->want, SIZE);
	ret = send_to_linked(self, &peer);
	if (ret == -ENODEV)
		SKIP(return, "no other GPU is linked");
	ASSERT_EQ(0, ret);
	takers_wait(_metadata, self, take_by_migration, NULL);
	close(peer.fd);
}

/* A process that is killed keeps its memory until its batches have ended. */
static int submit_and_die(struct _test_data_svm *self, int timeline)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(0, VRAM_VA, LEN);
	struct _test_data_svm child = { .kfd.fd = -1 };
	struct drm_amdgpu_sdma_batch batch;
	struct hold hold;

	if (gpu_open(&child.gpu, 0) || kfd_open(&child.kfd, &child.gpu))
		return 1;
	child.svm = svm_of(&child.kfd, &child.gpu);
	if (buffer_map(&child.gpu, &child.vram, SIZE, AMDGPU_GEM_DOMAIN_VRAM,
		       VRAM_VA) ||
	    svm_new(&child.svm, &child.at, SIZE) ||
	    hold_open_on(&child.gpu, &hold, timeline))
		return 2;
	d.src = va(child.at);
	batch = batch_of(&child.gpu, &d, 1);
	hold_batch(&hold, &batch);
	return batch_submit(&child.gpu, &batch) ? 3 : 0;
}

TEST_F(svm, killed_waits)
{
	struct hold hold;
	int status;
	pid_t child;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		status = submit_and_die(self, hold.timeline);
		if (status)
			_exit(status);
		kill(getpid(), SIGKILL);
	}
	sleep(2);
	EXPECT_EQ(0, waitpid(child, &status, WNOHANG));
	hold_release(&hold);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status)) TH_LOG("%#x", status);
}

/* What a reset has lost is an error; the rest is mapped anew. */
TEST_F_TIMEOUT(svm, lost_in_reset, 120)
{
	uint8_t *here;
	uint32_t index;
	int lost;

	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, send_away(self));
	ASSERT_EQ(0, copy_out(self));
	ASSERT_EQ(0, svm_new(&self->svm, &here, SIZE));
	memcpy(here, self->want, SIZE);
	ASSERT_EQ(0, copy(self, va(here), VRAM_VA, LEN));
	ASSERT_EQ(0, reset_gpu(self->gpu.name));
	EXPECT_EQ(-ECANCELED, copy(self, va(here), VRAM_VA, LEN));
	ASSERT_EQ(0, gpu_context(&self->gpu, &self->gpu.ctx));
	memset(self->vram.cpu, 0, SIZE);
	ASSERT_EQ(0, copy(self, va(here), VRAM_VA, LEN));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	lost = copy_flags(self, va(self->at), VRAM_VA, LEN,
			  AMDGPU_SDMA_DESC_FAULT, &index);
	if (lost) {
		EXPECT_EQ(-EIO, lost);
		EXPECT_EQ(1, index);
		EXPECT_EQ(0, svm_look(self->at, SIZE, 0));
	} else {
		EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	}
}

/* Linked GPUs are reset together, and all of them lose their memory. */
static void lose_linked(struct __test_metadata *_metadata,
			struct _test_data_svm *self, unsigned int which)
{
	char gpus[MAX_GPUS][32];
	struct gpu peer;
	int ret;

	memcpy(self->at, self->want, SIZE);
	ret = send_to_linked(self, &peer);
	if (ret == -ENODEV)
		SKIP(return, "no other GPU is linked");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	ASSERT_LT(which, find_gpus(gpus));
	ASSERT_EQ(0, reset_gpu(gpus[which]));
	/* -EIO, or if the memory is spared -ECANCELED */
	EXPECT_NE(0, copy_out(self));
	ASSERT_EQ(0, gpu_context(&self->gpu, &self->gpu.ctx));
	memset(self->vram.cpu, 0, SIZE);
	ret = copy_flags(self, va(self->at), VRAM_VA, LEN,
			 AMDGPU_SDMA_DESC_FAULT, NULL);
	if (ret) {
		EXPECT_EQ(-EIO, ret);
		EXPECT_EQ(0, svm_look(self->at, SIZE, 0));
	} else {
		EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	}
	close(peer.fd);
}

TEST_F_TIMEOUT(svm, lost_in_reset_of_this, 120)
{
	lose_linked(_metadata, self, 0);
}

TEST_F_TIMEOUT(svm, lost_in_reset_of_linked, 120)
{
	lose_linked(_metadata, self, 1);
}

/* In the course of many batches, memory of a file is replaced by other of it. */
#define ROOM		(255 * PAGE)

struct rooms {
	uint8_t *at;
	int fd;
	uint8_t *view[2];	/* both memories, elsewhere */
};

static void *room_at(void *at, int fd, unsigned int which)
{
	return mmap(at, ROOM, PROT_READ | PROT_WRITE,
		    MAP_SHARED | (at ? MAP_FIXED : 0), fd, which * ROOM);
}

static bool rooms_open(struct rooms *r)
{
	unsigned int i;

	r->fd = memfd_create("room", 0);
	if (r->fd < 0 || ftruncate(r->fd, 2 * ROOM))
		return false;
	for (i = 0; i < 2; i++) {
		r->view[i] = room_at(NULL, r->fd, i);
		if (r->view[i] == MAP_FAILED)
			return false;
		memset(r->view[i], MOVER_NEW, ROOM);
	}
	r->at = svm_map(ROOM);
	return r->at && room_at(r->at, r->fd, 0) == r->at;
}

static int clean_room(struct mover *m)
{
	struct rooms *r = m->data;

	memset(r->view[!(m->moves % 2)], MOVER_NEW, ROOM);
	return 0;
}

static int change_rooms(struct mover *m)
{
	const unsigned int old = m->moves % 2;
	struct rooms *r = m->data;

	if (room_at(r->at, r->fd, !old) != r->at)
		return -errno;
	return mover_check_old(m, r->view[old], ROOM);
}

TEST_F_TIMEOUT(svm, replaced_all_the_time, 280)
{
	struct rooms rooms;
	struct mover m = {
		.gpu = &self->gpu, .prepare = clean_room, .move = change_rooms,
		.data = &rooms, .part = ROOM / MOVER_PARTS,
		.flags = AMDGPU_SDMA_DESC_FAULT, .seed = 3,
	};
	unsigned int round;

	if (!variant->xnack)
		SKIP(return, "new memory is not registered");
	ASSERT_TRUE(rooms_open(&rooms));
	ASSERT_EQ(0, mover_start(&m, va(rooms.at), VRAM_VA));
	for (round = 0; round < 80 && !m.error; round++) {
		ASSERT_EQ(0, mover_copy(&m, va(rooms.at), VRAM_VA));
		ASSERT_TRUE(all_are(self->vram.cpu, ROOM, MOVER_NEW))
			TH_LOG("round %u", round);
		ASSERT_EQ(0, mover_copy(&m, VRAM_VA, va(rooms.at)));
	}
	mover_stop(&m);
	TH_LOG("%u times in batches of %u us", m.moves, m.batch_us);
	EXPECT_EQ(0, m.error);
	EXPECT_LT(10, m.moves);
}

/*
 * While others move, protect, discard and replace memory, a batch finds all of it
 * as it is at one moment, or fails.
 */
struct storm {
	pthread_t thread;
	struct _test_data_svm *self;
	unsigned int seed;
	unsigned int rounds;
	bool stop;
};

#define STORM_BLOCK	(256 * KIB)

static void storm_once(struct storm *s)
{
	struct _test_data_svm *self = s->self;
	uint8_t *at = self->at + next_random(&s->seed) % (SIZE / STORM_BLOCK) *
		      STORM_BLOCK;
	pid_t child;

	switch (next_random(&s->seed) % 6) {
	case 0:
		svm_prefetch(&self->svm, at, STORM_BLOCK, &self->svm.gpu[0]);
		break;
	case 1:
		*(volatile uint8_t *)at;
		break;
	case 2:
		mprotect(at, STORM_BLOCK, PROT_READ);
		mprotect(at, STORM_BLOCK, PROT_READ | PROT_WRITE);
		break;
	case 3:
		child = fork();
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
		break;
	case 4:
		madvise(at, STORM_BLOCK, MADV_DONTNEED);
		break;
	default:
		mmap(at, STORM_BLOCK, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		svm_access(&self->svm, at, STORM_BLOCK, &self->svm.gpu[0]);
	}
	s->rounds++;
}

static void *storm(void *arg)
{
	struct storm *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
		storm_once(s);
	return NULL;
}

static bool may_fail(int ret)
{
	return ret == -ENXIO || ret == -EFAULT || ret == -ENOENT ||
	       ret == -EACCES;
}

static bool is_filled(const uint8_t *at, size_t size, uint32_t value)
{
	const uint32_t *p = (const void *)at;
	size_t i;

	for (i = 0; i < size / 4; i++)
		if (p[i] != value)
			return false;
	return true;
}

/*
 * Each page has what was written last, or was discarded since. Returns the offset
 * of one that has not, or the block's size.
 */
static size_t find_wrong_page(const uint8_t *at, uint32_t value)
{
	size_t i;

	for (i = 0; i < STORM_BLOCK; i += PAGE)
		if (!is_filled(at + i, PAGE, value) &&
		    !is_filled(at + i, PAGE, 0))
			break;
	return i;
}

TEST_F_TIMEOUT(svm, storm, 280)
{
	const unsigned int rounds = 300, blocks = SIZE / STORM_BLOCK;
	struct storm s = { .self = self, .seed = 7 };
	unsigned int round, i, taken = 0;
	uint32_t last[SIZE / STORM_BLOCK] = { 0 };
	int ret;

	ASSERT_EQ(0, pthread_create(&s.thread, NULL, storm, &s));
	for (round = 1; round <= rounds; round++) {
		i = next_random(&self->seed) % blocks;
		const uint64_t at = va(self->at + i * STORM_BLOCK);
		struct drm_amdgpu_sdma_desc d[] = {
			faulting(fill_desc(at, STORM_BLOCK, round)),
			behind(faulting(copy_desc(at, VRAM_VA, STORM_BLOCK))),
		};

		ret = run_descs(self, d, 2, NULL);
		ASSERT_TRUE(!ret || may_fail(ret)) TH_LOG("%d", ret);
		if (ret)
			continue;
		taken++;
		/* what was written is what is read, by one batch */
		ASSERT_TRUE(is_filled(self->vram.cpu, STORM_BLOCK, round));
		last[i] = round;
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(s.thread, NULL));
	for (i = 0; i < blocks; i++) {
		const uint8_t *at = self->at + i * STORM_BLOCK;
		const size_t wrong = find_wrong_page(at, last[i]);

		EXPECT_EQ(STORM_BLOCK, wrong)
			TH_LOG("block %u, round %u: %#zx is %u", i, last[i],
			       wrong, *(uint32_t *)(at + wrong));
	}
	TH_LOG("%u of %u batches, %u changes", taken, rounds, s.rounds);
	EXPECT_LT(rounds / 4, taken);
}

TEST_HARNESS_MAIN
