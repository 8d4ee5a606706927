/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixture for tests that compare the memory that SDMA batches have written with
 * what the CPU computes from the same descriptors.
 *
 * SEED=N in the environment selects other random data.
 */
#ifndef _SELFTEST_SDMA_MODEL_H
#define _SELFTEST_SDMA_MODEL_H

#include "../../../kselftest_harness.h"
#include "sdma_desc.h"

#define SYSTEM_VA	(1024 * MIB)
#define VRAM_VA		(2048 * MIB)
#define SIZE		(8 * MIB)

FIXTURE(sdma)
{
	struct gpu gpu;
	/* Two buffers at different addresses: system memory, video memory. */
	struct buffer system;
	struct buffer vram;
	/* Their expected contents. */
	uint8_t *want_system;
	uint8_t *want_vram;
	unsigned int seed;
};

FIXTURE_SETUP(sdma)
{
	self->seed = env("SEED", 1);
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->system, SIZE,
				AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA));
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	self->want_system = malloc(SIZE);
	self->want_vram = malloc(SIZE);
	ASSERT_TRUE(self->want_system && self->want_vram);
	randomize(self->want_system, SIZE, &self->seed);
	randomize(self->want_vram, SIZE, &self->seed);
	memcpy(self->system.cpu, self->want_system, SIZE);
	memcpy(self->vram.cpu, self->want_vram, SIZE);
}

FIXTURE_TEARDOWN(sdma)
{
	free(self->want_system);
	free(self->want_vram);
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

/* The expected contents at a GPU address. */
static uint8_t *want(struct _test_data_sdma *self, uint64_t va)
{
	if (va >= VRAM_VA)
		return self->want_vram + (va - VRAM_VA);
	return self->want_system + (va - SYSTEM_VA);
}

static void model_fill(uint8_t *dst, uint64_t size, uint32_t pattern)
{
	uint64_t i;

	for (i = 0; i < size; i++)
		dst[i] = pattern >> 8 * (i % 4);
}

static void model_swap(uint8_t *a, uint8_t *b, uint64_t size)
{
	uint64_t i;

	for (i = 0; i < size; i++) {
		uint8_t x = a[i];

		a[i] = b[i];
		b[i] = x;
	}
}

static void model_rect(uint8_t *dst, const uint8_t *src,
		       const struct drm_amdgpu_sdma_desc *d)
{
	uint32_t row;

	for (row = 0; row < d->rows; row++)
		memcpy(dst + row * d->dst_pitch, src + row * d->src_pitch,
		       d->size);
}

/* The oracle: applies one descriptor to the expected contents. */
static void model(struct _test_data_sdma *self,
		  const struct drm_amdgpu_sdma_desc *d)
{
	uint64_t sum;
	int i;

	for (i = 0; i < 7 && d->dst_more[i]; i++)
		memcpy(want(self, d->dst_more[i]), want(self, d->src), d->size);
	switch (d->op) {
	case AMDGPU_SDMA_OP_BROADCAST:
	case AMDGPU_SDMA_OP_COPY:
		memcpy(want(self, d->dst), want(self, d->src), d->size);
		break;
	case AMDGPU_SDMA_OP_COPY_RECT:
		model_rect(want(self, d->dst), want(self, d->src), d);
		break;
	case AMDGPU_SDMA_OP_FILL:
		model_fill(want(self, d->dst), d->size, d->value);
		break;
	case AMDGPU_SDMA_OP_SWAP:
		model_swap(want(self, d->src), want(self, d->dst), d->size);
		break;
	case AMDGPU_SDMA_OP_WRITE:
		memcpy(want(self, d->dst), &d->value, 8);
		break;
	case AMDGPU_SDMA_OP_ADD:
		memcpy(&sum, want(self, d->dst), 8);
		sum += d->value;
		memcpy(want(self, d->dst), &sum, 8);
		break;
	}
}

/* Offset of the first byte that is not as expected, or -1. */
static long differs(struct _test_data_sdma *self)
{
	long i;

	if (!memcmp(self->system.cpu, self->want_system, SIZE) &&
	    !memcmp(self->vram.cpu, self->want_vram, SIZE))
		return -1;
	for (i = 0; i < (long)SIZE; i++)
		if (self->system.cpu[i] != self->want_system[i] ||
		    self->vram.cpu[i] != self->want_vram[i])
			break;
	return i;
}

/* Runs a batch on the GPU and in the oracle. */
static int run_placed(struct _test_data_sdma *self,
		      const struct drm_amdgpu_sdma_desc *d, uint32_t n,
		      uint32_t placement, uint32_t *used)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, n);
	uint32_t i;
	int ret;

	batch.placement = placement;
	ret = batch_run(&self->gpu, &batch);
	if (ret)
		return ret;
	for (i = 0; i < n; i++)
		model(self, &d[i]);
	if (used)
		*used = batch.engines_used;
	return 0;
}

static int run(struct _test_data_sdma *self,
	       const struct drm_amdgpu_sdma_desc *d, uint32_t n)
{
	return run_placed(self, d, n, AMDGPU_SDMA_PLACE_ONE_ENGINE, NULL);
}

#endif
