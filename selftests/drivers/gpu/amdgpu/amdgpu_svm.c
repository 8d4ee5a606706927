// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of the process that is moved to the device-private pages of one GPU or
 * another and brought back by the CPU's first touch. See kfd_svm.h for GPU=.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"
#include "kfd_svm.h"

#define NR	1024ul
#define LEN	(NR * SVM_PAGE)

FIXTURE(svm) {
	struct svm svm;
	int kmsg;
};

static uint32_t *fill(uint32_t *p, uint32_t seed)
{
	for (size_t i = 0; p && i < LEN / 4; i++)
		p[i] = i * 7 + seed;
	return p;
}

static uint32_t *new_range(uint32_t seed)
{
	return fill(svm_map(LEN), seed);
}

/* A range whose huge pages the driver maps by one page directory entry each. */
static uint32_t *new_huge_range(uint32_t seed)
{
	uint32_t *p = svm_map(LEN);

	if (p)
		madvise(p, LEN, MADV_HUGEPAGE);
	return fill(p, seed);
}

FIXTURE_SETUP(svm)
{
	self->svm.kfd = -1;
	if (svm_open(&self->svm))
		SKIP(return, "no KFD");
	self->kmsg = kmsg_open();
}

FIXTURE_TEARDOWN(svm)
{
	if (self->svm.kfd < 0)
		return;
	if (self->kmsg >= 0)
		EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	svm_close(&self->svm);
}

static size_t wrong_words(const uint32_t *p, uint32_t seed)
{
	size_t count = 0;

	for (size_t i = 0; i < LEN / 4; i++)
		count += p[i] != (uint32_t)i * 7 + seed;
	return count;
}

TEST_F(svm, there_and_back)
{
	for (int i = 0; i < self->svm.nr; i++) {
		uint32_t *p = new_range(i);

		ASSERT_NE(NULL, p);
		ASSERT_EQ(0, svm_prefetch(&self->svm, p, LEN,
					  &self->svm.gpu[i]));
		EXPECT_EQ(NR, svm_away(&self->svm, p, LEN));
		EXPECT_EQ(0, wrong_words(p, i));
		EXPECT_EQ(0, svm_away(&self->svm, p, LEN));
	}
}

/* Each GPU has a range before the CPU touches the first one. */
TEST_F(svm, on_all_at_once)
{
	const int nr = self->svm.nr;
	uint32_t *p[SVM_MAX_GPUS];

	for (int i = 0; i < nr; i++) {
		p[i] = new_range(100 + i);
		ASSERT_NE(NULL, p[i]);
		ASSERT_EQ(0, svm_prefetch(&self->svm, p[i], LEN,
					  &self->svm.gpu[i]));
	}
	for (int i = 0; i < nr; i++)
		EXPECT_EQ(NR, svm_away(&self->svm, p[i], LEN));
	for (int i = 0; i < nr; i++) {
		EXPECT_EQ(0, wrong_words(p[i], 100 + i));
		EXPECT_EQ(0, svm_away(&self->svm, p[i], LEN));
		/* the others stay where they are */
		if (i + 1 < nr)
			EXPECT_EQ(NR, svm_away(&self->svm, p[i + 1], LEN));
	}
}

/*
 * From each GPU to every other. Without retry faults a range that two GPUs map
 * stays in system memory.
 */
TEST_F_TIMEOUT(svm, from_gpu_to_gpu, 200)
{
	const int nr = self->svm.nr;
	uint32_t *p;

	if (nr < 2)
		SKIP(return, "this needs two GPUs");
	if (svm_enable_xnack(self->svm.kfd))
		SKIP(return, "no retry faults");
	p = new_range(5);
	ASSERT_NE(NULL, p);
	for (int step = 1; step < nr; step++) {
		for (int i = 0; i <= nr; i++) {
			struct svm_gpu *gpu = &self->svm.gpu[i * step % nr];

			ASSERT_EQ(0, svm_prefetch(&self->svm, p, LEN, gpu));
			EXPECT_EQ(NR, svm_away(&self->svm, p, LEN));
		}
	}
	EXPECT_EQ(0, wrong_words(p, 5));
	EXPECT_EQ(0, svm_away(&self->svm, p, LEN));
}

/*
 * Pages that the process has discarded are gone, for itself and for the GPU,
 * even where the range keeps its video memory because of other pages.
 */
