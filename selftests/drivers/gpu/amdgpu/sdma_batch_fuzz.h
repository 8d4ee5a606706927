/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory that random SDMA batches name, and how it changes between two of
 * them: buffers, user pointers, memory of the compute driver, SVM memory.
 */
#ifndef _SELFTEST_SDMA_BATCH_FUZZ_H
#define _SELFTEST_SDMA_BATCH_FUZZ_H

#include <sys/mman.h>

#include "sdma_svm.h"

#define VA		(1024 * MIB)
#define SIZE		(4 * MIB)
/* After it, a user pointer, whose pages change now and then. */
#define USER_SIZE	MIB
/* Mapped for reading only; its memory must not change. */
#define GUARD_VA	(VA + 16 * MIB)
#define GUARD_SIZE	MIB
/*
 * If the compute driver has this GPU: what it has allocated, one after the
 * other, and SVM memory.
 */
#define KFD_VA		(VA + 32 * MIB)
#define KFD_SIZE	MIB
#define KFD_BUFFERS	3
#define SVM_SIZE	(2 * MIB)

struct memory {
	struct buffer buffer;
	struct buffer guard;
	struct buffer user;
	struct kfd kfd;
	uint64_t in_kfd[KFD_BUFFERS];	/* handles, or 0 */
	uint8_t *kfd_user;	/* what the last of them points to */
	struct svm svm;
	uint8_t *in_svm;	/* or NULL */
};

static inline uint32_t random_number(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	return random_number(state) % n;
}

/* At least 64 KiB of addresses of this memory follow without a gap. */
static inline uint64_t memory_address(const struct memory *m, uint64_t *state)
{
	uint64_t va = VA + random_below(state, SIZE + USER_SIZE - 64 * KIB);

	if (m->in_svm && !random_below(state, 3))
		va = (uintptr_t)m->in_svm +
		     random_below(state, SVM_SIZE - 64 * KIB);
	else if (m->kfd_user && !random_below(state, 3))
		va = KFD_VA + random_below(state, KFD_BUFFERS * KFD_SIZE -
						  64 * KIB);
	return random_below(state, 3) ? va & ~7ULL : va;
}

static inline void random_rights(uint8_t *at, size_t size, uint64_t *state)
{
	static const int prots[] = {
		PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE,
	};

	mprotect(at, size, prots[random_below(state, 3)]);
}

static inline void map_anew(uint8_t *at, size_t size)
{
	mmap(at, size, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Other pages, or the same ones with other rights, or none. */
static inline void change_user(uint8_t *user, size_t size, uint64_t *state)
{
	uint8_t *at = user + random_below(state, 16) * size / 16;

	switch (random_below(state, 4)) {
	case 0:
		random_rights(at, size / 16, state);
		break;
	case 1:
		munmap(at, size / 16);
		break;
	default:
		map_anew(user, size);
	}
}

/* Map one again at the same place, or change the pages of the user pointer. */
static inline void change_kfd(struct memory *m, uint64_t *state)
{
	uint64_t handle = m->in_kfd[random_below(state, KFD_BUFFERS)];

	if (random_below(state, 2)) {
		change_user(m->kfd_user, KFD_SIZE, state);
	} else {
		kfd_unmap(&m->kfd, handle);
		kfd_map(&m->kfd, handle);
	}
}

/* Likewise, with moves elsewhere. Unregistered memory is no longer used. */
static inline void change_svm(struct memory *m, uint64_t *state)
{
	const size_t part = SVM_SIZE / 16;
	uint8_t *at = m->in_svm + random_below(state, 16) * part;
	struct svm_gpu *gpu = &m->svm.gpu[0];

	switch (random_below(state, 7)) {
	case 0:
		random_rights(at, part, state);
		break;
	case 1:
		munmap(at, part);
		break;
	case 2:
		madvise(at, part, MADV_DONTNEED);
		break;
	case 3:
		madvise(at, part, MADV_PAGEOUT);
		break;
	case 4:
	case 5:
		svm_prefetch(&m->svm, at, part, gpu);
		break;
	default:
		map_anew(m->in_svm, SVM_SIZE);
		svm_access(&m->svm, m->in_svm, SVM_SIZE, gpu);
	}
}

/* Change each kind of memory now and then. */
static inline void memory_change(struct memory *m, uint64_t *state)
{
	if (!random_below(state, 100))
		change_user(m->user.cpu, USER_SIZE, state);
	if (m->kfd_user && !random_below(state, 100))
		change_kfd(m, state);
	if (m->in_svm && !random_below(state, 100))
		change_svm(m, state);
}

/* For a user pointer, @offset is the address of the memory. */
static inline int kfd_new(struct memory *m, unsigned int i, uint32_t flags,
			  uint64_t offset)
{
	int ret = kfd_alloc(&m->kfd, KFD_VA + i * KFD_SIZE, KFD_SIZE,
			    flags | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, &offset,
			    &m->in_kfd[i]);

	return ret ? ret : kfd_map(&m->kfd, m->in_kfd[i]);
}

/* Buffers in system memory and in video memory, and a user pointer. */
static inline int open_kfd(struct memory *m, struct gpu *gpu)
{
	uint8_t *user;
	int ret;

	if (kfd_open(&m->kfd, gpu))
		return 0;
	user = mmap(NULL, KFD_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((void *)user == MAP_FAILED)
		return -errno;
	ret = kfd_new(m, 0, KFD_IOC_ALLOC_MEM_FLAGS_GTT, 0);
	if (!ret)
		ret = kfd_new(m, 1, KFD_IOC_ALLOC_MEM_FLAGS_VRAM, 0);
	if (!ret)
		ret = kfd_new(m, 2, KFD_IOC_ALLOC_MEM_FLAGS_USERPTR,
			      (uintptr_t)user);
	m->kfd_user = user;
	return ret;
}

/*
 * Without retry faults: with them all memory of this process would be SVM
 * memory, and calls would write anywhere.
 */
static inline int open_svm(struct memory *m, struct gpu *gpu)
{
	if (!(gpu->info.features & AMDGPU_SDMA_FEATURE_SVM) || !m->kfd_user)
		return 0;
	m->svm = svm_of(&m->kfd, gpu);
	return svm_new(&m->svm, &m->in_svm, SVM_SIZE);
}

static inline int memory_open(struct memory *m, struct gpu *gpu)
{
	int ret = buffer_map(gpu, &m->buffer, SIZE, AMDGPU_GEM_DOMAIN_VRAM, VA);

	if (!ret)
		ret = buffer_new(gpu, &m->guard, GUARD_SIZE,
				 AMDGPU_GEM_DOMAIN_GTT);
	if (!ret)
		ret = buffer_va(gpu, &m->guard, AMDGPU_VA_OP_MAP, GUARD_VA,
				AMDGPU_VM_PAGE_READABLE);
	if (!ret)
		ret = buffer_cpu(gpu, &m->guard);
	if (!ret)
		ret = buffer_user(gpu, &m->user, USER_SIZE, VA + SIZE,
				  AMDGPU_GEM_USERPTR_REGISTER);
	if (!ret)
		ret = open_kfd(m, gpu);
	if (!ret)
		ret = open_svm(m, gpu);
	return ret;
}

#endif
