/* SPDX-License-Identifier: MIT */
/*
 * The C API: groups whose ranks are processes, or hosts, from C. Each test is two processes
 * with a GPU each. scripts/guest/c-api runs it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c_check.h"

enum { RANKS = 2, BLOCK = 1003, WHOLE = RANKS * BLOCK };

/* The layout of each process's memory. */
enum { FROM = 0, TO = WHOLE, STAGING = 2 * WHOLE, SIZE = 4 * WHOLE };

#define PATIENCE 60000000000 /* ns */

/* The state of one of the two processes. */
static struct {
	unsigned rank;
	int link; /* to the other process */
	char path[64];
	sluice_context *ring;
	sluice_device *gpu;
	sluice_buffer *memory;
	unsigned char *bytes;
	sluice_group *group;
	/* processes */
	sluice_processes *all;
	sluice_buffer *of_rank[RANKS];
	/* hosts */
	sluice_host_group *hosts;
	int broken; /* what the transport returns instead of moving data */
} me;

static int nothing(void)
{
	return 0;
}

static void close_nothing(void) {}

static void open_own(void)
{
	char name[] = {(char)('0' + me.rank), '\0'};
	void *data;

	CHECK(!sluice_context_open(NULL, &me.ring));
	CHECK(!sluice_device_open(me.ring, name, &me.gpu));
	CHECK(!sluice_device_vram(me.gpu, SIZE, &me.memory));
	CHECK(!sluice_buffer_map(me.memory, &data));
	me.bytes = data;
}

/* In an unusual order. */
static void close_own(void)
{
	sluice_context_close(me.ring);
	sluice_device_close(me.gpu);
	sluice_processes_free(me.all);
	sluice_group_free(me.group);
	sluice_host_group_free(me.hosts);
	for (unsigned r = 0; r < RANKS; r++)
		sluice_buffer_free(me.of_rank[r]);
	sluice_buffer_free(me.memory);
}

/* Before anything is opened: a child must not use its parent's handles. */
static void in_two(void (*part)(void))
{
	pid_t child[RANKS];
	int links[RANKS], status;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, links));
	snprintf(me.path, sizeof(me.path), "/tmp/c-group-%d", getpid());
	fflush(stdout);
	for (unsigned r = 0; r < RANKS; r++) {
		child[r] = fork();
		CHECK(child[r] >= 0);
		if (child[r])
			continue;
		me.rank = r;
		me.link = links[r];
		close(links[1 - r]);
		open_own();
		if (!bad)
			part();
		close_own();
		fflush(stdout);
		_exit(bad != 0);
	}
	close(links[0]);
	close(links[1]);
	for (unsigned r = 0; r < RANKS; r++) {
		CHECK(waitpid(child[r], &status, 0) == child[r]);
		if (status) {
			printf("# rank %u ended with status %#x\n", r, status);
			bad++;
		}
	}
}

static unsigned char pattern(unsigned rank, unsigned i)
{
	return (unsigned char)(rank * 101 + i * 7 + i / 256);
}

/* The data that each rank has to send. */
static void fill(void)
{
	for (unsigned i = 0; i < WHOLE; i++)
		me.bytes[FROM + i] = pattern(me.rank, i);
	memset(me.bytes + TO, 0xee, WHOLE);
}

/* Block @there of what this rank gets is block @here of rank @by. */
static int got(int there, unsigned by, int here)
{
	for (int i = 0; i < BLOCK; i++)
		if (me.bytes[TO + there * BLOCK + i] !=
		    pattern(by, (unsigned)(here * BLOCK + i)))
			return 0;
	return 1;
}

/* ----------------------------------------------------------- processes */

static struct sluice_slice of_rank(unsigned rank, uint64_t offset, uint64_t length)
{
	return (struct sluice_slice){me.of_rank[rank], offset, length};
}

static void meet(void)
{
	CHECK(!sluice_processes_meet(me.ring, me.path, me.rank, RANKS, PATIENCE,
				     &me.all));
	CHECK(sluice_processes_rank(me.all) == me.rank);
	CHECK(sluice_processes_ranks(me.all) == RANKS);
	CHECK(!sluice_processes_exchange(me.all, me.gpu, me.memory, me.of_rank));
	CHECK(!sluice_group_create_shared(me.gpu, me.all, &me.group));
	CHECK(sluice_group_ranks(me.group) == RANKS);
}

