/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A small swap device for tests: a loop device over a memfd. zram is of no use
 * if a test wants clean pages that have a copy in swap: it gives up the copy as
 * soon as the page is read.
 */
#ifndef SELFTESTS_LOOP_SWAP_H
#define SELFTESTS_LOOP_SWAP_H

#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <unistd.h>

#define SWAP_PAGES	1024
#define PM_PRESENT	0x8000000000000000ull
#define PM_SWAP		0x4000000000000000ull
#define PM_PFN		0x007fffffffffffffull

struct loop_swap {
	int loop;	/* -1: there is none */
	char path[32];
};

static inline uint64_t read_u64(const char *path, uint64_t index)
{
	uint64_t value = 0;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return 0;
	if (pread(fd, &value, sizeof(value), index * sizeof(value)) !=
	    sizeof(value))
		value = 0;
	close(fd);
	return value;
}

static inline uint64_t page_entry(const void *p)
{
	return read_u64("/proc/self/pagemap",
			(uintptr_t)p / getpagesize());
}

/* The version 1 header, as mkswap has it. */
static inline int write_swap_header(int fd)
{
	const uint32_t info[] = { 1, SWAP_PAGES - 1, 0 };
	const size_t page = getpagesize();

	if (ftruncate(fd, SWAP_PAGES * page) ||
	    pwrite(fd, info, sizeof(info), 1024) != sizeof(info) ||
	    pwrite(fd, "SWAPSPACE2", 10, page - 10) != 10)
		return -errno;
	return 0;
}

/* A loop device over @backing that is removed when its last user closes it. */
static inline int open_loop(int backing, char *path, size_t size)
{
	struct loop_config config = {
		.fd = backing,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR,
	};
	int ctl, nr, fd;

	ctl = open("/dev/loop-control", O_RDWR);
	if (ctl < 0)
		return -errno;
	nr = ioctl(ctl, LOOP_CTL_GET_FREE);
	close(ctl);
	if (nr < 0)
		return -ENODEV;
	snprintf(path, size, "/dev/loop%d", nr);
	fd = open(path, O_RDWR);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, LOOP_CONFIGURE, &config)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* Root only. 0, or a negative errno. */
static inline int loop_swap_open(struct loop_swap *s)
{
	int ret, memfd = memfd_create("swap", 0);

	s->loop = -1;
	if (memfd < 0)
		return -errno;
	ret = write_swap_header(memfd);
	if (!ret)
		ret = open_loop(memfd, s->path, sizeof(s->path));
	close(memfd);
	if (ret < 0)
		return ret;
	s->loop = ret;
	if (!swapon(s->path, SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK))
		return 0;
	ret = -errno;
	close(s->loop);
	s->loop = -1;
	return ret;
}

static inline void loop_swap_close(struct loop_swap *s)
{
	if (s->loop < 0)
		return;
	swapoff(s->path);
	close(s->loop);
}

/*
 * Pages that were read in wait in a batch of a CPU to be added to the LRU, and
 * MADV_PAGEOUT empties only the batch of the CPU that it runs on.
 */
static inline void stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static inline size_t count_swapped(const void *at, size_t size)
{
	const size_t page = getpagesize();
	size_t i, n = 0;

	for (i = 0; i < size; i += page)
		n += !!(page_entry((const char *)at + i) & PM_SWAP);
	return n;
}

/*
 * True if all pages went to swap. A temporary reference keeps a page in memory:
 * then this tries again.
 */
static inline bool swap_out(void *at, size_t size)
{
	const size_t pages = size / getpagesize();
	unsigned int try;

	for (try = 0; try < 100 && count_swapped(at, size) != pages; try++) {
		if (madvise(at, size, MADV_PAGEOUT))
			return false;
		usleep(10000);
	}
	return count_swapped(at, size) == pages;
}

#endif
