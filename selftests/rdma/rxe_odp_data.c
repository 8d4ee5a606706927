// SPDX-License-Identifier: GPL-2.0
/*
 * What RC transfers leave in memory, byte by byte: memory regions that are
 * pinned or on demand at either end, at many offsets and lengths, and iovas
 * that differ from the address.
 *
 * Both ends lie in arenas filled with patterns. A test applies the same
 * transfer to copies of the arenas, then compares both completely: this finds
 * bytes that land in a wrong place as well as bytes that do not arrive.
 *
 * Makes its own soft RoCE device over lo; RDMA=name takes an existing one.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/stat.h>

#include "../kselftest_harness.h"
#include "rc_pair.h"

#define DEVICE		"rxe_odp_data"
#define ARENA_PAGES	12
#define MR_PAGES	(ARENA_PAGES - 4)

static const char *device;

/* How the address that the MR has for the device relates to the real one. */
enum iova_mode {
	IOVA_SAME,
	IOVA_NEXT,	/* one page on: still inside, but another place */
	IOVA_LOW,	/* below every address */
	IOVA_TOP,	/* ends just below 2^64 */
};

struct arena {
	uint8_t *mem;
	uint8_t *want;	/* what mem has to hold */
	size_t size;
	uint8_t *base;	/* the MR covers the middle only */
	size_t len;
	uint64_t iova;
	struct ibv_mr *mr;
};

