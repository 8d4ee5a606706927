// SPDX-License-Identifier: MIT
/*
 * The memory of an SDMA batch: looks up the memory that descriptors name, locks
 * the buffers, makes them resident, brings the page tables up to date, and lets
 * the jobs wait for all of that.
 */

#include <linux/overflow.h>
#include <linux/sched/signal.h>
#include <uapi/linux/kfd_ioctl.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_dma_buf.h"
#include "amdgpu_gmc.h"
#include "amdgpu_sdma_batch.h"
#include "amdgpu_sdma_batch_ctx.h"
#include "amdgpu_sdma_batch_internal.h"
#include "amdgpu_sdma_prepared.h"
#include "amdgpu_sdma_user_pages.h"

/* Mappings that a batch may look up. */
#define MAX_LOOKUPS	BIT(19)
/* Memory that engines can move. */
#define MOVABLE		(AMDGPU_GEM_DOMAIN_VRAM | AMDGPU_GEM_DOMAIN_GTT)

/* Doorbells and registers have no memory, though they seem to be in the GTT. */
static bool is_registers(const struct amdgpu_bo *bo)
{
	const u32 registers = KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL |
			      KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP;

	return bo->kfd_bo && bo->kfd_bo->alloc_flags & registers;
}

/* The lock of the buffer, which is held, keeps the ttm. */
static int check_bo(struct amdgpu_sdma_batch *b, const struct amdgpu_bo *bo)
{
	if (amdgpu_ttm_tt_get_usermm(bo->tbo.ttm))
		return amdgpu_sdma_user_pages_check(b, bo);
	if (!(bo->allowed_domains & MOVABLE) || is_registers(bo))
		return -EOPNOTSUPP;
	if (bo->preferred_domains & ~(MOVABLE | AMDGPU_GEM_DOMAIN_CPU))
		return -EOPNOTSUPP;
	return amdgpu_bo_encrypted((struct amdgpu_bo *)bo) ? -EOPNOTSUPP : 0;
}

static int add_bo_va(struct amdgpu_sdma_batch *b, struct amdgpu_bo_va *bo_va)
{
	if (b->num_bo_vas == b->max_bo_vas) {
		u32 room = 4 * b->max_bo_vas;
		struct amdgpu_bo_va **all;

		all = kvmalloc_array(room, sizeof(*all), GFP_KERNEL_ACCOUNT);
		if (!all)
			return -ENOMEM;
		memcpy(all, b->bo_vas, b->num_bo_vas * sizeof(*all));
		if (b->bo_vas != b->few)
			kvfree(b->bo_vas);
		b->bo_vas = all;
		b->max_bo_vas = room;
	}
	b->bo_vas[b->num_bo_vas++] = bo_va;
	bo_va->sdma_batch = b->stamp;
	return 0;
}

/**
 * amdgpu_sdma_batch_use - lock a buffer
 * @b: call, has locked the VM
 * @bo_va: buffer; may be passed again
 *
 * Buffers that share a reservation are locked together, but each of them is
 * still validated and mapped.
 *
 * Returns: 0, -EOPNOTSUPP if engines cannot reach it, an error of the lock, or
 * of amdgpu_sdma_user_pages_check().
 */
int amdgpu_sdma_batch_use(struct amdgpu_sdma_batch *b,
			  struct amdgpu_bo_va *bo_va)
{
	struct amdgpu_bo *bo = bo_va->base.bo;
	int r;

	if (bo_va->sdma_batch == b->stamp)
		return 0;
	/* A buffer that is always valid shares the lock of the VM. */
	if (!amdgpu_vm_is_bo_always_valid(&b->fpriv->vm, bo)) {
		r = drm_exec_prepare_obj(&b->exec, &bo->tbo.base,
					 TTM_NUM_MOVE_FENCES + b->num_engines);
		if (r)
			return r;
	}
	r = check_bo(b, bo);
	return r ? r : add_bo_va(b, bo_va);
}

