// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA to and from process memory that is in a peer memory device: on-demand
 * memory regions use it in place, by the device's alias, or have it migrated
 * to system memory where that is not possible. Each test compares what the
 * device holds, and counts what the device had to do for it.
 *
 * Needs one ivshmem-plain device, a second one for some tests. Makes its own
 * soft RoCE device over lo; RDMA=name takes an existing one. See peer_mem.h
 * for PEER_BAR_DIR.
 */
#include <pthread.h>

#include "../kselftest_harness.h"
#include "../rdma/rc_pair.h"
#include "peer_child.h"
#include "peer_mem.h"

#define DEVICE	"rxe_peer_mem"
#define NR	16
#define LEN	(NR * PAGE)

static const char *device;

FIXTURE(rdma) {
	struct rcp_dev dev;
	struct rcp_pair pair;
	int fd;
	char *buf;		/* the memory in the peer device */
	char *want;		/* what it should hold */
	char *host;		/* ordinary memory, pinned */
	char *host_want;
	struct ibv_mr *mr;
	struct ibv_mr *host_mr;
	struct peer_mem_info before;
};

FIXTURE_VARIANT(rdma) {
	enum ibv_mtu mtu;
};

FIXTURE_VARIANT_ADD(rdma, mtu_1024) { IBV_MTU_1024 };
FIXTURE_VARIANT_ADD(rdma, mtu_4096) { IBV_MTU_4096 };

FIXTURE_SETUP(rdma) {
	self->fd = peer_open("mem", 0);
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
	ASSERT_EQ(0, rcp_open(&self->dev, device));
	if (!rcp_odp_caps(&self->dev))
		SKIP(return, "%s has no on-demand paging", device);
	ASSERT_EQ(0, rcp_init(&self->pair, &self->dev, &self->dev));
	ASSERT_EQ(0, rcp_connect(&self->pair, variant->mtu));
	self->buf = peer_map(LEN);
	self->want = peer_map(LEN);
	self->host = peer_map(LEN);
	self->host_want = peer_map(LEN);
	ASSERT_NE(NULL, self->buf);
	ASSERT_NE(NULL, self->want);
	ASSERT_NE(NULL, self->host);
	ASSERT_NE(NULL, self->host_want);
	self->mr = rcp_reg(&self->dev, self->buf, LEN, RCP_ODP);
	self->host_mr = rcp_reg(&self->dev, self->host, LEN, RCP_PINNED);
	ASSERT_NE(NULL, self->mr);
	ASSERT_NE(NULL, self->host_mr);
	/* what an earlier test left */
	ASSERT_LE(0, peer_evict(self->fd));
	ASSERT_EQ(0, peer_publish(self->fd, peer_info(self->fd).size, 0));
}

FIXTURE_TEARDOWN(rdma) {
	if (self->fd < 0)
		return;
	rcp_fini(&self->pair);
	if (self->mr)
		ibv_dereg_mr(self->mr);
	if (self->host_mr)
		ibv_dereg_mr(self->host_mr);
	rcp_close(&self->dev);
	if (self->buf)
		munmap(self->buf, LEN);
	/* no reference is left that would keep a page from going away */
	EXPECT_EQ(0, peer_info(self->fd).pages);
	close(self->fd);
}

/* Data for both sides; the memory region's data is in the device. */
static void all_in(struct __test_metadata *_metadata, FIXTURE_DATA(rdma) *self)
{
	peer_fill(self->want, LEN, 1);
	peer_fill(self->host_want, LEN, 2);
	memcpy(self->host, self->host_want, LEN);
	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(NR, peer_to_dev(self->fd, self->buf, LEN));
	ASSERT_EQ(NR, peer_resident(self->fd, self->buf, LEN));
	self->before = peer_info(self->fd);
}

