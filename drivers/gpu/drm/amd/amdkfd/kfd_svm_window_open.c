// SPDX-License-Identifier: MIT
/*
 * How a window on SVM memory is opened: see kfd_svm_window.c. Pages are looked
 * at, and are not moved. If the GPU cannot reach them, and the job asks for it,
 * they are moved as by a retry fault.
 *
 * Without retry faults, amdkfd keeps ranges mapped: such a range is not mapped
 * anew, nor a part of it, as queues may be using it. If amdkfd is about to map
 * it again, this waits for its worker. With retry faults, ranges are mapped
 * page by page: queues that use these pages fault, and go on.
 */

#include <linux/hmm.h>
#include <linux/sched/signal.h>
#include <drm/drm_exec.h>

#include "amdgpu_hmm.h"
#include "amdgpu_sdma_batch.h"
#include "amdgpu_xgmi.h"
#include "kfd_priv.h"
#include "kfd_svm.h"
#include "kfd_svm_window.h"

/* A window has at most this number of pages, aligned. */
#define WINDOW_PAGES	512ul
/* How often to fault in pages, and to wait for amdkfd's worker, in vain. */
#define MAX_TRIES	32
/*
 * How often to wait with locks: for jobs before the CPU clears, and for those
 * that use the pages. Other threads may unmap, and submit jobs, all the time.
 */
#define LOCKED_WAITS	2

/* What is known of the pages for which a window is being opened. */
struct opening {
	struct kfd_svm_user *user;
	const struct kfd_svm_want *want;
	struct svm_range *prange;
	struct kfd_svm_window *w;
	u64 generation;	/* of the page tables, from before pages are mapped */
	bool writable;	/* by the VMA and the range */
	struct kfd_svm_leave leave;	/* jobs to wait for */
	bool clear;	/* and those before the CPU clears */
	bool waited;	/* without locks */
	struct amdgpu_hmm_range hmm;
	unsigned long pfns[WINDOW_PAGES];
};

static struct amdgpu_device *adev_of(const struct opening *o)
{
	return o->user->pdd->dev->adev;
}

static bool keeps_mapped(const struct opening *o)
{
	return !o->user->p->xnack_enabled;
}

static struct amdgpu_vm *vm_of(const struct opening *o)
{
	return drm_priv_to_vm(o->user->pdd->drm_priv);
}

/* Look at each page as it is: nothing is faulted in. */
static int look_at_pages(struct opening *o, unsigned long start,
			 unsigned long last)
{
	struct hmm_range *hmm = &o->hmm.hmm_range;
	int r;

	hmm->start = start << PAGE_SHIFT;
	hmm->end = (last + 1) << PAGE_SHIFT;
	hmm->hmm_pfns = o->pfns;
	hmm->dev_private_owner = SVM_ADEV_PGMAP_OWNER(adev_of(o));
	memset(o->pfns, 0, (last - start + 1) * sizeof(*o->pfns));
	r = hmm_range_fault(hmm);
	return r == -EBUSY ? -EAGAIN : r;
}

/* The GPU whose video memory the range has a place in, or NULL. */
static struct amdgpu_device *bo_adev_of(const struct svm_range *prange)
{
	/* The range refers to the BO, and drops it with migrate_mutex held. */
	return prange->svm_bo && prange->ttm_res ? prange->svm_bo->node->adev :
						   NULL;
}

/* If it is another GPU, the range is mapped only if each reaches the other. */
static bool range_in_reach(const struct opening *o)
{
	struct amdgpu_device *bo_adev = bo_adev_of(o->prange);

	return !bo_adev || bo_adev == adev_of(o) ||
	       amdgpu_xgmi_same_hive(adev_of(o), bo_adev);
}

/*
 * Pages in video memory have to be where the range has its place: a child of
 * the process has pages of its parent, which are in a BO of the parent.
 *
 * The page may go away before it is locked, but its pagemap stays.
 */
