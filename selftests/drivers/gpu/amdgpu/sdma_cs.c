// SPDX-License-Identifier: GPL-2.0
/*
 * Implicit synchronization of SDMA batches with other users of the same buffer:
 * AMDGPU_CS and batches of another file, in both directions.
 *
 * One of the two is held back by a fence: a job that must wait for it has not
 * ended, a job that need not wait has.
 */
#include "../../../kselftest_harness.h"
#include "sdma_cs.h"

#define SHARED_VA	(512 * MIB)
#define IB_VA		(600 * MIB)
#define SHARED_SIZE	MIB

/* One of two files, with a buffer that both share. */
struct side {
	struct gpu gpu;
	struct buffer shared, ib;
	uint32_t list, done;
};

FIXTURE(sync)
{
	struct side a, b;
	struct hold hold;	/* for jobs of a */
};

FIXTURE_VARIANT(sync)
{
	uint64_t flags;	/* of the shared buffer */
	bool waits;
};

FIXTURE_VARIANT_ADD(sync, implicit)
{
	.waits = true,
};

FIXTURE_VARIANT_ADD(sync, explicit)
{
	.flags = AMDGPU_GEM_CREATE_EXPLICIT_SYNC,
};

static int make_shared(struct gpu *gpu, struct buffer *b, uint64_t flags)
{
	union drm_amdgpu_gem_create arg = {
		.in.bo_size = SHARED_SIZE,
		.in.alignment = 4096,
		.in.domains = AMDGPU_GEM_DOMAIN_GTT,
		.in.domain_flags = flags,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_CREATE, &arg);

	b->handle = arg.out.handle;
	b->size = SHARED_SIZE;
	return ret;
}

static int share(struct gpu *from, struct gpu *to, const struct buffer *b,
		 struct buffer *theirs)
{
	struct drm_prime_handle arg = {
		.handle = b->handle, .flags = DRM_CLOEXEC | DRM_RDWR,
	};
	int ret = gpu_ioctl(from, DRM_IOCTL_PRIME_HANDLE_TO_FD, &arg);

	if (!ret)
		ret = gpu_ioctl(to, DRM_IOCTL_PRIME_FD_TO_HANDLE, &arg);
	close(arg.fd);
	*theirs = (struct buffer) { .handle = arg.handle, .size = b->size };
	return ret;
}

static int side_map(struct side *s)
{
	int ret = buffer_va(&s->gpu, &s->shared, AMDGPU_VA_OP_MAP, SHARED_VA,
			    GPU_RW);
	struct buffer *all[] = { &s->ib, &s->shared };

	if (!ret)
		ret = buffer_cpu(&s->gpu, &s->shared);
	if (!ret)
		ret = buffer_map(&s->gpu, &s->ib, MIB, AMDGPU_GEM_DOMAIN_GTT,
				 IB_VA);
	if (!ret)
		ret = cs_list(&s->gpu, all, 2, &s->list);
	return ret ? ret : syncobj_new(&s->gpu, &s->done);
}

/* AMDGPU_CS: fill the beginning of the shared buffer once @hold lets it. */
static int cs_fill(struct side *s, uint32_t value, struct hold *hold,
		   uint64_t *handle)
{
	const uint32_t packet[8] = {
		11 | 2u << 30, (uint32_t)SHARED_VA, SHARED_VA >> 32, value,
		4096 - 1,
	};

	memcpy(s->ib.cpu, packet, sizeof(packet));
	return cs_submit(&s->gpu, s->list, IB_VA, sizeof(packet), hold, handle);
}

/* Submit a batch of @d, which runs once @hold lets it. */
static int submit(struct side *s, const struct drm_amdgpu_sdma_desc *d,
		  uint32_t n, struct hold *hold)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&s->gpu, d, n);

	if (hold)
		hold_batch(hold, &batch);
	return batch_submit_to(&s->gpu, &batch, s->done, 0);
}

/* Copy the beginning of the shared buffer, or write to it. */
static int submit_copy(struct side *s, struct hold *hold)
{
	const struct drm_amdgpu_sdma_desc d =
		copy_desc(SHARED_VA, IB_VA + 512 * KIB, 4096);

	return submit(s, &d, 1, hold);
}

static int submit_fill(struct side *s, uint32_t value, struct hold *hold)
{
	const struct drm_amdgpu_sdma_desc d = fill_desc(SHARED_VA, 4096, value);

	return submit(s, &d, 1, hold);
}

static uint32_t word(const void *p)
{
	return *(volatile const uint32_t *)p;
}

