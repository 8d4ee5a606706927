/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jobs of other files that were ahead of the kernel's own jobs on their rings,
 * or ahead of those of a file, counted in the scheduler's trace.
 */
#ifndef _SELFTEST_SDMA_QUEUE_H
#define _SELFTEST_SDMA_QUEUE_H

#include <stdbool.h>
#include <stdlib.h>

#include "trace.h"

static const char * const queue_events[] = {
	"gpu_scheduler/drm_sched_job_queue",
	"gpu_scheduler/drm_sched_job_run",
	"gpu_scheduler/drm_sched_job_done",
};

/* The kernel's jobs, by the client IDs in amdgpu_job.h, or those of a file. */
enum queue_kind { UPDATES, MOVES, OF_A_FILE };

struct queue {
	enum queue_kind kind;
	unsigned long long client;	/* OF_A_FILE: see drm_client() */
	long jobs;	/* of this kind, on all rings */
	long before;	/* most jobs of other files ahead of one of them */
};

/* A job, as the trace shows it. */
struct queue_job {
	char event[8];
	unsigned long long context, seqno, client;
	char ring[80];	/* and its device */
	/* jobs of others that had ended on its ring when it could have run */
	long ended;
};

#define QUEUE_MOST	1024

struct queue_jobs {
	struct queue_job job[QUEUE_MOST];
	unsigned int num;
};

/* Jobs of other files on a ring. */
struct queue_ring {
	char name[80];
	long run, ended;
};

struct queue_state {
	struct queue_ring rings[32];
	struct queue_jobs waiting;	/* of this kind, queued */
	struct queue_jobs running;	/* of other files, on a ring */
};

/* The kernel's client ID of the file @fd; 0 if it does not tell one. */
static inline unsigned long long drm_client(int fd)
{
	unsigned long long client = 0;
	char line[256];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", fd);
	f = fopen(line, "r");
	while (f && !client && fgets(line, sizeof(line), f))
		sscanf(line, "drm-client-id: %llu", &client);
	if (f)
		fclose(f);
	return client;
}

/* Starts a trace at @dir; there can be one at a time. */
static inline int queue_begin(const char *dir)
{
	int ret;

	rmdir(dir);
	ret = trace_begin(dir, queue_events, 3);
	if (!ret)
		ret = trace_write(dir, "buffer_size_kb", "8192");
	if (!ret)	/* orders the events of all CPUs */
		ret = trace_write(dir, "trace_clock", "mono");
	if (ret)
		rmdir(dir);
	return ret;
}

static inline bool queue_parse(const char *line, struct queue_job *job)
{
	const char *at = strstr(line, "drm_sched_job_");
	const char *client = strstr(line, "client_id:");
	char dev[32], ring[32];

	memset(job, 0, sizeof(*job));
	if (!at || !client ||
	    sscanf(at, "drm_sched_job_%7[a-z]: dev=%31[^,], fence=%llu:%llu, ring=%31[^,]",
		   job->event, dev, &job->context, &job->seqno, ring) != 5)
		return false;
	snprintf(job->ring, sizeof(job->ring), "%s %s", dev, ring);
	return sscanf(client, "client_id:%llu", &job->client) == 1;
}

static inline bool queue_parse_done(const char *line, struct queue_job *job)
{
	const char *at = strstr(line, "drm_sched_job_done: ");

	return at && sscanf(at, "drm_sched_job_done: fence=%llu:%llu",
			    &job->context, &job->seqno) == 2;
}

static inline bool queue_wants(const struct queue *q, unsigned long long client)
{
	const unsigned long long n = -client;

	if (q->kind == OF_A_FILE)
		return client == q->client;
	if (q->kind == UPDATES)	/* VM_UPDATE to VM_PT_CLEAR */
		return n >= 1 && n <= 4;
	/* TTM_MAP_BUFFER, MOVE_BLIT: clears of new memory use all engines */
	return n == 5 || n == 9;
}

static inline int queue_push(struct queue_jobs *to, const struct queue_job *job)
{
	if (to->num == QUEUE_MOST)
		return -E2BIG;
	to->job[to->num++] = *job;
	return 0;
}

/* NULL if there are more rings than @s has room for. */
static inline struct queue_ring *queue_ring(struct queue_state *s,
					    const char *name)
{
	struct queue_ring *r;

	for (r = s->rings; r < s->rings + 32; r++) {
		if (!r->name[0])
			snprintf(r->name, sizeof(r->name), "%s", name);
		if (!strcmp(r->name, name))
			return r;
	}
	return NULL;
}

/* The ring takes one of our jobs: how many of others did it take before? */
static inline void queue_run(struct queue *q, struct queue_state *s,
			     const struct queue_job *job,
			     const struct queue_ring *ring)
{
	struct queue_jobs *all = &s->waiting;
	struct queue_job *w;

	for (w = all->job; w < all->job + all->num; w++) {
		if (w->context != job->context)
			continue;
		if (w->seqno == job->seqno) {
			if (ring->run - w->ended > q->before)
				q->before = ring->run - w->ended;
			*w-- = all->job[--all->num];
			continue;
		}
		/* it was queued after this one */
		w->ended = ring->ended;
	}
}

static inline int queue_event(struct queue *q, struct queue_state *s,
			      struct queue_job *job)
{
	struct queue_ring *ring = queue_ring(s, job->ring);
	const bool run = !strcmp(job->event, "run");

	if (!ring)
		return -E2BIG;
	if (queue_wants(q, job->client)) {
		if (run) {
			queue_run(q, s, job, ring);
			return 0;
		}
		q->jobs++;
		job->ended = ring->ended;
		return queue_push(&s->waiting, job);
	}
	if (job->client >= 1ULL << 63 || !run)
		return 0;
	ring->run++;
	return queue_push(&s->running, job);
}

static inline void queue_done(struct queue_state *s, const struct queue_job *job)
{
	struct queue_jobs *all = &s->running;
	struct queue_job *r;

	for (r = all->job; r < all->job + all->num; r++) {
		if (r->context != job->context || r->seqno != job->seqno)
			continue;
		queue_ring(s, r->ring)->ended++;
		*r = all->job[--all->num];
		return;
	}
}

/*
 * Fills in @q. -ENODATA if there was no such job, -EOVERFLOW if the trace has
 * lost events.
 */
static inline int queue_read(const char *dir, struct queue *q)
{
	struct queue_state *s = calloc(1, sizeof(*s));
	FILE *f = trace_open(dir);
	unsigned long kept, all;
	struct queue_job job;
	char line[512];
	int ret = s && f ? 0 : -errno;

	while (!ret && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "# entries-in-buffer/entries-written: %lu/%lu",
			   &kept, &all) == 2)
			ret = kept == all ? 0 : -EOVERFLOW;
		else if (queue_parse(line, &job))
			ret = queue_event(q, s, &job);
		else if (queue_parse_done(line, &job))
			queue_done(s, &job);
	}
	if (f)
		fclose(f);
	free(s);
	return ret ? ret : q->jobs ? 0 : -ENODATA;
}

#endif
