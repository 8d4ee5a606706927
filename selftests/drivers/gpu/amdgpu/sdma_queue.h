/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What was before the kernel's own jobs on a ring that one file floods, by the
 * trace of the scheduler.
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

/* Jobs of the kernel, by what it calls its clients: amdgpu_job.h. */
enum queue_kind { UPDATES, MOVES };

struct queue {
	enum queue_kind kind;
	long jobs;	/* of this kind, on all rings */
	long before;	/* most jobs of the flood before one of them */
};

/* A job, as the trace tells of it. */
struct queue_job {
	char event[8];
	unsigned long long context, seqno, client;
	char ring[32];
	/* how much of the flood had ended when this job could have run */
	unsigned long long ended;
};

#define QUEUE_MOST	1024

struct queue_state {
	struct queue_job flood;		/* that the ring got last */
	unsigned long long ended;	/* of the flood */
	struct queue_job waiting[QUEUE_MOST];	/* the kernel's, queued */
	unsigned int num;
};

/* One trace at a time, at @dir. */
static inline int queue_begin(const char *dir)
{
	int ret;

	rmdir(dir);
	ret = trace_begin(dir, queue_events, 3);
	/* of all CPUs, in order */
	return ret ? ret : trace_write(dir, "trace_clock", "mono");
}

static inline bool queue_parse(const char *line, struct queue_job *job)
{
	const char *at = strstr(line, "drm_sched_job_");
	const char *client = strstr(line, "client_id:");

	memset(job, 0, sizeof(*job));
	return at && client &&
	       sscanf(at, "drm_sched_job_%7[a-z]: dev=%*[^,], fence=%llu:%llu, ring=%31[^,]",
		      job->event, &job->context, &job->seqno, job->ring) == 4 &&
	       sscanf(client, "client_id:%llu", &job->client) == 1;
}

static inline bool queue_parse_done(const char *line, struct queue_job *job)
{
	const char *at = strstr(line, "drm_sched_job_done: ");

	return at && sscanf(at, "drm_sched_job_done: fence=%llu:%llu",
			    &job->context, &job->seqno) == 2;
}

static inline bool queue_of_kind(enum queue_kind kind, unsigned long long client)
{
	const unsigned long long n = -client;

	if (kind == UPDATES)	/* VM_UPDATE to VM_PT_CLEAR */
		return n >= 1 && n <= 4;
	/* TTM_MAP_BUFFER, MOVE_BLIT: clears of new memory use all engines */
	return n == 5 || n == 9;
}

/* The ring takes a job of the kernel: what of the flood it had to take before? */
static inline void queue_run(struct queue *q, struct queue_state *s,
			     const struct queue_job *job)
{
	struct queue_job *w;
	long before;

	for (w = s->waiting; w < s->waiting + s->num; w++) {
		if (w->context != job->context)
			continue;
		if (w->seqno == job->seqno) {
			before = s->flood.seqno - w->ended;
			if (!strcmp(job->ring, s->flood.ring) &&
			    before > q->before)
				q->before = before;
			*w-- = s->waiting[--s->num];
			continue;
		}
		/* it was behind this one */
		w->ended = s->ended;
	}
}

static inline int queue_event(struct queue *q, struct queue_state *s,
			      struct queue_job *job)
{
	const bool run = !strcmp(job->event, "run");

	if (job->client < 1ULL << 63) {
		if (run)
			s->flood = *job;
		return 0;
	}
	if (!queue_of_kind(q->kind, job->client))
		return 0;
	if (run) {
		queue_run(q, s, job);
		return 0;
	}
	if (s->num == QUEUE_MOST)
		return -E2BIG;
	job->ended = s->ended;
	s->waiting[s->num++] = *job;
	q->jobs++;
	return 0;
}

/*
 * Fills in @q. -ENODATA if there was no such job, -EOVERFLOW if the trace has lost
 * some.
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
		else if (queue_parse_done(line, &job) &&
			 job.context == s->flood.context)
			s->ended = job.seqno;
	}
	if (f)
		fclose(f);
	free(s);
	return ret ? ret : q->jobs ? 0 : -ENODATA;
}

#endif
