/* SPDX-License-Identifier: GPL-2.0 */
/*
 * SVM memory for tests of SDMA batches: memory of the process that is
 * registered with the compute driver, in system memory or in the GPU.
 */
#ifndef _SELFTEST_SDMA_SVM_H
#define _SELFTEST_SDMA_SVM_H

#include "kfd_svm.h"
#include "sdma_kfd.h"

/* One GPU, as the functions of kfd_svm.h want it. */
static inline struct svm svm_of(const struct kfd *kfd, const struct gpu *gpu)
{
	struct svm svm = {
		.kfd = kfd->fd,
		.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
		.nr = 1,
		.gpu[0] = { .id = kfd->id, .drm = gpu->fd, },
	};

	snprintf(svm.gpu[0].pci, sizeof(svm.gpu[0].pci), "%s", gpu->name);
	return svm;
}

/*
 * Allocates system memory that the GPU may use, or returns -errno. amdkfd cuts
 * it into ranges at multiples of a power of two, which is smaller where video
 * memory is: the first MiB are in one range wherever the process is loaded.
 */
static inline int svm_new(struct svm *svm, uint8_t **at, size_t size)
{
	*at = svm_map_aligned(size, 16 * MIB);
	if (!*at)
		return -ENOMEM;
	memset(*at, 0, size);
	return svm_access(svm, *at, size, &svm->gpu[0]);
}

/* How many pages are in system memory. */
static inline long svm_here(struct svm *svm, const void *at, size_t size)
{
	return size / SVM_PAGE - svm_away(svm, at, size);
}

static inline struct drm_amdgpu_sdma_desc
faulting(struct drm_amdgpu_sdma_desc d)
{
	d.flags |= AMDGPU_SDMA_DESC_FAULT;
	return d;
}

#endif
