# SPDX-License-Identifier: MIT
"""Collectives over several hosts: SDMA engines inside each, and the user's transport,
such as MPI, between them."""

import abc
import errno
from collections.abc import Callable, Sequence
from typing import Any

from ._binding import ffi, lib
from ._handle import OnRing, Ring, made, options
from .errors import checked, last_error
from .group import Group, slices_of_ranks
from .memory import Buffer, Memory, Slice, slice_of


class HostTransport(abc.ABC):
    """How memory gets from host to host, by a transport such as mpi4py.

    All hosts make the same calls in the same order. A method returns when its memory is
    correct here and may be used again. An exception that it raises is raised by the library
    call. After that, hosts may be at different calls: all must make the group anew.

    Memory is the leader's, or host memory of the library. Parts for the hosts are in the
    order of hosts, and of one size. A host's own part is already in place, and need not be
    moved. Methods must not use the group. If the transport keeps its group, both are freed
    only once the group is closed: Python's collector does not see that cycle.
    """

    @property
    @abc.abstractmethod
    def hosts(self) -> int:
        """The number of hosts."""

    @property
    @abc.abstractmethod
    def host(self) -> int:
        """This host; 0 to `hosts` - 1."""

    @abc.abstractmethod
    def all_gather(self, all_: Slice) -> None:
        """`all_` has a part for each host. Copy each host's own part to all others."""

    @abc.abstractmethod
    def all_to_all(self, to: Slice, from_: Slice) -> None:
        """Both have a part for each host. Copy the part of host h in `from_` to the part of
        this host in `to` there."""

    @abc.abstractmethod
    def broadcast(self, root: int, memory: Slice) -> None:
        """Copy `memory` of host `root` to that of all others."""

    @abc.abstractmethod
    def gather(self, root: int, memory: Slice) -> None:
        """`memory` has a part for each host on host `root`, and is one part on all others,
        which is copied to the root."""

    @abc.abstractmethod
    def scatter(self, root: int, memory: Slice) -> None:
        """The reverse of gather(): copy each part of the root to its host."""


class _Calls:
    """A transport, as C functions, and the exception that the last one raised."""

    def __init__(self, transport: HostTransport) -> None:
        self._transport = transport
        self._raised: BaseException | None = None
        self._handle = ffi.new_handle(self)
        functions = {name: getattr(lib, f"sluice_py_{name}") for name in _FUNCTIONS}
        self.raw = options("host_transport", hosts=transport.hosts, host=transport.host,
                           user=self._handle, **functions)

    def call(self, name: str, *args: Any) -> int:
        """Call one of them. C only knows numbers."""
        try:
            getattr(self._transport, name)(*map(_seen, args))
        except BaseException as why:    # raised again by checked()
            self._raised = why
            return -(getattr(why, "errno", None) or errno.EIO)
        return 0

    def checked(self, function: Callable[..., int], *args: Any) -> int:
        """Call the library, which calls the transport."""
        self._raised = None
        returned = function(*args)
        raised, self._raised = self._raised, None
        if returned < 0 and raised is not None:
            raised.add_note(f"The library says: {last_error()}")
            raise raised
        return checked(returned)


def _seen(argument: Any) -> Any:
    """A slice of C as its memory."""
    if isinstance(argument, int):
        return argument
    memory = Buffer(made("buffer", lib.sluice_buffer_dup, argument.buffer))
    return Slice(memory, argument.offset, argument.length)


def _define(name: str) -> None:
    def function(user: Any, *args: Any) -> int:
        calls: _Calls = ffi.from_handle(user)
        return calls.call(name, *args)
    ffi.def_extern(name=f"sluice_py_{name}", error=-errno.EIO)(function)


_FUNCTIONS = "all_gather", "all_to_all", "broadcast", "gather", "scatter"
for _name in _FUNCTIONS:
    _define(_name)


class HostCollective(OnRing):
    """A collective of a HostGroup, prepared on all hosts. It may outlive the group, and
    keeps the memory that it names."""

    __slots__ = ("_calls",)

    def __init__(self, ring: Ring, raw: Any, calls: _Calls) -> None:
        """From a handle of the C API: not for users."""
        self._own(ring, raw, lib.sluice_host_collective_free, calls)
        self._calls = calls

    def run(self) -> int:
        """Run it, and wait until the GPUs of this host have their data. All hosts must call
        it. Returns the bytes that GPUs of this host have moved.

        An error of a GPU of this host has its rank in `local` as index. If it occurs before
        the hosts exchange data, all others raise PeerError with this host as index; after
        that, they have their data, and are not told. ProtocolError: a host runs another collective.
        UsageError while a chain is open. Other errors are the transport's.
        """
        moved = ffi.new("uint64_t *")
        self._calls.checked(lib.sluice_host_collective_run, self._raw, moved)
        return int(moved[0])


