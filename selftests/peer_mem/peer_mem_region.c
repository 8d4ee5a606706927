// SPDX-License-Identifier: GPL-2.0
/*
 * A PCI device uses process memory by DMA mappings that last over many calls,
 * as on-demand memory regions of RDMA do: the MMU notifier must remove them
 * when the memory is moved, revoked, unmapped or shared, and not before.
 *
 * Needs QEMU's edu and ivshmem-plain devices. TOPOLOGY is as for peer_mem_edu.
 * The engine waits for 0.1 s before each copy, so there are few of them;
 * prefetches take no time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "peer_child.h"
#include "topology.h"

#define NR	4
#define LEN	(NR * PAGE)
#define PARTS	4		/* of HUGE: more than one walk covers */
#define LONG	(PARTS * HUGE)

FIXTURE(region) {
	int mem;
	int edu;
	int edu_out;		/* another file, to get what was read */
	const struct topology *topo;
	char *buf;		/* four pages */
	char *want;		/* a copy of them */
	char *out;
	char *huge;		/* LONG */
	void *whole;
	struct peer_mem_info before;
	struct peer_edu_use last;
	bool stop;
};

FIXTURE_SETUP(region) {
	self->edu = -1;
	self->mem = peer_open("mem", 0);
	if (self->mem < 0)
		SKIP(return, "no /dev/peer_mem0");
	self->edu = peer_open("edu", 0);
	self->edu_out = peer_open("edu", 0);
	if (self->edu < 0)
		SKIP(return, "no /dev/peer_edu0");
	self->topo = find_topology();
	if (!self->topo)
		SKIP(return, "TOPOLOGY is not set");
	self->buf = peer_map(LEN);
	self->want = peer_map(LEN);
	self->out = peer_map(PAGE);
	self->huge = peer_map_huge(LONG, &self->whole);
	ASSERT_NE(NULL, self->buf);
	ASSERT_NE(NULL, self->want);
	ASSERT_NE(NULL, self->out);
	ASSERT_NE(NULL, self->huge);
	peer_fill(self->want, LEN, 5);
	ASSERT_EQ(0, peer_publish(self->mem, peer_info(self->mem).size, 0));
	self->before = peer_info(self->mem);
	ASSERT_EQ(0, self->before.pages);
}

FIXTURE_TEARDOWN(region) {
	if (!self->topo)
		return;
	munmap(self->buf, LEN);
	munmap(self->whole, LONG + HUGE);
	EXPECT_EQ(0, peer_info(self->mem).pages);
	close(self->edu);
	close(self->edu_out);
	close(self->mem);
}

static int map_region(struct _test_data_region *self, void *addr, size_t len,
		      unsigned int flags)
{
	struct peer_edu_map arg = {
		.addr = (uintptr_t)addr,
		.len = len,
		.flags = flags,
	};

	peer_ioctl(self->edu, PEER_EDU_UNMAP, NULL);
	return peer_ioctl(self->edu, PEER_EDU_MAP, &arg);
}

static int use(struct _test_data_region *self, size_t offset, size_t len,
	       unsigned int flags)
{
	self->last = (struct peer_edu_use) {
		.offset = offset,
		.len = len,
		.flags = flags,
	};
	return peer_ioctl(self->edu, PEER_EDU_USE, &self->last);
}

static int prefetch(struct _test_data_region *self, size_t offset, size_t len,
		    unsigned int flags)
{
	return use(self, offset, len, flags | PEER_EDU_PREFETCH);
}

static int xfer_out(struct _test_data_region *self, size_t len,
		    unsigned int flags)
{
	struct peer_edu_xfer arg = {
		.addr = (uintptr_t)self->out,
		.len = len,
		.flags = flags,
	};

	return peer_ioctl(self->edu_out, PEER_EDU_XFER, &arg);
}

/* Does the device read @want at @offset? 0, 1 if not, or a negative errno. */
static int reads(struct _test_data_region *self, size_t offset,
		 const void *want)
{
	int err;

	memset(self->out, 0xaa, PAGE);
	err = use(self, offset, PAGE, 0);
	if (!err)
		err = xfer_out(self, PAGE, PEER_EDU_WRITE);
	return err ?: !!memcmp(self->out, want, PAGE);
}

static int writes(struct _test_data_region *self, size_t offset,
		  const void *from)
{
	int err;

	memcpy(self->out, from, PAGE);
	err = xfer_out(self, PAGE, 0);
	return err ?: use(self, offset, PAGE, PEER_EDU_WRITE);
}

