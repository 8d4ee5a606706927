// SPDX-License-Identifier: MIT
#include "host.h"

#include "amdgpu_sdma_plan.h"
#include "plan.h"

/* What host.h declares for the code's tests. */
int allocations_left = -1;
int host_mutant;

void *host_alloc(size_t n)
{
	return calloc(1, n + !n);
}
void host_free(const void *p)
{
	free((void *)p);
}

/* As the driver sets them for this part: see amdgpu_sdma_batch_limits.c. */
#define FASTEST_MHZ	2500
#define LONGEST_WAIT_NS	(1000 * 1000 * 1000ULL)

static struct drm_amdgpu_sdma_desc descriptor(const struct plan_desc *d)
{
	static const u32 ops[] = {
		AMDGPU_SDMA_OP_COPY,
		AMDGPU_SDMA_OP_BROADCAST,
		AMDGPU_SDMA_OP_SWAP,
		AMDGPU_SDMA_OP_WAIT,
	};
	struct drm_amdgpu_sdma_desc out = {
		.op = ops[d->op],
		.src = d->src,
		.dst = d->dst,
		.size = d->size,
	};

	if (d->op == PLAN_BROADCAST)
		out.dst_more[0] = d->dst2;
	if (d->op == PLAN_WAIT) {
		out.compare = AMDGPU_SDMA_COMPARE_GE;
		out.mask = ~0U;
		out.value = 1;
		out.timeout_ns = 1000 * 1000;
	}
	return out;
}

static u32 take_engine(u32 *left)
{
	u32 engine = __builtin_ctz(*left);

	*left &= *left - 1;
	return engine;
}

static int emit_share(const struct amdgpu_sdma_plan *plan, u32 share, u32 engine,
		      const struct plan_gpu *gpu, plan_ib ib, void *arg)
{
	u64 dwords = amdgpu_sdma_plan_dwords(plan, share);
	struct amdgpu_sdma_stream s = {
		.format = plan->format,
		.slot = gpu->slots + share * AMDGPU_SDMA_SLOT_SIZE,
		.sample = gpu->samples + engine * AMDGPU_SDMA_SLOT_SIZE,
		.scratch = gpu->scratch + engine * AMDGPU_SDMA_SCRATCH_SIZE,
		.instance = engine,
	};
	u32 i;
	int ret;

	s.base = calloc(dwords, sizeof(u32));
	if (!s.base)
		return -ENOMEM;
	s.end = s.base + dwords;
	ret = amdgpu_sdma_plan_emit(plan, share, &s);
	for (i = 0; !ret && i < s.num_ibs; i++)
		ib(arg, engine, s.base + s.ibs[i].offset, s.ibs[i].length);
	free(s.base);
	return ret;
}

static int emit_all(const struct amdgpu_sdma_plan *plan, const struct plan_gpu *gpu,
		    plan_ib ib, void *arg)
{
	u32 share, left = plan->engines;
	int ret = 0;

	for (share = 0; !ret && share < plan->shares; share++)
		ret = emit_share(plan, share, take_engine(&left), gpu, ib, arg);
	return ret;
}

static int place(struct amdgpu_sdma_plan *plan, enum plan_placement placement,
		 const struct plan_gpu *gpu)
{
	const struct amdgpu_sdma_engines engines = {
		.usable = gpu->engines,
		.host = gpu->host,
		.path = gpu->to_host ? AMDGPU_SDMA_PATH_HOST : AMDGPU_SDMA_PATH_DEVICE,
		.links = gpu->links,
	};
	static const u32 placements[] = {
		AMDGPU_SDMA_PLACE_AUTO,
		AMDGPU_SDMA_PLACE_ONE_ENGINE,
		AMDGPU_SDMA_PLACE_FAN_OUT,
	};

	return amdgpu_sdma_plan_place(plan, placements[placement], &engines);
}

int plan_batch(const struct plan_desc *descs, uint32_t num,
	       enum plan_placement placement, const struct plan_gpu *gpu, plan_ib ib,
	       void *arg)
{
	struct amdgpu_sdma_plan plan = {
		.format = amdgpu_sdma_format(IP_VERSION(4, 4, 2)),
		.stride = sizeof(struct drm_amdgpu_sdma_desc),
		.num = num,
		.max_bytes = AMDGPU_SDMA_MAX_BYTES,
		.max_wait_ns = LONGEST_WAIT_NS,
		.max_dwords = AMDGPU_SDMA_MAX_DWORDS,
		.mhz = FASTEST_MHZ,
		.hole_start = 1ULL << 47,
		.hole_end = ~0ULL << 47,
	};
	struct drm_amdgpu_sdma_desc *all = calloc(num + !num, sizeof(*all));
	u32 i;
	int ret = all ? 0 : -ENOMEM;

	for (i = 0; !ret && i < num; i++)
		all[i] = descriptor(&descs[i]);
	plan.descs = all;
	if (!ret)
		ret = amdgpu_sdma_plan_check(&plan);
	if (!ret)
		ret = amdgpu_sdma_plan_overlap(&plan);
	if (!ret)
		ret = place(&plan, placement, gpu);
	if (!ret)
		ret = emit_all(&plan, gpu, ib, arg);
	free(all);
	return ret;
}
