// SPDX-License-Identifier: GPL-2.0
/*
 * Data that a device writes to on-demand memory has to survive reclaim.
 *
 * A page that came back from swap for a read is mapped writable but clean,
 * and its copy in swap stays valid. If the device then writes to the page
 * through the kernel's mapping, no page table entry gets dirty: only the RDMA
 * core can say that the page differs from what swap holds. If it does not,
 * reclaim drops the page and the old data comes back.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "../kselftest_harness.h"
#include "loop_swap.h"
#include "rc_pair.h"

#define DEVICE		"rxe_odp_swap"
#define PAGES		16
#define KPF_DIRTY	0x10
#define KPF_SWAPCACHE	0x2000

static const char *device;

FIXTURE(swap)
{
	struct rcp_dev dev;
	struct rcp_pair pair;
	size_t page;
	uint8_t *mem;
	struct ibv_mr *mr;
	uint8_t *src;
	struct ibv_mr *src_mr;
	struct loop_swap swap;
};

FIXTURE_SETUP(swap)
{
	stay_on_this_cpu();
	self->page = getpagesize();
	self->mem = MAP_FAILED;
	self->src = MAP_FAILED;
	if (loop_swap_open(&self->swap))
		SKIP(return, "no swap: it takes root, and the loop module");
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
	loop_swap_close(&self->swap);
}

static bool page_out(FIXTURE_DATA(swap) *self)
{
	return swap_out(self->mem, PAGES * self->page);
}

static uint8_t first_byte(FIXTURE_DATA(swap) *self, unsigned int page)
{
	return *(volatile uint8_t *)(self->mem + page * self->page);
}

static bool is_clean(FIXTURE_DATA(swap) *self, unsigned int page)
{
	uint64_t entry = page_entry(self->mem + page * self->page);
	uint64_t flags;

	if (!(entry & PM_PRESENT))
		return false;
	flags = read_u64("/proc/kpageflags", entry & PM_PFN);
	return (flags & KPF_SWAPCACHE) && !(flags & KPF_DIRTY);
}

static unsigned int count_clean(FIXTURE_DATA(swap) *self)
{
	unsigned int i, clean = 0;

	for (i = 0; i < PAGES; i++)
		clean += is_clean(self, i);
	return clean;
}

/* Read all back, and check that pages are clean, as the test requires. */
static void page_in_clean(struct __test_metadata *_metadata,
			  FIXTURE_DATA(swap) *self)
{
	unsigned int i, clean;

	for (i = 0; i < PAGES; i++) {
		ASSERT_EQ(0xaa, first_byte(self, i));
		ASSERT_TRUE(page_entry(self->mem + i * self->page) &
			    PM_PRESENT);
	}
	clean = count_clean(self);
	TH_LOG("%u of %u pages are clean and have a copy in swap", clean,
	       PAGES);
	if (!clean)
		SKIP(return, "this kernel keeps no copy in swap");
}

/* The same without a device: reclaim drops the pages, nothing is lost. */
TEST_F_TIMEOUT(swap, only_read, 120)
{
	memset(self->mem, 0xaa, PAGES * self->page);
	ASSERT_TRUE(page_out(self));
	page_in_clean(_metadata, self);
	ASSERT_TRUE(page_out(self));
	page_in_clean(_metadata, self);
}

TEST_F_TIMEOUT(swap, written_by_device, 120)
{
	unsigned int i, lost = 0;

	memset(self->mem, 0xaa, PAGES * self->page);
	memset(self->src, 0xbb, self->page);
	ASSERT_TRUE(page_out(self));
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
	ASSERT_TRUE(page_out(self));
	for (i = 0; i < PAGES; i++)
		if (first_byte(self, i) != 0xbb)
			lost++;
	EXPECT_EQ(0, lost);
}

/* What the device may only read stays clean, though the process may write. */
TEST_F_TIMEOUT(swap, read_by_device, 120)
{
	struct ibv_sge sge = rcp_sge(self->src_mr, self->src, 64);
	unsigned int i, clean;

	memset(self->mem, 0xaa, PAGES * self->page);
	ASSERT_TRUE(page_out(self));
	page_in_clean(_metadata, self);
	clean = count_clean(self);

	self->mr = rcp_reg_access(&self->dev, self->mem, PAGES * self->page,
				  (uintptr_t)self->mem,
				  IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_ON_DEMAND);
	ASSERT_NE(NULL, self->mr);
	for (i = 0; i < PAGES; i++) {
		memset(self->src, 0, 64);
		ASSERT_EQ(0, rcp_rdma(&self->pair.a, IBV_WR_RDMA_READ, &sge,
				      (uintptr_t)self->mem + i * self->page,
				      self->mr->rkey));
		EXPECT_EQ(0xaa, self->src[63]);
	}
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	EXPECT_EQ(clean, count_clean(self));
}

int main(int argc, char **argv)
{
	device = rcp_device_get(DEVICE);
	if (!device)
		ksft_exit_skip("no RDMA device: %s\n", strerror(errno));
	return test_harness_run(argc, argv);
}
