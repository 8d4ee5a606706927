// SPDX-License-Identifier: GPL-2.0
/*
 * Retry faults: an engine that finds nothing at an address of the process waits
 * until the driver has brought the pages to the GPU and mapped them. See
 * kfd_svm.h for GPU=.
 */
#include <signal.h>

#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"
#include "kfd_svm.h"

#define NR		512ul
#define LEN		(NR * SVM_PAGE)

FIXTURE(xnack) {
	struct svm svm;
	struct svm_queue queue[SVM_MAX_GPUS];
	int kmsg;
};

FIXTURE_SETUP(xnack)
{
	self->svm.kfd = -1;
	if (svm_open(&self->svm))
		SKIP(return, "no KFD");
	self->kmsg = kmsg_open();
	if (svm_enable_xnack(self->svm.kfd))
		SKIP(return, "no retry faults");
	for (int i = 0; i < self->svm.nr; i++)
		ASSERT_EQ(0, svm_queue_open(&self->svm, &self->svm.gpu[i],
					    &self->queue[i]));
}

FIXTURE_TEARDOWN(xnack)
{
	if (self->svm.kfd < 0)
		return;
	for (int i = 0; i < self->svm.nr; i++)
		if (self->queue[i].ring)
			svm_queue_close(&self->svm, &self->queue[i]);
	if (self->kmsg >= 0)
		EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	svm_close(&self->svm);
}

/* Sets where the driver brings the pages to when the GPU asks for them. */
static int prefer(struct svm *svm, void *at, const struct svm_gpu *gpu)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, gpu->id
	};

	return svm_set(svm, at, LEN, &attr, 1);
}

static void fill(uint32_t *p, uint32_t seed)
{
	for (size_t i = 0; i < LEN / 4; i++)
		p[i] = i * 11 + seed;
}

static size_t wrong_words(const uint32_t *p, uint32_t seed)
{
	size_t count = 0;

	for (size_t i = 0; i < LEN / 4; i++)
		count += p[i] != (uint32_t)i * 11 + seed;
	return count;
}

/* Retry faults that emulated GPUs have counted; -1 for hardware. */
static long retry_faults(void)
{
	int port = emulator_open();
	long count = -1;

	if (port >= 0) {
		count = emulator_count(port, "retry_faults");
		close(port);
	}
	return count;
}

/* In each round the CPU takes the pages back and the GPU wants them again. */
TEST_F_TIMEOUT(xnack, pages_follow, 120)
{
	uint32_t *from = svm_map(LEN), *to = svm_map(LEN);
	struct svm_gpu *gpu = &self->svm.gpu[0];
	long before = retry_faults();

	ASSERT_NE(NULL, from);
	ASSERT_NE(NULL, to);
	ASSERT_EQ(0, prefer(&self->svm, from, gpu));
	ASSERT_EQ(0, prefer(&self->svm, to, gpu));
	for (int round = 0; round < 3; round++) {
		fill(from, round);
		ASSERT_EQ(0, svm_away(&self->svm, from, LEN));
		ASSERT_EQ(0, svm_queue_copy(&self->queue[0], from, to, LEN));
		EXPECT_EQ(NR, svm_away(&self->svm, from, LEN));
		EXPECT_EQ(NR, svm_away(&self->svm, to, LEN));
		ASSERT_EQ(0, wrong_words(to, round));
	}
	if (before >= 0)
		EXPECT_LT(before, retry_faults());
}

/* All GPUs copy from a range that is in the memory of one of them. */
TEST_F_TIMEOUT(xnack, every_gpu_reads, 120)
{
	uint32_t *from = svm_map(LEN), *to = svm_map(LEN);

	ASSERT_NE(NULL, from);
	ASSERT_NE(NULL, to);
	fill(from, 77);
	ASSERT_EQ(0, svm_prefetch(&self->svm, from, LEN, &self->svm.gpu[0]));
	for (int i = 0; i < self->svm.nr; i++) {
		memset(to, 0, LEN);
		ASSERT_EQ(0, svm_queue_copy(&self->queue[i], from, to, LEN));
		ASSERT_EQ(0, wrong_words(to, 77));
	}
	EXPECT_EQ(0, wrong_words(from, 77));
}

/* The CPU frees the pages and maps others there: the GPU sees the new ones. */
TEST_F_TIMEOUT(xnack, mapped_anew, 120)
{
	uint32_t *from = svm_map(LEN), *to = svm_map(LEN);

	ASSERT_NE(NULL, from);
	ASSERT_NE(NULL, to);
	for (int round = 0; round < 3; round++) {
		fill(from, round);
		ASSERT_EQ(0, prefer(&self->svm, from, &self->svm.gpu[0]));
		ASSERT_EQ(0, svm_queue_copy(&self->queue[0], from, to, LEN));
		ASSERT_EQ(0, wrong_words(to, round));
		ASSERT_EQ(from, mmap(from, LEN, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
				     -1, 0));
	}
}

/* Copies from an address where the process has no memory. */
static void be_bad(int ready)
{
	struct svm_queue queue;
	struct svm svm;
	char *to, *hole;

	if (svm_open(&svm) || svm_enable_xnack(svm.kfd) ||
	    svm_queue_open(&svm, &svm.gpu[0], &queue))
		_exit(1);
	to = svm_map(LEN);
	hole = svm_map(LEN);
	munmap(hole, LEN);
	if (write(ready, "", 1) == 1)
		svm_queue_copy(&queue, hole, to, SVM_PAGE);
	pause();
}

static bool wait_for_fault(int kmsg, const char *gpu)
{
	double end = now() + 30;

	while (now() < end) {
		if (kmsg_has(kmsg, gpu, "page fault"))
			return true;
		usleep(10000);
	}
	return false;
}

/* Those pages cannot be brought. Queues of other processes go on. */
TEST_F_TIMEOUT(xnack, hole_of_another_process, 120)
{
	uint32_t *from = svm_map(LEN), *to = svm_map(LEN);
	int ready[2], status, log = kmsg_open();
	pid_t bad;
	char byte;

	if (log < 0)
		SKIP(return, "the kernel's log is not readable");
	ASSERT_EQ(0, pipe(ready));
	bad = fork();
	ASSERT_LE(0, bad);
	if (!bad)
		be_bad(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	EXPECT_TRUE(wait_for_fault(log, self->svm.gpu[0].pci));
	for (int round = 0; round < 3; round++) {
		fill(from, round);
		ASSERT_EQ(0, svm_queue_copy(&self->queue[0], from, to, LEN));
		ASSERT_EQ(0, wrong_words(to, round));
	}
	EXPECT_EQ(0, kill(bad, SIGKILL));
	EXPECT_EQ(bad, waitpid(bad, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	close(log);
}

TEST_HARNESS_MAIN
