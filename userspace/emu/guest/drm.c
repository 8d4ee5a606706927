// SPDX-License-Identifier: MIT
// The graphics driver's paths: buffers, address spaces, submission, eviction.
#include "gpu.h"

#include <fcntl.h>
#include <string.h>

#include <drm/amdgpu_drm.h>

static int open_first(struct gpu *gpu)
{
	int minors[MAX_GPUS];

	return find_render_nodes(minors) ? open_gpu(gpu, minors[0]) : -1;
}

static int query(struct gpu *gpu, struct drm_amdgpu_info *q, void *out,
		 uint32_t size)
{
	q->return_pointer = (uintptr_t)out;
	q->return_size = size;
	return gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_INFO, q);
}

static int test_info(void)
{
	struct drm_amdgpu_info q = { .query = AMDGPU_INFO_DEV_INFO };
	struct drm_amdgpu_info_device device = { 0 };
	struct drm_amdgpu_info_hw_ip dma = { 0 };
	struct gpu gpu;

	CHECK(!open_first(&gpu), "no GPU");
	CHECK(!query(&gpu, &q, &device, sizeof(device)), "DEV_INFO");
	CHECK(device.device_id == 0x74a1, "device %#x", device.device_id);
	memset(&q, 0, sizeof(q));
	q.query = AMDGPU_INFO_HW_IP_INFO;
	q.query_hw_ip.type = AMDGPU_HW_IP_DMA;
	CHECK(!query(&gpu, &q, &dma, sizeof(dma)), "HW_IP_INFO");
	CHECK(dma.available_rings & 1, "rings %#x", dma.available_rings);
	close_gpu(&gpu);
	return 0;
}

/* No process sees earlier contents of video memory: neither those of power-on
 * (--poison; so this has to come first) nor those of the first of two rounds,
 * each of which takes more than half of it. A word of each page is checked.
 */
static int test_cleared(void)
{
	enum { COUNT = 9 };
	const uint64_t size = 64 * MIB, step = 1024;
	struct buffer b[COUNT];
	struct gpu gpu;

	CHECK(!open_first(&gpu), "no GPU");
	for (unsigned int i = 0; i < 2 * COUNT; i++) {
		struct buffer *now = &b[i % COUNT];

		if (i == COUNT)
			for (unsigned int k = 0; k < COUNT; k++)
				free_buffer(&gpu, &b[k]);
		CHECK(!new_buffer(&gpu, now, size, IN_VRAM), "buffer %u", i);
		CHECK(!map_cpu(&gpu, now), "map %u", i);
		for (uint64_t o = 0; o < size / 4; o += step) {
			volatile uint32_t *word = (uint32_t *)now->cpu + o;

			CHECK(!*word, "buffer %u word %lu: %#x", i,
			      (unsigned long)o, *word);
			*word = 0x5ec4e7;
		}
		unmap_cpu(now);
	}
	for (unsigned int i = 0; i < COUNT; i++)
		free_buffer(&gpu, &b[i]);
	close_gpu(&gpu);
	return 0;
}

static void fill(uint32_t *p, uint64_t bytes, uint32_t seed)
{
	for (uint64_t i = 0; i < bytes / 4; i++)
		p[i] = (uint32_t)(i * 2654435761u) ^ seed;
}

static int test_copy(void)
{
	struct buffer a, v, b, *all[] = { &a, &v, &b, NULL };
	const uint64_t size = 4 * MIB;
	struct commands c;
	struct gpu gpu;

	CHECK(!open_first(&gpu), "no GPU");
	CHECK(!new_buffer(&gpu, &a, size, IN_SYSTEM | MAP_GPU | MAP_CPU), "a");
	CHECK(!new_buffer(&gpu, &v, size, IN_VRAM | MAP_GPU | MAP_CPU), "v");
	CHECK(!new_buffer(&gpu, &b, size, IN_SYSTEM | MAP_GPU | MAP_CPU), "b");
	fill(a.cpu, size, 1);
	memset(b.cpu, 0, size);
	c = start_commands(&gpu);
	emit_copy(&c, a.va, v.va, size / 2);
	emit_copy(&c, a.va + size / 2, v.va + size / 2, size / 2);
	emit_nop(&c);
	emit_copy(&c, v.va, b.va, size);
	CHECK(!submit_and_wait(&gpu, &c, all), "submission");
	CHECK(!memcmp(a.cpu, v.cpu, size), "system to video memory");
	CHECK(!memcmp(a.cpu, b.cpu, size), "video memory to system");
	close_gpu(&gpu);
	return 0;
}

