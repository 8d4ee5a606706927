/* SPDX-License-Identifier: GPL-2.0 */
/* Events of the kernel, in an ftrace instance of the test's own. */
#ifndef _SELFTEST_TRACE_H
#define _SELFTEST_TRACE_H

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "gpus.h"

#define TRACE_INSTANCES	"/sys/kernel/tracing/instances"

static inline int trace_write(const char *dir, const char *file,
			      const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	return write_file(path, text);
}

/*
 * Creates the instance @dir and has it trace @events, as "amdgpu/amdgpu_cs".
 * Returns 0, or -errno if the kernel does not trace or does not permit it.
 */
static inline int trace_begin(const char *dir, const char * const *events,
			      unsigned int num)
{
	int ret = mkdir(dir, 0700) ? -errno : 0;
	char file[96];

	while (!ret && num--) {
		snprintf(file, sizeof(file), "events/%s/enable", *events++);
		ret = trace_write(dir, file, "1");
	}
	return ret;
}

/* The trace's lines, oldest first; NULL sets errno. */
static inline FILE *trace_open(const char *dir)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/trace", dir);
	return fopen(path, "r");
}

#endif