static bool page_in_reach(const struct opening *o, unsigned long pfn)
{
	struct amdgpu_device *bo_adev = bo_adev_of(o->prange);
	struct page *page;

	if (!(pfn & HMM_PFN_VALID) || (o->want->write && !(pfn & HMM_PFN_WRITE)))
		return false;
	page = hmm_pfn_to_page(pfn);
	return !is_zone_device_page(page) ||
	       (bo_adev && page_pgmap(page) == &bo_adev->kfd.pgmap);
}

static bool is_vram(unsigned long pfn)
{
	return is_zone_device_page(hmm_pfn_to_page(pfn));
}

/* Usable like another page, in the same place, and the same BO if in VRAM. */
static bool goes_with(const struct opening *o, unsigned long pfn,
		      unsigned long other)
{
	return page_in_reach(o, pfn) && is_vram(pfn) == is_vram(other) &&
	       !((pfn ^ other) & HMM_PFN_WRITE) &&
	       (!is_vram(pfn) || hmm_pfn_to_page(pfn)->zone_device_data ==
				 hmm_pfn_to_page(other)->zone_device_data);
}

/* Finds the pages around @at that are like it. Returns their PFNs. */
static unsigned long *find_run(struct opening *o, unsigned long start,
			       unsigned long last, unsigned long at)
{
	unsigned long first = at, end = at, *pfns = o->pfns, pfn;
	struct kfd_svm_window *w = o->w;

	pfn = pfns[at - start];
	while (first > start && goes_with(o, pfns[first - 1 - start], pfn))
		first--;
	while (end < last && goes_with(o, pfns[end + 1 - start], pfn))
		end++;
	w->pages.start = first;
	w->pages.last = end;
	w->writable = o->writable && pfn & HMM_PFN_WRITE;
	w->place = KFD_SVM_IN_SYSTEM;
	if (is_vram(pfn))
		w->place = bo_adev_of(o->prange) == adev_of(o) ?
			KFD_SVM_IN_VRAM : KFD_SVM_IN_PEER;
	return pfns + (first - start);
}

static unsigned long run_length(const struct opening *o)
{
	return o->w->pages.last - o->w->pages.start + 1;
}

/* The range's lock is held: the pages stay. */
static int check_run(struct opening *o, const unsigned long *pfns)
{
	struct svm_range_bo *svm_bo = o->prange->svm_bo;
	unsigned long i, n = run_length(o);

	if (!amdgpu_hmm_range_valid(&o->hmm))
		return -EAGAIN;
	if (o->w->place == KFD_SVM_IN_SYSTEM)
		return 0;
	for (i = 0; i < n; i++)
		if (hmm_pfn_to_page(pfns[i])->zone_device_data != svm_bo)
			return -ENXIO;
	return svm_range_bo_lost(svm_bo) ? -EIO : 0;
}

/*
 * A writable page need not be dirty, and reclaim drops a clean one. It stays
 * dirty while the window is open: code that cleans it notifies first.
 */
static void mark_dirty(const struct opening *o, const unsigned long *pfns)
{
	unsigned long i, n = run_length(o);

	for (i = 0; o->w->place == KFD_SVM_IN_SYSTEM && i < n; i++)
		amdgpu_hmm_mark_dirty(hmm_pfn_to_page(pfns[i]));
}

/*
 * Queues that use the pages fault while these are not mapped, and then find
 * them again; their DMA addresses change in between.
 */
