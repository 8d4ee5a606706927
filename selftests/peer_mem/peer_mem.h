/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tests of the peer memory drivers share.
 *
 * PEER_BAR_DIR	names a directory with the files bar0, bar1, ... that are the
 *		memory of the devices (QEMU's memory-backend-file,share=on), as
 *		seen from here. If it is set, every look at a device's memory
 *		looks at the file, too, and the two must agree.
 */
#ifndef _SELFTEST_PEER_MEM_H
#define _SELFTEST_PEER_MEM_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../../drivers/misc/peer_test/peer_test_uapi.h"

#define PAGE	4096UL
#define HUGE	(2UL << 20)
#define PAGES_PER_HUGE (HUGE / PAGE)

/* Open /dev/peer_<kind><index>; loads the module if need be. -1 with errno. */
static inline int peer_open(const char *kind, int index)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/peer_%s%d", kind, index);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	snprintf(path, sizeof(path), "modprobe -q peer_%s_test", kind);
	if (system(path))
		return -1;
	snprintf(path, sizeof(path), "/dev/peer_%s%d", kind, index);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* The ioctls: 0, or a negative errno. */

static inline int peer_ioctl(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) ? -errno : 0;
}

static inline struct peer_mem_info peer_info(int fd)
{
	struct peer_mem_info info;

	if (peer_ioctl(fd, PEER_MEM_INFO, &info))
		memset(&info, 0xff, sizeof(info));
	return info;
}

/* Pages moved, or a negative errno. */
static inline long peer_migrate(int fd, unsigned long cmd, void *addr,
				size_t len, unsigned int flags)
{
	struct peer_mem_migrate arg = {
		.addr = (uintptr_t)addr,
		.len = len,
		.flags = flags,
	};
	int err = peer_ioctl(fd, cmd, &arg);

	return err ?: (long)arg.moved;
}

static inline long peer_to_dev(int fd, void *addr, size_t len)
{
	return peer_migrate(fd, PEER_MEM_TO_DEV, addr, len, 0);
}

static inline long peer_to_dev_small(int fd, void *addr, size_t len)
{
	return peer_migrate(fd, PEER_MEM_TO_DEV, addr, len,
			    PEER_MEM_MIGRATE_SMALL);
}

static inline long peer_to_sys(int fd, void *addr, size_t len)
{
	return peer_migrate(fd, PEER_MEM_TO_SYS, addr, len, 0);
}

static inline long peer_evict(int fd)
{
	struct peer_mem_evict arg = {};
	int err = peer_ioctl(fd, PEER_MEM_EVICT, &arg);

	return err ?: (long)arg.moved;
}

static inline long peer_revoke(int fd)
{
	struct peer_mem_evict arg = {};
	int err = peer_ioctl(fd, PEER_MEM_REVOKE, &arg);

	return err ?: (long)arg.moved;
}

/* No peer begins to use a page, but all pages stay where they are. */
static inline int peer_revoke_only(int fd)
{
	struct peer_mem_evict arg = { .flags = PEER_MEM_REVOKE_ONLY };

	return peer_ioctl(fd, PEER_MEM_REVOKE, &arg);
}

/* Peers let go of all pages, which stay where they are. */
static inline int peer_end(int fd)
{
	struct peer_mem_evict arg = { .flags = PEER_MEM_REVOKE_END };

	return peer_ioctl(fd, PEER_MEM_REVOKE, &arg);
}

static inline int peer_publish(int fd, uint64_t visible, unsigned int flags)
{
	struct peer_mem_publish arg = { .visible = visible, .flags = flags };

	return peer_ioctl(fd, PEER_MEM_PUBLISH, &arg);
}

static inline int peer_inject(int fd, unsigned int kind, unsigned int count)
{
	struct peer_mem_inject arg = { .kind = kind, .count = count };

	return peer_ioctl(fd, PEER_MEM_INJECT, &arg);
}

static inline int peer_rw(int fd, unsigned long cmd, uint64_t offset,
			  void *buf, size_t len)
{
	struct peer_mem_rw arg = {
		.offset = offset,
		.len = len,
		.buf = (uintptr_t)buf,
	};

	return peer_ioctl(fd, cmd, &arg);
}

static inline int peer_poke(int fd, uint64_t offset, void *buf, size_t len)
{
	return peer_rw(fd, PEER_MEM_POKE, offset, buf, len);
}

