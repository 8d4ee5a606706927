// SPDX-License-Identifier: MIT
/**
 * DOC: User pointers in SDMA batches
 *
 * A user pointer is a buffer whose pages are those that the process has at an
 * address. The process may lose them at any time. The buffer's MMU notifier
 * learns of that, and waits until all that was submitted to the file's VM has
 * ended. Then the pages are gone.
 *
 * Getting the pages may fault them in, which needs locks that come before those
 * of buffers. So a call that finds a user pointer whose pages may not be valid
 * notes it, gives up, gets the pages with no lock held, and starts again. Pages
 * that were valid for an earlier call, and have not been invalidated since,
 * cost only a comparison.
 *
 * Before the jobs are armed, the call takes the lock that notifiers take and
 * checks all user pointers once more. If one was invalidated meanwhile, the
 * call starts again. If not, it keeps the lock until the fences of the jobs are
 * where notifiers look for them. From then on a notifier waits for the jobs,
 * which end without help: see the documentation of waits.
 *
 * Under the lock, pages that the batch may write to are marked dirty: reclaim
 * would discard what was written to a clean one.
 *
 * User pointers of amdkfd are the same, but amdkfd gets their pages. When one
 * is invalidated, amdkfd stops the queues of the process, and its worker
 * restores everything. So a call that finds one invalidated waits for that
 * worker before it starts again.
 *
 * A process that invalidates its own memory all the time keeps only itself
 * waiting: its call starts again until signals come.
 */

#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/xarray.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_hmm.h"
#include "amdgpu_sdma_batch_internal.h"
#include "amdgpu_sdma_user_pages.h"

/* Attempts of a call that gets signals, or finds its VM busy. */
#define MAX_ATTEMPTS	32
/* As many pages are marked in about a millisecond. */
#define PAGES_AT_ONCE	SZ_64K
/* As many user pointers are looked at in that time, one after the other. */
#define MAX_GEM_POINTERS	SZ_16K

/*
 * Locks that notifiers take. amdkfd's is the process's own, held while its
 * queues are stopped. GEM's is the device's: its holder keeps others waiting.
 */
#define GEM_LOCK	BIT(0)
#define KFD_LOCK	BIT(1)

/**
 * struct user_pages - pages of a user pointer, as a call has obtained them
 * @bo: user pointer; a reference
 * @range: the pages, or NULL
 * @wanted: the next attempt needs the pages
 * @error: why they could not be obtained, or 0
 */
struct user_pages {
	struct amdgpu_bo *bo;
	struct amdgpu_hmm_range *range;
	bool wanted;
	int error;
};

static bool is_user_pointer(const struct amdgpu_bo *bo)
{
	return amdgpu_ttm_tt_get_usermm(bo->tbo.ttm);
}

static u32 lock_of(const struct amdgpu_bo *bo)
{
	return bo->kfd_bo ? KFD_LOCK : GEM_LOCK;
}

static struct user_pages *find(struct amdgpu_sdma_user_pages *user,
			       const struct amdgpu_bo *bo)
{
	return xa_load(&user->pages, (unsigned long)bo);
}

static struct user_pages *add(struct amdgpu_sdma_user_pages *user,
			      struct amdgpu_bo *bo)
{
	struct user_pages *p = kzalloc_obj(*p, GFP_KERNEL_ACCOUNT);
	int r;

	if (!p)
		return ERR_PTR(-ENOMEM);
	r = xa_insert(&user->pages, (unsigned long)bo, p, GFP_KERNEL_ACCOUNT);
	if (r) {
		kfree(p);
		return ERR_PTR(r);
	}
	p->bo = amdgpu_bo_ref(bo);
	return p;
}

/* The call gives up, and starts again with the pages. */
static int want(struct amdgpu_sdma_batch *b, struct amdgpu_bo *bo)
{
	struct user_pages *p = find(b->user, bo);

	if (!p)
		p = add(b->user, bo);
	if (IS_ERR(p))
		return PTR_ERR(p);
	p->wanted = true;
	b->user->again = true;
	return 0;
}

/* As command submission does: see amdgpu_cs_parser_bos(). */
static int set_pages(struct amdgpu_bo *bo, struct amdgpu_hmm_range *range)
{
	struct ttm_operation_ctx ctx = { .interruptible = true };
	int r;

	/* unbinds the old ones, when nothing uses them any more */
	amdgpu_bo_placement_from_domain(bo, AMDGPU_GEM_DOMAIN_CPU);
	r = ttm_bo_validate(&bo->tbo, &bo->placement, &ctx);
	if (!r)
		amdgpu_ttm_tt_set_user_pages(bo->tbo.ttm, range);
	return r;
}

