// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer memory DMA client test driver.
 *
 * QEMU's edu device has a DMA engine and a buffer of 4 KiB. This driver lets
 * it copy between that buffer and the memory of the caller as a device does
 * that pins nothing: hmm_range_fault() under an interval notifier, a DMA
 * mapping by the HMM helpers, the transfer, and unmapping before the
 * notifier's lock is dropped. Where pages are device private memory that has
 * an alias, the engine reads and writes the other device's BAR. For mappings
 * that last over many transfers see peer_edu_odp.c.
 *
 * QEMU must be told that the device can address everything:
 * -device edu,dma_mask=0xffffffffffffffff
 */
#include <linux/compat.h>
#include <linux/dma-mapping.h>
#include <linux/hmm-dma.h>
#include <linux/hmm.h>
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/panic.h>
#include <linux/pci-p2pdma.h>
#include <linux/pci.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "peer_edu.h"

#define EDU_ID			0x00
#define EDU_DMA_SRC		0x80
#define EDU_DMA_DST		0x88
#define EDU_DMA_COUNT		0x90
#define EDU_DMA_CMD		0x98
#define EDU_DMA_RUN		BIT(0)
#define EDU_DMA_TO_PCI		BIT(1)
#define EDU_BUF			0x40000

/* The engine waits for 100 ms before each transfer. */
#define EDU_POLL_US		5000
#define EDU_TIMEOUT_US		(10 * USEC_PER_SEC)
#define EDU_FAULT_TIMEOUT	HZ

#define EDU_MAX_PAGES		2

static_assert(ARRAY_SIZE(((struct peer_edu_xfer *)0)->route) == EDU_MAX_PAGES);

/**
 * struct peer_edu_op - one transfer
 * @edu:	device
 * @arg:	what the user asks for, and the results
 * @notifier:	watches the range
 * @range:	the range
 * @map:	DMA mapping of its pages
 * @nr:		number of pages
 */
struct peer_edu_op {
	struct peer_edu *edu;
	struct peer_edu_xfer *arg;
	struct mmu_interval_notifier notifier;
	struct hmm_range range;
	struct hmm_dma_map map;
	unsigned int nr;
};

static DEFINE_IDA(peer_edu_ids);

static void peer_edu_release(struct kref *ref)
{
	kfree(container_of(ref, struct peer_edu, ref));
}

static void peer_edu_put(void *data)
{
	struct peer_edu *edu = data;

	kref_put(&edu->ref, peer_edu_release);
}

/* The engine */

int peer_edu_run(struct peer_edu *edu, dma_addr_t addr, u32 offset, u32 len,
		 bool write)
{
	u64 buf = EDU_BUF + offset, cmd;
	int err;

	writeq(write ? buf : addr, edu->regs + EDU_DMA_SRC);
	writeq(write ? addr : buf, edu->regs + EDU_DMA_DST);
	writeq(len, edu->regs + EDU_DMA_COUNT);
	writeq(EDU_DMA_RUN | (write ? EDU_DMA_TO_PCI : 0),
	       edu->regs + EDU_DMA_CMD);
	err = read_poll_timeout(readq, cmd, !(cmd & EDU_DMA_RUN), EDU_POLL_US,
				EDU_TIMEOUT_US, false,
				edu->regs + EDU_DMA_CMD);
	if (!err)
		return 0;
	/* the pages will be unmapped: the engine must not resume later */
	pci_clear_master(edu->pdev);
	edu->dead = true;
	return -EIO;
}

static int peer_edu_copy(struct peer_edu_op *op)
{
	struct peer_edu_xfer *arg = op->arg;
	bool write = arg->flags & PEER_EDU_WRITE;
	u32 in_page = offset_in_page(arg->addr);
	u32 done = 0, part;
	unsigned int i;
	int err;

	for (i = 0; i < op->nr; i++) {
		part = min_t(u32, arg->len - done, PAGE_SIZE - in_page);
		err = peer_edu_run(op->edu, arg->dma_addr[i] + in_page, done,
				   part, write);
		if (err)
			return err;
		done += part;
		in_page = 0;
	}
	return 0;
}

/* The mapping */

u32 peer_edu_route(unsigned long pfn)
{
	if (pfn & HMM_PFN_P2PDMA_BUS)
		return PEER_EDU_BUS_ADDR;
	if (pfn & HMM_PFN_P2PDMA)
		return PEER_EDU_HOST_BRIDGE;
	return PEER_EDU_RAM;
}

