// SPDX-License-Identifier: GPL-2.0
/*
 * Where and when SDMA batches run: fences, placement, engines, other GPUs.
 */
#include "emulator.h"
#include "sdma_model.h"

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
		/* any engine each time; a timeline from the middle on */
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

/* An in-fence that has no fence yet is refused, and nothing runs. */
TEST_F(sdma, in_fence_without_fence)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, VRAM_VA, 4096);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct drm_amdgpu_sdma_fence in = { 0 };

	ASSERT_EQ(0, syncobj_new(&self->gpu, &in.handle));
	batch.in_fences = (uintptr_t)&in;
	batch.num_in_fences = 1;
	EXPECT_EQ(-EINVAL, batch_run(&self->gpu, &batch));
	EXPECT_EQ(AMDGPU_SDMA_ERROR_IN_FENCE, batch.error_array);
	EXPECT_EQ(0, batch.error_index);
	EXPECT_EQ(-1, differs(self));
	syncobj_free(&self->gpu, in.handle);
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
 * The fence of a fan-out signals when all engines have ended: check right after
 * it, many times. The engine that fills ends while the others still exchange.
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

/* AUTO decides how many engines a copy takes; a large one takes several. */
TEST_F(sdma, auto_placement)
{
	struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(SYSTEM_VA, VRAM_VA, 64 * KIB),
		behind(copy_desc(VRAM_VA, SYSTEM_VA + 4 * MIB, 4 * MIB)),
	};
	uint32_t used, engines;

	ASSERT_EQ(0, run_placed(self, d, 1, AMDGPU_SDMA_PLACE_AUTO, &used));
	EXPECT_EQ(1, __builtin_popcount(used));
	d[0].size = 4 * MIB;
	engines = __builtin_popcount(self->gpu.info.engine_mask);
	ASSERT_EQ(0, run_placed(self, d, 1, AMDGPU_SDMA_PLACE_AUTO, &used));
	EXPECT_LE(engines < 2 ? 1 : 2, __builtin_popcount(used));
	EXPECT_EQ(used, used & self->gpu.info.engine_mask);
	EXPECT_EQ(-1, differs(self));
	/* a batch that needs an order is not fanned out */
	ASSERT_EQ(0, run_placed(self, d, 2, AMDGPU_SDMA_PLACE_AUTO, &used));
	EXPECT_EQ(1, __builtin_popcount(used));
	EXPECT_EQ(-1, differs(self));
}

/* Copies to the host run on the engines that face it, if these are known. */
TEST_F(sdma, auto_faces)
{
	const uint32_t host = self->gpu.info.host_engine_mask;
	struct drm_amdgpu_sdma_desc d;
	unsigned int i;
	uint32_t used;

	if (!host)
		SKIP(return, "which engines face the host is not known");
	for (i = 0; i < 16; i++) {
		/* on one engine, then on several */
		d = copy_desc(VRAM_VA, SYSTEM_VA, i % 2 ? 4 * MIB : 64 * KIB);
		ASSERT_EQ(0, run_placed(self, &d, 1, AMDGPU_SDMA_PLACE_AUTO,
					&used));
		EXPECT_EQ(0, used & ~host);
		d.dst = VRAM_VA + 4 * MIB;
		ASSERT_EQ(0, run_placed(self, &d, 1, AMDGPU_SDMA_PLACE_AUTO,
					&used));
		EXPECT_EQ(0, used & host);
	}
	/* a fan-out runs on all engines */
	ASSERT_EQ(0, run_placed(self, &d, 1, AMDGPU_SDMA_PLACE_FAN_OUT, &used));
	EXPECT_EQ(self->gpu.info.engine_mask, used);
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

/* An emulated GPU tells how many engines it has on all its dies. */
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

/* Bytes that emulated GPUs have sent to each other, by a link or the bus. */
static long between_gpus(int port)
{
	return emulator_count(port, "bytes_xgmi") +
	       emulator_count(port, "bytes_peer") +
	       emulator_count(port, "bytes_message");
}

/*
 * Copies to the first of the other GPUs, from each of them to the next, and
 * back: each is written once and read once.
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
	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	if (port >= 0)
		before = between_gpus(port);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	TH_LOG("%d other GPUs", n);
	/* each is written once and read once */
	EXPECT_EQ(2 * n * 2 * MIB, batch.peer_bytes);
	EXPECT_EQ(2 * MIB, batch.vram_bytes);
	EXPECT_EQ(2 * MIB, batch.system_bytes);
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

/* How many engines AUTO takes for a batch; 0 if the batch fails. */
static int engines_of(struct gpu *gpu, struct drm_amdgpu_sdma_desc *d, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, d, n);

	batch.placement = AMDGPU_SDMA_PLACE_AUTO;
	return batch_run(gpu, &batch) ? 0 : __builtin_popcount(batch.engines_used);
}