/* How many pages are mapped for the device now? */
static uint64_t mapped(struct _test_data_region *self)
{
	struct peer_edu_use arg = {
		.len = 8,
		.flags = PEER_EDU_PREFETCH | PEER_EDU_SNAPSHOT,
	};

	/* no test unmaps the first page alone */
	return peer_ioctl(self->edu, PEER_EDU_USE, &arg) ? ~0ULL : arg.mapped;
}

static void buf_in(struct __test_metadata *_metadata,
		   struct _test_data_region *self)
{
	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(NR, peer_to_dev_small(self->mem, self->buf, LEN));
}

/* All four pages are in the device and mapped, by alias where possible. */
static void buf_mapped(struct __test_metadata *_metadata,
		       struct _test_data_region *self)
{
	buf_in(_metadata, self);
	ASSERT_EQ(0, map_region(self, self->buf, LEN, 0));
	ASSERT_EQ(0, prefetch(self, 0, LEN, PEER_EDU_WRITE));
	ASSERT_EQ(NR, self->last.mapped);
	ASSERT_EQ(self->topo->route, self->last.route[0]);
	ASSERT_EQ(self->topo->route, self->last.route[1]);
}

/* Once mapped, pages are used again and again, and counted once. */
TEST_F(region, lasts)
{
	struct peer_mem_info now;
	uint64_t addr;

	buf_mapped(_metadata, self);
	addr = self->last.dma_addr[1];
	EXPECT_EQ(0, reads(self, PAGE, self->want + PAGE));
	EXPECT_EQ(0, self->last.faults);
	EXPECT_EQ(addr, self->last.dma_addr[0]);
	EXPECT_EQ(0, writes(self, PAGE, self->want));
	EXPECT_EQ(0, self->last.faults);
	EXPECT_EQ(0, prefetch(self, 0, LEN, PEER_EDU_WRITE));
	EXPECT_EQ(addr, self->last.dma_addr[1]);
	EXPECT_EQ(NR, self->last.mapped);
	EXPECT_EQ(0, self->last.invalidated);
	now = peer_info(self->mem);
	if (self->topo->reachable) {
		EXPECT_EQ(self->before.mapped + NR, now.mapped);
		EXPECT_EQ(self->before.moved_out, now.moved_out);
		EXPECT_TRUE(peer_page_is(self->mem, 0, self->buf + PAGE,
					 self->want));
	}
	EXPECT_EQ(0, memcmp(self->buf + PAGE, self->want, PAGE));
	EXPECT_EQ(0, memcmp(self->buf, self->want, PAGE));
}

/*
 * A page that was mapped for reading can be written later. It is one mapping,
 * and in the end none is left: pages are unmapped as often as they were mapped.
 */
TEST_F(region, read_then_written)
{
	pid_t pid;

	memcpy(self->buf, self->want, LEN);
	pid = fork();
	if (!pid)
		_exit(0);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	ASSERT_EQ(0, map_region(self, self->buf, LEN, 0));
	ASSERT_EQ(0, prefetch(self, 0, LEN, 0));
	EXPECT_EQ(NR, self->last.mapped);
	EXPECT_EQ(0, reads(self, PAGE, self->want + PAGE));
	EXPECT_EQ(0, self->last.faults);
	EXPECT_EQ(0, writes(self, PAGE, self->want));
	EXPECT_EQ(1, self->last.faults) TH_LOG("the page was writable before");
	EXPECT_EQ(NR, self->last.mapped);
	EXPECT_EQ(0, memcmp(self->buf + PAGE, self->want, PAGE));
	munmap(self->buf, LEN);
	EXPECT_EQ(-EFAULT, prefetch(self, 0, LEN, 0));
	ASSERT_EQ(0, prefetch(self, 0, LEN, PEER_EDU_SNAPSHOT));
	EXPECT_EQ(0, self->last.mapped);
}

/* After a fork the device's write gets a copy of the page. */
TEST_F(region, written_after_fork)
{
	struct peer_child child;

	buf_mapped(_metadata, self);
	ASSERT_EQ(0, peer_child_fork(&child, self->buf, self->want, LEN));
	EXPECT_EQ(0, reads(self, 0, self->want));
	EXPECT_EQ(1, self->last.faults) TH_LOG("mapped for writing still");
	EXPECT_EQ(0, writes(self, 0, self->want + PAGE));
	EXPECT_EQ(0, memcmp(self->buf, self->want + PAGE, PAGE));
	EXPECT_EQ(0, peer_child_compare(&child))
		TH_LOG("the child's memory was written");
}