/* The pages are still mapped in the page table, which keeps them alive. */
static void peer_edu_unmap(struct peer_edu_op *op, unsigned int nr, bool dirty)
{
	struct page *page;
	unsigned int i;

	lockdep_assert_held(&op->edu->map_lock);
	for (i = 0; i < nr; i++) {
		page = hmm_pfn_to_page(op->map.pfn_list[i]);
		hmm_dma_unmap_pfn(&op->edu->pdev->dev, &op->map, i);
		if (dirty)
			folio_mark_dirty(page_folio(page));
	}
}

static int peer_edu_map(struct peer_edu_op *op)
{
	struct device *dev = &op->edu->pdev->dev;
	struct pci_p2pdma_map_state state = {};
	struct peer_edu_xfer *arg = op->arg;
	unsigned int i;

	lockdep_assert_held(&op->edu->map_lock);
	for (i = 0; i < op->nr; i++) {
		arg->dma_addr[i] = hmm_dma_map_pfn(dev, &op->map, i, &state);
		if (dma_mapping_error(dev, arg->dma_addr[i])) {
			peer_edu_unmap(op, i, false);
			return -EIO;
		}
		arg->route[i] = peer_edu_route(op->map.pfn_list[i]);
		if (arg->route[i] != PEER_EDU_BUS_ADDR &&
		    dma_use_iova(&op->map.state))
			arg->result |= PEER_EDU_IOVA;
	}
	return 0;
}

static int peer_edu_map_and_copy(struct peer_edu_op *op)
{
	int err;

	err = peer_edu_map(op);
	if (err)
		return err;
	err = peer_edu_copy(op);
	peer_edu_unmap(op, op->nr, op->arg->flags & PEER_EDU_WRITE);
	return err;
}

/* Nothing is mapped without the lock, so there is nothing to undo. */
static bool peer_edu_invalidate(struct mmu_interval_notifier *notifier,
				const struct mmu_notifier_range *range,
				unsigned long seq)
{
	struct peer_edu_op *op = container_of(notifier, struct peer_edu_op,
					      notifier);

	if (mmu_notifier_range_blockable(range))
		mutex_lock(&op->edu->map_lock);
	else if (!mutex_trylock(&op->edu->map_lock))
		return false;
	mmu_interval_set_seq(notifier, seq);
	mutex_unlock(&op->edu->map_lock);
	return true;
}

/* For the owner of device private memory: wait for a transfer that has begun. */
static void peer_edu_end_access(struct dev_pagemap_alias_user *user,
				const struct dev_pagemap *pgmap)
{
	struct peer_edu *edu = container_of(user, struct peer_edu, alias_user);

	mutex_lock(&edu->map_lock);
	mutex_unlock(&edu->map_lock);
}

static const struct mmu_interval_notifier_ops peer_edu_notifier_ops = {
	.invalidate = peer_edu_invalidate,
};

/* Returns -EAGAIN if the range has changed meanwhile. */
static int peer_edu_try(struct peer_edu_op *op)
{
	int err;

	op->arg->faults++;
	op->arg->result &= ~PEER_EDU_IOVA;
	err = hmm_range_fault_unlocked_timeout(&op->range, EDU_FAULT_TIMEOUT);
	if (err)
		return err;
	mutex_lock(&op->edu->map_lock);
	if (mmu_interval_read_retry(&op->notifier, op->range.notifier_seq))
		err = -EAGAIN;
	else
		err = peer_edu_map_and_copy(op);
	mutex_unlock(&op->edu->map_lock);
	return err;
}

static int peer_edu_retry(struct peer_edu_op *op)
{
	unsigned long end = jiffies + EDU_FAULT_TIMEOUT;
	int err;

	do {
		err = peer_edu_try(op);
		if (err == -EIO && op->range.dma_dev && !op->edu->dead) {
			/* what looked reachable was not: fault it once more */
			op->range.dma_dev = NULL;
			op->arg->result |= PEER_EDU_FELL_BACK;
			err = -EAGAIN;
		}
		if (err != -EAGAIN)
			return err;
	} while (time_before(jiffies, end) && !fatal_signal_pending(current));
	return -EBUSY;
}

