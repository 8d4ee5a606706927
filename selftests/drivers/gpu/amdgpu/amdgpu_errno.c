// SPDX-License-Identifier: GPL-2.0
/*
 * For what it does not support, the driver must return an errno that user space
 * knows. The numbers that only the kernel uses begin at 512.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"

#define KERNEL_ERRNO	512

FIXTURE(user_queues) {
	int fd;
};

FIXTURE_SETUP(user_queues)
{
	char gpus[MAX_GPUS][32];

	if (!find_gpus(gpus))
		SKIP(return, "no GPU");
	self->fd = open_render_node(gpus[0]);
	ASSERT_GE(self->fd, 0);
}

FIXTURE_TEARDOWN(user_queues)
{
	close(self->fd);
}

/* If user queues are enabled, an empty request fails for another reason. */
TEST_F(user_queues, create)
{
	union drm_amdgpu_userq arg = { .in.op = AMDGPU_USERQ_OP_CREATE };

	EXPECT_GT(do_ioctl(self->fd, DRM_IOCTL_AMDGPU_USERQ, &arg),
		  -KERNEL_ERRNO);
}

TEST_F(user_queues, signal)
{
	struct drm_amdgpu_userq_signal arg = {};

	EXPECT_GT(do_ioctl(self->fd, DRM_IOCTL_AMDGPU_USERQ_SIGNAL, &arg),
		  -KERNEL_ERRNO);
}

TEST_F(user_queues, wait)
{
	struct drm_amdgpu_userq_wait arg = {};

	EXPECT_GT(do_ioctl(self->fd, DRM_IOCTL_AMDGPU_USERQ_WAIT, &arg),
		  -KERNEL_ERRNO);
}

TEST(kfd_queue_type)
{
	struct kfd_ioctl_create_queue_args arg = {
		.ring_size = 4096,
		.queue_percentage = 100,
		.queue_type = 0xff,
	};
	struct kfd_node nodes[MAX_GPUS];
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	uintptr_t memory;

	if (kfd < 0 || !kfd_nodes(nodes))
		SKIP(return, "no KFD");
	memory = (uintptr_t)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	arg.gpu_id = nodes[0].gpu_id;
	arg.ring_base_address = memory;
	arg.read_pointer_address = memory;
	arg.write_pointer_address = memory + 8;
	EXPECT_EQ(-EOPNOTSUPP,
		  do_ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &arg));
}

TEST_HARNESS_MAIN
