/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fail one allocation of a thread: Documentation/fault-injection.
 */
#ifndef _KSELFTEST_FAIL_NTH_H
#define _KSELFTEST_FAIL_NTH_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Allocations that may sleep fail, too, and no failure prints a stack. */
static const struct {
	const char *file;
	const char *value;
} nth_knobs[] = {
	{ "/sys/kernel/debug/failslab/ignore-gfp-wait", "N" },
	{ "/sys/kernel/debug/failslab/verbose", "0" },
	{ "/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N" },
	{ "/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem", "N" },
	{ "/sys/kernel/debug/fail_page_alloc/min-order", "0" },
	{ "/sys/kernel/debug/fail_page_alloc/verbose", "0" },
};

static inline bool nth_write(const char *file, const char *value)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return done;
}

static inline bool nth_available(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nth_knobs); i++)
		if (!nth_write(nth_knobs[i].file, nth_knobs[i].value))
			return false;
	return true;
}

static inline int nth_open(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%ld/fail-nth",
		 syscall(SYS_gettid));
	return open(path, O_RDWR | O_CLOEXEC);
}

static inline void nth_arm(int fd, unsigned int nth)
{
	char buf[16];
	int len = snprintf(buf, sizeof(buf), "%u", nth);

	if (pwrite(fd, buf, len, 0) != len)
		ksft_exit_fail_msg("fail-nth cannot be written\n");
}

/*
 * True if the failure was injected. Reading the answer may itself be the
 * allocation that fails: then the operation did not have that failure.
 */
static inline bool nth_disarm(int fd)
{
	char buf[16] = "";
	ssize_t len = pread(fd, buf, sizeof(buf) - 1, 0);
	int tries;

	for (tries = 0; tries < 3; tries++)
		if (pwrite(fd, "0", 1, 0) == 1)
			break;
	return len > 0 && atoi(buf) == 0;
}

#endif /* _KSELFTEST_FAIL_NTH_H */
