// SPDX-License-Identifier: GPL-2.0
/*
 * DMA alias of device private memory
 *
 * Device private pages have a PFN that nothing can address. Where a PCI BAR
 * shows the same memory, the driver publishes that BAR here and other devices
 * may reach the pages without migrating them first.
 *
 * Lifetime. Three things have to stay in place for as long as someone looks:
 *
 * - struct pgmap_alias: allocated by the first publish, freed by
 *   memunmap_pages() after the last page of the pagemap was freed and one grace
 *   period later. A user either holds off the freeing of a page, because its
 *   entry is in an array that the notifier has not invalidated and it holds
 *   the lock that the notifier takes, or found the page in a page table that
 *   it walks under rcu_read_lock().
 *
 * - the published values: they are rewritten only by a publish that follows a
 *   revoke, and a revoke returns after a grace period. Readers copy them under
 *   rcu_read_lock().
 *
 * - what they point to, the BAR and its CPU mapping: whoever used a copy did so
 *   under the lock that the notifier of its range takes. So after a revoke the
 *   driver evicts the pages, which invalidates all those ranges, and only then
 *   lets go of the BAR or its mapping.
 */
#include <kunit/visibility.h>
#include <linux/cleanup.h>
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/mutex.h>
#include <linux/pci-p2pdma.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "memremap_alias.h"

#define CREATE_TRACE_POINTS
#include <trace/events/hmm.h>

/**
 * struct pgmap_alias - the alias of one pagemap, and what became of its pages
 * @live: &@copy while an alias is published, else NULL
 * @copy: the values published last
 * @name: the device that showed the memory first
 * @link: entry in pgmap_aliases
 * @mapped: see struct dev_pagemap_alias_stats
 * @fallback: likewise, by the verdict that led to it
 * @revokes: likewise
 */
struct pgmap_alias {
	struct dev_pagemap_alias __rcu *live;
	struct dev_pagemap_alias copy;
	const char *name;
	struct list_head link;
	atomic64_t mapped;
	atomic64_t fallback[PGMAP_ALIAS_NR_VERDICTS];
	atomic64_t revokes;
};

/* What show_hmm_alias_reason() has names for. */
static_assert(PGMAP_ALIAS_DECLINED == 2 && PGMAP_ALIAS_MAP_FAILED == 7);

/*
 * Serializes publish and revoke, and protects the list of what they made. A
 * driver revokes before it resets its device, and what waits for that device
 * may be the reclaim of memory: nothing is allocated under the lock.
 */
static DEFINE_MUTEX(pgmap_alias_lock);
static LIST_HEAD(pgmap_aliases);

/*
 * pgmap->alias is set once, by the first publish, and readers take no lock: the
 * address dependency orders what they read through it.
 */
static struct pgmap_alias *pgmap_alias(const struct dev_pagemap *pgmap)
{
	return READ_ONCE(pgmap->alias);
}

static struct pgmap_alias *
pgmap_alias_alloc(const struct p2pdma_provider *provider)
{
	struct pgmap_alias *pa = kzalloc_obj(*pa);

	if (pa)
		pa->name = provider ? dev_name(provider->owner) : "none";
	return pa;
}

/* The first publish: @pgmap takes @pa. */
static void pgmap_alias_attach(struct dev_pagemap *pgmap,
			       struct pgmap_alias *pa)
{
	lockdep_assert_held(&pgmap_alias_lock);

	list_add_tail(&pa->link, &pgmap_aliases);
	/* Pairs with pgmap_alias(): initialized before it can be found. */
	smp_store_release(&pgmap->alias, pa);
}

static int pgmap_alias_set_live(struct pgmap_alias *pa,
				const struct dev_pagemap_alias *alias)
{
	lockdep_assert_held(&pgmap_alias_lock);

	if (rcu_access_pointer(pa->live))
		return -EBUSY;

	/* No reader is left: the revoke before waited for them. */
	pa->copy = *alias;
	rcu_assign_pointer(pa->live, &pa->copy);
	return 0;
}

/**
 * dev_pagemap_publish_alias() - let peers reach device private memory
 * @pgmap: pagemap of type MEMORY_DEVICE_PRIVATE with one range, after
 *	memremap_pages()
 * @alias: where the memory can be reached; copied
 *
 * From here on hmm_range_fault() may report pages of @pgmap to callers that do
 * not own them, see &struct hmm_range.dma_dev and &struct hmm_range.alias_cpu.
 *
 * To publish other values, revoke the alias and evict the pages first.
 *
 * Context: May sleep.
 * Return: 0, -EINVAL for an alias the pagemap can't have, -EBUSY if one is
 * published already, -ENOMEM.
 */
