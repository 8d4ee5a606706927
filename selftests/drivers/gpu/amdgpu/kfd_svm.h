/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared virtual memory of amdkfd, for tests: which GPUs there are, ranges that
 * are moved to one, where their pages are, and the state of the alias.
 *
 * GPU= in the environment names the GPUs to use, in this order, by their PCI
 * addresses: GPU=0000:03:00.0,0000:83:00.0. Default: all that KFD has.
 *
 * Functions return 0 or a negative errno unless stated otherwise.
 */
#ifndef SELFTESTS_AMDGPU_KFD_SVM_H
#define SELFTESTS_AMDGPU_KFD_SVM_H

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/kfd_ioctl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gpus.h"

#define SVM_MAX_GPUS	8
#define SVM_PAGE	4096ul
#define SVM_ALIGN	(512 * SVM_PAGE)

struct svm_gpu {
	uint32_t id;		/* KFD's */
	int minor;		/* render node */
	int drm;		/* open render node, -1: not open */
	char pci[32];		/* PCI address */
};

struct svm {
	int kfd;
	int pagemap;
	int nr;
	struct svm_gpu gpu[SVM_MAX_GPUS];
};

static inline void svm_pci_address(struct svm_gpu *gpu)
{
	char path[64], *real;

	snprintf(path, sizeof(path), "/sys/class/drm/renderD%d/device",
		 gpu->minor);
	real = realpath(path, NULL);
	snprintf(gpu->pci, sizeof(gpu->pci), "%s", real ? basename(real) : "?");
	free(real);
}

static inline int svm_find_gpus(struct svm_gpu found[SVM_MAX_GPUS])
{
	int node, nr = 0;
	long id;

	for (node = 0; nr < SVM_MAX_GPUS; node++) {
		id = kfd_property(node, "gpu_id", NULL);
		if (id < 0)
			break;
		if (!id)
			continue;
		found[nr].id = id;
		found[nr].drm = -1;
		found[nr].minor = kfd_property(node, "properties",
					       "drm_render_minor");
		svm_pci_address(&found[nr++]);
	}
	return nr;
}

/* The GPUs that GPU= names, or else all. */
static inline int svm_choose_gpus(struct svm *svm)
{
	struct svm_gpu found[SVM_MAX_GPUS];
	const char *want = getenv("GPU");
	int i, nr = svm_find_gpus(found);
	char *list, *word, *state;

	svm->nr = 0;
	if (!want) {
		memcpy(svm->gpu, found, nr * sizeof(*found));
		svm->nr = nr;
		return nr;
	}
	list = strdup(want);
	for (word = strtok_r(list, ",", &state); word;
	     word = strtok_r(NULL, ",", &state))
		for (i = 0; i < nr && svm->nr < SVM_MAX_GPUS; i++)
			if (!strcmp(word, found[i].pci))
				svm->gpu[svm->nr++] = found[i];
	free(list);
	return svm->nr;
}

/* Open the GPU, unless it is open, and give its VM to KFD. */
static inline int svm_acquire(struct svm *svm, struct svm_gpu *gpu)
{
	struct kfd_ioctl_acquire_vm_args arg = { .gpu_id = gpu->id };
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%d", gpu->minor);
	if (gpu->drm < 0)
		gpu->drm = open(path, O_RDWR | O_CLOEXEC);
	if (gpu->drm < 0)
		return -errno;
	arg.drm_fd = gpu->drm;
	return ioctl(svm->kfd, AMDKFD_IOC_ACQUIRE_VM, &arg) ? -errno : 0;
}

static inline void svm_close(struct svm *svm)
{
	int i;

	if (svm->kfd >= 0)
		close(svm->kfd);
	if (svm->pagemap >= 0)
		close(svm->pagemap);
	for (i = 0; i < svm->nr; i++)
		if (svm->gpu[i].drm >= 0)
			close(svm->gpu[i].drm);
	memset(svm, 0, sizeof(*svm));
	svm->kfd = -1;
	svm->pagemap = -1;
}

/* Like svm_open(), but without giving the VMs of the GPUs to KFD. */
static inline int svm_find(struct svm *svm)
{
	memset(svm, 0, sizeof(*svm));
	svm->kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	svm->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (svm->kfd >= 0 && svm->pagemap >= 0 && svm_choose_gpus(svm))
		return 0;
	svm_close(svm);
	return -ENODEV;
}

/* -ENODEV: no GPU; or the error of svm_acquire() */
static inline int svm_open(struct svm *svm)
{
	int i, err = svm_find(svm);

	for (i = 0; !err && i < svm->nr; i++)
		err = svm_acquire(svm, &svm->gpu[i]);
	if (err)
		svm_close(svm);
	return err;
}

