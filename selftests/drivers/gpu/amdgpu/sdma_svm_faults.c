// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on SVM memory that has page faults: of a queue of the process
 * with XNACK, or of the process itself while amdkfd maps memory again. Faults
 * do not wait for unrelated batches, and batches find their memory afterwards.
 */
#include "kmsg.h"
#include "sdma_svm_fault.h"

/* In pages of 2 MiB, if there are any. */
static void fill_huge(struct _test_data_svm *self)
{
	madvise(self->at, SIZE, MADV_HUGEPAGE);
	madvise(self->at, SIZE, MADV_DONTNEED);
	memcpy(self->at, self->want, SIZE);
}

static void *wait_and_touch(void *arg)
{
	usleep(500000);
	return touch_new_memory(arg);
}

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* The driver logs a fault, if not too often; or the queue has gone on. */
static bool wait_for_fault(int log, const char *gpu, struct svm_queue *q,
			   uint32_t fence)
{
	unsigned int tries;

	for (tries = 0; tries < 3000; tries++) {
		if (kmsg_has(log, gpu, "page fault") ||
		    svm_queue_is_at(q, fence))
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * A queue writes where the process may only read, and where batches have read
 * before. The driver ends the queue's fault with an invalid entry, which takes
 * away the mapping of all pages that one entry has mapped.
 */
static void write_is_denied(struct __test_metadata *_metadata,
			    struct _test_data_svm *self)
{
	struct svm_queue queue;
	int log = kmsg_open();
	uint32_t fence;

	if (log < 0)
		SKIP(return, "the kernel's log is not readable");
	ASSERT_EQ(0, mprotect(self->at, SIZE, PROT_READ));
	ASSERT_EQ(0, copy_out(self));
	ASSERT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	ASSERT_EQ(0, queue_open(self, &queue));
	fence = svm_queue_start_copy(&queue, vram_at(MIB), self->at, PAGE);
	EXPECT_TRUE(wait_for_fault(log, self->gpu.name, &queue, fence));
	queue_close(self, &queue);
	memset(self->vram.cpu, 0, SIZE);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	EXPECT_EQ(0, memcmp(self->vram.cpu + MIB, self->want + MIB, PAGE));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	EXPECT_EQ(0, memcmp(self->at, self->want, SIZE));
	close(log);
}

TEST_F_TIMEOUT(svm, denied_write, 120)
{
	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	fill_huge(self);
	write_is_denied(_metadata, self);
}

TEST_F_TIMEOUT(svm, denied_write_in_vram, 120)
{
	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	fill_huge(self);
	ASSERT_EQ(0, send_away(self));
	write_is_denied(_metadata, self);
}

/* A batch in flight still finds all pages. */
TEST_F_TIMEOUT(svm, denied_write_waits, 120)
{
	struct svm_queue queue;
	int log = kmsg_open();
	struct hold hold;
	uint32_t timeline, fence;

	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	if (log < 0 || hold_open(&self->gpu, &hold))
		SKIP(return, "no log, or no sw_sync to hold batches back with");
	fill_huge(self);
	ASSERT_EQ(0, mprotect(self->at, SIZE, PROT_READ));
	ASSERT_EQ(0, queue_open(self, &queue));
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	fence = svm_queue_start_copy(&queue, vram_at(MIB), self->at + MIB,
				     PAGE);
	usleep(500000);
	EXPECT_FALSE(svm_queue_is_at(&queue, fence));
	hold_release(&hold);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	EXPECT_TRUE(wait_for_fault(log, self->gpu.name, &queue, fence));
	queue_close(self, &queue);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	close(log);
}

/*
 * A range is split by an unmapping, and the driver's worker waits for a batch
 * before it looks at the parts. More of them is unmapped meanwhile: first all of
 * one part, and then some of another one. Queues must lose that, too.
 */
TEST_F_TIMEOUT(svm, unmapped_in_parts, 120)
{
	const size_t part = 16 * PAGE;
	uint8_t *rest = self->at + 2 * part;
	struct svm_queue queue;
	int log = kmsg_open();
	uint32_t timeline, fence;
	struct hold hold;

	if (log < 0 || hold_open(&self->gpu, &hold))
		SKIP(return, "no log, or no sw_sync to hold batches back with");
	/* amdkfd reports faults by this signal if no thread waits for events */
	signal(SIGSEGV, SIG_IGN);
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, queue_open(self, &queue));
	ASSERT_EQ(0, svm_queue_copy(&queue, self->at, vram_at(0), PAGE));
	ASSERT_EQ(0, svm_queue_copy(&queue, rest, vram_at(0), PAGE));
	ASSERT_EQ(0, memcmp(self->vram.cpu, self->want + 2 * part, PAGE));
	ASSERT_EQ(0, hold_desc(self, &hold,
			       copy_desc(va(self->at + 3 * MIB), VRAM_VA + MIB,
					 PAGE), &timeline));
	ASSERT_EQ(0, munmap(self->at + part, part));
	ASSERT_EQ(0, munmap(self->at, part));
	ASSERT_EQ(0, munmap(rest, part));
	fence = svm_queue_start_copy(&queue, rest, vram_at(2 * MIB), PAGE);
	hold_release(&hold);
	EXPECT_TRUE(wait_for_fault(log, self->gpu.name, &queue, fence));
	EXPECT_NE(0, memcmp(self->vram.cpu + 2 * MIB, self->want + 2 * part,
			    PAGE));
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	queue_close(self, &queue);
	close(log);
}

/*
 * amdkfd's worker maps a range again while a batch uses other pages of it. Page
 * faults of the process do not wait for the batch meanwhile.
 */
TEST_F(svm, faults_do_not_wait_for_worker)
{
	struct helper h = { .self = self };
	struct hold hold;
	uint32_t timeline;

	if (variant->xnack)
		SKIP(return, "the worker maps nothing");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	ASSERT_EQ(0, madvise(self->at + HUGE_SIZE, PAGE, MADV_DONTNEED));
	usleep(500000);
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, touch_new_memory, &h));
	EXPECT_TRUE(wait_done(&h, 5));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(h.thread, NULL));
	EXPECT_EQ(0, h.ret);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	/* and then the worker has mapped all of it */
	memset(self->at + HUGE_SIZE, 0, PAGE);
	memset(self->want + HUGE_SIZE, 0, PAGE);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

