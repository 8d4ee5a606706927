// SPDX-License-Identifier: GPL-2.0
/*
 * amdgpu_today_bench [rounds]: what operations of programs that know nothing of
 * SDMA batches cost, see kselftest_cost.h. It needs no patch, so that a kernel
 * with the series can be compared with one without it.
 *
 *	cs	one AMDGPU_CS of one copy
 *	map	a buffer of 1 MiB is mapped in the VM
 *	unmap	and unmapped
 *	svm	1 MiB of ordinary memory is prefetched to the GPU
 *	back	and comes back when the CPU touches it
 *	prot	1 MiB of registered memory is protected and unprotected
 *	userptr	the same for a user pointer of the compute driver
 */
#include <sched.h>

#include "../../../kselftest.h"
#include "../../../kselftest_cost.h"
#include "amdgpu_test.h"

#define SIZE	MIB

static void check(const char *what, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-ret));
	exit(1);
}

/* The same list each time: creating it is not what is measured. */
static int send(struct gpu *gpu, struct buffer *ib, uint32_t list,
		uint64_t *fence)
{
	struct drm_amdgpu_cs_chunk_ib chunk_ib = {
		.va_start = ib->va,
		.ib_bytes = 32,
		.ip_type = AMDGPU_HW_IP_DMA,
	};
	struct drm_amdgpu_cs_chunk chunk = {
		.chunk_id = AMDGPU_CHUNK_ID_IB,
		.length_dw = sizeof(chunk_ib) / 4,
		.chunk_data = (uintptr_t)&chunk_ib,
	};
	uint64_t chunks = (uintptr_t)&chunk;
	union drm_amdgpu_cs arg = {
		.in.ctx_id = gpu->context,
		.in.bo_list_handle = list,
		.in.num_chunks = 1,
		.in.chunks = (uintptr_t)&chunks,
	};
	int ret = do_ioctl(gpu->fd, DRM_IOCTL_AMDGPU_CS, &arg);

	*fence = arg.out.handle;
	return ret;
}

static void bench_cs(struct gpu *gpu, int rounds)
{
	struct buffer ib, from, to, *all[] = { &ib, &from, &to };
	static struct cost cost = { "cs" };
	uint64_t fence;
	uint32_t list;
	int i;

	check("ib", new_mapped_buffer(gpu, &ib, 4096, AMDGPU_GEM_DOMAIN_GTT));
	check("from", new_mapped_buffer(gpu, &from, SIZE,
					AMDGPU_GEM_DOMAIN_GTT));
	check("to", new_mapped_buffer(gpu, &to, SIZE, AMDGPU_GEM_DOMAIN_VRAM));
	check("list", make_list(gpu, all, 3, &list));
	const uint32_t packet[8] = {
		1, 4096 - 1, 0, LO(from.va), HI(from.va), LO(to.va), HI(to.va),
	};

	memcpy(ib.cpu, packet, sizeof(packet));
	for (i = -COST_WARM; i < rounds; i++) {
		cost_start(&cost);
		check("CS", send(gpu, &ib, list, &fence));
		cost_stop(&cost, i, 1);
		check("end", wait_fence(gpu, fence, 1e9));
	}
	cost_print(&cost, rounds);
}

static int set_mapping(struct gpu *gpu, struct buffer *b, uint32_t op)
{
	return gem_va(gpu, b, op, op == AMDGPU_VA_OP_MAP ? PAGE_RW : 0,
		      1024 * MIB, b->size);
}

static void bench_map(struct gpu *gpu, int rounds)
{
	static struct cost map = { "map" }, unmap = { "unmap" };
	struct buffer b;
	int i;

	check("buffer", new_buffer(gpu, &b, SIZE, AMDGPU_GEM_DOMAIN_GTT));
	for (i = -COST_WARM; i < rounds; i++) {
		cost_start(&map);
		check("map", set_mapping(gpu, &b, AMDGPU_VA_OP_MAP));
		cost_stop(&map, i, 1);
		usleep(10000);
		cost_start(&unmap);
		check("unmap", set_mapping(gpu, &b, AMDGPU_VA_OP_UNMAP));
		cost_stop(&unmap, i, 1);
		usleep(10000);
	}
	cost_print(&map, rounds);
	cost_print(&unmap, rounds);
}

