/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Batches that stay pending for as long as a test wants: a fence of sw_sync
 * holds them back, and no engine is busy meanwhile.
 */
#ifndef _SELFTEST_SDMA_HOLD_H
#define _SELFTEST_SDMA_HOLD_H

#include <linux/types.h>
#include <pthread.h>

#include "sdma_prepared.h"

#define SW_SYNC		"/sys/kernel/debug/sync/sw_sync"

struct sw_sync_fence {
	__u32 value;
	char name[32];
	__s32 fence;
};

#define SW_SYNC_CREATE	_IOWR('W', 0, struct sw_sync_fence)
#define SW_SYNC_INC	_IOW('W', 1, __u32)

struct hold {
	int timeline;
	struct drm_amdgpu_sdma_fence in;
};

/* An existing timeline holds back batches of this file. */
static inline int hold_open_on(struct gpu *gpu, struct hold *h, int timeline)
{
	struct sw_sync_fence fence = { .value = 1, .name = "sdma_hold" };
	struct drm_syncobj_handle import = {
		.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE,
	};
	int ret;

	memset(h, 0, sizeof(*h));
	h->timeline = timeline;
	if (ioctl(h->timeline, SW_SYNC_CREATE, &fence))
		return -errno;
	ret = syncobj_new(gpu, &h->in.handle);
	import.handle = h->in.handle;
	import.fd = fence.fence;
	if (!ret)
		ret = gpu_ioctl(gpu, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &import);
	close(fence.fence);
	return ret;
}

/* 0, or a negative errno if there is no sw_sync. */
static inline int hold_open(struct gpu *gpu, struct hold *h)
{
	int timeline = open(SW_SYNC, O_RDWR | O_CLOEXEC);

	return timeline < 0 ? -errno : hold_open_on(gpu, h, timeline);
}

static inline void hold_batch(struct hold *h,
			      struct drm_amdgpu_sdma_batch *batch)
{
	batch->in_fences = (uintptr_t)&h->in;
	batch->num_in_fences = 1;
}

/* Let everything that was held back run. */
static inline void hold_release(struct hold *h)
{
	__u32 one = 1;

	ioctl(h->timeline, SW_SYNC_INC, &one);
	close(h->timeline);
}

/*
 * Submit batches like this one until the file may have no more pending. Returns
 * how many there are, or a negative errno.
 */
static inline int hold_many(struct gpu *gpu, struct hold *h,
			    const struct drm_amdgpu_sdma_batch *like)
{
	struct drm_amdgpu_sdma_batch batch;
	int n, ret = 0;

	for (n = 0; n < 100000; n++) {
		batch = *like;
		batch.flags |= AMDGPU_SDMA_BATCH_NONBLOCK;
		hold_batch(h, &batch);
		ret = batch_submit(gpu, &batch);
		if (ret)
			break;
	}
	return ret == -EAGAIN ? n : ret ? ret : -ERANGE;
}

/* A call that must return at once, made by a thread in case it waits. */
struct answer {
	pthread_t thread;
	struct gpu *gpu;
	struct drm_amdgpu_sdma_batch *batch;
	int ret;
	bool done;
};

#define ANSWER_SECONDS	20

static inline void *answer_call(void *arg)
{
	struct answer *a = arg;

	a->ret = batch_submit(a->gpu, a->batch);
	__atomic_store_n(&a->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static inline bool answered(struct answer *a)
{
	return __atomic_load_n(&a->done, __ATOMIC_ACQUIRE);
}

/*
 * Returns what the call returns. If the call waits for what is held back, that
 * is released, and the result is -ETIMEDOUT.
 */
static inline int answer_now(struct gpu *gpu, struct hold *h,
			     struct drm_amdgpu_sdma_batch *batch)
{
	struct answer a = { .gpu = gpu, .batch = batch };
	int tries, ret;

	ret = -pthread_create(&a.thread, NULL, answer_call, &a);
	if (ret)
		return ret;
	for (tries = 0; tries < ANSWER_SECONDS * 100 && !answered(&a); tries++)
		usleep(10000);
	ret = answered(&a) ? 0 : -ETIMEDOUT;
	if (ret) {
		hold_release(h);
		h->timeline = -1;
	}
	pthread_join(a.thread, NULL);
	return ret ? ret : a.ret;
}

/* Mapping one buffer again and again costs no memory. */
static inline int map_repeatedly(struct gpu *gpu, struct buffer *b, uint64_t va,
				 uint64_t size)
{
	int ret = 0;

	while (size && !ret) {
		struct drm_amdgpu_gem_va arg = {
			.handle = b->handle,
			.operation = AMDGPU_VA_OP_MAP,
			.flags = GPU_RW,
			.va_address = va,
			.map_size = size < b->size ? size : b->size,
		};

		ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_VA, &arg);
		va += arg.map_size;
		size -= arg.map_size;
	}
	return ret;
}

#endif
