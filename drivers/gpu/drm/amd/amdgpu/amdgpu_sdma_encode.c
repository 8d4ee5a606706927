// SPDX-License-Identifier: MIT
/*
 * The packets of SDMA batches. Nothing here touches a device: each function
 * stores one packet and returns where the next one goes.
 */

#include <kunit/visibility.h>
#include <linux/bits.h>
#include <linux/sizes.h>
#include <linux/wordpart.h>

#include <drm/amdgpu_drm.h>

#include "amdgpu.h"
#include "amdgpu_sdma_encode.h"
#include "vega10_sdma_pkt_open.h"

/* Not in the packet header file: exchange two linear ranges. */
#define SDMA_SUBOP_COPY_LINEAR_SWAP	9

#define SDMA_FILL_DWORDS		2

static const struct amdgpu_sdma_format sdma_v4_4_2_format = {
	.ops = BIT(AMDGPU_SDMA_OP_COPY) | BIT(AMDGPU_SDMA_OP_FILL) |
	       BIT(AMDGPU_SDMA_OP_BROADCAST) | BIT(AMDGPU_SDMA_OP_SWAP) |
	       BIT(AMDGPU_SDMA_OP_WAIT) | BIT(AMDGPU_SDMA_OP_WRITE) |
	       BIT(AMDGPU_SDMA_OP_ADD),
	.max_copy = SZ_1G,
	.max_fill = SZ_1G,
	/* The engine takes 0x3fffffe0, which is no multiple of 64. */
	.max_swap = SZ_1G - 64,
	.swap_align = 64,
	.broadcast_align = 32,
	.max_skip = 0x3fff,
	.fence_header = SDMA_PKT_FENCE_HEADER_OP(SDMA_OP_FENCE),
};

/**
 * amdgpu_sdma_format - packet format of an SDMA generation
 * @ip_version: of SDMA0_HWIP
 *
 * Returns: the format, or NULL if batches are not supported.
 */
const struct amdgpu_sdma_format *amdgpu_sdma_format(u32 ip_version)
{
	switch (ip_version) {
	case IP_VERSION(4, 4, 2):
	case IP_VERSION(4, 4, 4):
	case IP_VERSION(4, 4, 5):
		return &sdma_v4_4_2_format;
	default:
		return NULL;
	}
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_format);

static u32 *put64(u32 *p, u64 value)
{
	*p++ = lower_32_bits(value);
	*p++ = upper_32_bits(value);
	return p;
}

/* What COPY packets begin with: header, count, swizzle, first address. */
static u32 *put_copy_head(u32 *p, u32 header, u64 size, u64 src)
{
	*p++ = SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY) | header;
	*p++ = size - 1;
	*p++ = 0;
	return put64(p, src);
}

u32 *amdgpu_sdma_put_copy(u32 *p, u64 src, u64 dst, u64 size)
{
	p = put_copy_head(p, 0, size, src);
	return put64(p, dst);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_copy);

u32 *amdgpu_sdma_put_broadcast(u32 *p, u64 src, u64 dst, u64 dst2, u64 size)
{
	p = put_copy_head(p, SDMA_PKT_COPY_LINEAR_HEADER_BROADCAST(1), size,
			  src);
	p = put64(p, dst);
	return put64(p, dst2);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_broadcast);

u32 *amdgpu_sdma_put_swap(u32 *p, u64 a, u64 b, u64 size)
{
	u32 sub = SDMA_SUBOP_COPY_LINEAR_SWAP;

	p = put_copy_head(p, SDMA_PKT_COPY_LINEAR_HEADER_SUB_OP(sub), size, a);
	return put64(p, b);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_swap);

static u32 *put_fill(u32 *p, u32 element, u64 dst, u32 value, u64 size)
{
	*p++ = SDMA_PKT_CONSTANT_FILL_HEADER_OP(SDMA_OP_CONST_FILL) |
	       SDMA_PKT_CONSTANT_FILL_HEADER_FILLSIZE(element);
	p = put64(p, dst);
	*p++ = value;
	*p++ = size - 1;
	return p;
}

/* Address and size are multiples of 4. */
u32 *amdgpu_sdma_put_fill(u32 *p, u64 dst, u32 value, u64 size)
{
	return put_fill(p, SDMA_FILL_DWORDS, dst, value, size);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_fill);

u32 *amdgpu_sdma_put_fill_bytes(u32 *p, u64 dst, u8 value, u64 size)
{
	return put_fill(p, 0, dst, value * 0x01010101u, size);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_fill_bytes);

/* Stores @value once all that the queue did before is in memory. */
u32 *amdgpu_sdma_put_fence(u32 *p, const struct amdgpu_sdma_format *f, u64 dst,
			   u32 value)
{
	*p++ = f->fence_header;
	p = put64(p, dst);
	*p++ = value;
	return p;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_fence);

u32 *amdgpu_sdma_put_timestamp(u32 *p, u64 dst)
{
	u32 sub = SDMA_SUBOP_TIMESTAMP_GET_GLOBAL;

	*p++ = SDMA_PKT_TIMESTAMP_GET_GLOBAL_HEADER_OP(SDMA_OP_TIMESTAMP) |
	       SDMA_PKT_TIMESTAMP_GET_GLOBAL_HEADER_SUB_OP(sub);
	return put64(p, dst);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_timestamp);

u32 *amdgpu_sdma_put_poll(u32 *p, u64 addr, enum amdgpu_sdma_poll_func func,
			  u32 value, u32 mask, u32 interval, u32 polls)
{
	*p++ = SDMA_PKT_POLL_REGMEM_HEADER_OP(SDMA_OP_POLL_REGMEM) |
	       SDMA_PKT_POLL_REGMEM_HEADER_FUNC(func) |
	       SDMA_PKT_POLL_REGMEM_HEADER_MEM_POLL(1);
	p = put64(p, addr);
	*p++ = value;
	*p++ = mask;
	*p++ = SDMA_PKT_POLL_REGMEM_DW5_INTERVAL(interval) |
	       SDMA_PKT_POLL_REGMEM_DW5_RETRY_COUNT(polls);
	return p;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_poll);

/* Skips the next @skip dwords unless the 32 bits at @addr are @value. */
u32 *amdgpu_sdma_put_cond(u32 *p, u64 addr, u32 value, u32 skip)
{
	*p++ = SDMA_PKT_COND_EXE_HEADER_OP(SDMA_OP_COND_EXE);
	p = put64(p, addr);
	*p++ = value;
	*p++ = SDMA_PKT_COND_EXE_EXEC_COUNT_EXEC_COUNT(skip);
	return p;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_cond);

u32 *amdgpu_sdma_put_atomic(u32 *p, enum amdgpu_sdma_atomic op, u64 dst,
			    u64 value)
{
	*p++ = SDMA_PKT_ATOMIC_HEADER_OP(SDMA_OP_ATOMIC) |
	       SDMA_PKT_ATOMIC_HEADER_ATOMIC_OP(op);
	p = put64(p, dst);
	p = put64(p, value);
	p = put64(p, 0);
	*p++ = 0;
	return p;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_atomic);

u32 *amdgpu_sdma_put_write64(u32 *p, u64 dst, u64 value)
{
	*p++ = SDMA_PKT_WRITE_UNTILED_HEADER_OP(SDMA_OP_WRITE) |
	       SDMA_PKT_WRITE_UNTILED_HEADER_SUB_OP(SDMA_SUBOP_WRITE_LINEAR);
	p = put64(p, dst);
	*p++ = SDMA_PKT_WRITE_UNTILED_DW_3_COUNT(1);
	return put64(p, value);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_write64);
