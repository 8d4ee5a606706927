/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peer memory test driver: what its two files share.
 */
#ifndef _PEER_MEM_H
#define _PEER_MEM_H

#include <linux/atomic.h>
#include <linux/huge_mm.h>
#include <linux/kref.h>
#include <linux/memremap.h>
#include <linux/miscdevice.h>
#include <linux/rwsem.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "peer_test_uapi.h"

struct pci_dev;

/**
 * struct peer_mem - one device
 * @ref:	held by the bound driver until devres has unmapped the pages, and
 *		by each open file
 * @lock:	held for reading by every ioctl that uses the device or adds
 *		pages to it; for writing to empty it and to unbind it. Not taken
 *		by migrate_to_ram() and folio_free(): there, a reference to a
 *		page keeps the mapping, and with it the device, alive. Taken
 *		before mmap_lock
 * @gone:	the driver is unbound; under @lock
 * @pdev:	not valid once @gone is set
 * @misc:	the character device
 * @name:	its name
 * @id:		its number
 * @bar:	CPU mapping of the BAR
 * @size:	bytes in the BAR and in the pagemap
 * @pgmap:	one device private page for each page of the BAR
 * @visible:	bytes of the published alias, 0 without one; under @lock
 * @stale:	an alias was revoked, and not all pages have been evicted since;
 *		under @lock
 * @evict_src:	a block's worth of pfns for eviction; under @lock for writing,
 *		as is @evict_dst
 * @evict_dst:	pfns of the pages that take their place
 * @alloc_lock:	protects @used and @nr_used. Innermost
 * @used:	a bit for each page that is handed out
 * @nr_used:	number of these bits that are set
 * @nr_huge:	number of 2 MiB folios
 * @inject:	failures still to be injected, by enum peer_mem_failure
 * @moved_in:	see struct peer_mem_info, for this and the following ones
 * @moved_out:	.
 * @faults:	.
 * @evicted:	.
 */
struct peer_mem {
	struct kref ref;
	struct rw_semaphore lock;
	bool gone;
	struct pci_dev *pdev;
	struct miscdevice misc;
	char name[16];
	int id;
	void __iomem *bar;
	u64 size;
	struct dev_pagemap pgmap;
	u64 visible;
	bool stale;
	unsigned long *evict_src;
	unsigned long *evict_dst;
	spinlock_t alloc_lock;	/* see above */
	unsigned long *used;
	unsigned long nr_used;
	atomic_t nr_huge;
	atomic_t inject[PEER_MEM_FAIL_SYS_HUGE + 1];
	atomic64_t moved_in;
	atomic64_t moved_out;
	atomic64_t faults;
	atomic64_t evicted;
};

static inline unsigned long peer_mem_first_pfn(const struct peer_mem *pm)
{
	return PHYS_PFN(pm->pgmap.range.start);
}

static inline unsigned long peer_mem_nr_pages(const struct peer_mem *pm)
{
	return pm->size >> PAGE_SHIFT;
}

extern const struct dev_pagemap_ops peer_mem_pgmap_ops;

int peer_mem_migrate(struct peer_mem *pm, struct peer_mem_migrate *arg,
		     bool to_dev);
int peer_mem_evict(struct peer_mem *pm, unsigned long timeout, u64 *moved);
int peer_mem_lookup(struct peer_mem *pm, unsigned long addr,
		    unsigned long nr, u64 *offsets);

#endif /* _PEER_MEM_H */