static int map_run(struct opening *o, unsigned long *pfns)
{
	DECLARE_BITMAP(gpu, MAX_GPU_INSTANCE) = { };
	struct svm_range *prange = o->prange;
	unsigned long n = run_length(o), offset;
	int r = 0;

	offset = o->w->pages.start - prange->start;
	__set_bit(o->user->gpuidx, gpu);
	if (test_bit(o->user->gpuidx, prange->bitmap_mapped))
		r = svm_range_unmap_from_gpus(prange, o->w->pages.start,
					      o->w->pages.last, gpu,
					      KFD_SVM_UNMAP_TRIGGER_MMU_NOTIFY);
	if (!r)
		r = svm_range_dma_map(prange, gpu, offset, n, pfns);
	/*
	 * The update has to end here: a job on the ring that runs it would
	 * choose its VMID, and whether to flush the TLB of that, before it.
	 */
	if (!r)
		r = svm_range_map_to_gpus(prange, offset, n, !o->w->writable,
					  gpu, true, true);
	return r;
}

/*
 * amdkfd has mapped these pages, unless it was told before they were looked at
 * that they changed.
 */
static int keep_run(struct opening *o)
{
	/* A fault may have removed the mapping since map_range(). */
	if (atomic_read(&o->prange->invalid) ||
	    !svm_range_is_mapped(o->prange, o->user->gpuidx))
		return -EINPROGRESS;
	/*
	 * Other pages may have been mapped there since this VM had its last
	 * job, with queues stopped instead of a flush.
	 */
	amdgpu_vm_flush_next(vm_of(o));
	return 0;
}

/* The pages do not change while the range's lock is held. */
static int open_run(struct opening *o, unsigned long *pfns)
{
	int r = check_run(o, pfns);

	if (r)
		return r;
	r = keeps_mapped(o) ? keep_run(o) : map_run(o, pfns);
	if (r)
		return r;
	if (o->w->writable)
		mark_dirty(o, pfns);
	o->w->generation = o->generation;
	kfd_svm_window_add(o->user, o->w);
	o->w = NULL;
	return 0;
}

/*
 * Close windows that are not good enough, with fewer pages or for reading only,
 * and those of pages that lose their mapping when these are mapped anew.
 * Returns -EAGAIN if there are jobs to wait for first.
 */
static int close_old(struct opening *o)
{
	struct svm_range_list *svms = o->prange->svms;
	struct interval_tree_node *pages = &o->w->pages;
	const u32 gpuidx = o->user->gpuidx;
	struct kfd_svm_leave leave;

	leave = keeps_mapped(o) ?
		kfd_svm_windows_close(svms, pages->start, pages->last,
				      BIT_ULL(gpuidx)) :
		kfd_svm_windows_close_entries(svms, gpuidx, pages->start,
					      pages->last);
	if (!kfd_svm_windows_busy(svms, &leave)) {
		kfd_svm_windows_remove(svms, &leave);
		return 0;
	}
	if (o->want->nonblock)
		return -EBUSY;
	o->leave = leave;
	return -EAGAIN;
}

static bool has_buffer(const struct opening *o)
{
	const u64 each = AMDGPU_GPU_PAGES_IN_CPU_PAGE;

	return interval_tree_iter_first(&vm_of(o)->va, o->w->pages.start * each,
					(o->w->pages.last + 1) * each - 1);
}

/* Allocated now: under the range's lock it would come from the reserves. */
static bool has_addresses(const struct opening *o)
{
	dma_addr_t **addr = &o->prange->dma_addr[o->user->gpuidx];

	if (!*addr)
		*addr = kvzalloc_objs(**addr, o->prange->npages);
	return *addr;
}

