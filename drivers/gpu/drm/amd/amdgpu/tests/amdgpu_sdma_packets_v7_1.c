// SPDX-License-Identifier: MIT
/* SDMA 7.1. */
#include "sdma_v7_1_0_pkt_open.h"

#define PACKETS_SUITE	"amdgpu_sdma_packets_v7_1"
#include "amdgpu_sdma_packets.h"

#define PACKETS_V7_1							\
	.copy_dw = 7, .broadcast = true, .max = SZ_1G,			\
	.fence_extra = SDMA_PKT_FENCE_HEADER_MTYPE(3)

static const struct packets_of packets_of[] = {
	{ IP_VERSION(7, 1, 0), PACKETS_V7_1 },
};

PACKETS_TESTS;
