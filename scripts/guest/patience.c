// SPDX-License-Identifier: GPL-2.0
/*
 * Preloaded by guest/ktap where a kernel is slow: each test of the kselftest harness
 * gets PATIENCE times the seconds that it asks for, which are 30 at least. The harness
 * waits for a test's end by poll(). Shorter calls are the tests' own.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int poll(struct pollfd *fds, nfds_t n, int ms)
{
	const char *patience = getenv("PATIENCE");

	if (patience && ms >= 30000)
		ms *= atoi(patience);
	return (int)syscall(SYS_poll, fds, n, ms);
}
