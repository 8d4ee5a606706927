// SPDX-License-Identifier: MIT
/**
 * DOC: Windows on SVM memory
 *
 * Queues of the process fault, or are stopped, when SVM memory is not where
 * they look for it. A job of the kernel can do neither: its memory has to be
 * mapped when the job is armed, and stay mapped until the job has ended.
 *
 * A window states that one GPU has some pages mapped, as they are. It is opened
 * when a job wants the pages, and closed before anything about them changes: by
 * the MMU notifier, when the process changes the attributes of the range,
 * before a notifier is removed, and before pages are mapped again, as their DMA
 * addresses change then. Pages leave video memory by a migration, which
 * notifies as well. Where one entry of a page directory maps many pages, a
 * change of some of them takes away the mapping of the others: the windows on
 * all of them are closed.
 *
 * A thread that arms jobs holds the lock of the windows from its last look at
 * them until the fences of the jobs are in the process's list, one for each
 * GPU, of jobs that use SVM memory. A thread that closes windows takes this
 * lock, closes them, drops the lock, and waits for these fences, except those
 * of jobs armed later. So a job either finds its window closed, and is not
 * armed; or it is waited for.
 *
 * A closed window stays until its jobs have been waited for: another thread may
 * be about to change other pages of it, and has to wait as well. It is removed
 * when a thread that saw it closed has waited.
 *
 * Reclaim waits here, too. It waits for jobs that end on their own: their
 * fences depend on nothing but other fences, and their waits for values in
 * memory are bounded in time. A thread with the lock allocates nothing, and
 * waits for nothing. Locks are taken in this order: mmap_lock, the lock of the
 * ranges, a range's migrate_mutex, reservations, a range's lock, this lock, and
 * within it that of the device's user pointers, to arm jobs that use both.
 * Reclaim may hold all but the last, but a range's lock only of another range:
 * amdkfd holds one while it allocates page tables, for which TTM may evict
 * memory. Other waiters hold the first three at most: a job may come after one
 * of AMDGPU_CS, whose fault ends with the page tables locked. If reclaim
 * prevents that, as it may for user pointers too, the timeout of the ring ends
 * the job.
 */

#include <linux/interval_tree.h>

#include "amdgpu_reset.h"
#include "kfd_priv.h"
#include "kfd_svm.h"
#include "kfd_svm_window.h"

static_assert(sizeof(u64) * BITS_PER_BYTE >= MAX_GPU_INSTANCE);

/* From this number on, all are searched for those that have ended. */
#define SVM_JOBS	64u

static struct kfd_svm_window *to_window(struct interval_tree_node *node)
{
	return container_of(node, struct kfd_svm_window, pages);
}

static struct amdgpu_vm *vm_of(struct kfd_process_device *pdd)
{
	return drm_priv_to_vm(pdd->drm_priv);
}

static u64 generation_of(struct kfd_process_device *pdd)
{
	return amdgpu_vm_generation(pdd->dev->adev, vm_of(pdd));
}

static struct kfd_process_device *pdd_of(struct svm_range_list *svms, u32 gpuidx)
{
	struct kfd_process *p = container_of(svms, struct kfd_process, svms);

	return kfd_process_device_from_gpuidx(p, gpuidx);
}

/**
 * kfd_svm_windows_init - initialize the windows of a new process
 * @svms: ranges of the process
 */
void kfd_svm_windows_init(struct svm_range_list *svms)
{
	mutex_init(&svms->windows_lock);
	svms->windows = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&svms->windows_closed);
	svms->windows_seq = 0;
	svms->windows_used = false;
	atomic_set(&svms->leaving, 0);
	atomic64_set(&svms->lost, 0);
	kfd_svm_faults_init(svms);
}

/**
 * kfd_svm_windows_fini - free the windows of a process
 * @svms: ranges of the process; there are none any more
 */
