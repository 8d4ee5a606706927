// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches of amdgpu: what each operation leaves in memory, compared with
 * what the CPU makes of the same descriptors; order, fences, placement.
 *
 * SEED=N in the environment takes other random batches.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "emulator.h"
#include "sdma_batch.h"

#define SYSTEM_VA	(1024 * MIB)
#define VRAM_VA		(2048 * MIB)
#define SIZE		(8 * MIB)

static unsigned int env(const char *name, unsigned int otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

FIXTURE(sdma)
{
	struct gpu gpu;
	/* The same at different addresses: system memory, video memory. */
	struct buffer system;
	struct buffer vram;
	/* What must be in them. */
	uint8_t *want_system;
	uint8_t *want_vram;
	unsigned int seed;
};

static unsigned int next_random(unsigned int *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void randomize(uint8_t *p, size_t size, unsigned int *seed)
{
	size_t i;

	for (i = 0; i < size; i += 4) {
		unsigned int x = next_random(seed) << 8 ^ next_random(seed);

		memcpy(p + i, &x, 4);
	}
}

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

/* Where what must be at a GPU address is kept. */
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

/* The oracle: one descriptor, on what must be in memory. */
static void model(struct _test_data_sdma *self,
		  const struct drm_amdgpu_sdma_desc *d)
{
	uint64_t sum;
	int i;

	for (i = 0; i < 3 && d->dst_more[i]; i++)
		memcpy(want(self, d->dst_more[i]), want(self, d->src), d->size);
	switch (d->op) {
	case AMDGPU_SDMA_OP_BROADCAST:
	case AMDGPU_SDMA_OP_COPY:
		memcpy(want(self, d->dst), want(self, d->src), d->size);
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

/* Offset of the first byte that is not as it must be, or -1. */
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

static struct drm_amdgpu_sdma_desc copy_desc(uint64_t src, uint64_t dst,
					     uint64_t size)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_COPY,
		.src = src,
		.dst = dst,
		.size = size,
	};
}

static const uint64_t sizes[] = {
	1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 63, 64, 65, 255, 256, 4095, 4096, 4097,
	65535, 65537, MIB - 1, MIB, MIB + 1, 3 * MIB,
};

TEST_F(sdma, info)
{
	const struct drm_amdgpu_info_sdma_batch *info = &self->gpu.info;

	EXPECT_TRUE(info->ops & (1 << AMDGPU_SDMA_OP_COPY));
	EXPECT_EQ(info->native_ops, info->native_ops & info->ops);
	EXPECT_NE(0, info->engine_mask);
	EXPECT_EQ(65536, info->max_descs);
	EXPECT_NE(0, info->max_fences);
	EXPECT_EQ(sizeof(struct drm_amdgpu_sdma_record),
		  info->record_alignment);
}

/* Every size, at every alignment of both sides modulo 4, both directions. */
TEST_F(sdma, copy)
{
	unsigned int i, at;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (at = 0; at < 16; at++) {
			struct drm_amdgpu_sdma_desc d[] = {
				copy_desc(SYSTEM_VA + at % 4,
					  VRAM_VA + at / 4, sizes[i]),
				copy_desc(VRAM_VA + 4 * MIB + at % 4,
					  SYSTEM_VA + 4 * MIB + at / 4,
					  sizes[i]),
			};

			ASSERT_EQ(0, run(self, d, 2));
		}
		ASSERT_EQ(-1, differs(self)) TH_LOG("size %lu", sizes[i]);
	}
}

TEST_F(sdma, fill)
{
	unsigned int i, at;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct drm_amdgpu_sdma_desc d[4] = { 0 };

		for (at = 0; at < 4; at++) {
			d[at].op = AMDGPU_SDMA_OP_FILL;
			d[at].dst = (at % 2 ? SYSTEM_VA : VRAM_VA) +
				    (at / 2) * 4 * MIB + at;
			d[at].size = sizes[i];
			d[at].value = 0x04030201 + next_random(&self->seed);
		}
		ASSERT_EQ(0, run(self, d, 4));
		ASSERT_EQ(-1, differs(self)) TH_LOG("size %lu", sizes[i]);
	}
}

/* Destinations that the engine can pair, and ones that it cannot. */
TEST_F(sdma, broadcast)
{
	unsigned int i, at;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint64_t size = sizes[i] > MIB ? MIB : sizes[i];

		for (at = 0; at < 8; at++) {
			struct drm_amdgpu_sdma_desc d = {
				.op = AMDGPU_SDMA_OP_BROADCAST,
				.src = SYSTEM_VA + 3,
				.dst = VRAM_VA + 32,
				.size = size,
			};

			d.dst_more[0] = VRAM_VA + 2 * MIB + (at & 1 ? 32 : 5);
			if (at & 2)
				d.dst_more[1] = SYSTEM_VA + 4 * MIB + 5;
			if (at & 4 && at & 2)
				d.dst_more[2] = SYSTEM_VA + 6 * MIB + 64;
			ASSERT_EQ(0, run(self, &d, 1));
		}
		ASSERT_EQ(-1, differs(self)) TH_LOG("size %lu", size);
	}
}

/* Both sides aligned for the engine's packet, equal modulo 64, neither. */
TEST_F(sdma, swap)
{
	static const unsigned int skew[][2] = {
		{ 0, 0 }, { 1, 1 }, { 63, 63 }, { 0, 32 }, { 3, 0 }, { 17, 62 },
	};
	unsigned int i, at;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (at = 0; at < ARRAY_SIZE(skew); at++) {
			struct drm_amdgpu_sdma_desc d = {
				.op = AMDGPU_SDMA_OP_SWAP,
				.src = SYSTEM_VA + 64 + skew[at][0],
				.dst = VRAM_VA + 128 + 4096 * i + skew[at][1],
				.size = sizes[i],
			};

			ASSERT_EQ(0, run(self, &d, 1));
			ASSERT_EQ(-1, differs(self))
				TH_LOG("size %lu, case %u", sizes[i], at);
		}
	}
}

/* Two contexts share the scratch memory of an engine. */
TEST_F(sdma, swap_in_turns)
{
	struct drm_amdgpu_sdma_fence out = { 0 };
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	uint32_t ctx[2], i;

	ctx[0] = self->gpu.ctx;
	ASSERT_EQ(0, gpu_context(&self->gpu, &ctx[1]));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
	for (i = 0; i < 40; i++) {
		d = (struct drm_amdgpu_sdma_desc) {
			.op = AMDGPU_SDMA_OP_SWAP,
			.src = SYSTEM_VA + i * 180 * KIB + 5,
			.dst = VRAM_VA + i * 180 * KIB + i,
			.size = 180 * KIB - 64,
		};
		batch = batch_of(&self->gpu, &d, 1);
		batch.ctx_id = ctx[i % 2];
		batch.engine_mask = self->gpu.info.engine_mask &
				    -self->gpu.info.engine_mask;
		batch.out_fences = (uintptr_t)&out;
		batch.num_out_fences = 1;
		out.point = i + 1;
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
		model(self, &d);
	}
	ASSERT_EQ(0, syncobj_wait(&self->gpu, out.handle, 40, WAIT_SECONDS));
	EXPECT_EQ(-1, differs(self));
}

/* One buffer shown again and again costs no memory. */
static int map_repeatedly(struct gpu *gpu, struct buffer *b, uint64_t va,
			  uint64_t size)
{
	int ret = 0;

	while (size && !ret) {
		struct drm_amdgpu_gem_va arg = {
			.handle = b->handle,
			.operation = AMDGPU_VA_OP_MAP,
			.flags = GPU_RW,
			.va_address = va,
			.map_size = size < b->size ? size : b->size,
		};

		ret = gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_VA, &arg);
		va += arg.map_size;
		size -= arg.map_size;
	}
	return ret;
}

