// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation in each operation fails once. Whichever fails, the memory
 * holds what it held, nothing leaks, and the kernel does not complain.
 * Needs CONFIG_FAULT_INJECTION with failslab and fail_page_alloc.
 */
#include "../kselftest_harness.h"
#include "../kselftest_fail_nth.h"
#include "peer_mem.h"

#define NR	4
#define LEN	(NR * PAGE)
#define MAX_NTH	500

FIXTURE(fail) {
	int mem;
	int edu;
	int nth;
	char *buf;
	char *huge;
	char *want;		/* for both */
	void *whole;
	uint64_t *offsets;
};

enum operation { TO_DEV, TO_SYS, EVICT, TOUCH, LOOKUP, PEEK, POKE, PUBLISH,
		 XFER };

FIXTURE_VARIANT(fail) {
	enum operation op;
};

FIXTURE_VARIANT_ADD(fail, to_dev) { .op = TO_DEV, };
FIXTURE_VARIANT_ADD(fail, to_sys) { .op = TO_SYS, };
FIXTURE_VARIANT_ADD(fail, evict) { .op = EVICT, };
FIXTURE_VARIANT_ADD(fail, touch) { .op = TOUCH, };
FIXTURE_VARIANT_ADD(fail, lookup) { .op = LOOKUP, };
FIXTURE_VARIANT_ADD(fail, peek) { .op = PEEK, };
FIXTURE_VARIANT_ADD(fail, poke) { .op = POKE, };
FIXTURE_VARIANT_ADD(fail, publish) { .op = PUBLISH, };
FIXTURE_VARIANT_ADD(fail, xfer) { .op = XFER, };

FIXTURE_SETUP(fail) {
	self->edu = -1;
	self->nth = -1;
	self->mem = peer_open("mem", 0);
	if (self->mem < 0)
		SKIP(return, "no /dev/peer_mem0");
	self->edu = peer_open("edu", 0);
	if (variant->op == XFER && self->edu < 0)
		SKIP(return, "no /dev/peer_edu0");
	if (!nth_available())
		SKIP(return, "no fault injection in this kernel");
	self->nth = nth_open();
	ASSERT_LE(0, self->nth);
	self->buf = peer_map(LEN);
	self->huge = peer_map_huge(HUGE, &self->whole);
	self->want = peer_map(HUGE);
	self->offsets = peer_map(PAGE);
	ASSERT_NE(NULL, self->buf);
	ASSERT_NE(NULL, self->huge);
	ASSERT_NE(NULL, self->want);
	ASSERT_NE(NULL, self->offsets);
	peer_fill(self->want, HUGE, 5);
	memcpy(self->buf, self->want, LEN);
	memcpy(self->huge, self->want, HUGE);
	memset(self->offsets, 0, PAGE);
}

FIXTURE_TEARDOWN(fail) {
	if (self->nth < 0)
		return;
	munmap(self->buf, LEN);
	munmap(self->whole, 2 * HUGE);
	EXPECT_EQ(0, peer_info(self->mem).pages);
	EXPECT_EQ(0, peer_publish(self->mem, peer_info(self->mem).size, 0));
}

/* The operation itself; allocations of this thread's system calls may fail. */
static void run(struct _test_data_fail *self, enum operation op)
{
	struct peer_edu_xfer xfer = {
		.addr = (uintptr_t)self->buf,
		.len = PAGE,
	};

	switch (op) {
	case TO_DEV:
		peer_to_dev(self->mem, self->buf, LEN);
		peer_to_dev(self->mem, self->huge, HUGE);
		break;
	case TO_SYS:
		peer_to_sys(self->mem, self->buf, LEN);
		peer_to_sys(self->mem, self->huge, HUGE);
		break;
	case EVICT:
		peer_evict(self->mem);
		break;
	case TOUCH:
		peer_read(self->buf);
		peer_read(self->huge);
		break;
	case LOOKUP:
		peer_lookup(self->mem, self->buf, LEN, self->offsets);
		break;
	case PEEK:
		peer_rw(self->mem, PEER_MEM_PEEK, 0, self->offsets, 64);
		break;
	case POKE:
		/* a place that is not in use */
		peer_poke(self->mem, peer_info(self->mem).size - PAGE,
			  self->offsets, 64);
		break;
	case PUBLISH:
		peer_publish(self->mem, HUGE, 0);
		break;
	case XFER:
		peer_ioctl(self->edu, PEER_EDU_XFER, &xfer);
		break;
	}
}

/* Fail the allocation number @nth of @op. False if it has fewer. */
static bool run_failing(struct _test_data_fail *self, enum operation op,
			unsigned int nth)
{
	nth_arm(self->nth, nth);
	run(self, op);
	return nth_disarm(self->nth);
}

TEST_F_TIMEOUT(fail, sweep, 240)
{
	bool inside = variant->op != TO_DEV;
	unsigned int nth;
	bool more = true;

	for (nth = 1; more && nth < MAX_NTH; nth++) {
		if (inside) {
			ASSERT_LE(0, peer_to_dev(self->mem, self->buf, LEN));
			ASSERT_LE(0, peer_to_dev(self->mem, self->huge, HUGE));
		}
		more = run_failing(self, variant->op, nth);
		ASSERT_EQ(0, memcmp(self->buf, self->want, LEN));
		ASSERT_EQ(0, memcmp(self->huge, self->want, HUGE));
		ASSERT_LE(0, peer_evict(self->mem));
		ASSERT_EQ(0, peer_info(self->mem).pages);
	}
	EXPECT_FALSE(more) TH_LOG("more than %d allocations", MAX_NTH);
	/* each has at least one allocation: did it fail? */
	EXPECT_LT(2, nth);
}

TEST_HARNESS_MAIN
