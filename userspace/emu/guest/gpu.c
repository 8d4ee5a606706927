// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include "gpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <drm/amdgpu_drm.h>

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static bool is_amd(int minor)
{
	char path[128], text[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/drm/renderD%d/device/vendor",
		 minor);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = 0;
	fclose(f);
	return strtoul(text, NULL, 16) == 0x1002;
}

bool in_hive(int minor)
{
	char path[128];

	snprintf(path, sizeof(path),
		 "/sys/class/drm/renderD%d/device/xgmi_hive_info", minor);
	return !access(path, F_OK);
}

int find_render_nodes(int minors[MAX_GPUS])
{
	int count = 0, minor;

	for (minor = 128; minor < 192 && count < MAX_GPUS; minor++)
		if (is_amd(minor))
			minors[count++] = minor;
	return count;
}

int gpu_ioctl(struct gpu *gpu, unsigned long request, void *arg)
{
	int ret;

	do
		ret = ioctl(gpu->fd, request, arg);
	while (ret < 0 && (errno == EINTR || errno == EAGAIN));
	return ret < 0 ? -errno : ret;
}

int new_context(struct gpu *gpu)
{
	union drm_amdgpu_ctx arg = { .in.op = AMDGPU_CTX_OP_ALLOC_CTX };
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_CTX, &arg);

	gpu->context = arg.out.alloc.ctx_id;
	return ret;
}

int open_gpu(struct gpu *gpu, int minor)
{
	char path[64];
	int ret;

	memset(gpu, 0, sizeof(*gpu));
	snprintf(path, sizeof(path), "/dev/dri/renderD%d", minor);
	gpu->fd = open(path, O_RDWR | O_CLOEXEC);
	if (gpu->fd < 0)
		return -errno;
	gpu->next_va = 16 * MIB;
	ret = new_context(gpu);
	if (!ret)
		ret = new_buffer(gpu, &gpu->ib, 65536,
				 IN_SYSTEM | MAP_GPU | MAP_CPU);
	return ret;
}

void close_gpu(struct gpu *gpu)
{
	unmap_cpu(&gpu->ib);
	close(gpu->fd);
}

int map_gpu(struct gpu *gpu, struct buffer *b)
{
	struct drm_amdgpu_gem_va arg = {
		.handle = b->handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE,
		.va_address = gpu->next_va,
		.map_size = b->size,
	};

	b->va = gpu->next_va;
	gpu->next_va += (b->size + 2 * MIB - 1) & ~(2 * MIB - 1);
	return gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_VA, &arg);
}

int map_cpu(struct gpu *gpu, struct buffer *b)
{
	union drm_amdgpu_gem_mmap arg = { .in.handle = b->handle };
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_MMAP, &arg);

	if (ret)
		return ret;
	b->cpu = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_SHARED,
		      gpu->fd, arg.out.addr_ptr);
	if (b->cpu == MAP_FAILED) {
		b->cpu = NULL;
		return -errno;
	}
	return 0;
}

void unmap_cpu(struct buffer *b)
{
	if (b->cpu)
		munmap(b->cpu, b->size);
	b->cpu = NULL;
}

int new_buffer(struct gpu *gpu, struct buffer *b, uint64_t size, int flags)
{
	union drm_amdgpu_gem_create arg = {
		.in.bo_size = size,
		.in.alignment = 4096,
		.in.domains = flags & IN_VRAM ? AMDGPU_GEM_DOMAIN_VRAM
					      : AMDGPU_GEM_DOMAIN_GTT,
	};
	int ret;

	memset(b, 0, sizeof(*b));
	if (flags & IN_VRAM && flags & MAP_CPU)
		arg.in.domain_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
	ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_CREATE, &arg);
	if (ret)
		return ret;
	b->handle = arg.out.handle;
	b->size = size;
	if (flags & MAP_GPU)
		ret = map_gpu(gpu, b);
	if (!ret && flags & MAP_CPU)
		ret = map_cpu(gpu, b);
	return ret;
}

void free_buffer(struct gpu *gpu, struct buffer *b)
{
	struct drm_gem_close arg = { .handle = b->handle };

	unmap_cpu(b);
	if (b->handle)
		gpu_ioctl(gpu, DRM_IOCTL_GEM_CLOSE, &arg);
	memset(b, 0, sizeof(*b));
}

struct commands start_commands(struct gpu *gpu)
{
	return (struct commands){ .words = gpu->ib.cpu };
}

void emit(struct commands *c, const uint32_t *words, unsigned int count)
{
	memcpy(c->words + c->count, words, 4 * count);
	c->count += count;
}

void emit_copy(struct commands *c, uint64_t from, uint64_t to, uint64_t bytes)
{
	EMIT(c, 1, LO(bytes - 1), 0, LO(from), HI(from), LO(to), HI(to));
}

void emit_nop(struct commands *c)
{
	EMIT(c, 0);
}

void emit_fence(struct commands *c, uint64_t to, uint32_t value)
{
	EMIT(c, 5, LO(to), HI(to), value);
}

