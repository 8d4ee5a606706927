// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand memory regions apart from their data: registration, prefetch
 * advice, access rights, and their purpose: a user who may not pin memory can
 * transfer.
 *
 * Makes its own soft RoCE device over lo; RDMA=name takes an existing one.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "../kselftest_harness.h"
#include "rc_pair.h"

#define DEVICE		"rxe_odp_mr"
#define PAGES		8
#define GIB		0x40000000ull

static const char *device;

FIXTURE(mr)
{
	struct rcp_dev dev;
	struct rcp_pair pair;
	size_t page;
	uint8_t *mem;		/* PAGES pages, not touched yet */
	uint64_t iova;
	struct ibv_mr *mr;	/* the tests register it */
};

/* See IOVA_* in rxe_odp_data.c */
FIXTURE_VARIANT(mr)
{
	bool absolute;		/* iova is an address, not a distance */
	int64_t iova_page;
};

FIXTURE_VARIANT_ADD(mr, iova_same) {
	.iova_page = 0,
};

FIXTURE_VARIANT_ADD(mr, iova_next) {
	.iova_page = 1,
};

FIXTURE_VARIANT_ADD(mr, iova_low) {
	.absolute = true,
	.iova_page = 1,
};

FIXTURE_VARIANT_ADD(mr, iova_top) {
	.absolute = true,
	.iova_page = -PAGES - 1,
};

static uint8_t *map_pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

FIXTURE_SETUP(mr)
{
	self->page = getpagesize();
	self->mem = map_pages(PAGES * self->page);
	ASSERT_NE(NULL, self->mem);
	self->iova = variant->iova_page * self->page;
	if (!variant->absolute)
		self->iova += (uintptr_t)self->mem;
	ASSERT_EQ(0, rcp_open(&self->dev, device));
	if (!rcp_odp_caps(&self->dev))
		SKIP(return, "%s has no on-demand paging", device);
	ASSERT_EQ(0, rcp_init(&self->pair, &self->dev, &self->dev));
	ASSERT_EQ(0, rcp_connect(&self->pair, IBV_MTU_1024));
}

FIXTURE_TEARDOWN(mr)
{
	rcp_fini(&self->pair);
	if (self->mr)
		ibv_dereg_mr(self->mr);
	rcp_close(&self->dev);
	munmap(self->mem, PAGES * self->page);
}

/* All pages except the first and last 16 bytes. */
static int reg_most(FIXTURE_DATA(mr) *self, int access)
{
	self->iova += 16;
	self->mr = rcp_reg_access(&self->dev, self->mem + 16,
				  PAGES * self->page - 32, self->iova,
				  access);
	return self->mr ? 0 : -errno;
}

static int prefetch(FIXTURE_DATA(mr) *self, enum ib_uverbs_advise_mr_advice how,
		    uint32_t flags, uint64_t iova, uint32_t len)
{
	return rcp_advise(&self->dev, self->mr, how, flags, iova, len);
}

static int prefetch_now(FIXTURE_DATA(mr) *self,
			enum ib_uverbs_advise_mr_advice how, uint64_t iova,
			uint32_t len)
{
	return prefetch(self, how, IBV_ADVISE_MR_FLAG_FLUSH, iova, len);
}

/* A bit for each page of the memory that is present. */
static unsigned int present(FIXTURE_DATA(mr) *self)
{
	unsigned char vec[PAGES] = {};
	unsigned int i, map = 0;

	mincore(self->mem, PAGES * self->page, vec);
	for (i = 0; i < PAGES; i++)
		map |= (vec[i] & 1) << i;
	return map;
}

TEST_F(mr, prefetch)
{
	ASSERT_EQ(0, reg_most(self, RCP_ACCESS | IBV_ACCESS_ON_DEMAND));
	EXPECT_EQ(0, present(self));
	EXPECT_EQ(0, prefetch_now(self, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				  self->iova + 2 * self->page,
				  self->page));
	EXPECT_EQ(0x0c, present(self));
	EXPECT_EQ(0, prefetch_now(self, IBV_ADVISE_MR_ADVICE_PREFETCH,
				  self->iova + 5 * self->page, 1));
	EXPECT_EQ(0x2c, present(self));
	EXPECT_EQ(0, prefetch_now(self,
				  IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
				  self->iova, PAGES * self->page - 32));
	EXPECT_EQ(0x2c, present(self));
}

TEST_F(mr, prefetch_later)
{
	uint64_t deadline = rcp_now_ms() + RCP_TIMEOUT_MS;

	ASSERT_EQ(0, reg_most(self, RCP_ACCESS | IBV_ACCESS_ON_DEMAND));
	EXPECT_EQ(0, prefetch(self, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0,
			      self->iova + 4 * self->page, 1));
	while (!present(self) && rcp_now_ms() < deadline)
		usleep(1000);
	EXPECT_EQ(0x10, present(self));
}

