// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on SVM memory with NONBLOCK: where a call would have to wait for
 * earlier batches, it fails instead. And what goes on while a call waits.
 */
#include "sdma_svm_fault.h"

/*
 * With XNACK, mapping a page beside those that an earlier batch uses has to
 * wait for that batch: with NONBLOCK the call fails. Mapped pages need no wait.
 */
TEST_F(svm, nonblock)
{
	const struct drm_amdgpu_sdma_desc some = copy_desc(va(self->at),
							   VRAM_VA, PAGE),
		others = copy_desc(va(self->at) + PAGE, VRAM_VA + PAGE, PAGE);
	struct drm_amdgpu_sdma_batch same = batch_of(&self->gpu, &some, 1),
		more = batch_of(&self->gpu, &others, 1);
	struct hold hold;
	uint32_t timeline;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_NOHUGEPAGE));
	if (variant->xnack)
		ASSERT_EQ(0, madvise(self->at, SIZE, MADV_DONTNEED));
	memcpy(self->at, self->want, PAGE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	same.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(0, answer_now(&self->gpu, &hold, &same));
	/* a page of the process that the GPU has not mapped */
	memcpy(self->at + PAGE, self->want + PAGE, PAGE);
	more.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(variant->xnack ? -EAGAIN : 0,
		  answer_now(&self->gpu, &hold, &more));
	EXPECT_EQ(AMDGPU_SDMA_ERROR_NONE, more.error_array);
	EXPECT_EQ(AMDGPU_SDMA_NO_INDEX, more.error_index);
	EXPECT_EQ(variant->xnack, !more.engines_used);
	hold_release(&hold);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, batch_run(&self->gpu, &more));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, 2 * PAGE));
}

/*
 * Outside of the 2 MiB of those pages, a call does not have to wait for the
 * batch: pages are brought at once if the descriptor asks for it.
 */
TEST_F(svm, nonblock_brings)
{
	uint8_t *absent = self->at + SVM_ALIGN;
	struct drm_amdgpu_sdma_desc in = copy_desc(VRAM_VA + MIB, va(absent),
						   4 * PAGE);
	struct drm_amdgpu_sdma_batch more = batch_of(&self->gpu, &in, 1);
	struct hold hold;
	uint32_t timeline;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_NOHUGEPAGE));
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_DONTNEED));
	memcpy(self->at, self->want, PAGE);
	memcpy(self->vram.cpu + MIB, self->want + MIB, 4 * PAGE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	more.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	if (variant->xnack) {
		EXPECT_EQ(-ENXIO, answer_now(&self->gpu, &hold, &more));
		EXPECT_EQ(0, more.error_index);
	}
	in = faulting(in);
	more = batch_of(&self->gpu, &in, 1);
	more.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(0, answer_now(&self->gpu, &hold, &more));
	hold_release(&hold);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	/* after it, on the same engines */
	more.flags = 0;
	ASSERT_EQ(0, batch_run(&self->gpu, &more));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	EXPECT_EQ(0, memcmp(absent, self->want + MIB, 4 * PAGE));
}

/* Beside those pages, the call would have to wait: it fails instead. */
TEST_F(svm, nonblock_brings_beside)
{
	const struct drm_amdgpu_sdma_desc in =
		faulting(copy_desc(VRAM_VA + MIB, va(self->at + PAGE),
				   4 * PAGE));
	struct drm_amdgpu_sdma_batch more = batch_of(&self->gpu, &in, 1);
	struct hold hold;
	uint32_t timeline;

	if (!variant->xnack)
		SKIP(return, "what is registered is mapped");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_NOHUGEPAGE));
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_DONTNEED));
	memcpy(self->at, self->want, PAGE);
	memcpy(self->vram.cpu + MIB, self->want + MIB, 4 * PAGE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	more.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, answer_now(&self->gpu, &hold, &more));
	EXPECT_EQ(AMDGPU_SDMA_ERROR_NONE, more.error_array);
	hold_release(&hold);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	more.flags = 0;
	ASSERT_EQ(0, batch_run(&self->gpu, &more));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	EXPECT_EQ(0, memcmp(self->at + PAGE, self->want + MIB, 4 * PAGE));
}

/* Copies a page to its offset in video memory. */
static struct drm_amdgpu_sdma_desc copy_away(struct _test_data_svm *self,
					     uint8_t *page)
{
	return copy_desc(va(page), VRAM_VA + (page - self->at), PAGE);
}

/* Two batches, of which the first ends before the later one. */
struct two_held {
	struct hold first, later;
	uint32_t done, done_later;
};

/*
 * The first is held on a page, and a call with NONBLOCK wants the one beside
 * it. Then the later one is held elsewhere, and the first is released.
 */