TEST_F_TIMEOUT(svm, discarded, 200)
{
	struct svm_gpu *gpu = &self->svm.gpu[0];
	uint32_t *p = new_range(7), *out = new_range(8);
	char *half = (char *)p + LEN / 2;
	char *zeroes = calloc(1, LEN / 2);
	struct svm_queue q;

	ASSERT_NE(NULL, p);
	ASSERT_NE(NULL, out);
	ASSERT_NE(NULL, zeroes);
	ASSERT_EQ(0, svm_access(&self->svm, out, LEN, gpu));
	ASSERT_EQ(0, svm_prefetch(&self->svm, p, LEN, gpu));
	ASSERT_EQ(NR, svm_away(&self->svm, p, LEN));
	ASSERT_EQ(0, madvise(half, LEN / 2, MADV_DONTNEED));
	ASSERT_EQ(0, svm_prefetch(&self->svm, p, LEN, gpu));
	EXPECT_EQ(NR, svm_away(&self->svm, p, LEN));
	ASSERT_EQ(0, svm_queue_open(&self->svm, gpu, &q));
	ASSERT_EQ(0, svm_queue_copy(&q, p, out, LEN));
	svm_queue_close(&self->svm, &q);
	EXPECT_EQ(0, memcmp((char *)out + LEN / 2, zeroes, LEN / 2));
	EXPECT_EQ(0, memcmp(half, zeroes, LEN / 2));
	EXPECT_EQ(0, memcmp(p, out, LEN));
	free(zeroes);
}

/* A discarded page does not keep the rest of its range from moving on. */
TEST_F_TIMEOUT(svm, discarded_before_it_moves_on, 120)
{
	struct svm_gpu *gpu = self->svm.gpu;
	uint32_t *p;

	if (self->svm.nr < 2)
		SKIP(return, "this needs two GPUs");
	if (svm_enable_xnack(self->svm.kfd))
		SKIP(return, "no retry faults");
	p = new_range(9);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, svm_prefetch(&self->svm, p, LEN, &gpu[0]));
	ASSERT_EQ(NR, svm_away(&self->svm, p, LEN));
	ASSERT_EQ(0, madvise(p, SVM_PAGE, MADV_DONTNEED));
	ASSERT_EQ(NR - 1, svm_away(&self->svm, p, LEN));
	EXPECT_EQ(0, svm_prefetch(&self->svm, p, LEN, &gpu[1]));
	EXPECT_EQ(NR, svm_away(&self->svm, p, LEN));
	for (size_t i = 0; i < SVM_PAGE / 4; i++) {
		EXPECT_EQ(0, p[i]);
		p[i] = i * 7 + 9;
	}
	EXPECT_EQ(0, wrong_words(p, 9));
}

/*
 * Pages are replaced, and the range is split before the driver has mapped it
 * again: the GPU reads the new pages all the same.
 */
TEST_F_TIMEOUT(svm, split_before_it_is_mapped_again, 120)
{
	struct svm_gpu *gpu = &self->svm.gpu[0];
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 5
	};
	uint32_t *p, *out = new_range(0), value;
	struct svm_queue q;
	void *other;
	int round;

	ASSERT_NE(NULL, out);
	ASSERT_EQ(0, svm_access(&self->svm, out, LEN, gpu));
	ASSERT_EQ(0, svm_queue_open(&self->svm, gpu, &q));
	for (round = 0; round < 30; round++) {
		p = new_range(round);
		ASSERT_NE(NULL, p);
		ASSERT_EQ(0, madvise(p, LEN, MADV_NOHUGEPAGE));
		ASSERT_EQ(0, svm_access(&self->svm, p, LEN, gpu));
		ASSERT_EQ(0, madvise(p, SVM_PAGE, MADV_DONTNEED));
		/* takes the freed page, which could be the new one otherwise */
		other = mmap(NULL, 64 * SVM_PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		ASSERT_NE(MAP_FAILED, other);
		/* not inside a huge page, or the rest is mapped at once */
		ASSERT_EQ(0, svm_set(&self->svm, (char *)p + LEN / 2, LEN / 2,
				     &attr, 1));
		value = 0x12340000 + round;
		p[0] = value;
		ASSERT_EQ(0, svm_queue_copy(&q, p, out, SVM_PAGE));
		ASSERT_EQ(value, out[0]) TH_LOG("round %d", round);
		munmap(other, 64 * SVM_PAGE);
		munmap(p, LEN);
	}
	svm_queue_close(&self->svm, &q);
}

/*
 * A huge page that one page directory entry maps is split inside, and what is
 * left on both sides stays mapped.
 */
TEST_F(svm, split_inside_a_huge_page)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 5
	};
	struct svm_gpu *gpu = &self->svm.gpu[0];
	uint32_t *p = new_huge_range(1), *out = new_range(0);
	char *in_huge = (char *)p + SVM_ALIGN / 2;
	struct svm_queue q;

	ASSERT_NE(NULL, p);
	ASSERT_NE(NULL, out);
	/* one range for each */
	ASSERT_EQ(0, svm_access(&self->svm, out, LEN, gpu));
	ASSERT_EQ(0, svm_access(&self->svm, p, SVM_ALIGN, gpu));
	ASSERT_EQ(0, svm_queue_open(&self->svm, gpu, &q));
	ASSERT_EQ(0, svm_queue_copy(&q, p, out, SVM_ALIGN));
	ASSERT_EQ(0, memcmp(p, out, SVM_ALIGN));

	ASSERT_EQ(0, svm_set(&self->svm, in_huge, SVM_PAGE, &attr, 1));
	memset(out, 0, LEN);
	EXPECT_EQ(0, svm_queue_copy(&q, p, out, SVM_ALIGN));
	EXPECT_EQ(0, memcmp(p, out, SVM_ALIGN));
	svm_queue_close(&self->svm, &q);
}

