/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's log: a test of the driver fails if the kernel complains.
 * KMSG_ALLOW= in the environment names a complaint to ignore, by a part of its
 * line: KMSG_ALLOW=amdgpu_device_skip_hw_access.
 */
#ifndef KMSG_H
#define KMSG_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "../../../kselftest.h"

/* The log from here on; -1 if it is not readable. */
static inline int kmsg_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/* How many warnings and worse have come since; each is printed. */
static inline int kmsg_complaints(int fd)
{
	static const char * const bad[] = {
		"WARNING: ", "BUG: ", "Oops: ", "INFO: task ",
	};
	const char *allow = getenv("KMSG_ALLOW");
	char line[8192];
	int count = 0;
	ssize_t n;

	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || errno == EPIPE) {
		if (n <= 0)
			continue;
		line[n] = 0;
		if (allow && *allow && strstr(line, allow))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
			if (!strstr(line, bad[i]))
				continue;
			printf("# %.*s\n", (int)strcspn(line, "\n"), line);
			count++;
			break;
		}
	}
	return count;
}

/* Whether a line that contains both texts has come since. */
static inline bool kmsg_has(int fd, const char *one, const char *other)
{
	char line[8192];
	bool found = false;
	ssize_t n;

	while ((n = read(fd, line, sizeof(line) - 1)) > 0 || errno == EPIPE) {
		if (n <= 0)
			continue;
		line[n] = 0;
		found |= strstr(line, one) && strstr(line, other);
	}
	return found;
}

/* The same within ten seconds: the kernel may log it after a fence signals. */
static inline bool kmsg_comes(int fd, const char *one, const char *other)
{
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (kmsg_has(fd, one, other))
			return true;
		usleep(10000);
	}
	return false;
}

#endif