/*
 * A range that is larger than any packet. Its end has memory of its own, which
 * shows whether the last packet is right.
 */
struct large {
	struct buffer body, tail;
};

#define LARGE_TAIL	(128 * KIB)
#define LARGE_VA(i)	((1UL + (i)) << 32)

static int large_new(struct _test_data_sdma *self, unsigned int i,
		     uint64_t body, struct large *l)
{
	const uint64_t va = LARGE_VA(i);
	int ret = buffer_new(&self->gpu, &l->body, 64 * MIB,
			     AMDGPU_GEM_DOMAIN_GTT);

	if (!ret)
		ret = buffer_cpu(&self->gpu, &l->body);
	if (!ret)
		ret = map_repeatedly(&self->gpu, &l->body, va, body);
	if (!ret)
		ret = buffer_map(&self->gpu, &l->tail, LARGE_TAIL,
				 AMDGPU_GEM_DOMAIN_GTT, va + body);
	if (ret)
		return ret;
	randomize(l->body.cpu, l->body.size, &self->seed);
	randomize(l->tail.cpu, LARGE_TAIL, &self->seed);
	return 0;
}

/*
 * The memory before the tail: as much as one packet may move, unless a batch
 * may not move that to @times places.
 */
static uint64_t large_body(struct _test_data_sdma *self, unsigned int times)
{
	uint64_t body = self->gpu.info.max_bytes / times - LARGE_TAIL;

	if (body > self->gpu.info.max_packet_bytes)
		body = self->gpu.info.max_packet_bytes;
	return body & ~(64 * KIB - 1);
}

/* On one engine: shares would be smaller than a packet. */
static int run_large(struct _test_data_sdma *self,
		     struct drm_amdgpu_sdma_desc *d, uint64_t body)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 1);

	d->size = body + LARGE_TAIL;
	if (d->op != AMDGPU_SDMA_OP_FILL)
		d->src = LARGE_VA(0);
	d->dst = LARGE_VA(1);
	batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
	return batch_run(&self->gpu, &batch);
}

static bool same_large(const struct large *a, const struct large *b)
{
	return !memcmp(a->body.cpu, b->body.cpu, a->body.size) &&
	       !memcmp(a->tail.cpu, b->tail.cpu, a->tail.size);
}

TEST_F(sdma, larger_than_a_packet)
{
	const uint64_t body = large_body(self, 1);
	struct drm_amdgpu_sdma_desc d = { .op = AMDGPU_SDMA_OP_COPY };
	struct large from, to;

	ASSERT_EQ(0, large_new(self, 0, body, &from));
	ASSERT_EQ(0, large_new(self, 1, body, &to));
	ASSERT_LT(self->gpu.info.max_packet_bytes, body + LARGE_TAIL);
	ASSERT_EQ(0, run_large(self, &d, body));
	EXPECT_TRUE(same_large(&from, &to));
}

TEST_F(sdma, large_fill)
{
	const uint64_t body = large_body(self, 1);
	struct drm_amdgpu_sdma_desc d = {
		.op = AMDGPU_SDMA_OP_FILL, .value = 0xa1b2c3d4,
	};
	uint8_t *tail = malloc(LARGE_TAIL);
	struct large to;

	ASSERT_EQ(0, large_new(self, 1, body, &to));
	ASSERT_EQ(0, run_large(self, &d, body));
	ASSERT_NE(NULL, tail);
	model_fill(tail, LARGE_TAIL, d.value);
	EXPECT_EQ(0, memcmp(tail, to.tail.cpu, LARGE_TAIL));
	EXPECT_EQ(0, memcmp(tail, to.body.cpu, LARGE_TAIL));
	free(tail);
}

TEST_F(sdma, large_broadcast)
{
	const uint64_t body = large_body(self, 2);
	struct drm_amdgpu_sdma_desc d = {
		.op = AMDGPU_SDMA_OP_BROADCAST, .dst_more = { LARGE_VA(2) },
	};
	struct large from, to[2];

	ASSERT_EQ(0, large_new(self, 0, body, &from));
	ASSERT_EQ(0, large_new(self, 1, body, &to[0]));
	ASSERT_EQ(0, large_new(self, 2, body, &to[1]));
	ASSERT_EQ(0, run_large(self, &d, body));
	EXPECT_TRUE(same_large(&from, &to[0]));
	EXPECT_TRUE(same_large(&from, &to[1]));
}

/* What is shown many times is exchanged as many times: look at the tail. */
TEST_F(sdma, large_swap)
{
	const uint64_t body = large_body(self, 2);
	struct drm_amdgpu_sdma_desc d = { .op = AMDGPU_SDMA_OP_SWAP };
	uint8_t *was = malloc(2 * LARGE_TAIL);
	struct large a, b;

	ASSERT_NE(NULL, was);
	ASSERT_EQ(0, large_new(self, 0, body, &a));
	ASSERT_EQ(0, large_new(self, 1, body, &b));
	memcpy(was, a.tail.cpu, LARGE_TAIL);
	memcpy(was + LARGE_TAIL, b.tail.cpu, LARGE_TAIL);
	ASSERT_EQ(0, run_large(self, &d, body));
	EXPECT_EQ(0, memcmp(was, b.tail.cpu, LARGE_TAIL));
	EXPECT_EQ(0, memcmp(was + LARGE_TAIL, a.tail.cpu, LARGE_TAIL));
	free(was);
}

/* Each descriptor reads what the one before wrote. */
TEST_F(sdma, barrier)
{
	struct drm_amdgpu_sdma_desc d[64];
	unsigned int i;

	for (i = 0; i < 64; i++) {
		d[i] = copy_desc(SYSTEM_VA + i * 4096,
				 SYSTEM_VA + (i + 1) * 4096, 4096);
		d[i].flags = i ? AMDGPU_SDMA_DESC_BARRIER : 0;
	}
	ASSERT_EQ(0, run(self, d, 64));
	EXPECT_EQ(-1, differs(self));
}

TEST_F(sdma, write_and_add)
{
	struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, 64 * KIB),
		{ .op = AMDGPU_SDMA_OP_WRITE, .dst = SYSTEM_VA + MIB,
		  .value = 0x1122334455667788 },
		{ .op = AMDGPU_SDMA_OP_ADD, .dst = VRAM_VA + MIB + 16,
		  .value = 0xffffffff00000001 },
		{ .op = AMDGPU_SDMA_OP_ADD, .dst = VRAM_VA + MIB + 8,
		  .value = 5 },
	};

	ASSERT_EQ(0, run(self, d, 4));
	EXPECT_EQ(-1, differs(self));
}

TEST_F(sdma, record)
{
	struct drm_amdgpu_sdma_record *r;
	struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, 64 * KIB),
		copy_desc(SYSTEM_VA + MIB, VRAM_VA + MIB, 64 * KIB),
		copy_desc(VRAM_VA, SYSTEM_VA + 2 * MIB, 64 * KIB),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 3);

	r = (void *)(self->system.cpu + 4 * MIB);
	memset(r, 0, 3 * sizeof(*r));
	d[0].flags = AMDGPU_SDMA_DESC_RECORD;
	d[0].record = SYSTEM_VA + 4 * MIB;
	d[2].flags = AMDGPU_SDMA_DESC_RECORD | AMDGPU_SDMA_DESC_BARRIER;
	d[2].record = SYSTEM_VA + 4 * MIB + 2 * sizeof(*r);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, r[0].status);
	EXPECT_EQ(0, r[1].status);
	EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, r[2].status);
	EXPECT_NE(0, r[0].timestamp);
	EXPECT_LE(r[0].timestamp, r[2].timestamp);
}

