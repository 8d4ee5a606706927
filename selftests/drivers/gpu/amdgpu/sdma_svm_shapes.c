// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches as a cache of keys and values uses them: one batch copies many
 * small pieces, which are adjacent in SVM memory, half of it in video memory,
 * to their places in one buffer. Another one copies them back.
 */
#include "sdma_svm_test.h"

#define CACHE_VA	(VRAM_VA + 1024 * MIB)

/* A block has one piece of each tensor; a tensor has a piece of each block. */
struct shape {
	unsigned int blocks;
	unsigned int tensors;
	size_t piece;
};

struct cache {
	struct shape shape;
	unsigned int pieces;
	size_t size;
	uint8_t *at;		/* SVM memory, block by block */
	struct buffer bo;	/* tensor by tensor, blocks at any place */
	struct drm_amdgpu_sdma_desc *d;
	uint64_t away;		/* bytes */
};

/* 39119 is coprime to all numbers of blocks here: each place once. */
static uint64_t place_of(const struct cache *c, unsigned int i)
{
	const uint64_t block = i / c->shape.tensors * 39119ul % c->shape.blocks;

	return (i % c->shape.tensors * c->shape.blocks + block) *
	       c->shape.piece;
}

static void describe(struct cache *c, bool back)
{
	unsigned int i;

	for (i = 0; i < c->pieces; i++) {
		const uint64_t svm = va(c->at) + i * c->shape.piece;
		const uint64_t bo = CACHE_VA + place_of(c, i);

		c->d[i] = back ? copy_desc(bo, svm, c->shape.piece) :
				 copy_desc(svm, bo, c->shape.piece);
	}
}

/* A piece in SVM memory, and its place in the buffer. */
static uint8_t *svm_piece(struct cache *c, unsigned int i)
{
	return c->at + i * c->shape.piece;
}

static uint8_t *bo_piece(struct cache *c, unsigned int i)
{
	return c->bo.cpu + place_of(c, i);
}

/* Each piece has a pattern of its own, which @time changes. */
static void fill_pieces(struct cache *c,
			uint8_t *(*piece)(struct cache *c, unsigned int i),
			uint32_t time)
{
	unsigned int i;

	for (i = 0; i < c->pieces; i++)
		pattern_fill(piece(c, i), c->shape.piece, i ^ time);
}

/* The first piece that is wrong, or the number of pieces */
static unsigned int check_pieces(struct cache *c,
				 uint8_t *(*piece)(struct cache *c,
						   unsigned int i),
				 uint32_t time)
{
	unsigned int i;

	for (i = 0; i < c->pieces; i++)
		if (pattern_check(piece(c, i), c->shape.piece, i ^ time) >= 0)
			break;
	return i;
}

/* Every other 2 MiB. */
static int send_half_away(struct _test_data_svm *self, struct cache *c)
{
	size_t i;
	int ret = 0;

	for (i = 0; i < c->size && !ret; i += 2 * SVM_ALIGN)
		ret = svm_prefetch(&self->svm, c->at + i, SVM_ALIGN,
				   &self->svm.gpu[0]);
	c->away = svm_away(&self->svm, c->at, c->size) * PAGE;
	return ret;
}

static int cache_open(struct _test_data_svm *self, struct cache *c,
		      const struct shape *shape)
{
	int ret;

	memset(c, 0, sizeof(*c));
	c->shape = *shape;
	c->pieces = shape->blocks * shape->tensors;
	c->size = (c->pieces * shape->piece + SVM_ALIGN - 1) & -SVM_ALIGN;
	c->d = calloc(c->pieces, sizeof(*c->d));
	if (!c->d)
		return -ENOMEM;
	ret = buffer_map(&self->gpu, &c->bo, c->size, AMDGPU_GEM_DOMAIN_VRAM,
			 CACHE_VA);
	return ret ? ret : svm_new(&self->svm, &c->at, c->size);
}

static void cache_close(struct _test_data_svm *self, struct cache *c)
{
	munmap(c->at, c->size);
	buffer_free(&self->gpu, &c->bo);
	free(c->d);
}