/* Checks that a descriptor may use a mapping; if so, locks its buffer. */
static int use_mapping(struct amdgpu_sdma_batch *b,
		       struct amdgpu_bo_va_mapping *m,
		       const struct amdgpu_sdma_range *r)
{
	int ret;

	/* There is no memory behind a sparse mapping. */
	if (!m->bo_va || !m->bo_va->base.bo)
		return -ENOENT;
	if ((r->read && !(m->flags & AMDGPU_VM_PAGE_READABLE)) ||
	    (r->write && !(m->flags & AMDGPU_VM_PAGE_WRITEABLE)))
		return -EACCES;
	/* The driver's own mappings, among them those of batches' packets. */
	if (m->last >= b->adev->vm_manager.max_pfn -
		       (AMDGPU_VA_RESERVED_TOP >> AMDGPU_GPU_PAGE_SHIFT))
		return -EACCES;
	ret = amdgpu_sdma_batch_use(b, m->bo_va);
	if (!ret && r->write &&
	    amdgpu_ttm_tt_is_readonly(m->bo_va->base.bo->tbo.ttm))
		ret = -EACCES;
	return ret;
}

/**
 * amdgpu_sdma_batch_charge_lookup - account for the lookup of a mapping
 * @b: call
 *
 * Mappings are looked up with locks held. So their number is bounded, and a
 * process that was killed stops.
 *
 * Returns: 0, -EMSGSIZE or -EINTR.
 */
