// SPDX-License-Identifier: GPL-2.0
/*
 * odp_today_bench [rounds]: what RDMA to ordinary memory costs, see
 * kselftest_cost.h. It needs no patch, so that a kernel with the series can be
 * compared with one without.
 *
 *	reg	1 MiB of memory is registered, pinned
 *	odp	1 MiB of memory is registered, on demand
 *	fault	its pages are brought in
 *	fault1	one of them, again
 *	fault8	eight of them, again
 *	dereg	the region is deregistered
 *	odp2m	a huge page of 2 MiB is registered, on demand
 *	odp16m	eight of them
 *	fetch16m	and brought in
 *
 * Makes its own soft RoCE device over lo; RDMA=name takes an existing one.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "../kselftest_cost.h"
#include "rc_pair.h"

#define DEVICE	"rxe_today"
#define PAGE	4096UL
#define SMALL	0x100000UL
#define HUGE	0x200000UL
#define LARGE	(8 * HUGE)
#define CALLS	32

static struct ibv_mr *reg(struct rcp_dev *dev, void *mem, size_t size,
			  enum rcp_mr_kind kind, struct cost *cost, int round)
{
	struct ibv_mr *mr;

	cost_start(cost);
	mr = rcp_reg(dev, mem, size, kind);
	cost_stop(cost, round, 1);
	if (!mr) {
		perror("registration");
		exit(1);
	}
	return mr;
}

static void dereg(struct ibv_mr *mr, struct cost *cost, int round)
{
	cost_start(cost);
	ibv_dereg_mr(mr);
	cost_stop(cost, round, 1);
}

/* Fault in @calls ranges of @size bytes, one after the other. */
static void fault(struct rcp_dev *dev, struct ibv_mr *mr, size_t size,
		  int calls, struct cost *cost, int round)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr->addr, .length = size, .lkey = mr->lkey,
	};
	int i, ret = 0;

	cost_start(cost);
	for (i = 0; i < calls; i++, sge.addr += size)
		ret |= rcp_advise_rxe(dev, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				      IB_UVERBS_ADVISE_MR_FLAG_FLUSH, &sge);
	cost_stop(cost, round, calls);
	if (ret) {
		fprintf(stderr, "prefetch: %d\n", ret);
		exit(1);
	}
}

/* Touched memory that begins with a huge page, or has none at all. */
static void *memory(size_t size, int advice)
{
	uint8_t *mem = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	mem = (uint8_t *)(((uintptr_t)mem + HUGE - 1) & ~(HUGE - 1));
	madvise(mem, size, advice);
	memset(mem, 1, size);
	return mem;
}

static void bench_small(struct rcp_dev *dev, int rounds)
{
	static struct cost pinned = { "reg" }, odp = { "odp" },
			   all = { "fault" }, one = { "fault1" },
			   eight = { "fault8" }, end = { "dereg" };
	void *mem = memory(SMALL, MADV_NOHUGEPAGE);
	struct ibv_mr *mr;
	int i;

	for (i = -COST_WARM; i < rounds; i++) {
		mr = reg(dev, mem, SMALL, RCP_PINNED, &pinned, i);
		ibv_dereg_mr(mr);
		mr = reg(dev, mem, SMALL, RCP_ODP, &odp, i);
		fault(dev, mr, SMALL, 1, &all, i);
		fault(dev, mr, PAGE, CALLS, &one, i);
		fault(dev, mr, 8 * PAGE, CALLS, &eight, i);
		dereg(mr, &end, i);
	}
	cost_print(&pinned, rounds);
	cost_print(&odp, rounds);
	cost_print(&all, rounds);
	cost_print(&one, rounds);
	cost_print(&eight, rounds);
	cost_print(&end, rounds);
}

static void bench_huge(struct rcp_dev *dev, int rounds)
{
	static struct cost small = { "odp2m" }, large = { "odp16m" },
			   all = { "fetch16m" };
	void *mem = memory(LARGE, MADV_HUGEPAGE);
	struct ibv_mr *mr;
	int i;

	for (i = -COST_WARM; i < rounds; i++) {
		mr = reg(dev, mem, HUGE, RCP_ODP, &small, i);
		ibv_dereg_mr(mr);
		mr = reg(dev, mem, LARGE, RCP_ODP, &large, i);
		fault(dev, mr, LARGE, 1, &all, i);
		ibv_dereg_mr(mr);
	}
	cost_print(&small, rounds);
	cost_print(&large, rounds);
	cost_print(&all, rounds);
}

int main(int argc, char **argv)
{
	int rounds = cost_rounds(argc, argv);
	const char *name = rcp_device_get(DEVICE);
	struct rcp_dev dev;

	if (!name || rcp_open(&dev, name))
		return 4;
	bench_small(&dev, rounds);
	bench_huge(&dev, rounds);
	rcp_close(&dev);
	return 0;
}
