// SPDX-License-Identifier: GPL-2.0
/*
 * odp_today_bench [rounds]: what RDMA to ordinary memory costs: CPU time of the
 * process for each, in nanoseconds, medians. It needs no patch, so that a kernel
 * with the series can be compared with one without. In a guest whose clock
 * counts instructions (QEMU's -icount shift=0) the figures are instructions.
 *
 *	reg	1 MiB of memory is registered, pinned
 *	odp	1 MiB of memory is registered, on demand
 *	fault	its pages are brought in
 *
 * Makes its own soft RoCE device over lo; RDMA=name takes an existing one.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "rc_pair.h"

#define DEVICE	"rxe_today"
#define SIZE	0x100000UL
#define MOST	101

static double spent(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print(const char *name, double *samples, int n)
{
	qsort(samples, n, sizeof(*samples), by_size);
	printf("%s n=%d median=%.0f min=%.0f max=%.0f\n", name, n,
	       samples[n / 2], samples[0], samples[n - 1]);
}

static struct ibv_mr *timed_reg(struct rcp_dev *dev, void *mem,
				enum rcp_mr_kind kind, double *sample)
{
	double start = spent();
	struct ibv_mr *mr = rcp_reg(dev, mem, SIZE, kind);

	*sample = spent() - start;
	if (!mr) {
		perror("registration");
		exit(1);
	}
	return mr;
}

static void timed_fault(struct rcp_dev *dev, struct ibv_mr *mr, void *mem,
			double *sample)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mem, .length = SIZE, .lkey = mr->lkey,
	};
	double start = spent();
	int ret = rcp_advise_rxe(dev, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				 IB_UVERBS_ADVISE_MR_FLAG_FLUSH, &sge);

	*sample = spent() - start;
	if (ret) {
		fprintf(stderr, "prefetch: %d\n", ret);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 41, i, slot;
	double reg[MOST], odp[MOST], fault[MOST];
	const char *name = rcp_device_get(DEVICE);
	struct rcp_dev dev;
	struct ibv_mr *mr;
	uint8_t *mem;

	if (rounds < 1 || rounds > MOST)
		return 1;
	if (!name || rcp_open(&dev, name))
		return 4;
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(mem, SIZE, MADV_NOHUGEPAGE);
	memset(mem, 1, SIZE);
	for (i = -3; i < rounds; i++) {
		slot = i < 0 ? 0 : i;
		mr = timed_reg(&dev, mem, RCP_PINNED, &reg[slot]);
		ibv_dereg_mr(mr);
		mr = timed_reg(&dev, mem, RCP_ODP, &odp[slot]);
		timed_fault(&dev, mr, mem, &fault[slot]);
		ibv_dereg_mr(mr);
	}
	print("reg", reg, rounds);
	print("odp", odp, rounds);
	print("fault", fault, rounds);
	rcp_close(&dev);
	return 0;
}
