/* SPDX-License-Identifier: MIT */
/* What the guest tests share: DRM and KFD calls, SDMA packets, the emulator. */
#ifndef GPU_H
#define GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tap.h"

#define MAX_GPUS 8
#define MIB (1ull << 20)

struct buffer {
	uint32_t handle;
	uint64_t size;
	uint64_t va; /* 0: not mapped for the GPU */
	void *cpu;   /* NULL: not mapped for the CPU */
};

struct gpu {
	int fd;
	uint32_t context;
	uint64_t next_va;
	struct buffer ib;
};

/* Render nodes whose device is a PCI device of AMD. */
int find_render_nodes(int minors[MAX_GPUS]);
int open_gpu(struct gpu *gpu, int minor);
void close_gpu(struct gpu *gpu);
int gpu_ioctl(struct gpu *gpu, unsigned long request, void *arg);
int new_context(struct gpu *gpu);

enum { IN_VRAM = 1, IN_SYSTEM = 2, MAP_GPU = 4, MAP_CPU = 8 };
int new_buffer(struct gpu *gpu, struct buffer *b, uint64_t size, int flags);
int map_gpu(struct gpu *gpu, struct buffer *b);
int map_cpu(struct gpu *gpu, struct buffer *b);
void unmap_cpu(struct buffer *b);
void free_buffer(struct gpu *gpu, struct buffer *b);

/* An indirect buffer under construction. */
struct commands {
	uint32_t *words;
	unsigned int count;
};

struct commands start_commands(struct gpu *gpu);
void emit(struct commands *c, const uint32_t *words, unsigned int count);
void emit_copy(struct commands *c, uint64_t from, uint64_t to, uint64_t bytes);
/* Waits for all copies before it: an engine may have several under way. */
void emit_nop(struct commands *c);
void emit_fence(struct commands *c, uint64_t to, uint32_t value);

#define EMIT(c, ...)							\
	emit(c, (const uint32_t[]){ __VA_ARGS__ },			\
	     sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)
#define LO(x) ((uint32_t)(x))
#define HI(x) ((uint32_t)((uint64_t)(x) >> 32))

/* Submit what start_commands() began; buffers end with NULL. */
int submit(struct gpu *gpu, struct commands *c, unsigned int ring,
	   struct buffer *const buffers[], uint64_t *fence);
/* 0: signalled, 1: timed out, negative: errno. */
int wait_fence(struct gpu *gpu, uint64_t fence, unsigned int ring,
	       double seconds);
int submit_and_wait(struct gpu *gpu, struct commands *c,
		    struct buffer *const buffers[]);

/* One command to the emulator; 0 if it said ok. reply may be NULL. */
bool have_emulator(void);
int emulator(const char *command, char *reply, size_t size);
/* The sum over all GPUs of a counter in "stats"; -1: there is none of that
 * name. The driver may know the GPUs in another order than the emulator.
 */
long long counter(const char *name);

double now(void);

/* Does xGMI link it to other GPUs? */
bool in_hive(int minor);
int test_shared_buffer(void);

extern const struct test drm_tests[], fault_tests[], kfd_tests[], multi_tests[];

#endif
