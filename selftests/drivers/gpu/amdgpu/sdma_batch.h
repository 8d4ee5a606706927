/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A GPU as the tests of SDMA batches see it: buffers with a GPU address and a
 * CPU mapping, syncobjs, batches; by ioctl, without a library. See gpus.h for
 * GPU= in the environment.
 */
#ifndef _SELFTEST_SDMA_BATCH_H
#define _SELFTEST_SDMA_BATCH_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <drm/amdgpu_drm.h>
#include <linux/sync_file.h>

#include "gpus.h"

#define KIB		1024UL
#define MIB		(1024 * KIB)
#define GPU_RW		(AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE)
#define WAIT_SECONDS	60

struct gpu {
	int fd;
	char name[32];	/* PCI address */
	uint32_t ctx;
	struct drm_amdgpu_info_sdma_batch info;
};

struct buffer {
	uint32_t handle;
	uint64_t va;
	uint64_t size;
	uint8_t *cpu;
};

/* 0 or a negative errno; an interrupted call is repeated. */
static inline int gpu_ioctl(struct gpu *gpu, unsigned long cmd, void *arg)
{
	int ret;

	do {
		ret = ioctl(gpu->fd, cmd, arg);
	} while (ret < 0 && (errno == EINTR || errno == EAGAIN));
	return ret < 0 ? -errno : 0;
}

static inline int gpu_context(struct gpu *gpu, uint32_t *id)
{
	union drm_amdgpu_ctx arg = { .in.op = AMDGPU_CTX_OP_ALLOC_CTX };
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_CTX, &arg);

	*id = arg.out.alloc.ctx_id;
	return ret;
}

static inline int gpu_query_batch(struct gpu *gpu)
{
	struct drm_amdgpu_info arg = {
		.return_pointer = (uintptr_t)&gpu->info,
		.return_size = sizeof(gpu->info),
		.query = AMDGPU_INFO_SDMA_BATCH,
	};

	return gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_INFO, &arg);
}

static inline uint64_t gpu_info_number(struct gpu *gpu, uint32_t query)
{
	uint64_t value = 0;
	struct drm_amdgpu_info arg = {
		.return_pointer = (uintptr_t)&value,
		.return_size = sizeof(value),
		.query = query,
	};

	return gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_INFO, &arg) ? 0 : value;
}

/* How many buffers have left video memory since the driver was loaded. */
static inline uint64_t gpu_evictions(struct gpu *gpu)
{
	return gpu_info_number(gpu, AMDGPU_INFO_NUM_EVICTIONS);
}

/* A few more than the number of buffers of @size that fit in video memory. */
static inline unsigned int gpu_too_many(struct gpu *gpu, uint64_t size)
{
	struct drm_amdgpu_info_vram_gtt memory = { };
	struct drm_amdgpu_info arg = {
		.return_pointer = (uintptr_t)&memory,
		.return_size = sizeof(memory),
		.query = AMDGPU_INFO_VRAM_GTT,
	};

	if (gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_INFO, &arg))
		return ~0u;
	return memory.vram_size / size + 3;
}

/* Open the @index-th GPU of find_gpus() that has batches: 0 or -errno. */
static inline int gpu_open(struct gpu *gpu, int index)
{
	char names[MAX_GPUS][32];
	int i, n = find_gpus(names);

	for (i = 0; i < n; i++) {
		gpu->fd = open_render_node(names[i]);
		if (gpu->fd < 0)
			continue;
		memcpy(gpu->name, names[i], sizeof(gpu->name));
		if (!gpu_query_batch(gpu) && gpu->info.ops && !index--)
			return gpu_context(gpu, &gpu->ctx);
		close(gpu->fd);
	}
	gpu->fd = -1;
	return -ENODEV;
}

static inline int buffer_va(struct gpu *gpu, struct buffer *b, uint32_t op,
			    uint64_t va, uint32_t flags)
{
	struct drm_amdgpu_gem_va arg = {
		.handle = b->handle,
		.operation = op,
		.flags = flags,
		.va_address = va,
		.map_size = b->size,
	};

	return gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_VA, &arg);
}

static inline int buffer_cpu(struct gpu *gpu, struct buffer *b)
{
	union drm_amdgpu_gem_mmap arg = { .in.handle = b->handle };
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_MMAP, &arg);

	if (ret)
		return ret;
	b->cpu = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		      gpu->fd, arg.out.addr_ptr);
	return b->cpu == MAP_FAILED ? -errno : 0;
}

static inline int buffer_new(struct gpu *gpu, struct buffer *b, uint64_t size,
			     uint32_t domain)
{
	union drm_amdgpu_gem_create arg = {
		.in.bo_size = size,
		.in.alignment = 4096,
		.in.domains = domain,
	};
	int ret;

	if (domain == AMDGPU_GEM_DOMAIN_VRAM)
		arg.in.domain_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
	memset(b, 0, sizeof(*b));
	ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_CREATE, &arg);
	b->handle = arg.out.handle;
	b->size = size;
	return ret;
}

/* A buffer that the GPU, at @va, and the CPU map. */
static inline int buffer_map(struct gpu *gpu, struct buffer *b, uint64_t size,
			     uint32_t domain, uint64_t va)
{
	int ret = buffer_new(gpu, b, size, domain);

	if (!ret)
		ret = buffer_va(gpu, b, AMDGPU_VA_OP_MAP, va, GPU_RW);
	b->va = va;
	return ret ? ret : buffer_cpu(gpu, b);
}

