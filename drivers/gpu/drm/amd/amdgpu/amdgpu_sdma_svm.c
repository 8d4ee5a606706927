// SPDX-License-Identifier: MIT
/**
 * DOC: SVM memory in SDMA batches
 *
 * On the file whose VM amdkfd has acquired, an address at which no buffer is
 * mapped may be one of the process: SVM memory. A batch uses it where it is, in
 * system memory or in video memory, through windows: see kfd_svm_window.c.
 *
 * An attempt notes what descriptors name, and looks for windows. If one is
 * missing, the attempt gives up. Windows are then opened with no lock held, and
 * the call starts again, as it does for user pointers. In the end, the call
 * takes the lock that keeps windows from being closed and looks at them once
 * more if any has been closed. It arms the jobs, and drops the lock when their
 * fences are where code that closes windows looks for them.
 *
 * A prepared batch keeps the addresses. Each run needs windows for them.
 */

#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "amdgpu.h"
#include "amdgpu_sdma_batch_internal.h"
#include "amdgpu_sdma_svm.h"
#include "amdgpu_sdma_user_pages.h"

/*
 * Windows to look at before the lock is dropped for code that closes windows.
 * Only the last look, before jobs are armed, keeps it: that has to see all
 * windows at once. What a batch may name is its only bound, or some batches
 * would never run while windows that are not theirs are being closed.
 */
#define LOOKS		256

/**
 * amdgpu_sdma_svm_find_process - does the VM have SVM memory?
 * @b: call
 *
 * Returns: true if it has that of the caller's process.
 */
bool amdgpu_sdma_svm_find_process(struct amdgpu_sdma_batch *b)
{
	struct kfd_svm_user *user = &b->user->svm.user;

	return user->p || kfd_svm_user_get(user, &b->fpriv->vm);
}

static int append(struct amdgpu_sdma_svm *svm,
		  const struct amdgpu_sdma_svm_range *new)
{
	struct amdgpu_sdma_svm_range *ranges;
	u32 room;

	if (svm->num == svm->max) {
		room = max(2 * svm->max, 16);
		ranges = kvrealloc(svm->ranges,
				   array_size(room, sizeof(*ranges)),
				   GFP_KERNEL_ACCOUNT);
		if (!ranges)
			return -ENOMEM;
		svm->ranges = ranges;
		svm->max = room;
	}
	svm->ranges[svm->num++] = *new;
	svm->seen = false;
	return 0;
}

/**
 * amdgpu_sdma_svm_add - note SVM memory that a descriptor names
 * @b: call with descriptors, has locked the VM
 * @r: range of a descriptor
 * @page: GPU page in @r, from which on no buffer is mapped
 *
 * Returns: 0, -ENOENT if the VM has no SVM memory, -ENOMEM.
 */
int amdgpu_sdma_svm_add(struct amdgpu_sdma_batch *b,
			const struct amdgpu_sdma_range *r, u64 page)
{
	struct amdgpu_sdma_svm_range new = {
		.first = max(r->start, page << AMDGPU_GPU_PAGE_SHIFT),
		.last = r->last, .desc = r->desc,
		.read = r->read, .write = r->write,
	};

	if (!amdgpu_sdma_svm_find_process(b))
		return -ENOENT;
	/* Records of the batch are its own output, not that of a descriptor. */
	new.fault = r->desc == AMDGPU_SDMA_NO_INDEX;
	if (!new.fault) {
		const struct amdgpu_sdma_head *d = sdma_head(&b->plan, r->desc);

		new.add = d->op == AMDGPU_SDMA_OP_ADD && r->read;
		new.fault = d->flags & AMDGPU_SDMA_DESC_FAULT;
	}
	return append(b->svm, &new);
}

/* As amdgpu_sdma_batch_can_add(). A peer's memory is reached only by XGMI. */
static bool can_add(const struct amdgpu_device *adev, enum kfd_svm_place place)
{
	return place != KFD_SVM_IN_SYSTEM || adev->have_atomics_support;
}

/* A look at all windows, with their lock held. */
struct look {
	struct kfd_svm_user *user;
	u32 looks;	/* so far */
	bool yields;	/* drops the lock now and then */
	u64 bytes[KFD_SVM_PLACES];
};

