/* SPDX-License-Identifier: MIT */
/* What tests of the C API share: checks, and KTAP on standard output. */
#ifndef C_CHECK_H
#define C_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice.h"

extern int bad;		    /* checks of this test that failed */
extern const char *skipped; /* why this test cannot run here */

/* If it fails, report it and leave the test. */
#define CHECK(what) \
	do { \
		if (!(what)) { \
			printf("# %s:%d: %s; last error: %s\n", __FILE__, __LINE__, \
			       #what, sluice_last_error()->message); \
			bad++; \
			return; \
		} \
	} while (0)

/* The call fails with @number, and its error has @text in it. */
#define FAILS(call, number, text) \
	do { \
		int got_ = (call); \
		const struct sluice_error *e_ = sluice_last_error(); \
		if (got_ != -(number) || e_->returned != got_ || !e_->code || \
		    !*e_->remedy || !strstr(e_->message, text)) { \
			printf("# %s:%d: %s gives %d, not %d: %s (%s)\n", __FILE__, \
			       __LINE__, #call, got_, -(number), e_->message, text); \
			bad++; \
			return; \
		} \
	} while (0)

/* First in a test of what a kernel without the series does not have. */
#define WANTS_SERIES() \
	do { \
		const char *kernel_ = getenv("KERNEL"); \
		if (kernel_ && !strcmp(kernel_, "stock")) { \
			skipped = "the base's kernel has no batches and no alias"; \
			return; \
		} \
	} while (0)

struct test {
	const char *name;
	void (*run)(void);
};

/*
 * Run all tests, or the one that is named. Each has its own @before, which returns 0 on
 * success, and @after.
 * The exit status is 1 if one failed.
 */
int run_tests(const struct test *tests, size_t count, const char *only,
	      int (*before)(void), void (*after)(void));

#endif
