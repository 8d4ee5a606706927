// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * DMA alias of SVM's device private memory
 */
#include <linux/bitmap.h>
#include <linux/cleanup.h>
#include <linux/memremap-alias.h>
#include <linux/memremap.h>
#include <linux/migrate.h>
#include <linux/pci-p2pdma.h>
#include <linux/pci.h>
#include <linux/sched/mm.h>

#include "amdgpu.h"
#include "kfd_alias.h"

/**
 * DOC: Access of peers to SVM memory
 *
 * Memory that a process shares with the GPU by amdkfd's SVM migrates to video
 * memory and has device private pages there. The BAR of the video memory shows
 * it to other devices as well. amdkfd publishes that as the alias of its
 * pagemap (see "Access to device private memory by other devices" in
 * Documentation/mm/hmm.rst), so an RDMA device with on-demand paging reads and
 * writes the pages where they are.
 *
 * The offset of a page in video memory is its distance from the start of the
 * pagemap, and BAR 0 shows video memory from its start on. Where the BAR is
 * smaller than the memory, the pages after its end have no alias and migrate.
 *
 * **Visibility.** A write of a peer goes through the host data path (HDP) to
 * memory, just as a write of the CPU through the BAR does, and is subject to
 * the same rules; the kernel is not told when it happens. HDP may hold it back
 * until it is flushed: amdgpu does so before each submission, a user queue does
 * so itself, with the HDP page that amdkfd maps or with a packet. The caches of
 * the GPU do not notice it: a shader that was already running may see old data,
 * one that begins with an acquire at system scope after the completion of the
 * transfer does not. In the other direction, the GPU releases at system scope
 * what the peer is to read.
 *
 * **Reset.** Before a reset the access of peers is ended by
 * dev_pagemap_end_alias(): the alias is revoked, and each peer lets go of the
 * pages that it has mapped. A page that is wanted while the device is reset is
 * migrated, which waits for the reset. So no access of a peer reaches the
 * device from before the reset to its end. A write that a peer with DMA had
 * posted before may still be on its way to the BAR when the peer says that it
 * has let go: nothing orders the two on PCIe. This is what may be lost:
 *
 * - If the reset loses the memory, everything that was in it, including what a
 *   peer has written, and reported as written, before. See svm_range_bo_lost():
 *   accesses fail, also those of peers; nothing reads what a reset has left.
 *   Processes may keep such pages for as long as they like. The alias is
 *   published again nevertheless, without them: it shows the pages that were
 *   filled since the memory was lost, see svm_alias_fill().
 * - If the reset keeps the memory, nothing that was completed before, as long
 *   as the device still did what it was told. The driver cannot control what a
 *   device loses before the driver knows that it has to be reset; the same is
 *   true of writes of the CPU.
 *
 * The pages are not evicted first, neither by SDMA, the engine that most likely
 * hangs, nor by the CPU. Evicting a page unmaps it, which calls MMU notifiers,
 * and notifiers of this driver wait for fences that only this reset will
 * signal. The eviction would also allocate memory, and so wait for reclaim,
 * which waits for the same fences.
 *
 * **PCI errors.** From the report of an error on, peers have no access either,
 * whatever the state of the channel: the PCI core may reset the slot of a device
 * that works, for the sake of another one. The alias is published again when the
 * PCI core says that the device has recovered. If it gives the device up, or if
 * the device is missing from the bus when it is to be reset, the alias stays
 * hidden until a reset succeeds.
 *
 * **Suspend and unplug.** The alias is revoked, and the memory is closed and
 * emptied by kgd2kfd_evict_zone_device(), so no peer has a mapping left when
 * the device stops answering. A page that cannot be evicted fails a suspend.
 * A removal goes on; it ends the access of peers as a reset does. An APU keeps
 * its pages in S3 and S0ix, but it has no alias.
 *
 * **Lifetime.** The provider of the BAR is devres of the PCI device, acquired
 * before the pagemap and thus released after it. The CPU mapping is undone when
 * the DRM device is released or, after a surprise removal, in
 * amdgpu_device_fini_hw(): both come after kgd2kfd_fini_zone_device().
 */