FIXTURE_SETUP(sync)
{
	if (gpu_open(&self->a.gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (hold_open(&self->a.gpu, &self->hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, gpu_open(&self->b.gpu, 0));
	ASSERT_EQ(0, make_shared(&self->a.gpu, &self->a.shared,
				 variant->flags));
	ASSERT_EQ(0, share(&self->a.gpu, &self->b.gpu, &self->a.shared,
			   &self->b.shared));
	ASSERT_EQ(0, side_map(&self->a));
	ASSERT_EQ(0, side_map(&self->b));
}

FIXTURE_TEARDOWN(sync)
{
	close(self->a.gpu.fd);
	if (self->b.gpu.fd > 0)
		close(self->b.gpu.fd);
}

/* Long enough for a job that need not wait. */
#define A_WHILE		0.5

static int ended(struct side *s, double seconds)
{
	return syncobj_wait(&s->gpu, s->done, 0, seconds);
}

/* A batch reads what an AMDGPU_CS of another file writes. */
TEST_F(sync, batch_behind_cs)
{
	uint64_t handle;

	ASSERT_EQ(0, cs_fill(&self->a, 0x11111111, &self->hold, &handle));
	ASSERT_EQ(0, submit_copy(&self->b, NULL));
	EXPECT_EQ(variant->waits ? -ETIME : 0,
		  ended(&self->b, variant->waits ? A_WHILE : WAIT_SECONDS));
	hold_release(&self->hold);
	ASSERT_EQ(0, cs_wait(&self->a.gpu, handle, WAIT_SECONDS));
	ASSERT_EQ(0, ended(&self->b, WAIT_SECONDS));
	EXPECT_EQ(variant->waits ? 0x11111111 : 0,
		  word(self->b.ib.cpu + 512 * KIB));
}

/* An AMDGPU_CS of another file overwrites what a batch writes or reads. */
static void cs_behind(struct __test_metadata *_metadata,
		      struct _test_data_sync *self, bool waits, bool reads)
{
	uint64_t handle;

	ASSERT_EQ(0, reads ? submit_copy(&self->a, &self->hold) :
			     submit_fill(&self->a, 0x22222222, &self->hold));
	ASSERT_EQ(0, cs_fill(&self->b, 0x33333333, NULL, &handle));
	EXPECT_EQ(waits ? -ETIME : 0,
		  cs_wait(&self->b.gpu, handle, waits ? A_WHILE : WAIT_SECONDS));
	hold_release(&self->hold);
	ASSERT_EQ(0, cs_wait(&self->b.gpu, handle, WAIT_SECONDS));
	ASSERT_EQ(0, ended(&self->a, WAIT_SECONDS));
	if (reads) {
		EXPECT_EQ(waits ? 0 : 0x33333333,
			  word(self->a.ib.cpu + 512 * KIB));
	} else {
		EXPECT_EQ(waits ? 0x33333333 : 0x22222222,
			  word(self->a.shared.cpu));
	}
}

TEST_F(sync, cs_behind_writing_batch)
{
	cs_behind(_metadata, self, variant->waits, false);
}

TEST_F(sync, cs_behind_reading_batch)
{
	cs_behind(_metadata, self, variant->waits, true);
}

/* A held batch of one file writes @want; one of the other file copies that. */
static void copy_behind(struct __test_metadata *_metadata,
			struct _test_data_sync *self, bool waits, uint32_t want)
{
	ASSERT_EQ(0, submit_copy(&self->b, NULL));
	EXPECT_EQ(waits ? -ETIME : 0,
		  ended(&self->b, waits ? A_WHILE : WAIT_SECONDS));
	hold_release(&self->hold);
	ASSERT_EQ(0, ended(&self->a, WAIT_SECONDS));
	ASSERT_EQ(0, ended(&self->b, WAIT_SECONDS));
	EXPECT_EQ(waits ? want : 0, word(self->b.ib.cpu + 512 * KIB));
}

/* Batches of two files. */
TEST_F(sync, batch_behind_batch)
{
	ASSERT_EQ(0, submit_fill(&self->a, 0x44444444, &self->hold));
	copy_behind(_metadata, self, variant->waits, 0x44444444);
}

/* Memory that one descriptor reads and another one writes counts as written. */
TEST_F(sync, read_and_written)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SHARED_VA, IB_VA + 512 * KIB, 4096),
		behind(fill_desc(SHARED_VA, 4096, 0x66666666)),
	};

	ASSERT_EQ(0, submit(&self->a, d, 2, &self->hold));
	copy_behind(_metadata, self, variant->waits, 0x66666666);
}

/* A run of a prepared batch waits, too. */
TEST_F(sync, runs)
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(SHARED_VA,
							IB_VA + 512 * KIB, 4096);
	struct drm_amdgpu_sdma_batch run;
	uint64_t handle;
	uint32_t h;

	ASSERT_EQ(0, prepare(&self->b.gpu, &d, 1, &h));
	ASSERT_EQ(0, cs_fill(&self->a, 0x77777777, &self->hold, &handle));
	run = run_of(&self->b.gpu, h);
	ASSERT_EQ(0, batch_submit_to(&self->b.gpu, &run, self->b.done, 0));
	EXPECT_EQ(variant->waits ? -ETIME : 0,
		  ended(&self->b, variant->waits ? A_WHILE : WAIT_SECONDS));
	hold_release(&self->hold);
	ASSERT_EQ(0, ended(&self->b, WAIT_SECONDS));
	EXPECT_EQ(variant->waits ? 0x77777777 : 0,
		  word(self->b.ib.cpu + 512 * KIB));
}

TEST_HARNESS_MAIN
