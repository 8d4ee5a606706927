// SPDX-License-Identifier: GPL-2.0
/*
 * rocr-test [TEST ...]: a ROCr program on the (emulated) GPUs, as TAP. It links
 * to the library as a distribution built it, and knows nothing of the emulator.
 * ENGINES= tells how many engines each GPU must have.
 */
#include "rocr.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct test *const groups[] = { copy_tests, batch_tests,
					     library_tests };

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static char **names; /* of the tests to run; none: all */

static bool wanted(const struct test *t)
{
	for (char **name = names; *name; name++)
		if (!strcmp(*name, t->name))
			return true;
	return !*names;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Returns 1 if it failed. */
static int run(const struct test *t, int number)
{
	double start = now();
	int ret = t->run();
	bool failed = ret && ret != SKIP;

	printf("%s %d %s # %s%.1f s\n", failed ? "not ok" : "ok", number,
	       t->name, ret == SKIP ? "SKIP " : "", now() - start);
	return failed;
}

/* The number of tests; with @failed, runs them and counts those that fail. */
static int each_test(int *failed)
{
	int number = 0;

	for (size_t g = 0; g < GROUPS; g++)
		for (const struct test *t = groups[g]; t->name; t++) {
			if (!wanted(t))
				continue;
			number++;
			if (failed)
				*failed += run(t, number);
		}
	return number;
}

/* Shutting down the library is a test, too: it destroys its queues. */
int main(int argc, char **argv)
{
	int tests, status, failed = 0;

	(void)argc;
	names = argv + 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	tests = each_test(NULL) + 1;
	printf("TAP version 13\n1..%d\n", tests);
	status = rocr_start();
	if (status || !rocr.gpus) {
		printf("Bail out! hsa_init: status %#x, %u GPUs\n", status,
		       rocr.gpus);
		return 1;
	}
	each_test(&failed);
	status = hsa_shut_down();
	failed += !!status;
	printf("%s %d shut_down\n", status ? "not ok" : "ok", tests);
	return failed ? 1 : 0;
}
