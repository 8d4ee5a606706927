// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA from SVM memory of a GPU while the driver is unbound from that GPU. KFD
 * asks its processes to leave, by SIGBUS. Until they do, and in a child that
 * does not use KFD, the memory keeps its contents, now in system memory.
 * Unbinding waits for the process, but not for the child.
 *
 * Unbinds the last GPU, and binds it again: see kfd_svm.h for GPU=. Makes its
 * own soft RoCE device over lo; RDMA=name selects an existing one.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"
#include "svm_rdma.h"

#define DEVICE	"rxe_svm_unbind"
#define NR	256ul
#define LEN	(NR * SVM_PAGE)

/* What the processes tell each other */
struct shared {
	atomic_int ready;	/* traffic is running */
	atomic_int unbound;	/* for the bystander: look now */
	atomic_int right;
	atomic_int wrong;
	atomic_int failed;
	atomic_int bystander;	/* 1: right, -1: wrong */
	struct svm_gpu gpu;
};

static atomic_int told_to_leave;

static void leave(int sig)
{
	told_to_leave = 1;
}

/* A child process that has the memory, but has closed KFD. */
static pid_t bystander(struct shared *shared, struct svm *svm, const void *buf)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	/* an open file would keep the KFD process, and unbinding would wait */
	svm_close(svm);
	signal(SIGBUS, SIG_DFL);
	while (!shared->unbound)
		usleep(10000);
	shared->bystander = pattern_check(buf, LEN, 1) < 0 ? 1 : -1;
	_exit(0);
}

static int traffic(struct shared *shared, struct link *link, void *buf,
		   struct ibv_mr *mr)
{
	void *host = svm_map(LEN);
	struct ibv_mr *host_mr = rcp_reg(&link->dev, host, LEN, RCP_PINNED);

	if (!host_mr)
		return 2;
	while (!told_to_leave) {
		memset(host, 0xee, LEN);
		if (link_write(link, mr, buf, host_mr, host, LEN)) {
			shared->failed++;
			rcp_connect(&link->pair, IBV_MTU_4096);
		} else if (pattern_check(host, LEN, 1) < 0) {
			shared->right++;
			shared->ready = 1;
		} else {
			shared->wrong++;
		}
	}
	/* the memory still has its contents */
	return pattern_check(buf, LEN, 1) < 0 ? 0 : 3;
}

/* The KFD process. Exit status: 4 to skip, 0 if all was well */
static int process(struct shared *shared, pid_t *other)
{
	struct sigaction act = { .sa_handler = leave };
	struct ibv_mr *mr;
	struct link link;
	struct svm svm;
	void *buf;

	sigaction(SIGBUS, &act, NULL);
	if (svm_open(&svm))
		return 4;
	shared->gpu = svm.gpu[svm.nr - 1];
	if (!svm_alias(&shared->gpu).published)
		return 4;
	buf = svm_map(LEN);
	if (!buf || link_open(&link, device))
		return 2;
	pattern_fill(buf, LEN, 1);
	if (svm_prefetch(&svm, buf, LEN, &svm.gpu[svm.nr - 1]) ||
	    svm_away(&svm, buf, LEN) != NR)
		return 2;
	*other = bystander(shared, &svm, buf);
	/*
	 * Read-only. For a writable region, the pages, which the child shares
	 * now, would be copied to system memory.
	 */
	mr = rcp_reg_access(&link.dev, buf, LEN, (uintptr_t)buf,
			    IBV_ACCESS_ON_DEMAND);
	if (!mr)
		return 2;
	return traffic(shared, &link, buf, mr);
}

static void *map_shared(size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

TEST(unbind_under_traffic) {
	struct shared *shared = map_shared(sizeof(*shared));
	pid_t *other = map_shared(sizeof(*other));
	struct svm_alias alias;
	int status, tries;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, (void *)shared);
	ASSERT_NE(MAP_FAILED, (void *)other);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(process(shared, other));
	for (tries = 0; tries < 3000 && !shared->ready; tries++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			if (WIFEXITED(status) && WEXITSTATUS(status) == 4)
				SKIP(return, "no GPU with an alias");
			ASSERT_EQ(0, status);
		}
		usleep(10000);
	}
	ASSERT_EQ(1, shared->ready);

	/* returns when the process has left; the bystander may stay */
	ASSERT_EQ(0, unbind_gpu(shared->gpu.pci));
	EXPECT_FALSE(svm_alias(&shared->gpu).found);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, shared->wrong);
	EXPECT_LT(0, shared->right);
	TH_LOG("%d right, %d failed", shared->right, shared->failed);

	ASSERT_EQ(0, kill(*other, 0));
	shared->unbound = 1;
	for (tries = 0; tries < 1000 && !shared->bystander; tries++)
		usleep(10000);
	EXPECT_EQ(1, shared->bystander);

	ASSERT_EQ(0, bind_gpu(shared->gpu.pci));
	alias = svm_alias(&shared->gpu);
	EXPECT_EQ(1, alias.published);
	EXPECT_EQ(0, alias.mapped);
}

int main(int argc, char **argv)
{
	return run_with_device(argc, argv, DEVICE);
}
