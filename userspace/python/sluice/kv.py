# SPDX-License-Identifier: MIT
"""Blocks of a KV cache, as a server of language models moves them from where prompts are
read (prefill) to where answers are written (decode).

The other end may be C++ (sluice/kv.hpp) or `sluice kv`: names and order are the same.
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass

from .errors import ProtocolError
from .memory import Buffer, Memory, Slice
from .stream import Offer


@dataclass(frozen=True, slots=True)
class KVLayout:
    """Where the parts of a block are. Block b of plane p of layer l begins at
    (l * planes + p) * plane_stride + b * block_stride, in bytes.

    layers, planes    planes: K and V; 1 where they are together
    blocks            in each plane
    block_bytes       of a block in one plane
    block_stride      0: block_bytes, one behind the other
    plane_stride      0: blocks * block_stride
    ValueError names what does not fit.
    """

    layers: int
    blocks: int
    block_bytes: int
    planes: int = 2
    block_stride: int = 0
    plane_stride: int = 0

    def __post_init__(self) -> None:
        if min(self.layers, self.planes, self.blocks, self.block_bytes) < 1:
            raise ValueError("layers, planes, blocks and their bytes must not be 0")
        if self._block_stride < self.block_bytes:
            raise ValueError(f"a block of {self.block_bytes} bytes each "
                             f"{self._block_stride} bytes overlaps")
        if self._plane_stride < self._plane_bytes:
            raise ValueError(f"a plane of {self._plane_bytes} bytes each "
                             f"{self._plane_stride} bytes overlaps")

    @property
    def _block_stride(self) -> int:
        return self.block_stride or self.block_bytes

    @property
    def _plane_stride(self) -> int:
        return self.plane_stride or self.blocks * self._block_stride

    @property
    def _plane_bytes(self) -> int:
        return (self.blocks - 1) * self._block_stride + self.block_bytes

    @property
    def bytes_each(self) -> int:
        """Of one block in all planes and layers: what is sent of it."""
        return self.layers * self.planes * self.block_bytes

    @property
    def size(self) -> int:
        """Bytes that a cache has at least."""
        return (self.layers * self.planes - 1) * self._plane_stride + self._plane_bytes

    def name(self, count: int) -> str:
        """What the receiver of so many blocks is told: the shape."""
        return (f"kv {self.layers} layers, {self.planes} planes, {count} blocks of "
                f"{self.block_bytes} bytes")

    def parts(self, cache: Memory, blocks: Sequence[int]) -> list[Slice]:
        """The memory of these blocks, layer by layer, each plane for itself, in this
        order: a source of Sender.send(), or a sink of Receiver.receive(), where a block
        may be named once. Neighbours become one."""
        if len(cache) < self.size:
            raise ValueError(f"the layout has {self.size} bytes, the memory {len(cache)}")
        for block in blocks:
            if not 0 <= block < self.blocks:
                raise ValueError(f"block {block} is none of {self.blocks}")
        buffer, base = (cache, 0) if isinstance(cache, Buffer) else \
            (cache.buffer, cache.offset)
        ranges: list[list[int]] = []    # offset and length
        for plane in range(self.layers * self.planes):
            for block in blocks:
                at = base + plane * self._plane_stride + block * self._block_stride
                if ranges and sum(ranges[-1]) == at:
                    ranges[-1][1] += self.block_bytes
                else:
                    ranges.append([at, self.block_bytes])
        return [Slice(buffer, offset, length) for offset, length in ranges]

    def check(self, offer: Offer, count: int) -> None:
        """Is it that of so many blocks of this shape? The strides and the size of the
        cache may differ. ProtocolError says both shapes."""
        wanted = Offer(self.name(count), self.bytes_each * count)
        if offer != wanted:
            raise ProtocolError(
                errno.EPROTO, f'KV cache: "{offer.name}" of {offer.bytes} bytes is '
                f'offered, "{wanted.name}" of {wanted.bytes} is wanted',
                where="KV cache", remedy="configure both ends alike")
