/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffers of a process in the video memory of its GPU, by the kernel's own interface, and
 * what happens to them while an engine moves data.
 */
#ifndef SLUICE_CLUSTER_SVM_BUFFERS_H
#define SLUICE_CLUSTER_SVM_BUFFERS_H

#include "kfd_svm.h"

struct buffers {
	struct svm svm;
	struct svm_gpu *gpu;
	bool host;  /* they stay where the CPU made them, for comparison */
	size_t len; /* of each */
	char *out, *in;
	int watch; /* migrations */
	struct svm_alias then;
};

static void give_up(const char *what);

/*
 * Opens the first GPU. To be called before the engine starts: with ROCm's module, UCX takes
 * the process's part of the GPU for itself.
 */
static void open_gpu(struct buffers *b)
{
	int err = svm_open(&b->svm);

	if (err)
		give_up(strerror(-err));
	b->gpu = &b->svm.gpu[0];
}

static bool in_gpu(struct buffers *b, const char *at)
{
	return svm_away(&b->svm, at, b->len) == (long)(b->len / SVM_PAGE);
}

static void to_gpu(struct buffers *b, char *at)
{
	if (svm_prefetch(&b->svm, at, b->len, b->gpu) || !in_gpu(b, at))
		give_up("a buffer does not go to the GPU");
}

/* Its pages hold a pattern, and are in the GPU if they belong there. */
static char *buffer(struct buffers *b, uint32_t seed)
{
	char *at = svm_map(b->len);

	if (!at)
		give_up("no memory");
	pattern_fill(at, b->len, seed);
	if (!b->host)
		to_gpu(b, at);
	return at;
}

/* The content of a buffer that is filled with this seed. The caller frees it. */
static char *pattern_of(struct buffers *b, uint32_t seed)
{
	char *at = malloc(b->len);

	if (!at)
		give_up("no memory");
	pattern_fill(at, b->len, seed);
	return at;
}

/* From now on nothing must migrate. */
static void begin_watch(struct buffers *b)
{
	svm_migrations(b->watch);
	b->then = svm_alias(b->gpu);
}

static void make_buffers(struct buffers *b, size_t len, uint32_t out, uint32_t in)
{
	b->len = len;
	if (!b->len || b->len % SVM_PAGE)
		give_up("sizes are multiples of 4096");
	b->watch = svm_watch(&b->svm, b->gpu);
	b->out = buffer(b, out);
	b->in = buffer(b, in);
	/* if that moved pages, the watch must have seen it */
	if (b->watch < 0 || (!b->host && !svm_migrations(b->watch)))
		give_up("nobody tells of migrations");
	begin_watch(b);
}

static void free_buffers(struct buffers *b)
{
	close(b->watch);
	munmap(b->out, b->len);
	munmap(b->in, b->len);
}

/* The state of the buffers, before the CPU looks */
struct outcome {
	int migrations;		      /* those that amdkfd reported */
	unsigned long long alias;     /* pages that the card got in place */
	unsigned long long fallbacks; /* pages that it did not */
	long left;		      /* pages of both that are no longer in the GPU */
};

static struct outcome outcome_of(struct buffers *b)
{
	struct svm_alias now = svm_alias(b->gpu);

	return (struct outcome){
		.migrations = svm_migrations(b->watch),
		.alias = now.mapped - b->then.mapped,
		.fallbacks = now.fallback - b->then.fallback,
		.left = 2 * b->len / SVM_PAGE - svm_away(&b->svm, b->out, b->len) -
			svm_away(&b->svm, b->in, b->len),
	};
}

static void print_outcome(const char *what, size_t bytes, int rank, struct outcome o,
			  bool wrong)
{
	printf("%s %zu rank=%d migrations=%d alias=%llu fallbacks=%llu left=%ld wrong=%d",
	       what, bytes, rank, o.migrations, o.alias, o.fallbacks, o.left, wrong);
}

/* Ends the line, which is written at once, as a whole. */
static void end_line(void)
{
	putchar('\n');
	fflush(stdout);
}

/* Prints the line, and frees the buffers. */
static void tell(struct buffers *b, const char *what, int rank, struct outcome o,
		 bool wrong)
{
	print_outcome(what, b->len, rank, o, wrong);
	end_line();
	free_buffers(b);
}

#endif