/* The device and the ordinary memory hold what they should. */
static void check_data(struct __test_metadata *_metadata,
		       FIXTURE_DATA(rdma) *self)
{
	size_t i;

	EXPECT_EQ(0, memcmp(self->host, self->host_want, LEN));
	for (i = 0; i < LEN; i += PAGE)
		ASSERT_TRUE(peer_page_is(self->fd, 0, self->buf + i,
					 self->want + i))
			TH_LOG("page %zu", i / PAGE);
}

/* Nothing moved, and the transfers did use the alias. */
static void check_in_place(struct __test_metadata *_metadata,
			   FIXTURE_DATA(rdma) *self)
{
	struct peer_mem_info now = peer_info(self->fd);

	EXPECT_EQ(self->before.faults, now.faults);
	EXPECT_EQ(self->before.moved_out, now.moved_out);
	EXPECT_EQ(NR, now.pages);
	EXPECT_LT(self->before.mapped, now.mapped);
	check_data(_metadata, self);
}

struct shape {
	size_t off;	/* in the memory of the peer device */
	size_t host;	/* in ordinary memory */
	size_t len;
};

static const struct shape shapes[] = {
	{ 0, 0, 1 },
	{ 3, 5, 64 },
	{ 100, 0, 1024 },
	{ PAGE - 6, 8, 16 },
	{ 2 * PAGE - 3, 3 * PAGE - 5, 11 },
	{ 17, 333, PAGE },
	{ 2 * PAGE, 1, PAGE + 1 },
	{ 333, 777, 20001 },
	{ 0, 0, LEN },
};

static struct ibv_sge host_sge(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	return rcp_sge(self->host_mr, self->host + s->host, s->len);
}

static struct ibv_sge buf_sge(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	return rcp_sge(self->mr, self->buf + s->off, s->len);
}

static uint64_t raddr(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	return (uintptr_t)self->buf + s->off;
}

static int put(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	struct ibv_sge sge = host_sge(self, s);

	memcpy(self->want + s->off, self->host_want + s->host, s->len);
	return rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
			raddr(self, s), self->mr->rkey);
}

static int get(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	struct ibv_sge sge = host_sge(self, s);

	memcpy(self->host_want + s->host, self->want + s->off, s->len);
	return rcp_rdma(&self->pair.a, IBV_WR_RDMA_READ, &sge,
			raddr(self, s), self->mr->rkey);
}

/* The memory in the device at the local end. */
static int put_local(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	struct ibv_sge sge = buf_sge(self, s);

	memcpy(self->want + s->off, self->host_want + s->host, s->len);
	return rcp_rdma(&self->pair.a, IBV_WR_RDMA_READ, &sge,
			(uintptr_t)self->host + s->host, self->host_mr->rkey);
}

static int get_local(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	struct ibv_sge sge = buf_sge(self, s);

	memcpy(self->host_want + s->host, self->want + s->off, s->len);
	return rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
			(uintptr_t)self->host + s->host, self->host_mr->rkey);
}

static int send_from(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	struct ibv_sge src = buf_sge(self, s), dst = host_sge(self, s);

	memcpy(self->host_want + s->host, self->want + s->off, s->len);
	return rcp_send(&self->pair.a, &src, &self->pair.b, &dst, NULL);
}

static int recv_to(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	struct ibv_sge src = host_sge(self, s), dst = buf_sge(self, s);

	memcpy(self->want + s->off, self->host_want + s->host, s->len);
	return rcp_send(&self->pair.a, &src, &self->pair.b, &dst, NULL);
}

static int put_imm(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	struct ibv_sge sge = host_sge(self, s);
	uint32_t got = 0;
	int status;

	memcpy(self->want + s->off, self->host_want + s->host, s->len);
	status = rcp_write_imm(&self->pair.a, &sge, &self->pair.b,
			       raddr(self, s), self->mr->rkey, 0xabcd, &got);
	return status ?: (got == 0xabcd ? 0 : -EBADMSG);
}

