// SPDX-License-Identifier: MIT
/*
 * The packets of SDMA batches. Nothing here touches a device: each function
 * stores one packet and returns where the next one goes.
 */

#include <kunit/visibility.h>
#include <linux/bits.h>
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/wordpart.h>

#include <drm/amdgpu_drm.h>

#include "amdgpu.h"
#include "amdgpu_sdma_encode.h"
#include "vega10_sdma_pkt_open.h"

/* Not in the packet header file: exchange two linear ranges. */
#define SDMA_SUBOP_COPY_LINEAR_SWAP	9

#define SDMA_FILL_DWORDS		2

/* Bits that the headers of later generations have. */
#define FENCE_UNCACHED			(3 << 16)
#define COPY_V7_CPV			BIT(19)
#define FILL_V7_COMPRESS		BIT(16)

/* Operations for which all generations have a packet. */
#define OPS_OF_ALL							\
	(BIT(AMDGPU_SDMA_OP_COPY) | BIT(AMDGPU_SDMA_OP_FILL) |		\
	 BIT(AMDGPU_SDMA_OP_WAIT) | BIT(AMDGPU_SDMA_OP_WRITE) |		\
	 BIT(AMDGPU_SDMA_OP_ADD))

/* Operations for which 7.0 has no packet. */
#define PAIRS_AND_WINDOWS						\
	(BIT(AMDGPU_SDMA_OP_BROADCAST) | BIT(AMDGPU_SDMA_OP_COPY_RECT))

/*
 * The longest packets are those with which the driver itself moves memory, see
 * struct amdgpu_buffer_funcs of each generation: the fields in packet header
 * files are narrower than those of some engines. No header file has a swap;
 * public user space uses it only on 4.4.2 and its relatives.
 */
static const struct amdgpu_sdma_format sdma_v4_0_format = {
	.native = OPS_OF_ALL | PAIRS_AND_WINDOWS,
	.max_copy = SZ_4M,
	.max_fill = SZ_4M,
	.max_bounce = AMDGPU_SDMA_SCRATCH_SIZE,
	.broadcast_align = 32,
	.max_window = 1 << 14,
	.max_pitch = 1 << 19,
	.max_skip = 0x3fff,
	.copy_dw = 7,
	.copy_header = SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY),
	.fill_header = SDMA_PKT_CONSTANT_FILL_HEADER_OP(SDMA_OP_CONST_FILL),
	.fence_header = SDMA_PKT_FENCE_HEADER_OP(SDMA_OP_FENCE),
};

/* The long packets of 4.4.2 without its swap. */
static const struct amdgpu_sdma_format sdma_v4_4_format = {
	.native = OPS_OF_ALL | PAIRS_AND_WINDOWS,
	.max_copy = SZ_1G,
	.max_fill = SZ_1G,
	.max_bounce = AMDGPU_SDMA_SCRATCH_SIZE,
	.broadcast_align = 32,
	.max_window = 1 << 14,
	.max_pitch = 1 << 19,
	.max_skip = 0x3fff,
	.copy_dw = 7,
	.copy_header = SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY),
	.fill_header = SDMA_PKT_CONSTANT_FILL_HEADER_OP(SDMA_OP_CONST_FILL),
	.fence_header = SDMA_PKT_FENCE_HEADER_OP(SDMA_OP_FENCE),
};

static const struct amdgpu_sdma_format sdma_v4_4_2_format = {
	.native = OPS_OF_ALL | PAIRS_AND_WINDOWS |
		  BIT(AMDGPU_SDMA_OP_SWAP),
	.max_copy = SZ_1G,
	.max_fill = SZ_1G,
	/* The engine takes 0x3fffffe0, which is no multiple of 64. */
	.max_swap = SZ_1G - 64,
	.swap_align = 64,
	.max_bounce = AMDGPU_SDMA_SCRATCH_SIZE,
	.broadcast_align = 32,
	.max_window = 1 << 14,
	.max_pitch = 1 << 19,
	.max_skip = 0x3fff,
	.copy_dw = 7,
	.copy_header = SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY),
	.fill_header = SDMA_PKT_CONSTANT_FILL_HEADER_OP(SDMA_OP_CONST_FILL),
	.fence_header = SDMA_PKT_FENCE_HEADER_OP(SDMA_OP_FENCE),
};

/* From here on a fence packet says how its memory is cached: not at all. */
static const struct amdgpu_sdma_format sdma_v5_0_format = {
	.native = OPS_OF_ALL | PAIRS_AND_WINDOWS,
	.max_copy = SZ_4M,
	.max_fill = SZ_4M,
	.max_bounce = AMDGPU_SDMA_SCRATCH_SIZE,
	.broadcast_align = 32,
	.max_window = 1 << 14,
	.max_pitch = 1 << 19,
	.max_skip = 0x3fff,
	.copy_dw = 7,
	.copy_header = SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY),
	.fill_header = SDMA_PKT_CONSTANT_FILL_HEADER_OP(SDMA_OP_CONST_FILL),
	.fence_header = SDMA_PKT_FENCE_HEADER_OP(SDMA_OP_FENCE) |
			FENCE_UNCACHED,
};

