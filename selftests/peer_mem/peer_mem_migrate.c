// SPDX-License-Identifier: GPL-2.0
/*
 * Migration of process memory to a peer memory device and back, and what else
 * happens to such memory: forks, partial unmaps, faults, eviction, unbinding.
 * Needs one ivshmem-plain device that nothing else uses.
 */
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "peer_mem.h"

#define NR	16
#define LEN	(NR * PAGE)

FIXTURE(peer) {
	int fd;
	char *buf;		/* 16 pages */
	char *want;		/* what they should hold */
	char *huge;		/* 2 MiB */
	char *huge_want;
	void *whole;
	struct peer_mem_info before;
};

FIXTURE_SETUP(peer) {
	unsigned int i;

	self->fd = peer_open("mem", 0);
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
	self->buf = peer_map(LEN);
	self->want = peer_map(LEN);
	self->huge = peer_map_huge(HUGE, &self->whole);
	self->huge_want = peer_map(HUGE);
	ASSERT_NE(NULL, self->buf);
	ASSERT_NE(NULL, self->want);
	ASSERT_NE(NULL, self->huge);
	ASSERT_NE(NULL, self->huge_want);
	peer_fill(self->want, LEN, 1);
	peer_fill(self->huge_want, HUGE, 2);

	/* what an earlier test left */
	for (i = PEER_MEM_FAIL_DEV; i <= PEER_MEM_FAIL_SYS_HUGE; i++)
		ASSERT_EQ(0, peer_inject(self->fd, i, 0));
	ASSERT_LE(0, peer_evict(self->fd));
	self->before = peer_info(self->fd);
	ASSERT_EQ(0, self->before.pages);
	ASSERT_EQ(0, self->before.huge);
	ASSERT_EQ(0, peer_publish(self->fd, self->before.size, 0));
}

FIXTURE_TEARDOWN(peer) {
	if (self->fd < 0)
		return;
	munmap(self->buf, LEN);
	munmap(self->whole, 2 * HUGE);
	/* whatever happened, nothing may leak */
	EXPECT_EQ(0, peer_info(self->fd).pages);
	EXPECT_EQ(0, peer_info(self->fd).huge);
	close(self->fd);
}

/* Put both of the fixture's ranges, with data, in the device. */
static void buf_in(struct __test_metadata *_metadata,
		   struct _test_data_peer *self)
{
	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(NR, peer_to_dev(self->fd, self->buf, LEN));
	ASSERT_EQ(NR, peer_resident(self->fd, self->buf, LEN));
}

static void huge_in(struct __test_metadata *_metadata,
		    struct _test_data_peer *self)
{
	memcpy(self->huge, self->huge_want, HUGE);
	ASSERT_EQ(PAGES_PER_HUGE, peer_to_dev(self->fd, self->huge, HUGE));
	ASSERT_NE(0, peer_where(self->fd, self->huge) & PEER_MEM_HUGE);
	ASSERT_EQ(1, peer_info(self->fd).huge);
}

/* The device holds the right data for each page of a range. */
static void check_device(struct __test_metadata *_metadata, int fd, char *addr,
			 char *want, size_t len)
{
	size_t i;

	for (i = 0; i < len; i += PAGE)
		ASSERT_TRUE(peer_page_is(fd, 0, addr + i, want + i))
			TH_LOG("page %zu", i / PAGE);
}

TEST_F(peer, small_round_trip)
{
	struct peer_mem_info info;

	buf_in(_metadata, self);
	check_device(_metadata, self->fd, self->buf, self->want, LEN);
	info = peer_info(self->fd);
	EXPECT_EQ(NR, info.pages);
	EXPECT_EQ(0, info.huge);
	EXPECT_EQ(NR, info.moved_in - self->before.moved_in);

	EXPECT_EQ(NR, peer_to_sys(self->fd, self->buf, LEN));
	EXPECT_EQ(0, peer_resident(self->fd, self->buf, LEN));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
	info = peer_info(self->fd);
	EXPECT_EQ(0, info.pages);
	EXPECT_EQ(NR, info.moved_out - self->before.moved_out);
	EXPECT_EQ(0, info.faults - self->before.faults);
}

TEST_F(peer, already_there)
{
	buf_in(_metadata, self);
	EXPECT_EQ(0, peer_to_dev(self->fd, self->buf, LEN));
	EXPECT_EQ(NR, peer_resident(self->fd, self->buf, LEN));
	EXPECT_EQ(0, peer_to_sys(self->fd, self->want, LEN));
}

