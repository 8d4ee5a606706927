// SPDX-License-Identifier: GPL-2.0
/*
 * mpi-bench ROUNDS: the time of MPI messages and collectives between buffers in the host,
 * and in the video memory of each rank's GPU. Two ranks send messages, too; more ranks run
 * only collectives. No call blocks, so that a rank can sleep meanwhile. rounds.h describes
 * the output.
 */
#include "mpi_job.h"
#include "rounds.h"

struct engine {
	struct job job;
	MPI_Request request[WINDOW];
	int started;
};

static void start_send(struct engine *e, void *at, size_t len)
{
	MPI_Isend(at, len, MPI_BYTE, e->job.next, 0, MPI_COMM_WORLD,
		  &e->request[e->started++]);
}

static void start_receive(struct engine *e, void *at, size_t len)
{
	MPI_Irecv(at, len, MPI_BYTE, e->job.before, 0, MPI_COMM_WORLD,
		  &e->request[e->started++]);
}

static void finish(struct engine *e)
{
	int done;

	while (MPI_Testall(e->started, e->request, &done, MPI_STATUSES_IGNORE), !done)
		nap();
	e->started = 0;
}

static void meet(struct engine *e)
{
	MPI_Ibarrier(MPI_COMM_WORLD, &e->request[e->started++]);
	finish(e);
}

/* The job, now with these buffers */
static struct job *with(struct bench *x, struct buffers *b)
{
	x->engine->job.b = b;
	return &x->engine->job;
}

static void run_allgather(struct bench *x, const struct work *w, struct buffers *b)
{
	struct job *j = with(x, b);

	MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b->in, block(j), MPI_BYTE,
		       MPI_COMM_WORLD, &x->engine->request[x->engine->started++]);
	finish(x->engine);
}

static bool allgather_wrong(struct bench *x, const struct work *w, struct buffers *b)
{
	return not_gathered(with(x, b));
}

static void run_alltoall(struct bench *x, const struct work *w, struct buffers *b)
{
	struct job *j = with(x, b);
	int counts[j->size], at[j->size];

	shares(j, counts, at);
	MPI_Ialltoallv(b->out, counts, at, MPI_BYTE, b->in, counts, at, MPI_BYTE,
		       MPI_COMM_WORLD, &x->engine->request[x->engine->started++]);
	finish(x->engine);
}

static bool alltoall_wrong(struct bench *x, const struct work *w, struct buffers *b)
{
	return not_exchanged(with(x, b));
}

/* One block per rank, which is as large for two ranks as for four */
static void measure_collectives(struct bench *x)
{
	static const size_t blocks[] = {65536, 1 << 20};

	for (unsigned int i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		struct work w = {.bytes = blocks[i],
				 .stride = blocks[i],
				 .parts = x->engine->job.size};

		w.name = "allgather";
		w.fills_in = true;
		w.run = run_allgather;
		w.wrong = allgather_wrong;
		measure(x, &w);
		w.name = "alltoall";
		w.fills_in = false;
		w.run = run_alltoall;
		w.wrong = alltoall_wrong;
		measure(x, &w);
	}
}

int main(int argc, char **argv)
{
	struct engine e = {};
	struct bench x = {};

	if (argc != 2)
		give_up("ROUNDS");
	begin_bench(&x, &e, argv[1]);
	begin_job(&e.job, &argc, &argv);
	x.rank = e.job.rank;
	if (e.job.size == 2)
		measure_messages(&x);
	measure_collectives(&x);
	MPI_Finalize();
	return 0;
}
