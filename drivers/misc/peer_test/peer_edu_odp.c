// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer memory DMA client test driver: mappings that last.
 *
 * A region is to the edu device what an on-demand memory region is to an RDMA
 * NIC, with the same code of the RDMA core below it: its pages are mapped for
 * DMA when they are first used, stay mapped over any number of calls, and are
 * unmapped by the MMU notifier. The table here stands for the one that a NIC
 * has in its memory: transfers use nothing else. All this needs an RDMA device,
 * but that device is never registered.
 */
#include <linux/hmm-dma.h>
#include <linux/hmm.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/pci-p2pdma.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <rdma/ib_umem_odp.h>
#include <rdma/ib_verbs.h>

#include "peer_edu.h"

#define PEER_EDU_ABSENT		DMA_MAPPING_ERROR

/**
 * struct peer_edu_ib - an RDMA device, as far as ODP umems need one
 * @ibdev:	the device
 */
struct peer_edu_ib {
	struct ib_device ibdev;
};

/**
 * struct peer_edu_region - what PEER_EDU_MAP makes
 * @file:	file that has it
 * @link:	entry in &peer_edu.regions
 * @ib:		its own device, since some regions take aliases and some do not
 * @umem_odp:	user range, pages and DMA mapping; its umem_mutex protects the
 *		following
 * @table:	for each page its DMA address, or PEER_EDU_ABSENT
 * @invalidated: how many pages the notifier has unmapped
 */
struct peer_edu_region {
	struct peer_edu_file *file;
	struct list_head link;
	struct peer_edu_ib *ib;
	struct ib_umem_odp *umem_odp;
	dma_addr_t *table;
	u64 invalidated;
};

static size_t peer_edu_index(struct ib_umem_odp *umem_odp, u64 addr)
{
	return (addr - ib_umem_start(umem_odp)) >> umem_odp->page_shift;
}

/* The device forgets first, then the pages are unmapped. */
static void peer_edu_forget(struct peer_edu_region *region, u64 start, u64 end)
{
	struct ib_umem_odp *umem_odp = region->umem_odp;
	size_t i, last;

	start = max_t(u64, start, ib_umem_start(umem_odp));
	end = min_t(u64, end, ib_umem_end(umem_odp));
	last = peer_edu_index(umem_odp, end - 1);
	for (i = peer_edu_index(umem_odp, start); i <= last; i++)
		region->table[i] = PEER_EDU_ABSENT;
	ib_umem_odp_unmap_dma_pages(umem_odp, start, end);
}

static bool peer_edu_region_invalidate(struct mmu_interval_notifier *notifier,
				       const struct mmu_notifier_range *range,
				       unsigned long seq)
{
	struct ib_umem_odp *umem_odp =
		container_of(notifier, struct ib_umem_odp, notifier);
	struct peer_edu_region *region;
	int before;

	if (!mmu_notifier_range_blockable(range))
		return false;

	mutex_lock(&umem_odp->umem_mutex);
	mmu_interval_set_seq(notifier, seq);
	region = umem_odp->private;
	if (region) {
		before = umem_odp->npages;
		peer_edu_forget(region, range->start, range->end);
		region->invalidated += before - umem_odp->npages;
	}
	mutex_unlock(&umem_odp->umem_mutex);
	return true;
}

/* Called for the owner of device private memory, with the umem_mutex held. */
static void peer_edu_zap(struct ib_umem_odp *umem_odp)
{
	peer_edu_forget(umem_odp->private, ib_umem_start(umem_odp),
			ib_umem_end(umem_odp));
}

static const struct mmu_interval_notifier_ops peer_edu_region_ops = {
	.invalidate = peer_edu_region_invalidate,
};

/*
 * Fill the table from the list. A NIC would take the pages as they are; here a
 * page that is smaller than what is mapped of it gets noticed.
 */
static int peer_edu_populate(struct peer_edu_region *region, size_t first,
			     size_t nr)
{
	struct ib_umem_odp *umem_odp = region->umem_odp;
	struct device *dev = umem_odp->umem.ibdev->dma_device;
	struct pci_p2pdma_map_state state = {};
	size_t i;

	for (i = first; i < first + nr; i++) {
		unsigned long pfn = umem_odp->map.pfn_list[i];
		dma_addr_t addr;

		if (!(pfn & HMM_PFN_VALID))
			continue;
		if (hmm_pfn_to_map_order(pfn) + PAGE_SHIFT <
		    umem_odp->page_shift)
			return -EPROTO;
		addr = hmm_dma_map_pfn(dev, &umem_odp->map, i, &state);
		if (dma_mapping_error(dev, addr))
			return -EIO;
		region->table[i] = addr;
		if (!(pfn & HMM_PFN_DMA_MAPPED))
			umem_odp->npages++;
	}
	return 0;
}