TEST_F(region, evicted)
{
	buf_mapped(_metadata, self);
	if (!self->topo->reachable)
		SKIP(return, "no alias is usable here");
	ASSERT_EQ(NR, peer_evict(self->mem));
	ASSERT_EQ(0, prefetch(self, 0, LEN, PEER_EDU_SNAPSHOT));
	EXPECT_EQ(NR, self->last.invalidated);
	EXPECT_EQ(0, reads(self, PAGE, self->want + PAGE));
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
	/* and back: the same region uses the alias again */
	ASSERT_EQ(NR, peer_to_dev_small(self->mem, self->buf, LEN));
	EXPECT_EQ(0, writes(self, PAGE, self->want));
	EXPECT_EQ(self->topo->route, self->last.route[0]);
	EXPECT_TRUE(peer_page_is(self->mem, 0, self->buf + PAGE, self->want));
}

/* One page is migrated, the others stay. */
TEST_F(region, touched_by_cpu)
{
	buf_mapped(_metadata, self);
	if (!self->topo->reachable)
		SKIP(return, "no alias is usable here");
	peer_read(self->buf + 2 * PAGE);
	EXPECT_EQ(NR - 1, mapped(self));
	EXPECT_EQ(0, reads(self, PAGE, self->want + PAGE));
	EXPECT_EQ(0, self->last.faults);
	EXPECT_EQ(1, self->last.invalidated);
	EXPECT_EQ(0, reads(self, 2 * PAGE, self->want + 2 * PAGE));
	EXPECT_EQ(1, self->last.faults);
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
}

/*
 * An alias that is revoked stays mapped until the pages are evicted, even if
 * the region is looked up again; no page is added.
 */
TEST_F(region, revoked)
{
	uint64_t addr;

	buf_in(_metadata, self);
	if (!self->topo->reachable)
		SKIP(return, "no alias is usable here");
	ASSERT_EQ(0, map_region(self, self->buf, LEN, 0));
	ASSERT_EQ(0, prefetch(self, 0, 2 * PAGE, PEER_EDU_WRITE));
	addr = self->last.dma_addr[1];
	ASSERT_EQ(0, peer_revoke_only(self->mem));

	ASSERT_EQ(0, prefetch(self, 0, LEN, PEER_EDU_SNAPSHOT));
	EXPECT_EQ(2, self->last.mapped);
	EXPECT_EQ(addr, self->last.dma_addr[1]);
	EXPECT_EQ(0, writes(self, PAGE, self->want));
	EXPECT_EQ(0, self->last.faults);
	EXPECT_TRUE(peer_page_is(self->mem, 0, self->buf + PAGE, self->want));
	EXPECT_EQ(0, reads(self, 3 * PAGE, self->want + 3 * PAGE));
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
	EXPECT_EQ(self->before.revoked + 1, peer_info(self->mem).revoked);

	ASSERT_EQ(NR - 1, peer_evict(self->mem));
	/* the last page, and the first, which this maps again */
	EXPECT_EQ(2, mapped(self));
	ASSERT_EQ(0, peer_publish(self->mem, self->before.size, 0));
	ASSERT_EQ(NR, peer_to_dev_small(self->mem, self->buf, LEN));
	ASSERT_EQ(0, prefetch(self, 0, LEN, PEER_EDU_WRITE));
	EXPECT_EQ(self->topo->route, self->last.route[0])
		TH_LOG("the region has given up for good");
	EXPECT_EQ(0, memcmp(self->buf + PAGE, self->want, PAGE));
}

/* An owner that ends the access removes the mappings, and leaves the pages. */
TEST_F(region, ended)
{
	buf_mapped(_metadata, self);
	if (!self->topo->reachable)
		SKIP(return, "no alias is usable here");
	ASSERT_EQ(0, peer_end(self->mem));
	EXPECT_EQ(NR, peer_info(self->mem).pages);
	EXPECT_EQ(0, reads(self, PAGE, self->want + PAGE));
	EXPECT_EQ(1, self->last.faults);
	EXPECT_EQ(1, self->last.mapped);
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
	EXPECT_EQ(NR - 1, peer_info(self->mem).pages);

	ASSERT_EQ(NR - 1, peer_evict(self->mem));
	ASSERT_EQ(0, peer_publish(self->mem, self->before.size, 0));
}

