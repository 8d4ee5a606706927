/* SPDX-License-Identifier: GPL-2.0 */
/*
 * AMDGPU_CS jobs on an SDMA ring beside batches. They can be held back, too.
 */
#ifndef _SELFTEST_SDMA_CS_H
#define _SELFTEST_SDMA_CS_H

#include "sdma_hold.h"

#define CS_MAX_BUFFERS	4

/* The buffers that a job uses; SVM memory is not listed. */
static inline int cs_list(struct gpu *gpu, struct buffer *const *buffers,
			  unsigned int n, uint32_t *list)
{
	struct drm_amdgpu_bo_list_entry entries[CS_MAX_BUFFERS] = { };
	union drm_amdgpu_bo_list arg = {
		.in.operation = AMDGPU_BO_LIST_OP_CREATE,
		.in.bo_number = n,
		.in.bo_info_size = sizeof(entries[0]),
		.in.bo_info_ptr = (uintptr_t)entries,
	};
	unsigned int i;
	int ret;

	if (n > CS_MAX_BUFFERS)
		return -E2BIG;
	for (i = 0; i < n; i++)
		entries[i].bo_handle = buffers[i]->handle;
	ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_BO_LIST, &arg);
	*list = arg.out.list_handle;
	return ret;
}

/* Run the packets at @va, once @hold lets them if that is not NULL. */
static inline int cs_submit(struct gpu *gpu, uint32_t list, uint64_t va,
			    uint32_t bytes, struct hold *hold, uint64_t *handle)
{
	struct drm_amdgpu_cs_chunk_ib ib = {
		.va_start = va,
		.ib_bytes = bytes,
		.ip_type = AMDGPU_HW_IP_DMA,
	};
	struct drm_amdgpu_cs_chunk_sem sem = {
		.handle = hold ? hold->in.handle : 0,
	};
	struct drm_amdgpu_cs_chunk chunk[] = {
		{ .chunk_id = AMDGPU_CHUNK_ID_IB, .length_dw = sizeof(ib) / 4,
		  .chunk_data = (uintptr_t)&ib },
		{ .chunk_id = AMDGPU_CHUNK_ID_SYNCOBJ_IN,
		  .length_dw = sizeof(sem) / 4,
		  .chunk_data = (uintptr_t)&sem },
	};
	uint64_t chunks[] = { (uintptr_t)&chunk[0], (uintptr_t)&chunk[1] };
	union drm_amdgpu_cs arg = {
		.in.ctx_id = gpu->ctx,
		.in.bo_list_handle = list,
		.in.num_chunks = hold ? 2 : 1,
		.in.chunks = (uintptr_t)chunks,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_CS, &arg);

	*handle = arg.out.handle;
	return ret;
}

/* 0, -ETIME if it is still busy, or an error. */
static inline int cs_wait(struct gpu *gpu, uint64_t handle, double seconds)
{
	struct timespec now;
	union drm_amdgpu_wait_cs arg = {
		.in.handle = handle,
		.in.ip_type = AMDGPU_HW_IP_DMA,
		.in.ctx_id = gpu->ctx,
	};
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &now);
	arg.in.timeout = now.tv_sec * 1000000000ULL + now.tv_nsec +
			 (uint64_t)(seconds * 1e9);
	ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_WAIT_CS, &arg);
	return ret ? ret : arg.out.status ? -ETIME : 0;
}

#endif
