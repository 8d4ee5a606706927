// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches of amdgpu: what each operation leaves in memory, compared with
 * what the CPU computes from the same descriptors.
 */
#include "sdma_hold.h"
#include "sdma_model.h"

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
	EXPECT_NE(0, info->record_alignment);
	EXPECT_EQ(0, sizeof(struct drm_amdgpu_sdma_record) %
		     info->record_alignment);
	EXPECT_LE(2, info->max_broadcast);
	EXPECT_GE(8, info->max_broadcast);
	EXPECT_NE(0, info->max_wait_ns);
	/* the largest batch has room once others have ended */
	EXPECT_LE(info->max_bytes, info->max_queued_bytes);
	EXPECT_EQ(info->wait_engine_mask,
		  info->wait_engine_mask & info->engine_mask);
	EXPECT_NE(0, info->wait_engine_mask);
	EXPECT_EQ(info->host_engine_mask,
		  info->host_engine_mask & info->engine_mask);
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

/* To as many destinations as allowed, aligned or not: in pairs and alone. */
TEST_F(sdma, broadcast_to_all)
{
	const unsigned int max = self->gpu.info.max_broadcast;
	unsigned int n, i, skew;

	for (n = 2; n <= max; n++) {
		for (skew = 0; skew < 3; skew++) {
			struct drm_amdgpu_sdma_desc d = {
				.op = AMDGPU_SDMA_OP_BROADCAST,
				.src = SYSTEM_VA + 7 * MIB + skew,
				.dst = VRAM_VA + 512,
				.size = 100 * KIB + 4 * n + skew,
			};

			for (i = 1; i < n; i++)
				d.dst_more[i - 1] = i * 512 * KIB +
					(i % 2 ? VRAM_VA : SYSTEM_VA) +
					(skew ? i * skew : 512);
			randomize(self->system.cpu + 7 * MIB, 256 * KIB,
				  &self->seed);
			memcpy(self->want_system + 7 * MIB,
			       self->system.cpu + 7 * MIB, 256 * KIB);
			ASSERT_EQ(0, run(self, &d, 1));
			ASSERT_EQ(-1, differs(self))
				TH_LOG("%u destinations, skew %u", n, skew);
		}
	}
}

/* Both sides aligned for the engine's packet, equal modulo 64, or neither. */
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
 * The size of the memory before the tail: as much as one packet may move, or
 * less if a batch may not move that to @times places.
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

/* The body is mapped many times, so it is swapped as often: check the tail. */
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

/* Descriptors of an older and of a newer kernel's size. */
TEST_F(sdma, stride)
{
	uint64_t small[2][AMDGPU_SDMA_DESC_SIZE_MIN / 8] = {
		/* op and flags are the first 64 bits */
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

/* As many as allowed: pieces of one buffer in a scrambled order. */
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

/* Neighbours become one packet; that must not change what they copy. */
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

/* Random batches of all operations that need no order, placed at random. */
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

TEST_HARNESS_MAIN