void kfd_svm_windows_fini(struct svm_range_list *svms)
{
	struct interval_tree_node *node;

	/* Windows that a reset closed without waiting for their jobs. */
	while ((node = interval_tree_iter_first(&svms->windows, 0, ULONG_MAX))) {
		interval_tree_remove(node, &svms->windows);
		kfree(to_window(node));
		cond_resched();
	}
	mutex_destroy(&svms->windows_lock);
}

static void add_closed(struct kfd_svm_leave *leave,
		       const struct kfd_svm_window *w)
{
	leave->gpus |= BIT_ULL(w->gpuidx);
	leave->seq = max(leave->seq, w->closed);
}

static struct kfd_svm_leave close_windows(struct svm_range_list *svms,
					  unsigned long start,
					  unsigned long last, u64 gpus)
{
	struct kfd_svm_leave leave = { .start = start, .last = last };
	struct interval_tree_node *node;

	lockdep_assert_held(&svms->windows_lock);
	node = interval_tree_iter_first(&svms->windows, start, last);
	for (; node; node = interval_tree_iter_next(node, start, last)) {
		struct kfd_svm_window *w = to_window(node);

		if (!(gpus & BIT_ULL(w->gpuidx)))
			continue;
		if (!w->closed) {
			w->closed = ++svms->windows_seq;
			list_add_tail(&w->list, &svms->windows_closed);
		}
		add_closed(&leave, w);
	}
	return leave;
}

/**
 * kfd_svm_windows_close - keep further jobs from using pages as they are
 * @svms: ranges of the process
 * @start: first page
 * @last: last page
 * @gpus: GPUs whose windows are closed, by their indices in the process
 *
 * Jobs that have been armed go on: see kfd_svm_windows_wait().
 *
 * Return: what kfd_svm_windows_wait() takes; if its gpus member is 0, there is
 * nothing to wait for.
 */
struct kfd_svm_leave kfd_svm_windows_close(struct svm_range_list *svms,
					   unsigned long start,
					   unsigned long last, u64 gpus)
{
	guard(mutex)(&svms->windows_lock);
	return close_windows(svms, start, last, gpus);
}

/**
 * kfd_svm_windows_close_entries - close windows before pages are mapped again
 * @svms: ranges of the process
 * @gpuidx: the GPU's index in the process; its page tables are reserved
 * @start: first page
 * @last: last page
 *
 * Return: as kfd_svm_windows_close(), from the first page of the entry that
 * maps @start to the last page of the entry that maps @last.
 */
struct kfd_svm_leave kfd_svm_windows_close_entries(struct svm_range_list *svms,
						   u32 gpuidx,
						   unsigned long start,
						   unsigned long last)
{
	const u64 each = AMDGPU_GPU_PAGES_IN_CPU_PAGE;
	struct kfd_process_device *pdd = pdd_of(svms, gpuidx);
	struct amdgpu_device *adev = pdd->dev->adev;
	u64 first, end, other;

	amdgpu_vm_pt_entry(adev, vm_of(pdd), start * each, &first, &other);
	amdgpu_vm_pt_entry(adev, vm_of(pdd), (last + 1) * each - 1, &other, &end);
	return kfd_svm_windows_close(svms, first / each, end / each,
				     BIT_ULL(gpuidx));
}

static void free_job(struct kfd_svm_job *job)
{
	list_del(&job->list);
	dma_fence_put(job->fence);
	kfree(job);
}

/* A job that has ended is freed. */
static bool has_ended(struct kfd_process_device *pdd, struct kfd_svm_job *job)
{
	if (!dma_fence_is_signaled(job->fence))
		return false;
	free_job(job);
	pdd->num_svm_jobs--;
	return true;
}

/*
 * Returns a reference to the fence of a job that has not ended, and was armed
 * before the windows were closed; or NULL.
 */
