// SPDX-License-Identifier: GPL-2.0
#include "rocr.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "gpus.h"

struct rocr rocr;

/* HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_… of a pool; 0 if it is not global. */
static uint32_t global_flags(hsa_amd_memory_pool_t pool)
{
	hsa_amd_segment_t segment;
	uint32_t flags = 0;

	hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT,
				     &segment);
	if (segment == HSA_AMD_SEGMENT_GLOBAL)
		hsa_amd_memory_pool_get_info(
			pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
	return flags;
}

static hsa_status_t add_host_pool(hsa_amd_memory_pool_t pool, void *unused)
{
	const uint32_t flags = global_flags(pool);

	(void)unused;
	if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)
		rocr.coarse = pool;
	else if (flags &&
		 !(flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT))
		rocr.fine = pool;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t add_gpu_pool(hsa_amd_memory_pool_t pool, void *data)
{
	struct rocr_gpu *gpu = data;

	if (global_flags(pool) & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)
		gpu->vram = pool;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t add_gpu(hsa_agent_t agent)
{
	struct rocr_gpu *gpu = &rocr.gpu[rocr.gpus];
	uint32_t place = 0, domain = 0;

	if (rocr.gpus++ == MAX_AGENTS)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	gpu->agent = agent;
	hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_BDFID,
			   &place);
	hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_DOMAIN,
			   &domain);
	snprintf(gpu->pci, sizeof(gpu->pci), "%04x:%02x:%02x.%x", domain,
		 place >> 8, place >> 3 & 0x1f, place & 7);
	return hsa_amd_agent_iterate_memory_pools(agent, add_gpu_pool, gpu);
}

static hsa_status_t add_agent(hsa_agent_t agent, void *unused)
{
	hsa_device_type_t type;

	(void)unused;
	hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
	if (type == HSA_DEVICE_TYPE_GPU)
		return add_gpu(agent);
	rocr.cpu = agent;
	return hsa_amd_agent_iterate_memory_pools(agent, add_host_pool, NULL);
}

int rocr_start(void)
{
	int status = hsa_init();

	return status ? status : (int)hsa_iterate_agents(add_agent, NULL);
}

void *rocr_new(hsa_amd_memory_pool_t pool, size_t size)
{
	hsa_agent_t all[MAX_AGENTS + 1] = { rocr.cpu };
	void *at;

	for (unsigned int i = 0; i < rocr.gpus; i++)
		all[i + 1] = rocr.gpu[i].agent;
	if (hsa_amd_memory_pool_allocate(pool, size, 0, &at))
		return NULL;
	if (hsa_amd_agents_allow_access(rocr.gpus + 1, all, NULL, at)) {
		hsa_amd_memory_pool_free(at);
		return NULL;
	}
	return at;
}

/*
 * KFD gets the interrupts only of engines on dies that have an XCC of its node:
 * two on each. A wait for any other engine has to poll.
 */
static bool is_heard(hsa_agent_t agent, uint32_t engine)
{
	uint32_t node = 0;
	int xccs;

	hsa_agent_get_info(agent,
			   (hsa_agent_info_t)HSA_AMD_AGENT_INFO_DRIVER_NODE_ID,
			   &node);
	xccs = kfd_property(node, "properties", "num_xcc");
	return engine < 1u << 2 * (xccs + xccs % 2);
}

static int wait_as(hsa_signal_t signal, hsa_wait_state_t state)
{
	uint64_t frequency;
	hsa_signal_value_t value;

	hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &frequency);
	value = hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1,
					  MAX_SECONDS * frequency, state);
	return value ? HSA_STATUS_ERROR : HSA_STATUS_SUCCESS;
}

int rocr_wait(hsa_signal_t signal)
{
	return wait_as(signal, HSA_WAIT_STATE_BLOCKED);
}

static hsa_status_t start_copy(struct place to, struct place from, size_t size,
			       uint32_t engine, hsa_signal_t done)
{
	if (!engine)
		return hsa_amd_memory_async_copy(to.at, to.agent, from.at,
						 from.agent, size, 0, NULL,
						 done);
	return hsa_amd_memory_async_copy_on_engine(
		to.at, to.agent, from.at, from.agent, size, 0, NULL, done,
		(hsa_amd_sdma_engine_id_t)engine, true);
}

int rocr_copy(struct place to, struct place from, size_t size, uint32_t engine)
{
	hsa_agent_t gpu =
		from.agent.handle == rocr.cpu.handle ? to.agent : from.agent;
	hsa_signal_t done;
	int status = hsa_signal_create(1, 0, NULL, &done);

	if (status)
		return status;
	status = start_copy(to, from, size, engine, done);
	if (!status)
		status = wait_as(done, is_heard(gpu, engine)
					       ? HSA_WAIT_STATE_BLOCKED
					       : HSA_WAIT_STATE_ACTIVE);
	hsa_signal_destroy(done);
	return status;
}

void *svm_new_memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

int svm_use(unsigned int gpu, void *at, size_t size)
{
	hsa_amd_svm_attribute_pair_t use = {
		HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE,
		rocr.gpu[gpu].agent.handle,
	};

	return hsa_amd_svm_attributes_set(at, size, &use, 1);
}

int svm_move(void *at, size_t size, hsa_agent_t to)
{
	hsa_signal_t done;
	int status = hsa_signal_create(1, 0, NULL, &done);

	if (status)
		return status;
	status = hsa_amd_svm_prefetch_async(at, size, to, 0, NULL, done);
	if (!status)
		status = rocr_wait(done);
	hsa_signal_destroy(done);
	return status;
}

/* Without a period that could hide a wrong offset. */
static uint8_t seed_byte(size_t at, uint32_t seed)
{
	uint64_t x = (at + 1) * 0x9e3779b97f4a7c15 ^ seed * 0xd1342543de82ef95;

	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9 >> 56;
}

void seed_fill(uint8_t *at, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size; i++)
		at[i] = seed_byte(i, seed);
}

size_t seed_match(const uint8_t *at, size_t size, uint32_t seed)
{
	size_t i = 0;

	while (i < size && at[i] == seed_byte(i, seed))
		i++;
	return i;
}
