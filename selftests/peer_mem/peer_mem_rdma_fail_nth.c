// SPDX-License-Identifier: GPL-2.0
/*
 * As peer_mem_fail_nth, for RDMA: each allocation in the registration of an
 * ODP memory region, and in its page faults, fails once. After each step the
 * user's data must be what it was and the device must leak no page,
 * and the operation must work when nothing fails.
 *
 * Needs CONFIG_FAULT_INJECTION_DEBUG_FS, CONFIG_FAILSLAB and
 * CONFIG_FAIL_PAGE_ALLOC, and root. RDMA=name tests on that RDMA device instead
 * of a new soft RoCE one.
 */
#include "kselftest_harness.h"
#include "../kselftest_fail_nth.h"
#include "peer_mem.h"
#include "../rdma/rc_pair.h"

#define NTH_LIMIT	1000
#define LEN		(4 * PAGE)

static const char *device;

FIXTURE(nth)
{
	int nth;
	int mem;
	struct rcp_dev rcp;
	unsigned char *buf;
	unsigned char want[LEN];
	uint64_t pages;
};

FIXTURE_SETUP(nth)
{
	int err;

	self->mem = -1;
	if (!nth_available())
		SKIP(return, "the kernel has no fault injection");
	self->nth = nth_open();
	ASSERT_LE(0, self->nth);
	self->mem = peer_open("mem", 0);
	if (self->mem < 0)
		SKIP(return, "no peer memory device");
	err = rcp_open(&self->rcp, device);
	ASSERT_EQ(0, err);

	self->pages = peer_info(self->mem).pages;
	self->buf = peer_map(LEN);
	ASSERT_NE(NULL, self->buf);
	peer_fill(self->buf, LEN, 1);
	memcpy(self->want, self->buf, LEN);
}

FIXTURE_TEARDOWN(nth)
{
	if (self->buf)
		munmap(self->buf, LEN);
	if (self->rcp.ctx)
		rcp_close(&self->rcp);
	if (self->mem >= 0)
		EXPECT_EQ(self->pages, peer_info(self->mem).pages);
	close(self->mem);
	close(self->nth);
}

/* An operation: set up its initial state, then do it. 0 or an errno. */
struct nth_op {
	void (*prepare)(FIXTURE_DATA(nth) *self);
	int (*act)(FIXTURE_DATA(nth) *self);
	bool (*done)(FIXTURE_DATA(nth) *self);	/* its effect, if it worked */
};

static void all_in_device(FIXTURE_DATA(nth) *self)
{
	peer_to_dev_small(self->mem, self->buf, LEN);
}

static void all_in_system(FIXTURE_DATA(nth) *self)
{
	peer_to_sys(self->mem, self->buf, LEN);
}

static bool is_in_device(FIXTURE_DATA(nth) *self)
{
	return peer_resident(self->mem, self->buf, LEN) == LEN / PAGE;
}

static bool is_in_system(FIXTURE_DATA(nth) *self)
{
	return peer_resident(self->mem, self->buf, LEN) == 0;
}

static int republish(FIXTURE_DATA(nth) *self)
{
	return peer_publish(self->mem, peer_info(self->mem).size, 0);
}

static int act_reg_mr(FIXTURE_DATA(nth) *self)
{
	struct ibv_mr *mr = rcp_reg(&self->rcp, self->buf, LEN, RCP_ODP);

	if (!mr)
		return -errno;
	ibv_dereg_mr(mr);
	return 0;
}

/* The fault path of an MR, in the context of this thread. */
static int act_prefetch(FIXTURE_DATA(nth) *self)
{
	struct ibv_mr *mr = rcp_reg(&self->rcp, self->buf, LEN, RCP_ODP);
	int err;

	if (!mr)
		return -errno;
	err = rcp_advise(&self->rcp, mr, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			 IBV_ADVISE_MR_FLAG_FLUSH, (uintptr_t)self->buf, LEN);
	ibv_dereg_mr(mr);
	return err;
}

FIXTURE_VARIANT(nth)
{
	struct nth_op op;
};

FIXTURE_VARIANT_ADD(nth, reg_mr)
{
	.op = { all_in_device, act_reg_mr, is_in_device },
};

FIXTURE_VARIANT_ADD(nth, prefetch)
{
	.op = { all_in_device, act_prefetch, is_in_device },
};

/*
 * One step of the sweep. An operation may cope with a failed allocation, so
 * success is not an error, but the state that it leaves must be sound. Returns
 * false if the operation ended without meeting the failure.
 */
static bool nth_step(struct __test_metadata *_metadata,
		     FIXTURE_DATA(nth) *self, const struct nth_op *op,
		     unsigned int nth)
{
	bool injected;
	int err;

	op->prepare(self);
	nth_arm(self->nth, nth);
	err = op->act(self);
	injected = nth_disarm(self->nth);

	if (!injected) {
		EXPECT_EQ(0, err);
		EXPECT_TRUE(op->done(self));
	}
	all_in_system(self);
	EXPECT_TRUE(is_in_system(self));
	EXPECT_EQ(0, memcmp(self->buf, self->want, LEN)) {
		TH_LOG("data lost at allocation %u, errno %d", nth, -err);
	}
	return injected;
}

TEST_F_TIMEOUT(nth, sweep, 300)
{
	unsigned int nth;

	/* Each step starts with an alias: a failure may have cost it. */
	for (nth = 1; nth < NTH_LIMIT; nth++) {
		if (!nth_step(_metadata, self, &variant->op, nth))
			break;
		ASSERT_EQ(0, republish(self));
	}
	TH_LOG("%u allocations failed in turn", nth - 1);
	EXPECT_LT(nth, NTH_LIMIT);
	/* The test would be void if an operation allocated nothing. */
	EXPECT_LT(1, nth);
}

int main(int argc, char **argv)
{
	device = rcp_device_get("rxe_nth");
	if (!device)
		ksft_exit_skip("no RDMA device: %s\n", strerror(errno));
	return test_harness_run(argc, argv);
}