static void run_in_place(struct __test_metadata *_metadata,
			 FIXTURE_DATA(rdma) *self,
			 int (*op)(FIXTURE_DATA(rdma) *, const struct shape *))
{
	size_t i;

	all_in(_metadata, self);
	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		ASSERT_EQ(0, op(self, &shapes[i]))
			TH_LOG("shape %zu", i);
		/* at once: the next transfer may hide what is wrong */
		check_data(_metadata, self);
	}
	check_in_place(_metadata, self);
}

TEST_F(rdma, write)
{
	run_in_place(_metadata, self, put);
}

TEST_F(rdma, read)
{
	run_in_place(_metadata, self, get);
}

TEST_F(rdma, read_to)
{
	run_in_place(_metadata, self, put_local);
}

TEST_F(rdma, write_from)
{
	run_in_place(_metadata, self, get_local);
}

TEST_F(rdma, send)
{
	run_in_place(_metadata, self, send_from);
}

TEST_F(rdma, recv)
{
	run_in_place(_metadata, self, recv_to);
}

TEST_F(rdma, write_imm)
{
	run_in_place(_metadata, self, put_imm);
}

static uint64_t *want_word(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	return (uint64_t *)(self->want + s->off);
}

static uint64_t *host_word(FIXTURE_DATA(rdma) *self, const struct shape *s)
{
	return (uint64_t *)(self->host_want + s->host);
}

static int atomic(FIXTURE_DATA(rdma) *self, const struct shape *s,
		  enum ibv_wr_opcode op, uint64_t arg, uint64_t swap)
{
	struct ibv_sge sge = host_sge(self, s);

	return rcp_atomic(&self->pair.a, op, &sge, raddr(self, s),
			  self->mr->rkey, arg, swap);
}

TEST_F(rdma, atomics)
{
	static const struct shape words[] = {
		{ 0, 64, 8 },
		{ PAGE - 8, 128, 8 },
		{ 5 * PAGE + 512, PAGE, 8 },
	};
	size_t i;

	all_in(_metadata, self);
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		const struct shape *s = &words[i];
		uint64_t *word = want_word(self, s);

		*host_word(self, s) = *word;
		*word += 0x100000001;
		ASSERT_EQ(0, atomic(self, s, IBV_WR_ATOMIC_FETCH_AND_ADD,
				    0x100000001, 0));
		EXPECT_EQ(0, memcmp(self->host, self->host_want, LEN));

		*host_word(self, s) = *word;
		ASSERT_EQ(0, atomic(self, s, IBV_WR_ATOMIC_CMP_AND_SWP,
				    *word + 1, 1));		/* fails */
		ASSERT_EQ(0, atomic(self, s, IBV_WR_ATOMIC_CMP_AND_SWP,
				    *word, i));
		*word = i;
		EXPECT_EQ(0, memcmp(self->host, self->host_want, LEN));
	}
	check_in_place(_metadata, self);
}

TEST_F(rdma, atomic_write)
{
	const struct shape s = { 7 * PAGE + 8, 0, 8 };

	if (!self->pair.a.qpx)
		SKIP(return, "%s has no ATOMIC_WRITE", device);
	all_in(_metadata, self);
	*want_word(self, &s) = 0x0123456789abcdef;
	ASSERT_EQ(0, rcp_atomic_write(&self->pair.a, raddr(self, &s),
				      self->mr->rkey, 0x0123456789abcdef));
	check_in_place(_metadata, self);
}

