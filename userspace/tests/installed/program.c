/* SPDX-License-Identifier: MIT */
/* The installed C API: calls that need no device. */
#include <sluice.h>
#include <stdio.h>

int main(void)
{
	sluice_topology *machine;
	const char *name;
	int rc = sluice_topology_read("/", &machine);

	if (rc) {
		fprintf(stderr, "%d: %s\n", rc, sluice_last_error()->message);
		return 1;
	}
	name = sluice_topology_name(machine, 0);
	printf("%s %s\n", sluice_version(), name ? name : "-");
	sluice_topology_free(machine);
	return 0;
}
