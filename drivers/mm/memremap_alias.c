// SPDX-License-Identifier: GPL-2.0
/*
 * DMA alias of device private memory
 *
 * Device private pages have a PFN that nothing can address. If a PCI BAR shows
 * the same memory, the driver publishes that BAR here, and other devices may
 * reach the pages without migrating them first.
 *
 * Lifetime. Three things have to stay in place for as long as they are used:
 *
 * - struct pgmap_alias: allocated before the first publish, freed by
 *   memunmap_pages() one grace period after the last page of the pagemap was
 *   freed. A user either holds off the freeing of a page, because its entry is
 *   in an array that the notifier has not invalidated and the user holds the
 *   lock that the notifier takes; or it found the page in a page table that it
 *   walks under rcu_read_lock().
 *
 * - the published values: they are rewritten only by a publish that follows a
 *   revoke, a grace period later. Readers copy them under rcu_read_lock(), or
 *   know that no publish can follow yet.
 *
 * - what they point to, the BAR and its CPU mapping: a user of a copy uses it
 *   under the lock that the notifier of its range takes. So after a revoke the
 *   driver evicts the pages, which invalidates all those ranges, and only then
 *   lets go of the BAR or its mapping. A revoke itself waits for no user.
 */
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/memremap-alias.h>
#include <linux/memremap.h>
#include <linux/mutex.h>
#include <linux/pci-p2pdma.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "memremap_alias.h"

#define CREATE_TRACE_POINTS
#include <trace/events/hmm.h>

/* All aliases that may have been published and whose pagemap still exists. */
static LIST_HEAD(pgmap_aliases);
static DEFINE_MUTEX(pgmap_aliases_lock);

/*
 * A driver revokes before it resets its device, and memory reclaim may wait for
 * that device. This is rare to happen in testing, teach lockdep about it:
 * nothing may be allocated under the lock.
 */
static void pgmap_alias_init_lock(struct pgmap_alias *pa)
{
	mutex_init(&pa->lock);
	if (IS_ENABLED(CONFIG_LOCKDEP)) {
		fs_reclaim_acquire(GFP_KERNEL);
		mutex_lock(&pa->lock);
		mutex_unlock(&pa->lock);
		fs_reclaim_release(GFP_KERNEL);
	}
}

/**
 * dev_pagemap_any_alias() - may a peer have written to private memory?
 *
 * Return: false if no pagemap that still exists can have had an alias
 */
bool dev_pagemap_any_alias(void)
{
	return !list_empty(&pgmap_aliases);
}
EXPORT_SYMBOL_GPL(dev_pagemap_any_alias);

/* Before the first publish. Another thread that does the same may be faster. */
static int pgmap_alias_attach(struct dev_pagemap *pgmap,
			      const struct p2pdma_provider *provider)
{
	struct pgmap_alias *pa __free(kfree) = kzalloc_obj(*pa);

	if (!pa)
		return -ENOMEM;
	pgmap_alias_init_lock(pa);
	pa->revoked = get_completed_synchronize_rcu();
	pa->name = provider ? dev_name(provider->owner) : "none";

	guard(mutex)(&pgmap_aliases_lock);

	if (pgmap->alias)
		return 0;
	list_add_tail(&pa->link, &pgmap_aliases);
	/*
	 * Pairs with READ_ONCE() in pgmap_alias(): a reader that finds the
	 * alias there sees it initialized, by the address dependency.
	 */
	smp_store_release(&pgmap->alias, no_free_ptr(pa));
	return 0;
}

static int pgmap_alias_set_live(struct pgmap_alias *pa,
				const struct dev_pagemap_alias *alias,
				const unsigned long *pages)
{
	lockdep_assert_held(&pa->lock);

	if (rcu_access_pointer(pa->live))
		return -EBUSY;

	/* Readers of the revoked alias may still be copying it. */
	cond_synchronize_rcu(pa->revoked);
	pa->copy = *alias;
	WRITE_ONCE(pa->pages, pages);
	rcu_assign_pointer(pa->live, &pa->copy);
	return 0;
}

static bool pgmap_alias_fits(const struct dev_pagemap *pgmap,
			     const struct dev_pagemap_alias *alias)
{
	struct range bar;

	if (!alias->provider)
		return pgmap_alias_valid(&pgmap->range, NULL, alias);
	return pci_p2pdma_provider_range(alias->provider, &bar) &&
	       pgmap_alias_valid(&pgmap->range, &bar, alias);
}