/* A user pointer: memory of the process at b->cpu, or new memory if 0. */
static inline int buffer_user(struct gpu *gpu, struct buffer *b, uint64_t size,
			      uint64_t va, uint32_t flags)
{
	struct drm_amdgpu_gem_userptr arg = { .size = size, .flags = flags };
	int ret;

	if (!b->cpu)
		b->cpu = mmap(NULL, size, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((void *)b->cpu == MAP_FAILED)
		return -errno;
	arg.addr = (uintptr_t)b->cpu;
	ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_USERPTR, &arg);
	b->handle = arg.handle;
	b->size = size;
	b->va = va;
	return ret ? ret : buffer_va(gpu, b, AMDGPU_VA_OP_MAP, va, GPU_RW);
}

static inline void buffer_free(struct gpu *gpu, struct buffer *b)
{
	struct drm_gem_close arg = { .handle = b->handle };

	if (b->cpu)
		munmap(b->cpu, b->size);
	if (b->handle)
		gpu_ioctl(gpu, DRM_IOCTL_GEM_CLOSE, &arg);
	memset(b, 0, sizeof(*b));
}

static inline int syncobj_new(struct gpu *gpu, uint32_t *handle)
{
	struct drm_syncobj_create arg = { 0 };
	int ret = gpu_ioctl(gpu, DRM_IOCTL_SYNCOBJ_CREATE, &arg);

	*handle = arg.handle;
	return ret;
}

static inline void syncobj_free(struct gpu *gpu, uint32_t handle)
{
	struct drm_syncobj_destroy arg = { .handle = handle };

	gpu_ioctl(gpu, DRM_IOCTL_SYNCOBJ_DESTROY, &arg);
}

/* 0, or -ETIME if it did not signal within @seconds. */
static inline int syncobj_wait(struct gpu *gpu, uint32_t handle,
			       uint64_t point, double seconds)
{
	struct drm_syncobj_timeline_wait arg = {
		.handles = (uintptr_t)&handle,
		.points = (uintptr_t)&point,
		.count_handles = 1,
		.flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT,
	};
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	arg.timeout_nsec = now.tv_sec * 1000000000LL + now.tv_nsec +
			   (int64_t)(seconds * 1e9);
	return gpu_ioctl(gpu, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &arg);
}

/* The fence of a binary syncobj as a sync_file: its descriptor, or an error. */
static inline int syncobj_file(struct gpu *gpu, uint32_t handle)
{
	struct drm_syncobj_handle arg = {
		.handle = handle,
		.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE,
		.fd = -1,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &arg);

	return ret ? ret : arg.fd;
}

/* The state of a binary syncobj's fence: 1 done, 0 pending, or an error. */
static inline int syncobj_status(struct gpu *gpu, uint32_t handle)
{
	struct sync_file_info info = { 0 };
	int fd = syncobj_file(gpu, handle);

	if (fd < 0)
		return fd;
	if (ioctl(fd, SYNC_IOC_FILE_INFO, &info))
		info.status = -errno;
	close(fd);
	return info.status;
}

/* The @n-th engine of a mask, from 0 on; 0 if there are not so many. */
static inline uint32_t nth_engine(uint32_t mask, unsigned int n)
{
	while (mask && n--)
		mask &= mask - 1;
	return mask & -mask;
}

/* @parts thousandths of the time that the waits of a batch may take. */
static inline uint64_t wait_ns(const struct gpu *gpu, unsigned int parts)
{
	return gpu->info.max_wait_ns / 1000 * parts;
}

static inline struct drm_amdgpu_sdma_batch
batch_of(struct gpu *gpu, const struct drm_amdgpu_sdma_desc *descs, uint32_t n)
{
	return (struct drm_amdgpu_sdma_batch) {
		.ctx_id = gpu->ctx,
		.descs = (uintptr_t)descs,
		.num_descs = n,
		.desc_stride = sizeof(*descs),
	};
}

/* One call, not repeated: a signal ends it. */
static inline int batch_call(struct gpu *gpu,
			     struct drm_amdgpu_sdma_batch *batch)
{
	return ioctl(gpu->fd, DRM_IOCTL_AMDGPU_SDMA_BATCH, batch) ? -errno : 0;
}

/* -EAGAIN is a result: that of AMDGPU_SDMA_BATCH_NONBLOCK. */
static inline int batch_submit(struct gpu *gpu,
			       struct drm_amdgpu_sdma_batch *batch)
{
	int ret;

	do {
		ret = batch_call(gpu, batch);
	} while (ret == -EINTR);
	return ret;
}

/* Its end signals this point of a timeline, or with 0 a binary syncobj. */
static inline int batch_submit_to(struct gpu *gpu,
				  struct drm_amdgpu_sdma_batch *batch,
				  uint32_t syncobj, uint64_t point)
{
	struct drm_amdgpu_sdma_fence out = {
		.handle = syncobj, .point = point,
	};

	batch->out_fences = (uintptr_t)&out;
	batch->num_out_fences = 1;
	return batch_submit(gpu, batch);
}

/* Submit and wait. Returns 0, or how the call or the batch failed. */
static inline int batch_run(struct gpu *gpu,
			    struct drm_amdgpu_sdma_batch *batch)
{
	uint32_t syncobj;
	int ret = syncobj_new(gpu, &syncobj);

	if (ret)
		return ret;
	ret = batch_submit_to(gpu, batch, syncobj, 0);
	if (!ret)
		ret = syncobj_wait(gpu, syncobj, 0, WAIT_SECONDS);
	if (!ret)
		ret = syncobj_status(gpu, syncobj);
	syncobj_free(gpu, syncobj);
	return ret == 1 ? 0 : ret;
}

#endif
