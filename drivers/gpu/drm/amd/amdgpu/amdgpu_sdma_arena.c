// SPDX-License-Identifier: MIT
/*
 * Memory for the packets of SDMA batches.
 *
 * An engine runs a batch in the file's VMID, so its packets must be mapped in
 * the file's VM, in a range of addresses that user space cannot map (see
 * AMDGPU_VA_RESERVED_SDMA_START). The GPU may read the packets but not write
 * them: what was checked is what runs. The memory is not pinned. It shares the
 * reservation of the VM's root page directory, as all BOs do that are always
 * valid in one VM: with that held, the memory is resident and may be written.
 *
 * Chunks are kept for the next batch: mapping one costs more than a batch.
 * A prepared batch owns its chunk as long as it lives.
 *
 * Waits also work in a page of video memory, because they need atomic
 * operations that PCIe does not have. The file has one such page, with a slot
 * for each engine. It is not pinned either, and is made resident again before a
 * batch runs. Swaps that no packet can do use scratch memory of the same kind.
 */

#include <linux/bitmap.h>
#include <linux/dma-fence.h>
#include <linux/log2.h>

#include <drm/amdgpu_drm.h>

#include "amdgpu.h"
#include "amdgpu_sdma_arena.h"
#include "amdgpu_sdma_batch.h"
#include "amdgpu_sdma_batch_internal.h"
#include "amdgpu_sdma_batch_stats.h"
#include "amdgpu_sdma_plan.h"
#include "amdgpu_sdma_prepared.h"

#define UNIT		SZ_64K
#define UNITS		(AMDGPU_VA_RESERVED_SDMA_SIZE / UNIT)
/* All chunks of a file together; this also bounds its batches in flight. */
#define MAX_BYTES	SZ_64M
/* The page in video memory, and the unit of addresses that it occupies. */
#define SAMPLE_BYTES	SZ_4K
#define SAMPLE_UNIT	(UNITS - 1)
/* Scratch memory, and its units of addresses: one for each possible engine. */
#define SCRATCH_UNITS	(AMDGPU_SDMA_MAX_SHARES * AMDGPU_SDMA_SCRATCH_SIZE / UNIT)
#define SCRATCH_UNIT	(SAMPLE_UNIT - SCRATCH_UNITS)

/**
 * struct amdgpu_sdma_arena - a file's command memory
 * @lock: protects the lists, the counters and @used; not held while memory is
 *	allocated. A thread that waits for room looks at them without it
 * @chunks: those in which no thread builds a batch, least recently used first
 * @kept_bytes: bytes of all chunks of prepared batches
 * @num_kept: number of those chunks
 * @prepared: prepared batches
 * @uncleared: unmapped chunks that page tables may still refer to
 * @bytes: bytes of all chunks
 * @used: units of the address range that are in use
 * @freed: woken when a chunk is put back or freed
 * @vram_lock: held while @sample or @scratch is made; taken before reservations
 * @sample: memory for waits, NULL before the first one
 * @scratch: memory for swaps, NULL before the first one that needs it
 * @stats: what the file's batches cost
 */
struct amdgpu_sdma_arena {
	struct mutex lock; /* see above */
	struct list_head chunks;
	u64 kept_bytes;
	u32 num_kept;
	struct xarray prepared;
	struct list_head uncleared;
	u64 bytes;
	DECLARE_BITMAP(used, UNITS);
	wait_queue_head_t freed;
	struct mutex vram_lock; /* see above */
	struct amdgpu_sdma_chunk *sample;
	struct amdgpu_sdma_chunk *scratch;
	struct amdgpu_sdma_batch_file *stats;
};

static void arena_free(struct amdgpu_sdma_arena *arena)
{
	amdgpu_sdma_batch_file_put(arena->stats);
	mutex_destroy(&arena->vram_lock);
	mutex_destroy(&arena->lock);
	kfree(arena);
}

static struct amdgpu_sdma_arena *arena_create(void)
{
	struct amdgpu_sdma_arena *arena;

