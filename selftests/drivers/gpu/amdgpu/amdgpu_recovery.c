// SPDX-License-Identifier: GPL-2.0
/*
 * The driver recovers from a job that never ends, whatever the process that
 * sent it has mapped.
 */
#include <pthread.h>

#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"

#define SIZE	(2 * MIB)

FIXTURE(recovery) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer ib, user;
	int kmsg;
};

FIXTURE_VARIANT(recovery) {
	bool valid;	/* the GPU has the user's pages when the job hangs */
	bool reuse;	/* a mapping of the driver's is at their addresses */
	bool unmap;	/* the process unmaps them while the job hangs */
};

FIXTURE_VARIANT_ADD(recovery, plain) {};

FIXTURE_VARIANT_ADD(recovery, user_pages_in_use) {
	.valid = true,
};

FIXTURE_VARIANT_ADD(recovery, user_pages_go_away) {
	.valid = true,
	.unmap = true,
};

FIXTURE_VARIANT_ADD(recovery, user_range_reused) {
	.reuse = true,
};

FIXTURE_SETUP(recovery)
{
	if (!find_gpus(self->gpus))
		SKIP(return, "no GPU");
	self->kmsg = kmsg_open();
	if (self->kmsg < 0)
		SKIP(return, "the kernel's log is not readable");
	ASSERT_EQ(0, open_gpu(&self->gpu, self->gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->ib, 65536,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, new_user_buffer(&self->gpu, &self->user, SIZE));
	ASSERT_EQ(0, map_gpu(&self->gpu, &self->user));
	ASSERT_EQ(0, write_word(&self->gpu, &self->ib, 1));
}

FIXTURE_TEARDOWN(recovery)
{
	close(self->gpu.fd);
	close(self->kmsg);
}

TEST_F_TIMEOUT(recovery, endless_job, 120)
{
	struct buffer *all[] = { &self->ib, &self->user }, reuse;
	uint64_t fence;

	if (variant->reuse) {
		ASSERT_EQ(0, munmap(self->user.cpu, SIZE));
		ASSERT_EQ(0, new_buffer(&self->gpu, &reuse, SIZE,
					AMDGPU_GEM_DOMAIN_VRAM));
		ASSERT_EQ(0, map_cpu(&self->gpu, &reuse, self->user.cpu));
		memset(reuse.cpu, 1, SIZE);
	}
	ASSERT_EQ(0, submit_endless(&self->gpu, all,
				    variant->valid ? 2 : 1, &fence));
	if (variant->unmap)
		EXPECT_EQ(0, munmap(self->user.cpu, SIZE));
	EXPECT_NE(1, wait_fence(&self->gpu, fence, 60));
	EXPECT_EQ(0, works_again(&self->gpu, &self->ib));
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

/* A job of another device waits for the one that hangs. */
FIXTURE(two_devices) {
	FIXTURE_DATA(recovery) first, second;
};

FIXTURE_SETUP(two_devices)
{
	FIXTURE_DATA(recovery) *both[] = { &self->first, &self->second };
	char gpus[MAX_GPUS][32];
	int i;

	if (find_gpus(gpus) < 2)
		SKIP(return, "one GPU");
	if (gpu_linked(gpus[0]))
		SKIP(return, "they are reset together");
	self->first.kmsg = kmsg_open();
	if (self->first.kmsg < 0)
		SKIP(return, "the kernel's log is not readable");
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, open_gpu(&both[i]->gpu, gpus[i]));
		ASSERT_EQ(0, new_mapped_buffer(&both[i]->gpu, &both[i]->ib,
					       65536, AMDGPU_GEM_DOMAIN_GTT));
		ASSERT_EQ(0, write_word(&both[i]->gpu, &both[i]->ib, 1));
	}
	ASSERT_EQ(0, new_user_buffer(&self->second.gpu, &self->second.user,
				     SIZE));
	ASSERT_EQ(0, map_gpu(&self->second.gpu, &self->second.user));
}

FIXTURE_TEARDOWN(two_devices)
{
	close(self->second.gpu.fd);
	close(self->first.gpu.fd);
	close(self->first.kmsg);
}

/* Import the fence of a job of one GPU as a syncobj of another. */
static int import_fence(struct gpu *from, uint64_t fence, struct gpu *to,
			uint32_t *syncobj)
{
	union drm_amdgpu_fence_to_handle get = {
		.in.fence.ctx_id = from->context,
		.in.fence.ip_type = AMDGPU_HW_IP_DMA,
		.in.fence.seq_no = fence,
		.in.what = AMDGPU_FENCE_TO_HANDLE_GET_SYNC_FILE_FD,
	};
	struct drm_syncobj_handle import = {
		.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE,
	};
	struct drm_syncobj_create create = { };
	int ret;

	ret = do_ioctl(from->fd, DRM_IOCTL_AMDGPU_FENCE_TO_HANDLE, &get);
	if (!ret)
		ret = do_ioctl(to->fd, DRM_IOCTL_SYNCOBJ_CREATE, &create);
	if (ret)
		return ret;
	import.handle = create.handle;
	import.fd = get.out.handle;
	*syncobj = create.handle;
	ret = do_ioctl(to->fd, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &import);
	close(get.out.handle);
	return ret;
}

