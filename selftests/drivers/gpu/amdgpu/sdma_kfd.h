/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of the compute driver, for tests of SDMA batches.
 */
#ifndef _SELFTEST_SDMA_KFD_H
#define _SELFTEST_SDMA_KFD_H

#include <linux/kfd_ioctl.h>

#include "sdma_desc.h"

/* The process, as the compute driver knows it, and one of its GPUs. */
struct kfd {
	int fd;
	uint32_t id;
};

static inline int kfd_call(const struct kfd *kfd, unsigned long cmd, void *arg)
{
	return ioctl(kfd->fd, cmd, arg) ? -errno : 0;
}

/* Make the VM of the file that of the process in the compute driver, too. */
static inline int kfd_acquire(struct kfd *kfd, struct gpu *gpu)
{
	struct kfd_ioctl_acquire_vm_args arg = { .drm_fd = gpu->fd };
	int node = kfd_node_of(gpu->name);

	if (node < 0)
		return -ENODEV;
	kfd->id = kfd_property(node, "gpu_id", NULL);
	arg.gpu_id = kfd->id;
	return kfd_call(kfd, AMDKFD_IOC_ACQUIRE_VM, &arg);
}

static inline int kfd_open(struct kfd *kfd, struct gpu *gpu)
{
	kfd->fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	return kfd->fd < 0 ? -ENODEV : kfd_acquire(kfd, gpu);
}

static inline int kfd_map(struct kfd *kfd, uint64_t handle)
{
	struct kfd_ioctl_map_memory_to_gpu_args arg = {
		.handle = handle,
		.device_ids_array_ptr = (uintptr_t)&kfd->id,
		.n_devices = 1,
	};

	return kfd_call(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &arg);
}

static inline int kfd_unmap(struct kfd *kfd, uint64_t handle)
{
	struct kfd_ioctl_unmap_memory_from_gpu_args arg = {
		.handle = handle,
		.device_ids_array_ptr = (uintptr_t)&kfd->id,
		.n_devices = 1,
	};

	return kfd_call(kfd, AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, &arg);
}

static inline int kfd_free_memory(struct kfd *kfd, uint64_t handle)
{
	struct kfd_ioctl_free_memory_of_gpu_args arg = { .handle = handle };

	return kfd_call(kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &arg);
}

/*
 * For a user pointer, @offset is the address of the memory; otherwise it is a
 * result, the offset at which the file maps the memory for the CPU.
 */
static inline int kfd_alloc(struct kfd *kfd, uint64_t va, uint64_t size,
			    uint32_t flags, uint64_t *offset, uint64_t *handle)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args arg = {
		.va_addr = va,
		.size = size,
		.mmap_offset = *offset,
		.gpu_id = kfd->id,
		.flags = flags | KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE,
	};
	int ret = kfd_call(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &arg);

	*offset = arg.mmap_offset;
	*handle = arg.handle;
	return ret;
}

#endif
