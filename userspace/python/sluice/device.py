# SPDX-License-Identifier: MIT
"""GPUs, and batches for their SDMA engines."""

import enum
import operator
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, SupportsIndex

from ._binding import ffi, lib
from ._handle import (Bound, File, Integers, OnRing, Ring, c_string, fileno, home_of_thread,
                      integers, made, nanoseconds, options, unsigned, values)
from .context import Context, Operation, same, start
from .errors import checked
from .memory import Buffer, Memory, slice_of, slices_of


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """Properties of a GPU. Sizes in bytes."""

    address: str
    """PCI: "0000:03:00.0\""""
    render_node: str
    """"/dev/dri/renderD128\""""
    product: str
    """"gfx942\""""
    numa_node: int
    """-1: not known"""
    kfd_id: int
    """amdkfd's gpu_id; 0: unknown to amdkfd"""
    vram_bytes: int
    visible_vram_bytes: int
    """within the CPU's reach"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a GPU and this kernel can do in one batch."""

    operations: int
    broadcast: int
    """destinations of one broadcast"""
    engines: int
    """mask of engines for batches"""
    wait_engines: int
    """of those, for batches with waits"""
    bytes: int
    """moved by one batch"""
    queued_bytes: int
    """in flight on one engine"""
    wait: float
    """seconds: all waits of a batch together"""
    fences: int
    """that a batch may begin after"""
    prepared: bool
    """batches can be prepared"""
    ring: bool
    """batches go by the ring"""
    user_memory: bool
    """host memory can be named"""
    svm: bool
    """SVM memory can be named"""
    command: bool
    """batches go by AMDGPU_CS: the kernel has no better way"""


@dataclass(frozen=True, slots=True)
class Counters:
    """Pages of this process that migrated since the GPU was opened."""

    migrated_in: int
    """to video memory"""
    migrated_out: int
    """back to the host"""
    lost_events: int
    """not 0: the two above are lower bounds"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a batch did."""

    engines: int
    """mask of engines that it was given to"""
    vram_bytes: int
    """read and written in the GPU's own memory"""
    system_bytes: int
    """the same in the host's memory"""
    peer_bytes: int
    """the same in other devices' memory"""


class Compare(enum.IntEnum):
    """How Batch.wait() compares."""

    EQUAL = lib.SLUICE_EQUAL
    NOT_EQUAL = lib.SLUICE_NOT_EQUAL
    GREATER_EQUAL = lib.SLUICE_GREATER_EQUAL
    LESS_EQUAL = lib.SLUICE_LESS_EQUAL


class Place(enum.IntEnum):
    """How a batch is spread over engines: as the policy decides, back to back on one, or
    in equal shares on all allowed ones."""

    AUTOMATIC = lib.SLUICE_PLACE_AUTOMATIC
    ONE_ENGINE = lib.SLUICE_PLACE_ONE_ENGINE
    FAN_OUT = lib.SLUICE_PLACE_FAN_OUT


class Hint(enum.IntEnum):
    """What matters for a batch: its end, bytes per second, or other batches. BACKGROUND is
    one engine at low priority: it gets the batch when no batch of another priority, from
    any process, is ready."""

    LATENCY = lib.SLUICE_HINT_LATENCY
    BANDWIDTH = lib.SLUICE_HINT_BANDWIDTH
    BACKGROUND = lib.SLUICE_HINT_BACKGROUND


class RecordStatus(enum.IntEnum):
    """The result of an operation of a batch. SKIPPED: after a wait that gave up."""

    DONE = lib.SLUICE_RECORD_DONE
    SKIPPED = lib.SLUICE_RECORD_SKIPPED
    FAILED = lib.SLUICE_RECORD_FAILED


@dataclass(frozen=True, slots=True)
class Record:
    """What an engine recorded of an operation: 64 bytes, see Batch.record()."""

    start: int
    """GPU clock counter"""
    end: int
    status: RecordStatus | None
    """None: nothing recorded yet"""
    engine: int
    """its instance"""

    @classmethod
    def read(cls, memory: Memory) -> Self:
        """Read it from memory that the CPU reaches."""
        begun, end, status, engine = struct.unpack_from("=Q24xQII", memory)
        return cls(begun, end, RecordStatus(status) if status else None, engine)


