// SPDX-License-Identifier: MIT
/**
 * DOC: Limits of SDMA batches
 *
 * While an engine runs a batch it runs nothing else, so each batch ends within
 * a part of the ring's timeout, T, which is 2 s by default:
 *
 * - it moves at most as many bytes as an engine does in T/4 at 4 GB/s, or at
 *   three quarters of its share of the GPU's link to the host if that is
 *   slower: all engines may copy from or to the host at once;
 * - it has at most as many packets, and rows, as an engine processes in T/4;
 * - its waits together last at most T/2 at the lowest clock of the engine.
 *   Engines count clocks. Timeouts are converted for the highest clock, and
 *   waits are shorter there by the ratio of the two clocks. Power management
 *   reports the clocks; where it does not, 100 and 2500 MHz are assumed.
 *
 * What one file has in flight for an engine takes no more than T/2 at the same
 * rate, with waits at the highest clock, unless it is a single batch.
 */

#include <kunit/visibility.h>
#include <linux/math64.h>

#include <drm/amdgpu_drm.h>

#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_dpm.h"
#include "amdgpu_sdma_batch_internal.h"
#include "amdgpu_sdma_batch_limits.h"
#include "amdgpu_sdma_batch_stats.h"
#include "amdgpu_sdma_prepared.h"
#include "amd_pcie.h"
#include "kfd_svm.h"

/* Rate of an engine, in megabytes a second, if the link does not limit it. */
#define MAX_RATE	4000
/* Clocks of an engine if they are not reported. */
#define LOW_MHZ		100
#define HIGH_MHZ	2500
/* Time that a dword of packets takes at most, and a row of a rectangle. */
#define DWORD_NS	128
/* Engines that face the host if the others face the fabric: see KFD. */
#define HOST_ENGINES	2

static u64 timeout_ns(const struct amdgpu_device *adev)
{
	return jiffies_to_nsecs(clamp(adev->sdma_timeout, 1L, 60L * HZ));
}

/* Megabytes a second, or 0 if it is not known. */
static u64 link_rate(struct amdgpu_device *adev)
{
	if (!adev->pm.pcie_mlw_mask ||
	    !(adev->pm.pcie_gen_mask & CAIL_PCIE_LINK_SPEED_SUPPORT_MASK))
		return 0;
	return 3 * amdgpu_amdkfd_get_pcie_bandwidth_mbytes(adev, false) / 4;
}

/**
 * amdgpu_sdma_batch_rate - the minimum rate of an engine
 * @link: rate of the GPU's link to the host in megabytes a second, or 0 if it
 *	is not known
 * @engines: how many share the link
 *
 * Returns: megabytes a second, that is, bytes in a microsecond; not 0.
 */
u32 amdgpu_sdma_batch_rate(u64 link, u32 engines)
{
	if (!link)
		return MAX_RATE;
	return clamp(div_u64(link, engines), 1, MAX_RATE);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_batch_rate);

/* What an engine moves in a time, at that rate. */
static u64 bytes_in(u32 rate, u64 ns)
{
	return div_u64(ns * rate, 1000);
}

static u32 max_dwords(struct amdgpu_device *adev)
{
	return min(div_u64(timeout_ns(adev), 4 * DWORD_NS),
		   AMDGPU_SDMA_MAX_DWORDS);
}

/* Clocks in MHz; power management has them in units of 10 kHz. */
static void find_clocks(struct amdgpu_device *adev,
			struct amdgpu_sdma_batch_limits *l)
{
	int low = 0, high = 0;

	if (adev->pm.dpm_enabled && adev->powerplay.pp_funcs) {
		low = amdgpu_dpm_get_sclk(adev, true) / 100;
		high = amdgpu_dpm_get_sclk(adev, false) / 100;
	}
	if (low <= 0 || high < low) {
		low = LOW_MHZ;
		high = HIGH_MHZ;
	}
	l->low_mhz = low;
	l->high_mhz = high;
}

/**
 * amdgpu_sdma_batch_limits_init - find out the limits of batches
 * @adev: device that works
 */
