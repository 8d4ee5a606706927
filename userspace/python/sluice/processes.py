# SPDX-License-Identifier: MIT
"""Processes of one host that have a GPU each, the ranks of a group together."""

import os

from ._binding import ffi, lib
from ._handle import OnRing, made, nanoseconds
from .context import Context
from .device import Device
from .errors import checked
from .memory import Buffer


class Processes(OnRing):
    """Processes of this host that are linked by a socket for each pair; video memory goes
    by it as a dma-buf.

    To make it waits for the others, which are processes of the same user, if they reach
    `path`.

    path      of a socket, which rank 0 makes, and removes in the end; there must be nothing
              yet
    rank      of this process; 0 to `ranks` - 1
    ranks     how many processes there are, this one too; 2 to 8
    patience  seconds that this, and each later call, waits for others at most
    What fails is said with the rank of the process at fault as index. PeerLostError: it has
    ended. DeadlineError: it has not come. ProtocolError: it is at another call than this
    one. DeniedError: it is another user's. Else it is the error that it had. UsageError
    while a chain is open. Calls wait in C: Ctrl-C is heard when they are over.
    """

    __slots__ = ()

    def __init__(self, context: Context, path: str | os.PathLike[str], rank: int, ranks: int,
                 *, patience: float = 30.0) -> None:
        if patience <= 0:
            raise ValueError(f"patience of {patience} seconds: there must be some")
        raw = made("processes", lib.sluice_processes_meet, context._raw, os.fsencode(path),
                   rank, ranks, nanoseconds(patience))
        self._own(context._home, raw, lib.sluice_processes_free)

    @property
    def rank(self) -> int:
        """Of this process."""
        return int(lib.sluice_processes_rank(self._raw))

    @property
    def ranks(self) -> int:
        """How many there are."""
        return int(lib.sluice_processes_ranks(self._raw))

    def exchange(self, gpu: Device, mine: Buffer) -> list[Buffer]:
        """Give video memory to all, and get theirs, by rank; this process's is `mine`. It
        lives as long as somebody has it. All must call this, each at its turn. If one
        cannot give or take, all hear it, and nobody has got anything.

        gpu: reaches what it gets.
        UnsupportedError if `mine` is no video memory.
        """
        all_ = ffi.new("sluice_buffer *[]", self.ranks)
        checked(lib.sluice_processes_exchange(self._raw, gpu._raw, mine._raw, all_))
        return [Buffer(raw) for raw in all_]

    def barrier(self) -> None:
        """Wait until all have come here."""
        checked(lib.sluice_processes_barrier(self._raw))
