/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_USER_PAGES_H__
#define __AMDGPU_SDMA_USER_PAGES_H__

#include <linux/xarray.h>

#include "amdgpu_sdma_svm.h"

struct amdgpu_bo;
struct amdgpu_sdma_batch;
struct drm_amdgpu_sdma_batch;

/**
 * struct amdgpu_sdma_user_pages - pages that a call has obtained
 * @pages: by the address of the buffer
 * @svm: windows on SVM memory that the call has to open
 * @attempts: number of attempts that have needed pages
 * @again: the attempt needs pages, and another attempt should be made
 */
struct amdgpu_sdma_user_pages {
	struct xarray pages;
	struct amdgpu_sdma_svm_wants svm;
	unsigned int attempts;
	bool again;
};

void amdgpu_sdma_user_pages_init(struct amdgpu_sdma_user_pages *user);
void amdgpu_sdma_user_pages_fini(struct amdgpu_sdma_user_pages *user);
int amdgpu_sdma_user_pages_get(struct amdgpu_sdma_user_pages *user,
			       struct drm_amdgpu_sdma_batch *args);

int amdgpu_sdma_user_pages_check(struct amdgpu_sdma_batch *b,
				 const struct amdgpu_bo *bo);
int amdgpu_sdma_user_pages_use(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_user_pages_lock(struct amdgpu_sdma_batch *b);
void amdgpu_sdma_user_pages_unlock(struct amdgpu_sdma_batch *b);

#endif