/**
 * dev_pagemap_prepare_alias() - allocate what a publish needs
 * @pgmap: as for dev_pagemap_publish_alias_of()
 * @alias: likewise
 *
 * For owners that publish under a lock which a reset takes: after this call,
 * publishing an alias of @pgmap allocates nothing. Peers get no access yet.
 *
 * Context: May sleep.
 * Return: 0, or -EINVAL or -ENOMEM as dev_pagemap_publish_alias_of() has it.
 */
int dev_pagemap_prepare_alias(struct dev_pagemap *pgmap,
			      const struct dev_pagemap_alias *alias)
{
	if (pgmap->type != MEMORY_DEVICE_PRIVATE || pgmap->nr_range != 1 ||
	    !pgmap_alias_fits(pgmap, alias))
		return -EINVAL;

	if (pgmap_alias(pgmap))
		return 0;
	return pgmap_alias_attach(pgmap, alias->provider);
}
EXPORT_SYMBOL_GPL(dev_pagemap_prepare_alias);

/**
 * dev_pagemap_publish_alias_of() - let peers reach some device private pages
 * @pgmap: pagemap of type MEMORY_DEVICE_PRIVATE with one range, after
 *	memremap_pages()
 * @alias: where the memory can be reached; copied
 * @pages: a bit for each page that @alias shows, in their order: set for those
 *	that peers may reach. It has to outlive the pagemap. NULL: all of them
 *
 * From here on hmm_range_fault() may report pages of @pgmap to callers that do
 * not own them, see &struct hmm_range.dma_dev and &struct hmm_range.alias_cpu.
 *
 * To publish other values, revoke the alias and evict the pages first. Only the
 * first call for a pagemap allocates memory, unless
 * dev_pagemap_prepare_alias() has done so.
 *
 * A driver may set bits of @pages at any time. It clears bits only while peers
 * have no access, see dev_pagemap_end_alias(): a reset may have lost the
 * content of pages that processes still have. These are then faulted as if no
 * alias was published.
 *
 * Context: May sleep.
 * Return: 0, -EINVAL for an alias the pagemap can't have or that its provider
 * does not show, -EBUSY if one is published already, -ENOMEM.
 */
int dev_pagemap_publish_alias_of(struct dev_pagemap *pgmap,
				 const struct dev_pagemap_alias *alias,
				 const unsigned long *pages)
{
	struct pgmap_alias *pa;
	int err;

	err = dev_pagemap_prepare_alias(pgmap, alias);
	if (err)
		return err;

	pa = pgmap_alias(pgmap);
	guard(mutex)(&pa->lock);
	return pgmap_alias_set_live(pa, alias, pages);
}
EXPORT_SYMBOL_GPL(dev_pagemap_publish_alias_of);

/**
 * dev_pagemap_publish_alias() - let peers reach device private memory
 * @pgmap: as for dev_pagemap_publish_alias_of()
 * @alias: likewise
 *
 * Publishes all of the pages that @alias shows.
 *
 * Context: likewise
 * Return: likewise
 */
int dev_pagemap_publish_alias(struct dev_pagemap *pgmap,
			      const struct dev_pagemap_alias *alias)
{
	return dev_pagemap_publish_alias_of(pgmap, alias, NULL);
}
EXPORT_SYMBOL_GPL(dev_pagemap_publish_alias);

/**
 * dev_pagemap_revoke_alias() - let no further peer reach the memory
 * @pgmap: pagemap, with or without a published alias
 *
 * After return no peer finds the alias any more. Peers that have access to a
 * page, or have just found the alias and are about to map a page by it, keep
 * the access until the page is invalidated: to end it, the driver evicts all
 * pages, with migrate_device_range() for instance. Then it may reset the
 * device, unmap &struct dev_pagemap_alias.kaddr, or publish another alias.
 *
 * memunmap_pages() revokes what is still published.
 *
 * Context: May sleep, but waits neither for readers nor for memory: it may be
 * called in the reset of a device that memory reclaim waits for.
 */
void dev_pagemap_revoke_alias(struct dev_pagemap *pgmap)
{
	struct pgmap_alias *pa = pgmap_alias(pgmap);

	if (!pa)
		return;

	guard(mutex)(&pa->lock);

	if (!rcu_access_pointer(pa->live))
		return;

	RCU_INIT_POINTER(pa->live, NULL);
	pa->revoked = get_state_synchronize_rcu();
	atomic64_inc(&pa->revokes);
	trace_dev_pagemap_revoke_alias(pa->name, pa->copy.start, pa->copy.size);
}
EXPORT_SYMBOL_GPL(dev_pagemap_revoke_alias);

/*
 * Called by memunmap_pages(), one grace period after all pages were freed.
 */
