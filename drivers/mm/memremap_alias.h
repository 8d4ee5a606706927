/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMREMAP_ALIAS_H
#define _MM_MEMREMAP_ALIAS_H

#include <linux/align.h>
#include <linux/cleanup.h>
#include <linux/find.h>
#include <linux/hmm.h>
#include <linux/memremap-alias.h>
#include <linux/memremap.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/pfn.h>
#include <linux/range.h>
#include <linux/rcupdate.h>

/**
 * enum pgmap_alias_verdict - may a caller use the alias of a page?
 * @PGMAP_ALIAS_OK: yes
 * @PGMAP_ALIAS_UNKNOWN: unknown until pci_p2pdma_map_type() is called
 * @PGMAP_ALIAS_DECLINED: no: it takes no aliases, or none any more. This
 *	verdict and those below are counted.
 * @PGMAP_ALIAS_UNREACHABLE: no: for this verdict and those below see struct
 *	dev_pagemap_alias_stats
 * @PGMAP_ALIAS_INVISIBLE: no
 * @PGMAP_ALIAS_NO_CPU: no
 * @PGMAP_ALIAS_REVOKED: no
 * @PGMAP_ALIAS_MAP_FAILED: no, as it turned out after the walk
 * @PGMAP_ALIAS_NR_VERDICTS: their number
 */
enum pgmap_alias_verdict {
	PGMAP_ALIAS_OK,
	PGMAP_ALIAS_UNKNOWN,
	PGMAP_ALIAS_DECLINED,
	PGMAP_ALIAS_UNREACHABLE,
	PGMAP_ALIAS_INVISIBLE,
	PGMAP_ALIAS_NO_CPU,
	PGMAP_ALIAS_REVOKED,
	PGMAP_ALIAS_MAP_FAILED,
	PGMAP_ALIAS_NR_VERDICTS,
};

/**
 * struct pgmap_alias - the alias of one pagemap, and its statistics
 * @lock: serializes publish and revoke
 * @live: &@copy while an alias is published, else NULL
 * @copy: the values published last
 * @pages: see dev_pagemap_publish_alias_of(), published along with @copy
 * @revoked: the grace period after which no reader of @copy is left
 * @name: the device that showed the memory first
 * @link: entry in pgmap_aliases
 * @mapped: see struct dev_pagemap_alias_stats
 * @fallback: likewise, by the verdict that led to it
 * @revokes: likewise
 */
struct pgmap_alias {
	struct mutex lock;	/* see above */
	struct dev_pagemap_alias __rcu *live;
	struct dev_pagemap_alias copy;
	const unsigned long *pages;
	unsigned long revoked;
	const char *name;
	struct list_head link;
	atomic64_t mapped;
	atomic64_t fallback[PGMAP_ALIAS_NR_VERDICTS];
	atomic64_t revokes;
};

/*
 * pgmap->alias is set once, by the first publish, and readers take no lock: the
 * address dependency orders what they read through it.
 */
static inline struct pgmap_alias *pgmap_alias(const struct dev_pagemap *pgmap)
{
	return READ_ONCE(pgmap->alias);
}

/*
 * Can the memory at @range have @alias? @bar is the range of the alias'
 * provider, NULL if it has none.
 */
static inline bool pgmap_alias_valid(const struct range *range,
				     const struct range *bar,
				     const struct dev_pagemap_alias *alias)
{
	u64 end;

	if (!bar && !alias->kaddr)
		return false;
	if (!PAGE_ALIGNED(alias->start) || !PAGE_ALIGNED(alias->size) ||
	    alias->size > range_len(range) ||
	    check_add_overflow((u64)alias->start, alias->size, &end))
		return false;
	return !bar || (alias->start >= bar->start && end <= bar->end + 1);
}

/*
 * Are all @len bytes from the start of page @pfn visible? If so, *@offset is
 * the offset of the page from the start of the alias.
 */
static inline bool pgmap_alias_shows(const struct range *range,
				     const struct dev_pagemap_alias *alias,
				     unsigned long pfn, u64 len, u64 *offset)
{
	/* A page below the range wraps to an offset no alias is long enough for. */
	*offset = dev_pagemap_alias_offset(range, pfn);
	return len <= alias->size && *offset <= alias->size - len;
}

/*
 * May peers use all the @nr pages from @pfn on? The caller has found an alias
 * that shows them. A peer that has mapped a page does not ask again: the owner
 * ends that access before it takes a page away.
 */
static inline bool pgmap_alias_gives(const struct dev_pagemap *pgmap,
				     unsigned long pfn, unsigned long nr)
{
	const unsigned long *pages;
	unsigned long first;

	/*
	 * Pairs with rcu_assign_pointer() in pgmap_alias_set_live(): a reader
	 * that found the alias sees the bits that were published along with it,
	 * and which of them had been cleared before.
	 */
	smp_rmb();
	pages = READ_ONCE(pgmap_alias(pgmap)->pages);
	if (!pages)
		return true;
	first = PHYS_PFN(dev_pagemap_alias_offset(&pgmap->range, pfn));
	return find_next_zero_bit(pages, first + nr, first) == first + nr;
}

/*
 * What the walk stores for a page that may not be used, if no fault was asked
 * for: @kept is what the entry carries from input to output, @new would
 * describe the page. Revoking an alias leaves the DMA mappings in place until
 * the driver evicts the pages: an entry that is mapped has to stay valid, or
 * the coming invalidation would not find the mapping.
 */
static inline unsigned long pgmap_alias_skip(unsigned long kept,
					     unsigned long new)
{
	return kept & HMM_PFN_DMA_MAPPED ? kept | new : kept;
}

/*
 * Copy the published alias. The caller keeps @pgmap alive, see the top of
 * memremap_alias.c. False if none is published.
 */
static inline bool pgmap_alias_read(const struct dev_pagemap *pgmap,
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

/*
 * Copy the alias by which the caller has mapped a page. It still holds the lock
 * that the notifier takes. A revoke does not end that mapping: the eviction
 * that follows does, and waits for the lock. No other values are published
 * before that, so @copy is what the page was mapped by.
 */
static inline bool pgmap_alias_read_mapped(const struct dev_pagemap *pgmap,
					   struct dev_pagemap_alias *alias)
{
	struct pgmap_alias *pa = pgmap_alias(pgmap);

	if (!pa)
		return false;

	*alias = pa->copy;
	return true;
}

#ifdef CONFIG_DEVICE_PRIVATE
bool pgmap_pfn_has_alias(unsigned long pfn);
void pgmap_alias_mapped(const struct dev_pagemap *pgmap, unsigned long pfn,
			unsigned long nr);
void pgmap_alias_fallback(const struct dev_pagemap *pgmap, unsigned long pfn,
			  unsigned long nr, enum pgmap_alias_verdict reason);
void pgmap_alias_free(struct dev_pagemap *pgmap);
#else
static inline bool pgmap_pfn_has_alias(unsigned long pfn)
{
	return false;
}

static inline void pgmap_alias_mapped(const struct dev_pagemap *pgmap,
				      unsigned long pfn, unsigned long nr)
{
}

static inline void pgmap_alias_fallback(const struct dev_pagemap *pgmap,
					unsigned long pfn, unsigned long nr,
					enum pgmap_alias_verdict reason)
{
}

static inline void pgmap_alias_free(struct dev_pagemap *pgmap)
{
}
#endif /* CONFIG_DEVICE_PRIVATE */

#endif /* _MM_MEMREMAP_ALIAS_H */
