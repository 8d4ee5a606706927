// SPDX-License-Identifier: GPL-2.0
/*
 * What a device writes to on-demand memory has to survive reclaim.
 *
 * A page that came back from swap for a read is mapped writable but clean,
 * and its copy in swap stays valid. If the device then writes to the page
 * through the kernel's mapping, no page table entry gets dirty: only the RDMA
 * core can say that the page differs from what swap holds. If it does not,
 * reclaim drops the page and the old data comes back.
 *
 * The swap device is a loop device over a memfd. zram would not do: it gives
 * up the copy in swap as soon as the page is read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/swap.h>

#include "../kselftest_harness.h"
#include "rc_pair.h"

#define DEVICE		"rxe_odp_swap"
#define PAGES		16
#define SWAP_PAGES	1024
#define PM_PRESENT	0x8000000000000000ull
#define PM_SWAP		0x4000000000000000ull
#define PM_PFN		0x007fffffffffffffull
#define KPF_DIRTY	0x10
#define KPF_SWAPCACHE	0x2000

static const char *device;

static uint64_t read_u64(const char *path, uint64_t index)
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

static uint64_t page_entry(const void *p)
{
	return read_u64("/proc/self/pagemap",
			(uintptr_t)p / getpagesize());
}

/* The version 1 header, as mkswap has it. */
static int write_swap_header(int fd)
{
	const uint32_t info[] = { 1, SWAP_PAGES - 1, 0 };
	const size_t page = getpagesize();

	if (ftruncate(fd, SWAP_PAGES * page) ||
	    pwrite(fd, info, sizeof(info), 1024) != sizeof(info) ||
	    pwrite(fd, "SWAPSPACE2", 10, page - 10) != 10)
		return -errno;
	return 0;
}

/* A loop device over @backing that goes when the last user has closed it. */
static int open_loop(int backing, char *path, size_t size)
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

FIXTURE(swap)
{
	struct rcp_dev dev;
	struct rcp_pair pair;
	size_t page;
	uint8_t *mem;
	struct ibv_mr *mr;
	uint8_t *src;
	struct ibv_mr *src_mr;
	int loop;
	char path[32];
};

/*
 * Pages that were read in wait in a batch of the CPU for their place on the
 * LRU, and MADV_PAGEOUT empties only the one of the CPU that it runs on.
 */
static void stay_on_this_cpu(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
}

