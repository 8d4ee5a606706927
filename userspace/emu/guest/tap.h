/* SPDX-License-Identifier: MIT */
/* The least of TAP: a test is a function that returns 0, or SKIP. */
#ifndef TAP_H
#define TAP_H

#include <stdio.h>

#define SKIP 4

struct test {
	const char *name;
	int (*run)(void);
};

/* Leave the test with a line that says where and why. */
#define CHECK(cond, fmt, ...)						\
	do {								\
		if (!(cond)) {						\
			printf("# %s:%d: %s: " fmt "\n", __FILE__,	\
			       __LINE__, #cond, ##__VA_ARGS__);		\
			return 1;					\
		}							\
	} while (0)

#endif