/* To the GPU by a call, and back by page faults of the CPU. */
static void bench_svm(int kfd, const struct kfd_node *node, int rounds)
{
	static struct cost there = { "svm" }, back = { "back" };
	uint8_t *p;
	size_t at;
	int i;

	p = mmap(NULL, 4 * SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p = (uint8_t *)(((uintptr_t)p + 2 * SIZE - 1) & ~(2 * SIZE - 1));
	madvise(p, 2 * SIZE, MADV_NOHUGEPAGE);
	memset(p, 1, SIZE);
	for (i = -COST_WARM; i < rounds; i++) {
		cost_start(&there);
		check("prefetch", kfd_prefetch(kfd, p, SIZE, node->gpu_id));
		cost_stop(&there, i, 1);
		cost_start(&back);
		for (at = 0; at < SIZE; at += 4096)
			(*(volatile uint8_t *)(p + at))++;
		cost_stop(&back, i, 1);
	}
	cost_print(&there, rounds);
	cost_print(&back, rounds);
}

/* Have the GPU map the memory where it is. */
static int kfd_register(int kfd, void *at, uint64_t size, uint32_t gpu_id)
{
	struct {
		struct kfd_ioctl_svm_args args;
		struct kfd_ioctl_svm_attribute attr;
	} u = {
		.args = {
			.start_addr = (uintptr_t)at,
			.size = size,
			.op = KFD_IOCTL_SVM_OP_SET_ATTR,
			.nattr = 1,
		},
		.attr = { KFD_IOCTL_SVM_ATTR_ACCESS, gpu_id },
	};

	/* the length of the list is part of the request's number */
	return do_ioctl(kfd, _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE,
				  _IOC_NR(AMDKFD_IOC_SVM), sizeof(u)), &u);
}

/* A user pointer, at the memory's own address. */
static int kfd_map_user(int kfd, void *at, uint64_t size, uint32_t gpu_id)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = {
		.va_addr = (uintptr_t)at,
		.size = size,
		.mmap_offset = (uintptr_t)at,
		.gpu_id = gpu_id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR |
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
			 KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE,
	};
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.device_ids_array_ptr = (uintptr_t)&gpu_id,
		.n_devices = 1,
	};
	int ret = do_ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc);

	map.handle = alloc.handle;
	return ret ? ret : do_ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map);
}

static int set_rights(void *p, int prot)
{
	return mprotect(p, SIZE, prot) ? -errno : 0;
}

/* Populated memory with a VMA and a page table of its own, wherever it is. */
static void *touched(void)
{
	uint8_t *p = mmap(NULL, 4 * SIZE, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		check("memory", -errno);
	p = (uint8_t *)(((uintptr_t)p + 2 * SIZE) & ~(2 * SIZE - 1));
	check("memory", set_rights(p, PROT_READ | PROT_WRITE));
	madvise(p, SIZE, MADV_NOHUGEPAGE);
	memset(p, 1, SIZE);
	return p;
}

/* Both calls invoke the driver's notifier; its worker runs between rounds. */
static void protect(struct cost *cost, void *p, int rounds)
{
	int i;

	for (i = -COST_WARM; i < rounds; i++) {
		usleep(20000);
		cost_start(cost);
		check("protect", set_rights(p, PROT_READ));
		check("unprotect", set_rights(p, PROT_READ | PROT_WRITE));
		cost_stop(cost, i, 1);
	}
	cost_print(cost, rounds);
}

static void bench_registered(int kfd, const struct kfd_node *node, int rounds)
{
	static struct cost cost = { "prot" };
	void *p = touched();

	check("register", kfd_register(kfd, p, SIZE, node->gpu_id));
	protect(&cost, p, rounds);
}

static void bench_user(int kfd, const struct kfd_node *node, int rounds)
{
	static struct cost cost = { "userptr" };
	void *p = touched();

	check("user pointer", kfd_map_user(kfd, p, SIZE, node->gpu_id));
	protect(&cost, p, rounds);
}

static void bench_kfd(int rounds)
{
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	struct kfd_node nodes[MAX_GPUS];

	if (kfd < 0 || kfd_nodes(nodes) < 1)
		return;
	check("VM", kfd_acquire_vm(kfd, &nodes[0]));
	bench_svm(kfd, &nodes[0], rounds);
	bench_registered(kfd, &nodes[0], rounds);
	bench_user(kfd, &nodes[0], rounds);
}

int main(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = 1 };
	int rounds = cost_rounds(argc, argv);
	char names[MAX_GPUS][32];
	struct gpu gpu;

	if (find_gpus(names) < 1)
		return 4;
	/* a thread that a call wakes runs after the call has returned */
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		puts("# not SCHED_FIFO, the figures vary");
	check("open", open_gpu(&gpu, names[0]));
	bench_cs(&gpu, rounds);
	bench_map(&gpu, rounds);
	bench_kfd(rounds);
	return 0;
}