static int peer_edu_notify_and_copy(struct peer_edu_op *op)
{
	struct device *dev = &op->edu->pdev->dev;
	unsigned long start = ALIGN_DOWN(op->arg->addr, PAGE_SIZE);
	unsigned long end = PAGE_ALIGN(op->arg->addr + op->arg->len);
	int err;

	op->nr = (end - start) >> PAGE_SHIFT;
	err = hmm_dma_map_alloc(dev, &op->map, op->nr, PAGE_SIZE);
	if (err)
		return err;
	err = mmu_interval_notifier_insert(&op->notifier, current->mm, start,
					   end - start,
					   &peer_edu_notifier_ops);
	if (err)
		goto out;
	op->range = (struct hmm_range) {
		.notifier = &op->notifier,
		.start = start,
		.end = end,
		.hmm_pfns = op->map.pfn_list,
		.default_flags = HMM_PFN_REQ_FAULT,
		.dev_private_owner = op->edu,
		.dma_dev = dev,
	};
	if (op->arg->flags & PEER_EDU_WRITE)
		op->range.default_flags |= HMM_PFN_REQ_WRITE;
	if (op->arg->flags & PEER_EDU_NO_ALIAS)
		op->range.dma_dev = NULL;
	err = peer_edu_retry(op);
	mmu_interval_notifier_remove(&op->notifier);
out:
	hmm_dma_map_free(dev, &op->map);
	return err;
}

/* The ioctl */

static bool peer_edu_bad(const struct peer_edu_xfer *arg)
{
	return (arg->flags & ~(PEER_EDU_WRITE | PEER_EDU_NO_ALIAS)) ||
	       !arg->len || arg->len > PEER_EDU_BUF_SIZE ||
	       ((arg->addr | arg->len) & 7) ||
	       arg->addr + arg->len < arg->addr ||
	       PAGE_ALIGN(arg->addr + arg->len) < arg->addr;
}

static int peer_edu_xfer(struct peer_edu *edu, struct peer_edu_xfer *arg)
{
	struct peer_edu_op op = { .edu = edu, .arg = arg };

	if (peer_edu_bad(arg))
		return -EINVAL;
	arg->result = 0;
	arg->faults = 0;
	memset(arg->route, 0, sizeof(arg->route));
	memset(arg->dma_addr, 0, sizeof(arg->dma_addr));
	return peer_edu_notify_and_copy(&op);
}

/* Input and output of the ioctls. */
union peer_edu_arg {
	struct peer_edu_xfer xfer;
	struct peer_edu_map map;
	struct peer_edu_use use;
};

static int peer_edu_do(struct peer_edu_file *file, unsigned int cmd,
		       union peer_edu_arg *arg)
{
	struct peer_edu *edu = file->edu;

	lockdep_assert_held(&edu->lock);
	if (edu->gone)
		return -ENODEV;
	if (edu->dead)
		return -EIO;
	switch (cmd) {
	case PEER_EDU_XFER:
		return peer_edu_xfer(edu, &arg->xfer);
	case PEER_EDU_MAP:
		return peer_edu_map_region(file, &arg->map);
	case PEER_EDU_USE:
		return peer_edu_use_region(file, &arg->use);
	case PEER_EDU_UNMAP:
		peer_edu_unmap_region(file);
		return 0;
	default:
		return -ENOTTY;
	}
}

static long peer_edu_ioctl(struct file *filp, unsigned int cmd,
			   unsigned long uarg)
{
	struct peer_edu_file *file = filp->private_data;
	void __user *user = (void __user *)uarg;
	size_t size = _IOC_SIZE(cmd);
	union peer_edu_arg arg;
	int err;

	if (size > sizeof(arg))
		return -ENOTTY;
	if (copy_from_user(&arg, user, size))
		return -EFAULT;
	if (mutex_lock_killable(&file->edu->lock))
		return -EINTR;
	err = peer_edu_do(file, cmd, &arg);
	mutex_unlock(&file->edu->lock);
	if ((_IOC_DIR(cmd) & _IOC_READ) && copy_to_user(user, &arg, size))
		return -EFAULT;
	return err;
}

/* Called under the mutex of misc_deregister(): the driver has a reference. */
static int peer_edu_open(struct inode *inode, struct file *filp)
{
	struct peer_edu_file *file = kzalloc_obj(*file);

	if (!file)
		return -ENOMEM;
	file->edu = container_of(filp->private_data, struct peer_edu, misc);
	kref_get(&file->edu->ref);
	filp->private_data = file;
	return 0;
}

