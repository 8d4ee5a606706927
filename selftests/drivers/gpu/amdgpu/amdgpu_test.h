/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of amdgpu and amdkfd share: devices and their places in sysfs,
 * buffers, submissions to an SDMA ring, the compute driver, and the kernel's
 * log. Functions return 0 or a negative errno unless stated otherwise. See
 * gpus.h for GPU= in the environment.
 */
#ifndef AMDGPU_TEST_H
#define AMDGPU_TEST_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <linux/kfd_ioctl.h>
#include <drm/amdgpu_drm.h>

#include "emulator.h"
#include "gpus.h"
#include "kmsg.h"

#define MIB		(1024UL * 1024)
#define LO(x)		((uint32_t)(uintptr_t)(x))
#define HI(x)		((uint32_t)((uint64_t)(uintptr_t)(x) >> 32))

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/*
 * A limit in seconds, which no test should reach: PATIENCE= in the environment
 * multiplies it, for a kernel that is slow because it checks much.
 */
static inline double patient(double limit)
{
	const char *times = getenv("PATIENCE");

	return times ? limit * atoi(times) : limit;
}

static inline int do_ioctl(int fd, unsigned long request, void *arg)
{
	int ret;

	do
		ret = ioctl(fd, request, arg);
	while (ret < 0 && (errno == EINTR || errno == EAGAIN));
	return ret < 0 ? -errno : ret;
}

/*
 * Buffers and submissions
 */

struct gpu {
	int fd;
	uint32_t context;
	uint64_t next_va;
};

struct buffer {
	uint32_t handle;
	uint64_t size;
	uint64_t va;
	void *cpu;
};

static inline int new_context(struct gpu *gpu)
{
	union drm_amdgpu_ctx arg = { .in.op = AMDGPU_CTX_OP_ALLOC_CTX };
	int ret = do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_CTX, &arg);

	gpu->context = arg.out.alloc.ctx_id;
	return ret;
}

static inline int open_gpu(struct gpu *gpu, const char *name)
{
	gpu->next_va = 16 * MIB;
	gpu->fd = open_render_node(name);
	return gpu->fd < 0 ? gpu->fd : new_context(gpu);
}

static inline int query_memory(struct gpu *gpu,
			       struct drm_amdgpu_memory_info *memory)
{
	struct drm_amdgpu_info arg = {
		.return_pointer = (uintptr_t)memory,
		.return_size = sizeof(*memory),
		.query = AMDGPU_INFO_MEMORY,
	};

	return do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_INFO, &arg);
}

static inline uint64_t video_memory(struct gpu *gpu)
{
	struct drm_amdgpu_memory_info memory;

	return query_memory(gpu, &memory) ? 0 : memory.vram.usable_heap_size;
}

#define PAGE_RW	(AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE)

/* @op: AMDGPU_VA_OP_*; @flags: AMDGPU_VM_* */
static inline int gem_va(struct gpu *gpu, const struct buffer *b, uint32_t op,
			 uint32_t flags, uint64_t va, uint64_t size)
{
	struct drm_amdgpu_gem_va arg = {
		.handle = b->handle,
		.operation = op,
		.flags = flags,
		.va_address = va,
		.map_size = size,
	};

	return do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_VA, &arg);
}

static inline int map_gpu(struct gpu *gpu, struct buffer *b)
{
	b->va = gpu->next_va;
	gpu->next_va += (b->size + 2 * MIB - 1) & ~(2 * MIB - 1);
	return gem_va(gpu, b, AMDGPU_VA_OP_MAP, PAGE_RW, b->va, b->size);
}

/* At an address of the caller's choice, or anywhere if it is NULL. */
static inline int map_cpu(struct gpu *gpu, struct buffer *b, void *at)
{
	union drm_amdgpu_gem_mmap arg = { .in.handle = b->handle };
	int ret = do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &arg);

	if (ret)
		return ret;
	b->cpu = mmap(at, b->size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | (at ? MAP_FIXED : 0), gpu->fd,
		      arg.out.addr_ptr);
	return b->cpu == MAP_FAILED ? -errno : 0;
}

