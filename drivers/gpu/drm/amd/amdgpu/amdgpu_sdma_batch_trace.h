/* SPDX-License-Identifier: MIT */
#if !defined(_AMDGPU_SDMA_BATCH_TRACE_H_) || defined(TRACE_HEADER_MULTI_READ)
#define _AMDGPU_SDMA_BATCH_TRACE_H_

#include <linux/dma-fence.h>
#include <linux/tracepoint.h>

#include "amdgpu_sdma_plan.h"

#undef TRACE_SYSTEM
#define TRACE_SYSTEM amdgpu
#define TRACE_INCLUDE_FILE amdgpu_sdma_batch_trace

/**
 * DOC: SDMA batch tracepoints
 *
 * amdgpu_sdma_batch_submit
 *	a batch was accepted: its fence, what it names, the placement that was
 *	asked for and the shares and engines that it got
 * amdgpu_sdma_batch_job
 *	one share of it: the engine, and the job's fence, by which the
 *	scheduler's own tracepoints tell when it runs and ends
 * amdgpu_sdma_batch_done
 *	a batch with several jobs or with waits has ended; of others the job's
 *	end is the batch's
 */
TRACE_EVENT(amdgpu_sdma_batch_submit,
	    TP_PROTO(const struct amdgpu_sdma_plan *plan, u32 placement,
		     u32 engines, const struct dma_fence *fence),
	    TP_ARGS(plan, placement, engines, fence),
	    TP_STRUCT__entry(
			     __field(u64, context)
			     __field(u64, seqno)
			     __field(u64, bytes)
			     __field(u32, descs)
			     __field(u32, placement)
			     __field(u32, shares)
			     __field(u32, engines)
			     __field(u32, polls)
			     ),
	    TP_fast_assign(
			   __entry->context = fence->context;
			   __entry->seqno = fence->seqno;
			   __entry->bytes = plan->bytes;
			   __entry->descs = plan->num;
			   __entry->placement = placement;
			   __entry->shares = plan->shares;
			   __entry->engines = engines;
			   __entry->polls = plan->polls;
			   ),
	    TP_printk("fence=%llu:%llu, descs=%u, bytes=%llu, placement=%u, shares=%u, engines=0x%x, polls=%u",
		      __entry->context, __entry->seqno, __entry->descs,
		      __entry->bytes, __entry->placement, __entry->shares,
		      __entry->engines, __entry->polls)
);

TRACE_EVENT(amdgpu_sdma_batch_job,
	    TP_PROTO(const struct dma_fence *batch, u32 engine,
		     const struct dma_fence *job),
	    TP_ARGS(batch, engine, job),
	    TP_STRUCT__entry(
			     __field(u64, batch_context)
			     __field(u64, batch_seqno)
			     __field(u64, context)
			     __field(u64, seqno)
			     __field(u32, engine)
			     ),
	    TP_fast_assign(
			   __entry->batch_context = batch->context;
			   __entry->batch_seqno = batch->seqno;
			   __entry->context = job->context;
			   __entry->seqno = job->seqno;
			   __entry->engine = engine;
			   ),
	    TP_printk("fence=%llu:%llu, engine=%u, job=%llu:%llu",
		      __entry->batch_context, __entry->batch_seqno,
		      __entry->engine, __entry->context, __entry->seqno)
);

TRACE_EVENT(amdgpu_sdma_batch_done,
	    TP_PROTO(const struct dma_fence *fence, int error),
	    TP_ARGS(fence, error),
	    TP_STRUCT__entry(
			     __field(u64, context)
			     __field(u64, seqno)
			     __field(int, error)
			     ),
	    TP_fast_assign(
			   __entry->context = fence->context;
			   __entry->seqno = fence->seqno;
			   __entry->error = error;
			   ),
	    TP_printk("fence=%llu:%llu, error=%d", __entry->context,
		      __entry->seqno, __entry->error)
);

#endif

/* This part must be outside protection */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH ../../drivers/gpu/drm/amd/amdgpu
#include <trace/define_trace.h>
