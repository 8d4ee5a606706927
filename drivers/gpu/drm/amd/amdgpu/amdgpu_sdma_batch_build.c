// SPDX-License-Identifier: MIT
/*
 * The packets of an SDMA batch: this stores those of each share in the batch's
 * memory, and lets the jobs execute them.
 */

#include "amdgpu.h"
#include "amdgpu_gmc.h"
#include "amdgpu_sdma_arena.h"
#include "amdgpu_sdma_batch_ctx.h"
#include "amdgpu_sdma_batch_internal.h"
#include "amdgpu_sdma_batch_stats.h"
#include "amdgpu_sdma_prepared.h"

/**
 * amdgpu_sdma_batch_packet_bytes - room for the packets
 * @b: call, planned; remembers how much each share needs
 *
 * Each share has a size that lets the next one begin where an IB may begin.
 *
 * Returns: bytes of all shares.
 */
u64 amdgpu_sdma_batch_packet_bytes(struct amdgpu_sdma_batch *b)
{
	u64 bytes = 0, dw;
	u32 share;

	for (share = 0; share < b->plan.shares; share++) {
		dw = amdgpu_sdma_plan_dwords(&b->plan, share);
		if (sdma_batch_prepares(b))
			dw += AMDGPU_SDMA_RESET_DW;
		b->share_bytes[share] = dw * sizeof(u32);
		bytes += b->share_bytes[share];
	}
	return bytes;
}

/**
 * amdgpu_sdma_batch_emit_share - store the packets of a share
 * @b: call, planned
 * @share: which
 * @instance: engine that will execute them
 * @cpu: the chunk
 * @offset: offset of the packets in the chunk
 * @s: result
 *
 * Returns: 0 or -ENOSPC.
 */
int amdgpu_sdma_batch_emit_share(struct amdgpu_sdma_batch *b, u32 share,
				 u32 instance, void *cpu, u64 offset,
				 struct amdgpu_sdma_stream *s)
{
	s->format = b->plan.format;
	s->base = cpu + offset;
	s->end = cpu + offset + b->share_bytes[share];
	s->slot = b->chunk->va + share * AMDGPU_SDMA_SLOT_SIZE;
	/* An engine runs the file's jobs one after the other. */
	s->sample = b->chunk->sample + instance * AMDGPU_SDMA_SLOT_SIZE;
	s->scratch = b->scratch + instance * AMDGPU_SDMA_SCRATCH_SIZE;
	s->instance = instance;
	return WARN_ON_ONCE(amdgpu_sdma_plan_emit(&b->plan, share, s)) ?
		-ENOSPC : 0;
}

/* Builds a job's share at @offset in the chunk, and advances @offset. */
static int build_share(struct amdgpu_sdma_batch *b, u32 share, void *cpu,
		       u64 *offset)
{
	struct amdgpu_job *job = b->jobs[share];
	struct amdgpu_sdma_stream s = { };
	u32 i;
	int r;

	r = amdgpu_sdma_batch_emit_share(b, share, b->engines[share]->instance,
					 cpu, *offset, &s);
	if (r)
		return r;
	for (i = 0; i < s.num_ibs; i++) {
		job->ibs[i].gpu_addr = b->chunk->va + *offset +
				       s.ibs[i].offset * sizeof(u32);
		job->ibs[i].length_dw = s.ibs[i].length;
	}
	job->num_ibs = s.num_ibs;
	job->vm_pd_addr = amdgpu_gmc_pd_addr(b->fpriv->vm.root.bo);
	*offset += b->share_bytes[share];
	return 0;
}

/* A fan-out of little work leaves some engines without any. */
static void drop_empty_jobs(struct amdgpu_sdma_batch *b)
{
	unsigned int i, kept = 0;

	for (i = 0; i < b->num_jobs; i++) {
		if (!b->jobs[i]->num_ibs) {
			amdgpu_job_free(b->jobs[i]);
			amdgpu_sdma_batch_note_drop(b->note, kept);
			continue;
		}
		b->engines[kept] = b->engines[i];
		b->jobs[kept++] = b->jobs[i];
	}
	b->num_jobs = kept;
}

/**
 * amdgpu_sdma_batch_join - give a batch its own fence, if it needs one
 * @b: call with jobs
 * @slots: slots of the shares, where waits leave their result
 *
 * Returns: 0 or -ENOMEM.
 */
int amdgpu_sdma_batch_join(struct amdgpu_sdma_batch *b, void *slots)
{
	if (b->num_jobs == 1 && !b->plan.waits)
		return 0;
	b->joined = amdgpu_sdma_batch_fence_create(b->jobs, b->num_jobs, slots,
						   b->plan.waits ?
						   b->plan.shares : 0);
	return b->joined ? 0 : -ENOMEM;
}

/**
 * amdgpu_sdma_batch_build - store the packets
 * @b: call with jobs; its chunk is resident
 *
 * Returns: 0 or a negative error.
 */
int amdgpu_sdma_batch_build(struct amdgpu_sdma_batch *b)
{
	u64 offset = AMDGPU_SDMA_CHUNK_SLOTS;
	void *cpu;
	u32 share;
	int r;

	BUILD_BUG_ON(AMDGPU_SDMA_MAX_SHARES * AMDGPU_SDMA_SLOT_SIZE >
		     AMDGPU_SDMA_CHUNK_SLOTS);
	r = amdgpu_sdma_chunk_cpu(b->chunk, &cpu);
	if (r)
		return r;
	memset(cpu, 0, b->plan.shares * AMDGPU_SDMA_SLOT_SIZE);
	for (share = 0; share < b->plan.shares; share++) {
		r = build_share(b, share, cpu, &offset);
		if (r)
			return r;
	}
	drop_empty_jobs(b);
	return amdgpu_sdma_batch_join(b, cpu);
}
