// SPDX-License-Identifier: GPL-2.0
/*
 * SVM memory that a reset of the GPU has lost: accesses fail, wherever the
 * range moves. What is not lost stays intact, and the GPU can get new memory.
 *
 * Resets the first GPU: see kfd_svm.h for GPU=.
 */
#include <pthread.h>

#include "../../../kselftest_harness.h"
#include "emulator.h"
#include "amdgpu_test.h"
#include "kfd_svm.h"

#define NR	256ul
#define LEN	(NR * SVM_PAGE)
#define SPARED	"the memory survives resets of this GPU"

FIXTURE(lost) {
	struct svm svm;
	struct svm_gpu *gpu;
	char *buf;		/* memory in the GPU */
	int kmsg;
	int emu;
};

FIXTURE_SETUP(lost) {
	self->svm.kfd = -1;
	self->emu = -1;
	if (svm_open(&self->svm))
		SKIP(return, "no GPU with KFD");
	self->kmsg = kmsg_open();
	self->gpu = &self->svm.gpu[0];
	self->buf = svm_map(LEN);
	ASSERT_NE(NULL, self->buf);
	pattern_fill(self->buf, LEN, 1);
	ASSERT_EQ(0, svm_prefetch(&self->svm, self->buf, LEN, self->gpu));
	ASSERT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
}

FIXTURE_TEARDOWN(lost) {
	if (self->svm.kfd < 0)
		return;
	/* Even after a failure: what waits for the engines must go on. */
	if (self->emu >= 0) {
		EXPECT_EQ(0, emulator_all(self->emu, "engine all resume"));
		close(self->emu);
	}
	munmap(self->buf, LEN);
	svm_close(&self->svm);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->kmsg);
}

/* Reset the GPU. 1: the range is as it was, 0: lost, -1: neither of these */
static int lose(FIXTURE_DATA(lost) *self, size_t len)
{
	return svm_reset(self->gpu) ? -1 : svm_look(self->buf, len, 1);
}

/* Through system memory: what is there must not be taken for data. */
TEST_F(lost, to_another_gpu) {
	struct kfd_ioctl_set_xnack_mode_args xnack = { .xnack_enabled = 1 };
	int left;

	if (self->svm.nr < 2)
		SKIP(return, "this needs two GPUs");
	/* Without retry faults a range of two GPUs is in system memory only. */
	ioctl(self->svm.kfd, AMDKFD_IOC_SET_XNACK_MODE, &xnack);
	left = lose(self, LEN);
	ASSERT_LE(0, left);
	if (left)
		SKIP(return, SPARED);
	svm_prefetch(&self->svm, self->buf, LEN, &self->svm.gpu[1]);
	EXPECT_EQ(0, svm_look(self->buf, LEN, 1));
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
}

/* Half of the range is in system memory: it must not share the loss. */
TEST_F(lost, intact_half) {
	char *half = self->buf + LEN / 2;
	int left;

	ASSERT_EQ(0, madvise(half, LEN / 2, MADV_DONTNEED));
	pattern_fill(half, LEN / 2, 2);
	left = lose(self, LEN / 2);
	ASSERT_LE(0, left);
	if (left)
		SKIP(return, SPARED);
	svm_prefetch(&self->svm, self->buf, LEN, self->gpu);
	EXPECT_EQ(1, svm_look(half, LEN / 2, 2));
	EXPECT_EQ(0, svm_look(self->buf, LEN / 2, 1));
}

/* Memory whose pages were lost and given up goes to the GPU and back again. */
static void use_again(struct __test_metadata *_metadata,
		      FIXTURE_DATA(lost) *self, unsigned int seed)
{
	ASSERT_EQ(0, madvise(self->buf, LEN, MADV_DONTNEED));
	pattern_fill(self->buf, LEN, seed);
	ASSERT_EQ(0, svm_prefetch(&self->svm, self->buf, LEN, self->gpu));
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
	EXPECT_EQ(1, svm_look(self->buf, LEN, seed));
	EXPECT_EQ(0, svm_away(&self->svm, self->buf, LEN));
}