static void hold_later(struct __test_metadata *_metadata,
		       struct _test_data_svm *self, struct two_held *held,
		       uint8_t *page, uint8_t *elsewhere,
		       struct drm_amdgpu_sdma_batch *beside)
{
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, PAGE);
	memcpy(self->at + SVM_ALIGN, self->want + SVM_ALIGN, PAGE);
	ASSERT_EQ(0, hold_desc(self, &held->first, copy_away(self, page),
			       &held->done));
	memcpy(page + PAGE, self->want + (page - self->at) + PAGE, PAGE);
	beside->flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, answer_now(&self->gpu, &held->first, beside));
	ASSERT_EQ(0, hold_desc(self, &held->later, copy_away(self, elsewhere),
			       &held->done_later));
	hold_release(&held->first);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, held->done, 1, WAIT_SECONDS));
}

/*
 * Nor does the call have to wait for a batch that has begun since the windows
 * at that page were closed: that batch does not use it.
 */
TEST_F(svm, nonblock_beside_later)
{
	const struct drm_amdgpu_sdma_desc d = copy_away(self, self->at + PAGE);
	struct drm_amdgpu_sdma_batch more = batch_of(&self->gpu, &d, 1);
	struct two_held held;

	if (!variant->xnack)
		SKIP(return, "what is registered is mapped");
	if (hold_open(&self->gpu, &held.first) ||
	    hold_open(&self->gpu, &held.later))
		SKIP(return, "no sw_sync to hold batches back with");
	hold_later(_metadata, self, &held, self->at, self->at + SVM_ALIGN, &more);
	EXPECT_EQ(0, answer_now(&self->gpu, &held.later, &more));
	hold_release(&held.later);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, held.done_later, 1, WAIT_SECONDS));
	more.flags = 0;
	EXPECT_EQ(0, batch_run(&self->gpu, &more));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, 2 * PAGE));
	EXPECT_EQ(0, memcmp(self->vram.cpu + SVM_ALIGN, self->want + SVM_ALIGN,
			    PAGE));
}

/*
 * Unmapping both waits for the batch that uses the first page, though the
 * window on the second one was closed before that batch began.
 */
TEST_F(svm, unmapping_waits_for_later)
{
	uint8_t *second = self->at + SVM_ALIGN;
	const struct drm_amdgpu_sdma_desc d = copy_away(self, second + PAGE);
	struct drm_amdgpu_sdma_batch more = batch_of(&self->gpu, &d, 1);
	struct helper h = { .self = self };
	struct two_held held;

	if (!variant->xnack)
		SKIP(return, "what is registered is mapped");
	if (hold_open(&self->gpu, &held.first) ||
	    hold_open(&self->gpu, &held.later))
		SKIP(return, "no sw_sync to hold batches back with");
	hold_later(_metadata, self, &held, second, self->at, &more);
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, unmap_all, &h));
	EXPECT_FALSE(wait_done(&h, 1));
	hold_release(&held.later);
	ASSERT_EQ(0, pthread_join(h.thread, NULL));
	EXPECT_EQ(0, h.ret);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, held.done_later, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	EXPECT_EQ(0, memcmp(self->vram.cpu + SVM_ALIGN, self->want + SVM_ALIGN,
			    PAGE));
}

/* KFD's worker waits for the batch: the call does not wait for the worker. */
TEST_F(svm, nonblock_behind_worker)
{
	uint8_t *other = self->at + SVM_ALIGN + PAGE;
	const struct drm_amdgpu_sdma_desc rest = copy_desc(va(other),
							   VRAM_VA + PAGE,
							   PAGE);
	struct drm_amdgpu_sdma_batch more = batch_of(&self->gpu, &rest, 1);
	struct hold hold;
	uint32_t timeline;

	if (variant->xnack)
		SKIP(return, "the worker maps nothing");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	ASSERT_EQ(0, madvise(self->at + SVM_ALIGN, PAGE, MADV_DONTNEED));
	more.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, answer_now(&self->gpu, &hold, &more));
	hold_release(&hold);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	more.flags = 0;
	EXPECT_EQ(0, batch_run(&self->gpu, &more));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	EXPECT_EQ(0, memcmp(self->vram.cpu + PAGE,
			    self->want + SVM_ALIGN + PAGE, PAGE));
}

/*
 * Entries of what was unmapped have to be cleared before a window is opened.
 * The CPU does that when all earlier batches have ended.
 */
TEST_F(svm, nonblock_behind_unmapped)
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(va(self->at),
							VRAM_VA + PAGE, PAGE);
	const struct drm_amdgpu_sdma_desc first = fill_desc(VRAM_VA, PAGE, 7);
	struct drm_amdgpu_sdma_batch held = batch_of(&self->gpu, &first, 1),
		more = batch_of(&self->gpu, &d, 1);
	struct buffer other;
	struct hold hold;
	uint32_t timeline;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, buffer_map(&self->gpu, &other, MIB, AMDGPU_GEM_DOMAIN_GTT,
				VRAM_VA + 64 * MIB));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &timeline));
	hold_batch(&hold, &held);
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &held, timeline, 1));
	ASSERT_EQ(0, buffer_va(&self->gpu, &other, AMDGPU_VA_OP_UNMAP, other.va,
			       AMDGPU_VM_DELAY_UPDATE));
	more.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, answer_now(&self->gpu, &hold, &more));
	EXPECT_EQ(AMDGPU_SDMA_ERROR_NONE, more.error_array);
	hold_release(&hold);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, batch_run(&self->gpu, &more));
	EXPECT_EQ(0, memcmp(self->vram.cpu + PAGE, self->want, PAGE));
	buffer_free(&self->gpu, &other);
}

