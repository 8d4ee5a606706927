// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches by io_uring: what completes when, with which result; chains of
 * file and batch; what happens to commands when their ring or task ends.
 *
 * SEED=N in the environment takes other random data.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "sdma_uring.h"

#define SYSTEM_VA	(1024 * MIB)
#define VRAM_VA		(2048 * MIB)
#define SIZE		(4 * MIB)
#define PART		(64 * KIB)
/* A word that no test sets: a wait for it gives up. */
#define NEVER_VA	(SYSTEM_VA + SIZE - 4096)
/* Reads of a wait that lasts long, by the pace of an emulated engine too. */
#define LONG_WAIT	400

FIXTURE(uring)
{
	struct gpu gpu;
	struct buffer system;
	struct buffer vram;
	struct io_uring ring;
	unsigned int seed;
};

FIXTURE_SETUP(uring)
{
	self->seed = env("SEED", 1);
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (!(self->gpu.info.features & AMDGPU_SDMA_FEATURE_URING))
		SKIP(return, "no io_uring");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->system, SIZE,
				AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA));
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	randomize(self->system.cpu, SIZE, &self->seed);
	memset(self->system.cpu + SIZE - 4096, 0, 4096);
	memset(self->vram.cpu, 0, SIZE);
	ASSERT_EQ(0, io_uring_queue_init(64, &self->ring, 0));
}

FIXTURE_TEARDOWN(uring)
{
	if (self->gpu.fd < 0)
		return;
	io_uring_queue_exit(&self->ring);
	close(self->gpu.fd);
}

/* A copy of a part of system memory, to the same place in video memory. */
static struct drm_amdgpu_sdma_desc part(unsigned int i)
{
	return copy_desc(SYSTEM_VA + i * PART, VRAM_VA + i * PART, PART);
}

static bool copied(struct _test_data_uring *self, unsigned int i)
{
	return !memcmp(self->system.cpu + i * PART, self->vram.cpu + i * PART,
		       PART);
}

/* The batch has ended when its command completes. */
TEST_F(uring, batch)
{
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	unsigned int i;

	for (i = 0; i < 32; i++) {
		d = part(i);
		batch = batch_of(&self->gpu, &d, 1);
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
		EXPECT_NE(0, batch.engines_used);
		EXPECT_EQ(AMDGPU_SDMA_NO_INDEX, batch.error_index);
		ASSERT_TRUE(copied(self, i));
	}
}

TEST_F(uring, many_at_once)
{
	struct drm_amdgpu_sdma_batch batch[32];
	struct drm_amdgpu_sdma_desc d[32];
	unsigned int i;

	for (i = 0; i < 32; i++) {
		d[i] = part(i);
		batch[i] = batch_of(&self->gpu, &d[i], 1);
		put_batch(&self->ring, &self->gpu, &batch[i]);
	}
	ASSERT_EQ(32, io_uring_submit(&self->ring));
	for (i = 0; i < 32; i++)
		ASSERT_EQ(0, next_result(&self->ring, NULL));
	for (i = 0; i < 32; i++)
		EXPECT_TRUE(copied(self, i));
}

/* Prepared, run and forgotten by commands; those that run nothing are quick. */
TEST_F(uring, prepared)
{
	struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	unsigned int i;
	uint32_t h;

	batch.flags = AMDGPU_SDMA_BATCH_PREPARE;
	ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
	h = batch.handle;
	ASSERT_NE(0, h);
	for (i = 0; i < 20; i++) {
		randomize(self->system.cpu, PART, &self->seed);
		batch = run_of(&self->gpu, h);
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
		ASSERT_TRUE(copied(self, 0));
	}
	batch = run_of(&self->gpu, h);
	batch.ctx_id = 0;
	batch.flags = AMDGPU_SDMA_BATCH_FORGET;
	ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
	EXPECT_EQ(-ENOENT, run_by(&self->ring, &self->gpu, &batch));
}

static int new_file(void)
{
	FILE *f = tmpfile();
	int fd = f ? dup(fileno(f)) : -1;

	if (f)
		fclose(f);
	return fd;
}

#define CHAINS	16

/*
 * Read a file into system memory, let the engine move it to video memory and
 * back elsewhere, write that to another file: one system call for all.
 */