/* A fault beside a batch's page waits for the batch, but holds no lock. */
TEST_F(svm, mapping_goes_on)
{
	struct helper h = { .self = self };
	struct svm_queue queue;
	struct hold hold;
	uint32_t timeline, fence;

	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, PAGE);
	ASSERT_EQ(0, queue_open(self, &queue));
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	memcpy(self->at + PAGE, self->want + PAGE, PAGE);
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, wait_and_touch, &h));
	fence = svm_queue_start_copy(&queue, self->at + PAGE, vram_at(MIB),
				     PAGE);
	EXPECT_TRUE(wait_done(&h, 5));
	EXPECT_FALSE(svm_queue_is_at(&queue, fence));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(h.thread, NULL));
	EXPECT_EQ(0, h.ret);
	EXPECT_EQ(0, svm_queue_wait(&queue, fence));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	EXPECT_EQ(0, memcmp(self->vram.cpu + MIB, self->want + PAGE, PAGE));
	queue_close(self, &queue);
}

/* With XNACK: faults do not wait for a batch that waits for one beside it. */
static void do_not_wait_for(struct __test_metadata *_metadata,
			    struct _test_data_svm *self,
			    void *(*batch)(void *helper))
{
	struct helper b = { .self = self }, h = b;
	const bool brings = batch == bring_beside;
	struct hold hold;
	uint32_t timeline;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, PAGE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	if (!brings)
		memcpy(self->at + PAGE, self->want + PAGE, PAGE);
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, wait_and_touch, &h));
	ASSERT_EQ(0, pthread_create(&b.thread, NULL, batch, &b));
	EXPECT_TRUE(wait_done(&h, 5));
	EXPECT_FALSE(is_done(&b));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(h.thread, NULL));
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	EXPECT_EQ(0, h.ret);
	EXPECT_EQ(0, b.ret);
	if (brings)
		memset(self->want + PAGE, 0, PAGE);
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, 2 * PAGE));
}