static int open_pages(struct opening *o, unsigned long start,
		      unsigned long last, unsigned long at)
{
	unsigned long *pfns;
	int r;

	if (!has_addresses(o))
		return -ENOMEM;
	/* amdgpu_sdma_batch_update_vm() asks the same, but later. */
	if (amdgpu_vm_clear_waits(vm_of(o), &vm_of(o)->freed)) {
		o->clear = !o->want->nonblock;
		return o->clear ? -EAGAIN : -EBUSY;
	}
	/* A later clear of old mappings must not take the new one away. */
	r = amdgpu_vm_clear_freed(adev_of(o), vm_of(o), NULL);
	if (!r)
		r = look_at_pages(o, start, last);
	if (r)
		return r;
	if (!range_in_reach(o) || !page_in_reach(o, o->pfns[at - start]))
		return -ENXIO;
	pfns = find_run(o, start, last, at);
	/* Nor will a buffer be mapped here as long as there is a window. */
	if (has_buffer(o))
		return -ENXIO;
	/* Where engines write the page tables, map_run() waits for earlier jobs. */
	if (o->want->nonblock && !keeps_mapped(o) &&
	    !vm_of(o)->use_cpu_for_update)
		return -EBUSY;
	r = close_old(o);
	if (r)
		return r;
	svm_range_lock(o->prange);
	r = open_run(o, pfns);
	svm_range_unlock(o->prange);
	return r;
}

static int reserve_page_tables(struct opening *o, struct drm_exec *exec)
{
	struct amdgpu_vm *vm = vm_of(o);
	int r;

	drm_exec_init(exec, DRM_EXEC_INTERRUPTIBLE_WAIT, 0);
	drm_exec_until_all_locked(exec) {
		r = amdgpu_vm_lock_pd(vm, exec, 2);
		drm_exec_retry_on_contention(exec);
		if (r)
			break;
	}
	if (!r)
		r = amdgpu_sdma_batch_validate_vm(adev_of(o), vm);
	if (r)
		drm_exec_fini(exec);
	o->generation = amdgpu_vm_generation(adev_of(o), vm);
	return r;
}

static bool has_access(const struct opening *o)
{
	u32 i = o->user->gpuidx;

	return test_bit(i, o->prange->bitmap_access) ||
	       test_bit(i, o->prange->bitmap_aip);
}

/*
 * The worker maps the range. It is about to, if the range is invalid: a call
 * that does not wait leaves it to the worker. Another one first gets the pages
 * here, as it is the one to learn of an error.
 *
 * If a reset has unmapped the range, or mapping it went wrong, the worker has to
 * be told. Queues, which may be using a part of the range, are stopped
 * meanwhile. They would not go on if the worker did not find the pages, so
 * these are got first, even for a call that does not wait.
 */
static int map_range(struct opening *o)
{
	struct svm_range *prange = o->prange;
	int r;

	if (!keeps_mapped(o))
		return 0;
	if (!atomic_read(&prange->invalid) &&
	    svm_range_is_mapped(prange, o->user->gpuidx))
		return 0;
	if (o->want->nonblock && atomic_read(&prange->invalid))
		return -EINPROGRESS;
	r = svm_range_get_pages(prange, o->user->mm);
	if (r)
		return r;
	if (!atomic_read(&prange->invalid)) {
		atomic_inc(&prange->invalid);
		svm_range_stop_queues(prange->svms, o->user->mm);
	}
	return -EINPROGRESS;
}

/*
 * Faults of queues, even of other processes, come after one that waits for the
 * locks, so the first wait is without any. Windows may be opened meanwhile: the
 * next wait is with all locks except those of page tables.
 */
static void wait_for_jobs(struct opening *o)
{
	if (o->clear)
		kfd_svm_wait_to_clear(&o->user->p->svms, vm_of(o), false);
	kfd_svm_windows_wait(&o->user->p->svms, &o->leave);
	o->clear = false;
	o->leave.gpus = 0;
	o->waited = true;
}

static bool has_to_wait(const struct opening *o)
{
	return o->clear || o->leave.gpus;
}

/*
 * An invalidation that waits for jobs may hold mmap_lock, and looking at pages
 * waits for it. So it is waited for before that, the first time, and with
 * NONBLOCK the call fails. One that begins later is waited for with locks.
 */
static int look_for_invalidations(struct opening *o)
{
	struct svm_range_list *svms = &o->user->p->svms;

	if (!atomic_read(&svms->leaving))
		return 0;
	if (o->want->nonblock)
		return -EBUSY;
	if (!o->waited)
		o->leave = kfd_svm_windows_closed(svms);
	return has_to_wait(o) ? -EAGAIN : 0;
}