/* Runs when all expect it; no rank goes on before all have their data. */
static int run(sluice_collective *what, uint64_t *value)
{
	sluice_operation *op;
	int err = sluice_processes_barrier(me.all);

	if (!err)
		err = sluice_collective_run(what, &op);
	sluice_collective_free(what);
	if (err)
		return err;
	err = sluice_operation_wait(op, sluice_after(PATIENCE), value);
	sluice_operation_free(op);
	return err ? err : sluice_processes_barrier(me.all);
}

static void processes_exchange(void)
{
	struct sluice_slice to[RANKS], from[RANKS], one[RANKS];
	sluice_collective *all;
	uint64_t n = 0;

	meet();
	if (bad)
		return;
	for (unsigned r = 0; r < RANKS; r++) {
		to[r] = of_rank(r, TO, WHOLE);
		from[r] = of_rank(r, FROM, WHOLE);
		one[r] = of_rank(r, FROM, BLOCK);
	}
	fill();
	CHECK(!sluice_group_all_gather(me.group, to, one, NULL, &all));
	CHECK(!run(all, &n) && n == RANKS * WHOLE);
	CHECK(got(0, 0, 0) && got(1, 1, 0));
	fill();
	CHECK(!sluice_group_all_to_all(me.group, to, from, NULL, &all));
	CHECK(!run(all, &n) && n == RANKS * WHOLE);
	CHECK(got(0, 0, (int)me.rank) && got(1, 1, (int)me.rank));
}

/* Each sends the other a block, and rank 1 sends itself one byte. */
static void processes_send(void)
{
	struct sluice_message all[3] = {
		{.from = 0, .to = 1}, {.from = 1, .to = 0}, {.from = 1, .to = 1}};
	struct sluice_collective_options options = {.size = sizeof(options)};
	sluice_collective *what = NULL;
	uint64_t n = 0;

	meet();
	if (bad)
		return;
	fill();
	all[0].source = of_rank(0, FROM, BLOCK);
	all[0].target = of_rank(1, TO, BLOCK);
	all[1].source = of_rank(1, FROM + BLOCK, BLOCK);
	all[1].target = of_rank(0, TO, BLOCK);
	all[2].source = of_rank(1, FROM + 5, 1);
	all[2].target = of_rank(1, TO + BLOCK, 1);
	CHECK(!sluice_group_send(me.group, all, 3, NULL, &what));
	CHECK(!run(what, &n) && n == WHOLE + 1);
	CHECK(me.rank ? got(0, 0, 0) : got(0, 1, 1));
	CHECK(me.bytes[TO + BLOCK] == (me.rank ? pattern(1, 5) : 0xee));
	/* the others are told of one process's mistake, and stay at the same call */
	options.variant = me.rank ? 99 : 0;
	FAILS(sluice_group_send(me.group, all, 3, &options, &what), EINVAL,
	      me.rank ? "99 is no enum" : "");
	CHECK(sluice_last_error()->index == 1 || me.rank);
	all[2].target.offset += me.rank << 20;
	FAILS(sluice_group_send(me.group, all, 3, NULL, &what), EINVAL,
	      me.rank ? "rank 1: memory outside of its buffer" : "");
	CHECK(sluice_last_error()->index == 1);
}

static void who_has_gone_is_named(void)
{
	sluice_processes *none = NULL;

	CHECK(!sluice_chain_begin(me.ring, 1));
	FAILS(sluice_processes_meet(me.ring, me.path, me.rank, RANKS, 0, &none), EINVAL,
	      "a chain is open");
	CHECK(!sluice_chain_end(me.ring));
	meet();
	if (bad)
		return;
	CHECK(!sluice_chain_begin(me.ring, 1));
	FAILS(sluice_processes_barrier(me.all), EINVAL, "a chain is open");
	CHECK(!sluice_chain_end(me.ring));
	CHECK(!sluice_processes_barrier(me.all));
	if (me.rank == 1)
		return;
	FAILS(sluice_processes_barrier(me.all), ECONNRESET, "");
	CHECK(sluice_last_error()->index == 1);
}

/* --------------------------------------------------------------- hosts */

static int all_sent(const void *from, size_t size)
{
	return send(me.link, from, size, MSG_NOSIGNAL) == (ssize_t)size ? 0
									: -ECONNRESET;
}

