/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which GPUs the tests use, what the compute driver calls them, and how to have
 * the driver bind, reset or evict them.
 *
 * GPU= in the environment names them, in this order, by their PCI addresses:
 * GPU=0000:03:00.0,0000:83:00.0. Default: all GPUs.
 */
#ifndef SELFTESTS_AMDGPU_GPUS_H
#define SELFTESTS_AMDGPU_GPUS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_GPUS	8

/* Does XGMI link a GPU to others? Then they reach each other's memory by it. */
static inline bool gpu_linked(const char *pci)
{
	char path[96];

	snprintf(path, sizeof(path),
		 "/sys/bus/pci/drivers/amdgpu/%s/xgmi_hive_info", pci);
	return !access(path, F_OK);
}

static inline int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Those of the GPUs found that GPU= names, in its order. */
static inline int choose_gpus(char names[MAX_GPUS][32], int found)
{
	const char *want = getenv("GPU");
	char all[MAX_GPUS][32], *list, *word, *state;
	int count = 0;

	if (!want)
		return found;
	memcpy(all, names, sizeof(all));
	list = strdup(want);
	for (word = strtok_r(list, ",", &state); word;
	     word = strtok_r(NULL, ",", &state))
		for (int i = 0; i < found && count < MAX_GPUS; i++)
			if (!strcmp(word, all[i]))
				memcpy(names[count++], all[i], 32);
	free(list);
	return count;
}

/* The PCI functions that the driver is bound to, in their order or GPU='s. */
static inline int find_gpus(char names[MAX_GPUS][32])
{
	DIR *dir = opendir("/sys/bus/pci/drivers/amdgpu");
	struct dirent *entry;
	int count = 0;

	while (dir && count < MAX_GPUS && (entry = readdir(dir)))
		if (strlen(entry->d_name) == 12 && entry->d_name[4] == ':')
			memcpy(names[count++], entry->d_name, 13);
	if (dir)
		closedir(dir);
	qsort(names, count, sizeof(names[0]), by_name);
	return choose_gpus(names, count);
}

/* Returns a file descriptor. */
static inline int open_render_node(const char *gpu)
{
	char path[300];
	struct dirent *entry;
	int fd = -ENOENT;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/drm", gpu);
	dir = opendir(path);
	while (dir && fd == -ENOENT && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "renderD", 7))
			continue;
		snprintf(path, sizeof(path), "/dev/dri/%s", entry->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	if (dir)
		closedir(dir);
	return fd;
}

/* A number that sysfs has for a node of the compute driver. */
static inline long kfd_property(int node, const char *file, const char *key)
{
	char path[128], name[64];
	long value = -ENOENT, v;
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/class/kfd/kfd/topology/nodes/%d/%s", node, file);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	if (!key && fscanf(f, "%ld", &v) == 1)
		value = v;
	while (key && fscanf(f, "%63s %ld", name, &v) == 2)
		if (!strcmp(name, key))
			value = v;
	fclose(f);
	return value;
}

/* The node of this PCI function; -1 if KFD has none. */
static inline int kfd_node_of(const char *gpu)
{
	unsigned int domain, bus, slot, function;
	long location;

	if (sscanf(gpu, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4)
		return -1;
	location = bus << 8 | slot << 3 | function;
	for (int n = 0; kfd_property(n, "gpu_id", NULL) >= 0; n++)
		if (kfd_property(n, "gpu_id", NULL) &&
		    kfd_property(n, "properties", "domain") == domain &&
		    kfd_property(n, "properties", "location_id") == location)
			return n;
	return -1;
}

static inline int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Bind the driver to a GPU, and unbind it. */
static inline int bind_gpu(const char *gpu)
{
	return write_file("/sys/bus/pci/drivers/amdgpu/bind", gpu);
}

static inline int unbind_gpu(const char *gpu)
{
	return write_file("/sys/bus/pci/drivers/amdgpu/unbind", gpu);
}

/* Read a file of the driver's debugfs, which makes the driver do something. */
static inline int gpu_debugfs(const char *gpu, const char *file)
{
	char path[128], text[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/debug/dri/%s/%s", gpu, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n < 0 ? -errno : 0;
}

/* Reset a whole GPU, and wait for it. The kernel's log tells how it ended. */
static inline int reset_gpu(const char *gpu)
{
	return gpu_debugfs(gpu, "amdgpu_gpu_recover");
}

/* Evict everything from video memory. */
static inline int evict_vram(const char *gpu)
{
	return gpu_debugfs(gpu, "amdgpu_evict_vram");
}

#endif
