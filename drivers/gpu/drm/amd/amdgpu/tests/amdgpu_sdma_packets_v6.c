// SPDX-License-Identifier: MIT
/* SDMA 6.x, and 7.0, which uses the same header file. */
#include "sdma_v6_0_0_pkt_open.h"

#define PACKETS_SUITE	"amdgpu_sdma_packets_v6"
#include "amdgpu_sdma_packets.h"

#define PACKETS_V6							\
	.copy_dw = 7, .broadcast = true, .max = SZ_1G,			\
	.fence_extra = SDMA_PKT_FENCE_HEADER_MTYPE(3)

/* See sdma_v7_0_emit_copy_buffer() and sdma_v7_0_emit_fill_buffer(). */
#define PACKETS_V7							\
	.copy_dw = 8, .max = SZ_1G,					\
	.copy_extra = SDMA_PKT_COPY_LINEAR_HEADER_CPV(1),		\
	.fill_extra = BIT(16),						\
	.fence_extra = SDMA_PKT_FENCE_HEADER_MTYPE(3)

static const struct packets_of packets_of[] = {
	{ IP_VERSION(6, 0, 0), PACKETS_V6 },
	{ IP_VERSION(6, 0, 1), PACKETS_V6 },
	{ IP_VERSION(6, 0, 2), PACKETS_V6 },
	{ IP_VERSION(6, 0, 3), PACKETS_V6 },
	{ IP_VERSION(6, 1, 0), PACKETS_V6 },
	{ IP_VERSION(6, 1, 1), PACKETS_V6 },
	{ IP_VERSION(6, 1, 2), PACKETS_V6 },
	{ IP_VERSION(6, 1, 3), PACKETS_V6 },
	{ IP_VERSION(6, 1, 4), PACKETS_V6 },
	{ IP_VERSION(6, 4, 0), PACKETS_V6 },
	{ IP_VERSION(7, 0, 0), PACKETS_V7 },
	{ IP_VERSION(7, 0, 1), PACKETS_V7 },
};

PACKETS_TESTS;
