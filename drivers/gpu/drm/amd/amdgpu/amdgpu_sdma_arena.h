/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_ARENA_H__
#define __AMDGPU_SDMA_ARENA_H__

#include <linux/types.h>

struct amdgpu_bo;
struct amdgpu_bo_va;
struct amdgpu_device;
struct amdgpu_fpriv;
struct amdgpu_sdma_batch_file;
struct dma_fence;
struct xarray;

/**
 * struct amdgpu_sdma_chunk - memory for the packets of one batch
 * @node: in the arena's list while no thread builds a batch in it
 * @bo: system memory, always valid in the file's VM
 * @bo_va: its mapping
 * @va: GPU address: slots in the first page, then packets
 * @sample: GPU address, in video memory, of what waits work in
 * @size: bytes
 * @fence: end of the batch that used it last, or NULL
 */
struct amdgpu_sdma_chunk {
	struct list_head node;
	struct amdgpu_bo *bo;
	struct amdgpu_bo_va *bo_va;
	u64 va;
	u64 sample;
	u32 size;
	struct dma_fence *fence;
};

/* The engine may write only the first page of a chunk. */
#define AMDGPU_SDMA_CHUNK_SLOTS		4096

struct amdgpu_sdma_chunk *
amdgpu_sdma_chunk_get(struct amdgpu_device *adev, struct amdgpu_fpriv *fpriv,
		      u64 bytes, bool waits, bool nonblock);
int amdgpu_sdma_scratch_get(struct amdgpu_device *adev,
			    struct amdgpu_fpriv *fpriv, u64 *va);
int amdgpu_sdma_chunk_create_bo(struct amdgpu_device *adev,
				struct amdgpu_fpriv *fpriv,
				struct amdgpu_sdma_chunk *chunk, u32 domain);
int amdgpu_sdma_chunk_cpu(struct amdgpu_sdma_chunk *chunk, void **cpu);
void amdgpu_sdma_chunk_put(struct amdgpu_fpriv *fpriv,
			   struct amdgpu_sdma_chunk *chunk,
			   struct dma_fence *fence);
struct amdgpu_sdma_batch_file *
amdgpu_sdma_arena_stats(struct amdgpu_fpriv *fpriv);
struct amdgpu_sdma_chunk *
amdgpu_sdma_chunk_get_kept(struct amdgpu_device *adev,
			   struct amdgpu_fpriv *fpriv, u64 bytes, bool waits,
			   bool nonblock);
void amdgpu_sdma_chunk_put_kept(struct amdgpu_fpriv *fpriv,
				struct amdgpu_sdma_chunk *chunk,
				struct dma_fence *fence);
struct xarray *amdgpu_sdma_arena_prepared(struct amdgpu_fpriv *fpriv);
void amdgpu_sdma_arena_fini(struct amdgpu_device *adev,
			    struct amdgpu_fpriv *fpriv);

#endif
