// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation of a submission, and of a change of mappings, fails once. An
 * operation that fails has no effect or is completed later, and leaks nothing.
 * Needs CONFIG_FAULT_INJECTION with failslab and fail_page_alloc.
 */
#include "../../../kselftest_harness.h"
#include "../../../kselftest_fail_nth.h"
#include "amdgpu_test.h"

#define SIZE		(4 * MIB)
#define FIRST_VA	(1024 * MIB)
#define STRIDE		(1024 * MIB)	/* page tables of its own each time */
#define MAX_NTH		1000
#define WORD		2048		/* where the job of hold() polls */

FIXTURE(fail) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer ib, wait, b;
	uint64_t va;
	long before;
	int nth, kmsg;
};

/*
 * Pieces of the command pools that no fence protects: those of jobs under
 * construction. When the GPU is idle their number is always the same.
 */
static long unfenced(const char *gpu)
{
	char path[128], line[256];
	long count = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/kernel/debug/dri/%s/amdgpu_sa_info",
		 gpu);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		count += strstr(line, "] size ") && !strstr(line, "protected");
	fclose(f);
	return count;
}

FIXTURE_SETUP(fail)
{
	if (!find_gpus(self->gpus))
		SKIP(return, "no GPU");
	if (!nth_available())
		SKIP(return, "no fault injection in this kernel");
	self->kmsg = kmsg_open();
	self->nth = nth_open();
	ASSERT_LE(0, self->nth);
	ASSERT_EQ(0, open_gpu(&self->gpu, self->gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->ib, 65536,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->wait, 65536,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, new_buffer(&self->gpu, &self->b, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, map_cpu(&self->gpu, &self->b, NULL));
	ASSERT_EQ(0, write_word(&self->gpu, &self->ib, 1));
	self->va = FIRST_VA;
	self->before = unfenced(self->gpus[0]);
	ASSERT_LE(0, self->before);
}

FIXTURE_TEARDOWN(fail)
{
	if (self->nth < 0)
		return;
	EXPECT_EQ(self->before, unfenced(self->gpus[0]));
	close(self->gpu.fd);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->kmsg);
}

/* A job that waits until release(), so that other jobs wait for it. */
static int hold(FIXTURE_DATA(fail) *self, uint64_t *fence)
{
	struct buffer *all = &self->wait;
	uint64_t at = all->va + WORD;
	const uint32_t packet[8] = {
		8 | 1U << 31 | 3U << 28, LO(at), HI(at), 1, ~0U,
		0xfffU << 16 | 10,
	};

	*(volatile uint32_t *)((char *)all->cpu + WORD) = 0;
	memcpy(all->cpu, packet, sizeof(packet));
	return submit(&self->gpu, &all, 1, 8, fence);
}

static int release(FIXTURE_DATA(fail) *self, uint64_t fence)
{
	*(volatile uint32_t *)((char *)self->wait.cpu + WORD) = 1;
	return wait_fence(&self->gpu, fence, 30);
}

static int change(FIXTURE_DATA(fail) *self, uint32_t operation)
{
	struct drm_amdgpu_gem_va arg = {
		.handle = self->b.handle,
		.operation = operation,
		.flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE,
		.va_address = self->va,
		.map_size = SIZE,
	};

	return ioctl(self->gpu.fd, DRM_IOCTL_AMDGPU_GEM_VA, &arg) ? -errno : 0;
}

/* Have the GPU write to the buffer where it is mapped now. */
static int use(FIXTURE_DATA(fail) *self, uint32_t value)
{
	struct buffer *all[] = { &self->ib, &self->b };
	const uint64_t at = self->va + SIZE - 4;
	const uint32_t packet[8] = { 5, LO(at), HI(at), value };
	uint64_t fence;
	int ret;

	memcpy(self->ib.cpu, packet, sizeof(packet));
	ret = submit(&self->gpu, all, 2, 8, &fence);
	if (!ret)
		ret = wait_fence(&self->gpu, fence, 30);
	if (ret)
		return ret;
	return ((volatile uint32_t *)self->b.cpu)[SIZE / 4 - 1] == value ?
		0 : -EIO;
}

/* An allocation or a copy of the arguments failed before anything was done. */
static bool is_injected(int ret)
{
	return ret == -ENOMEM || ret == -EFAULT;
}

/*
 * A mapping with page tables of its own. A call that fails makes none; entries
 * that it could not write are written by the next submission.
 */
TEST_F_TIMEOUT(fail, map, 280)
{
	bool more = true;
	unsigned int nth;
	uint64_t fence;
	int ret;

	for (nth = 1; more && nth < MAX_NTH; nth++, self->va += STRIDE) {
		ASSERT_EQ(0, hold(self, &fence));
		nth_arm(self->nth, nth);
		ret = change(self, AMDGPU_VA_OP_MAP);
		more = nth_disarm(self->nth);
		ASSERT_EQ(0, release(self, fence));
		if (ret) {
			ASSERT_TRUE(is_injected(ret)) TH_LOG("%d", ret);
			ASSERT_EQ(0, change(self, AMDGPU_VA_OP_MAP));
		}
		ASSERT_EQ(0, use(self, nth)) TH_LOG("allocation %u", nth);
		ASSERT_EQ(0, change(self, AMDGPU_VA_OP_UNMAP));
	}
	EXPECT_FALSE(more);
	EXPECT_LT(2, nth);
}

/*
 * Where nothing is mapped, jobs access a dummy page. The update of the page
 * tables runs beside the first of these jobs.
 */
static bool gets_out_of_reach(FIXTURE_DATA(fail) *self, uint32_t value)
{
	volatile uint32_t *last = (uint32_t *)self->b.cpu + SIZE / 4 - 1;
	int tries;

	for (tries = 0; tries < 50; tries++) {
		*last = value;
		use(self, ~value);
		if (*last == value)
			return true;
	}
	return false;
}

/* Whatever fails, unmapped memory gets out of reach of jobs. */
TEST_F_TIMEOUT(fail, unmap, 280)
{
	bool more = true;
	unsigned int nth;
	uint64_t fence;
	int ret;

	for (nth = 1; more && nth < MAX_NTH; nth++, self->va += STRIDE) {
		ASSERT_EQ(0, change(self, AMDGPU_VA_OP_MAP));
		ASSERT_EQ(0, use(self, nth));
		ASSERT_EQ(0, hold(self, &fence));
		nth_arm(self->nth, nth);
		ret = change(self, AMDGPU_VA_OP_UNMAP);
		more = nth_disarm(self->nth);
		ASSERT_EQ(0, release(self, fence));
		if (ret) {
			ASSERT_TRUE(is_injected(ret)) TH_LOG("%d", ret);
			ASSERT_EQ(0, change(self, AMDGPU_VA_OP_UNMAP));
		}
		ASSERT_TRUE(gets_out_of_reach(self, nth))
			TH_LOG("allocation %u", nth);
	}
	EXPECT_FALSE(more);
	EXPECT_LT(2, nth);
}

/* A submission that has one mapping to write and one to clear */
TEST_F_TIMEOUT(fail, submit, 280)
{
	struct buffer *all[] = { &self->ib, &self->b };
	uint64_t fence = 0, held;
	bool more = true;
	unsigned int nth;
	int ret;

	for (nth = 1; more && nth < MAX_NTH; nth++, self->va += STRIDE) {
		ASSERT_EQ(0, change(self, AMDGPU_VA_OP_MAP));
		ASSERT_EQ(0, hold(self, &held));
		memset(self->ib.cpu, 0, 64);
		nth_arm(self->nth, nth);
		ret = submit(&self->gpu, all, 2, 8, &fence);
		more = nth_disarm(self->nth);
		ASSERT_EQ(0, release(self, held));
		if (!ret)
			ASSERT_EQ(0, wait_fence(&self->gpu, fence, 30));
		ASSERT_EQ(0, use(self, nth)) TH_LOG("allocation %u", nth);
		ASSERT_EQ(0, change(self, AMDGPU_VA_OP_UNMAP));
	}
	EXPECT_FALSE(more);
	EXPECT_LT(2, nth);
}

TEST_HARNESS_MAIN