	arena = kzalloc_obj(*arena, GFP_KERNEL_ACCOUNT);
	if (!arena)
		return NULL;
	mutex_init(&arena->lock);
	mutex_init(&arena->vram_lock);
	bitmap_set(arena->used, SCRATCH_UNIT, SCRATCH_UNITS + 1);
	INIT_LIST_HEAD(&arena->chunks);
	INIT_LIST_HEAD(&arena->uncleared);
	xa_init_flags(&arena->prepared, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	init_waitqueue_head(&arena->freed);
	arena->stats = amdgpu_sdma_batch_file_create();
	if (arena->stats)
		return arena;
	arena_free(arena);
	return NULL;
}

static struct amdgpu_sdma_arena *arena_get(struct amdgpu_fpriv *fpriv)
{
	struct amdgpu_sdma_arena *arena = READ_ONCE(fpriv->sdma_arena), *other;

	if (arena)
		return arena;
	arena = arena_create();
	if (!arena)
		return NULL;
	/* Two threads may submit a file's first batch. */
	other = cmpxchg(&fpriv->sdma_arena, NULL, arena);
	if (!other)
		return arena;
	arena_free(arena);
	return other;
}

/**
 * amdgpu_sdma_arena_stats - what a file's batches cost
 * @fpriv: file
 *
 * Returns: NULL if there were none; else statistics with the file's lifetime.
 */
struct amdgpu_sdma_batch_file *
amdgpu_sdma_arena_stats(struct amdgpu_fpriv *fpriv)
{
	struct amdgpu_sdma_arena *arena = READ_ONCE(fpriv->sdma_arena);

	return arena ? arena->stats : NULL;
}

static unsigned int chunk_unit(struct amdgpu_device *adev,
			       const struct amdgpu_sdma_chunk *chunk)
{
	u64 va = chunk->va & AMDGPU_GMC_HOLE_MASK;

	return (va - AMDGPU_VA_RESERVED_SDMA_START(adev)) / UNIT;
}

static void chunk_forget(struct amdgpu_device *adev,
			 struct amdgpu_sdma_arena *arena,
			 struct amdgpu_sdma_chunk *chunk)
{
	mutex_lock(&arena->lock);
	bitmap_clear(arena->used, chunk_unit(adev, chunk), chunk->size / UNIT);
	WRITE_ONCE(arena->bytes, arena->bytes - chunk->size);
	mutex_unlock(&arena->lock);
	wake_up(&arena->freed);
	dma_fence_put(chunk->fence);
	kfree(chunk);
}

/* Addresses for a chunk. The bitmap has room: MAX_BYTES is a quarter of it. */
static int chunk_reserve(struct amdgpu_device *adev,
			 struct amdgpu_sdma_arena *arena,
			 struct amdgpu_sdma_chunk *chunk, u32 size)
{
	unsigned long unit;

	lockdep_assert_held(&arena->lock);
	unit = bitmap_find_next_zero_area(arena->used, UNITS, 0, size / UNIT,
					  0);
	if (unit >= UNITS)
		return -ENOSPC;
	bitmap_set(arena->used, unit, size / UNIT);
	WRITE_ONCE(arena->bytes, arena->bytes + size);
	chunk->size = size;
	chunk->va = amdgpu_gmc_sign_extend(AMDGPU_VA_RESERVED_SDMA_START(adev) +
					   unit * UNIT);
	return 0;
}

/* Returns NULL if the arena is full. */
static struct amdgpu_sdma_chunk *
chunk_create(struct amdgpu_device *adev, struct amdgpu_fpriv *fpriv,
	     struct amdgpu_sdma_arena *arena, u32 size)
{
	struct amdgpu_sdma_chunk *chunk;
	bool room;
	int r = 0;

	chunk = kzalloc_obj(*chunk, GFP_KERNEL_ACCOUNT);
	if (!chunk)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&arena->lock);
	room = arena->bytes + size <= MAX_BYTES;
	if (room)
		r = chunk_reserve(adev, arena, chunk, size);
	mutex_unlock(&arena->lock);
	if (!room || r) {
		kfree(chunk);
		return room ? ERR_PTR(r) : NULL;
	}
	r = amdgpu_sdma_chunk_create_bo(adev, fpriv, chunk,
					AMDGPU_GEM_DOMAIN_GTT);
	if (!r)
		return chunk;
	chunk_forget(adev, arena, chunk);
	return ERR_PTR(r);
}

static void chunk_list(struct amdgpu_sdma_arena *arena,
		       struct amdgpu_sdma_chunk *chunk, struct list_head *list)
{
	mutex_lock(&arena->lock);
	list_add_tail(&chunk->node, list);
	mutex_unlock(&arena->lock);
}

