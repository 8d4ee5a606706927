// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer memory test driver: a PCI device whose BAR is its memory.
 *
 * The device is QEMU's ivshmem-plain: BAR 2 is a host file, which makes the
 * file an independent witness of what reached the device. The driver offers
 * the BAR to processes as device private memory and to other devices as a DMA
 * alias of that memory.
 *
 * Lifetimes: devres undoes the probe in reverse order, so the pages are removed
 * before the BAR's mapping and the P2PDMA provider, and struct peer_mem is
 * freed last or with the last open file. remove() first empties the device;
 * memunmap_pages() in devres then waits for all remaining references to pages.
 */
#include <linux/bitmap.h>
#include <linux/compat.h>
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/memremap-alias.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/panic.h>
#include <linux/pci-p2pdma.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "peer_mem.h"

#define PEER_MEM_BAR		2
#define PEER_MEM_EVICT_TIME	(10 * HZ)

static DEFINE_IDA(peer_mem_ids);

static void peer_mem_release(struct kref *ref)
{
	kfree(container_of(ref, struct peer_mem, ref));
}

static void peer_mem_put(void *data)
{
	struct peer_mem *pm = data;

	kref_put(&pm->ref, peer_mem_release);
}

/* Keep the driver bound until peer_mem_leave(). */
static int peer_mem_enter(struct peer_mem *pm)
{
	if (down_read_killable(&pm->lock))
		return -EINTR;
	if (!pm->gone)
		return 0;
	up_read(&pm->lock);
	return -ENODEV;
}

static void peer_mem_leave(struct peer_mem *pm)
{
	up_read(&pm->lock);
}

/* Like peer_mem_enter(), and keep all other callers out. */
static int peer_mem_enter_alone(struct peer_mem *pm)
{
	if (down_write_killable(&pm->lock))
		return -EINTR;
	if (!pm->gone)
		return 0;
	up_write(&pm->lock);
	return -ENODEV;
}

static void peer_mem_leave_alone(struct peer_mem *pm)
{
	up_write(&pm->lock);
}

/* The alias */

static void peer_mem_revoke(struct peer_mem *pm)
{
	lockdep_assert_held_write(&pm->lock);
	if (!pm->visible)
		return;
	dev_pagemap_revoke_alias(&pm->pgmap);
	pm->visible = 0;
	pm->stale = true;
}

/*
 * Only called while there is no alias: the eviction that follows
 * peer_mem_revoke() must have ended the access of peers that used a longer one.
 */
static int peer_mem_publish(struct peer_mem *pm, u64 visible, bool cpu)
{
	struct dev_pagemap_alias alias = {
		.provider = pcim_p2pdma_provider(pm->pdev, PEER_MEM_BAR),
		.start = pci_resource_start(pm->pdev, PEER_MEM_BAR),
		.size = visible,
		.kaddr = cpu ? pm->bar : NULL,
	};
	int err;

	if (!alias.provider)
		return -EOPNOTSUPP;
	err = dev_pagemap_publish_alias(&pm->pgmap, &alias);
	if (!err)
		pm->visible = visible;
	return err;
}

/* The ioctls */

static bool peer_mem_bad_range(u64 addr, u64 len, u64 align, u64 max)
{
	return !len || len > max || ((addr | len) & (align - 1)) ||
	       addr + len < addr;
}