static void *map_anon(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static uint64_t iova_of(struct arena *arena, enum iova_mode mode)
{
	uint64_t page = getpagesize();
	uint64_t in_page = (uintptr_t)arena->base & (page - 1);

	switch (mode) {
	case IOVA_NEXT:
		return (uintptr_t)arena->base + page;
	case IOVA_LOW:
		return in_page;
	case IOVA_TOP:
		return -(MR_PAGES * page) + in_page;
	default:
		return (uintptr_t)arena->base;
	}
}

static int arena_init(struct arena *arena, struct rcp_dev *dev,
		      enum rcp_mr_kind kind, enum iova_mode mode)
{
	size_t page = getpagesize();

	arena->size = ARENA_PAGES * page;
	arena->mem = map_anon(arena->size);
	arena->want = map_anon(arena->size);
	if (!arena->mem || !arena->want)
		return -ENOMEM;
	/* Neither end is at a page boundary. */
	arena->base = arena->mem + 2 * page + 24;
	arena->len = MR_PAGES * page - 48;
	arena->iova = iova_of(arena, mode);
	arena->mr = rcp_reg_iova(dev, arena->base, arena->len, arena->iova,
				 kind);
	return arena->mr ? 0 : -errno;
}

static void arena_fini(struct arena *arena)
{
	if (arena->mr)
		ibv_dereg_mr(arena->mr);
	munmap(arena->mem, arena->size);
	munmap(arena->want, arena->size);
}

/* Differs from page to page and from arena to arena. */
static void arena_fill(struct arena *arena, uint32_t seed)
{
	size_t i;

	for (i = 0; i < arena->size; i++) {
		seed = seed * 1103515245 + 12345;
		arena->mem[i] = seed >> 16;
	}
	memcpy(arena->want, arena->mem, arena->size);
}

static uint8_t *arena_want(struct arena *arena, size_t off)
{
	return arena->want + (arena->base - arena->mem) + off;
}

/* The number of wrong bytes, *first is the first one's offset from base. */
static size_t arena_wrong(struct arena *arena, long *first)
{
	size_t i, wrong = 0;

	for (i = 0; i < arena->size; i++) {
		if (arena->mem[i] == arena->want[i])
			continue;
		if (!wrong++)
			*first = (long)i - (arena->base - arena->mem);
	}
	return wrong;
}

struct shape {
	size_t loff;	/* from the base of the MR, at the local end */
	size_t roff;	/* at the remote end */
	size_t len;
};

FIXTURE(data)
{
	struct rcp_dev dev;
	struct rcp_pair pair;
	struct arena l;
	struct arena r;
	unsigned int wrong;
};

FIXTURE_VARIANT(data)
{
	enum rcp_mr_kind local;
	enum rcp_mr_kind remote;
	enum ibv_mtu mtu;
	enum iova_mode iova;
};

FIXTURE_VARIANT_ADD(data, pinned_pinned_1024) {
	RCP_PINNED, RCP_PINNED, IBV_MTU_1024, IOVA_SAME
};

FIXTURE_VARIANT_ADD(data, pinned_pinned_4096) {
	RCP_PINNED, RCP_PINNED, IBV_MTU_4096, IOVA_SAME
};

FIXTURE_VARIANT_ADD(data, pinned_odp_1024) {
	RCP_PINNED, RCP_ODP, IBV_MTU_1024, IOVA_SAME
};

FIXTURE_VARIANT_ADD(data, pinned_odp_4096) {
	RCP_PINNED, RCP_ODP, IBV_MTU_4096, IOVA_SAME
};

FIXTURE_VARIANT_ADD(data, odp_pinned_1024) {
	RCP_ODP, RCP_PINNED, IBV_MTU_1024, IOVA_SAME
};

FIXTURE_VARIANT_ADD(data, odp_pinned_4096) {
	RCP_ODP, RCP_PINNED, IBV_MTU_4096, IOVA_SAME
};

FIXTURE_VARIANT_ADD(data, odp_odp_1024) {
	RCP_ODP, RCP_ODP, IBV_MTU_1024, IOVA_SAME
};

FIXTURE_VARIANT_ADD(data, odp_odp_4096) {
	RCP_ODP, RCP_ODP, IBV_MTU_4096, IOVA_SAME
};

FIXTURE_VARIANT_ADD(data, pinned_iova_low) {
	RCP_PINNED, RCP_PINNED, IBV_MTU_1024, IOVA_LOW
};

FIXTURE_VARIANT_ADD(data, pinned_iova_top) {
	RCP_PINNED, RCP_PINNED, IBV_MTU_1024, IOVA_TOP
};

FIXTURE_VARIANT_ADD(data, odp_iova_next) {
	RCP_ODP, RCP_ODP, IBV_MTU_1024, IOVA_NEXT
};

FIXTURE_VARIANT_ADD(data, odp_iova_low) {
	RCP_ODP, RCP_ODP, IBV_MTU_1024, IOVA_LOW
};

FIXTURE_VARIANT_ADD(data, odp_iova_top) {
	RCP_ODP, RCP_ODP, IBV_MTU_4096, IOVA_TOP
};

FIXTURE_SETUP(data)
{
	ASSERT_EQ(0, rcp_open(&self->dev, device));
	if (!rcp_odp_caps(&self->dev) &&
	    (variant->local == RCP_ODP || variant->remote == RCP_ODP))
		SKIP(return, "%s has no on-demand paging", device);
	ASSERT_EQ(0, rcp_init(&self->pair, &self->dev, &self->dev));
	ASSERT_EQ(0, rcp_connect(&self->pair, variant->mtu));
	ASSERT_EQ(0, arena_init(&self->l, &self->dev, variant->local,
				variant->iova));
	ASSERT_EQ(0, arena_init(&self->r, &self->dev, variant->remote,
				variant->iova));
	arena_fill(&self->l, 1);
	arena_fill(&self->r, 2);
}

FIXTURE_TEARDOWN(data)
{
	rcp_fini(&self->pair);
	if (self->l.mem)
		arena_fini(&self->l);
	if (self->r.mem)
		arena_fini(&self->r);
	rcp_close(&self->dev);
}

static struct ibv_sge local_sge(FIXTURE_DATA(data) *self,
				const struct shape *s)
{
	return rcp_sge_at(self->l.mr, self->l.iova + s->loff, s->len);
}

static void refill(FIXTURE_DATA(data) *self, unsigned int round)
{
	arena_fill(&self->l, 2 * round + 1);
	arena_fill(&self->r, 2 * round + 2);
}

/* One line for each shape that went wrong; the test then expects none. */
static void check(struct __test_metadata *_metadata,
		  FIXTURE_DATA(data) *self,
		  const FIXTURE_VARIANT(data) *variant,
		  const struct shape *s, int status)
{
	long first_l = 0, first_r = 0;
	size_t l = arena_wrong(&self->l, &first_l);
	size_t r = arena_wrong(&self->r, &first_r);

	if (!status && !l && !r)
		return;
	self->wrong++;
	TH_LOG("+%zu to +%zu, %zu bytes: status %d, %zu and %zu wrong from %+ld and %+ld on",
	       s->loff, s->roff, s->len, status, l, r, first_l, first_r);
	if (status)
		ASSERT_EQ(0, rcp_connect(&self->pair, variant->mtu));
}

/* What one operation does to the copies, and how to run it. */
struct operation {
	void (*expect)(FIXTURE_DATA(data) *self, const struct shape *s);
	int (*run)(FIXTURE_DATA(data) *self, const struct shape *s);
};

static void run_shapes(struct __test_metadata *_metadata,
		       FIXTURE_DATA(data) *self,
		       const FIXTURE_VARIANT(data) *variant,
		       const struct operation *op)
{
	const size_t p = getpagesize();
	/* 24 bytes below a multiple of a page is a page boundary, see base */
	const struct shape shapes[] = {
		{ 0, 0, 1 },
		{ 0, 0, 64 },
		{ 1, 3, 1 },
		{ 100, 200, 64 },
		{ 200, 100, 64 },
		{ p - 24, p - 24, 64 },
		{ p - 24, p - 24, p },
		{ p - 24, 2 * p - 24, 3 * p },
		{ p - 25, 7, 1 },
		{ p - 30, 8, 16 },
		{ 8, p - 30, 16 },
		{ 3 * p - 31, 5 * p - 29, 200 },
		{ 0, 0, 1024 },
		{ 5, 1000, 1025 },
		{ 17, 333, p },
		{ 1, 2 * p - 24, p + 1 },
		{ 2 * p - 24, 1, p + 1 },
		{ 123, 456, 5000 },
		{ p - 25, p - 25, p + 2 },
		{ 333, 777, 20001 },
		{ 0, 0, MR_PAGES * p - 48 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		refill(self, i);
		op->expect(self, &shapes[i]);
		check(_metadata, self, variant, &shapes[i],
		      op->run(self, &shapes[i]));
	}
	EXPECT_EQ(0, self->wrong);
}

static void expect_at_remote(FIXTURE_DATA(data) *self, const struct shape *s)
{
	memcpy(arena_want(&self->r, s->roff), arena_want(&self->l, s->loff),
	       s->len);
}

static void expect_at_local(FIXTURE_DATA(data) *self, const struct shape *s)
{
	memcpy(arena_want(&self->l, s->loff), arena_want(&self->r, s->roff),
	       s->len);
}

static int run_write(FIXTURE_DATA(data) *self, const struct shape *s)
{
	struct ibv_sge sge = local_sge(self, s);

	return rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
			self->r.iova + s->roff, self->r.mr->rkey);
}

TEST_F_TIMEOUT(data, write, 120)
{
	static const struct operation op = { expect_at_remote, run_write };

	run_shapes(_metadata, self, variant, &op);
}

static int run_read(FIXTURE_DATA(data) *self, const struct shape *s)
{
	struct ibv_sge sge = local_sge(self, s);

	return rcp_rdma(&self->pair.a, IBV_WR_RDMA_READ, &sge,
			self->r.iova + s->roff, self->r.mr->rkey);
}

TEST_F_TIMEOUT(data, read, 120)
{
	static const struct operation op = { expect_at_local, run_read };

	run_shapes(_metadata, self, variant, &op);
}

static int run_send(FIXTURE_DATA(data) *self, const struct shape *s)
{
	struct ibv_sge src = local_sge(self, s);
	struct ibv_sge dst = rcp_sge_at(self->r.mr, self->r.iova + s->roff,
					s->len);
	struct ibv_wc wc = {};
	int status;

	status = rcp_send(&self->pair.a, &src, &self->pair.b, &dst, &wc);
	if (!status && wc.byte_len != s->len)
		return -EMSGSIZE;
	return status;
}

TEST_F_TIMEOUT(data, send, 120)
{
	static const struct operation op = { expect_at_remote, run_send };

	run_shapes(_metadata, self, variant, &op);
}

static int run_write_imm(FIXTURE_DATA(data) *self, const struct shape *s)
{
	struct ibv_sge sge = local_sge(self, s);
	uint32_t imm = 0x5a5a0000 + s->len, got = 0;
	int status;

	status = rcp_write_imm(&self->pair.a, &sge, &self->pair.b,
			       self->r.iova + s->roff, self->r.mr->rkey,
			       imm, &got);
	if (!status && got != imm)
		return -EBADMSG;
	return status;
}

TEST_F_TIMEOUT(data, write_imm, 120)
{
	static const struct operation op = { expect_at_remote, run_write_imm };

	run_shapes(_metadata, self, variant, &op);
}

/* Two entries at each end, gathered and scattered at odd places. */
static int run_two_sges(FIXTURE_DATA(data) *self, const struct shape *s)
{
	size_t half = s->len / 2;
	struct ibv_sge sge[] = {
		rcp_sge_at(self->l.mr, self->l.iova + s->loff, half),
		rcp_sge_at(self->l.mr, self->l.iova + s->loff + half,
			   s->len - half),
	};
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = 2,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma.remote_addr = self->r.iova + s->roff,
		.wr.rdma.rkey = self->r.mr->rkey,
	};
	int err = rcp_post(&self->pair.a, &wr);

	return err ? err : rcp_wait(&self->pair.a, NULL);
}