/* Descriptors of an older and of a newer kernel's size. */
TEST_F(sdma, stride)
{
	uint64_t small[2][AMDGPU_SDMA_DESC_SIZE_MIN / 8] = {
		{ AMDGPU_SDMA_OP_COPY, VRAM_VA, SYSTEM_VA, 4096 },
		{ AMDGPU_SDMA_OP_COPY, VRAM_VA + 8192, SYSTEM_VA + 8192, 4096 },
	};
	struct {
		struct drm_amdgpu_sdma_desc d;
		uint64_t more;
	} large[2] = {
		{ .d = copy_desc(SYSTEM_VA + MIB, VRAM_VA + MIB, 4096) },
		{ .d = copy_desc(SYSTEM_VA, VRAM_VA + 2 * MIB, 4096) },
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, NULL, 2);

	batch.descs = (uintptr_t)small;
	batch.desc_stride = sizeof(small[0]);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	memcpy(self->want_vram, self->want_system, 4096);
	memcpy(self->want_vram + 8192, self->want_system + 8192, 4096);

	batch.descs = (uintptr_t)large;
	batch.desc_stride = sizeof(large[0]);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	model(self, &large[0].d);
	model(self, &large[1].d);
	EXPECT_EQ(-1, differs(self));

	large[1].more = 1;
	EXPECT_EQ(-E2BIG, batch_run(&self->gpu, &batch));
	EXPECT_EQ(1, batch.error_index);
}

/* Each batch reads what the one before wrote: only the fences order them. */
TEST_F(sdma, fences)
{
	struct drm_amdgpu_sdma_fence in = { 0 }, out = { 0 };
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	unsigned int i;

	ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
	in.handle = out.handle;
	for (i = 0; i < 40; i++) {
		d = copy_desc(SYSTEM_VA + i * 64 * KIB,
			      SYSTEM_VA + (i + 1) * 64 * KIB, 64 * KIB);
		batch = batch_of(&self->gpu, &d, 1);
		/* another engine each time; a timeline from the middle on */
		batch.engine_mask = 0;
		batch.in_fences = (uintptr_t)&in;
		batch.num_in_fences = i > 0;
		batch.out_fences = (uintptr_t)&out;
		batch.num_out_fences = 1;
		in.point = out.point;
		out.point = i < 20 ? 0 : i;
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
		model(self, &d);
	}
	ASSERT_EQ(0, syncobj_wait(&self->gpu, out.handle, out.point,
				  WAIT_SECONDS));
	EXPECT_EQ(-1, differs(self));
	syncobj_free(&self->gpu, out.handle);
}

/* Nothing runs before its in-fence, nor when that will never come. */
TEST_F(sdma, in_fence_without_fence)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA, 4096);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct drm_amdgpu_sdma_fence in = { 0 };

	ASSERT_EQ(0, syncobj_new(&self->gpu, &in.handle));
	batch.in_fences = (uintptr_t)&in;
	batch.num_in_fences = 1;
	EXPECT_EQ(-EINVAL, batch_run(&self->gpu, &batch));
	EXPECT_EQ(AMDGPU_SDMA_NO_INDEX, batch.error_index);
	EXPECT_EQ(-1, differs(self));
	syncobj_free(&self->gpu, in.handle);
}

/* As many as there may be: pages of one buffer in a random order. */
TEST_F(sdma, many)
{
	const uint32_t n = 65536;
	struct drm_amdgpu_sdma_desc *d = calloc(n, sizeof(*d));
	uint32_t i;

	ASSERT_NE(NULL, d);
	for (i = 0; i < n; i++) {
		uint32_t to = (i * 40503) % n;

		d[i] = copy_desc(SYSTEM_VA + i * 64, VRAM_VA + to * 64, 64);
	}
	ASSERT_EQ(0, run(self, d, n));
	EXPECT_EQ(-1, differs(self));
	free(d);
}

/* Neighbours become one packet; what they copy must not change. */
TEST_F(sdma, neighbours)
{
	struct drm_amdgpu_sdma_desc d[512];
	unsigned int i;

	for (i = 0; i < 512; i++)
		d[i] = copy_desc(SYSTEM_VA + i * 4096, VRAM_VA + i * 4096,
				 i % 7 == 3 ? 2048 : 4096);
	ASSERT_EQ(0, run(self, d, 512));
	EXPECT_EQ(-1, differs(self));
}

TEST_F(sdma, fan_out)
{
	uint32_t engines = __builtin_popcount(self->gpu.info.engine_mask), used;
	struct drm_amdgpu_sdma_desc d[5];
	unsigned int i;

	if (engines < 2)
		SKIP(return, "one engine");
	d[0] = copy_desc(SYSTEM_VA, VRAM_VA, 3 * MIB);
	for (i = 1; i < 5; i++)
		d[i] = copy_desc(VRAM_VA + 4 * MIB + i * 128 * KIB + i,
				 SYSTEM_VA + 4 * MIB + i * 128 * KIB, 96 * KIB);
	ASSERT_EQ(0, run_placed(self, d, 5, AMDGPU_SDMA_PLACE_FAN_OUT, &used));
	EXPECT_EQ(self->gpu.info.engine_mask, used);
	EXPECT_EQ(-1, differs(self));
}

/*
 * The fence of a fan-out is that of all: look right after it, many times. The
 * engine that fills has ended when the others are still exchanging.
 */
TEST_F(sdma, fan_out_join)
{
	struct drm_amdgpu_sdma_desc d[4] = { 0 };
	unsigned int i, round;

	if (__builtin_popcount(self->gpu.info.engine_mask) < 2)
		SKIP(return, "one engine");
	d[0].op = AMDGPU_SDMA_OP_FILL;
	d[0].dst = VRAM_VA;
	d[0].size = 2 * MIB;
	for (i = 1; i < 4; i++) {
		d[i].op = AMDGPU_SDMA_OP_SWAP;
		d[i].src = SYSTEM_VA + i * 2 * MIB;
		d[i].dst = VRAM_VA + i * 2 * MIB;
		d[i].size = 2 * MIB;
	}
	for (round = 0; round < 30; round++) {
		d[0].value = 0x01010101 * (round + 1);
		ASSERT_EQ(0, run_placed(self, d, 4, AMDGPU_SDMA_PLACE_FAN_OUT,
					NULL));
		ASSERT_EQ(-1, differs(self)) TH_LOG("round %u", round);
	}
}

TEST_F(sdma, auto_placement)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA, 64 * KIB);
	uint32_t used, engines;

	ASSERT_EQ(0, run_placed(self, &d, 1, AMDGPU_SDMA_PLACE_AUTO, &used));
	EXPECT_EQ(1, __builtin_popcount(used));
	d.size = AMDGPU_SDMA_AUTO_FAN_OUT_BYTES;
	engines = __builtin_popcount(self->gpu.info.engine_mask);
	if (engines > AMDGPU_SDMA_AUTO_FAN_OUT_BYTES /
		      AMDGPU_SDMA_AUTO_SHARE_BYTES)
		engines = AMDGPU_SDMA_AUTO_FAN_OUT_BYTES /
			  AMDGPU_SDMA_AUTO_SHARE_BYTES;
	ASSERT_EQ(0, run_placed(self, &d, 1, AMDGPU_SDMA_PLACE_AUTO, &used));
	EXPECT_EQ(engines, __builtin_popcount(used));
	EXPECT_EQ(-1, differs(self));
}

