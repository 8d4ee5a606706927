// SPDX-License-Identifier: GPL-2.0
/*
 * mpi-svm BYTES ...: MPI between buffers that are in the video memory of each rank's GPU.
 * Each rank sends to the next one and gets from the one before. Buffers are made and
 * moved by the kernel's own interface, the rest is plain MPI. A line for each operation,
 * size and rank, which whoever has started it judges:
 *
 *   sendrecv 8192 rank=0 migrations=0 alias=4 fallbacks=0 left=0 wrong=0
 *
 * migrations are those that amdkfd told of; alias: pages that the card got in place;
 * fallbacks: that it did not; left: pages of both buffers that were not in the GPU any
 * more when all was done, before the CPU looked; wrong: is a byte wrong?
 */
#include <mpi.h>

#include "kfd_svm.h"

struct job {
	struct svm svm;
	struct svm_gpu *gpu;
	int rank, next, before;
	char *out, *in;
	size_t len;
};

static void give_up(const char *what)
{
	fprintf(stderr, "mpi-svm: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void sendrecv(struct job *j)
{
	MPI_Sendrecv(j->out, j->len, MPI_BYTE, j->next, 0, j->in, j->len, MPI_BYTE,
		     j->before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void put(struct job *j)
{
	MPI_Win window;

	MPI_Win_create(j->in, j->len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	MPI_Put(j->out, j->len, MPI_BYTE, j->next, 0, j->len, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	MPI_Win_free(&window);
}

static void get(struct job *j)
{
	MPI_Win window;

	MPI_Win_create(j->out, j->len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	MPI_Get(j->in, j->len, MPI_BYTE, j->before, 0, j->len, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	MPI_Win_free(&window);
}

static const struct operation {
	const char *name;
	void (*run)(struct job *j);
} operations[] = {
	{ "sendrecv", sendrecv },
	{ "put", put },
	{ "get", get },
};

/* A buffer whose pages hold a pattern and are in the GPU. */
static char *buffer(struct job *j, uint32_t seed)
{
	char *at = svm_map(j->len);

	if (!at)
		give_up("no memory");
	pattern_fill(at, j->len, seed);
	if (svm_prefetch(&j->svm, at, j->len, j->gpu) ||
	    svm_away(&j->svm, at, j->len) != (long)(j->len / SVM_PAGE))
		give_up("a buffer does not go to the GPU");
	return at;
}

static long left(struct job *j)
{
	return 2 * j->len / SVM_PAGE - svm_away(&j->svm, j->out, j->len) -
	       svm_away(&j->svm, j->in, j->len);
}

static void run(struct job *j, const struct operation *what)
{
	struct svm_alias then, now;
	int watch = svm_watch(&j->svm, j->gpu);

	j->out = buffer(j, j->rank + 1);
	j->in = buffer(j, 0);
	/* that moved pages, so the watch must have seen it */
	if (watch < 0 || !svm_migrations(watch))
		give_up("nobody tells of migrations");
	then = svm_alias(j->gpu);
	MPI_Barrier(MPI_COMM_WORLD);
	what->run(j);
	MPI_Barrier(MPI_COMM_WORLD);
	now = svm_alias(j->gpu);
	printf("%s %zu rank=%d migrations=%d alias=%llu fallbacks=%llu left=%ld ",
	       what->name, j->len, j->rank, svm_migrations(watch),
	       now.mapped - then.mapped, now.fallback - then.fallback, left(j));
	printf("wrong=%d\n", pattern_check(j->in, j->len, j->before + 1) >= 0);
	fflush(stdout);
	close(watch);
	munmap(j->out, j->len);
	munmap(j->in, j->len);
}

int main(int argc, char **argv)
{
	struct job j = {};
	unsigned int i;
	int n, size, err;

	/* first: with ROCm's module UCX takes the process's part of the GPU for itself */
	err = svm_open(&j.svm);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	j.next = (j.rank + 1) % size;
	j.before = (j.rank + size - 1) % size;
	if (err)
		give_up(strerror(-err));
	j.gpu = &j.svm.gpu[0];
	for (n = 1; n < argc; n++)
		for (i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
			j.len = strtoul(argv[n], NULL, 0);
			if (!j.len || j.len % SVM_PAGE)
				give_up("sizes are multiples of 4096");
			run(&j, &operations[i]);
		}
	svm_close(&j.svm);
	MPI_Finalize();
	return 0;
}
