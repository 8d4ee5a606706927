// SPDX-License-Identifier: GPL-2.0
/*
 * Cancel commands that drivers complete later, on the mock file of io_uring:
 * by request, by linked timeouts, and because the ring or the process ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/io_uring/mock_file.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define MOCK_DEVICE	"/dev/io_uring_mock"
#define NSEC		1000000000ULL
#define MSEC		1000000ULL
/* Longer than any test: a command that ends by itself was not cancelled. */
#define LONG		(8 * NSEC)
#define RESULT		4711
#define CANCEL_DATA	0x10000000000ULL
#define TIMEOUT_DATA	0x20000000000ULL

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC + ts.tv_nsec;
}

static struct io_uring_sqe *put_cmd(struct io_uring *ring, int fd, uint32_t op)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = op;
	return sqe;
}

/* The next completion: its user data, and its result. */
static uint64_t next(struct io_uring *ring, int *res)
{
	struct __kernel_timespec limit = { .tv_sec = 20 };
	struct io_uring_cqe *cqe;
	uint64_t data;

	if (io_uring_wait_cqe_timeout(ring, &cqe, &limit)) {
		*res = -ETIMEDOUT;
		return UINT64_MAX;
	}
	*res = cqe->res;
	data = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return data;
}

static struct io_uring_sqe *put_wait(struct io_uring *ring, int fd,
				     uint64_t delay_ns, uint32_t flags,
				     uint64_t data)
{
	struct io_uring_sqe *sqe = put_cmd(ring, fd, IORING_MOCK_CMD_WAIT);

	sqe->addr = delay_ns;
	sqe->len = RESULT;
	sqe->file_index = flags;
	io_uring_sqe_set_data64(sqe, data);
	return sqe;
}

static int mock_command(int op, void *arg, uint32_t size)
{
	int fd = open(MOCK_DEVICE, O_RDWR | O_CLOEXEC), res;
	struct io_uring_sqe *sqe;
	struct io_uring ring;

	if (fd < 0)
		return -errno;
	if (io_uring_queue_init(4, &ring, 0)) {
		close(fd);
		return -EIO;
	}
	sqe = put_cmd(&ring, fd, op);
	sqe->addr = (uintptr_t)arg;
	sqe->len = size;
	io_uring_submit(&ring);
	next(&ring, &res);
	io_uring_queue_exit(&ring);
	close(fd);
	return res;
}

FIXTURE(cancel)
{
	struct io_uring ring;
	int fd;
};

FIXTURE_VARIANT(cancel)
{
	unsigned int flags;
};

FIXTURE_VARIANT_ADD(cancel, plain)
{
	.flags = 0,
};

