// SPDX-License-Identifier: MIT
/*
 * The arguments of an SDMA batch: checks of the structure itself, and copies of
 * all that it points to. Nothing after this reads user space's memory.
 */

#include <linux/dma-fence-chain.h>
#include <linux/overflow.h>
#include <linux/uaccess.h>

#include <drm/drm_syncobj.h>

#include "amdgpu_sdma_batch_internal.h"

#define MAX_STRIDE	4096
#define KNOWN_FLAGS	(AMDGPU_SDMA_BATCH_NONBLOCK | AMDGPU_SDMA_BATCH_PATH)

static int check_descs(const struct drm_amdgpu_sdma_batch *args)
{
	if (args->handle || args->placement > AMDGPU_SDMA_PLACE_FAN_OUT)
		return -EINVAL;
	if (!args->num_descs || args->desc_stride % 8 ||
	    args->desc_stride < AMDGPU_SDMA_DESC_SIZE_MIN ||
	    args->desc_stride > MAX_STRIDE)
		return -EINVAL;
	return args->num_descs > AMDGPU_SDMA_MAX_DESCS ? -EMSGSIZE : 0;
}

static int check_fences(const struct drm_amdgpu_sdma_batch *args)
{
	return args->num_in_fences > AMDGPU_SDMA_MAX_FENCES ||
	       args->num_out_fences > AMDGPU_SDMA_MAX_FENCES ? -EMSGSIZE : 0;
}

static int check_no_descs(const struct drm_amdgpu_sdma_batch *args)
{
	return args->descs || args->num_descs || args->desc_stride ||
	       args->placement || args->engine_mask || args->records ?
		-EINVAL : 0;
}

static int check_no_fences(const struct drm_amdgpu_sdma_batch *args)
{
	return args->in_fences || args->out_fences || args->num_in_fences ||
	       args->num_out_fences ? -EINVAL : 0;
}

static int check_forget(const struct drm_amdgpu_sdma_batch *args)
{
	if (args->ctx_id || args->flags)
		return -EINVAL;
	return check_no_descs(args) ?: check_no_fences(args);
}

/**
 * amdgpu_sdma_batch_check_args - do the checks that need only the arguments
 * @args: arguments
 *
 * Returns: 0, -EINVAL, or -EMSGSIZE if there is too much for one batch.
 */
int amdgpu_sdma_batch_check_args(const struct drm_amdgpu_sdma_batch *args)
{
	BUILD_BUG_ON(ARRAY_SIZE(args->reserved) != 2);
	if (args->flags & ~KNOWN_FLAGS || args->reserved[0] ||
	    args->reserved[1])
		return -EINVAL;
	switch (args->op) {
	case AMDGPU_SDMA_BATCH_SUBMIT:
		return check_descs(args) ?: check_fences(args);
	case AMDGPU_SDMA_BATCH_PREPARE:
		return check_descs(args) ?: check_no_fences(args);
	case AMDGPU_SDMA_BATCH_RUN:
		return check_no_descs(args) ?: check_fences(args);
	case AMDGPU_SDMA_BATCH_FORGET:
		return check_forget(args);
	default:
		return -EINVAL;
	}
}

/* Descriptors that are longer than the kernel's: what they add must be zero. */
static int copy_longer(struct amdgpu_sdma_batch *b, const void __user *from)
{
	u32 i, stride = b->args->desc_stride;
	int r;

	for (i = 0; i < b->args->num_descs; i++) {
		r = copy_struct_from_user(b->descs + i * b->stride, b->stride,
					  from, stride);
		if (r) {
			b->args->error_index = i;
			return r;
		}
		from += stride;
	}
	return 0;
}

/**
 * amdgpu_sdma_batch_copy_descs - copy the descriptors
 * @b: call
 *
 * Shorter descriptors than the kernel's stay as short as they are.
 *
 * Returns: 0 or a negative error, -E2BIG if a longer one is not zero after the
 * part that the kernel knows.
 */
