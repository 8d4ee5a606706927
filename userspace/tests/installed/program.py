# SPDX-License-Identifier: MIT
"""A third-party program."""
import sluice

ring = sluice.Context(operations=8)
memory = sluice.Buffer.host(4096)
with open("/dev/zero", "rb") as file:
    count: int = ring.read(file, memory).wait()
print(sluice.version(), count, sluice.Topology().names[0])