/* Also 6.x and 7.1: their packet header files differ only in unused parts. */
static const struct amdgpu_sdma_format sdma_v5_2_format = {
	.native = OPS_OF_ALL | PAIRS_AND_WINDOWS,
	.max_copy = SZ_1G,
	.max_fill = SZ_1G,
	.max_bounce = AMDGPU_SDMA_SCRATCH_SIZE,
	.broadcast_align = 32,
	.max_window = 1 << 14,
	.max_pitch = 1 << 19,
	.max_skip = 0x3fff,
	.copy_dw = 7,
	.copy_header = SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY),
	.fill_header = SDMA_PKT_CONSTANT_FILL_HEADER_OP(SDMA_OP_CONST_FILL),
	.fence_header = SDMA_PKT_FENCE_HEADER_OP(SDMA_OP_FENCE) |
			FENCE_UNCACHED,
};

/*
 * Copies of 7.0 end with a dword on compression, which is not in the packet
 * header file that the driver uses for it. So that file does not tell how long
 * a broadcast or a sub-window copy is, and this format has neither.
 */
static const struct amdgpu_sdma_format sdma_v7_0_format = {
	.native = OPS_OF_ALL,
	.max_copy = SZ_1G,
	.max_fill = SZ_1G,
	.max_bounce = AMDGPU_SDMA_SCRATCH_SIZE,
	.max_skip = 0x3fff,
	.copy_dw = 8,
	.copy_header = SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY) |
		       COPY_V7_CPV,
	.fill_header = SDMA_PKT_CONSTANT_FILL_HEADER_OP(SDMA_OP_CONST_FILL) |
		       FILL_V7_COMPRESS,
	.fence_header = SDMA_PKT_FENCE_HEADER_OP(SDMA_OP_FENCE) |
			FENCE_UNCACHED,
};

/**
 * amdgpu_sdma_format - packet format of an SDMA generation
 * @ip_version: of SDMA0_HWIP
 *
 * Versions are listed one by one: an unknown one may have other packets.
 *
 * Returns: the format, or NULL if batches are not supported.
 */
const struct amdgpu_sdma_format *amdgpu_sdma_format(u32 ip_version)
{
	switch (ip_version) {
	case IP_VERSION(4, 0, 0):
	case IP_VERSION(4, 0, 1):
	case IP_VERSION(4, 1, 0):
	case IP_VERSION(4, 1, 1):
	case IP_VERSION(4, 1, 2):
	case IP_VERSION(4, 2, 0):
	case IP_VERSION(4, 2, 2):
		return &sdma_v4_0_format;
	case IP_VERSION(4, 4, 0):
		return &sdma_v4_4_format;
	case IP_VERSION(4, 4, 2):
	case IP_VERSION(4, 4, 4):
	case IP_VERSION(4, 4, 5):
		return &sdma_v4_4_2_format;
	case IP_VERSION(5, 0, 0):
	case IP_VERSION(5, 0, 1):
	case IP_VERSION(5, 0, 2):
	case IP_VERSION(5, 0, 5):
		return &sdma_v5_0_format;
	case IP_VERSION(5, 2, 0):
	case IP_VERSION(5, 2, 1):
	case IP_VERSION(5, 2, 2):
	case IP_VERSION(5, 2, 3):
	case IP_VERSION(5, 2, 4):
	case IP_VERSION(5, 2, 5):
	case IP_VERSION(5, 2, 6):
	case IP_VERSION(5, 2, 7):
	case IP_VERSION(6, 0, 0):
	case IP_VERSION(6, 0, 1):
	case IP_VERSION(6, 0, 2):
	case IP_VERSION(6, 0, 3):
	case IP_VERSION(6, 1, 0):
	case IP_VERSION(6, 1, 1):
	case IP_VERSION(6, 1, 2):
	case IP_VERSION(6, 1, 3):
	case IP_VERSION(6, 1, 4):
	case IP_VERSION(6, 4, 0):
	case IP_VERSION(7, 1, 0):
		return &sdma_v5_2_format;
	case IP_VERSION(7, 0, 0):
	case IP_VERSION(7, 0, 1):
		return &sdma_v7_0_format;
	default:
		return NULL;
	}
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_format);

/**
 * amdgpu_sdma_ops - operations that a batch may have
 * @f: format
 *
 * Returns: mask of BIT(AMDGPU_SDMA_OP_*): those that have a packet, and those
 * that are made of other packets.
 */
u32 amdgpu_sdma_ops(const struct amdgpu_sdma_format *f)
{
	/*
	 * A copy to each destination, or of each row, does the same, and so do
	 * three copies for a swap.
	 */
	return f->native | BIT(AMDGPU_SDMA_OP_BROADCAST) |
	       BIT(AMDGPU_SDMA_OP_SWAP) | BIT(AMDGPU_SDMA_OP_COPY_RECT);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_ops);

