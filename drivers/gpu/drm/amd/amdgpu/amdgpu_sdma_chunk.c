// SPDX-License-Identifier: MIT
/*
 * The buffers of a file's command memory: each is always valid in the file's
 * VM, and mapped there at addresses that user space cannot map.
 */

#include <drm/amdgpu_drm.h>

#include "amdgpu.h"
#include "amdgpu_sdma_arena.h"

static int vram_map(struct amdgpu_device *adev, struct amdgpu_vm *vm,
		    struct amdgpu_sdma_chunk *vram)
{
	int r;

	vram->bo_va = amdgpu_vm_bo_add(adev, vm, vram->bo);
	if (!vram->bo_va)
		return -ENOMEM;
	r = amdgpu_vm_bo_map(adev, vram->bo_va, vram->va & AMDGPU_GMC_HOLE_MASK,
			     0, vram->size,
			     AMDGPU_VM_PAGE_READABLE |
			     AMDGPU_VM_PAGE_WRITEABLE);
	if (r)
		amdgpu_vm_bo_del(adev, vram->bo_va);
	return r;
}

static int chunk_map(struct amdgpu_device *adev, struct amdgpu_vm *vm,
		     struct amdgpu_sdma_chunk *chunk)
{
	u64 va = chunk->va & AMDGPU_GMC_HOLE_MASK;
	int r;

	chunk->bo_va = amdgpu_vm_bo_add(adev, vm, chunk->bo);
	if (!chunk->bo_va)
		return -ENOMEM;
	r = amdgpu_vm_bo_map(adev, chunk->bo_va, va, 0, AMDGPU_SDMA_CHUNK_SLOTS,
			     AMDGPU_VM_PAGE_READABLE |
			     AMDGPU_VM_PAGE_WRITEABLE);
	if (!r)
		r = amdgpu_vm_bo_map(adev, chunk->bo_va,
				     va + AMDGPU_SDMA_CHUNK_SLOTS,
				     AMDGPU_SDMA_CHUNK_SLOTS,
				     chunk->size - AMDGPU_SDMA_CHUNK_SLOTS,
				     AMDGPU_VM_PAGE_READABLE |
				     AMDGPU_VM_PAGE_EXECUTABLE);
	if (r)
		amdgpu_vm_bo_del(adev, chunk->bo_va);
	return r;
}

/**
 * amdgpu_sdma_chunk_create_bo - make and map the buffer of a chunk
 * @adev: device
 * @fpriv: file
 * @chunk: has its size and address; the buffer and the mapping are results
 * @domain: AMDGPU_GEM_DOMAIN_GTT for packets and slots, or
 *	AMDGPU_GEM_DOMAIN_VRAM for memory that engines work in
 *
 * The next submission validates it and fills the page tables. The caller holds
 * no reservation.
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_chunk_create_bo(struct amdgpu_device *adev,
				struct amdgpu_fpriv *fpriv,
				struct amdgpu_sdma_chunk *chunk, u32 domain)
{
	bool vram = domain == AMDGPU_GEM_DOMAIN_VRAM;
	struct amdgpu_bo *root = fpriv->vm.root.bo;
	/* As user space's buffers: cleared, and waits can be interrupted. */
	struct amdgpu_bo_param bp = {
		.size = chunk->size,
		.byte_align = PAGE_SIZE,
		.domain = domain,
		.flags = AMDGPU_GEM_CREATE_VM_ALWAYS_VALID |
			 (vram ? AMDGPU_GEM_CREATE_NO_CPU_ACCESS |
				 AMDGPU_GEM_CREATE_VRAM_CLEARED |
				 AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE : 0),
		.type = ttm_bo_type_device,
		.bo_ptr_size = sizeof(struct amdgpu_bo),
		.xcp_id_plus1 = fpriv->xcp_id + 1,
	};
	int r;

	r = amdgpu_bo_reserve(root, false);
	if (r)
		return r;
	bp.resv = root->tbo.base.resv;
	r = amdgpu_bo_create(adev, &bp, &chunk->bo);
	if (r)
		goto unreserve;
	chunk->bo->parent = amdgpu_bo_ref(root);
	/* Only this domain will do, but amdgpu_bo_create() allows others. */
	chunk->bo->allowed_domains = domain;
	r = vram ? vram_map(adev, &fpriv->vm, chunk) :
		   chunk_map(adev, &fpriv->vm, chunk);
unreserve:
	amdgpu_bo_unreserve(root);
	if (r)
		amdgpu_bo_unref(&chunk->bo);
	return r;
}

/**
 * amdgpu_sdma_chunk_cpu - find where the CPU writes a chunk
 * @chunk: from amdgpu_sdma_chunk_get(), resident and locked
 * @cpu: result
 *
 * The kernel's mapping stays until the memory moves.
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_chunk_cpu(struct amdgpu_sdma_chunk *chunk, void **cpu)
{
	struct amdgpu_bo *bo = chunk->bo;
	int r;

	*cpu = amdgpu_bo_kptr(bo);
	if (*cpu)
		return 0;
	/*
	 * amdgpu_bo_kmap() would wait for the moves and clears of all buffers
	 * that are always valid in the VM. No engine moves this memory.
	 */
	r = ttm_bo_kmap(&bo->tbo, 0, PFN_UP(bo->tbo.base.size), &bo->kmap);
	if (!r)
		*cpu = amdgpu_bo_kptr(bo);
	return r;
}