/* @flags: AMDGPU_GEM_CREATE_* */
static inline int new_buffer_with(struct gpu *gpu, struct buffer *b,
				  uint64_t size, uint64_t domain, uint64_t flags)
{
	union drm_amdgpu_gem_create arg = {
		.in.bo_size = size,
		.in.alignment = 4096,
		.in.domains = domain,
		.in.domain_flags = flags,
	};
	int ret = do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &arg);

	*b = (struct buffer){ .handle = arg.out.handle, .size = size };
	return ret;
}

static inline int new_buffer(struct gpu *gpu, struct buffer *b, uint64_t size,
			     uint64_t domain)
{
	return new_buffer_with(gpu, b, size, domain,
			       domain == AMDGPU_GEM_DOMAIN_VRAM ?
			       AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED : 0);
}

/* Close the handle. A mapping of the CPU stays, and keeps the buffer. */
static inline int free_buffer(struct gpu *gpu, const struct buffer *b)
{
	struct drm_gem_close arg = { .handle = b->handle };

	return do_ioctl(gpu->fd, DRM_IOCTL_GEM_CLOSE, &arg);
}

#define FILL_BUFFERS	16
#define FILL_SIZE	(64 * MIB)

/*
 * Allocate more than an emulated GPU has, for as long as @gpu is open; the rest
 * moves to system memory. Returns how many of FILL_BUFFERS were allocated.
 */
static inline int fill_video_memory(struct gpu *gpu)
{
	struct buffer b;
	int i;

	for (i = 0; i < FILL_BUFFERS; i++) {
		if (new_buffer(gpu, &b, FILL_SIZE, AMDGPU_GEM_DOMAIN_VRAM) ||
		    map_cpu(gpu, &b, NULL))
			break;
		/* the buffer is in place, and has been cleared */
		*(volatile uint32_t *)b.cpu = i;
	}
	return i;
}

/* A buffer that the GPU and the CPU map. */
static inline int new_mapped_buffer(struct gpu *gpu, struct buffer *b,
				    uint64_t size, uint64_t domain)
{
	int ret = new_buffer(gpu, b, size, domain);

	if (!ret)
		ret = map_gpu(gpu, b);
	return ret ? ret : map_cpu(gpu, b, NULL);
}

/* Memory of the process, as a buffer that the GPU can map. */
static inline int new_user_buffer(struct gpu *gpu, struct buffer *b,
				  uint64_t size)
{
	struct drm_amdgpu_gem_userptr arg = {
		.size = size,
		.flags = AMDGPU_GEM_USERPTR_ANONONLY |
			 AMDGPU_GEM_USERPTR_REGISTER |
			 AMDGPU_GEM_USERPTR_VALIDATE,
	};
	int ret;

	b->size = size;
	b->cpu = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (b->cpu == MAP_FAILED)
		return -errno;
	arg.addr = (uintptr_t)b->cpu;
	ret = do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_GEM_USERPTR, &arg);
	b->handle = arg.handle;
	return ret;
}

static inline int make_list(struct gpu *gpu, struct buffer **all,
			    unsigned int count, uint32_t *handle)
{
	struct drm_amdgpu_bo_list_entry entries[16] = {};
	union drm_amdgpu_bo_list arg = {
		.in.operation = AMDGPU_BO_LIST_OP_CREATE,
		.in.bo_number = count,
		.in.bo_info_size = sizeof(entries[0]),
		.in.bo_info_ptr = (uintptr_t)entries,
	};
	int ret;

	for (unsigned int i = 0; i < count && i < 16; i++)
		entries[i].bo_handle = all[i]->handle;
	ret = do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_BO_LIST, &arg);
	*handle = arg.out.list_handle;
	return ret;
}

