// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on a GPU that misbehaves: engines that hang, interrupts that are
 * lost, duplicated or late. A batch that cannot succeed says so, its context
 * becomes guilty, and others go on; the records tell what had ended before.
 *
 * Breaks all emulated GPUs, and resets the first.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "emulator.h"
#include "sdma_prepared.h"

#define SYSTEM_VA	(1024 * MIB)
#define TO_VA		(2048 * MIB)
#define SIZE		MIB
#define PART		(64 * KIB)
#define RECORDS		(SIZE - 4096)

FIXTURE(faults)
{
	struct gpu gpu;
	struct buffer from, to;	/* not in video memory, which a reset loses */
	unsigned int seed;
	int port;
};

FIXTURE_SETUP(faults)
{
	self->seed = env("SEED", 1);
	self->port = emulator_open();
	if (self->port < 0)
		SKIP(return, "for an emulated GPU only");
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->from, SIZE,
				AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA));
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->to, SIZE,
				AMDGPU_GEM_DOMAIN_GTT, TO_VA));
	randomize(self->from.cpu, SIZE, &self->seed);
	memset(self->to.cpu, 0, SIZE);
}

FIXTURE_TEARDOWN(faults)
{
	if (self->port < 0)
		return;
	emulator_all(self->port, "engine all resume");
	emulator_all(self->port, "irq drop 0");
	emulator_all(self->port, "irq duplicate 0");
	emulator_all(self->port, "irq delay 0");
	close(self->port);
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static struct drm_amdgpu_sdma_desc part(unsigned int i)
{
	return copy_desc(SYSTEM_VA + i * PART, TO_VA + i * PART, PART);
}

static struct drm_amdgpu_sdma_record *record(struct _test_data_faults *self,
					     unsigned int i)
{
	return (struct drm_amdgpu_sdma_record *)(self->to.cpu + RECORDS) + i;
}

static bool copied(struct _test_data_faults *self, unsigned int i)
{
	return !memcmp(self->from.cpu + i * PART, self->to.cpu + i * PART, PART);
}

/* The state of the context: AMDGPU_CTX_QUERY2_FLAGS_*, or -errno. */
static long charged(struct gpu *gpu, uint32_t ctx)
{
	union drm_amdgpu_ctx arg = {
		.in.op = AMDGPU_CTX_OP_QUERY_STATE2,
		.in.ctx_id = ctx,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_CTX, &arg);

	return ret ? ret : arg.out.state.flags;
}

/* The batch's context is unusable; a new one works once the reset is over. */
static int works_again(struct _test_data_faults *self)
{
	const struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch batch;
	int i, ret = -EIO;

	memset(self->to.cpu, 0, PART);
	for (i = 0; i < 100 && ret; i++) {
		ret = gpu_context(&self->gpu, &self->gpu.ctx);
		batch = batch_of(&self->gpu, &d, 1);
		if (!ret)
			ret = batch_run(&self->gpu, &batch);
		if (ret)
			usleep(100000);
	}
	return ret ? ret : copied(self, 0) ? 0 : -EILSEQ;
}

/*
 * A batch with a record and, after it, a wait that would give up later: the
 * engines hang meanwhile.
 */
static int hang_midway(struct _test_data_faults *self,
		       struct drm_amdgpu_sdma_batch *batch)
{
	struct drm_amdgpu_sdma_fence out = { 0 };
	int i, ret = syncobj_new(&self->gpu, &out.handle);

	memset(self->to.cpu + RECORDS, 0, 4096);
	batch->out_fences = (uintptr_t)&out;
	batch->num_out_fences = 1;
	if (!ret)
		ret = batch_submit(&self->gpu, batch);
	for (i = 0; i < 900 && !*(volatile uint32_t *)&record(self, 0)->status;
	     i++)
		usleep(1000);
	if (!ret)
		ret = emulator_all(self->port, "engine all hang");
	if (!ret)
		ret = syncobj_wait(&self->gpu, out.handle, 0, WAIT_SECONDS);
	return ret ? ret : syncobj_status(&self->gpu, out.handle);
}

/*
 * The batch ends with @error, and only its context becomes guilty, by @fault
 * or, if that is NULL, half-way. It runs well first; otherwise the update of
 * its page tables would hang. A job that hangs ends with -ETIME; a fence that
 * joins jobs, or tells how waits ended, with -EIO.
 */
static void must_fail(struct __test_metadata *_metadata,
		      struct _test_data_faults *self,
		      struct drm_amdgpu_sdma_batch *batch, const char *fault,
		      int error)
{
	const uint32_t bad = self->gpu.ctx;
	uint32_t idle;
	long flags;

	ASSERT_EQ(0, gpu_context(&self->gpu, &idle));
	batch->ctx_id = idle;
	ASSERT_EQ(0, batch_run(&self->gpu, batch));
	batch->ctx_id = bad;
	ASSERT_EQ(0, batch_run(&self->gpu, batch));
	memset(self->to.cpu, 0, SIZE - 4096);
	if (fault) {
		ASSERT_EQ(0, emulator_all(self->port, fault));
		EXPECT_EQ(error, batch_run(&self->gpu, batch));
	} else {
		EXPECT_EQ(error, hang_midway(self, batch));
	}
	EXPECT_EQ(0, works_again(self));
	flags = charged(&self->gpu, bad);
	EXPECT_LE(0, flags);
	EXPECT_TRUE(flags & AMDGPU_CTX_QUERY2_FLAGS_GUILTY);
	flags = charged(&self->gpu, idle);
	EXPECT_LE(0, flags);
	EXPECT_FALSE(flags & AMDGPU_CTX_QUERY2_FLAGS_GUILTY);
	/* the guilty context stays unusable */
	batch->ctx_id = bad;
	EXPECT_GT(0, batch_run(&self->gpu, batch));
}

TEST_F_TIMEOUT(faults, hang, 120)
{
	const struct drm_amdgpu_sdma_desc d[] = { part(1), part(2) };
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);

	must_fail(_metadata, self, &batch, "engine all hang", -ETIME);
	EXPECT_FALSE(copied(self, 1));
}

