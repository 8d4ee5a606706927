// SPDX-License-Identifier: GPL-2.0
/*
 * A PCI device reads and writes process memory that is in another PCI device.
 * Needs QEMU's edu and ivshmem-plain devices.
 *
 * TOPOLOGY says how the two are connected, and so which way the transfers must
 * take: unreachable, bridge, iommu or switch. Without it the tests are skipped,
 * since a transfer that took the wrong way would go unnoticed.
 */
#include <pthread.h>

#include "../kselftest_harness.h"
#include "peer_child.h"
#include "topology.h"

#define NR	4
#define LEN	(NR * PAGE)

FIXTURE(edu) {
	int mem;
	int edu;
	const struct topology *topo;
	char *buf;		/* four pages */
	char *want;		/* a copy of them */
	char *huge;		/* 2 MiB */
	char *huge_want;
	char *out;		/* where read_by_edu() puts the data */
	void *whole;
	struct peer_mem_info before;
	struct peer_edu_xfer last;
};

FIXTURE_SETUP(edu) {
	unsigned int i;

	self->edu = -1;
	self->mem = peer_open("mem", 0);
	if (self->mem < 0)
		SKIP(return, "no /dev/peer_mem0");
	self->edu = peer_open("edu", 0);
	if (self->edu < 0)
		SKIP(return, "no /dev/peer_edu0");
	self->topo = find_topology();
	if (!self->topo)
		SKIP(return, "TOPOLOGY is not set");
	self->buf = peer_map(LEN);
	self->want = peer_map(LEN);
	self->huge = peer_map_huge(HUGE, &self->whole);
	self->huge_want = peer_map(HUGE);
	self->out = peer_map(2 * PAGE);
	ASSERT_NE(NULL, self->buf);
	ASSERT_NE(NULL, self->want);
	ASSERT_NE(NULL, self->huge);
	ASSERT_NE(NULL, self->huge_want);
	ASSERT_NE(NULL, self->out);
	peer_fill(self->want, LEN, 3);
	peer_fill(self->huge_want, HUGE, 4);

	for (i = PEER_MEM_FAIL_DEV; i <= PEER_MEM_FAIL_SYS_HUGE; i++)
		ASSERT_EQ(0, peer_inject(self->mem, i, 0));
	ASSERT_EQ(0, peer_publish(self->mem, peer_info(self->mem).size, 0));
	self->before = peer_info(self->mem);
	ASSERT_EQ(0, self->before.pages);
}

FIXTURE_TEARDOWN(edu) {
	if (!self->topo)
		return;
	munmap(self->buf, LEN);
	munmap(self->whole, 2 * HUGE);
	EXPECT_EQ(0, peer_info(self->mem).pages);
	close(self->edu);
	close(self->mem);
}

static int xfer(struct _test_data_edu *self, void *addr, size_t len,
		unsigned int flags)
{
	self->last = (struct peer_edu_xfer) {
		.addr = (uintptr_t)addr,
		.len = len,
		.flags = flags,
	};
	return peer_ioctl(self->edu, PEER_EDU_XFER, &self->last);
}

/* Have the device read @len bytes at @addr; they arrive in self->out. */
static int read_by_edu(struct _test_data_edu *self, void *addr, size_t len,
		       unsigned int flags)
{
	struct peer_edu_xfer read;
	int err;

	memset(self->out, 0xaa, PAGE);
	err = xfer(self, addr, len, flags);
	if (err)
		return err;
	read = self->last;
	err = xfer(self, self->out, len, PEER_EDU_WRITE);
	if (!err && self->last.route[0] != PEER_EDU_RAM)
		err = -EPROTO;
	self->last = read;
	return err;
}

/* Have the device write @len bytes at @addr, taken from @from. */
static int write_by_edu(struct _test_data_edu *self, void *addr,
			const void *from, size_t len)
{
	int err;

	memcpy(self->out, from, len);
	err = xfer(self, self->out, len, 0);
	return err ?: xfer(self, addr, len, PEER_EDU_WRITE);
}

static void buf_in(struct __test_metadata *_metadata,
		   struct _test_data_edu *self)
{
	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(NR, peer_to_dev_small(self->mem, self->buf, LEN));
}

static void huge_in(struct __test_metadata *_metadata,
		    struct _test_data_edu *self)
{
	memcpy(self->huge, self->huge_want, HUGE);
	ASSERT_EQ(PAGES_PER_HUGE, peer_to_dev(self->mem, self->huge, HUGE));
	ASSERT_NE(0, peer_where(self->mem, self->huge) & PEER_MEM_HUGE);
}