TEST_F(sdma, engine_mask)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA, 2 * MIB);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	uint32_t engine, all = self->gpu.info.engine_mask;

	for (engine = 0; engine < 32; engine++) {
		batch.engine_mask = 1u << engine;
		if (!(all & batch.engine_mask)) {
			EXPECT_EQ(-EINVAL, batch_run(&self->gpu, &batch));
			continue;
		}
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		EXPECT_EQ(batch.engine_mask, batch.engines_used);
	}
	model(self, &d);
	EXPECT_EQ(-1, differs(self));
}

/* Of an emulated GPU it is known how many engines it has, on how many dies. */
TEST_F(sdma, engines)
{
	int port = emulator_open(), i;
	long engines = 0;
	struct gpu gpu;

	if (port < 0)
		SKIP(return, "not an emulated GPU");
	for (i = 0; !gpu_open(&gpu, i); i++) {
		engines += __builtin_popcount(gpu.info.engine_mask);
		close(gpu.fd);
	}
	TH_LOG("%ld engines on %d GPUs", engines, i);
	EXPECT_EQ(emulator_count(port, "engines"), engines);
	close(port);
}

/* Random batches of everything that needs no order, in random placements. */
TEST_F(sdma, random)
{
	const uint64_t slot = 32 * KIB, slots = SIZE / slot / 2;
	struct drm_amdgpu_sdma_desc d[64];
	unsigned int round, i, n;

	for (round = 0; round < 60; round++) {
		n = 1 + next_random(&self->seed) % 64;
		memset(d, 0, sizeof(d));
		for (i = 0; i < n; i++) {
			uint64_t at = (i * 37 % slots) * slot;
			uint32_t skew = next_random(&self->seed) % 64;

			d[i].op = next_random(&self->seed) % 4;
			d[i].size = 1 + next_random(&self->seed) % (slot - 64);
			/* every other one by the engine's own packet */
			if (d[i].op == AMDGPU_SDMA_OP_SWAP && i % 2)
				skew = 0;
			d[i].dst = VRAM_VA + at + skew;
			if (d[i].op == AMDGPU_SDMA_OP_FILL)
				d[i].value = next_random(&self->seed);
			else
				d[i].src = SYSTEM_VA + at;
			if (d[i].op == AMDGPU_SDMA_OP_BROADCAST)
				d[i].dst_more[0] = SYSTEM_VA + SIZE / 2 + at +
						   skew % 3 * 32;
		}
		ASSERT_EQ(0, run_placed(self, d, n,
					next_random(&self->seed) % 3, NULL));
		ASSERT_EQ(-1, differs(self)) TH_LOG("round %u", round);
	}
}

static struct drm_amdgpu_sdma_desc wait_desc(uint64_t src, uint32_t compare,
					     uint32_t value, uint32_t polls)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_WAIT,
		.src = src,
		.compare = compare,
		.value = value,
		.mask = ~0u,
		.polls = polls,
	};
}

/* Conditions that hold from the begin. */
TEST_F(sdma, wait_holds)
{
	static const struct {
		uint32_t compare, memory, value, mask;
	} cases[] = {
		{ AMDGPU_SDMA_COMPARE_EQ, 7, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_EQ, 0xab07, 7, 0xff },
		{ AMDGPU_SDMA_COMPARE_NE, 6, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_GE, 7, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_GE, 0xfffffff0, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_LE, 7, 7, ~0u },
		{ AMDGPU_SDMA_COMPARE_LE, 0, 7, ~0u },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct drm_amdgpu_sdma_desc d[] = {
			wait_desc(SYSTEM_VA + MIB, cases[i].compare,
				  cases[i].value, 10),
			copy_desc(SYSTEM_VA + i * 4096, VRAM_VA, 4096),
		};

		d[0].mask = cases[i].mask;
		memcpy(self->system.cpu + MIB, &cases[i].memory, 4);
		memcpy(self->want_system + MIB, &cases[i].memory, 4);
		ASSERT_EQ(0, run(self, d, 2)) TH_LOG("case %u", i);
		ASSERT_EQ(-1, differs(self)) TH_LOG("case %u", i);
	}
}

/* Conditions that never hold: nothing behind them runs, and it is said. */
TEST_F(sdma, wait_times_out)
{
	static const struct {
		uint32_t compare, memory, value;
	} cases[] = {
		{ AMDGPU_SDMA_COMPARE_EQ, 6, 7 },
		{ AMDGPU_SDMA_COMPARE_NE, 7, 7 },
		{ AMDGPU_SDMA_COMPARE_GE, 6, 7 },
		{ AMDGPU_SDMA_COMPARE_LE, 8, 7 },
	};
	const struct drm_amdgpu_sdma_desc after = copy_desc(SYSTEM_VA, VRAM_VA,
							    SIZE);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct drm_amdgpu_sdma_desc d[] = {
			copy_desc(SYSTEM_VA + i * 4096, VRAM_VA, 4096),
			wait_desc(SYSTEM_VA + MIB, cases[i].compare,
				  cases[i].value, 10),
			copy_desc(SYSTEM_VA, VRAM_VA + MIB, MIB / 2),
			{ .op = AMDGPU_SDMA_OP_ADD, .dst = VRAM_VA + 2 * MIB,
			  .value = 1 },
			wait_desc(SYSTEM_VA + MIB + 4, AMDGPU_SDMA_COMPARE_LE,
				  ~0u, 10),
			copy_desc(SYSTEM_VA, VRAM_VA + MIB, MIB / 2),
		};

		memcpy(self->system.cpu + MIB, &cases[i].memory, 4);
		memcpy(self->want_system + MIB, &cases[i].memory, 4);
		ASSERT_EQ(-ETIME, run(self, d, 6)) TH_LOG("case %u", i);
		model(self, &d[0]);
		ASSERT_EQ(-1, differs(self)) TH_LOG("case %u", i);
	}
	/* The context is none the worse. */
	ASSERT_EQ(0, run(self, &after, 1));
	EXPECT_EQ(-1, differs(self));
}

/* More than one packet can skip: 40000 dwords behind a wait. */
TEST_F(sdma, wait_skips_much)
{
	const uint32_t n = 8000;
	struct drm_amdgpu_sdma_desc *d = calloc(n + 1, sizeof(*d));
	uint32_t i, one = 1;

	ASSERT_NE(NULL, d);
	d[0] = wait_desc(SYSTEM_VA + 4 * MIB, AMDGPU_SDMA_COMPARE_EQ, 2, 5);
	for (i = 0; i < n; i++)
		d[i + 1] = copy_desc(SYSTEM_VA + i * 128, VRAM_VA + i * 64, 64);
	memcpy(self->system.cpu + 4 * MIB, &one, 4);
	memcpy(self->want_system + 4 * MIB, &one, 4);
	ASSERT_EQ(-ETIME, run(self, d, n + 1));
	ASSERT_EQ(-1, differs(self));
	d[0].value = 1;
	ASSERT_EQ(0, run(self, d, n + 1));
	EXPECT_EQ(-1, differs(self));
	free(d);
}

