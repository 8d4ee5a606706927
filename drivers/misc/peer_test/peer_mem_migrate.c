// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer memory test driver: the device's pages, and how they move.
 *
 * Page i of the pagemap stands for page i of the BAR. A page needs no other
 * state, so neither a split nor a merge has anything to update except the
 * counters.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/hmm.h>
#include <linux/io.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/migrate.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "peer_mem.h"

#define PEER_MEM_EVICT_POLL_MS	2

static struct peer_mem *pgmap_to_peer_mem(struct dev_pagemap *pgmap)
{
	return container_of(pgmap, struct peer_mem, pgmap);
}

static void __iomem *peer_mem_addr(struct peer_mem *pm, unsigned long pfn)
{
	return pm->bar + ((pfn - peer_mem_first_pfn(pm)) << PAGE_SHIFT);
}

static bool peer_mem_fail(struct peer_mem *pm, enum peer_mem_failure kind)
{
	return atomic_dec_if_positive(&pm->inject[kind]) >= 0;
}

/* Pages in the device */

static struct page *peer_mem_alloc(struct peer_mem *pm, unsigned int order)
{
	unsigned long nr = 1UL << order, first;
	struct page *page;

	if (peer_mem_fail(pm, PEER_MEM_FAIL_DEV))
		return NULL;
	if (order && peer_mem_fail(pm, PEER_MEM_FAIL_DEV_HUGE))
		return NULL;

	spin_lock(&pm->alloc_lock);
	first = bitmap_find_next_zero_area(pm->used, peer_mem_nr_pages(pm), 0,
					   nr, nr - 1);
	if (first >= peer_mem_nr_pages(pm)) {
		spin_unlock(&pm->alloc_lock);
		return NULL;
	}
	bitmap_set(pm->used, first, nr);
	pm->nr_used += nr;
	spin_unlock(&pm->alloc_lock);

	/*
	 * A free page may still look like the tail of a large folio that was
	 * here before: no page_folio() until it has been initialised.
	 */
	page = pfn_to_page(peer_mem_first_pfn(pm) + first);
	zone_device_page_init(page, &pm->pgmap, order);
	if (order) {
		folio_set_large_rmappable(page_folio(page));
		atomic_inc(&pm->nr_huge);
	}
	return page;
}

/*
 * The last reference is gone. The folio's share of the pagemap's reference
 * count is dropped after this returns, so unbinding waits for it.
 */
static void peer_mem_folio_free(struct folio *folio)
{
	struct peer_mem *pm = pgmap_to_peer_mem(folio->pgmap);
	unsigned long nr = folio_nr_pages(folio);
	unsigned long first = folio_pfn(folio) - peer_mem_first_pfn(pm);

	if (folio_test_large(folio))
		atomic_dec(&pm->nr_huge);
	spin_lock(&pm->alloc_lock);
	bitmap_clear(pm->used, first, nr);
	pm->nr_used -= nr;
	spin_unlock(&pm->alloc_lock);
}

/* Called for each new folio of a split, and at the end with NULL. */
static void peer_mem_folio_split(struct folio *folio, struct folio *new)
{
	if (!new) {
		atomic_dec(&pgmap_to_peer_mem(folio->pgmap)->nr_huge);
		return;
	}
	new->pgmap = folio->pgmap;
	new->page.mapping = folio->page.mapping;
}

static unsigned long mpfn_nr(unsigned long mpfn)
{
	return mpfn & MIGRATE_PFN_COMPOUND ? HPAGE_PMD_NR : 1;
}

/* How many pages a call of migrate_vma_pages() or the like has moved. */
static unsigned long peer_mem_moved(const unsigned long *src,
				    const unsigned long *dst, unsigned long nr)
{
	unsigned long i, moved = 0;

	for (i = 0; i < nr; i++)
		if ((src[i] & MIGRATE_PFN_MIGRATE) && dst[i])
			moved += mpfn_nr(dst[i]);
	return moved;
}

/* To the device */

/* @from is NULL for memory that was never touched: it reads as zeroes. */
static void peer_mem_fill(struct peer_mem *pm, struct page *to,
			  struct page *from)
{
	void __iomem *io = peer_mem_addr(pm, page_to_pfn(to));
	void *data;

	if (!from) {
		memset_io(io, 0, PAGE_SIZE);
		return;
	}
	data = kmap_local_page(from);
	memcpy_toio(io, data, PAGE_SIZE);
	kunmap_local(data);
}

