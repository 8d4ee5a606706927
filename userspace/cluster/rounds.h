/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The time that an engine takes to move buffers: rounds with buffers in the host and in the
 * GPU alternate, in one process and with the same settings. Prints one line per work, size,
 * rank and memory, with the nanoseconds of each round:
 *
 *   latency 8192 rank=0 migrations=0 alias=128 fallbacks=0 left=0 wrong=0 gpu=1 ns=71,70
 *
 * The first round, in which the engine gets to know the buffers, is not timed. The state of
 * the buffers covers all rounds. Pages that left the GPU go back before the next round. All
 * rounds send the same bytes, so "wrong" tells whether they have arrived, but not how
 * often: if the CPU cleared them, the buffer would leave the GPU.
 */
#ifndef SLUICE_CLUSTER_ROUNDS_H
#define SLUICE_CLUSTER_ROUNDS_H

#include "svm_buffers.h"

/* Messages in flight at once */
#define WINDOW 16

struct engine;

/* To and from the other one of two ranks. An empty message is NULL, 0. */
static void start_send(struct engine *e, void *at, size_t len);
static void start_receive(struct engine *e, void *at, size_t len);
/* Wait for all that was started. */
static void finish(struct engine *e);
/* A barrier of all ranks. */
static void meet(struct engine *e);

enum memory { HOST, GPU, MEMORIES };

struct bench {
	struct engine *engine;
	int rank, rounds;
	struct buffers b[MEMORIES];
	struct outcome sum[MEMORIES];
	uint64_t *ns[MEMORIES];
};

/* Work in which parts of the buffers go to other ranks */
struct work {
	const char *name;
	size_t bytes, stride; /* of a part, and to the next one */
	int parts;
	bool fills_in; /* part of the result is there beforehand */
	void (*run)(struct bench *x, const struct work *w, struct buffers *b);
	bool (*wrong)(struct bench *x, const struct work *w, struct buffers *b);
};

static void begin_bench(struct bench *x, struct engine *engine, const char *rounds)
{
	x->engine = engine;
	x->rounds = atoi(rounds);
	if (x->rounds < 1)
		give_up("ROUNDS is a number");
	open_gpu(&x->b[GPU]);
	x->b[HOST] = x->b[GPU];
	x->b[HOST].host = true;
	for (int m = 0; m < MEMORIES; m++) {
		x->ns[m] = calloc(x->rounds + 1, sizeof(*x->ns[m]));
		if (!x->ns[m])
			give_up("no memory");
	}
}

/*
 * A process that waits polls, and sleeps in between. The guests have few processors for all
 * processes: one that kept polling would take them from those that move the data.
 */
static void nap(void)
{
	usleep(20);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void bring_back(struct buffers *b)
{
	if (b->host)
		return;
	if (!in_gpu(b, b->out))
		to_gpu(b, b->out);
	if (!in_gpu(b, b->in))
		to_gpu(b, b->in);
}

static void add_outcome(struct outcome *sum, struct outcome o)
{
	sum->migrations += o.migrations;
	sum->alias += o.alias;
	sum->fallbacks += o.fallbacks;
	sum->left += o.left;
}

static void one_round(struct bench *x, const struct work *w, enum memory m, int round)
{
	struct buffers *b = &x->b[m];
	uint64_t start;

	bring_back(b);
	begin_watch(b);
	meet(x->engine);
	start = now();
	w->run(x, w, b);
	x->ns[m][round] = now() - start;
	/* others may still read the buffers */
	meet(x->engine);
	add_outcome(&x->sum[m], outcome_of(b));
}

static void tell_rounds(struct bench *x, const struct work *w, enum memory m)
{
	print_outcome(w->name, w->bytes, x->rank, x->sum[m], w->wrong(x, w, &x->b[m]));
	printf(" gpu=%d ns=", m == GPU);
	for (int i = 1; i <= x->rounds; i++)
		printf("%s%lu", i > 1 ? "," : "", x->ns[m][i]);
	end_line();
	free_buffers(&x->b[m]);
}

static void measure(struct bench *x, const struct work *w)
{
	int m;

	for (m = 0; m < MEMORIES; m++) {
		x->sum[m] = (struct outcome){};
		make_buffers(&x->b[m], w->parts * w->stride, x->rank + 1,
			     w->fills_in ? x->rank + 1 : 0);
	}
	/* each memory is first in every other round */
	for (int i = 0; i <= x->rounds; i++)
		for (m = 0; m < MEMORIES; m++)
			one_round(x, w, (m + i) % MEMORIES, i);
	for (m = 0; m < MEMORIES; m++)
		tell_rounds(x, w, m);
}

/* From rank 0 to rank 1, which confirms the arrival: the sender may be done before. */
static void bandwidth(struct bench *x, const struct work *w, struct buffers *b)
{
	for (int i = 0; i < w->parts; i++) {
		if (x->rank == 0)
			start_send(x->engine, b->out + i * w->stride, w->bytes);
		else
			start_receive(x->engine, b->in + i * w->stride, w->bytes);
		if ((i + 1) % WINDOW == 0)
			finish(x->engine);
	}
	finish(x->engine);
	if (x->rank == 0)
		start_receive(x->engine, NULL, 0);
	else
		start_send(x->engine, NULL, 0);
	finish(x->engine);
}

/* A message to rank 1, and another one back. No CPU looks at the data that arrive. */
static void latency(struct bench *x, const struct work *w, struct buffers *b)
{
	for (int i = 0; i < 2 * w->parts; i++) {
		if (i % 2 == x->rank)
			start_send(x->engine, b->out + i / 2 * w->stride, w->bytes);
		else
			start_receive(x->engine, b->in + i / 2 * w->stride, w->bytes);
		finish(x->engine);
	}
}

/* Whether the parts differ from the other rank's data. */
static bool parts_differ(struct bench *x, const struct work *w, struct buffers *b)
{
	char *had = pattern_of(b, 2 - x->rank);
	bool differs = false;

	for (int i = 0; i < w->parts; i++)
		differs |= memcmp(b->in + i * w->stride, had + i * w->stride, w->bytes);
	free(had);
	return differs;
}

static bool differs_at_rank_1(struct bench *x, const struct work *w, struct buffers *b)
{
	return x->rank == 1 && parts_differ(x, w, b);
}

/* Two ranks: 16 MiB in messages of each size, then messages one after the other. */
static void measure_messages(struct bench *x)
{
	static const size_t large[] = {65536, 1 << 20, 4 << 20};
	static const size_t small[] = {8, 128, 1024, 8192};
	unsigned int i;

	for (i = 0; i < sizeof(large) / sizeof(*large); i++)
		measure(x, &(struct work){.name = "bandwidth",
					  .bytes = large[i],
					  .stride = large[i],
					  .parts = (16 << 20) / large[i],
					  .run = bandwidth,
					  .wrong = differs_at_rank_1});
	for (i = 0; i < sizeof(small) / sizeof(*small); i++)
		measure(x, &(struct work){.name = "latency",
					  .bytes = small[i],
					  .stride = 8192,
					  .parts = 32,
					  .run = latency,
					  .wrong = parts_differ});
}

#endif