int amdgpu_sdma_batch_charge_lookup(struct amdgpu_sdma_batch *b)
{
	if (++b->lookups > MAX_LOOKUPS)
		return -EMSGSIZE;
	if (b->lookups % 256)
		return 0;
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

static u64 va_page(const struct amdgpu_device *adev, u64 va)
{
	return (va & AMDGPU_GMC_HOLE_MASK) >> AMDGPU_GPU_PAGE_SHIFT;
}

static u64 page_va(const struct amdgpu_device *adev, u64 page)
{
	u64 va = page << AMDGPU_GPU_PAGE_SHIFT;

	return amdgpu_gmc_sign_extend(va);
}

/**
 * amdgpu_sdma_batch_mapping - what is mapped at an address
 * @b: call, has locked the VM
 * @va: address
 *
 * Returns: the mapping, or NULL.
 */
struct amdgpu_bo_va_mapping *
amdgpu_sdma_batch_mapping(const struct amdgpu_sdma_batch *b, u64 va)
{
	return amdgpu_vm_bo_lookup_mapping(&b->fpriv->vm, va_page(b->adev, va));
}

/* Every page of the range must be mapped; several mappings may share that. */
static int lock_range(struct amdgpu_sdma_batch *b,
		      const struct amdgpu_sdma_range *r)
{
	struct amdgpu_sdma_hull *found;
	u64 page = va_page(b->adev, r->start);
	u64 last = va_page(b->adev, r->last);
	struct amdgpu_bo_va_mapping *m;
	int ret;

	found = &b->found[r->read + 2 * r->write];
	if (r->start >= found->first && r->last <= found->last)
		return 0;
	for (; page <= last; page = m->last + 1) {
		ret = amdgpu_sdma_batch_charge_lookup(b);
		if (ret)
			return ret;
		m = amdgpu_vm_bo_lookup_mapping(&b->fpriv->vm, page);
		if (!m)
			return amdgpu_sdma_svm_add(b, r, page);
		ret = use_mapping(b, m, r);
		if (!ret && sdma_batch_prepares(b))
			ret = amdgpu_sdma_prepared_use(b->prepared, m);
		if (ret)
			return ret;
		found->first = page_va(b->adev, m->start);
		found->last = page_va(b->adev, m->last) +
			      AMDGPU_GPU_PAGE_SIZE - 1;
	}
	return 0;
}

/* Any of the allowed engines may run the batch, and then writes its record. */
static int lock_records(struct amdgpu_sdma_batch *b)
{
	const u64 size = sizeof(struct drm_amdgpu_sdma_record);
	struct amdgpu_sdma_range range = { .rows = 1, .write = true };
	u32 first, last;

	if (!b->args->records)
		return 0;
	first = b->bctx->engines[__ffs(b->mask)].instance;
	last = b->bctx->engines[__fls(b->mask)].instance;
	range.desc = AMDGPU_SDMA_NO_INDEX;
	range.start = b->args->records + first * size;
	range.last = b->args->records + last * size + size - 1;
	return lock_range(b, &range);
}

static bool is_found(const struct amdgpu_sdma_hull *found, u64 va, u64 size)
{
	return va >= found->first && va + size - 1 <= found->last;
}

/* The short way for a plain copy between the mappings that were found last. */
static bool found_copy(const struct amdgpu_sdma_batch *b,
		       const struct amdgpu_sdma_head *d)
{
	return sdma_is_plain_copy(d) &&
	       is_found(&b->found[1], d->src, d->size) &&
	       is_found(&b->found[2], d->dst, d->size);
}

static int lock_rows(struct amdgpu_sdma_batch *b,
		     const struct amdgpu_sdma_range *range)
{
	struct amdgpu_sdma_range row = *range;
	u32 i;
	int r;

	for (i = 0; i < range->rows; i++) {
		r = lock_range(b, &row);
		if (r)
			return r;
		row.start += range->pitch;
		row.last += range->pitch;
	}
	return 0;
}

/* Errors of memory, and so of the descriptor that names it. */
static bool is_fault(int r)
{
	return r == -ENOENT || r == -EACCES || r == -EOPNOTSUPP ||
	       r == -EMSGSIZE || r == -EFAULT || r == -EPERM;
}

static int lock_desc(struct amdgpu_sdma_batch *b, u32 i)
{
	struct amdgpu_sdma_range ranges[AMDGPU_SDMA_MAX_RANGES];
	unsigned int n, j;
	int r;

	n = amdgpu_sdma_ranges(&b->plan, i, ranges);
	for (j = 0; j < n; j++) {
		r = lock_rows(b, &ranges[j]);
		if (is_fault(r))
			b->args->error_index = i;
		if (r)
			return r;
	}
	return 0;
}

/*
 * Looks for one mapping of all that plain copies read, and one of all that they
 * write: then the copies need not be looked up one by one. There may be none.
 */
static int find_hulls(struct amdgpu_sdma_batch *b)
{
	const struct amdgpu_sdma_plan *plan = &b->plan;
	const struct amdgpu_sdma_range ranges[] = {
		{ .start = plan->reads.first, .last = plan->reads.last,
		  .rows = 1, .read = true },
		{ .start = plan->writes.first, .last = plan->writes.last,
		  .rows = 1, .write = true },
	};
	struct amdgpu_bo_va_mapping *m;
	unsigned int i;
	int r = 0;

	for (i = 0; !r && plan->plain && i < ARRAY_SIZE(ranges); i++) {
		m = amdgpu_sdma_batch_mapping(b, ranges[i].start);
		if (m && va_page(b->adev, ranges[i].last) <= m->last)
			r = lock_range(b, &ranges[i]);
	}
	/* An error is found again, with the descriptor that is at fault. */
	return is_fault(r) ? 0 : r;
}

/**
 * amdgpu_sdma_batch_lock_ranges - lock the memory that descriptors name
 * @b: call, has locked the VM
 *
 * Returns: 0 or an error. For these a descriptor may be at fault: -ENOENT if
 * nothing is mapped, -EACCES, -EOPNOTSUPP, -EMSGSIZE, -EFAULT or -EPERM.
 */
int amdgpu_sdma_batch_lock_ranges(struct amdgpu_sdma_batch *b)
{
	unsigned int j;
	int r;
	u32 i;

	b->lookups = 0;
	b->svm->num = 0;
	if (sdma_batch_prepares(b))
		b->prepared->num_used = 0;
	/* Mappings stay as long as the lock of the VM is held. */
	for (j = 0; j < ARRAY_SIZE(b->found); j++) {
		b->found[j].first = U64_MAX;
		b->found[j].last = 0;
	}
	r = find_hulls(b);
	if (r)
		return r;
	for (i = 0; i < b->plan.num; i++) {
		if (found_copy(b, sdma_head(&b->plan, i)))
			continue;
		r = lock_desc(b, i);
		if (r)
			return r;
	}
	return lock_records(b);
}

/**
 * amdgpu_sdma_batch_lock - lock the VM and the buffers
 * @b: call
 * @lock_buffers: calls amdgpu_sdma_batch_use() for each of them
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_lock(struct amdgpu_sdma_batch *b,
			   int (*lock_buffers)(struct amdgpu_sdma_batch *b))
{
	static atomic64_t stamps;
	int r;

	drm_exec_init(&b->exec, DRM_EXEC_INTERRUPTIBLE_WAIT |
		      DRM_EXEC_IGNORE_DUPLICATES, 0);
	b->exec_ready = true;
	drm_exec_until_all_locked(&b->exec) {
		/* and one more slot for the joined fence */
		r = amdgpu_vm_lock_pd(&b->fpriv->vm, &b->exec,
				      b->num_engines + 1);
		drm_exec_retry_on_contention(&b->exec);
		if (r)
			return r;
		b->stamp = atomic64_inc_return(&stamps);
		b->num_bo_vas = 0;
		b->notifier_locks = 0;
		b->args->error_index = AMDGPU_SDMA_NO_INDEX;
		r = lock_buffers(b);
		drm_exec_retry_on_contention(&b->exec);
		if (r)
			return r;
	}
	return 0;
}

