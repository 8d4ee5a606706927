// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * DMA alias of SVM's device private memory
 */
#include <linux/cleanup.h>
#include <linux/memremap.h>
#include <linux/pci-p2pdma.h>
#include <linux/pci.h>
#include <linux/workqueue.h>

#include "amdgpu.h"
#include "kfd_alias.h"
#include "kfd_migrate.h"
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
 * **Reset.** The alias is revoked before a reset, and that is all: a peer that
 * wants a page while the device is reset has it migrated, which waits for the
 * reset. The pages are not evicted first, neither by SDMA, the engine that most
 * likely hangs, nor by the CPU. To evict a page is to unmap it, that calls MMU
 * notifiers, and notifiers of this driver wait for fences that no one but this
 * reset will signal. The eviction would also allocate memory, and so wait
 * for reclaim, which waits for the same fences.
 *
 * Peers that had mapped a page before keep the mapping meanwhile. What they
 * write to a memory that is lost is lost with it, and what they read comes from
 * a device that answers with an error or not at all; that shows in their
 * completion. If the reset keeps the memory, the mappings are still good.
 *
 * If it does not, see svm_range_bo_lost(): the mappings are taken away, outside
 * of the reset, further accesses fail, and the alias is published again when
 * the last of the lost BOs is gone.
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

/* Returns false if lost pages are in the way. */
static bool svm_alias_publish(struct amdgpu_device *adev)
{
	lockdep_assert_held(&adev->kfd.alias_lock);

	if (svm_alias_any_lost(adev))
		return false;
	/* -EBUSY: it is published already. There is no other error by now. */
	dev_pagemap_publish_alias(&adev->kfd.pgmap, &adev->kfd.alias);
	return true;
}

/* End the access of peers that have mapped a page which was lost since. */
static void svm_alias_work(struct work_struct *work)
{
	struct amdgpu_device *adev = container_of(work, struct amdgpu_device,
						  kfd.alias_work);

	svm_migrate_invalidate_all(adev);
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

	mutex_init(&kfd->alias_lock);
	spin_lock_init(&kfd->svm_bo_lock);
	INIT_LIST_HEAD(&kfd->svm_bos);
	INIT_WORK(&kfd->alias_work, svm_alias_work);
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
 *
 * Nothing is queued while the memory is hidden, so that who hides it can wait
 * for the work once and for all.
 */
void svm_alias_show(struct amdgpu_device *adev, unsigned int why)
{
	if (!adev->kfd.alias.provider)
		return;
	guard(mutex)(&adev->kfd.alias_lock);
	adev->kfd.alias_hidden &= ~why;
	if (!adev->kfd.alias_hidden && !svm_alias_publish(adev))
		queue_work(system_dfl_wq, &adev->kfd.alias_work);
}

/**
 * svm_alias_hide - let no further peer reach the memory
 * @adev: the device
 * @why: SVM_ALIAS_*, to be given to svm_alias_show()
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
	dev_pagemap_revoke_alias(&adev->kfd.pgmap);
}

/**
 * svm_alias_add_bo - a BO is going to have device private pages
 * @svm_bo: the BO, with its vram_lost_counter
 *
 * The caller looks at svm_range_bo_lost() afterwards. If the memory was lost
 * before this call, it notices. If it is lost later, svm_alias_show(), which
 * comes later still, finds the BO in the list.
 */
void svm_alias_add_bo(struct svm_range_bo *svm_bo)
{
	struct amdgpu_device *adev = amdgpu_ttm_adev(svm_bo->bo.tbo.bdev);

	guard(spinlock)(&adev->kfd.svm_bo_lock);
	list_add(&svm_bo->adev_list, &adev->kfd.svm_bos);
}

/**
 * svm_alias_del_bo - a BO has no device private pages any more
 * @svm_bo: the BO, as given to svm_alias_add_bo()
 */
void svm_alias_del_bo(struct svm_range_bo *svm_bo)
{
	struct amdgpu_device *adev = amdgpu_ttm_adev(svm_bo->bo.tbo.bdev);

	scoped_guard(spinlock, &adev->kfd.svm_bo_lock)
		list_del(&svm_bo->adev_list);
	if (!svm_range_bo_lost(svm_bo))
		return;
	guard(mutex)(&adev->kfd.alias_lock);
	if (!adev->kfd.alias_hidden)
		svm_alias_publish(adev);
}