TEST_F_TIMEOUT(data, read_two_sges, 120)
{
	static const struct operation op = { expect_at_local, run_two_sges };

	run_shapes(_metadata, self, variant, &op);
}

/* Aligned at the remote end, as the architecture requires; odd at the local. */
static const struct {
	size_t page;
	struct shape shape;
} words[] = {
	{ 0, { 0, 0, 8 } },
	{ 0, { 3, 8, 8 } },
	{ 0, { 64, 512, 8 } },
	{ 1, { 0, -32, 8 } },		/* the last word of a page */
	{ 1, { -27, -24, 8 } },		/* crosses a page; first of a page */
	{ 3, { 100, 1000, 8 } },
};

static struct shape word(unsigned int i)
{
	size_t off = words[i].page * getpagesize();
	struct shape s = words[i].shape;

	s.loff += off;
	s.roff += off;
	return s;
}

static void set_u64(void *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

static uint64_t get_u64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

TEST_F_TIMEOUT(data, fetch_add, 120)
{
	const uint64_t add = 0x0102030405060708;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		struct shape s = word(i);
		struct ibv_sge sge = local_sge(self, &s);
		uint8_t *there = arena_want(&self->r, s.roff);
		int status;

		refill(self, i);
		set_u64(arena_want(&self->l, s.loff), get_u64(there));
		set_u64(there, get_u64(there) + add);
		status = rcp_atomic(&self->pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD,
				    &sge, self->r.iova + s.roff,
				    self->r.mr->rkey, add, 0);
		check(_metadata, self, variant, &s, status);
	}
	EXPECT_EQ(0, self->wrong);
}