static int peer_mem_ioctl_info(struct peer_mem *pm, void *arg)
{
	struct dev_pagemap_alias_stats stats;
	struct peer_mem_info *info = arg;
	int err;

	err = peer_mem_enter(pm);
	if (err)
		return err;
	dev_pagemap_alias_stats(&pm->pgmap, &stats);
	*info = (struct peer_mem_info) {
		.size = pm->size,
		.visible = pm->visible,
		.bar_phys = pci_resource_start(pm->pdev, PEER_MEM_BAR),
		.bar_bus = pci_bus_address(pm->pdev, PEER_MEM_BAR),
		.pages = READ_ONCE(pm->nr_used),
		.huge = atomic_read(&pm->nr_huge),
		.moved_in = atomic64_read(&pm->moved_in),
		.moved_out = atomic64_read(&pm->moved_out),
		.faults = atomic64_read(&pm->faults),
		.evicted = atomic64_read(&pm->evicted),
		.mapped = stats.mapped,
		.unreachable = stats.fallback_unreachable,
		.invisible = stats.fallback_invisible,
		.no_cpu = stats.fallback_no_cpu,
		.revoked = stats.fallback_revoked,
		.map_failed = stats.fallback_map_failed,
		.revokes = stats.revokes,
	};
	peer_mem_leave(pm);
	return 0;
}

static int peer_mem_ioctl_migrate(struct peer_mem *pm,
				  struct peer_mem_migrate *arg, bool to_dev)
{
	int err;

	if ((arg->flags & ~PEER_MEM_MIGRATE_SMALL) || arg->pad ||
	    peer_mem_bad_range(arg->addr, arg->len, PAGE_SIZE,
			       PEER_MEM_MAX_LEN))
		return -EINVAL;
	err = peer_mem_enter(pm);
	if (err)
		return err;
	err = peer_mem_migrate(pm, arg, to_dev);
	peer_mem_leave(pm);
	return err;
}

static int peer_mem_ioctl_to_dev(struct peer_mem *pm, void *arg)
{
	return peer_mem_ioctl_migrate(pm, arg, true);
}

static int peer_mem_ioctl_to_sys(struct peer_mem *pm, void *arg)
{
	return peer_mem_ioctl_migrate(pm, arg, false);
}

/* When all pages have left, no peer has any of them mapped. */
static int peer_mem_empty(struct peer_mem *pm, u64 *moved)
{
	int err;

	lockdep_assert_held_write(&pm->lock);
	err = peer_mem_evict(pm, PEER_MEM_EVICT_TIME, moved);
	if (!err)
		pm->stale = false;
	return err;
}

static int peer_mem_ioctl_evict(struct peer_mem *pm, void *data)
{
	struct peer_mem_evict *arg = data;
	int err;

	if (arg->flags || arg->pad)
		return -EINVAL;
	err = peer_mem_enter_alone(pm);
	if (err)
		return err;
	err = peer_mem_empty(pm, &arg->moved);
	peer_mem_leave_alone(pm);
	return err;
}

static int peer_mem_ioctl_revoke(struct peer_mem *pm, void *data)
{
	struct peer_mem_evict *arg = data;
	int err;

	/* one of the two flags, or none */
	if (arg->flags > PEER_MEM_REVOKE_END || arg->pad)
		return -EINVAL;
	err = peer_mem_enter_alone(pm);
	if (err)
		return err;
	peer_mem_revoke(pm);
	arg->moved = 0;
	if (arg->flags & PEER_MEM_REVOKE_END)
		dev_pagemap_end_alias(&pm->pgmap);
	if (!arg->flags)
		err = peer_mem_empty(pm, &arg->moved);
	peer_mem_leave_alone(pm);
	return err;
}

static int peer_mem_ioctl_publish(struct peer_mem *pm, void *data)
{
	struct peer_mem_publish *arg = data;
	int err = 0;
	u64 moved;

	if ((arg->flags & ~PEER_MEM_PUBLISH_NO_CPU) || arg->pad ||
	    peer_mem_bad_range(0, arg->visible, PAGE_SIZE, pm->size))
		return -EINVAL;
	err = peer_mem_enter_alone(pm);
	if (err)
		return err;
	peer_mem_revoke(pm);
	if (pm->stale)
		err = peer_mem_empty(pm, &moved);
	if (!err)
		err = peer_mem_publish(pm, arg->visible,
				       !(arg->flags & PEER_MEM_PUBLISH_NO_CPU));
	peer_mem_leave_alone(pm);
	return err;
}

