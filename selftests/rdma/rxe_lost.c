// SPDX-License-Identifier: GPL-2.0
/*
 * A packet that cannot be sent is lost, like one that the network drops: it
 * must not end the queue pair. The link goes down at either end, or its address
 * goes away; packets sent meanwhile are lost, and all works again afterwards.
 *
 * Two soft RoCE devices on a veth pair, one end in a network namespace of its
 * own. Needs root, ip and rdma.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <stdbool.h>

#include "../kselftest_harness.h"
#include "rc_pair.h"

#define A	"rxe_lost_a"	/* link and RDMA device, here */
#define B	"rxe_lost_b"	/* the same in the namespace */
#define NS	"rxe_lost"
#define ADDR_A	"192.0.2.1"
#define ADDR_B	"192.0.2.2"

#define SIZE	(256 * 1024)	/* more than RC sends without an answer */
#define CHUNK	512		/* in one packet */
#define GRH	40
#define QKEY	0x11111111

enum cut {
	CUT_PEER,	/* no carrier: the IP layer refuses the packet */
	CUT_OWN,	/* no route */
	CUT_ADDRESS,	/* no GID */
};

static bool link_is_up(void)
{
	char state[32] = "";
	FILE *file = fopen("/sys/class/net/" A "/operstate", "r");

	if (!file)
		return false;
	if (!fgets(state, sizeof(state), file))
		state[0] = 0;
	fclose(file);
	return !strcmp(state, "up\n");
}

/* The kernel notices a change of the carrier with some delay. */
static int wait_link(bool up)
{
	int tries;

	for (tries = 0; tries < 1000 && link_is_up() != up; tries++)
		usleep(10000);
	usleep(10000);
	return link_is_up() == up ? 0 : -ETIMEDOUT;
}

static int cut_link(enum cut cut)
{
	switch (cut) {
	case CUT_PEER:
		return system("ip -n " NS " link set " B " down") ?:
		       wait_link(false);
	case CUT_OWN:
		return system("ip link set " A " down") ?: wait_link(false);
	default:
		return system("ip addr del " ADDR_A "/24 dev " A);
	}
}

static int mend_link(enum cut cut)
{
	switch (cut) {
	case CUT_PEER:
		return system("ip -n " NS " link set " B " up") ?: wait_link(true);
	case CUT_OWN:
		return system("ip link set " A " up") ?: wait_link(true);
	default:
		return system("ip addr add " ADDR_A "/24 dev " A);
	}
}

static int make_links(void)
{
	return system("ip netns add " NS) ?:
	       system("ip link add " A " type veth peer name " B " netns " NS) ?:
	       system("ip addr add " ADDR_A "/24 dev " A) ?:
	       system("ip -n " NS " addr add " ADDR_B "/24 dev " B) ?:
	       system("ip link set " A " up") ?:
	       system("ip -n " NS " link set " B " up") ?:
	       rcp_link_add(A, A) ?:
	       system("ip netns exec " NS " rdma link add " B
		      " type rxe netdev " B) ?:
	       wait_link(true);
}

/* Also deletes links that an interrupted run left. */
static void delete_links(void)
{
	system("rdma link del " A " 2>/dev/null");
	system("rdma link del " B " 2>/dev/null");
	system("ip link del " A " 2>/dev/null");
	system("ip netns del " NS " 2>/dev/null");
}

/* An address becomes a GID a little later. */
static int find_address(struct rcp_dev *dev)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	int tries;

	for (tries = 0; tries < 500; tries++) {
		if (!rcp_find_gid(dev) && !memcmp(dev->gid.raw, v4, sizeof(v4)))
			return 0;
		usleep(10000);
	}
	return -ENOENT;
}

FIXTURE(lost)
{
	struct rcp_dev a;
	struct rcp_dev b;
	struct rcp_pair rc;
	struct rcp_pair ud;
	struct ibv_ah *ah;
	uint8_t *src;
	uint8_t *dst;
	struct ibv_mr *src_mr;
	struct ibv_mr *dst_mr;
};