static void peer_mem_put_new(unsigned long *dst, unsigned long nr)
{
	unsigned long i;

	for (i = 0; i < nr; i++) {
		struct page *page = migrate_pfn_to_page(dst[i]);

		unlock_page(page);
		put_page(page);
		dst[i] = 0;
	}
}

/*
 * Allocate small pages for @nr entries of @dst, all or none: the core inserts
 * every one of the small pages that take the place of a huge one.
 */
static bool peer_mem_alloc_small(struct peer_mem *pm, unsigned long *dst,
				 unsigned long nr)
{
	unsigned long i;

	for (i = 0; i < nr; i++) {
		struct page *page = peer_mem_alloc(pm, 0);

		if (!page) {
			peer_mem_put_new(dst, i);
			return false;
		}
		dst[i] = migrate_pfn(page_to_pfn(page));
	}
	return true;
}

static bool peer_mem_alloc_huge(struct peer_mem *pm, unsigned long *dst)
{
	struct page *page = peer_mem_alloc(pm, HPAGE_PMD_ORDER);

	if (!page)
		return false;
	*dst = migrate_pfn(page_to_pfn(page)) | MIGRATE_PFN_COMPOUND;
	return true;
}

/* Copy one entry of @src, huge or not, to where @dst says. */
static void peer_mem_fill_entry(struct peer_mem *pm, const unsigned long *src,
				const unsigned long *dst, unsigned long nr)
{
	struct page *from = migrate_pfn_to_page(*src);
	struct page *to = migrate_pfn_to_page(*dst);
	bool huge = *dst & MIGRATE_PFN_COMPOUND;
	unsigned long i;

	for (i = 0; i < nr; i++) {
		if (!huge)
			to = migrate_pfn_to_page(dst[i]);
		peer_mem_fill(pm, huge ? to + i : to, from ? from + i : NULL);
	}
}

static void peer_mem_copy_in(struct peer_mem *pm, struct migrate_vma *args)
{
	unsigned long i, nr;

	for (i = 0; i < args->npages; i += nr) {
		const unsigned long *src = args->src + i;
		unsigned long *dst = args->dst + i;
		struct page *from = migrate_pfn_to_page(*src);

		nr = 1;
		if (!(*src & MIGRATE_PFN_MIGRATE))
			continue;
		nr = mpfn_nr(*src);
		if (from && is_zone_device_page(from))
			continue;
		if (!(nr > 1 && peer_mem_alloc_huge(pm, dst)) &&
		    !peer_mem_alloc_small(pm, dst, nr))
			continue;
		peer_mem_fill_entry(pm, src, dst, nr);
	}
	/*
	 * The BAR is mapped write-combining. The pages must not be found before
	 * the data is in the device.
	 */
	wmb();
}

/* To system memory */

static struct folio *peer_mem_alloc_sys(struct peer_mem *pm,
					struct migrate_vma *args,
					unsigned long i, unsigned int order)
{
	gfp_t gfp = order ? GFP_TRANSHUGE : GFP_HIGHUSER_MOVABLE;

	if (order && peer_mem_fail(pm, PEER_MEM_FAIL_SYS_HUGE))
		return NULL;
	/* no VMA: an eviction, which must not fail in the end */
	if (!args->vma)
		return folio_alloc(order ? gfp : gfp | __GFP_NOFAIL, order);
	if (peer_mem_fail(pm, PEER_MEM_FAIL_SYS))
		return NULL;
	return vma_alloc_folio(gfp, order, args->vma,
			       args->start + i * PAGE_SIZE);
}

static bool peer_mem_drain_one(struct peer_mem *pm, struct migrate_vma *args,
			       unsigned long i, struct page *from,
			       unsigned int order)
{
	struct folio *folio = peer_mem_alloc_sys(pm, args, i, order);
	unsigned long j;

	if (!folio)
		return false;
	folio_lock(folio);
	args->dst[i] = migrate_pfn(folio_pfn(folio));
	if (order)
		args->dst[i] |= MIGRATE_PFN_COMPOUND;
	for (j = 0; j < 1UL << order; j++) {
		void *data = kmap_local_folio(folio, j * PAGE_SIZE);

		memcpy_fromio(data, peer_mem_addr(pm, page_to_pfn(from) + j),
			      PAGE_SIZE);
		kunmap_local(data);
	}
	return true;
}