/* The GPU must read at once what the host writes through the BAR. */
static int test_host_writes(void)
{
	struct buffer v, b, *all[] = { &v, &b, NULL };
	const uint64_t size = 16384;
	struct commands c;
	struct gpu gpu;

	CHECK(!open_first(&gpu), "no GPU");
	CHECK(!new_buffer(&gpu, &v, size, IN_VRAM | MAP_GPU | MAP_CPU), "v");
	CHECK(!new_buffer(&gpu, &b, size, IN_SYSTEM | MAP_GPU | MAP_CPU), "b");
	for (uint32_t round = 0; round < 10; round++) {
		fill(v.cpu, size, round);
		c = start_commands(&gpu);
		emit_copy(&c, v.va, b.va, size);
		CHECK(!submit_and_wait(&gpu, &c, all), "submission");
		CHECK(!memcmp(v.cpu, b.cpu, size), "round %u", round);
	}
	close_gpu(&gpu);
	return 0;
}

static int test_packets(void)
{
	struct buffer v, *all[] = { &v, NULL };
	struct commands c;
	struct gpu gpu;
	uint32_t *p;

	CHECK(!open_first(&gpu), "no GPU");
	CHECK(!new_buffer(&gpu, &v, MIB, IN_VRAM | MAP_GPU | MAP_CPU), "v");
	p = v.cpu;
	memset(p, 0, MIB);
	fill(p, 4096, 7);
	p[1024 * 5] = 1;
	c = start_commands(&gpu);
	/* broadcast to pages 1 and 2 */
	EMIT(&c, 1 | 1u << 27, 4095, 0, LO(v.va), HI(v.va), LO(v.va + 4096),
	     HI(v.va), LO(v.va + 8192), HI(v.va));
	emit_nop(&c);
	/* exchange pages 2 and 3 */
	EMIT(&c, 0x901, 4095, 0, LO(v.va + 8192), HI(v.va), LO(v.va + 12288),
	     HI(v.va));
	/* fill page 4; a time stamp and an addition after it */
	EMIT(&c, 11 | 2u << 30, LO(v.va + 16384), HI(v.va), 0xa5a5a5a5, 4095);
	EMIT(&c, 13 | 2 << 8, LO(v.va + 20480 + 32), HI(v.va));
	EMIT(&c, 10 | 0x2fu << 25, LO(v.va + 20480), HI(v.va), 41, 0, 0, 0, 0);
	/* skipped unless the word is 1, which it no longer is */
	EMIT(&c, 9, LO(v.va + 20480), HI(v.va), 1, 4);
	emit_fence(&c, v.va + 20480 + 64, 5);
	CHECK(!submit_and_wait(&gpu, &c, all), "submission");
	CHECK(!memcmp(p, p + 1024, 4096), "broadcast, first");
	CHECK(!memcmp(p, p + 3072, 4096), "broadcast, second, exchanged");
	CHECK(p[2048] == 0 && p[2048 + 1023] == 0, "exchange");
	CHECK(p[4096] == 0xa5a5a5a5 && p[5119] == 0xa5a5a5a5, "fill");
	CHECK(p[5120] == 42, "atomic: %u", p[5120]);
	CHECK(p[5120 + 8], "time stamp");
	CHECK(p[5120 + 16] == 0, "conditional execution");
	close_gpu(&gpu);
	return 0;
}

