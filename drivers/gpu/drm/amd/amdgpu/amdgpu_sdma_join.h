/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_JOIN_H__
#define __AMDGPU_SDMA_JOIN_H__

#include <linux/types.h>

struct amdgpu_device;
struct amdgpu_ring;

/* Dwords that amdgpu_sdma_join_emit() takes. */
#define AMDGPU_SDMA_JOIN_DW	19

int amdgpu_sdma_join_init(struct amdgpu_device *adev);
void amdgpu_sdma_join_fini(struct amdgpu_device *adev);
u64 amdgpu_sdma_join_get(struct amdgpu_device *adev, u32 engines);
void amdgpu_sdma_join_emit(struct amdgpu_ring *ring, u64 addr);
void amdgpu_sdma_join_process(struct amdgpu_device *adev);

#endif