/* If this returns 0, the umem_mutex is held. */
static int peer_edu_fault(struct peer_edu_region *region,
			  struct peer_edu_use *arg)
{
	struct ib_umem_odp *umem_odp = region->umem_odp;
	u64 addr = umem_odp->umem.address + arg->offset;
	u64 access = arg->flags & PEER_EDU_WRITE ? HMM_PFN_WRITE : 0;
	int np, err;

	arg->faults++;
	np = ib_umem_odp_map_dma_and_lock(umem_odp, addr, arg->len, access,
					  !(arg->flags & PEER_EDU_SNAPSHOT));
	if (np < 0)
		return np;
	err = peer_edu_populate(region, peer_edu_index(umem_odp, addr), np);
	if (err)
		mutex_unlock(&umem_odp->umem_mutex);
	return err;
}

static bool peer_edu_present(struct peer_edu_region *region,
			     const struct peer_edu_use *arg)
{
	struct ib_umem_odp *umem_odp = region->umem_odp;
	u64 addr = umem_odp->umem.address + arg->offset;
	size_t last = peer_edu_index(umem_odp, addr + arg->len - 1);
	size_t i;

	for (i = peer_edu_index(umem_odp, addr); i <= last; i++) {
		if (region->table[i] == PEER_EDU_ABSENT)
			return false;
		if ((arg->flags & PEER_EDU_WRITE) &&
		    !(umem_odp->map.pfn_list[i] & HMM_PFN_WRITE))
			return false;
	}
	return true;
}

/* Report how the device has mapped the first two pages in the range. */
static void peer_edu_report(struct peer_edu_region *region,
			    struct peer_edu_use *arg)
{
	struct ib_umem_odp *umem_odp = region->umem_odp;
	u64 addr = umem_odp->umem.address + arg->offset;
	size_t first = peer_edu_index(umem_odp, addr);
	size_t last = peer_edu_index(umem_odp, addr + arg->len - 1);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(arg->route) && first + i <= last; i++) {
		if (region->table[first + i] == PEER_EDU_ABSENT)
			continue;
		arg->dma_addr[i] = region->table[first + i];
		arg->route[i] =
			peer_edu_route(umem_odp->map.pfn_list[first + i]);
	}
	arg->mapped = umem_odp->npages;
	arg->invalidated = region->invalidated;
}

static int peer_edu_copy_region(struct peer_edu_region *region,
				const struct peer_edu_use *arg)
{
	struct ib_umem_odp *umem_odp = region->umem_odp;
	u64 addr = umem_odp->umem.address + arg->offset;
	u64 size = BIT(umem_odp->page_shift);
	u32 done = 0, part;
	int err;

	for (; done < arg->len; done += part, addr += part) {
		u64 in_page = addr & (size - 1);

		part = min(arg->len - done, size - in_page);
		err = peer_edu_run(region->file->edu,
				   region->table[peer_edu_index(umem_odp, addr)] +
				   in_page, done, part,
				   arg->flags & PEER_EDU_WRITE);
		if (err)
			return err;
	}
	return 0;
}

/* Locks the umem_mutex: while it is held, invalidations wait. */
static int peer_edu_lock_region(struct peer_edu_region *region,
				struct peer_edu_use *arg)
{
	struct ib_umem_odp *umem_odp = region->umem_odp;

	if (!(arg->flags & PEER_EDU_PREFETCH)) {
		mutex_lock(&umem_odp->umem_mutex);
		if (peer_edu_present(region, arg))
			return 0;
		mutex_unlock(&umem_odp->umem_mutex);
	}
	return peer_edu_fault(region, arg);
}

static bool peer_edu_bad_use(const struct peer_edu_region *region,
			     const struct peer_edu_use *arg)
{
	const u32 all = PEER_EDU_WRITE | PEER_EDU_PREFETCH | PEER_EDU_SNAPSHOT;
	bool prefetch = arg->flags & PEER_EDU_PREFETCH;

	return (arg->flags & ~all) || arg->pad || !arg->len ||
	       ((arg->offset | arg->len) & 7) ||
	       (!prefetch && ((arg->flags & PEER_EDU_SNAPSHOT) ||
			      arg->len > PEER_EDU_BUF_SIZE)) ||
	       arg->offset + arg->len < arg->offset ||
	       arg->offset + arg->len > region->umem_odp->umem.length;
}

