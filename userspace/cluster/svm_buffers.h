/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffers of a process that are in the video memory of its GPU, by the kernel's own
 * interface, and what becomes of them while somebody moves data.
 */
#ifndef SLUICE_CLUSTER_SVM_BUFFERS_H
#define SLUICE_CLUSTER_SVM_BUFFERS_H

#include "kfd_svm.h"

struct buffers {
	struct svm svm;
	struct svm_gpu *gpu;
	size_t len; /* of each */
	char *out, *in;
	int watch; /* migrations */
	struct svm_alias then;
};

static void give_up(const char *what);

/* Its pages hold a pattern and are in the GPU. */
static char *buffer(struct buffers *b, uint32_t seed)
{
	char *at = svm_map(b->len);

	if (!at)
		give_up("no memory");
	pattern_fill(at, b->len, seed);
	if (svm_prefetch(&b->svm, at, b->len, b->gpu) ||
	    svm_away(&b->svm, at, b->len) != (long)(b->len / SVM_PAGE))
		give_up("a buffer does not go to the GPU");
	return at;
}

/* From now on nothing is to migrate. */
static void make_buffers(struct buffers *b, const char *bytes, uint32_t out,
			 uint32_t in)
{
	b->len = strtoul(bytes, NULL, 0);
	if (!b->len || b->len % SVM_PAGE)
		give_up("sizes are multiples of 4096");
	b->watch = svm_watch(&b->svm, b->gpu);
	b->out = buffer(b, out);
	b->in = buffer(b, in);
	/* that moved pages, so the watch must have seen it */
	if (b->watch < 0 || !svm_migrations(b->watch))
		give_up("nobody tells of migrations");
	b->then = svm_alias(b->gpu);
}

/*
 * A line of what has become of them, and no buffers any more:
 * migrations: those that amdkfd told of; alias: pages that the card got in place;
 * fallbacks: that it did not; left: pages of both buffers that were not in the GPU any
 * more when all was done, before the CPU looked; wrong: is a byte wrong?
 */
static void tell(struct buffers *b, const char *what, int rank, uint32_t in)
{
	struct svm_alias now = svm_alias(b->gpu);
	long left = 2 * b->len / SVM_PAGE - svm_away(&b->svm, b->out, b->len) -
		    svm_away(&b->svm, b->in, b->len);

	printf("%s %zu rank=%d migrations=%d alias=%llu fallbacks=%llu left=%ld ", what,
	       b->len, rank, svm_migrations(b->watch), now.mapped - b->then.mapped,
	       now.fallback - b->then.fallback, left);
	printf("wrong=%d\n", pattern_check(b->in, b->len, in) >= 0);
	fflush(stdout);
	close(b->watch);
	munmap(b->out, b->len);
	munmap(b->in, b->len);
}

#endif
