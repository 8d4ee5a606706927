// SPDX-License-Identifier: MIT
// The compute driver's paths: shared virtual memory on device-private pages,
// a user queue, retry faults.
#define _GNU_SOURCE
#include "gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/kfd_ioctl.h>

struct node {
	uint32_t gpu_id;
	int minor, drm;
};

static int kfd = -1, pagemap = -1, node_count;
static struct node nodes[MAX_GPUS];

static long read_property(int node, const char *file, const char *key)
{
	char path[128], name[64];
	long value = 0, v;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/topology/nodes/%d/%s",
		 node, file);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (!key && fscanf(f, "%ld", &v) == 1)
		value = v;
	while (key && fscanf(f, "%63s %ld", name, &v) == 2)
		if (!strcmp(name, key))
			value = v;
	fclose(f);
	return value;
}

/* A process must have an address space on every node: 7.3.4 oopses when it
 * evicts a process that has one on some nodes only.
 */
static int open_kfd(void)
{
	char path[64];
	long id;

	if (kfd >= 0)
		return 0;
	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	for (int n = 0; (id = read_property(n, "gpu_id", NULL)) >= 0; n++) {
		struct node *node = &nodes[node_count];
		struct kfd_ioctl_acquire_vm_args arg;

		if (!id || node_count == MAX_GPUS)
			continue;
		node->gpu_id = (uint32_t)id;
		node->minor =
			(int)read_property(n, "properties", "drm_render_minor");
		snprintf(path, sizeof(path), "/dev/dri/renderD%d", node->minor);
		node->drm = open(path, O_RDWR | O_CLOEXEC);
		arg = (struct kfd_ioctl_acquire_vm_args){
			.drm_fd = (uint32_t)node->drm,
			.gpu_id = node->gpu_id,
		};
		if (ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &arg))
			return -errno;
		node_count++;
	}
	return node_count ? 0 : -ENODEV;
}

/* The driver finds all engines of all GPUs. */
static int test_engines(void)
{
	long engines = 0;

	if (!have_emulator())
		return SKIP;
	for (int n = 0; read_property(n, "gpu_id", NULL) >= 0; n++)
		engines +=
			read_property(n, "properties", "num_sdma_engines") +
			read_property(n, "properties", "num_sdma_xgmi_engines");
	CHECK(engines == counter("engines"), "%ld engines", engines);
	return 0;
}

static int set_attributes(void *at, uint64_t size,
			  const struct kfd_ioctl_svm_attribute *attrs,
			  uint32_t count)
{
	union {
		struct kfd_ioctl_svm_args args;
		char space[256];
	} u = { .args = {
			.start_addr = (uintptr_t)at,
			.size = size,
			.op = KFD_IOCTL_SVM_OP_SET_ATTR,
			.nattr = count,
		} };
	size_t bytes = sizeof(u.args) + count * sizeof(*attrs);

	memcpy(u.space + sizeof(u.args), attrs, count * sizeof(*attrs));
	/* the length of the attribute list is part of the request's number */
	return ioctl(
		kfd,
		_IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE, 0x20, bytes),
		&u);
}

static int prefetch(void *at, uint64_t size, const struct node *node)
{
	uint32_t id = node->gpu_id;
	const struct kfd_ioctl_svm_attribute attrs[] = {
		{ KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, id },
		{ KFD_IOCTL_SVM_ATTR_ACCESS, id },
		{ KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, id },
	};

	return set_attributes(at, size, attrs, 3);
}

/* Device-private pages look swapped out; pages in memory are present. */
static bool in_memory(const void *at)
{
	uint64_t e = 0;

	if (pread(pagemap, &e, 8, (off_t)((uintptr_t)at >> 12) * 8) != 8)
		return false;
	return e >> 63;
}

static bool on_device(const void *at)
{
	uint64_t e = 0;

	if (pread(pagemap, &e, 8, (off_t)((uintptr_t)at >> 12) * 8) != 8)
		return false;
	return e >> 62 & 1;
}

