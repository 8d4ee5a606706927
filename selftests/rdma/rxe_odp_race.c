// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand memory and two threads: while one has the page table walked again
 * and again, by prefetch advice that faults nothing, the other one drops the
 * pages and writes to the last of them by RDMA. The walk may have seen the
 * page that was dropped, or none: neither result may replace a page that a
 * transfer has faulted anew.
 *
 * Makes its own soft RoCE device over lo; RDMA=name takes an existing one.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "../kselftest_harness.h"
#include "rc_pair.h"

#define DEVICE	"rxe_odp_race"
#define PAGES	512
#define ROUNDS	500
#define CHUNK	64

static const char *device;

FIXTURE(race)
{
	struct rcp_dev dev;
	struct rcp_pair pair;
	size_t page;
	size_t len;
	uint8_t *mem;
	uint8_t *src;
	struct ibv_mr *mr;
	struct ibv_mr *src_mr;
	pthread_t thread;
	bool running;
	bool stop;
};

static void *prefetch_all_the_time(void *arg)
{
	FIXTURE_DATA(race) *self = arg;

	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED))
		rcp_advise(&self->dev, self->mr,
			   IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
			   IBV_ADVISE_MR_FLAG_FLUSH, (uintptr_t)self->mem,
			   self->len);
	return NULL;
}

FIXTURE_SETUP(race)
{
	self->page = getpagesize();
	self->len = PAGES * self->page;
	self->mem = mmap(NULL, self->len + self->page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->mem);
	self->src = self->mem + self->len;
	madvise(self->mem, self->len, MADV_NOHUGEPAGE);
	ASSERT_EQ(0, rcp_open(&self->dev, device));
	if (!rcp_odp_caps(&self->dev))
		SKIP(return, "%s has no on-demand paging", device);
	ASSERT_EQ(0, rcp_init(&self->pair, &self->dev, &self->dev));
	ASSERT_EQ(0, rcp_connect(&self->pair, IBV_MTU_4096));
	self->mr = rcp_reg(&self->dev, self->mem, self->len, RCP_ODP);
	self->src_mr = rcp_reg(&self->dev, self->src, self->page, RCP_PINNED);
	ASSERT_NE(NULL, self->mr);
	ASSERT_NE(NULL, self->src_mr);
	ASSERT_EQ(0, pthread_create(&self->thread, NULL,
				    prefetch_all_the_time, self));
	self->running = true;
}

FIXTURE_TEARDOWN(race)
{
	if (self->running) {
		__atomic_store_n(&self->stop, true, __ATOMIC_RELAXED);
		pthread_join(self->thread, NULL);
	}
	rcp_fini(&self->pair);
	if (self->mr)
		ibv_dereg_mr(self->mr);
	if (self->src_mr)
		ibv_dereg_mr(self->src_mr);
	rcp_close(&self->dev);
	munmap(self->mem, self->len + self->page);
}

TEST_F_TIMEOUT(race, dropped_while_prefetched, 300)
{
	uint8_t *last = self->mem + self->len - self->page;
	unsigned int round, lost = 0;

	for (round = 0; round < ROUNDS; round++) {
		struct ibv_sge sge = rcp_sge(self->src_mr, self->src, CHUNK);

		memset(self->src, 1 + round % 255, CHUNK);
		memset(self->mem, 0, self->len);
		ASSERT_EQ(0, madvise(self->mem, self->len, MADV_DONTNEED));
		ASSERT_EQ(0, rcp_rdma(&self->pair.a, IBV_WR_RDMA_WRITE, &sge,
				      (uintptr_t)last, self->mr->rkey))
			TH_LOG("round %u", round);
		lost += !!memcmp(last, self->src, CHUNK);
	}
	EXPECT_EQ(0, lost);
}

int main(int argc, char **argv)
{
	device = rcp_device_get(DEVICE);
	if (!device)
		ksft_exit_skip("no RDMA device: %s\n", strerror(errno));
	return test_harness_run(argc, argv);
}
