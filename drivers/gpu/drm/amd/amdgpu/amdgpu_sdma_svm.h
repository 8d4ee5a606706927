/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_SVM_H__
#define __AMDGPU_SDMA_SVM_H__

#include <linux/types.h>

#include "kfd_svm_window.h"

struct amdgpu_sdma_batch;
struct amdgpu_sdma_range;
struct drm_amdgpu_sdma_batch;

/**
 * struct amdgpu_sdma_svm_range - SVM memory that a descriptor names
 * @first: first address
 * @last: last address
 * @desc: descriptor, or AMDGPU_SDMA_NO_INDEX
 * @read: the descriptor reads there
 * @write: the descriptor writes there
 * @add: the descriptor adds there
 * @fault: memory may be faulted in
 * @missing: this call has found no window
 */
struct amdgpu_sdma_svm_range {
	u64 first;
	u64 last;
	u32 desc;
	bool read : 1;
	bool write : 1;
	bool add : 1;
	bool fault : 1;
	bool missing : 1;
};

/**
 * struct amdgpu_sdma_svm - SVM memory of a batch
 * @ranges: as descriptors name it
 * @num: number of @ranges
 * @max: room in @ranges
 * @mark: state of the windows before they were looked at
 * @seen: at @mark, there was a window for every range
 * @bytes: bytes in each place, as the arguments report them now
 */
struct amdgpu_sdma_svm {
	struct amdgpu_sdma_svm_range *ranges;
	u32 num;
	u32 max;
	struct kfd_svm_mark mark;
	bool seen;
	u64 bytes[KFD_SVM_PLACES];
};

/**
 * struct amdgpu_sdma_svm_wants - windows that a call has to open
 * @user: the process, as soon as the call has found SVM memory
 * @want: what an attempt found missing
 * @num: number of @want
 */
struct amdgpu_sdma_svm_wants {
	struct kfd_svm_user user;
	struct amdgpu_sdma_svm_want {
		struct kfd_svm_want window;
		u32 desc;
	} *want;
	u32 num;
};

int amdgpu_sdma_svm_add(struct amdgpu_sdma_batch *b,
			const struct amdgpu_sdma_range *r, u64 page);
bool amdgpu_sdma_svm_find_process(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_svm_use(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_svm_reserve_fences(struct amdgpu_sdma_batch *b);
void amdgpu_sdma_svm_fence(struct amdgpu_sdma_batch *b);
void amdgpu_sdma_svm_unreserve(struct amdgpu_sdma_batch *b);
int amdgpu_sdma_svm_lock(struct amdgpu_sdma_batch *b);
void amdgpu_sdma_svm_unlock(struct amdgpu_sdma_batch *b);
bool amdgpu_sdma_svm_faults_in(const struct amdgpu_sdma_svm_wants *wants);
int amdgpu_sdma_svm_get(struct amdgpu_sdma_svm_wants *wants,
			struct drm_amdgpu_sdma_batch *args);
void amdgpu_sdma_svm_fini(struct amdgpu_sdma_svm_wants *wants);

#endif
