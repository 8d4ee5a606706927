// SPDX-License-Identifier: GPL-2.0
/*
 * mpi-svm BYTES ...: MPI between buffers in the video memory of each rank's GPU. Each rank
 * sends to the next one and receives from the previous one, or a block of the buffer goes
 * to each. Apart from the buffers it is plain MPI. Prints one line per operation, size and
 * rank, which the caller judges:
 *
 *   sendrecv 8192 rank=0 migrations=0 alias=4 fallbacks=0 left=0 wrong=0
 */
#include "mpi_job.h"

/* Write into the window of the next rank, or read from that of the previous one. */
static void in_window(struct job *j, bool put)
{
	MPI_Win window;

	MPI_Win_create(put ? j->b->in : j->b->out, j->b->len, 1, MPI_INFO_NULL,
		       MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	if (put)
		MPI_Put(j->b->out, j->b->len, MPI_BYTE, j->next, 0, j->b->len, MPI_BYTE,
			window);
	else
		MPI_Get(j->b->in, j->b->len, MPI_BYTE, j->before, 0, j->b->len,
			MPI_BYTE, window);
	MPI_Win_fence(0, window);
	MPI_Win_free(&window);
}

static void put(struct job *j)
{
	in_window(j, true);
}

static void get(struct job *j)
{
	in_window(j, false);
}

/* Whether the whole differs from the previous rank's data. */
static bool not_of_before(struct job *j)
{
	return pattern_check(j->b->in, j->b->len, j->before + 1) >= 0;
}

static const struct operation {
	const char *name;
	void (*run)(struct job *j);
	bool (*wrong)(struct job *j);
	bool fills_in; /* part of the result is there beforehand */
} operations[] = {
	{.name = "sendrecv", .run = sendrecv, .wrong = not_of_before},
	{.name = "put", .run = put, .wrong = not_of_before},
	{.name = "get", .run = get, .wrong = not_of_before},
	{.name = "allgather",
	 .run = allgather,
	 .wrong = not_gathered,
	 .fills_in = true},
	{.name = "alltoall", .run = alltoall, .wrong = not_exchanged},
};

static void run(struct job *j, const struct operation *what, const char *bytes)
{
	struct outcome o;

	make_buffers(j->b, strtoul(bytes, NULL, 0), j->rank + 1,
		     what->fills_in ? j->rank + 1 : 0);
	if (j->b->len % (j->size * SVM_PAGE))
		give_up("sizes are pages for each rank");
	MPI_Barrier(MPI_COMM_WORLD);
	what->run(j);
	MPI_Barrier(MPI_COMM_WORLD);
	o = outcome_of(j->b);
	tell(j->b, what->name, j->rank, o, what->wrong(j));
}

int main(int argc, char **argv)
{
	struct buffers b = {};
	struct job j = {.b = &b};
	unsigned int i;
	int n;

	open_gpu(&b);
	begin_job(&j, &argc, &argv);
	for (n = 1; n < argc; n++)
		for (i = 0; i < sizeof(operations) / sizeof(*operations); i++)
			run(&j, &operations[i], argv[n]);
	MPI_Finalize();
	return 0;
}
