/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connected pair of RC queue pairs in one process, for tests that compare
 * what a transfer left in memory. Both ends may be on one device or on two.
 *
 *	struct rcp_dev dev;
 *	struct rcp_pair pair;
 *
 *	name = rcp_device_get("rxe_t");
 *	rcp_open(&dev, name);
 *	rcp_init(&pair, &dev, &dev);
 *	rcp_connect(&pair, IBV_MTU_1024);
 *	src = rcp_reg(&dev, buf, size, RCP_ODP);
 *	dst = rcp_reg(&dev, buf2, size, RCP_PINNED);
 *	sge = rcp_sge(src, buf, 100);
 *	status = rcp_rdma(&pair.a, IBV_WR_RDMA_WRITE, &sge,
 *			  (uintptr_t)buf2, dst->rkey);
 *	...
 *	rcp_fini(&pair);
 *	rcp_close(&dev);
 *
 * Functions that set something up return 0 or a negative errno. Functions
 * that transfer return an ibv_wc_status (0 is IBV_WC_SUCCESS), or a negative
 * errno if nothing completed; they post and wait. rcp_post*() only post, and
 * rcp_wait() then takes one completion. A failed transfer leaves the queue
 * pairs in the error state: rcp_connect() again starts afresh.
 *
 * Link with -libverbs.
 */
#ifndef SELFTESTS_RDMA_RC_PAIR_H
#define SELFTESTS_RDMA_RC_PAIR_H

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Only a hang takes that long: a FLUSH may fault in gigabytes, under KASAN. */
#define RCP_TIMEOUT_MS	60000
#define RCP_DEPTH	128

enum rcp_mr_kind {
	RCP_PINNED,
	RCP_ODP,
};

struct rcp_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	union ibv_gid gid;
	int gid_index;		/* RoCE v2, an IPv4 address if there is one */
	struct ibv_port_attr port;
};

/* One side: both its queues complete to its own CQ. */
struct rcp_end {
	struct rcp_dev *dev;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;	/* NULL: no ATOMIC_WRITE and FLUSH */
	uint32_t psn;
};

struct rcp_pair {
	struct rcp_end a;
	struct rcp_end b;
};

/* The exit status of a child; 127, as in the shell, if it did not run. */
static inline int rcp_exit_status(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 127;
	return WEXITSTATUS(status);
}

/* Soft RoCE device @name over the network device @netdev. */
static inline int rcp_link_add(const char *name, const char *netdev)
{
	pid_t pid = fork();

	if (!pid) {
		execlp("rdma", "rdma", "link", "add", name, "type", "rxe",
		       "netdev", netdev, NULL);
		_exit(127);
	}
	return rcp_exit_status(pid) ? -ENODEV : 0;
}

static inline int rcp_link_del(const char *name)
{
	pid_t pid = fork();

	if (!pid) {
		execlp("rdma", "rdma", "link", "del", name, NULL);
		_exit(127);
	}
	return rcp_exit_status(pid) ? -ENODEV : 0;
}

/* The device that rcp_device_get() made, and the process that deletes it. */
static const char *rcp_own;
static pid_t rcp_owner;

static inline void rcp_delete_own(void)
{
	if (getpid() == rcp_owner)
		rcp_link_del(rcp_own);
}

/*
 * The device to test: RDMA=name in the environment, otherwise a new one
 * called @own over lo, which is deleted when the process exits. NULL if there
 * is none, with the reason in errno.
 */
static inline const char *rcp_device_get(const char *own)
{
	const char *name = getenv("RDMA");
	int tries;

	if (name)
		return name;
	if (geteuid()) {
		errno = EPERM;
		return NULL;
	}
	/*
	 * A device that was deleted a moment ago may keep lo a moment longer;
	 * one that an interrupted run left has to be deleted.
	 */
	for (tries = 0; rcp_link_add(own, "lo"); tries++) {
		if (tries == 10) {
			errno = ENODEV;
			return NULL;
		}
		rcp_link_del(own);
		usleep(100000);
	}
	rcp_own = own;
	rcp_owner = getpid();
	atexit(rcp_delete_own);
	return own;
}

