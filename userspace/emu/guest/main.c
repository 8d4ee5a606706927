// SPDX-License-Identifier: MIT
// gpu-test [GROUP|GROUP.TEST...]: the driver on the (emulated) GPU, as TAP.
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	const struct test *tests;
} groups[] = {
	{ "drm", drm_tests },
	{ "faults", fault_tests },
	{ "kfd", kfd_tests },
	{ "multi", multi_tests },
};

#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static int number, failed;

static bool wanted(const char *group, const char *test, int argc, char **argv)
{
	char full[128];

	snprintf(full, sizeof(full), "%s.%s", group, test);
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], group) || !strcmp(argv[i], full))
			return true;
	return argc < 2;
}

static int count(int argc, char **argv)
{
	int n = 0;

	for (size_t g = 0; g < GROUPS; g++)
		for (const struct test *t = groups[g].tests; t->name; t++)
			n += wanted(groups[g].name, t->name, argc, argv);
	return n;
}

static void run(const char *group, const struct test *t)
{
	double start = now();
	int ret = t->run();

	failed += ret && ret != SKIP;
	printf("%s %d %s.%s%s # %.2f s\n", ret && ret != SKIP ? "not ok" : "ok",
	       ++number, group, t->name, ret == SKIP ? " # SKIP" : "",
	       now() - start);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..%d\n", count(argc, argv));
	for (size_t g = 0; g < GROUPS; g++)
		for (const struct test *t = groups[g].tests; t->name; t++)
			if (wanted(groups[g].name, t->name, argc, argv))
				run(groups[g].name, t);
	return failed ? 1 : 0;
}