/* From the memory of one peer device to that of another. */
TEST_F(rdma, two_devices)
{
	int fd = peer_open("mem", 1);
	char *src = peer_map(LEN);
	struct ibv_mr *mr;
	struct ibv_sge sge;

	if (fd < 0)
		SKIP(return, "no /dev/peer_mem1");
	all_in(_metadata, self);
	ASSERT_EQ(0, peer_publish(fd, peer_info(fd).size, 0));
	peer_fill(src, LEN, 3);
	memcpy(self->want, src, LEN);
	ASSERT_EQ(NR, peer_to_dev(fd, src, LEN));
	mr = rcp_reg(&self->dev, src, LEN, RCP_ODP);
	ASSERT_NE(NULL, mr);
	sge = rcp_sge(mr, src, LEN);
	EXPECT_EQ(0, rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
			      (uintptr_t)self->buf, self->mr->rkey));
	EXPECT_EQ(NR, peer_resident(fd, src, LEN));
	check_in_place(_metadata, self);
	ibv_dereg_mr(mr);
	munmap(src, LEN);
	close(fd);
}

static int advise(FIXTURE_DATA(rdma) *self,
		  enum ib_uverbs_advise_mr_advice advice)
{
	return rcp_advise(&self->dev, self->mr, advice,
			  IBV_ADVISE_MR_FLAG_FLUSH, (uintptr_t)self->buf, LEN);
}

TEST_F(rdma, prefetch)
{
	const struct shape all = { 0, 0, LEN };
	struct peer_mem_info now;

	all_in(_metadata, self);
	EXPECT_EQ(0, advise(self, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT));
	EXPECT_EQ(0, advise(self, IBV_ADVISE_MR_ADVICE_PREFETCH));
	EXPECT_EQ(0, advise(self, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE));
	check_in_place(_metadata, self);
	/* and a transfer finds all pages mapped */
	now = peer_info(self->fd);
	EXPECT_EQ(0, put(self, &all));
	EXPECT_EQ(now.mapped, peer_info(self->fd).mapped);
	check_in_place(_metadata, self);
}

TEST_F(rdma, read_only)
{
	const struct shape all = { 0, 0, LEN };

	ibv_dereg_mr(self->mr);
	self->mr = rcp_reg_access(&self->dev, self->buf, LEN,
				  (uintptr_t)self->buf,
				  IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_ON_DEMAND);
	ASSERT_NE(NULL, self->mr);
	all_in(_metadata, self);
	EXPECT_EQ(0, get(self, &all));
	EXPECT_EQ(0, get_local(self, &all));
	check_in_place(_metadata, self);
	EXPECT_EQ(-EPERM, advise(self, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE));
	memcpy(self->host_want, self->want, LEN);
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, put(self, &all));
	check_in_place(_metadata, self);
}

static int flush(FIXTURE_DATA(rdma) *self, size_t off, size_t len,
		 uint8_t type)
{
	return rcp_flush(&self->pair.a, (uintptr_t)self->buf + off,
			 self->mr->rkey, len, type);
}

static void register_for_flush(struct __test_metadata *_metadata,
			       FIXTURE_DATA(rdma) *self)
{
	int access = RCP_ACCESS | IBV_ACCESS_ON_DEMAND |
		     IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;

	ibv_dereg_mr(self->mr);
	self->mr = rcp_reg_access(&self->dev, self->buf, LEN,
				  (uintptr_t)self->buf, access);
	ASSERT_NE(NULL, self->mr);
}

static void put_to_flush(struct __test_metadata *_metadata,
			 FIXTURE_DATA(rdma) *self)
{
	const struct shape all = { 0, 0, LEN };

	register_for_flush(_metadata, self);
	all_in(_metadata, self);
	ASSERT_EQ(0, put(self, &all));
	check_in_place(_metadata, self);
}

/*
 * Memory in the device cannot be flushed, so it is brought to system memory
 * first. For GLOBAL these are the pages in use by their alias, and no others.
 */