static struct dma_fence *find_busy(struct svm_range_list *svms,
				   const struct kfd_svm_leave *leave)
{
	struct kfd_process_device *pdd;
	struct kfd_svm_job *job, *next;
	u32 i;

	lockdep_assert_held(&svms->windows_lock);
	for (i = 0; i < MAX_GPU_INSTANCE; i++) {
		if (!(leave->gpus & BIT_ULL(i)))
			continue;
		pdd = pdd_of(svms, i);
		list_for_each_entry_safe(job, next, &pdd->svm_jobs, list) {
			/* Jobs are in the order in which they were armed. */
			if (job->seq >= leave->seq)
				break;
			if (!has_ended(pdd, job))
				return dma_fence_get(job->fence);
		}
	}
	return NULL;
}

static struct dma_fence *get_busy(struct svm_range_list *svms,
				  const struct kfd_svm_leave *leave)
{
	guard(mutex)(&svms->windows_lock);
	return find_busy(svms, leave);
}

/**
 * kfd_svm_windows_busy - would kfd_svm_windows_wait() wait?
 * @svms: ranges of the process
 * @leave: from kfd_svm_windows_close()
 *
 * Return: true if it would.
 */
bool kfd_svm_windows_busy(struct svm_range_list *svms,
			  const struct kfd_svm_leave *leave)
{
	struct dma_fence *fence = get_busy(svms, leave);

	dma_fence_put(fence);
	return fence;
}

/**
 * kfd_svm_windows_closed - find the windows that a thread may be waiting for
 * @svms: ranges of the process
 *
 * Return: all windows that are closed, for kfd_svm_windows_wait().
 */
struct kfd_svm_leave kfd_svm_windows_closed(struct svm_range_list *svms)
{
	struct kfd_svm_leave leave = { .start = ULONG_MAX };
	struct kfd_svm_window *w;

	mutex_lock(&svms->windows_lock);
	list_for_each_entry(w, &svms->windows_closed, list) {
		leave.start = min(leave.start, w->pages.start);
		leave.last = max(leave.last, w->pages.last);
		add_closed(&leave, w);
	}
	mutex_unlock(&svms->windows_lock);
	return leave;
}

static void remove_windows(struct svm_range_list *svms,
			   const struct kfd_svm_leave *leave)
{
	struct interval_tree_node *node, *next;

	lockdep_assert_held(&svms->windows_lock);
	node = interval_tree_iter_first(&svms->windows, leave->start,
					leave->last);
	for (; node; node = next) {
		struct kfd_svm_window *w = to_window(node);

		next = interval_tree_iter_next(node, leave->start, leave->last);
		if (!w->closed || w->closed > leave->seq ||
		    !(leave->gpus & BIT_ULL(w->gpuidx)))
			continue;
		interval_tree_remove(node, &svms->windows);
		list_del(&w->list);
		kfree(w);
	}
}

/**
 * kfd_svm_windows_remove - forget closed windows
 * @svms: ranges of the process
 * @leave: from kfd_svm_windows_close(); all jobs that it stands for were seen
 *	to have ended
 */
void kfd_svm_windows_remove(struct svm_range_list *svms,
			    const struct kfd_svm_leave *leave)
{
	guard(mutex)(&svms->windows_lock);
	remove_windows(svms, leave);
}

/**
 * kfd_svm_windows_have_none - close windows, and forget them if they are idle
 * @user: user that holds the lock of the windows
 * @start: first page
 * @last: last page
 *
 * Return: true if no job uses them.
 */
bool kfd_svm_windows_have_none(struct kfd_svm_user *user, unsigned long start,
			       unsigned long last)
{
	struct svm_range_list *svms = &user->p->svms;
	const struct kfd_svm_leave leave =
		close_windows(svms, start, last, BIT_ULL(user->gpuidx));
	struct dma_fence *fence = find_busy(svms, &leave);

	dma_fence_put(fence);
	if (!fence)
		remove_windows(svms, &leave);
	return !fence;
}

/**
 * kfd_svm_windows_wait - wait for the jobs that use pages
 * @svms: ranges of the process
 * @leave: from kfd_svm_windows_close()
 *
 * GPU recovery takes down the mappings of the device's files, and a range may
 * be where one of them is now. Recovery must not wait, and need not: the
 * mapping that replaced the range's memory closed the windows, and waited.
 */
