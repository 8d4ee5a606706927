/* SPDX-License-Identifier: GPL-2.0 */
/* A memory cgroup for one test, which moves itself there. */
#ifndef SELFTESTS_AMDGPU_CGROUP_H
#define SELFTESTS_AMDGPU_CGROUP_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpus.h"

#define CGROUPS		"/sys/fs/cgroup/"
#define CGROUP		CGROUPS "sdma_test/"

/* The first number after @key, or in the file if that is NULL. */
static inline long cgroup_read(const char *path, const char *key)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[4096] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	const char *at = key ? strstr(text, key) : text;

	close(fd);
	return n < 0 || !at ? -ENOENT : atol(key ? at + strlen(key) : at);
}

static inline long cgroup_charged(void)
{
	return cgroup_read(CGROUP "memory.current", NULL);
}

/* -errno if there are no memory cgroups. */
static inline int cgroup_make(void)
{
	write_file(CGROUPS "cgroup.subtree_control", "+memory");
	/* what a test left that was killed */
	rmdir(CGROUP);
	if (mkdir(CGROUP, 0755))
		return -errno;
	return access(CGROUP "memory.peak", W_OK) ? -errno : 0;
}

static inline int cgroup_enter(void)
{
	return write_file(CGROUP "cgroup.procs", "0");
}

static inline void cgroup_leave(void)
{
	write_file(CGROUPS "cgroup.procs", "0");
	rmdir(CGROUP);
}

#endif
