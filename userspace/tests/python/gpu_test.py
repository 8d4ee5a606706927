# SPDX-License-Identifier: MIT
"""The module sluice on GPUs: scripts/guest/python runs it."""

import asyncio
import contextlib
import gc
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest
import weakref

import numpy
import sluice
from group_member import BLOCK, WHOLE, uint8

SIZE = 1 << 20
STOCK = os.environ.get("KERNEL") == "stock"
series = unittest.skipIf(STOCK, "the base's kernel has no batches and no alias")


class Test(unittest.TestCase):
    def setUp(self):
        self.ring = sluice.Context()
        self.gpu = sluice.Device(self.ring, "0")
        self.host, self.out = (sluice.Buffer.host(SIZE) for _ in range(2))
        self.vram = self.gpu.vram(SIZE)
        for buffer in self.host, self.out:
            self.gpu.attach(buffer)
        uint8(self.host)[:] = numpy.random.default_rng(1).integers(0, 256, SIZE)
        self.batch = sluice.Batch(8)

    def tearDown(self):
        # any order will do
        self.ring.close()
        del self.gpu, self.batch
        gc.collect()

    def run_batch(self):
        return self.gpu.submit(self.batch).wait(60)

    def assert_same(self):
        numpy.testing.assert_array_equal(uint8(self.host), uint8(self.out))