int peer_edu_use_region(struct peer_edu_file *file, struct peer_edu_use *arg)
{
	struct peer_edu_region *region = file->region;
	int err;

	if (!region)
		return -ENOENT;
	if (peer_edu_bad_use(region, arg))
		return -EINVAL;
	arg->faults = 0;
	memset(arg->route, 0, sizeof(arg->route));
	memset(arg->dma_addr, 0, sizeof(arg->dma_addr));

	err = peer_edu_lock_region(region, arg);
	if (err)
		return err;
	if (!(arg->flags & PEER_EDU_PREFETCH))
		err = peer_edu_copy_region(region, arg);
	peer_edu_report(region, arg);
	mutex_unlock(&region->umem_odp->umem_mutex);
	return err;
}

static int peer_edu_region_init(struct peer_edu_region *region,
				struct peer_edu *edu,
				const struct peer_edu_map *arg)
{
	int access = IB_ACCESS_ON_DEMAND | IB_ACCESS_LOCAL_WRITE;
	size_t i, nr;

	region->ib = ib_alloc_device(peer_edu_ib, ibdev);
	if (!region->ib)
		return -ENOMEM;
	region->ib->ibdev.dma_device = &edu->pdev->dev;
	if (!(arg->flags & PEER_EDU_NO_ALIAS))
		region->ib->ibdev.attrs.kernel_cap_flags = IBK_ODP_ALIAS;
	if (arg->flags & PEER_EDU_HUGE)
		access |= IB_ACCESS_HUGETLB;
	region->umem_odp = ib_umem_odp_get(&region->ib->ibdev, arg->addr,
					   arg->len, access,
					   &peer_edu_region_ops);
	if (IS_ERR(region->umem_odp))
		return PTR_ERR(region->umem_odp);

	nr = ib_umem_odp_num_pages(region->umem_odp);
	region->table = kvmalloc_objs(*region->table, nr);
	if (!region->table)
		return -ENOMEM;
	for (i = 0; i < nr; i++)
		region->table[i] = PEER_EDU_ABSENT;
	/* The list of the umem is empty before this. */
	mutex_lock(&region->umem_odp->umem_mutex);
	region->umem_odp->private = region;
	region->umem_odp->zap = peer_edu_zap;
	mutex_unlock(&region->umem_odp->umem_mutex);
	return 0;
}

/* The engine is idle: it runs under &peer_edu.lock, which is held here. */
static void peer_edu_region_free(struct peer_edu_region *region)
{
	if (!IS_ERR_OR_NULL(region->umem_odp))
		ib_umem_odp_release(region->umem_odp);
	if (region->ib)
		ib_dealloc_device(&region->ib->ibdev);
	kvfree(region->table);
	kfree(region);
}

int peer_edu_map_region(struct peer_edu_file *file,
			const struct peer_edu_map *arg)
{
	struct peer_edu_region *region;
	int err;

	if ((arg->flags & ~(PEER_EDU_NO_ALIAS | PEER_EDU_HUGE)) || arg->pad ||
	    !arg->len || arg->len > PEER_MEM_MAX_LEN ||
	    arg->addr + arg->len < arg->addr || (arg->addr & 7))
		return -EINVAL;
	if (file->region)
		return -EBUSY;

	region = kzalloc_obj(*region);
	if (!region)
		return -ENOMEM;
	region->file = file;
	err = peer_edu_region_init(region, file->edu, arg);
	if (err) {
		peer_edu_region_free(region);
		return err;
	}
	list_add(&region->link, &file->edu->regions);
	file->region = region;
	return 0;
}

void peer_edu_unmap_region(struct peer_edu_file *file)
{
	struct peer_edu_region *region = file->region;

	if (!region)
		return;
	file->region = NULL;
	list_del(&region->link);
	peer_edu_region_free(region);
}

void peer_edu_unmap_all(struct peer_edu *edu)
{
	struct peer_edu_region *region, *next;

	list_for_each_entry_safe(region, next, &edu->regions, link)
		peer_edu_unmap_region(region->file);
}
