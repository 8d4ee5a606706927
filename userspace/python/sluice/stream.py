# SPDX-License-Identifier: MIT
"""Streams: files or memory from one end of a connection to the other."""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ._binding import ffi, lib
from ._handle import (File, OnRing, c_string, fileno, made, nanoseconds, options, positive,
                      values)
from .context import Operation, nothing, start
from .device import Device
from .errors import text
from .memory import Buffer, Memory, Slice, slices_of
from .net import Endpoint


class DataPath(enum.IntEnum):
    """The way that bytes take between memory and the card, from the best to the slowest.
    """

    DEVICE_ALIAS = lib.SLUICE_PATH_DEVICE_ALIAS
    DEVICE_DMABUF = lib.SLUICE_PATH_DEVICE_DMABUF
    HOST = lib.SLUICE_PATH_HOST
    STAGED = lib.SLUICE_PATH_STAGED

    def __str__(self) -> str:
        return text(lib.sluice_path_name(self))


@dataclass(frozen=True, slots=True)
class Report:
    """What a stream did. Times are in seconds, and include waiting."""

    name: str
    bytes: int
    """moved by this stream"""
    resumed: int
    """were there already"""
    pieces: int
    bytes_by_path: dict[DataPath, int]
    """of this end; without paths that no byte took"""
    total: float
    """from before the offer to the last byte in place"""
    storage: float
    """reading or writing, summed over pieces"""
    engine: float
    """copies by the GPU's engines, summed"""
    wire: float
    """RDMA, or until a piece arrived, summed"""
    check: float
    """CRC and SHA-256"""
    grant_wait: float
    """waits of pieces for their grant, summed"""
    grant_waits: int
    """how many such waits"""
    migrated_in: int | None
    """pages to video memory, while it ran; None: not known"""
    migrated_out: int | None
    lost_events: int | None
    """not 0: the two above are lower bounds"""
    system_calls: int
    """of the ring, while it ran"""
    most_in_flight: int
    """pieces in flight at once"""
    sha256: str | None
    """hexadecimal, equal at both ends; None: not requested"""
    path_reason: str
    """why there is no better path; else empty"""
    pages_elsewhere: int
    """of pieces in host memory: not on numa_node"""
    numa_node: int | None
    """of the device that reaches these; None: it has none"""


