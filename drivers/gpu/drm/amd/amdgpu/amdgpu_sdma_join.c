// SPDX-License-Identifier: MIT
/**
 * DOC: One interrupt for jobs on several SDMA engines
 *
 * A batch that is spread over engines has a job on each, with a fence of its
 * own. Only one of them should interrupt: the last, whichever that is.
 *
 * So their fences are written without an interrupt. Behind its fence, each
 * engine adds one to a counter of the batch that starts at 2^32 minus the number
 * of engines: the last one carries into the upper half. Who finds that set
 * interrupts, and the handler looks for fences on all engines that have one
 * without interrupt.
 *
 * - No engine waits for another: other work on it goes on. As a ring takes few
 *   jobs at a time, one of them at most is without interrupt: the next one that
 *   comes while it is not done interrupts for both.
 * - Engines that end at the same time may both interrupt. That does no harm.
 * - A fence that nobody interrupts for, because a job of the batch was cancelled
 *   or still runs, is found by the next interrupt of its engine, or by the timer
 *   that looks for lost interrupts twice a second. So whoever waits for one
 *   job's fence only, such as an eviction, waits that much longer at most.
 * - The counters live as long as the device's rings, since the addition comes
 *   after the fence, when nothing else is held any more. Counters are taken in
 *   turn. If all have been taken in between, or a reset has executed a frame
 *   again, a sum is off: the upper half is then set too early, and every later
 *   engine interrupts, or it is not set, as above.
 */

#include <drm/drm_drv.h>

#include "amdgpu.h"
#include "amdgpu_sdma_encode.h"
#include "amdgpu_sdma_join.h"
#include "vega10_sdma_pkt_open.h"

/* In video memory, where atomics need nothing of the bus. */
struct counter {
	__le32 low;
	__le32 high;
	/* written to know that the addition is in memory */
	__le32 fence;
	__le32 pad;
};

#define COUNTERS	4096

/**
 * amdgpu_sdma_join_init - allocate the counters
 * @adev: device
 *
 * Returns: 0 or a negative error code.
 */
int amdgpu_sdma_join_init(struct amdgpu_device *adev)
{
	struct amdgpu_sdma_joins *joins = &adev->sdma.joins;

	atomic_set(&joins->next, 0);
	return amdgpu_bo_create_kernel(adev, COUNTERS * sizeof(struct counter),
				       PAGE_SIZE, AMDGPU_GEM_DOMAIN_VRAM,
				       &joins->bo, &joins->addr, &joins->cpu);
}

void amdgpu_sdma_join_fini(struct amdgpu_device *adev)
{
	struct amdgpu_sdma_joins *joins = &adev->sdma.joins;

	amdgpu_bo_free_kernel(&joins->bo, &joins->addr, &joins->cpu);
}

/**
 * amdgpu_sdma_join_get - a counter for the jobs of a batch
 * @adev: device
 * @engines: how many jobs, one on each engine
 *
 * The frames of the jobs flush the host data path before they do anything, so
 * engines see what is written here.
 *
 * Returns: what to set &amdgpu_job.join_addr of each to, or 0 if the engines
 * have no such packets or the device is gone: then each interrupts.
 */
u64 amdgpu_sdma_join_get(struct amdgpu_device *adev, u32 engines)
{
	struct amdgpu_sdma_joins *joins = &adev->sdma.joins;
	struct counter *c = joins->cpu;
	int idx;
	u32 i;

	if (!c || !drm_dev_enter(adev_to_drm(adev), &idx))
		return 0;
	i = (u32)atomic_inc_return(&joins->next) % COUNTERS;
	WRITE_ONCE(c[i].low, cpu_to_le32(-engines));
	WRITE_ONCE(c[i].high, 0);
	/* before another CPU rings the doorbell of the jobs */
	wmb();
	drm_dev_exit(idx);
	return joins->addr + i * sizeof(*c);
}

/**
 * amdgpu_sdma_join_emit - &amdgpu_ring_funcs.emit_join
 * @ring: ring, behind the job's fence
 * @addr: of the counter
 */
void amdgpu_sdma_join_emit(struct amdgpu_ring *ring, u64 addr)
{
	const struct amdgpu_sdma_format *format =
		amdgpu_sdma_format(amdgpu_ip_version(ring->adev, SDMA0_HWIP, 0));
	u32 packets[AMDGPU_SDMA_JOIN_DW], *p = packets;
	const u32 trap_dw = 2;

	p = amdgpu_sdma_put_atomic(p, AMDGPU_SDMA_ATOMIC_ADD64, addr, 1);
	p = amdgpu_sdma_put_fence(p, format,
				  addr + offsetof(struct counter, fence), 0);
	p = amdgpu_sdma_put_cond(p, addr + offsetof(struct counter, high), 1,
				 trap_dw);
	*p++ = SDMA_PKT_TRAP_HEADER_OP(SDMA_OP_TRAP);
	*p++ = SDMA_PKT_TRAP_INT_CONTEXT_INT_CONTEXT(0);
	amdgpu_ring_write_multiple(ring, packets, p - packets);
}

/**
 * amdgpu_sdma_join_process - look for fences that have no interrupt
 * @adev: device, one of whose engines has interrupted
 */
void amdgpu_sdma_join_process(struct amdgpu_device *adev)
{
	int i;

	for (i = 0; i < adev->sdma.num_instances; i++) {
		struct amdgpu_ring *ring = &adev->sdma.instance[i].ring;

		if (amdgpu_fence_is_quiet(ring))
			amdgpu_fence_process(ring);
	}
}
