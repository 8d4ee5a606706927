# SPDX-License-Identifier: MIT
"""group_member.py PART RANK SOCKET PATH: one of two processes of a test of gpu_test.py,
with its own GPU. SOCKET is a descriptor of a socket that leads to the other."""

import asyncio
import socket
import sys

import numpy
import sluice

BLOCK = 1003
WHOLE = 2 * BLOCK


def uint8(memory):
    return numpy.frombuffer(memory, numpy.uint8)


def data(rank):
    """The data of a rank: two blocks."""
    return numpy.random.default_rng(rank).integers(0, 256, WHOLE, numpy.uint8)


def expect_got(memory, *blocks):
    """Blocks one after the other: (rank, number)."""
    wanted = [data(rank)[n * BLOCK:][:BLOCK] for rank, n in blocks]
    numpy.testing.assert_array_equal(uint8(memory), numpy.concatenate(wanted))


class Pair(sluice.HostTransport):
    """Two hosts, connected by a socket."""

    hosts = 2

    def __init__(self, host, link):
        self._host = host
        self._link = link
        self.broken = None
        self.kept = []

    @property
    def host(self):
        return self._host

    def _send(self, memory):
        self._link.sendall(memory)

    def _receive(self, memory):
        done = 0
        while done < len(memory):
            got = self._link.recv_into(memory[done:])
            if not got:
                raise ConnectionError("the other host has gone")
            done += got

    def _part(self, memory, host):
        size = len(memory) // 2
        return memory[host * size:][:size]

    def all_gather(self, all_):
        if self.broken:
            raise self.broken
        self.kept.append(all_)
        self._send(self._part(all_, self._host))
        self._receive(self._part(all_, 1 - self._host))

    def all_to_all(self, to, from_):
        self._send(self._part(from_, 1 - self._host))
        self._receive(self._part(to, 1 - self._host))

    def broadcast(self, root, memory):
        (self._send if root == self._host else self._receive)(memory)

    def gather(self, root, memory):
        if root == self._host:
            self._receive(self._part(memory, 1 - root))
        else:
            self._send(memory)

    def scatter(self, root, memory):
        if root == self._host:
            self._send(self._part(memory, 1 - root))
        else:
            self._receive(memory)


def processes(rank, _link, path):
    ring = sluice.Context()
    gpu = sluice.Device(ring, str(rank))
    all_ = sluice.Processes(ring, path, rank, 2, patience=60)
    assert (all_.rank, all_.ranks) == (rank, 2)
    memory = all_.exchange(gpu, gpu.vram(2 * WHOLE))
    group = sluice.Group.shared(gpu, all_)
    to, from_ = [m[:WHOLE] for m in memory], [m[WHOLE:2 * WHOLE] for m in memory]
    uint8(from_[rank])[:] = data(rank)
    gather = group.all_gather(to, [m[:BLOCK] for m in from_])
    all_.barrier()
    assert gather.run().wait(60) == 2 * WHOLE
    expect_got(to[rank], (0, 0), (1, 0))
    message = sluice.Message(1, 0, to[0][:BLOCK], from_[1][BLOCK:])
    send = group.send([message])
    all_.barrier()
    assert send.run().wait(60) == BLOCK
    all_.barrier()
    if rank == 0:
        expect_got(to[0], (1, 1), (1, 0))
        try:
            all_.barrier()      # the other has ended
        except sluice.PeerLostError as why:
            assert why.index == 1
        else:
            raise AssertionError("nobody has gone")


def late(rank, link, path):
    """Rank 1 does not begin the run."""
    ring = sluice.Context()
    gpu = sluice.Device(ring, str(rank))
    link.sendall(b"!")
    link.recv(1)    # the other has loaded Python, which takes longer than anything here
    all_ = sluice.Processes(ring, path, rank, 2, patience=10)
    memory = all_.exchange(gpu, gpu.vram(2 * WHOLE))
    group = sluice.Group.shared(gpu, all_)
    gather = group.all_gather([m[:WHOLE] for m in memory],
                              [m[WHOLE:WHOLE + BLOCK] for m in memory])
    if rank:
        link.recv(1)    # the other has ended
        return

    async def awaited():
        return await gather.run()

    for wait in lambda: asyncio.run(awaited()), lambda: gather.run().wait():
        try:
            wait()
        except sluice.DeadlineError as why:
            assert why.index == 1, why
        else:
            raise AssertionError("nobody is late")


def hosts(rank, link, _path):
    ring = sluice.Context()
    gpu = sluice.Device(ring, str(rank))
    link.settimeout(60)
    over = Pair(rank, link)
    local = sluice.Group(ring, [gpu])
    group = sluice.HostGroup(local, over)
    del local
    assert (group.ranks, group.first_rank) == (2, rank)
    memory = gpu.vram(4 * WHOLE)
    to, from_, staging = memory[:WHOLE], memory[WHOLE:2 * WHOLE], memory[2 * WHOLE:4 * WHOLE]
    uint8(from_)[:] = data(rank)
    group.all_gather([to], [from_[:BLOCK]]).run()
    expect_got(to, (0, 0), (1, 0))
    group.all_to_all([to], [from_], staging).run()
    expect_got(to, (0, rank), (1, rank))
    uint8(to)[:] = data(rank)
    del memory
    group.broadcast(1, [to]).run()
    expect_got(to, (1, 0), (1, 1))
    aside = None if rank else staging[:BLOCK]
    group.gather(1, to if rank else None, [from_[:BLOCK]], aside).run()
    if rank:
        expect_got(to, (0, 0), (1, 0))
    group.scatter(1, [to[:BLOCK]], from_ if rank else None, aside).run()
    expect_got(to[:BLOCK], (1, rank))
    try:
        group.all_gather([to[rank:]], [from_[:BLOCK]])
    except sluice.UsageError as why:
        assert (rank, why.index) == (1, 0), why
    except sluice.PeerError as why:
        assert (rank, why.index) == (0, 1), why
    else:
        raise AssertionError("one byte is missing")
    gather = group.all_gather([to], [from_[:BLOCK]])
    del group       # which the collective keeps, as it does its memory
    del to, from_, staging, aside
    over.broken = KeyError("mine")
    try:
        gather.run()
    except KeyError as why:
        assert why is over.broken and "all_gather: the transport's" in why.__notes__[0]
    else:
        raise AssertionError("what a transport raises has gone")
    over.broken = None
    gather.run()
    del gather
    # what a transport keeps stays
    expect_got(over.kept[-1], (0, 0), (1, 0))


if __name__ == "__main__":
    part, own, descriptor, where = sys.argv[1:]
    {"processes": processes, "late": late, "hosts": hosts}[part](
        int(own), socket.socket(fileno=int(descriptor)), where)
