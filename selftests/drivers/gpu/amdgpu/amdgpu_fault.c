// SPDX-License-Identifier: GPL-2.0
/*
 * A job that reads unmapped memory or writes to read-only memory has no effect
 * there: the driver reports the fault, the job ends, no context is guilty.
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

/* The job names the buffer @named, unless that is NULL. */
static int send_words(FIXTURE_DATA(fault) *self, const uint32_t *words,
		      unsigned int count, struct buffer *named, uint64_t *fence)
{
	struct buffer *all[] = { &self->ib, named };

	memcpy(self->ib.cpu, words, 4 * count);
	return submit(&self->gpu, all, named ? 2 : 1, count, fence);
}

TEST_F_TIMEOUT(fault, reads_nothing, 60)
{
	const uint64_t to = self->ib.va + 8192, mark = self->ib.va + 4096;
	uint32_t words[16] = {
		1, 4095, 0, LO(UNMAPPED), HI(UNMAPPED), LO(to), HI(to),
		5, LO(mark), HI(mark), 3,
	};
	uint64_t fence;

	ASSERT_EQ(0, send_words(self, words, 16, NULL, &fence));
	EXPECT_EQ(0, wait_fence(&self->gpu, fence, 30));
	EXPECT_EQ(3, ((uint32_t *)self->ib.cpu)[1024]);
	EXPECT_TRUE(kmsg_comes(self->faults, self->gpus[0], "page fault"));
	EXPECT_EQ(0, context_state(&self->gpu, self->gpu.context));
	EXPECT_EQ(0, write_word(&self->gpu, &self->ib, 4));
}

#define PLACE	0x40000000

static int new_filled_buffer(struct gpu *gpu, struct buffer *b)
{
	int ret = new_buffer(gpu, b, 8192, AMDGPU_GEM_DOMAIN_GTT);

	ret = ret ? ret : map_cpu(gpu, b, NULL);
	if (!ret)
		memset(b->cpu, 0x11, 8192);
	return ret;
}

/* A job writes to @at, which it must not reach, and to memory of its own. */
static int write_astray(FIXTURE_DATA(fault) *self, uint32_t at,
			struct buffer *named)
{
	const uint64_t mark = self->ib.va + 4096;
	uint32_t words[16] = {
		5, at, 0, 0xbad, 5, LO(mark), HI(mark), 3,
	};
	uint64_t fence;
	int ret;

	ret = send_words(self, words, 16, named, &fence);
	return ret ? ret : wait_fence(&self->gpu, fence, 30);
}

TEST_F_TIMEOUT(fault, writes_read_only, 60)
{
	struct buffer b;

	ASSERT_EQ(0, new_filled_buffer(&self->gpu, &b));
	ASSERT_EQ(0, gem_va(&self->gpu, &b, AMDGPU_VA_OP_MAP,
			    AMDGPU_VM_PAGE_READABLE, PLACE, b.size));
	EXPECT_EQ(0, write_astray(self, PLACE, &b));
	EXPECT_EQ(3, ((uint32_t *)self->ib.cpu)[1024]);
	EXPECT_EQ(0x11111111, *(uint32_t *)b.cpu);
	EXPECT_TRUE(kmsg_comes(self->faults, self->gpus[0], "page fault"));
	EXPECT_EQ(0, context_state(&self->gpu, self->gpu.context));
}

/* Page tables are cleared after the job that makes the driver clear them. */
static bool faults_at(FIXTURE_DATA(fault) *self, uint32_t at)
{
	for (int i = 0; i < 3; i++)
		if (write_astray(self, at, NULL))
			return false;
		else if (kmsg_comes(self->faults, self->gpus[0], "page fault"))
			return true;
	return false;
}

/*
 * One page of a mapping is unmapped, then the other one, or its buffer is
 * closed, before the driver has updated page tables. Returns 0 if no job
 * reaches the buffer in the end. The CPU's mapping keeps the buffer.
 */
static int leave(FIXTURE_DATA(fault) *self, uint32_t gone, bool close)
{
	const uint32_t left = gone == PLACE ? PLACE + 4096 : PLACE;
	struct gpu *gpu = &self->gpu;
	struct buffer b;
	uint32_t *there;
	int ret;

	ret = new_filled_buffer(gpu, &b);
	ret = ret ? ret : gem_va(gpu, &b, AMDGPU_VA_OP_MAP, PAGE_RW, PLACE, b.size);
	ret = ret ? ret : write_word(gpu, &self->ib, 2);
	ret = ret ? ret : gem_va(gpu, &b, AMDGPU_VA_OP_CLEAR,
				 AMDGPU_VM_DELAY_UPDATE, gone, 4096);
	if (!ret && close)
		ret = free_buffer(gpu, &b);
	else if (!ret)
		ret = gem_va(gpu, &b, AMDGPU_VA_OP_UNMAP,
			     AMDGPU_VM_DELAY_UPDATE, left, 4096);
	if (ret)
		return ret;
	if (!faults_at(self, left))
		return -ENOENT;
	there = (uint32_t *)((char *)b.cpu + (left - PLACE));
	*there = 0x11111111;
	ret = write_astray(self, left, NULL);
	return ret ? ret : *there == 0x11111111 ? 0 : -EFAULT;
}

TEST_F_TIMEOUT(fault, writes_what_was_left_before, 90)
{
	EXPECT_EQ(0, leave(self, PLACE + 4096, false));
}

TEST_F_TIMEOUT(fault, writes_what_was_left_behind, 90)
{
	EXPECT_EQ(0, leave(self, PLACE, false));
}

TEST_F_TIMEOUT(fault, writes_what_was_closed, 90)
{
	EXPECT_EQ(0, leave(self, PLACE + 4096, true));
}

TEST_HARNESS_MAIN
