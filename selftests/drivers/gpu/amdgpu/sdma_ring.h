/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fixture for tests of SDMA batches through io_uring.
 *
 * SEED=N in the environment selects other random data.
 */
#ifndef _SELFTEST_SDMA_RING_H
#define _SELFTEST_SDMA_RING_H

#include "../../../kselftest_harness.h"
#include "sdma_uring.h"

#define SYSTEM_VA	(1024 * MIB)
#define VRAM_VA		(2048 * MIB)
#define SIZE		(4 * MIB)
#define PART		(64 * KIB)
/* A word that no test sets: a wait for it gives up. */
#define NEVER_VA	(SYSTEM_VA + SIZE - 4096)
/* A long wait, in the unit of wait_ns(). */
#define LONG_WAIT	60

FIXTURE(uring)
{
	struct gpu gpu;
	struct buffer system;
	struct buffer vram;
	struct io_uring ring;
	unsigned int seed;
};

FIXTURE_SETUP(uring)
{
	self->seed = env("SEED", 1);
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (!(self->gpu.info.features & AMDGPU_SDMA_FEATURE_URING))
		SKIP(return, "no io_uring");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->system, SIZE,
				AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA));
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	randomize(self->system.cpu, SIZE, &self->seed);
	memset(self->system.cpu + SIZE - 4096, 0, 4096);
	memset(self->vram.cpu, 0, SIZE);
	ASSERT_EQ(0, io_uring_queue_init(64, &self->ring, 0));
}

FIXTURE_TEARDOWN(uring)
{
	if (self->gpu.fd < 0)
		return;
	io_uring_queue_exit(&self->ring);
	close(self->gpu.fd);
}

/* A copy of a part of system memory, to the same place in video memory. */
static struct drm_amdgpu_sdma_desc part(unsigned int i)
{
	return copy_desc(SYSTEM_VA + i * PART, VRAM_VA + i * PART, PART);
}

static bool copied(struct _test_data_uring *self, unsigned int i)
{
	return !memcmp(self->system.cpu + i * PART, self->vram.cpu + i * PART,
		       PART);
}

static const unsigned int setups[] = {
	IORING_SETUP_SQE128,
	IORING_SETUP_CQE32,
	IORING_SETUP_SQE128 | IORING_SETUP_CQE32,
	IORING_SETUP_COOP_TASKRUN,
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
};

#endif
