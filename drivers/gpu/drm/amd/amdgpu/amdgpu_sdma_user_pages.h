/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_USER_PAGES_H__
#define __AMDGPU_SDMA_USER_PAGES_H__

#include <linux/xarray.h>

#include "amdgpu_sdma_svm.h"

struct amdgpu_bo;
struct amdgpu_sdma_batch;
struct amdgpu_vm;
struct drm_amdgpu_sdma_batch;

/**
 * struct amdgpu_sdma_user_pages - pages that a call has obtained
 * @pages: by the address of the buffer
 * @svm: windows on SVM memory that the call has to open
 * @busy: VM whose jobs have to end before the next attempt, or NULL
 * @attempts: number of attempts after which the call had to start again
 * @again: the attempt needs pages or waits, and another one should be made
 */
struct amdgpu_sdma_user_pages {
	struct xarray pages;
	struct amdgpu_sdma_svm_wants svm;
	struct amdgpu_vm *busy;
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
int amdgpu_sdma_user_pages_wait(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_user_pages_lock(struct amdgpu_sdma_batch *b);
void amdgpu_sdma_user_pages_unlock_device(struct amdgpu_sdma_batch *b);
void amdgpu_sdma_user_pages_unlock(struct amdgpu_sdma_batch *b);

#endif
