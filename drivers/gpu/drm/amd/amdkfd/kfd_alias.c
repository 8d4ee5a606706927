// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * DMA alias of SVM's device private memory
 */
#include <linux/cleanup.h>
#include <linux/memremap-alias.h>
#include <linux/memremap.h>
#include <linux/pci-p2pdma.h>
#include <linux/pci.h>
#include <linux/sched/mm.h>

#include "amdgpu.h"
#include "kfd_alias.h"
#include "kfd_svm.h"

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
 * smaller than the memory, the pages behind its end have no alias and migrate.
 *
 * **Visibility.** A write of a peer goes through the host data path (HDP) to
 * memory, just as a write of the CPU through the BAR, and is subject to the
 * same rules; the kernel is not told when it happens. HDP may hold it back
 * until it is flushed: amdgpu does so before each submission, a user queue does
 * it itself, by the HDP page that amdkfd maps or a packet. The caches of the
 * GPU do not notice it: a shader that was already running may see old data, one
 * that begins with an acquire at system scope after the completion of the
 * transfer does not. In the other direction the GPU releases at system scope
 * what the peer is to read.
 *
 * **Reset.** Before a reset the access of peers is ended by
 * dev_pagemap_end_alias(): the alias is revoked, and each peer lets go of the
 * pages that it has mapped. Whoever wants a page while the device is reset has it
 * migrated, which waits for the reset. So no access of a peer reaches the device
 * from before the reset to its end; none is dropped and said to have succeeded.
 * This is what may be lost:
 *
 * - If the reset loses the memory, everything that was in it: also what a peer
 *   has written, and reported as written, before. See svm_range_bo_lost():
 *   accesses fail, and so do those of peers; nobody reads what a reset has left.
 *   The alias is published again when the last of the lost BOs is gone.
 * - If the reset keeps the memory, nothing that was completed before, as far as
 *   the device still did what it was told. What a device loses before the driver
 *   knows that it has to be reset is beyond anybody's control; it is the same
 *   for writes of the CPU.
 *
 * The pages are not evicted first, neither by SDMA, the engine that most likely
 * hangs, nor by the CPU. To evict a page is to unmap it, that calls MMU
 * notifiers, and notifiers of this driver wait for fences that no one but this
 * reset will signal. The eviction would also allocate memory, and so wait
 * for reclaim, which waits for the same fences.
 *
 * **Suspend and unplug.** The alias is revoked, and the memory is closed and
 * emptied by kgd2kfd_close_zone_device(), so no peer has a mapping left when
 * the device stops to answer. A process that has pages in the device also holds
 * it runtime active.
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

/* Does a BO exist whose pages hold nothing? */
static bool svm_alias_any_lost(struct amdgpu_device *adev)
{
	struct svm_range_bo *svm_bo;

	guard(spinlock)(&adev->kfd.svm_bo_lock);
	list_for_each_entry(svm_bo, &adev->kfd.svm_bos, adev_list)
		if (svm_range_bo_lost(svm_bo))
			return true;
	return false;
}

/* Unless it is hidden, or lost pages are in the way. */
static void svm_alias_publish(struct amdgpu_device *adev)
{
	lockdep_assert_held(&adev->kfd.alias_lock);

	if (!adev->kfd.alias.provider || adev->kfd.alias_hidden ||
	    svm_alias_any_lost(adev))
		return;
	/* -EBUSY: it is published already. There is no other error by now. */
	dev_pagemap_publish_alias(&adev->kfd.pgmap, &adev->kfd.alias);
}

/* A reset takes the lock, and what waits for that may be memory reclaim. */
static void svm_alias_init_lock(struct amdgpu_kfd_dev *kfd)
{
	mutex_init(&kfd->alias_lock);
	if (!IS_ENABLED(CONFIG_LOCKDEP))
		return;
	fs_reclaim_acquire(GFP_KERNEL);
	mutex_lock(&kfd->alias_lock);
	mutex_unlock(&kfd->alias_lock);
	fs_reclaim_release(GFP_KERNEL);
}

/**
 * svm_alias_init - find out where peers reach the device's memory
 * @adev: the device, its BAR resized
 *
 * To be called right before the pagemap is made: what is allocated for the BAR's
 * P2PDMA provider has to be released after it.
 */
void svm_alias_init(struct amdgpu_device *adev)
{
	struct amdgpu_kfd_dev *kfd = &adev->kfd;
	u64 size = min(adev->gmc.visible_vram_size, adev->gmc.real_vram_size);

	svm_alias_init_lock(kfd);
	kfd->alias_hidden = SVM_ALIAS_CLOSED;
	kfd->alias = (struct dev_pagemap_alias) {};

	size = ALIGN_DOWN(size, PAGE_SIZE);
	if (adev->gmc.xgmi.connected_to_cpu || !svm_alias_in_bar(adev, size) ||
	    pcim_p2pdma_init(adev->pdev))
		return;

	kfd->alias.provider = pcim_p2pdma_provider(adev->pdev, 0);
	kfd->alias.start = adev->gmc.aper_base;
	kfd->alias.kaddr = adev->mman.aper_base_kaddr;
	kfd->alias.size = size;
}

/**
 * svm_alias_first_show - let peers reach the memory of a new device
 * @adev: the device, its pagemap made
 *
 * The first time memory is allocated to publish the alias. A reset takes the
 * lock, and must not wait for an allocation; nor does a new device need it, for
 * there are no pages yet.
 */
void svm_alias_first_show(struct amdgpu_device *adev)
{
	int r;

	if (!adev->kfd.alias.provider)
		return;
	adev->kfd.alias_hidden = 0;
	r = dev_pagemap_publish_alias(&adev->kfd.pgmap, &adev->kfd.alias);
	if (!r)
		return;
	dev_warn(adev->dev, "peers do not get access to SVM memory: %d\n", r);
	adev->kfd.alias.provider = NULL;
}

/**
 * svm_alias_show - let peers reach the memory again
 * @adev: the device
 * @why: the reason that it was hidden for; it may stay so for another one
 */
void svm_alias_show(struct amdgpu_device *adev, unsigned int why)
{
	if (!adev->kfd.alias.provider)
		return;
	guard(mutex)(&adev->kfd.alias_lock);
	adev->kfd.alias_hidden &= ~why;
	svm_alias_publish(adev);
}

/**
 * svm_alias_hide - let no further peer reach the memory
 * @adev: the device
 * @why: SVM_ALIAS_*, to be given to svm_alias_show()
 *
 * Before a reset those that have access lose it here. Memory that is closed is
 * evicted next, which does the same.
 *
 * Context: May sleep, and may be part of a reset. What holds the lock neither
 * allocates memory nor waits for fences.
 */
void svm_alias_hide(struct amdgpu_device *adev, unsigned int why)
{
	if (!adev->kfd.alias.provider)
		return;
	guard(mutex)(&adev->kfd.alias_lock);
	adev->kfd.alias_hidden |= why;
	if (why == SVM_ALIAS_RESET)
		dev_pagemap_end_alias(&adev->kfd.pgmap);
	else
		dev_pagemap_revoke_alias(&adev->kfd.pgmap);
}

/**
 * svm_alias_bo_gone - a BO has no device private pages any more
 * @svm_bo: the BO, taken off the device's list
 */
void svm_alias_bo_gone(struct svm_range_bo *svm_bo)
{
	struct amdgpu_device *adev = amdgpu_ttm_adev(svm_bo->bo.tbo.bdev);

	if (!svm_range_bo_lost(svm_bo))
		return;
	guard(mutex)(&adev->kfd.alias_lock);
	svm_alias_publish(adev);
}