TEST_F(rdma, flush)
{
	static const uint8_t types[] = {
		IBV_FLUSH_GLOBAL, IBV_FLUSH_PERSISTENT,
	};
	const struct shape all = { 0, 0, LEN }, one = { PAGE, PAGE, PAGE };
	size_t i;

	if (!self->pair.a.qpx)
		SKIP(return, "%s has no FLUSH", device);
	register_for_flush(_metadata, self);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		all_in(_metadata, self);
		ASSERT_EQ(0, put(self, &one));
		check_in_place(_metadata, self);
		EXPECT_EQ(0, flush(self, PAGE, PAGE, types[i]));
		EXPECT_EQ(PEER_MEM_NOWHERE,
			  peer_where(self->fd, self->buf + PAGE));
		EXPECT_EQ(NR - 1, peer_resident(self->fd, self->buf, LEN));
		/* also pages that are not in the list of the MR */
		EXPECT_EQ(0, flush(self, 0, LEN, types[i]));
		EXPECT_EQ(0, peer_resident(self->fd, self->buf, LEN));
		all_in(_metadata, self);
		ASSERT_EQ(0, put(self, &all));
		EXPECT_EQ(0, flush(self, 0, LEN, types[i]));
		EXPECT_EQ(0, peer_resident(self->fd, self->buf, LEN));
		EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
	}
}

/* Where there is no alias, the memory is migrated; the counters say why. */

static void check_fell_back(struct __test_metadata *_metadata,
			    FIXTURE_DATA(rdma) *self)
{
	struct peer_mem_info now = peer_info(self->fd);

	EXPECT_EQ(self->before.mapped, now.mapped);
	EXPECT_LT(self->before.faults, now.faults);
	EXPECT_EQ(0, peer_resident(self->fd, self->buf, LEN));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
	EXPECT_EQ(0, memcmp(self->host, self->host_want, LEN));
}

TEST_F(rdma, revoked)
{
	const struct shape all = { 0, 0, LEN };

	ASSERT_LE(0, peer_revoke(self->fd));
	all_in(_metadata, self);
	EXPECT_EQ(0, put(self, &all));
	EXPECT_LE(NR, peer_info(self->fd).revoked - self->before.revoked);
	check_fell_back(_metadata, self);
}

/* The same if the pages are in use, and before they are evicted. */
TEST_F(rdma, revoked_in_use)
{
	const struct shape all = { 0, 0, LEN };

	all_in(_metadata, self);
	EXPECT_EQ(0, put(self, &all));
	check_in_place(_metadata, self);
	ASSERT_EQ(0, peer_revoke_only(self->fd));
	self->before = peer_info(self->fd);
	EXPECT_EQ(0, put(self, &all));
	EXPECT_EQ(NR, peer_info(self->fd).revoked - self->before.revoked);
	check_fell_back(_metadata, self);
}

TEST_F(rdma, no_cpu_mapping)
{
	const struct shape all = { 0, 0, LEN };

	ASSERT_EQ(0, peer_publish(self->fd, peer_info(self->fd).size,
				  PEER_MEM_PUBLISH_NO_CPU));
	all_in(_metadata, self);
	EXPECT_EQ(0, put(self, &all));
	EXPECT_LE(NR, peer_info(self->fd).no_cpu - self->before.no_cpu);
	check_fell_back(_metadata, self);
}

/* The alias ends in the middle: only the pages after its end come back. */
TEST_F(rdma, partly_visible)
{
	const struct shape all = { 0, 0, LEN };
	uint64_t where[NR], visible = NR / 2 * PAGE;
	struct peer_mem_info now;
	long seen = 0;
	size_t i;

	ASSERT_EQ(0, peer_publish(self->fd, visible, 0));
	all_in(_metadata, self);
	ASSERT_EQ(0, peer_lookup(self->fd, self->buf, LEN, where));
	for (i = 0; i < NR; i++)
		seen += where[i] < visible;
	ASSERT_LT(0, seen);
	ASSERT_GT(NR, seen);
	EXPECT_EQ(0, put(self, &all));
	now = peer_info(self->fd);
	EXPECT_LE(NR - seen, now.invisible - self->before.invisible);
	EXPECT_EQ(NR - seen, now.moved_out - self->before.moved_out);
	EXPECT_LE(seen, now.mapped - self->before.mapped);
	EXPECT_EQ(seen, peer_resident(self->fd, self->buf, LEN));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
}