static inline struct ibv_context *rcp_open_by_name(const char *name)
{
	struct ibv_context *ctx = NULL;
	struct ibv_device **list;
	int i, n;

	list = ibv_get_device_list(&n);
	if (!list)
		return NULL;
	for (i = 0; i < n && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return ctx;
}

/* Prefer ::ffff:a.b.c.d: a link-local address does not route over lo. */
static inline int rcp_find_gid(struct rcp_dev *dev)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	struct ibv_gid_entry entry;
	int i, found = -ENOENT;

	for (i = 0; i < dev->port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(dev->ctx, 1, i, &entry, 0))
			continue;
		if (dev->port.link_layer == IBV_LINK_LAYER_ETHERNET &&
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		dev->gid = entry.gid;
		dev->gid_index = i;
		found = 0;
		if (!memcmp(entry.gid.raw, v4, sizeof(v4)))
			break;
	}
	return found;
}

static inline void rcp_close(struct rcp_dev *dev)
{
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	if (dev->ctx)
		ibv_close_device(dev->ctx);
	memset(dev, 0, sizeof(*dev));
}

static inline int rcp_open(struct rcp_dev *dev, const char *name)
{
	int err = -ENODEV;

	memset(dev, 0, sizeof(*dev));
	dev->ctx = rcp_open_by_name(name);
	if (!dev->ctx)
		return -ENODEV;
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd || ibv_query_port(dev->ctx, 1, &dev->port))
		goto err;
	err = rcp_find_gid(dev);
	if (err)
		goto err;
	return 0;
err:
	rcp_close(dev);
	return err;
}

/* The operations over RC that work on ODP memory, IBV_ODP_SUPPORT_*. */
static inline uint32_t rcp_odp_caps(struct rcp_dev *dev)
{
	struct ibv_device_attr_ex attr = {};

	if (ibv_query_device_ex(dev->ctx, NULL, &attr) ||
	    !(attr.odp_caps.general_caps & IBV_ODP_SUPPORT))
		return 0;
	return attr.odp_caps.per_transport_caps.rc_odp_caps;
}

/* ATOMIC_WRITE and FLUSH exist only in the extended interface. */
static inline struct ibv_qp *rcp_create_qp(struct rcp_end *end)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {
			.max_send_wr = RCP_DEPTH,
			.max_recv_wr = RCP_DEPTH,
			.max_send_sge = 4,
			.max_recv_sge = 4,
		},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = end->dev->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_FLUSH |
				  IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(end->dev->ctx, &attr);

	if (qp) {
		end->qpx = ibv_qp_to_qp_ex(qp);
		return qp;
	}
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	return ibv_create_qp_ex(end->dev->ctx, &attr);
}

static inline void rcp_end_fini(struct rcp_end *end)
{
	if (end->qp)
		ibv_destroy_qp(end->qp);
	if (end->cq)
		ibv_destroy_cq(end->cq);
	memset(end, 0, sizeof(*end));
}

static inline int rcp_end_init(struct rcp_end *end, struct rcp_dev *dev)
{
	memset(end, 0, sizeof(*end));
	end->dev = dev;
	end->psn = rand() & 0xffffff;
	end->cq = ibv_create_cq(dev->ctx, 2 * RCP_DEPTH, NULL, NULL, 0);
	if (end->cq)
		end->qp = rcp_create_qp(end);
	if (end->qp)
		return 0;
	rcp_end_fini(end);
	return -ENOMEM;
}

static inline void rcp_fini(struct rcp_pair *pair)
{
	rcp_end_fini(&pair->a);
	rcp_end_fini(&pair->b);
}