static uint32_t *new_range(uint64_t size)
{
	uintptr_t p =
		(uintptr_t)mmap(NULL, size + 2 * MIB, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return (uint32_t *)((p + 2 * MIB - 1) & ~(2 * MIB - 1));
}

static int round_trip(const struct node *node)
{
	const uint64_t size = 8 * MIB;
	uint32_t *p = new_range(size);
	double start;

	for (uint64_t i = 0; i < size / 4; i++)
		p[i] = (uint32_t)i ^ 0x5a5a1234;
	start = now();
	CHECK(!prefetch(p, size, node), "prefetch: %s", strerror(errno));
	printf("# to the device in %.1f ms\n", (now() - start) * 1e3);
	CHECK(on_device(p) && on_device(p + size / 8), "not migrated");
	start = now();
	for (uint64_t i = 0; i < size / 4; i++)
		CHECK(p[i] == ((uint32_t)i ^ 0x5a5a1234), "word %lu: %#x",
		      (unsigned long)i, p[i]);
	printf("# and back in %.1f ms\n", (now() - start) * 1e3);
	CHECK(in_memory(p), "still away");
	return 0;
}

static int test_svm(void)
{
	CHECK(!open_kfd(), "no KFD");
	return round_trip(&nodes[0]);
}

static int test_svm_every_gpu(void)
{
	CHECK(!open_kfd(), "no KFD");
	if (node_count < 2)
		return SKIP;
	for (int n = 0; n < node_count; n++)
		if (round_trip(&nodes[n]))
			return 1;
	return 0;
}

static int enable_xnack(void)
{
	struct kfd_ioctl_set_xnack_mode_args arg = { .xnack_enabled = 1 };

	return ioctl(kfd, AMDKFD_IOC_SET_XNACK_MODE, &arg);
}

/* From one GPU's pages to the other's, and on to the CPU. */
static int test_svm_between(void)
{
	const uint64_t size = 4 * MIB;
	uint32_t *p;

	CHECK(!open_kfd(), "no KFD");
	if (node_count < 2)
		return SKIP;
	/* without retry faults a range that two GPUs map stays in memory */
	CHECK(!enable_xnack(), "xnack: %s", strerror(errno));
	p = new_range(size);
	for (uint64_t i = 0; i < size / 4; i++)
		p[i] = (uint32_t)i * 3;
	for (int n = 0; n < 4; n++) {
		CHECK(!prefetch(p, size, &nodes[n % 2]), "prefetch %d", n);
		CHECK(on_device(p), "not migrated, %d", n);
	}
	for (uint64_t i = 0; i < size / 4; i++)
		CHECK(p[i] == (uint32_t)i * 3, "word %lu", (unsigned long)i);
	return 0;
}

struct queue {
	volatile uint32_t *ring;
	volatile uint64_t *rptr, *wptr;
	volatile uint32_t *fence;
	volatile uint64_t *doorbell;
	uint32_t id;
	unsigned int words;
};

static int shared_page(const struct node *node, uint8_t *at)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = {
		.va_addr = (uintptr_t)at,
		.size = 4096,
		.gpu_id = node->gpu_id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT |
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
			 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT |
			 KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE,
	};
	uint32_t id = node->gpu_id;
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.device_ids_array_ptr = (uintptr_t)&id,
		.n_devices = 1,
	};

	CHECK(!ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc), "allocate");
	CHECK(mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		   node->drm, (off_t)alloc.mmap_offset) == at,
	      "mmap");
	map.handle = alloc.handle;
	CHECK(!ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map), "map");
	return 0;
}