/* No worker of amdkfd is about to change them, and engines reach them. */
static bool kfd_pages_valid(struct amdgpu_bo *bo)
{
	return !READ_ONCE(bo->kfd_bo->invalid) && bo->tbo.resource &&
	       bo->tbo.resource->mem_type != TTM_PL_SYSTEM;
}

/* This can change unless the notifier's lock, or amdkfd's, is held. */
static bool pages_valid(struct amdgpu_bo *bo)
{
	return amdgpu_ttm_tt_user_pages_valid(bo) &&
	       (!bo->kfd_bo || kfd_pages_valid(bo));
}

static int use_pages(struct amdgpu_sdma_batch *b, struct amdgpu_bo *bo)
{
	struct user_pages *p;

	if (!is_user_pointer(bo) || pages_valid(bo))
		return 0;
	if (bo->kfd_bo)
		return want(b, bo);
	p = find(b->user, bo);
	if (!p || !amdgpu_hmm_range_valid(p->range))
		return want(b, bo);
	return set_pages(bo, p->range);
}

/**
 * amdgpu_sdma_user_pages_check - may the batch use this user pointer?
 * @b: call, has locked the buffer
 * @bo: user pointer
 *
 * Returns: 0, -EPERM if another process or file made it, or the error of
 * getting the pages: -EFAULT if the process has none, -EACCES if it may not
 * write to them.
 */
int amdgpu_sdma_user_pages_check(struct amdgpu_sdma_batch *b,
				 const struct amdgpu_bo *bo)
{
	const struct user_pages *p;

	if (amdgpu_ttm_tt_get_usermm(bo->tbo.ttm) != current->mm)
		return -EPERM;
	/* Its notifier waits only for the VM of the file that made it. */
	if (!bo->kfd_bo && bo->parent != b->fpriv->vm.root.bo)
		return -EPERM;
	b->notifier_locks |= lock_of(bo);
	p = find(b->user, bo);
	return p ? p->error : 0;
}

/*
 * Notifiers of other processes wait while the user pointers of GEM are looked
 * at: so other buffers are not, and there may not be any number of pointers.
 */
static int put_user_pointers_first(struct amdgpu_sdma_batch *b)
{
	u32 i, gem = 0;

	b->num_user = 0;
	for (i = 0; b->notifier_locks && i < b->num_bo_vas; i++) {
		struct amdgpu_bo *bo = b->bo_vas[i]->base.bo;

		if (!is_user_pointer(bo))
			continue;
		swap(b->bo_vas[i], b->bo_vas[b->num_user]);
		b->num_user++;
		gem += lock_of(bo) == GEM_LOCK;
	}
	return gem > MAX_GEM_POINTERS ? -EMSGSIZE : 0;
}

/**
 * amdgpu_sdma_user_pages_use - give the batch the memory of the process
 * @b: call, has locked the buffers and not validated them
 *
 * Returns: 0; -EAGAIN if the call starts again with pages; -EMSGSIZE if there
 * are too many user pointers; or another error.
 */
int amdgpu_sdma_user_pages_use(struct amdgpu_sdma_batch *b)
{
	u32 i;
	int r;

	r = amdgpu_sdma_svm_use(b);
	if (r)
		return r;
	r = put_user_pointers_first(b);
	if (r)
		return r;
	for (i = 0; i < b->num_user; i++) {
		r = use_pages(b, b->bo_vas[i]->base.bo);
		if (r)
			return r;
	}
	return b->user->again ? -EAGAIN : 0;
}

static struct mutex *notifier_lock(struct amdgpu_sdma_batch *b, u32 lock)
{
	return lock == KFD_LOCK ? &b->fpriv->vm.process_info->notifier_lock :
				  &b->adev->notifier_lock;
}

/* True if all pages that @lock protects are valid; @lock is held. */
static bool all_valid(const struct amdgpu_sdma_batch *b, u32 lock)
{
	u32 i;

	for (i = 0; i < b->num_user; i++) {
		struct amdgpu_bo *bo = b->bo_vas[i]->base.bo;

		if (lock_of(bo) == lock && !pages_valid(bo))
			return false;
	}
	return true;
}

static void unlock_pages(struct amdgpu_sdma_batch *b, u32 lock)
{
	if (b->notifier_locks & lock)
		mutex_unlock(notifier_lock(b, lock));
}

/* The call starts again, and gets the pages. */
static int pages_lost(struct amdgpu_sdma_batch *b)
{
	b->user->again = true;
	return -EAGAIN;
}

static int lock_pages(struct amdgpu_sdma_batch *b, u32 lock)
{
	if (!(b->notifier_locks & lock))
		return 0;
	mutex_lock(notifier_lock(b, lock));
	if (all_valid(b, lock))
		return 0;
	unlock_pages(b, lock);
	return pages_lost(b);
}

