// SPDX-License-Identifier: GPL-2.0
/*
 * odp-touch PAGES PAGE: registers that many pages on demand with the first RDMA device, and
 * writes to one of them. libsluice-preload reports itself what it does to them.
 */
#define _GNU_SOURCE
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int give_up(const char *what)
{
	perror(what);
	return 1;
}

int main(int argc, char **argv)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct ibv_device **devices;
	struct ibv_context *card;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	size_t pages, touched;
	char *memory;

	if (argc != 3) {
		fprintf(stderr, "Usage: odp-touch PAGES PAGE\n");
		return 2;
	}
	pages = strtoul(argv[1], NULL, 0);
	touched = strtoul(argv[2], NULL, 0);
	if (touched >= pages) {
		fprintf(stderr, "odp-touch: page %zu of %zu: the first is 0\n", touched,
			pages);
		return 2;
	}
	devices = ibv_get_device_list(NULL);
	card = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	if (!card)
		return give_up("RDMA device");
	pd = ibv_alloc_pd(card);
	if (!pd)
		return give_up("ibv_alloc_pd");
	/* From the start of 2 MiB: pages that come back at once lie in the same 2 MiB. */
	memory = mmap((void *)(1UL << 44), pages * page, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (memory == MAP_FAILED)
		return give_up("mmap");
	mr = ibv_reg_mr(pd, memory, pages * page,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	if (!mr)
		return give_up("ibv_reg_mr");
	memory[touched * page] = 1;
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	ibv_close_device(card);
	ibv_free_device_list(devices);
	return 0;
}
