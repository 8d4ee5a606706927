/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_ENCODE_H__
#define __AMDGPU_SDMA_ENCODE_H__

#include <linux/types.h>
#include <linux/wordpart.h>

struct drm_amdgpu_sdma_desc;

/**
 * struct amdgpu_sdma_format - what the packets of one SDMA generation can do
 * @native: mask of the operations, BIT(AMDGPU_SDMA_OP_*), that have a packet
 * @max_copy: bytes of a COPY or broadcast packet
 * @max_fill: bytes of a CONST_FILL packet, a multiple of 4
 * @max_swap: bytes of a swap packet, a multiple of @swap_align so that what
 *	follows a full packet is aligned like what is in it
 * @swap_align: alignment of both addresses of a swap packet, 0 if there is none
 * @max_bounce: bytes that are exchanged through scratch memory at once, at most
 *	@max_copy
 * @broadcast_align: the destinations of a broadcast packet must be equal modulo
 *	this
 * @max_window: rows of a sub-window packet, and elements in a row
 * @max_pitch: elements from one row to the next
 * @max_skip: dwords that a COND_EXE packet can skip
 * @copy_dw: dwords of a COPY packet with one destination
 * @copy_header: header of a COPY packet
 * @fill_header: header of a CONST_FILL packet, without the size of its elements
 * @fence_header: header of a FENCE packet
 */
struct amdgpu_sdma_format {
	u32 native;
	u64 max_copy;
	u64 max_fill;
	u64 max_swap;
	u32 swap_align;
	u32 max_bounce;
	u32 broadcast_align;
	u32 max_window;
	u32 max_pitch;
	u32 max_skip;
	u32 copy_dw;
	u32 copy_header;
	u32 fill_header;
	u32 fence_header;
};

/* Scratch memory of an engine. */
#define AMDGPU_SDMA_SCRATCH_SIZE	65536

/* Dwords of each packet; for COPY the maximum, see also copy_dw. */
#define AMDGPU_SDMA_COPY_DW		8
#define AMDGPU_SDMA_BROADCAST_DW	9
#define AMDGPU_SDMA_SUBWIN_DW		13
#define AMDGPU_SDMA_SWAP_DW		7
#define AMDGPU_SDMA_FILL_DW		5
#define AMDGPU_SDMA_FENCE_DW		4
#define AMDGPU_SDMA_TIMESTAMP_DW	3
#define AMDGPU_SDMA_POLL_DW		6
#define AMDGPU_SDMA_COND_DW		5
#define AMDGPU_SDMA_ATOMIC_DW		8
#define AMDGPU_SDMA_WRITE64_DW		6

/* Maximum reads of one POLL_REGMEM packet: the next value means "for ever". */
#define AMDGPU_SDMA_MAX_POLLS		0xffe
#define AMDGPU_SDMA_POLL_FOR_EVER	0xfff

/* Comparisons of POLL_REGMEM. */
enum amdgpu_sdma_poll_func {
	AMDGPU_SDMA_POLL_LE = 2,
	AMDGPU_SDMA_POLL_EQ = 3,
	AMDGPU_SDMA_POLL_NE = 4,
	AMDGPU_SDMA_POLL_GE = 5,
};

/* ATOMIC operations: opcodes of the texture cache that return no old value. */
enum amdgpu_sdma_atomic {
	AMDGPU_SDMA_ATOMIC_UMIN32 = 0x52,
	AMDGPU_SDMA_ATOMIC_UMAX32 = 0x54,
	AMDGPU_SDMA_ATOMIC_AND32 = 0x55,
	AMDGPU_SDMA_ATOMIC_XOR32 = 0x57,
	AMDGPU_SDMA_ATOMIC_ADD64 = 0x6f,
};

/**
 * struct amdgpu_sdma_window - rows of bytes for a sub-window packet
 * @src: first byte that is read
 * @dst: first byte that is written
 * @src_pitch: bytes from one row to the next in the source
 * @dst_pitch: bytes from one row to the next in the destination
 * @width: bytes in a row
 * @rows: number of rows
 * @element: bytes of the packet's unit; all but @rows are multiples of it
 */
struct amdgpu_sdma_window {
	u64 src;
	u64 dst;
	u64 src_pitch;
	u64 dst_pitch;
	u64 width;
	u32 rows;
	u32 element;
};

const struct amdgpu_sdma_format *amdgpu_sdma_format(u32 ip_version);
u32 amdgpu_sdma_ops(const struct amdgpu_sdma_format *f);
unsigned int amdgpu_sdma_subwin_element(const struct amdgpu_sdma_format *f,
					const struct drm_amdgpu_sdma_desc *d);

/* Inline, because a batch may have thousands. Nothing is compressed. */
static inline u32 *amdgpu_sdma_put_copy(u32 *p,
					const struct amdgpu_sdma_format *f,
					u64 src, u64 dst, u64 size)
{
	p[0] = f->copy_header;
	p[1] = size - 1;
	p[2] = 0;
	p[3] = lower_32_bits(src);
	p[4] = upper_32_bits(src);
	p[5] = lower_32_bits(dst);
	p[6] = upper_32_bits(dst);
	if (f->copy_dw > 7)
		p[7] = 0;
	return p + f->copy_dw;
}

u32 *amdgpu_sdma_put_broadcast(u32 *p, const struct amdgpu_sdma_format *f,
			       u64 src, u64 dst, u64 dst2, u64 size);
u32 *amdgpu_sdma_put_subwin(u32 *p, const struct amdgpu_sdma_format *f,
			    const struct amdgpu_sdma_window *w);
u32 *amdgpu_sdma_put_swap(u32 *p, u64 a, u64 b, u64 size);
u32 *amdgpu_sdma_put_fill(u32 *p, const struct amdgpu_sdma_format *f, u64 dst,
			  u32 value, u64 size);
u32 *amdgpu_sdma_put_fill_bytes(u32 *p, const struct amdgpu_sdma_format *f,
				u64 dst, u8 value, u64 size);
u32 *amdgpu_sdma_put_fence(u32 *p, const struct amdgpu_sdma_format *f, u64 dst,
			   u32 value);
u32 *amdgpu_sdma_put_timestamp(u32 *p, u64 dst);
u32 *amdgpu_sdma_put_poll(u32 *p, u64 addr, enum amdgpu_sdma_poll_func func,
			  u32 value, u32 mask, u32 interval, u32 polls);
u32 *amdgpu_sdma_put_cond(u32 *p, u64 addr, u32 value, u32 skip);
u32 *amdgpu_sdma_put_atomic(u32 *p, enum amdgpu_sdma_atomic op, u64 dst,
			    u64 value);
u32 *amdgpu_sdma_put_write64(u32 *p, u64 dst, u64 value);

#endif