static int peer_edu_close(struct inode *inode, struct file *filp)
{
	struct peer_edu_file *file = filp->private_data;

	mutex_lock(&file->edu->lock);
	peer_edu_unmap_region(file);
	mutex_unlock(&file->edu->lock);
	peer_edu_put(file->edu);
	kfree(file);
	return 0;
}

static const struct file_operations peer_edu_fops = {
	.owner = THIS_MODULE,
	.open = peer_edu_open,
	.release = peer_edu_close,
	.unlocked_ioctl = peer_edu_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* The PCI device */

static int peer_edu_setup(struct peer_edu *edu)
{
	struct pci_dev *pdev = edu->pdev;
	int err;

	err = pcim_enable_device(pdev);
	if (err)
		return err;
	edu->regs = pcim_iomap_region(pdev, 0, "peer_edu");
	if (IS_ERR(edu->regs))
		return PTR_ERR(edu->regs);
	if ((readl(edu->regs + EDU_ID) & 0xff) != 0xed)
		return dev_err_probe(&pdev->dev, -ENODEV, "no edu device\n");
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		return err;
	pci_set_master(pdev);
	return 0;
}

static void peer_edu_alias_user_del(void *data)
{
	struct peer_edu *edu = data;

	dev_pagemap_alias_user_del(&edu->alias_user);
}

static void peer_edu_free_id(void *data)
{
	struct peer_edu *edu = data;

	ida_free(&peer_edu_ids, edu->id);
}

static int peer_edu_register(struct peer_edu *edu)
{
	int err;

	edu->id = ida_alloc(&peer_edu_ids, GFP_KERNEL);
	if (edu->id < 0)
		return edu->id;
	err = devm_add_action_or_reset(&edu->pdev->dev, peer_edu_free_id, edu);
	if (err)
		return err;
	snprintf(edu->name, sizeof(edu->name), "peer_edu%d", edu->id);
	edu->misc.minor = MISC_DYNAMIC_MINOR;
	edu->misc.name = edu->name;
	edu->misc.fops = &peer_edu_fops;
	edu->misc.parent = &edu->pdev->dev;
	return misc_register(&edu->misc);
}

static int peer_edu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct peer_edu *edu;
	int err;

	edu = kzalloc_obj(*edu);
	if (!edu)
		return -ENOMEM;
	kref_init(&edu->ref);
	mutex_init(&edu->lock);
	mutex_init(&edu->map_lock);
	INIT_LIST_HEAD(&edu->regions);
	edu->pdev = pdev;
	err = devm_add_action_or_reset(&pdev->dev, peer_edu_put, edu);
	if (err)
		return err;
	edu->alias_user.end_access = peer_edu_end_access;
	dev_pagemap_alias_user_add(&edu->alias_user);
	err = devm_add_action_or_reset(&pdev->dev, peer_edu_alias_user_del,
				       edu);
	if (err)
		return err;
	err = peer_edu_setup(edu);
	if (err)
		return err;
	pci_set_drvdata(pdev, edu);
	return peer_edu_register(edu);
}

/* The engine only runs under the lock: it is idle, and stays so. */
static void peer_edu_remove(struct pci_dev *pdev)
{
	struct peer_edu *edu = pci_get_drvdata(pdev);

	misc_deregister(&edu->misc);
	mutex_lock(&edu->lock);
	edu->gone = true;
	peer_edu_unmap_all(edu);
	mutex_unlock(&edu->lock);
	pci_clear_master(pdev);
}

/* As with peer_mem: not loaded because a machine happens to have the device. */
static const struct pci_device_id peer_edu_table[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{ }
};

static struct pci_driver peer_edu_driver = {
	.name = "peer_edu",
	.id_table = peer_edu_table,
	.probe = peer_edu_probe,
	.remove = peer_edu_remove,
};

static int __init peer_edu_init(void)
{
	add_taint(TAINT_TEST, LOCKDEP_STILL_OK);
	return pci_register_driver(&peer_edu_driver);
}
module_init(peer_edu_init);

static void __exit peer_edu_exit(void)
{
	pci_unregister_driver(&peer_edu_driver);
	ida_destroy(&peer_edu_ids);
}
module_exit(peer_edu_exit);

MODULE_DESCRIPTION("Peer memory DMA client test driver for QEMU's edu");
MODULE_LICENSE("GPL");
