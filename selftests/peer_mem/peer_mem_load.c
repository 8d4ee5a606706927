// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA to memory in a peer device while its pages are moved, taken away and
 * brought back, and while the device itself is unbound. Two threads, with a
 * pair of queue pairs each, keep transferring by the same memory region: no
 * transfer may fail, and what they wrote last has to be there.
 *
 * PEER_LOAD_SECONDS is how long each test runs, 2 by default. See
 * peer_mem_rdma.c for the rest.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "../rdma/rc_pair.h"
#include "peer_mem.h"

#define DEVICE	"rxe_peer_load"
#define NR	16
#define LEN	(NR * PAGE)
#define THREADS	2
#define SLOT	2048		/* in each page, where thread 0 writes */
#define COUNTER	1024		/* in each page, for the FETCH_ADDs */
#define CHUNK	64
#define HOST	(LEN + PAGE)	/* ordinary memory of a thread */

static const char *device;

/* A thread that transfers, with ordinary memory for CHUNKs and a word. */
struct worker {
	FIXTURE_DATA(load) *self;
	unsigned int nr;
	struct rcp_pair pair;
	char *host;
	pthread_t thread;
	int status;			/* of the first transfer that failed */
	uint64_t rounds;		/* that it completed */
};

FIXTURE(load) {
	struct rcp_dev dev;
	struct worker workers[THREADS];
	int fd;
	char name[64];
	char *buf;
	char *host;
	struct ibv_mr *mr;
	struct ibv_mr *host_mr;
	unsigned long touched[NR];	/* by the CPU */
	bool running;
	bool stop;
};

FIXTURE_VARIANT(load) {
	void (*disturb)(struct __test_metadata *_metadata,
			FIXTURE_DATA(load) *self);
};

/* What @slot of @page holds after round @round. */
static void fill_slot(char *slot, uint64_t round, unsigned int page)
{
	uint64_t words[CHUNK / sizeof(uint64_t)];
	unsigned int i;

	for (i = 0; i < CHUNK / sizeof(uint64_t); i++)
		words[i] = (round << 16 | page << 8 | i) *
			   0x9e3779b97f4a7c15ULL;
	memcpy(slot, words, CHUNK);
}

static char *slot_in(struct worker *worker, char *page)
{
	return page + SLOT + worker->nr * CHUNK;
}

static int add_one(struct worker *worker, char *page)
{
	FIXTURE_DATA(load) *self = worker->self;
	struct ibv_sge sge = rcp_sge(self->host_mr, worker->host + LEN, 8);

	return rcp_atomic(&worker->pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, &sge,
			  (uintptr_t)page + COUNTER, self->mr->rkey, 1, 0);
}

/* Write, add, and read back one page. */
static int transfer(struct worker *worker, unsigned int i)
{
	FIXTURE_DATA(load) *self = worker->self;
	char *slot = worker->host + i * CHUNK, *back = worker->host + LEN + 8;
	char *page = self->buf + i * PAGE;
	struct ibv_sge sge;
	int status;

	fill_slot(slot, worker->rounds + 1, i);
	sge = rcp_sge(self->host_mr, slot, CHUNK);
	status = rcp_rdma(&worker->pair.a, IBV_WR_RDMA_WRITE, &sge,
			  (uintptr_t)slot_in(worker, page), self->mr->rkey);
	if (!status)
		status = add_one(worker, page);
	if (status)
		return status;
	sge = rcp_sge(self->host_mr, back, CHUNK);
	status = rcp_rdma(&worker->pair.a, IBV_WR_RDMA_READ, &sge,
			  (uintptr_t)slot_in(worker, page), self->mr->rkey);
	if (!status && memcmp(back, slot, CHUNK))
		return -EILSEQ;
	return status;
}