FIXTURE_SETUP(swap)
{
	int memfd;

	stay_on_this_cpu();
	self->page = getpagesize();
	self->mem = MAP_FAILED;
	self->src = MAP_FAILED;
	self->loop = -1;
	if (geteuid())
		SKIP(return, "needs root for a swap device");
	memfd = memfd_create("swap", 0);
	ASSERT_LE(0, memfd);
	ASSERT_EQ(0, write_swap_header(memfd));
	self->loop = open_loop(memfd, self->path, sizeof(self->path));
	close(memfd);
	if (self->loop < 0)
		SKIP(return, "no loop device (modprobe loop?)");
	if (swapon(self->path, SWAP_FLAG_PREFER | SWAP_FLAG_PRIO_MASK)) {
		close(self->loop);
		self->loop = -1;
		SKIP(return, "no swap");
	}
	ASSERT_EQ(0, rcp_open(&self->dev, device));
	if (!rcp_odp_caps(&self->dev))
		SKIP(return, "%s has no on-demand paging", device);
	ASSERT_EQ(0, rcp_init(&self->pair, &self->dev, &self->dev));
	ASSERT_EQ(0, rcp_connect(&self->pair, IBV_MTU_1024));
	self->mem = mmap(NULL, PAGES * self->page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	self->src = mmap(NULL, self->page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->mem);
	ASSERT_NE(MAP_FAILED, self->src);
	madvise(self->mem, PAGES * self->page, MADV_NOHUGEPAGE);
	self->src_mr = rcp_reg(&self->dev, self->src, self->page, RCP_PINNED);
	ASSERT_NE(NULL, self->src_mr);
}

FIXTURE_TEARDOWN(swap)
{
	rcp_fini(&self->pair);
	if (self->mr)
		ibv_dereg_mr(self->mr);
	if (self->src_mr)
		ibv_dereg_mr(self->src_mr);
	rcp_close(&self->dev);
	if (self->mem != MAP_FAILED)
		munmap(self->mem, PAGES * self->page);
	if (self->src != MAP_FAILED)
		munmap(self->src, self->page);
	if (self->loop >= 0) {
		swapoff(self->path);
		close(self->loop);
	}
}

static unsigned int count_swapped(FIXTURE_DATA(swap) *self)
{
	unsigned int i, n = 0;

	for (i = 0; i < PAGES; i++)
		if (page_entry(self->mem + i * self->page) & PM_SWAP)
			n++;
	return n;
}

/* A reference that somebody has for the moment keeps a page: ask again. */
static void page_out(struct __test_metadata *_metadata,
		     FIXTURE_DATA(swap) *self)
{
	unsigned int try;

	for (try = 0; try < 100 && count_swapped(self) != PAGES; try++) {
		ASSERT_EQ(0, madvise(self->mem, PAGES * self->page,
				     MADV_PAGEOUT));
		usleep(10000);
	}
	ASSERT_EQ(PAGES, count_swapped(self));
}

static uint8_t first_byte(FIXTURE_DATA(swap) *self, unsigned int page)
{
	return *(volatile uint8_t *)(self->mem + page * self->page);
}

/* Read all back, and see that what the test is about has come about. */
static void page_in_clean(struct __test_metadata *_metadata,
			  FIXTURE_DATA(swap) *self)
{
	unsigned int i, clean = 0;

	for (i = 0; i < PAGES; i++) {
		uint64_t entry, flags;

		ASSERT_EQ(0xaa, first_byte(self, i));
		entry = page_entry(self->mem + i * self->page);
		ASSERT_TRUE(entry & PM_PRESENT);
		flags = read_u64("/proc/kpageflags", entry & PM_PFN);
		if ((flags & KPF_SWAPCACHE) && !(flags & KPF_DIRTY))
			clean++;
	}
	TH_LOG("%u of %u pages are clean and have a copy in swap", clean,
	       PAGES);
	if (!clean)
		SKIP(return, "this kernel keeps no copy in swap");
}

/* The same without a device: reclaim drops the pages, nothing is lost. */
TEST_F_TIMEOUT(swap, only_read, 120)
{
	memset(self->mem, 0xaa, PAGES * self->page);
	page_out(_metadata, self);
	page_in_clean(_metadata, self);
	page_out(_metadata, self);
	page_in_clean(_metadata, self);
}

TEST_F_TIMEOUT(swap, written_by_device, 120)
{
	unsigned int i, lost = 0;

	memset(self->mem, 0xaa, PAGES * self->page);
	memset(self->src, 0xbb, self->page);
	page_out(_metadata, self);
	page_in_clean(_metadata, self);

	self->mr = rcp_reg(&self->dev, self->mem, PAGES * self->page,
			   RCP_ODP);
	ASSERT_NE(NULL, self->mr);
	for (i = 0; i < PAGES; i++) {
		struct ibv_sge sge = rcp_sge(self->src_mr, self->src, 64);

		ASSERT_EQ(0, rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
				      (uintptr_t)self->mem + i * self->page,
				      self->mr->rkey));
	}
	page_out(_metadata, self);
	for (i = 0; i < PAGES; i++)
		if (first_byte(self, i) != 0xbb)
			lost++;
	EXPECT_EQ(0, lost);
}

int main(int argc, char **argv)
{
	device = rcp_device_get(DEVICE);
	if (!device)
		ksft_exit_skip("no RDMA device: %s\n", strerror(errno));
	return test_harness_run(argc, argv);
}