/* Anonymous memory, aligned to @align, a power of two. */
static inline void *svm_map_aligned(size_t len, size_t align)
{
	char *p = mmap(NULL, len + align, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t head;

	if (p == MAP_FAILED)
		return NULL;
	head = -(uintptr_t)p & (align - 1);
	if (head)
		munmap(p, head);
	munmap(p + head + len, align - head);
	return p + head;
}

/* Aligned so that no other memory shares its range in KFD. */
static inline void *svm_map(size_t len)
{
	return svm_map_aligned(len, SVM_ALIGN);
}

static inline int svm_set(struct svm *svm, void *addr, size_t len,
			  const struct kfd_ioctl_svm_attribute *attrs,
			  unsigned int nr)
{
	struct {
		struct kfd_ioctl_svm_args args;
		struct kfd_ioctl_svm_attribute attrs[4];
	} cmd = {
		.args = {
			.start_addr = (uintptr_t)addr,
			.size = len,
			.op = KFD_IOCTL_SVM_OP_SET_ATTR,
			.nattr = nr,
		},
	};
	size_t size = sizeof(cmd.args) + nr * sizeof(*attrs);

	memcpy(cmd.attrs, attrs, nr * sizeof(*attrs));
	/* the length of the list is part of the request's number */
	if (ioctl(svm->kfd, _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE,
				 _IOC_NR(AMDKFD_IOC_SVM), size), &cmd))
		return -errno;
	return 0;
}

/* Have @gpu map the range, wherever its pages are. */
static inline int svm_access(struct svm *svm, void *addr, size_t len,
			     struct svm_gpu *gpu)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_ACCESS, gpu->id
	};

	return svm_set(svm, addr, len, &attr, 1);
}

/* Move the range to @gpu. Best effort: svm_away() tells what has moved. */
static inline int svm_prefetch(struct svm *svm, void *addr, size_t len,
			       struct svm_gpu *gpu)
{
	const struct kfd_ioctl_svm_attribute attrs[] = {
		{ KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, gpu->id },
		{ KFD_IOCTL_SVM_ATTR_ACCESS, gpu->id },
		{ KFD_IOCTL_SVM_ATTR_PREFETCH_LOC, gpu->id },
	};

	return svm_set(svm, addr, len, attrs, 3);
}

/*
 * How many pages of the range are device private: the page map shows them as
 * swapped out. The tests need no swap.
 */
static inline long svm_away(struct svm *svm, const void *addr, size_t len)
{
	long away = 0;
	uint64_t entry;
	size_t i;

	for (i = 0; i < len; i += SVM_PAGE) {
		if (pread(svm->pagemap, &entry, sizeof(entry),
			  ((uintptr_t)addr + i) / SVM_PAGE * sizeof(entry)) !=
		    sizeof(entry))
			return -EIO;
		away += entry >> 62 & 1;
	}
	return away;
}

/* What /sys/kernel/debug/hmm/alias says about one GPU */
struct svm_alias {
	bool found;
	unsigned long long published;
	unsigned long long size;
	unsigned long long cpu;
	unsigned long long mapped;
	unsigned long long fallback;	/* all reasons */
	unsigned long long revoked;	/* for this reason */
	unsigned long long revokes;
};

static inline unsigned long long svm_alias_field(const char *line,
						 const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtoull(at + strlen(key), NULL, 0) : 0;
}

static inline struct svm_alias svm_alias(const struct svm_gpu *gpu)
{
	struct svm_alias alias = {};
	char line[512];
	FILE *f = fopen("/sys/kernel/debug/hmm/alias", "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, gpu->pci, strlen(gpu->pci)))
			continue;
		alias.found = true;
		alias.published = svm_alias_field(line, " published=");
		alias.size = svm_alias_field(line, " size=");
		alias.cpu = svm_alias_field(line, " cpu=");
		alias.mapped = svm_alias_field(line, " mapped=");
		alias.fallback = svm_alias_field(line, " unreachable=") +
				 svm_alias_field(line, " invisible=") +
				 svm_alias_field(line, " no_cpu=") +
				 svm_alias_field(line, " revoked=") +
				 svm_alias_field(line, " map_failed=") +
				 svm_alias_field(line, " declined=");
		alias.revoked = svm_alias_field(line, " revoked=");
		alias.revokes = svm_alias_field(line, " revokes=");
	}
	if (f)
		fclose(f);
	return alias;
}

/* Enable retry faults while there are no queues. -errno: the GPUs cannot. */
static inline int svm_enable_xnack(int kfd)
{
	struct kfd_ioctl_set_xnack_mode_args xnack = { .xnack_enabled = 1 };

	return ioctl(kfd, AMDKFD_IOC_SET_XNACK_MODE, &xnack) ? -errno : 0;
}

