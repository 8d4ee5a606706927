/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for the tests of RDMA to SVM memory.
 */
#ifndef SELFTESTS_AMDGPU_SVM_RDMA_H
#define SELFTESTS_AMDGPU_SVM_RDMA_H

#include "../../../rdma/rc_pair.h"
#include "kfd_svm.h"

/* The RDMA device of all tests of a program. */
static const char *device;

/* On the device of RDMA=, or on one with the name @own that is made for it. */
static inline int run_with_device(int argc, char **argv, const char *own)
{
	device = rcp_device_get(own);
	if (!device) {
		ksft_print_header();
		ksft_exit_skip("no RDMA device: %s\n", strerror(errno));
	}
	return test_harness_run(argc, argv);
}

/* Both ends of a connection on one RDMA device. */
struct link {
	struct rcp_dev dev;
	struct rcp_pair pair;
};

static inline void link_close(struct link *link)
{
	rcp_fini(&link->pair);
	rcp_close(&link->dev);
}

/* -EOPNOTSUPP: the device has no on-demand paging */
static inline int link_open(struct link *link, const char *name)
{
	int err;

	memset(link, 0, sizeof(*link));
	err = rcp_open(&link->dev, name);
	if (err)
		return err;
	err = -EOPNOTSUPP;
	if (rcp_odp_caps(&link->dev))
		err = rcp_init(&link->pair, &link->dev, &link->dev);
	if (!err)
		err = rcp_connect(&link->pair, IBV_MTU_4096);
	if (err)
		link_close(link);
	return err;
}

/* From @from in @src to @to in @dst: one RDMA WRITE */
static inline int link_write(struct link *link, struct ibv_mr *src, void *from,
			     struct ibv_mr *dst, void *to, uint32_t len)
{
	struct ibv_sge sge = rcp_sge(src, from, len);

	return rcp_rdma(&link->pair.a, IBV_WR_RDMA_WRITE, &sge, (uintptr_t)to,
			dst->rkey);
}

/* To @to in @dst from @from in @src: one RDMA READ */
static inline int link_read(struct link *link, struct ibv_mr *dst, void *to,
			    struct ibv_mr *src, void *from, uint32_t len)
{
	struct ibv_sge sge = rcp_sge(dst, to, len);

	return rcp_rdma(&link->pair.a, IBV_WR_RDMA_READ, &sge, (uintptr_t)from,
			src->rkey);
}

#endif