class HostGroup(OnRing):
    """The same number of GPUs on each of one host or more. Ranks of all hosts are numbered
    one host's group after the other, in the order of hosts.

    local      all GPUs of this process, which is the only one of its host
    transport  not that of another group
    leader     rank of `local` whose memory the transport works on

    Sequences have memory of each rank of this host, and all hosts have the same sizes.
    Variants are chosen automatically. `staging` is memory of the leader, for data on the
    way to and from other hosts; no other memory of the operation may overlap it.
    UsageError: a mistake in this call; its index is the rank in `local`, if one is at
    fault. All hosts are
    told: PeerError if another host has failed, ProtocolError if it prepares something
    else, with that host as index. No host has the collective then. The others are not
    told of errors that Python itself finds (a number of ranks, closed memory): they wait.
    """

    __slots__ = ("_calls", "_local")

    def __init__(self, local: Group, transport: HostTransport, leader: int = 0) -> None:
        self._calls = _Calls(transport)
        self._local = local.ranks
        raw = self._made("host_group", lib.sluice_host_group_create, local._raw,
                         self._calls.raw, leader)
        self._own(local._home, raw, lib.sluice_host_group_free, self._calls)

    @property
    def ranks(self) -> int:
        """The number of ranks of all hosts."""
        return int(lib.sluice_host_group_ranks(self._raw))

    @property
    def first_rank(self) -> int:
        """The first rank of this host."""
        return int(lib.sluice_host_group_first_rank(self._raw))

    def all_gather(self, to: Sequence[Memory], from_: Sequence[Memory]) -> HostCollective:
        """Copy each rank's block to its place in the memory of each rank, on all hosts.
        In place: from_[r] may be its block of to[r]."""
        return self._prepare(lib.sluice_host_group_all_gather, self._each(to),
                             self._each(from_))

    def all_to_all(self, to: Sequence[Memory], from_: Sequence[Memory],
                   staging: Memory) -> HostCollective:
        """Copy block j of rank i to block i of rank j, on all hosts.
        In place: both may be the same for all ranks of this host.
        staging: as large as all of `to` and `from_` together."""
        return self._prepare(lib.sluice_host_group_all_to_all, self._each(to),
                             self._each(from_), slice_of(staging))

    def broadcast(self, root: int, memory: Sequence[Memory]) -> HostCollective:
        """Copy the memory of rank `root` of all to that of all others."""
        return self._prepare(lib.sluice_host_group_broadcast, root, self._each(memory))

    def gather(self, root: int, to: Memory | None, from_: Sequence[Memory],
               staging: Memory | None = None) -> HostCollective:
        """Copy each rank's block to its place in the memory of rank `root` of all.
        In place: the root's block may be its place.
        to: on the root's host; None on other hosts. staging: as large as `to` on the root's
        host, None if the root is its leader; as large as all of `from_` on other hosts."""
        return self._prepare(lib.sluice_host_group_gather, root, _maybe(to),
                             self._each(from_), _maybe(staging))

    def scatter(self, root: int, to: Sequence[Memory], from_: Memory | None,
                staging: Memory | None = None) -> HostCollective:
        """Copy each block of the memory of rank `root` of all to its rank: the reverse of
        gather()."""
        return self._prepare(lib.sluice_host_group_scatter, root, self._each(to),
                             _maybe(from_), _maybe(staging))

    def _each(self, memory: Sequence[Memory]) -> Any:
        return slices_of_ranks(memory, self._local, "this host")

    def _made(self, kind: str, function: Callable[..., int], *args: Any) -> Any:
        return made(kind, lambda *all_: self._calls.checked(function, *all_), *args)

    def _prepare(self, function: Callable[..., int], *what: Any) -> HostCollective:
        raw = self._made("host_collective", function, self._raw, *what)
        return HostCollective(self._home, raw, self._calls)


def _maybe(memory: Memory | None) -> Any:
    return ffi.NULL if memory is None else slice_of(memory)
