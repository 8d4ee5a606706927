// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on a GPU that misbehaves: engines that hang, interrupts that are
 * lost, doubled or late. A batch that cannot end well says so, its context is
 * charged, and others go on; the records tell what had ended before.
 *
 * Breaks the first GPU, which must be an emulated one, and resets it.
 */
#include <signal.h>
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
	struct buffer from, to;	/* not in video memory: a reset loses that */
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
	emulator(self->port, "engine all resume");
	emulator(self->port, "irq delay 0");
	close(self->port);
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static struct drm_amdgpu_sdma_desc part(unsigned int i)
{
	return copy_desc(SYSTEM_VA + i * PART, TO_VA + i * PART, PART);
}

static bool copied(struct _test_data_faults *self, unsigned int i)
{
	return !memcmp(self->from.cpu + i * PART, self->to.cpu + i * PART, PART);
}

/* What the context has been charged with: AMDGPU_CTX_QUERY2_FLAGS_*. */
static long charged(struct gpu *gpu, uint32_t ctx)
{
	union drm_amdgpu_ctx arg = {
		.in.op = AMDGPU_CTX_OP_QUERY_STATE2,
		.in.ctx_id = ctx,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_CTX, &arg);

	return ret ? ret : arg.out.state.flags;
}

/* The batch's context is spent; a new one works, once the reset is over. */
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
 * Ends with an error and charges its context alone. It works first: or what
 * hangs would be the update of its page tables.
 */
static void must_fail(struct __test_metadata *_metadata,
		      struct _test_data_faults *self,
		      struct drm_amdgpu_sdma_batch *batch, const char *fault)
{
	const uint32_t bad = self->gpu.ctx;
	uint32_t idle;
	long flags;

	ASSERT_EQ(0, batch_run(&self->gpu, batch));
	memset(self->to.cpu, 0, SIZE);
	ASSERT_EQ(0, gpu_context(&self->gpu, &idle));
	ASSERT_EQ(0, emulator(self->port, fault));
	EXPECT_GT(0, batch_run(&self->gpu, batch));
	EXPECT_EQ(0, works_again(self));
	flags = charged(&self->gpu, bad);
	EXPECT_LE(0, flags);
	EXPECT_TRUE(flags & AMDGPU_CTX_QUERY2_FLAGS_GUILTY);
	EXPECT_FALSE(charged(&self->gpu, idle) &
		     AMDGPU_CTX_QUERY2_FLAGS_GUILTY);
	/* what was spent stays so */
	batch->ctx_id = bad;
	EXPECT_GT(0, batch_run(&self->gpu, batch));
}

TEST_F_TIMEOUT(faults, hang, 120)
{
	const struct drm_amdgpu_sdma_desc d[] = { part(1), part(2) };
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);

	must_fail(_metadata, self, &batch, "engine all hang");
	EXPECT_FALSE(copied(self, 1));
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
	must_fail(_metadata, self, &batch, "engine 1 hang");
	/* the other share has ended well */
	EXPECT_TRUE(copied(self, 1));
	EXPECT_FALSE(copied(self, 8));
}

/* The slots of its barriers are as the hang has left them: the next run ends. */
TEST_F_TIMEOUT(faults, hang_of_prepared, 120)
{
	struct drm_amdgpu_sdma_desc d[] = { part(1), part(2), part(3) };
	struct drm_amdgpu_sdma_batch batch;
	uint32_t h;

	d[1].flags = AMDGPU_SDMA_DESC_BARRIER;
	d[2].flags = AMDGPU_SDMA_DESC_BARRIER;
	ASSERT_EQ(0, prepare(&self->gpu, d, 3, &h));
	batch = run_of(&self->gpu, h);
	must_fail(_metadata, self, &batch, "engine all hang");
	EXPECT_FALSE(copied(self, 1));
	ASSERT_EQ(0, run_prepared(&self->gpu, h));
	EXPECT_TRUE(copied(self, 1) && copied(self, 2) && copied(self, 3));
}