static void put_chain(struct _test_data_uring *self, unsigned int i,
		      const int file[2], struct drm_amdgpu_sdma_batch *batch)
{
	const uint64_t at = i * PART;
	struct io_uring_sqe *sqe;

	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_read(sqe, file[0], self->system.cpu + at, PART, at);
	sqe->flags |= IOSQE_IO_LINK;
	sqe->user_data = PART;
	sqe = put_batch(&self->ring, &self->gpu, batch);
	sqe->flags |= IOSQE_IO_LINK;
	sqe->user_data = 0;
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_write(sqe, file[1], self->system.cpu + SIZE / 2 + at,
			    PART, at);
	sqe->user_data = PART;
}

static void run_chains(struct __test_metadata *_metadata,
		       struct _test_data_uring *self)
{
	struct drm_amdgpu_sdma_desc d[CHAINS][2];
	struct drm_amdgpu_sdma_batch batch[CHAINS];
	uint8_t *data = malloc(CHAINS * PART);
	int file[2] = { new_file(), new_file() };
	unsigned int i;
	uint64_t want;
	int ret;

	ASSERT_NE(NULL, data);
	randomize(data, CHAINS * PART, &self->seed);
	ASSERT_EQ(CHAINS * PART, pwrite(file[0], data, CHAINS * PART, 0));
	for (i = 0; i < CHAINS; i++) {
		d[i][0] = part(i);
		d[i][1] = copy_desc(VRAM_VA + i * PART,
				    SYSTEM_VA + SIZE / 2 + i * PART, PART);
		d[i][1].flags = AMDGPU_SDMA_DESC_BARRIER;
		batch[i] = batch_of(&self->gpu, d[i], 2);
		put_chain(self, i, file, &batch[i]);
	}
	ASSERT_EQ(3 * CHAINS, io_uring_submit(&self->ring));
	for (i = 0; i < 3 * CHAINS; i++) {
		ret = next_result(&self->ring, &want);
		ASSERT_EQ((int)want, ret) TH_LOG("completion %u", i);
	}
	memset(self->system.cpu, 0, CHAINS * PART);
	ASSERT_EQ(CHAINS * PART, pread(file[1], self->system.cpu,
				       CHAINS * PART, 0));
	EXPECT_EQ(0, memcmp(data, self->system.cpu, CHAINS * PART));
	close(file[0]);
	close(file[1]);
	free(data);
}

TEST_F(uring, chain)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		run_chains(_metadata, self);
}

/* No system call at all, once the thread that polls is awake. */
TEST_F(uring, chain_sqpoll)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SQPOLL,
		.sq_thread_idle = 2000,
	};
	unsigned int i;

	io_uring_queue_exit(&self->ring);
	ASSERT_EQ(0, io_uring_queue_init_params(64, &self->ring, &params));
	for (i = 0; i < 4; i++)
		run_chains(_metadata, self);
}

static const unsigned int setups[] = {
	IORING_SETUP_SQE128,
	IORING_SETUP_CQE32,
	IORING_SETUP_SQE128 | IORING_SETUP_CQE32,
	IORING_SETUP_COOP_TASKRUN,
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

TEST_F(uring, setups)
{
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(setups); i++) {
		io_uring_queue_exit(&self->ring);
		ASSERT_EQ(0, io_uring_queue_init(64, &self->ring, setups[i]));
		d = part(i);
		batch = batch_of(&self->gpu, &d, 1);
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch))
			TH_LOG("setup %u", i);
		EXPECT_TRUE(copied(self, i));
	}
}

/* Submitted with a signaled fence, or one that signals at once. */
TEST_F(uring, in_fences)
{
	struct drm_amdgpu_sdma_fence fence = { };
	struct drm_amdgpu_sdma_batch batch[20];
	struct drm_amdgpu_sdma_desc d[20];
	unsigned int i;

	ASSERT_EQ(0, syncobj_new(&self->gpu, &fence.handle));
	for (i = 0; i < 20; i++) {
		d[i] = part(i);
		batch[i] = batch_of(&self->gpu, &d[i], 1);
		batch[i].out_fences = (uintptr_t)&fence;
		batch[i].num_out_fences = 1;
		batch[i].in_fences = (uintptr_t)&fence;
		batch[i].num_in_fences = !!i;
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch[i]));
		EXPECT_EQ(1, syncobj_status(&self->gpu, fence.handle));
		EXPECT_TRUE(copied(self, i));
	}
}