/*
 * Copy a huge page to small ones, for lack of a huge one. If it is mapped once
 * and has no other users, the core splits it when it takes the small ones.
 * Pages for which there is no small one either stay in the device.
 */
static void peer_mem_drain_small(struct peer_mem *pm, struct migrate_vma *args,
				 unsigned long i, struct page *from)
{
	unsigned long j;

	for (j = 0; j < HPAGE_PMD_NR; j++)
		if (!peer_mem_drain_one(pm, args, i + j, from + j, 0))
			break;
}

static void peer_mem_copy_out(struct peer_mem *pm, struct migrate_vma *args,
			      bool may_split)
{
	unsigned long i, nr;

	for (i = 0; i < args->npages; i += nr) {
		struct page *from = migrate_pfn_to_page(args->src[i]);

		nr = 1;
		if (!from || !(args->src[i] & MIGRATE_PFN_MIGRATE))
			continue;
		nr = mpfn_nr(args->src[i]);
		if (peer_mem_drain_one(pm, args, i, from,
				       nr > 1 ? HPAGE_PMD_ORDER : 0))
			continue;
		if (nr > 1 && may_split)
			peer_mem_drain_small(pm, args, i, from);
	}
}

/* migrate_vma_*() for a range of one VMA; the caller holds the mmap_lock. */
static int peer_mem_migrate_vma(struct peer_mem *pm, struct migrate_vma *args,
				bool to_dev, u64 *moved)
{
	unsigned long nr;

	if (migrate_vma_setup(args))
		return -EOPNOTSUPP;
	if (args->cpages) {
		if (to_dev)
			peer_mem_copy_in(pm, args);
		else
			peer_mem_copy_out(pm, args, true);
	}
	migrate_vma_pages(args);
	nr = peer_mem_moved(args->src, args->dst, args->npages);
	migrate_vma_finalize(args);

	atomic64_add(nr, to_dev ? &pm->moved_in : &pm->moved_out);
	*moved += nr;
	return 0;
}