static int make_list(struct gpu *gpu, struct buffer *const buffers[],
		     uint32_t *handle)
{
	struct drm_amdgpu_bo_list_entry entries[64];
	union drm_amdgpu_bo_list arg = {
		.in.operation = AMDGPU_BO_LIST_OP_CREATE,
		.in.bo_info_size = sizeof(entries[0]),
		.in.bo_info_ptr = (uintptr_t)entries,
	};
	unsigned int n = 0;
	int ret;

	memset(entries, 0, sizeof(entries));
	entries[n++].bo_handle = gpu->ib.handle;
	for (; *buffers && n < 64; buffers++)
		entries[n++].bo_handle = (*buffers)->handle;
	arg.in.bo_number = n;
	ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_BO_LIST, &arg);
	*handle = arg.out.list_handle;
	return ret;
}

static void drop_list(struct gpu *gpu, uint32_t handle)
{
	union drm_amdgpu_bo_list arg = {
		.in.operation = AMDGPU_BO_LIST_OP_DESTROY,
		.in.list_handle = handle,
	};

	gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_BO_LIST, &arg);
}

int submit(struct gpu *gpu, struct commands *c, unsigned int ring,
	   struct buffer *const buffers[], uint64_t *fence)
{
	struct drm_amdgpu_cs_chunk_ib ib = {
		.va_start = gpu->ib.va,
		.ip_type = AMDGPU_HW_IP_DMA,
		.ring = ring,
	};
	struct drm_amdgpu_cs_chunk chunk = {
		.chunk_id = AMDGPU_CHUNK_ID_IB,
		.length_dw = sizeof(ib) / 4,
		.chunk_data = (uintptr_t)&ib,
	};
	uint64_t chunks = (uintptr_t)&chunk;
	union drm_amdgpu_cs arg = { .in.ctx_id = gpu->context };
	int ret;

	while (c->count % 8)
		EMIT(c, 0);
	ib.ib_bytes = c->count * 4;
	ret = make_list(gpu, buffers, &arg.in.bo_list_handle);
	if (ret)
		return ret;
	arg.in.num_chunks = 1;
	arg.in.chunks = (uintptr_t)&chunks;
	uint32_t list = arg.in.bo_list_handle;
	ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_CS, &arg);
	*fence = arg.out.handle;
	drop_list(gpu, list);
	return ret;
}

int wait_fence(struct gpu *gpu, uint64_t fence, unsigned int ring,
	       double seconds)
{
	union drm_amdgpu_wait_cs arg = {
		.in.handle = fence,
		.in.timeout = (uint64_t)((now() + seconds) * 1e9),
		.in.ip_type = AMDGPU_HW_IP_DMA,
		.in.ring = ring,
		.in.ctx_id = gpu->context,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_WAIT_CS, &arg);

	return ret ? ret : (int)arg.out.status;
}

int submit_and_wait(struct gpu *gpu, struct commands *c,
		    struct buffer *const buffers[])
{
	uint64_t fence;
	int ret = submit(gpu, c, 0, buffers, &fence);

	return ret ? ret : wait_fence(gpu, fence, 0, 30);
}

static int open_port(void)
{
	char path[300], name[64];
	struct dirent *entry;
	int fd = -1;
	DIR *dir = opendir("/sys/class/virtio-ports");

	while (dir && fd < 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name",
			 entry->d_name);
		FILE *f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) &&
		    !strcmp(name, "sluice.emu\n")) {
			snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
			fd = open(path, O_RDWR | O_CLOEXEC);
		}
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return fd;
}

static int port(void)
{
	static int fd = -2;

	if (fd == -2)
		fd = open_port();
	return fd;
}

bool have_emulator(void)
{
	return port() >= 0;
}

int emulator(const char *command, char *reply, size_t size)
{
	char text[8192];
	size_t used = 0;
	ssize_t n;

	if (port() < 0)
		return -ENODEV;
	snprintf(text, sizeof(text), "%s\n", command);
	if (write(port(), text, strlen(text)) < 0)
		return -errno;
	while (used < sizeof(text) - 1) {
		n = read(port(), text + used, sizeof(text) - 1 - used);
		if (n <= 0)
			return -EIO;
		used += (size_t)n;
		text[used] = 0;
		if (text[used - 1] != '\n')
			continue;
		if (reply)
			snprintf(reply, size, "%s", text);
		if (used >= 3 && !strcmp(text + used - 3, "ok\n"))
			return 0;
		if (strstr(text, "error: "))
			return -EINVAL;
	}
	return -E2BIG;
}

long long counter(const char *name)
{
	char command[32], reply[4096], key[64], *at;
	long long sum = -1;

	snprintf(key, sizeof(key), "\"%s\":", name);
	for (int i = 0;; i++) {
		snprintf(command, sizeof(command), "gpu%d stats", i);
		if (emulator(command, reply, sizeof(reply)))
			return sum;
		at = strstr(reply, key);
		if (at)
			sum = (sum < 0 ? 0 : sum) + atoll(at + strlen(key));
	}
}
