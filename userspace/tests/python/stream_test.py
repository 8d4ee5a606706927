# SPDX-License-Identifier: MIT
"""The module sluice between two nodes with soft RoCE: scripts/guest/python makes the
nodes a and b, and runs it in a. The other end is a process in b."""

import asyncio
import contextlib
import subprocess
import sys
import time
import unittest

import numpy
import sluice

MIB = 1 << 20
SIZE = 9 * MIB + 12345
ADDRESS_B = "10.77.0.2"


def pattern(size=SIZE):
    return numpy.random.default_rng(1).integers(0, 256, size, dtype=numpy.uint8)


class Other:
    """Runs a function of this module in the node b, which prints its port first."""

    def __init__(self, name):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", "b", sys.executable, __file__, name],
            stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def end(self):
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out


def listening(token=None):
    nic = sluice.Nic(sluice.Context(), "rxe-b")
    door = nic.listen(token=token)
    print(door.port, flush=True)
    return door


async def receive_memory():
    peer = await listening().accept()
    memory = sluice.Buffer.host(SIZE)
    receiver = sluice.Receiver(peer, pieces=3)
    offer = await receiver.next()
    assert offer == sluice.Offer("memory", SIZE), offer
    report = await receiver.receive([memory[:77], memory[77:SIZE]])
    assert report.bytes_by_path == {sluice.DataPath.HOST: SIZE}, report
    assert numpy.array_equal(numpy.from_dlpack(memory[:SIZE]), pattern())
    assert await receiver.next() is None
    print(report.sha256)


async def receive_two():
    with listening() as door:
        arrival = door.accept()
    peer = arrival.wait()       # the operation keeps the listener
    memory = sluice.Buffer.host(2 * MIB)
    receiver = sluice.Receiver(peer)
    for _ in range(2):
        offer = receiver.next()
        while not offer.poll():
            time.sleep(0.001)
        report = receiver.receive(memory).wait()
        print(offer.wait().name, report.bytes)
    with contextlib.suppress(sluice.PeerLostError):
        receiver.next().wait()


async def hear_and_answer():
    peer = await listening("what both know").accept()
    memory = sluice.Buffer.host(4096)
    while True:
        n = await peer.receive(memory)
        await peer.send(b"heard " + bytes(memory[:n]))


async def refuse():
    receiver = sluice.Receiver(await listening().accept())
    await receiver.next()
    await receiver.refuse("the disk is full")
    try:
        await receiver.next()
    except sluice.PeerError as why:
        print(why.message)


class Streams(unittest.TestCase):
    def setUp(self):
        self.ring = sluice.Context()
        self.nic = sluice.Nic(self.ring, "rxe-a")

    def run_it(self, what):
        return asyncio.run(asyncio.wait_for(what, 60))

    def test_memory_to_memory(self):
        other = Other("receive_memory")

        async def go():
            peer = await self.nic.connect(ADDRESS_B, other.port)
            self.assertTrue(peer.peer.startswith(ADDRESS_B))
            memory = sluice.Buffer.host(SIZE)
            numpy.frombuffer(memory, numpy.uint8)[:SIZE] = pattern()
            sender = sluice.Sender(peer)
            peer.close()        # the stream keeps it
            cut = 5 * MIB + 1
            sending = sender.send("memory", [memory[:cut], memory[cut:SIZE]])
            del memory
            report = await sending
            self.assertEqual((report.bytes, report.pieces), (SIZE, 3))
            self.assertEqual(sender.progress, sluice.Progress(SIZE, SIZE))
            await sender.finish()
            return report.sha256
        digest = self.run_it(go())
        self.assertEqual(other.end(), (0, digest + "\n"))

    def test_a_value_is_that_of_its_operation(self):
        """Whatever the stream does later, and whether it is closed."""
        other = Other("receive_two")
        memory = sluice.Buffer.host(2 * MIB)
        peer = self.nic.connect(ADDRESS_B, other.port).wait(20)
        with sluice.Sender(peer) as sender:
            first = sender.send("first", memory[:MIB])
            while not first.poll():
                time.sleep(0.001)
            second = sender.send("second", memory)
        self.assertEqual([(op.wait(20).name, op.wait().bytes) for op in (second, first)],
                         [("second", 2 * MIB), ("first", MIB)])
        del sender, peer, second, first
        self.assertEqual(other.end(), (0, f"first {MIB}\nsecond {2 * MIB}\n"))

    def test_a_chain_is_not_for_connections(self):
        with self.ring.chain(2), self.assertRaisesRegex(sluice.UsageError, "chain"):
            self.nic.connect("a-name", 1)

    def test_messages_and_a_wrong_token(self):
        other = Other("hear_and_answer")

        async def go():
            with self.assertRaisesRegex(sluice.DeniedError, "token"):
                await self.nic.connect(ADDRESS_B, other.port, token="a guess")
            peer = await self.nic.connect(ADDRESS_B, other.port, token="what both know")
            memory = sluice.Buffer.host(4096)
            answer = peer.receive(memory)
            await peer.send(b"hello")
            n = await answer
            peer.alive()
            other.process.kill()
            with self.assertRaises(sluice.PeerLostError):
                await peer.receive(memory)
            return bytes(memory[:n])
        self.assertEqual(self.run_it(go()), b"heard hello")
        other.end()

    def test_closing_an_endpoint_ends_its_operations(self):
        other = Other("hear_and_answer")

        async def go():
            peer = await self.nic.connect(ADDRESS_B, other.port, token="what both know")
            waits = peer.receive(sluice.Buffer.host(4096))
            peer.close()
            with self.assertRaises(sluice.OperationCancelledError):
                await waits
        self.run_it(go())
        other.process.kill()
        other.end()

    def test_what_is_refused(self):
        other = Other("refuse")

        async def go():
            peer = await self.nic.connect(ADDRESS_B, other.port)
            with self.assertRaises(sluice.NoPathError):
                sluice.Sender(peer, require=sluice.DataPath.DEVICE_ALIAS)
            sender = sluice.Sender(peer)
            with open("/dev/zero", "rb") as zero, \
                    self.assertRaisesRegex(sluice.PeerError, "the disk is full"):
                await sender.send("unwanted", zero, bytes=MIB)
            with self.assertRaises(sluice.OperationCancelledError):
                await sender.finish()
        self.run_it(go())
        self.assertIn("the disk is full", other.end()[1])

    def test_the_loop_goes_on_while_it_connects(self):
        async def go():
            ticks = 0
            connecting = asyncio.ensure_future(self.one_peer())
            began = time.monotonic()
            while time.monotonic() - began < 1:
                await asyncio.sleep(0.02)
                ticks += 1
            self.assertFalse(connecting.done())
            connecting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await connecting
            return ticks
        self.assertGreater(self.run_it(go()), 10)

    async def one_peer(self):
        return await self.nic.connect(ADDRESS_B, 1, timeout=30)     # no listener

    def test_an_accept_is_cancelled(self):
        async def go():
            door = self.nic.listen()
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(door.accept(), 0.05)
        self.run_it(go())


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]]())