static inline int rcp_init(struct rcp_pair *pair, struct rcp_dev *a,
			   struct rcp_dev *b)
{
	memset(pair, 0, sizeof(*pair));
	if (rcp_end_init(&pair->a, a) || rcp_end_init(&pair->b, b)) {
		rcp_fini(pair);
		return -ENOMEM;
	}
	return 0;
}

static inline int rcp_to_init(struct rcp_end *end)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_wc wc;
	int err;

	if (end->qpx)
		init.qp_access_flags |= IBV_ACCESS_FLUSH_GLOBAL |
					IBV_ACCESS_FLUSH_PERSISTENT;
	err = ibv_modify_qp(end->qp, &reset, IBV_QP_STATE);
	if (err)
		return -err;
	/* Drop completions of an earlier connection. */
	while (ibv_poll_cq(end->cq, 1, &wc) > 0)
		;
	return -ibv_modify_qp(end->qp, &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			      IBV_QP_ACCESS_FLAGS);
}

static inline int rcp_to_rtr(struct rcp_end *end, struct rcp_end *peer,
			     enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1,
			.dlid = peer->dev->port.lid,
			.port_num = 1,
			.grh = {
				.dgid = peer->dev->gid,
				.sgid_index = end->dev->gid_index,
				.hop_limit = 64,
			},
		},
	};

	return -ibv_modify_qp(end->qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC |
			      IBV_QP_MIN_RNR_TIMER);
}

static inline int rcp_to_rts(struct rcp_end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 17,		/* 0.5 s: an emulated machine is slow */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = end->psn,
		.max_rd_atomic = 16,
	};

	return -ibv_modify_qp(end->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT |
			      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline int rcp_in_error(struct rcp_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return !ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init) &&
	       attr.qp_state == IBV_QPS_ERR;
}

static inline int rcp_to_connected(struct rcp_pair *pair, enum ibv_mtu mtu)
{
	int err = rcp_to_init(&pair->a);

	if (!err)
		err = rcp_to_init(&pair->b);
	if (!err)
		err = rcp_to_rtr(&pair->a, &pair->b, mtu);
	if (!err)
		err = rcp_to_rtr(&pair->b, &pair->a, mtu);
	if (!err)
		err = rcp_to_rts(&pair->a);
	if (!err)
		err = rcp_to_rts(&pair->b);
	return err;
}

/*
 * From any state; requests posted before are forgotten. An end that has refused
 * a request goes to the error state a little after it reported that, and so
 * does the end that was refused. Give them time for it, as it would disturb
 * what is done here or later.
 */
static inline int rcp_connect(struct rcp_pair *pair, enum ibv_mtu mtu)
{
	int err, tries;

	for (tries = 0; tries < 1000; tries++) {
		if (rcp_in_error(&pair->a) == rcp_in_error(&pair->b))
			break;
		usleep(1000);
	}
	for (tries = 0; tries < 10; tries++) {
		err = rcp_to_connected(pair, mtu);
		if (!err)
			break;
		usleep(10000);
	}
	return err;
}

#define RCP_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* NULL and errno on failure, as ibv_reg_mr_iova() has it. */
static inline struct ibv_mr *rcp_reg_access(struct rcp_dev *dev, void *addr,
					    size_t len, uint64_t iova,
					    int access)
{
	return ibv_reg_mr_iova2(dev->pd, addr, len, iova, access);
}

static inline struct ibv_mr *rcp_reg_iova(struct rcp_dev *dev, void *addr,
					  size_t len, uint64_t iova,
					  enum rcp_mr_kind kind)
{
	int odp = kind == RCP_ODP ? IBV_ACCESS_ON_DEMAND : 0;

	return rcp_reg_access(dev, addr, len, iova, RCP_ACCESS | odp);
}

static inline struct ibv_mr *rcp_reg(struct rcp_dev *dev, void *addr,
				     size_t len, enum rcp_mr_kind kind)
{
	return rcp_reg_iova(dev, addr, len, (uintptr_t)addr, kind);
}