/* Another batch of the context is in the ring: the first one hung all the same. */
TEST_F_TIMEOUT(faults, hang_before_another, 120)
{
	const struct drm_amdgpu_sdma_desc d[] = { part(1), part(2) };
	struct drm_amdgpu_sdma_batch first = batch_of(&self->gpu, d, 1);
	struct drm_amdgpu_sdma_batch second = batch_of(&self->gpu, d + 1, 1);
	const uint32_t bad = self->gpu.ctx;
	uint32_t ends[2];
	int i;

	first.engine_mask = nth_engine(self->gpu.info.engine_mask, 0);
	second.engine_mask = first.engine_mask;
	ASSERT_EQ(0, batch_run(&self->gpu, &first));
	ASSERT_EQ(0, batch_run(&self->gpu, &second));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, syncobj_new(&self->gpu, &ends[i]));
	ASSERT_EQ(0, emulator_all(self->port, "engine all hang"));
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &first, ends[0], 0));
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &second, ends[1], 0));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, syncobj_wait(&self->gpu, ends[i], 0, WAIT_SECONDS));
	EXPECT_EQ(-ETIME, syncobj_status(&self->gpu, ends[0]));
	EXPECT_EQ(-ECANCELED, syncobj_status(&self->gpu, ends[1]));
	EXPECT_EQ(0, works_again(self));
	EXPECT_TRUE(charged(&self->gpu, bad) & AMDGPU_CTX_QUERY2_FLAGS_GUILTY);
	first.ctx_id = bad;
	EXPECT_EQ(-ETIME, batch_run(&self->gpu, &first));
}

TEST_F_TIMEOUT(faults, hang_of_fan_out, 120)
{
	struct drm_amdgpu_sdma_desc d[8];
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 8);
	unsigned int i;

	if (!(self->gpu.info.engine_mask & 2))
		SKIP(return, "this needs two engines");
	for (i = 0; i < 8; i++)
		d[i] = part(i + 1);
	batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	batch.engine_mask = 3;
	must_fail(_metadata, self, &batch, "engine 1 hang", -EIO);
	/* the other share has succeeded */
	EXPECT_TRUE(copied(self, 1));
	EXPECT_FALSE(copied(self, 8));
}

