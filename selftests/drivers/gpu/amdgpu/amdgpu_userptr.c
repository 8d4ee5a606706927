// SPDX-License-Identifier: GPL-2.0
/*
 * A user pointer whose process has exited while its file is still open: by now
 * its pages may be in use elsewhere, and must not be reached through it.
 */
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"

#define SIZE	(2 * MIB)

/* What the process of the user pointer and the test both see. */
struct shared {
	struct buffer user;
	int ret;
};

FIXTURE(exited) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct shared *shared;
	struct buffer *user;
};

FIXTURE_SETUP(exited)
{
	pid_t child;

	if (!find_gpus(self->gpus))
		SKIP(return, "no GPU");
	ASSERT_EQ(0, open_gpu(&self->gpu, self->gpus[0]));
	self->shared = mmap(NULL, sizeof(*self->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->shared);
	self->user = &self->shared->user;
	self->shared->ret = -1;
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		self->shared->ret = new_user_buffer(&self->gpu, self->user,
						    SIZE);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	ASSERT_EQ(0, self->shared->ret);
}

FIXTURE_TEARDOWN(exited)
{
	close(self->gpu.fd);
}

TEST_F(exited, map_for_cpu)
{
	EXPECT_NE(0, map_cpu(&self->gpu, self->user, NULL));
}

TEST_F(exited, submit)
{
	uint32_t list;

	EXPECT_EQ(-EPERM, make_list(&self->gpu, &self->user, 1, &list));
}

TEST_F(exited, export)
{
	struct drm_prime_handle arg = {
		.handle = self->user->handle,
		.flags = DRM_CLOEXEC | DRM_RDWR,
	};

	EXPECT_EQ(-EPERM, do_ioctl(self->gpu.fd, DRM_IOCTL_PRIME_HANDLE_TO_FD,
				   &arg));
}

TEST_HARNESS_MAIN