/*
 * Page tables drop what is no longer mapped, in order with later batches. So
 * the addresses can be used again at once. The memory shares the reservation of
 * the root page directory and thus has the fences of all that is done here: it
 * is not freed before them.
 *
 * If that fails, a shader of the same process may still reach the memory. So it
 * is kept, and accounted for, until a retry succeeds. Each batch retries, and
 * what is cleared by then is freed here. Closing the file ends everything that
 * could use the page tables, and then the memory can be freed.
 */
static int arena_clear(struct amdgpu_device *adev, struct amdgpu_fpriv *fpriv,
		       struct amdgpu_sdma_arena *arena, struct list_head *done)
{
	struct amdgpu_vm *vm = &fpriv->vm;
	int r;

	dma_resv_assert_held(vm->root.bo->tbo.base.resv);
	r = amdgpu_vm_clear_freed(adev, vm, NULL);
	if (r)
		return r;
	mutex_lock(&arena->lock);
	list_splice_init(&arena->uncleared, done);
	mutex_unlock(&arena->lock);
	return 0;
}

/* Locks the root page directory and validates its page tables. */
static int arena_lock_tables(struct amdgpu_device *adev,
			     struct amdgpu_fpriv *fpriv)
{
	struct amdgpu_vm *vm = &fpriv->vm;
	int r;

	r = amdgpu_bo_reserve(vm->root.bo, false);
	if (r)
		return r;
	r = amdgpu_sdma_batch_validate_vm(adev, vm);
	/* The VM is not ready even now if the process was killed. */
	if (!r && !amdgpu_vm_ready(vm))
		r = -ECANCELED;
	/* One fence for the page table update, and one for the TLB flush. */
	if (!r)
		r = dma_resv_reserve_fences(vm->root.bo->tbo.base.resv, 2);
	if (r)
		amdgpu_bo_unreserve(vm->root.bo);
	return r;
}

/* Frees memory whose mappings are gone, and that of @chunk if there is one. */
static int arena_give_back(struct amdgpu_device *adev,
			   struct amdgpu_fpriv *fpriv,
			   struct amdgpu_sdma_arena *arena,
			   struct amdgpu_sdma_chunk *chunk, bool nonblock)
{
	struct amdgpu_vm *vm = &fpriv->vm;
	struct amdgpu_sdma_chunk *next;
	LIST_HEAD(done);
	int r = 0;

	/* This must not wait with the page tables locked. */
	if (!nonblock)
		r = amdgpu_vm_wait_to_clear(vm, true);
	if (!r)
		r = arena_lock_tables(adev, fpriv);
	if (r) {
		if (chunk)
			amdgpu_sdma_chunk_put(fpriv, chunk, NULL);
		return r;
	}
	if (chunk) {
		amdgpu_vm_bo_del(adev, chunk->bo_va);
		chunk_list(arena, chunk, &arena->uncleared);
	}
	if (nonblock && amdgpu_vm_clear_waits(vm, &vm->freed))
		r = -EAGAIN;
	else
		r = arena_clear(adev, fpriv, arena, &done);
	amdgpu_bo_unreserve(vm->root.bo);
	/* Threads that wait for a chunk get none here: let them try this. */
	if (r)
		wake_up(&arena->freed);
	list_for_each_entry_safe(chunk, next, &done, node) {
		amdgpu_bo_unref(&chunk->bo);
		chunk_forget(adev, arena, chunk);
	}
	return r;
}

static bool chunk_fits(const struct amdgpu_sdma_chunk *chunk, u64 size, u32 max)
{
	return chunk->size >= size && chunk->size <= max;
}

static bool chunk_idle(struct amdgpu_sdma_chunk *chunk)
{
	return !chunk->fence || dma_fence_is_signaled(chunk->fence);
}

/* The smallest idle chunk of @size to @max bytes, or NULL. */
static struct amdgpu_sdma_chunk *chunk_take(struct amdgpu_sdma_arena *arena,
					    u32 size, u32 max)
{
	struct amdgpu_sdma_chunk *chunk, *best = NULL;

	lockdep_assert_held(&arena->lock);
	list_for_each_entry(chunk, &arena->chunks, node) {
		if (!chunk_fits(chunk, size, max) ||
		    (best && best->size <= chunk->size))
			continue;
		if (!chunk_idle(chunk))
			continue;
		best = chunk;
		if (best->size == size)
			break;
	}
	if (best)
		list_del(&best->node);
	return best;
}