static int new_queue(struct queue *q, const struct node *node)
{
	uint8_t *at = mmap(NULL, 3 * 4096, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioctl_create_queue_args arg = {
		.ring_base_address = (uintptr_t)at,
		.read_pointer_address = (uintptr_t)at + 4096,
		.write_pointer_address = (uintptr_t)at + 8192,
		.ring_size = 4096,
		.gpu_id = node->gpu_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = 100,
		.queue_priority = 7,
	};
	uint8_t *doorbells;
	uint64_t offset;

	memset(q, 0, sizeof(*q));
	for (int i = 0; i < 3; i++)
		if (shared_page(node, at + 4096 * i))
			return 1;
	q->ring = (void *)at;
	q->rptr = (void *)(at + 4096);
	q->fence = (void *)(at + 4096 + 256);
	q->wptr = (void *)(at + 8192);
	*q->rptr = *q->wptr = *q->fence = 0;
	CHECK(!ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &arg), "create: %s",
	      strerror(errno));
	q->id = arg.queue_id;
	offset = arg.doorbell_offset & 8191;
	doorbells = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, kfd,
			 (off_t)(arg.doorbell_offset - offset));
	CHECK(doorbells != MAP_FAILED, "doorbell");
	q->doorbell = (void *)(doorbells + offset);
	return 0;
}

static void put(struct queue *q, uint32_t word)
{
	q->ring[q->words++ % 1024] = word;
}

static int run_copy(struct queue *q, const void *from, void *to, uint64_t bytes,
		    uint32_t value)
{
	const uint32_t words[] = {
		1,
		LO(bytes - 1),
		0,
		LO((uintptr_t)from),
		HI((uintptr_t)from),
		LO((uintptr_t)to),
		HI((uintptr_t)to),
		5,
		LO((uintptr_t)q->fence),
		HI((uintptr_t)q->fence),
		value,
	};
	double end = now() + 30;

	for (size_t i = 0; i < sizeof(words) / 4; i++)
		put(q, words[i]);
	while (q->words % 8)
		put(q, 0);
	*q->wptr = q->words * 4;
	__sync_synchronize();
	*q->doorbell = q->words * 4;
	while (*q->fence != value && now() < end)
		usleep(200);
	CHECK(*q->fence == value, "fence %#x, rptr %lu", *q->fence,
	      (unsigned long)*q->rptr);
	return 0;
}

static int test_user_queue(void)
{
	struct kfd_ioctl_svm_attribute preferred = {
		KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, 0
	};
	struct kfd_ioctl_destroy_queue_args destroy;
	const uint64_t size = 4 * MIB;
	struct queue q;
	uint32_t *from, *to;

	CHECK(!open_kfd(), "no KFD");
	CHECK(!enable_xnack(), "xnack: %s", strerror(errno));
	if (new_queue(&q, &nodes[0]))
		return 1;
	from = new_range(2 * size);
	to = from + size / 4;
	for (uint64_t i = 0; i < size / 4; i++)
		from[i] = (uint32_t)i * 7 + 3;
	preferred.value = nodes[0].gpu_id;
	CHECK(!set_attributes(from, 2 * size, &preferred, 1), "attributes");
	for (uint32_t round = 1; round <= 3; round++) {
		if (run_copy(&q, from, to, size, round))
			return 1;
		CHECK(on_device(from) && on_device(to), "round %u", round);
		for (uint64_t i = 0; i < size / 4; i++)
			CHECK(to[i] == (uint32_t)i * 7 + 2 + round,
			      "word %lu in round %u: %#x", (unsigned long)i,
			      round, to[i]);
		/* brings the source back as well, and makes it differ */
		for (uint64_t i = 0; i < size / 4; i++)
			from[i]++;
	}
	destroy.queue_id = q.id;
	CHECK(!ioctl(kfd, AMDKFD_IOC_DESTROY_QUEUE, &destroy), "destroy");
	if (have_emulator())
		CHECK(counter("retry_faults") > 0, "no retry faults");
	return 0;
}

