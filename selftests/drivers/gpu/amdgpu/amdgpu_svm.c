// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the process, moved to a GPU's device-private pages and brought
 * back by the CPU's first touch.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"

#define SIZE	(4 * MIB)

FIXTURE(svm) {
	struct kfd_node nodes[MAX_GPUS];
	int kfd, kmsg, count;
};

static uint32_t *new_range(void)
{
	uintptr_t at = (uintptr_t)mmap(NULL, SIZE + 2 * MIB,
				       PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *p = (uint32_t *)((at + 2 * MIB - 1) & ~(2 * MIB - 1));

	for (size_t i = 0; i < SIZE / 4; i++)
		p[i] = i * 7;
	return p;
}

FIXTURE_SETUP(svm)
{
	self->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	self->count = kfd_nodes(self->nodes);
	if (self->kfd < 0 || !self->count)
		SKIP(return, "no KFD");
	self->kmsg = kmsg_open();
	for (int i = 0; i < self->count; i++)
		ASSERT_EQ(0, kfd_acquire_vm(self->kfd, &self->nodes[i]));
}

FIXTURE_TEARDOWN(svm)
{
	if (self->kmsg >= 0)
		EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->kfd);
}

static size_t wrong_words(const uint32_t *p)
{
	size_t count = 0;

	for (size_t i = 0; i < SIZE / 4; i++)
		count += p[i] != (uint32_t)i * 7;
	return count;
}

TEST_F(svm, there_and_back)
{
	for (int i = 0; i < self->count; i++) {
		uint32_t *p = new_range();

		ASSERT_EQ(0, kfd_prefetch(self->kfd, p, SIZE,
					  self->nodes[i].gpu_id));
		EXPECT_TRUE(is_swapped(p));
		EXPECT_TRUE(is_swapped(p + SIZE / 4 - 1));
		EXPECT_EQ(0, wrong_words(p));
		EXPECT_FALSE(is_swapped(p));
	}
}

/* Without retry faults a range that two GPUs map stays in system memory. */
TEST_F(svm, from_gpu_to_gpu)
{
	struct kfd_ioctl_set_xnack_mode_args xnack = { .xnack_enabled = 1 };
	uint32_t *p = new_range();

	if (self->count < 2)
		SKIP(return, "this needs two GPUs");
	if (do_ioctl(self->kfd, AMDKFD_IOC_SET_XNACK_MODE, &xnack))
		SKIP(return, "no retry faults");
	for (int i = 0; i < 4; i++) {
		ASSERT_EQ(0, kfd_prefetch(self->kfd, p, SIZE,
					  self->nodes[i % 2].gpu_id));
		EXPECT_TRUE(is_swapped(p));
	}
	EXPECT_EQ(0, wrong_words(p));
}

/*
 * The child has the data as well, and brings it back while the driver maps the
 * parent's range anew: neither may wait for the other.
 */
TEST_F(svm, fork)
{
	uint32_t *p = new_range();
	pid_t child;
	int status;

	ASSERT_EQ(0, kfd_prefetch(self->kfd, p, SIZE, self->nodes[0].gpu_id));
	child = fork();
	ASSERT_GE(child, 0);
	if (!child)
		_exit(wrong_words(p) ? 1 : 0);

	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, wrong_words(p));
}

TEST_HARNESS_MAIN