/*
 * Takes an idle chunk in which no thread is building a batch. If there is none,
 * takes the one that most likely becomes idle first, but not if @idle is set.
 */
static struct amdgpu_sdma_chunk *chunk_oldest(struct amdgpu_sdma_arena *arena,
					      bool idle)
{
	struct amdgpu_sdma_chunk *chunk, *oldest = NULL;

	mutex_lock(&arena->lock);
	list_for_each_entry(chunk, &arena->chunks, node) {
		if (chunk_idle(chunk)) {
			oldest = chunk;
			break;
		}
		if (!oldest && !idle)
			oldest = chunk;
	}
	if (oldest)
		list_del(&oldest->node);
	mutex_unlock(&arena->lock);
	return oldest;
}

static bool has_uncleared(struct amdgpu_sdma_arena *arena)
{
	return !list_empty_careful(&arena->uncleared);
}

/*
 * The arena is full: wait for a batch to end, and free its chunk, unless the
 * caller can use that. Unmapping a chunk makes the GPU, and the batches that
 * follow, wait for all that the file has in flight.
 */
static int arena_shrink(struct amdgpu_device *adev, struct amdgpu_fpriv *fpriv,
			struct amdgpu_sdma_arena *arena, u64 size, u32 max,
			bool nonblock)
{
	struct amdgpu_sdma_chunk *chunk;
	int r;

	if (has_uncleared(arena))
		return arena_give_back(adev, fpriv, arena, NULL, nonblock);
	/* If threads are building in all chunks, each of them puts one back. */
	r = nonblock ? 0 :
	    wait_event_interruptible(arena->freed,
				     !list_empty_careful(&arena->chunks) ||
				     has_uncleared(arena) ||
				     READ_ONCE(arena->bytes) + size <=
				     MAX_BYTES);
	if (r)
		return r;
	chunk = chunk_oldest(arena, nonblock);
	if (!chunk) /* another thread was quicker: look again */
		return nonblock ? -EAGAIN : 0;
	if (!chunk_idle(chunk)) {
		r = dma_fence_wait(chunk->fence, true);
		if (r) {
			amdgpu_sdma_chunk_put(fpriv, chunk, NULL);
			return r;
		}
	}
	if (chunk_fits(chunk, size, max)) {
		amdgpu_sdma_chunk_put(fpriv, chunk, NULL);
		return 0;
	}
	return arena_give_back(adev, fpriv, arena, chunk, nonblock);
}

static int vram_create(struct amdgpu_device *adev, struct amdgpu_fpriv *fpriv,
		       struct amdgpu_sdma_chunk **result, u64 unit, u32 size)
{
	u64 va = AMDGPU_VA_RESERVED_SDMA_START(adev) + unit * UNIT;
	struct amdgpu_sdma_chunk *vram;
	int r;

	vram = kzalloc_obj(*vram, GFP_KERNEL_ACCOUNT);
	if (!vram)
		return -ENOMEM;
	vram->size = size;
	vram->va = amdgpu_gmc_sign_extend(va);
	r = amdgpu_sdma_chunk_create_bo(adev, fpriv, vram,
					AMDGPU_GEM_DOMAIN_VRAM);
	if (r)
		kfree(vram);
	else
		*result = vram;
	return r;
}

/* Creates the memory if the file does not have it yet; the file keeps it. */
static int vram_get(struct amdgpu_device *adev, struct amdgpu_fpriv *fpriv,
		    struct amdgpu_sdma_arena *arena,
		    struct amdgpu_sdma_chunk **result, u64 unit, u32 size)
{
	int r = 0;

	mutex_lock(&arena->vram_lock);
	if (!*result)
		r = vram_create(adev, fpriv, result, unit, size);
	mutex_unlock(&arena->vram_lock);
	return r;
}

static int sample_get(struct amdgpu_device *adev, struct amdgpu_fpriv *fpriv,
		      struct amdgpu_sdma_arena *arena)
{
	return vram_get(adev, fpriv, arena, &arena->sample, SAMPLE_UNIT,
			SAMPLE_BYTES);
}

