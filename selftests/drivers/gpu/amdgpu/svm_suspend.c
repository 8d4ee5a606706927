// SPDX-License-Identifier: GPL-2.0
/*
 * SVM memory of a GPU during a suspend of the system: it moves to system
 * memory, that of a child too, and goes back to the GPU afterwards.
 *
 * Suspends all devices, but no more than that (pm_test). Not every machine
 * survives it, least of all a virtual one with its root file system on virtio,
 * so it has to be asked for with SUSPEND=1. See kfd_svm.h for GPU=.
 */
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"
#include "kfd_svm.h"

#define NR	256ul
#define LEN	(NR * SVM_PAGE)
#define MAX_RANGES	64

/* Returns when all devices are resumed. */
static int suspend(void)
{
	return write_file("/sys/power/state", "freeze");
}

/* Filling or swapping memory takes minutes on an emulated debug kernel. */
#define PATIENCE 600

FIXTURE(suspend) {
	struct svm svm;
	struct svm_gpu *gpu;
	char *buf;
	int kmsg;
};

FIXTURE_SETUP(suspend) {
	self->svm.kfd = -1;
	if (!getenv("SUSPEND"))
		SKIP(return, "SUSPEND=1 is not set");
	if (write_file("/sys/power/pm_test", "devices"))
		SKIP(return, "no CONFIG_PM_DEBUG, or not root");
	write_file("/sys/module/suspend/parameters/pm_test_delay", "0");
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

FIXTURE_TEARDOWN(suspend) {
	if (self->svm.kfd < 0)
		return;
	munmap(self->buf, LEN);
	svm_close(&self->svm);
	write_file("/sys/power/pm_test", "none");
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->kmsg);
}

/* If the first range got memory that is not its own, the second gets it too. */
static void check_goes_back(struct __test_metadata *_metadata,
			    FIXTURE_DATA(suspend) *self)
{
	char *other = svm_map(LEN);

	ASSERT_NE(NULL, other);
	pattern_fill(other, LEN, 2);
	ASSERT_EQ(0, svm_prefetch(&self->svm, self->buf, LEN, self->gpu));
	ASSERT_EQ(0, svm_prefetch(&self->svm, other, LEN, self->gpu));
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
	EXPECT_EQ(NR, svm_away(&self->svm, other, LEN));
	EXPECT_EQ(1, svm_look(self->buf, LEN, 1));
	EXPECT_EQ(1, svm_look(other, LEN, 2));
	munmap(other, LEN);
}

TEST_F_TIMEOUT(suspend, there_and_back, 120) {
	struct svm_alias before = svm_alias(self->gpu);
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, svm_prefetch(&self->svm, self->buf, LEN, self->gpu));
		ASSERT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
		ASSERT_EQ(0, suspend());
		EXPECT_EQ(0, svm_away(&self->svm, self->buf, LEN));
		check_goes_back(_metadata, self);
		EXPECT_EQ(before.published, svm_alias(self->gpu).published);
	}
}

/* The child's pages belong to no range. */
TEST_F_TIMEOUT(suspend, child, 120) {
	int status, go[2];
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(go));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(go[1]);
		svm_close(&self->svm);
		if (read(go[0], &byte, 1) < 0)
			_exit(2);
		_exit(svm_look(self->buf, LEN, 1) == 1 ? 0 : 1);
	}
	ASSERT_EQ(0, suspend());
	EXPECT_EQ(0, svm_away(&self->svm, self->buf, LEN));
	check_goes_back(_metadata, self);
	close(go[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* Returns what @field of a node's meminfo says, in bytes. */
static size_t node_memory(int node, const char *field)
{
	size_t size = 0, kib;
	char line[128], name[64];
	FILE *file;

	snprintf(line, sizeof(line), "/sys/devices/system/node/node%d/meminfo",
		 node);
	file = fopen(line, "r");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Node %*d %63[^:]: %zu", name, &kib) == 2 &&
		    !strcmp(name, field))
			size = kib * 1024;
	if (file)
		fclose(file);
	return size;
}

/* Returns a small node that is not the first one, or 0. */
static int small_node(void)
{
	int node;

	for (node = 62; node > 0; node--) {
		size_t total = node_memory(node, "MemTotal");

		if (total && total <= 1024 * MIB)
			break;
	}
	return node;
}

/* Takes memory of a node until @left bytes are free. Returns what it took. */
static size_t take_memory(int node, size_t left, char **hog)
{
	unsigned long mask = 1ul << node;
	size_t available = node_memory(node, "MemFree");
	size_t size = available > left ? available - left : 0;

	*hog = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*hog == MAP_FAILED ||
	    syscall(SYS_mbind, *hog, size, MPOL_BIND, &mask, 64, 0) ||
	    madvise(*hog, size, MADV_POPULATE_WRITE))
		return 0;
	return size;
}

/* Suspends with memory of one node: this task runs the driver's prepare(). */
static int suspend_on(int node)
{
	unsigned long mask = 1ul << node;
	int r;

	if (syscall(SYS_set_mempolicy, MPOL_BIND, &mask, 64))
		return -errno;
	r = suspend();
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0);
	return r;
}

/*
 * If there is no memory for the pages, a suspend fails, and soon. Only one node
 * is full: if all were, the next allocation would wake the OOM killer.
 */
