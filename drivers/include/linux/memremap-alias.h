/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MEMREMAP_ALIAS_H
#define _LINUX_MEMREMAP_ALIAS_H

#include <linux/errno.h>
#include <linux/list.h>
#include <linux/pfn.h>
#include <linux/range.h>
#include <linux/types.h>

#include <asm/page.h>

struct dev_pagemap;
struct dev_pagemap_alias;

/**
 * dev_pagemap_alias_offset - where a page is in its pagemap, and in the alias
 * @range: of the pagemap
 * @pfn: of the device private page, as stored in an entry of a page table, a
 *	HMM range or migrate_vma. It is in the same number space as @range,
 *	whatever that space is.
 *
 * The users of an alias get the offset from this function, and so may its owner.
 * It is not derived from page_to_pfn(): device private pages may leave the
 * physical address space.
 *
 * Return: bytes from the start.
 */
static inline u64 dev_pagemap_alias_offset(const struct range *range,
					   unsigned long pfn)
{
	return PFN_PHYS(pfn) - range->start;
}

/**
 * struct dev_pagemap_alias_user - a user that accesses memory by its alias
 * @link: entry in the list of all users
 * @end_access: let go of all pages of @pgmap that are mapped by their alias.
 *	When it returns, the device has ended its accesses to them and begins no
 *	others until it has walked the page table again. A user that keeps no
 *	mapping after it has dropped the lock that its MMU notifier takes need
 *	only take that lock here, and drop it.
 *
 *	Runs when a device is about to be reset, in a thread that memory reclaim
 *	may wait for, and so may threads that hold fences. So it takes no locks
 *	except those that the MMU notifier of the user takes as well, allocates
 *	no memory, and waits for no device but its own.
 */
struct dev_pagemap_alias_user {
	struct list_head link;
	void (*end_access)(struct dev_pagemap_alias_user *user,
			   const struct dev_pagemap *pgmap);
};

#ifdef CONFIG_DEVICE_PRIVATE
void dev_pagemap_alias_user_add(struct dev_pagemap_alias_user *user);
void dev_pagemap_alias_user_del(struct dev_pagemap_alias_user *user);
void dev_pagemap_end_alias(struct dev_pagemap *pgmap);
bool dev_pagemap_any_alias(void);
int dev_pagemap_prepare_alias(struct dev_pagemap *pgmap,
			      const struct dev_pagemap_alias *alias);
int dev_pagemap_publish_alias_of(struct dev_pagemap *pgmap,
				 const struct dev_pagemap_alias *alias,
				 const unsigned long *pages);
#else
static inline void
dev_pagemap_alias_user_add(struct dev_pagemap_alias_user *user)
{
}

static inline void
dev_pagemap_alias_user_del(struct dev_pagemap_alias_user *user)
{
}

static inline void dev_pagemap_end_alias(struct dev_pagemap *pgmap)
{
}

static inline bool dev_pagemap_any_alias(void)
{
	return false;
}

static inline int
dev_pagemap_prepare_alias(struct dev_pagemap *pgmap,
			  const struct dev_pagemap_alias *alias)
{
	return -EOPNOTSUPP;
}

static inline int
dev_pagemap_publish_alias_of(struct dev_pagemap *pgmap,
			     const struct dev_pagemap_alias *alias,
			     const unsigned long *pages)
{
	return -EOPNOTSUPP;
}
#endif

#endif /* _LINUX_MEMREMAP_ALIAS_H */