/* What the fence says is the result, and ends a chain. */
TEST_F(uring, fence_error)
{
	struct drm_amdgpu_sdma_desc d[] = {
		wait_desc(NEVER_VA, 1, 5), part(0),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);
	struct drm_amdgpu_sdma_batch next = batch_of(&self->gpu, d + 1, 1);
	uint64_t data;
	int i, ret;

	put_batch(&self->ring, &self->gpu, &batch)->flags |= IOSQE_IO_LINK;
	put_batch(&self->ring, &self->gpu, &next)->user_data = 1;
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ret = next_result(&self->ring, &data);
		EXPECT_EQ(data ? -ECANCELED : -ETIME, ret);
	}
	EXPECT_EQ(0, self->vram.cpu[0] | self->vram.cpu[1]);
	/* The same with a hard link, which goes on. */
	put_batch(&self->ring, &self->gpu, &batch)->flags |= IOSQE_IO_HARDLINK;
	put_batch(&self->ring, &self->gpu, &next)->user_data = 1;
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ret = next_result(&self->ring, &data);
		EXPECT_EQ(data ? 0 : -ETIME, ret);
	}
	EXPECT_TRUE(copied(self, 0));
}

/* What the call says is the result too, with the descriptor at fault. */
TEST_F(uring, call_error)
{
	struct drm_amdgpu_sdma_desc d[] = {
		part(0), copy_desc(SYSTEM_VA, 512 * MIB, PART),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);

	EXPECT_EQ(-ENOENT, run_by(&self->ring, &self->gpu, &batch));
	EXPECT_EQ(1, batch.error_index);
	EXPECT_EQ(0, batch.engines_used);
	EXPECT_FALSE(copied(self, 0));
}

/* A ring that may do nothing else, and one that may do all but this. */
TEST_F(uring, restricted)
{
	struct io_uring_restriction only = {
		.opcode = IORING_RESTRICTION_SQE_OP,
		.sqe_op = IORING_OP_URING_CMD,
	};
	struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(8, &ring, IORING_SETUP_R_DISABLED));
	ASSERT_EQ(0, io_uring_register_restrictions(&ring, &only, 1));
	ASSERT_EQ(0, io_uring_enable_rings(&ring));
	EXPECT_EQ(0, run_by(&ring, &self->gpu, &batch));
	EXPECT_TRUE(copied(self, 0));
	io_uring_prep_nop(io_uring_get_sqe(&ring));
	ASSERT_EQ(1, io_uring_submit(&ring));
	EXPECT_EQ(-EACCES, next_result(&ring, NULL));
	io_uring_queue_exit(&ring);

	only.sqe_op = IORING_OP_NOP;
	ASSERT_EQ(0, io_uring_queue_init(8, &ring, IORING_SETUP_R_DISABLED));
	ASSERT_EQ(0, io_uring_register_restrictions(&ring, &only, 1));
	ASSERT_EQ(0, io_uring_enable_rings(&ring));
	EXPECT_EQ(-EACCES, run_by(&ring, &self->gpu, &batch));
	io_uring_queue_exit(&ring);
}

/* Whatever was cancelled, the ring and the GPU go on. */
static void check_works(struct __test_metadata *_metadata,
			struct _test_data_uring *self)
{
	struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	EXPECT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
	EXPECT_TRUE(copied(self, 0));
}

/* The ring ends before the engine has: nobody waits for that. */
TEST_F(uring, ring_exit)
{
	struct drm_amdgpu_sdma_desc d[] = {
		wait_desc(NEVER_VA, 1, LONG_WAIT), part(0),
	};
	struct drm_amdgpu_sdma_batch batch;
	struct io_uring ring;
	unsigned int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, io_uring_queue_init(8, &ring, 0));
		batch = batch_of(&self->gpu, d, 2);
		put_batch(&ring, &self->gpu, &batch);
		ASSERT_EQ(1, io_uring_submit(&ring));
		usleep(next_random(&self->seed) % 20000);
		io_uring_queue_exit(&ring);
	}
	check_works(_metadata, self);
}

