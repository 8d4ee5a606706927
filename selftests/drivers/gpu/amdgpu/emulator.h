/* SPDX-License-Identifier: GPL-2.0 */
/* How tests disturb and watch emulated GPUs. */
#ifndef SELFTESTS_AMDGPU_EMULATOR_H
#define SELFTESTS_AMDGPU_EMULATOR_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * An emulated GPU's control socket is a virtio port of this name: a test that
 * has to break the device is skipped if there is none. emulator_open() returns
 * a file descriptor.
 */
#define EMULATOR_PORT "sluice.emu"

static inline int emulator_open(void)
{
	char path[300], name[64];
	struct dirent *entry;
	int fd = -ENODEV;
	DIR *dir = opendir("/sys/class/virtio-ports");
	FILE *f;

	while (dir && fd < 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name",
			 entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) &&
		    !strcmp(name, EMULATOR_PORT "\n")) {
			snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
			fd = open(path, O_RDWR | O_CLOEXEC);
		}
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return fd;
}

/*
 * Send one command, to the first GPU unless it begins with the name of another.
 * The answer ends with "ok" or contains "error: ".
 */
static inline int emulator_ask(int fd, const char *command, char *text,
			       size_t size)
{
	size_t used = 0;
	ssize_t n;

	if (write(fd, command, strlen(command)) < 0 || write(fd, "\n", 1) < 0)
		return -errno;
	while (used < size - 1) {
		n = read(fd, text + used, size - 1 - used);
		if (n <= 0)
			return -EIO;
		used += n;
		text[used] = 0;
		if (strstr(text, "error: "))
			return -EINVAL;
		if (used >= 3 && !strcmp(text + used - 3, "ok\n"))
			return 0;
	}
	return -E2BIG;
}

static inline int emulator(int fd, const char *command)
{
	char text[8192];

	return emulator_ask(fd, command, text, sizeof(text));
}

/* One command to all GPUs: the emulator does not know the driver's order. */
static inline int emulator_all(int fd, const char *command)
{
	char to_one[96];
	int i, ret = 0;

	for (i = 0; !ret; i++) {
		snprintf(to_one, sizeof(to_one), "gpu%d %s", i, command);
		ret = emulator(fd, to_one);
	}
	return i > 1 ? 0 : ret;
}

/*
 * Engines of all GPUs, by their instance: "hang", or "resume" before the driver
 * considers them dead.
 */
static inline int emulator_engines(int fd, unsigned int mask, const char *what)
{
	char command[32];
	unsigned int i;
	int ret = 0;

	for (i = 0; i < 32 && !ret; i++) {
		if (!(mask & 1u << i))
			continue;
		snprintf(command, sizeof(command), "engine %u %s", i, what);
		ret = emulator_all(fd, command);
	}
	return ret;
}

/*
 * The sum of this counter over all GPUs: the driver may have them in another
 * order than the emulator.
 */
static inline long emulator_count(int fd, const char *name)
{
	char text[8192], command[32], key[64], *at;
	long sum = -ENOENT;

	snprintf(key, sizeof(key), "\"%s\":", name);
	for (int i = 0; ; i++) {
		snprintf(command, sizeof(command), "gpu%d stats", i);
		if (emulator_ask(fd, command, text, sizeof(text)))
			break;
		at = strstr(text, key);
		if (at)
			sum = (sum < 0 ? 0 : sum) + atol(at + strlen(key));
	}
	return sum;
}

#endif
