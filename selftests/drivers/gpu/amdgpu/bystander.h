/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A process that has nothing to do with what a test does to the first GPU. It
 * keeps sending jobs, to that GPU and to another if there is one. A reset may
 * cancel its jobs on the first GPU, as it resets all queues, but its context
 * must not be marked as guilty. Its memory keeps its data. The other GPU does
 * not notice, unless XGMI links the two: then they are reset together.
 */
#ifndef SELFTESTS_AMDGPU_BYSTANDER_H
#define SELFTESTS_AMDGPU_BYSTANDER_H

#include <poll.h>
#include <sys/wait.h>

#include "amdgpu_test.h"

#define BYSTANDER_SIZE	(256 * 1024UL)

struct bystander {
	pid_t pid;
	int up;		/* a byte to read: it has started */
	int stop;	/* closed: it checks its data and ends */
};

/* What the bystander has on a GPU. */
struct bystander_side {
	struct gpu gpu;
	struct buffer ib, data, copy;
	uint32_t first_context;
	unsigned int jobs, lost;
};

/* Print what is wrong, as the process has no test to fail. */
#define BYSTANDER_OK(cond)	bystander_ok(cond, #cond)

static inline bool bystander_ok(bool ok, const char *what)
{
	if (!ok) {
		printf("# bystander: not so: %s\n", what);
		fflush(stdout);
	}
	return ok;
}

static inline uint32_t bystander_word(size_t i)
{
	return i * 2654435761U ^ 0xb57a9de4;
}

static inline bool bystander_buffer(struct gpu *gpu, struct buffer *b)
{
	return BYSTANDER_OK(!new_mapped_buffer(gpu, b, BYSTANDER_SIZE,
					       AMDGPU_GEM_DOMAIN_GTT));
}

static inline bool bystander_open(struct bystander_side *s, const char *gpu)
{
	uint32_t *p;

	memset(s, 0, sizeof(*s));
	if (!BYSTANDER_OK(!open_gpu(&s->gpu, gpu)) ||
	    !bystander_buffer(&s->gpu, &s->ib) ||
	    !bystander_buffer(&s->gpu, &s->data) ||
	    !bystander_buffer(&s->gpu, &s->copy))
		return false;
	s->first_context = s->gpu.context;
	p = s->data.cpu;
	for (size_t i = 0; i < BYSTANDER_SIZE / 4; i++)
		p[i] = bystander_word(i);
	return BYSTANDER_OK(!write_word(&s->gpu, &s->ib, 1));
}

/* Run one job. Jobs that a reset cancels are counted. */
static inline bool bystander_job(struct bystander_side *s)
{
	int ret = write_word(&s->gpu, &s->ib, ++s->jobs);

	if (ret == -ECANCELED) {
		s->lost++;
		/* fails while the device is down */
		new_context(&s->gpu);
		ret = 0;
	}
	if (ret)
		printf("# bystander: a job ends with %d\n", ret);
	fflush(stdout);
	return !ret;
}

static inline bool bystander_compare(const uint32_t *p)
{
	for (size_t i = 0; i < BYSTANDER_SIZE / 4; i++)
		if (p[i] != bystander_word(i))
			return false;
	return true;
}

/* Check the data, as the CPU and the GPU see it. */
static inline bool bystander_data(struct bystander_side *s)
{
	struct buffer *all[] = { &s->ib, &s->data, &s->copy };
	const uint32_t packet[8] = {
		1, BYSTANDER_SIZE - 1, 0, LO(s->data.va), HI(s->data.va),
		LO(s->copy.va), HI(s->copy.va),
	};
	uint64_t fence;

	memset(s->copy.cpu, 0, BYSTANDER_SIZE);
	memcpy(s->ib.cpu, packet, sizeof(packet));
	return BYSTANDER_OK(bystander_compare(s->data.cpu)) &&
	       BYSTANDER_OK(!submit(&s->gpu, all, 3, 8, &fence)) &&
	       BYSTANDER_OK(!wait_fence(&s->gpu, fence, 30)) &&
	       BYSTANDER_OK(bystander_compare(s->copy.cpu));
}

static inline bool bystander_check(struct bystander_side *s, bool first,
				   bool reset)
{
	long state = context_state(&s->gpu, s->first_context);

	printf("# bystander: %u jobs, %u cancelled, %s GPU, state %#lx\n",
	       s->jobs, s->lost, first ? "first" : "other", state);
	fflush(stdout);
	if (!BYSTANDER_OK(state >= 0) ||
	    !BYSTANDER_OK(!(state & AMDGPU_CTX_QUERY2_FLAGS_GUILTY)) ||
	    !BYSTANDER_OK(reset || (!state && !s->lost)))
		return false;
	if (state && !BYSTANDER_OK(!works_again(&s->gpu, &s->ib)))
		return false;
	return bystander_data(s);
}

static inline bool bystander_run(const char *first, const char *other, int up,
				 int stop)
{
	struct pollfd pfd = { .fd = stop, .events = POLLIN };
	struct bystander_side a, b;

	if ((first && !bystander_open(&a, first)) ||
	    (other && !bystander_open(&b, other)) ||
	    write(up, "", 1) != 1)
		return false;
	while (!poll(&pfd, 1, 2))
		if ((first && !bystander_job(&a)) ||
		    (other && !bystander_job(&b)))
			return false;
	return (!first || bystander_check(&a, true, true)) &&
	       (!other || bystander_check(&b, false, gpu_linked(other)));
}

/*
 * Returns when the first jobs are done. Either GPU may be NULL: the bystander
 * leaves that one alone.
 */
static inline int bystander_start(struct bystander *by, const char *first,
				  const char *other)
{
	int up[2], stop[2];
	char byte;

	if (pipe(up) || pipe(stop))
		return -errno;
	fflush(stdout);
	by->pid = fork();
	if (by->pid < 0)
		return -errno;
	if (!by->pid) {
		close(up[0]);
		close(stop[1]);
		_exit(bystander_run(first, other, up[1], stop[0]) ? 0 : 1);
	}
	close(up[1]);
	close(stop[0]);
	by->up = up[0];
	by->stop = stop[1];
	return read(by->up, &byte, 1) == 1 ? 0 : -EIO;
}

/* 0 if all checks of the bystander passed. */
static inline int bystander_end(struct bystander *by)
{
	int status;

	close(by->stop);
	close(by->up);
	if (waitpid(by->pid, &status, 0) != by->pid)
		return -errno;
	return status;
}

#endif
