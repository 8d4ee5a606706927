// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA from SVM memory of a GPU while that GPU is reset. A transfer may fail,
 * as the reset loses the memory. One that succeeds has delivered the data from
 * before the reset, never what the reset has left.
 *
 * Resets the first GPU: see kfd_svm.h for GPU=. Makes its own soft RoCE device
 * over lo; RDMA=name selects an existing one.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "emulator.h"
#include "amdgpu_test.h"
#include "svm_rdma.h"

#define DEVICE	"rxe_svm_reset"
#define NR	256ul
#define LEN	(NR * SVM_PAGE)

/*
 * Resets the GPU after a while, in a thread: a child process would share the
 * memory, and the next write to it would be a copy.
 */
struct resetter {
	pthread_t thread;
	const struct svm_gpu *gpu;
	unsigned int us;
	int err;
	atomic_bool over;
};

static void *resetter_run(void *arg)
{
	struct resetter *r = arg;

	usleep(r->us);
	r->err = svm_reset(r->gpu);
	r->over = true;
	return NULL;
}

static int reset_soon(struct resetter *r, const struct svm_gpu *gpu,
		      unsigned int us)
{
	r->gpu = gpu;
	r->us = us;
	r->over = false;
	return pthread_create(&r->thread, NULL, resetter_run, r);
}

FIXTURE(reset) {
	struct svm svm;
	struct link link;
	struct svm_gpu *gpu;
	void *buf;		/* memory in the GPU */
	void *host;
	struct ibv_mr *mr;
	struct ibv_mr *host_mr;
};

FIXTURE_SETUP(reset) {
	self->svm.kfd = -1;
	if (svm_open(&self->svm))
		SKIP(return, "no GPU with KFD");
	self->gpu = &self->svm.gpu[0];
	if (!svm_alias(self->gpu).published)
		SKIP(return, "no alias of device private memory");
	ASSERT_EQ(0, link_open(&self->link, device));
	self->buf = svm_map(LEN);
	self->host = svm_map(LEN);
	ASSERT_NE(NULL, self->buf);
	ASSERT_NE(NULL, self->host);
	pattern_fill(self->buf, LEN, 1);
	self->mr = rcp_reg(&self->link.dev, self->buf, LEN, RCP_ODP);
	self->host_mr = rcp_reg(&self->link.dev, self->host, LEN, RCP_PINNED);
	ASSERT_NE(NULL, self->mr);
	ASSERT_NE(NULL, self->host_mr);
	ASSERT_EQ(0, svm_prefetch(&self->svm, self->buf, LEN, self->gpu));
	ASSERT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
}

FIXTURE_TEARDOWN(reset) {
	if (self->svm.kfd < 0)
		return;
	if (self->mr)
		ibv_dereg_mr(self->mr);
	if (self->host_mr)
		ibv_dereg_mr(self->host_mr);
	link_close(&self->link);
	if (self->buf)
		munmap(self->buf, LEN);
	svm_close(&self->svm);
}

/* One transfer out of the GPU's memory. 1: right, 0: failed, -1: wrong */
static int transfer(FIXTURE_DATA(reset) *self)
{
	memset(self->host, 0xee, LEN);
	if (link_write(&self->link, self->mr, self->buf, self->host_mr,
		       self->host, LEN)) {
		rcp_connect(&self->link.pair, IBV_MTU_4096);
		return 0;
	}
	return pattern_check(self->host, LEN, 1) < 0 ? 1 : -1;
}

/* Does RDMA reach a new range in place, whatever happened to the old one? */
static void check_new_range(struct __test_metadata *_metadata,
			    FIXTURE_DATA(reset) *self)
{
	unsigned int tries;

	for (tries = 0; tries < 500 && !svm_alias(self->gpu).published; tries++)
		usleep(10000);
	ASSERT_EQ(1, svm_alias(self->gpu).published);

	self->buf = svm_map(LEN);
	ASSERT_NE(NULL, self->buf);
	pattern_fill(self->buf, LEN, 1);
	self->mr = rcp_reg(&self->link.dev, self->buf, LEN, RCP_ODP);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, svm_prefetch(&self->svm, self->buf, LEN, self->gpu));
	ASSERT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
	ASSERT_EQ(1, transfer(self));
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
}

/* The lost range is unmapped: does RDMA reach a new one in place again? */
static void check_works_again(struct __test_metadata *_metadata,
			      FIXTURE_DATA(reset) *self)
{
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	munmap(self->buf, LEN);
	check_new_range(_metadata, self);
}