FIXTURE_SETUP(lost)
{
	if (geteuid())
		SKIP(return, "needs root");
	delete_links();
	ASSERT_EQ(0, make_links());
	ASSERT_EQ(0, rcp_open(&self->a, A));
	ASSERT_EQ(0, rcp_open(&self->b, B));
	ASSERT_EQ(0, find_address(&self->a));
	ASSERT_EQ(0, find_address(&self->b));
	self->src = calloc(1, SIZE);
	self->dst = calloc(1, SIZE);
	ASSERT_NE(NULL, self->src);
	ASSERT_NE(NULL, self->dst);
	self->src_mr = rcp_reg(&self->a, self->src, SIZE, RCP_PINNED);
	self->dst_mr = rcp_reg(&self->b, self->dst, SIZE, RCP_PINNED);
	ASSERT_NE(NULL, self->src_mr);
	ASSERT_NE(NULL, self->dst_mr);
}

FIXTURE_TEARDOWN(lost)
{
	if (geteuid())
		return;
	if (self->ah)
		ibv_destroy_ah(self->ah);
	rcp_fini(&self->rc);
	rcp_fini(&self->ud);
	if (self->src_mr)
		ibv_dereg_mr(self->src_mr);
	if (self->dst_mr)
		ibv_dereg_mr(self->dst_mr);
	rcp_close(&self->a);
	rcp_close(&self->b);
	free(self->src);
	free(self->dst);
	delete_links();
}

static int ud_end_init(struct rcp_end *end, struct rcp_dev *dev)
{
	struct ibv_qp_init_attr init = {
		.cap = {
			.max_send_wr = RCP_DEPTH,
			.max_recv_wr = RCP_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
	};
	int err;

	end->dev = dev;
	end->cq = ibv_create_cq(dev->ctx, 2 * RCP_DEPTH, NULL, NULL, 0);
	if (!end->cq)
		return -ENOMEM;
	init.send_cq = end->cq;
	init.recv_cq = end->cq;
	end->qp = ibv_create_qp(dev->pd, &init);
	if (!end->qp)
		return -ENOMEM;
	err = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(end->qp, &attr,
				    IBV_QP_STATE | IBV_QP_SQ_PSN);
	return -err;
}

/* The current route from a to b: an address that came back is a new GID. */
static int find_way(FIXTURE_DATA(lost) *self)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .hop_limit = 64 },
	};
	int tries;

	if (self->ah)
		ibv_destroy_ah(self->ah);
	self->ah = NULL;
	if (find_address(&self->a))
		return -ENOENT;
	attr.grh.sgid_index = self->a.gid_index;
	attr.grh.dgid = self->b.gid;
	for (tries = 0; tries < 20; tries++) {
		self->ah = ibv_create_ah(self->a.pd, &attr);
		if (self->ah)
			return 0;
		usleep(100000);
	}
	return -EHOSTUNREACH;
}

/* Send a datagram from @end to a QP of b. Returns the status of the send. */
static int ud_send_to(FIXTURE_DATA(lost) *self, struct rcp_end *end,
		      uint32_t qpn)
{
	struct ibv_sge sge = rcp_sge(self->src_mr, self->src, CHUNK);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = {
			.ah = self->ah,
			.remote_qpn = qpn,
			.remote_qkey = QKEY,
		},
	};
	int err = rcp_post(end, &wr);

	return err ? err : rcp_wait(end, NULL);
}

static int ud_send(FIXTURE_DATA(lost) *self)
{
	return ud_send_to(self, &self->ud.a, self->ud.b.qp->qp_num);
}

/* The datagram sent last, not one that may have waited from before. */
static bool ud_arrived(FIXTURE_DATA(lost) *self)
{
	struct ibv_wc wc;
	int tries;

	for (tries = 0; tries < 200; tries++) {
		if (ibv_poll_cq(self->ud.b.cq, 1, &wc) > 0 &&
		    wc.status == IBV_WC_SUCCESS &&
		    !memcmp(self->dst + GRH, self->src, CHUNK))
			return true;
		usleep(1000);
	}
	return false;
}

/* One of several does: the address has to be resolved first. */
static bool ud_arrives(FIXTURE_DATA(lost) *self, uint8_t value)
{
	struct ibv_sge sge = rcp_sge(self->dst_mr, self->dst, GRH + CHUNK);
	int tries;

	memset(self->src, value, CHUNK);
	for (tries = 0; tries < RCP_DEPTH / 4; tries++) {
		if (rcp_post_recv(&self->ud.b, &sge) ||
		    ud_send(self) != IBV_WC_SUCCESS)
			return false;
		if (ud_arrived(self))
			return true;
	}
	return false;
}