/* The batch waits before it opens a window. */
TEST_F(svm, faults_do_not_wait_for_window)
{
	if (!variant->xnack)
		SKIP(return, "windows are opened without a wait");
	do_not_wait_for(_metadata, self, copy_beside);
}

/* The batch waits before it faults in a page. */
TEST_F(svm, faults_do_not_wait_for_bringing)
{
	if (!variant->xnack)
		SKIP(return, "what is registered is mapped");
	do_not_wait_for(_metadata, self, bring_beside);
}

static void *map_buffer(void *arg)
{
	struct helper *h = arg;

	done(h, kfd_map(&h->self->kfd, h->handle));
	return NULL;
}

static void *call_kfd(void *arg)
{
	struct helper *h = arg;
	struct kfd_ioctl_get_clock_counters_args counters = {
		.gpu_id = h->self->kfd.id,
	};

	done(h, kfd_call(&h->self->kfd, AMDKFD_IOC_GET_CLOCK_COUNTERS,
			 &counters));
	return NULL;
}

/*
 * A call that maps a buffer waits until it is known what memory the process
 * still has registered, hence for a batch. Other calls do not wait for it.
 */
TEST_F(svm, calls_do_not_wait)
{
	struct helper maps = { .self = self }, calls = { .self = self };
	uint64_t offset = 0;
	struct hold hold;
	uint32_t timeline;
	void *at = svm_map(MIB);

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_NE(NULL, at);
	ASSERT_EQ(0, munmap(at, MIB));
	ASSERT_EQ(0, kfd_alloc(&self->kfd, va(at), MIB,
			       KFD_IOC_ALLOC_MEM_FLAGS_GTT |
			       KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, &offset,
			       &maps.handle));
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	ASSERT_EQ(0, munmap(self->at + SIZE - PAGE, PAGE));
	usleep(200000);
	ASSERT_EQ(0, pthread_create(&maps.thread, NULL, map_buffer, &maps));
	usleep(200000);
	EXPECT_FALSE(is_done(&maps));
	ASSERT_EQ(0, pthread_create(&calls.thread, NULL, call_kfd, &calls));
	EXPECT_TRUE(wait_done(&calls, 5));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(calls.thread, NULL));
	ASSERT_EQ(0, pthread_join(maps.thread, NULL));
	EXPECT_EQ(0, calls.ret);
	EXPECT_EQ(0, maps.ret);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
}

/* Memory of the process in a file, which ends after the first page. */
static uint8_t *map_short_file(void)
{
	uint8_t *at = svm_map(HUGE_SIZE);
	int fd = memfd_create("short", MFD_CLOEXEC);

	if (!at || fd < 0 || ftruncate(fd, PAGE) ||
	    mmap(at, HUGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, 0) != at)
		return NULL;
	close(fd);
	return at;
}

/* There is no memory beyond the end of a file. Queues go on. */
TEST_F_TIMEOUT(svm, beyond_a_file, 60)
{
	const bool xnack = variant->xnack;
	uint8_t *at = map_short_file();
	struct svm_queue queue;
	uint32_t index;

	ASSERT_NE(NULL, at);
	ASSERT_EQ(0, queue_open(self, &queue));
	EXPECT_EQ(xnack ? 0 : -EFAULT,
		  svm_access(&self->svm, at, HUGE_SIZE, &self->svm.gpu[0]));
	EXPECT_EQ(xnack ? -ENXIO : -EFAULT,
		  copy_flags(self, va(at + PAGE), VRAM_VA, PAGE, 0, &index));
	EXPECT_EQ(1, index);
	EXPECT_EQ(-EFAULT, copy_flags(self, va(at + PAGE), VRAM_VA, PAGE,
				      AMDGPU_SDMA_DESC_FAULT, &index));
	EXPECT_EQ(1, index);
	EXPECT_EQ(0, svm_queue_copy(&queue, vram_at(0), vram_at(MIB), PAGE));
	queue_close(self, &queue);
}

