// SPDX-License-Identifier: GPL-2.0
/*
 * A job that reads what is not mapped, or writes to what it may only read, gets
 * nothing: the driver reports the fault, the job ends, nobody is punished.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"
#include "bystander.h"

#define UNMAPPED	0x7000000000ULL

FIXTURE(fault) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer ib;
	struct bystander by;
	int kmsg, faults;
};

FIXTURE_SETUP(fault)
{
	int count = find_gpus(self->gpus);

	if (!count)
		SKIP(return, "no GPU");
	self->kmsg = kmsg_open();
	self->faults = kmsg_open();
	if (self->kmsg < 0)
		SKIP(return, "the kernel's log is not readable");
	ASSERT_EQ(0, bystander_start(&self->by, self->gpus[0],
				     count > 1 ? self->gpus[1] : NULL));
	ASSERT_EQ(0, open_gpu(&self->gpu, self->gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->ib, 65536,
				       AMDGPU_GEM_DOMAIN_GTT));
	memset(self->ib.cpu, 0, self->ib.size);
	ASSERT_EQ(0, write_word(&self->gpu, &self->ib, 1));
}

FIXTURE_TEARDOWN(fault)
{
	EXPECT_EQ(0, bystander_end(&self->by));
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->gpu.fd);
	close(self->kmsg);
	close(self->faults);
}

static int send_words(FIXTURE_DATA(fault) *self, const uint32_t *words,
		      unsigned int count, uint64_t *fence)
{
	struct buffer *all[] = { &self->ib };

	memcpy(self->ib.cpu, words, 4 * count);
	return submit(&self->gpu, all, 1, count, fence);
}

TEST_F_TIMEOUT(fault, reads_nothing, 60)
{
	const uint64_t to = self->ib.va + 8192, mark = self->ib.va + 4096;
	uint32_t words[16] = {
		1, 4095, 0, LO(UNMAPPED), HI(UNMAPPED), LO(to), HI(to),
		5, LO(mark), HI(mark), 3,
	};
	uint64_t fence;

	ASSERT_EQ(0, send_words(self, words, 16, &fence));
	EXPECT_EQ(0, wait_fence(&self->gpu, fence, 30));
	EXPECT_EQ(3, ((uint32_t *)self->ib.cpu)[1024]);
	EXPECT_TRUE(kmsg_comes(self->faults, self->gpus[0], "page fault"));
	EXPECT_EQ(0, context_state(&self->gpu, self->gpu.context));
	EXPECT_EQ(0, write_word(&self->gpu, &self->ib, 4));
}

TEST_F_TIMEOUT(fault, writes_read_only, 60)
{
	struct buffer b;
	struct drm_amdgpu_gem_va va = {
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_READABLE,
		.va_address = 0x40000000,
		.map_size = 4096,
	};
	const uint64_t mark = self->ib.va + 4096;
	uint32_t words[16] = {
		5, 0x40000000, 0, 0xbad, 5, LO(mark), HI(mark), 3,
	};
	struct buffer *all[] = { &self->ib, &b };
	uint64_t fence;

	ASSERT_EQ(0, new_buffer(&self->gpu, &b, 4096, AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, map_cpu(&self->gpu, &b, NULL));
	memset(b.cpu, 0x11, 4096);
	va.handle = b.handle;
	ASSERT_EQ(0, do_ioctl(self->gpu.fd, DRM_IOCTL_AMDGPU_GEM_VA, &va));
	memcpy(self->ib.cpu, words, sizeof(words));
	ASSERT_EQ(0, submit(&self->gpu, all, 2, 16, &fence));
	EXPECT_EQ(0, wait_fence(&self->gpu, fence, 30));
	EXPECT_EQ(3, ((uint32_t *)self->ib.cpu)[1024]);
	EXPECT_EQ(0x11111111, *(uint32_t *)b.cpu);
	EXPECT_TRUE(kmsg_comes(self->faults, self->gpus[0], "page fault"));
	EXPECT_EQ(0, context_state(&self->gpu, self->gpu.context));
}

TEST_HARNESS_MAIN
