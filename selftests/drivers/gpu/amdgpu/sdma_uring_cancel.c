// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches through io_uring that are cancelled: by request, by a timeout,
 * when their ring or their task ends, or when the process is killed.
 */
#include <signal.h>
#include <sys/wait.h>

#include "sdma_hold.h"
#include "sdma_killed.h"
#include "sdma_ring.h"

/* Whatever was cancelled, the ring and the GPU still work. */
static void check_works(struct __test_metadata *_metadata,
			struct _test_data_uring *self)
{
	struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	EXPECT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
	EXPECT_TRUE(copied(self, 0));
}

/* The ring ends before the engine is done, and does not wait for it. */
TEST_F(uring, ring_exit)
{
	struct drm_amdgpu_sdma_desc d[] = {
		wait_eq(NEVER_VA, 1, wait_ns(&self->gpu, LONG_WAIT)), part(0),
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

/*
 * A child submits to a ring that it shares with its parent, and calls exec
 * after @delay microseconds: that cancels its commands. Returns the result of
 * the command, or -EPIPE if it completes more than once.
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
 * The command of a submitted batch is cancelled; the batch goes on, and its
 * fence tells how it ended.
 */
TEST_F(uring, cancel)
{
	uint32_t *flag = (uint32_t *)(self->system.cpu + SIZE / 2);
	struct drm_amdgpu_sdma_desc d[] = {
		wait_eq(SYSTEM_VA + SIZE / 2, 1, wait_ns(&self->gpu, 500)), part(0),
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

/* Cancelled at a random moment, the command completes once. */
TEST_F_TIMEOUT(uring, cancel_storm, 280)
{
	const unsigned int n = env("ROUNDS", 100);
	struct drm_amdgpu_sdma_desc d[] = {
		part(0), part(1), wait_eq(NEVER_VA, 1, 50000), part(2),
	};
	unsigned int i, done = 0, timed_out = 0;
	struct drm_amdgpu_sdma_batch batch;
	int ret;

	for (i = 0; i < n; i++) {
		batch = batch_of(&self->gpu, d, 2 + i % 3);
		ret = submit_and_exec(&self->gpu, &batch,
				      next_random(&self->seed) % 4000);
		ASSERT_TRUE(!ret || ret == -ETIME || ret == -ECANCELED)
			TH_LOG("round %u: %d", i, ret);
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
 * Batches that wait, the first for a flag and the others for the first.
 * Requests cancel the right commands, and the batches go on.
 */
TEST_F(uring, async_cancel)
{
	uint32_t *flag = (uint32_t *)(self->system.cpu + SIZE / 2);
	struct drm_amdgpu_sdma_desc d[] = {
		wait_eq(SYSTEM_VA + SIZE / 2, 1, wait_ns(&self->gpu, 500)),
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
	/* once the last worker has left the command to the fence */
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

/* A command, user data 0, and the timeout that it is linked to. */
static void put_limited(struct io_uring *ring, struct gpu *gpu,
			struct drm_amdgpu_sdma_batch *batch,
			struct __kernel_timespec *limit)
{
	struct io_uring_sqe *sqe = put_batch(ring, gpu, batch);

	sqe->flags |= IOSQE_IO_LINK;
	sqe->user_data = 0;
	sqe = io_uring_get_sqe(ring);
	io_uring_prep_link_timeout(sqe, limit, 0);
	sqe->user_data = 1;
}

/* A timeout that is linked to the command cancels it. */
TEST_F(uring, link_timeout)
{
	struct __kernel_timespec limit = { .tv_nsec = 20000000 };
	struct drm_amdgpu_sdma_desc d = wait_eq(NEVER_VA, 1, wait_ns(&self->gpu, LONG_WAIT));
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	int results[2];

	put_limited(&self->ring, &self->gpu, &batch, &limit);
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	ASSERT_EQ(0, next_results(&self->ring, 2, results));
	EXPECT_EQ(-ECANCELED, results[0]);
	EXPECT_EQ(-ETIME, results[1]);
}

/*
 * The timeout fires while a worker waits for room, or submits, which takes some
 * time for so many operations. In a worker, io_uring does not know whether it
 * has cancelled the command.
 */
TEST_F_TIMEOUT(uring, link_timeout_in_worker, 280)
{
	enum { NUM = 20000, LIMIT_US = 30000, ROUNDS = 10 };
	const struct drm_amdgpu_sdma_desc fill = fill_desc(VRAM_VA + PART, 4, 1);
	struct drm_amdgpu_sdma_desc *d = calloc(NUM, sizeof(*d));
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, NUM);
	struct drm_amdgpu_sdma_batch full = batch_of(&self->gpu, &fill, 1), rest;
	struct __kernel_timespec limit = { .tv_nsec = LIMIT_US * 1000 };
	int i, results[2];
	struct hold hold;

	ASSERT_NE(NULL, d);
	d[0] = wait_eq(NEVER_VA, 1, wait_ns(&self->gpu, LONG_WAIT));
	for (i = 1; i < NUM; i++)
		d[i] = fill_desc(VRAM_VA + PART + 4 * i, 4, 1);
	for (i = 0; i < ROUNDS; i++) {
		if (hold_open(&self->gpu, &hold))
			SKIP(return, "no sw_sync to hold batches back with");
		ASSERT_LT(0, hold_many(&self->gpu, &hold, &full));
		put_limited(&self->ring, &self->gpu, &batch, &limit);
		ASSERT_EQ(2, io_uring_submit(&self->ring));
		usleep(LIMIT_US * i / ROUNDS);
		hold_release(&hold);
		ASSERT_EQ(0, next_results(&self->ring, 2, results));
		EXPECT_EQ(-ECANCELED, results[0]) {
			TH_LOG("with room after %d us", LIMIT_US * i / ROUNDS);
		}
		rest = full;
		ASSERT_EQ(0, batch_run(&self->gpu, &rest));
	}
	free(d);
}

/*
 * A command that waits for room in a worker has submitted nothing: its batch
 * never runs after it is cancelled.
 */
TEST_F(uring, cancel_while_blocked)
{
	const struct drm_amdgpu_sdma_desc fill = fill_desc(VRAM_VA + PART, 4, 1);
	const struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch full = batch_of(&self->gpu, &fill, 1);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct drm_amdgpu_sdma_fence out = { };
	struct io_uring *ring = &self->ring;
	int results[2] = { 1, 1 };
	struct hold hold;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
	ASSERT_LT(0, hold_many(&self->gpu, &hold, &full));
	batch.out_fences = (uintptr_t)&out;
	batch.num_out_fences = 1;
	put_batch(ring, &self->gpu, &batch)->user_data = 0;
	ASSERT_EQ(1, io_uring_submit(ring));
	usleep(100000);
	put_cancel(ring, 1, self->gpu.fd, 0, 0);
	ASSERT_EQ(0, next_results(ring, 2, results));
	EXPECT_TRUE(!results[1] || results[1] == -EALREADY);
	EXPECT_EQ(-ECANCELED, results[0]);
	EXPECT_EQ(0, batch.engines_used);
	/* it has no fence */
	EXPECT_EQ(-EINVAL, syncobj_status(&self->gpu, out.handle));
	hold_release(&hold);
	full.engine_mask = 0;
	ASSERT_EQ(0, batch_run(&self->gpu, &full));
	usleep(50000);
	EXPECT_FALSE(copied(self, 0));
	check_works(_metadata, self);
}

/* Stops this process, and lets it go on a moment later. */
static pid_t stop_and_continue(void)
{
	pid_t self = getpid(), child = fork();

	if (child)
		return child;
	kill(self, SIGSTOP);
	usleep(100000);
	kill(self, SIGCONT);
	_exit(0);
}

/*
 * A worker cannot wait for room while its process is stopped: the command fails
 * and has submitted nothing. The same command succeeds later.
 */
TEST_F(uring, stopped_while_blocked)
{
	const struct drm_amdgpu_sdma_desc fill = fill_desc(VRAM_VA + PART, 4, 1);
	const struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch full = batch_of(&self->gpu, &fill, 1);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct hold hold;
	int status;
	pid_t child;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_LT(0, hold_many(&self->gpu, &hold, &full));
	put_batch(&self->ring, &self->gpu, &batch);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	usleep(100000);
	child = stop_and_continue();
	ASSERT_LT(0, child);
	EXPECT_EQ(-EINTR, next_result(&self->ring, NULL));
	EXPECT_EQ(0, batch.engines_used);
	EXPECT_EQ(child, waitpid(child, &status, 0));
	hold_release(&hold);
	batch.engine_mask = 0;
	ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
	EXPECT_TRUE(copied(self, 0));
}

/* Whether the @result of a command fits the @answer to its cancellation. */
static bool fits(int answer, int result)
{
	bool ended = !result || result == -ETIME;

	if (!answer)
		return result == -ECANCELED;
	if (answer == -ENOENT)
		return ended;
	return answer == -EALREADY && (ended || result == -ECANCELED);
}

/* Cancelled by request at a random moment: each answer fits the result. */
TEST_F_TIMEOUT(uring, async_cancel_storm, 280)
{
	const unsigned int n = env("ROUNDS", 100);
	struct drm_amdgpu_sdma_desc d[] = {
		part(0), part(1), wait_eq(NEVER_VA, 1, 50000), part(2),
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
		wait_eq(VRAM_VA, 0, 500000),
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

/* Processes are killed at a random moment; the memory here is untouched. */
TEST_F(uring, killed)
{
	struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch batch;
	unsigned int round;

	for (round = 0; round < 12; round++) {
		ASSERT_EQ(0, kill_sometime(submit_for_ever, round,
					   &self->seed));
		EXPECT_EQ(0, self->vram.cpu[PART]);
		batch = batch_of(&self->gpu, &d, 1);
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
		ASSERT_TRUE(copied(self, 0));
	}
}

TEST_HARNESS_MAIN