TEST_F_TIMEOUT(lost, ud, 300)
{
	enum cut cut;

	ASSERT_EQ(0, ud_end_init(&self->ud.a, &self->a));
	ASSERT_EQ(0, ud_end_init(&self->ud.b, &self->b));
	ASSERT_EQ(0, find_way(self));
	ASSERT_TRUE(ud_arrives(self, 1));
	for (cut = CUT_PEER; cut <= CUT_ADDRESS; cut++) {
		ASSERT_EQ(0, cut_link(cut));
		EXPECT_EQ(IBV_WC_SUCCESS, ud_send(self))
			TH_LOG("cut %d", cut);
		EXPECT_FALSE(rcp_in_error(&self->ud.a));
		ASSERT_EQ(0, mend_link(cut));
		ASSERT_EQ(0, find_way(self));
		ASSERT_TRUE(ud_arrives(self, 2 + cut))
			TH_LOG("cut %d", cut);
	}
}

/* Enough that one packet is taken while another is queued. */
#define FLOODS	3

struct flood {
	FIXTURE_DATA(lost) *self;
	struct rcp_end end;
	pthread_t thread;
	const uint32_t *qpn;
	const bool *stop;
	int failed;
};

static void *do_flood(void *arg)
{
	struct flood *f = arg;
	uint32_t qpn;

	while (!__atomic_load_n(f->stop, __ATOMIC_RELAXED) && !f->failed) {
		qpn = __atomic_load_n(f->qpn, __ATOMIC_RELAXED);
		f->failed = ud_send_to(f->self, &f->end, qpn);
	}
	return NULL;
}

/*
 * Datagrams are on their way to a QP that is destroyed: KASAN sees accesses
 * that are too late, and rxe a task that is scheduled without a reference.
 */
