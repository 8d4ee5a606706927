// SPDX-License-Identifier: GPL-2.0
/*
 * The GPU writes to memory of the process, and reclaim takes it: the data are
 * there when it comes back.
 *
 * A page that a read brought back from swap can be writable and clean, with a
 * copy in swap. If the GPU writes to it, only the driver can mark it dirty.
 */
#include "../../../kselftest_harness.h"
#include "../../../rdma/loop_swap.h"
#include "amdgpu_test.h"
#include "kfd_svm.h"

#define PAGES		16
#define SIZE		(PAGES * SVM_PAGE)
#define OLD		0xaa
#define NEW		0x55

FIXTURE(swapped) {
	struct loop_swap swap;
};

FIXTURE_SETUP(swapped)
{
	stay_on_this_cpu();
	if (loop_swap_open(&self->swap))
		SKIP(return, "no swap: it takes root, and the loop module");
}

FIXTURE_TEARDOWN(swapped)
{
	loop_swap_close(&self->swap);
}

static size_t count(const uint8_t *p, uint8_t value)
{
	size_t n = 0;

	for (size_t i = 0; i < SIZE; i++)
		n += p[i] == value;
	return n;
}

/* The old data, in swap and, clean, in memory. */
static bool make_clean(uint8_t *p)
{
	memset(p, OLD, SIZE);
	return swap_out(p, SIZE) && count(p, OLD) == SIZE;
}

static bool survives(uint8_t *p)
{
	return swap_out(p, SIZE) && count(p, NEW) == SIZE;
}

/* COPY_LINEAR of SDMA 4 and later. */
static int copy(struct gpu *gpu, struct buffer *ib, struct buffer *from,
		struct buffer *to)
{
	struct buffer *all[] = { ib, from, to };
	const uint32_t packet[8] = {
		1, SIZE - 1, 0, LO(from->va), HI(from->va), LO(to->va),
		HI(to->va),
	};
	uint64_t fence;
	int ret;

	memcpy(ib->cpu, packet, sizeof(packet));
	ret = submit(gpu, all, 3, 8, &fence);
	return ret ? ret : wait_fence(gpu, fence, 30);
}

TEST_F(swapped, user_pointer)
{
	struct buffer ib, from, user;
	char gpus[MAX_GPUS][32];
	struct gpu gpu;

	if (!find_gpus(gpus))
		SKIP(return, "no GPU");
	ASSERT_EQ(0, open_gpu(&gpu, gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&gpu, &ib, SVM_PAGE,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, new_mapped_buffer(&gpu, &from, SIZE,
				       AMDGPU_GEM_DOMAIN_GTT));
	memset(from.cpu, NEW, SIZE);
	ASSERT_EQ(0, new_user_buffer(&gpu, &user, SIZE));
	ASSERT_EQ(0, madvise(user.cpu, SIZE, MADV_NOHUGEPAGE));
	ASSERT_EQ(0, map_gpu(&gpu, &user));
	ASSERT_TRUE(make_clean(user.cpu));
	ASSERT_EQ(0, copy(&gpu, &ib, &from, &user));
	EXPECT_TRUE(survives(user.cpu));
	close(gpu.fd);
}

TEST_F(swapped, svm_memory)
{
	struct kfd_ioctl_set_xnack_mode_args xnack = { .xnack_enabled = 1 };
	const struct kfd_ioctl_svm_attribute in_system_memory = {
		KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, KFD_IOCTL_SVM_LOCATION_SYSMEM
	};
	struct svm_queue queue;
	uint8_t *from, *to;
	struct svm svm;

	if (svm_open(&svm))
		SKIP(return, "no KFD");
	if (do_ioctl(svm.kfd, AMDKFD_IOC_SET_XNACK_MODE, &xnack))
		SKIP(return, "no retry faults");
	from = svm_map(SIZE);
	to = svm_map(SIZE);
	ASSERT_NE(NULL, from);
	ASSERT_NE(NULL, to);
	memset(from, NEW, SIZE);
	ASSERT_EQ(0, madvise(to, SIZE, MADV_NOHUGEPAGE));
	ASSERT_EQ(0, svm_set(&svm, to, SIZE, &in_system_memory, 1));
	ASSERT_EQ(0, svm_queue_open(&svm, &svm.gpu[0], &queue));
	ASSERT_TRUE(make_clean(to));
	ASSERT_EQ(0, svm_queue_copy(&queue, from, to, SIZE));
	EXPECT_TRUE(survives(to));
	svm_queue_close(&svm, &queue);
	svm_close(&svm);
}

TEST_HARNESS_MAIN
