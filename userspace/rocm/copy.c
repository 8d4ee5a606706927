// SPDX-License-Identifier: GPL-2.0
// ROCr's own copies, which run on KFD's user queues.
#include "rocr.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kfd_svm.h"

#define MIB		(1024ul * 1024)
#define GUARD		64
#define PADDED(size)	((size) + 2 * GUARD)

static bool is_guard(const uint8_t *at)
{
	for (int i = 0; i < GUARD; i++)
		if (at[i] != 0xa5)
			return false;
	return true;
}

/* Memory for a copy's result, between guard bytes that must stay untouched. */
static uint8_t *guarded(hsa_amd_memory_pool_t pool, size_t size)
{
	uint8_t *at = rocr_new(pool, PADDED(size));

	return at ? memset(at, 0xa5, PADDED(size)) + GUARD : NULL;
}

static void guarded_free(uint8_t *at)
{
	if (at)
		hsa_amd_memory_pool_free(at - GUARD);
}

/* The copied bytes are right, and those around them untouched. */
static int arrived(const uint8_t *at, size_t size, uint32_t seed)
{
	CHECK_SEED(at, size, seed);
	CHECK(is_guard(at - GUARD), "before %zu bytes", size);
	CHECK(is_guard(at + size), "behind %zu bytes", size);
	return 0;
}

/*
 * From the host to a GPU, on to another one, and back. After each leg the CPU
 * checks what the engine wrote.
 */
static int go_round(uint8_t *const at[4], unsigned int gpu, unsigned int other,
		    size_t size, const uint32_t engine[3])
{
	const struct place leg[4] = {
		on_host(at[0]),
		on_gpu(gpu, at[1]),
		on_gpu(other, at[2]),
		on_host(at[3]),
	};
	uint32_t seed = size + gpu * 64 + other * 8 + engine[0];

	seed_fill(at[0], size, seed);
	for (int i = 0; i < 3; i++) {
		CHECK_HSA(rocr_copy(leg[i + 1], leg[i], size, engine[i]));
		if (arrived(at[i + 1], size, seed))
			return 1;
	}
	return 0;
}

/* @engine: for each leg, a mask of one, or 0 to let ROCr choose. */
static int round_trip_on(unsigned int gpu, unsigned int other, size_t size,
			 const uint32_t engine[3])
{
	uint8_t *at[4] = {
		guarded(rocr.coarse, size),
		guarded(rocr.gpu[gpu].vram, size),
		guarded(rocr.gpu[other].vram, size),
		guarded(rocr.fine, size),
	};
	int ret = 1;

	if (at[0] && at[1] && at[2] && at[3])
		ret = go_round(at, gpu, other, size, engine);
	else
		printf("# no memory for %zu bytes\n", size);
	if (ret)
		printf("# GPUs %u and %u, engines %#x, %#x, %#x\n", gpu, other,
		       engine[0], engine[1], engine[2]);
	for (int i = 0; i < 4; i++)
		guarded_free(at[i]);
	return ret;
}

static int round_trip(unsigned int gpu, unsigned int other, size_t size)
{
	const uint32_t any[3] = { 0 };

	return round_trip_on(gpu, other, size, any);
}

/* Each pair of GPUs, both ways; a single GPU has only itself. */
static int copy_between(void)
{
	for (unsigned int a = 0; a < rocr.gpus; a++)
		for (unsigned int b = 0; b < rocr.gpus; b++)
			if (a != b && round_trip(a, b, 100004))
				return 1;
	return rocr.gpus > 1 ? 0 : SKIP;
}

static int copy_sizes(void)
{
	const size_t sizes[] = { 4, 64, 4093, 4096, 65540, MIB, 16 * MIB };
	unsigned int other = rocr.gpus - 1;

	if (!other)
		return SKIP;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (round_trip(0, other, sizes[i]))
			return 1;
	return 0;
}