/* The process gives up the pages and keeps the range. */
TEST_F(lost, same_range_again) {
	int left;

	left = lose(self, LEN);
	ASSERT_LE(0, left);
	if (left)
		SKIP(return, SPARED);
	use_again(_metadata, self, 3);
}

/* A part becomes a range of its own, which shares the memory in the GPU. */
static int split(FIXTURE_DATA(lost) *self, void *at, size_t len)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 4
	};

	return svm_set(&self->svm, at, len, &attr, 1);
}

/* The process gives up the pages of ranges that were one. */
TEST_F(lost, split_ranges_again) {
	int left;

	ASSERT_EQ(0, split(self, self->buf + LEN / 4, LEN / 2));
	left = lose(self, LEN);
	ASSERT_LE(0, left);
	if (left)
		SKIP(return, SPARED);
	use_again(_metadata, self, 5);
}

/* The same for one of the ranges, while the others keep theirs. */
TEST_F(lost, split_range_alone) {
	char *middle = self->buf + LEN / 4;
	int left;

	ASSERT_EQ(0, split(self, middle, LEN / 2));
	left = lose(self, LEN / 4);
	ASSERT_LE(0, left);
	if (left)
		SKIP(return, SPARED);
	ASSERT_EQ(0, madvise(middle, LEN / 2, MADV_DONTNEED));
	pattern_fill(middle, LEN / 2, 6);
	ASSERT_EQ(0, svm_prefetch(&self->svm, middle, LEN / 2, self->gpu));
	EXPECT_EQ(NR / 2, svm_away(&self->svm, middle, LEN / 2));
	EXPECT_EQ(1, svm_look(middle, LEN / 2, 6));
	EXPECT_EQ(0, svm_look(self->buf, LEN / 4, 1));
	EXPECT_EQ(0, svm_look(self->buf + LEN * 3 / 4, LEN / 4, 1));
	EXPECT_EQ(NR / 2, svm_away(&self->svm, self->buf, LEN));
}

struct prefetcher {
	pthread_t thread;
	pid_t tid;
	struct svm *svm;
	struct svm_gpu *gpu;
	void *at;
};

static void *prefetcher_run(void *arg)
{
	struct prefetcher *p = arg;

	__atomic_store_n(&p->tid, gettid(), __ATOMIC_RELEASE);
	svm_prefetch(p->svm, p->at, LEN, p->gpu);
	return NULL;
}

/* Does the thread wait for the range's new memory to be cleared? */
static bool prefetcher_waits(struct prefetcher *p)
{
	pid_t tid = __atomic_load_n(&p->tid, __ATOMIC_ACQUIRE);
	char path[64], stack[4096] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stack", tid);
	f = tid ? fopen(path, "r") : NULL;
	if (!f)
		return false;
	stack[fread(stack, 1, sizeof(stack) - 1, f)] = 0;
	fclose(f);
	return strstr(stack, "svm_range_vram_node_new") &&
	       strstr(stack, "fence");
}

/* A range's new memory is lost before it is used: while it is cleared. */
TEST_F(lost, while_it_is_cleared) {
	/* The thread may outlive this function if the test fails. */
	static struct prefetcher p;
	int tries, left;

	p = (struct prefetcher){
		.svm = &self->svm, .gpu = self->gpu, .at = svm_map(LEN),
	};
	self->emu = emulator_open();
	if (self->emu < 0)
		SKIP(return, "nothing can make this GPU hang");
	ASSERT_NE(NULL, p.at);
	pattern_fill(p.at, LEN, 8);
	/* The driver tracks memory that is clear. None is after a reset. */
	left = lose(self, LEN);
	ASSERT_LE(0, left);
	if (left)
		SKIP(return, SPARED);
	ASSERT_EQ(0, emulator_all(self->emu, "engine all hang"));
	ASSERT_EQ(0, pthread_create(&p.thread, NULL, prefetcher_run, &p));
	/* the driver declares the engine hung only later */
	for (tries = 0; tries < 100 && !prefetcher_waits(&p); tries++)
		usleep(10000);
	ASSERT_NE(100, tries);
	ASSERT_EQ(0, svm_reset(self->gpu));
	ASSERT_EQ(0, emulator_all(self->emu, "engine all resume"));
	pthread_join(p.thread, NULL);
	EXPECT_EQ(0, svm_away(&self->svm, p.at, LEN));
	ASSERT_EQ(0, svm_prefetch(&self->svm, p.at, LEN, self->gpu));
	EXPECT_EQ(NR, svm_away(&self->svm, p.at, LEN));
	EXPECT_EQ(1, svm_look(p.at, LEN, 8));
	munmap(p.at, LEN);
}