static inline void drop_list(struct gpu *gpu, uint32_t handle)
{
	union drm_amdgpu_bo_list arg = {
		.in.operation = AMDGPU_BO_LIST_OP_DESTROY,
		.in.list_handle = handle,
	};

	do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_BO_LIST, &arg);
}

/*
 * Run SDMA packets, which the first buffer holds, on the first ring. They wait
 * for @syncobj, if that is not 0.
 */
static inline int submit_after(struct gpu *gpu, uint32_t syncobj,
			       struct buffer **all, unsigned int count,
			       unsigned int words, uint64_t *fence)
{
	struct drm_amdgpu_cs_chunk_sem sem = { .handle = syncobj };
	struct drm_amdgpu_cs_chunk_ib ib = {
		.va_start = all[0]->va,
		.ib_bytes = words * 4,
		.ip_type = AMDGPU_HW_IP_DMA,
	};
	struct drm_amdgpu_cs_chunk chunk[] = {
		{
			.chunk_id = AMDGPU_CHUNK_ID_IB,
			.length_dw = sizeof(ib) / 4,
			.chunk_data = (uintptr_t)&ib,
		}, {
			.chunk_id = AMDGPU_CHUNK_ID_SYNCOBJ_IN,
			.length_dw = sizeof(sem) / 4,
			.chunk_data = (uintptr_t)&sem,
		},
	};
	uint64_t chunks[] = { (uintptr_t)&chunk[0], (uintptr_t)&chunk[1] };
	union drm_amdgpu_cs arg = {
		.in.ctx_id = gpu->context,
		.in.num_chunks = syncobj ? 2 : 1,
		.in.chunks = (uintptr_t)chunks,
	};
	uint32_t list;
	int ret = make_list(gpu, all, count, &list);

	if (ret)
		return ret;
	arg.in.bo_list_handle = list;
	ret = do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_CS, &arg);
	*fence = arg.out.handle;
	drop_list(gpu, list);
	return ret;
}

static inline int submit(struct gpu *gpu, struct buffer **all,
			 unsigned int count, unsigned int words,
			 uint64_t *fence)
{
	return submit_after(gpu, 0, all, count, words, fence);
}

/* 1: still busy. Waits of 20 s or more are limits: see patient(). */
static inline int wait_fence(struct gpu *gpu, uint64_t fence, double seconds)
{
	const double wait = seconds < 20 ? seconds : patient(seconds);
	union drm_amdgpu_wait_cs arg = {
		.in.handle = fence,
		.in.timeout = (uint64_t)((now() + wait) * 1e9),
		.in.ip_type = AMDGPU_HW_IP_DMA,
		.in.ctx_id = gpu->context,
	};
	int ret = do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_WAIT_CS, &arg);

	return ret ? ret : (int)arg.out.status;
}

/* Have the GPU write a word; b holds the packet and, at 1024, the word. */
static inline int write_word(struct gpu *gpu, struct buffer *b, uint32_t value)
{
	uint32_t *word = (uint32_t *)b->cpu + 256;
	const uint32_t packet[8] = {
		5, LO(b->va + 1024), HI(b->va + 1024), value,
	};
	uint64_t fence;
	int ret;

	__atomic_store_n(word, ~value, __ATOMIC_RELAXED);
	memcpy(b->cpu, packet, sizeof(packet));
	ret = submit(gpu, &b, 1, 8, &fence);
	if (!ret)
		ret = wait_fence(gpu, fence, 30);
	if (ret)
		return ret;
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) == value ? 0 : -EIO;
}

/* Have the GPU wait until a word of the first buffer, at 2048, becomes 1. */
static inline int submit_endless(struct gpu *gpu, struct buffer **all,
				 unsigned int count, uint64_t *fence)
{
	const uint64_t at = all[0]->va + 2048;
	const uint32_t packet[8] = {
		8 | 1U << 31 | 3U << 28, LO(at), HI(at), 1, ~0U,
		0xfffU << 16 | 10,
	};

	memset((char *)all[0]->cpu + 2048, 0, 4);
	memcpy(all[0]->cpu, packet, sizeof(packet));
	return submit(gpu, all, count, 8, fence);
}