static int open_reserved(struct opening *o, unsigned long start,
			 unsigned long last, unsigned long at)
{
	struct mmu_interval_notifier *notifier = &o->prange->notifier;
	struct hmm_range *hmm = &o->hmm.hmm_range;
	unsigned int waits = LOCKED_WAITS;
	struct drm_exec exec;
	int r;

	hmm->notifier = notifier;
	for (;;) {
		/* Waits for invalidations: page tables are not locked. */
		hmm->notifier_seq = mmu_interval_read_begin(notifier);
		r = reserve_page_tables(o, &exec);
		if (r)
			return r;
		r = open_pages(o, start, last, at);
		drm_exec_fini(&exec);
		if (!has_to_wait(o) || !o->waited || !waits--)
			return r;
		if (fatal_signal_pending(current))
			return -EINTR;
		wait_for_jobs(o);
	}
}

/* May the job use the page, and which others come along with it? */
static int open_in_range(struct opening *o, unsigned long at)
{
	struct svm_range *prange = o->prange;
	struct vm_area_struct *vma;
	unsigned long start, last;
	int r;

	vma = vma_lookup(o->user->mm, at << PAGE_SHIFT);
	if (!vma)
		return -EFAULT;
	o->writable = vma->vm_flags & VM_WRITE &&
		      !(prange->flags & KFD_IOCTL_SVM_FLAG_GPU_RO);
	if (!(vma->vm_flags & VM_READ) || (o->want->write && !o->writable) ||
	    !has_access(o))
		return -EACCES;
	r = map_range(o);
	if (r)
		return r;
	start = max3(ALIGN_DOWN(at, WINDOW_PAGES), prange->start,
		     vma->vm_start >> PAGE_SHIFT);
	last = min3(ALIGN(at + 1, WINDOW_PAGES) - 1, prange->last,
		    (vma->vm_end >> PAGE_SHIFT) - 1);
	return open_reserved(o, start, last, at);
}

static bool is_open(struct kfd_svm_user *user, unsigned long page, bool write,
		    unsigned long *last)
{
	enum kfd_svm_place place;
	bool found;

	kfd_svm_windows_lock(user);
	found = kfd_svm_window_find(user, page, write, last, &place);
	kfd_svm_windows_unlock(user);
	return found;
}

/*
 * For a page in the GPU's reach. An unmapping goes on with mmap_lock held for
 * reading, and splits ranges: taking it for writing first excludes that.
 */
static int open_at(struct opening *o, unsigned long at)
{
	struct svm_range_list *svms = &o->user->p->svms;
	struct mm_struct *mm = o->user->mm;
	unsigned long last;
	int r = -ENOENT;

	if (!svm_range_list_lock(svms, mm, o->want->nonblock))
		return -EBUSY;
	mmap_write_downgrade(mm);
	mutex_lock(&svms->lock);
	o->prange = svm_range_from_addr(svms, at, NULL);
	if (is_open(o->user, at, o->want->write, &last)) {
		r = 0;
	} else if (o->prange) {
		mutex_lock(&o->prange->migrate_mutex);
		r = open_in_range(o, at);
		mutex_unlock(&o->prange->migrate_mutex);
	}
	mutex_unlock(&svms->lock);
	mmap_read_unlock(mm);
	return r;
}

static int wait_for_worker(struct opening *o)
{
	struct delayed_work *work = &o->user->p->svms.restore_work;

	/* which waits for jobs itself */
	if (o->want->nonblock)
		return -EBUSY;
	/* The worker queues itself again until it has mapped everything. */
	mod_delayed_work(system_freezable_wq, work, 0);
	flush_delayed_work(work);
	return -EAGAIN;
}

