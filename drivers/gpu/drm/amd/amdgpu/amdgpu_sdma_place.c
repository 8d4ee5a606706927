// SPDX-License-Identifier: MIT
/*
 * How many parts an SDMA batch runs in, where it is cut, and which engines suit
 * it. Pure functions, like those of amdgpu_sdma_plan.c.
 */

#include <kunit/visibility.h>
#include <linux/align.h>
#include <linux/bitops.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "amdgpu.h"
#include "amdgpu_sdma_plan.h"

/*
 * The cost of a descriptor besides its bytes, in bytes: gives shares of many
 * small copies equal numbers of them.
 */
#define SHARE_OVERHEAD	4096
/*
 * Shares are cut at multiples of this, counted from the start of a descriptor:
 * that keeps the alignment of swaps and the phase of fill patterns.
 */
#define SHARE_ALIGN	4096

/*
 * What a cut adds to the packets of the whole descriptor: for a broadcast one
 * for each destination, for a fill its edges, for a swap what bounces after the
 * cut and one more packet, for a rectangle one more packet.
 */
#define CUT_DW		(AMDGPU_SDMA_MAX_DST * AMDGPU_SDMA_COPY_DW + \
			 AMDGPU_SDMA_FILL_EDGES_DW + AMDGPU_SDMA_BOUNCE_DW)

/* Records of a share: as for a descriptor, with either status. */
#define SHARE_RECORD_DW	(AMDGPU_SDMA_RECORD_DW + AMDGPU_SDMA_FENCE_DW)

static u64 bytes_of(const struct amdgpu_sdma_plan *plan, u32 i)
{
	const struct amdgpu_sdma_head *head = sdma_head(plan, i);
	struct drm_amdgpu_sdma_desc tmp;

	if (sdma_is_plain_copy(head))
		return head->size;
	return sdma_bytes(sdma_desc(plan, i, &tmp));
}

/* Work of the engines: moving bytes, or processing packets that move few. */
static u64 work_of(const struct amdgpu_sdma_plan *plan)
{
	return max(plan->moved, (u64)(plan->num - plan->prelude) *
				AMDGPU_SDMA_AUTO_SMALL_BYTES);
}

/**
 * amdgpu_sdma_plan_may_fan_out - might AUTO use several engines?
 * @plan: checked
 *
 * Returns: true if nothing needs an order, and there is enough work for two.
 */
bool amdgpu_sdma_plan_may_fan_out(const struct amdgpu_sdma_plan *plan)
{
	return plan->first_ordered == plan->num &&
	       work_of(plan) >= 4 * AMDGPU_SDMA_AUTO_START_BYTES;
}

/*
 * The host starts one engine after the other, so n engines take n starts plus
 * work / n. That is least where n * n is the work in starts. But a link carries
 * only what one engine moves: more engines on it only process packets.
 * See Documentation/gpu/amdgpu/sdma-batch.rst for where the numbers are from.
 */
static u32 auto_shares(const struct amdgpu_sdma_plan *plan, u32 links, u32 engines)
{
	u64 work = work_of(plan);

	if (!amdgpu_sdma_plan_may_fan_out(plan))
		return 1;
	if (links && plan->moved)
		engines = min_t(u64, engines,
				DIV64_U64_ROUND_UP(links * work, plan->moved));
	return clamp(int_sqrt64(div_u64(work, AMDGPU_SDMA_AUTO_START_BYTES)),
		     1, engines);
}

/* The engines, among the usable ones, that face where the bytes go. */
static u32 facing(const struct amdgpu_sdma_engines *e, u32 usable)
{
	u32 good = usable;

	if (e->host && e->path == AMDGPU_SDMA_PATH_HOST)
		good &= e->host;
	else if (e->host && e->path == AMDGPU_SDMA_PATH_DEVICE)
		good &= ~e->host;
	return good ? good : usable;
}

/* Cuts a rectangle with gaps between rows. */
static u64 cut_down(const struct drm_amdgpu_sdma_desc *d, u64 offset)
{
	if (sdma_is_linear(d))
		return ALIGN_DOWN(offset, SHARE_ALIGN);
	return div64_u64(offset, d->size) * d->size;
}

/* Where to end a share that should end @over bytes into descriptor @i. */
static struct amdgpu_sdma_cursor cut(const struct amdgpu_sdma_plan *plan, u32 i,
				     u64 over)
{
	struct drm_amdgpu_sdma_desc tmp;
	const struct drm_amdgpu_sdma_desc *d = sdma_desc(plan, i, &tmp);
	struct amdgpu_sdma_cursor c = { .desc = i };

	/* A record tells the end of its whole descriptor, which stays whole. */
	if (d->flags & AMDGPU_SDMA_DESC_RECORD)
		return c;
	if (over < sdma_bytes(d))
		c.offset = cut_down(d, over);
	else
		c.desc++;
	return c;
}