@dataclass(frozen=True, slots=True)
class Offer:
    """What the sender wants to send."""

    name: str
    bytes: int | None
    """None: not known, as for a pipe"""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a stream."""

    bytes: int
    """in their place at the far end"""
    total: int | None
    """None: not known"""


def _report(it: dict[str, Any]) -> Report:
    flags = it.pop("flags")
    by_path = it.pop("bytes_by_path")
    if not flags & lib.SLUICE_REPORT_MIGRATIONS:
        it.update(migrated_in=None, migrated_out=None, lost_events=None)
    times = {name.removesuffix("_ns"): it.pop(name) / 1e9
             for name in list(it) if name.endswith("_ns")}
    digest = it.pop("sha256")
    if it["numa_node"] < 0:
        it["numa_node"] = None
    return Report(bytes_by_path={path: by_path[path] for path in DataPath
                                 if by_path[path]},
                  sha256=digest.hex() if flags & lib.SLUICE_REPORT_DIGEST else None,
                  **times, **it)


def _known(count: int) -> int | None:
    return None if count == lib.SLUICE_UNKNOWN else count


def _offer(raw: Any) -> Offer:
    it = values("offer", lib.sluice_receiver_offer, raw)
    return Offer(it["name"], _known(it["bytes"]))


def _stream_options(gpu: Device | None, piece: int | None, chunk: int | None,
                    pieces: int | None, patience: float | None,
                    require: DataPath | None, flags: int = 0) -> Any:
    for name, value in (("piece", piece), ("chunk", chunk), ("pieces", pieces),
                        ("patience", patience)):
        positive(name, value)
    return options("stream_options", gpu=gpu._raw if gpu else None, piece=piece,
                   chunk=chunk, pieces=pieces, patience_ns=nanoseconds(patience),
                   require=require, flags=flags)


def _set_place(it: Any, what: File | Memory | Sequence[Memory]) -> object:
    """Set where a source's data are, or where a sink's data go. What it points to must be
    kept during the call."""
    if isinstance(what, Buffer | Slice):
        what = [what]
    if not isinstance(what, Sequence):
        it.file = fileno(what)
        return None
    it.memory = parts = slices_of(what)
    it.count, it.file = len(what), -1
    return parts


class _End(OnRing):
    """What both ends have in common."""

    __slots__ = ()
    _kind: str

    def __init__(self, endpoint: Endpoint, wanted: Any) -> None:
        raw = made(self._kind, getattr(lib, f"sluice_{self._kind}_create"),
                   endpoint._raw, wanted)
        self._own(endpoint._home, raw, getattr(lib, f"sluice_{self._kind}_free"))

    @property
    def report(self) -> Report:
        """The report of the last complete transfer; UsageError: there is none."""
        return _report(values("report", self._report_of, self._raw))

    @property
    def _report_of(self) -> Callable[..., int]:
        return getattr(lib, f"sluice_{self._kind}_report")  # type: ignore[no-any-return]

    def _transfer(self, keep: object, function: Callable[..., int],
                  it: Any) -> Operation[Report]:
        """A transfer, whose report it gets whatever is closed in the meantime."""
        report_of, stream = self._report_of, self._hidden
        return start(self._home, lambda _: _report(values("report", report_of, stream.it)),
                     keep, function, self._raw, it, early=True)

    @property
    def progress(self) -> Progress:
        """The progress, at any time. OperationCancelledError: the transfer broke off."""
        it = values("progress", getattr(lib, f"sluice_{self._kind}_progress"), self._raw)
        return Progress(it["bytes"], _known(it["total"]))


class Sender(_End):
    """The sending end of a stream. It keeps the endpoint.

    gpu        keep pieces in its memory; None: in the host's
    piece      bytes granted at a time; whole pages, up to 1 GiB; None: 4 MiB
    chunk      bytes of one RDMA write; whole pages, at most 128 to a piece; None: up to 1 MiB
    pieces     that this end has memory for; 2 to 64; None: 4
    patience   seconds without progress: DeadlineError; None: 30
    require    NoPathError if this end cannot use this path
    checksum   a CRC-32C of each chunk; digest: a SHA-256 of all. The sender decides
    UsageError, NoPathError (also if the card cannot register a piece), DeviceError.

    A sender needs pieces * (piece / chunk + 2) + 8 operations of its context, a receiver
    3 * pieces + 8. `patience` must be more than the receiver's medium needs for 512 MiB.
    One operation at a time: BusyError. After one that failed or was cancelled, it can
    only be closed: OperationCancelledError.
    """

    __slots__ = ()
    _kind = "sender"

    def __init__(self, endpoint: Endpoint, *, gpu: Device | None = None,
                 piece: int | None = None, chunk: int | None = None,
                 pieces: int | None = None, patience: float | None = None,
                 require: DataPath | None = None, checksum: bool = True,
                 digest: bool = True) -> None:
        flags = (0 if checksum else lib.SLUICE_STREAM_NO_CHECKSUM) | \
            (0 if digest else lib.SLUICE_STREAM_NO_DIGEST)
        super().__init__(endpoint, _stream_options(gpu, piece, chunk, pieces, patience,
                                                   require, flags))

    def send(self, name: str, source: File | Memory | Sequence[Memory], *,
             bytes: int | None = None) -> Operation[Report]:
        """Send a file, or memory, which is gathered in order.

        name: what the receiver is told: 1 to 255 bytes of UTF-8 without control characters
        and "/", not "." or "..". bytes: of a file, from its beginning; None: from the
        position of its descriptor until it ends, as for a pipe: that goes into no memory, and
        is never resumed, so give os.fstat(file.fileno()).st_size for a regular file.
        The operation's errors: UsageError (memory of a GPU without `gpu`), InputError (a
        file), DeviceError (the GPU), DeadlineError (nothing moves for `patience`),
        PeerLostError, PeerError (the receiver gave up, refused it, or found that what
        arrived differs: it has CorruptError), ProtocolError, CorruptError (the receiver says
        that it has something else), NoPathError (it took another path than `require`).
        """
        told = ffi.new("char[]", c_string(name))
        it = options("source", name=told,
                     bytes=lib.SLUICE_UNKNOWN if bytes is None else bytes)
        _parts = _set_place(it, source)  # noqa: F841: it lives during the call
        return self._transfer(source, lib.sluice_sender_send, it)

    def finish(self) -> Operation[None]:
        """Tell the receiver that there is no more, and end the connection when its card has
        that message. PeerLostError if the receiver has left before.
        """
        return start(self._home, nothing, None, lib.sluice_sender_finish, self._raw)


class Receiver(_End):
    """The receiving end of a stream. Options and rules are those of Sender."""

    __slots__ = ()
    _kind = "receiver"

    def __init__(self, endpoint: Endpoint, *, gpu: Device | None = None,
                 piece: int | None = None, chunk: int | None = None,
                 pieces: int | None = None, patience: float | None = None,
                 require: DataPath | None = None) -> None:
        super().__init__(endpoint, _stream_options(gpu, piece, chunk, pieces, patience,
                                                   require))

    def next(self) -> Operation[Offer | None]:
        """Wait for the next offer. None: the sender has no more, and has left, or stayed
        for `patience`. DeadlineError if nothing is offered for that long, PeerLostError,
        PeerError, ProtocolError."""
        stream = self._hidden
        return start(self._home, lambda there: _offer(stream.it) if there else None, None,
                     lib.sluice_receiver_next, self._raw, early=True)

    @property
    def offer(self) -> Offer:
        """The current offer; UsageError: there is none."""
        return _offer(self._raw)

    def receive(self, sink: File | Memory | Sequence[Memory], *,
                have: int = 0) -> Operation[Report]:
        """Take the offer, to a file, or to memory, which is filled in order.

        A regular file is written from its beginning, whatever its position, and truncated
        behind the data, unless it was opened to append. A file on a medium has been flushed
        to it when this is done. have: bytes that a file already has, from a transfer that
        broke off: they are compared, and not sent again; the file must be open to read, too.
        UsageError: nothing is offered. The operation's errors are OutputError (a file),
        UsageError (the memory is smaller than what was offered, or the offer has no size),
        CorruptError (what arrived differs), NoPathError also if the card cannot register a
        piece, and those of Sender.send().
        """
        it = options("sink", have=have)
        _parts = _set_place(it, sink)  # noqa: F841: it lives during the call
        return self._transfer(sink, lib.sluice_receiver_receive, it)

    def refuse(self, why: str) -> Operation[None]:
        """Refuse the offer, and tell the sender why. That ends the stream: the sender has a
        PeerError, and so has next() after this. UsageError: nothing is offered."""
        return start(self._home, nothing, None, lib.sluice_receiver_refuse, self._raw,
                     c_string(why))