/* Two records, and between them a wait for a value that is there at first. */
static void make_midway(struct _test_data_faults *self,
			struct drm_amdgpu_sdma_desc d[4])
{
	uint32_t *flag = (uint32_t *)(self->to.cpu + RECORDS + 2048);

	d[0] = part(1);
	d[1] = part(2);
	d[1].flags = AMDGPU_SDMA_DESC_BARRIER | AMDGPU_SDMA_DESC_RECORD;
	d[1].record = TO_VA + RECORDS;
	d[2] = wait_eq(TO_VA + RECORDS + 2048, 1,
		       wait_ns(&self->gpu, 250));
	d[3] = part(3);
	d[3].flags = AMDGPU_SDMA_DESC_BARRIER | AMDGPU_SDMA_DESC_RECORD;
	d[3].record = TO_VA + RECORDS + sizeof(struct drm_amdgpu_sdma_record);
	*flag = 1;
}

TEST_F_TIMEOUT(faults, records_of_a_hang, 120)
{
	struct drm_amdgpu_sdma_desc d[4];
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 4);

	make_midway(self, d);
	must_fail(_metadata, self, &batch, NULL, -EIO);
	EXPECT_TRUE(copied(self, 1) && copied(self, 2));
	EXPECT_FALSE(copied(self, 3));
	EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, record(self, 0)->status);
	EXPECT_EQ(0, record(self, 1)->status);
}

/* What a hang has left of a run does not disturb the next run. */
TEST_F_TIMEOUT(faults, hang_of_prepared, 120)
{
	struct drm_amdgpu_sdma_desc d[4];
	struct drm_amdgpu_sdma_batch batch;
	uint32_t h;

	make_midway(self, d);
	ASSERT_EQ(0, prepare(&self->gpu, d, 4, &h));
	batch = run_of(&self->gpu, h);
	must_fail(_metadata, self, &batch, NULL, -EIO);
	EXPECT_TRUE(copied(self, 2));
	EXPECT_FALSE(copied(self, 3));
	memset(self->to.cpu, 0, SIZE);
	make_midway(self, d);
	ASSERT_EQ(0, run_prepared(&self->gpu, h));
	EXPECT_TRUE(copied(self, 1) && copied(self, 2) && copied(self, 3));
}

static int run_many(struct _test_data_faults *self, unsigned int n)
{
	struct drm_amdgpu_sdma_desc d;
	struct drm_amdgpu_sdma_batch batch;
	unsigned int i;
	int ret;

	for (i = 0; i < n; i++) {
		d = part(i % 8);
		batch = batch_of(&self->gpu, &d, 1);
		memset(self->to.cpu, 0, SIZE);
		ret = batch_run(&self->gpu, &batch);
		if (ret)
			return ret;
		if (!copied(self, i % 8))
			return -EILSEQ;
	}
	return 0;
}

/* How often all GPUs' interrupt handlers were called, on all processors. */
static long interrupts_seen(void)
{
	char line[4096], *at, *end;
	FILE *f = fopen("/proc/interrupts", "r");
	long sum = f ? 0 : -errno;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, "amdgpu"))
			continue;
		at = strchr(line, ':') + 1;
		while (1) {
			long n = strtol(at, &end, 10);

			if (end == at)
				break;
			sum += n;
			at = end;
		}
	}
	if (f)
		fclose(f);
	return sum;
}

/* None arrives: the driver's timer finds the jobs that have ended. */
TEST_F_TIMEOUT(faults, lost_interrupts, 120)
{
	long raised, seen;

	ASSERT_EQ(0, emulator_all(self->port, "irq drop 1000000"));
	/* interrupts in flight still arrive */
	usleep(100000);
	seen = interrupts_seen();
	raised = emulator_count(self->port, "interrupts");
	EXPECT_LT(0, seen);
	EXPECT_EQ(0, run_many(self, 4));
	EXPECT_LE(raised + 4, emulator_count(self->port, "interrupts"));
	EXPECT_EQ(seen, interrupts_seen());
	/* three more are lost, then they arrive again */
	ASSERT_EQ(0, emulator_all(self->port, "irq drop 3"));
	EXPECT_EQ(0, run_many(self, 8));
	EXPECT_LT(seen, interrupts_seen());
}