/* A page shared with a child is copied before it is written to. */
TEST_F(rdma, fork)
{
	const struct shape all = { 0, 0, LEN };
	struct peer_child child;

	all_in(_metadata, self);
	peer_fill(self->host_want, LEN, 4);
	memcpy(self->host, self->host_want, LEN);
	ASSERT_EQ(0, peer_child_fork(&child, self->buf, self->want, LEN));
	EXPECT_EQ(0, put(self, &all));
	EXPECT_EQ(0, peer_child_compare(&child));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
}

/*
 * The list of the MR has forgotten pages that are shared with a child, and that
 * have not moved. Data written to them gets to system memory all the same.
 */
TEST_F(rdma, flush_after_fork)
{
	struct peer_child child;

	if (!self->pair.a.qpx)
		SKIP(return, "%s has no FLUSH", device);
	put_to_flush(_metadata, self);
	ASSERT_EQ(0, peer_child_fork(&child, self->buf, self->want, LEN));
	EXPECT_EQ(NR, peer_resident(self->fd, self->buf, LEN));
	EXPECT_EQ(0, flush(self, 0, LEN, IBV_FLUSH_GLOBAL));
	EXPECT_EQ(0, peer_resident(self->fd, self->buf, LEN));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
	EXPECT_EQ(0, peer_child_compare(&child));
}

/*
 * As while the owner resets its device: peers have let go of the pages, and may
 * not use the alias. What was written before still gets to system memory.
 */
TEST_F(rdma, flush_after_end)
{
	if (!self->pair.a.qpx)
		SKIP(return, "%s has no FLUSH", device);
	put_to_flush(_metadata, self);
	ASSERT_EQ(0, peer_end(self->fd));
	/* FLUSH does not mind a hole */
	ASSERT_EQ(0, munmap(self->buf, PAGE));
	EXPECT_EQ(NR - 1, peer_resident(self->fd, self->buf + PAGE, LEN - PAGE));
	EXPECT_EQ(0, flush(self, 0, LEN, IBV_FLUSH_GLOBAL));
	EXPECT_EQ(0, peer_resident(self->fd, self->buf + PAGE, LEN - PAGE));
	EXPECT_EQ(0, memcmp(self->buf + PAGE, self->want + PAGE, LEN - PAGE));
}

/*
 * A 2 MiB page in the device, of which parts are unmapped later. Transfers of
 * all of it take their time on a debug kernel.
 */
FIXTURE(huge) {
	struct rcp_dev dev;
	struct rcp_pair pair;
	int fd;
	char *huge;
	char *want;
	void *whole;
	char *host;
	struct ibv_mr *mr;
	struct ibv_mr *host_mr;
	struct peer_mem_info before;
};

FIXTURE_SETUP(huge) {
	self->fd = peer_open("mem", 0);
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
	ASSERT_EQ(0, rcp_open(&self->dev, device));
	if (!rcp_odp_caps(&self->dev))
		SKIP(return, "%s has no on-demand paging", device);
	ASSERT_EQ(0, rcp_init(&self->pair, &self->dev, &self->dev));
	ASSERT_EQ(0, rcp_connect(&self->pair, IBV_MTU_4096));
	ASSERT_LE(0, peer_evict(self->fd));
	ASSERT_EQ(0, peer_publish(self->fd, peer_info(self->fd).size, 0));
	self->huge = peer_map_huge(HUGE, &self->whole);
	self->want = peer_map(HUGE);
	self->host = peer_map(LEN);
	ASSERT_NE(NULL, self->huge);
	ASSERT_NE(NULL, self->want);
	ASSERT_NE(NULL, self->host);
	peer_fill(self->want, HUGE, 5);
	peer_fill(self->host, LEN, 6);
	memcpy(self->huge, self->want, HUGE);
	self->mr = rcp_reg(&self->dev, self->huge, HUGE, RCP_ODP);
	self->host_mr = rcp_reg(&self->dev, self->host, LEN, RCP_PINNED);
	ASSERT_NE(NULL, self->mr);
	ASSERT_NE(NULL, self->host_mr);
	ASSERT_EQ(PAGES_PER_HUGE, peer_to_dev(self->fd, self->huge, HUGE));
	ASSERT_EQ(1, peer_info(self->fd).huge);
	self->before = peer_info(self->fd);
}

