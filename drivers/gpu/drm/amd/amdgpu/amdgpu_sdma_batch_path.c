// SPDX-License-Identifier: MIT
/*
 * Where the memory of an SDMA batch is: in the GPU, in the host, or in another
 * device.
 */

#include <linux/dma-buf.h>
#include <linux/math64.h>

#include <drm/ttm/ttm_tt.h>

#include "amdgpu.h"
#include "amdgpu_dma_buf.h"
#include "amdgpu_sdma_batch_internal.h"
#include "amdgpu_sdma_prepared.h"

/*
 * Memory that another device's driver exports: if it is in that device, it has
 * no pages, or pages of peer-to-peer DMA.
 */
static enum amdgpu_sdma_batch_place foreign_place(const struct amdgpu_bo *bo)
{
	const struct sg_table *sgt = bo->tbo.ttm ? bo->tbo.ttm->sg : NULL;
	struct page *page = sgt && sgt->sgl ? sg_page(sgt->sgl) : NULL;

	return page && !is_pci_p2pdma_page(page) ? AMDGPU_SDMA_IN_SYSTEM :
						   AMDGPU_SDMA_IN_PEER;
}

/* The buffer, or the one of this driver that it was imported from, or NULL. */
static struct amdgpu_bo *owner_of(struct amdgpu_bo *bo)
{
	struct drm_gem_object *obj = &bo->tbo.base;
	struct dma_buf *dma_buf;

	if (!drm_gem_is_imported(obj))
		return bo;
	dma_buf = obj->import_attach->dmabuf;
	return dma_buf->ops == &amdgpu_dmabuf_ops ?
	       gem_to_amdgpu_bo(dma_buf->priv) : NULL;
}

/**
 * amdgpu_sdma_batch_place - where a buffer is
 * @adev: device whose engines use it
 * @bo: buffer, valid and locked
 *
 * Returns: the place.
 */
enum amdgpu_sdma_batch_place
amdgpu_sdma_batch_place(struct amdgpu_device *adev, struct amdgpu_bo *bo)
{
	struct amdgpu_bo *owner = owner_of(bo);

	if (!owner)
		return foreign_place(bo);
	/* The exporter's buffer has the same reservation, which is locked. */
	if (!owner->tbo.resource || owner->tbo.resource->mem_type != TTM_PL_VRAM)
		return AMDGPU_SDMA_IN_SYSTEM;
	return amdgpu_ttm_adev(owner->tbo.bdev) == adev ? AMDGPU_SDMA_IN_VRAM :
							  AMDGPU_SDMA_IN_PEER;
}

/**
 * amdgpu_sdma_batch_can_add - whether an engine can add to a buffer's memory
 * @adev: device whose engine it is
 * @bo_va: buffer, valid and locked
 *
 * An ADD to the host's memory takes a PCIe atomic operation. The driver knows
 * if that works up to the root port, but not from there to another device.
 *
 * Returns: true if it can.
 */
bool amdgpu_sdma_batch_can_add(struct amdgpu_device *adev,
			       struct amdgpu_bo_va *bo_va)
{
	switch (amdgpu_sdma_batch_place(adev, bo_va->base.bo)) {
	case AMDGPU_SDMA_IN_VRAM:
		return true;
	case AMDGPU_SDMA_IN_SYSTEM:
		return adev->have_atomics_support;
	default:
		return bo_va->is_xgmi;
	}
}

/**
 * amdgpu_sdma_batch_check_adds - can the engine do the batch's ADDs?
 * @b: call with descriptors; the buffers are valid
 *
 * The buffers stay where they are until the batch has ended.
 *
 * Returns: 0, or -EOPNOTSUPP with the descriptor at fault in error_index.
 */