/* The address is the one that the route requires for this page. */
static void check_address(struct __test_metadata *_metadata,
			  struct _test_data_edu *self, unsigned int i,
			  uint64_t where)
{
	uint64_t offset = where & PEER_MEM_OFFSET_MASK;

	if (self->topo->route == PEER_EDU_BUS_ADDR) {
		EXPECT_EQ(self->before.bar_bus + offset,
			  self->last.dma_addr[i]);
	} else if (self->topo->result & PEER_EDU_IOVA) {
		EXPECT_NE(self->before.bar_phys + offset,
			  self->last.dma_addr[i]);
	} else {
		EXPECT_EQ(self->before.bar_phys + offset,
			  self->last.dma_addr[i]);
	}
}

/*
 * The last transfer touched @nr pages, which were at @where, in the way that
 * the topology allows: by alias without moving them, or by migration without
 * an alias. @out is how many pages that brings to system memory.
 */
static void check_way(struct __test_metadata *_metadata,
		      struct _test_data_edu *self, unsigned int nr,
		      const uint64_t *where, unsigned int out)
{
	struct peer_mem_info now = peer_info(self->mem);
	unsigned int i;

	for (i = 0; i < nr; i++)
		EXPECT_EQ(self->topo->route, self->last.route[i]);
	EXPECT_EQ(self->topo->result, self->last.result);
	EXPECT_EQ(self->before.map_failed, now.map_failed);
	EXPECT_EQ(self->before.invisible, now.invisible);
	EXPECT_EQ(self->before.revoked, now.revoked);
	if (!self->topo->reachable) {
		EXPECT_EQ(self->before.mapped, now.mapped);
		EXPECT_LT(self->before.unreachable, now.unreachable);
		EXPECT_EQ(out, now.moved_out - self->before.moved_out);
		return;
	}
	EXPECT_EQ(self->before.mapped + nr, now.mapped);
	EXPECT_EQ(self->before.unreachable, now.unreachable);
	EXPECT_EQ(self->before.faults, now.faults);
	EXPECT_EQ(self->before.moved_out, now.moved_out);
	for (i = 0; i < nr; i++)
		check_address(_metadata, self, i, where[i]);
}

TEST_F(edu, reads_small)
{
	uint64_t where;

	buf_in(_metadata, self);
	where = peer_where(self->mem, self->buf);
	ASSERT_EQ(0, read_by_edu(self, self->buf, PAGE, 0));
	EXPECT_EQ(0, memcmp(self->out, self->want, PAGE));
	check_way(_metadata, self, 1, &where, 1);
}

TEST_F(edu, writes_small)
{
	uint64_t where;

	buf_in(_metadata, self);
	where = peer_where(self->mem, self->buf);
	ASSERT_EQ(0, write_by_edu(self, self->buf, self->huge_want, PAGE));
	check_way(_metadata, self, 1, &where, 1);
	if (self->topo->reachable) {
		EXPECT_TRUE(peer_page_is(self->mem, 0, self->buf,
					 self->huge_want));
	}
	EXPECT_EQ(0, memcmp(self->buf, self->huge_want, PAGE));
	EXPECT_EQ(0, memcmp(self->buf + PAGE, self->want + PAGE, LEN - PAGE));
}

/* Neither aligned nor within a page, and the pages are not adjacent. */
TEST_F(edu, crosses_pages)
{
	size_t at = 2 * PAGE - 1000;
	uint64_t where[2], offset;

	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(1, peer_to_dev(self->mem, self->buf + 2 * PAGE, PAGE));
	ASSERT_EQ(1, peer_to_dev(self->mem, self->buf + PAGE, PAGE));
	ASSERT_EQ(0, peer_lookup(self->mem, self->buf + PAGE, 2 * PAGE,
				 where));
	offset = where[0] & PEER_MEM_OFFSET_MASK;
	ASSERT_NE(offset + PAGE, where[1] & PEER_MEM_OFFSET_MASK);

	ASSERT_EQ(0, read_by_edu(self, self->buf + at, 2400, 0));
	EXPECT_EQ(0, memcmp(self->out, self->want + at, 2400));
	check_way(_metadata, self, 2, where, 2);
	ASSERT_EQ(0, write_by_edu(self, self->buf + at, self->huge_want,
				  2400));
	EXPECT_EQ(0, memcmp(self->buf + PAGE, self->want + PAGE, at - PAGE));
	EXPECT_EQ(0, memcmp(self->buf + at, self->huge_want, 2400));
	EXPECT_EQ(0, memcmp(self->buf + at + 2400, self->want + at + 2400,
			    LEN - at - 2400));
}

