// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Copyright (c) 2014 Mellanox Technologies. All rights reserved.
 *
 * On-demand paging: find the pages of a range by walking the page table
 */
#include <linux/export.h>
#include <linux/hmm-dma.h>
#include <linux/hmm.h>
#include <linux/jiffies.h>
#include <linux/mmu_notifier.h>
#include <linux/pci-p2pdma.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include <rdma/ib_umem_odp.h>

/*
 * How much one walk of the page table covers, unless a page of the umem is
 * larger. The entries that it finds fit in a page.
 */
#define ODP_WALK_SIZE	((unsigned long)SZ_2M)

/* Up to so many entries, as most faults have, are walked without allocation. */
#define ODP_FEW_PFNS	8

/**
 * struct odp_walk - one call of ib_umem_odp_map_dma_and_lock()
 * @umem_odp: the umem
 * @start: first address, aligned to the pages of the umem
 * @end: address after the last one, likewise
 * @walked: all parts up to here have been walked, except the current one
 * @want: flags that all entries must have in the end; 0 if nothing is faulted
 * @unwanted: flags that no entry may have in the end
 * @found_private: a walk has found device private pages
 * @failed: number of parts in which one of them could not be mapped
 * @range: the part that is walked now. The walk runs without the umem_mutex: by
 *	the time it stores an entry, the page may be gone, and other threads may
 *	have faulted it anew and be using their entry. So it stores to an array
 *	of its own, not to the list of the umem.
 * @few_pfns: that array, if it is large enough
 */
struct odp_walk {
	struct ib_umem_odp *umem_odp;
	unsigned long start;
	unsigned long end;
	unsigned long walked;
	unsigned long want;
	unsigned long unwanted;
	bool found_private;
	unsigned int failed;
	struct hmm_range range;
	unsigned long few_pfns[ODP_FEW_PFNS];
};

static unsigned long odp_walk_step(const struct odp_walk *walk)
{
	return max(ODP_WALK_SIZE, BIT(walk->umem_odp->page_shift));
}

/* Make the part that begins at @start the current one. */
static void odp_walk_from(struct odp_walk *walk, unsigned long start)
{
	walk->range.start = start;
	walk->range.end = min(walk->end, start + odp_walk_step(walk));
}

/*
 * Begin with the first part, and make room for the entries of one part. The
 * array starts zeroed, because anything in it passes for flags of entries.
 */
static int odp_walk_begin(struct odp_walk *walk)
{
	size_t nr;

	if (likely(walk->end - walk->start <= ODP_FEW_PFNS * PAGE_SIZE)) {
		walk->range.start = walk->start;
		walk->range.end = walk->end;
		walk->range.hmm_pfns = walk->few_pfns;
		return 0;
	}
	odp_walk_from(walk, walk->start);
	nr = (walk->range.end - walk->range.start) >> PAGE_SHIFT;
	walk->range.hmm_pfns = kvcalloc(nr, sizeof(*walk->range.hmm_pfns),
					GFP_KERNEL | __GFP_NOWARN);
	return walk->range.hmm_pfns ? 0 : -ENOMEM;
}

static void odp_walk_end(struct odp_walk *walk)
{
	if (walk->range.hmm_pfns != walk->few_pfns)
		kvfree(walk->range.hmm_pfns);
}

/*
 * Tell the walk how the device can use device private pages of other drivers,
 * if it can. A device with DMA has to be able to forget them at any time.
 */
static void odp_accept_alias(struct odp_walk *walk)
{
	struct ib_device *dev = walk->umem_odp->umem.ibdev;

	if (!(dev->attrs.kernel_cap_flags & IBK_ODP_ALIAS) ||
	    (walk->unwanted & HMM_PFN_DEVICE_PRIVATE))
		return;
	if (ib_uses_virt_dma(dev))
		walk->range.alias_cpu = true;
	else if (!WARN_ON_ONCE(!walk->umem_odp->zap))
		walk->range.dma_dev = dev->dma_device;
}

/*
 * If a device private page could not be mapped, its alias may just have been
 * revoked, and the next walk will see that. If this happens twice, there is
 * another reason, which the walk does not know: then the pages are
 * migrated.
 */
static void odp_alias_failed(struct odp_walk *walk)
{
	if (++walk->failed < 2)
		return;
	walk->range.alias_cpu = false;
	walk->range.dma_dev = NULL;
}

/*
 * Map a device private page by its alias, here rather than in the driver, so
 * that only one place has to know what to do when it fails. A page that is
 * mapped can be used until it is invalidated: the driver will not fail.
 */