/* Untouched memory reads as zeroes, whatever the device held before. */
TEST_F(peer, untouched_is_zero)
{
	char zero[PAGE] = {};
	size_t i;

	ASSERT_EQ(0, peer_poke(self->fd, 0, self->huge_want, HUGE));
	ASSERT_EQ(NR, peer_to_dev(self->fd, self->buf, LEN));
	for (i = 0; i < LEN; i += PAGE)
		ASSERT_TRUE(peer_page_is(self->fd, 0, self->buf + i, zero));
	for (i = 0; i < LEN; i++)
		ASSERT_EQ(0, self->buf[i]);
}

TEST_F(peer, huge_untouched_is_zero)
{
	size_t i;

	ASSERT_EQ(0, peer_poke(self->fd, 0, self->huge_want, HUGE));
	ASSERT_EQ(PAGES_PER_HUGE, peer_to_dev(self->fd, self->huge, HUGE));
	EXPECT_NE(0, peer_where(self->fd, self->huge) & PEER_MEM_HUGE);
	for (i = 0; i < HUGE; i++)
		ASSERT_EQ(0, self->huge[i]);
}

/* A touch brings one page back, with what was written in the device. */
TEST_F(peer, cpu_fault)
{
	uint64_t where, value = 0x1122334455667788;

	buf_in(_metadata, self);
	where = peer_where(self->fd, self->buf + PAGE);
	ASSERT_NE(PEER_MEM_NOWHERE, where);
	ASSERT_EQ(0, peer_poke(self->fd, (where & PEER_MEM_OFFSET_MASK) + 8,
			       &value, sizeof(value)));
	EXPECT_EQ(value, peer_read(self->buf + PAGE + 8));
	EXPECT_EQ(1, peer_info(self->fd).faults - self->before.faults);
	EXPECT_EQ(PEER_MEM_NOWHERE, peer_where(self->fd, self->buf + PAGE));
	EXPECT_EQ(NR - 1, peer_resident(self->fd, self->buf, LEN));
	*(uint64_t *)(self->buf + PAGE + 8) =
		*(uint64_t *)(self->want + PAGE + 8);
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
}