/*
 * Like ibv_advise_mr(), for rxe: rdma-core before version 58 has the function
 * but does not offer it for this device.
 */
static inline int rcp_advise_rxe(struct rcp_dev *dev,
				 enum ib_uverbs_advise_mr_advice advice,
				 uint32_t flags, struct ibv_sge *sge)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[4];
	} cmd = {
		.hdr = {
			.length = sizeof(cmd),
			.object_id = UVERBS_OBJECT_MR,
			.method_id = UVERBS_METHOD_ADVISE_MR,
			.num_attrs = 4,
			.driver_id = RDMA_DRIVER_RXE,
		},
		.attrs = {
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_PD_HANDLE,
			  .data = dev->pd->handle },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_ADVICE,
			  .len = sizeof(uint64_t), .data = advice },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_FLAGS,
			  .len = sizeof(uint64_t), .data = flags },
			{ .attr_id = UVERBS_ATTR_ADVISE_MR_SGE_LIST,
			  .len = sizeof(*sge), .data = (uintptr_t)sge },
		},
	};
	unsigned int i;

	for (i = 0; i < 4; i++)
		cmd.attrs[i].flags = UVERBS_ATTR_F_MANDATORY;
	return ioctl(dev->ctx->cmd_fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

/* ibv_advise_mr() for one range, @addr is in terms of the iova. */
static inline int rcp_advise(struct rcp_dev *dev, struct ibv_mr *mr,
			     enum ib_uverbs_advise_mr_advice advice,
			     uint32_t flags, uint64_t addr, uint32_t len)
{
	struct ibv_sge sge = { .addr = addr, .length = len, .lkey = mr->lkey };
	int err = ibv_advise_mr(dev->pd, advice, flags, &sge, 1);

	if (err == EOPNOTSUPP)
		err = rcp_advise_rxe(dev, advice, flags, &sge);
	return -err;
}

/* @addr: in the address space of @mr, its iova */
static inline struct ibv_sge rcp_sge_at(struct ibv_mr *mr, uint64_t addr,
					uint32_t len)
{
	struct ibv_sge sge = { .addr = addr, .length = len, .lkey = mr->lkey };

	return sge;
}

static inline struct ibv_sge rcp_sge(struct ibv_mr *mr, void *addr,
				     uint32_t len)
{
	return rcp_sge_at(mr, (uintptr_t)addr, len);
}

static inline uint64_t rcp_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

/* One completion of @end: its status. @wc may be NULL. */
static inline int rcp_wait(struct rcp_end *end, struct ibv_wc *wc)
{
	uint64_t deadline = rcp_now_ms() + RCP_TIMEOUT_MS;
	struct ibv_wc mine;
	int n;

	if (!wc)
		wc = &mine;
	do {
		n = ibv_poll_cq(end->cq, 1, wc);
		if (n < 0)
			return -EIO;
		if (n)
			return wc->status;
		usleep(50);
	} while (rcp_now_ms() < deadline);
	return -ETIMEDOUT;
}

/* Post one signalled request as it is. */
static inline int rcp_post(struct rcp_end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	return -ibv_post_send(end->qp, wr, &bad);
}

static inline int rcp_post_recv(struct rcp_end *end, struct ibv_sge *sge)
{
	struct ibv_recv_wr *bad, wr = {
		.sg_list = sge,
		.num_sge = sge ? 1 : 0,
	};

	return -ibv_post_recv(end->qp, &wr, &bad);
}

/* IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM */
static inline int rcp_post_rdma(struct rcp_end *end, enum ibv_wr_opcode op,
				struct ibv_sge *sge, uint64_t raddr,
				uint32_t rkey, uint32_t imm)
{
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = 1,
		.opcode = op,
		.imm_data = htobe32(imm),
		.wr.rdma = { .remote_addr = raddr, .rkey = rkey },
	};

	return rcp_post(end, &wr);
}