static inline int peer_lookup(int fd, void *addr, size_t len,
			      uint64_t *offsets)
{
	struct peer_mem_lookup arg = {
		.addr = (uintptr_t)addr,
		.len = len,
		.offsets = (uintptr_t)offsets,
	};

	return peer_ioctl(fd, PEER_MEM_LOOKUP, &arg);
}

/* Where one page is: see PEER_MEM_LOOKUP. */
static inline uint64_t peer_where(int fd, void *addr)
{
	uint64_t offset;

	if (peer_lookup(fd, addr, PAGE, &offset))
		return PEER_MEM_NOWHERE;
	return offset;
}

/* How many pages of a range are in the device; -1: don't know. */
static inline long peer_resident(int fd, void *addr, size_t len)
{
	size_t i, nr = len / PAGE;
	uint64_t *offsets = calloc(nr, sizeof(*offsets));
	long found = 0;

	if (peer_lookup(fd, addr, len, offsets))
		found = -1;
	for (i = 0; found >= 0 && i < nr; i++)
		found += offsets[i] != PEER_MEM_NOWHERE;
	free(offsets);
	return found;
}

/* What the host's file holds. True if there is no file to check. */
static inline bool peer_file_is(int index, uint64_t offset, const void *want,
				size_t len)
{
	const char *dir = getenv("PEER_BAR_DIR");
	char path[256];
	bool same;
	void *buf;
	int fd;

	if (!dir || index < 0)
		return true;
	snprintf(path, sizeof(path), "%s/bar%d", dir, index);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	buf = malloc(len);
	same = fd >= 0 && pread(fd, buf, len, offset) == (ssize_t)len &&
	       !memcmp(buf, want, len);
	free(buf);
	close(fd);
	return same;
}

/*
 * True if the page at @addr is in the device @fd, number @index, and its
 * memory holds @want there, according to the driver and to the host's file.
 */
static inline bool peer_page_is(int fd, int index, void *addr,
				const void *want)
{
	uint64_t offset = peer_where(fd, addr);
	char buf[PAGE];

	if (offset == PEER_MEM_NOWHERE)
		return false;
	offset &= PEER_MEM_OFFSET_MASK;
	if (peer_rw(fd, PEER_MEM_PEEK, offset, buf, PAGE) ||
	    memcmp(buf, want, PAGE))
		return false;
	return peer_file_is(index, offset, want, PAGE);
}

/* User memory */

/* No page of it equals another one or a shifted one. */
static inline void peer_fill(void *addr, size_t len, uint64_t seed)
{
	uint64_t *word = addr;
	size_t i;

	for (i = 0; i < len / sizeof(*word); i++)
		word[i] = (seed << 40 | i) * 0x9e3779b97f4a7c15ULL;
}

static inline void *peer_map(size_t len)
{
	void *addr = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return addr == MAP_FAILED ? NULL : addr;
}

/*
 * A 2 MiB aligned range of @len that wants huge pages. *@whole, with the length
 * @len + HUGE, is to be passed to munmap().
 */
static inline void *peer_map_huge(size_t len, void **whole)
{
	uintptr_t addr;

	*whole = peer_map(len + HUGE);
	if (!*whole)
		return NULL;
	addr = ((uintptr_t)*whole + HUGE - 1) & ~(HUGE - 1);
	madvise((void *)addr, len, MADV_HUGEPAGE);
	return (void *)addr;
}

/* Read an aligned word from memory, and fault for it if need be. */
static inline uint64_t peer_read(const void *addr)
{
	return __atomic_load_n((const uint64_t *)addr, __ATOMIC_RELAXED);
}

/* Bind or unbind a device of the driver peer_<kind>. @name: its PCI name. */
static inline int peer_bind(const char *kind, const char *name, bool bind)
{
	char path[128];
	ssize_t done;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/peer_%s/%s", kind,
		 bind ? "bind" : "unbind");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	done = write(fd, name, strlen(name));
	if (done < 0)
		done = -errno;
	close(fd);
	return done < 0 ? done : 0;
}

/* The PCI name of /dev/peer_<kind><index>. */
static inline int peer_name(const char *kind, int index, char *name,
			    size_t size)
{
	char path[128], target[256], *last;
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/class/misc/peer_%s%d/device", kind,
		 index);
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return -errno;
	target[len] = 0;
	last = strrchr(target, '/');
	len = snprintf(name, size, "%s", last ? last + 1 : target);
	return len < (ssize_t)size ? 0 : -ENAMETOOLONG;
}

#endif /* _SELFTEST_PEER_MEM_H */
