// SPDX-License-Identifier: GPL-2.0
// SDMA batches on ROCr's own file of the render node, over ROCr's memory: one
// process reaches the same bytes both ways.
#include "rocr.h"

#include <dirent.h>
#include <libgen.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sdma_svm.h"

#define SIZE	(3 * MIB + 20)

/* Whether it is a render node of this GPU. */
static bool is_node_of(int fd, const char *pci)
{
	char link[64], *path, *name;
	bool found = false;
	struct stat st;

	if (fstat(fd, &st) || !S_ISCHR(st.st_mode) || major(st.st_rdev) != 226)
		return false;
	snprintf(link, sizeof(link), "/sys/dev/char/226:%u/device",
		 minor(st.st_rdev));
	path = realpath(link, NULL);
	if (path) {
		name = basename(path);
		found = !strcmp(name, pci);
	}
	free(path);
	return found;
}

/*
 * ROCr has opened the node of each GPU, and KFD uses the VM of that file;
 * -1 if there is none.
 */
static int file_of(const char *pci)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd = -1;

	while (dir && fd < 0 && (entry = readdir(dir)))
		if (is_node_of(atoi(entry->d_name), pci))
			fd = atoi(entry->d_name);
	if (dir)
		closedir(dir);
	return fd;
}

/* The file is ROCr's, and must not be closed. */
static int open_batches(unsigned int gpu, struct gpu *batches)
{
	const char *pci = rocr.gpu[gpu].pci;

	batches->fd = file_of(pci);
	CHECK(batches->fd >= 0, "%s is not open", pci);
	CHECK(!gpu_query_batch(batches), "no batches");
	CHECK(batches->info.features & AMDGPU_SDMA_FEATURE_SVM, "no SVM");
	CHECK(!gpu_context(batches, &batches->ctx), "no context");
	return 0;
}

static void close_batches(struct gpu *batches)
{
	union drm_amdgpu_ctx arg = {
		.in.op = AMDGPU_CTX_OP_FREE_CTX,
		.in.ctx_id = batches->ctx,
	};

	gpu_ioctl(batches, DRM_IOCTL_AMDGPU_CTX, &arg);
}

/* What a batch of one copy must report about its path, in bytes. */
struct path {
	uint64_t vram, system, peer;
};

static int batch_copy(struct gpu *batches, void *to, const void *from,
		      uint64_t size, struct path path)
{
	const struct drm_amdgpu_sdma_desc desc =
		faulting(copy_desc((uintptr_t)from, (uintptr_t)to, size));
	struct drm_amdgpu_sdma_batch batch = batch_of(batches, &desc, 1);
	int ret;

	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	ret = batch_run(batches, &batch);
	CHECK(!ret, "%s", strerror(-ret));
	CHECK(batch.vram_bytes == path.vram &&
		      batch.system_bytes == path.system &&
		      batch.peer_bytes == path.peer,
	      "%llu of video memory, %llu of the host's, %llu of others'",
	      batch.vram_bytes, batch.system_bytes, batch.peer_bytes);
	return 0;
}

/* From the host to the GPU and back, by batches and by ROCr in turn. */
static int both_ways(struct gpu *batches, unsigned int gpu, uint8_t *from,
		     uint8_t *vram, uint8_t *to)
{
	const struct path to_host = { SIZE, SIZE, 0 };

	seed_fill(from, SIZE, 1);
	if (batch_copy(batches, vram, from, SIZE, to_host))
		return 1;
	CHECK_SEED(vram, SIZE, 1);
	CHECK_HSA(rocr_copy(on_host(to), on_gpu(gpu, vram), SIZE, 0));
	CHECK_SEED(to, SIZE, 1);

	seed_fill(from, SIZE, 2);
	CHECK_HSA(rocr_copy(on_gpu(gpu, vram), on_host(from), SIZE, 0));
	if (batch_copy(batches, to, vram, SIZE, to_host))
		return 1;
	CHECK_SEED(to, SIZE, 2);
	return 0;
}

static int pool_on(unsigned int gpu, hsa_amd_memory_pool_t pool)
{
	uint8_t *from = rocr_new(pool, SIZE), *to = rocr_new(pool, SIZE);
	uint8_t *vram = rocr_new(rocr.gpu[gpu].vram, SIZE);
	struct gpu batches;

	CHECK(from && to && vram, "no memory");
	if (open_batches(gpu, &batches) ||
	    both_ways(&batches, gpu, from, vram, to))
		return 1;
	close_batches(&batches);
	hsa_amd_memory_pool_free(from);
	hsa_amd_memory_pool_free(to);
	hsa_amd_memory_pool_free(vram);
	return 0;
}

static int on_each(int (*test)(unsigned int gpu))
{
	int ret = 0;

	for (unsigned int gpu = 0; !ret && gpu < rocr.gpus; gpu++) {
		ret = test(gpu);
		if (ret)
			printf("# on GPU %u\n", gpu);
	}
	return ret;
}

static int fine_on(unsigned int gpu)
{
	return pool_on(gpu, rocr.fine);
}

static int coarse_on(unsigned int gpu)
{
	return pool_on(gpu, rocr.coarse);
}

static int batch_fine(void)
{
	return on_each(fine_on);
}

static int batch_coarse(void)
{
	return on_each(coarse_on);
}