static u32 *put64(u32 *p, u64 value)
{
	*p++ = lower_32_bits(value);
	*p++ = upper_32_bits(value);
	return p;
}

/* What COPY packets begin with: header, count, swizzle, first address. */
static u32 *put_copy_head(u32 *p, u32 header, u64 size, u64 src)
{
	*p++ = header;
	*p++ = size - 1;
	*p++ = 0;
	return put64(p, src);
}

u32 *amdgpu_sdma_put_broadcast(u32 *p, const struct amdgpu_sdma_format *f,
			       u64 src, u64 dst, u64 dst2, u64 size)
{
	p = put_copy_head(p, f->copy_header |
			  SDMA_PKT_COPY_LINEAR_HEADER_BROADCAST(1), size, src);
	p = put64(p, dst);
	return put64(p, dst2);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_broadcast);

/**
 * amdgpu_sdma_subwin_element - can a sub-window packet copy a rectangle?
 * @f: format
 * @d: COPY_RECT
 *
 * The packet counts in elements of a power of two of bytes, up to 16. Addresses
 * are multiples of 4, as in public user space, and pitches of 4 elements, which
 * some generations require. The larger the element, the longer a row may be.
 *
 * Returns: bytes of an element, or 0 if no packet can.
 */
unsigned int amdgpu_sdma_subwin_element(const struct amdgpu_sdma_format *f,
					const struct drm_amdgpu_sdma_desc *d)
{
	u64 pitch = max(d->src_pitch, d->dst_pitch);
	u32 e;

	if (!(f->native & BIT(AMDGPU_SDMA_OP_COPY_RECT)))
		return 0;
	for (e = 16; e >= 4; e /= 2)
		if (IS_ALIGNED(d->src | d->dst | d->size, e) &&
		    IS_ALIGNED(d->src_pitch | d->dst_pitch, 4 * e))
			return d->size <= (u64)e * f->max_window &&
			       pitch <= (u64)e * f->max_pitch ? e : 0;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_subwin_element);

/* One side of a window: the first element is the one at @addr. */
static u32 *put_side(u32 *p, u64 addr, u64 pitch)
{
	p = put64(p, addr);
	*p++ = 0;
	*p++ = SDMA_PKT_COPY_LINEAR_SUBWIN_DW_4_SRC_PITCH(pitch - 1);
	/* There is one slice. */
	*p++ = 0;
	return p;
}

/* Sizes are stored minus one. */
u32 *amdgpu_sdma_put_subwin(u32 *p, const struct amdgpu_sdma_format *f,
			    const struct amdgpu_sdma_window *w)
{
	u32 sub = SDMA_SUBOP_COPY_LINEAR_SUB_WIND, shift = ilog2(w->element);

	*p++ = f->copy_header | SDMA_PKT_COPY_LINEAR_SUBWIN_HEADER_SUB_OP(sub) |
	       SDMA_PKT_COPY_LINEAR_SUBWIN_HEADER_ELEMENTSIZE(shift);
	p = put_side(p, w->src, w->src_pitch >> shift);
	p = put_side(p, w->dst, w->dst_pitch >> shift);
	*p++ = SDMA_PKT_COPY_LINEAR_SUBWIN_DW_11_RECT_X((w->width >> shift) - 1) |
	       SDMA_PKT_COPY_LINEAR_SUBWIN_DW_11_RECT_Y(w->rows - 1);
	*p++ = 0;
	return p;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_subwin);

u32 *amdgpu_sdma_put_swap(u32 *p, u64 a, u64 b, u64 size)
{
	u32 sub = SDMA_SUBOP_COPY_LINEAR_SWAP;

	p = put_copy_head(p, SDMA_PKT_COPY_LINEAR_HEADER_OP(SDMA_OP_COPY) |
			  SDMA_PKT_COPY_LINEAR_HEADER_SUB_OP(sub), size, a);
	return put64(p, b);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_swap);

static u32 *put_fill(u32 *p, u32 header, u64 dst, u32 value, u64 size)
{
	*p++ = header;
	p = put64(p, dst);
	*p++ = value;
	*p++ = size - 1;
	return p;
}

/* Address and size are multiples of 4. */
u32 *amdgpu_sdma_put_fill(u32 *p, const struct amdgpu_sdma_format *f, u64 dst,
			  u32 value, u64 size)
{
	u32 element = SDMA_FILL_DWORDS;

	return put_fill(p, f->fill_header |
			SDMA_PKT_CONSTANT_FILL_HEADER_FILLSIZE(element),
			dst, value, size);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_fill);

u32 *amdgpu_sdma_put_fill_bytes(u32 *p, const struct amdgpu_sdma_format *f,
				u64 dst, u8 value, u64 size)
{
	return put_fill(p, f->fill_header, dst, value * 0x01010101u, size);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_put_fill_bytes);

/* Writes @value when all that the queue did before is in memory. */
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