void pgmap_alias_free(struct dev_pagemap *pgmap)
{
	struct pgmap_alias *pa = pgmap->alias;

	if (!pa)
		return;

	scoped_guard(mutex, &pgmap_aliases_lock)
		list_del(&pa->link);

	pgmap->alias = NULL;
	kfree(pa);
}

/* Count @nr pages from @pfn that a peer got access to. */
void pgmap_alias_mapped(const struct dev_pagemap *pgmap, unsigned long pfn,
			unsigned long nr)
{
	struct pgmap_alias *pa = pgmap_alias(pgmap);

	if (!pa)
		return;
	atomic64_add(nr, &pa->mapped);
	trace_hmm_alias_map(pa->name, pfn, nr);
}

/*
 * Count @nr pages from @pfn that a peer could not get access to. Verdicts that
 * do not deny access are ignored.
 */
void pgmap_alias_fallback(const struct dev_pagemap *pgmap, unsigned long pfn,
			  unsigned long nr, enum pgmap_alias_verdict reason)
{
	struct pgmap_alias *pa = pgmap_alias(pgmap);

	if (!pa || reason < PGMAP_ALIAS_DECLINED)
		return;
	atomic64_add(nr, &pa->fallback[reason]);
	trace_hmm_alias_fallback(pa->name, pfn, nr, reason);
}

static void pgmap_alias_sum(struct pgmap_alias *pa,
			    struct dev_pagemap_alias_stats *stats)
{
	atomic64_t *fallback = pa->fallback;

	*stats = (struct dev_pagemap_alias_stats){
		.mapped = atomic64_read(&pa->mapped),
		.declined = atomic64_read(&fallback[PGMAP_ALIAS_DECLINED]),
		.fallback_unreachable =
			atomic64_read(&fallback[PGMAP_ALIAS_UNREACHABLE]),
		.fallback_invisible =
			atomic64_read(&fallback[PGMAP_ALIAS_INVISIBLE]),
		.fallback_no_cpu = atomic64_read(&fallback[PGMAP_ALIAS_NO_CPU]),
		.fallback_revoked =
			atomic64_read(&fallback[PGMAP_ALIAS_REVOKED]),
		.fallback_map_failed =
			atomic64_read(&fallback[PGMAP_ALIAS_MAP_FAILED]),
		.revokes = atomic64_read(&pa->revokes),
	};
}

/**
 * dev_pagemap_alias_stats() - read the statistics of a pagemap's alias
 * @pgmap: pagemap, between memremap_pages() and memunmap_pages()
 * @stats: filled in; all zero if no alias was ever published
 */
void dev_pagemap_alias_stats(const struct dev_pagemap *pgmap,
			     struct dev_pagemap_alias_stats *stats)
{
	struct pgmap_alias *pa = pgmap_alias(pgmap);

	if (pa)
		pgmap_alias_sum(pa, stats);
	else
		*stats = (struct dev_pagemap_alias_stats){};
}
EXPORT_SYMBOL_GPL(dev_pagemap_alias_stats);

#ifdef CONFIG_DEBUG_FS
static void pgmap_alias_show_one(struct seq_file *m, struct pgmap_alias *pa)
{
	struct dev_pagemap_alias_stats stats;

	guard(mutex)(&pa->lock);

	pgmap_alias_sum(pa, &stats);
	seq_printf(m, "%s published=%d start=0x%llx size=0x%llx cpu=%d ",
		   pa->name, !!rcu_access_pointer(pa->live),
		   (u64)pa->copy.start, pa->copy.size, !!pa->copy.kaddr);
	seq_printf(m, "mapped=%llu unreachable=%llu invisible=%llu ",
		   stats.mapped, stats.fallback_unreachable,
		   stats.fallback_invisible);
	seq_printf(m, "no_cpu=%llu revoked=%llu map_failed=%llu revokes=%llu ",
		   stats.fallback_no_cpu, stats.fallback_revoked,
		   stats.fallback_map_failed, stats.revokes);
	seq_printf(m, "declined=%llu\n", stats.declined);
}

static int pgmap_alias_show(struct seq_file *m, void *unused)
{
	struct pgmap_alias *pa;

	guard(mutex)(&pgmap_aliases_lock);
	list_for_each_entry(pa, &pgmap_aliases, link)
		pgmap_alias_show_one(m, pa);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(pgmap_alias);

static int __init pgmap_alias_debugfs_init(void)
{
	struct dentry *dir = debugfs_create_dir("hmm", NULL);

	debugfs_create_file("alias", 0444, dir, NULL, &pgmap_alias_fops);
	return 0;
}
late_initcall(pgmap_alias_debugfs_init);
#endif /* CONFIG_DEBUG_FS */