/* Memory of malloc(), locked: the GPU has it where ROCr says. */
static int batch_locked(void)
{
	uint8_t *from = malloc(SIZE), *to = malloc(SIZE);
	uint8_t *vram = rocr_new(rocr.gpu[0].vram, SIZE);
	void *gpu_from, *gpu_to;
	struct gpu batches;

	CHECK(from && to && vram, "no memory");
	CHECK_HSA(hsa_amd_memory_lock(from, SIZE, NULL, 0, &gpu_from));
	CHECK_HSA(hsa_amd_memory_lock(to, SIZE, NULL, 0, &gpu_to));
	if (open_batches(0, &batches) ||
	    both_ways(&batches, 0, gpu_from, vram, gpu_to))
		return 1;
	CHECK_SEED(to, SIZE, 2);
	close_batches(&batches);
	CHECK_HSA(hsa_amd_memory_unlock(from));
	CHECK_HSA(hsa_amd_memory_unlock(to));
	hsa_amd_memory_pool_free(vram);
	free(from);
	free(to);
	return 0;
}

/* The memory of another GPU, read and written. */
static int peer_of(unsigned int gpu)
{
	const struct path path = { SIZE, 0, SIZE };
	unsigned int other = (gpu + 1) % rocr.gpus;
	uint8_t *mine = rocr_new(rocr.gpu[gpu].vram, SIZE);
	uint8_t *theirs = rocr_new(rocr.gpu[other].vram, SIZE);
	struct gpu batches;

	CHECK(mine && theirs, "no memory");
	if (open_batches(gpu, &batches))
		return 1;
	seed_fill(mine, SIZE, 3);
	if (batch_copy(&batches, theirs, mine, SIZE, path))
		return 1;
	CHECK_SEED(theirs, SIZE, 3);
	seed_fill(theirs, SIZE, 4);
	if (batch_copy(&batches, mine, theirs, SIZE, path))
		return 1;
	CHECK_SEED(mine, SIZE, 4);
	close_batches(&batches);
	hsa_amd_memory_pool_free(mine);
	hsa_amd_memory_pool_free(theirs);
	return 0;
}

static int batch_peer(void)
{
	return rocr.gpus > 1 ? on_each(peer_of) : SKIP;
}

/* SVM memory on the host, and SVM memory that ROCr has moved to the GPU. */
static int svm_on(unsigned int gpu)
{
	const size_t size = 4 * MIB;
	const struct path local = { 2 * size, 0, 0 }, host = { size, size, 0 };
	uint8_t *here = svm_new_memory(size), *there = svm_new_memory(size);
	uint8_t *vram = rocr_new(rocr.gpu[gpu].vram, size);
	struct gpu batches;

	CHECK(here && there && vram, "no memory");
	if (open_batches(gpu, &batches))
		return 1;
	seed_fill(here, size, 5);
	memset(there, 0, size);
	CHECK_HSA(svm_use(gpu, here, size));
	CHECK_HSA(svm_use(gpu, there, size));
	CHECK_HSA(svm_move(there, size, rocr.gpu[gpu].agent));
	if (batch_copy(&batches, vram, here, size, host))
		return 1;
	CHECK_SEED(vram, size, 5);
	if (batch_copy(&batches, there, vram, size, local))
		return 1;
	CHECK_HSA(rocr_copy(on_gpu(gpu, vram), on_gpu(gpu, there), size,
			    HSA_AMD_SDMA_ENGINE_0));
	CHECK_SEED(vram, size, 5);
	CHECK_SEED(there, size, 5);
	close_batches(&batches);
	hsa_amd_memory_pool_free(vram);
	munmap(here, size);
	munmap(there, size);
	return 0;
}

static int batch_svm(void)
{
	return on_each(svm_on);
}

#define PIECE	(64 * KIB)
#define PIECES	64

/* One batch on all engines, while ROCr's own queues copy as well. */
static int fan_out(struct gpu *batches, unsigned int gpu, uint8_t *from,
		   uint8_t *vram)
{
	struct drm_amdgpu_sdma_desc descs[PIECES];
	struct drm_amdgpu_sdma_batch batch = batch_of(batches, descs, PIECES);
	uint32_t syncobj;
	int ret;

	for (int i = 0; i < PIECES; i++)
		descs[i] = copy_desc((uintptr_t)from + i * PIECE,
				     (uintptr_t)vram + i * PIECE, PIECE);
	batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	CHECK(!syncobj_new(batches, &syncobj), "no syncobj");
	ret = batch_submit_to(batches, &batch, syncobj, 0);
	CHECK(!ret, "%s", strerror(-ret));
	CHECK(batch.engines_used == batches->info.engine_mask, "engines %#x",
	      batch.engines_used);
	CHECK_HSA(rocr_copy(on_gpu(gpu, vram + PIECES * PIECE), on_host(from),
			    PIECES * PIECE, 0));
	ret = syncobj_wait(batches, syncobj, 0, WAIT_SECONDS);
	CHECK(!ret && syncobj_status(batches, syncobj) == 1, "%d", ret);
	syncobj_free(batches, syncobj);
	return 0;
}

static int fan_out_on(unsigned int gpu)
{
	const size_t size = PIECES * PIECE;
	uint8_t *from = rocr_new(rocr.coarse, size);
	uint8_t *vram = rocr_new(rocr.gpu[gpu].vram, 2 * size);
	struct gpu batches;

	CHECK(from && vram, "no memory");
	seed_fill(from, size, 6);
	if (open_batches(gpu, &batches) || fan_out(&batches, gpu, from, vram))
		return 1;
	CHECK_SEED(vram, size, 6);
	CHECK_SEED(vram + size, size, 6);
	close_batches(&batches);
	hsa_amd_memory_pool_free(from);
	hsa_amd_memory_pool_free(vram);
	return 0;
}

static int batch_fan_out(void)
{
	return on_each(fan_out_on);
}

const struct test batch_tests[] = {
	{ "batch.fine", batch_fine },
	{ "batch.coarse", batch_coarse },
	{ "batch.locked", batch_locked },
	{ "batch.peer", batch_peer },
	{ "batch.svm", batch_svm },
	{ "batch.fan_out", batch_fan_out },
	{ NULL, NULL },
};