/* A mapping of a device is not faulted in, and no range is left there. */
TEST_F(svm, device_memory)
{
	const uint64_t at = va(self->vram.cpu);
	struct buffer b;
	uint32_t index;

	EXPECT_EQ(-ENOENT, copy(self, at, VRAM_VA + MIB, PAGE));
	EXPECT_EQ(variant->xnack ? -EFAULT : -ENOENT,
		  copy_flags(self, at, VRAM_VA + MIB, PAGE,
			     AMDGPU_SDMA_DESC_FAULT, &index));
	EXPECT_EQ(1, index);
	ASSERT_EQ(0, buffer_new(&self->gpu, &b, PAGE, AMDGPU_GEM_DOMAIN_GTT));
	EXPECT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_MAP, at, GPU_RW));
}

static void *copy_all_the_time(void *arg)
{
	struct helper *h = arg;
	int ret = 0;

	while (!ret && !__atomic_load_n(&h->stop, __ATOMIC_ACQUIRE))
		ret = svm_queue_copy(h->queue, h->from, vram_at(MIB), PAGE);
	done(h, ret);
	return NULL;
}

#define PARTS	2000

/* Small parts of the same 2 MiB, to video memory beyond what the queue writes. */
static int copy_parts(struct _test_data_svm *self)
{
	static struct drm_amdgpu_sdma_desc d[PARTS];
	unsigned int i;

	for (i = 0; i < PARTS; i++)
		d[i] = copy_desc(va(self->at) + i * KIB,
				 VRAM_VA + HUGE_SIZE + i * KIB, KIB);
	return run_descs(self, d, PARTS, NULL);
}

/*
 * Opening a window unmaps pages for a moment. A queue that uses them faults,
 * and by the time the fault is handled they are mapped again.
 */
TEST_F_TIMEOUT(svm, queue_uses_the_same, 240)
{
	struct svm_queue queue;
	struct helper h = { .self = self, .queue = &queue, .from = self->at };
	unsigned int round;
	double begin, took, longest = 0;

	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, queue_open(self, &queue));
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, copy_all_the_time, &h));
	for (round = 0; round < 20; round++) {
		memset(self->vram.cpu + HUGE_SIZE, 0, HUGE_SIZE);
		/* no window is left; a fault of the queue maps its page */
		ASSERT_EQ(0, mprotect(self->at, SIZE, PROT_READ));
		ASSERT_EQ(0, mprotect(self->at, SIZE, PROT_READ | PROT_WRITE));
		begin = now_seconds();
		ASSERT_EQ(0, copy_parts(self)) TH_LOG("round %u", round);
		took = now_seconds() - begin;
		longest = took > longest ? took : longest;
		ASSERT_EQ(0, memcmp(self->vram.cpu + HUGE_SIZE, self->want,
				    PARTS * KIB)) TH_LOG("round %u", round);
	}
	TH_LOG("the longest took %.3f s", longest);
	EXPECT_GT(10, longest);
	__atomic_store_n(&h.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(h.thread, NULL));
	EXPECT_EQ(0, h.ret);
	queue_close(self, &queue);
}

/*
 * A queue faults, and by the time the fault is handled, a held batch has its
 * window there. The page that the queue wants is mapped, and the window stays.
 */
TEST_F(svm, fault_before_window)
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(va(self->at),
							VRAM_VA + PAGE, PAGE);
	struct drm_amdgpu_sdma_batch same = batch_of(&self->gpu, &d, 1);
	struct svm_queue queue;
	struct hold hold;
	uint32_t timeline;

	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	if (self->emulator < 0)
		SKIP(return, "for an emulated GPU only");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, PAGE);
	ASSERT_EQ(0, queue_open(self, &queue));
	ASSERT_EQ(0, set_late(self, LATE_US));
	svm_queue_start_copy(&queue, self->at, vram_at(MIB), PAGE);
	ASSERT_EQ(0, hold_before_fault(self, &hold, &timeline));
	EXPECT_EQ(0, memcmp(self->vram.cpu + MIB, self->want, PAGE));
	same.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(0, answer_now(&self->gpu, &hold, &same));
	hold_release(&hold);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	queue_close(self, &queue);
}

TEST_HARNESS_MAIN
