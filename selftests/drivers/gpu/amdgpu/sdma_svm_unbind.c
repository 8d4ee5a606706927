// SPDX-License-Identifier: GPL-2.0
/*
 * The driver is unbound from a GPU whose engines move memory of a process:
 * batches that have ended are right, the next one is an error, and nothing
 * waits forever. Uses the last GPU, see GPU= in gpus.h.
 */
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "kmsg.h"
#include "sdma_svm.h"

#define SIZE	(4 * MIB)

/* What the processes tell each other */
struct shared {
	unsigned int batches;	/* that have ended well */
};

FIXTURE(unbind)
{
	struct shared *shared;
	int kmsg;
};

FIXTURE_VARIANT(unbind)
{
	bool xnack;
	bool user;	/* user pointers, and no SVM memory */
};

FIXTURE_VARIANT_ADD(unbind, userptr) { .user = true, };
FIXTURE_VARIANT_ADD(unbind, no_xnack) { };
FIXTURE_VARIANT_ADD(unbind, xnack) { .xnack = true, };

FIXTURE_SETUP(unbind)
{
	self->kmsg = kmsg_open();
	if (self->kmsg < 0 || geteuid())
		SKIP(return, "only root may do that");
	self->shared = mmap(NULL, sizeof(*self->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->shared);
}

FIXTURE_TEARDOWN(unbind)
{
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->kmsg);
}

/* KFD tells processes to leave by this signal; failed accesses raise it too. */
static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	if (info->si_code == BUS_ADRERR)
		_exit(3);
}

static void take_sigbus(void)
{
	struct sigaction act = {
		.sa_sigaction = on_sigbus,
		.sa_flags = SA_SIGINFO | SA_RESTART,
	};

	sigaction(SIGBUS, &act, NULL);
}

/* Copies until the GPU is gone. Returns the error. */
static int move_all_the_time(struct shared *shared, struct gpu *gpu,
			     const struct drm_amdgpu_sdma_desc *d, uint8_t *to)
{
	struct drm_amdgpu_sdma_batch batch;
	int ret;

	for (;;) {
		batch = batch_of(gpu, d, 1);
		ret = batch_run(gpu, &batch);
		if (ret)
			return ret;
		if (pattern_check(to, SIZE, 1) >= 0)
			return -EILSEQ;
		memset(to, 0, SIZE);
		__atomic_add_fetch(&shared->batches, 1, __ATOMIC_RELEASE);
	}
}

/* Exit status: 0 if all was well */
static int move_until_unbind(struct shared *shared, struct gpu *gpu,
			     const struct drm_amdgpu_sdma_desc *d,
			     const uint8_t *from, uint8_t *to)
{
	int ret = move_all_the_time(shared, gpu, d, to);

	if (ret == -EILSEQ)
		return 1;
	printf("# %u batches, then %d\n", shared->batches, ret);
	fflush(stdout);
	/* memory that could not be brought back is lost, never wrong */
	return svm_look(from, SIZE, 1) < 0 ? 1 : 0;
}

/* From video to system memory. Exit status: 0 if all was well, 4 to skip */
static int svm_process(struct shared *shared, struct gpu *gpu, bool xnack)
{
	struct drm_amdgpu_sdma_desc d;
	uint8_t *from, *to;
	struct svm svm;
	struct kfd kfd;

	take_sigbus();
	if (kfd_open(&kfd, gpu) ||
	    !(gpu->info.features & AMDGPU_SDMA_FEATURE_SVM) ||
	    (xnack && svm_enable_xnack(kfd.fd)))
		return 4;
	svm = svm_of(&kfd, gpu);
	if (svm_new(&svm, &from, SIZE) || svm_new(&svm, &to, SIZE))
		return 2;
	pattern_fill(from, SIZE, 1);
	if (svm_prefetch(&svm, from, SIZE, &svm.gpu[0]) ||
	    svm_here(&svm, from, SIZE))
		return 2;
	d = faulting(copy_desc((uintptr_t)from, (uintptr_t)to, SIZE));
	return move_until_unbind(shared, gpu, &d, from, to);
}

#define USER_VA		(1024 * MIB)
#define USER_FLAGS	(AMDGPU_GEM_USERPTR_ANONONLY | \
			 AMDGPU_GEM_USERPTR_REGISTER | \
			 AMDGPU_GEM_USERPTR_VALIDATE)

static int user_process(struct shared *shared, struct gpu *gpu)
{
	struct buffer from = { }, to = { };
	struct drm_amdgpu_sdma_desc d = copy_desc(USER_VA, USER_VA + SIZE, SIZE);

	if (!(gpu->info.features & AMDGPU_SDMA_FEATURE_USERPTR))
		return 4;
	if (buffer_user(gpu, &from, SIZE, d.src, USER_FLAGS) ||
	    buffer_user(gpu, &to, SIZE, d.dst, USER_FLAGS))
		return 2;
	pattern_fill(from.cpu, SIZE, 1);
	return move_until_unbind(shared, gpu, &d, from.cpu, to.cpu);
}

static int process(struct shared *shared, int index, bool user, bool xnack)
{
	struct gpu gpu;

	if (gpu_open(&gpu, index))
		return 4;
	return user ? user_process(shared, &gpu) :
		      svm_process(shared, &gpu, xnack);
}

/* 0 once batches run, else the exit status or -1 */
static int wait_for_batches(struct shared *shared, pid_t pid)
{
	int status, tries;

	for (tries = 0; tries < 6000; tries++) {
		if (__atomic_load_n(&shared->batches, __ATOMIC_ACQUIRE) > 3)
			return 0;
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		usleep(10000);
	}
	return -1;
}

TEST_F_TIMEOUT(unbind, while_batches_run, 200)
{
	char gpus[MAX_GPUS][32];
	int num = find_gpus(gpus), status, ret;
	pid_t pid;

	if (!num)
		SKIP(return, "no GPU");
	pid = fork();
	if (!pid)
		_exit(process(self->shared, num - 1, variant->user,
			      variant->xnack));
	ret = wait_for_batches(self->shared, pid);
	if (ret == 4)
		SKIP(return, "no GPU with SDMA batches on this memory");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, unbind_gpu(gpus[num - 1]));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, bind_gpu(gpus[num - 1]));
	/* and another process can use the GPU from then on */
	self->shared->batches = 0;
	pid = fork();
	if (!pid)
		_exit(process(self->shared, num - 1, variant->user,
			      variant->xnack));
	EXPECT_EQ(0, wait_for_batches(self->shared, pid));
	kill(pid, SIGKILL);
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
}

TEST_HARNESS_MAIN