/* Block by block, so that a huge page is in one block. */
static int peer_mem_migrate_blocks(struct peer_mem *pm,
				   struct migrate_vma *args,
				   const struct peer_mem_migrate *arg,
				   bool to_dev, u64 *moved)
{
	unsigned long addr, next, end = arg->addr + arg->len;
	int err;

	for (addr = arg->addr; addr < end; addr = next) {
		args->vma = vma_lookup(current->mm, addr);
		if (!args->vma)
			return -ENOENT;
		next = min3(end, args->vma->vm_end,
			    ALIGN(addr + 1, HPAGE_PMD_SIZE));
		args->start = addr;
		args->end = next;
		err = peer_mem_migrate_vma(pm, args, to_dev, moved);
		if (err)
			return err;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/**
 * peer_mem_migrate() - migrate a range of the caller's memory
 * @pm:		device, locked for reading
 * @arg:	checked argument of the ioctl; writes arg->moved
 * @to_dev:	to the device, or back
 *
 * Returns: 0, -ENOENT, -EOPNOTSUPP, -ENOMEM, -EINTR.
 */
int peer_mem_migrate(struct peer_mem *pm, struct peer_mem_migrate *arg,
		     bool to_dev)
{
	struct migrate_vma args = {
		.pgmap_owner = pm,
		.flags = to_dev ? MIGRATE_VMA_SELECT_SYSTEM :
				  MIGRATE_VMA_SELECT_DEVICE_PRIVATE,
	};
	int err;

	lockdep_assert_held_read(&pm->lock);
	if (!(arg->flags & PEER_MEM_MIGRATE_SMALL))
		args.flags |= MIGRATE_VMA_SELECT_COMPOUND;
	args.src = kcalloc(2 * HPAGE_PMD_NR, sizeof(*args.src), GFP_KERNEL);
	if (!args.src)
		return -ENOMEM;
	args.dst = args.src + HPAGE_PMD_NR;

	arg->moved = 0;
	err = mmap_read_lock_killable(current->mm);
	if (!err) {
		err = peer_mem_migrate_blocks(pm, &args, arg, to_dev,
					      &arg->moved);
		mmap_read_unlock(current->mm);
	}
	kfree(args.src);
	return err;
}

static vm_fault_t peer_mem_fault_out(struct peer_mem *pm,
				     struct migrate_vma *args)
{
	bool none;

	if (migrate_vma_setup(args))
		return VM_FAULT_SIGBUS;
	/* lost a race against another migration: the CPU will look again */
	if (!args->cpages)
		return 0;

	/*
	 * A huge page needs a huge page: the core cannot split a folio to
	 * which the fault has a reference of its own.
	 */
	peer_mem_copy_out(pm, args, false);
	none = !args->dst[0];
	migrate_vma_pages(args);
	atomic64_add(peer_mem_moved(args->src, args->dst, args->npages),
		     &pm->moved_out);
	migrate_vma_finalize(args);
	return none ? VM_FAULT_OOM : 0;
}

/*
 * A CPU, or a peer that cannot use the alias, touched a page. The caller has
 * locked it and has a reference, which keeps the pagemap mapped, and so the
 * BAR and @pm, until this returns.
 */
static vm_fault_t peer_mem_migrate_to_ram(struct vm_fault *vmf)
{
	struct folio *folio = page_folio(vmf->page);
	struct peer_mem *pm = pgmap_to_peer_mem(folio->pgmap);
	/* a folio that is mapped by PTEs moves page by page, and is split */
	unsigned int order = vmf->pte ? 0 : folio_order(folio);
	struct migrate_vma args = {
		.vma = vmf->vma,
		.start = ALIGN_DOWN(vmf->address, PAGE_SIZE << order),
		.pgmap_owner = pm,
		.flags = MIGRATE_VMA_SELECT_DEVICE_PRIVATE,
		.fault_page = vmf->page,
	};
	unsigned long one[2] = {};
	vm_fault_t ret;

	atomic64_inc(&pm->faults);
	args.end = args.start + (PAGE_SIZE << order);
	args.src = one;
	if (order) {
		args.flags |= MIGRATE_VMA_SELECT_COMPOUND;
		args.src = kcalloc(2UL << order, sizeof(*args.src), GFP_KERNEL);
		if (!args.src)
			return VM_FAULT_OOM;
	}
	args.dst = args.src + (1UL << order);
	ret = peer_mem_fault_out(pm, &args);
	if (order)
		kfree(args.src);
	return ret;
}

const struct dev_pagemap_ops peer_mem_pgmap_ops = {
	.folio_free = peer_mem_folio_free,
	.migrate_to_ram = peer_mem_migrate_to_ram,
	.folio_split = peer_mem_folio_split,
};

/* Eviction */

/* List the pages of a block that are in use. */
static unsigned long peer_mem_list_used(struct peer_mem *pm,
					unsigned long first)
{
	unsigned long i, nr = 0;

	spin_lock(&pm->alloc_lock);
	i = first;
	for_each_set_bit_from(i, pm->used, first + HPAGE_PMD_NR)
		pm->evict_src[nr++] = peer_mem_first_pfn(pm) + i;
	spin_unlock(&pm->alloc_lock);
	return nr;
}

/*
 * Does not use migrate_device_range(), which also looks at free pages: they may
 * be left from a large folio, and it would skip pages by the size of that
 * folio. In this list, a large folio has its block for itself. Nothing is
 * allocated meanwhile; a page that is freed just does not migrate.
 */
static unsigned long peer_mem_evict_block(struct peer_mem *pm,
					  unsigned long first)
{
	struct migrate_vma args = {
		.src = pm->evict_src,
		.dst = pm->evict_dst,
		.npages = peer_mem_list_used(pm, first),
	};
	unsigned long moved;

	if (!args.npages)
		return 0;
	memset(args.dst, 0, args.npages * sizeof(*args.dst));
	migrate_device_pfns(args.src, args.npages);
	peer_mem_copy_out(pm, &args, false);
	migrate_device_pages(args.src, args.dst, args.npages);
	moved = peer_mem_moved(args.src, args.dst, args.npages);
	migrate_device_finalize(args.src, args.dst, args.npages);
	return moved;
}

static unsigned long peer_mem_evict_pass(struct peer_mem *pm)
{
	unsigned long first, moved = 0;

	for (first = 0; first < peer_mem_nr_pages(pm); first += HPAGE_PMD_NR) {
		moved += peer_mem_evict_block(pm, first);
		cond_resched();
	}
	return moved;
}

/**
 * peer_mem_evict() - move every page of the device to system memory
 * @pm:		device, locked for writing, so that no page comes in
 * @timeout:	how long to try, in jiffies
 * @moved:	out: how many pages were moved
 *
 * A page that is being faulted, split or unmapped at the moment is locked or
 * has an extra reference, and a huge page for which there is no huge page
 * cannot be split from here. They get another chance a little later.
 *
 * Returns: 0, or -EBUSY if pages are left.
 */
int peer_mem_evict(struct peer_mem *pm, unsigned long timeout, u64 *moved)
{
	unsigned long deadline = jiffies + timeout, nr;

	lockdep_assert_held_write(&pm->lock);
	*moved = 0;
	for (;;) {
		nr = peer_mem_evict_pass(pm);
		atomic64_add(nr, &pm->moved_out);
		atomic64_add(nr, &pm->evicted);
		*moved += nr;
		if (!READ_ONCE(pm->nr_used))
			return 0;
		if (timeout != MAX_SCHEDULE_TIMEOUT &&
		    (time_after(jiffies, deadline) ||
		     fatal_signal_pending(current)))
			return -EBUSY;
		msleep(PEER_MEM_EVICT_POLL_MS);
	}
}

/* Lookup */

static bool peer_mem_lookup_invalidate(struct mmu_interval_notifier *mni,
				       const struct mmu_notifier_range *range,
				       unsigned long seq)
{
	mmu_interval_set_seq(mni, seq);
	return true;
}

static const struct mmu_interval_notifier_ops peer_mem_lookup_ops = {
	.invalidate = peer_mem_lookup_invalidate,
};

/* The offset of a page, from its pfn alone: the page may be gone by now. */
static u64 peer_mem_offset(struct peer_mem *pm, unsigned long hmm_pfn)
{
	unsigned long pfn = hmm_pfn & ~HMM_PFN_FLAGS;
	u64 offset;

	if (!(hmm_pfn & HMM_PFN_VALID) || pfn < peer_mem_first_pfn(pm) ||
	    pfn >= peer_mem_first_pfn(pm) + peer_mem_nr_pages(pm))
		return PEER_MEM_NOWHERE;
	offset = PFN_PHYS(pfn - peer_mem_first_pfn(pm));
	if (hmm_pfn & HMM_PFN_WRITE)
		offset |= PEER_MEM_WRITABLE;
	if (hmm_pfn_to_map_order(hmm_pfn) >= HPAGE_PMD_ORDER)
		offset |= PEER_MEM_HUGE;
	return offset;
}

static int peer_mem_snapshot(struct hmm_range *range)
{
	struct mm_struct *mm = range->notifier->mm;
	unsigned long end = jiffies + msecs_to_jiffies(1000);
	int err;

	do {
		range->notifier_seq = mmu_interval_read_begin(range->notifier);
		mmap_read_lock(mm);
		err = hmm_range_fault(range);
		mmap_read_unlock(mm);
		if (!err && !mmu_interval_read_retry(range->notifier,
						     range->notifier_seq))
			return 0;
		if (err && err != -EBUSY)
			return err;
	} while (time_before(jiffies, end) && !fatal_signal_pending(current));
	return -EBUSY;
}

/**
 * peer_mem_lookup() - find where the pages of the caller's memory are
 * @pm:		device, locked for reading
 * @addr:	start of the range, page aligned
 * @nr:		number of pages
 * @offsets:	out: as described for PEER_MEM_LOOKUP
 *
 * Returns: 0, -EBUSY, or an error of the notifier or of hmm_range_fault().
 */
int peer_mem_lookup(struct peer_mem *pm, unsigned long addr,
		    unsigned long nr, u64 *offsets)
{
	struct mmu_interval_notifier notifier;
	struct hmm_range range = {
		.notifier = &notifier,
		.start = addr,
		.end = addr + nr * PAGE_SIZE,
		.dev_private_owner = pm,
	};
	unsigned long i;
	int err;

	range.hmm_pfns = kvcalloc(nr, sizeof(*range.hmm_pfns), GFP_KERNEL);
	if (!range.hmm_pfns)
		return -ENOMEM;
	err = mmu_interval_notifier_insert(&notifier, current->mm, addr,
					   nr * PAGE_SIZE,
					   &peer_mem_lookup_ops);
	if (err)
		goto out;
	err = peer_mem_snapshot(&range);
	mmu_interval_notifier_remove(&notifier);
	for (i = 0; !err && i < nr; i++)
		offsets[i] = peer_mem_offset(pm, range.hmm_pfns[i]);
out:
	kvfree(range.hmm_pfns);
	return err;
}
