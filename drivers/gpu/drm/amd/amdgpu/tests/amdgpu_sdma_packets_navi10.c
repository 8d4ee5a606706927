// SPDX-License-Identifier: MIT
/* SDMA 5.x. */
#include "navi10_sdma_pkt_open.h"

#define PACKETS_SUITE	"amdgpu_sdma_packets_navi10"
#include "amdgpu_sdma_packets.h"

#define PACKETS(size, over)						\
	.copy_dw = 7, .broadcast = true, .max = (size), .wider = (over),	\
	.fence_extra = SDMA_PKT_FENCE_HEADER_MTYPE(3)

static const struct packets_of packets_of[] = {
	{ IP_VERSION(5, 0, 0), PACKETS(SZ_4M, false) },
	{ IP_VERSION(5, 0, 1), PACKETS(SZ_4M, false) },
	{ IP_VERSION(5, 0, 2), PACKETS(SZ_4M, false) },
	{ IP_VERSION(5, 0, 5), PACKETS(SZ_4M, false) },
	{ IP_VERSION(5, 2, 0), PACKETS(SZ_1G, true) },
	{ IP_VERSION(5, 2, 1), PACKETS(SZ_1G, true) },
	{ IP_VERSION(5, 2, 2), PACKETS(SZ_1G, true) },
	{ IP_VERSION(5, 2, 3), PACKETS(SZ_1G, true) },
	{ IP_VERSION(5, 2, 4), PACKETS(SZ_1G, true) },
	{ IP_VERSION(5, 2, 5), PACKETS(SZ_1G, true) },
	{ IP_VERSION(5, 2, 6), PACKETS(SZ_1G, true) },
	{ IP_VERSION(5, 2, 7), PACKETS(SZ_1G, true) },
};

PACKETS_TESTS;
