// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on SVM memory of which somebody has a page fault: a queue of the
 * process with XNACK, or the process itself while amdkfd maps memory again. Faults
 * do not wait for batches of others, and after them batches find their memory.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "kmsg.h"
#include "sdma_hold.h"
#include "sdma_svm_test.h"

#define HUGE_SIZE	SVM_ALIGN

/* With XNACK: a queue of the process. */
static int queue_open(struct _test_data_svm *self, struct svm_queue *q)
{
	return svm_queue_open(&self->svm, &self->svm.gpu[0], q);
}

/* That it has faulted is as it should be. */
static void queue_close(struct _test_data_svm *self, struct svm_queue *q)
{
	svm_queue_close(&self->svm, q);
	self->faults = count_faults(self->emulator);
}

static void *vram_at(size_t offset)
{
	return (void *)(uintptr_t)(VRAM_VA + offset);
}

/* In pages of 2 MiB, if there are any. */
static void fill_huge(struct _test_data_svm *self)
{
	madvise(self->at, SIZE, MADV_HUGEPAGE);
	madvise(self->at, SIZE, MADV_DONTNEED);
	memcpy(self->at, self->want, SIZE);
}

/* In small pages, none of which is there, and which stay in system memory. */
static int take_away(struct _test_data_svm *self)
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

/* A batch that copies a page to video memory, and is held. */
static int hold_page(struct _test_data_svm *self, struct hold *hold,
		     uint32_t *timeline)
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(va(self->at), VRAM_VA,
							PAGE);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	int ret = syncobj_new(&self->gpu, timeline);

	hold_batch(hold, &batch);
	return ret ? ret : batch_submit_to(&self->gpu, &batch, *timeline, 1);
}

/* Somebody who is held up, or is not. */
struct helper {
	pthread_t thread;
	struct _test_data_svm *self;
	struct svm_queue *queue;
	const uint8_t *from;
	uint64_t handle;
	bool stop;
	bool done;
	int ret;
};

static bool is_done(struct helper *h)
{
	return __atomic_load_n(&h->done, __ATOMIC_ACQUIRE);
}

static void done(struct helper *h, int ret)
{
	h->ret = ret;
	__atomic_store_n(&h->done, true, __ATOMIC_RELEASE);
}

static bool wait_done(struct helper *h, unsigned int seconds)
{
	unsigned int tries;

	for (tries = 0; tries < seconds * 100 && !is_done(h); tries++)
		usleep(10000);
	return is_done(h);
}

static void *queue_copy(void *arg)
{
	struct helper *h = arg;

	done(h, svm_queue_copy(h->queue, h->from, vram_at(MIB), PAGE));
	return NULL;
}