/* The range is unmapped while its old memory in the GPU is being freed. */
TEST_F_TIMEOUT(lost, back_and_gone, 200) {
	char *p;
	int i;

	for (i = 0; i < 50; i++) {
		p = svm_map(LEN);
		ASSERT_NE(NULL, p);
		pattern_fill(p, LEN, i);
		ASSERT_EQ(0, svm_prefetch(&self->svm, p, LEN, self->gpu));
		EXPECT_EQ(1, svm_look(p, LEN, i));
		munmap(p, LEN);
	}
}

static uint64_t memory_used(struct gpu *gpu)
{
	struct drm_amdgpu_memory_info memory;

	return query_memory(gpu, &memory) ? UINT64_MAX : memory.vram.heap_usage;
}

/*
 * The pages of a range come back while another range still has some in the same
 * buffer. Splitting the first one then must not keep the buffer for ever.
 */
TEST_F_TIMEOUT(lost, split_when_it_is_back, 60) {
	const struct kfd_ioctl_svm_attribute parts[] = {
		{ KFD_IOCTL_SVM_ATTR_GRANULARITY, 4 },
		{ KFD_IOCTL_SVM_ATTR_GRANULARITY, 5 },
	};
	const size_t size = 2 * LEN;
	struct gpu gpu;
	uint64_t before;
	int i, tries;
	char *p;

	ASSERT_EQ(0, open_gpu(&gpu, self->gpu->pci));
	before = memory_used(&gpu);
	for (i = 0; i < 16; i++) {
		p = svm_map(size);
		ASSERT_NE(NULL, p);
		pattern_fill(p, size, i);
		ASSERT_EQ(0, svm_prefetch(&self->svm, p, size, self->gpu));
		ASSERT_EQ(0, svm_set(&self->svm, p + LEN, LEN, &parts[0], 1));
		EXPECT_EQ(1, svm_look(p, LEN, i));
		EXPECT_EQ(NR, svm_away(&self->svm, p, size));
		ASSERT_EQ(0, svm_set(&self->svm, p, LEN / 2, &parts[1], 1));
		EXPECT_EQ(1, svm_look(p, size, i));
		munmap(p, size);
	}
	/* workers free it */
	for (tries = 0; tries < 100 && memory_used(&gpu) >= before + size;
	     tries++)
		usleep(50000);
	EXPECT_GT(before + size, memory_used(&gpu));
	close(gpu.fd);
}

/* A new range, while lost pages still exist */
TEST_F(lost, new_range) {
	char *other = svm_map(LEN);
	int left;

	ASSERT_NE(NULL, other);
	left = lose(self, LEN);
	ASSERT_LE(0, left);
	if (left)
		SKIP(return, SPARED);
	pattern_fill(other, LEN, 4);
	ASSERT_EQ(0, svm_prefetch(&self->svm, other, LEN, self->gpu));
	EXPECT_EQ(NR, svm_away(&self->svm, other, LEN));
	EXPECT_EQ(1, svm_look(other, LEN, 4));
	EXPECT_EQ(0, svm_look(self->buf, LEN, 1));
	munmap(other, LEN);
}

/* Lost pages are in use: nothing else gets them, however scarce memory is. */
TEST_F(lost, memory_is_not_given_away) {
	struct gpu gpu;
	int filled, left;

	left = lose(self, LEN);
	ASSERT_LE(0, left);
	if (left)
		SKIP(return, SPARED);
	ASSERT_EQ(0, open_gpu(&gpu, self->gpu->pci));
	filled = fill_video_memory(&gpu);
	TH_LOG("%d buffers", filled);
	EXPECT_LT(1, filled);
	EXPECT_EQ(0, svm_look(self->buf, LEN, 1));
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
	close(gpu.fd);
	EXPECT_EQ(0, svm_look(self->buf, LEN, 1));
}

TEST_HARNESS_MAIN