TEST_F_TIMEOUT(suspend, no_memory, PATIENCE) {
	const size_t len = 256 * MIB;
	int node = small_node();
	char *large, *hog;
	size_t taken;

	if (!node)
		SKIP(return, "no second NUMA node of at most 1 GiB");
	large = svm_map(len);
	ASSERT_NE(NULL, large);
	pattern_fill(large, len, 3);
	ASSERT_EQ(0, svm_prefetch(&self->svm, large, len, self->gpu));
	ASSERT_EQ(len / SVM_PAGE, svm_away(&self->svm, large, len));
	taken = take_memory(node, 64 * MIB, &hog);
	ASSERT_NE(0, taken);
	EXPECT_EQ(-ENOMEM, suspend_on(node));
	EXPECT_LT(0, svm_away(&self->svm, large, len));
	munmap(hog, taken);
	EXPECT_EQ(1, svm_look(large, len, 3));
	EXPECT_EQ(0, suspend());
	munmap(large, len);
}

/* A GPU that was reset takes memory, which survives suspend. */
static void check_works(struct __test_metadata *_metadata,
			FIXTURE_DATA(suspend) *self, struct svm_gpu *gpu)
{
	char *range = svm_map(LEN);

	ASSERT_NE(NULL, range);
	pattern_fill(range, LEN, 4);
	ASSERT_EQ(0, svm_prefetch(&self->svm, range, LEN, gpu));
	EXPECT_EQ(NR, svm_away(&self->svm, range, LEN));
	ASSERT_EQ(0, suspend());
	EXPECT_EQ(0, svm_away(&self->svm, range, LEN));
	ASSERT_EQ(0, svm_prefetch(&self->svm, range, LEN, gpu));
	EXPECT_EQ(NR, svm_away(&self->svm, range, LEN));
	EXPECT_EQ(1, svm_look(range, LEN, 4));
	munmap(range, LEN);
}

/* Ranges on a GPU that take whatever is free first */
static void check_place(struct __test_metadata *_metadata,
			FIXTURE_DATA(suspend) *self, struct svm_gpu *gpu,
			char *lost)
{
	char *range[MAX_RANGES];
	int i;

	for (i = 0; i < MAX_RANGES; i++) {
		range[i] = svm_map(LEN);
		ASSERT_NE(NULL, range[i]);
		pattern_fill(range[i], LEN, 10 + i);
		ASSERT_EQ(0, svm_prefetch(&self->svm, range[i], LEN, gpu));
	}
	EXPECT_EQ(0, svm_look(lost, LEN, 3));
	EXPECT_EQ(NR, svm_away(&self->svm, lost, LEN));
	for (i = 0; i < MAX_RANGES; i++) {
		EXPECT_EQ(1, svm_look(range[i], LEN, 10 + i));
		munmap(range[i], LEN);
	}
}

/* Lost memory stays lost, and is not reused, however scarce memory is. */
static void check_lost(struct __test_metadata *_metadata,
		       FIXTURE_DATA(suspend) *self, char *lost)
{
	struct gpu gpu;

	check_place(_metadata, self, &self->svm.gpu[1], lost);
	ASSERT_EQ(0, open_gpu(&gpu, self->svm.gpu[1].pci));
	EXPECT_LT(1, fill_video_memory(&gpu));
	close(gpu.fd);
	EXPECT_EQ(0, svm_look(lost, LEN, 3));
	EXPECT_EQ(NR, svm_away(&self->svm, lost, LEN));
}

/*
 * A process that keeps memory which a reset has lost does not keep the system
 * from being suspended. It still has its lost memory afterwards.
 */
TEST_F_TIMEOUT(suspend, lost, PATIENCE) {
	struct svm_alias before = svm_alias(self->gpu);
	struct svm_gpu *other = &self->svm.gpu[1];
	char *lost = svm_map(LEN);
	int i;

	if (self->svm.nr < 2)
		SKIP(return, "this needs two GPUs");
	ASSERT_NE(NULL, lost);
	pattern_fill(lost, LEN, 3);
	ASSERT_EQ(0, svm_prefetch(&self->svm, lost, LEN, other));
	ASSERT_EQ(NR, svm_away(&self->svm, lost, LEN));
	ASSERT_EQ(0, svm_reset(other));
	if (svm_look(lost, LEN, 3))
		SKIP(return, "the memory survives resets of this GPU");
	/* linked GPUs are reset together: memory of the first is lost, too */
	if (gpu_linked(self->gpu->pci)) {
		munmap(self->buf, LEN);
		self->buf = svm_map(LEN);
		ASSERT_NE(NULL, self->buf);
		pattern_fill(self->buf, LEN, 1);
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, suspend());
		check_goes_back(_metadata, self);
		check_lost(_metadata, self, lost);
	}
	EXPECT_EQ(before.published, svm_alias(self->gpu).published);
	munmap(lost, LEN);
	for (i = 0; i < 500 && !svm_alias(other).published; i++)
		usleep(10000);
	EXPECT_EQ(before.published, svm_alias(other).published);
	check_works(_metadata, self, other);
}

/* The process that kept lost memory exits. */
TEST_F_TIMEOUT(suspend, lost_by_others, PATIENCE) {
	struct svm_gpu *other = &self->svm.gpu[1];
	int status, go[2], ready[2];
	struct svm svm;
	char byte = 0, *lost;
	pid_t pid;

	if (self->svm.nr < 2)
		SKIP(return, "this needs two GPUs");
	ASSERT_EQ(0, pipe(go));
	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(go[1]);
		lost = svm_map(LEN);
		pattern_fill(lost, LEN, 3);
		if (svm_open(&svm) ||
		    svm_prefetch(&svm, lost, LEN, &svm.gpu[1]) ||
		    write(ready[1], &byte, 1) != 1 ||
		    read(go[0], &byte, 1) < 0)
			_exit(2);
		_exit(svm_look(lost, LEN, 3) ? 1 : 0);
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	ASSERT_EQ(0, svm_reset(other));
	EXPECT_EQ(0, suspend());
	close(go[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	check_works(_metadata, self, other);
}

TEST_HARNESS_MAIN