struct submitter {
	struct io_uring *ring;
	struct gpu *gpu;
	struct drm_amdgpu_sdma_batch batch;
	int ret;
};

static void *submit_and_end(void *arg)
{
	struct submitter *s = arg;

	put_batch(s->ring, s->gpu, &s->batch);
	s->ret = io_uring_submit(s->ring);
	return NULL;
}

/* The thread that submitted is gone when its command completes. */
TEST_F(uring, thread_exit)
{
	struct drm_amdgpu_sdma_desc d[] = { part(0), part(1), part(2) };
	struct submitter s = { .ring = &self->ring, .gpu = &self->gpu };
	pthread_t thread;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		s.batch = batch_of(&self->gpu, d, 3);
		ASSERT_EQ(0, pthread_create(&thread, NULL, submit_and_end, &s));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_EQ(1, s.ret);
		ASSERT_EQ(0, next_result(&self->ring, NULL))
			TH_LOG("round %u", i);
	}
}

/*
 * A child submits to a ring that is the parent's too, and calls exec after
 * @delay microseconds: that cancels its commands. What the command completes
 * with, or -EPIPE if not once.
 */
static int submit_and_exec(struct gpu *gpu, struct drm_amdgpu_sdma_batch *batch,
			   unsigned int delay)
{
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int ret, status;
	pid_t child;

	ret = io_uring_queue_init(8, &ring, 0);
	if (ret)
		return ret;
	child = fork();
	if (!child) {
		put_batch(&ring, gpu, batch);
		if (io_uring_submit(&ring) != 1)
			_exit(1);
		usleep(delay);
		execl("/bin/true", "true", NULL);
		_exit(2);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		ret = -ECHILD;
	else
		ret = next_result(&ring, NULL);
	if (!io_uring_peek_cqe(&ring, &cqe))
		ret = -EPIPE;
	io_uring_queue_exit(&ring);
	return ret;
}

/*
 * A command that was submitted is cancelled; the batch goes on: its fence says
 * how it ended.
 */
TEST_F(uring, cancel)
{
	uint32_t *flag = (uint32_t *)(self->system.cpu + SIZE / 2);
	struct drm_amdgpu_sdma_desc d[] = {
		wait_desc(SYSTEM_VA + SIZE / 2, 1, 2000), part(0),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);
	struct drm_amdgpu_sdma_fence out = { };

	*flag = 0;
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
	batch.out_fences = (uintptr_t)&out;
	batch.num_out_fences = 1;
	EXPECT_EQ(-ECANCELED, submit_and_exec(&self->gpu, &batch, 50000));
	EXPECT_EQ(0, syncobj_status(&self->gpu, out.handle));
	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	ASSERT_EQ(0, syncobj_wait(&self->gpu, out.handle, 0, WAIT_SECONDS));
	EXPECT_EQ(1, syncobj_status(&self->gpu, out.handle));
	EXPECT_TRUE(copied(self, 0));
}

/* Cancelled at any moment of the command: it completes once. */
TEST_F_TIMEOUT(uring, cancel_storm, 280)
{
	const unsigned int n = env("ROUNDS", 100);
	struct drm_amdgpu_sdma_desc d[] = {
		part(0), part(1), wait_desc(NEVER_VA, 1, 2), part(2),
	};
	unsigned int i, done = 0, timed_out = 0;
	struct drm_amdgpu_sdma_batch batch;
	int ret;

	for (i = 0; i < n; i++) {
		batch = batch_of(&self->gpu, d, 2 + i % 3);
		ret = submit_and_exec(&self->gpu, &batch,
				      next_random(&self->seed) % 4000);
		ASSERT_TRUE(!ret || ret == -ETIME || ret == -ECANCELED ||
			    ret == -EINTR) TH_LOG("round %u: %d", i, ret);
		done += !ret;
		timed_out += ret == -ETIME;
	}
	TH_LOG("%u done, %u timed out, %u cancelled", done, timed_out,
	       n - done - timed_out);
	check_works(_metadata, self);
}

/* Asks for commands to be cancelled; the answer comes with user data @data. */
static void put_cancel(struct io_uring *ring, uint64_t data, int fd,
		       uint64_t wanted, unsigned int flags)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (flags & IORING_ASYNC_CANCEL_FD)
		io_uring_prep_cancel_fd(sqe, fd, flags);
	else
		io_uring_prep_cancel64(sqe, wanted, flags);
	sqe->user_data = data;
	io_uring_submit(ring);
}