/* Regions that have nothing of a device do not notice its reset. */
TEST_F(region, other_ended)
{
	int other;

	buf_mapped(_metadata, self);
	if (!self->topo->reachable)
		SKIP(return, "no alias is usable here");
	other = peer_open("mem", 1);
	if (other < 0)
		SKIP(return, "no /dev/peer_mem1");
	ASSERT_EQ(0, peer_publish(other, peer_info(other).size, 0));
	ASSERT_EQ(0, peer_end(other));
	EXPECT_EQ(NR, mapped(self));
	EXPECT_EQ(0, reads(self, PAGE, self->want + PAGE));
	EXPECT_EQ(0, self->last.faults);
	EXPECT_EQ(self->topo->route, self->last.route[0]);
	ASSERT_EQ(0, peer_publish(other, peer_info(other).size, 0));
	close(other);
}

TEST_F(region, unmapped)
{
	buf_mapped(_metadata, self);
	ASSERT_EQ(0, munmap(self->buf + PAGE, 2 * PAGE));
	EXPECT_EQ(NR - 2, mapped(self));
	EXPECT_EQ(-EFAULT, reads(self, PAGE, self->want));
	EXPECT_EQ(0, reads(self, 3 * PAGE, self->want + 3 * PAGE));
	EXPECT_EQ(0, self->last.faults);
}

TEST_F(region, read_only)
{
	buf_mapped(_metadata, self);
	ASSERT_EQ(0, mprotect(self->buf, LEN, PROT_READ));
	EXPECT_EQ(-EPERM, writes(self, 0, self->want + PAGE));
	EXPECT_EQ(0, reads(self, 0, self->want));
}

/* A page that is missing is faulted, and its neighbours stay where they are. */
TEST_F(region, neighbours_stay)
{
	buf_in(_metadata, self);
	if (!self->topo->reachable)
		SKIP(return, "no alias is usable here");
	ASSERT_EQ(0, madvise(self->buf + PAGE, PAGE, MADV_DONTNEED));
	ASSERT_EQ(0, map_region(self, self->buf, LEN, 0));
	ASSERT_EQ(0, prefetch(self, 0, LEN, PEER_EDU_WRITE));
	EXPECT_EQ(self->topo->route, self->last.route[0]);
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[1]);
	EXPECT_EQ(NR, self->last.mapped);
	EXPECT_EQ(NR - 1, peer_resident(self->mem, self->buf, LEN));
}

/* A device without IBK_ODP_ALIAS gets no alias. */
TEST_F(region, no_alias_asked)
{
	buf_in(_metadata, self);
	ASSERT_EQ(0, map_region(self, self->buf, LEN, PEER_EDU_NO_ALIAS));
	ASSERT_EQ(0, prefetch(self, 0, LEN, PEER_EDU_SNAPSHOT));
	EXPECT_EQ(0, self->last.mapped);
	EXPECT_EQ(0, reads(self, 0, self->want));
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
	EXPECT_EQ(self->before.mapped, peer_info(self->mem).mapped);
	EXPECT_EQ(NR - 1, peer_resident(self->mem, self->buf, LEN));
}

/* What a registration does: nothing is faulted, nothing moves. */
TEST_F(region, snapshot)
{
	struct peer_mem_info now;

	buf_in(_metadata, self);
	munmap(self->buf + PAGE, PAGE);
	ASSERT_EQ(0, map_region(self, self->buf, LEN, 0));
	ASSERT_EQ(0, prefetch(self, 0, LEN, PEER_EDU_SNAPSHOT));
	EXPECT_EQ(self->topo->reachable ? NR - 1 : 0, self->last.mapped);
	EXPECT_EQ(PEER_EDU_NONE, self->last.route[1]);
	now = peer_info(self->mem);
	EXPECT_EQ(self->before.moved_out, now.moved_out);
	EXPECT_EQ(self->before.faults, now.faults);
}

