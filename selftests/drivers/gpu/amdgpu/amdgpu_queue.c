// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA queues of a process on an engine of its choice: they copy, and the
 * process may exit without destroying them. See kfd_svm.h for GPU=.
 */
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"
#include "kfd_svm.h"

#define BY_ENGINE	KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID
#define LEN		(4 * SVM_PAGE)
#define MAX_QUEUES	64

FIXTURE(queue) {
	struct svm svm;
	struct svm_gpu *gpu;
	unsigned int engines;
	char *from;
	char *to;
	int kmsg;
};

FIXTURE_SETUP(queue)
{
	int node;

	self->svm.kfd = -1;
	if (svm_open(&self->svm))
		SKIP(return, "no KFD");
	self->kmsg = kmsg_open();
	self->gpu = &self->svm.gpu[0];
	node = kfd_node_of(self->gpu->pci);
	self->engines = kfd_property(node, "properties", "num_sdma_engines") +
			kfd_property(node, "properties",
				     "num_sdma_xgmi_engines");
	self->from = svm_map(LEN);
	self->to = svm_map(LEN);
	ASSERT_NE(NULL, self->from);
	ASSERT_NE(NULL, self->to);
	pattern_fill(self->from, LEN, 1);
	ASSERT_EQ(0, svm_access(&self->svm, self->from, LEN, self->gpu));
	ASSERT_EQ(0, svm_access(&self->svm, self->to, LEN, self->gpu));
}

FIXTURE_TEARDOWN(queue)
{
	if (self->svm.kfd < 0)
		return;
	svm_close(&self->svm);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->kmsg);
}

TEST_F(queue, each_engine)
{
	struct svm_queue q;
	unsigned int i;

	ASSERT_LT(0, self->engines);
	for (i = 0; i < self->engines; i++) {
		memset(self->to, 0, LEN);
		ASSERT_EQ(0, svm_queue_open_on(&self->svm, self->gpu, &q,
					       BY_ENGINE, i));
		EXPECT_EQ(0, svm_queue_copy(&q, self->from, self->to, LEN));
		EXPECT_EQ(-1, pattern_check(self->to, LEN, 1));
		svm_queue_close(&self->svm, &q);
	}
}

TEST_F(queue, no_such_engine)
{
	struct svm_queue q;

	EXPECT_EQ(-EINVAL, svm_queue_open_on(&self->svm, self->gpu, &q,
					     BY_ENGINE, self->engines));
}

/* Each engine has its own queues: when one has none left, others still do. */
TEST_F(queue, engine_is_full)
{
	struct svm_queue q[MAX_QUEUES], other;
	unsigned int nr = 0;
	int ret = 0;

	if (self->engines < 2)
		SKIP(return, "this needs two engines");
	while (nr < MAX_QUEUES) {
		ret = svm_queue_open_on(&self->svm, self->gpu, &q[nr],
					BY_ENGINE, 0);
		if (ret)
			break;
		nr++;
	}
	EXPECT_EQ(-ENOMEM, ret);
	ASSERT_EQ(0, svm_queue_open_on(&self->svm, self->gpu, &other,
				       BY_ENGINE, 1));
	EXPECT_EQ(0, svm_queue_copy(&other, self->from, self->to, LEN));
	svm_queue_close(&self->svm, &other);
	while (nr)
		svm_queue_close(&self->svm, &q[--nr]);
	ASSERT_EQ(0, svm_queue_open_on(&self->svm, self->gpu, &other,
				       BY_ENGINE, 0));
	EXPECT_EQ(0, svm_queue_copy(&other, self->from, self->to, LEN));
	svm_queue_close(&self->svm, &other);
}

/*
 * When a page is freed, the queues of the process are stopped, and restored
 * some time later. Packets that arrive at any time meanwhile are not lost.
 */
TEST_F_TIMEOUT(queue, rings_while_it_is_restored, 200)
{
	char *gone = svm_map(LEN);
	struct svm_queue q;
	int i, ret = 0;

	ASSERT_NE(NULL, gone);
	ASSERT_EQ(0, svm_access(&self->svm, gone, LEN, self->gpu));
	ASSERT_EQ(0, svm_queue_open(&self->svm, self->gpu, &q));
	for (i = 0; i < 300 && !ret; i++) {
		*gone = i;
		ASSERT_EQ(0, madvise(gone, LEN, MADV_DONTNEED));
		usleep(rand() % 8000);
		ret = svm_queue_copy(&q, self->from, self->to, SVM_PAGE);
	}
	EXPECT_EQ(0, ret) TH_LOG("copy %d", i);
	svm_queue_close(&self->svm, &q);
}

static int leave_one(unsigned int engine)
{
	struct svm_queue q;
	struct svm svm;

	if (svm_open(&svm))
		return 2;
	return svm_queue_open_on(&svm, &svm.gpu[0], &q, BY_ENGINE, engine);
}

/* The kernel destroys the queue when the process has exited. */
TEST_F(queue, left_behind)
{
	unsigned int i;
	int status;
	pid_t pid;

	for (i = 0; i < 2 * self->engines; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(leave_one(i % self->engines));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
	}
}

TEST_HARNESS_MAIN