static bool odp_map_alias(struct ib_umem_odp *umem_odp, size_t idx)
{
	struct device *dma_dev = umem_odp->umem.ibdev->dma_device;
	struct pci_p2pdma_map_state state = {};
	dma_addr_t dma_addr;

	if (ib_uses_virt_dma(umem_odp->umem.ibdev))
		return hmm_pfn_alias_live(umem_odp->map.pfn_list[idx]);

	dma_addr = hmm_dma_map_pfn(dma_dev, &umem_odp->map, idx, &state);
	if (dma_mapping_error(dma_dev, dma_addr))
		return false;
	umem_odp->npages++;
	return true;
}

/* Store a device private page and have it mapped, or else do without it. */
static bool odp_store_alias(struct odp_walk *walk, size_t idx,
			    unsigned long pfn)
{
	struct ib_umem_odp *umem_odp = walk->umem_odp;
	unsigned long *entry = &umem_odp->map.pfn_list[idx];
	u64 addr;

	if (*entry & HMM_PFN_VALID) {
		*entry |= pfn & HMM_PFN_WRITE;
	} else {
		*entry = pfn;
		WRITE_ONCE(umem_odp->nr_alias, umem_odp->nr_alias + 1);
	}
	if ((*entry & HMM_PFN_DMA_MAPPED) || odp_map_alias(umem_odp, idx))
		return true;

	/* An entry that was valid before may have been written through. */
	addr = ib_umem_start(umem_odp) + ((u64)idx << umem_odp->page_shift);
	ib_umem_odp_unmap_dma_pages(umem_odp, addr,
				    addr + BIT(umem_odp->page_shift));
	return false;
}

/* Is the mapping at an address large enough for a page of the umem? */
static bool odp_order_fits(const struct ib_umem_odp *umem_odp,
			   unsigned long pfn)
{
	unsigned int order = hmm_pfn_to_map_order(pfn);

	if (order + PAGE_SHIFT >= umem_odp->page_shift)
		return true;
	ibdev_dbg(umem_odp->umem.ibdev,
		  "%s: un-expected hmm_order %u, page_shift %u\n",
		  __func__, order, umem_odp->page_shift);
	return false;
}

/* The index of an address in the list, which has an entry for each page. */
static size_t odp_index(struct ib_umem_odp *umem_odp, unsigned long addr)
{
	return (addr - ib_umem_start(umem_odp)) >> umem_odp->page_shift;
}

/*
 * HMM counts the pages that a device with virtual DMA gets access to. Tell it
 * which of them the device already has. This runs without the umem_mutex: it is
 * only for the count.
 */
static noinline void odp_walk_load(struct odp_walk *walk)
{
	struct ib_umem_odp *umem_odp = walk->umem_odp;
	unsigned int shift = umem_odp->page_shift - PAGE_SHIFT;
	size_t first = odp_index(umem_odp, walk->range.start);
	size_t nr = odp_index(umem_odp, walk->range.end) - first;
	const unsigned long held = HMM_PFN_VALID | HMM_PFN_DEVICE_PRIVATE;
	size_t i;

	for (i = 0; i < nr; i++)
		walk->range.hmm_pfns[i << shift] =
			READ_ONCE(umem_odp->map.pfn_list[first + i]) & held;
}

static void odp_store_page(unsigned long *entry, unsigned long pfn)
{
	if (unlikely(*entry & HMM_PFN_VALID))
		*entry |= pfn & HMM_PFN_WRITE;
	else
		*entry = pfn;
}

/*
 * Store pages up to the first that is device private, into a list that has none
 * so far. Usually there is nothing new. Returns how many were dealt with.
 */
static size_t odp_store_pages(unsigned long *list, const unsigned long *found,
			      size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		unsigned long pfn = found[i];

		if (pfn == list[i] ||
		    !(pfn & (HMM_PFN_VALID | HMM_PFN_DEVICE_PRIVATE)))
			continue;
		if (pfn & HMM_PFN_DEVICE_PRIVATE)
			break;
		odp_store_page(&list[i], pfn);
	}
	return i;
}

/* Store a page, which may fail. Returns 1 if its alias could not be used. */
static noinline int odp_store_special(struct odp_walk *walk, size_t idx,
				      unsigned long pfn)
{
	struct ib_umem_odp *umem_odp = walk->umem_odp;
	unsigned long *entry = &umem_odp->map.pfn_list[idx];

	if (pfn & HMM_PFN_DEVICE_PRIVATE)
		walk->found_private = true;
	if (!(pfn & HMM_PFN_VALID))
		return 0;
	if (!odp_order_fits(umem_odp, pfn) && !(*entry & HMM_PFN_DMA_MAPPED))
		return -EINVAL;
	if (pfn & HMM_PFN_DEVICE_PRIVATE)
		return !odp_store_alias(walk, idx, pfn);
	odp_store_page(entry, pfn);
	return 0;
}

/*
 * Take over what a walk found, with the umem_mutex held and nothing invalidated
 * since the walk began. So a valid entry is right, whichever thread stored it:
 * the walk can only add that the page may be written. Other threads may have
 * faulted pages that this walk still found missing. A page that is mapped was
 * large enough when it was mapped, and has not been invalidated since.
 */
