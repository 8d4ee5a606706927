/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A child that shares memory with the test, and checks later on whether that
 * memory still has its old content.
 */
#ifndef _SELFTEST_PEER_CHILD_H
#define _SELFTEST_PEER_CHILD_H

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct peer_child {
	pid_t pid;
	int go[2];
};

/* @want is copied with all other memory: the child sees no later writes. */
static int peer_child_fork(struct peer_child *child, const void *addr,
			   const void *want, size_t len)
{
	char c;

	if (pipe(child->go))
		return -errno;
	child->pid = fork();
	if (child->pid < 0)
		return -errno;
	if (child->pid)
		return 0;
	close(child->go[1]);
	if (read(child->go[0], &c, 1))
		_exit(2);
	_exit(!!memcmp(addr, want, len));
}

/* 0 if the child finds what it wants, 1 if not; otherwise it has not looked. */
static int peer_child_compare(struct peer_child *child)
{
	int status;

	close(child->go[1]);
	close(child->go[0]);
	if (waitpid(child->pid, &status, 0) != child->pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

#endif
