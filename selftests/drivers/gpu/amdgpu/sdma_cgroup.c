// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's memory for SDMA batches is charged to the memory cgroup of the
 * process that submits them.
 */
#include "../../../kselftest_harness.h"
#include "cgroup.h"
#include "sdma_hold.h"

#define VA		(1024 * MIB)
#define SIZE		(4 * MIB)

FIXTURE(cgroup)
{
	struct gpu gpu;
	struct buffer buffer;
	struct drm_amdgpu_sdma_desc *d;
	struct drm_amdgpu_sdma_batch batch;
};

/* As many fills as a batch may have, each of 64 bytes. */
FIXTURE_SETUP(cgroup)
{
	unsigned int i;
	uint32_t num;

	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (cgroup_make())
		SKIP(return, "no memory cgroups");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->buffer, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VA));
	num = self->gpu.info.max_descs;
	self->d = calloc(num, sizeof(self->d[0]));
	ASSERT_NE(NULL, self->d);
	for (i = 0; i < num; i++)
		self->d[i] = fill_desc(VA + i * 64, 64, i);
	self->batch = batch_of(&self->gpu, self->d, num);
	ASSERT_EQ(0, cgroup_enter());
}

FIXTURE_TEARDOWN(cgroup)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
	cgroup_leave();
}

/* The peak since this file was written to. */
static long read_peak(int fd)
{
	char text[32] = "";

	return pread(fd, text, sizeof(text) - 1, 0) < 0 ? -errno : atol(text);
}

/* The memory of a call while it lasts: at least the copy of the descriptors. */
TEST_F_TIMEOUT(cgroup, call, 120)
{
	long before;
	int peak;

	/* allocates what the file keeps from its first batch on */
	ASSERT_EQ(0, batch_run(&self->gpu, &self->batch));
	peak = open(CGROUP "memory.peak", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, peak);
	ASSERT_EQ(1, write(peak, "1", 1));
	before = cgroup_charged();
	ASSERT_EQ(0, batch_run(&self->gpu, &self->batch));
	EXPECT_LE((long)(self->batch.num_descs * sizeof(self->d[0])),
		  read_peak(peak) - before);
	close(peak);
}

#define PREPARED	64
#define MAPPINGS	1024
#define MANY_VA		(2048 * MIB)

/* Memory that stays: prepared batches record all mappings that they use. */
TEST_F_TIMEOUT(cgroup, prepared, 120)
{
	struct buffer page;
	unsigned int i;
	uint32_t handle;
	long before;

	ASSERT_EQ(0, buffer_new(&self->gpu, &page, 4096, AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, map_repeatedly(&self->gpu, &page, MANY_VA,
				    MAPPINGS * 4096));
	for (i = 0; i < MAPPINGS; i++)
		self->d[i].dst = MANY_VA + i * 4096;
	ASSERT_EQ(0, prepare(&self->gpu, self->d, MAPPINGS, &handle));
	before = cgroup_charged();
	for (i = 0; i < PREPARED; i++)
		ASSERT_EQ(0, prepare(&self->gpu, self->d, MAPPINGS, &handle));
	/* a start and an id for each mapping */
	EXPECT_LE(before + PREPARED * MAPPINGS * 16, cgroup_charged());
}

TEST_HARNESS_MAIN