void kfd_svm_windows_wait(struct svm_range_list *svms,
			  const struct kfd_svm_leave *leave)
{
	struct dma_fence *fence;

	if (!leave->gpus || amdgpu_reset_unmaps())
		return;
	/* Code that must not wait checks this: the waiter may hold locks. */
	atomic_inc(&svms->leaving);
	while ((fence = get_busy(svms, leave))) {
		dma_fence_wait(fence, false);
		dma_fence_put(fence);
	}
	atomic_dec(&svms->leaving);
	kfd_svm_windows_remove(svms, leave);
}

/**
 * kfd_svm_windows_leave - close windows, and wait for the jobs
 * @svms: ranges of the process
 * @start: first page
 * @last: last page
 *
 * The caller keeps new windows from being opened.
 */
void kfd_svm_windows_leave(struct svm_range_list *svms, unsigned long start,
			   unsigned long last)
{
	struct kfd_svm_leave leave = kfd_svm_windows_close(svms, start, last,
							   KFD_SVM_ALL_GPUS);

	kfd_svm_windows_wait(svms, &leave);
}

/**
 * kfd_svm_windows_in_vm - are there windows where a buffer is to be mapped?
 * @vm: of a file, with page tables reserved; no windows are opened meanwhile
 * @first: GPU page
 * @last: GPU page
 *
 * Return: true if there are, also closed ones whose jobs may still run.
 */
bool kfd_svm_windows_in_vm(struct amdgpu_vm *vm, u64 first, u64 last)
{
	const u64 each = AMDGPU_GPU_PAGES_IN_CPU_PAGE;
	struct interval_tree_node *node;
	struct kfd_process *p;
	bool found = false;

	if (!vm->is_compute_context)
		return false;
	p = kfd_lookup_process_by_pasid(vm->pasid, NULL);
	if (!p)
		return false;
	mutex_lock(&p->svms.windows_lock);
	node = interval_tree_iter_first(&p->svms.windows, first / each,
					last / each);
	for (; node && !found;
	     node = interval_tree_iter_next(node, first / each, last / each))
		found = vm_of(pdd_of(&p->svms, to_window(node)->gpuidx)) == vm;
	mutex_unlock(&p->svms.windows_lock);
	kfd_unref_process(p);
	return found;
}

/**
 * kfd_svm_gpuidx - find the GPU that has SVM memory in a VM
 * @p: process
 * @vm: of a file
 *
 * Return: its index in the process, or -ENOENT.
 */
int kfd_svm_gpuidx(struct kfd_process *p, const struct amdgpu_vm *vm)
{
	u32 i;

	for (i = 0; i < p->n_pdds; i++)
		/* Set once the VM has been acquired for good. */
		if (smp_load_acquire(&p->pdds[i]->drm_file) &&
		    vm_of(p->pdds[i]) == vm &&
		    test_bit(i, p->svms.bitmap_supported))
			return i;
	return -ENOENT;
}

/**
 * kfd_svm_user_get - find the SVM memory that is mapped in a VM
 * @user: result
 * @vm: of a file that the caller uses
 *
 * Return: true if the caller's process uses this VM for its SVM memory.
 */
bool kfd_svm_user_get(struct kfd_svm_user *user, struct amdgpu_vm *vm)
{
	struct kfd_process *p;
	int gpuidx;

	if (!vm->is_compute_context || !current->mm)
		return false;
	p = kfd_lookup_process_by_mm(current->mm);
	if (!p)
		return false;
	gpuidx = kfd_svm_gpuidx(p, vm);
	if (gpuidx < 0) {
		kfd_unref_process(p);
		return false;
	}
	user->p = p;
	user->mm = current->mm;
	user->pdd = p->pdds[gpuidx];
	user->gpuidx = gpuidx;
	INIT_LIST_HEAD(&user->jobs);
	return true;
}

/**
 * kfd_svm_user_put - drop the reference of kfd_svm_user_get()
 * @user: from kfd_svm_user_get(), or all zero
 */