TEST_F_TIMEOUT(lost, queue_pair_goes, 300)
{
	struct flood floods[FLOODS] = { }, *f;
	bool stop = false;
	uint32_t qpn;
	int round;

	ASSERT_EQ(0, ud_end_init(&self->ud.a, &self->a));
	ASSERT_EQ(0, ud_end_init(&self->ud.b, &self->b));
	ASSERT_EQ(0, find_way(self));
	qpn = self->ud.b.qp->qp_num;
	for (f = floods; f < floods + FLOODS; f++) {
		f->self = self;
		f->qpn = &qpn;
		f->stop = &stop;
		ASSERT_EQ(0, ud_end_init(&f->end, &self->a));
		ASSERT_EQ(0, pthread_create(&f->thread, NULL, do_flood, f));
	}
	for (round = 0; round < 200; round++) {
		usleep(1000);
		rcp_end_fini(&self->ud.b);
		ASSERT_EQ(0, ud_end_init(&self->ud.b, &self->b));
		__atomic_store_n(&qpn, self->ud.b.qp->qp_num, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (f = floods; f < floods + FLOODS; f++) {
		ASSERT_EQ(0, pthread_join(f->thread, NULL));
		EXPECT_EQ(0, f->failed);
		rcp_end_fini(&f->end);
	}
	ASSERT_TRUE(ud_arrives(self, 1));
}

static void fill(uint8_t *mem, unsigned int seed)
{
	size_t i;

	for (i = 0; i < SIZE; i++)
		mem[i] = (i * 7 + i / 1024 + seed) % 251;
}

/* @op begins while the link is cut, and completes when it no longer is. */
static void rc_goes_on(struct __test_metadata *_metadata,
		       FIXTURE_DATA(lost) *self, enum cut cut,
		       enum ibv_wr_opcode op, unsigned int seed)
{
	struct ibv_sge sge = rcp_sge(self->src_mr, self->src, SIZE);
	struct ibv_wc wc;

	fill(self->src, seed);
	fill(self->dst, op == IBV_WR_RDMA_READ ? seed + 1 : 0);
	ASSERT_EQ(0, cut_link(cut));
	ASSERT_EQ(0, rcp_post_rdma(&self->rc.a, op, &sge,
				   (uintptr_t)self->dst, self->dst_mr->rkey, 0));
	usleep(300000);
	EXPECT_EQ(0, ibv_poll_cq(self->rc.a.cq, 1, &wc))
		TH_LOG("cut %d: status %d", cut, wc.status);
	ASSERT_EQ(0, mend_link(cut));
	ASSERT_EQ(IBV_WC_SUCCESS, rcp_wait(&self->rc.a, NULL));
	EXPECT_EQ(0, memcmp(self->src, self->dst, SIZE));
}

TEST_F_TIMEOUT(lost, rc_goes_on, 300)
{
	unsigned int seed = 1;
	enum cut cut;

	ASSERT_EQ(0, rcp_init(&self->rc, &self->a, &self->b));
	ASSERT_EQ(0, rcp_connect(&self->rc, IBV_MTU_1024));
	for (cut = CUT_PEER; cut <= CUT_OWN; cut++) {
		rc_goes_on(_metadata, self, cut, IBV_WR_RDMA_WRITE, seed++);
		rc_goes_on(_metadata, self, cut, IBV_WR_RDMA_READ, seed++);
	}
}

/* As rcp_connect(), but the first end of @pair gives up soon. */
static int connect_impatient(struct rcp_pair *pair)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,		/* 67 ms */
		.retry_cnt = 1,
		.rnr_retry = 7,
		.sq_psn = pair->a.psn,
		.max_rd_atomic = 16,
	};
	int err = rcp_to_init(&pair->a);

	if (!err)
		err = rcp_to_init(&pair->b);
	if (!err)
		err = rcp_to_rtr(&pair->a, &pair->b, IBV_MTU_1024);
	if (!err)
		err = rcp_to_rtr(&pair->b, &pair->a, IBV_MTU_1024);
	if (!err)
		err = rcp_to_rts(&pair->b);
	if (err)
		return err;
	return -ibv_modify_qp(pair->a.qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT |
			      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void rc_works(struct __test_metadata *_metadata,
		     FIXTURE_DATA(lost) *self, struct rcp_pair *pair,
		     unsigned int seed)
{
	struct ibv_sge sge = rcp_sge(self->src_mr, self->src, SIZE);

	fill(self->src, seed);
	fill(self->dst, seed + 1);
	ASSERT_EQ(0, rcp_connect(pair, IBV_MTU_1024));
	EXPECT_EQ(IBV_WC_SUCCESS,
		  rcp_rdma(&pair->a, IBV_WR_RDMA_WRITE, &sge,
			   (uintptr_t)self->dst, self->dst_mr->rkey));
	EXPECT_EQ(0, memcmp(self->src, self->dst, SIZE));
}

/* @op is not answered for longer than the queue pair retries. */
static void rc_gives_up(struct __test_metadata *_metadata,
			FIXTURE_DATA(lost) *self, enum cut cut,
			enum ibv_wr_opcode op)
{
	struct ibv_sge sge = rcp_sge(self->src_mr, self->src, SIZE);
	int i;

	ASSERT_EQ(0, connect_impatient(&self->rc));
	ASSERT_EQ(0, cut_link(cut));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, rcp_post_rdma(&self->rc.a, op, &sge,
					   (uintptr_t)self->dst,
					   self->dst_mr->rkey, 0));
	EXPECT_EQ(IBV_WC_RETRY_EXC_ERR, rcp_wait(&self->rc.a, NULL))
		TH_LOG("cut %d, operation %d", cut, op);
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, rcp_wait(&self->rc.a, NULL));
	ASSERT_EQ(0, mend_link(cut));
}

/* Only that queue pair has failed: it works again, and so do new ones. */
TEST_F_TIMEOUT(lost, rc_gives_up, 300)
{
	struct rcp_pair other;
	unsigned int seed = 1;
	enum cut cut;

	ASSERT_EQ(0, rcp_init(&self->rc, &self->a, &self->b));
	for (cut = CUT_PEER; cut <= CUT_OWN; cut++) {
		rc_gives_up(_metadata, self, cut, IBV_WR_RDMA_WRITE);
		rc_works(_metadata, self, &self->rc, seed++);
		rc_gives_up(_metadata, self, cut, IBV_WR_RDMA_READ);
		ASSERT_EQ(0, rcp_init(&other, &self->a, &self->b));
		rc_works(_metadata, self, &other, seed++);
		rcp_fini(&other);
	}
}