/* Submitted first, released by the CPU later. */
TEST_F(sdma, prelaunch)
{
	uint32_t *flag = (uint32_t *)(self->system.cpu + 4 * MIB), placement;

	for (placement = AMDGPU_SDMA_PLACE_AUTO;
	     placement <= AMDGPU_SDMA_PLACE_ONE_ENGINE; placement++) {
		struct drm_amdgpu_sdma_desc d[] = {
			wait_desc(SYSTEM_VA + 4 * MIB, AMDGPU_SDMA_COMPARE_GE,
				  placement + 1, 900),
			copy_desc(SYSTEM_VA, VRAM_VA, 2 * MIB),
		};
		struct drm_amdgpu_sdma_batch batch =
			batch_of(&self->gpu, d, 2);
		struct drm_amdgpu_sdma_fence out = { 0 };

		*flag = 0;
		randomize(self->system.cpu, 2 * MIB, &self->seed);
		ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
		batch.placement = placement;
		batch.out_fences = (uintptr_t)&out;
		batch.num_out_fences = 1;
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
		EXPECT_EQ(-ETIME, syncobj_wait(&self->gpu, out.handle, 0, 0.1));
		EXPECT_NE(0, memcmp(self->system.cpu, self->vram.cpu, 2 * MIB));
		__atomic_store_n(flag, placement + 1, __ATOMIC_RELEASE);
		ASSERT_EQ(0, syncobj_wait(&self->gpu, out.handle, 0,
					  WAIT_SECONDS));
		EXPECT_EQ(1, syncobj_status(&self->gpu, out.handle));
		EXPECT_EQ(0, memcmp(self->system.cpu, self->vram.cpu, 2 * MIB));
		syncobj_free(&self->gpu, out.handle);
	}
}

/*
 * One address shows one buffer, then another: a translation that survives the
 * change reads the first one's data.
 */
TEST_F(sdma, remap)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(512 * MIB, SYSTEM_VA, MIB);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct buffer b[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, buffer_new(&self->gpu, &b[i], MIB,
					AMDGPU_GEM_DOMAIN_VRAM));
		ASSERT_EQ(0, buffer_cpu(&self->gpu, &b[i]));
		memset(b[i].cpu, i + 1, MIB);
	}
	for (i = 0; i < 20; i++) {
		struct buffer *shown = &b[i % 2];

		ASSERT_EQ(0, buffer_va(&self->gpu, shown, AMDGPU_VA_OP_MAP,
				       d.src, GPU_RW));
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		ASSERT_EQ(0, memcmp(self->system.cpu, shown->cpu, MIB))
			TH_LOG("round %u", i);
		ASSERT_EQ(0, buffer_va(&self->gpu, shown, AMDGPU_VA_OP_UNMAP,
				       d.src, 0));
	}
}

/* A mapping whose page table update was left to the next submission. */
TEST_F(sdma, delayed_update)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, 512 * MIB, MIB);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct buffer b;

	ASSERT_EQ(0, buffer_new(&self->gpu, &b, MIB, AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, buffer_cpu(&self->gpu, &b));
	ASSERT_EQ(0, buffer_va(&self->gpu, &b, AMDGPU_VA_OP_MAP, d.dst,
			       GPU_RW | AMDGPU_VM_DELAY_UPDATE));
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, memcmp(self->system.cpu, b.cpu, MIB));
}

/* A file has so many polls on their way, then it waits for the first to end. */
TEST_F(sdma, waits_are_capped)
{
	const uint32_t polls = 500, n = 4 * self->gpu.info.max_polls / polls;
	struct drm_amdgpu_sdma_desc d =
		wait_desc(SYSTEM_VA, AMDGPU_SDMA_COMPARE_EQ, 1, polls);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct drm_amdgpu_sdma_fence out[2] = { };
	uint32_t i, flag = 0, engines = self->gpu.info.engine_mask;

	if (!(engines & (engines - 1)))
		SKIP(return, "one engine: its own limit is lower");
	memcpy(self->system.cpu, &flag, 4);
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out[0].handle));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out[1].handle));
	batch.num_out_fences = 1;
	for (i = 0; i <= n; i++) {
		/* in turns, so that no engine has more than it may */
		if (!engines)
			engines = self->gpu.info.engine_mask;
		batch.engine_mask = engines & -engines;
		engines &= engines - 1;
		batch.out_fences = (uintptr_t)&out[!!i];
		ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	}
	EXPECT_EQ(-ETIME, syncobj_status(&self->gpu, out[0].handle));
	EXPECT_EQ(0, syncobj_status(&self->gpu, out[1].handle));
	flag = 1;
	__atomic_store_n((uint32_t *)self->system.cpu, flag, __ATOMIC_RELEASE);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, out[1].handle, 0, WAIT_SECONDS));
	EXPECT_EQ(1, syncobj_status(&self->gpu, out[1].handle));
}

/* A file of its own, whose batch waits on the first engine. */
struct waiter {
	pthread_t thread;
	struct gpu gpu;
	struct buffer buffer;
	struct drm_amdgpu_sdma_fence out;
	uint32_t polls;
	int ret;
	bool submitted;
};

static int waiter_open(struct waiter *w, uint32_t polls)
{
	int ret = gpu_open(&w->gpu, 0);

	w->polls = polls;
	if (!ret)
		ret = buffer_map(&w->gpu, &w->buffer, 4096,
				 AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA);
	return ret ? ret : syncobj_new(&w->gpu, &w->out.handle);
}

static void *waiter_submit(void *arg)
{
	struct waiter *w = arg;
	struct drm_amdgpu_sdma_desc d =
		wait_desc(SYSTEM_VA, AMDGPU_SDMA_COMPARE_EQ, 1, w->polls);
	struct drm_amdgpu_sdma_batch batch = batch_of(&w->gpu, &d, 1);

	batch.engine_mask = w->gpu.info.engine_mask & -w->gpu.info.engine_mask;
	batch.out_fences = (uintptr_t)&w->out;
	batch.num_out_fences = 1;
	w->ret = batch_submit(&w->gpu, &batch);
	__atomic_store_n(&w->submitted, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Batches that were submitted and have not ended: not more than that. */
static uint32_t count_waiting(struct waiter *w, uint32_t n)
{
	uint32_t i, waiting = 0;
	bool submitted[32];

	/* what ends between the two loops is not counted */
	for (i = 0; i < n; i++)
		submitted[i] = __atomic_load_n(&w[i].submitted,
					       __ATOMIC_ACQUIRE);
	for (i = 0; i < n; i++)
		waiting += submitted[i] &&
			   !syncobj_status(&w[i].gpu, w[i].out.handle);
	return waiting;
}

/* However many files there are: an engine has so many polls before it. */
TEST_F(sdma, waits_of_many_files)
{
	const uint32_t polls = 800, n = 15;
	const uint32_t may = 2 * self->gpu.info.max_polls / polls;
	uint32_t i, waiting, most = 0;
	struct waiter w[15] = { };

	ASSERT_LT(may, n);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, waiter_open(&w[i], polls));
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, waiter_submit,
					    &w[i]));
	for (i = 0; i < 100; i++) {
		waiting = count_waiting(w, n);
		if (waiting > most)
			most = waiting;
		usleep(3000);
	}
	EXPECT_LE(most, may);
	/* or there was nothing to see */
	EXPECT_GE(most, may / 2);
	for (i = 0; i < n; i++)
		__atomic_store_n((uint32_t *)w[i].buffer.cpu, 1,
				 __ATOMIC_RELEASE);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(0, w[i].ret);
		EXPECT_EQ(0, syncobj_wait(&w[i].gpu, w[i].out.handle, 0,
					  WAIT_SECONDS));
		close(w[i].gpu.fd);
	}
}

static void on_alarm(int sig)
{
}

