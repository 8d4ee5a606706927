// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs of AMDGPU_CS beside SDMA batches on SVM memory. Such a job may have a
 * page fault, which the driver ends even if others wait for batches. A batch
 * that has come to use the page keeps it. Changes of SVM memory do not wait for
 * batches that use none.
 */
#include "sdma_cs.h"
#include "sdma_svm_fault.h"

#define IB_VA		(VRAM_VA + 64 * MIB)
/* Seconds in which a job or an unmapping has to end. */
#define SOON		5

/* A job that copies a page to an offset in video memory. */
struct job {
	struct buffer ib;
	uint32_t list;
	uint64_t handle;
};

/* An emulated GPU retries faults of jobs only if it is told to. */
static int job_new(struct _test_data_svm *self, struct job *job)
{
	struct buffer *all[] = { &job->ib, &self->vram };
	int ret = buffer_map(&self->gpu, &job->ib, PAGE, AMDGPU_GEM_DOMAIN_GTT,
			     IB_VA);

	if (!ret)
		ret = cs_list(&self->gpu, all, 2, &job->list);
	if (!ret && self->emulator >= 0)
		ret = emulator_all(self->emulator, "xnack all");
	return ret;
}

/* The job's faults do not count as faults of a batch. */
static void job_over(struct _test_data_svm *self)
{
	if (self->emulator >= 0)
		emulator_all(self->emulator, "xnack on");
	self->faults = count_faults(self->emulator);
}

static int job_start(struct _test_data_svm *self, struct job *job,
		     const void *from, uint64_t offset, struct hold *hold)
{
	const uint64_t src = va(from), dst = VRAM_VA + offset;
	const uint32_t packet[8] = {
		1, PAGE - 1, 0, (uint32_t)src, src >> 32, (uint32_t)dst,
		dst >> 32,
	};

	memcpy(job->ib.cpu, packet, sizeof(packet));
	return cs_submit(&self->gpu, job->list, IB_VA, sizeof(packet), hold,
			 &job->handle);
}

static int job_wait(struct _test_data_svm *self, const struct job *job,
		    double seconds)
{
	return cs_wait(&self->gpu, job->handle, seconds);
}

/*
 * A batch is held, and another one that wants the page beside it waits for it.
 * A job that was submitted before has a fault by then, at an unmapped address.
 */
TEST_F(svm, fault_while_batch_brings)
{
	struct helper b = { .self = self };
	uint8_t *nowhere = svm_map(HUGE_SIZE);
	struct hold hold, job_hold;
	uint32_t timeline;
	struct job job;

	if (!variant->xnack)
		SKIP(return, "jobs do not retry");
	if (hold_open(&self->gpu, &hold) || hold_open(&self->gpu, &job_hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_NE(NULL, nowhere);
	ASSERT_EQ(0, munmap(nowhere, HUGE_SIZE));
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, PAGE);
	ASSERT_EQ(0, job_new(self, &job));
	ASSERT_EQ(0, job_start(self, &job, nowhere, MIB, &job_hold));
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	ASSERT_EQ(0, pthread_create(&b.thread, NULL, bring_beside, &b));
	usleep(300000);
	hold_release(&job_hold);
	EXPECT_EQ(0, job_wait(self, &job, SOON));
	EXPECT_FALSE(is_done(&b));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	EXPECT_EQ(0, b.ret);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	job_over(self);
}

/*
 * A job has a fault, and by the time the driver hears of it, a held batch has
 * its window there: the batch keeps its page, and the job finds it.
 */
TEST_F(svm, late_fault)
{
	struct hold hold;
	uint32_t timeline = 0;
	struct job job;

	if (!variant->xnack)
		SKIP(return, "jobs do not retry");
	if (self->emulator < 0)
		SKIP(return, "for an emulated GPU only");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, PAGE);
	/* the process has had windows */
	ASSERT_EQ(0, copy(self, va(self->at), VRAM_VA, PAGE));
	ASSERT_EQ(0, madvise(self->at, PAGE, MADV_DONTNEED));
	memcpy(self->at, self->want, PAGE);
	memset(self->vram.cpu, 0, PAGE);
	ASSERT_EQ(0, job_new(self, &job));
	ASSERT_EQ(0, set_late(self, LATE_US));
	ASSERT_EQ(0, job_start(self, &job, self->at, MIB, NULL));
	EXPECT_EQ(0, hold_before_fault(self, &hold, &timeline));
	hold_release(&hold);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	EXPECT_EQ(0, job_wait(self, &job, SOON));
	EXPECT_EQ(0, memcmp(self->vram.cpu + MIB, self->want, PAGE));
	job_over(self);
}

/* A held batch that uses no SVM memory: unmapping some does not wait. */
TEST_F(svm, batch_elsewhere)
{
	struct helper h = { .self = self };
	struct hold hold;
	uint32_t timeline;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, hold_desc(self, &hold, fill_desc(VRAM_VA + MIB, PAGE, 7),
			       &timeline));
	ASSERT_EQ(0, copy(self, va(self->at), VRAM_VA, PAGE));
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, unmap_all, &h));
	EXPECT_TRUE(wait_done(&h, SOON));
	EXPECT_EQ(-ETIME, syncobj_wait(&self->gpu, timeline, 1, 0));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(h.thread, NULL));
	EXPECT_EQ(0, h.ret);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
}

TEST_HARNESS_MAIN