static int count_look(struct look *l)
{
	if (!l->yields || ++l->looks % LOOKS)
		return 0;
	kfd_svm_windows_unlock(l->user);
	cond_resched();
	kfd_svm_windows_lock(l->user);
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/* -EAGAIN if there is no window for a page. */
static int look_at_range(struct amdgpu_sdma_batch *b,
			 const struct amdgpu_sdma_svm_range *r, struct look *l)
{
	u64 first, last, times = r->read && r->write ? 2 : 1;
	unsigned long page, last_page = 0;
	enum kfd_svm_place place;
	int ret;

	for (page = r->first >> PAGE_SHIFT; page <= r->last >> PAGE_SHIFT;
	     page = last_page + 1) {
		ret = count_look(l);
		if (ret)
			return ret;
		if (!kfd_svm_window_find(l->user, page, r->write, &last_page,
					 &place))
			return -EAGAIN;
		if (r->add && !can_add(b->adev, place)) {
			if (b->args->op != AMDGPU_SDMA_BATCH_RUN)
				b->args->error_index = r->desc;
			return -EOPNOTSUPP;
		}
		/* the path of a batch is the path of its descriptors */
		if (r->desc == AMDGPU_SDMA_NO_INDEX)
			continue;
		first = max(r->first, (u64)page << PAGE_SHIFT);
		last = min(r->last, ((u64)(last_page + 1) << PAGE_SHIFT) - 1);
		l->bytes[place] += times * (last - first + 1);
	}
	return 0;
}

/* Updates the path that the call reports: @bytes replaces the bytes so far. */
static void tell_path(struct amdgpu_sdma_batch *b, const u64 *bytes)
{
	struct amdgpu_sdma_svm *svm = b->svm;

	if (b->args->flags & AMDGPU_SDMA_BATCH_PATH) {
		b->args->vram_bytes += bytes[KFD_SVM_IN_VRAM] -
				       svm->bytes[KFD_SVM_IN_VRAM];
		b->args->system_bytes += bytes[KFD_SVM_IN_SYSTEM] -
					 svm->bytes[KFD_SVM_IN_SYSTEM];
		b->args->peer_bytes += bytes[KFD_SVM_IN_PEER] -
				       svm->bytes[KFD_SVM_IN_PEER];
	}
	memcpy(svm->bytes, bytes, sizeof(svm->bytes));
}

static int keep_wants(struct amdgpu_sdma_batch *b, u32 missing)
{
	struct amdgpu_sdma_svm_wants *wants = &b->user->svm;
	u32 i;

	wants->want = kvmalloc_array(missing, sizeof(*wants->want),
				     GFP_KERNEL_ACCOUNT);
	if (!wants->want)
		return -ENOMEM;
	for (i = 0; i < b->svm->num; i++) {
		const struct amdgpu_sdma_svm_range *r = &b->svm->ranges[i];

		if (!r->missing)
			continue;
		wants->want[wants->num++] = (struct amdgpu_sdma_svm_want) {
			.window = {
				.start = r->first >> PAGE_SHIFT,
				.last = r->last >> PAGE_SHIFT,
				.write = r->write, .fault = r->fault,
				.nonblock = b->nonblock,
			},
			.desc = r->desc,
		};
	}
	b->user->again = true;
	return 0;
}

/* Notes which ranges have no window; returns how many, or an error. */
static int look_at_all(struct amdgpu_sdma_batch *b, struct look *l)
{
	struct amdgpu_sdma_svm *svm = b->svm;
	int r, missing = 0;
	u32 i;

	svm->seen = false;
	svm->mark = kfd_svm_windows_mark(l->user);
	for (i = 0; i < svm->num; i++) {
		r = look_at_range(b, &svm->ranges[i], l);
		if (r && (r != -EAGAIN || !l->yields))
			return r;
		svm->ranges[i].missing = r;
		missing += !!r;
	}
	svm->seen = !missing;
	return missing;
}

/**
 * amdgpu_sdma_svm_use - look for windows on what the batch names
 * @b: call, has locked the VM
 *
 * If one is missing, the attempt looks for what else it needs, then gives up.
 *
 * Returns: 0, -EOPNOTSUPP if an ADD is out of the engine's reach, or -ENOMEM.
 */
int amdgpu_sdma_svm_use(struct amdgpu_sdma_batch *b)
{
	struct look look = { .user = &b->user->svm.user, .yields = true };
	struct amdgpu_sdma_svm *svm = b->svm;
	int r = 0;

	if (!svm->num)
		return 0;
	kfd_svm_windows_lock(look.user);
	/* Most runs of a prepared batch find them as the previous run did. */
	if (svm->seen && kfd_svm_windows_unchanged(look.user, &svm->mark))
		memcpy(look.bytes, svm->bytes, sizeof(look.bytes));
	else
		r = look_at_all(b, &look);
	kfd_svm_windows_unlock(look.user);
	if (r < 0)
		return r;
	if (r)
		return keep_wants(b, r);
	memset(svm->bytes, 0, sizeof(svm->bytes));
	tell_path(b, look.bytes);
	return 0;
}

/**
 * amdgpu_sdma_svm_reserve_fences - make room for the fences of the jobs
 * @b: call, has locked the VM
 *
 * Returns: 0 or -ENOMEM.
 */
int amdgpu_sdma_svm_reserve_fences(struct amdgpu_sdma_batch *b)
{
	int r;

	if (!b->svm->num)
		return 0;
	r = kfd_svm_jobs_reserve(&b->user->svm.user, b->num_jobs);
	b->svm_reserved = !r;
	return r;
}

/**
 * amdgpu_sdma_svm_fence - keep SVM memory busy until the jobs have ended
 * @b: call after amdgpu_sdma_svm_lock(); the jobs are armed
 */
void amdgpu_sdma_svm_fence(struct amdgpu_sdma_batch *b)
{
	unsigned int i;

	for (i = 0; b->svm_reserved && i < b->num_jobs; i++)
		kfd_svm_jobs_add(&b->user->svm.user,
				 &b->jobs[i]->base.s_fence->finished);
}

/**
 * amdgpu_sdma_svm_unreserve - the opposite of amdgpu_sdma_svm_reserve_fences()
 * @b: call that has unlocked the windows, or has not reserved
 */
void amdgpu_sdma_svm_unreserve(struct amdgpu_sdma_batch *b)
{
	if (b->svm_reserved)
		kfd_svm_jobs_unreserve(&b->user->svm.user);
}

/**
 * amdgpu_sdma_svm_lock - keep windows open until jobs are armed and fenced
 * @b: call for which amdgpu_sdma_svm_use() has found windows
 *
 * Returns: 0, -EAGAIN if the call starts again, -EOPNOTSUPP.
 */
int amdgpu_sdma_svm_lock(struct amdgpu_sdma_batch *b)
{
	struct look look = { .user = &b->user->svm.user };
	struct amdgpu_sdma_svm *svm = b->svm;
	int r;

	if (!svm->num)
		return 0;
	kfd_svm_windows_lock(look.user);
	if (kfd_svm_windows_unchanged(look.user, &svm->mark))
		return 0;
	r = look_at_all(b, &look);
	if (!r) {
		tell_path(b, look.bytes);
		return 0;
	}
	kfd_svm_windows_unlock(look.user);
	b->user->again = r == -EAGAIN;
	return r;
}

/**
 * amdgpu_sdma_svm_unlock - let windows be closed
 * @b: call after amdgpu_sdma_svm_lock()
 */
void amdgpu_sdma_svm_unlock(struct amdgpu_sdma_batch *b)
{
	if (b->svm->num)
		kfd_svm_windows_unlock(&b->user->svm.user);
}

/* A prepared batch has no descriptors: for it, mappings have changed. */
static int tell_error(struct drm_amdgpu_sdma_batch *args,
		      const struct amdgpu_sdma_svm_want *want, int r)
{
	const u32 desc = want->desc;

	/* The call would have to wait for earlier batches. */
	if (r == -EBUSY && want->window.nonblock)
		return -EAGAIN;
	if (args->op == AMDGPU_SDMA_BATCH_RUN)
		return r == -ENOENT || r == -EFAULT ? -ESTALE : r;
	if (r == -EINTR || r == -ERESTARTSYS || r == -ENOMEM || desc == AMDGPU_SDMA_NO_INDEX)
		return r;
	args->error_index = desc;
	args->error_array = AMDGPU_SDMA_ERROR_DESC;
	return r;
}

/**
 * amdgpu_sdma_svm_faults_in - was faulting in or migrating memory asked for?
 * @wants: what an attempt has found missing
 *
 * Returns: true if opening one of the windows may do so.
 */
bool amdgpu_sdma_svm_faults_in(const struct amdgpu_sdma_svm_wants *wants)
{
	u32 i;

	for (i = 0; i < wants->num; i++)
		if (wants->want[i].window.fault)
			return true;
	return false;
}

/**
 * amdgpu_sdma_svm_get - open the windows that an attempt wanted
 * @wants: of a call that holds no lock
 * @args: of the call; gets the index of a descriptor that is at fault
 *
 * Returns: 0 if the call may start again, or an error of kfd_svm_window_open().
 */
int amdgpu_sdma_svm_get(struct amdgpu_sdma_svm_wants *wants,
			struct drm_amdgpu_sdma_batch *args)
{
	int r = 0;
	u32 i;

	for (i = 0; !r && i < wants->num; i++) {
		r = kfd_svm_window_open(&wants->user, &wants->want[i].window);
		if (r)
			r = tell_error(args, &wants->want[i], r);
	}
	kvfree(wants->want);
	wants->want = NULL;
	wants->num = 0;
	return r;
}

/**
 * amdgpu_sdma_svm_fini - the call is over
 * @wants: of a call that holds no lock
 */
void amdgpu_sdma_svm_fini(struct amdgpu_sdma_svm_wants *wants)
{
	kvfree(wants->want);
	kfd_svm_user_put(&wants->user);
}