static bool svm_alias_in_bar(struct amdgpu_device *adev, u64 size)
{
	resource_size_t start = adev->gmc.aper_base;

	/* An APU has its "video memory" behind no BAR at all. */
	return size && start >= pci_resource_start(adev->pdev, 0) &&
	       start + size - 1 <= pci_resource_end(adev->pdev, 0);
}

/*
 * Hide from peers what was filled before the memory was lost. They have no
 * access now: a reset ends that before it loses the memory. Pages filled
 * between the loss and this call are hidden, too, and migrate when a peer wants
 * them.
 */
static void svm_alias_empty(struct amdgpu_device *adev)
{
	struct amdgpu_kfd_dev *kfd = &adev->kfd;
	int epoch = atomic_read(&adev->vram_lost_counter);

	if (kfd->alias_epoch == epoch)
		return;
	kfd->alias_epoch = epoch;
	/*
	 * Pairs with smp_mb__after_atomic() in svm_alias_fill(): a thread that
	 * sets a bit after it was cleared here sees that the memory was lost.
	 */
	smp_mb();
	bitmap_zero(kfd->alias_filled, PHYS_PFN(kfd->alias.size));
}

/* Does nothing while the alias is hidden, or if there is none. */
static void svm_alias_publish(struct amdgpu_device *adev)
{
	struct amdgpu_kfd_dev *kfd = &adev->kfd;

	lockdep_assert_held(&kfd->alias_lock);

	if (kfd->alias_hidden || !kfd->alias.provider)
		return;
	svm_alias_empty(adev);
	/* -EBUSY: it is published already. No other error can occur by now. */
	dev_pagemap_publish_alias_of(&kfd->pgmap, &kfd->alias,
				     kfd->alias_filled);
}

/**
 * svm_alias_fill - let peers reach pages that are being filled
 * @adev: the device
 * @dst: the pages, as migrate_vma has them; they are not mapped yet
 * @npages: number of entries in @dst
 *
 * The caller goes on to check whether the memory was lost after the pages were
 * allocated, and maps them only if it was not. So pages that peers find, and
 * whose bit is set, hold what they were filled with.
 *
 * A bit that is set for a free page does no harm: no peer finds the page, and
 * its next user fills it first.
 */
void svm_alias_fill(struct amdgpu_device *adev, const unsigned long *dst,
		    unsigned long npages)
{
	struct amdgpu_kfd_dev *kfd = &adev->kfd;
	unsigned long i;
	u64 offset;

	if (!kfd->alias.provider)
		return;
	for (i = 0; i < npages; i++) {
		if (!(dst[i] & MIGRATE_PFN_VALID))
			continue;
		offset = dev_pagemap_alias_offset(&kfd->pgmap.range,
						  dst[i] >> MIGRATE_PFN_SHIFT);
		if (offset < kfd->alias.size)
			set_bit(PHYS_PFN(offset), kfd->alias_filled);
	}
	/* Pairs with smp_mb() in svm_alias_empty(). */
	smp_mb__after_atomic();
}

/**
 * svm_alias_early_init - prepare for calls of svm_alias_hide()
 * @adev: the device, of which nothing else is initialized yet
 *
 * A reset may begin before svm_alias_init(), and end after it. It takes the
 * lock, and memory reclaim may wait for it.
 */
void svm_alias_early_init(struct amdgpu_device *adev)
{
	struct amdgpu_kfd_dev *kfd = &adev->kfd;

	kfd->alias_hidden = SVM_ALIAS_CLOSED;
	mutex_init(&kfd->alias_lock);
	if (!IS_ENABLED(CONFIG_LOCKDEP))
		return;
	fs_reclaim_acquire(GFP_KERNEL);
	mutex_lock(&kfd->alias_lock);
	mutex_unlock(&kfd->alias_lock);
	fs_reclaim_release(GFP_KERNEL);
}

static void svm_alias_free(void *filled)
{
	kvfree(filled);
}

