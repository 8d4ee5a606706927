// SPDX-License-Identifier: GPL-2.0
/*
 * sdma_memory_bench [rounds]: what a copy in a batch costs the process, by the
 * kind of memory that it reads, in instructions or nanoseconds per copy (see
 * kselftest_cost.h). Each copy moves 4096 bytes to video memory.
 *
 *	gem	a buffer in system memory
 *	userptr	memory of the process, as a user pointer
 *	svm	memory of the process, registered with the compute driver
 *	private	like svm, but in video memory
 *
 *	cold	a batch after mprotect() to read-only and back: the driver has
 *		to look up the pages again
 *	batch	a batch on the same pages as the batch before
 *	prep	a run of a prepared batch
 *
 * The worker that maps SVM memory again after an invalidation does not run in
 * the process, so its cost is not counted.
 *
 * Exits with 1 if a prepared batch of 64 copies costs more than 1.5 times as
 * much on a user pointer or on SVM memory as on a buffer.
 */
#include <sched.h>

#include "../../../kselftest.h"
#include "../../../kselftest_cost.h"
#include "sdma_prepared.h"
#include "sdma_svm.h"

#define PAGE		4096u
#define MAX_COPIES	4096
/* every other page, or copies would be merged */
#define SIZE		(2ul * MAX_COPIES * PAGE)
#define TO_VA		(1024 * MIB)
#define GEM_VA		(1088 * MIB)
#define USER_VA		(1152 * MIB)

enum memory { GEM, USERPTR, SVM, PRIVATE, KINDS };
enum way { COLD, BATCH, PREP, WAYS };

static const char * const kind_names[] = { "gem", "userptr", "svm", "private" };
static const char * const way_names[] = { "cold", "batch", "prep" };

struct source {
	uint8_t *cpu;
	uint64_t va;
};

struct bench {
	struct gpu gpu;
	struct buffer to, gem, user;
	struct kfd kfd;
	struct svm svm;
	struct source from[KINDS];
	uint32_t out;
	int rounds;
	struct drm_amdgpu_sdma_desc descs[MAX_COPIES];
};

static void check(const char *what, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-ret));
	exit(1);
}

static void open_gpu(struct bench *b)
{
	if (gpu_open(&b->gpu, 0) || kfd_open(&b->kfd, &b->gpu)) {
		puts("1..0 # SKIP no GPU with SDMA batches on SVM memory");
		exit(4);
	}
	b->svm = svm_of(&b->kfd, &b->gpu);
	check("syncobj", syncobj_new(&b->gpu, &b->out));
	check("to", buffer_map(&b->gpu, &b->to, SIZE, AMDGPU_GEM_DOMAIN_VRAM,
			       TO_VA));
}

static void open_memories(struct bench *b)
{
	check("gem", buffer_map(&b->gpu, &b->gem, SIZE, AMDGPU_GEM_DOMAIN_GTT,
				GEM_VA));
	b->from[GEM] = (struct source) { b->gem.cpu, GEM_VA };
	check("userptr", buffer_user(&b->gpu, &b->user, SIZE, USER_VA,
				     AMDGPU_GEM_USERPTR_REGISTER));
	memset(b->user.cpu, 1, SIZE);
	b->from[USERPTR] = (struct source) { b->user.cpu, USER_VA };
	check("svm", svm_new(&b->svm, &b->from[SVM].cpu, SIZE));
	b->from[SVM].va = (uintptr_t)b->from[SVM].cpu;
	check("private", svm_new(&b->svm, &b->from[PRIVATE].cpu, SIZE));
	b->from[PRIVATE].va = (uintptr_t)b->from[PRIVATE].cpu;
	check("prefetch", svm_prefetch(&b->svm, b->from[PRIVATE].cpu, SIZE,
				       &b->svm.gpu[0]));
	if (svm_here(&b->svm, b->from[PRIVATE].cpu, SIZE))
		check("prefetch", -ENOSPC);
}

static void put_descs(struct bench *b, enum memory kind, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		b->descs[i] = copy_desc(b->from[kind].va + 2ul * i * PAGE,
					TO_VA + (uint64_t)i * PAGE, PAGE);
}

static struct drm_amdgpu_sdma_batch batch_of_all(struct bench *b, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&b->gpu, b->descs, n);

	batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
	return batch;
}

/* Times the submission; the batch has ended on return. */
static void time_call(struct bench *b, struct cost *cost, int round,
		      struct drm_amdgpu_sdma_batch *batch, uint32_t n)
{
	struct drm_amdgpu_sdma_fence out = { .handle = b->out };

	batch->out_fences = (uintptr_t)&out;
	batch->num_out_fences = 1;
	cost_start(cost);
	check("batch", batch_call(&b->gpu, batch));
	cost_stop(cost, round, n);
	check("end", syncobj_wait(&b->gpu, b->out, 0, WAIT_SECONDS));
}

/* The pages stay the same, but the driver is notified of a change. */
static void make_cold(const struct source *from, uint32_t n)
{
	const size_t size = 2ul * n * PAGE;

	if (mprotect(from->cpu, size, PROT_READ) ||
	    mprotect(from->cpu, size, PROT_READ | PROT_WRITE))
		check("mprotect", -errno);
}

static double measure(struct bench *b, enum memory kind, enum way way,
		      uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = batch_of_all(b, n);
	static struct cost cost;
	uint32_t handle = 0;
	char name[32];
	int i;

	snprintf(name, sizeof(name), "%-7s %-5s %4u", kind_names[kind],
		 way_names[way], n);
	cost.name = name;
	put_descs(b, kind, n);
	if (way == PREP)
		check("prepare", batch_prepare(&b->gpu, &batch, &handle));
	for (i = -COST_WARM; i < b->rounds; i++) {
		if (way == COLD)
			make_cold(&b->from[kind], n);
		if (way == PREP)
			batch = run_of(&b->gpu, handle);
		time_call(b, &cost, i, &batch, n);
	}
	if (handle)
		check("forget", forget(&b->gpu, handle));
	cost_print(&cost, b->rounds);
	return cost.samples[b->rounds / 2];
}

static double measure_memory(struct bench *b, enum memory kind, uint32_t n)
{
	double cost = 0;
	int way;

	for (way = COLD; way < WAYS; way++)
		/* a buffer is never cold; protecting private memory moves it */
		if (way != COLD || kind == USERPTR || kind == SVM)
			cost = measure(b, kind, way, n);
	return cost;
}

/* Whether each kind of memory meets the goal. */
static bool compare(const double *prepared)
{
	bool good = true;
	double ratio;
	int kind;

	for (kind = USERPTR; kind < KINDS; kind++) {
		ratio = prepared[kind] / prepared[GEM];
		good &= ratio <= 1.5;
		printf("%-6s prepared %s / gem, 64 copies: %.3f, goal: 1.5 or less\n",
		       ratio <= 1.5 ? "met" : "MISSED", kind_names[kind],
		       ratio);
	}
	return good;
}

int main(int argc, char **argv)
{
	static const uint32_t counts[] = { 8, 64, 512, MAX_COPIES };
	struct sched_param param = { .sched_priority = 1 };
	double prepared[KINDS] = { 0 }, cost;
	static struct bench b;
	size_t i;
	int m;

	b.rounds = cost_rounds(argc, argv);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		puts("not SCHED_FIFO, the figures vary");
	open_gpu(&b);
	open_memories(&b);
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		for (m = GEM; m < KINDS; m++) {
			cost = measure_memory(&b, m, counts[i]);
			if (counts[i] == 64)
				prepared[m] = cost;
		}
	}
	return compare(prepared) ? 0 : 1;
}
