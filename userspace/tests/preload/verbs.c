// SPDX-License-Identifier: MIT
/* Replaces libibverbs: each function prints its arguments. */
#include <infiniband/verbs.h>
#include <stdio.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static struct ibv_mr region;

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t length, int access)
{
	printf("reg_mr %p %p %zu %#x\n", (void *)pd, at, length, access);
	return &region;
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *at, size_t length,
			       uint64_t iova, int access)
{
	printf("reg_mr_iova %p %p %zu %lx %#x\n", (void *)pd, at, length, iova, access);
	return &region;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t length,
				uint64_t iova, unsigned int access)
{
	printf("reg_mr_iova2 %p %p %zu %lx %#x\n", (void *)pd, at, length, iova,
	       access);
	return &region;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask)
{
	printf("modify_qp %p %d %#x\n", (void *)qp, attributes->qp_state, mask);
	return 17;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	printf("dereg_mr %s\n", mr == &region ? "of that region" : "of another");
	return 18;
}
