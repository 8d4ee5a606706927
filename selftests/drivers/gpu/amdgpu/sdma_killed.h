/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes that are killed at a random moment.
 */
#ifndef _SELFTEST_SDMA_KILLED_H
#define _SELFTEST_SDMA_KILLED_H

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sdma_desc.h"

/*
 * A child calls @fn, which does not return, and is killed meanwhile. Returns 0
 * if that ended it; -ECHILD if it had given up before.
 */
static inline int kill_sometime(void (*fn)(unsigned int arg), unsigned int arg,
				unsigned int *seed)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return -errno;
	if (!child)
		fn(arg);
	usleep(50000 + next_random(seed) % 100000);
	if (kill(child, SIGKILL) || waitpid(child, &status, 0) != child)
		return -errno;
	return WIFSIGNALED(status) ? 0 : -ECHILD;
}

#endif