def _each(sizes: Integers | SupportsIndex, count: int) -> Integers:
    """One number applies to all."""
    try:
        return [operator.index(sizes)] * count      # type: ignore[arg-type]
    except TypeError:
        return sizes        # type: ignore[return-value]


class Batch(Bound):
    """Operations for the SDMA engines, to be run together. They run in any order and in
    parallel, except that a wait, a signal (write, add), or an operation after a barrier
    begins after all operations before it have ended.

    expected: how many operations it has room for; more may be added

    It keeps the buffers that it names. It can be submitted again, or changed, once the
    previous operation is done. The first mistake is raised at once, and by all that is
    added later, by submit and by prepare, with the index of the operation at fault;
    clear() forgets it. It belongs to the thread that made it.
    """

    __slots__ = ()

    def __init__(self, expected: int = 0) -> None:
        self._own(home_of_thread(), made("batch", lib.sluice_batch_create, expected),
                  lib.sluice_batch_free)

    def clear(self) -> None:
        """Empty it, to be filled again."""
        checked(lib.sluice_batch_clear(self._raw))

    def copy(self, to: Memory, from_: Memory) -> None:
        """Copy. Both have the same length, at any alignment."""
        checked(lib.sluice_batch_copy(self._raw, slice_of(to), slice_of(from_)))

    def copy_many(self, to: Memory, to_offsets: Integers, from_: Memory,
                  from_offsets: Integers, sizes: Integers | SupportsIndex) -> None:
        """Many copies from one memory to another, each an operation: sizes[i] bytes at
        from_offsets[i] of the source go to to_offsets[i] of the target.

        The arrays have the same length. NumPy's uint64 and array("Q") are used directly,
        other integers are copied. sizes: one number applies to all. UsageError, with the
        index that the faulty one would have in the batch: none is added then.
        """
        there, here = integers("uint64_t", to_offsets), integers("uint64_t", from_offsets)
        count = len(there)
        each = integers("uint64_t", _each(sizes, count))
        if len(here) != count or len(each) != count:
            raise ValueError(f"{count} offsets to copy to, {len(here)} to copy from, and "
                             f"{len(each)} sizes")
        checked(lib.sluice_batch_copy_many(self._raw, slice_of(to), there,
                                           slice_of(from_), here, each, count))

    def gather(self, to: Memory, parts: Sequence[Memory]) -> None:
        """Copy scattered parts to one memory, one after the other. Each part is an
        operation; together they have as many bytes as `to`."""
        checked(lib.sluice_batch_gather(self._raw, slice_of(to), slices_of(parts),
                                        len(parts)))

    def scatter(self, parts: Sequence[Memory], from_: Memory) -> None:
        """The reverse of gather()."""
        checked(lib.sluice_batch_scatter(self._raw, slices_of(parts), len(parts),
                                         slice_of(from_)))

    def swap(self, a: Memory, b: Memory) -> None:
        """Exchange the bytes of both, which have the same length."""
        checked(lib.sluice_batch_swap(self._raw, slice_of(a), slice_of(b)))

    def copy_rectangle(self, to: Memory, from_: Memory, *, row_bytes: int, rows: int,
                       to_pitch: int, from_pitch: int) -> None:
        """Copy rows. The first one is at the beginning of both spans.

        row_bytes: bytes of a row. pitch: bytes from one row to the next.
        UsageError if there are no rows, if they overlap because a pitch is less than
        row_bytes, or if the last one ends outside of its memory.
        """
        shape = options("rectangle", row_bytes=row_bytes, rows=rows, to_pitch=to_pitch,
                        from_pitch=from_pitch)
        checked(lib.sluice_batch_copy_rectangle(self._raw, slice_of(to),
                                                slice_of(from_), shape))

    def broadcast(self, to: Sequence[Memory], from_: Memory) -> None:
        """Copy the same bytes to 2 to 8 destinations of the same length."""
        checked(lib.sluice_batch_broadcast(self._raw, slices_of(to), len(to),
                                           slice_of(from_)))

    def fill(self, to: Memory, value: int) -> None:
        """Fill with the 32 bits of value, repeated. The memory may have any length but 0,
        and any alignment."""
        checked(lib.sluice_batch_fill(self._raw, slice_of(to),
                                      unsigned("value", value, 32)))

    def wait(self, word: Memory, how: Compare, value: int, *, mask: int = 0xffffffff,
             limit: float) -> None:
        """Wait until (the 32 bits at word & mask) compare to value as `how` says.

        word: 4 bytes, at a multiple of 4
        value: has no bits outside of mask
        limit: seconds, above 0; after that the batch's operation raises DeadlineError (not
        before, and up to 25 times as late if the engine's clock is low), and operations
        after the wait do not run.
        """
        checked(lib.sluice_batch_wait(self._raw, slice_of(word), how,
                                      unsigned("value", value, 32),
                                      unsigned("mask", mask, 32),
                                      unsigned("limit", nanoseconds(limit) or 0, 63)))

    def write(self, word: Memory, value: int) -> None:
        """Signal: write 64 bits, after all earlier operations. word: 8 bytes, at a
        multiple of 8."""
        checked(lib.sluice_batch_write(self._raw, slice_of(word),
                                       unsigned("value", value)))

    def add(self, word: Memory, value: int) -> None:
        """Signal: add to 64 bits atomically, after all earlier operations. word: 8 bytes,
        at a multiple of 8."""
        checked(lib.sluice_batch_add(self._raw, slice_of(word),
                                     unsigned("value", value)))

    def barrier(self) -> None:
        """The next operation begins after all before it have ended."""
        checked(lib.sluice_batch_barrier(self._raw))

    def record(self, where: Memory) -> None:
        """Have a Record of the next operation written to these 64 bytes, which are at a
        multiple of 32."""
        checked(lib.sluice_batch_record(self._raw, slice_of(where)))

    def fault_in(self, yes: bool = True) -> None:
        """Bring SVM memory that the engine cannot reach to where it can. Without this,
        such memory is an error."""
        checked(lib.sluice_batch_fault_in(self._raw, yes))

    def place(self, how: Place, engines: int = 0) -> None:
        """How to spread it. engines: mask of the allowed ones; 0: all."""
        checked(lib.sluice_batch_place(self._raw, how,
                                       unsigned("engines", engines, 32)))

    def hint(self, how: Hint) -> None:
        """Choose the placement, which place() can change again, and the priority. Batches
        of different priorities are not ordered."""
        checked(lib.sluice_batch_hint(self._raw, how))

    def after(self, sync_file: File) -> None:
        """Begin when the fence of a sync_file has signaled. The file may then be closed. At
        most Limits.fences of them."""
        checked(lib.sluice_batch_after(self._raw, fileno(sync_file)))

    def nonblocking(self, yes: bool = True) -> None:
        """Raise BusyError instead of waiting for room."""
        checked(lib.sluice_batch_nonblocking(self._raw, yes))

    def __len__(self) -> int:
        """How many operations it has."""
        return int(lib.sluice_batch_count(self._raw))

    @property
    def bytes(self) -> int:
        """How many bytes its operations move, each destination counted."""
        return int(lib.sluice_batch_bytes(self._raw))

    @property
    def outcome(self) -> Outcome:
        """The outcome of the last submission, once its operation is done."""
        return Outcome(**values("outcome", lib.sluice_batch_outcome, self._raw))