/* Either device may be unbound while pages are mapped. */
TEST_F(region, unbind)
{
	char name[32], client[32];

	ASSERT_EQ(0, peer_name("mem", 0, name, sizeof(name)));
	ASSERT_EQ(0, peer_name("edu", 0, client, sizeof(client)));
	buf_mapped(_metadata, self);
	ASSERT_EQ(0, peer_bind("mem", name, false));
	EXPECT_EQ(0, reads(self, 0, self->want));
	EXPECT_EQ(PEER_EDU_RAM, self->last.route[0]);
	close(self->mem);
	ASSERT_EQ(0, peer_bind("mem", name, true));
	self->mem = peer_open("mem", 0);
	ASSERT_LE(0, self->mem);

	self->before = peer_info(self->mem);
	buf_mapped(_metadata, self);
	ASSERT_EQ(0, peer_bind("edu", client, false));
	EXPECT_EQ(-ENODEV, use(self, 0, PAGE, 0));
	ASSERT_EQ(0, peer_bind("edu", client, true));
	EXPECT_EQ(-ENODEV, use(self, 0, PAGE, 0));
}

/* A thread that disturbs for as long as a test runs. */

static pthread_t disturb(struct _test_data_region *self, void *(*what)(void *))
{
	pthread_t thread;

	self->stop = false;
	return pthread_create(&thread, NULL, what, self) ? 0 : thread;
}

