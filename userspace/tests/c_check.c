/* SPDX-License-Identifier: MIT */
#include "c_check.h"

int bad;
const char *skipped;

int run_tests(const struct test *tests, size_t count, const char *only,
	      int (*before)(void), void (*after)(void))
{
	size_t failed = 0, ran = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n1..%zu\n", only ? (size_t)1 : count);
	for (size_t i = 0; i < count; i++) {
		if (only && strcmp(only, tests[i].name))
			continue;
		skipped = NULL;
		bad = before();
		if (bad)
			printf("# %s\n", sluice_last_error()->message);
		else
			tests[i].run();
		after();
		printf("%s %zu %s%s%s\n", bad ? "not ok" : "ok", ++ran, tests[i].name,
		       skipped ? " # SKIP " : "", skipped ? skipped : "");
		failed += bad != 0;
	}
	return failed || !ran;
}