/* The numbers of ROCr's engines for the host, and for the fabric. */
struct engines {
	uint32_t host, fabric;
};

static int engines_of(unsigned int gpu, struct engines *e)
{
	hsa_agent_t agent = rocr.gpu[gpu].agent;

	CHECK_HSA(hsa_agent_get_info(
		agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_NUM_SDMA_ENG,
		&e->host));
	CHECK_HSA(hsa_agent_get_info(
		agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG,
		&e->fabric));
	return 0;
}

/*
 * Engines that ROCr offers to copy from one GPU to the other; with XGMI links,
 * none of those for the host. It names idle engines, so ask often.
 */
static uint32_t engines_offered(unsigned int gpu, unsigned int other,
				uint32_t all)
{
	uint32_t offered = 0, idle;

	for (int tries = 0; tries < 50 && (offered & all) != all; tries++) {
		idle = 0;
		hsa_amd_memory_copy_engine_status(rocr.gpu[other].agent,
						  rocr.gpu[gpu].agent, &idle);
		offered |= idle;
		usleep(2000);
	}
	return offered & all;
}

/* Each leg on each engine, but the one between GPUs only on offered engines. */
static int copy_by_each(unsigned int gpu, unsigned int other, uint32_t all,
			uint32_t offered)
{
	for (uint32_t one = 1; one && one <= all; one <<= 1) {
		const uint32_t on[3] = { one, offered & one, one };

		if (round_trip_on(gpu, other, 5000, on))
			return 1;
	}
	return 0;
}

/* ENGINES= tells how many there must be. */
static int copy_engines(void)
{
	const char *want = getenv("ENGINES");
	uint32_t all, fabric, offered;
	unsigned int other;
	struct engines e;

	for (unsigned int gpu = 0; gpu < rocr.gpus; gpu++) {
		other = (gpu + 1) % rocr.gpus;
		if (engines_of(gpu, &e))
			return 1;
		CHECK(!want || e.host + e.fabric == strtoul(want, NULL, 0),
		      "%u and %u engines", e.host, e.fabric);
		all = (1ull << (e.host + e.fabric)) - 1;
		fabric = all & ~((1u << e.host) - 1);
		offered = engines_offered(gpu, other, all);
		CHECK(offered && !(fabric & ~offered), "%#x of %#x offered",
		      offered, all);
		if (offered != all)
			printf("# GPU %u: %#x of engines %#x\n", gpu, offered,
			       all);
		if (copy_by_each(gpu, other, all, offered))
			return 1;
	}
	return rocr.gpus > 1 ? 0 : SKIP;
}

/* Memory of malloc() that ROCr locks; it tells its address for the GPUs. */
static int copy_locked(void)
{
	const size_t size = MIB + 12;
	uint8_t *mine = malloc(size), *vram = rocr_new(rocr.gpu[0].vram, size);
	void *locked;

	CHECK(mine && vram, "no memory");
	CHECK_HSA(hsa_amd_memory_lock(mine, size, NULL, 0, &locked));
	seed_fill(mine, size, 1);
	CHECK_HSA(rocr_copy(on_gpu(0, vram), on_host(locked), size, 0));
	CHECK_SEED(vram, size, 1);
	seed_fill(vram, size, 2);
	CHECK_HSA(rocr_copy(on_host(locked), on_gpu(0, vram), size, 0));
	CHECK_SEED(mine, size, 2);
	CHECK_HSA(hsa_amd_memory_unlock(mine));
	hsa_amd_memory_pool_free(vram);
	free(mine);
	return 0;
}

