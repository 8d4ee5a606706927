#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Disaggregated serving: prefill hands the KV cache of each request to decode.

    kv_transfer.py decode  --port 7480 --gpu 1 --nic rxe0
    kv_transfer.py prefill --host 10.0.0.2 --port 7480 --gpu 0 --nic rxe0

Both ends have a paged cache, in video memory with --gpu, else in the host's. Prefill
makes up what a model would have computed, so decode can judge each byte. A request's
blocks lie scattered at both ends, each in other places. One batch for each piece gathers
them, the card reads and writes them in place where it can, and one batch scatters them.
"""

import argparse
import asyncio
import contextlib
import itertools
import random

import numpy
import sluice

KIB = 1024
# Layers, and bytes of a block in the K or the V plane of one layer.
MODELS = {
    "8b": (32, 32 * KIB),           # 64 tensors of 32 KiB
    "70b": (80, 32 * KIB),          # 160 tensors of 32 KiB
    "70b-tp4": (80, 8 * KIB),       # 160 tensors of 8 KiB, on each of four GPUs
}


class Cache:
    """A paged cache: an allocator of blocks, and their memory."""

    def __init__(self, ring: sluice.Context, layout: sluice.KVLayout,
                 gpu: sluice.Device | None) -> None:
        self.layout, self.gpu = layout, gpu
        self.host = sluice.Buffer.host(layout.size)
        self.memory = gpu.vram(layout.size) if gpu else self.host
        if gpu:
            gpu.attach(self.host)
        self.free = list(range(layout.blocks))
        random.Random(id(ring)).shuffle(self.free)

    def take(self, count: int) -> list[int]:
        """Take blocks, wherever there is room."""
        if count > len(self.free):
            raise SystemExit(f"{count} blocks are wanted, {len(self.free)} are free")
        taken, self.free = self.free[:count], self.free[count:]
        return taken

    async def to_host(self) -> None:
        await self._copy(self.host, self.memory)

    async def from_host(self) -> None:
        await self._copy(self.memory, self.host)

    async def _copy(self, to: sluice.Buffer, source: sluice.Buffer) -> None:
        if not self.gpu:
            return
        batch = sluice.Batch(1)
        batch.fault_in()
        batch.copy(to[:self.layout.size], source[:self.layout.size])
        await self.gpu.submit(batch)

    def write(self, request: int, blocks: list[int]) -> None:
        """Write what the model computed to the host's copy."""
        for tensor, place in self._tensors(blocks):
            numpy.frombuffer(place, numpy.uint32)[:] = computed(
                request, tensor, self.layout.block_bytes)

    def wrong(self, request: int, blocks: list[int]) -> int:
        """The number of tensors that differ from what the model computed."""
        return sum(not numpy.array_equal(numpy.frombuffer(place, numpy.uint32),
                                         computed(request, tensor,
                                                  self.layout.block_bytes))
                   for tensor, place in self._tensors(blocks))

    def _tensors(self, blocks: list[int]) -> list[tuple[int, sluice.Slice]]:
        """Each tensor, block by block, with its number in the request. Adjacent ones are
        one part of the cache."""
        size = self.layout.block_bytes
        each = [self.layout.parts(self.host, [block]) for block in blocks]
        tensors = [[part[at:at + size] for part in parts for at in range(0, len(part), size)]
                   for parts in each]
        return list(enumerate(itertools.chain(*tensors)))


def computed(request: int, tensor: int, size: int) -> "numpy.typing.NDArray[numpy.uint32]":
    """As good as random, and equal at both ends."""
    words = numpy.arange(size // 4, dtype=numpy.uint32)
    return (words + numpy.uint32(request * 65537 + tensor)) * numpy.uint32(2654435761)


async def prefill(args: argparse.Namespace, ring: sluice.Context, nic: sluice.Nic,
                  cache: Cache) -> None:
    peer = await nic.connect(args.host, args.port, timeout=args.timeout)
    sender = sluice.Sender(peer, gpu=cache.gpu)
    for request in range(args.requests):
        blocks = cache.take(args.blocks)
        cache.write(request, blocks)
        await cache.from_host()
        report = await sender.send(cache.layout.name(args.blocks),
                                   cache.layout.parts(cache.memory, blocks))
        tell(request, report)
        cache.free += blocks
    await sender.finish()


async def decode(args: argparse.Namespace, ring: sluice.Context, nic: sluice.Nic,
                 cache: Cache) -> None:
    with nic.listen(port=args.port) as door:
        print(f"listening on port {door.port}", flush=True)
        peer = await asyncio.wait_for(door.accept(), args.timeout)
    receiver = sluice.Receiver(peer, gpu=cache.gpu)
    request = 0
    while offer := await receiver.next():
        cache.layout.check(offer, args.blocks)
        blocks = cache.take(args.blocks)
        report = await receiver.receive(cache.layout.parts(cache.memory, blocks))
        await cache.to_host()
        if wrong := cache.wrong(request, blocks):
            raise SystemExit(f"request {request}: {wrong} tensors are wrong")
        tell(request, report)
        cache.free += blocks
        request += 1
    print(f"{request} requests, every tensor as it was computed")


def tell(request: int, report: sluice.Report) -> None:
    path, = report.bytes_by_path
    print(f"request {request}: {report.bytes} bytes in {report.pieces} pieces by "
          f"{path}, {report.total:.3f} s", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.
                                     RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["prefill", "decode"])
    parser.add_argument("--host", default="localhost", help="where decode listens")
    parser.add_argument("--port", type=int, default=7480)
    parser.add_argument("--nic", help="RDMA device, if there are several")
    parser.add_argument("--gpu", help="index or PCI address; else host memory")
    parser.add_argument("--model", choices=MODELS, default="8b")
    parser.add_argument("--requests", type=int, default=3)
    parser.add_argument("--blocks", type=int, default=8, help="of a request")
    parser.add_argument("--room", type=int, default=32, help="blocks of the cache")
    parser.add_argument("--timeout", type=float, default=60, help="for a peer, seconds")
    args = parser.parse_args()
    layers, block_bytes = MODELS[args.model]
    layout = sluice.KVLayout(layers=layers, blocks=args.room, block_bytes=block_bytes)
    ring = sluice.Context()
    nic = sluice.Nic(ring, args.nic)
    cache = Cache(ring, layout, sluice.Device(ring, args.gpu) if args.gpu else None)
    await {"prefill": prefill, "decode": decode}[args.role](args, ring, nic, cache)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        try:
            asyncio.run(main())
        except sluice.Error as why:
            raise SystemExit(f"kv_transfer: {why}") from why