/* Who waits for polls is let go by a signal; what it had is free again. */
TEST_F(sdma, waits_interrupted)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct drm_amdgpu_sdma_desc d =
		wait_desc(SYSTEM_VA, AMDGPU_SDMA_COMPARE_EQ, 1, 800);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	uint32_t flag = 0, n = 0;

	memcpy(self->system.cpu, &flag, 4);
	batch.engine_mask = self->gpu.info.engine_mask &
			    -self->gpu.info.engine_mask;
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ualarm(30000, 30000);
	while (!ioctl(self->gpu.fd, DRM_IOCTL_AMDGPU_SDMA_BATCH, &batch) &&
	       n < 40)
		n++;
	EXPECT_EQ(EINTR, errno);
	ualarm(0, 0);
	EXPECT_LT(n, 40);
	flag = 1;
	__atomic_store_n((uint32_t *)self->system.cpu, flag, __ATOMIC_RELEASE);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
}

/* A batch that fails after it has got its polls gives them back. */
TEST_F(sdma, waits_of_failed)
{
	struct drm_amdgpu_sdma_desc d[] = {
		wait_desc(SYSTEM_VA, AMDGPU_SDMA_COMPARE_LE, ~0u, 800),
		copy_desc(SYSTEM_VA, 512 * MIB, 4096),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);
	unsigned int i;

	batch.engine_mask = self->gpu.info.engine_mask &
			    -self->gpu.info.engine_mask;
	for (i = 0; i < 40; i++)
		ASSERT_EQ(-ENOENT, batch_run(&self->gpu, &batch));
	d[1].dst = VRAM_VA;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
}

#define BIG		(64 * MIB)
#define BIG_VA(i)	((4UL + (i)) * 1024 * MIB)
#define MAX_BIG		40

#define REFILLS		8

/* On the last engine, where the kernel's moves are not. */
static int submit_at(struct gpu *gpu, const struct drm_amdgpu_sdma_desc *d,
		     uint32_t n, uint32_t timeline, uint64_t point)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, d, n);

	batch.engine_mask = 1u << (31 - __builtin_clz(gpu->info.engine_mask));
	return batch_submit_to(gpu, &batch, timeline, point);
}

/* Takes long: only the last of the fills counts. */
static int refill(struct gpu *gpu, uint64_t va, uint32_t value,
		  uint32_t timeline, uint64_t point)
{
	struct drm_amdgpu_sdma_desc d[REFILLS] = { };
	unsigned int i;

	for (i = 0; i < REFILLS; i++) {
		d[i].op = AMDGPU_SDMA_OP_FILL;
		d[i].flags = AMDGPU_SDMA_DESC_BARRIER;
		d[i].dst = va;
		d[i].size = BIG;
		d[i].value = value + REFILLS - 1 - i;
	}
	return submit_at(gpu, d, REFILLS, timeline, point);
}

static int big_new(struct gpu *gpu, struct buffer *b, uint64_t va)
{
	int ret = buffer_new(gpu, b, BIG, AMDGPU_GEM_DOMAIN_VRAM);

	return ret ? ret : buffer_va(gpu, b, AMDGPU_VA_OP_MAP, va, GPU_RW);
}

/*
 * Buffers that do not fit in video memory together: the next one drives out the
 * oldest, whose batches have not ended, as nobody waits for one before the last.
 */
TEST_F_TIMEOUT(sdma, eviction, 120)
{
	const unsigned int n = gpu_too_many(&self->gpu, BIG);
	const uint64_t start = gpu_evictions(&self->gpu);
	unsigned int i, busy = 0;
	struct buffer b[MAX_BIG];
	uint64_t evicted = 0;
	uint32_t timeline;

	if (n > MAX_BIG)
		SKIP(return, "too much video memory");
	ASSERT_EQ(0, syncobj_new(&self->gpu, &timeline));
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, big_new(&self->gpu, &b[i], BIG_VA(i)));
		evicted = gpu_evictions(&self->gpu) - start;
		if (evicted && syncobj_wait(&self->gpu, timeline, evicted, 0))
			busy++;
		ASSERT_EQ(0, refill(&self->gpu, BIG_VA(i), 1 + i, timeline,
				    i + 1));
	}
	for (i = 0; i < n; i++) {
		struct drm_amdgpu_sdma_desc d =
			copy_desc(BIG_VA(i) + BIG - 4096,
				  SYSTEM_VA + i * 4096, 4096);

		ASSERT_EQ(0, submit_at(&self->gpu, &d, 1, timeline, n + i + 1));
		model_fill(self->want_system + i * 4096, 4096, 1 + i);
	}
	ASSERT_EQ(0, syncobj_wait(&self->gpu, timeline, 2 * n, WAIT_SECONDS));
	EXPECT_EQ(-1, differs(self));
	TH_LOG("%lu evictions, batches ran at %u", (long)evicted, busy);
	EXPECT_LT(0, evicted);
	if (!busy)
		SKIP(return, "no batch ran when its buffer moved");
}

/* Somebody whose batches wait in vain, two at any time on every engine. */
struct waiting {
	struct gpu gpu;
	struct buffer system;
	pthread_t thread;
	uint32_t timeline[32];
	uint64_t point[32];
	bool stop;
	int ret;
};

static int wait_again(struct waiting *w, unsigned int engine)
{
	struct drm_amdgpu_sdma_desc d =
		wait_desc(SYSTEM_VA, AMDGPU_SDMA_COMPARE_EQ, 1, 100);
	struct drm_amdgpu_sdma_batch batch = batch_of(&w->gpu, &d, 1);
	const uint32_t timeline = w->timeline[engine];
	const uint64_t point = w->point[engine] + 1;
	int ret;

	batch.engine_mask = 1u << engine;
	ret = batch_submit_to(&w->gpu, &batch, timeline, point);
	if (ret)
		return ret;
	__atomic_store_n(&w->point[engine], point, __ATOMIC_RELEASE);
	if (point <= 2)
		return 0;
	return syncobj_wait(&w->gpu, timeline, point - 2, WAIT_SECONDS);
}

static void *keep_waiting(void *arg)
{
	struct waiting *w = arg;
	unsigned int engine;

	while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE) && !w->ret)
		for (engine = 0; engine < 32 && !w->ret; engine++)
			if (w->gpu.info.engine_mask & 1u << engine)
				w->ret = wait_again(w, engine);
	return NULL;
}

static int waiting_start(struct waiting *w)
{
	int ret = gpu_open(&w->gpu, 0);
	unsigned int engine;

	if (!ret)
		ret = buffer_map(&w->gpu, &w->system, MIB,
				 AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA);
	for (engine = 0; engine < 32 && !ret; engine++)
		ret = syncobj_new(&w->gpu, &w->timeline[engine]);
	return ret ? ret : -pthread_create(&w->thread, NULL, keep_waiting, w);
}

/* Does a batch wait now, on any engine? */
static bool is_waiting(struct waiting *w)
{
	unsigned int engine;
	uint64_t point;

	for (engine = 0; engine < 32; engine++) {
		point = __atomic_load_n(&w->point[engine], __ATOMIC_ACQUIRE);
		if (point && syncobj_wait(&w->gpu, w->timeline[engine], point,
					  0) == -ETIME)
			return true;
	}
	return false;
}

/*
 * Somebody else's batches wait on every engine, new ones when the old ones have
 * given up: buffers must still move, and others' work go on between them.
 */