int dev_pagemap_publish_alias(struct dev_pagemap *pgmap,
			      const struct dev_pagemap_alias *alias)
{
	struct pgmap_alias *pa __free(kfree) = NULL;

	if (pgmap->type != MEMORY_DEVICE_PRIVATE || pgmap->nr_range != 1 ||
	    !pgmap_alias_valid(&pgmap->range, alias))
		return -EINVAL;

	if (!pgmap_alias(pgmap)) {
		pa = pgmap_alias_alloc(alias->provider);
		if (!pa)
			return -ENOMEM;
	}

	guard(mutex)(&pgmap_alias_lock);

	if (!pgmap->alias)
		pgmap_alias_attach(pgmap, no_free_ptr(pa));
	return pgmap_alias_set_live(pgmap->alias, alias);
}
EXPORT_SYMBOL_GPL(dev_pagemap_publish_alias);

/**
 * dev_pagemap_revoke_alias() - let no further peer reach the memory
 * @pgmap: pagemap, with or without a published alias
 *
 * After return no peer gains access to a page. Those that have access keep it
 * until the page is invalidated: to end it the driver evicts all pages, by
 * migrate_device_range() for instance. Then it may reset the device, unmap
 * &struct dev_pagemap_alias.kaddr, or publish another alias.
 *
 * memunmap_pages() revokes what is still published.
 *
 * Context: May sleep. Not under a lock that a reader of the alias takes.
 */
void dev_pagemap_revoke_alias(struct dev_pagemap *pgmap)
{
	struct pgmap_alias *pa = pgmap_alias(pgmap);

	if (!pa)
		return;

	guard(mutex)(&pgmap_alias_lock);

	if (!rcu_access_pointer(pa->live))
		return;

	RCU_INIT_POINTER(pa->live, NULL);
	atomic64_inc(&pa->revokes);
	trace_dev_pagemap_revoke_alias(pa->name, pa->copy.start, pa->copy.size);
	/* Readers may still be copying; the next publish overwrites. */
	synchronize_rcu();
}
EXPORT_SYMBOL_GPL(dev_pagemap_revoke_alias);

/*
 * Called by memunmap_pages() when all pages are free, and a grace period later.
 */
void pgmap_alias_free(struct dev_pagemap *pgmap)
{
	struct pgmap_alias *pa = pgmap->alias;

	if (!pa)
		return;

	scoped_guard(mutex, &pgmap_alias_lock)
		list_del(&pa->link);

	pgmap->alias = NULL;
	kfree(pa);
}
EXPORT_SYMBOL_IF_KUNIT(pgmap_alias_free);

/*
 * Copy the published alias. The caller keeps @pgmap alive, see the top of this
 * file. False if none is published.
 */
bool pgmap_alias_read(const struct dev_pagemap *pgmap,
		      struct dev_pagemap_alias *alias)
{
	struct pgmap_alias *pa = pgmap_alias(pgmap);
	const struct dev_pagemap_alias *live;

	if (!pa)
		return false;

	guard(rcu)();
	live = rcu_dereference(pa->live);
	if (!live)
		return false;

	*alias = *live;
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(pgmap_alias_read);

/*
 * Copy the alias by which the caller has mapped a page, and still holds the
 * lock that the notifier takes. A revoke does not end that mapping: the
 * eviction that follows does, and waits for the lock. No other values are
 * published before, so @copy is what the page was mapped by.
 */
bool pgmap_alias_read_mapped(const struct dev_pagemap *pgmap,
			     struct dev_pagemap_alias *alias)
{
	struct pgmap_alias *pa = pgmap_alias(pgmap);

	if (!pa)
		return false;

	*alias = pa->copy;
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(pgmap_alias_read_mapped);

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
EXPORT_SYMBOL_IF_KUNIT(pgmap_alias_mapped);

/*
 * Count @nr pages from @pfn that a peer could not get access to. Verdicts that
 * are no reason for that are ignored.
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
EXPORT_SYMBOL_IF_KUNIT(pgmap_alias_fallback);

static void pgmap_alias_sum(struct pgmap_alias *pa,
			    struct dev_pagemap_alias_stats *stats)
{
	atomic64_t *fallback = pa->fallback;

	*stats = (struct dev_pagemap_alias_stats){
		.mapped = atomic64_read(&pa->mapped),
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
	seq_printf(m, "declined=%llu\n",
		   (u64)atomic64_read(&pa->fallback[PGMAP_ALIAS_DECLINED]));
}

static int pgmap_alias_show(struct seq_file *m, void *unused)
{
	struct pgmap_alias *pa;

	guard(mutex)(&pgmap_alias_lock);
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
