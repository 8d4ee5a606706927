/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own code that plans SDMA batches, compiled for the host: the packets
 * that it would store. This is between C++ and the kernel's headers, which are C.
 */
#ifndef SLUICE_TIMING_PLAN_H
#define SLUICE_TIMING_PLAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum plan_op { PLAN_COPY, PLAN_BROADCAST, PLAN_SWAP, PLAN_WAIT };

/* A descriptor. dst2 is for a broadcast; a wait waits until src is 1 or more. */
struct plan_desc {
	enum plan_op op;
	uint64_t src, dst, dst2, size;
};

enum plan_placement { PLAN_AUTO, PLAN_ONE_ENGINE, PLAN_FAN_OUT };

/* The engines of a GPU, and the memory that a batch gets. */
struct plan_gpu {
	uint32_t engines; /* a bit for each that may be used */
	uint32_t host;	  /* those that face the host */
	int to_host;	  /* the batch is between the GPU and the host */
	uint32_t links;	  /* to other GPUs that it goes over, 0 if none limits it */
	uint64_t slots;	  /* in host memory, 64 bytes a share */
	uint64_t samples; /* in the GPU's memory, 64 bytes an engine */
	uint64_t scratch; /* the same, 64 KiB an engine */
};

typedef void (*plan_ib)(void *arg, uint32_t engine, const uint32_t *words,
			uint32_t count);

/*
 * Calls ib for each indirect buffer, with the engine that runs it: shares take the
 * engines of plan->engines in order. Returns 0 or a negative error.
 */
int plan_batch(const struct plan_desc *descs, uint32_t num,
	       enum plan_placement placement, const struct plan_gpu *gpu, plan_ib ib,
	       void *arg);

#ifdef __cplusplus
}
#endif
#endif
