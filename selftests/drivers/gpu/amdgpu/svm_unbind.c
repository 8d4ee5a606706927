// SPDX-License-Identifier: GPL-2.0
/*
 * The driver is unbound from a GPU while something else is going on there: a
 * page fault that copies from it, or a reset. Unbinds the last GPU, and binds
 * it again: see kfd_svm.h for GPU=.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"
#include "kfd_svm.h"

#define NR	8192ul
#define LEN	(NR * SVM_PAGE)

/* What the processes tell each other */
struct shared {
	atomic_int ready;
	atomic_int go;
	atomic_int leave;
	struct svm_gpu gpu;
};

FIXTURE(unbind) {
	struct shared *shared;
	pid_t pid;
	int kmsg;
};

FIXTURE_SETUP(unbind) {
	self->kmsg = kmsg_open();
	self->shared = mmap(NULL, sizeof(*self->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->shared);
}

FIXTURE_TEARDOWN(unbind) {
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->kmsg);
}

static bool wait_for(atomic_int *what)
{
	int tries;

	for (tries = 0; tries < 3000 && !*what; tries++)
		usleep(10000);
	return *what;
}

/* KFD tells processes to leave by this signal; failed accesses raise it too. */
static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	if (info->si_code == BUS_ADRERR)
		_exit(1);
}

static void take_sigbus(void)
{
	struct sigaction act = {
		.sa_sigaction = on_sigbus,
		.sa_flags = SA_SIGINFO | SA_RESTART,
	};

	sigaction(SIGBUS, &act, NULL);
}

/* The KFD process of a test. Exit status: 4 to skip, 0 if all was well */
typedef int (*process_fn)(struct shared *shared, struct svm *svm);

static int run(struct shared *shared, process_fn process)
{
	struct svm svm;

	take_sigbus();
	if (svm_open(&svm))
		return 4;
	shared->gpu = svm.gpu[svm.nr - 1];
	return process(shared, &svm);
}

/* 0 once the process is ready, else its exit status or -1 */
static int start(FIXTURE_DATA(unbind) *self, process_fn process)
{
	int status, tries;

	self->pid = fork();
	if (!self->pid)
		_exit(run(self->shared, process));
	for (tries = 0; tries < 3000 && !self->shared->ready; tries++) {
		if (waitpid(self->pid, &status, WNOHANG) == self->pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		usleep(10000);
	}
	return self->shared->ready ? 0 : -1;
}

/* Memory in the GPU to unbind, all of which one fault brings back; or NULL. */
static char *memory_there(struct svm *svm)
{
	const struct kfd_ioctl_svm_attribute whole = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 30
	};
	struct svm_gpu *gpu = &svm->gpu[svm->nr - 1];
	char *buf = svm_map(LEN);

	if (!buf || svm_set(svm, buf, LEN, &whole, 1))
		return NULL;
	pattern_fill(buf, LEN, 1);
	if (svm_prefetch(svm, buf, LEN, gpu) || svm_away(svm, buf, LEN) != NR)
		return NULL;
	return buf;
}

static int one_fault(struct shared *shared, struct svm *svm)
{
	char *buf = memory_there(svm);

	if (!buf)
		return 2;
	shared->ready = 1;
	wait_for(&shared->go);
	return pattern_check(buf, LEN, 1) < 0 ? 0 : 1;
}

/*
 * A slow engine brings back all of a range after a fault, for longer than the
 * driver retries pages that are in use. Unbinding waits for the copy.
 */