static int odp_walk_store(struct odp_walk *walk)
{
	struct ib_umem_odp *umem_odp = walk->umem_odp;
	unsigned int shift = umem_odp->page_shift - PAGE_SHIFT;
	size_t first = odp_index(umem_odp, walk->range.start);
	size_t nr = odp_index(umem_odp, walk->range.end) - first;
	const unsigned long *found = walk->range.hmm_pfns;
	bool failed = false;
	size_t i = 0;
	int ret;

	lockdep_assert_held(&umem_odp->umem_mutex);

	if (!shift && !umem_odp->nr_alias)
		i = odp_store_pages(umem_odp->map.pfn_list + first, found, nr);
	for (; unlikely(i < nr); i++) {
		ret = odp_store_special(walk, first + i, found[i << shift]);
		if (ret < 0)
			return ret;
		failed |= ret;
	}
	if (unlikely(failed))
		odp_alias_failed(walk);
	return 0;
}

/* May a fault have waited for the reset of a device that has an alias? */
static bool odp_waits_for_reset(const struct odp_walk *walk)
{
	struct ib_device *dev = walk->umem_odp->umem.ibdev;

	return (dev->attrs.kernel_cap_flags & IBK_ODP_ALIAS) &&
	       dev_pagemap_any_alias();
}

/* Walk the current part, and return with the umem_mutex held. */
static int odp_walk_part(struct odp_walk *walk)
{
	unsigned long timeout = msecs_to_jiffies(HMM_RANGE_DEFAULT_TIMEOUT);
	struct ib_umem_odp *umem_odp = walk->umem_odp;
	struct hmm_range *range = &walk->range;
	bool again = false;
	int ret;

	for (;;) {
		/* Tell what the device has; clear what another part left. */
		if (READ_ONCE(umem_odp->nr_alias) || walk->found_private)
			odp_walk_load(walk);
		ret = hmm_range_fault_unlocked_timeout(range, timeout);
		if (unlikely(ret)) {
			if (ret != -EBUSY || again ||
			    !odp_waits_for_reset(walk))
				return ret;
			/* Such a fault uses up all the time. */
			again = true;
			continue;
		}
		mutex_lock(&umem_odp->umem_mutex);
		if (!mmu_interval_read_retry(range->notifier,
					     range->notifier_seq))
			break;
		mutex_unlock(&umem_odp->umem_mutex);
	}

	ret = odp_walk_store(walk);
	if (ret)
		mutex_unlock(&umem_odp->umem_mutex);
	return ret;
}

/* How many entries in a row, from @list on, @lack what is wanted, or do not? */
static size_t odp_walk_run(const struct odp_walk *walk,
			   const unsigned long *list, size_t nr, bool lack)
{
	unsigned long mask = walk->want | walk->unwanted;
	unsigned long want = walk->want;
	size_t i;

	for (i = 0; i < nr; i++)
		if (((list[i] & mask) != want) != lack)
			break;
	return i;
}

/*
 * Pages may have been invalidated while later ones were walked, or could not be
 * mapped. Make the first such pages the next part, if there are any.
 */
static bool odp_walk_missing(struct odp_walk *walk)
{
	struct ib_umem_odp *umem_odp = walk->umem_odp;
	unsigned int shift = umem_odp->page_shift;
	unsigned long *list = umem_odp->map.pfn_list +
			      odp_index(umem_odp, walk->start);
	size_t nr = (walk->end - walk->start) >> shift;
	size_t skip = odp_walk_run(walk, list, nr, false);

	lockdep_assert_held(&umem_odp->umem_mutex);

	if (skip == nr)
		return false;
	nr = min(nr - skip, odp_walk_step(walk) >> shift);
	nr = odp_walk_run(walk, list + skip, nr, true);
	walk->range.start = walk->start + (skip << shift);
	walk->range.end = walk->range.start + (nr << shift);
	return true;
}

/* Was the current part the whole range, and has all of it been stored? */
static bool odp_walk_was_all(const struct odp_walk *walk)
{
	return walk->range.start == walk->start &&
	       walk->range.end == walk->end && !walk->failed;
}

/* Is there another part to walk? The first time, parts follow each other. */
static noinline bool odp_walk_next(struct odp_walk *walk)
{
	walk->walked = max(walk->walked, walk->range.end);
	if (walk->walked < walk->end) {
		odp_walk_from(walk, walk->walked);
		return true;
	}
	return walk->want && odp_walk_missing(walk);
}

/*
 * Walk the range part by part, so that the allocation does not grow with it,
 * and return with the umem_mutex held. If memory is short or contended, pages
 * may be lost as fast as they come: from the second pass on, time is limited.
 */