/* A huge page is used in place, and stays huge. */
TEST_F(edu, reads_huge)
{
	size_t at = 77 * PAGE + 8;
	uint64_t where[2];

	huge_in(_metadata, self);
	ASSERT_EQ(0, peer_lookup(self->mem, self->huge + 77 * PAGE, 2 * PAGE,
				 where));
	ASSERT_EQ(0, read_by_edu(self, self->huge + at, PAGE, 0));
	EXPECT_EQ(0, memcmp(self->out, self->huge_want + at, PAGE));
	check_way(_metadata, self, 2, where, PAGES_PER_HUGE);
	if (self->topo->reachable) {
		EXPECT_NE(0, peer_where(self->mem, self->huge) &
			     PEER_MEM_HUGE);
	}
}

TEST_F(edu, writes_huge)
{
	size_t at = HUGE - PAGE;
	uint64_t where;

	huge_in(_metadata, self);
	where = peer_where(self->mem, self->huge + at);
	ASSERT_EQ(0, write_by_edu(self, self->huge + at, self->want, PAGE));
	check_way(_metadata, self, 1, &where, PAGES_PER_HUGE);
	if (self->topo->reachable) {
		EXPECT_TRUE(peer_page_is(self->mem, 0, self->huge + at,
					 self->want));
	}
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, at));
	EXPECT_EQ(0, memcmp(self->huge + at, self->want, PAGE));
}

/* One page in system memory and one in the device. */
TEST_F(edu, mixed)
{
	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(1, peer_to_dev(self->mem, self->buf + PAGE, PAGE));
	ASSERT_EQ(0, read_by_edu(self, self->buf + PAGE / 2, PAGE, 0));
	EXPECT_EQ(0, memcmp(self->out, self->want + PAGE / 2, PAGE));
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
	EXPECT_EQ(self->topo->route, self->last.route[1]);
}

/* A client that does not ask for aliases gets none. */
TEST_F(edu, no_alias_asked)
{
	buf_in(_metadata, self);
	ASSERT_EQ(0, read_by_edu(self, self->buf, PAGE, PEER_EDU_NO_ALIAS));
	EXPECT_EQ(0, memcmp(self->out, self->want, PAGE));
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
	EXPECT_EQ(PEER_MEM_NOWHERE, peer_where(self->mem, self->buf));
	EXPECT_EQ(self->before.mapped, peer_info(self->mem).mapped);
	EXPECT_EQ(self->before.unreachable, peer_info(self->mem).unreachable);
}

/* Only what the alias shows is used in place. */
TEST_F(edu, visibility_boundary)
{
	struct peer_mem_info now;

	if (!self->topo->reachable)
		SKIP(return, "no alias is usable here");
	ASSERT_EQ(0, peer_publish(self->mem, PAGE, 0));
	buf_in(_metadata, self);
	ASSERT_EQ(0, peer_where(self->mem, self->buf) & PEER_MEM_OFFSET_MASK);
	ASSERT_EQ(0, read_by_edu(self, self->buf + PAGE / 2, PAGE, 0));
	EXPECT_EQ(0, memcmp(self->out, self->want + PAGE / 2, PAGE));
	EXPECT_EQ(self->topo->route, self->last.route[0]);
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[1]);
	now = peer_info(self->mem);
	EXPECT_LT(self->before.invisible, now.invisible);
	EXPECT_EQ(1, now.faults - self->before.faults);
	EXPECT_EQ(NR - 1, peer_resident(self->mem, self->buf, LEN));
}

TEST_F(edu, huge_across_visibility_boundary)
{
	if (!self->topo->reachable)
		SKIP(return, "no alias is usable here");
	ASSERT_EQ(0, peer_publish(self->mem, HUGE - PAGE, 0));
	huge_in(_metadata, self);
	ASSERT_EQ(0, read_by_edu(self, self->huge + HUGE - PAGE, PAGE, 0));
	EXPECT_EQ(0, memcmp(self->out, self->huge_want + HUGE - PAGE, PAGE));
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
	EXPECT_LT(self->before.invisible, peer_info(self->mem).invisible);
}

