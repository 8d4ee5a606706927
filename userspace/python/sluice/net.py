# SPDX-License-Identifier: MIT
"""Network cards, and connections to peers."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from ._binding import ffi, lib
from ._handle import (OnRing, Ring, c_string, deadline, made, nanoseconds, options, positive,
                      values)
from .context import Context, Operation, nothing, same, start
from .errors import checked, text
from .memory import Memory, slice_of

MAX_MESSAGE = int(lib.SLUICE_MAX_MESSAGE)
"""Bytes of a message of Endpoint.send(), at most."""


@dataclass(frozen=True, slots=True)
class NicInfo:
    """Properties of an RDMA device."""

    name: str
    """"mlx5_0", "rxe0\""""
    driver: str
    address: str
    """PCI; empty: a software device"""
    interface: str
    """network interface of port 1, if any"""
    numa_node: int
    """-1: not known"""
    infiniband: bool
    """else RoCE"""
    active: bool
    on_demand: bool
    """reads and writes memory on demand"""
    dmabuf: bool
    """may register dma-bufs"""
    software: bool


def _info(it: dict[str, Any]) -> NicInfo:
    flags = it.pop("flags")
    return NicInfo(infiniband=bool(flags & lib.SLUICE_NIC_INFINIBAND),
                   active=bool(flags & lib.SLUICE_NIC_ACTIVE),
                   on_demand=bool(flags & lib.SLUICE_NIC_ON_DEMAND),
                   dmabuf=bool(flags & lib.SLUICE_NIC_DMABUF),
                   software=bool(flags & lib.SLUICE_NIC_SOFTWARE), **it)


def nics() -> list[NicInfo]:
    """All RDMA devices."""
    count = ffi.new("uint32_t *")
    checked(lib.sluice_nic_count(count))
    return [_info(values("nic_info", lib.sluice_nic_info_at, index))
            for index in range(count[0])]


def _endpoint_options(token: str | bytes | None, messages: int | None, depth: int | None,
                      silence: float | None) -> tuple[Any, Any]:
    """The options, and the token, which they do not keep."""
    for name, value in ("messages", messages), ("depth", depth), ("silence", silence):
        positive(name, value)
    secret = token.encode() if isinstance(token, str) else token
    kept = ffi.from_buffer("char[]", secret) if secret else None
    return options("endpoint_options", token=kept,
                   token_length=len(secret) if secret else None, messages=messages,
                   depth=depth, silence_ns=nanoseconds(silence)), kept


class Endpoint(OnRing):
    """A connection to a peer, made by Nic.connect() or Listener.accept(). If it is
    closed or dropped, it ends, and operations under way are cancelled; if a stream uses it,
    it ends with the last stream."""

    __slots__ = ()

    def __init__(self, ring: Ring, raw: Any) -> None:
        """From a handle of the C API: not for users."""
        self._own(ring, raw, lib.sluice_endpoint_close)

    @property
    def peer(self) -> str:
        """"10.0.0.1:7471\""""
        return text(lib.sluice_endpoint_peer(self._raw))

    def alive(self) -> None:
        """Check that it is up; if not, the error that ended it is raised."""
        checked(lib.sluice_endpoint_alive(self._raw))

    def send(self, message: bytes | bytearray | memoryview) -> Operation[None]:
        """Send a message of MAX_MESSAGE bytes at most; it is copied. Done when the
        peer's card has it. Not for an endpoint with a stream.

        UsageError, BusyError (no more may be in flight).
        """
        with ffi.from_buffer(message) as data:
            return start(self._home, nothing, None, lib.sluice_endpoint_send, self._raw,
                         data, len(data))

    def receive(self, to: Memory) -> Operation[int]:
        """Receive a message into memory that the CPU reaches. Value: its length.

        UnsupportedError if the CPU does not reach it. The operation's errors are
        ProtocolError if the message is longer, or what ended the connection.
        """
        return start(self._home, same, None, lib.sluice_endpoint_receive, self._raw,
                     slice_of(to))


class Listener(OnRing):
    """Listens for peers: Nic.listen()."""

    __slots__ = ()

    def __init__(self, ring: Ring, raw: Any) -> None:
        """From a handle of the C API: not for users."""
        self._own(ring, raw, lib.sluice_listener_close)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(lib.sluice_listener_port(self._raw))

    def accept(self) -> Operation[Endpoint]:
        """Wait for a peer that proves that it knows the token; others are turned away,
        and do not end the wait. A peer may have left already: it is given if it said
        something, which can be received. DeadlineError: it left and said nothing, or another
        accept has taken it: accept again."""
        return start(self._home, partial(_accepted, self._home, self._hidden), None,
                     lib.sluice_listener_arrival, self._raw)


def _accepted(ring: Ring, door: Any, _: int) -> Endpoint:
    return Endpoint(ring, made("endpoint", lib.sluice_listener_accept, door.it, 0))


class Nic(OnRing):
    """An RDMA device.

    name: "rxe0"; None: the only device; if there are several, UsageError names them
    DeviceError if there is no such device, or no port of it is active.
    """

    __slots__ = ()

    def __init__(self, context: Context, name: str | None = None) -> None:
        raw = made("nic", lib.sluice_nic_open, context._raw, c_string(name or ""))
        self._own(context._home, raw, lib.sluice_nic_close)

    @property
    def info(self) -> NicInfo:
        """Its properties."""
        return _info(values("nic_info", lib.sluice_nic_get_info, self._raw))

    def connect(self, host: str, port: int, *, token: str | bytes | None = None,
                timeout: float | None = 10.0, messages: int | None = None,
                depth: int | None = None,
                silence: float | None = None) -> Operation[Endpoint]:
        """Connect to a listener by rdma_cm; tries all addresses of host, again and again
        while there is no listener yet. Unlike other operations, it begins and goes on only
        while somebody awaits it, waits for it, or polls it.

        token      a secret that both sides must know, at most 1024 bytes; not sent in the
                   clear. It should be long and random
        timeout    seconds for all of it; None: forever
        messages   of the peer received at once, 1 to 1024; None: 32
        depth      writes in flight at once, 1 to 4096; None: 128
        silence    seconds without a sign of life until the peer is lost; None: 10
        PeerLostError (nothing listened until then, it left, rdma_cm had no answer, or host
        is not found), DeadlineError (it did not answer or finish in time), DeniedError
        (another token), DeviceError (no RDMA device has a route to it, or another one than
        this), ProtocolError (another version), UsageError (a chain is open).
        """
        wanted, _kept = _endpoint_options(token, messages, depth, silence)
        raw = made("operation", lib.sluice_endpoint_begin, self._raw, c_string(host), port,
                   wanted, deadline(timeout))
        # `raw` is there when its value is taken.
        return Operation(self._home, raw, lambda _: Endpoint(self._home, made(
            "endpoint", lib.sluice_endpoint_take, raw)))

    def listen(self, host: str | None = None, port: int = 0, *,
               token: str | bytes | None = None, messages: int | None = None,
               depth: int | None = None, silence: float | None = None) -> Listener:
        """Listen for peers. host: address to listen on; None: all that the card has.
        port: 0: any, see Listener.port. The rest: connect().

        DeviceError if the address is not one of the card, or cannot be bound, as when
        another program has the port; PeerLostError or DeadlineError if host is not
        found; UsageError if a chain is open.
        """
        wanted, _kept = _endpoint_options(token, messages, depth, silence)
        return Listener(self._home, made("listener", lib.sluice_listener_open, self._raw,
                                         c_string(host or ""), port, wanted))