/* Two copies: one waits for the other, and that one for us. */
static int copy_depends(void)
{
	uint8_t *a = rocr_new(rocr.fine, MIB), *b = rocr_new(rocr.fine, MIB);
	uint8_t *vram = rocr_new(rocr.gpu[0].vram, MIB);
	hsa_agent_t gpu = rocr.gpu[0].agent;
	hsa_signal_t go, first, second;

	CHECK(a && b && vram, "no memory");
	memset(a, 0, MIB);
	CHECK_HSA(hsa_signal_create(1, 0, NULL, &go));
	CHECK_HSA(hsa_signal_create(1, 0, NULL, &first));
	CHECK_HSA(hsa_signal_create(1, 0, NULL, &second));
	CHECK_HSA(hsa_amd_memory_async_copy(vram, gpu, a, rocr.cpu, MIB, 1, &go,
					    first));
	CHECK_HSA(hsa_amd_memory_async_copy(b, rocr.cpu, vram, gpu, MIB, 1,
					    &first, second));
	seed_fill(a, MIB, 7);
	hsa_signal_store_screlease(go, 0);
	CHECK_HSA(rocr_wait(second));
	CHECK_SEED(b, MIB, 7);
	CHECK(!hsa_signal_load_scacquire(first), "the second went first");
	hsa_signal_destroy(go);
	hsa_signal_destroy(first);
	hsa_signal_destroy(second);
	hsa_amd_memory_pool_free(a);
	hsa_amd_memory_pool_free(b);
	hsa_amd_memory_pool_free(vram);
	return 0;
}

/* Memory goes to the GPU, is copied from there, and comes back. */
static int svm_there_and_back(unsigned int gpu, uint8_t *at, uint8_t *vram,
			      size_t size)
{
	struct svm svm = { .pagemap = open("/proc/self/pagemap", O_RDONLY) };
	long away;

	seed_fill(at, size, gpu);
	CHECK_HSA(svm_use(gpu, at, size));
	CHECK_HSA(svm_move(at, size, rocr.gpu[gpu].agent));
	away = svm_away(&svm, at, size);
	CHECK(away == (long)(size / SVM_PAGE), "%ld pages moved", away);
	CHECK_HSA(rocr_copy(on_gpu(gpu, vram), on_gpu(gpu, at), size,
			    HSA_AMD_SDMA_ENGINE_0));
	CHECK_SEED(vram, size, gpu);
	CHECK_HSA(svm_move(at, size, rocr.cpu));
	away = svm_away(&svm, at, size);
	CHECK(!away, "%ld pages stay", away);
	CHECK_SEED(at, size, gpu);
	close(svm.pagemap);
	return 0;
}

/* New memory for each: without a hive, memory of two GPUs stays on the host. */
static int copy_svm(void)
{
	const size_t size = 4 * MIB;
	uint8_t *at, *vram;
	int ret = 0;

	for (unsigned int g = 0; !ret && g < rocr.gpus; g++) {
		at = svm_new_memory(size);
		vram = rocr_new(rocr.gpu[g].vram, size);
		CHECK(at && vram, "no memory");
		ret = svm_there_and_back(g, at, vram, size);
		hsa_amd_memory_pool_free(vram);
		munmap(at, size);
	}
	return ret;
}

/* Without shaders they run nothing; creating and destroying them needs none. */
static int aql_queue(void)
{
	hsa_queue_t *queue;

	for (unsigned int g = 0; g < rocr.gpus; g++)
		for (int times = 0; times < 3; times++) {
			CHECK_HSA(hsa_queue_create(rocr.gpu[g].agent, 1024,
						   HSA_QUEUE_TYPE_MULTI, NULL,
						   NULL, 0, 0, &queue));
			CHECK_HSA(hsa_queue_destroy(queue));
		}
	return 0;
}

const struct test copy_tests[] = {
	{ "copy.between", copy_between },
	{ "copy.sizes", copy_sizes },
	{ "copy.engines", copy_engines },
	{ "copy.locked", copy_locked },
	{ "copy.depends", copy_depends },
	{ "copy.svm", copy_svm },
	{ "queue.aql", aql_queue },
	/* the KIQ still answers, and SDMA queues still work */
	{ "copy.after_aql", copy_locked },
	{ NULL, NULL },
};