static inline int svm_reset(const struct svm_gpu *gpu)
{
	return reset_gpu(gpu->pci);
}

/* Every word depends on its place and on the seed. */
static inline void pattern_fill(void *at, size_t len, uint32_t seed)
{
	uint32_t *p = at;
	size_t i;

	for (i = 0; i < len / 4; i++)
		p[i] = (i * 2654435761u) ^ seed;
}

/* The first word that is wrong, or -1 */
static inline long pattern_check(const void *at, size_t len, uint32_t seed)
{
	const uint32_t *p = at;
	size_t i;

	for (i = 0; i < len / 4; i++)
		if (p[i] != ((uint32_t)(i * 2654435761u) ^ seed))
			return i;
	return -1;
}

static sigjmp_buf svm_on_sigbus;

static inline void svm_sigbus(int sig)
{
	siglongjmp(svm_on_sigbus, 1);
}

/* Check the range as the CPU sees it. 1: right, 0: SIGBUS, -1: wrong */
static inline int svm_look(const void *at, size_t len, uint32_t seed)
{
	struct sigaction act = { .sa_handler = svm_sigbus }, old;
	int result = 0;

	sigaction(SIGBUS, &act, &old);
	if (!sigsetjmp(svm_on_sigbus, 1))
		result = pattern_check(at, len, seed) < 0 ? 1 : -1;
	sigaction(SIGBUS, &old, NULL);
	return result;
}

/* Report migrations of KFD for one GPU from now on: a file, or -errno. */
static inline int svm_watch(struct svm *svm, struct svm_gpu *gpu)
{
	uint64_t mask = KFD_SMI_EVENT_MASK_FROM_INDEX(KFD_SMI_EVENT_MIGRATE_START);
	struct kfd_ioctl_smi_events_args arg = { .gpuid = gpu->id };

	if (ioctl(svm->kfd, AMDKFD_IOC_SMI_EVENTS, &arg))
		return -errno;
	if (write(arg.anon_fd, &mask, sizeof(mask)) == sizeof(mask))
		return arg.anon_fd;
	close(arg.anon_fd);
	return -EIO;
}

/* How many migrations there were since the last call */
static inline int svm_migrations(int watch)
{
	struct pollfd pfd = { .fd = watch, .events = POLLIN };
	char text[4096];
	ssize_t i, n;
	int nr = 0;

	while (poll(&pfd, 1, 0) > 0 && pfd.revents & POLLIN) {
		n = read(watch, text, sizeof(text));
		if (n <= 0)
			break;
		for (i = 0; i < n; i++)
			nr += text[i] == '\n';
	}
	return nr;
}

/* Video memory of amdkfd, for other files to import: a dma-buf, or -errno. */
static inline int svm_export_vram(struct svm *svm, struct svm_gpu *gpu,
				  size_t len, uint64_t *handle)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = {
		.va_addr = (uintptr_t)svm_map(len),
		.size = len,
		.gpu_id = gpu->id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
			 KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC |
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	struct kfd_ioctl_export_dmabuf_args export = { .flags = O_CLOEXEC | O_RDWR };

	if (ioctl(svm->kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc))
		return -errno;
	*handle = alloc.handle;
	export.handle = alloc.handle;
	if (ioctl(svm->kfd, AMDKFD_IOC_EXPORT_DMABUF, &export))
		return -errno;
	return export.dmabuf_fd;
}

/* An SDMA queue of the process: copies within its address space. */
struct svm_queue {
	uint32_t *ring;
	uint64_t *rptr;
	uint64_t *wptr;
	uint32_t *fence;
	uint64_t *doorbell;
	unsigned int words;
	uint32_t id;
};

#define SVM_RING_WORDS	(SVM_PAGE / 4)

/* A page of system memory at @at that @gpu and the CPU share. */
static inline int svm_shared_page(struct svm *svm, struct svm_gpu *gpu,
				  void *at)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args alloc = {
		.va_addr = (uintptr_t)at,
		.size = SVM_PAGE,
		.gpu_id = gpu->id,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT |
			 KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
			 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT |
			 KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE,
	};
	struct kfd_ioctl_map_memory_to_gpu_args map = {
		.device_ids_array_ptr = (uintptr_t)&gpu->id,
		.n_devices = 1,
	};

	if (ioctl(svm->kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &alloc))
		return -errno;
	if (mmap(at, SVM_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 gpu->drm, alloc.mmap_offset) != at)
		return -errno;
	map.handle = alloc.handle;
	if (ioctl(svm->kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map))
		return -errno;
	return 0;
}