/*
 * Whether ttm_bo_validate() would leave a buffer where it is. It would move a
 * buffer back for which video memory had no room, if there is room by now.
 */
static bool may_stay(const struct amdgpu_bo *bo)
{
	const struct ttm_resource *res = bo->tbo.resource;

	if (bo->tbo.pin_count)
		return true;
	/* amdkfd's are where amdkfd wants them, if their pages are valid. */
	if (bo->kfd_bo && amdgpu_ttm_tt_get_usermm(bo->tbo.ttm))
		return true;
	if (!res || res->placement & TTM_PL_FLAG_TEMPORARY)
		return false;
	if (res->mem_type == TTM_PL_VRAM)
		return bo->allowed_domains & AMDGPU_GEM_DOMAIN_VRAM;
	return (res->mem_type == TTM_PL_TT ||
		res->mem_type == AMDGPU_PL_PREEMPT) &&
	       (bo->allowed_domains & MOVABLE) == AMDGPU_GEM_DOMAIN_GTT;
}

/*
 * A buffer stays where it is if the engine can reach it there. Returns 1 if
 * that is in a peer that XGMI links.
 */
static int keep_or_move(struct amdgpu_bo *bo)
{
	u32 domains = bo->allowed_domains & MOVABLE;
	struct ttm_operation_ctx ctx = {
		.interruptible = true,
		.resv = bo->tbo.base.resv,
	};
	int r;

	if (may_stay(bo))
		return 0;
	r = amdgpu_dmabuf_validate_xgmi(amdgpu_ttm_adev(bo->tbo.bdev), bo, &ctx);
	if (r)
		return r;
	/* Some buffers that are always valid may be in the CPU domain only. */
	amdgpu_bo_placement_from_domain(bo, domains ?: bo->allowed_domains);
	return ttm_bo_validate(&bo->tbo, &bo->placement, &ctx);
}

static int validate_bo(void *param, struct amdgpu_bo *bo)
{
	return min(keep_or_move(bo), 0);
}

