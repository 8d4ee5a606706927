// SPDX-License-Identifier: GPL-2.0
/*
 * Users that map device private memory by its alias
 *
 * A peer loses its mapping of a page when the page is invalidated. The owner of
 * the memory causes that by evicting its pages, except when it is about to
 * reset its device: to unmap a page it would have to wait for MMU notifiers,
 * and these may wait for fences that only the reset is going to signal. So
 * there is a second way, which waits for nothing but the peers.
 */
#include <linux/cleanup.h>
#include <linux/export.h>
#include <linux/memremap-alias.h>
#include <linux/memremap.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>

/*
 * Held while users are called. Memory reclaim may wait for a reset that holds
 * it, so nothing is allocated under it.
 */
static DEFINE_MUTEX(alias_users_lock);
static LIST_HEAD(alias_users);

/**
 * dev_pagemap_alias_user_add() - be told to end all access
 * @user: initialized; not called before this begins, nor after
 *	dev_pagemap_alias_user_del() returned
 *
 * For each user that sets &struct hmm_range.dma_dev or
 * &struct hmm_range.alias_cpu, before its first walk.
 *
 * Context: May sleep. Not under a lock that @user->end_access() takes.
 */
void dev_pagemap_alias_user_add(struct dev_pagemap_alias_user *user)
{
	guard(mutex)(&alias_users_lock);
	list_add(&user->link, &alias_users);
}
EXPORT_SYMBOL_GPL(dev_pagemap_alias_user_add);

/**
 * dev_pagemap_alias_user_del() - the opposite of dev_pagemap_alias_user_add()
 * @user: from that call
 *
 * Context: as for dev_pagemap_alias_user_add()
 */
void dev_pagemap_alias_user_del(struct dev_pagemap_alias_user *user)
{
	guard(mutex)(&alias_users_lock);
	list_del(&user->link);
}
EXPORT_SYMBOL_GPL(dev_pagemap_alias_user_del);

/**
 * dev_pagemap_end_alias() - let no peer reach device private memory any more
 * @pgmap: pagemap, with or without a published alias
 *
 * Revokes the alias and has all users let go of what they have mapped. After
 * return no peer accesses the memory. The pages stay where they are: a process
 * or peer that wants one has it migrated, or waits for the owner.
 *
 * For an owner that is about to reset its device. If its memory is going to be
 * shut down for longer, evict the pages instead: see
 * dev_pagemap_revoke_alias().
 *
 * Context: May sleep. Waits neither for memory nor for fences.
 */
void dev_pagemap_end_alias(struct dev_pagemap *pgmap)
{
	struct dev_pagemap_alias_user *user;

	/* A user that maps a page from here on finds no alias. */
	dev_pagemap_revoke_alias(pgmap);

	guard(mutex)(&alias_users_lock);
	list_for_each_entry(user, &alias_users, link)
		user->end_access(user, pgmap);
}
EXPORT_SYMBOL_GPL(dev_pagemap_end_alias);

static int __init alias_user_init(void)
{
	/* Teach lockdep: what the holder waits for must not reclaim memory. */
	fs_reclaim_acquire(GFP_KERNEL);
	mutex_lock(&alias_users_lock);
	mutex_unlock(&alias_users_lock);
	fs_reclaim_release(GFP_KERNEL);
	return 0;
}
early_initcall(alias_user_init);