/* The GPU may not access what the process may not. */
TEST_F(svm, no_access)
{
	struct svm_gpu *gpu = &self->svm.gpu[0];
	uint32_t *p = new_range(1), *out = new_range(2);
	struct svm_queue q;

	ASSERT_NE(NULL, p);
	ASSERT_NE(NULL, out);
	ASSERT_EQ(0, svm_access(&self->svm, out, LEN, gpu));
	ASSERT_EQ(0, svm_access(&self->svm, p, LEN, gpu));
	ASSERT_EQ(0, svm_queue_open(&self->svm, gpu, &q));
	ASSERT_EQ(0, svm_queue_copy(&q, p, out, SVM_PAGE));

	ASSERT_EQ(0, mprotect(p, LEN, PROT_NONE));
	/* the driver may notice that now, or later */
	usleep(10000);
	ASSERT_EQ(0, mprotect(p, LEN, PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, svm_queue_copy(&q, out, p, SVM_PAGE));

	ASSERT_EQ(0, mprotect(p, LEN, PROT_NONE));
	/* a queue that faults may stop; others take a few milliseconds */
	svm_queue_start_copy(&q, out, p, LEN);
	sleep(1);
	svm_queue_close(&self->svm, &q);
	ASSERT_EQ(0, mprotect(p, LEN, PROT_READ));
	EXPECT_EQ(0, wrong_words(p, 1));
}

/*
 * The child has the data as well, and brings it back while the driver maps the
 * parent's range again: neither may wait for the other.
 */
TEST_F(svm, fork)
{
	uint32_t *p = new_range(6);
	pid_t child;
	int status;

	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, svm_prefetch(&self->svm, p, LEN, &self->svm.gpu[0]));
	child = fork();
	ASSERT_GE(child, 0);
	if (!child)
		_exit(wrong_words(p, 6) ? 1 : 0);

	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, wrong_words(p, 6));
}

/* A child says 'r' when all is ready, its own child 'y' if data are right. */
struct heir {
	int go[2];
	int says[2];
};

static void heir_say(struct heir *heir, char what)
{
	if (write(heir->says[1], &what, 1) != 1)
		_exit(2);
}

static char heir_asked(struct heir *heir)
{
	char c = 0;

	return read(heir->says[0], &c, 1) == 1 ? c : 0;
}

/* Wait until the test closes its end of the pipe. */
static void heir_wait(struct heir *heir)
{
	char c;

	close(heir->go[1]);
	if (read(heir->go[0], &c, 1))
		_exit(2);
}

/* The child has pages in video memory, which then only its own child has. */
static void leave_to_heir(struct heir *heir)
{
	uint32_t *p = new_range(8);
	struct svm svm;
	pid_t child;

	if (!p || svm_open(&svm) ||
	    svm_prefetch(&svm, p, LEN, &svm.gpu[0]) ||
	    svm_away(&svm, p, LEN) != NR)
		_exit(1);
	child = fork();
	if (!child) {
		heir_wait(heir);
		heir_say(heir, wrong_words(p, 8) ? 'n' : 'y');
		_exit(0);
	}
	if (child < 0 || munmap(p, LEN))
		_exit(1);
	heir_say(heir, 'r');
	heir_wait(heir);
	_exit(0);
}

/*
 * A child has pages in video memory that its parent has given up: however
 * scarce video memory gets, others must not get those. The child may get
 * SIGBUS, because amdkfd brings pages back by the ranges of the parent.
 */
TEST_F_TIMEOUT(svm, child_has_the_only_pages, 200)
{
	struct heir heir;
	struct gpu gpu;
	pid_t parent;
	bool too_much;
	int filled;

	ASSERT_EQ(0, pipe(heir.go));
	ASSERT_EQ(0, pipe(heir.says));
	parent = fork();
	ASSERT_LE(0, parent);
	if (!parent)
		leave_to_heir(&heir);
	close(heir.go[0]);
	close(heir.says[1]);
	ASSERT_EQ('r', heir_asked(&heir));
	ASSERT_EQ(0, open_gpu(&gpu, self->svm.gpu[0].pci));
	too_much = video_memory(&gpu) >= FILL_BUFFERS * FILL_SIZE;
	filled = fill_video_memory(&gpu);
	close(heir.go[1]);
	EXPECT_NE('n', heir_asked(&heir));
	waitpid(parent, NULL, 0);
	close(heir.says[0]);
	close(gpu.fd);
	if (too_much)
		SKIP(return, "there is too much video memory to fill");
	EXPECT_EQ(FILL_BUFFERS, filled);
}

TEST_HARNESS_MAIN
