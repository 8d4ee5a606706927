// SPDX-License-Identifier: GPL-2.0
/*
 * What the peer memory drivers refuse: one test for each clause of the
 * contract at the top of peer_test_uapi.h.
 */
#include "../kselftest_harness.h"
#include "peer_mem.h"

#define ADDR	0x10000000UL	/* nothing is there */
#define WRAP	(~0UL - PAGE + 1)

static int open_mem(void)
{
	munmap((void *)ADDR, PAGE);
	return peer_open("mem", 0);
}

FIXTURE(migrate) {
	int fd;
};

FIXTURE_VARIANT(migrate) {
	struct peer_mem_migrate arg;
	int err;
};

FIXTURE_VARIANT_ADD(migrate, flags) {
	.arg = { .addr = ADDR, .len = PAGE, .flags = 2 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(migrate, high_flag) {
	.arg = { .addr = ADDR, .len = PAGE, .flags = 1U << 31 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(migrate, pad) {
	.arg = { .addr = ADDR, .len = PAGE, .pad = 1 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(migrate, addr_not_aligned) {
	.arg = { .addr = ADDR + 8, .len = PAGE },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(migrate, len_not_aligned) {
	.arg = { .addr = ADDR, .len = PAGE + 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(migrate, len_zero) {
	.arg = { .addr = ADDR },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(migrate, len_too_long) {
	.arg = { .addr = ADDR, .len = PEER_MEM_MAX_LEN + PAGE },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(migrate, wraps) {
	.arg = { .addr = WRAP, .len = 2 * PAGE },
	.err = -EINVAL,
};

FIXTURE_SETUP(migrate) {
	self->fd = open_mem();
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
}

FIXTURE_TEARDOWN(migrate) {
	close(self->fd);
}

TEST_F(migrate, to_dev)
{
	struct peer_mem_migrate arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_MEM_TO_DEV, &arg));
}

TEST_F(migrate, to_sys)
{
	struct peer_mem_migrate arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_MEM_TO_SYS, &arg));
}

FIXTURE(empty) {
	int fd;
};

FIXTURE_VARIANT(empty) {
	struct peer_mem_evict arg;
	int err;
};

FIXTURE_VARIANT_ADD(empty, flags) {
	.arg = { .flags = 3 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(empty, pad) {
	.arg = { .pad = 1 },
	.err = -EINVAL,
};

FIXTURE_SETUP(empty) {
	self->fd = open_mem();
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
}

FIXTURE_TEARDOWN(empty) {
	close(self->fd);
}

TEST_F(empty, evict)
{
	struct peer_mem_evict arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_MEM_EVICT, &arg));
}

TEST_F(empty, revoke)
{
	struct peer_mem_evict arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_MEM_REVOKE, &arg));
}

FIXTURE(publish) {
	int fd;
};

FIXTURE_VARIANT(publish) {
	struct peer_mem_publish arg;
	int err;
};

FIXTURE_VARIANT_ADD(publish, flags) {
	.arg = { .visible = PAGE, .flags = 2 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(publish, pad) {
	.arg = { .visible = PAGE, .pad = 1 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(publish, nothing) {
	.arg = { .visible = 0 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(publish, not_aligned) {
	.arg = { .visible = PAGE + 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(publish, too_much) {
	.arg = { .visible = 1UL << 62 },
	.err = -EINVAL,
};

FIXTURE_SETUP(publish) {
	self->fd = open_mem();
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
}

FIXTURE_TEARDOWN(publish) {
	close(self->fd);
}

TEST_F(publish, publish)
{
	struct peer_mem_publish arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_MEM_PUBLISH, &arg));
}

FIXTURE(rw) {
	int fd;
};

FIXTURE_VARIANT(rw) {
	struct peer_mem_rw arg;
	int err;
};

FIXTURE_VARIANT_ADD(rw, offset_not_aligned) {
	.arg = { .offset = 4, .len = 8, .buf = ADDR },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(rw, len_not_aligned) {
	.arg = { .len = 4, .buf = ADDR },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(rw, len_zero) {
	.arg = { .buf = ADDR },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(rw, len_too_long) {
	.arg = { .len = PEER_MEM_MAX_RW + 8, .buf = ADDR },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(rw, wraps) {
	.arg = { .offset = WRAP, .len = 2 * PAGE, .buf = ADDR },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(rw, beyond) {
	.arg = { .offset = 1UL << 50, .len = 8, .buf = ADDR },
	.err = -ERANGE,
};

FIXTURE_VARIANT_ADD(rw, bad_buffer) {
	.arg = { .len = 8, .buf = ADDR },
	.err = -EFAULT,
};

FIXTURE_SETUP(rw) {
	self->fd = open_mem();
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
}

FIXTURE_TEARDOWN(rw) {
	close(self->fd);
}

TEST_F(rw, peek)
{
	struct peer_mem_rw arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_MEM_PEEK, &arg));
}

TEST_F(rw, poke)
{
	struct peer_mem_rw arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_MEM_POKE, &arg));
}

FIXTURE(lookup) {
	int fd;
};

FIXTURE_VARIANT(lookup) {
	struct peer_mem_lookup arg;
	int err;
};

FIXTURE_VARIANT_ADD(lookup, addr_not_aligned) {
	.arg = { .addr = ADDR + 8, .len = PAGE },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(lookup, len_not_aligned) {
	.arg = { .addr = ADDR, .len = PAGE + 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(lookup, len_zero) {
	.arg = { .addr = ADDR },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(lookup, len_too_long) {
	.arg = { .addr = ADDR, .len = PEER_MEM_MAX_LEN + PAGE },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(lookup, wraps) {
	.arg = { .addr = WRAP, .len = 2 * PAGE },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(lookup, bad_buffer) {
	.arg = { .addr = ADDR, .len = PAGE, .offsets = ADDR },
	.err = -EFAULT,
};

FIXTURE_SETUP(lookup) {
	self->fd = open_mem();
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
}

FIXTURE_TEARDOWN(lookup) {
	close(self->fd);
}

TEST_F(lookup, lookup)
{
	struct peer_mem_lookup arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_MEM_LOOKUP, &arg));
}

FIXTURE(inject) {
	int fd;
};

FIXTURE_VARIANT(inject) {
	struct peer_mem_inject arg;
	int err;
};

FIXTURE_VARIANT_ADD(inject, kind) {
	.arg = { .kind = PEER_MEM_FAIL_SYS_HUGE + 1, .count = 1 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(inject, count) {
	.arg = { .count = 1U << 31 },
	.err = -EINVAL,
};

FIXTURE_SETUP(inject) {
	self->fd = open_mem();
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
}

FIXTURE_TEARDOWN(inject) {
	close(self->fd);
}

TEST_F(inject, inject)
{
	struct peer_mem_inject arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_MEM_INJECT, &arg));
}

FIXTURE(xfer) {
	int fd;
};

FIXTURE_VARIANT(xfer) {
	struct peer_edu_xfer arg;
	int err;
};

FIXTURE_VARIANT_ADD(xfer, flags) {
	.arg = { .addr = ADDR, .len = 8, .flags = 4 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(xfer, addr_not_aligned) {
	.arg = { .addr = ADDR + 4, .len = 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(xfer, len_not_aligned) {
	.arg = { .addr = ADDR, .len = 4 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(xfer, len_zero) {
	.arg = { .addr = ADDR },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(xfer, len_too_long) {
	.arg = { .addr = ADDR, .len = PEER_EDU_BUF_SIZE + 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(xfer, wraps) {
	.arg = { .addr = ~7UL, .len = 16 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(xfer, end_wraps) {
	.arg = { .addr = ~15UL, .len = 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(xfer, not_mapped) {
	.arg = { .addr = ADDR, .len = 8 },
	.err = -EFAULT,
};

FIXTURE_SETUP(xfer) {
	self->fd = peer_open("edu", 0);
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_edu0");
}

FIXTURE_TEARDOWN(xfer) {
	close(self->fd);
}

TEST_F(xfer, xfer)
{
	struct peer_edu_xfer arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_EDU_XFER, &arg));
}

FIXTURE(map) {
	int fd;
};

FIXTURE_VARIANT(map) {
	struct peer_edu_map arg;
	int err;
};

FIXTURE_VARIANT_ADD(map, flags) {
	.arg = { .addr = ADDR, .len = 8, .flags = PEER_EDU_WRITE },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(map, pad) {
	.arg = { .addr = ADDR, .len = 8, .pad = 1 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(map, addr_not_aligned) {
	.arg = { .addr = ADDR + 4, .len = 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(map, len_zero) {
	.arg = { .addr = ADDR },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(map, len_too_long) {
	.arg = { .addr = ADDR, .len = PEER_MEM_MAX_LEN + 1 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(map, wraps) {
	.arg = { .addr = ~7UL, .len = 16 },
	.err = -EINVAL,
};

FIXTURE_SETUP(map) {
	self->fd = peer_open("edu", 0);
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_edu0");
}

FIXTURE_TEARDOWN(map) {
	close(self->fd);
}

TEST_F(map, map)
{
	struct peer_edu_map arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_EDU_MAP, &arg));
}

FIXTURE(use) {
	int fd;
};

FIXTURE_VARIANT(use) {
	struct peer_edu_use arg;
	int err;
};

FIXTURE_VARIANT_ADD(use, flags) {
	.arg = { .len = 8, .flags = 4 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(use, pad) {
	.arg = { .len = 8, .pad = 1 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(use, offset_not_aligned) {
	.arg = { .offset = 4, .len = 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(use, len_not_aligned) {
	.arg = { .len = 4 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(use, len_zero) {
	.arg = { .offset = 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(use, len_too_long) {
	.arg = { .len = PEER_EDU_BUF_SIZE + 8 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(use, snapshot_to_copy) {
	.arg = { .len = 8, .flags = PEER_EDU_SNAPSHOT },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(use, past_the_end) {
	.arg = { .offset = 2 * PEER_EDU_BUF_SIZE - 8, .len = 16 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(use, wraps) {
	.arg = { .offset = ~7UL, .len = 16 },
	.err = -EINVAL,
};

FIXTURE_VARIANT_ADD(use, not_mapped) {
	.arg = { .len = 8 },
	.err = -EFAULT,
};

FIXTURE_SETUP(use) {
	struct peer_edu_map map = { .addr = ADDR, .len = 2 * PEER_EDU_BUF_SIZE };
	struct peer_edu_use arg = { .len = 8 };

	self->fd = peer_open("edu", 0);
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_edu0");
	EXPECT_EQ(-ENOENT, peer_ioctl(self->fd, PEER_EDU_USE, &arg));
	ASSERT_EQ(0, peer_ioctl(self->fd, PEER_EDU_MAP, &map));
	EXPECT_EQ(-EBUSY, peer_ioctl(self->fd, PEER_EDU_MAP, &map));
}

FIXTURE_TEARDOWN(use) {
	close(self->fd);
}

TEST_F(use, use)
{
	struct peer_edu_use arg = variant->arg;

	EXPECT_EQ(variant->err, peer_ioctl(self->fd, PEER_EDU_USE, &arg));
}

/* An ioctl is known by its number and the exact size of its argument. */
TEST(unknown_ioctl)
{
	size_t size = sizeof(struct peer_mem_migrate);
	struct peer_mem_migrate arg[2] = {};
	int fd = open_mem();

	if (fd < 0)
		SKIP(return, "no /dev/peer_mem0");
	EXPECT_EQ(-ENOTTY, peer_ioctl(fd, _IO(PEER_TEST_IOC, 0x3f), arg));
	EXPECT_EQ(-ENOTTY,
		  peer_ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, PEER_TEST_IOC,
				      0x01, size - 8), arg));
	EXPECT_EQ(-ENOTTY,
		  peer_ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, PEER_TEST_IOC,
				      0x01, size + 8), arg));
	EXPECT_EQ(-ENOTTY, peer_ioctl(fd, PEER_EDU_XFER, arg));
	close(fd);
}

TEST(unknown_edu_ioctl)
{
	struct peer_edu_xfer arg = {};
	int fd = peer_open("edu", 0);

	if (fd < 0)
		SKIP(return, "no /dev/peer_edu0");
	EXPECT_EQ(-ENOTTY, peer_ioctl(fd, PEER_MEM_INFO, &arg));
	close(fd);
}

/* An argument that cannot be read or written. */
TEST(bad_pointer)
{
	static const unsigned long cmds[] = {
		PEER_MEM_INFO, PEER_MEM_TO_DEV, PEER_MEM_TO_SYS,
		PEER_MEM_EVICT, PEER_MEM_REVOKE, PEER_MEM_PUBLISH,
		PEER_MEM_PEEK, PEER_MEM_POKE, PEER_MEM_LOOKUP,
		PEER_MEM_INJECT,
	};
	int fd = open_mem();
	unsigned int i;

	if (fd < 0)
		SKIP(return, "no /dev/peer_mem0");
	for (i = 0; i < ARRAY_SIZE(cmds); i++)
		EXPECT_EQ(-EFAULT, peer_ioctl(fd, cmds[i], (void *)ADDR));
	close(fd);
}

TEST_HARNESS_MAIN