FIXTURE_TEARDOWN(huge) {
	if (self->fd < 0)
		return;
	rcp_fini(&self->pair);
	if (self->mr)
		ibv_dereg_mr(self->mr);
	if (self->host_mr)
		ibv_dereg_mr(self->host_mr);
	rcp_close(&self->dev);
	if (self->whole)
		munmap(self->whole, 2 * HUGE);
	EXPECT_EQ(0, peer_info(self->fd).pages);
	close(self->fd);
}

static int put_huge(FIXTURE_DATA(huge) *self, size_t off, size_t len)
{
	struct ibv_sge sge = rcp_sge(self->host_mr, self->host, len);

	memcpy(self->want + off, self->host, len);
	return rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
			(uintptr_t)self->huge + off, self->mr->rkey);
}

static void check_huge(struct __test_metadata *_metadata,
		       FIXTURE_DATA(huge) *self, size_t start)
{
	size_t i;

	EXPECT_EQ(self->before.faults, peer_info(self->fd).faults);
	EXPECT_LT(self->before.mapped, peer_info(self->fd).mapped);
	for (i = start; i < HUGE; i += PAGE)
		ASSERT_TRUE(peer_page_is(self->fd, 0, self->huge + i,
					 self->want + i))
			TH_LOG("page %zu", i / PAGE);
}

TEST_F_TIMEOUT(huge, in_place, 120)
{
	EXPECT_EQ(0, put_huge(self, 0, 1));
	EXPECT_EQ(0, put_huge(self, 100 * PAGE + 9, 3 * PAGE));
	EXPECT_EQ(0, put_huge(self, HUGE - 20000, 20000));
	EXPECT_EQ(1, peer_info(self->fd).huge);
	EXPECT_EQ(self->before.moved_out, peer_info(self->fd).moved_out);
	check_huge(_metadata, self, 0);
}

TEST_F_TIMEOUT(huge, partly_unmapped, 120)
{
	EXPECT_EQ(0, put_huge(self, 5 * PAGE - 100, LEN));
	ASSERT_EQ(0, munmap(self->huge, HUGE / 2));
	EXPECT_EQ(0, put_huge(self, HUGE / 2, LEN));
	EXPECT_EQ(0, put_huge(self, HUGE - LEN, LEN));
	check_huge(_metadata, self, HUGE / 2);
	/* unmapped memory cannot be written to any more */
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, put_huge(self, HUGE / 2 - 64, 128));
}

/* Change the protection of one page: the entry of the huge page is split. */
TEST_F_TIMEOUT(huge, split, 120)
{
	char *page = self->huge + 7 * PAGE;

	EXPECT_EQ(0, put_huge(self, 6 * PAGE, 3 * PAGE));
	ASSERT_EQ(0, mprotect(page, PAGE, PROT_READ));
	EXPECT_EQ(0, put_huge(self, 8 * PAGE + 5, LEN));
	EXPECT_EQ(0, put_huge(self, 10, 6 * PAGE));
	check_huge(_metadata, self, 0);
}

int main(int argc, char **argv)
{
	device = rcp_device_get(DEVICE);
	if (!device)
		ksft_exit_skip("no RDMA device: %s\n", strerror(errno));
	return test_harness_run(argc, argv);
}