/*
 * A mapping of the first GPU replaces memory that the second one used. The job
 * of the second GPU that waits belongs to the file that had the memory.
 */
TEST_F_TIMEOUT(two_devices, endless_job, 120)
{
	struct gpu *first = &self->first.gpu, *second = &self->second.gpu;
	struct buffer *all = &self->second.ib, *ib = &self->first.ib, reuse;
	void *at = self->second.user.cpu;
	uint64_t fence, behind;
	uint32_t syncobj;

	ASSERT_EQ(0, munmap(at, SIZE));
	ASSERT_EQ(0, new_buffer(first, &reuse, SIZE, AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, map_cpu(first, &reuse, at));
	memset(reuse.cpu, 1, SIZE);
	ASSERT_EQ(0, submit_endless(first, &ib, 1, &fence));
	ASSERT_EQ(0, import_fence(first, fence, second, &syncobj));
	ASSERT_EQ(0, submit_after(second, syncobj, &all, 1, 8, &behind));
	EXPECT_NE(1, wait_fence(first, fence, 60));
	EXPECT_EQ(0, works_again(first, &self->first.ib));
	EXPECT_NE(1, wait_fence(second, behind, 30));
	EXPECT_EQ(0, works_again(second, &self->second.ib));
	EXPECT_EQ(0, kmsg_complaints(self->first.kmsg));
}

#define CLEARED		16
#define CLEARED_SIZE	(8 * MIB)

/* Allocate buffers in video memory; returns how many words are not zero. */
static long words_of_new_buffers(const char *name)
{
	struct buffer b[CLEARED];
	long count = 0;
	struct gpu gpu;
	size_t at;
	int i;

	if (open_gpu(&gpu, name))
		return -1;
	for (i = 0; i < CLEARED; i++)
		if (new_buffer(&gpu, &b[i], CLEARED_SIZE,
			       AMDGPU_GEM_DOMAIN_VRAM) ||
		    map_cpu(&gpu, &b[i], NULL))
			return -2;
	for (i = 0; i < CLEARED; i++) {
		for (at = 0; at < CLEARED_SIZE; at += 4)
			count += !!*(uint32_t *)(b[i].cpu + at);
		/* the driver clears it when it is freed */
		memset(b[i].cpu, 1, CLEARED_SIZE);
		munmap(b[i].cpu, CLEARED_SIZE);
	}
	close(gpu.fd);
	return count;
}

/* New buffers are zeroed though a reset has filled free memory with garbage. */
TEST(cleared_before_the_reset)
{
	char gpus[MAX_GPUS][32];

	if (!find_gpus(gpus))
		SKIP(return, "no GPU");
	ASSERT_EQ(0, words_of_new_buffers(gpus[0]));
	/* the buffers are freed once they have been cleared */
	sleep(1);
	ASSERT_EQ(0, reset_gpu(gpus[0]));
	EXPECT_EQ(0, words_of_new_buffers(gpus[0]));
}

FIXTURE(failing) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer ib;
	int emu;
	bool stop;
};

FIXTURE_SETUP(failing)
{
	self->emu = emulator_open();
	if (self->emu < 0 || !find_gpus(self->gpus))
		SKIP(return, "no emulator whose engines can die");
	ASSERT_EQ(0, open_gpu(&self->gpu, self->gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->ib, 65536,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, write_word(&self->gpu, &self->ib, 1));
}

FIXTURE_TEARDOWN(failing)
{
	close(self->gpu.fd);
	close(self->emu);
}

/* Engines that die again whenever a reset has brought them back. */
static void *kill_engines(void *arg)
{
	struct _test_data_failing *self = arg;
	int ret = 0;

	while (!ret && !__atomic_load_n(&self->stop, __ATOMIC_ACQUIRE))
		ret = emulator_all(self->emu, "engine all hang");
	return (void *)(intptr_t)ret;
}

#define QUEUED		8

/* Submit jobs until one is refused; returns how many are busy in the end. */
static int count_busy(struct _test_data_failing *self)
{
	struct buffer *ib = &self->ib;
	uint64_t fence[QUEUED];
	int num = 0, busy = 0;

	while (num < QUEUED &&
	       !submit(&self->gpu, &ib, 1, 8, &fence[num]))
		num++;
	while (num--)
		busy += wait_fence(&self->gpu, fence[num], 20) == 1;
	return busy;
}

/* Jobs that are queued after a reset that has failed come to an end. */
TEST_F_TIMEOUT(failing, queued_jobs, 400)
{
	pthread_t thread;
	void *err;
	int kfd;

	ASSERT_EQ(0, pthread_create(&thread, NULL, kill_engines, self));
	reset_gpu(self->gpus[0]);
	__atomic_store_n(&self->stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, &err));
	EXPECT_EQ(NULL, err);
	ASSERT_EQ(0, new_context(&self->gpu));
	EXPECT_EQ(0, count_busy(self));
	ASSERT_EQ(0, emulator_all(self->emu, "engine all resume"));
	EXPECT_EQ(0, reset_gpu(self->gpus[0]));
	EXPECT_EQ(0, works_again(&self->gpu, &self->ib));
	/* nor does the compute driver wait for the end of the first reset */
	if (access("/dev/kfd", F_OK))
		return;
	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	EXPECT_LE(0, kfd);
	close(kfd);
}

TEST_HARNESS_MAIN
