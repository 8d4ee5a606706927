// SPDX-License-Identifier: MIT
/* SDMA 4.x. */
#include "vega10_sdma_pkt_open.h"

#define PACKETS_SUITE	"amdgpu_sdma_packets_vega10"
#include "amdgpu_sdma_packets.h"

#define PACKETS(size, over)						\
	.copy_dw = 7, .broadcast = true, .max = (size), .wider = (over)

static const struct packets_of packets_of[] = {
	{ IP_VERSION(4, 0, 0), PACKETS(SZ_4M, false) },
	{ IP_VERSION(4, 0, 1), PACKETS(SZ_4M, false) },
	{ IP_VERSION(4, 1, 0), PACKETS(SZ_4M, false) },
	{ IP_VERSION(4, 1, 1), PACKETS(SZ_4M, false) },
	{ IP_VERSION(4, 1, 2), PACKETS(SZ_4M, false) },
	{ IP_VERSION(4, 2, 0), PACKETS(SZ_4M, false) },
	{ IP_VERSION(4, 2, 2), PACKETS(SZ_4M, false) },
	{ IP_VERSION(4, 4, 0), PACKETS(SZ_1G, true) },
	{ IP_VERSION(4, 4, 2), PACKETS(SZ_1G, true) },
	{ IP_VERSION(4, 4, 4), PACKETS(SZ_1G, true) },
	{ IP_VERSION(4, 4, 5), PACKETS(SZ_1G, true) },
};

PACKETS_TESTS;

MODULE_DESCRIPTION("KUnit tests of the packets of amdgpu's SDMA batches");
MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");
MODULE_LICENSE("Dual MIT/GPL");