TEST_F_TIMEOUT(sdma, wait_stalls_nobody, 200)
{
	const unsigned int n = gpu_too_many(&self->gpu, BIG);
	struct drm_amdgpu_sdma_desc fill = {
		.op = AMDGPU_SDMA_OP_FILL, .dst = BIG_VA(0), .size = BIG,
		.value = 7,
	};
	struct drm_amdgpu_sdma_batch fills;
	struct buffer big[MAX_BIG];
	unsigned int i, waits = 0;
	struct waiting other = { };

	if (n > MAX_BIG)
		SKIP(return, "too much video memory");
	ASSERT_EQ(0, waiting_start(&other));
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, big_new(&self->gpu, &big[i], fill.dst));
		fills = batch_of(&self->gpu, &fill, 1);
		ASSERT_EQ(0, batch_run(&self->gpu, &fills));
		waits += is_waiting(&other);
		ASSERT_EQ(0, buffer_va(&self->gpu, &big[i], AMDGPU_VA_OP_UNMAP,
				       fill.dst, 0));
	}
	EXPECT_EQ(-1, differs(self));
	/* they did not end when the waits had ended */
	TH_LOG("%u of %u fills ended while batches waited", waits, n);
	EXPECT_LE(n / 2, waits);
	__atomic_store_n(&other.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(other.thread, NULL));
	EXPECT_EQ(0, other.ret);
	close(other.gpu.fd);
}

static void *set_flag_later(void *flag)
{
	usleep(50000);
	__atomic_store_n((uint32_t *)flag, 1, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * A mapping is taken away while a batch waits that will write there. There is
 * no page fault: page tables change when the batches of the file have ended
 * that were submitted before, so the batch ends well and its data is in the
 * buffer. A batch that comes later finds no mapping.
 *
 * Were they changed too early, the data alone would tell: after a page fault
 * without retry the engine goes on, the fence and the record say that all went
 * well, and the context is not charged.
 */
static void take_away(struct __test_metadata *_metadata,
		      struct _test_data_sdma *self, uint32_t op,
		      unsigned int engine)
{
	uint32_t *flag = (uint32_t *)(self->system.cpu + 4 * MIB);
	struct drm_amdgpu_sdma_record *r =
		(void *)(self->system.cpu + 5 * MIB);
	struct drm_amdgpu_sdma_desc d[] = {
		wait_desc(SYSTEM_VA + 4 * MIB, AMDGPU_SDMA_COMPARE_EQ, 1, 900),
		copy_desc(SYSTEM_VA, BIG_VA(0), MIB),
		copy_desc(SYSTEM_VA, VRAM_VA, MIB),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 3);
	union drm_amdgpu_ctx state = {
		.in.op = AMDGPU_CTX_OP_QUERY_STATE2,
		.in.ctx_id = self->gpu.ctx,
	};
	struct buffer b, other;
	uint32_t syncobj;
	pthread_t thread;

	ASSERT_EQ(0, buffer_map(&self->gpu, &b, MIB, AMDGPU_GEM_DOMAIN_VRAM,
				BIG_VA(0)));
	ASSERT_EQ(0, buffer_new(&self->gpu, &other, MIB,
				AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, buffer_cpu(&self->gpu, &other));
	memset(b.cpu, 0, MIB);
	memset(other.cpu, 0x77, MIB);
	memset(r, 0, sizeof(*r));
	*flag = 0;
	d[1].flags = AMDGPU_SDMA_DESC_RECORD;
	d[1].record = SYSTEM_VA + 5 * MIB;
	ASSERT_EQ(0, syncobj_new(&self->gpu, &syncobj));
	batch.engine_mask = 1u << engine;
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, syncobj, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, set_flag_later, flag));
	ASSERT_EQ(0, buffer_va(&self->gpu,
			       op == AMDGPU_VA_OP_REPLACE ? &other : &b, op,
			       BIG_VA(0), GPU_RW));
	ASSERT_EQ(0, syncobj_wait(&self->gpu, syncobj, 0, WAIT_SECONDS));
	EXPECT_EQ(1, syncobj_status(&self->gpu, syncobj));
	EXPECT_EQ(AMDGPU_SDMA_RECORD_DONE, r->status);
	EXPECT_EQ(0, memcmp(self->system.cpu, b.cpu, MIB));
	EXPECT_EQ(0, memcmp(self->system.cpu, self->vram.cpu, MIB));
	EXPECT_EQ(0x77, other.cpu[0]);
	EXPECT_EQ(0, gpu_ioctl(&self->gpu, DRM_IOCTL_AMDGPU_CTX, &state));
	EXPECT_EQ(0, state.out.state.flags);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	batch = batch_of(&self->gpu, d, 3);
	EXPECT_EQ(op == AMDGPU_VA_OP_REPLACE ? 0 : -ENOENT,
		  batch_run(&self->gpu, &batch));
	buffer_free(&self->gpu, &b);
	buffer_free(&self->gpu, &other);
}

/* One of them may be that of the page tables' updates: on all in turn. */
static void take_away_each(struct __test_metadata *_metadata,
			   struct _test_data_sdma *self, uint32_t op)
{
	unsigned int engine;

	for (engine = 0; engine < 32; engine++)
		if (self->gpu.info.engine_mask & 1u << engine)
			take_away(_metadata, self, op, engine);
}

TEST_F(sdma, unmapped_meanwhile)
{
	take_away_each(_metadata, self, AMDGPU_VA_OP_UNMAP);
}

TEST_F(sdma, replaced_meanwhile)
{
	take_away_each(_metadata, self, AMDGPU_VA_OP_REPLACE);
}

/* Somebody who always has so many batches on their way, on the first engine. */
#define DEPTH	4

struct flood {
	struct gpu gpu;
	struct buffer vram;
	pthread_t thread;
	uint32_t timeline;
	uint64_t submitted;
	bool stop;
	int ret;
};

#define FILLS	8

/* All of a buffer, so many times: the engine has more to do than the CPU. */
static void make_fills(struct drm_amdgpu_sdma_desc d[FILLS])
{
	unsigned int i;

	memset(d, 0, FILLS * sizeof(*d));
	for (i = 0; i < FILLS; i++) {
		d[i].op = AMDGPU_SDMA_OP_FILL;
		d[i].flags = AMDGPU_SDMA_DESC_BARRIER;
		d[i].dst = VRAM_VA;
		d[i].size = SIZE;
	}
}

static int submit_fills(struct gpu *gpu, uint32_t timeline, uint64_t point)
{
	struct drm_amdgpu_sdma_desc d[FILLS];
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, d, FILLS);

	make_fills(d);
	batch.engine_mask = gpu->info.engine_mask & -gpu->info.engine_mask;
	return batch_submit_to(gpu, &batch, timeline, point);
}

/* How many batches have ended that signal a timeline, or a negative errno. */
static long count_ended(struct gpu *gpu, uint32_t timeline)
{
	uint64_t point = 0;
	struct drm_syncobj_timeline_array arg = {
		.handles = (uintptr_t)&timeline,
		.points = (uintptr_t)&point,
		.count_handles = 1,
	};
	int ret = gpu_ioctl(gpu, DRM_IOCTL_SYNCOBJ_QUERY, &arg);

	return ret ? ret : (long)point;
}

static void *keep_flooding(void *arg)
{
	struct flood *f = arg;

	while (!__atomic_load_n(&f->stop, __ATOMIC_ACQUIRE) && !f->ret) {
		f->ret = submit_fills(&f->gpu, f->timeline, ++f->submitted);
		if (!f->ret && f->submitted > DEPTH)
			f->ret = syncobj_wait(&f->gpu, f->timeline,
					      f->submitted - DEPTH,
					      WAIT_SECONDS);
	}
	return NULL;
}

static int flood_start(struct flood *f)
{
	int ret = gpu_open(&f->gpu, 0);

	if (!ret)
		ret = buffer_map(&f->gpu, &f->vram, SIZE,
				 AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA);
	if (!ret)
		ret = syncobj_new(&f->gpu, &f->timeline);
	return ret ? ret : -pthread_create(&f->thread, NULL, keep_flooding, f);
}

