# SPDX-License-Identifier: MIT
"""Processes of one host with a GPU each, which together are the ranks of a group."""

import os

from ._binding import ffi, lib
from ._handle import OnRing, c_string, made, nanoseconds
from .context import Context
from .device import Device
from .errors import checked
from .memory import Buffer


class Processes(OnRing):
    """Processes of this host, each pair linked by a socket, through which video memory is
    passed as a dma-buf.

    Making it waits for the others, which are processes of the same user that can reach
    `path`.

    path      of a socket, which rank 0 makes; nothing may exist there yet; at most 107 bytes
    rank      of this process; 0 to `ranks` - 1
    ranks     how many processes there are, including this one; 2 to 8
    patience  seconds that this, and each later call, waits for others at most
    Rank 0 removes the socket when all have come, or when it gives up.
    Errors have the rank of the process at fault as index, if another one is at fault; while
    they meet, rank 0 tells the others who has not come, or was refused: the index is 0 then,
    and the message has the rank. PeerLostError: it has ended.
    DeadlineError: it has not arrived. ProtocolError: it makes another call than this one.
    DeniedError: it belongs to another user. Otherwise it is the error of that process.
    UsageError while a chain is open. Calls wait in C: Ctrl-C takes effect after them.

    A call succeeds in all processes, or fails in all. But one that comes after the patience
    of another one may succeed where that failed; and nobody is told of errors that Python
    itself finds. So after DeadlineError, PeerLostError, ProtocolError or those, all make
    the Processes, and groups of them, anew.
    """

    __slots__ = ()

    def __init__(self, context: Context, path: str | os.PathLike[str], rank: int, ranks: int,
                 *, patience: float = 30.0) -> None:
        if patience <= 0:
            raise ValueError(f"patience of {patience} seconds: there must be some")
        raw = made("processes", lib.sluice_processes_meet, context._raw,
                   c_string(os.fsencode(path)), rank, ranks, nanoseconds(patience))
        self._own(context._home, raw, lib.sluice_processes_free)

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return int(lib.sluice_processes_rank(self._raw))

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return int(lib.sluice_processes_ranks(self._raw))

    def exchange(self, gpu: Device, mine: Buffer) -> list[Buffer]:
        """Give video memory to all, and get theirs, by rank; this process's is `mine`. The
        memory lives as long as any process has it. All must make this call, at the same
        point. If one cannot give or take, all are told, and none gets anything, except
        after the errors named above.

        gpu: reaches the memory that it gets.
        UnsupportedError if `mine` is not video memory.
        """
        all_ = ffi.new("sluice_buffer *[]", self.ranks)
        checked(lib.sluice_processes_exchange(self._raw, gpu._raw, mine._raw, all_))
        return [Buffer(raw) for raw in all_]

    def barrier(self) -> None:
        """Wait until all have made this call."""
        checked(lib.sluice_processes_barrier(self._raw))