/* Keeps new stacks of threads away from memory that is to be dropped. */
static void guard(struct _test_data_svm *self)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;

	mmap(self->at - PAGE, PAGE, PROT_NONE, flags, -1, 0);
	mmap(self->at + SIZE, PAGE, PROT_NONE, flags, -1, 0);
}

static void *drop_page(void *arg)
{
	struct helper *h = arg;

	done(h, madvise(h->self->at, PAGE, MADV_DONTNEED) ? -errno : 0);
	return NULL;
}

static void *protect_page(void *arg)
{
	struct helper *h = arg;

	done(h, mprotect(h->self->at, PAGE, PROT_READ) ? -errno : 0);
	return NULL;
}

static void *unmap_page(void *arg)
{
	struct helper *h = arg;

	done(h, munmap(h->self->at, PAGE) ? -errno : 0);
	return NULL;
}

/*
 * A thread that takes a page away waits for the batch: the call does not wait
 * for that thread. Memory is mapped before, as the thread may hold mmap_lock.
 */
static void nonblock_behind(struct __test_metadata *_metadata,
			    struct _test_data_svm *self,
			    void *(*take)(void *helper),
			    struct drm_amdgpu_sdma_desc d)
{
	struct drm_amdgpu_sdma_batch more = batch_of(&self->gpu, &d, 1);
	struct helper helper = { .self = self };
	struct hold hold;
	uint32_t timeline;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_NOHUGEPAGE));
	memcpy(self->at, self->want, 2 * PAGE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	ASSERT_EQ(0, pthread_create(&helper.thread, NULL, take, &helper));
	EXPECT_FALSE(wait_done(&helper, 1));
	more.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, batch_submit(&self->gpu, &more));
	EXPECT_FALSE(is_done(&helper));
	hold_release(&hold);
	pthread_join(helper.thread, NULL);
	EXPECT_EQ(0, helper.ret);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	more.flags = 0;
	EXPECT_EQ(0, batch_run(&self->gpu, &more));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
}

static struct drm_amdgpu_sdma_desc beside(struct _test_data_svm *self)
{
	return copy_desc(va(self->at + PAGE), VRAM_VA + PAGE, PAGE);
}

TEST_F(svm, nonblock_behind_dropped)
{
	nonblock_behind(_metadata, self, drop_page, beside(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, 2 * PAGE));
}

TEST_F(svm, nonblock_behind_protected)
{
	nonblock_behind(_metadata, self, protect_page, beside(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, 2 * PAGE));
}

TEST_F(svm, nonblock_behind_unmapping)
{
	nonblock_behind(_metadata, self, unmap_page, beside(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, 2 * PAGE));
}

/* Nor does a call wait that faults in memory which no GPU has used. */
TEST_F(svm, nonblock_brings_behind_dropped)
{
	uint8_t *fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!variant->xnack)
		SKIP(return, "nothing is registered by a fault");
	ASSERT_NE(MAP_FAILED, fresh);
	nonblock_behind(_metadata, self, drop_page,
			faulting(copy_desc(VRAM_VA, va(fresh), PAGE)));
	EXPECT_EQ(0, memcmp(fresh, self->want, PAGE));
}

/* A call that may wait does so without a lock: the process maps memory. */
TEST_F(svm, waits_behind_dropped)
{
	struct helper dropper = { .self = self }, copier = dropper, h = dropper;
	struct hold hold;
	uint32_t timeline;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_NOHUGEPAGE));
	guard(self);
	memcpy(self->at, self->want, 2 * PAGE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	ASSERT_EQ(0, pthread_create(&dropper.thread, NULL, drop_page, &dropper));
	EXPECT_FALSE(wait_done(&dropper, 1));
	ASSERT_EQ(0, pthread_create(&copier.thread, NULL, copy_beside, &copier));
	EXPECT_FALSE(wait_done(&copier, 1));
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, touch_new_memory, &h));
	EXPECT_TRUE(wait_done(&h, 5));
	hold_release(&hold);
	pthread_join(h.thread, NULL);
	pthread_join(copier.thread, NULL);
	pthread_join(dropper.thread, NULL);
	EXPECT_EQ(0, h.ret);
	EXPECT_EQ(0, copier.ret);
	EXPECT_EQ(0, dropper.ret);
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, 2 * PAGE));
}

TEST_HARNESS_MAIN
