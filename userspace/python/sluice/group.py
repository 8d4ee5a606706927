# SPDX-License-Identifier: MIT
"""Collectives: GPUs of one host exchange data by their SDMA engines alone."""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ._binding import ffi, lib
from ._handle import OnRing, Ring, made, nanoseconds, options, positive
from .context import Context, Operation
from .device import Device
from .errors import checked
from .memory import Memory, array_of, plain_slice, slice_of, slices_of
from .processes import Processes


class Variant(enum.IntEnum):
    """How the data of a collective move. The names are DMA-Latte's (arXiv
    2511.06605)."""

    AUTOMATIC = lib.SLUICE_VARIANT_AUTOMATIC
    """the fastest for this operation and size"""
    PCPY = lib.SLUICE_VARIANT_PCPY
    """a copy for each destination, each on its own engine"""
    BCST = lib.SLUICE_VARIANT_BCST
    """the same bytes to two destinations by one packet"""
    SWAP = lib.SLUICE_VARIANT_SWAP
    """two ranks exchange memory in place, by one packet"""
    B2B = lib.SLUICE_VARIANT_B2B
    """copies back to back on one engine"""


@dataclass(frozen=True, slots=True)
class Message:
    """Data that one rank sends to another, or to itself: memory of one size."""

    from_: int
    """rank"""
    to: int
    """rank"""
    target: Memory
    source: Memory


def slices_of_ranks(memory: Sequence[Memory], ranks: int, of: str) -> Any:
    """Slices for C, one for each rank of `of`."""
    if len(memory) != ranks:
        raise ValueError(f"memory of {len(memory)} ranks, {of} has {ranks}")
    return slices_of(memory)


def _moved_by(raw: Any, rank: int) -> int:
    moved = ffi.new("uint64_t *")
    checked(lib.sluice_collective_of(raw, rank, moved))
    return int(moved[0])


class CollectiveRun(Operation[int]):
    """A run of a collective: Collective.run(). Value: the bytes that all ranks have
    moved. It is done when all ranks are, and raises the error of the first rank that
    has one, with that rank as index. If another process does not tell how its part
    ended within the `patience` of Processes, the error is DeadlineError. With several
    processes, it hears of the others only while somebody awaits it, waits for it, or polls
    it."""

    __slots__ = ("_moved", "_ranks")

    def __init__(self, ring: Ring, raw: Any, ranks: int) -> None:
        """From a handle of the C API: not for users."""
        moved: list[int] = []

        def take(value: int) -> int:
            # It is closed after this. This function must not refer to the run, which
            # would keep itself.
            moved.extend(_moved_by(raw, rank) for rank in range(ranks))
            return value

        super().__init__(ring, raw, take)
        self._ranks = ranks
        self._moved = moved

    def of(self, rank: int) -> int:
        """The bytes that a rank has moved to others, or its error; InProgressError while
        it is running."""
        if not 0 <= rank < self._ranks:
            raise ValueError(f"rank {rank}, it has {self._ranks}")
        return self._moved[rank] if self._taken else _moved_by(self._raw, rank)


class Collective(OnRing):
    """A collective of a Group, prepared to run often. It may outlive the group, and keeps
    the memory that it names."""

    __slots__ = ("_ranks",)

    def __init__(self, ring: Ring, raw: Any, ranks: int) -> None:
        """From a handle of the C API: not for users."""
        self._own(ring, raw, lib.sluice_collective_free)
        self._ranks = ranks

    def run(self) -> CollectiveRun:
        """Start on all GPUs with one system call.

        Runs are not ordered: wait for one before you start another that uses its memory. A
        prelaunched collective can have one run in flight: BusyError. StaleError if memory
        was unmapped.
        """
        self._home.may_start()
        raw = made("operation", lib.sluice_collective_run, self._raw)
        return CollectiveRun(self._home, raw, self._ranks)

    def release(self) -> None:
        """Let a prelaunched run begin: a store to memory. What the CPU or a card writes to
        video memory must be there before run()."""
        checked(lib.sluice_collective_release(self._raw))

    @property
    def variant(self) -> Variant:
        """The variant in use; never AUTOMATIC."""
        return Variant(checked(lib.sluice_collective_variant(self._raw)))

    @property
    def bytes(self) -> int:
        """What a run moves, over all ranks: each destination counts, and swaps twice."""
        return int(lib.sluice_collective_bytes(self._raw))


