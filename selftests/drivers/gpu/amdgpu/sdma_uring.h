/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Batches through io_uring, for tests. Without liburing there are no rings:
 * io_uring_queue_init() fails.
 */
#ifndef _SELFTEST_SDMA_URING_H
#define _SELFTEST_SDMA_URING_H

#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

#include <time.h>

#include "sdma_prepared.h"

#ifdef HAVE_LIBURING

static inline struct io_uring_sqe *
put_cmd(struct io_uring *ring, int fd, const struct drm_amdgpu_sdma_uring *cmd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	/* the documentation's: example { */
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = DRM_AMDGPU_URING_SDMA_BATCH;
	memcpy(sqe->cmd, cmd, sizeof(*cmd));
	/* } example */
	return sqe;
}

static inline struct io_uring_sqe *
put_batch(struct io_uring *ring, struct gpu *gpu,
	  struct drm_amdgpu_sdma_batch *batch)
{
	struct drm_amdgpu_sdma_uring cmd = {
		.batch = (uintptr_t)batch,
		.size = sizeof(*batch),
	};

	return put_cmd(ring, gpu->fd, &cmd);
}

/*
 * Result of the next command that completes, and its user data. Signals do not
 * make it wait forever.
 */
static inline int next_result(struct io_uring *ring, uint64_t *data)
{
	struct __kernel_timespec limit = { .tv_sec = WAIT_SECONDS };
	time_t end = time(NULL) + WAIT_SECONDS;
	struct io_uring_cqe *cqe;
	int ret;

	if (data)
		*data = 0;
	do {
		ret = io_uring_wait_cqe_timeout(ring, &cqe, &limit);
	} while (ret == -EINTR && time(NULL) <= end);
	if (ret)
		return ret == -ETIME || ret == -EINTR ? -ETIMEDOUT : ret;
	ret = cqe->res;
	if (data)
		*data = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

static inline int submit_by(struct io_uring *ring, struct gpu *gpu,
			    struct drm_amdgpu_sdma_batch *batch)
{
	int ret;

	put_batch(ring, gpu, batch);
	ret = io_uring_submit(ring);
	return ret < 0 ? ret : 0;
}

static inline int run_by(struct io_uring *ring, struct gpu *gpu,
			 struct drm_amdgpu_sdma_batch *batch)
{
	int ret = submit_by(ring, gpu, batch);

	return ret ? ret : next_result(ring, NULL);
}

#else

struct io_uring {
	int ring_fd;
};

static inline int io_uring_queue_init(unsigned int entries,
				      struct io_uring *ring, unsigned int flags)
{
	return -EOPNOTSUPP;
}

static inline int submit_by(struct io_uring *ring, struct gpu *gpu,
			    struct drm_amdgpu_sdma_batch *batch)
{
	return -EOPNOTSUPP;
}

static inline int next_result(struct io_uring *ring, uint64_t *data)
{
	return -EOPNOTSUPP;
}

static inline int run_by(struct io_uring *ring, struct gpu *gpu,
			 struct drm_amdgpu_sdma_batch *batch)
{
	return -EOPNOTSUPP;
}

#endif

#endif