/* A pinned buffer stays where it is, and might be out of the engines' reach. */
static int validate_named(struct amdgpu_bo *bo)
{
	int r = keep_or_move(bo);

	if (r)
		return min(r, 0);
	switch (bo->tbo.resource ? bo->tbo.resource->mem_type : TTM_PL_SYSTEM) {
	case TTM_PL_VRAM:
	case TTM_PL_TT:
	/*
	 * Memory of another GPU that KFD has mapped. It has the reservation of
	 * that GPU's buffer, which waits for our fences before it moves.
	 */
	case AMDGPU_PL_PREEMPT:
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/**
 * amdgpu_sdma_batch_validate_vm - validate page tables and always valid buffers
 * @adev: device
 * @vm: VM, locked
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_validate_vm(struct amdgpu_device *adev,
				  struct amdgpu_vm *vm)
{
	return amdgpu_vm_validate(adev, vm, NULL, validate_bo, NULL);
}

/**
 * amdgpu_sdma_batch_validate - move the buffers to where engines reach them
 * @b: call, has locked them
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_validate(struct amdgpu_sdma_batch *b)
{
	u32 i;
	int r;

	r = amdgpu_sdma_user_pages_use(b);
	if (!r)
		r = amdgpu_sdma_batch_validate_vm(b->adev, &b->fpriv->vm);
	for (i = 0; !r && i < b->num_bo_vas; i++)
		r = validate_named(b->bo_vas[i]->base.bo);
	return r;
}

/*
 * Neither the buffer nor its mappings have changed since the page tables were
 * updated. The locks of the VM and the buffer protect what says so.
 */
static bool is_up_to_date(const struct amdgpu_bo_va *bo_va)
{
	return !bo_va->base.moved && !bo_va->cleared &&
	       list_empty(&bo_va->invalids);
}

/* Made when it is needed: most batches wait for nothing. */
static struct amdgpu_sync *need_sync(struct amdgpu_sdma_batch *b)
{
	if (!b->syncs)
		amdgpu_sync_create(&b->sync);
	b->syncs = true;
	return &b->sync;
}

/**
 * amdgpu_sdma_batch_wait_for - let the batch begin after a fence
 * @b: call that has not synced its jobs yet
 * @fence: fence, or NULL
 *
 * Returns: 0 or -ENOMEM.
 */
int amdgpu_sdma_batch_wait_for(struct amdgpu_sdma_batch *b,
			       struct dma_fence *fence)
{
	if (!fence || dma_fence_is_signaled(fence))
		return 0;
	return amdgpu_sync_fence(need_sync(b), fence, GFP_KERNEL);
}

/*
 * Mappings of what is unmapped, or was moved and is not of this batch, are
 * cleared by the CPU only after all earlier submissions have ended. A call that
 * must not block leaves that to another call; others wait without the locks.
 */
static int check_clears(struct amdgpu_sdma_batch *b,
			const struct list_head *cleared)
{
	return amdgpu_vm_clear_waits(&b->fpriv->vm, cleared) ?
	       amdgpu_sdma_user_pages_wait(b) : 0;
}

/* Likewise: the CPU maps a buffer only after the buffer's move has ended. */
static int check_moves(const struct amdgpu_sdma_batch *b)
{
	struct amdgpu_vm *vm = &b->fpriv->vm;
	u32 i;

	for (i = 0; i < b->num_bo_vas; i++)
		if (!is_up_to_date(b->bo_vas[i]) &&
		    amdgpu_vm_map_waits(b->adev, vm, b->bo_vas[i]->base.bo))
			return -EAGAIN;
	return amdgpu_vm_moved_wait(b->adev, vm) ? -EAGAIN : 0;
}

/**
 * amdgpu_sdma_batch_update_vm - bring the page tables up to date
 * @b: call; the buffers are valid
 *
 * The batch waits for the updates.
 *
 * Returns: 0, -EAGAIN instead of waiting, or another negative error.
 */
int amdgpu_sdma_batch_update_vm(struct amdgpu_sdma_batch *b)
{
	struct amdgpu_vm *vm = &b->fpriv->vm;
	u32 i;
	int r;

	if (!amdgpu_vm_ready(vm))
		return -ECANCELED;
	r = b->nonblock ? check_moves(b) : 0;
	if (!r)
		r = check_clears(b, &vm->freed);
	if (!r)
		r = amdgpu_vm_clear_freed(b->adev, vm, NULL);
	if (r)
		return r;
	for (i = 0; i < b->num_bo_vas; i++) {
		struct amdgpu_bo_va *bo_va = b->bo_vas[i];

		/* Also new mappings, which amdgpu_vm_handle_moved() skips. */
		if (!is_up_to_date(bo_va))
			r = amdgpu_vm_bo_update(b->adev, bo_va, false);
		if (!r)
			r = amdgpu_sdma_batch_wait_for(b, bo_va->last_pt_update);
		if (r)
			return r;
	}
	r = check_clears(b, &vm->individual.needs_update);
	if (!r)
		r = amdgpu_vm_handle_moved(b->adev, vm,
					   drm_exec_ticket(&b->exec));
	if (!r)
		r = amdgpu_vm_update_pdes(b->adev, vm, false);
	return r ? r : amdgpu_sdma_batch_wait_for(b, vm->last_update);
}

/* As command submission does: see amdgpu_cs_sync_rings(). */
static int sync_bo(struct amdgpu_sdma_batch *b, struct amdgpu_bo *bo)
{
	enum amdgpu_sync_mode mode;

	/* amdgpu_sync_resv() would have nothing to add. */
	if (dma_resv_test_signaled(bo->tbo.base.resv, DMA_RESV_USAGE_READ))
		return 0;
	mode = amdgpu_bo_explicit_sync(bo) ? AMDGPU_SYNC_EXPLICIT :
					     AMDGPU_SYNC_NE_OWNER;
	return amdgpu_sync_resv(b->adev, need_sync(b), bo->tbo.base.resv, mode,
				&b->fpriv->vm);
}

static bool has_own_resv(const struct amdgpu_sdma_batch *b,
			 const struct amdgpu_bo *bo)
{
	return bo->tbo.base.resv != b->fpriv->vm.root.bo->tbo.base.resv;
}

static int sync_bos(struct amdgpu_sdma_batch *b)
{
	int r = sync_bo(b, b->fpriv->vm.root.bo);
	u32 i;

	for (i = 0; !r && i < b->num_bo_vas; i++)
		if (has_own_resv(b, b->bo_vas[i]->base.bo))
			r = sync_bo(b, b->bo_vas[i]->base.bo);
	return r;
}

/*
 * The scheduler does not wait for dependencies on the job's own ring: the ring
 * must let them end, caches included, before it goes on.
 */
static int sync_ring(struct amdgpu_sdma_batch *b, struct dma_fence *fence)
{
	struct drm_sched_fence *s_fence = to_drm_sched_fence(fence);
	unsigned int i;
	int r;

	for (i = 0; s_fence && i < b->num_jobs; i++) {
		if (s_fence->sched != b->engines[i]->sched)
			continue;
		r = amdgpu_sync_fence(&b->jobs[i]->explicit_sync, fence,
				      GFP_KERNEL);
		if (r)
			return r;
	}
	return 0;
}

/**
 * amdgpu_sdma_batch_sync_jobs - let the jobs wait for all their dependencies
 * @b: call with jobs
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_sync_jobs(struct amdgpu_sdma_batch *b)
{
	struct dma_fence *fence;
	unsigned int i;
	int r;

	r = sync_bos(b);
	if (r || !b->syncs || hash_empty(b->sync.fences))
		return r;
	for (i = 0; i < b->num_jobs; i++) {
		r = amdgpu_sync_push_to_job(&b->sync, b->jobs[i]);
		if (r)
			return r;
	}
	while ((fence = amdgpu_sync_get_fence(&b->sync))) {
		r = sync_ring(b, fence);
		dma_fence_put(fence);
		if (r)
			return r;
	}
	return 0;
}

/**
 * amdgpu_sdma_batch_reserve_fences - make room for the fences of the jobs
 * @b: call
 *
 * Reserves again: moves and page table updates may have taken what was reserved
 * when the buffers were locked.
 *
 * Returns: 0 or -ENOMEM.
 */
int amdgpu_sdma_batch_reserve_fences(struct amdgpu_sdma_batch *b)
{
	struct drm_gem_object *obj;
	int r;

	drm_exec_for_each_locked_object(&b->exec, obj) {
		r = dma_resv_reserve_fences(obj->resv, b->num_jobs + 1);
		if (r)
			return r;
	}
	return amdgpu_sdma_svm_reserve_fences(b);
}

/**
 * amdgpu_sdma_batch_fence_bos - keep buffers busy until the jobs have ended
 * @b: call; the jobs are armed
 *
 * Buffers that share a reservation are fenced through one of them.
 */
void amdgpu_sdma_batch_fence_bos(struct amdgpu_sdma_batch *b)
{
	struct drm_gem_object *obj;
	unsigned int i;

	drm_exec_for_each_locked_object(&b->exec, obj) {
		ttm_bo_move_to_lru_tail_unlocked(&gem_to_amdgpu_bo(obj)->tbo);
		for (i = 0; i < b->num_jobs; i++)
			dma_resv_add_fence(obj->resv,
					   &b->jobs[i]->base.s_fence->finished,
					   DMA_RESV_USAGE_WRITE);
	}
	amdgpu_sdma_svm_fence(b);
	/*
	 * No user of the VM waits for this fence. But it keeps the chunk, which
	 * shares the VM's reservation, until the slots have been read.
	 */
	if (b->joined)
		dma_resv_add_fence(b->fpriv->vm.root.bo->tbo.base.resv,
				   b->joined, DMA_RESV_USAGE_BOOKKEEP);
}