class Group(OnRing):
    """GPUs of this host, opened on one context: 1 to 8. The position of a GPU is its rank.

    Each operation is prepared, and then run by Collective.run(). Memory may be of any
    kind, and is attached to the GPUs that use it. Sequences have one entry per rank. A
    block is what one rank has for another; blocks are in the order of ranks.

    how        UsageError if the operation does not have this variant
    prelaunch  let the engines hold a run until Collective.release()
    hold       seconds that they hold it, and up to 25 times as many at a low clock;
    then the run raises DeadlineError. None: Limits.wait
    UsageError: sizes that differ, memory that overlaps other than described; its index is
    the rank at fault. UnsupportedError on a kernel that cannot prepare batches.
    """

    __slots__ = ()

    def __init__(self, context: Context, gpus: Sequence[Device]) -> None:
        handles = ffi.new("sluice_device *[]", [gpu._raw for gpu in gpus])
        raw = made("group", lib.sluice_group_create, context._raw, handles, len(gpus))
        self._own(context._home, raw, lib.sluice_group_free)

    @classmethod
    def shared(cls, gpu: Device, processes: Processes) -> Self:
        """A group whose ranks are processes.

        Each process calls the same methods in the same order, with memory of the same
        sizes in the same places. An argument for the memory of a rank takes a part of the
        buffer that Processes.exchange() returned for it. Preparing a collective waits for
        all; run() waits for none, and writes to the others' memory: Processes.barrier()
        tells that they expect it. One run is in flight at a time. A rank that ends is
        PeerLostError for the others, and they are told of one that cannot prepare. They are
        not told of errors that Python itself finds (a number of ranks, closed memory): they
        wait. UsageError while a chain is open. Either all have the collective, or none,
        except after the errors that Processes names.

        gpu: of this process, opened on the context of `processes`.
        """
        group = cls.__new__(cls)
        raw = made("group", lib.sluice_group_create_shared, gpu._raw, processes._raw)
        group._own(gpu._home, raw, lib.sluice_group_free)
        return group

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return int(lib.sluice_group_ranks(self._raw))

    def all_gather(self, to: Sequence[Memory], from_: Sequence[Memory], *,
                   how: Variant = Variant.AUTOMATIC, prelaunch: bool = False,
                   hold: float | None = None) -> Collective:
        """Copy each rank's block to its place in the memory of each rank.
        In place: from_[r] may be block r of to[r]. Variants PCPY, BCST, B2B."""
        return self._prepare(lib.sluice_group_all_gather, self._each(to),
                             self._each(from_), how=how, prelaunch=prelaunch, hold=hold)

    def all_to_all(self, to: Sequence[Memory], from_: Sequence[Memory], *,
                   how: Variant = Variant.AUTOMATIC, prelaunch: bool = False,
                   hold: float | None = None) -> Collective:
        """Copy block j of rank i to block i of rank j.
        In place: both may be the same for all ranks, then SWAP; else PCPY, B2B."""
        return self._prepare(lib.sluice_group_all_to_all, self._each(to),
                             self._each(from_), how=how, prelaunch=prelaunch, hold=hold)

    def broadcast(self, root: int, memory: Sequence[Memory], *,
                  how: Variant = Variant.AUTOMATIC, prelaunch: bool = False,
                  hold: float | None = None) -> Collective:
        """Copy the root's memory to that of all others: always in place.
        Variants PCPY, BCST, B2B."""
        return self._prepare(lib.sluice_group_broadcast, root, self._each(memory),
                             how=how, prelaunch=prelaunch, hold=hold)

    def gather(self, root: int, to: Memory, from_: Sequence[Memory], *,
               how: Variant = Variant.AUTOMATIC, prelaunch: bool = False,
               hold: float | None = None) -> Collective:
        """Copy each rank's block to its place in the memory of the root.
        In place: from_[root] may be its block. Variants PCPY, B2B."""
        return self._prepare(lib.sluice_group_gather, root, slice_of(to),
                             self._each(from_), how=how, prelaunch=prelaunch, hold=hold)

    def scatter(self, root: int, to: Sequence[Memory], from_: Memory, *,
                how: Variant = Variant.AUTOMATIC, prelaunch: bool = False,
                hold: float | None = None) -> Collective:
        """Copy each block of the root's memory to its rank.
        In place: to[root] may be its block. Variants PCPY, B2B."""
        return self._prepare(lib.sluice_group_scatter, root, self._each(to),
                             slice_of(from_), how=how, prelaunch=prelaunch, hold=hold)

    def send(self, messages: Sequence[Message], *, how: Variant = Variant.AUTOMATIC,
             prelaunch: bool = False, hold: float | None = None) -> Collective:
        """Any number of messages, which may have different sizes: sends, with their
        receives. Variants PCPY, B2B."""
        all_ = array_of("message", [
            (m.from_, m.to, plain_slice(m.target), plain_slice(m.source))
            for m in messages])
        return self._prepare(lib.sluice_group_send, all_, len(messages), how=how,
                             prelaunch=prelaunch, hold=hold)

    def _each(self, memory: Sequence[Memory]) -> Any:
        return slices_of_ranks(memory, self.ranks, "the group")

    def _prepare(self, function: Callable[..., int], *what: Any, how: Variant,
                 prelaunch: bool, hold: float | None) -> Collective:
        positive("hold", hold)
        flags = lib.SLUICE_COLLECTIVE_PRELAUNCH if prelaunch else 0
        wanted = options("collective_options", variant=how, flags=flags,
                         hold_ns=nanoseconds(hold))
        raw = made("collective", function, self._raw, *what, wanted)
        return Collective(self._home, raw, self.ranks)
