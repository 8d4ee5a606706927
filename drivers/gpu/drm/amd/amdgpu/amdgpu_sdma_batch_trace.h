/* SPDX-License-Identifier: MIT */
#if !defined(_AMDGPU_SDMA_BATCH_TRACE_H_) || defined(TRACE_HEADER_MULTI_READ)
#define _AMDGPU_SDMA_BATCH_TRACE_H_

#include <linux/bitops.h>
#include <linux/dma-fence.h>
#include <linux/tracepoint.h>

#include "amdgpu_sdma_plan.h"

#undef TRACE_SYSTEM
#define TRACE_SYSTEM amdgpu
#define TRACE_INCLUDE_FILE amdgpu_sdma_batch_trace

/**
 * DOC: SDMA batch tracepoints
 *
 * Each batch, and each run of a prepared one, has these events, by its fence:
 *
 * amdgpu_sdma_batch_submit
 *	it was accepted: its totals, the placement that was requested (for a
 *	prepared batch: when it was prepared), the one that it got, its shares
 *	and its engines
 * amdgpu_sdma_batch_run
 *	the scheduler has given the first of its jobs to an engine, or has
 *	dropped that job
 * amdgpu_sdma_batch_done
 *	it has ended, with the error of its fence
 *
 * and for each of its jobs:
 *
 * amdgpu_sdma_batch_job
 *	at submission, the engine and the job's fence, by which the scheduler's
 *	own tracepoints tell when that job runs and ends
 */
TRACE_EVENT(amdgpu_sdma_batch_submit,
	    TP_PROTO(const struct amdgpu_sdma_plan *plan, u32 engines,
		     const struct dma_fence *fence),
	    TP_ARGS(plan, engines, fence),
	    TP_STRUCT__entry(
			     __field(u64, context)
			     __field(u64, seqno)
			     __field(u64, bytes)
			     __field(u32, descs)
			     __field(u32, placement)
			     __field(u32, placed)
			     __field(u32, shares)
			     __field(u32, engines)
			     __field(u64, wait_ns)
			     ),
	    TP_fast_assign(
			   __entry->context = fence->context;
			   __entry->seqno = fence->seqno;
			   __entry->bytes = plan->moved;
			   __entry->descs = plan->num;
			   __entry->placement = plan->placement;
			   __entry->placed = hweight32(engines) > 1 ?
					     AMDGPU_SDMA_PLACE_FAN_OUT :
					     AMDGPU_SDMA_PLACE_ONE_ENGINE;
			   __entry->shares = plan->shares;
			   __entry->engines = engines;
			   __entry->wait_ns = plan->wait_ns;
			   ),
	    TP_printk("fence=%llu:%llu, descs=%u, bytes=%llu, placement=%u, placed=%u, shares=%u, engines=0x%x, wait_ns=%llu",
		      __entry->context, __entry->seqno, __entry->descs,
		      __entry->bytes, __entry->placement, __entry->placed,
		      __entry->shares, __entry->engines, __entry->wait_ns)
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

TRACE_EVENT(amdgpu_sdma_batch_run,
	    TP_PROTO(u64 context, u64 seqno, u32 engine),
	    TP_ARGS(context, seqno, engine),
	    TP_STRUCT__entry(
			     __field(u64, context)
			     __field(u64, seqno)
			     __field(u32, engine)
			     ),
	    TP_fast_assign(
			   __entry->context = context;
			   __entry->seqno = seqno;
			   __entry->engine = engine;
			   ),
	    TP_printk("fence=%llu:%llu, engine=%u", __entry->context,
		      __entry->seqno, __entry->engine)
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
