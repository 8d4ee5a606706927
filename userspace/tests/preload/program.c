// SPDX-License-Identifier: MIT
/*
 * program LENGTH ACCESS [FILE]: calls the functions that libsluice-preload.so overrides,
 * and prints what they return. Nothing at these addresses is used; they are those of FILE.
 */
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

int main(int argc, char **argv)
{
	struct ibv_qp_attr ready = {.qp_state = IBV_QPS_RTR};
	void *at = (void *)0x123456, *pd = (void *)0x1000, *qp = (void *)0x2000;
	struct ibv_mr *mr[3];
	size_t length;
	int access;

	if (argc != 3 && argc != 4)
		return 2;
	length = strtoul(argv[1], NULL, 0);
	access = (int)strtoul(argv[2], NULL, 0);
	if (argc == 4)
		at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			  open(argv[3], O_RDONLY | O_CLOEXEC), 0);
	if (at == MAP_FAILED)
		return 3;
	mr[0] = ibv_reg_mr(pd, at, length, access);
	mr[1] = ibv_reg_mr_iova(pd, at, length, 0x333, access);
	mr[2] = ibv_reg_mr_iova2(pd, at, length, 0x444, (unsigned int)access);
	printf("%d\n", ibv_modify_qp(qp, &ready, IBV_QP_STATE));
	for (int i = 0; i < 3; i++)
		printf("%d\n", ibv_dereg_mr(mr[i]));
	return 0;
}