/* Results of the @n commands that complete next, by their user data. */
static int next_results(struct io_uring *ring, unsigned int n, int *results)
{
	uint64_t data;
	int ret;

	while (n--) {
		ret = next_result(ring, &data);
		if (ret == -ETIMEDOUT)
			return ret;
		results[data] = ret;
	}
	return 0;
}

/*
 * Batches that wait, the first for a flag and the others for the first. A
 * cancellation finds those that it should, and the batches go on.
 */
TEST_F(uring, async_cancel)
{
	uint32_t *flag = (uint32_t *)(self->system.cpu + SIZE / 2);
	struct drm_amdgpu_sdma_desc d[] = {
		wait_desc(SYSTEM_VA + SIZE / 2, 1, 2000),
		part(0), part(1), part(2), part(3),
	};
	struct io_uring_sync_cancel_reg second = {
		.addr = 2, .fd = -1, .timeout = { -1, -1 },
	};
	enum { BATCHES = 4, CANCEL = BATCHES };
	struct drm_amdgpu_sdma_fence out[BATCHES] = { };
	struct drm_amdgpu_sdma_batch batch[BATCHES];
	int i, fd = self->gpu.fd, results[BATCHES + 1] = { };
	struct io_uring *ring = &self->ring;
	struct io_uring_cqe *cqe;

	*flag = 0;
	for (i = 0; i < BATCHES; i++) {
		ASSERT_EQ(0, syncobj_new(&self->gpu, &out[i].handle));
		batch[i] = batch_of(&self->gpu, i ? &d[i + 1] : d, i ? 1 : 2);
		batch[i].out_fences = (uintptr_t)&out[i];
		batch[i].num_out_fences = 1;
		batch[i].in_fences = (uintptr_t)&out[0];
		batch[i].num_in_fences = !!i;
		put_batch(ring, &self->gpu, &batch[i])->user_data = i;
		ASSERT_EQ(1, io_uring_submit(ring));
		while (!__atomic_load_n(&batch[i].engines_used,
					__ATOMIC_ACQUIRE))
			usleep(1000);
	}
	/* once the last worker has left it to the fence */
	do {
		put_cancel(ring, CANCEL, fd, 3, 0);
		ASSERT_EQ(0, next_results(ring, 1, results));
	} while (results[CANCEL] == -EALREADY);
	ASSERT_EQ(0, next_results(ring, 1, results));
	EXPECT_EQ(0, results[CANCEL]);
	EXPECT_EQ(-ECANCELED, results[3]);
	put_cancel(ring, CANCEL, fd, 3, 0);
	EXPECT_EQ(-ENOENT, next_result(ring, NULL));
	EXPECT_EQ(0, io_uring_register_sync_cancel(ring, &second));
	ASSERT_EQ(0, next_results(ring, 1, results));
	EXPECT_EQ(-ECANCELED, results[2]);
	put_cancel(ring, CANCEL, fd, 0, IORING_ASYNC_CANCEL_FD |
		   IORING_ASYNC_CANCEL_ALL);
	ASSERT_EQ(0, next_results(ring, 3, results));
	EXPECT_EQ(2, results[CANCEL]);
	EXPECT_EQ(-ECANCELED, results[0]);
	EXPECT_EQ(-ECANCELED, results[1]);
	EXPECT_EQ(0, syncobj_status(&self->gpu, out[0].handle));

	__atomic_store_n(flag, 1, __ATOMIC_RELEASE);
	for (i = 0; i < BATCHES; i++) {
		ASSERT_EQ(0, syncobj_wait(&self->gpu, out[i].handle, 0,
					  WAIT_SECONDS));
		EXPECT_EQ(1, syncobj_status(&self->gpu, out[i].handle));
		EXPECT_TRUE(copied(self, i));
	}
	EXPECT_NE(0, io_uring_peek_cqe(ring, &cqe));
}