int amdgpu_sdma_batch_check_adds(struct amdgpu_sdma_batch *b)
{
	const struct drm_amdgpu_sdma_desc *d;
	struct drm_amdgpu_sdma_desc room;
	struct amdgpu_bo_va_mapping *m;
	u32 i;

	for (i = 0; b->plan.adds && i < b->plan.num; i++) {
		d = sdma_desc(&b->plan, i, &room);
		if (d->op != AMDGPU_SDMA_OP_ADD)
			continue;
		m = amdgpu_sdma_batch_mapping(b, d->dst);
		/* amdgpu_sdma_svm_use() has checked SVM memory. */
		if (!m)
			continue;
		if (sdma_batch_prepares(b))
			amdgpu_sdma_prepared_adds(b->prepared, m);
		if (!amdgpu_sdma_batch_can_add(b->adev, m->bo_va)) {
			b->args->error_index = i;
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

/**
 * amdgpu_sdma_batch_add_path - add to the path that the call reports
 * @b: call
 * @bo: buffer, valid and locked
 * @bytes: bytes that are read or written there
 */
void amdgpu_sdma_batch_add_path(struct amdgpu_sdma_batch *b,
				struct amdgpu_bo *bo, u64 bytes)
{
	switch (amdgpu_sdma_batch_place(b->adev, bo)) {
	case AMDGPU_SDMA_IN_VRAM:
		b->args->vram_bytes += bytes;
		break;
	case AMDGPU_SDMA_IN_SYSTEM:
		b->args->system_bytes += bytes;
		break;
	default:
		b->args->peer_bytes += bytes;
	}
}

static void count_piece(struct amdgpu_sdma_batch *b,
			const struct amdgpu_bo_va_mapping *m, u64 bytes)
{
	if (sdma_batch_prepares(b))
		amdgpu_sdma_prepared_path(b->prepared, m, bytes);
	if (b->args->flags & AMDGPU_SDMA_BATCH_PATH)
		amdgpu_sdma_batch_add_path(b, m->bo_va->base.bo, bytes);
}

/* Finds the mapping at @va: @m, which was found last, or else by a lookup. */
static int next_mapping(struct amdgpu_sdma_batch *b, u64 va,
			struct amdgpu_bo_va_mapping **m)
{
	const struct amdgpu_device *adev = b->adev;
	u64 page = (va & AMDGPU_GMC_HOLE_MASK) >> AMDGPU_GPU_PAGE_SHIFT;
	int r;

	if (*m && page >= (*m)->start && page <= (*m)->last)
		return 0;
	r = amdgpu_sdma_batch_charge_lookup(b);
	if (!r)
		*m = amdgpu_sdma_batch_mapping(b, va);
	return r;
}

static int count_range(struct amdgpu_sdma_batch *b,
		       const struct amdgpu_sdma_range *range)
{
	u64 left = range->last - range->start + 1, va = range->start, n;
	const struct amdgpu_device *adev = b->adev;
	struct amdgpu_bo_va_mapping **last, *m;
	int r;

	last = &b->counted[range->read + 2 * range->write];
	while (left) {
		r = next_mapping(b, va, last);
		if (r)
			return r;
		m = *last;
		/* SVM memory from here on, counted by amdgpu_sdma_svm_use() */
		if (!m)
			return 0;
		n = ((m->last + 1) << AMDGPU_GPU_PAGE_SHIFT) -
		    (va & AMDGPU_GMC_HOLE_MASK);
		n = min(n, left);
		count_piece(b, m, range->read && range->write ? 2 * n : n);
		left -= n;
		va += n;
	}
	return 0;
}

static int count_rows(struct amdgpu_sdma_batch *b,
		      const struct amdgpu_sdma_range *range)
{
	struct amdgpu_sdma_range row = *range;
	u32 i;
	int r;

	for (i = 0; i < range->rows; i++) {
		r = count_range(b, &row);
		if (r)
			return r;
		row.start += range->pitch;
		row.last += range->pitch;
	}
	return 0;
}

/**
 * amdgpu_sdma_batch_count_path - count where the batch reads and writes
 * @b: call with descriptors; the buffers are valid
 *
 * Returns: 0, or -EMSGSIZE or -EINTR while mappings are looked up.
 */
int amdgpu_sdma_batch_count_path(struct amdgpu_sdma_batch *b)
{
	struct amdgpu_sdma_range ranges[AMDGPU_SDMA_MAX_RANGES];
	unsigned int n, j;
	int r;
	u32 i;

	if (!sdma_batch_prepares(b) &&
	    !(b->args->flags & AMDGPU_SDMA_BATCH_PATH))
		return 0;
	memset(b->counted, 0, sizeof(b->counted));
	b->lookups = 0;
	for (i = 0; i < b->plan.num; i++) {
		n = amdgpu_sdma_ranges(&b->plan, i, ranges);
		for (j = 0; j < n; j++) {
			r = count_rows(b, &ranges[j]);
			if (r)
				return r;
		}
	}
	return 0;
}

/* xGMI to seven other GPUs, and PCI Express */
#define MAX_LINKS	8
/* Descriptors to look at: few, because each batch that fans out pays for it. */
#define LOOKS		8

/*
 * How a batch leaves the GPU, as far as some of its descriptors tell.
 * @links: what stands for each link: the GPU at the other end of xGMI, or this
 *	one for PCI Express, which all other devices share
 * @num: number of @links
 * @host: data moves between the GPU and the host's memory
 * @device: data moves inside of the GPU, or between devices
 * @last: the mappings that were looked at last, for reading and for writing
 * @leaves: whether each of those is behind a link
 */
struct way {
	const struct amdgpu_device *links[MAX_LINKS];
	u32 num;
	bool host;
	bool device;
	const struct amdgpu_bo_va_mapping *last[2];
	bool leaves[2];
};

static void add_link(struct way *way, const struct amdgpu_device *link)
{
	u32 i;

	for (i = 0; i < way->num; i++)
		if (way->links[i] == link)
			return;
	if (way->num < ARRAY_SIZE(way->links))
		way->links[way->num++] = link;
}

/* Whether it is behind a link. */
static bool add_buffer(struct amdgpu_sdma_batch *b, struct way *way,
		       struct amdgpu_bo_va *bo_va)
{
	struct amdgpu_bo *bo = bo_va->base.bo, *owner = owner_of(bo);

	/* Another driver's memory has no known place until it is mapped. */
	if (!owner && (!bo->tbo.ttm || !bo->tbo.ttm->sg))
		return false;
	switch (amdgpu_sdma_batch_place(b->adev, bo)) {
	case AMDGPU_SDMA_IN_SYSTEM:
		way->host = true;
		return false;
	case AMDGPU_SDMA_IN_VRAM:
		way->device = true;
		return false;
	default:
		way->device = true;
		add_link(way, bo_va->is_xgmi && owner ?
			 amdgpu_ttm_adev(owner->tbo.bdev) : b->adev);
		return true;
	}
}

/* Nothing is known without a buffer, or if another thread has it locked. */
static bool look_at_range(struct amdgpu_sdma_batch *b, struct way *way,
			  const struct amdgpu_sdma_range *range)
{
	struct dma_resv *root = b->fpriv->vm.root.bo->tbo.base.resv, *resv;
	struct amdgpu_bo_va_mapping *m;

	m = amdgpu_sdma_batch_mapping(b, range->start);
	if (!m || !m->bo_va || !m->bo_va->base.bo)
		return false;
	if (m == way->last[range->write])
		return way->leaves[range->write];
	resv = m->bo_va->base.bo->tbo.base.resv;
	if (resv != root && !dma_resv_trylock(resv))
		return false;
	way->last[range->write] = m;
	way->leaves[range->write] = add_buffer(b, way, m->bo_va);
	if (resv != root)
		dma_resv_unlock(resv);
	return way->leaves[range->write];
}

/* Whether a descriptor's data, not its record, leave the GPU by a link. */
static bool look_at_desc(struct amdgpu_sdma_batch *b, struct way *way, u32 i)
{
	struct amdgpu_sdma_range ranges[AMDGPU_SDMA_MAX_RANGES];
	unsigned int n = amdgpu_sdma_ranges(&b->plan, i, ranges), j;
	bool leaves = false;

	if (sdma_head(&b->plan, i)->flags & AMDGPU_SDMA_DESC_RECORD)
		n--;
	for (j = 0; j < n; j++)
		leaves |= look_at_range(b, way, &ranges[j]);
	return leaves;
}

/* Do those after @first, and as many from all over the batch, all leave? */
static bool look_at_some(struct amdgpu_sdma_batch *b, struct way *way, u32 first)
{
	u32 num = b->plan.num, i;
	bool leave = true;

	for (i = first + 1; leave && i < min(num, first + LOOKS); i++)
		leave = look_at_desc(b, way, i);
	for (i = 1; leave && i < LOOKS; i++)
		leave = look_at_desc(b, way, first + (num - first) / LOOKS * i);
	return leave;
}

/**
 * amdgpu_sdma_batch_guess_way - guess which way most of a batch goes
 * @b: call that holds no reservation
 * @engines: gets the path, from the first descriptor, and the links, from some
 *	of all descriptors: as they are now
 *
 * Returns: 0, or an error if a signal came.
 */
int amdgpu_sdma_batch_guess_way(struct amdgpu_sdma_batch *b,
				struct amdgpu_sdma_engines *engines)
{
	struct amdgpu_bo *root = b->fpriv->vm.root.bo;
	/* the first one after the leading waits, if there is one */
	u32 first = b->plan.prelude < b->plan.num ? b->plan.prelude : 0;
	struct way way = { };
	bool leaves;
	int r;

	r = amdgpu_bo_reserve(root, false);
	if (r)
		return r;
	leaves = look_at_desc(b, &way, first);
	if (way.host)
		engines->path = AMDGPU_SDMA_PATH_HOST;
	else if (way.device)
		engines->path = AMDGPU_SDMA_PATH_DEVICE;
	if (leaves && !way.host && amdgpu_sdma_plan_may_fan_out(&b->plan) &&
	    look_at_some(b, &way, first))
		engines->links = way.num;
	amdgpu_bo_unreserve(root);
	return 0;
}