/**
 * amdgpu_sdma_scratch_get - get memory for swaps that no packet can do
 * @adev: device
 * @fpriv: file that has got a chunk
 * @va: result: GPU address of AMDGPU_SDMA_SCRATCH_SIZE bytes for each instance
 *
 * The caller holds no reservation.
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_scratch_get(struct amdgpu_device *adev,
			    struct amdgpu_fpriv *fpriv, u64 *va)
{
	struct amdgpu_sdma_arena *arena = fpriv->sdma_arena;
	u32 engines = min(adev->sdma.num_instances, AMDGPU_SDMA_MAX_SHARES);
	int r;

	r = vram_get(adev, fpriv, arena, &arena->scratch, SCRATCH_UNIT,
		     engines * AMDGPU_SDMA_SCRATCH_SIZE);
	if (!r)
		*va = arena->scratch->va;
	return r;
}

static u64 chunk_size(u64 bytes)
{
	u64 size = roundup_pow_of_two(bytes + AMDGPU_SDMA_CHUNK_SLOTS);

	return max_t(u64, size, UNIT);
}

/* Returns a chunk of @size to @max bytes. */
static struct amdgpu_sdma_chunk *
chunk_get(struct amdgpu_device *adev, struct amdgpu_fpriv *fpriv,
	  struct amdgpu_sdma_arena *arena, u64 size, u32 max, bool nonblock)
{
	struct amdgpu_sdma_chunk *chunk;
	int r;

	if (size > MAX_BYTES)
		return ERR_PTR(-EMSGSIZE);
	while (1) {
		mutex_lock(&arena->lock);
		chunk = chunk_take(arena, size, max);
		mutex_unlock(&arena->lock);
		if (!chunk)
			chunk = chunk_create(adev, fpriv, arena, size);
		if (chunk)
			return chunk;
		r = arena_shrink(adev, fpriv, arena, size, max, nonblock);
		if (r)
			return ERR_PTR(r);
	}
}

/**
 * amdgpu_sdma_chunk_get - get memory for the packets of a batch
 * @adev: device
 * @fpriv: file
 * @bytes: bytes of packets
 * @waits: the batch has waits
 * @nonblock: do not wait
 *
 * Waits for earlier batches of the file if the file has all the memory that it
 * may have. The caller holds no reservation, and puts the chunk back.
 *
 * Returns: a chunk, or an ERR_PTR().
 */
struct amdgpu_sdma_chunk *
amdgpu_sdma_chunk_get(struct amdgpu_device *adev, struct amdgpu_fpriv *fpriv,
		      u64 bytes, bool waits, bool nonblock)
{
	struct amdgpu_sdma_arena *arena = arena_get(fpriv);
	struct amdgpu_sdma_chunk *chunk;
	int r;

	if (!arena)
		return ERR_PTR(-ENOMEM);
	r = waits ? sample_get(adev, fpriv, arena) : 0;
	if (r)
		return ERR_PTR(r);
	chunk = chunk_get(adev, fpriv, arena, chunk_size(bytes), U32_MAX,
			  nonblock);
	if (!IS_ERR(chunk))
		chunk->sample = waits ? arena->sample->va : 0;
	return chunk;
}

/**
 * amdgpu_sdma_chunk_put - put a chunk back
 * @fpriv: file
 * @chunk: from amdgpu_sdma_chunk_get()
 * @fence: end of the batch in it, or NULL if the chunk was not used again
 */
void amdgpu_sdma_chunk_put(struct amdgpu_fpriv *fpriv,
			   struct amdgpu_sdma_chunk *chunk,
			   struct dma_fence *fence)
{
	struct amdgpu_sdma_arena *arena = fpriv->sdma_arena;

	mutex_lock(&arena->lock);
	if (fence) {
		dma_fence_put(chunk->fence);
		chunk->fence = dma_fence_get(fence);
	}
	list_add_tail(&chunk->node, &arena->chunks);
	mutex_unlock(&arena->lock);
	if (wq_has_sleeper(&arena->freed))
		wake_up(&arena->freed);
}

/* Batches cannot wait for the memory of prepared batches: so it is bounded. */
static int kept_charge(struct amdgpu_sdma_arena *arena, u64 size)
{
	int r = 0;

	mutex_lock(&arena->lock);
	if (arena->num_kept == AMDGPU_SDMA_MAX_PREPARED)
		r = -EMFILE;
	else if (arena->kept_bytes + size > AMDGPU_SDMA_MAX_PREPARED_BYTES)
		r = -ENOSPC;
	if (!r) {
		arena->num_kept++;
		arena->kept_bytes += size;
	}
	mutex_unlock(&arena->lock);
	return r;
}

static void kept_uncharge(struct amdgpu_sdma_arena *arena, u64 size)
{
	mutex_lock(&arena->lock);
	arena->num_kept--;
	arena->kept_bytes -= size;
	mutex_unlock(&arena->lock);
}