/* A timeout that is linked to the command cancels it. */
TEST_F(uring, link_timeout)
{
	struct __kernel_timespec limit = { .tv_nsec = 20000000 };
	struct drm_amdgpu_sdma_desc d = wait_desc(NEVER_VA, 1, LONG_WAIT);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct io_uring_sqe *sqe;
	int tries, results[2];

	/* not one that fires while a worker still submits */
	for (tries = 0; tries < 20; tries++) {
		sqe = put_batch(&self->ring, &self->gpu, &batch);
		sqe->flags |= IOSQE_IO_LINK;
		sqe->user_data = 0;
		sqe = io_uring_get_sqe(&self->ring);
		io_uring_prep_link_timeout(sqe, &limit, 0);
		sqe->user_data = 1;
		ASSERT_EQ(2, io_uring_submit(&self->ring));
		ASSERT_EQ(0, next_results(&self->ring, 2, results));
		if (results[1] == -ETIME)
			break;
		limit.tv_nsec += limit.tv_nsec / 2;
	}
	EXPECT_EQ(-ECANCELED, results[0]);
	EXPECT_EQ(-ETIME, results[1]);
}

/* Whether a command ends with @result if cancelling it is answered so. */
static bool fits(int answer, int result)
{
	bool ended = !result || result == -ETIME;

	if (!answer)
		return result == -ECANCELED;
	if (answer == -ENOENT)
		return ended;
	return answer == -EALREADY &&
	       (ended || result == -ECANCELED || result == -EINTR);
}

/* By request, at any moment of the command: each answer fits the result. */
TEST_F_TIMEOUT(uring, async_cancel_storm, 280)
{
	const unsigned int n = env("ROUNDS", 100);
	struct drm_amdgpu_sdma_desc d[] = {
		part(0), part(1), wait_desc(NEVER_VA, 1, 2), part(2),
	};
	unsigned int i, found = 0, late = 0;
	struct drm_amdgpu_sdma_batch batch;
	int results[2];

	for (i = 0; i < n; i++) {
		io_uring_queue_exit(&self->ring);
		ASSERT_EQ(0, io_uring_queue_init(8, &self->ring,
						 setups[i % ARRAY_SIZE(setups)]));
		batch = batch_of(&self->gpu, d, 2 + i % 3);
		put_batch(&self->ring, &self->gpu, &batch)->user_data = 0;
		ASSERT_EQ(1, io_uring_submit(&self->ring));
		usleep(next_random(&self->seed) % 4000);
		put_cancel(&self->ring, 1, self->gpu.fd, 0, 0);
		ASSERT_EQ(0, next_results(&self->ring, 2, results));
		ASSERT_TRUE(fits(results[1], results[0]))
			TH_LOG("round %u: %d, %d", i, results[1], results[0]);
		found += !results[1];
		late += results[1] == -ENOENT;
	}
	TH_LOG("%u cancelled, %u too late, %u by a worker", found, late,
	       n - found - late);
	check_works(_metadata, self);
}

static void submit_for_ever(unsigned int seed)
{
	struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA, PART, 0xdddddddd),
		wait_desc(VRAM_VA, 0, 20),
	};
	struct drm_amdgpu_sdma_batch batch[8];
	struct io_uring ring;
	struct buffer vram;
	struct gpu gpu;
	unsigned int i;

	if (gpu_open(&gpu, 0) ||
	    buffer_map(&gpu, &vram, SIZE, AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA) ||
	    io_uring_queue_init(8, &ring, seed % 2 ? IORING_SETUP_SQPOLL : 0))
		_exit(1);
	while (1) {
		for (i = 0; i < 8; i++) {
			batch[i] = batch_of(&gpu, d, 1 + i % 2);
			put_batch(&ring, &gpu, &batch[i]);
		}
		io_uring_submit(&ring);
		for (i = 0; i < 8; i++)
			next_result(&ring, NULL);
	}
}