TEST_F(peer, huge_round_trip)
{
	uint64_t offsets[PAGES_PER_HUGE];
	unsigned int i;

	huge_in(_metadata, self);
	ASSERT_EQ(0, peer_lookup(self->fd, self->huge, HUGE, offsets));
	for (i = 0; i < PAGES_PER_HUGE; i++)
		ASSERT_EQ(offsets[0] + i * PAGE, offsets[i]);
	EXPECT_EQ(0, offsets[0] & PEER_MEM_OFFSET_MASK & (HUGE - 1));
	check_device(_metadata, self->fd, self->huge, self->huge_want, HUGE);
	EXPECT_EQ(PAGES_PER_HUGE, peer_to_sys(self->fd, self->huge, HUGE));
	EXPECT_EQ(0, peer_info(self->fd).pages);
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

/* One touch, one fault: all of a huge page comes back. */
TEST_F(peer, huge_cpu_fault)
{
	huge_in(_metadata, self);
	EXPECT_EQ(peer_read(self->huge_want + 5 * PAGE + 8),
		  peer_read(self->huge + 5 * PAGE + 8));
	EXPECT_EQ(0, peer_info(self->fd).pages);
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
	EXPECT_EQ(1, peer_info(self->fd).faults - self->before.faults);
}

/* Asked for small pages, the driver has a huge one split. */
TEST_F(peer, huge_as_small)
{
	memcpy(self->huge, self->huge_want, HUGE);
	ASSERT_EQ(PAGES_PER_HUGE,
		  peer_to_dev_small(self->fd, self->huge, HUGE));
	EXPECT_EQ(0, peer_where(self->fd, self->huge) & PEER_MEM_HUGE);
	EXPECT_EQ(0, peer_info(self->fd).huge);
	check_device(_metadata, self->fd, self->huge, self->huge_want, HUGE);
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

/* Half of a huge page is unmapped; the rest stays there until touched. */
TEST_F(peer, huge_partial_munmap)
{
	huge_in(_metadata, self);
	ASSERT_EQ(0, munmap(self->huge, HUGE / 2));
	EXPECT_EQ(PAGES_PER_HUGE / 2,
		  peer_resident(self->fd, self->huge + HUGE / 2, HUGE / 2));
	EXPECT_EQ(0, peer_where(self->fd, self->huge + HUGE / 2) &
		     PEER_MEM_HUGE);
	check_device(_metadata, self->fd, self->huge + HUGE / 2,
		     self->huge_want + HUGE / 2, HUGE / 2);
	EXPECT_EQ(0, memcmp(self->huge + HUGE / 2, self->huge_want + HUGE / 2,
			    HUGE / 2));
	EXPECT_EQ(0, peer_info(self->fd).pages);
}

TEST_F(peer, huge_partial_mprotect)
{
	huge_in(_metadata, self);
	ASSERT_EQ(0, mprotect(self->huge + PAGE, PAGE, PROT_READ));
	EXPECT_EQ(PAGES_PER_HUGE, peer_resident(self->fd, self->huge, HUGE));
	EXPECT_EQ(0, peer_where(self->fd, self->huge + PAGE) &
		     PEER_MEM_WRITABLE);
	EXPECT_NE(0, peer_where(self->fd, self->huge + 2 * PAGE) &
		     PEER_MEM_WRITABLE);
	EXPECT_EQ(peer_read(self->huge_want + PAGE),
		  peer_read(self->huge + PAGE));
	EXPECT_EQ(PAGES_PER_HUGE - 1,
		  peer_resident(self->fd, self->huge, HUGE));
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

TEST_F(peer, huge_partial_eviction)
{
	huge_in(_metadata, self);
	ASSERT_EQ(0, munmap(self->huge, PAGE));
	EXPECT_LE(PAGES_PER_HUGE - 1, peer_evict(self->fd));
	EXPECT_EQ(0, peer_info(self->fd).pages);
	EXPECT_EQ(0, memcmp(self->huge + PAGE, self->huge_want + PAGE,
			    HUGE - PAGE));
}

TEST_F(peer, dontneed_frees)
{
	buf_in(_metadata, self);
	huge_in(_metadata, self);
	ASSERT_EQ(0, madvise(self->buf, LEN, MADV_DONTNEED));
	EXPECT_EQ(PAGES_PER_HUGE, peer_info(self->fd).pages);
	ASSERT_EQ(0, madvise(self->huge, HUGE, MADV_DONTNEED));
	EXPECT_EQ(0, peer_info(self->fd).pages);
	EXPECT_EQ(0, self->buf[0]);
}

TEST_F(peer, mremap_keeps_pages)
{
	void *whole, *to = peer_map_huge(HUGE, &whole);

	ASSERT_NE(NULL, to);
	huge_in(_metadata, self);
	to = mremap(self->huge, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	ASSERT_NE(MAP_FAILED, to);
	EXPECT_EQ(PAGES_PER_HUGE, peer_resident(self->fd, to, HUGE));
	check_device(_metadata, self->fd, to, self->huge_want, HUGE);
	EXPECT_EQ(0, memcmp(to, self->huge_want, HUGE));
	munmap(whole, 2 * HUGE);
}

/* Run @fn in a child. Returns what the child returns, or -1 if it crashed. */
static int in_child(struct _test_data_peer *self,
		    int (*fn)(struct _test_data_peer *self))
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(fn(self));
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static int write_both(struct _test_data_peer *self)
{
	if (memcmp(self->buf, self->want, LEN) ||
	    memcmp(self->huge, self->huge_want, HUGE))
		return 1;
	memset(self->buf, 0x55, LEN);
	memset(self->huge, 0x55, HUGE);
	return 0;
}

/* After a fork the pages are shared, read-only, until they are written to. */
TEST_F(peer, fork_copies_on_write)
{
	buf_in(_metadata, self);
	huge_in(_metadata, self);
	EXPECT_NE(0, peer_where(self->fd, self->buf) & PEER_MEM_WRITABLE);
	EXPECT_EQ(0, in_child(self, write_both));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

static int look_read_only(struct _test_data_peer *self)
{
	uint64_t small = peer_where(self->fd, self->buf);
	uint64_t huge = peer_where(self->fd, self->huge);

	return small == PEER_MEM_NOWHERE || huge == PEER_MEM_NOWHERE ||
	       (small & PEER_MEM_WRITABLE) || (huge & PEER_MEM_WRITABLE);
}

TEST_F(peer, fork_shares_read_only)
{
	buf_in(_metadata, self);
	huge_in(_metadata, self);
	EXPECT_EQ(0, in_child(self, look_read_only));
	EXPECT_EQ(0, look_read_only(self));
	check_device(_metadata, self->fd, self->buf, self->want, LEN);
}

static int evict_and_look(struct _test_data_peer *self)
{
	if (peer_evict(self->fd) < 0)
		return 1;
	if (peer_info(self->fd).pages)
		return 2;
	return write_both(self);
}

TEST_F(peer, fork_eviction)
{
	buf_in(_metadata, self);
	huge_in(_metadata, self);
	EXPECT_EQ(0, in_child(self, evict_and_look));
	EXPECT_EQ(0, peer_resident(self->fd, self->huge, HUGE));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

static int all_in(struct _test_data_peer *self)
{
	return peer_to_dev(self->fd, self->buf, LEN) != NR ||
	       peer_to_dev(self->fd, self->huge, HUGE) != PAGES_PER_HUGE;
}

TEST_F(peer, exit_frees)
{
	int i;

	EXPECT_EQ(0, in_child(self, all_in));
	/* the last references may be dropped a little after the process ends */
	for (i = 0; i < 1000 && peer_info(self->fd).pages; i++)
		usleep(1000);
	EXPECT_EQ(0, peer_info(self->fd).pages);
}

TEST_F(peer, eviction)
{
	struct peer_mem_info info;

	buf_in(_metadata, self);
	huge_in(_metadata, self);
	EXPECT_EQ(NR + PAGES_PER_HUGE, peer_evict(self->fd));
	info = peer_info(self->fd);
	EXPECT_EQ(0, info.pages);
	EXPECT_EQ(NR + PAGES_PER_HUGE, info.evicted - self->before.evicted);
	EXPECT_EQ(0, info.faults - self->before.faults);
	EXPECT_EQ(0, peer_resident(self->fd, self->buf, LEN));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

/*
 * A free huge page must not hide the small ones that come after it in the same
 * place, nor they the next huge one.
 */
TEST_F(peer, eviction_after_reuse)
{
	huge_in(_metadata, self);
	EXPECT_EQ(PAGES_PER_HUGE, peer_to_sys(self->fd, self->huge, HUGE));
	buf_in(_metadata, self);
	EXPECT_EQ(PAGE, peer_to_sys(self->fd, self->buf, PAGE) * PAGE);
	EXPECT_EQ(NR - 1, peer_evict(self->fd));
	huge_in(_metadata, self);
	EXPECT_EQ(PAGES_PER_HUGE, peer_evict(self->fd));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

TEST_F(peer, revoke_evicts)
{
	uint64_t revokes = peer_info(self->fd).revokes;
	struct peer_mem_info info;

	buf_in(_metadata, self);
	EXPECT_EQ(NR, peer_revoke(self->fd));
	info = peer_info(self->fd);
	EXPECT_EQ(0, info.visible);
	EXPECT_EQ(0, info.pages);
	EXPECT_EQ(revokes + 1, info.revokes);
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));

	/* the pages can come back, but peers have no access */
	EXPECT_EQ(NR, peer_to_dev(self->fd, self->buf, LEN));
	EXPECT_EQ(NR, peer_revoke(self->fd));
	EXPECT_EQ(revokes + 1, peer_info(self->fd).revokes);
}

TEST_F(peer, publish_replaces)
{
	struct peer_mem_info info;

	buf_in(_metadata, self);
	EXPECT_EQ(0, peer_publish(self->fd, PAGE, PEER_MEM_PUBLISH_NO_CPU));
	info = peer_info(self->fd);
	EXPECT_EQ(PAGE, info.visible);
	EXPECT_EQ(0, info.pages);
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
}

TEST_F(peer, device_memory_short)
{
	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(0, peer_inject(self->fd, PEER_MEM_FAIL_DEV, 3));
	EXPECT_EQ(NR - 3, peer_to_dev_small(self->fd, self->buf, LEN));
	EXPECT_EQ(NR - 3, peer_resident(self->fd, self->buf, LEN));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
}

TEST_F(peer, device_huge_short)
{
	memcpy(self->huge, self->huge_want, HUGE);
	ASSERT_EQ(0, peer_inject(self->fd, PEER_MEM_FAIL_DEV_HUGE, 1));
	EXPECT_EQ(PAGES_PER_HUGE, peer_to_dev(self->fd, self->huge, HUGE));
	EXPECT_EQ(0, peer_info(self->fd).huge);
	check_device(_metadata, self->fd, self->huge, self->huge_want, HUGE);
}

TEST_F(peer, device_huge_short_untouched)
{
	ASSERT_EQ(0, peer_inject(self->fd, PEER_MEM_FAIL_DEV_HUGE, 1));
	EXPECT_EQ(PAGES_PER_HUGE, peer_to_dev(self->fd, self->huge, HUGE));
	EXPECT_EQ(0, peer_info(self->fd).huge);
	EXPECT_EQ(0, self->huge[HUGE - 1]);
}

/* Neither a huge page nor the first small one: all stays where it was. */
TEST_F(peer, device_nothing_for_huge)
{
	memcpy(self->huge, self->huge_want, HUGE);
	ASSERT_EQ(0, peer_inject(self->fd, PEER_MEM_FAIL_DEV, 2));
	EXPECT_EQ(0, peer_to_dev(self->fd, self->huge, HUGE));
	EXPECT_EQ(0, peer_info(self->fd).pages);
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

TEST_F(peer, system_memory_short)
{
	buf_in(_metadata, self);
	ASSERT_EQ(0, peer_inject(self->fd, PEER_MEM_FAIL_SYS, 2));
	EXPECT_EQ(NR - 2, peer_to_sys(self->fd, self->buf, LEN));
	EXPECT_EQ(2, peer_resident(self->fd, self->buf, LEN));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
}

TEST_F(peer, system_huge_short)
{
	huge_in(_metadata, self);
	ASSERT_EQ(0, peer_inject(self->fd, PEER_MEM_FAIL_SYS_HUGE, 1));
	EXPECT_EQ(PAGES_PER_HUGE, peer_to_sys(self->fd, self->huge, HUGE));
	EXPECT_EQ(0, peer_info(self->fd).pages);
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

/* A fault that gets no huge page is tried again. */
TEST_F(peer, system_huge_short_in_fault)
{
	huge_in(_metadata, self);
	ASSERT_EQ(0, peer_inject(self->fd, PEER_MEM_FAIL_SYS_HUGE, 1));
	EXPECT_EQ(peer_read(self->huge_want + 3 * PAGE),
		  peer_read(self->huge + 3 * PAGE));
	EXPECT_EQ(2, peer_info(self->fd).faults - self->before.faults);
	EXPECT_EQ(0, peer_info(self->fd).pages);
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

TEST_F(peer, system_huge_short_in_eviction)
{
	huge_in(_metadata, self);
	ASSERT_EQ(0, peer_inject(self->fd, PEER_MEM_FAIL_SYS_HUGE, 1));
	EXPECT_EQ(PAGES_PER_HUGE, peer_evict(self->fd));
	EXPECT_EQ(0, peer_info(self->fd).pages);
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
}

/* More than the device holds: it fills up, and the rest stays outside. */
TEST_F_TIMEOUT(peer, device_full, 120)
{
	size_t len = self->before.size + 2 * HUGE;
	uint64_t pages = self->before.size / PAGE;
	void *whole, *addr;

	if (self->before.size > 256UL << 20)
		SKIP(return, "the device is too big for this test");
	addr = peer_map_huge(len, &whole);
	ASSERT_NE(NULL, addr);
	EXPECT_EQ(pages, peer_to_dev(self->fd, addr, len));
	EXPECT_EQ(pages, peer_info(self->fd).pages);
	EXPECT_EQ(0, peer_to_dev(self->fd, self->buf, LEN));
	EXPECT_EQ(pages, peer_evict(self->fd));
	munmap(whole, len + HUGE);
}

TEST_F(peer, hole_in_range)
{
	struct peer_mem_migrate arg = {
		.addr = (uintptr_t)self->buf,
		.len = LEN,
	};

	memcpy(self->buf, self->want, LEN);
	ASSERT_EQ(0, munmap(self->buf + 4 * PAGE, PAGE));
	EXPECT_EQ(-ENOENT, peer_ioctl(self->fd, PEER_MEM_TO_DEV, &arg));
	EXPECT_EQ(4, arg.moved);
	EXPECT_EQ(4, peer_info(self->fd).pages);
	EXPECT_EQ(0, memcmp(self->buf, self->want, 4 * PAGE));
}

TEST_F(peer, special_mapping)
{
	struct peer_mem_migrate arg = {
		.addr = getauxval(AT_SYSINFO_EHDR),
		.len = PAGE,
	};

	if (!arg.addr)
		SKIP(return, "no vdso");
	EXPECT_EQ(-EOPNOTSUPP, peer_ioctl(self->fd, PEER_MEM_TO_DEV, &arg));
}

TEST_F(peer, file_pages_stay)
{
	int fd = memfd_create("peer", 0);
	char *addr;

	ASSERT_EQ(0, ftruncate(fd, PAGE));
	addr = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, addr);
	*addr = 1;
	EXPECT_EQ(0, peer_to_dev(self->fd, addr, PAGE));
	EXPECT_EQ(1, *addr);
	munmap(addr, PAGE);
	close(fd);
}

/* A device neither moves nor reports pages of another one. */
TEST_F(peer, other_device)
{
	int other = peer_open("mem", 1);

	if (other < 0)
		SKIP(return, "no /dev/peer_mem1");
	buf_in(_metadata, self);
	EXPECT_EQ(0, peer_to_dev(other, self->buf, LEN));
	EXPECT_EQ(0, peer_to_sys(other, self->buf, LEN));
	EXPECT_EQ(0, peer_resident(other, self->buf, LEN));
	EXPECT_EQ(NR, peer_resident(self->fd, self->buf, LEN));
	close(other);
}

/* Unbinding migrates all pages back; the open file is of no use any more. */
TEST_F(peer, unbind)
{
	struct peer_mem_info info;
	char name[32];
	int fd;

	ASSERT_EQ(0, peer_name("mem", 0, name, sizeof(name)));
	buf_in(_metadata, self);
	huge_in(_metadata, self);
	ASSERT_EQ(0, peer_bind("mem", name, false));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
	EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
	EXPECT_EQ(-ENODEV, peer_ioctl(self->fd, PEER_MEM_INFO, &info));
	EXPECT_EQ(-ENODEV, peer_to_dev(self->fd, self->buf, LEN));
	EXPECT_EQ(-ENODEV, peer_evict(self->fd));

	ASSERT_EQ(0, peer_bind("mem", name, true));
	EXPECT_EQ(-ENODEV, peer_ioctl(self->fd, PEER_MEM_INFO, &info));
	fd = peer_open("mem", 0);
	ASSERT_LE(0, fd);
	close(self->fd);
	self->fd = fd;
	buf_in(_metadata, self);
	check_device(_metadata, self->fd, self->buf, self->want, LEN);
}

static void *move_about(void *data)
{
	struct _test_data_peer *self = data;
	size_t i;

	/* until the device is gone */
	while (peer_to_dev(self->fd, self->buf, LEN) >= 0 &&
	       peer_to_dev(self->fd, self->huge, HUGE) >= 0)
		for (i = 0; i < LEN; i += 2 * PAGE)
			peer_read(self->buf + i);
	return NULL;
}

TEST_F_TIMEOUT(peer, unbind_under_load, 120)
{
	pthread_t threads[2];
	char name[32];
	int i, j;

	ASSERT_EQ(0, peer_name("mem", 0, name, sizeof(name)));
	memcpy(self->buf, self->want, LEN);
	memcpy(self->huge, self->huge_want, HUGE);
	for (i = 0; i < 5; i++) {
		for (j = 0; j < 2; j++)
			ASSERT_EQ(0, pthread_create(&threads[j], NULL,
						    move_about, self));
		usleep(100000);
		ASSERT_EQ(0, peer_bind("mem", name, false));
		for (j = 0; j < 2; j++)
			pthread_join(threads[j], NULL);
		EXPECT_EQ(0, memcmp(self->buf, self->want, LEN));
		EXPECT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
		ASSERT_EQ(0, peer_bind("mem", name, true));
		close(self->fd);
		self->fd = peer_open("mem", 0);
		ASSERT_LE(0, self->fd);
	}
}

static void *evict_about(void *data)
{
	struct _test_data_peer *self = data;
	int i;

	for (i = 0; i < 20; i++)
		if (peer_evict(self->fd) < 0)
			return (void *)1;
	return NULL;
}

/* Faults, migrations and evictions of the same pages at once. */
TEST_F_TIMEOUT(peer, eviction_under_load, 120)
{
	pthread_t thread;
	void *failed;
	int i;

	memcpy(self->buf, self->want, LEN);
	memcpy(self->huge, self->huge_want, HUGE);
	ASSERT_EQ(0, pthread_create(&thread, NULL, evict_about, self));
	for (i = 0; i < 50; i++) {
		ASSERT_LE(0, peer_to_dev(self->fd, self->buf, LEN));
		ASSERT_LE(0, peer_to_dev(self->fd, self->huge, HUGE));
		ASSERT_EQ(0, memcmp(self->buf, self->want, LEN));
		ASSERT_EQ(0, memcmp(self->huge, self->huge_want, HUGE));
	}
	pthread_join(thread, &failed);
	EXPECT_EQ(NULL, failed);
}

TEST_HARNESS_MAIN