static inline int rcp_rdma(struct rcp_end *end, enum ibv_wr_opcode op,
			   struct ibv_sge *sge, uint64_t raddr, uint32_t rkey)
{
	int err = rcp_post_rdma(end, op, sge, raddr, rkey, 0);

	return err ? err : rcp_wait(end, NULL);
}

/* IBV_WR_ATOMIC_FETCH_AND_ADD (@arg is added), IBV_WR_ATOMIC_CMP_AND_SWP */
static inline int rcp_atomic(struct rcp_end *end, enum ibv_wr_opcode op,
			     struct ibv_sge *sge, uint64_t raddr, uint32_t rkey,
			     uint64_t arg, uint64_t swap)
{
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = 1,
		.opcode = op,
		.wr.atomic = {
			.remote_addr = raddr,
			.rkey = rkey,
			.compare_add = arg,
			.swap = swap,
		},
	};
	int err = rcp_post(end, &wr);

	return err ? err : rcp_wait(end, NULL);
}

static inline int rcp_atomic_write(struct rcp_end *end, uint64_t raddr,
				   uint32_t rkey, uint64_t value)
{
	int err;

	if (!end->qpx)
		return -EOPNOTSUPP;
	ibv_wr_start(end->qpx);
	end->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(end->qpx, rkey, raddr, &value);
	err = ibv_wr_complete(end->qpx);
	return err ? -err : rcp_wait(end, NULL);
}

/*
 * @type: IBV_FLUSH_GLOBAL or IBV_FLUSH_PERSISTENT; @level: IBV_FLUSH_RANGE, or
 * IBV_FLUSH_MR for all of the MR
 */
static inline int rcp_flush_level(struct rcp_end *end, uint64_t raddr,
				  uint32_t rkey, size_t len, uint8_t type,
				  uint8_t level)
{
	int err;

	if (!end->qpx)
		return -EOPNOTSUPP;
	ibv_wr_start(end->qpx);
	end->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(end->qpx, rkey, raddr, len, type, level);
	err = ibv_wr_complete(end->qpx);
	return err ? -err : rcp_wait(end, NULL);
}

static inline int rcp_flush(struct rcp_end *end, uint64_t raddr, uint32_t rkey,
			    size_t len, uint8_t type)
{
	return rcp_flush_level(end, raddr, rkey, len, type, IBV_FLUSH_RANGE);
}

/*
 * @from sends what is at @src, @to receives it at @dst (NULL: no data wanted,
 * for a following WRITE_WITH_IMM use rcp_post_recv()). @wc is the receiver's.
 */
static inline int rcp_send(struct rcp_end *from, struct ibv_sge *src,
			   struct rcp_end *to, struct ibv_sge *dst,
			   struct ibv_wc *wc)
{
	struct ibv_send_wr wr = {
		.sg_list = src,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};
	int err, status;

	err = rcp_post_recv(to, dst);
	if (!err)
		err = rcp_post(from, &wr);
	if (err)
		return err;
	status = rcp_wait(from, NULL);
	err = rcp_wait(to, wc);
	return status ? status : err;
}

/* RDMA WRITE of @src with @imm; *@got is what the receiver was told. */
static inline int rcp_write_imm(struct rcp_end *from, struct ibv_sge *src,
				struct rcp_end *to, uint64_t raddr,
				uint32_t rkey, uint32_t imm, uint32_t *got)
{
	struct ibv_wc wc = {};
	int err, status;

	err = rcp_post_recv(to, NULL);
	if (!err)
		err = rcp_post_rdma(from, IBV_WR_RDMA_WRITE_WITH_IMM, src,
				    raddr, rkey, imm);
	if (err)
		return err;
	status = rcp_wait(from, NULL);
	err = rcp_wait(to, &wc);
	*got = be32toh(wc.imm_data);
	return status ? status : err;
}

#endif
