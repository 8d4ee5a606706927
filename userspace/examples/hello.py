# SPDX-License-Identifier: MIT
"""Bring the beginning of a file into the memory of a GPU, and back again."""
import asyncio
import sys

import sluice


async def main() -> None:
    ring = sluice.Context()
    gpu = sluice.Device(ring, "0")
    host, vram = sluice.Buffer.host(1 << 20), gpu.vram(1 << 20)
    gpu.attach(host)
    with open(sys.argv[-1], "rb") as file:
        n = await ring.read(file, host)
    for to, source in (vram, host), (host, vram):
        copy = sluice.Batch()
        copy.fault_in()
        copy.copy(to, source)
        await gpu.submit(copy)
    print(f"{n} bytes went to {gpu.info.address} and came back")

asyncio.run(main())
