/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peer memory DMA client test driver: what its two files share.
 */
#ifndef _PEER_EDU_H
#define _PEER_EDU_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/memremap-alias.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/types.h>

#include "peer_test_uapi.h"

struct pci_dev;
struct peer_edu_region;

/**
 * struct peer_edu - one device
 * @ref:	held by the bound driver and by each open file
 * @lock:	one transfer at a time; protects @gone, @dead and @regions
 * @map_lock:	held while PEER_EDU_XFER has pages mapped for the device; the
 *		notifiers of all these transfers take it, so nothing may be
 *		allocated under it
 * @gone:	the driver is unbound
 * @dead:	the engine got stuck
 * @regions:	regions that PEER_EDU_MAP has made, of all files
 * @alias_user:	told when PEER_EDU_XFER must end its access
 * @pdev:	not valid once @gone is set
 * @misc:	the character device
 * @name:	its name
 * @id:		its number
 * @regs:	BAR 0
 */
struct peer_edu {
	struct kref ref;
	struct mutex lock;	/* see above */
	struct mutex map_lock;	/* see above */
	bool gone;
	bool dead;
	struct list_head regions;
	struct dev_pagemap_alias_user alias_user;
	struct pci_dev *pdev;
	struct miscdevice misc;
	char name[16];
	int id;
	void __iomem *regs;
};

/**
 * struct peer_edu_file - one open file
 * @edu:	device, with a reference held
 * @region:	region that PEER_EDU_MAP has made; under &peer_edu.lock
 */
struct peer_edu_file {
	struct peer_edu *edu;
	struct peer_edu_region *region;
};

int peer_edu_run(struct peer_edu *edu, dma_addr_t addr, u32 offset, u32 len,
		 bool write);
u32 peer_edu_route(unsigned long pfn);

/* Called with &peer_edu.lock held; the first two only while bound. */
int peer_edu_map_region(struct peer_edu_file *file,
			const struct peer_edu_map *arg);
int peer_edu_use_region(struct peer_edu_file *file, struct peer_edu_use *arg);
void peer_edu_unmap_region(struct peer_edu_file *file);
void peer_edu_unmap_all(struct peer_edu *edu);

#endif /* _PEER_EDU_H */