static inline int svm_queue_doorbell(struct svm *svm, struct svm_queue *q,
				     uint64_t offset)
{
	uint64_t in_page = offset & (2 * SVM_PAGE - 1);
	char *page = mmap(NULL, 2 * SVM_PAGE, PROT_READ | PROT_WRITE,
			  MAP_SHARED, svm->kfd, offset - in_page);

	if (page == MAP_FAILED)
		return -errno;
	q->doorbell = (void *)(page + in_page);
	return 0;
}

/* @type: KFD_IOC_QUEUE_TYPE_SDMA*; @engine: only for the type by engine. */
static inline int svm_queue_open_on(struct svm *svm, struct svm_gpu *gpu,
				    struct svm_queue *q, uint32_t type,
				    uint32_t engine)
{
	char *at = mmap(NULL, 3 * SVM_PAGE, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioctl_create_queue_args arg = {
		.ring_base_address = (uintptr_t)at,
		.read_pointer_address = (uintptr_t)at + SVM_PAGE,
		.write_pointer_address = (uintptr_t)at + 2 * SVM_PAGE,
		.ring_size = SVM_PAGE,
		.gpu_id = gpu->id,
		.queue_type = type,
		.queue_percentage = 100,
		.queue_priority = 7,
		.sdma_engine_id = engine,
	};
	int i, err;

	memset(q, 0, sizeof(*q));
	if (at == MAP_FAILED)
		return -errno;
	for (i = 0; i < 3; i++) {
		err = svm_shared_page(svm, gpu, at + i * SVM_PAGE);
		if (err)
			return err;
	}
	q->ring = (void *)at;
	q->rptr = (void *)(at + SVM_PAGE);
	q->fence = (void *)(at + SVM_PAGE + 256);
	q->wptr = (void *)(at + 2 * SVM_PAGE);
	*q->rptr = 0;
	*q->wptr = 0;
	*q->fence = 0;
	if (ioctl(svm->kfd, AMDKFD_IOC_CREATE_QUEUE, &arg))
		return -errno;
	q->id = arg.queue_id;
	return svm_queue_doorbell(svm, q, arg.doorbell_offset);
}

static inline int svm_queue_open(struct svm *svm, struct svm_gpu *gpu,
				 struct svm_queue *q)
{
	return svm_queue_open_on(svm, gpu, q, KFD_IOC_QUEUE_TYPE_SDMA, 0);
}

static inline void svm_queue_close(struct svm *svm, struct svm_queue *q)
{
	struct kfd_ioctl_destroy_queue_args arg = { .queue_id = q->id };

	ioctl(svm->kfd, AMDKFD_IOC_DESTROY_QUEUE, &arg);
}

/*
 * Have the GPU copy: COPY_LINEAR, up to 4 MiB, and FENCE of SDMA 4 and later.
 * The GPU must have access to both ranges. Returns the fence's next value.
 */
static inline uint32_t svm_queue_start_copy(struct svm_queue *q,
					    const void *from, void *to,
					    uint32_t len)
{
	const uint64_t src = (uintptr_t)from, dst = (uintptr_t)to;
	const uint64_t fence = (uintptr_t)q->fence;
	const uint32_t value = *q->fence + 1;
	const uint32_t words[] = {
		1, len - 1, 0, src, src >> 32, dst, dst >> 32,
		5, fence, fence >> 32, value,
	};
	unsigned int i;

	for (i = 0; i < sizeof(words) / 4; i++)
		q->ring[q->words++ % SVM_RING_WORDS] = words[i];
	while (q->words % 8)
		q->ring[q->words++ % SVM_RING_WORDS] = 0;
	__atomic_store_n(q->wptr, q->words * 4, __ATOMIC_SEQ_CST);
	__atomic_store_n(q->doorbell, q->words * 4, __ATOMIC_SEQ_CST);
	return value;
}

static inline bool svm_queue_is_at(struct svm_queue *q, uint32_t value)
{
	return __atomic_load_n(q->fence, __ATOMIC_ACQUIRE) == value;
}

static inline int svm_queue_wait(struct svm_queue *q, uint32_t value)
{
	unsigned int tries;

	for (tries = 0; tries < 30000; tries++) {
		if (svm_queue_is_at(q, value))
			return 0;
		usleep(1000);
	}
	return -ETIMEDOUT;
}

/* Start a copy, and wait for it. */
static inline int svm_queue_copy(struct svm_queue *q, const void *from,
				 void *to, uint32_t len)
{
	return svm_queue_wait(q, svm_queue_start_copy(q, from, to, len));
}

#endif