TEST_F(mr, prefetch_out_of_bounds)
{
	const uint32_t len = PAGES * self->page - 32;
	unsigned int i;
	int err;

	ASSERT_EQ(0, reg_most(self, RCP_ACCESS | IBV_ACCESS_ON_DEMAND));
	const struct {
		uint64_t iova;
		uint32_t len;
	} outside[] = {
		{ self->iova - 1, 1 },
		{ self->iova - 1, len },
		{ self->iova + len, 1 },
		{ self->iova, len + 1 },
		{ self->iova + 100, -1u },
		{ self->iova + 100 * self->page, 1 },
		{ self->iova - 100 * self->page, self->page },
		{ -8ull, 64 },
	};

	for (i = 0; i < ARRAY_SIZE(outside); i++) {
		err = prefetch_now(self, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				   outside[i].iova, outside[i].len);
		EXPECT_EQ(-EFAULT, err) {
			TH_LOG("%u bytes from %#llx, but the MR is at %#llx",
			       outside[i].len,
			       (unsigned long long)outside[i].iova,
			       (unsigned long long)self->iova);
		}
	}
	EXPECT_EQ(0, present(self));
}

/* In a pinned MR there is nothing to fault, and no table to note it in. */
TEST_F(mr, prefetch_pinned)
{
	ASSERT_EQ(0, reg_most(self, RCP_ACCESS));
	EXPECT_EQ(-EINVAL,
		  prefetch_now(self, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			       self->iova, self->page));
	EXPECT_EQ(-EINVAL, prefetch(self, IBV_ADVISE_MR_ADVICE_PREFETCH, 0,
				    self->iova, self->page));
}

TEST_F(mr, prefetch_read_only)
{
	ASSERT_EQ(0, reg_most(self, IBV_ACCESS_REMOTE_READ |
				    IBV_ACCESS_ON_DEMAND));
	EXPECT_EQ(-EPERM,
		  prefetch_now(self, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			       self->iova, self->page));
	EXPECT_EQ(-EPERM, prefetch(self, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				   0, self->iova, self->page));
	EXPECT_EQ(0, present(self));
	EXPECT_EQ(0, prefetch_now(self, IBV_ADVISE_MR_ADVICE_PREFETCH,
				  self->iova, self->page));
	EXPECT_EQ(0x3, present(self));
}

TEST_F(mr, flush)
{
	int access = RCP_ACCESS | IBV_ACCESS_ON_DEMAND |
		     IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;

	if (!self->pair.a.qpx)
		SKIP(return, "%s has no FLUSH", device);
	ASSERT_EQ(0, reg_most(self, access));
	EXPECT_EQ(0, rcp_flush(&self->pair.a, self->iova + self->page,
			       self->mr->rkey, 2 * self->page,
			       IBV_FLUSH_PERSISTENT));
	EXPECT_EQ(0xe, present(self));
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
		  rcp_flush(&self->pair.a, self->iova + self->page,
			    self->mr->rkey, PAGES * self->page,
			    IBV_FLUSH_PERSISTENT));
}

/* The pages may be mapped read-only although the MR is not. */
TEST_F(mr, read_only_pages)
{
	uint8_t *local = map_pages(self->page);
	struct ibv_mr *lmr = rcp_reg(&self->dev, local, self->page,
				     RCP_PINNED);
	struct ibv_sge sge;

	ASSERT_NE(NULL, lmr);
	ASSERT_EQ(0, reg_most(self, RCP_ACCESS | IBV_ACCESS_ON_DEMAND));
	sge = rcp_sge(lmr, local, 64);
	memset(self->mem, 0x77, PAGES * self->page);
	ASSERT_EQ(0, mprotect(self->mem, PAGES * self->page, PROT_READ));

	EXPECT_EQ(0, rcp_rdma(&self->pair.a, IBV_WR_RDMA_READ, &sge,
			      self->iova, self->mr->rkey));
	EXPECT_EQ(0x77, local[0]);
	EXPECT_EQ(0x77, local[63]);
	memset(local, 0x11, self->page);
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR,
		  rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
			   self->iova, self->mr->rkey));
	EXPECT_EQ(0x77, self->mem[16]);
	ibv_dereg_mr(lmr);
	munmap(local, self->page);
}