static void leave_alone(struct _test_data_region *self, pthread_t thread)
{
	__atomic_store_n(&self->stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static bool stopped(struct _test_data_region *self)
{
	return __atomic_load_n(&self->stop, __ATOMIC_RELAXED);
}

/* Two seconds, and at least a few times. */
static bool go_on(time_t end, unsigned int done)
{
	return done < 20 || time(NULL) < end;
}

static void *revoke_about(void *data)
{
	struct _test_data_region *self = data;

	while (!stopped(self)) {
		peer_to_dev(self->mem, self->buf, LEN);
		usleep(500);
		peer_revoke_only(self->mem);
		peer_publish(self->mem, self->before.size, 0);
	}
	return NULL;
}

/* However often the alias is revoked at a bad moment, nothing fails. */
TEST_F_TIMEOUT(region, revoke_under_load, 120)
{
	unsigned int i, failed = 0, by_alias = 0;
	pthread_t thread = disturb(self, revoke_about);
	time_t end = time(NULL) + 3;

	memcpy(self->buf, self->want, LEN);
	for (i = 0; go_on(end, i); i++) {
		failed += !!map_region(self, self->buf, LEN, 0);
		failed += !!prefetch(self, 0, LEN, PEER_EDU_SNAPSHOT);
		by_alias += self->last.route[0] == self->topo->route;
		failed += !!prefetch(self, 0, LEN, PEER_EDU_WRITE);
		failed += self->last.mapped != NR;
	}
	leave_alone(self, thread);
	TH_LOG("%u rounds, %u began by alias, %llu aliases lost", i, by_alias,
	       (unsigned long long)(peer_info(self->mem).map_failed -
				    self->before.map_failed));
	EXPECT_EQ(0, failed);
	EXPECT_EQ(0, reads(self, PAGE, self->want + PAGE));
}

static void *discard_about(void *data)
{
	struct _test_data_region *self = data;
	unsigned int i;

	for (i = 0; !stopped(self); i++) {
		madvise(self->huge + i % PARTS * HUGE + i % 512 * PAGE, PAGE,
			MADV_DONTNEED);
		usleep(1000);
	}
	return NULL;
}

/* A long range takes several walks; in the end all is mapped, or it fails. */
TEST_F_TIMEOUT(region, long_range, 120)
{
	unsigned int i, done = 0, missing = 0;
	time_t end = time(NULL) + 3;
	pthread_t thread;

	ASSERT_EQ(0, madvise(self->huge, LONG, MADV_NOHUGEPAGE));
	ASSERT_EQ(0, map_region(self, self->huge, LONG, 0));
	thread = disturb(self, discard_about);
	for (i = 0; go_on(end, i); i++) {
		int err = prefetch(self, 0, LONG, PEER_EDU_WRITE);

		if (err == -EBUSY)
			continue;
		ASSERT_EQ(0, err);
		missing += self->last.mapped != LONG / PAGE;
		done++;
	}
	leave_alone(self, thread);
	TH_LOG("%u rounds, %u to the end", i, done);
	EXPECT_EQ(0, missing);
	EXPECT_LT(0, done);
	EXPECT_LT(0, self->last.invalidated) TH_LOG("nobody disturbed");
}

/* Pages of 2 MiB */

static void huge_in_memory(struct __test_metadata *_metadata,
			   struct _test_data_region *self, size_t len)
{
	size_t at;

	for (at = 0; at < len; at += PAGE)
		peer_fill(self->huge + at, PAGE, 6 + at / PAGE);
	ASSERT_EQ(0, map_region(self, self->huge, len, PEER_EDU_HUGE));
}

/* Each page of the region is the memory that it should be. */
TEST_F(region, huge)
{
	const size_t at = HUGE + 100 * PAGE;
	char want[PAGE];

	huge_in_memory(_metadata, self, 2 * HUGE);
	ASSERT_EQ(0, prefetch(self, 0, 2 * HUGE, PEER_EDU_WRITE));
	EXPECT_EQ(2, self->last.mapped);
	peer_fill(want, PAGE, 6 + at / PAGE);
	EXPECT_EQ(0, reads(self, at, want));
	EXPECT_EQ(0, self->last.faults);
	EXPECT_EQ(0, writes(self, at + PAGE, want));
	EXPECT_EQ(0, memcmp(self->huge + at + PAGE, want, PAGE));
}

TEST_F(region, huge_by_alias)
{
	const size_t at = HUGE + 100 * PAGE;
	char want[PAGE];

	huge_in_memory(_metadata, self, 2 * HUGE);
	ASSERT_EQ(2 * PAGES_PER_HUGE,
		  peer_to_dev(self->mem, self->huge, 2 * HUGE));
	ASSERT_EQ(0, prefetch(self, 0, 2 * HUGE, PEER_EDU_WRITE));
	EXPECT_EQ(2, self->last.mapped);
	EXPECT_EQ(self->topo->route, self->last.route[1]);
	peer_fill(want, PAGE, 6 + at / PAGE);
	EXPECT_EQ(0, reads(self, at, want));
	EXPECT_EQ(0, writes(self, at + PAGE, want));
	EXPECT_EQ(0, memcmp(self->huge + at + PAGE, want, PAGE));
}

/* A page is unmapped as a whole, wherever an invalidation begins or ends. */
TEST_F(region, huge_partly_unmapped)
{
	huge_in_memory(_metadata, self, 3 * HUGE);
	ASSERT_EQ(0, prefetch(self, 0, 3 * HUGE, PEER_EDU_WRITE));
	ASSERT_EQ(3, self->last.mapped);
	ASSERT_EQ(0, madvise(self->huge + 2 * HUGE - PAGE, 2 * PAGE,
			     MADV_DONTNEED));
	EXPECT_EQ(1, mapped(self));
	/* the rest of it is there, but in small pages */
	EXPECT_EQ(-EINVAL, prefetch(self, HUGE, 8, PEER_EDU_WRITE));
	EXPECT_EQ(-EINVAL, prefetch(self, 2 * HUGE, 8, PEER_EDU_WRITE));
	EXPECT_EQ(0, prefetch(self, 0, 8, PEER_EDU_WRITE));
}

/* HUGE of memory, in small pages or in a huge one, and nothing around it. */
static void *map_aligned(bool huge)
{
	char *whole = peer_map(2 * HUGE);
	char *addr = (char *)(((uintptr_t)whole + HUGE - 1) & ~(HUGE - 1));

	munmap(whole, addr - whole);
	munmap(addr + HUGE, whole + HUGE - addr);
	madvise(addr, HUGE, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	*(volatile char *)addr = 1;
	return addr;
}

/* Put small pages, and then a huge one again, in the place of a huge one. */
static void *replace_about(void *data)
{
	struct _test_data_region *self = data;
	unsigned int i;

	for (i = 0; !stopped(self); i++) {
		mremap(map_aligned(i & 1), HUGE, HUGE,
		       MREMAP_MAYMOVE | MREMAP_FIXED, self->huge);
		usleep(200);
	}
	return NULL;
}

/* A small page is never taken for a huge one, however often they change. */
TEST_F_TIMEOUT(region, huge_replaced, 120)
{
	unsigned int i, small = 0, huge = 0, too_small = 0;
	time_t end = time(NULL) + 5;
	pthread_t thread;

	ASSERT_EQ(0, map_region(self, self->huge, HUGE, PEER_EDU_HUGE));
	thread = disturb(self, replace_about);
	for (i = 0; go_on(end, i); i++) {
		switch (prefetch(self, 0, 8, PEER_EDU_WRITE)) {
		case 0:
			huge++;
			break;
		case -EPROTO:
			too_small++;
			break;
		default:
			small++;
		}
	}
	leave_alone(self, thread);
	TH_LOG("%u times huge, %u times small", huge, small);
	EXPECT_EQ(0, too_small);
	EXPECT_LT(0, huge);
	EXPECT_LT(0, small);
}

TEST_HARNESS_MAIN