int amdgpu_sdma_batch_copy_descs(struct amdgpu_sdma_batch *b)
{
	const size_t full = sizeof(struct drm_amdgpu_sdma_desc);
	const void __user *from = u64_to_user_ptr(b->args->descs);
	size_t size;

	b->stride = min_t(u32, b->args->desc_stride, full);
	size = array_size(b->args->num_descs, b->stride);
	b->descs = kvmalloc(size, GFP_KERNEL_ACCOUNT);
	if (!b->descs)
		return -ENOMEM;
	if (b->stride != b->args->desc_stride)
		return copy_longer(b, from);
	return copy_from_user(b->descs, from, size) ? -EFAULT : 0;
}

static int copy_fence(u64 from, u32 i, struct drm_amdgpu_sdma_fence *fence)
{
	const struct drm_amdgpu_sdma_fence __user *all = u64_to_user_ptr(from);

	if (copy_from_user(fence, &all[i], sizeof(*fence)))
		return -EFAULT;
	return fence->pad ? -EINVAL : 0;
}

static int copy_in_fence(struct amdgpu_sdma_batch *b, u32 i)
{
	struct drm_amdgpu_sdma_fence from;
	struct dma_fence *fence;
	int r;

	r = copy_fence(b->args->in_fences, i, &from);
	if (!r)
		r = drm_syncobj_find_fence(b->filp, from.handle, from.point, 0,
					   &fence);
	if (r)
		return r;
	r = amdgpu_sdma_batch_wait_for(b, fence);
	dma_fence_put(fence);
	return r;
}

static int find_out_syncobj(struct amdgpu_sdma_batch *b,
			    const struct drm_amdgpu_sdma_fence *f)
{
	struct amdgpu_sdma_batch_out *out = &b->outs[b->num_outs];

	out->syncobj = drm_syncobj_find(b->filp, f->handle);
	if (!out->syncobj)
		return -ENOENT;
	b->num_outs++;
	out->point = f->point;
	if (!f->point)
		return 0;
	out->chain = dma_fence_chain_alloc();
	return out->chain ? 0 : -ENOMEM;
}

static int copy_out_fence(struct amdgpu_sdma_batch *b, u32 i)
{
	struct drm_amdgpu_sdma_fence from;

	return copy_fence(b->args->out_fences, i, &from) ?:
	       find_out_syncobj(b, &from);
}

/* Copies each fence of an array; reports which one is at fault. */
static int copy_each(struct amdgpu_sdma_batch *b, u32 num, u32 array,
		     int (*copy)(struct amdgpu_sdma_batch *b, u32 i))
{
	u32 i;
	int r;

	for (i = 0; i < num; i++) {
		r = copy(b, i);
		if (r == -EINVAL || r == -ENOENT || r == -EFAULT) {
			b->args->error_array = array;
			b->args->error_index = i;
		}
		if (r)
			return r;
	}
	return 0;
}

/**
 * amdgpu_sdma_batch_copy_fences - look up the fences to wait for and to signal
 * @b: call
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_copy_fences(struct amdgpu_sdma_batch *b)
{
	u32 num = b->args->num_out_fences;
	int r;

	r = copy_each(b, b->args->num_in_fences, AMDGPU_SDMA_ERROR_IN_FENCE,
		      copy_in_fence);
	if (r || !num)
		return r;
	b->outs = num == 1 ? &b->out :
			     kzalloc_objs(*b->outs, num, GFP_KERNEL_ACCOUNT);
	if (!b->outs)
		return -ENOMEM;
	return copy_each(b, num, AMDGPU_SDMA_ERROR_OUT_FENCE, copy_out_fence);
}

void amdgpu_sdma_batch_put_fences(struct amdgpu_sdma_batch *b)
{
	unsigned int i;

	for (i = 0; i < b->num_outs; i++) {
		dma_fence_chain_free(b->outs[i].chain);
		drm_syncobj_put(b->outs[i].syncobj);
	}
	if (b->outs != &b->out)
		kfree(b->outs);
}