/* Lengths that do not fit an int. */
TEST_F_TIMEOUT(mr, huge, 120)
{
	const size_t size = 3 * GIB;
	uint8_t *mem = map_pages(size);
	const size_t far = size - 2 * self->page - 100;
	struct ibv_sge sge;

	if (!mem)
		SKIP(return, "no 3 GiB of address space");
	if (self->iova + size < self->iova)
		self->iova -= size;
	self->mr = rcp_reg_iova(&self->dev, mem, size, self->iova, RCP_ODP);
	ASSERT_NE(NULL, self->mr) {
		TH_LOG("errno %d", errno);
		munmap(mem, size);
	}
	EXPECT_EQ(0, prefetch_now(self,
				  IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
				  self->iova + 8, 0x9ffffff0));
	EXPECT_EQ(0, prefetch_now(self, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				  self->iova + 2 * GIB + 8, 8));

	memset(mem, 0x42, 2 * self->page);
	sge = rcp_sge_at(self->mr, self->iova + 10, self->page);
	EXPECT_EQ(0, rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
			      self->iova + far, self->mr->rkey));
	EXPECT_EQ(0, mem[far - 1]);
	EXPECT_EQ(0x42, mem[far]);
	EXPECT_EQ(0x42, mem[far + self->page - 1]);
	EXPECT_EQ(0, mem[far + self->page]);
	munmap(mem, size);
}

static bool is_present(uint8_t *at, size_t page)
{
	unsigned char vec = 0;

	return !mincore(at, page, &vec) && (vec & 1);
}

/* Flushing all of it brings in all of it; huge pages save time. */
static void flush_all(struct __test_metadata *_metadata,
		      FIXTURE_DATA(mr) *self, size_t size)
{
	int access = RCP_ACCESS | IBV_ACCESS_ON_DEMAND |
		     IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
	uint8_t *mem;

	if (!self->pair.a.qpx)
		SKIP(return, "%s has no FLUSH", device);
	mem = map_pages(size);
	if (!mem)
		SKIP(return, "no address space");
	madvise(mem, size, MADV_HUGEPAGE);
	if (self->iova + size < self->iova)
		self->iova -= size;
	self->mr = rcp_reg_access(&self->dev, mem, size, self->iova, access);
	ASSERT_NE(NULL, self->mr);
	EXPECT_EQ(0, rcp_flush_level(&self->pair.a, self->iova, self->mr->rkey,
				     0, IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR));
	EXPECT_TRUE(is_present(mem, self->page));
	EXPECT_TRUE(is_present(mem + 2 * GIB - self->page, self->page));
	EXPECT_TRUE(is_present(mem + size - self->page, self->page));
	munmap(mem, size);
}

/* A length that is negative as an int */
TEST_F_TIMEOUT(mr, flush_huge, 120)
{
	flush_all(_metadata, self, 2 * GIB + self->page);
}

/* One that is short as an int */
TEST_F_TIMEOUT(mr, flush_4g, 120)
{
	flush_all(_metadata, self, 4 * GIB + 2 * self->page);
}

/*
 * An ordinary user whose RLIMIT_MEMLOCK is zero: pinning is refused, but on
 * demand the same memory works.
 */
static int become_ordinary(void)
{
	const struct rlimit none = {};

	if (setrlimit(RLIMIT_MEMLOCK, &none) ||
	    setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return -errno;
	return 0;
}

TEST(ordinary_user)
{
	const size_t size = 4 * getpagesize();
	struct ibv_mr *src, *dst;
	struct rcp_pair pair;
	struct rcp_dev dev;
	struct ibv_sge sge;
	uint8_t *mem;

	if (geteuid())
		SKIP(return, "needs root to become another user");
	ASSERT_EQ(0, become_ordinary());
	if (rcp_open(&dev, device))
		SKIP(return, "%s is not open to users", device);
	mem = map_pages(2 * size);
	ASSERT_NE(NULL, mem);

	EXPECT_EQ(NULL, rcp_reg(&dev, mem, size, RCP_PINNED));
	EXPECT_EQ(EPERM, errno);	/* ENOMEM is for a limit above zero */

	if (!rcp_odp_caps(&dev))
		SKIP(return, "%s has no on-demand paging", device);
	src = rcp_reg(&dev, mem, size, RCP_ODP);
	dst = rcp_reg(&dev, mem + size, size, RCP_ODP);
	ASSERT_NE(NULL, src);
	ASSERT_NE(NULL, dst);
	ASSERT_EQ(0, rcp_init(&pair, &dev, &dev));
	ASSERT_EQ(0, rcp_connect(&pair, IBV_MTU_1024));
	memset(mem, 0x3c, size);
	sge = rcp_sge(src, mem, size);
	EXPECT_EQ(0, rcp_rdma(&pair.a, IBV_WR_RDMA_WRITE, &sge,
			      (uintptr_t)mem + size, dst->rkey));
	EXPECT_EQ(0, memcmp(mem, mem + size, size));
	rcp_fini(&pair);
	ibv_dereg_mr(src);
	ibv_dereg_mr(dst);
	rcp_close(&dev);
}

int main(int argc, char **argv)
{
	device = rcp_device_get(DEVICE);
	if (!device)
		ksft_exit_skip("no RDMA device: %s\n", strerror(errno));
	return test_harness_run(argc, argv);
}