class Device(Test):
    @series
    def test_it_is_described(self):
        info, limits = self.gpu.info, self.gpu.limits
        self.assertEqual(sluice.devices()[0], info)
        self.assertEqual((info.address[:5], info.product), ("0000:", "gfx942"))
        self.assertGreaterEqual(info.vram_bytes, SIZE)
        self.assertEqual((limits.broadcast, limits.svm, limits.prepared, limits.command),
                         (8, True, True, False))
        self.assertGreater(limits.wait, 0)
        self.assertIs(self.vram.kind, sluice.MemoryKind.VRAM)

    @series
    def test_a_file_goes_to_vram_and_back_in_asyncio(self):
        async def go():
            with tempfile.TemporaryFile() as file:
                file.write(uint8(self.host))
                file.flush()
                n = await self.ring.read(file, self.out, 0)
            self.batch.copy(self.vram, self.out)
            self.batch.barrier()
            self.batch.fill(self.out, 0)
            self.batch.barrier()
            self.batch.copy(self.out, self.vram)
            return n, await self.gpu.submit(self.batch)
        self.assertEqual(asyncio.run(go()), (SIZE, 3 * SIZE))
        self.assert_same()
        outcome = self.batch.outcome
        self.assertEqual((outcome.vram_bytes, outcome.peer_bytes), (2 * SIZE, 0))

    @series
    def test_all_operations(self):
        vram, out, host, batch = self.vram, self.out, self.host, self.batch
        batch.copy(vram[:8192], host[:8192])
        batch.barrier()
        batch.swap(vram[:4096], vram[4096:8192])
        batch.fill(vram[8192:12288], 0x01020304)
        batch.barrier()
        batch.record(out[8256:8320])
        batch.copy(out[:8192], vram[:8192])
        batch.copy_rectangle(out[16384:20480], vram[8192:12288], row_bytes=16, rows=4,
                             to_pitch=32, from_pitch=64)
        batch.broadcast([out[32768:36864], out[36864:40960]], vram[8192:12288])
        batch.write(out[8192:8200], 0x1122334455667788)
        for value in 5, 6:
            batch.add(vram[16384:16392], value)
        batch.barrier()
        batch.copy(out[8200:8208], vram[16384:16392])
        self.assertEqual(len(batch), 10)
        self.run_batch()
        a, b = uint8(out), uint8(host)
        numpy.testing.assert_array_equal(a[:4096], b[4096:8192])
        numpy.testing.assert_array_equal(a[4096:8192], b[:4096])
        self.assertEqual(set(a[32768:40960].view(numpy.uint32)), {0x01020304})
        rows = a[16384:16384 + 128].reshape(4, 32)
        self.assertTrue((rows[:, :16].copy().view(numpy.uint32) == 0x01020304).all())
        self.assertFalse(rows[:, 16:].any())
        words = a[8192:8208].view(numpy.uint64)
        self.assertEqual((int(words[0]), int(words[1])), (0x1122334455667788, 11))
        record = sluice.Record.read(out[8256:])
        self.assertIs(record.status, sluice.RecordStatus.DONE)
        self.assertGreaterEqual(record.end, record.start)

    @series
    def test_many_copies_go_by_one_call(self):
        pages = numpy.arange(SIZE // 4096, dtype=numpy.uint64) * 4096
        self.batch.copy_many(self.vram, pages[::-1], self.host, pages, 4096)
        self.batch.barrier()
        self.batch.copy(self.out, self.vram)
        self.assertEqual(len(self.batch), len(pages) + 1)
        self.run_batch()
        numpy.testing.assert_array_equal(uint8(self.out).reshape(-1, 4096)[::-1],
                                         uint8(self.host).reshape(-1, 4096))

    @series
    def test_blocks_are_gathered_and_scattered(self):
        layout = sluice.KVLayout(layers=2, blocks=16, block_bytes=4096)
        parts = layout.parts(self.vram, [7, 3])
        row = self.out[:layout.bytes_each * 2]
        self.batch.copy(self.vram, self.host)
        self.batch.barrier()
        self.batch.gather(row, parts)
        self.batch.barrier()
        self.batch.scatter(layout.parts(self.out[len(row):], [0, 9], once=True), row)
        self.run_batch()
        blocks = uint8(self.host)[:layout.size].reshape(4, 16, 4096)[:, [7, 3]]
        numpy.testing.assert_array_equal(uint8(row), blocks.ravel())
        cache = uint8(self.out)[len(row):][:layout.size].reshape(4, 16, 4096)
        numpy.testing.assert_array_equal(cache[:, [0, 9]], blocks)

    @series
    def test_waits_wait_or_give_up(self):
        self.batch.wait(self.out[:4], sluice.Compare.GREATER_EQUAL, 7, mask=0xff,
                        limit=self.gpu.limits.wait / 4)
        self.batch.write(self.out[8:16], 1)
        op = self.gpu.submit(self.batch)
        self.assertFalse(op.poll())
        uint8(self.out)[0] = 7
        op.wait(60)
        self.assertEqual(uint8(self.out)[8], 1)
        self.batch.clear()
        self.batch.wait(self.out[:4], sluice.Compare.EQUAL, 8, limit=0.005)
        with self.assertRaisesRegex(sluice.DeadlineError, "gave up"):
            self.run_batch()

    @series
    def test_the_failing_operation_is_named(self):
        apart = sluice.Buffer.host(4096)
        self.batch.fill(self.vram[:4096], 1)
        self.batch.barrier()
        self.batch.copy(self.vram[:4096], apart)
        with self.assertRaises(sluice.UsageError) as caught:
            self.run_batch()
        self.assertEqual(caught.exception.index, 1)

    @series
    def test_prepared_batches_run_often(self):
        self.batch.add(self.vram[:8], 3)
        prepared = self.gpu.prepare(self.batch)
        self.assertEqual(prepared.bytes, 8)
        runs = [prepared.run() for _ in range(8)]
        del prepared
        self.assertEqual([run.wait(60) for run in runs], [8] * 8)
        self.batch.clear()
        self.batch.copy(self.out[:8], self.vram[:8])
        self.run_batch()
        self.assertEqual(uint8(self.out)[0], 24)

    @series
    def test_shared_memory_migrates(self):
        before = self.gpu.counters
        svm = self.gpu.svm(SIZE)
        self.assertIs(svm.kind, sluice.MemoryKind.SVM)
        self.batch.copy(svm, self.host)
        self.run_batch()
        self.gpu.bring_back(svm)
        after = self.gpu.counters
        self.assertGreaterEqual(after.migrated_out - before.migrated_out, SIZE // 4096)
        numpy.testing.assert_array_equal(numpy.from_dlpack(svm), uint8(self.host))

    @series
    def test_dmabufs_go_out_and_in(self):
        self.batch.copy(self.vram, self.host)
        self.run_batch()
        dmabuf = self.vram.export()
        here = self.gpu.import_dmabuf(dmabuf)
        os.close(dmabuf)
        self.vram.close()
        numpy.testing.assert_array_equal(numpy.from_dlpack(here), uint8(self.host))

    @series
    def test_a_batch_dropped_under_way_is_drained(self):
        self.batch.copy(self.vram, self.host)
        op = self.gpu.submit(self.batch)
        self.vram.close()
        self.batch.close()
        self.gpu.close()
        del op

    def test_video_memory_has_an_end(self):
        with self.assertRaisesRegex(sluice.DeviceError, "video memory"):
            self.gpu.vram(1 << 50)
        with self.assertRaisesRegex(sluice.UsageError, "size of 0"):
            self.gpu.vram(0)


class Group(Test):
    def setUp(self):
        super().setUp()
        self.gpus = [self.gpu, sluice.Device(self.ring, "1")]
        self.group = sluice.Group(self.ring, self.gpus)
        memory = [gpu.vram(2 * WHOLE) for gpu in self.gpus]
        self.to = [one[:WHOLE] for one in memory]
        self.source = [one[WHOLE:2 * WHOLE] for one in memory]
        for rank, one in enumerate(self.source):
            uint8(one)[:] = uint8(self.host)[rank * WHOLE:][:WHOLE]

    def tearDown(self):
        del self.group, self.gpus
        super().tearDown()

    def assert_got(self, rank, *blocks):
        """In the memory of a rank, blocks one after the other: (rank, number)."""
        wanted = [uint8(self.host)[(2 * by + n) * BLOCK:][:BLOCK] for by, n in blocks]
        numpy.testing.assert_array_equal(uint8(self.to[rank])[:len(blocks) * BLOCK],
                                         numpy.concatenate(wanted))

    @series
    def test_blocks_go_between_all(self):
        blocks = [one[:BLOCK] for one in self.source]
        gather = self.group.all_gather(self.to, blocks)
        self.assertEqual((self.group.ranks, gather.bytes), (2, 2 * WHOLE))
        self.assertIsNot(gather.variant, sluice.Variant.AUTOMATIC)
        run = gather.run()
        # a run keeps what it needs
        del gather, self.group
        self.assertEqual(run.wait(60), 2 * WHOLE)
        self.assertEqual([run.of(rank) for rank in range(2)], [WHOLE, WHOLE])
        for rank in range(2):
            self.assert_got(rank, (0, 0), (1, 0))
        self.group = sluice.Group(self.ring, self.gpus)
        self.group.all_to_all(self.to, self.source, how=sluice.Variant.B2B).run().wait(60)
        for rank in range(2):
            self.assert_got(rank, (0, rank), (1, rank))
        swap = self.group.all_to_all(self.to, self.to)
        self.assertIs(swap.variant, sluice.Variant.SWAP)
        swap.run().wait(60)
        self.assert_got(0, (0, 0), (0, 1))

    @series
    def test_blocks_go_to_and_from_a_root_in_asyncio(self):
        blocks = [one[:BLOCK] for one in self.source]
        there = [one[:BLOCK] for one in self.to]

        async def go():
            moved = await self.group.gather(1, self.to[1], blocks).run()
            self.assert_got(1, (0, 0), (1, 0))
            moved += await self.group.scatter(1, there, self.source[1]).run()
            for rank in range(2):
                self.assert_got(rank, (1, rank))
            run = self.group.broadcast(0, self.source).run()
            moved += await run
            # only the root has moved something
            self.assertEqual([run.of(rank) for rank in range(2)], [WHOLE, 0])
            return moved
        self.assertEqual(asyncio.run(go()), 3 * WHOLE)
        numpy.testing.assert_array_equal(uint8(self.source[1]),
                                         uint8(self.host)[:WHOLE])

    @series
    def test_a_prelaunched_run_is_held(self):
        held = self.group.all_to_all(self.to, self.source, prelaunch=True)
        for _ in range(20):     # a busy machine may release it too late
            run = held.run()
            with self.assertRaises((sluice.InProgressError, sluice.DeadlineError)):
                run.of(0)
            held.release()
            with contextlib.suppress(sluice.DeadlineError):
                self.assertEqual(run.wait(60), 2 * WHOLE)
                break
        self.assert_got(1, (0, 1), (1, 1))
        with self.assertRaises(sluice.DeadlineError) as caught:
            held.run().wait(60)     # it is never released
        self.assertNotIsInstance(caught.exception, sluice.InProgressError)
        self.assertEqual(caught.exception.index, 0)

    @series
    def test_a_run_that_is_dropped_is_gone(self):
        run = self.group.broadcast(0, self.to).run()
        kept = weakref.ref(run)
        gc.disable()
        try:
            del run
            self.assertIsNone(kept())
        finally:
            gc.enable()

    @series
    def test_the_rank_at_fault_is_named(self):
        with self.assertRaisesRegex(sluice.UsageError, "2005 bytes") as caught:
            self.group.all_to_all(self.to, [self.source[0], self.source[1][:-1]])
        self.assertEqual(caught.exception.index, 1)
        with self.assertRaisesRegex(sluice.UsageError, "no variant swap"):
            self.group.broadcast(0, self.to, how=sluice.Variant.SWAP)
        with self.assertRaisesRegex(sluice.UsageError, "the GPUs allow"):
            self.group.broadcast(0, self.to, prelaunch=True, hold=3600)
        with self.assertRaisesRegex(ValueError, "of 1 ranks, the group has 2"):
            self.group.broadcast(0, self.to[:1])
        with self.assertRaisesRegex(sluice.UsageError, "another context"):
            sluice.Group(sluice.Context(), self.gpus)
        run = self.group.broadcast(0, self.to).run()
        run.wait(60)
        with self.assertRaisesRegex(ValueError, "rank 2, it has 2"):
            run.of(2)


class TwoProcesses(unittest.TestCase):
    """Each process has a GPU: group_member.py."""

    def in_two(self, part):
        member = pathlib.Path(__file__).with_name("group_member.py")
        ends = socket.socketpair()
        with tempfile.TemporaryDirectory() as folder:
            both = [subprocess.Popen(
                [sys.executable, member, part, str(rank), str(end.fileno()),
                 f"{folder}/socket"],
                pass_fds=[end.fileno()], stderr=subprocess.PIPE, text=True)
                for rank, end in enumerate(ends)]
            for end in ends:
                end.close()
            try:
                said = [one.communicate(timeout=300)[1] for one in both]
            finally:
                for one in both:
                    one.kill()
            self.assertEqual([one.returncode for one in both], [0, 0], "\n".join(said))

    @series
    def test_processes_are_ranks(self):
        self.in_two("processes")

    @series
    def test_who_is_late_is_named(self):
        self.in_two("late")

    @series
    def test_hosts_have_ranks(self):
        self.in_two("hosts")