/* As in the header of librdmacm, which is not needed otherwise. */
enum cm_event {
	CM_ADDR_RESOLVED = 0,
	CM_ROUTE_RESOLVED = 2,
	CM_REJECTED = 8,
};

/* A connection manager's id, by the kernel's interface. */
struct cm {
	int fd;
	uint32_t id;
};

static int cm_call(struct cm *cm, uint32_t op, void *arg, size_t in, size_t out)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		uint8_t arg[512];
	} cmd = { .hdr = { .cmd = op, .in = in, .out = out } };

	memcpy(cmd.arg, arg, in);
	return write(cm->fd, &cmd, sizeof(cmd.hdr) + in) < 0 ? -errno : 0;
}

/* The next event or a negative errno. */
static int cm_wait(struct cm *cm, int ms)
{
	struct pollfd ready = { .fd = cm->fd, .events = POLLIN };
	struct rdma_ucm_event_resp event = {};
	struct rdma_ucm_get_event arg = { .response = (uintptr_t)&event };
	int err;

	if (poll(&ready, 1, ms) != 1)
		return -ETIMEDOUT;
	err = cm_call(cm, RDMA_USER_CM_CMD_GET_EVENT, &arg, sizeof(arg),
		      sizeof(event));
	return err ? err : (int)event.event;
}

/* Resolve the route from a to b; no message is sent yet. */
static int cm_open(struct cm *cm)
{
	struct rdma_ucm_create_id_resp made = {};
	struct rdma_ucm_create_id create = {
		.uid = 1,		/* no events if it is 0 */
		.response = (uintptr_t)&made,
		.ps = RDMA_PS_TCP,
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_ucm_resolve_ip ip = { .timeout_ms = 10000 };
	struct rdma_ucm_resolve_route route = { .timeout_ms = 10000 };
	struct sockaddr_in *to = (struct sockaddr_in *)&ip.dst_addr;
	int err;

	cm->fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	if (cm->fd < 0)
		return -errno;
	err = cm_call(cm, RDMA_USER_CM_CMD_CREATE_ID, &create, sizeof(create),
		      sizeof(made));
	if (err)
		return err;
	cm->id = made.id;
	ip.id = made.id;
	to->sin_family = AF_INET;
	to->sin_port = htons(7471);
	to->sin_addr.s_addr = inet_addr(ADDR_B);
	err = cm_call(cm, RDMA_USER_CM_CMD_RESOLVE_IP, &ip, sizeof(ip), 0);
	if (err || cm_wait(cm, 20000) != CM_ADDR_RESOLVED)
		return err ? err : -EHOSTUNREACH;
	route.id = made.id;
	err = cm_call(cm, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route),
		      0);
	if (err || cm_wait(cm, 20000) != CM_ROUTE_RESOLVED)
		return err ? err : -ENETUNREACH;
	return 0;
}

static int cm_connect(struct cm *cm)
{
	struct rdma_ucm_connect arg = {
		.id = cm->id,
		.conn_param = {
			.qp_num = 0x4711,
			.responder_resources = 1,
			.initiator_depth = 1,
			.retry_count = 7,
			.rnr_retry_count = 7,
			.valid = 1,
		},
	};

	return cm_call(cm, RDMA_USER_CM_CMD_CONNECT, &arg, sizeof(arg), 0);
}

/* Messages of connection managers use QP1, which nothing resets. */
TEST_F_TIMEOUT(lost, cm_goes_on, 300)
{
	enum cut cut;
	struct cm cm;

	for (cut = CUT_PEER; cut <= CUT_OWN; cut++) {
		ASSERT_EQ(0, cm_open(&cm));
		ASSERT_EQ(0, cut_link(cut));
		ASSERT_EQ(0, cm_connect(&cm));
		EXPECT_EQ(-ETIMEDOUT, cm_wait(&cm, 300));
		close(cm.fd);
		ASSERT_EQ(0, mend_link(cut));
		/* there is no listener, and b says so */
		ASSERT_EQ(0, cm_open(&cm));
		ASSERT_EQ(0, cm_connect(&cm));
		EXPECT_EQ(CM_REJECTED, cm_wait(&cm, RCP_TIMEOUT_MS))
			TH_LOG("cut %d", cut);
		close(cm.fd);
	}
}

TEST_HARNESS_MAIN