/* Submitted first, released by the CPU later. */
static int test_prelaunch(void)
{
	struct buffer b, *all[] = { &b, NULL };
	volatile uint32_t *p;
	struct commands c;
	struct gpu gpu;
	uint64_t fence;

	CHECK(!open_first(&gpu), "no GPU");
	CHECK(!new_buffer(&gpu, &b, 4096, IN_SYSTEM | MAP_GPU | MAP_CPU), "b");
	p = b.cpu;
	p[0] = p[1] = 0;
	c = start_commands(&gpu);
	EMIT(&c, 8 | 1u << 31 | 3u << 28, LO(b.va), HI(b.va), 1, ~0u,
	     0xfffu << 16 | 10);
	emit_fence(&c, b.va + 4, 9);
	CHECK(!submit(&gpu, &c, 0, all, &fence), "submission");
	CHECK(wait_fence(&gpu, fence, 0, 0.1) == 1, "did not wait");
	CHECK(p[1] == 0, "went on");
	p[0] = 1;
	CHECK(!wait_fence(&gpu, fence, 0, 20), "never released");
	CHECK(p[1] == 9, "value %u", p[1]);
	close_gpu(&gpu);
	return 0;
}

static int test_serial(void)
{
	struct buffer b, *all[] = { &b, NULL };
	struct commands c;
	struct gpu gpu;
	double start;

	CHECK(!open_first(&gpu), "no GPU");
	CHECK(!new_buffer(&gpu, &b, 4096, IN_SYSTEM | MAP_GPU | MAP_CPU), "b");
	start = now();
	for (uint32_t i = 1; i <= 200; i++) {
		c = start_commands(&gpu);
		emit_fence(&c, b.va, i);
		CHECK(!submit_and_wait(&gpu, &c, all), "submission %u", i);
		CHECK(*(volatile uint32_t *)b.cpu == i, "round %u", i);
	}
	printf("# %.3f ms each\n", (now() - start) * 5);
	close_gpu(&gpu);
	return 0;
}

/* The same address shows one buffer, then another: a translation that
 * survives the change reads the first one's data.
 */
static int test_remap(void)
{
	struct buffer x, y, out, *all[] = { &x, &y, &out, NULL };
	struct drm_amdgpu_gem_va arg = {
		.flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE,
		.va_address = 0x40000000,
		.map_size = 65536,
	};
	struct commands c;
	struct gpu gpu;

	CHECK(!open_first(&gpu), "no GPU");
	CHECK(!new_buffer(&gpu, &x, 65536, IN_VRAM | MAP_CPU), "x");
	CHECK(!new_buffer(&gpu, &y, 65536, IN_VRAM | MAP_CPU), "y");
	CHECK(!new_buffer(&gpu, &out, 65536, IN_SYSTEM | MAP_GPU | MAP_CPU),
	      "out");
	fill(x.cpu, 65536, 100);
	fill(y.cpu, 65536, 200);
	for (int i = 0; i < 20; i++) {
		struct buffer *b = i % 2 ? &y : &x;

		arg.handle = b->handle;
		arg.operation = AMDGPU_VA_OP_MAP;
		CHECK(!gpu_ioctl(&gpu, DRM_IOCTL_AMDGPU_GEM_VA, &arg), "map");
		c = start_commands(&gpu);
		emit_copy(&c, arg.va_address, out.va, 65536);
		CHECK(!submit_and_wait(&gpu, &c, all), "submission");
		CHECK(!memcmp(out.cpu, b->cpu, 65536), "stale in round %d", i);
		arg.operation = AMDGPU_VA_OP_UNMAP;
		CHECK(!gpu_ioctl(&gpu, DRM_IOCTL_AMDGPU_GEM_VA, &arg), "unmap");
	}
	close_gpu(&gpu);
	return 0;
}

/* More than video memory holds: all of it moves out and in again. */
static int test_eviction(void)
{
	enum { COUNT = 14 };
	const uint64_t size = 64 * MIB, step = 1024;
	struct buffer b[COUNT];
	struct gpu gpu;

	CHECK(!open_first(&gpu), "no GPU");
	for (unsigned int i = 0; i < COUNT; i++) {
		CHECK(!new_buffer(&gpu, &b[i], size, IN_VRAM), "buffer %u", i);
		CHECK(!map_cpu(&gpu, &b[i]), "map %u", i);
		for (uint64_t o = 0; o < size / 4; o += step)
			((uint32_t *)b[i].cpu)[o] = i * 1000003 + (uint32_t)o;
		unmap_cpu(&b[i]);
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		CHECK(!map_cpu(&gpu, &b[i]), "map %u", i);
		for (uint64_t o = 0; o < size / 4; o += step)
			CHECK(((uint32_t *)b[i].cpu)[o] ==
				      i * 1000003 + (uint32_t)o,
			      "buffer %u word %lu", i, (unsigned long)o);
		unmap_cpu(&b[i]);
	}
	for (unsigned int i = 0; i < COUNT; i++)
		free_buffer(&gpu, &b[i]);
	close_gpu(&gpu);
	return 0;
}