/* A bit for each page: 6 MiB for 192 GiB. Freed after the pagemap, too. */
static int svm_alias_alloc(struct amdgpu_device *adev, u64 size)
{
	struct amdgpu_kfd_dev *kfd = &adev->kfd;

	kfd->alias_filled = kvcalloc(BITS_TO_LONGS(PHYS_PFN(size)),
				     sizeof(*kfd->alias_filled), GFP_KERNEL);
	if (!kfd->alias_filled)
		return -ENOMEM;
	kfd->alias_epoch = atomic_read(&adev->vram_lost_counter);
	return devm_add_action_or_reset(adev->dev, svm_alias_free,
					kfd->alias_filled);
}

/**
 * svm_alias_init - find out where peers reach the device's memory
 * @adev: the device, its BAR resized
 *
 * Call this right before the pagemap is created: what is allocated for the
 * BAR's P2PDMA provider has to be released after the pagemap.
 */
void svm_alias_init(struct amdgpu_device *adev)
{
	struct amdgpu_kfd_dev *kfd = &adev->kfd;
	u64 size = min(adev->gmc.visible_vram_size, adev->gmc.real_vram_size);

	kfd->alias = (struct dev_pagemap_alias) {};

	size = ALIGN_DOWN(size, PAGE_SIZE);
	if (adev->gmc.xgmi.connected_to_cpu || !svm_alias_in_bar(adev, size) ||
	    pcim_p2pdma_init(adev->pdev) || svm_alias_alloc(adev, size))
		return;

	kfd->alias.provider = pcim_p2pdma_provider(adev->pdev, 0);
	kfd->alias.start = adev->gmc.aper_base;
	kfd->alias.kaddr = adev->mman.aper_base_kaddr;
	kfd->alias.size = size;
}

/**
 * svm_alias_first_show - let peers reach the memory of a new device
 * @adev: the device, whose pagemap exists
 *
 * Memory for the alias is allocated without the lock: a reset takes it, and must
 * not wait for an allocation. If a reset has begun, the alias is published when
 * that ends.
 */
void svm_alias_first_show(struct amdgpu_device *adev)
{
	int r;

	if (!adev->kfd.alias.provider)
		return;
	r = dev_pagemap_prepare_alias(&adev->kfd.pgmap, &adev->kfd.alias);
	if (r) {
		dev_warn(adev->dev, "peers do not get access to SVM memory: %d\n",
			 r);
		adev->kfd.alias.provider = NULL;
		return;
	}
	svm_alias_show(adev, SVM_ALIAS_CLOSED);
}

/**
 * svm_alias_show - let peers reach the memory again
 * @adev: the device
 * @why: the reason why it was hidden; it may stay hidden for another one
 */
void svm_alias_show(struct amdgpu_device *adev, unsigned int why)
{
	guard(mutex)(&adev->kfd.alias_lock);
	/* A device that was reset works, though the PCI core gave it up. */
	if (why == SVM_ALIAS_RESET &&
	    READ_ONCE(adev->pci_channel_state) == pci_channel_io_perm_failure)
		why |= SVM_ALIAS_ERROR;
	adev->kfd.alias_hidden &= ~why;
	svm_alias_publish(adev);
}

/**
 * svm_alias_hide - let no further peer reach the memory
 * @adev: the device
 * @why: SVM_ALIAS_*, to be passed to svm_alias_show() later
 *
 * Before a reset, and before the device is removed, peers that have access lose
 * it here. Memory that is closed is evicted next, which does the same.
 *
 * Context: May sleep, and may be part of a reset. Code that holds the lock
 * neither allocates memory nor waits for fences.
 */
void svm_alias_hide(struct amdgpu_device *adev, unsigned int why)
{
	guard(mutex)(&adev->kfd.alias_lock);
	adev->kfd.alias_hidden |= why;
	if (!adev->kfd.alias.provider)
		return;
	if (why == SVM_ALIAS_CLOSED)
		dev_pagemap_revoke_alias(&adev->kfd.pgmap);
	else
		dev_pagemap_end_alias(&adev->kfd.pgmap);
}