static int peer_mem_check_rw(struct peer_mem *pm, const struct peer_mem_rw *arg)
{
	if (peer_mem_bad_range(arg->offset, arg->len, 8, PEER_MEM_MAX_RW))
		return -EINVAL;
	if (arg->offset + arg->len > pm->size)
		return -ERANGE;
	return 0;
}

/*
 * User memory is accessed outside of the lock: a fault may take forever, and
 * unbinding waits for the lock.
 */
static int peer_mem_ioctl_peek(struct peer_mem *pm, void *data)
{
	struct peer_mem_rw *arg = data;
	void *bounce;
	int err;

	err = peer_mem_check_rw(pm, arg);
	if (err)
		return err;
	bounce = kvmalloc(arg->len, GFP_KERNEL);
	if (!bounce)
		return -ENOMEM;
	err = peer_mem_enter(pm);
	if (err)
		goto out;
	memcpy_fromio(bounce, pm->bar + arg->offset, arg->len);
	peer_mem_leave(pm);
	if (copy_to_user(u64_to_user_ptr(arg->buf), bounce, arg->len))
		err = -EFAULT;
out:
	kvfree(bounce);
	return err;
}

static int peer_mem_ioctl_poke(struct peer_mem *pm, void *data)
{
	struct peer_mem_rw *arg = data;
	void *bounce;
	int err;

	err = peer_mem_check_rw(pm, arg);
	if (err)
		return err;
	bounce = vmemdup_user(u64_to_user_ptr(arg->buf), arg->len);
	if (IS_ERR(bounce))
		return PTR_ERR(bounce);
	err = peer_mem_enter(pm);
	if (err)
		goto out;
	memcpy_toio(pm->bar + arg->offset, bounce, arg->len);
	wmb(); /* out of the write-combining buffers before we return */
	peer_mem_leave(pm);
out:
	kvfree(bounce);
	return err;
}

static int peer_mem_ioctl_lookup(struct peer_mem *pm, void *data)
{
	struct peer_mem_lookup *arg = data;
	unsigned long nr = arg->len >> PAGE_SHIFT;
	u64 *offsets;
	int err;

	if (peer_mem_bad_range(arg->addr, arg->len, PAGE_SIZE,
			       PEER_MEM_MAX_LEN))
		return -EINVAL;
	offsets = kvcalloc(nr, sizeof(*offsets), GFP_KERNEL);
	if (!offsets)
		return -ENOMEM;
	err = peer_mem_enter(pm);
	if (err)
		goto out;
	err = peer_mem_lookup(pm, arg->addr, nr, offsets);
	peer_mem_leave(pm);
	if (!err && copy_to_user(u64_to_user_ptr(arg->offsets), offsets,
				 nr * sizeof(*offsets)))
		err = -EFAULT;
out:
	kvfree(offsets);
	return err;
}

static int peer_mem_ioctl_inject(struct peer_mem *pm, void *data)
{
	struct peer_mem_inject *arg = data;

	if (arg->kind >= ARRAY_SIZE(pm->inject) || arg->count > INT_MAX)
		return -EINVAL;
	atomic_set(&pm->inject[arg->kind], arg->count);
	return 0;
}

static const struct {
	unsigned int cmd;
	int (*fn)(struct peer_mem *pm, void *arg);
} peer_mem_ioctls[] = {
	{ PEER_MEM_INFO, peer_mem_ioctl_info },
	{ PEER_MEM_TO_DEV, peer_mem_ioctl_to_dev },
	{ PEER_MEM_TO_SYS, peer_mem_ioctl_to_sys },
	{ PEER_MEM_EVICT, peer_mem_ioctl_evict },
	{ PEER_MEM_REVOKE, peer_mem_ioctl_revoke },
	{ PEER_MEM_PUBLISH, peer_mem_ioctl_publish },
	{ PEER_MEM_PEEK, peer_mem_ioctl_peek },
	{ PEER_MEM_POKE, peer_mem_ioctl_poke },
	{ PEER_MEM_LOOKUP, peer_mem_ioctl_lookup },
	{ PEER_MEM_INJECT, peer_mem_ioctl_inject },
};