/* GPUs of a hive use each other's pages in place, else pages are fetched. */
static int test_svm_of_peer(void)
{
	struct kfd_ioctl_svm_attribute preferred = {
		KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, 0
	};
	const uint64_t size = 4 * MIB;
	uint32_t *theirs, *ours;
	long long moved;
	struct queue q;

	CHECK(!open_kfd(), "no KFD");
	if (node_count < 2)
		return SKIP;
	CHECK(!enable_xnack(), "xnack: %s", strerror(errno));
	if (new_queue(&q, &nodes[0]))
		return 1;
	theirs = new_range(size);
	ours = new_range(size);
	for (uint64_t i = 0; i < size / 4; i++)
		theirs[i] = (uint32_t)i * 5;
	CHECK(!prefetch(theirs, size, &nodes[1]), "prefetch");
	preferred.value = nodes[0].gpu_id;
	CHECK(!set_attributes(ours, size, &preferred, 1), "attributes");
	moved = counter("bytes_xgmi");
	if (run_copy(&q, theirs, ours, size, 1))
		return 1;
	for (uint64_t i = 0; i < size / 4; i++)
		CHECK(ours[i]++ == (uint32_t)i * 5, "ours, word %lu",
		      (unsigned long)i);
	if (run_copy(&q, ours, theirs, size, 2))
		return 1;
	moved = counter("bytes_xgmi") - moved;
	printf("# %lld by xGMI\n", moved);
	if (have_emulator())
		CHECK(in_hive(nodes[0].minor) ? moved >= 2 * (long long)size
					      : !moved,
		      "another way");
	CHECK(on_device(theirs), "not in the GPU");
	for (uint64_t i = 0; i < size / 4; i++)
		CHECK(theirs[i] == (uint32_t)i * 5 + 1, "theirs, word %lu",
		      (unsigned long)i);
	return 0;
}

static long hive_file(int minor, const char *name)
{
	char path[128];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/drm/renderD%d/device/%s",
		 minor, name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &value) != 1)
		value = -1;
	fclose(f);
	return value;
}

/* How many xGMI links a node of KFD's topology has. */
static int xgmi_links(int node)
{
	char file[64];
	int links = 0;
	long type;

	for (int i = 0; i < MAX_GPUS; i++) {
		snprintf(file, sizeof(file), "io_links/%d/properties", i);
		type = read_property(node, file, "type");
		links += type == 11;
	}
	return links;
}

/* All GPUs are in one hive, or none is; both parts of the driver agree. */
static int test_links(void)
{
	long hive, physical, seen = 0;
	int count = 0, links = 0;
	bool linked;

	CHECK(!open_kfd(), "no KFD");
	linked = in_hive(nodes[0].minor);
	for (int n = 0; read_property(n, "gpu_id", NULL) >= 0; n++) {
		links += xgmi_links(n);
		if (!read_property(n, "gpu_id", NULL))
			continue;
		hive = hive_file(nodes[count].minor,
				 "xgmi_hive_info/xgmi_hive_id");
		physical = hive_file(nodes[count++].minor, "xgmi_physical_id");
		CHECK(linked == (hive > 0), "hive %ld", hive);
		CHECK(read_property(n, "properties", "hive_id") ==
			      (linked ? hive : 0),
		      "KFD has another hive");
		CHECK(!linked || !(seen & 1l << physical), "%ld twice",
		      physical);
		seen |= linked ? 1l << physical : 0;
	}
	printf("# %d GPUs, %d links\n", count, links);
	CHECK(links == (linked ? count * (count - 1) : 0), "%d links", links);
	return 0;
}

const struct test kfd_tests[] = {
	{ "engines", test_engines },
	{ "svm_round_trip", test_svm },
	{ "user_queue_with_retry_faults", test_user_queue },
	{ NULL, NULL },
};

const struct test multi_tests[] = {
	{ "svm_on_every_gpu", test_svm_every_gpu },
	{ "svm_between_gpus", test_svm_between },
	{ "svm_of_a_peer", test_svm_of_peer },
	{ "links", test_links },
	{ "shared_buffer", test_shared_buffer },
	{ NULL, NULL },
};