static void *transfer_all_the_time(void *arg)
{
	struct worker *worker = arg;
	unsigned int i;

	while (!__atomic_load_n(&worker->self->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < NR; i++) {
			worker->status = transfer(worker, i);
			if (worker->status)
				return NULL;
		}
		__atomic_fetch_add(&worker->rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void cpu_touch(struct __test_metadata *_metadata,
		      FIXTURE_DATA(load) *self)
{
	unsigned int i;

	for (i = 0; i < NR; i++) {
		++*(volatile uint64_t *)(self->buf + i * PAGE);
		self->touched[i]++;
	}
}

static void to_system(struct __test_metadata *_metadata,
		      FIXTURE_DATA(load) *self)
{
	EXPECT_LE(0, peer_to_sys(self->fd, self->buf, LEN));
}

static void evict(struct __test_metadata *_metadata, FIXTURE_DATA(load) *self)
{
	EXPECT_LE(0, peer_evict(self->fd));
}

static void revoke_alias(struct __test_metadata *_metadata,
			 FIXTURE_DATA(load) *self)
{
	EXPECT_LE(0, peer_revoke(self->fd));
	EXPECT_EQ(0, peer_publish(self->fd, peer_info(self->fd).size, 0));
}

/* Between the two steps of a revocation, pages are present but not usable. */
static void revoke_first(struct __test_metadata *_metadata,
			 FIXTURE_DATA(load) *self)
{
	EXPECT_EQ(0, peer_revoke_only(self->fd));
	usleep(rand() % 3000);
	EXPECT_EQ(0, peer_publish(self->fd, peer_info(self->fd).size, 0));
}

/* The file that is open outlives the device; the pages must not. */
static void unbind(struct __test_metadata *_metadata, FIXTURE_DATA(load) *self)
{
	ASSERT_EQ(0, peer_bind("mem", self->name, false));
	EXPECT_EQ(-ENODEV, peer_to_dev(self->fd, self->buf, LEN));
	close(self->fd);
	ASSERT_EQ(0, peer_bind("mem", self->name, true));
	self->fd = peer_open("mem", 0);
	ASSERT_LE(0, self->fd);
}

static void fork_and_exit(struct __test_metadata *_metadata,
			  FIXTURE_DATA(load) *self)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
}

static void prefetch(struct __test_metadata *_metadata,
		     FIXTURE_DATA(load) *self)
{
	EXPECT_EQ(0, rcp_advise(&self->dev, self->mr,
				IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0,
				(uintptr_t)self->buf, LEN));
	EXPECT_LE(0, peer_to_sys(self->fd, self->buf, LEN));
	EXPECT_EQ(0, rcp_advise(&self->dev, self->mr,
				IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0,
				(uintptr_t)self->buf, LEN));
}

static void anything(struct __test_metadata *_metadata,
		     FIXTURE_DATA(load) *self)
{
	static void (*const what[])(struct __test_metadata *_metadata,
				    FIXTURE_DATA(load) *self) = {
		cpu_touch, to_system, evict, revoke_alias, revoke_first,
		unbind, fork_and_exit, prefetch,
	};

	what[rand() % ARRAY_SIZE(what)](_metadata, self);
}

FIXTURE_VARIANT_ADD(load, cpu_touch) { cpu_touch };
FIXTURE_VARIANT_ADD(load, to_system) { to_system };
FIXTURE_VARIANT_ADD(load, evict) { evict };
FIXTURE_VARIANT_ADD(load, revoke) { revoke_alias };
FIXTURE_VARIANT_ADD(load, revoke_first) { revoke_first };
FIXTURE_VARIANT_ADD(load, unbind) { unbind };
FIXTURE_VARIANT_ADD(load, fork) { fork_and_exit };
FIXTURE_VARIANT_ADD(load, prefetch) { prefetch };
FIXTURE_VARIANT_ADD(load, anything) { anything };

FIXTURE_SETUP(load)
{
	unsigned int i;

	self->fd = peer_open("mem", 0);
	if (self->fd < 0)
		SKIP(return, "no /dev/peer_mem0");
	ASSERT_EQ(0, peer_name("mem", 0, self->name, sizeof(self->name)));
	ASSERT_EQ(0, rcp_open(&self->dev, device));
	if (!rcp_odp_caps(&self->dev))
		SKIP(return, "%s has no on-demand paging", device);
	ASSERT_LE(0, peer_evict(self->fd));
	ASSERT_EQ(0, peer_publish(self->fd, peer_info(self->fd).size, 0));
	self->buf = peer_map(LEN);
	self->host = peer_map(THREADS * HOST);
	ASSERT_NE(NULL, self->buf);
	ASSERT_NE(NULL, self->host);
	self->mr = rcp_reg(&self->dev, self->buf, LEN, RCP_ODP);
	self->host_mr = rcp_reg(&self->dev, self->host, THREADS * HOST,
				RCP_PINNED);
	ASSERT_NE(NULL, self->mr);
	ASSERT_NE(NULL, self->host_mr);
	for (i = 0; i < THREADS; i++) {
		struct worker *worker = &self->workers[i];

		worker->self = self;
		worker->nr = i;
		worker->host = self->host + i * HOST;
		ASSERT_EQ(0, rcp_init(&worker->pair, &self->dev, &self->dev));
		ASSERT_EQ(0, rcp_connect(&worker->pair, IBV_MTU_4096));
	}
}

static void stop_threads(FIXTURE_DATA(load) *self)
{
	unsigned int i;

	if (!self->running)
		return;
	__atomic_store_n(&self->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++)
		pthread_join(self->workers[i].thread, NULL);
	self->running = false;
}

FIXTURE_TEARDOWN(load)
{
	unsigned int i;

	if (self->fd < 0)
		return;
	stop_threads(self);
	for (i = 0; i < THREADS; i++)
		rcp_fini(&self->workers[i].pair);
	if (self->mr)
		ibv_dereg_mr(self->mr);
	if (self->host_mr)
		ibv_dereg_mr(self->host_mr);
	rcp_close(&self->dev);
	if (self->buf)
		munmap(self->buf, LEN);
	EXPECT_EQ(0, peer_info(self->fd).pages);
	close(self->fd);
}

static void check_pages(struct __test_metadata *_metadata,
			FIXTURE_DATA(load) *self)
{
	unsigned int i, j;

	for (i = 0; i < NR; i++) {
		char *page = self->buf + i * PAGE, slot[CHUNK];
		uint64_t rounds = 0;

		for (j = 0; j < THREADS; j++) {
			struct worker *worker = &self->workers[j];

			fill_slot(slot, worker->rounds, i);
			EXPECT_EQ(0, memcmp(slot_in(worker, page), slot,
					    CHUNK));
			rounds += worker->rounds;
		}
		EXPECT_EQ(rounds, *(uint64_t *)(page + COUNTER));
		EXPECT_EQ(self->touched[i], *(uint64_t *)page);
	}
}

static void run_threads(struct __test_metadata *_metadata,
			FIXTURE_DATA(load) *self)
{
	unsigned int i;

	self->stop = false;
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&self->workers[i].thread, NULL,
					    transfer_all_the_time,
					    &self->workers[i]));
	self->running = true;
}

