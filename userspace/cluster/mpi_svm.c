// SPDX-License-Identifier: GPL-2.0
/*
 * mpi-svm BYTES ...: MPI between buffers that are in the video memory of each rank's GPU.
 * Each rank sends to the next one and gets from the one before. All but the buffers is
 * plain MPI. A line for each operation, size and rank, which whoever has started it
 * judges:
 *
 *   sendrecv 8192 rank=0 migrations=0 alias=4 fallbacks=0 left=0 wrong=0
 */
#include <mpi.h>

#include "svm_buffers.h"

struct job {
	struct buffers b;
	int rank, next, before;
};

static void give_up(const char *what)
{
	fprintf(stderr, "mpi-svm: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

static void sendrecv(struct job *j)
{
	MPI_Sendrecv(j->b.out, j->b.len, MPI_BYTE, j->next, 0, j->b.in, j->b.len,
		     MPI_BYTE, j->before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Write into the window of the next rank, or read from that of the rank before. */
static void in_window(struct job *j, bool put)
{
	MPI_Win window;

	MPI_Win_create(put ? j->b.in : j->b.out, j->b.len, 1, MPI_INFO_NULL,
		       MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	if (put)
		MPI_Put(j->b.out, j->b.len, MPI_BYTE, j->next, 0, j->b.len, MPI_BYTE,
			window);
	else
		MPI_Get(j->b.in, j->b.len, MPI_BYTE, j->before, 0, j->b.len, MPI_BYTE,
			window);
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

static const struct operation {
	const char *name;
	void (*run)(struct job *j);
} operations[] = {
	{"sendrecv", sendrecv},
	{"put", put},
	{"get", get},
};

static void run(struct job *j, const struct operation *what, const char *bytes)
{
	make_buffers(&j->b, bytes, j->rank + 1, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	what->run(j);
	MPI_Barrier(MPI_COMM_WORLD);
	tell(&j->b, what->name, j->rank, j->before + 1);
}

int main(int argc, char **argv)
{
	struct job j = {};
	unsigned int i;
	int n, size, err;

	/* first: with ROCm's module UCX takes the process's part of the GPU for itself */
	err = svm_open(&j.b.svm);
	MPI_Init(&argc, &argv);
	if (err)
		give_up(strerror(-err));
	j.b.gpu = &j.b.svm.gpu[0];
	MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	j.next = (j.rank + 1) % size;
	j.before = (j.rank + size - 1) % size;
	for (n = 1; n < argc; n++)
		for (i = 0; i < sizeof(operations) / sizeof(*operations); i++)
			run(&j, &operations[i], argv[n]);
	svm_close(&j.b.svm);
	MPI_Finalize();
	return 0;
}