TEST_F_TIMEOUT(faults, doubled_interrupts, 120)
{
	ASSERT_EQ(0, emulator_all(self->port, "irq duplicate 8"));
	EXPECT_EQ(0, run_many(self, 16));
}

TEST_F_TIMEOUT(faults, late_interrupts, 120)
{
	ASSERT_EQ(0, emulator_all(self->port, "irq delay 20000"));
	EXPECT_EQ(0, run_many(self, 8));
}

/* Another process's batches on @engine until it is killed; counts good ones. */
static void keep_copying(unsigned int seed, uint32_t engine, uint32_t *good)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, TO_VA, SIZE / 2);
	struct drm_amdgpu_sdma_batch batch;
	struct buffer from, to;
	struct gpu gpu;
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (gpu_open(&gpu, 0) ||
	    buffer_map(&gpu, &from, SIZE, AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA) ||
	    buffer_map(&gpu, &to, SIZE, AMDGPU_GEM_DOMAIN_GTT, TO_VA))
		_exit(1);
	memset(to.cpu, 0xb5, SIZE);
	while (1) {
		randomize(from.cpu, SIZE / 2, &seed);
		batch = batch_of(&gpu, &d, 1);
		batch.engine_mask = engine;
		ret = batch_run(&gpu, &batch);
		if (!ret && memcmp(from.cpu, to.cpu, SIZE / 2))
			_exit(2);
		/* what only this process may write to */
		if (to.cpu[SIZE / 2] != 0xb5 || to.cpu[SIZE - 1] != 0xb5)
			_exit(3);
		if (!ret) {
			__atomic_add_fetch(good, 1, __ATOMIC_RELEASE);
			continue;
		}
		/* a reset cancels jobs in flight; this context is not guilty */
		if (charged(&gpu, gpu.ctx) & AMDGPU_CTX_QUERY2_FLAGS_GUILTY)
			_exit(4);
		usleep(10000);
		if (gpu_context(&gpu, &gpu.ctx))
			_exit(5);
	}
}

/* Has the other process run @more batches? It may have ended instead. */
static bool goes_on(pid_t pid, uint32_t *good, uint32_t more)
{
	uint32_t start = __atomic_load_n(good, __ATOMIC_ACQUIRE);
	int i, status = 0;

	for (i = 0; i < 3000; i++) {
		if (__atomic_load_n(good, __ATOMIC_ACQUIRE) - start >= more)
			return true;
		if (waitpid(pid, &status, WNOHANG))
			break;
		usleep(10000);
	}
	fprintf(stderr, "the other process: status %#x\n", status);
	return false;
}

/* The other process uses the same addresses, and goes on. */
TEST_F_TIMEOUT(faults, others, 120)
{
	struct drm_amdgpu_sdma_desc d = fill_desc(TO_VA, SIZE, 0xdeadbeef);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	uint32_t *good = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t before;
	pid_t pid;
	int i;

	if ((self->gpu.info.engine_mask & 3) != 3)
		SKIP(return, "this needs two engines");
	ASSERT_NE(MAP_FAILED, good);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		keep_copying(self->seed, 2, good);
	EXPECT_TRUE(goes_on(pid, good, 10));
	before = __atomic_load_n(good, __ATOMIC_ACQUIRE);
	for (i = 0; i < 200; i++)
		EXPECT_EQ(0, batch_run(&self->gpu, &batch));
	/* it went on meanwhile: sdma_share tests how fairly */
	EXPECT_LT(before, __atomic_load_n(good, __ATOMIC_ACQUIRE));
	batch.engine_mask = 1;
	must_fail(_metadata, self, &batch, "engine 0 hang", -ETIME);
	EXPECT_TRUE(goes_on(pid, good, 10));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST_HARNESS_MAIN