void kfd_svm_user_put(struct kfd_svm_user *user)
{
	if (user->p)
		kfd_unref_process(user->p);
	user->p = NULL;
}

/**
 * kfd_svm_windows_lock - keep windows from being closed
 * @user: user that looks at them, or arms jobs
 *
 * The caller must not allocate memory, nor wait for anything, until
 * kfd_svm_windows_unlock().
 */
void kfd_svm_windows_lock(struct kfd_svm_user *user)
{
	mutex_lock(&user->p->svms.windows_lock);
	user->generation = generation_of(user->pdd);
	memset(user->found, 0, sizeof(user->found));
}

/**
 * kfd_svm_windows_unlock - let windows be closed again
 * @user: from kfd_svm_windows_lock(); jobs that it has armed have been passed
 *	to kfd_svm_jobs_add()
 */
void kfd_svm_windows_unlock(struct kfd_svm_user *user)
{
	mutex_unlock(&user->p->svms.windows_lock);
}

/*
 * Forget jobs that have ended. Those after one that is still running are
 * checked when there are twice as many.
 */
static void forget_jobs(struct kfd_process_device *pdd)
{
	const bool all = pdd->num_svm_jobs >= pdd->max_svm_jobs;
	struct kfd_svm_job *job, *next;

	list_for_each_entry_safe(job, next, &pdd->svm_jobs, list)
		if (!has_ended(pdd, job) && !all)
			break;
	if (all)
		pdd->max_svm_jobs = max(2 * pdd->num_svm_jobs, SVM_JOBS);
}

/**
 * kfd_svm_jobs_reserve - make room for the fences of jobs
 * @user: user that is about to arm jobs
 * @num: number of fences
 *
 * Return: 0, or -ENOMEM if no room was made.
 */
int kfd_svm_jobs_reserve(struct kfd_svm_user *user, unsigned int num)
{
	struct kfd_svm_job *job;

	for (; num; num--) {
		job = kzalloc_obj(*job, GFP_KERNEL_ACCOUNT);
		if (!job) {
			kfd_svm_jobs_unreserve(user);
			return -ENOMEM;
		}
		list_add(&job->list, &user->jobs);
	}
	return 0;
}

/**
 * kfd_svm_jobs_add - have threads that close windows wait for this job
 * @user: after kfd_svm_jobs_reserve() and kfd_svm_windows_lock()
 * @fence: of the job
 */
void kfd_svm_jobs_add(struct kfd_svm_user *user, struct dma_fence *fence)
{
	struct svm_range_list *svms = &user->p->svms;
	struct kfd_svm_job *job;

	lockdep_assert_held(&svms->windows_lock);
	job = list_first_entry(&user->jobs, struct kfd_svm_job, list);
	job->fence = dma_fence_get(fence);
	job->seq = svms->windows_seq;
	list_move_tail(&job->list, &user->pdd->svm_jobs);
	user->pdd->num_svm_jobs++;
}

/**
 * kfd_svm_jobs_unreserve - give back the room that is left
 * @user: user that has armed jobs, or not; without the lock of the windows
 */
void kfd_svm_jobs_unreserve(struct kfd_svm_user *user)
{
	struct kfd_svm_job *job, *next;

	list_for_each_entry_safe(job, next, &user->jobs, list)
		free_job(job);
	mutex_lock(&user->p->svms.windows_lock);
	forget_jobs(user->pdd);
	mutex_unlock(&user->p->svms.windows_lock);
}

/**
 * kfd_svm_jobs_init - initialize the jobs of a GPU in a process
 * @pdd: the GPU
 */
void kfd_svm_jobs_init(struct kfd_process_device *pdd)
{
	INIT_LIST_HEAD(&pdd->svm_jobs);
	pdd->num_svm_jobs = 0;
	pdd->max_svm_jobs = SVM_JOBS;
}

/**
 * kfd_svm_jobs_fini - free the jobs of a process that is about to be freed
 * @pdd: as for kfd_svm_jobs_init()
 */