TEST_F_TIMEOUT(unbind, during_fault, 200) {
	int emu = emulator_open(), status, why;

	if (emu < 0)
		SKIP(return, "no emulator to slow down");
	why = start(self, one_fault);
	if (why == 4)
		SKIP(return, "no GPU with KFD");
	ASSERT_EQ(0, why);
	ASSERT_EQ(0, emulator(emu, "gpu0 engine all slow 30000"));
	ASSERT_EQ(0, emulator(emu, "gpu1 engine all slow 30000"));
	self->shared->go = 1;
	usleep(300000);
	EXPECT_EQ(0, unbind_gpu(self->shared->gpu.pci));
	EXPECT_EQ(self->pid, waitpid(self->pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, emulator(emu, "gpu0 engine all resume"));
	EXPECT_EQ(0, emulator(emu, "gpu1 engine all resume"));
	close(emu);
	EXPECT_EQ(0, bind_gpu(self->shared->gpu.pci));
}

/* Has memory in the GPU, and waits until it is told to leave. */
static int have_memory(struct shared *shared, struct svm *svm)
{
	if (!memory_there(svm))
		return 2;
	shared->ready = 1;
	wait_for(&shared->leave);
	return 0;
}

/* The emulator has the GPUs in the order of their addresses. */
static int hang_engines(int emu, const char *pci)
{
	char gpus[MAX_GPUS][32], command[64];
	int i, count = find_gpus(gpus);

	for (i = 0; i < count; i++) {
		if (strcmp(gpus[i], pci))
			continue;
		snprintf(command, sizeof(command), "gpu%d engine all hang", i);
		return emulator(emu, command);
	}
	return -ENODEV;
}

/* 6: by the PCI core */
#define RESET_METHOD	"/sys/module/amdgpu/parameters/reset_method"

/*
 * Unbinding holds the lock of the device and waits for a copy that hangs. The
 * PCI core makes the reset that would end the copy, and wants the lock.
 */
TEST_F_TIMEOUT(unbind, with_a_hung_engine, 200) {
	int emu = emulator_open(), status, why;

	if (emu < 0)
		SKIP(return, "no emulator to hang engines");
	why = start(self, have_memory);
	if (why == 4)
		SKIP(return, "no GPU with KFD");
	ASSERT_EQ(0, why);
	ASSERT_EQ(0, write_file(RESET_METHOD, "6"));
	ASSERT_EQ(0, hang_engines(emu, self->shared->gpu.pci));
	EXPECT_EQ(0, unbind_gpu(self->shared->gpu.pci));
	self->shared->leave = 1;
	/* the memory may be lost, and its process told so by SIGBUS */
	EXPECT_EQ(self->pid, waitpid(self->pid, &status, 0));
	EXPECT_EQ(0, emulator_all(emu, "engine all resume"));
	EXPECT_EQ(0, write_file(RESET_METHOD, "-1"));
	close(emu);
	EXPECT_EQ(0, bind_gpu(self->shared->gpu.pci));
}

/* Has no memory in the GPU: lost memory would hide the alias as well. */
static int idle(struct shared *shared, struct svm *svm)
{
	if (!svm_alias(&shared->gpu).published)
		return 4;
	shared->ready = 1;
	return wait_for(&shared->leave) ? 0 : 3;
}

static void *do_reset(void *arg)
{
	return (void *)(intptr_t)svm_reset(arg);
}

static void *do_unbind(void *arg)
{
	struct svm_gpu *gpu = arg;

	return (void *)(intptr_t)unbind_gpu(gpu->pci);
}

/*
 * A reset begins, unbinding begins, the reset ends. Whichever is first, an
 * alias that unbinding has hidden does not come back.
 */
TEST_F_TIMEOUT(unbind, during_reset, 200) {
	struct svm_gpu *gpu = &self->shared->gpu;
	int status, why, i, back = 0;
	pthread_t reset, unbind;
	bool hidden = false;
	void *err;

	why = start(self, idle);
	if (why == 4)
		SKIP(return, "no GPU with KFD");
	ASSERT_EQ(0, why);
	ASSERT_EQ(0, pthread_create(&reset, NULL, do_reset, gpu));
	for (i = 0; i < 10000 && svm_alias(gpu).published; i++)
		usleep(1000);
	ASSERT_EQ(0, pthread_create(&unbind, NULL, do_unbind, gpu));
	pthread_join(reset, &err);
	EXPECT_EQ(NULL, err);
	/* the driver waits for the process, which has not been told to leave */
	for (i = 0; i < 100; i++) {
		if (!svm_alias(gpu).published)
			hidden = true;
		else if (hidden)
			back++;
		usleep(10000);
	}
	EXPECT_TRUE(hidden);
	EXPECT_EQ(0, back);
	self->shared->leave = 1;
	pthread_join(unbind, &err);
	EXPECT_EQ(NULL, err);
	EXPECT_EQ(self->pid, waitpid(self->pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, bind_gpu(gpu->pci));
	EXPECT_EQ(1, svm_alias(gpu).published);
}

TEST_HARNESS_MAIN