void amdgpu_sdma_batch_limits_init(struct amdgpu_device *adev)
{
	struct amdgpu_sdma_batch_limits *l = amdgpu_sdma_batch_limits(adev);
	u32 engines = max(adev->sdma.num_instances, 1);
	u64 ns = timeout_ns(adev);

	find_clocks(adev, l);
	l->rate = amdgpu_sdma_batch_rate(link_rate(adev), engines);
	l->max_bytes = min(bytes_in(l->rate, ns / 4), AMDGPU_SDMA_MAX_BYTES);
	l->max_dwords = max_dwords(adev);
	l->max_work = bytes_in(l->rate, ns / 2);
	l->max_wait_ns = amdgpu_sdma_longest_wait(l->low_mhz, l->high_mhz,
						  ns / 2);
}

/**
 * amdgpu_sdma_batch_longest_wait - how long a batch's waits last at most
 * @l: limits of the device
 * @plan: plan of the batch
 *
 * Returns: nanoseconds, at the lowest clock.
 */
u64 amdgpu_sdma_batch_longest_wait(const struct amdgpu_sdma_batch_limits *l,
				   const struct amdgpu_sdma_plan *plan)
{
	return amdgpu_sdma_polls_ns(l->low_mhz, plan->polls);
}

/* How often an engine moves each byte of a descriptor at most. */
static unsigned int times_moved(const struct drm_amdgpu_sdma_desc *d)
{
	switch (d->op) {
	case AMDGPU_SDMA_OP_BROADCAST:
		return sdma_num_dst(d);
	case AMDGPU_SDMA_OP_SWAP:
		return 3;
	default:
		return 1;
	}
}

/* What a part of a batch moves. */
struct moved {
	u64 bytes;
	u64 rows;
};

/* Adds what a descriptor moves from one offset to another, or to its end. */
static void add_moved(struct moved *m, const struct amdgpu_sdma_plan *plan,
		      u32 i, u64 from, u64 to)
{
	struct drm_amdgpu_sdma_desc room;
	const struct drm_amdgpu_sdma_desc *d;
	u64 bytes;

	if (sdma_is_plain_copy(sdma_head(plan, i))) {
		m->bytes += min(to, sdma_head(plan, i)->size) - from;
		return;
	}
	d = sdma_desc(plan, i, &room);
	bytes = min(to, sdma_bytes(d)) - from;
	m->bytes += bytes * times_moved(d);
	if (!sdma_is_linear(d))
		m->rows += DIV64_U64_ROUND_UP(bytes, d->size);
}

static struct moved share_moved(const struct amdgpu_sdma_plan *plan, u32 share)
{
	const struct amdgpu_sdma_cursor *end = &plan->end[share];
	struct amdgpu_sdma_cursor at = sdma_share_begin(plan, share);
	struct moved m = { };

	for (; at.desc < end->desc; at.desc++) {
		add_moved(&m, plan, at.desc, at.offset, U64_MAX);
		at.offset = 0;
	}
	if (end->offset > at.offset)
		add_moved(&m, plan, at.desc, at.offset, end->offset);
	return m;
}

/**
 * amdgpu_sdma_batch_work - what a share of a batch is charged
 * @l: limits of the device
 * @plan: plan of the batch, with its descriptors
 * @share: which
 * @packet_bytes: room for its packets
 *
 * Packets and waits count as the bytes that an engine would move meanwhile, and
 * so does each row of a rectangle, which may be far from the one before.
 *
 * Returns: bytes.
 */
u64 amdgpu_sdma_batch_work(const struct amdgpu_sdma_batch_limits *l,
			   const struct amdgpu_sdma_plan *plan, u32 share,
			   u64 packet_bytes)
{
	struct moved m = { .bytes = plan->moved, .rows = plan->rows };
	u64 ns;

	if (plan->shares > 1)
		m = share_moved(plan, share);
	ns = (packet_bytes / sizeof(u32) + m.rows) * DWORD_NS +
	     amdgpu_sdma_polls_ns(plan->mhz, plan->polls);
	return m.bytes + bytes_in(l->rate, ns);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_batch_work);