/* Transfers follow one another while the GPU is reset. */
TEST_F(reset, under_traffic) {
	struct svm_alias before = svm_alias(self->gpu);
	int right = 0, failed = 0, result;
	uint64_t start, one;
	struct resetter r;
	bool over;

	ASSERT_EQ(1, transfer(self));
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
	start = rcp_now_ms();
	ASSERT_EQ(1, transfer(self));
	one = rcp_now_ms() - start + 1;
	/* time for some transfers, on a slow kernel too */
	ASSERT_EQ(0, reset_soon(&r, self->gpu, 200000 + 4000 * one));
	/* one more after the reset is over */
	do {
		over = r.over;
		result = transfer(self);
		ASSERT_NE(-1, result);
		right += result;
		failed += !result;
	} while (!over);
	pthread_join(r.thread, NULL);
	ASSERT_EQ(0, r.err);
	TH_LOG("%d right, %d failed", right, failed);
	EXPECT_LT(0, right);
	EXPECT_LT(before.revokes, svm_alias(self->gpu).revokes);
	check_works_again(_metadata, self);
}

static int look(FIXTURE_DATA(reset) *self)
{
	return svm_look(self->buf, LEN, 1);
}

/* After a reset that loses the memory, an access by the CPU fails. */
TEST_F(reset, cpu_access) {
	int result;

	ASSERT_EQ(0, svm_reset(self->gpu));
	result = look(self);
	ASSERT_NE(-1, result);
	if (result)
		SKIP(return, "the memory survives resets of this GPU");
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
	check_works_again(_metadata, self);
}

/* Peers reach pages beside lost ones, but not the lost ones. */
TEST_F(reset, beside_lost_pages) {
	struct ibv_mr *lost_mr = self->mr;
	struct svm_alias before, after;
	void *lost = self->buf;
	int result;

	ASSERT_EQ(1, transfer(self));
	ASSERT_EQ(0, svm_reset(self->gpu));
	result = look(self);
	ASSERT_NE(-1, result);
	if (result)
		SKIP(return, "the memory survives resets of this GPU");
	check_new_range(_metadata, self);

	ibv_dereg_mr(self->mr);
	munmap(self->buf, LEN);
	self->mr = lost_mr;
	self->buf = lost;
	before = svm_alias(self->gpu);
	EXPECT_EQ(1, before.published);
	EXPECT_EQ(0, transfer(self));
	after = svm_alias(self->gpu);
	/* the alias covers them, but does not hand them out */
	EXPECT_EQ(before.mapped, after.mapped);
	EXPECT_LT(before.revoked, after.revoked);
	EXPECT_EQ(0, look(self));
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
}

/* Another process has lost pages, and keeps them. */
TEST_F(reset, beside_another_process) {
	int done[2], result;
	pid_t pid;

	ASSERT_EQ(0, pipe(done));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(done[1]);
		_exit(read(done[0], &result, 1) != 0);
	}
	close(done[0]);
	ASSERT_EQ(0, svm_reset(self->gpu));
	result = look(self);
	ASSERT_NE(-1, result);
	if (!result)
		check_works_again(_metadata, self);
	close(done[1]);
	ASSERT_EQ(pid, waitpid(pid, &result, 0));
	EXPECT_EQ(0, result);
}

/*
 * Pages go to the GPU and come back while it is reset: a copy that the reset
 * has killed must not be taken for complete.
 */
TEST_F(reset, while_migrating) {
	int round, result, lost = 0;
	struct resetter r;

	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	for (round = 0; round < 8; round++) {
		munmap(self->buf, LEN);
		self->buf = svm_map(LEN);
		ASSERT_NE(NULL, self->buf);
		pattern_fill(self->buf, LEN, 1);
		ASSERT_EQ(0, reset_soon(&r, self->gpu, 3000 + 7000 * round));
		do {
			svm_prefetch(&self->svm, self->buf, LEN, self->gpu);
			result = look(self);
			ASSERT_NE(-1, result);
		} while (result && !r.over);
		pthread_join(r.thread, NULL);
		ASSERT_EQ(0, r.err);
		lost += !result;
	}
	TH_LOG("lost in %d of %d resets", lost, round);
}

/*
 * A peer writes while the GPU is reset. If it was told that its last write has
 * succeeded, the memory holds that data. Otherwise the memory is lost, and an
 * access fails. It never holds anything else.
 */