TEST_F(edu, revoked)
{
	buf_in(_metadata, self);
	ASSERT_EQ(NR, peer_revoke(self->mem));
	buf_in(_metadata, self);
	ASSERT_EQ(0, read_by_edu(self, self->buf, PAGE, 0));
	EXPECT_EQ(0, memcmp(self->out, self->want, PAGE));
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
	EXPECT_EQ(NR - 1, peer_resident(self->mem, self->buf, LEN));
	EXPECT_EQ(self->before.mapped, peer_info(self->mem).mapped);
	EXPECT_LT(self->before.revoked, peer_info(self->mem).revoked);
}

struct slow_write {
	struct _test_data_edu *self;
	int err;
};

static void *write_slowly(void *data)
{
	struct slow_write *write = data;

	write->err = xfer(write->self, write->self->buf, PAGE, PEER_EDU_WRITE);
	return NULL;
}

/* The engine waits for 100 ms before it writes: an owner waits for that. */
TEST_F(edu, access_ends_before_a_reset)
{
	struct slow_write write = { .self = self };
	char now[PAGE];
	uint64_t where;
	pthread_t thread;

	if (!self->topo->reachable)
		SKIP(return, "the device does not reach the memory");
	buf_in(_metadata, self);
	where = peer_where(self->mem, self->buf) & PEER_MEM_OFFSET_MASK;
	memcpy(self->out, self->huge_want, PAGE);
	ASSERT_EQ(0, xfer(self, self->out, PAGE, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_slowly, &write));
	while (peer_info(self->mem).mapped == self->before.mapped)
		usleep(1000);
	ASSERT_EQ(0, peer_end(self->mem));
	ASSERT_EQ(0, peer_rw(self->mem, PEER_MEM_PEEK, where, now, PAGE));
	EXPECT_EQ(0, memcmp(now, self->huge_want, PAGE));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, write.err);
	EXPECT_EQ(self->topo->route, self->last.route[0]);
}

TEST_F(edu, read_only_memory)
{
	buf_in(_metadata, self);
	ASSERT_EQ(0, mprotect(self->buf, LEN, PROT_READ));
	EXPECT_EQ(0, read_by_edu(self, self->buf, PAGE, 0));
	EXPECT_EQ(0, memcmp(self->out, self->want, PAGE));
	EXPECT_EQ(-EPERM, write_by_edu(self, self->buf, self->huge_want, PAGE));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
}

static void write_after_fork(struct __test_metadata *_metadata,
			     struct _test_data_edu *self, char *addr, char *want,
			     char *data)
{
	struct peer_child child;

	ASSERT_EQ(0, peer_child_fork(&child, addr, want, PAGE));
	EXPECT_EQ(0, write_by_edu(self, addr, data, PAGE));
	EXPECT_EQ(0, memcmp(addr, data, PAGE));
	EXPECT_EQ(0, peer_child_compare(&child))
		TH_LOG("the child's memory was written");
}

/*
 * After a fork the device's pages are shared and mapped read-only. A device
 * that writes must not write to them: it gets a copy, as a CPU would.
 */
TEST_F(edu, write_after_fork)
{
	buf_in(_metadata, self);
	write_after_fork(_metadata, self, self->buf, self->want,
			 self->huge_want);
}

TEST_F(edu, huge_write_after_fork)
{
	huge_in(_metadata, self);
	write_after_fork(_metadata, self, self->huge + 9 * PAGE,
			 self->huge_want + 9 * PAGE, self->want);
}

static void *move_about(void *data)
{
	struct _test_data_edu *self = data;
	int i;

	for (i = 0; i < 30; i++) {
		peer_to_dev(self->mem, self->buf, LEN);
		usleep(20000);
		if (i % 3 == 0)
			peer_evict(self->mem);
		else if (i % 3 == 1)
			peer_read(self->buf + PAGE);
	}
	return NULL;
}

