# SPDX-License-Identifier: MIT
"""Blocks of a KV cache, as a server of language models moves them from prefill, which
reads prompts, to decode, which writes answers.

The other end may be C++ (sluice/kv.hpp) or `sluice kv`: names and order are the same.
"""

from dataclasses import dataclass
from typing import Any

from ._binding import ffi, lib
from ._handle import Integers, integers, options, values
from .errors import checked
from .memory import Buffer, Memory, Slice, slice_of
from .stream import Offer


@dataclass(frozen=True, slots=True)
class KVLayout:
    """Where the parts of a block are. Block b of plane p of layer l begins at
    (l * planes + p) * plane_stride + b * block_stride, in bytes.

    layers, planes    planes: K and V; 1 where they are together
    blocks            in each plane
    block_bytes       of a block in one plane
    block_stride      0: block_bytes, one after the other
    plane_stride      0: blocks * block_stride
    UsageError names the impossible value.
    """

    layers: int
    blocks: int
    block_bytes: int
    planes: int = 2
    block_stride: int = 0
    plane_stride: int = 0

    def __post_init__(self) -> None:
        _ = self.size

    def _raw(self) -> Any:
        """A struct sluice_kv_layout, for the duration of a call."""
        return options("kv_layout", layers=self.layers, blocks=self.blocks,
                       block_bytes=self.block_bytes, planes=self.planes,
                       block_stride=self.block_stride, plane_stride=self.plane_stride)

    @property
    def bytes_each(self) -> int:
        """Of one block in all planes and layers: the bytes that are sent."""
        return self.layers * self.planes * self.block_bytes

    @property
    def size(self) -> int:
        """The least number of bytes of a cache."""
        size = ffi.new("uint64_t *")
        checked(lib.sluice_kv_size(self._raw(), size))
        return int(size[0])

    def name(self, count: int) -> str:
        """The name that the receiver of that many blocks is told: the shape."""
        return str(values("offer", lib.sluice_kv_offer, self._raw(), count)["name"])

    def parts(self, cache: Memory, blocks: Integers, *, once: bool = False) -> list[Slice]:
        """The memory of these blocks, layer by layer and plane by plane, in this order: a
        source for Sender.send(), a sink for Receiver.receive(), or what Batch.gather() and
        Batch.scatter() copy. Adjacent parts are merged.

        once: no block may be named twice, as when they are written to. UsageError, with
        the index of the block at fault.
        """
        named = integers("uint32_t", blocks)
        what = (self._raw(), slice_of(cache), named, len(named),
                lib.SLUICE_KV_WRITE if once else lib.SLUICE_KV_READ)
        count = ffi.new("size_t *")
        checked(lib.sluice_kv_parts(*what, ffi.NULL, 0, count))
        parts = ffi.new("struct sluice_slice[]", count[0])
        checked(lib.sluice_kv_parts(*what, parts, count[0], count))
        buffer = cache if isinstance(cache, Buffer) else cache.buffer
        return [Slice(buffer, part.offset, part.length) for part in parts]

    def check(self, offer: Offer, count: int) -> None:
        """Check that it is an offer of that many blocks of this shape. The strides and the
        size of the cache may differ. ProtocolError names both shapes."""
        size = lib.SLUICE_UNKNOWN if offer.bytes is None else offer.bytes
        # names of ours are shorter than this cut
        offered = options("offer", name=offer.name.encode()[:255], bytes=size)
        checked(lib.sluice_kv_fits(self._raw(), count, offered))