FIXTURE_VARIANT_ADD(cancel, defer_taskrun)
{
	.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

FIXTURE_VARIANT_ADD(cancel, sqpoll)
{
	.flags = IORING_SETUP_SQPOLL,
};

FIXTURE_SETUP(cancel)
{
	struct io_uring_mock_create create = { };
	struct io_uring_mock_probe probe = { };

	if (mock_command(IORING_MOCK_MGR_CMD_PROBE, &probe, sizeof(probe)) ||
	    probe.features <= IORING_MOCK_FEAT_CMD_WAIT)
		SKIP(return, "no mock file with commands that wait");
	ASSERT_EQ(mock_command(IORING_MOCK_MGR_CMD_CREATE, &create,
			       sizeof(create)), 0);
	self->fd = create.out_fd;
	ASSERT_EQ(io_uring_queue_init(64, &self->ring, variant->flags), 0);
}

FIXTURE_TEARDOWN(cancel)
{
	io_uring_queue_exit(&self->ring);
	close(self->fd);
}

/* Two completions in either order: that of @data, and the other one. */
static void both(struct io_uring *ring, uint64_t data, int *res, int *other)
{
	int first;

	if (next(ring, &first) == data) {
		*res = first;
		next(ring, other);
	} else {
		*other = first;
		next(ring, res);
	}
}

TEST_F(cancel, ends_by_itself)
{
	uint64_t start = now_ns();
	int res;

	put_wait(&self->ring, self->fd, 50 * MSEC,
		 IORING_MOCK_WAIT_CANCEL_ONE, 1);
	io_uring_submit(&self->ring);
	EXPECT_EQ(next(&self->ring, &res), 1);
	EXPECT_EQ(res, RESULT);
	EXPECT_GE(now_ns() - start, 50 * MSEC);
}

TEST_F(cancel, by_data)
{
	int res, found;

	put_wait(&self->ring, self->fd, LONG, IORING_MOCK_WAIT_CANCEL_ONE, 1);
	put_wait(&self->ring, self->fd, 300 * MSEC,
		 IORING_MOCK_WAIT_CANCEL_ONE, 2);
	io_uring_submit(&self->ring);
	io_uring_prep_cancel64(io_uring_get_sqe(&self->ring), 1, 0);
	io_uring_submit(&self->ring);
	both(&self->ring, 1, &res, &found);
	EXPECT_EQ(res, -ECANCELED);
	EXPECT_EQ(found, 0);
	/* and nothing else */
	EXPECT_EQ(next(&self->ring, &res), 2);
	EXPECT_EQ(res, RESULT);
}

TEST_F(cancel, all_by_fd)
{
	struct io_uring_sqe *sqe;
	int i, res, ended = 0, found = -1;

	for (i = 0; i < 10; i++)
		put_wait(&self->ring, self->fd, LONG,
			 IORING_MOCK_WAIT_CANCEL_ONE, i);
	io_uring_submit(&self->ring);
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel_fd(sqe, self->fd, IORING_ASYNC_CANCEL_ALL);
	io_uring_sqe_set_data64(sqe, CANCEL_DATA);
	io_uring_submit(&self->ring);
	for (i = 0; i < 11; i++) {
		if (next(&self->ring, &res) == CANCEL_DATA)
			found = res;
		else
			ended += res == -ECANCELED;
	}
	EXPECT_EQ(found, 10);
	EXPECT_EQ(ended, 10);
}

TEST_F(cancel, sync)
{
	struct io_uring_sync_cancel_reg reg = {
		.addr = 1, .fd = -1,
		.timeout = { .tv_sec = 5 },
	};
	int res;

	put_wait(&self->ring, self->fd, LONG, IORING_MOCK_WAIT_CANCEL_ONE, 1);
	io_uring_submit(&self->ring);
	/* the thread of SQPOLL may not have seen it yet */
	while ((res = io_uring_register_sync_cancel(&self->ring, &reg)) ==
	       -ENOENT)
		usleep(1000);
	EXPECT_EQ(res, 0);
	EXPECT_EQ(next(&self->ring, &res), 1);
	EXPECT_EQ(res, -ECANCELED);
}

TEST_F(cancel, linked_timeout)
{
	struct __kernel_timespec limit = { .tv_nsec = 50 * MSEC };
	struct io_uring_sqe *sqe;
	int res, timeout;

	sqe = put_wait(&self->ring, self->fd, LONG,
		       IORING_MOCK_WAIT_CANCEL_ONE, 1);
	sqe->flags |= IOSQE_IO_LINK;
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_link_timeout(sqe, &limit, 0);
	io_uring_sqe_set_data64(sqe, TIMEOUT_DATA);
	io_uring_submit(&self->ring);
	both(&self->ring, 1, &res, &timeout);
	EXPECT_EQ(res, -ECANCELED);
	/* what a linked timeout reports when it has cancelled something */
	EXPECT_EQ(timeout, -ETIME);
}

/* A command with @flags completes as if nothing had cancelled it. */
static void check_goes_on(struct __test_metadata *_metadata,
			  FIXTURE_DATA(cancel) *self, unsigned int flags)
{
	int res;

	put_wait(&self->ring, self->fd, 300 * MSEC, flags, 1);
	io_uring_submit(&self->ring);
	io_uring_prep_cancel64(io_uring_get_sqe(&self->ring), 1, 0);
	io_uring_submit(&self->ring);
	EXPECT_EQ(next(&self->ring, &res), 0);
	EXPECT_EQ(res, -ENOENT);
	EXPECT_EQ(next(&self->ring, &res), 1);
	EXPECT_EQ(res, RESULT);
}

/* A driver that only handles the end of the ring is not asked. */
TEST_F(cancel, of_the_ring_only)
{
	check_goes_on(_metadata, self, 0);
}

/* A driver that does not cancel a command completes it later. */
TEST_F(cancel, refused)
{
	check_goes_on(_metadata, self, IORING_MOCK_WAIT_CANCEL_ONE |
				       IORING_MOCK_WAIT_STUBBORN);
}

TEST_F(cancel, too_late)
{
	int res;

	put_wait(&self->ring, self->fd, MSEC, IORING_MOCK_WAIT_CANCEL_ONE, 1);
	io_uring_submit(&self->ring);
	EXPECT_EQ(next(&self->ring, &res), 1);
	EXPECT_EQ(res, RESULT);
	io_uring_prep_cancel64(io_uring_get_sqe(&self->ring), 1, 0);
	io_uring_submit(&self->ring);
	EXPECT_EQ(next(&self->ring, &res), 0);
	EXPECT_EQ(res, -ENOENT);
}

/* Each command completes once, whether it expires or is cancelled first. */
TEST_F(cancel, races_with_the_end)
{
	int i, k, res, ended, answers;

	for (i = 0; i < 200; i++) {
		ended = 0;
		answers = 0;
		put_wait(&self->ring, self->fd, i * 1000ULL,
			 IORING_MOCK_WAIT_CANCEL_ONE, 1);
		io_uring_prep_cancel64(io_uring_get_sqe(&self->ring), 1, 0);
		io_uring_submit(&self->ring);
		for (k = 0; k < 2; k++) {
			if (next(&self->ring, &res) == 1)
				ended += res == RESULT || res == -ECANCELED;
			else
				answers += !res || res == -ENOENT ||
					   res == -EALREADY;
		}
		ASSERT_EQ(ended, 1);
		ASSERT_EQ(answers, 1);
	}
}

/* The end of a ring waits for no command that can be cancelled. */
TEST_F(cancel, end_of_ring)
{
	uint64_t start;
	struct io_uring ring;
	int i;

	ASSERT_EQ(io_uring_queue_init(16, &ring, variant->flags), 0);
	for (i = 0; i < 8; i++)
		put_wait(&ring, self->fd, LONG,
			 i % 2 ? IORING_MOCK_WAIT_CANCEL_ONE : 0, i);
	io_uring_submit(&ring);
	start = now_ns();
	io_uring_queue_exit(&ring);
	EXPECT_LT(now_ns() - start, LONG / 2);
}

TEST_F(cancel, end_of_process)
{
	uint64_t start = now_ns();
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct io_uring ring;

		if (io_uring_queue_init(16, &ring, variant->flags))
			_exit(1);
		put_wait(&ring, self->fd, LONG, IORING_MOCK_WAIT_CANCEL_ONE, 1);
		put_wait(&ring, self->fd, LONG, 0, 2);
		io_uring_submit(&ring);
		usleep(50000);
		raise(SIGKILL);
	}
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_LT(now_ns() - start, LONG / 2);
}

TEST_HARNESS_MAIN