static long peer_mem_ioctl(struct file *file, unsigned int cmd,
			   unsigned long uarg)
{
	struct peer_mem *pm = container_of(file->private_data,
					   struct peer_mem, misc);
	void __user *user = (void __user *)uarg;
	union {
		struct peer_mem_info info;
		struct peer_mem_migrate migrate;
		struct peer_mem_evict evict;
		struct peer_mem_publish publish;
		struct peer_mem_rw rw;
		struct peer_mem_lookup lookup;
		struct peer_mem_inject inject;
	} arg = {};
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(peer_mem_ioctls); i++)
		if (peer_mem_ioctls[i].cmd == cmd)
			break;
	if (i == ARRAY_SIZE(peer_mem_ioctls))
		return -ENOTTY;
	if ((_IOC_DIR(cmd) & _IOC_WRITE) &&
	    copy_from_user(&arg, user, _IOC_SIZE(cmd)))
		return -EFAULT;
	err = peer_mem_ioctls[i].fn(pm, &arg);
	if ((_IOC_DIR(cmd) & _IOC_READ) &&
	    copy_to_user(user, &arg, _IOC_SIZE(cmd)))
		return -EFAULT;
	return err;
}

/*
 * misc_open() calls this under the mutex that misc_deregister() takes: the
 * driver is bound and has a reference.
 */
static int peer_mem_open(struct inode *inode, struct file *file)
{
	struct peer_mem *pm = container_of(file->private_data,
					   struct peer_mem, misc);

	kref_get(&pm->ref);
	return 0;
}

static int peer_mem_close(struct inode *inode, struct file *file)
{
	peer_mem_put(container_of(file->private_data, struct peer_mem, misc));
	return 0;
}