static void *touch_new_memory(void *arg)
{
	struct helper *h = arg;
	uint8_t *new = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (new != MAP_FAILED)
		new[0] = 1;
	done(h, new == MAP_FAILED ? -errno : 0);
	return NULL;
}

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* The driver tells of a fault, if not too often; or the queue goes on behind it. */
static bool wait_for_fault(int log, const char *gpu, struct svm_queue *q,
			   uint32_t fence)
{
	unsigned int tries;

	for (tries = 0; tries < 3000; tries++) {
		if (kmsg_has(log, gpu, "page fault") ||
		    __atomic_load_n(q->fence, __ATOMIC_ACQUIRE) == fence)
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * A queue writes where the process may only read, and where batches have read
 * before. The driver ends the queue's fault with an entry that is not valid, and
 * takes the mapping of all pages that one entry has mapped.
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

/* A batch that is on its way still finds all pages. */
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
	EXPECT_NE(fence, __atomic_load_n(queue.fence, __ATOMIC_ACQUIRE));
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
 * amdkfd's worker maps a range again of which a batch uses other pages. Page faults
 * of the process do not wait for the batch meanwhile.
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
	/* and then it has mapped all of it */
	memset(self->at + HUGE_SIZE, 0, PAGE);
	memset(self->want + HUGE_SIZE, 0, PAGE);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
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
 * Who maps a buffer waits until it is known what memory the process still has
 * registered, and so for a batch. Other calls do not wait for him.
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

/*
 * What was unmapped before has to be cleared before a window is opened, which the
 * CPU does when all earlier batches have ended.
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
 * To open a window is to unmap pages for a moment. A queue that uses them faults,
 * and by the time that this is looked at they are mapped again.
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
		/* no window is left, and the queue's mapping is */
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

/* A fault that the driver hears of when this is over. */
#define LATE_US		2000000

/* The queue has faulted, a batch has its window there, and then that is known. */
static int fault_late(struct _test_data_svm *self, struct svm_queue *queue,
		      struct hold *hold, uint32_t *timeline)
{
	const long before = count_faults(self->emulator);
	unsigned int tries;
	char delay[32];
	int ret;

	snprintf(delay, sizeof(delay), "irq delay %u", LATE_US);
	ret = emulator_all(self->emulator, delay);
	if (ret)
		return ret;
	svm_queue_start_copy(queue, self->at, vram_at(MIB), PAGE);
	for (tries = 0; tries < 500; tries++) {
		if (count_faults(self->emulator) > before)
			break;
		usleep(1000);
	}
	ret = tries < 500 ? hold_page(self, hold, timeline) : -ETIME;
	emulator_all(self->emulator, "irq delay 0");
	usleep(LATE_US + 500000);
	return ret;
}

/*
 * A queue faults, and by the time that this is looked at, a held batch has its
 * window there. What the queue wants is mapped, and the window stays.
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
	ASSERT_EQ(0, fault_late(self, &queue, &hold, &timeline));
	EXPECT_EQ(0, memcmp(self->vram.cpu + MIB, self->want, PAGE));
	same.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(0, answer_now(&self->gpu, &hold, &same));
	hold_release(&hold);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	queue_close(self, &queue);
}

/* Another process: tells when it can begin, waits for a word, and says how it was. */
static void be_another(int in, int out)
{
	struct _test_data_svm other = { .kfd.fd = -1 };
	struct svm_queue queue;
	uint8_t *from, *to;
	char word = 0;

	if (gpu_open(&other.gpu, 0) || kfd_open(&other.kfd, &other.gpu) ||
	    svm_enable_xnack(&other.kfd))
		_exit(1);
	other.svm = svm_of(&other.kfd, &other.gpu);
	if (queue_open(&other, &queue))
		_exit(2);
	from = svm_map(HUGE_SIZE);
	to = svm_map(HUGE_SIZE);
	if (!from || !to)
		_exit(3);
	from[5] = 99;
	if (write(out, &word, 1) != 1 || read(in, &word, 1) != 1)
		_exit(4);
	if (svm_queue_copy(&queue, from, to, PAGE) || to[5] != 99)
		_exit(5);
	if (write(out, &word, 1) != 1)
		_exit(6);
	_exit(0);
}

static bool has_answered(int fd, unsigned int seconds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char word;

	return poll(&p, 1, seconds * 1000) == 1 && read(fd, &word, 1) == 1;
}

static void *batch_copy(void *arg)
{
	struct helper *h = arg;

	done(h, copy(h->self, va(h->from), VRAM_VA + 2 * MIB, PAGE));
	return NULL;
}

/*
 * A queue faults beside a page that a held batch uses, and has to wait for that, as
 * another batch has that is about to use the page between them. Queues of other
 * processes do not.
 */
static void others_go_on(struct __test_metadata *_metadata,
			 struct _test_data_svm *self, bool another)
{
	struct svm_queue queue;
	struct helper h = { .self = self, .queue = &queue, },
		      batch = { .self = self, };
	int to[2], from[2], status;
	struct hold hold;
	uint32_t timeline;
	pid_t child;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, pipe(to));
	ASSERT_EQ(0, pipe(from));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		be_another(to[0], from[1]);
	close(from[1]);
	ASSERT_TRUE(has_answered(from[0], 60));
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, PAGE);
	ASSERT_EQ(0, queue_open(self, &queue));
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	memcpy(self->at + PAGE, self->want + PAGE, 2 * PAGE);
	batch.from = self->at + PAGE;
	h.from = self->at + 2 * PAGE;
	if (another) {
		ASSERT_EQ(0, pthread_create(&batch.thread, NULL, batch_copy,
					    &batch));
		usleep(200000);
	}
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, queue_copy, &h));
	usleep(500000);
	EXPECT_FALSE(is_done(&h));
	ASSERT_EQ(1, write(to[1], "", 1));
	EXPECT_TRUE(has_answered(from[0], 10));
	EXPECT_FALSE(is_done(&h));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(h.thread, NULL));
	EXPECT_EQ(0, h.ret);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu + MIB, self->want + 2 * PAGE, PAGE));
	if (another) {
		ASSERT_EQ(0, pthread_join(batch.thread, NULL));
		EXPECT_EQ(0, batch.ret);
		EXPECT_EQ(0, memcmp(self->vram.cpu + 2 * MIB, self->want + PAGE,
				    PAGE));
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	queue_close(self, &queue);
}

TEST_F_TIMEOUT(svm, others_faults_go_on, 120)
{
	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	others_go_on(_metadata, self, false);
}

TEST_F_TIMEOUT(svm, others_faults_go_on_beside_two, 120)
{
	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	others_go_on(_metadata, self, true);
}

TEST_HARNESS_MAIN
