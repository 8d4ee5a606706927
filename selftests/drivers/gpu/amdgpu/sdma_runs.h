/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixture for tests that run prepared SDMA batches.
 *
 * SEED=N in the environment selects other random data.
 */
#ifndef _SELFTEST_SDMA_RUNS_H
#define _SELFTEST_SDMA_RUNS_H

#include "../../../kselftest_harness.h"
#include "emulator.h"
#include "sdma_prepared.h"

#define SYSTEM_VA	(1024 * MIB)
#define VRAM_VA		(2048 * MIB)
#define OTHER_VA	(3072 * MIB)
#define SIZE		(4 * MIB)
/* The counter of runs is here, apart from all that is copied. */
#define COUNT_AT	(SIZE - 4096)
#define COUNT_VA	(VRAM_VA + COUNT_AT)

FIXTURE(prepared)
{
	struct gpu gpu;
	struct buffer system;
	struct buffer vram;
	unsigned int seed;
};

FIXTURE_SETUP(prepared)
{
	self->seed = env("SEED", 1);
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (!(self->gpu.info.features & AMDGPU_SDMA_FEATURE_PREPARED))
		SKIP(return, "no prepared batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->system, SIZE,
				AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA));
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	randomize(self->system.cpu, SIZE, &self->seed);
	memset(self->vram.cpu, 0, SIZE);
}

FIXTURE_TEARDOWN(prepared)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static uint64_t count(struct _test_data_prepared *self)
{
	return __atomic_load_n((uint64_t *)(self->vram.cpu + COUNT_AT),
			       __ATOMIC_ACQUIRE);
}

#define COPIES	64

/* Copies of 4 KiB, none of which continues another. */
static void scatter(struct drm_amdgpu_sdma_desc d[COPIES])
{
	unsigned int i;

	for (i = 0; i < COPIES; i++)
		d[i] = copy_desc(SYSTEM_VA + (COPIES - 1 - i) * 8192,
				 VRAM_VA + i * 4096, 4096);
}

static bool scattered(struct _test_data_prepared *self)
{
	unsigned int i;

	for (i = 0; i < COPIES; i++)
		if (memcmp(self->system.cpu + (COPIES - 1 - i) * 8192,
			   self->vram.cpu + i * 4096, 4096))
			return false;
	return true;
}

#endif
