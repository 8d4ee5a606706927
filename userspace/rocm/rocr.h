/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ROCr as the tests use it: agents, memory, copies. Functions return 0, or an
 * hsa_status_t, unless they say otherwise.
 */
#ifndef ROCM_ROCR_H
#define ROCM_ROCR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include "tap.h"

#define MAX_AGENTS	8
#define MAX_SECONDS	60	/* for any operation */

struct rocr_gpu {
	hsa_agent_t agent;
	hsa_amd_memory_pool_t vram;
	char pci[32]; /* address, as in sysfs */
};

struct rocr {
	hsa_agent_t cpu;
	hsa_amd_memory_pool_t fine, coarse; /* the host's */
	unsigned int gpus;
	struct rocr_gpu gpu[MAX_AGENTS];
};

/* Where a copy begins or ends. */
struct place {
	hsa_agent_t agent;
	uint8_t *at;
};

extern struct rocr rocr;

int rocr_start(void);

/* Memory that the CPU and all GPUs reach; NULL if there is none. */
void *rocr_new(hsa_amd_memory_pool_t pool, size_t size);

/* Waits until the signal, which starts at 1, is 0. */
int rocr_wait(hsa_signal_t signal);

/* Copies and waits. With @engine, a mask of one, on that engine. */
int rocr_copy(struct place to, struct place from, size_t size, uint32_t engine);

/* The process's memory: allocate it, let a GPU use it, move it to an agent. */
void *svm_new_memory(size_t size);
int svm_use(unsigned int gpu, void *at, size_t size);
int svm_move(void *at, size_t size, hsa_agent_t to);

static inline struct place on_host(void *at)
{
	return (struct place){ rocr.cpu, at };
}

static inline struct place on_gpu(unsigned int gpu, void *at)
{
	return (struct place){ rocr.gpu[gpu].agent, at };
}

/* The bytes for @seed, computed without a copy: what a copy has to bring. */
void seed_fill(uint8_t *at, size_t size, uint32_t seed);
/* The offset of the first byte that differs, or @size. */
size_t seed_match(const uint8_t *at, size_t size, uint32_t seed);

#define CHECK_SEED(at, size, seed)					\
	do {								\
		size_t right_ = seed_match(at, size, seed);		\
		CHECK(right_ == (size), "wrong at %zu of %zu", right_,	\
		      (size_t)(size));					\
	} while (0)

#define CHECK_HSA(call)							\
	do {								\
		int status_ = (call);					\
		CHECK(!status_, "status %#x", status_);			\
	} while (0)

extern const struct test copy_tests[], batch_tests[], library_tests[];

#endif