static int all_received(void *to, size_t size)
{
	return recv(me.link, to, size, MSG_WAITALL) == (ssize_t)size ? 0 : -ECONNRESET;
}

/* The bytes of the memory that the library has passed to the transport. */
static unsigned char *seen(const struct sluice_slice *memory)
{
	void *data = NULL;

	if (sluice_buffer_map(memory->buffer, &data))
		abort();
	return (unsigned char *)data + memory->offset;
}

/* Sends this host's part to the other, and receives the other's. */
static int exchanged(const unsigned char *mine, unsigned char *theirs, size_t size)
{
	int err = all_sent(mine, size);

	return err ? err : all_received(theirs, size);
}

static int by_all_gather(void *user, const struct sluice_slice *all)
{
	size_t part = all->length / RANKS;
	unsigned char *data = seen(all);

	if (me.broken)
		return me.broken;
	return user == &me ? exchanged(data + me.rank * part,
				       data + (1 - me.rank) * part, part)
			   : -EINVAL;
}

static int by_all_to_all(void *user, const struct sluice_slice *to,
			 const struct sluice_slice *from)
{
	size_t part = to->length / RANKS, other = (1 - me.rank) * part;

	(void)user;
	return exchanged(seen(from) + other, seen(to) + other, part);
}

static int by_broadcast(void *user, uint32_t root, const struct sluice_slice *memory)
{
	(void)user;
	return root == me.rank ? all_sent(seen(memory), memory->length)
			       : all_received(seen(memory), memory->length);
}

static int by_gather(void *user, uint32_t root, const struct sluice_slice *memory)
{
	size_t part = memory->length / RANKS;

	(void)user;
	return root == me.rank ? all_received(seen(memory) + (1 - me.rank) * part, part)
			       : all_sent(seen(memory), memory->length);
}

static int by_scatter(void *user, uint32_t root, const struct sluice_slice *memory)
{
	size_t part = memory->length / RANKS;

	(void)user;
	return root == me.rank ? all_sent(seen(memory) + (1 - me.rank) * part, part)
			       : all_received(seen(memory), memory->length);
}

static struct sluice_host_transport by_socket(void)
{
	return (struct sluice_host_transport){
		.size = sizeof(struct sluice_host_transport),
		.hosts = RANKS,
		.host = me.rank,
		.user = &me,
		.all_gather = by_all_gather,
		.all_to_all = by_all_to_all,
		.broadcast = by_broadcast,
		.gather = by_gather,
		.scatter = by_scatter,
	};
}

static struct sluice_slice here(uint64_t offset, uint64_t length)
{
	return (struct sluice_slice){me.memory, offset, length};
}