/*
 * Marks a slice of the pages as dirty, of user pointers from @at on. A pointer
 * takes its time even if all of its pages are dirty.
 */
static int mark_slice(struct amdgpu_sdma_batch *b, u32 lock, u32 *at)
{
	unsigned long room = PAGES_AT_ONCE;

	for (; *at < b->num_user && room; ++*at) {
		struct amdgpu_bo *bo = b->bo_vas[*at]->base.bo;

		room--;
		if (lock_of(bo) != lock)
			continue;
		if (!pages_valid(bo))
			return pages_lost(b);
		if (!amdgpu_ttm_tt_dirty_user_pages(bo, &room))
			break;
	}
	return 0;
}

/*
 * A user pointer may have any number of pages, and notifiers of other processes
 * wait for the lock: so it is released between two slices. A page that was
 * marked stays dirty as long as it is valid, and so until all locks are taken.
 */
static int mark_pages(struct amdgpu_sdma_batch *b, u32 lock)
{
	u32 at = b->notifier_locks & lock ? 0 : b->num_user;
	int r = 0;

	while (!r && at < b->num_user) {
		mutex_lock(notifier_lock(b, lock));
		r = mark_slice(b, lock, &at);
		mutex_unlock(notifier_lock(b, lock));
		cond_resched();
	}
	return r;
}

/**
 * amdgpu_sdma_user_pages_lock - keep the pages until jobs are armed and fenced
 * @b: call; the buffers are valid
 *
 * No memory may be allocated until amdgpu_sdma_user_pages_unlock().
 *
 * Returns: 0, -EAGAIN if the call starts again, or an error of
 * amdgpu_sdma_svm_lock().
 */
int amdgpu_sdma_user_pages_lock(struct amdgpu_sdma_batch *b)
{
	int r;

	r = mark_pages(b, KFD_LOCK);
	if (!r)
		r = mark_pages(b, GEM_LOCK);
	if (!r)
		r = lock_pages(b, KFD_LOCK);
	if (r)
		return r;
	r = amdgpu_sdma_svm_lock(b);
	if (r)
		goto unlock_kfd;
	/* The device's lock is last: nothing is waited for while it is held. */
	r = lock_pages(b, GEM_LOCK);
	if (!r)
		return 0;
	amdgpu_sdma_svm_unlock(b);
unlock_kfd:
	unlock_pages(b, KFD_LOCK);
	return r;
}

/**
 * amdgpu_sdma_user_pages_unlock_device - let notifiers of other processes go on
 * @b: call; the fences of its VM, for which they wait, are there
 */
void amdgpu_sdma_user_pages_unlock_device(struct amdgpu_sdma_batch *b)
{
	unlock_pages(b, GEM_LOCK);
}

/**
 * amdgpu_sdma_user_pages_unlock - let notifiers of the process go on
 * @b: call; all fences are where notifiers look for them, and the device's lock
 *	has been released
 */
void amdgpu_sdma_user_pages_unlock(struct amdgpu_sdma_batch *b)
{
	amdgpu_sdma_svm_unlock(b);
	unlock_pages(b, KFD_LOCK);
}

/*
 * Code that frees the memory takes it off its list, under the lock of the
 * process, before it removes the notifier.
 */
static bool is_freed(const struct kgd_mem *mem)
{
	lockdep_assert_held(&mem->process_info->lock);
	return list_empty(&mem->validate_list);
}

static int get_kfd_pages(struct amdgpu_bo *bo, struct amdgpu_hmm_range *range)
{
	struct kgd_mem *mem = bo->kfd_bo;
	int r = -EFAULT;

	mutex_lock(&mem->process_info->lock);
	/* A signal may have interrupted the call that frees it half-way. */
	if (!is_freed(mem))
		r = amdgpu_ttm_tt_get_user_pages(bo, range);
	mutex_unlock(&mem->process_info->lock);
	return r;
}

/*
 * Binds valid pages in a buffer that is not bound. Takes the lock that the
 * worker holds: the worker does not expect others to bind what it has unbound.
 */
static int bind_kfd_pages(struct amdgpu_bo *bo)
{
	struct ttm_operation_ctx ctx = { .interruptible = true };
	struct kgd_mem *mem = bo->kfd_bo;
	int r;

	mutex_lock(&mem->process_info->lock);
	r = amdgpu_bo_reserve(bo, false);
	if (r)
		goto unlock;
	if (!is_freed(mem) && !READ_ONCE(mem->invalid) &&
	    amdgpu_ttm_tt_user_pages_valid(bo)) {
		amdgpu_bo_placement_from_domain(bo, mem->domain);
		r = ttm_bo_validate(&bo->tbo, &bo->placement, &ctx);
	}
	amdgpu_bo_unreserve(bo);
unlock:
	mutex_unlock(&mem->process_info->lock);
	return r;
}

