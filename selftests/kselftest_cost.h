/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cost of calls: medians of the CPU time of the process for each call, in
 * nanoseconds. In a guest whose clock counts instructions (QEMU's -icount
 * shift=0) the figures are instructions.
 *
 *	struct cost open_cost = { "open" };
 *	int round;
 *
 *	for (round = -COST_WARM; round < rounds; round++) {
 *		cost_start(&open_cost);
 *		...
 *		cost_stop(&open_cost, round, 1);
 *	}
 *	cost_print(&open_cost, rounds);
 */
#ifndef _KSELFTEST_COST_H
#define _KSELFTEST_COST_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* the number of rounds that do not count, and the most that do */
#define COST_WARM	3
#define COST_MOST	101

struct cost {
	const char *name;
	double start;
	double samples[COST_MOST];
};

static inline double cost_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static inline void cost_start(struct cost *cost)
{
	cost->start = cost_now();
}

/* @calls: how many calls were measured. */
static inline void cost_stop(struct cost *cost, int round, int calls)
{
	double spent = cost_now() - cost->start;

	cost->samples[round < 0 ? 0 : round] = spent / calls;
}

static inline int cost_by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static inline void cost_print(struct cost *cost, int rounds)
{
	double *samples = cost->samples;

	qsort(samples, rounds, sizeof(*samples), cost_by_size);
	printf("%s n=%d median=%.0f min=%.0f max=%.0f\n", cost->name, rounds,
	       samples[rounds / 2], samples[0], samples[rounds - 1]);
	fflush(stdout);
}

/* How many rounds the program's first argument asks for; exits if too many. */
static inline int cost_rounds(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 41;

	if (rounds >= 1 && rounds <= COST_MOST)
		return rounds;
	fprintf(stderr, "1 to %d rounds\n", COST_MOST);
	exit(1);
}

#endif