/* Processes are killed at some moment; the memory here is untouched. */
TEST_F(uring, killed)
{
	struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch batch;
	unsigned int round;
	int status;

	for (round = 0; round < 12; round++) {
		pid_t child = fork();

		ASSERT_LE(0, child);
		if (!child)
			submit_for_ever(round);
		usleep(50000 + next_random(&self->seed) % 100000);
		ASSERT_EQ(0, kill(child, SIGKILL));
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
		EXPECT_EQ(0, self->vram.cpu[PART]);
		batch = batch_of(&self->gpu, &d, 1);
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
		ASSERT_TRUE(copied(self, 0));
	}
}

/*
 * What is refused: one test for each reason, on a command that is good else.
 */
static int run_spoiled(struct _test_data_uring *self,
		       const struct drm_amdgpu_sdma_uring *cmd, uint32_t op,
		       uint32_t flags)
{
	struct io_uring_sqe *sqe = put_cmd(&self->ring, self->gpu.fd, cmd);
	int ret;

	sqe->cmd_op = op;
	sqe->uring_cmd_flags = flags;
	ret = io_uring_submit(&self->ring);
	return ret < 0 ? ret : next_result(&self->ring, NULL);
}

#define EXPECT_SPOILED(error, spoil_cmd, op, flags)			\
	do {								\
		struct drm_amdgpu_sdma_desc d = part(0);		\
		struct {						\
			struct drm_amdgpu_sdma_batch batch;		\
			uint64_t tail;					\
		} a = { .batch = batch_of(&self->gpu, &d, 1) };		\
		struct drm_amdgpu_sdma_uring cmd = {			\
			.batch = (uintptr_t)&a,				\
			.size = sizeof(a.batch),			\
		};							\
		const int want = error;					\
									\
		spoil_cmd;						\
		EXPECT_EQ(want, run_spoiled(self, &cmd, op, flags));	\
		EXPECT_EQ(!want, copied(self, 0));			\
	} while (0)

#define OP	DRM_AMDGPU_URING_SDMA_BATCH

TEST_F(uring, good)
{
	EXPECT_SPOILED(0, (void)0, OP, 0);
}

TEST_F(uring, refused_op)
{
	EXPECT_SPOILED(-EOPNOTSUPP, (void)0, OP + 1, 0);
}

/* The ioctl's number is not the command's. */
TEST_F(uring, refused_ioctl)
{
	EXPECT_SPOILED(-EOPNOTSUPP, (void)0, DRM_IOCTL_AMDGPU_SDMA_BATCH, 0);
}

TEST_F(uring, refused_fixed)
{
	EXPECT_SPOILED(-EINVAL, (void)0, OP, IORING_URING_CMD_FIXED);
}

TEST_F(uring, refused_pad)
{
	EXPECT_SPOILED(-EINVAL, cmd.pad = 1, OP, 0);
}

TEST_F(uring, refused_size)
{
	EXPECT_SPOILED(-EINVAL, cmd.size--, OP, 0);
}

TEST_F(uring, refused_size_0)
{
	EXPECT_SPOILED(-EINVAL, cmd.size = 0, OP, 0);
}

TEST_F(uring, refused_size_huge)
{
	EXPECT_SPOILED(-EINVAL, cmd.size = 1u << 31, OP, 0);
}

TEST_F(uring, longer_with_zeros)
{
	EXPECT_SPOILED(0, cmd.size += 8, OP, 0);
}

TEST_F(uring, refused_tail)
{
	EXPECT_SPOILED(-E2BIG, (cmd.size += 8, a.tail = 1), OP, 0);
}

TEST_F(uring, refused_pointer)
{
	EXPECT_SPOILED(-EFAULT, cmd.batch = 4096, OP, 0);
}

/* Results cannot be written: said before anything runs. */
TEST_F(uring, refused_read_only)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, page);
	EXPECT_SPOILED(-EFAULT,
		       (memcpy(page, &a.batch, sizeof(a.batch)),
			mprotect(page, 4096, PROT_READ),
			cmd.batch = (uintptr_t)page), OP, 0);
	munmap(page, 4096);
}

TEST_F(uring, refused_batch_flags)
{
	EXPECT_SPOILED(-EINVAL, a.batch.flags = 1u << 31, OP, 0);
}

TEST_HARNESS_MAIN