static void make_hosts(void)
{
	struct sluice_host_transport over = by_socket();
	struct timeval patience = {.tv_sec = 60};

	setsockopt(me.link, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	CHECK(!sluice_group_create(me.ring, &me.gpu, 1, &me.group));
	CHECK(!sluice_host_group_create(me.group, &over, 0, &me.hosts));
	CHECK(sluice_host_group_ranks(me.hosts) == RANKS);
	CHECK(sluice_host_group_first_rank(me.hosts) == me.rank);
}

static int run_on_hosts(sluice_host_collective *what)
{
	uint64_t n = 0;
	int err = sluice_host_collective_run(what, &n);

	sluice_host_collective_free(what);
	return err;
}

static void hosts_exchange(void)
{
	struct sluice_slice to = here(TO, WHOLE), from = here(FROM, WHOLE);
	struct sluice_slice one = here(FROM, BLOCK), staging = here(STAGING, 2 * WHOLE);
	sluice_host_collective *all;

	make_hosts();
	if (bad)
		return;
	fill();
	CHECK(!sluice_host_group_all_gather(me.hosts, &to, &one, &all));
	/* a collective keeps what it needs */
	sluice_host_group_free(me.hosts);
	sluice_group_free(me.group);
	me.hosts = NULL;
	me.group = NULL;
	CHECK(!run_on_hosts(all) && got(0, 0, 0) && got(1, 1, 0));
	make_hosts();
	if (bad)
		return;
	fill();
	CHECK(!sluice_host_group_all_to_all(me.hosts, &to, &from, &staging, &all));
	CHECK(!run_on_hosts(all) && got(0, 0, (int)me.rank) && got(1, 1, (int)me.rank));
	fill();
	memcpy(me.bytes + TO, me.bytes + FROM, WHOLE);
	CHECK(!sluice_host_group_broadcast(me.hosts, 1, &to, &all));
	CHECK(!run_on_hosts(all) && got(0, 1, 0) && got(1, 1, 1));
}

static void hosts_have_a_root(void)
{
	struct sluice_slice to = here(TO, WHOLE), from = here(FROM, WHOLE);
	struct sluice_slice one = here(FROM, BLOCK), there = here(TO, BLOCK);
	struct sluice_slice staging = here(STAGING, BLOCK);
	const struct sluice_slice *aside = me.rank ? NULL : &staging;
	sluice_host_collective *all;

	make_hosts();
	if (bad)
		return;
	fill();
	CHECK(!sluice_host_group_gather(me.hosts, 1, me.rank ? &to : NULL, &one, aside,
					&all));
	CHECK(!run_on_hosts(all));
	CHECK(!me.rank || (got(0, 0, 0) && got(1, 1, 0)));
	fill();
	CHECK(!sluice_host_group_scatter(me.hosts, 1, &there, me.rank ? &from : NULL,
					 aside, &all));
	CHECK(!run_on_hosts(all) && got(0, 1, (int)me.rank));
}

static void hosts_hear_of_mistakes(void)
{
	struct sluice_slice to = here(TO, WHOLE - me.rank), one = here(FROM, BLOCK);
	struct sluice_host_transport over = by_socket();
	sluice_host_collective *all = NULL;
	sluice_host_group *none = NULL;

	make_hosts();
	if (bad)
		return;
	if (me.rank) {
		FAILS(sluice_host_group_all_gather(me.hosts, &to, &one, &all), EINVAL,
		      "rank 0: 2005 bytes where 2006 are wanted");
		FAILS(sluice_host_group_all_gather(me.hosts, NULL, &one, &all), EINVAL,
		      "memory of 0 ranks, the group has 1");
	} else {
		for (int i = 0; i < 2; i++) {
			FAILS(sluice_host_group_all_gather(me.hosts, &to, &one, &all),
			      EREMOTEIO, "");
			CHECK(sluice_last_error()->index == 1);
		}
	}
	CHECK(!all);
	over.scatter = NULL;
	FAILS(sluice_host_group_create(me.group, &over, 0, &none), EINVAL,
	      "a function of it is NULL");
	over = by_socket();
	over.host = 2;
	FAILS(sluice_host_group_create(me.group, &over, 0, &none), EINVAL, "");
	CHECK(!none);
}

/* The library's functions return what the transport's return. */
static void the_transport_fails(void)
{
	struct sluice_slice to = here(TO, WHOLE), one = here(FROM, BLOCK);
	sluice_host_collective *all;
	uint64_t n;

	make_hosts();
	if (bad)
		return;
	CHECK(!sluice_host_group_all_gather(me.hosts, &to, &one, &all));
	CHECK(!sluice_host_collective_run(all, NULL));
	me.broken = -ETIMEDOUT;
	FAILS(sluice_host_collective_run(all, &n), ETIMEDOUT,
	      "all_gather: the transport's");
	CHECK(sluice_last_error()->code == SLUICE_ERROR_SYSTEM);
	me.broken = -ENOSPC;
	FAILS(sluice_host_collective_run(all, &n), ENOSPC, "No space");
	me.broken = 5;
	FAILS(sluice_host_collective_run(all, &n), EINVAL,
	      "all_gather: it returned 5, and not 0 or a negative number of errno");
	sluice_host_collective_free(all);
}

#define IN_TWO(part) \
	static void part##_(void) \
	{ \
		WANTS_SERIES(); \
		in_two(part); \
	}

IN_TWO(processes_exchange)
IN_TWO(processes_send)
IN_TWO(who_has_gone_is_named)
IN_TWO(hosts_exchange)
IN_TWO(hosts_have_a_root)
IN_TWO(hosts_hear_of_mistakes)
IN_TWO(the_transport_fails)

#define TEST(name) {#name, name##_}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		TEST(processes_exchange),    TEST(processes_send),
		TEST(who_has_gone_is_named), TEST(hosts_exchange),
		TEST(hosts_have_a_root),     TEST(hosts_hear_of_mistakes),
		TEST(the_transport_fails),
	};

	return run_tests(tests, sizeof(tests) / sizeof(*tests),
			 argc > 1 ? argv[1] : NULL, nothing, close_nothing);
}