/**
 * amdgpu_sdma_batch_host_engines - engines that face the host
 * @adev: device
 * @engines: engines of a partition, by instance
 *
 * On GPUs that are connected by XGMI, KFD uses the first two engines of a
 * partition for PCIe, and the others for the fabric.
 *
 * Returns: a mask of those among @engines, 0 if there is no difference or none
 * is known.
 */
u32 amdgpu_sdma_batch_host_engines(struct amdgpu_device *adev, u32 engines)
{
	u32 i, mask = 0;

	if (!adev->gmc.xgmi.supported || hweight32(engines) <= HOST_ENGINES)
		return 0;
	for (i = 0; i < HOST_ENGINES; i++)
		mask |= BIT(__ffs(engines & ~mask));
	return mask;
}

/* Engines to whose ring the file may submit. */
static u32 usable_engines(struct amdgpu_device *adev,
			  struct amdgpu_fpriv *fpriv)
{
	u32 i, mask = 0;

	for (i = 0; i < min(adev->sdma.num_instances, 32); i++) {
		struct amdgpu_ring *ring = &adev->sdma.instance[i].ring;

		if (ring->no_user_submission || !ring->sched.ready)
			continue;
		if (adev->xcp_mgr && fpriv->xcp_id != AMDGPU_XCP_NO_PARTITION &&
		    ring->xcp_id != fpriv->xcp_id)
			continue;
		mask |= BIT(i);
	}
	return mask;
}

static u32 wait_engines(const struct amdgpu_device *adev, u32 engines)
{
	u32 i, mask = 0;

	for (i = 0; i < 32; i++)
		if (engines & BIT(i) &&
		    amdgpu_sdma_has_waits(&adev->sdma, i))
			mask |= BIT(i);
	return mask;
}

/**
 * amdgpu_sdma_batch_info - AMDGPU_INFO_SDMA_BATCH
 * @adev: device
 * @fpriv: file
 * @info: result
 */
void amdgpu_sdma_batch_info(struct amdgpu_device *adev,
			    struct amdgpu_fpriv *fpriv,
			    struct drm_amdgpu_info_sdma_batch *info)
{
	const struct amdgpu_sdma_batch_limits *l = amdgpu_sdma_batch_limits(adev);
	const struct amdgpu_sdma_format *f;
	u32 engines;

	memset(info, 0, sizeof(*info));
	f = amdgpu_sdma_format(amdgpu_ip_version(adev, SDMA0_HWIP, 0));
	engines = usable_engines(adev, fpriv);
	if (!f || !engines)
		return;
	info->engine_mask = engines;
	info->wait_engine_mask = wait_engines(adev, engines);
	info->host_engine_mask = amdgpu_sdma_batch_host_engines(adev, engines);
	info->ops = amdgpu_sdma_ops(f);
	if (!info->wait_engine_mask)
		info->ops &= ~BIT(AMDGPU_SDMA_OP_WAIT);
	info->native_ops = f->native & info->ops;
	info->features = AMDGPU_SDMA_FEATURE_PREPARED;
	if (IS_ENABLED(CONFIG_IO_URING))
		info->features |= AMDGPU_SDMA_FEATURE_URING;
	if (IS_ENABLED(CONFIG_DRM_AMDGPU_USERPTR))
		info->features |= AMDGPU_SDMA_FEATURE_USERPTR;
	if (KFD_IS_SVM_API_SUPPORTED(adev))
		info->features |= AMDGPU_SDMA_FEATURE_SVM;
	info->max_descs = AMDGPU_SDMA_MAX_DESCS;
	info->max_fences = AMDGPU_SDMA_MAX_FENCES;
	info->max_broadcast = AMDGPU_SDMA_MAX_DST;
	info->swap_alignment = f->swap_align;
	info->record_alignment = AMDGPU_SDMA_RECORD_ALIGN;
	info->max_prepared = AMDGPU_SDMA_MAX_PREPARED;
	info->max_prepared_bytes = AMDGPU_SDMA_MAX_PREPARED_BYTES;
	info->max_bytes = l->max_bytes;
	info->max_queued_bytes = l->max_work;
	info->max_packet_bytes = f->max_copy;
	info->max_wait_ns = l->max_wait_ns;
}
