/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffers that one GPU exports and another one imports, and how to move them.
 */
#ifndef _SELFTEST_AMDGPU_IMPORT_H
#define _SELFTEST_AMDGPU_IMPORT_H

#include "amdgpu_test.h"

static inline int import_fd(struct gpu *to, int fd, uint64_t size,
			    struct buffer *theirs)
{
	struct drm_prime_handle arg = { .fd = fd };
	int ret = do_ioctl(to->fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &arg);

	*theirs = (struct buffer){ .handle = arg.handle, .size = size };
	return ret;
}

static inline int import(struct gpu *from, const struct buffer *b,
			 struct gpu *to, struct buffer *theirs)
{
	struct drm_prime_handle arg = {
		.handle = b->handle, .flags = DRM_CLOEXEC | DRM_RDWR,
	};
	int ret = do_ioctl(from->fd, DRM_IOCTL_PRIME_HANDLE_TO_FD, &arg);

	if (ret)
		return ret;
	ret = import_fd(to, arg.fd, b->size, theirs);
	close(arg.fd);
	return ret ? ret : map_gpu(to, theirs);
}

static inline int ask(struct gpu *gpu, uint32_t query, void *answer,
		      uint32_t size)
{
	struct drm_amdgpu_info arg = {
		.return_pointer = (uintptr_t)answer,
		.return_size = size,
		.query = query,
	};

	return do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_INFO, &arg);
}

/* On an APU, system memory is as good: the driver moves nothing back. */
static inline bool is_apu(struct gpu *gpu)
{
	struct drm_amdgpu_info_device dev = {};

	ask(gpu, AMDGPU_INFO_DEV_INFO, &dev, sizeof(dev));
	return dev.ids_flags & AMDGPU_IDS_FLAGS_FUSION;
}

static inline uint64_t bytes_moved(struct gpu *gpu)
{
	uint64_t bytes = 0;

	ask(gpu, AMDGPU_INFO_NUM_BYTES_MOVED, &bytes, sizeof(bytes));
	return bytes;
}

/* The next job that has @b in its list moves it to @domain. */
static inline int wants_in(struct gpu *gpu, struct buffer *b, uint64_t domain)
{
	struct drm_amdgpu_gem_op arg = {
		.handle = b->handle,
		.op = AMDGPU_GEM_OP_SET_PLACEMENT,
		.value = domain,
	};

	return do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_OP, &arg);
}

static inline int run(struct gpu *gpu, struct buffer **all, unsigned int count)
{
	uint64_t fence;
	int ret = submit(gpu, all, count, 8, &fence);

	return ret ? ret : wait_fence(gpu, fence, 30);
}

/* Have an empty job of @gpu move @b; @ib is a page for its packets. */
static inline int move_buffer(struct gpu *gpu, struct buffer *ib,
			      struct buffer *b, uint64_t domain)
{
	struct buffer *all[] = { ib, b };
	int ret = wants_in(gpu, b, domain);

	memset(ib->cpu, 0, 32);
	return ret ? ret : run(gpu, all, 2);
}

#endif