static int odp_walk_and_lock(struct odp_walk *walk)
{
	unsigned long limit = 0;
	int ret;

	for (;;) {
		ret = odp_walk_part(walk);
		if (ret)
			return ret;
		if (odp_walk_was_all(walk) || !odp_walk_next(walk))
			return 0;
		mutex_unlock(&walk->umem_odp->umem_mutex);

		if (walk->walked < walk->end)
			continue;
		if (!limit)
			limit = jiffies +
				msecs_to_jiffies(HMM_RANGE_DEFAULT_TIMEOUT);
		else if (time_after(jiffies, limit))
			return -EBUSY;
	}
}

static int odp_map_and_lock(struct ib_umem_odp *umem_odp, u64 user_virt,
			    u64 bcnt, unsigned long want,
			    unsigned long unwanted)
{
	struct mm_struct *owning_mm = umem_odp->umem.owning_mm;
	size_t page_size = BIT(umem_odp->page_shift);
	struct odp_walk walk = {
		.umem_odp = umem_odp,
		.start = ALIGN_DOWN(user_virt, page_size),
		.end = ALIGN(user_virt + bcnt, page_size),
		.want = want,
		.unwanted = unwanted,
		.range = {
			.notifier = &umem_odp->notifier,
			/* A fault is asked for by the flags it results in. */
			.default_flags = want,
		},
	};
	int ret;

	if (user_virt < ib_umem_start(umem_odp) ||
	    user_virt + bcnt > ib_umem_end(umem_odp))
		return -EFAULT;

	/*
	 * The process may be gone, this means somehow the mm is existing beyond
	 * the lifetime of the originating process.. Presumably mmget_not_zero
	 * will fail in this case.
	 */
	if (!pid_has_task(umem_odp->tgid, PIDTYPE_PID) ||
	    !mmget_not_zero(owning_mm))
		return -EINVAL;

	odp_accept_alias(&walk);
	ret = odp_walk_begin(&walk);
	/* upon success lock should stay on hold for the callee */
	if (!ret)
		ret = odp_walk_and_lock(&walk);
	if (!ret) {
		umem_odp->found_private = walk.found_private;
		ret = (walk.end - walk.start) >> umem_odp->page_shift;
	}
	odp_walk_end(&walk);
	mmput_async(owning_mm);
	return ret;
}

/**
 * ib_umem_odp_map_dma_and_lock - DMA map userspace memory in an ODP MR and lock it.
 *
 * Maps the range passed in the argument to DMA addresses.
 * Upon success the ODP MR will be locked to let caller complete its device
 * page table update.
 *
 * If the device has IBK_ODP_ALIAS, device private pages are already mapped on
 * return, and hmm_dma_map_pfn() only tells where. Those that can't be mapped
 * are migrated, or left out if nothing is to be faulted.
 *
 * Returns the number of pages mapped in success, negative error code
 * for failure.
 * @umem_odp: the umem to map and pin
 * @user_virt: the address from which we need to map.
 * @bcnt: the minimal number of bytes to pin and map. The mapping might be
 *        bigger due to alignment, and may also be smaller in case of an error
 *        pinning or mapping a page. The actual pages mapped is returned in
 *        the return value.
 * @access_mask: bit mask of the requested access permissions for the given
 *               range.
 * @fault: is faulting required for the given range
 */
int ib_umem_odp_map_dma_and_lock(struct ib_umem_odp *umem_odp, u64 user_virt,
				 u64 bcnt, u64 access_mask, bool fault)
			__acquires(&umem_odp->umem_mutex)
{
	unsigned long want = 0;

	if (fault)
		want = HMM_PFN_VALID | (access_mask & HMM_PFN_WRITE);
	return odp_map_and_lock(umem_odp, user_virt, bcnt, want, 0);
}
EXPORT_SYMBOL(ib_umem_odp_map_dma_and_lock);

/**
 * ib_umem_odp_map_system_and_lock - map a range without device private memory
 *
 * As ib_umem_odp_map_dma_and_lock() with faults, for operations that can't use
 * the alias of device private pages: such pages in the range are migrated.
 *
 * @umem_odp: the umem
 * @user_virt: the address from which we need to map
 * @bcnt: number of bytes
 * @access_mask: as for ib_umem_odp_map_dma_and_lock()
 */
int ib_umem_odp_map_system_and_lock(struct ib_umem_odp *umem_odp, u64 user_virt,
				    u64 bcnt, u64 access_mask)
			__acquires(&umem_odp->umem_mutex)
{
	return odp_map_and_lock(umem_odp, user_virt, bcnt,
				HMM_PFN_VALID | (access_mask & HMM_PFN_WRITE),
				HMM_PFN_DEVICE_PRIVATE);
}
EXPORT_SYMBOL(ib_umem_odp_map_system_and_lock);