TEST_F_TIMEOUT(data, cmp_swap, 120)
{
	const uint64_t swap = 0x1122334455667788;
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(words); i++) {
		struct shape s = word(i / 2);
		struct ibv_sge sge = local_sge(self, &s);
		uint8_t *there = arena_want(&self->r, s.roff);
		uint64_t old, compare;
		int status;

		refill(self, i);
		old = get_u64(there);
		compare = old ^ (i & 1);	/* every other one has to fail */
		set_u64(arena_want(&self->l, s.loff), old);
		if (compare == old)
			set_u64(there, swap);
		status = rcp_atomic(&self->pair.a, IBV_WR_ATOMIC_CMP_AND_SWP,
				    &sge, self->r.iova + s.roff,
				    self->r.mr->rkey, compare, swap);
		check(_metadata, self, variant, &s, status);
	}
	EXPECT_EQ(0, self->wrong);
}

TEST_F_TIMEOUT(data, atomic_write, 120)
{
	const uint64_t value = 0x8877665544332211;
	unsigned int i;

	if (!self->pair.a.qpx)
		SKIP(return, "%s has no ATOMIC_WRITE", device);
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		struct shape s = word(i);

		refill(self, i);
		set_u64(arena_want(&self->r, s.roff), value);
		check(_metadata, self, variant, &s,
		      rcp_atomic_write(&self->pair.a, self->r.iova + s.roff,
				       self->r.mr->rkey, value));
	}
	EXPECT_EQ(0, self->wrong);
}

/* A range that leaves the MR by one byte is refused and changes nothing. */
TEST_F_TIMEOUT(data, out_of_bounds, 120)
{
	const struct {
		uint64_t iova;
		struct shape shape;
	} outside[] = {
		{ self->r.iova - 1, { 0, -1, 1 } },
		{ self->r.iova - 1, { 0, -1, 64 } },
		{ self->r.iova + self->r.len, { 0, self->r.len, 1 } },
		{ self->r.iova + self->r.len - 63,
		  { 0, self->r.len - 63, 64 } },
		{ self->r.iova + 1, { 0, 1, self->r.len } },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(outside); i++) {
		const struct shape *s = &outside[i].shape;
		struct ibv_sge sge = local_sge(self, s);
		int status;

		status = rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
				  outside[i].iova, self->r.mr->rkey);
		EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, status);
		ASSERT_EQ(0, rcp_connect(&self->pair, variant->mtu));
		check(_metadata, self, variant, s, 0);
	}
	EXPECT_EQ(0, self->wrong);
}

int main(int argc, char **argv)
{
	device = rcp_device_get(DEVICE);
	if (!device)
		ksft_exit_skip("no RDMA device: %s\n", strerror(errno));
	return test_harness_run(argc, argv);
}
