// SPDX-License-Identifier: GPL-2.0
/*
 * Runs KUnit suites as a program: exits with 1 at the first test that fails, and
 * after too much processor time with a signal.
 */
#include "host.h"

#include <sys/mman.h>
#include <sys/time.h>

int allocations_left = -1;
int host_mutant;

static struct kunit_suite *suites;

/* What is allocated; the test's own is freed when it ends. */
static struct allocation {
	void *p;
	void *map;
	size_t size;
	bool test;
} allocated[256];
static unsigned int num_allocated;

void host_register(struct kunit_suite *suite)
{
	struct kunit_suite **last = &suites;

	while (*last)
		last = &(*last)->next;
	*last = suite;
}

void *host_alloc(size_t n)
{
	const size_t page = 4096, size = ALIGN(n + !n, page) + page;
	struct allocation *a = &allocated[num_allocated];

	if (!allocations_left)
		return NULL;
	if (allocations_left > 0)
		allocations_left--;
	if (num_allocated == ARRAY_SIZE(allocated))
		abort();
	a->map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->map == MAP_FAILED ||
	    mprotect(a->map + size - page, page, PROT_NONE))
		abort();
	a->size = size;
	a->test = false;
	a->p = a->map + ALIGN_DOWN(size - page - n, 8);
	num_allocated++;
	return a->p;
}

void host_free(const void *p)
{
	unsigned int i = num_allocated;

	if (!p)
		return;
	while (i && allocated[i - 1].p != p)
		i--;
	if (!i)
		abort();
	munmap(allocated[i - 1].map, allocated[i - 1].size);
	allocated[i - 1] = allocated[--num_allocated];
}

void *host_test_alloc(size_t n)
{
	void *p = host_alloc(n);

	if (!p)
		abort();
	allocated[num_allocated - 1].test = true;
	return p;
}

/* Frees what is the test's, or all of a test that failed. False if more is left. */
static bool free_all(bool all)
{
	unsigned int i = num_allocated;

	while (i--)
		if (all || allocated[i].test)
			host_free(allocated[i].p);
	return !num_allocated;
}

void host_fail(struct kunit *test, const char *file, int line, const char *what,
	       bool stop)
{
	printf("%s:%d: %s\n", strrchr(file, '/') ? strrchr(file, '/') + 1 : file,
	       line, what);
	test->failed = true;
	if (stop)
		longjmp(test->abort, 1);
}

static bool run(const struct kunit_suite *suite, const struct kunit_case *c,
		const void *param, const char *desc)
{
	struct kunit test = { .param_value = param };

	if (!setjmp(test.abort))
		c->run(&test);
	if (!free_all(test.failed)) {
		printf("memory is lost\n");
		test.failed = true;
		free_all(true);
	}
	if (test.failed)
		printf("not ok %s.%s %s\n", suite->name, c->name, desc);
	else if (getenv("VERBOSE"))
		printf("ok %s.%s %s\n", suite->name, c->name, desc);
	return !test.failed;
}

static bool run_case(const struct kunit_suite *suite, const struct kunit_case *c)
{
	char desc[KUNIT_PARAM_DESC_SIZE] = "";
	const void *param = NULL;

	if (!c->next)
		return run(suite, c, NULL, desc);
	while ((param = c->next(NULL, param, desc)))
		if (!run(suite, c, param, desc) && !getenv("ALL"))
			return false;
	return true;
}

int main(int argc, char **argv)
{
	const struct itimerval limit = { .it_value.tv_sec = argc > 1 ? atoi(argv[1]) : 60 };
	const struct kunit_suite *suite;
	const struct kunit_case *c;
	bool ok = suites;	/* no test is no success */

	if (getenv("MUTANT"))
		host_mutant = atoi(getenv("MUTANT"));
	setitimer(ITIMER_VIRTUAL, &limit, NULL);
	for (suite = suites; suite; suite = suite->next)
		for (c = suite->test_cases; c->run; c++) {
			ok &= run_case(suite, c);
			if (!ok && !getenv("ALL"))
				return 1;
		}
	return !ok;
}