/* The worker gets the pages. Getting them here first shows that it can. */
static int wait_for_kfd(struct amdgpu_bo *bo)
{
	int r = amdgpu_amdkfd_restore_userptr(bo->kfd_bo);

	return r ? r : bind_kfd_pages(bo);
}

static int get_pages(struct user_pages *p)
{
	int r;

	amdgpu_hmm_range_free(p->range);
	p->range = amdgpu_hmm_range_alloc(NULL);
	if (!p->range)
		return -ENOMEM;
	if (p->bo->kfd_bo)
		r = get_kfd_pages(p->bo, p->range);
	else
		r = amdgpu_ttm_tt_get_user_pages(p->bo, p->range);
	if (!r && p->bo->kfd_bo)
		r = wait_for_kfd(p->bo);
	switch (r) {
	case 0:
	/* It was invalidated again and again: the next attempt wants it. */
	case -EAGAIN:
		return 0;
	case -EPERM:
		r = -EACCES;
		fallthrough;
	case -EFAULT:
		/* The next attempt finds which descriptor is at fault. */
		p->error = r;
		return 0;
	default:
		return r;
	}
}

/*
 * A caller that calls again after a signal has to get all pages again. If that
 * takes longer than until the next signal, the call would never end. A worker
 * of io_uring does not call again: this flag means that the command is
 * cancelled.
 */
static bool is_interrupted(struct amdgpu_sdma_user_pages *user)
{
	if (current->flags & PF_IO_WORKER &&
	    test_thread_flag(TIF_NOTIFY_SIGNAL))
		return true;
	return fatal_signal_pending(current) ||
	       (signal_pending(current) && user->attempts > MAX_ATTEMPTS);
}

/**
 * amdgpu_sdma_user_pages_wait - wait for the VM's jobs before the next attempt
 * @b: call that has page tables locked, and would wait for these jobs
 *
 * While other threads give the VM jobs all the time, no attempt would find it
 * idle: after some of them, the call waits where it is.
 *
 * Returns: -EAGAIN, or 0 if the call waits where it is.
 */
int amdgpu_sdma_user_pages_wait(struct amdgpu_sdma_batch *b)
{
	if (!b->nonblock) {
		if (b->user->attempts > MAX_ATTEMPTS)
			return 0;
		b->user->busy = &b->fpriv->vm;
		b->user->again = true;
	}
	return -EAGAIN;
}

/**
 * amdgpu_sdma_user_pages_get - get what an attempt wanted, and wait if it would
 * @user: of a call that holds no lock
 * @args: of the call, see amdgpu_sdma_svm_get()
 *
 * Returns: 0 if the call may start again, -EINTR or -ERESTARTSYS if a signal
 * came, -ENOMEM, -ESRCH, -ENODEV from amdgpu_amdkfd_restore_userptr(), or an
 * error of amdgpu_sdma_svm_get().
 */
int amdgpu_sdma_user_pages_get(struct amdgpu_sdma_user_pages *user,
			       struct drm_amdgpu_sdma_batch *args)
{
	struct user_pages *p;
	unsigned long i;
	int r;

	user->again = false;
	user->attempts++;
	if (user->busy) {
		r = amdgpu_vm_wait_to_clear(user->busy, true);
		if (r)
			return r;
		user->busy = NULL;
	}
	r = amdgpu_sdma_svm_get(&user->svm, args);
	if (r)
		return r;
	xa_for_each(&user->pages, i, p) {
		if (is_interrupted(user))
			return -EINTR;
		if (!p->wanted)
			continue;
		p->wanted = false;
		r = get_pages(p);
		if (r)
			return r;
	}
	return is_interrupted(user) ? -EINTR : 0;
}

/**
 * amdgpu_sdma_user_pages_init - before the first attempt
 * @user: of a call
 */
void amdgpu_sdma_user_pages_init(struct amdgpu_sdma_user_pages *user)
{
	memset(user, 0, sizeof(*user));
	xa_init(&user->pages);
}

/**
 * amdgpu_sdma_user_pages_fini - the call is over
 * @user: of a call that holds no lock
 */
void amdgpu_sdma_user_pages_fini(struct amdgpu_sdma_user_pages *user)
{
	struct user_pages *p;
	unsigned long i;

	xa_for_each(&user->pages, i, p) {
		amdgpu_hmm_range_free(p->range);
		amdgpu_bo_unref(&p->bo);
		kfree(p);
	}
	xa_destroy(&user->pages);
	amdgpu_sdma_svm_fini(&user->svm);
}
