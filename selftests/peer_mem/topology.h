/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How the device with the memory and the one that transfers are connected, as
 * TOPOLOGY in the environment says, and so which way the transfers must take.
 */
#ifndef _SELFTEST_TOPOLOGY_H
#define _SELFTEST_TOPOLOGY_H

#include "peer_mem.h"

struct topology {
	const char *name;
	unsigned int route;
	unsigned int result;
	bool reachable;
};

static const struct topology topologies[] = {
	{ "unreachable", PEER_EDU_RAM, 0, false },
	{ "bridge", PEER_EDU_HOST_BRIDGE, 0, true },
	{ "iommu", PEER_EDU_HOST_BRIDGE, PEER_EDU_IOVA, true },
	{ "switch", PEER_EDU_BUS_ADDR, 0, true },
};

static inline const struct topology *find_topology(void)
{
	const char *name = getenv("TOPOLOGY");
	unsigned int i;

	for (i = 0; name && i < sizeof(topologies) / sizeof(*topologies); i++)
		if (!strcmp(name, topologies[i].name))
			return &topologies[i];
	return NULL;
}

#endif /* _SELFTEST_TOPOLOGY_H */