#define SMALL_COPIES	64

/* One engine fills a link. XGMI has one per GPU, PCI Express one for all. */
TEST_F(sdma, auto_links)
{
	const int fabric = __builtin_popcount(self->gpu.info.engine_mask &
					      ~self->gpu.info.host_engine_mask);
	struct drm_amdgpu_sdma_desc d[SMALL_COPIES];
	struct buffer theirs[2];
	struct gpu peer[2];
	int i, n, links;

	for (n = 0; n < 2 && !gpu_open(&peer[n], n + 1); n++)
		ASSERT_EQ(0, map_peer(&self->gpu, &peer[n], &theirs[n],
				      PEER_VA(n)));
	if (!n || fabric < 4)
		SKIP(return, "one GPU, or few engines");
	d[0] = copy_desc(VRAM_VA, VRAM_VA + 4 * MIB, 2 * MIB);
	EXPECT_LE(4, engines_of(&self->gpu, d, 1));
	for (i = 0; i < n; i++)
		d[i] = copy_desc(VRAM_VA, PEER_VA(i), 2 * MIB);
	links = gpu_linked(peer[0].name) ? n : 1;
	EXPECT_EQ(1, engines_of(&self->gpu, d, 1));
	EXPECT_EQ(links, engines_of(&self->gpu, d, n));
	/* if only a part of the data leaves, no link is the bottleneck */
	d[1] = copy_desc(VRAM_VA, VRAM_VA + 4 * MIB, 4 * MIB);
	EXPECT_LE(4, engines_of(&self->gpu, d, 2));
	/* the packet of a small copy costs an engine more than its bytes */
	for (i = 0; i < SMALL_COPIES; i++)
		d[i] = copy_desc(VRAM_VA + i * 8 * KIB, PEER_VA(0) + i * 8 * KIB,
				 4 * KIB);
	EXPECT_EQ(4, engines_of(&self->gpu, d, SMALL_COPIES));
	while (n--) {
		EXPECT_EQ(0, memcmp(theirs[n].cpu, self->vram.cpu, 4 * KIB));
		close(peer[n].fd);
	}
}

/*
 * Engines cannot add to memory of another device unless XGMI links the two,
 * whether the batch is submitted or prepared.
 */
TEST_F(sdma, add_to_peer)
{
	struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(PEER_VA(0), 4096, 7),
		add_desc(PEER_VA(0) + 4096, 1),
	};
	struct drm_amdgpu_sdma_batch batch;
	struct buffer theirs;
	struct gpu peer;
	uint32_t op;

	if (gpu_open(&peer, 1))
		SKIP(return, "one GPU");
	ASSERT_EQ(0, map_peer(&self->gpu, &peer, &theirs, PEER_VA(0)));
	if (gpu_linked(peer.name)) {
		batch = batch_of(&self->gpu, d, 2);
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		EXPECT_EQ(1, *(uint64_t *)(theirs.cpu + 4096));
		close(peer.fd);
		return;
	}
	for (op = AMDGPU_SDMA_BATCH_SUBMIT; op <= AMDGPU_SDMA_BATCH_PREPARE;
	     op++) {
		batch = batch_of(&self->gpu, d, 2);
		batch.op = op;
		EXPECT_EQ(-EOPNOTSUPP, batch_submit(&self->gpu, &batch));
		EXPECT_EQ(AMDGPU_SDMA_ERROR_DESC, batch.error_array);
		EXPECT_EQ(1, batch.error_index);
	}
	/* nothing of the batch was done; without the ADD it works */
	EXPECT_EQ(0, theirs.cpu[0]);
	batch = batch_of(&self->gpu, d, 1);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(7, theirs.cpu[0]);
	close(peer.fd);
}

TEST_HARNESS_MAIN