/* The transfers use the memory where it is as long as nothing disturbs them. */
static void start_threads(struct __test_metadata *_metadata,
			  FIXTURE_DATA(load) *self)
{
	struct peer_mem_info before, now;
	unsigned int i;

	memset(self->buf, 0, LEN);
	ASSERT_EQ(NR, peer_to_dev(self->fd, self->buf, LEN));
	before = peer_info(self->fd);
	run_threads(_metadata, self);
	for (i = 0; i < THREADS; i++)
		while (!__atomic_load_n(&self->workers[i].rounds,
					__ATOMIC_RELAXED) &&
		       !__atomic_load_n(&self->workers[i].status,
					__ATOMIC_RELAXED))
			usleep(1000);
	now = peer_info(self->fd);
	EXPECT_EQ(before.faults, now.faults);
	EXPECT_LE(NR, now.mapped - before.mapped);
}

/* Whatever happened before, published memory is used where it is. */
static void check_used_again(struct __test_metadata *_metadata,
			     FIXTURE_DATA(load) *self)
{
	struct peer_mem_info before;

	ASSERT_EQ(0, peer_publish(self->fd, peer_info(self->fd).size, 0));
	/* a page that a fork has made read-only would move to be written */
	cpu_touch(_metadata, self);
	ASSERT_EQ(NR, peer_to_dev(self->fd, self->buf, LEN));
	before = peer_info(self->fd);
	EXPECT_EQ(0, transfer(&self->workers[0], 0));
	EXPECT_EQ(before.faults, peer_info(self->fd).faults);
	EXPECT_LT(before.mapped, peer_info(self->fd).mapped);
}

/*
 * The first revocation in the life of a region, while one queue pair uses pages
 * and the other one faults them.
 */
static void first_revocation(struct __test_metadata *_metadata,
			     FIXTURE_DATA(load) *self)
{
	unsigned int i;

	ibv_dereg_mr(self->mr);
	self->mr = rcp_reg(&self->dev, self->buf, LEN, RCP_ODP);
	ASSERT_NE(NULL, self->mr);
	cpu_touch(_metadata, self);
	ASSERT_EQ(NR, peer_to_dev(self->fd, self->buf, LEN));
	run_threads(_metadata, self);
	usleep(rand() % 20000);
	revoke_first(_metadata, self);
	stop_threads(self);
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, self->workers[i].status);
}

TEST_F_TIMEOUT(load, nothing_lost, 300)
{
	const char *seconds = getenv("PEER_LOAD_SECONDS");
	unsigned long disturbed = 0;
	unsigned int i;
	uint64_t end;

	start_threads(_metadata, self);
	end = rcp_now_ms() + (seconds ? atoi(seconds) : 2) * 1000;
	do {
		/* best effort: pages that are in use at the moment stay */
		ASSERT_LE(0, peer_to_dev(self->fd, self->buf, LEN));
		usleep(rand() % 3000);
		variant->disturb(_metadata, self);
		disturbed++;
	} while (rcp_now_ms() < end);
	stop_threads(self);
	for (i = 0; i < THREADS; i++) {
		EXPECT_EQ(0, self->workers[i].status);
		EXPECT_LT(0, self->workers[i].rounds);
		TH_LOG("%llu rounds, disturbed %lu times",
		       (unsigned long long)self->workers[i].rounds, disturbed);
	}
	check_pages(_metadata, self);
	check_used_again(_metadata, self);
	for (i = 0; variant->disturb == revoke_first && i < 30; i++)
		first_revocation(_metadata, self);
}

int main(int argc, char **argv)
{
	device = rcp_device_get(DEVICE);
	if (!device)
		ksft_exit_skip("no RDMA device: %s\n", strerror(errno));
	return test_harness_run(argc, argv);
}