/**
 * amdgpu_sdma_chunk_get_kept - get memory for a prepared batch
 * @adev: device
 * @fpriv: file
 * @bytes: bytes of packets
 * @waits: the batch has waits
 * @nonblock: do not wait
 *
 * The caller holds no reservation.
 *
 * Returns: a chunk for amdgpu_sdma_chunk_put_kept(), or an ERR_PTR(): -EMFILE
 * if the file may have no more prepared batches, -ENOSPC if no more memory.
 */
struct amdgpu_sdma_chunk *
amdgpu_sdma_chunk_get_kept(struct amdgpu_device *adev,
			   struct amdgpu_fpriv *fpriv, u64 bytes, bool waits,
			   bool nonblock)
{
	struct amdgpu_sdma_arena *arena = arena_get(fpriv);
	struct amdgpu_sdma_chunk *chunk;
	u64 size = chunk_size(bytes);
	int r;

	if (!arena)
		return ERR_PTR(-ENOMEM);
	r = waits ? sample_get(adev, fpriv, arena) : 0;
	if (!r)
		r = kept_charge(arena, size);
	if (r)
		return ERR_PTR(r);
	/* Not a larger one: the batch has what it was charged. */
	chunk = chunk_get(adev, fpriv, arena, size, size, nonblock);
	if (IS_ERR(chunk)) {
		kept_uncharge(arena, size);
		return chunk;
	}
	chunk->sample = waits ? arena->sample->va : 0;
	return chunk;
}

/**
 * amdgpu_sdma_chunk_put_kept - put the chunk of a prepared batch back
 * @fpriv: file
 * @chunk: from amdgpu_sdma_chunk_get_kept()
 * @fence: end of the last run, or NULL if there was none
 */
void amdgpu_sdma_chunk_put_kept(struct amdgpu_fpriv *fpriv,
				struct amdgpu_sdma_chunk *chunk,
				struct dma_fence *fence)
{
	kept_uncharge(fpriv->sdma_arena, chunk->size);
	amdgpu_sdma_chunk_put(fpriv, chunk, fence);
}

/**
 * amdgpu_sdma_arena_prepared - a file's prepared batches
 * @fpriv: file
 *
 * Returns: the table, or NULL if the file has had no batch.
 */
struct xarray *amdgpu_sdma_arena_prepared(struct amdgpu_fpriv *fpriv)
{
	struct amdgpu_sdma_arena *arena = READ_ONCE(fpriv->sdma_arena);

	return arena ? &arena->prepared : NULL;
}

/**
 * amdgpu_sdma_arena_fini - free a file's command memory
 * @adev: device
 * @fpriv: file, about to be closed
 *
 * Called after its scheduler entities are gone and before its VM is freed. An
 * engine may still run a batch: TTM frees the memory after the batch's fences.
 */
void amdgpu_sdma_arena_fini(struct amdgpu_device *adev,
			    struct amdgpu_fpriv *fpriv)
{
	struct amdgpu_sdma_arena *arena = fpriv->sdma_arena;
	struct amdgpu_sdma_chunk *chunk, *next;
	bool reserved;

	if (!arena)
		return;
	amdgpu_sdma_prepared_fini(fpriv);
	reserved = !WARN_ON(amdgpu_bo_reserve(fpriv->vm.root.bo, true));
	if (reserved) {
		list_for_each_entry(chunk, &arena->chunks, node)
			amdgpu_vm_bo_del(adev, chunk->bo_va);
		if (arena->sample)
			amdgpu_vm_bo_del(adev, arena->sample->bo_va);
		if (arena->scratch)
			amdgpu_vm_bo_del(adev, arena->scratch->bo_va);
		amdgpu_bo_unreserve(fpriv->vm.root.bo);
	}
	list_splice(&arena->uncleared, &arena->chunks);
	list_for_each_entry_safe(chunk, next, &arena->chunks, node) {
		amdgpu_bo_unref(&chunk->bo);
		dma_fence_put(chunk->fence);
		kfree(chunk);
	}
	if (arena->sample)
		amdgpu_bo_unref(&arena->sample->bo);
	kfree(arena->sample);
	if (arena->scratch)
		amdgpu_bo_unref(&arena->scratch->bo);
	kfree(arena->scratch);
	arena_free(arena);
	fpriv->sdma_arena = NULL;
}
