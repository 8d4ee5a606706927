/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for tests of page faults beside SDMA batches: a queue that faults, a
 * held batch, and threads that may have to wait.
 */
#ifndef _SELFTEST_SDMA_SVM_FAULT_H
#define _SELFTEST_SDMA_SVM_FAULT_H

#include <pthread.h>

#include "sdma_hold.h"
#include "sdma_svm_test.h"

#define HUGE_SIZE	SVM_ALIGN

/* A queue of the process; it needs XNACK. */
static inline int queue_open(struct _test_data_svm *self, struct svm_queue *q)
{
	return svm_queue_open(&self->svm, &self->svm.gpu[0], q);
}

/* The queue was expected to fault: its faults do not count. */
static inline void queue_close(struct _test_data_svm *self, struct svm_queue *q)
{
	svm_queue_close(&self->svm, q);
	self->faults = count_faults(self->emulator);
}

static inline void *vram_at(size_t offset)
{
	return (void *)(uintptr_t)(VRAM_VA + offset);
}

/* Drops all pages; new ones are small, and stay in system memory. */
static inline int take_away(struct _test_data_svm *self)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_PREFERRED_LOC,
		KFD_IOCTL_SVM_LOCATION_SYSMEM,
	};

	if (madvise(self->at, SIZE, MADV_NOHUGEPAGE) ||
	    madvise(self->at, SIZE, MADV_DONTNEED))
		return -errno;
	return svm_set(&self->svm, self->at, SIZE, &attr, 1);
}

/*
 * Submits a held batch, which signals a new timeline. It has a context of its
 * own: the next batch of its context would wait for it on the same engine.
 */
static inline int hold_desc(struct _test_data_svm *self, struct hold *hold,
			    struct drm_amdgpu_sdma_desc d, uint32_t *timeline)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	int ret = syncobj_new(&self->gpu, timeline);

	if (!ret)
		ret = gpu_context(&self->gpu, &batch.ctx_id);
	hold_batch(hold, &batch);
	return ret ? ret : batch_submit_to(&self->gpu, &batch, *timeline, 1);
}

/* The same, with a copy of a page to video memory. */
static inline int hold_page(struct _test_data_svm *self, struct hold *hold,
			    uint32_t *timeline)
{
	return hold_desc(self, hold, copy_desc(va(self->at), VRAM_VA, PAGE),
			 timeline);
}

/* The time after which the driver hears of a late fault. */
#define LATE_US		2000000

static inline int set_late(struct _test_data_svm *self, unsigned int us)
{
	char delay[32];

	snprintf(delay, sizeof(delay), "irq delay %u", us);
	return emulator_all(self->emulator, delay);
}

static inline int wait_for_first_fault(struct _test_data_svm *self)
{
	unsigned int tries;

	for (tries = 0; tries < 500; tries++) {
		if (count_faults(self->emulator) > self->faults)
			return 0;
		usleep(1000);
	}
	return -ETIME;
}

/*
 * A fault has occurred, of which the driver is told late. Before that, a held
 * batch has opened its window there.
 */
static inline int hold_before_fault(struct _test_data_svm *self,
				    struct hold *hold, uint32_t *timeline)
{
	int ret = wait_for_first_fault(self);

	if (!ret)
		ret = hold_page(self, hold, timeline);
	set_late(self, 0);
	usleep(LATE_US + 500000);
	return ret;
}

/* A thread that may have to wait. */
struct helper {
	pthread_t thread;
	struct _test_data_svm *self;
	struct svm_queue *queue;
	const uint8_t *from;
	struct buffer *buffer;
	uint64_t handle;
	uint32_t fence;
	bool stop;
	bool done;
	int ret;
};

static inline bool is_done(struct helper *h)
{
	return __atomic_load_n(&h->done, __ATOMIC_ACQUIRE);
}

static inline void done(struct helper *h, int ret)
{
	h->ret = ret;
	__atomic_store_n(&h->done, true, __ATOMIC_RELEASE);
}

static inline bool wait_done(struct helper *h, unsigned int seconds)
{
	unsigned int tries;

	for (tries = 0; tries < seconds * 100 && !is_done(h); tries++)
		usleep(10000);
	return is_done(h);
}

/* In a thread: a batch on the page beside that of the held batch. */
static inline void *copy_beside(void *arg)
{
	struct helper *h = arg;

	done(h, copy(h->self, va(h->self->at + PAGE), VRAM_VA + PAGE, PAGE));
	return NULL;
}

/* The same, but the page may have to be faulted in. */
static inline void *bring_beside(void *arg)
{
	struct helper *h = arg;

	done(h, copy_flags(h->self, va(h->self->at + PAGE), VRAM_VA + PAGE,
			   PAGE, AMDGPU_SDMA_DESC_FAULT, NULL));
	return NULL;
}

/* In a thread: unmaps all of the memory. */
static inline void *unmap_all(void *arg)
{
	struct helper *h = arg;

	done(h, munmap(h->self->at, SIZE));
	return NULL;
}

/* In a thread: takes mmap_lock, and has a page fault. */
static inline void *touch_new_memory(void *arg)
{
	struct helper *h = arg;
	uint8_t *new = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (new != MAP_FAILED)
		new[0] = 1;
	done(h, new == MAP_FAILED ? -errno : 0);
	return NULL;
}

#endif