void kfd_svm_jobs_fini(struct kfd_process_device *pdd)
{
	struct kfd_svm_job *job, *next;

	list_for_each_entry_safe(job, next, &pdd->svm_jobs, list)
		free_job(job);
}

/**
 * kfd_svm_leave_add - merge two, to wait for both at once
 * @leave: from kfd_svm_windows_close(), or all zero; result: the union
 * @other: from kfd_svm_windows_close()
 */
void kfd_svm_leave_add(struct kfd_svm_leave *leave,
		       const struct kfd_svm_leave *other)
{
	if (!other->gpus)
		return;
	if (!leave->gpus) {
		*leave = *other;
		return;
	}
	leave->start = min(leave->start, other->start);
	leave->last = max(leave->last, other->last);
	leave->seq = max(leave->seq, other->seq);
	leave->gpus |= other->gpus;
}

/**
 * kfd_svm_windows_mark - note the state of the windows
 * @user: user that holds the lock of the windows
 *
 * Return: for kfd_svm_windows_unchanged().
 */
struct kfd_svm_mark kfd_svm_windows_mark(struct kfd_svm_user *user)
{
	lockdep_assert_held(&user->p->svms.windows_lock);
	return (struct kfd_svm_mark) {
		.seq = user->p->svms.windows_seq,
		.generation = user->generation,
	};
}

/**
 * kfd_svm_windows_unchanged - do all windows of a mark still exist?
 * @user: user that holds the lock of the windows
 * @mark: from kfd_svm_windows_mark(), for the same VM: no other process gets it
 *
 * Return: true if none has been closed, or lost in a reset.
 */
bool kfd_svm_windows_unchanged(struct kfd_svm_user *user,
			       const struct kfd_svm_mark *mark)
{
	lockdep_assert_held(&user->p->svms.windows_lock);
	return mark->seq == user->p->svms.windows_seq &&
	       mark->generation == user->generation;
}

/* Can a window that contains the page be used for this? */
static bool can_use(const struct kfd_svm_user *user,
		    const struct kfd_svm_window *w, bool write)
{
	return !w->closed && w->gpuidx == user->gpuidx &&
	       (!write || w->writable) && w->generation == user->generation;
}

static struct kfd_svm_window *find_window(struct kfd_svm_user *user,
					  unsigned long page, bool write)
{
	struct svm_range_list *svms = &user->p->svms;
	struct interval_tree_node *node;

	node = interval_tree_iter_first(&svms->windows, page, page);
	for (; node; node = interval_tree_iter_next(node, page, page))
		if (can_use(user, to_window(node), write))
			return to_window(node);
	return NULL;
}

/**
 * kfd_svm_window_find - is a page mapped?
 * @user: user that holds the lock of the windows
 * @page: address
 * @write: to be written
 * @last: result: the last page of which the same is true
 * @place: result: where they are
 *
 * Return: true if it is.
 */
bool kfd_svm_window_find(struct kfd_svm_user *user, unsigned long page,
			 bool write, unsigned long *last,
			 enum kfd_svm_place *place)
{
	struct kfd_svm_window *w = user->found[write];

	lockdep_assert_held(&user->p->svms.windows_lock);
	/* Most memory of a job is near what it used before. */
	if (!w || page < w->pages.start || page > w->pages.last)
		w = find_window(user, page, write);
	if (!w)
		return false;
	user->found[write] = w;
	*last = w->pages.last;
	*place = w->place;
	return true;
}

/**
 * kfd_svm_window_add - let jobs use pages
 * @user: user whose GPU has them mapped
 * @w: all but the GPU is filled in; it cannot be closed yet
 */
void kfd_svm_window_add(struct kfd_svm_user *user, struct kfd_svm_window *w)
{
	struct svm_range_list *svms = &user->p->svms;

	w->gpuidx = user->gpuidx;
	w->closed = 0;
	mutex_lock(&svms->windows_lock);
	interval_tree_insert(&w->pages, &svms->windows);
	mutex_unlock(&svms->windows_lock);
}