/*
 * Who has one batch on its way at a time gets its turn. The scheduler takes the
 * oldest job, so it is one of DEPTH + 1; an eighth of a half is demanded.
 */
TEST_F_TIMEOUT(sdma, fair, 200)
{
	const long ours = 20;
	struct flood other = { };
	uint32_t timeline;
	long i, theirs;

	ASSERT_EQ(0, syncobj_new(&self->gpu, &timeline));
	ASSERT_EQ(0, flood_start(&other));
	ASSERT_EQ(0, syncobj_wait(&other.gpu, other.timeline, 4, WAIT_SECONDS));
	theirs = count_ended(&other.gpu, other.timeline);
	for (i = 1; i <= ours; i++) {
		ASSERT_EQ(0, submit_fills(&self->gpu, timeline, i));
		ASSERT_EQ(0, syncobj_wait(&self->gpu, timeline, i,
					  WAIT_SECONDS));
	}
	theirs = count_ended(&other.gpu, other.timeline) - theirs;
	__atomic_store_n(&other.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(other.thread, NULL));
	EXPECT_EQ(0, other.ret);
	TH_LOG("%ld batches of ours, %ld of theirs", ours, theirs);
	EXPECT_LE(ours + theirs, 16 * ours);
	/* or there was nobody to share with */
	EXPECT_LE(ours / 4, theirs);
	close(other.gpu.fd);
}

/* The file goes while its batches run, and while they wait. */
TEST_F(sdma, close_busy)
{
	unsigned int i;

	for (i = 0; i < 20; i++) {
		struct drm_amdgpu_sdma_desc d[] = {
			wait_desc(SYSTEM_VA, AMDGPU_SDMA_COMPARE_EQ, 1, 50),
			copy_desc(SYSTEM_VA, VRAM_VA, MIB),
		};
		struct drm_amdgpu_sdma_batch batch;
		struct buffer system, vram;
		struct gpu gpu;

		ASSERT_EQ(0, gpu_open(&gpu, 0));
		ASSERT_EQ(0, buffer_map(&gpu, &system, MIB,
					AMDGPU_GEM_DOMAIN_GTT, SYSTEM_VA));
		ASSERT_EQ(0, buffer_map(&gpu, &vram, MIB,
					AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
		batch = batch_of(&gpu, d + i % 2, 2 - i % 2);
		if (i % 2)
			batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
		ASSERT_EQ(0, batch_submit(&gpu, &batch));
		munmap(system.cpu, system.size);
		munmap(vram.cpu, vram.size);
		close(gpu.fd);
	}
	EXPECT_EQ(-1, differs(self));
}

/* A process that fills its own memory, at the addresses of the fixture's. */
static void submit_for_ever(unsigned int placement)
{
	struct drm_amdgpu_sdma_desc d = {
		.op = AMDGPU_SDMA_OP_FILL, .dst = VRAM_VA, .size = 256 * KIB,
		.value = 0xdddddddd,
	};
	struct drm_amdgpu_sdma_batch batch;
	struct buffer vram;
	struct gpu gpu;

	if (gpu_open(&gpu, 0) ||
	    buffer_map(&gpu, &vram, SIZE, AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA))
		_exit(1);
	while (1) {
		batch = batch_of(&gpu, &d, 1);
		batch.placement = placement % 3;
		if (batch_submit(&gpu, &batch))
			_exit(2);
	}
}

/* Another process submits all the time and is killed at some moment. */
TEST_F(sdma, killed)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA, SIZE);
	unsigned int round;

	for (round = 0; round < 12; round++) {
		pid_t child = fork();
		int status;

		ASSERT_LE(0, child);
		if (!child)
			submit_for_ever(round);
		usleep(50000 + next_random(&self->seed) % 100000);
		ASSERT_EQ(0, kill(child, SIGKILL));
		ASSERT_EQ(child, waitpid(child, &status, 0));
		ASSERT_TRUE(WIFSIGNALED(status));
	}
	/* They wrote at the same addresses, each in a VM of its own. */
	EXPECT_EQ(-1, differs(self));
	ASSERT_EQ(0, run(self, &d, 1));
	EXPECT_EQ(-1, differs(self));
}

#define PEER_VA(i)	(512 * MIB + (i) * 64 * MIB)
#define MAX_PEERS	8

/* Memory of another GPU, imported as a dma-buf and mapped here as well. */
static int map_peer(struct gpu *gpu, struct gpu *peer, struct buffer *theirs,
		    uint64_t va)
{
	struct drm_prime_handle share = { .flags = DRM_CLOEXEC | DRM_RDWR };
	struct buffer ours = { .size = 2 * MIB };
	int ret;

	ret = buffer_map(peer, theirs, 2 * MIB, AMDGPU_GEM_DOMAIN_VRAM,
			 VRAM_VA);
	if (ret)
		return ret;
	memset(theirs->cpu, 0, theirs->size);
	share.handle = theirs->handle;
	ret = gpu_ioctl(peer, DRM_IOCTL_PRIME_HANDLE_TO_FD, &share);
	if (!ret)
		ret = gpu_ioctl(gpu, DRM_IOCTL_PRIME_FD_TO_HANDLE, &share);
	if (ret)
		return ret;
	ours.handle = share.handle;
	return buffer_va(gpu, &ours, AMDGPU_VA_OP_MAP, va, GPU_RW);
}

/* What went straight from one emulated GPU to another, by an IOMMU or not. */
static long between_gpus(int port)
{
	return emulator_count(port, "bytes_peer") +
	       emulator_count(port, "bytes_message");
}

/*
 * To the first of the other GPUs, from each to the next, and back: all of them
 * are written once and read once.
 */
TEST_F(sdma, peer)
{
	struct drm_amdgpu_sdma_desc d[MAX_PEERS + 1];
	const int self_index = 0;
	int port = emulator_open();
	long before = 0;
	int i, n = 0;
	struct drm_amdgpu_sdma_batch batch;
	struct buffer theirs[MAX_PEERS];
	struct gpu peer[MAX_PEERS];

	for (i = 0; n < MAX_PEERS; i++) {
		if (i == self_index)
			continue;
		if (gpu_open(&peer[n], i))
			break;
		ASSERT_EQ(0, map_peer(&self->gpu, &peer[n], &theirs[n],
				      PEER_VA(n)));
		d[n] = copy_desc(n ? PEER_VA(n - 1) : SYSTEM_VA, PEER_VA(n),
				 2 * MIB);
		d[n].flags = n ? AMDGPU_SDMA_DESC_BARRIER : 0;
		n++;
	}
	if (!n)
		SKIP(return, "one GPU");
	d[n] = copy_desc(PEER_VA(n - 1), VRAM_VA, 2 * MIB);
	d[n].flags = AMDGPU_SDMA_DESC_BARRIER;
	memcpy(self->want_vram, self->want_system, 2 * MIB);
	batch = batch_of(&self->gpu, d, n + 1);
	if (port >= 0)
		before = between_gpus(port);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	TH_LOG("%d other GPUs", n);
	if (port >= 0) {
		EXPECT_LE(n * 4 * (long)MIB, between_gpus(port) - before);
		close(port);
	}
	EXPECT_EQ(-1, differs(self));
	for (i = 0; i < n; i++) {
		EXPECT_EQ(0, memcmp(theirs[i].cpu, self->want_system,
				    2 * MIB));
		close(peer[i].fd);
	}
}

TEST_HARNESS_MAIN
