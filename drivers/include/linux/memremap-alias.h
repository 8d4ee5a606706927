/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_MEMREMAP_ALIAS_H
#define _LINUX_MEMREMAP_ALIAS_H

#include <linux/errno.h>
#include <linux/list.h>

struct dev_pagemap;
struct dev_pagemap_alias;

/**
 * struct dev_pagemap_alias_user - who keeps what it has mapped by an alias
 * @link: entry in the list of all users
 * @end_access: let go of all device private pages that are mapped by their
 *	alias, of any owner. When it returns the device has ended its accesses
 *	and begins no other one, until it has walked the page table again.
 *
 *	Runs when a device is about to be reset, in a thread that memory reclaim
 *	may wait for and that others wait for who hold fences: it takes no locks
 *	but those that the MMU notifier of the user takes as well, allocates no
 *	memory, and waits for no device but its own.
 */
struct dev_pagemap_alias_user {
	struct list_head link;
	void (*end_access)(struct dev_pagemap_alias_user *user);
};

#ifdef CONFIG_DEVICE_PRIVATE
void dev_pagemap_alias_user_add(struct dev_pagemap_alias_user *user);
void dev_pagemap_alias_user_del(struct dev_pagemap_alias_user *user);
void dev_pagemap_end_alias(struct dev_pagemap *pgmap);
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

static inline int
dev_pagemap_publish_alias_of(struct dev_pagemap *pgmap,
			     const struct dev_pagemap_alias *alias,
			     const unsigned long *pages)
{
	return -EINVAL;
}
#endif

#endif /* _LINUX_MEMREMAP_ALIAS_H */