static void cut_shares(struct amdgpu_sdma_plan *plan)
{
	u32 i = sdma_share_begin(plan, 0).desc, share = 0;
	u64 total, before = 0, weight, goal;

	total = plan->bytes + (u64)(plan->num - i) * SHARE_OVERHEAD;
	goal = div_u64(total, plan->shares);
	for (; i < plan->num && share < plan->shares - 1; i++) {
		weight = bytes_of(plan, i) + SHARE_OVERHEAD;
		while (share < plan->shares - 1 && before + weight > goal) {
			plan->end[share++] = cut(plan, i, goal - before);
			goal = div_u64(total * (share + 1), plan->shares);
		}
		before += weight;
	}
	while (share < plan->shares)
		plan->end[share++] = (struct amdgpu_sdma_cursor) {
			.desc = plan->num,
		};
}

/* The engines to choose from; none if no usable engine may execute waits. */
static u32 choose_engines(const struct amdgpu_sdma_plan *plan, u32 placement,
			  const struct amdgpu_sdma_engines *e)
{
	u32 usable = e->usable;

	if (plan->waits && e->may_wait)
		usable &= e->may_wait;
	return placement == AMDGPU_SDMA_PLACE_AUTO ? facing(e, usable) : usable;
}

static int count_shares(struct amdgpu_sdma_plan *plan, u32 links, u32 num)
{
	switch (plan->placement) {
	case AMDGPU_SDMA_PLACE_AUTO:
		plan->shares = auto_shares(plan, links, num);
		break;
	case AMDGPU_SDMA_PLACE_ONE_ENGINE:
		plan->shares = 1;
		break;
	case AMDGPU_SDMA_PLACE_FAN_OUT:
		if (plan->first_ordered != plan->num) {
			plan->error_index = plan->first_ordered;
			return -EINVAL;
		}
		plan->shares = num;
		break;
	default:
		return -EINVAL;
	}
	/* A batch that only waits has nothing to share. */
	if (plan->prelude == plan->num)
		plan->shares = 1;
	return 0;
}

static u32 first_wait(const struct amdgpu_sdma_plan *plan)
{
	u32 i = 0;

	while (!sdma_is_wait(sdma_head(plan, i)))
		i++;
	return i;
}

/**
 * amdgpu_sdma_plan_place - cut the batch into shares that run in parallel
 * @plan: checked
 * @placement: AMDGPU_SDMA_PLACE_*
 * @engines: what is known of the engines, of which at least one is usable
 *
 * AUTO uses engines that face where the bytes go, where that is known, and
 * never more than there are of those.
 *
 * Returns: 0, or -EINVAL if a fan-out was requested of what needs an order, or
 * if no usable engine may wait: @error_index is the descriptor at fault.
 */
int amdgpu_sdma_plan_place(struct amdgpu_sdma_plan *plan, u32 placement,
			   const struct amdgpu_sdma_engines *engines)
{
	int ret;

	plan->placement = placement;
	plan->engines = choose_engines(plan, placement, engines);
	if (!plan->engines) {
		plan->error_index = first_wait(plan);
		return -EINVAL;
	}
	ret = count_shares(plan, engines->links,
			   hweight32(plan->engines));
	if (!ret)
		cut_shares(plan);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_place);

/* Packets of a descriptor between two offsets, without what a cut adds. */
static u64 part_dwords(const struct amdgpu_sdma_plan *plan, u32 i, u64 from,
		       u64 to)
{
	u64 dw = amdgpu_sdma_desc_dwords(plan, i), bytes = bytes_of(plan, i);

	to = min(to, bytes);
	if (to - from == bytes)
		return dw;
	return DIV64_U64_ROUND_UP(dw * (to - from), bytes);
}

/* Packets of the descriptors of a share, and of the waits before them. */
static u64 share_dwords(const struct amdgpu_sdma_plan *plan, u32 share)
{
	const struct amdgpu_sdma_cursor *end = &plan->end[share];
	struct amdgpu_sdma_cursor at = sdma_share_begin(plan, share);
	u64 dw = 0;
	u32 i;

	if (plan->shares == 1)
		return plan->dwords;
	for (i = 0; i < plan->prelude; i++)
		dw += amdgpu_sdma_desc_dwords(plan, i);
	for (; at.desc < end->desc; at.desc++) {
		dw += part_dwords(plan, at.desc, at.offset, U64_MAX);
		at.offset = 0;
	}
	if (end->offset > at.offset)
		dw += part_dwords(plan, at.desc, at.offset, end->offset);
	return dw;
}

/**
 * amdgpu_sdma_plan_dwords - upper bound of the packets of a share
 * @plan: placed
 * @share: which
 *
 * Returns: dwords, a multiple of 8.
 */
u64 amdgpu_sdma_plan_dwords(const struct amdgpu_sdma_plan *plan, u32 share)
{
	u64 dw = share_dwords(plan, share);

	if (plan->records)
		dw += SHARE_RECORD_DW;
	/* A share may be cut at both ends. */
	if (plan->shares > 1)
		dw += 2 * CUT_DW;
	/* A guard for each half of max_skip: more than any group of packets. */
	if (plan->waits)
		dw += AMDGPU_SDMA_COND_DW *
		      (1 + div_u64(dw, plan->format->max_skip / 2));
	/* Each IB is padded and begins with a guard; the next one may, too. */
	dw += (8 + AMDGPU_SDMA_COND_DW) * AMDGPU_SDMA_MAX_IBS;
	return ALIGN(dw, 8);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_plan_dwords);
