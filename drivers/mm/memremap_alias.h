/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _MM_MEMREMAP_ALIAS_H
#define _MM_MEMREMAP_ALIAS_H

#include <linux/align.h>
#include <linux/memremap.h>
#include <linux/overflow.h>
#include <linux/pfn.h>
#include <linux/range.h>

/**
 * enum pgmap_alias_verdict - may a caller use the alias of a page?
 * @PGMAP_ALIAS_OK: yes
 * @PGMAP_ALIAS_UNKNOWN: pci_p2pdma_map_type() has to tell first
 * @PGMAP_ALIAS_DECLINED: it does not take aliases, or no longer. This and what
 *	follows is counted.
 * @PGMAP_ALIAS_UNREACHABLE: no: for this and what follows see struct
 *	dev_pagemap_alias_stats
 * @PGMAP_ALIAS_INVISIBLE: no
 * @PGMAP_ALIAS_NO_CPU: no
 * @PGMAP_ALIAS_REVOKED: no
 * @PGMAP_ALIAS_MAP_FAILED: it turned out not, after the walk
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

/* Is @alias one that the memory at @range can have? */
static inline bool pgmap_alias_valid(const struct range *range,
				     const struct dev_pagemap_alias *alias)
{
	u64 end;

	return (alias->provider || alias->kaddr) &&
	       PAGE_ALIGNED(alias->start) && PAGE_ALIGNED(alias->size) &&
	       alias->size <= range_len(range) &&
	       !check_add_overflow((u64)alias->start, alias->size, &end);
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
	*offset = PFN_PHYS(pfn) - range->start;
	return len <= alias->size && *offset <= alias->size - len;
}

#ifdef CONFIG_DEVICE_PRIVATE
bool pgmap_alias_read(const struct dev_pagemap *pgmap,
		      struct dev_pagemap_alias *alias);
bool pgmap_alias_read_mapped(const struct dev_pagemap *pgmap,
			     struct dev_pagemap_alias *alias);
void pgmap_alias_mapped(const struct dev_pagemap *pgmap, unsigned long pfn,
			unsigned long nr);
void pgmap_alias_fallback(const struct dev_pagemap *pgmap, unsigned long pfn,
			  unsigned long nr, enum pgmap_alias_verdict reason);
void pgmap_alias_free(struct dev_pagemap *pgmap);
#else
static inline bool pgmap_alias_read(const struct dev_pagemap *pgmap,
				    struct dev_pagemap_alias *alias)
{
	return false;
}

static inline bool pgmap_alias_read_mapped(const struct dev_pagemap *pgmap,
					   struct dev_pagemap_alias *alias)
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

#if IS_ENABLED(CONFIG_KUNIT)
void hmm_device_private_skip(unsigned long hmm_pfns[], unsigned long npages,
			     unsigned long pfn, unsigned long cpu_flags);
#endif

#endif /* _MM_MEMREMAP_ALIAS_H */