/* The state of a context: AMDGPU_CTX_QUERY2_FLAGS_*, or -errno. */
static inline long context_state(struct gpu *gpu, uint32_t context)
{
	union drm_amdgpu_ctx arg = {
		.in.op = AMDGPU_CTX_OP_QUERY_STATE2,
		.in.ctx_id = context,
	};
	int ret = do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_CTX, &arg);

	return ret ? ret : (long)arg.out.state.flags;
}

/*
 * After a reset: a new context, whose jobs run once the device is up. @b is as
 * for write_word().
 */
static inline int works_again(struct gpu *gpu, struct buffer *b)
{
	double end = now() + patient(60);
	int ret;

	do {
		ret = new_context(gpu);
		if (!ret)
			ret = write_word(gpu, b, 2);
		if (ret)
			usleep(100000);
	} while (ret && now() < end);
	return ret;
}

/*
 * The compute driver
 */

struct kfd_node {
	uint32_t gpu_id;
	int drm;
};

/* The nodes of find_gpus(), each with an open file of its render node. */
static inline int kfd_nodes(struct kfd_node nodes[MAX_GPUS])
{
	char gpus[MAX_GPUS][32], path[64];
	int all = find_gpus(gpus), count = 0, n;

	for (int i = 0; i < all; i++) {
		n = kfd_node_of(gpus[i]);
		if (n < 0)
			continue;
		snprintf(path, sizeof(path), "/dev/dri/renderD%ld",
			 kfd_property(n, "properties", "drm_render_minor"));
		nodes[count].gpu_id = kfd_property(n, "gpu_id", NULL);
		nodes[count++].drm = open(path, O_RDWR | O_CLOEXEC);
	}
	return count;
}

static inline bool kfd_opens(void)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * Whether, as intended, KFD cannot be opened at some moment of a reset of a GPU
 * but can be before and after it; or -ENOENT if a reset cannot be requested.
 */
static inline int reset_keeps_out(const char *gpu)
{
	bool before = kfd_opens(), out = false;
	pid_t reset = fork(), ended;
	int status;

	if (!reset)
		_exit(-reset_gpu(gpu));
	do {
		ended = waitpid(reset, &status, WNOHANG);
		out |= !kfd_opens();
	} while (!ended);
	if (ended < 0 || status)
		return ended < 0 ? -errno : -WEXITSTATUS(status);
	return before && out && kfd_opens();
}

static inline int kfd_acquire_vm(int kfd, const struct kfd_node *node)
{
	struct kfd_ioctl_acquire_vm_args arg = {
		.drm_fd = node->drm,
		.gpu_id = node->gpu_id,
	};

	return do_ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &arg);
}

/* Bring a range into a GPU's memory and map it there. */
static inline int kfd_prefetch(int kfd, void *at, uint64_t size,
			       uint32_t gpu_id)
{
	const struct kfd_ioctl_svm_attribute attrs[] = {
		{ KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, gpu_id },
		{ KFD_IOCTL_SVM_ATTR_ACCESS, gpu_id },
		{ KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, gpu_id },
	};
	struct {
		struct kfd_ioctl_svm_args args;
		struct kfd_ioctl_svm_attribute attrs[3];
	} u = { .args = {
		.start_addr = (uintptr_t)at,
		.size = size,
		.op = KFD_IOCTL_SVM_OP_SET_ATTR,
		.nattr = 3,
	} };

	memcpy(u.attrs, attrs, sizeof(attrs));
	/* the length of the list is part of the request's number */
	return do_ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE,
				  0x20, sizeof(u)), &u);
}

/* A device-private page looks swapped out. */
static inline bool is_swapped(const void *at)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	ssize_t n;

	n = pread(fd, &entry, 8, (off_t)((uintptr_t)at / 4096 * 8));
	close(fd);
	return n == 8 && entry >> 62 & 1;
}

#endif
