// SPDX-License-Identifier: GPL-2.0
/*
 * A GPU is pulled out of its slot while it works: reads from it return all
 * ones, then the slot is empty. Its jobs and files end with an error, another
 * GPU goes on, and the kernel neither hangs nor complains. The GPUs do not come
 * back: each test takes the first of those that are left. Run this test last.
 */
#include <signal.h>

#include "../../../kselftest_harness.h"
#include "bystander.h"
#include "amdgpu_test.h"
#include "kfd_svm.h"

#define NR	512ul
#define LEN	(NR * SVM_PAGE)
#define SVM_NONE	4	/* exit status: there is no KFD */

FIXTURE(removal) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer ib, vram;
	struct bystander by;
	int kmsg, port, pulled;
};

/* The emulator still counts the GPUs that are gone. */
static int count_pulled(int port, int left)
{
	char text[64];

	if (emulator_ask(port, "list", text, sizeof(text)))
		return -1;
	return atoi(text) - left;
}

/* Send a command to the GPU of this test. */
static int tell(FIXTURE_DATA(removal) *self, const char *command)
{
	char text[64];

	snprintf(text, sizeof(text), "gpu%d %s", self->pulled, command);
	return emulator(self->port, text);
}

FIXTURE_SETUP(removal)
{
	int count = find_gpus(self->gpus);

	if (!count)
		SKIP(return, "no GPU");
	self->port = emulator_open();
	if (self->port < 0)
		SKIP(return, "nobody can pull out this GPU");
	self->pulled = count_pulled(self->port, count);
	ASSERT_LE(0, self->pulled);
	self->kmsg = kmsg_open();
	if (self->kmsg < 0)
		SKIP(return, "the kernel's log is not readable");
	ASSERT_EQ(0, bystander_start(&self->by, NULL,
				     count > 1 ? self->gpus[1] : NULL));
	ASSERT_EQ(0, open_gpu(&self->gpu, self->gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->ib, 65536,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->vram, 65536,
				       AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, write_word(&self->gpu, &self->ib, 1));
}

FIXTURE_TEARDOWN(removal)
{
	EXPECT_EQ(0, bystander_end(&self->by));
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->kmsg);
	close(self->port);
}

/* Another process that runs jobs until one fails. */
static pid_t start_jobs(const char *name)
{
	pid_t child = fork();
	struct buffer b;
	struct gpu gpu;

	if (child)
		return child;
	if (open_gpu(&gpu, name) ||
	    new_mapped_buffer(&gpu, &b, 65536, AMDGPU_GEM_DOMAIN_GTT))
		_exit(2);
	for (uint32_t i = 0; !write_word(&gpu, &b, i); i++)
		;
	_exit(0);
}

static bool leaves(const char *path, double seconds)
{
	double end = now() + seconds;

	while (!access(path, F_OK) && now() < end)
		usleep(20000);
	return access(path, F_OK);
}

/*
 * Empty the slot. If its port cannot tell the kernel, do what an administrator
 * would do.
 */
static int empty_slot(FIXTURE_DATA(removal) *self)
{
	char path[300];
	int ret = tell(self, "remove");

	if (ret)
		return ret;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", self->gpus[0]);
	if (leaves(path, 1))
		return 0;
	printf("# nothing tells the kernel that the slot is empty\n");
	strcat(path, "/remove");
	write_file(path, "1");
	return leaves(path, 60) ? 0 : -ETIMEDOUT;
}

/*
 * A process that waits for a job of a dead GPU must not wait for ever. It has
 * 20 seconds to end; its own timeout is 30 seconds. See patient() for both.
 */
static bool ends(pid_t child)
{
	double end = now() + patient(20);
	int status;

	while (now() < end) {
		if (waitpid(child, &status, WNOHANG) == child)
			return !status;
		usleep(20000);
	}
	kill(child, SIGKILL);
	return false;
}

TEST_F_TIMEOUT(removal, while_jobs_run, 200)
{
	pid_t jobs = start_jobs(self->gpus[0]);
	struct buffer b;

	ASSERT_LE(0, jobs);
	usleep(300000);
	ASSERT_EQ(0, tell(self, "vanish"));
	/* jobs time out, though the kernel is not told that the GPU is gone */
	EXPECT_TRUE(ends(jobs));
	EXPECT_EQ(0, empty_slot(self));

	/* what is left: a dead file, and mappings without memory */
	EXPECT_GT(0, write_word(&self->gpu, &self->ib, 2));
	EXPECT_GT(0, new_buffer(&self->gpu, &b, 4096, AMDGPU_GEM_DOMAIN_VRAM));
	munmap(self->vram.cpu, self->vram.size);
	munmap(self->ib.cpu, self->ib.size);
	EXPECT_EQ(0, close(self->gpu.fd));
}

/* A process with memory on the GPU; reports that, and waits to be killed. */
static void have_svm_memory(const char *gpu, int ready)
{
	struct svm svm;
	void *p;

	setenv("GPU", gpu, 1);
	p = svm_map(LEN);
	if (!p || svm_open(&svm))
		_exit(SVM_NONE);
	memset(p, 0x11, LEN);
	if (svm_prefetch(&svm, p, LEN, &svm.gpu[0]) ||
	    svm_away(&svm, p, LEN) != NR || write(ready, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/*
 * The memory is lost. The driver kills the processes that use its compute part,
 * and does not wait for a copy that will never be done. This process must not
 * have KFD open, because the driver waits for those that have.
 */
TEST_F_TIMEOUT(removal, with_svm_memory, 200)
{
	int ready[2], status;
	pid_t child;
	char byte;

	ASSERT_EQ(0, pipe(ready));
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		have_svm_memory(self->gpus[0], ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_EQ(SVM_NONE, WEXITSTATUS(status));
		SKIP(return, "no KFD");
	}
	ASSERT_EQ(0, tell(self, "vanish"));
	EXPECT_EQ(0, empty_slot(self));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGBUS, WTERMSIG(status));
	close(self->gpu.fd);
}

/* After the tests that pull GPUs out: the harness runs tests in this order. */
FIXTURE(left) {
	char gpus[MAX_GPUS][32];
};

FIXTURE_SETUP(left)
{
	int port = emulator_open(), count = find_gpus(self->gpus);

	if (port < 0 || !count || count_pulled(port, count) < 1)
		SKIP(return, "no GPU was pulled out, or none is left");
	close(port);
}

FIXTURE_TEARDOWN(left)
{
}

/* KFD counts GPUs that keep processes out, and lost GPUs no longer count. */
TEST_F(left, keeps_out_during_reset)
{
	int out = access("/dev/kfd", F_OK) ? -ENOENT :
					    reset_keeps_out(self->gpus[0]);

	if (out == -ENOENT)
		SKIP(return, "no KFD, or no debugfs");
	EXPECT_EQ(1, out);
}

TEST_HARNESS_MAIN