static const struct file_operations peer_mem_fops = {
	.owner = THIS_MODULE,
	.open = peer_mem_open,
	.release = peer_mem_close,
	.unlocked_ioctl = peer_mem_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* The PCI device */

static int peer_mem_map_bar(struct peer_mem *pm)
{
	struct pci_dev *pdev = pm->pdev;
	int err;

	err = pcim_enable_device(pdev);
	if (err)
		return err;
	pm->size = pci_resource_len(pdev, PEER_MEM_BAR);
	if (!(pci_resource_flags(pdev, PEER_MEM_BAR) & IORESOURCE_MEM) ||
	    !pm->size || !IS_ALIGNED(pm->size, HPAGE_PMD_SIZE))
		return dev_err_probe(&pdev->dev, -ENODEV,
				     "BAR %d is not memory of 2 MiB or more\n",
				     PEER_MEM_BAR);
	err = pcim_request_region(pdev, PEER_MEM_BAR, "peer_mem");
	if (err)
		return err;
	pm->bar = devm_ioremap_wc(&pdev->dev,
				  pci_resource_start(pdev, PEER_MEM_BAR),
				  pm->size);
	if (!pm->bar)
		return -ENOMEM;
	/* before the pages, so that the provider outlives them */
	return pcim_p2pdma_init(pdev);
}

static int peer_mem_map_pages(struct peer_mem *pm)
{
	struct device *dev = &pm->pdev->dev;
	struct resource *res;

	pm->evict_src = devm_kcalloc(dev, HPAGE_PMD_NR, sizeof(*pm->evict_src),
				     GFP_KERNEL);
	pm->evict_dst = devm_kcalloc(dev, HPAGE_PMD_NR, sizeof(*pm->evict_dst),
				     GFP_KERNEL);
	pm->used = devm_bitmap_zalloc(dev, peer_mem_nr_pages(pm), GFP_KERNEL);
	if (!pm->evict_src || !pm->evict_dst || !pm->used)
		return -ENOMEM;
	res = devm_request_free_mem_region(dev, &iomem_resource, pm->size);
	if (IS_ERR(res))
		return PTR_ERR(res);
	/* the region is rounded up to a memory section: use pm->size of it */
	pm->pgmap.range.start = res->start;
	pm->pgmap.range.end = res->start + pm->size - 1;
	pm->pgmap.nr_range = 1;
	pm->pgmap.type = MEMORY_DEVICE_PRIVATE;
	pm->pgmap.ops = &peer_mem_pgmap_ops;
	pm->pgmap.owner = pm;
	return PTR_ERR_OR_ZERO(devm_memremap_pages(dev, &pm->pgmap));
}

static void peer_mem_free_id(void *data)
{
	struct peer_mem *pm = data;

	ida_free(&peer_mem_ids, pm->id);
}

static int peer_mem_register(struct peer_mem *pm)
{
	struct device *dev = &pm->pdev->dev;
	int err;

	pm->id = ida_alloc(&peer_mem_ids, GFP_KERNEL);
	if (pm->id < 0)
		return pm->id;
	err = devm_add_action_or_reset(dev, peer_mem_free_id, pm);
	if (err)
		return err;
	snprintf(pm->name, sizeof(pm->name), "peer_mem%d", pm->id);
	pm->misc.minor = MISC_DYNAMIC_MINOR;
	pm->misc.name = pm->name;
	pm->misc.fops = &peer_mem_fops;
	pm->misc.parent = dev;
	return misc_register(&pm->misc);
}

static int peer_mem_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct peer_mem *pm;
	int err;

	pm = kzalloc_obj(*pm);
	if (!pm)
		return -ENOMEM;
	kref_init(&pm->ref);
	init_rwsem(&pm->lock);
	spin_lock_init(&pm->alloc_lock);
	pm->pdev = pdev;
	/* added first, to be undone last: the pagemap is part of it */
	err = devm_add_action_or_reset(&pdev->dev, peer_mem_put, pm);
	if (err)
		return err;
	err = peer_mem_map_bar(pm);
	if (err)
		return err;
	err = peer_mem_map_pages(pm);
	if (err)
		return err;
	err = peer_mem_publish(pm, pm->size, true);
	if (err)
		return err;
	pci_set_drvdata(pdev, pm);
	err = peer_mem_register(pm);
	if (err)
		dev_pagemap_revoke_alias(&pm->pgmap);
	return err;
}

/*
 * The device cannot be opened any more. Once the lock is taken, every ioctl has
 * ended and the next one fails, so pages cannot come in. A thread that holds a
 * page briefly will let go of it, so there is no reason to give up.
 */
static void peer_mem_remove(struct pci_dev *pdev)
{
	struct peer_mem *pm = pci_get_drvdata(pdev);
	u64 moved;

	misc_deregister(&pm->misc);
	down_write(&pm->lock);
	pm->gone = true;
	peer_mem_revoke(pm);
	peer_mem_evict(pm, MAX_SCHEDULE_TIMEOUT, &moved);
	up_write(&pm->lock);
}

/*
 * Not exported by MODULE_DEVICE_TABLE(): a test driver must not be loaded
 * because a machine happens to have the device. virtio_pci claims the vendor,
 * but its probe refuses this device.
 */
static const struct pci_device_id peer_mem_table[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, 0x1110) },
	{ }
};

static struct pci_driver peer_mem_driver = {
	.name = "peer_mem",
	.id_table = peer_mem_table,
	.probe = peer_mem_probe,
	.remove = peer_mem_remove,
};

static int __init peer_mem_init(void)
{
	add_taint(TAINT_TEST, LOCKDEP_STILL_OK);
	return pci_register_driver(&peer_mem_driver);
}
module_init(peer_mem_init);

static void __exit peer_mem_exit(void)
{
	pci_unregister_driver(&peer_mem_driver);
	ida_destroy(&peer_mem_ids);
}
module_exit(peer_mem_exit);

MODULE_DESCRIPTION("Peer memory test driver for QEMU's ivshmem-plain");
MODULE_LICENSE("GPL");