/* In one batch, which reads and writes the pieces where they are. */
static void move_all(struct __test_metadata *_metadata,
		     struct _test_data_svm *self, struct cache *c, bool back)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, c->d,
						      c->pieces);
	const uint64_t bytes = c->pieces * c->shape.piece;

	describe(c, back);
	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(2 * bytes, batch.vram_bytes + batch.system_bytes);
	EXPECT_LE(bytes + c->away, batch.vram_bytes + SVM_ALIGN);
	EXPECT_EQ(c->away, svm_away(&self->svm, c->at, c->size) * PAGE);
}

static void out_and_back(struct __test_metadata *_metadata,
			 struct _test_data_svm *self, const struct shape *shape)
{
	struct cache c;

	ASSERT_EQ(0, cache_open(self, &c, shape));
	fill_pieces(&c, svm_piece, 0);
	ASSERT_EQ(0, send_half_away(self, &c));
	ASSERT_LE(c.size / 2, c.away);
	move_all(_metadata, self, &c, false);
	ASSERT_EQ(c.pieces, check_pieces(&c, bo_piece, 0));
	fill_pieces(&c, bo_piece, 1u << 31);
	move_all(_metadata, self, &c, true);
	ASSERT_EQ(c.pieces, check_pieces(&c, svm_piece, 1u << 31));
	cache_close(self, &c);
}

/* As many copies as a long context has blocks, layers and heads. */
TEST_F_TIMEOUT(svm, fifty_thousand_pages, 600)
{
	const struct shape shape = {
		.blocks = 50000, .tensors = 1, .piece = 4 * KIB,
	};

	out_and_back(_metadata, self, &shape);
}

/* A model of 80 layers; each GPU has a quarter of the heads. */
TEST_F_TIMEOUT(svm, large_model, 600)
{
	const struct shape shape = {
		.blocks = 256, .tensors = 160, .piece = 8 * KIB,
	};

	out_and_back(_metadata, self, &shape);
}

/* A model of 32 layers. */
TEST_F_TIMEOUT(svm, small_model, 600)
{
	const struct shape shape = {
		.blocks = 64, .tensors = 64, .piece = 32 * KIB,
	};

	out_and_back(_metadata, self, &shape);
}

/* Blocks of a cache that are scattered, into one buffer and back. */
#define BLOCKS		512
#define BLOCK		4096

TEST_F_TIMEOUT(svm, gather_and_scatter, 120)
{
	static struct drm_amdgpu_sdma_desc d[BLOCKS];
	struct svm_gpu *gpu = &self->svm.gpu[0];
	uint8_t *at[BLOCKS];
	unsigned int i;
	int ret, watch;

	for (i = 0; i < BLOCKS; i++) {
		/* a page of its own for each, with nothing beside it */
		at[i] = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, at[i]);
		at[i] += PAGE;
		memcpy(at[i], self->want + i * BLOCK, BLOCK);
		if (i % 3)
			ret = svm_access(&self->svm, at[i], PAGE, gpu);
		else
			ret = svm_prefetch(&self->svm, at[i], PAGE, gpu);
		ASSERT_EQ(0, ret);
		d[i] = copy_desc(va(at[i]), VRAM_VA + i * BLOCK, BLOCK);
	}
	watch = svm_watch(&self->svm, gpu);
	ASSERT_LE(0, watch);
	ASSERT_EQ(0, run_descs(self, d, BLOCKS, NULL));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, BLOCKS * BLOCK));
	randomize(self->want, SIZE, &self->seed);
	memcpy(self->vram.cpu, self->want, SIZE);
	for (i = 0; i < BLOCKS; i++)
		d[i] = copy_desc(VRAM_VA + i * BLOCK, va(at[i]), BLOCK);
	ASSERT_EQ(0, run_descs(self, d, BLOCKS, NULL));
	/* the CPU has not accessed it yet, which would bring it back */
	EXPECT_EQ(0, svm_migrations(watch));
	close(watch);
	for (i = 0; i < BLOCKS; i++) {
		EXPECT_EQ(i % 3 ? 0 : 1, svm_away(&self->svm, at[i], PAGE));
		ASSERT_EQ(0, memcmp(at[i], self->want + i * BLOCK, BLOCK))
			TH_LOG("block %u", i);
	}
}

TEST_HARNESS_MAIN
