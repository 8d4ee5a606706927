// SPDX-License-Identifier: GPL-2.0
/*
 * Queues of a process are evicted and restored on all GPUs, including those on
 * which the process has no VM.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"

#define SIZE	(4 * MIB)

FIXTURE(kfd_evict) {
	struct kfd_node nodes[MAX_GPUS];
	int kfd, kmsg, count;
	uint32_t *range;
};

FIXTURE_SETUP(kfd_evict)
{
	uintptr_t at;

	self->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	self->count = kfd_nodes(self->nodes);
	if (self->kfd < 0 || !self->count)
		SKIP(return, "no KFD");
	self->kmsg = kmsg_open();
	if (self->kmsg < 0)
		SKIP(return, "the kernel's log is not readable");
	at = (uintptr_t)mmap(NULL, SIZE + 2 * MIB, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	self->range = (uint32_t *)((at + 2 * MIB - 1) & ~(2 * MIB - 1));
}

FIXTURE_TEARDOWN(kfd_evict)
{
	close(self->kmsg);
	close(self->kfd);
}

/*
 * Touching a page that is on the GPU evicts the queues of the process; a worker
 * maps the range again and restores them. If the GPU takes the range again, the
 * worker is alive.
 */
static void evict_and_restore(struct __test_metadata *_metadata,
			      FIXTURE_DATA(kfd_evict) *self, uint32_t gpu_id)
{
	for (uint32_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < SIZE / 4; i += 256)
			self->range[i] = i ^ round;
		ASSERT_EQ(0, kfd_prefetch(self->kfd, self->range, SIZE,
					  gpu_id));
		ASSERT_TRUE(is_swapped(self->range));
		for (size_t i = 0; i < SIZE / 4; i += 256)
			ASSERT_EQ(i ^ round, self->range[i]);
		/* the worker starts after 1 ms; nothing tells when it ends */
		usleep(100000);
	}
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

TEST_F(kfd_evict, vm_on_every_gpu)
{
	for (int i = 0; i < self->count; i++)
		ASSERT_EQ(0, kfd_acquire_vm(self->kfd, &self->nodes[i]));
	evict_and_restore(_metadata, self, self->nodes[0].gpu_id);
}

TEST_F(kfd_evict, vm_on_first_gpu)
{
	if (self->count < 2)
		SKIP(return, "this needs two GPUs");
	ASSERT_EQ(0, kfd_acquire_vm(self->kfd, &self->nodes[0]));
	evict_and_restore(_metadata, self, self->nodes[0].gpu_id);
}

TEST_F(kfd_evict, vm_on_last_gpu)
{
	int last = self->count - 1;

	if (self->count < 2)
		SKIP(return, "this needs two GPUs");
	ASSERT_EQ(0, kfd_acquire_vm(self->kfd, &self->nodes[last]));
	evict_and_restore(_metadata, self, self->nodes[last].gpu_id);
}

TEST_HARNESS_MAIN