TEST_F(reset, writes) {
	uint32_t seed = 1, last = 1;
	int result, tries = 0;
	struct resetter r;
	bool over, done;

	ASSERT_EQ(0, reset_soon(&r, self->gpu, 300000));
	do {
		over = r.over;
		pattern_fill(self->host, LEN, ++seed);
		done = !link_write(&self->link, self->host_mr, self->host,
				   self->mr, self->buf, LEN);
		if (done)
			last = seed;
		else
			rcp_connect(&self->link.pair, IBV_MTU_4096);
	} while (!over || (!done && ++tries < 5));
	pthread_join(r.thread, NULL);
	ASSERT_EQ(0, r.err);
	result = svm_look(self->buf, LEN, last);
	TH_LOG("%u writes, the last one %s", seed - 1, done ? "right" : "lost");
	EXPECT_EQ(done, result);
	if (!done)
		check_works_again(_metadata, self);
}

/* A job that ends only when the word 1024 bytes from its start is written */
static int submit_waiting(struct gpu *gpu, struct buffer *b, uint64_t *fence)
{
	const uint64_t at = b->va + 1024;
	const uint32_t packet[8] = {
		8 | 1U << 31 | 3U << 28, LO(at), HI(at), 1, ~0U,
		0xfffU << 16 | 10,
	};

	memset(b->cpu, 0, b->size);
	memcpy(b->cpu, packet, sizeof(packet));
	return submit(gpu, &b, 1, 8, fence);
}

/* Wait for a line of the kernel's log with one of two texts. 0: the first */
static int wait_for_line(int kmsg, const char *first, const char *second)
{
	char line[8192];
	double end = now() + 60;
	ssize_t n;

	while (now() < end) {
		n = read(kmsg, line, sizeof(line) - 1);
		if (n <= 0) {
			usleep(500);
			continue;
		}
		line[n] = 0;
		if (strstr(line, first))
			return 0;
		if (strstr(line, second))
			return 1;
	}
	return -ETIMEDOUT;
}

/*
 * A reset that spares the memory: the hung job ends when recovery has begun.
 * Recovery notices that, and leaves the hardware alone. 1: it was too late
 */
static int spare_by_reset(FIXTURE_DATA(reset) *self)
{
	int ret, kmsg = kmsg_open();
	struct buffer b;
	struct gpu gpu;
	uint64_t fence;

	ret = open_gpu(&gpu, self->gpu->pci);
	if (!ret)
		ret = new_mapped_buffer(&gpu, &b, 65536, AMDGPU_GEM_DOMAIN_GTT);
	if (!ret)
		ret = submit_waiting(&gpu, &b, &fence);
	if (!ret)
		ret = wait_for_line(kmsg, "Dumping IP State", "GPU reset begin");
	if (!ret) {
		((volatile uint32_t *)b.cpu)[256] = 1;
		ret = wait_for_line(kmsg, "skipping HW reset", "VRAM is lost");
	}
	close(gpu.fd);
	close(kmsg);
	return ret;
}

/*
 * The reset revokes the mappings of peers even where the memory stays: they
 * must not write while the GPU does not answer. They have to ask again.
 */
TEST_F_TIMEOUT(reset, peers_ask_again, 200) {
	unsigned long long mapped;
	int tries, spared = 1;

	for (tries = 0; spared && tries < 5; tries++) {
		if (tries)
			check_works_again(_metadata, self);
		ASSERT_EQ(1, transfer(self));
		mapped = svm_alias(self->gpu).mapped;
		ASSERT_EQ(1, transfer(self));
		ASSERT_EQ(mapped, svm_alias(self->gpu).mapped);
		spared = spare_by_reset(self);
		ASSERT_LE(0, spared);
	}
	if (spared)
		SKIP(return, "no reset that spares the memory");
	for (tries = 0; tries < 500 && !svm_alias(self->gpu).published; tries++)
		usleep(10000);
	EXPECT_EQ(1, transfer(self));
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
	EXPECT_EQ(mapped + NR, svm_alias(self->gpu).mapped);
}

/*
 * A reset that takes longer than HMM allows for one walk of the page table: an
 * access to a page waits meanwhile, and then has a result.
 */