/* Whatever pages move meanwhile, each transfer sees the data. */
TEST_F_TIMEOUT(edu, migration_under_load, 120)
{
	pthread_t thread;
	int i, err;

	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(0, pthread_create(&thread, NULL, move_about, self));
	for (i = 0; i < 10; i++) {
		err = read_by_edu(self, self->buf + PAGE / 2, PAGE, 0);
		if (err == -EBUSY)
			continue;
		ASSERT_EQ(0, err);
		ASSERT_EQ(0, memcmp(self->out, self->want + PAGE / 2, PAGE));
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
}

static void *revoke_about(void *data)
{
	struct _test_data_edu *self = data;
	int i;

	for (i = 0; i < 10; i++) {
		peer_revoke(self->mem);
		peer_to_dev(self->mem, self->buf, LEN);
		usleep(50000);
		peer_publish(self->mem, self->before.size, 0);
		peer_to_dev(self->mem, self->buf, LEN);
		usleep(50000);
	}
	return NULL;
}

TEST_F_TIMEOUT(edu, revoke_under_load, 120)
{
	pthread_t thread;
	int i, err;

	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(0, pthread_create(&thread, NULL, revoke_about, self));
	for (i = 0; i < 10; i++) {
		err = read_by_edu(self, self->buf, PAGE, 0);
		if (err == -EBUSY)
			continue;
		ASSERT_EQ(0, err);
		ASSERT_EQ(0, memcmp(self->out, self->want, PAGE));
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
}

struct reader {
	struct _test_data_edu *self;
	char *buf;
	const char *want;
	size_t len;
	unsigned int absent_us;	/* how long the memory's device is unbound */
	bool stop;
};

static void *read_about(void *data)
{
	struct reader *reader = data;
	struct _test_data_edu *self = reader->self;
	int err;

	while (!__atomic_load_n(&reader->stop, __ATOMIC_ACQUIRE)) {
		err = read_by_edu(self, reader->buf, PAGE, 0);
		if (err && err != -EBUSY)
			return (void *)1;
		if (!err && memcmp(self->out, reader->want, PAGE))
			return (void *)2;
	}
	return NULL;
}

static void unbind_while_read(struct __test_metadata *_metadata,
			      struct reader *reader)
{
	struct _test_data_edu *self = reader->self;
	pthread_t thread;
	char name[32];
	void *failed;
	int i;

	ASSERT_EQ(0, peer_name("mem", 0, name, sizeof(name)));
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_about, reader));
	for (i = 0; i < 3; i++) {
		usleep(150000);
		ASSERT_EQ(0, peer_bind("mem", name, false));
		close(self->mem);
		usleep(reader->absent_us);
		ASSERT_EQ(0, peer_bind("mem", name, true));
		self->mem = peer_open("mem", 0);
		ASSERT_LE(0, self->mem);
		ASSERT_LE(0, peer_to_dev(self->mem, reader->buf, reader->len));
	}
	__atomic_store_n(&reader->stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, &failed);
	EXPECT_EQ(NULL, failed);
	EXPECT_EQ(0, memcmp(reader->buf, reader->want, reader->len));
}

/* The device that has the memory is unbound while another one reads it. */
TEST_F_TIMEOUT(edu, unbind_memory_under_load, 120)
{
	struct reader reader = {
		.self = self,
		.buf = self->buf,
		.want = self->want,
		.len = LEN,
	};

	buf_in(_metadata, self);
	unbind_while_read(_metadata, &reader);
}

/* Its struct pages are gone for long enough to hit a slow walk. */
TEST_F_TIMEOUT(edu, unbind_huge_memory_under_load, 120)
{
	struct reader reader = {
		.self = self,
		.buf = self->huge,
		.want = self->huge_want,
		.len = HUGE,
		.absent_us = 1200000,
	};

	huge_in(_metadata, self);
	unbind_while_read(_metadata, &reader);
}

/* The client is unbound; its file cannot be used any more. */
TEST_F(edu, unbind_client)
{
	char name[32];

	ASSERT_EQ(0, peer_name("edu", 0, name, sizeof(name)));
	buf_in(_metadata, self);
	ASSERT_EQ(0, read_by_edu(self, self->buf, PAGE, 0));
	ASSERT_EQ(0, peer_bind("edu", name, false));
	EXPECT_EQ(-ENODEV, xfer(self, self->buf, PAGE, 0));
	ASSERT_EQ(0, peer_bind("edu", name, true));
	EXPECT_EQ(-ENODEV, xfer(self, self->buf, PAGE, 0));
	close(self->edu);
	self->edu = peer_open("edu", 0);
	ASSERT_LE(0, self->edu);
	EXPECT_EQ(0, read_by_edu(self, self->buf, PAGE, 0));
	EXPECT_EQ(0, memcmp(self->out, self->want, PAGE));
}

TEST_HARNESS_MAIN
