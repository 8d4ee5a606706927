/* SPDX-License-Identifier: GPL-2.0 */
/* A rank, its buffers, and what it does with them by plain MPI. */
#ifndef SLUICE_CLUSTER_MPI_JOB_H
#define SLUICE_CLUSTER_MPI_JOB_H

#include <mpi.h>

#include "svm_buffers.h"

struct job {
	struct buffers *b;
	int rank, size, next, before;
};

static void give_up(const char *what)
{
	int begun;

	fprintf(stderr, "mpi: %s\n", what);
	MPI_Initialized(&begun);
	if (begun)
		MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

/* Bytes of a rank's part of a buffer */
static int block(struct job *j)
{
	return j->b->len / j->size;
}

static void sendrecv(struct job *j)
{
	MPI_Sendrecv(j->b->out, j->b->len, MPI_BYTE, j->next, 0, j->b->in, j->b->len,
		     MPI_BYTE, j->before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Not from another buffer: MPI would let the CPU copy the rank's own block. */
static void allgather(struct job *j)
{
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, j->b->in, block(j), MPI_BYTE,
		      MPI_COMM_WORLD);
}

/* The place and length of each block: the rank's own is left out for the same reason. */
static void shares(struct job *j, int *counts, int *at)
{
	for (int i = 0; i < j->size; i++) {
		counts[i] = i == j->rank ? 0 : block(j);
		at[i] = i * block(j);
	}
}

static void alltoall(struct job *j)
{
	int counts[j->size], at[j->size];

	shares(j, counts, at);
	MPI_Alltoallv(j->b->out, counts, at, MPI_BYTE, j->b->in, counts, at, MPI_BYTE,
		      MPI_COMM_WORLD);
}

/* Whether block @to is not block @from of rank @to's data. */
static bool block_differs(struct job *j, int to, int from)
{
	char *had = pattern_of(j->b, to + 1);
	bool differs =
		memcmp(j->b->in + to * block(j), had + from * block(j), block(j));

	free(had);
	return differs;
}

static bool not_gathered(struct job *j)
{
	bool differs = false;

	for (int i = 0; i < j->size; i++)
		differs |= block_differs(j, i, i);
	return differs;
}

static bool not_exchanged(struct job *j)
{
	bool differs = false;

	for (int i = 0; i < j->size; i++)
		differs |= i != j->rank && block_differs(j, i, j->rank);
	return differs;
}

static void begin_job(struct job *j, int *argc, char ***argv)
{
	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &j->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &j->size);
	j->next = (j->rank + 1) % j->size;
	j->before = (j->rank + j->size - 1) % j->size;
}

#endif