/*
 * If pages cannot be used where the range prefers them to be, they are moved to
 * system memory: a page that a child of the process shares cannot be copied in
 * video memory, so it cannot be written there.
 */
static int fault_in(struct opening *o, unsigned long at, bool *prefer)
{
	int r = svm_range_fault_in(o->user, o->want, at, *prefer,
				   o->waited ? NULL : &o->leave);

	/* The pages are there now: look at them again. */
	if (!r) {
		*prefer = false;
		return -EAGAIN;
	}
	if (r == -EBUSY || r == -EAGAIN)
		return o->want->nonblock ? -EBUSY : -EAGAIN;
	return r;
}

/*
 * A caller that calls again after a signal has pages moved from the start: if
 * that takes longer than the time to the next signal, it would never end. So
 * what was begun is tried as often as allowed.
 */
static bool is_interrupted(unsigned int tries)
{
	return fatal_signal_pending(current) ||
	       (signal_pending(current) && (!tries || tries > MAX_TRIES));
}

/* Opens a window with the page @at, and as many neighbours as possible. */
static int open_one(struct opening *o, unsigned long at)
{
	unsigned int tries = 0, changes = 0;
	bool prefer = true;
	int r;

	o->waited = false;
	do {
		if (is_interrupted(tries + changes))
			return -EINTR;
		if (!o->w)
			o->w = kzalloc_obj(*o->w, GFP_KERNEL_ACCOUNT);
		if (!o->w)
			return -ENOMEM;
		r = look_for_invalidations(o);
		if (!r)
			r = open_at(o, at);
		/* Other threads may change pages any number of times. */
		if (r == -EAGAIN && tries) {
			changes++;
		} else if (r == -EINPROGRESS) {
			r = tries++ < MAX_TRIES ? wait_for_worker(o) : -ENXIO;
		} else if (o->want->fault && tries < MAX_TRIES &&
			   (r == -ENXIO || r == -ENOENT)) {
			r = fault_in(o, at, &prefer);
			tries++;
		}
		if (r == -EAGAIN && has_to_wait(o))
			wait_for_jobs(o);
		cond_resched();
	} while (r == -EAGAIN);
	return r;
}

static struct opening *opening_create(struct kfd_svm_user *user,
				      const struct kfd_svm_want *want)
{
	struct opening *o = kvzalloc_obj(*o, GFP_KERNEL_ACCOUNT);

	if (!o)
		return NULL;
	o->user = user;
	o->want = want;
	return o;
}

static void opening_free(struct opening *o)
{
	if (o)
		kfree(o->w);
	kvfree(o);
}

/**
 * kfd_svm_window_open - have memory of the process mapped for jobs
 * @user: user that is about to arm jobs, and holds no locks
 * @want: the memory
 *
 * It may be taken away again before this returns: see kfd_svm_window_find().
 *
 * Return: 0; -ENOENT if the process has not registered memory there; -EFAULT if
 * it has none; -EACCES if the process, or the GPU, may not do that; -ENXIO if
 * the GPU cannot reach pages, and they may not be faulted in; -EIO if a reset
 * has lost them; -EBUSY instead of waiting for earlier jobs; -EINTR, -ENOMEM,
 * or another error of moving them.
 */
int kfd_svm_window_open(struct kfd_svm_user *user,
			const struct kfd_svm_want *want)
{
	unsigned long page = want->start, last;
	struct opening *o = NULL;
	int r = 0;

	/* Before any lock: the handler of faults would wait for it. */
	WRITE_ONCE(user->p->svms.windows_used, true);
	while (!r && page <= want->last) {
		if (is_open(user, page, want->write, &last)) {
			page = last + 1;
			continue;
		}
		/* Most pages are in windows that were opened before. */
		if (!o)
			o = opening_create(user, want);
		r = o ? open_one(o, page) : -ENOMEM;
	}
	opening_free(o);
	return r;
}