/* One GPU reads and writes the other's video memory, as a shared buffer. Where
 * the bus allows no peer access the driver moves the buffer to system memory.
 * The data is right then, too: the emulator tells where the bytes went.
 */
static int share(struct gpu *from, struct gpu *to, const struct buffer *b,
		 struct buffer *out)
{
	struct drm_prime_handle arg = { .handle = b->handle,
					.flags = DRM_CLOEXEC | DRM_RDWR };

	CHECK(!gpu_ioctl(from, DRM_IOCTL_PRIME_HANDLE_TO_FD, &arg), "export");
	CHECK(!gpu_ioctl(to, DRM_IOCTL_PRIME_FD_TO_HANDLE, &arg), "import");
	*out = (struct buffer){ .handle = arg.handle, .size = b->size };
	CHECK(!map_gpu(to, out), "map");
	return 0;
}

/* The counter of bytes between GPUs: of the link in a hive, else of the bus.
 * Behind an IOMMU only QEMU knows where another GPU is, and gets messages.
 */
static const char *peer_counter(int minor)
{
	char path[128], type[16] = "";
	FILE *f;

	if (in_hive(minor))
		return "bytes_xgmi";
	snprintf(path, sizeof(path),
		 "/sys/class/drm/renderD%d/device/iommu_group/type", minor);
	f = fopen(path, "r");
	if (!f)
		return "bytes_peer";
	if (!fgets(type, sizeof(type), f))
		type[0] = 0;
	fclose(f);
	return strcmp(type, "DMA\n") ? "bytes_peer" : "bytes_message";
}

int test_shared_buffer(void)
{
	struct buffer v, peer, out, *all[] = { &peer, &out, NULL };
	const uint64_t size = 2 * MIB;
	long long before, moved;
	int minors[MAX_GPUS];
	const char *where;
	struct commands c;
	struct gpu a, b;

	if (find_render_nodes(minors) < 2)
		return SKIP;
	where = peer_counter(minors[0]);
	before = counter(where);
	/* the second GPU writes to and reads from the first one's memory */
	CHECK(!open_gpu(&a, minors[1]) && !open_gpu(&b, minors[0]), "open");
	CHECK(!new_buffer(&a, &v, size, IN_VRAM | MAP_CPU), "v");
	CHECK(!new_buffer(&b, &out, size, IN_SYSTEM | MAP_GPU | MAP_CPU),
	      "out");
	fill(v.cpu, size, 3);
	if (share(&a, &b, &v, &peer))
		return 1;
	c = start_commands(&b);
	emit_copy(&c, peer.va, out.va, size);
	emit_nop(&c);
	EMIT(&c, 11 | 2u << 30, LO(peer.va), HI(peer.va), 0x77, 4095);
	CHECK(!submit_and_wait(&b, &c, all), "submission");
	CHECK(((uint32_t *)v.cpu)[0] == 0x77, "fill");
	fill(v.cpu, 4096, 3);
	CHECK(!memcmp(v.cpu, out.cpu, size), "data");
	moved = counter(where) - before;
	printf("# %s: %lld from GPU to GPU\n", where, moved);
	if (have_emulator())
		CHECK(moved >= (long long)size + 4096, "not straight");
	close_gpu(&a);
	close_gpu(&b);
	return 0;
}

const struct test drm_tests[] = {
	{ "info", test_info },
	{ "cleared", test_cleared },
	{ "copy", test_copy },
	{ "host_writes", test_host_writes },
	{ "packets", test_packets },
	{ "prelaunch", test_prelaunch },
	{ "serial_submissions", test_serial },
	{ "remap", test_remap },
	{ "eviction", test_eviction },
	{ NULL, NULL },
};