class Prepared(OnRing):
    """A batch that was checked and built, to run often: Device.prepare()."""

    __slots__ = ()

    def __init__(self, ring: Ring, raw: Any) -> None:
        """From a handle of the C API: not for users."""
        self._own(ring, raw, lib.sluice_prepared_free)

    def run(self) -> Operation[int]:
        """Run it, at most 64 runs at once. They may overtake each other: wait for a run
        before the next one if their order matters. Value: bytes moved.
        StaleError if a mapping that it names has changed: prepare it again."""
        return start(self._home, same, None, lib.sluice_prepared_run, self._raw)

    @property
    def bytes(self) -> int:
        """How many bytes one run moves."""
        return int(lib.sluice_prepared_bytes(self._raw))


class Device(OnRing):
    """A GPU of amdgpu.

    name: a PCI address, "0000:03:00.0", or an index, 0
    DeviceError if there is no such GPU, the user may not open it, or something else in the
    process has its address space. HIP in the same process must be initialised first.
    """

    __slots__ = ()

    def __init__(self, context: Context, name: str | int = 0) -> None:
        raw = made("device", lib.sluice_device_open, context._raw, c_string(str(name)))
        self._own(context._home, raw, lib.sluice_device_close)

    @property
    def info(self) -> DeviceInfo:
        """Its properties."""
        return DeviceInfo(**values("device_info", lib.sluice_device_get_info, self._raw))

    @property
    def limits(self) -> Limits:
        """What it and this kernel can do in one batch."""
        it = values("limits", lib.sluice_device_limits, self._raw)
        flags = it.pop("flags")
        return Limits(wait=it.pop("wait_ns") / 1e9,
                      prepared=bool(flags & lib.SLUICE_LIMIT_PREPARED),
                      ring=bool(flags & lib.SLUICE_LIMIT_RING),
                      user_memory=bool(flags & lib.SLUICE_LIMIT_USER_MEMORY),
                      svm=bool(flags & lib.SLUICE_LIMIT_SVM),
                      command=bool(flags & lib.SLUICE_LIMIT_COMMAND), **it)

    @property
    def counters(self) -> Counters:
        """Pages of this process that migrated. UnsupportedError without amdkfd."""
        return Counters(**values("counters", lib.sluice_device_counters, self._raw))

    def vram(self, size: int) -> Buffer:
        """Zeroed video memory. size: bytes; whole pages. DeviceError if there is not
        enough."""
        return Buffer(made("buffer", lib.sluice_device_vram, self._raw,
                           unsigned("size", size)))

    def svm(self, size: int, *, stay: bool = False) -> Buffer:
        """Memory of the process that this GPU shares, and that prefers its video
        memory. stay: do not move it there now. UnsupportedError without amdkfd's SVM, or
        where batches go through AMDGPU_CS; DeviceError if not all of it gets to video
        memory."""
        flags = lib.SLUICE_SVM_STAY if stay else 0
        return Buffer(made("buffer", lib.sluice_device_svm, self._raw,
                           unsigned("size", size), flags))

    def import_dmabuf(self, dmabuf: File) -> Buffer:
        """Memory of another process or driver. The descriptor remains the caller's, who
        may then close it. UsageError if it is not a dma-buf; DeviceError if the GPU cannot
        reach it."""
        return Buffer(made("buffer", lib.sluice_device_import, self._raw, fileno(dmabuf)))

    def attach(self, buffer: Buffer) -> None:
        """Let this GPU's engines reach a host, SVM or another GPU's buffer, where it is,
        for the life of the buffer. A second call does nothing.

        DeviceError if the driver refuses; UnsupportedError for SVM memory where amdkfd
        shares none with this GPU, or where batches go by AMDGPU_CS (Limits.command).
        """
        checked(lib.sluice_device_attach(self._raw, buffer._raw))

    def prefetch(self, memory: Memory) -> None:
        """Move SVM memory to video memory: all pages that it touches. The call waits for
        that, and tries for about a second.

        UsageError if it is not SVM memory; DeviceError if pages stay behind, because they
        are in use or there is no room.
        """
        checked(lib.sluice_device_prefetch(self._raw, slice_of(memory)))

    def bring_back(self, memory: Memory) -> None:
        """Move SVM memory back to the host. Like prefetch()."""
        checked(lib.sluice_device_bring_back(self._raw, slice_of(memory)))

    def submit(self, batch: Batch) -> Operation[int]:
        """Run a batch. Value: the bytes that it moves.

        Errors have the index of the failing operation of the batch where it is known:
        UsageError, UnsupportedError (this kernel or GPU lacks the operation), BusyError
        (too much in flight), DeadlineError (a wait gave up), DeviceError (a hang or a
        reset), StaleError, OperationCancelledError.
        """
        return start(self._home, same, batch, lib.sluice_device_submit, self._raw,
                     batch._raw)

    def prepare(self, batch: Batch) -> Prepared:
        """Check a batch and build its packets once, to run it often. The batch may then be
        freed or changed. UnsupportedError on a kernel without batches; UsageError if it
        begins after fences, which signal only once; BusyError if the process has 256
        prepared batches on this GPU."""
        raw = made("prepared", lib.sluice_device_prepare, self._raw, batch._raw)
        return Prepared(self._home, raw)


def devices() -> list[DeviceInfo]:
    """All GPUs of amdgpu, in order of address: the index is a name for Device."""
    count = ffi.new("uint32_t *")
    checked(lib.sluice_device_count(count))
    return [DeviceInfo(**values("device_info", lib.sluice_device_info_at, index))
            for index in range(count[0])]