TEST_F_TIMEOUT(reset, takes_long, 120) {
	int emu = emulator_open(), right = 0, failed = 0, result, left;
	uint64_t start, longest = 0, ms, reset_ms;
	struct resetter r;
	bool over;

	if (emu < 0)
		SKIP(return, "nothing can slow down this GPU");
	ASSERT_EQ(1, transfer(self));
	/* the driver tests each engine, and waits */
	ASSERT_EQ(0, emulator_all(emu, "engine all slow 60000"));
	reset_ms = rcp_now_ms();
	/* a transfer before the reset gets the data */
	ASSERT_EQ(1, transfer(self));
	ASSERT_EQ(0, reset_soon(&r, self->gpu, 10000));
	do {
		over = r.over;
		start = rcp_now_ms();
		result = transfer(self);
		ms = rcp_now_ms() - start;
		ASSERT_NE(-1, result);
		longest = ms > longest ? ms : longest;
		right += result;
		failed += !result;
	} while (!over);
	reset_ms = rcp_now_ms() - reset_ms;
	pthread_join(r.thread, NULL);
	ASSERT_EQ(0, emulator_all(emu, "engine all resume"));
	close(emu);
	ASSERT_EQ(0, r.err);
	TH_LOG("%d right, %d failed in %u ms, one took %u ms", right, failed,
	       (unsigned int)reset_ms, (unsigned int)longest);
	EXPECT_LE(2000, reset_ms);
	EXPECT_LE(1000, longest);
	/* The last transfer has what is there now. */
	left = look(self);
	EXPECT_EQ(left, result);
	EXPECT_EQ(!left, failed > 0);
	check_works_again(_metadata, self);
}

/* Lets engines go on after a while, in a thread. */
struct resumer {
	pthread_t thread;
	int emu;
	int err;
	atomic_bool begun;
};

static void *resumer_run(void *arg)
{
	struct resumer *r = arg;

	usleep(500000);
	r->begun = true;
	r->err = emulator_all(r->emu, "engine all resume");
	return NULL;
}

static void *touch(void *at)
{
	*(volatile char *)at;
	return NULL;
}

/*
 * The type of the first page's swap entry: a migration changes it. This needs
 * CAP_SYS_ADMIN.
 */
static int entry_type(FIXTURE_DATA(reset) *self)
{
	uint64_t entry;
	off_t at = (uintptr_t)self->buf / SVM_PAGE * sizeof(entry);

	if (pread(self->svm.pagemap, &entry, sizeof(entry), at) !=
	    sizeof(entry))
		return -EIO;
	return entry & 0x1f;
}

/*
 * FLUSH waits for pages that are on their way out of the GPU. They may stay
 * there in the end, and a reset may lose what they hold.
 */
TEST_F(reset, flush_while_migrating) {
	int type = entry_type(self);
	struct resumer r = { .emu = emulator_open() };
	pthread_t toucher;

	if (r.emu < 0)
		SKIP(return, "nothing can stop engines of this GPU");
	if (!self->link.pair.a.qpx)
		SKIP(return, "%s has no FLUSH", device);
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = rcp_reg_access(&self->link.dev, self->buf, LEN,
				  (uintptr_t)self->buf,
				  RCP_ACCESS | IBV_ACCESS_ON_DEMAND |
				  IBV_ACCESS_FLUSH_GLOBAL);
	ASSERT_NE(NULL, self->mr);
	pattern_fill(self->host, LEN, 2);
	ASSERT_EQ(0, link_write(&self->link, self->host_mr, self->host,
				self->mr, self->buf, LEN));
	ASSERT_EQ(NR, svm_away(&self->svm, self->buf, LEN));
	ASSERT_EQ(0, emulator_all(r.emu, "engine all hang"));
	/* A fault that waits holds mmap_lock, which a new thread takes. */
	ASSERT_EQ(0, pthread_create(&r.thread, NULL, resumer_run, &r));
	ASSERT_EQ(0, pthread_create(&toucher, NULL, touch, self->buf));
	while (!r.begun && entry_type(self) == type)
		usleep(1000);
	EXPECT_FALSE(r.begun);
	EXPECT_EQ(0, rcp_flush(&self->link.pair.a, (uintptr_t)self->buf,
			       self->mr->rkey, LEN, IBV_FLUSH_GLOBAL));
	EXPECT_TRUE(r.begun);
	pthread_join(toucher, NULL);
	pthread_join(r.thread, NULL);
	ASSERT_EQ(0, r.err);
	close(r.emu);
	EXPECT_EQ(0, svm_away(&self->svm, self->buf, LEN));
	EXPECT_EQ(1, svm_look(self->buf, LEN, 2));
}

/* A peer that has mapped pages before gets no wrong data after the reset. */
TEST_F(reset, peer_access) {
	ASSERT_EQ(1, transfer(self));
	ASSERT_EQ(0, svm_reset(self->gpu));
	ASSERT_NE(-1, transfer(self));
	check_works_again(_metadata, self);
}

int main(int argc, char **argv)
{
	return run_with_device(argc, argv, DEVICE);
}