/* An engine that hangs between two descriptors: one record is there. */
TEST_F_TIMEOUT(faults, records_of_a_hang, 120)
{
	struct drm_amdgpu_sdma_desc d[] = {
		part(1),
		wait_desc(TO_VA + RECORDS + 2048, 1, 4000),
		part(2),
	};
	struct drm_amdgpu_sdma_record *r = (void *)(self->to.cpu + RECORDS);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 3);
	struct drm_amdgpu_sdma_fence out = { 0 };
	const uint32_t bad = self->gpu.ctx;
	int i;

	for (i = 0; i < 2; i++) {
		d[2 * i].flags |= AMDGPU_SDMA_DESC_RECORD;
		d[2 * i].record = TO_VA + RECORDS + i * sizeof(*r);
	}
	d[2].flags |= AMDGPU_SDMA_DESC_BARRIER;
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
	batch.out_fences = (uintptr_t)&out;
	batch.num_out_fences = 1;
	ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	for (i = 0; i < 1000 && !*(volatile uint32_t *)&r[0].status; i++)
		usleep(1000);
	ASSERT_EQ(0, emulator(self->port, "engine all hang"));
	EXPECT_EQ(0, syncobj_wait(&self->gpu, out.handle, 0, WAIT_SECONDS));
	EXPECT_GT(0, syncobj_status(&self->gpu, out.handle));
	EXPECT_TRUE(charged(&self->gpu, bad) & AMDGPU_CTX_QUERY2_FLAGS_GUILTY);
	EXPECT_TRUE(copied(self, 1));
	EXPECT_FALSE(copied(self, 2));
	EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, r[0].status);
	EXPECT_EQ(0, r[1].status);
	EXPECT_EQ(0, works_again(self));
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

TEST_F_TIMEOUT(faults, lost_interrupts, 60)
{
	ASSERT_EQ(0, emulator(self->port, "irq drop 3"));
	EXPECT_EQ(0, run_many(self, 8));
}

TEST_F_TIMEOUT(faults, doubled_interrupts, 60)
{
	ASSERT_EQ(0, emulator(self->port, "irq duplicate 8"));
	EXPECT_EQ(0, run_many(self, 16));
}

TEST_F_TIMEOUT(faults, late_interrupts, 60)
{
	ASSERT_EQ(0, emulator(self->port, "irq delay 20000"));
	EXPECT_EQ(0, run_many(self, 8));
}

/* Another process's batches, until it is killed; tells what went wrong. */
static void keep_copying(unsigned int seed)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, TO_VA, SIZE / 2);
	struct drm_amdgpu_sdma_batch batch;
	struct buffer from, to;
	struct gpu gpu;
	int ret;

	if (gpu_open(&gpu, 0) ||
	    buffer_map(&gpu, &from, SIZE, AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA) ||
	    buffer_map(&gpu, &to, SIZE, AMDGPU_GEM_DOMAIN_GTT, TO_VA))
		_exit(1);
	memset(to.cpu, 0xb5, SIZE);
	while (1) {
		randomize(from.cpu, SIZE / 2, &seed);
		batch = batch_of(&gpu, &d, 1);
		ret = batch_run(&gpu, &batch);
		if (!ret && memcmp(from.cpu, to.cpu, SIZE / 2))
			_exit(2);
		/* a reset takes what is on its way */
		if (ret && charged(&gpu, gpu.ctx) &
			   AMDGPU_CTX_QUERY2_FLAGS_GUILTY)
			_exit(3);
		if (ret)
			gpu_context(&gpu, &gpu.ctx);
		/* what only this process may write to */
		if (to.cpu[SIZE / 2] != 0xb5 || to.cpu[SIZE - 1] != 0xb5)
			_exit(4);
	}
}

/* The other process has the same addresses, and notices nothing. */
TEST_F_TIMEOUT(faults, others, 120)
{
	struct drm_amdgpu_sdma_desc d = fill_desc(TO_VA, SIZE, 0xdeadbeef);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	pid_t pid = fork();
	int i, status;

	ASSERT_LE(0, pid);
	if (!pid)
		keep_copying(self->seed);
	for (i = 0; i < 200; i++)
		EXPECT_EQ(0, batch_run(&self->gpu, &batch));
	batch.engine_mask = 1;
	must_fail(_metadata, self, &batch, "engine 0 hang");
	usleep(200000);
	ASSERT_EQ(0, waitpid(pid, &status, WNOHANG))
		TH_LOG("the other process ended: %d", WEXITSTATUS(status));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

TEST_HARNESS_MAIN
