# SPDX-License-Identifier: MIT
"""The module sluice without GPUs or RDMA devices."""

import array
import asyncio
import contextlib
import gc
import os
import pathlib
import resource
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import numpy
import sluice
from sluice._binding import ffi, lib
from sluice._handle import integers

TEXT = b"what a file holds"


class Test(unittest.TestCase):
    """Each has a context, a buffer and the ends of a pipe."""

    def setUp(self):
        self.ring = sluice.Context()
        self.memory = sluice.Buffer.host(10000)
        self.reader, self.writer = os.pipe()
        self.addCleanup(os.close, self.reader)
        self.addCleanup(os.close, self.writer)

    def tearDown(self):
        del self.ring, self.memory
        gc.collect()

    def waiting(self):
        """A read of a pipe to which nothing was written."""
        return self.ring.read(self.reader, self.memory)

    def file(self):
        file = tempfile.TemporaryFile()
        self.addCleanup(file.close)
        file.write(TEXT)
        file.flush()
        return file


class Errors(Test):
    def test_each_code_has_a_class(self):
        codes = ffi.typeof("enum sluice_error_code").elements
        names = {ffi.string(lib.sluice_error_name(code)).decode() for code in codes}
        classes = {kind.code for kind in vars(sluice).values()
                   if isinstance(kind, type) and issubclass(kind, sluice.Error)}
        self.assertEqual(names - {"none"}, classes)

    def test_an_error_tells_all(self):
        with self.assertRaises(sluice.DeviceError) as caught:
            sluice.Device(self.ring, "no such GPU")
        e = caught.exception
        self.assertEqual((e.code, e.errno, e.where, e.index),
                         ("device", 5, "no such GPU", None))
        self.assertIn("no such GPU", e.message)
        self.assertIn("sluice doctor", e.remedy)
        self.assertEqual(str(e), f"{e.message} ({e.remedy})")
        self.assertIsInstance(e, OSError)

    def test_errors_of_files_are_theirs(self):
        closed = os.dup(self.reader)
        os.close(closed)
        with self.assertRaises(sluice.InputError) as caught:
            self.ring.read(closed, self.memory, 0).wait()
        self.assertEqual((caught.exception.errno, caught.exception.system_errno), (9, 9))
        with open("/dev/full", "wb") as full:
            op = self.ring.write(full, self.memory, 0)
            for _ in range(2):      # again: the same result
                with self.assertRaises(sluice.OutputError) as caught:
                    op.wait()
                self.assertIn("room", caught.exception.remedy)

    def test_bad_values_are_named(self):
        for call, what in (
                (lambda: sluice.Context(0), "65536"),
                (lambda: sluice.Context(65537), "65536"),
                (lambda: sluice.Buffer.host(0), "size of 0"),
                (lambda: self.memory.part(12000, 289), "289 bytes at 12000"),
                (lambda: self.memory[::2], "step of 2"),
                (lambda: sluice.KVLayout(1, 4, 64, block_stride=32), "overlaps"),
                (lambda: sluice.Batch(2**32 - 1), "4294967295"),
                (lambda: sluice.Group(self.ring, []), "0 GPUs: a group has 1 to 8")):
            with self.assertRaisesRegex(ValueError, what):
                call()
        with self.assertRaisesRegex(sluice.UnsupportedError, "video memory"):
            self.memory.export()
        with self.assertRaises(sluice.SystemCallError) as caught:
            sluice.Buffer.host(1 << 60)
        self.assertEqual(caught.exception.errno, 12)

    def test_a_batch_tells_its_first_mistake(self):
        batch = sluice.Batch()
        batch.fill(self.memory[:8], 1)
        batch.fill(self.memory[:8], 2)
        self.assertEqual((len(batch), batch.bytes), (2, 16))
        with self.assertRaisesRegex(sluice.UsageError, "to 8 bytes from 7") as caught:
            batch.copy(self.memory[:8], self.memory[:7])
        self.assertEqual(caught.exception.index, 2)
        with self.assertRaisesRegex(sluice.UsageError, "to 8 bytes from 7"):
            batch.barrier()
            batch.fill(self.memory[:8], 4)
        batch.clear()
        batch.wait(self.memory[:4], sluice.Compare.EQUAL, 1, limit=0.01)
        self.assertEqual(len(batch), 1)

    def test_what_is_missing_is_told(self):
        self.assertIsInstance(sluice.devices(), list)
        self.assertIsInstance(sluice.nics(), list)
        with self.assertRaisesRegex(sluice.DeviceError, "no such card"):
            sluice.Nic(self.ring, "no such card")
        with self.assertRaisesRegex(sluice.SystemCallError, "/nowhere"):
            sluice.Topology("/nowhere")

    def test_paths_are_explained(self):
        machine = sluice.Topology()
        first = machine.names[0]
        self.assertTrue(first.startswith("node"))
        self.assertIn(": same", machine.explain(first, first))
        self.assertIn('"path": "same', machine.explain_json(first, first))
        with self.assertRaisesRegex(sluice.DeviceError, "none"):
            machine.explain(first, "none")

    def test_a_report_is_read(self):
        """The members in C have the names of the class."""
        from sluice._handle import values
        from sluice.stream import _report

        def fill(report):
            report.name = b"cache"
            report.bytes, report.flags, report.total_ns = 7, 2, 1500000000
            report.bytes_by_path[3] = 7
            report.path_reason, report.numa_node = b"because", -1
            report.sha256 = bytes(range(32))
            return 0
        report = _report(values("report", fill))
        self.assertEqual((report.name, report.bytes, report.total, report.bytes_by_path),
                         ("cache", 7, 1.5, {sluice.DataPath.HOST: 7}))
        self.assertEqual(report.sha256, bytes(range(32)).hex())
        self.assertIsNone(report.migrated_in)
        self.assertEqual((report.path_reason, report.numa_node), ("because", None))


class Mistakes(Test):
    def test_numbers_that_do_not_fit_are_named(self):
        for name, wrong in (("size", lambda: sluice.Buffer.host(-1)),
                            ("operations", lambda: sluice.Context(-1)),
                            ("offset", lambda: self.ring.read(self.reader, self.memory,
                                                              -1)),
                            ("value", lambda: sluice.Batch().fill(self.memory, -1)),
                            ("value", lambda: sluice.Batch().write(self.memory[:8],
                                                                   1 << 64)),
                            ("layers", lambda: sluice.KVLayout(
                                layers=-1, blocks=1, block_bytes=4096))):
            with self.assertRaisesRegex(ValueError, name):
                wrong()

    def test_what_is_no_memory_is_named(self):
        with self.assertRaisesRegex(TypeError, "ndarray"):
            self.ring.write(self.writer, numpy.zeros(4))

    def test_for_ever_is_never(self):
        self.ring.sleep(0).wait(float("inf"))
        self.assertFalse(self.ring.sleep(float("inf")).poll())

    def test_integers_of_numpy_do_not_wrap(self):
        with self.assertRaisesRegex(ValueError, "outside"):
            self.memory.part(numpy.int32(2**31 - 4096), numpy.int32(8192))
        self.assertEqual(len(self.memory.part(numpy.int32(4096), numpy.int32(64))), 64)


class Coverage(unittest.TestCase):
    def test_all_of_the_c_api_is_used(self):
        """By name, in the sources: functions that are not reachable are named here."""
        package = pathlib.Path(sluice.__file__).parent
        used = "".join(path.read_text() for path in package.glob("*.py"))
        for kind in "sender", "receiver":
            for what in "create", "free", "report", "progress":
                used += f"sluice_{kind}_{what} "
        for what in "all_gather", "all_to_all", "broadcast", "gather", "scatter":
            used += f"sluice_py_{what} "
        missing = {name for name in dir(lib)
                   if name.startswith("sluice_") and name not in used}
        self.assertEqual(missing, {
            "sluice_endpoint_connect"})     # _begin and _take do the same
        for value, path in ((path.value, path) for path in sluice.DataPath):
            name = ffi.string(lib.sluice_path_name(value)).decode()
            self.assertEqual(name, path.name.lower().replace("_", "-"))


class Files(Test):
    def test_a_file_is_read(self):
        op = self.ring.read(self.file(), self.memory[100:], 5)
        n = op.wait()
        self.assertEqual((n, op.wait(), op.poll()), (len(TEXT) - 5,) * 2 + (True,))
        self.assertEqual(bytes(self.memory[99:101 + n]), b"\0" + TEXT[5:] + b"\0")

    def test_a_chain_writes_what_it_read(self):
        source, sink = self.file(), self.file()
        n = len(TEXT)
        with self.ring.chain(3):
            kept = [self.ring.read(source, self.memory[:n], 0),
                    self.ring.write(sink, self.memory[:n], n)]
            done = self.ring.sync(sink)
            with self.assertRaisesRegex(sluice.BusyError, "open already"), \
                    self.ring.chain(1):
                pass
            with self.assertRaisesRegex(RuntimeError, "chain is open"):
                done.wait()
        self.assertIsNone(done.wait())
        self.assertEqual([op.wait() for op in kept], [n, n])
        self.assertEqual(os.pread(sink.fileno(), 3 * n, 0), TEXT * 2)

    def test_a_chain_breaks_where_one_fails(self):
        with self.ring.chain(2):
            first = self.ring.read(self.file(), self.memory, 0)     # too short
            second = self.ring.write(self.file(), self.memory, 0)
        self.assertEqual(first.wait(), len(TEXT))
        with self.assertRaises(sluice.Error) as caught:
            second.wait()
        self.assertEqual(caught.exception.errno, 125)

    def test_a_wait_ends_in_time(self):
        op = self.waiting()
        began = time.monotonic()
        with self.assertRaisesRegex(sluice.InProgressError, "goes on"):
            op.wait(0.05)
        self.assertGreaterEqual(time.monotonic() - began, 0.05)
        self.assertFalse(op.poll())
        op.cancel()
        with self.assertRaises(sluice.OperationCancelledError):
            op.wait()

    def test_to_drop_an_operation_cancels_it(self):
        for end in (lambda op: None, lambda op: op.close()):
            op = self.waiting()
            self.assertFalse(op.poll())
            end(op)
            del op
            os.write(self.writer, b"four")
            self.assertEqual(os.read(self.reader, 9), b"four")
        self.assertEqual(self.ring.left_behind, 0)

    def test_others_can_wait(self):
        op, ready = self.waiting(), self.ring.ready(self.reader, select.POLLIN)
        poll = select.poll()
        poll.register(self.ring, select.POLLIN)
        self.ring.submit()
        self.assertEqual(poll.poll(20), [])
        os.write(self.writer, b"four")
        self.assertEqual(len(poll.poll(10000)), 1)
        self.assertGreater(self.ring.wait(0), 0)
        self.assertEqual((op.wait(), ready.wait() & select.POLLIN), (4, select.POLLIN))
        self.assertEqual(self.ring.wait(0), 0)

    def test_places_are_given_back(self):
        ring = sluice.Context(2)
        kept = [ring.sleep(0) for _ in range(2)]
        for op in kept:
            op.wait()
        ring.sleep(0).wait()
        with self.assertRaises(sluice.BusyError):
            held = [ring.sleep(60) for _ in range(3)]
            held[2].wait()


class Views(Test):
    def test_numpy_goes_there_and_back(self):
        array = numpy.frombuffer(self.memory, dtype=numpy.float32)
        self.assertEqual(array.shape, (12288 // 4,))
        array[:] = numpy.arange(3072)
        file = self.file()
        self.ring.write(file, self.memory, 0).wait()
        again = sluice.Buffer.host(12288)
        self.ring.read(file, again, 0).wait()
        numpy.testing.assert_array_equal(numpy.from_dlpack(again).view(numpy.float32),
                                         numpy.arange(3072, dtype=numpy.float32))

    def test_dlpack_is_the_memory_itself(self):
        array = numpy.from_dlpack(self.memory[10:20])   # which NumPy may not write to
        self.assertEqual((array.shape, array.dtype), ((10,), numpy.uint8))
        memoryview(self.memory)[10] = 77
        self.assertEqual(array[0], 77)
        self.assertEqual(self.memory.__dlpack_device__(), (1, 0))

    def test_dlpack_refuses_what_it_is_not(self):
        for asked, what in (({"dl_device": (10, 0)}, "another device"),
                            ({"copy": True}, "no copy"), ({"stream": 1}, "streams")):
            with self.assertRaisesRegex(BufferError, what):
                self.memory.__dlpack__(**asked)

    def test_capsules_end(self):
        from sluice.memory import _taken
        for version in None, (1, 0):
            capsule = self.memory.__dlpack__(max_version=version)
            self.assertEqual(len(_taken), 1)
            del capsule
            self.assertFalse(_taken)
            array = numpy.from_dlpack(self.memory)
            self.assertEqual(len(_taken), 1)
            del array
            self.assertFalse(_taken)

    def test_a_tensor_may_end_below_an_exception(self):
        from sluice.memory import _taken

        class Ends(Exception):
            pass

        def take():
            array = numpy.from_dlpack(self.memory)
            raise Ends(len(array))
        with self.assertRaises(Ends):
            take()
        with self.assertRaises(TypeError):
            numpy.from_dlpack(self.memory) + object()
        self.assertFalse(_taken)

    def test_torch_shares_it(self):
        try:
            import torch
        except ImportError as why:
            self.skipTest(str(why))
        tensor = torch.from_dlpack(self.memory)
        tensor[3] = 5
        self.assertEqual(bytes(self.memory[:4]), b"\0\0\0\5")
        self.memory.close()
        self.assertEqual(int(tensor[3]), 5)

    def test_a_call_keeps_the_memory(self):
        """Even if another thread closes it in the meantime."""
        from sluice.memory import slice_of, slices_of
        for plain in slice_of, lambda part: slices_of([part]):
            memory = sluice.Buffer.host(1 << 20, small_pages=True)
            address = memory.address
            given = plain(memory[100:])
            memory.close()
            del memory
            gc.collect()
            self.assertTrue(mapped(address))
            del given
            gc.collect()
            self.assertFalse(mapped(address))

    def test_a_view_keeps_the_memory(self):
        for view in (memoryview, numpy.from_dlpack, lambda part: memoryview(part[100:]),
                     lambda part: numpy.frombuffer(part, numpy.uint8)):
            memory = sluice.Buffer.host(1 << 20, small_pages=True)
            address = memory.address
            self.assertTrue(mapped(address))
            seen = view(memory)
            memory.close()
            del memory
            gc.collect()
            self.assertEqual(seen[0], 0)
            self.assertTrue(mapped(address))
            del seen
            gc.collect()
            self.assertFalse(mapped(address))

    def test_the_collector_leaves_what_is_used(self):
        """In a cycle that it ends, what is used last is closed or as it was."""
        seen = []

        class Last:
            def __init__(self, ring, memory):
                self.me, self.ring, self.memory = self, ring, memory
                self.view, self.address = memoryview(memory), memory.address

            def __del__(self):
                for use in self.ring.submit, lambda: self.memory.address:
                    try:
                        use()
                    except ValueError as why:
                        seen.append(str(why))
                seen.append(mapped(self.address))
        gc.collect()
        for early in False, True:       # the order that the collector takes differs
            last = Last(sluice.Context(), sluice.Buffer.host(1 << 20, small_pages=True))
            if early:
                gc.collect()
                last.view.release()
            del last
            gc.collect()
            self.assertTrue(seen.pop())
            self.assertIn(seen, ([], ["this Context is closed"]))
            seen.clear()

    def test_an_operation_keeps_the_memory(self):
        memory = sluice.Buffer.host(1 << 20, small_pages=True)
        address = memory.address
        op = self.ring.read(self.reader, memory)
        memory.close()
        op.poll()
        self.assertTrue(mapped(address))
        del op
        self.assertFalse(mapped(address))

    def test_closed_is_closed(self):
        self.memory.close()
        self.memory.close()
        with self.assertRaisesRegex(ValueError, "Buffer is closed"):
            self.ring.read(self.reader, self.memory)
        with self.assertRaisesRegex(ValueError, "closed"):
            memoryview(self.memory)
        self.ring.close()
        with self.assertRaisesRegex(ValueError, "Context is closed"):
            self.ring.sleep(1)


def mapped(address):
    """Whether there is memory at this address of the process."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            first, last = (int(end, 16) for end in line.split()[0].split("-"))
            if first <= address < last:
                return True
    return False


class Held:
    """An independent file object."""

    def __init__(self, file):
        self.fileno = file.fileno


class Lives(Test):
    def test_any_order_of_ends(self):
        memory = sluice.Buffer.host(4096)
        ring = sluice.Context()
        op = ring.read(self.reader, memory)
        ring.close()
        del ring, memory
        os.write(self.writer, b"four")
        self.assertEqual(op.wait(), 4)

    def test_no_descriptor_is_left(self):
        before = descriptors()
        for _ in range(20):
            ring = sluice.Context()
            op = ring.read(self.reader, self.memory)
            op.poll()
            del ring, op
        self.assertEqual(descriptors(), before)
        kept = sluice.Context()
        kept.close()
        self.assertTrue(kept.closed)
        self.assertEqual(descriptors(), before)
        with self.assertRaisesRegex(ValueError, "Context is closed"):
            kept.submit()
        with self.assertRaisesRegex(ValueError, "Context is closed"):
            kept.sleep(0)

    def test_a_file_is_kept(self):
        file = Held(self.file())
        gone = weakref.ref(file)
        op = self.ring.read(file, self.memory, 0)
        del file
        self.assertIsNotNone(gone())
        self.assertEqual(op.wait(), len(TEXT))
        self.assertIsNone(gone())

    def test_memory_does_not_grow(self):
        def some():
            for _ in range(300):
                memory = sluice.Buffer.host(1 << 16, small_pages=True)
                numpy.frombuffer(memory, numpy.uint8)[:] = numpy.from_dlpack(memory) + 1
                self.ring.write(null, memory).wait()
        with open("/dev/null", "wb") as null:
            some()
            before = resident()
            some()
        self.assertLess(resident() - before, 8 << 20)

    def test_parts_of_many_lengths_do_not_grow(self):
        def some(lengths):
            for length in lengths:
                memoryview(self.memory[:length]).release()
        some(range(1000))
        before = resident()
        some(range(1000, 10000))
        self.assertLess(resident() - before, 2 << 20)

    def test_a_context_that_cannot_be_made_leaves_nothing(self):
        """Its ring takes the last descriptor."""
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.dup(self.reader)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, limits[1]))
        try:
            with self.assertRaisesRegex(sluice.SystemCallError, "descriptor|open files"):
                sluice.Context()
            gc.collect()
            os.close(os.dup(self.reader))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    def test_numbers_and_text_for_c_are_checked(self):
        with tempfile.TemporaryDirectory() as where:
            path = where + "/socket"
            for wrong in (
                    lambda: sluice.Batch(-1),
                    lambda: sluice.Batch().place(sluice.Place.FAN_OUT, -1),
                    lambda: sluice.Batch().wait(self.memory[:4], sluice.Compare.EQUAL, 0,
                                                limit=float("inf")),
                    lambda: sluice.Batch().wait(self.memory[:4], sluice.Compare.EQUAL, 0,
                                                limit=1e10),
                    lambda: self.ring.chain(-1).__enter__(),
                    lambda: sluice.Processes(self.ring, path, -1, 2),
                    lambda: sluice.Processes(self.ring, path, 0, 2,
                                             patience=float("inf")),
                    lambda: sluice.Processes(self.ring, path + "\0", 0, 2),
                    lambda: sluice.Nic(self.ring, "a\0b"),
                    lambda: sluice.Topology("/\0"),
                    lambda: sluice.Device(self.ring, "0\0")):
                with self.assertRaises(ValueError):
                    wrong()

    def test_another_thread_is_refused(self):
        op = self.waiting()
        wrong = []

        def use():
            for call in (op.poll, self.ring.submit, lambda: self.ring.sleep(1)):
                try:
                    call()
                except RuntimeError as why:
                    wrong.append(str(why))
        in_thread(use)
        self.assertEqual(len(wrong), 3)
        self.assertIn("another thread", wrong[0])

    def test_an_operation_may_be_dropped_in_another_thread(self):
        ops = [self.waiting()]
        self.assertFalse(ops[0].poll())
        in_thread(ops.clear)
        # it ends in its own thread, at the next call
        self.ring.submit()
        os.write(self.writer, b"four")
        self.assertEqual(os.read(self.reader, 9), b"four")

    def test_a_context_may_be_dropped_in_another_thread(self):
        """With what was opened on it. Any call in its own thread frees it."""
        before = descriptors()
        for call in self.ring.submit, sluice.Batch, lambda: sluice.Context().close():
            kept = [sluice.Context()]
            kept.append(kept[0].read(self.reader, self.memory))
            kept[1].poll()
            in_thread(kept.clear)
            call()
            self.assertEqual(descriptors(), before)

    def test_what_is_left_to_a_thread_ends_with_it(self):
        before, kept = descriptors(), []
        opened, dropped = threading.Event(), threading.Event()

        def own():
            kept.append(sluice.Context().read(self.reader, self.memory))
            kept[0].poll()
            opened.set()
            dropped.wait(10)
        thread = threading.Thread(target=own)
        thread.start()
        opened.wait(10)
        kept.clear()
        dropped.set()
        thread.join()
        self.assertEqual(descriptors(), before)

    def test_a_context_in_a_thread_local_ends_with_its_thread(self):
        before, local = descriptors(), threading.local()

        def own():
            local.ring = sluice.Context()
            local.op = local.ring.read(self.reader, self.memory)
            local.op.poll()
        in_thread(own)
        self.assertEqual(descriptors(), before)

    def test_a_context_of_a_thread_that_ended(self):
        kept = []
        in_thread(lambda: kept.append(sluice.Context().read(self.reader, self.memory)))
        in_thread(lambda: kept.append(sluice.Context()))
        with self.assertWarns(ResourceWarning):
            kept.clear()
            gc.collect()

    def test_a_buffer_is_of_all_threads(self):
        in_thread(lambda: memoryview(self.memory).__setitem__(0, 9))
        self.assertEqual(memoryview(self.memory)[0], 9)

    def test_a_chain_is_not_disturbed(self):
        """What is dropped in a chain ends after it."""
        other = self.waiting()
        self.assertFalse(other.poll())
        with self.ring.chain(2):
            first = self.ring.read(self.file(), self.memory, 0)     # too short
            del other
            second = self.ring.sync(self.file())
        self.assertEqual(first.wait(), len(TEXT))
        with self.assertRaises(sluice.OperationCancelledError):
            second.wait()

    def test_a_forked_child_touches_nothing(self):
        op = self.waiting()
        self.assertFalse(op.poll())
        child = os.fork()
        if not child:
            try:
                op.poll()
                told = ""
            except RuntimeError as why:
                told = str(why)
            del op, self.ring, self.memory
            gc.collect()
            os._exit("parent" not in told)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        os.write(self.writer, b"four")
        self.assertEqual(op.wait(10), 4)

    def test_the_interpreter_ends(self):
        """With all kinds of objects alive."""
        program = ("import sluice, numpy, os\n"
                   "ring = sluice.Context()\n"
                   "memory = sluice.Buffer.host(4096)\n"
                   "array = numpy.from_dlpack(memory)\n"
                   "reader, writer = os.pipe()\n"
                   "op = ring.read(reader, memory)\n"
                   "op.poll()\n"
                   "cycle = [op, ring]\n"
                   "cycle.append(cycle)\n")
        ran = subprocess.run([sys.executable, "-X", "dev", "-c", program],
                             capture_output=True, text=True)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))


def descriptors():
    """How many are open."""
    return len(os.listdir("/proc/self/fd"))


def in_thread(what):
    thread = threading.Thread(target=what)
    thread.start()
    thread.join()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class Signals(Test):
    def interrupted(self, wait):
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            wait()
        self.assertLess(time.monotonic() - began, 10)       # of 20

    def test_ctrl_c_ends_a_wait(self):
        op = self.waiting()
        self.interrupted(lambda: op.wait(20))
        os.write(self.writer, b"four")
        self.assertEqual(op.wait(10), 4)
        self.interrupted(lambda: self.ring.wait(20))

    def test_other_threads_run(self):
        count = []
        thread = threading.Thread(
            target=lambda: [count.append(time.sleep(0.001)) for _ in range(50)])
        thread.start()
        self.ring.sleep(0.5).wait()
        thread.join()
        self.assertEqual(len(count), 50)


class BatchesOfThreads(unittest.TestCase):
    def batch_of(self):
        """A batch that keeps memory, and the address of that memory."""
        memory, batch = sluice.Buffer.host(1 << 20, small_pages=True), sluice.Batch()
        batch.fill(memory, 1)
        return [batch], memory.address

    def in_thread(self, what):
        thread = threading.Thread(target=what)
        thread.start()
        thread.join()

    def test_one_that_is_dropped_elsewhere_ends_with_the_next(self):
        kept, address = self.batch_of()
        self.in_thread(kept.clear)
        self.assertTrue(mapped(address))
        sluice.Batch()
        self.assertFalse(mapped(address))

    def test_one_that_is_dropped_elsewhere_ends_with_a_call_of_a_context(self):
        ring = sluice.Context()
        kept, address = self.batch_of()
        self.in_thread(kept.clear)
        self.assertTrue(mapped(address))
        ring.submit()
        self.assertFalse(mapped(address))

    def test_one_that_outlives_its_thread_is_told_of(self):
        kept = []
        self.in_thread(lambda: kept.extend(self.batch_of()[0]))
        with self.assertWarnsRegex(ResourceWarning, "kept"):
            kept.clear()
            gc.collect()


class Round:
    """One of the loop, at once: await Round()."""

    def __await__(self):
        yield


class Async(Test):
    def run_it(self, what):
        return asyncio.run(asyncio.wait_for(what, 20))

    def test_operations_are_awaited(self):
        async def go():
            n = await self.ring.read(self.file(), self.memory, 0)
            later = asyncio.get_running_loop().call_later
            later(0.05, os.write, self.writer, b"four")
            return n, await self.waiting(), bytes(self.memory[:4])
        for _ in range(2):      # a new loop each time
            self.assertEqual(self.run_it(go()), (len(TEXT), 4, b"four"))

    def test_many_at_once(self):
        async def go():
            began = time.monotonic()
            await asyncio.gather(*(self.ring.sleep(0.05 + i / 5000) for i in range(500)))
            return time.monotonic() - began
        self.assertGreaterEqual(self.run_it(go()), 0.149)

    def test_no_one_is_missed(self):
        """One operation's completion is taken in by the poll of another operation, and by
        waits for others."""
        async def go():
            ends = [os.pipe() for _ in range(20)]
            ops = [asyncio.ensure_future(self.one(reader)) for reader, _ in ends]
            await asyncio.sleep(0.05)
            for _, writer in ends:
                os.write(writer, b"x")
            self.ring.sleep(0.01).wait()
            while self.ring.wait(0):    # until the descriptor is quiet
                pass
            done = await asyncio.gather(*ops)
            for pair in ends:
                for end in pair:
                    os.close(end)
            return done
        self.assertEqual(self.run_it(go()), [1] * 20)

    async def one(self, reader):
        return await self.ring.read(reader, sluice.Buffer.host(4096))

    def test_an_error_is_raised(self):
        async def go():
            with open("/dev/full", "wb") as full:
                await self.ring.write(full, self.memory, 0)
        with self.assertRaises(sluice.OutputError):
            self.run_it(go())

    def test_to_cancel_a_task_drains_its_operation(self):
        async def go():
            op = self.waiting()
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(op, 0.05)
            self.assertTrue(op.closed)
            os.write(self.writer, b"four")
            return os.read(self.reader, 9)
        self.assertEqual(self.run_it(go()), b"four")

    def test_a_task_is_cancelled_beside_a_chain(self):
        """The chain of another task is not cut, and the operation is drained."""
        async def chain(begun):
            with self.ring.chain(2):
                first = self.ring.sleep(0)
                begun.set()
                await asyncio.sleep(0.05)
                second = self.ring.sleep(0)
            await first
            await second

        async def go():
            op, begun = self.waiting(), asyncio.Event()
            waiting = asyncio.create_task(op._settled())
            await asyncio.sleep(0)
            chained = asyncio.create_task(chain(begun))
            await begun.wait()
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            self.assertTrue(op.closed)
            await chained
        self.run_it(go())

    def test_another_task_adds_nothing_to_a_chain(self):
        async def go():
            file = self.file()
            with self.ring.chain(2):
                first = self.ring.write(file, self.memory[:4], 0)
                with self.assertRaisesRegex(RuntimeError, "another task has a chain open"):
                    await asyncio.create_task(self.one(self.reader))
                second = self.ring.sync(file)
            return await first, await second
        self.assertEqual(self.run_it(go()), (4, None))

    def test_a_chain_with_an_await_goes_on_before_it_is_awaited(self):
        async def go():
            file = self.file()
            memoryview(self.memory)[:4] = b"four"
            with self.ring.chain(2):
                kept = [self.ring.write(file, self.memory[:4], at) for at in (0, 4)]
                await asyncio.sleep(0.01)
            for _ in range(200):
                await asyncio.sleep(0.05)
                if os.pread(file.fileno(), 9, 0)[:8] == b"fourfour":
                    return [await op for op in kept]
            return None
        self.assertEqual(self.run_it(go()), [4, 4])

    def test_the_loop_sleeps_beside_a_chain(self):
        """Although the descriptor is readable."""
        async def go():
            loop, rounds = asyncio.get_running_loop(), []
            waiting = asyncio.create_task(self.one(self.reader))
            await asyncio.sleep(0.02)
            once = loop._run_once
            loop._run_once = lambda: (rounds.append(0), once())
            with self.ring.chain(1):
                os.write(self.writer, b"four")
                await asyncio.sleep(0.3)
            count = len(rounds)
            return count, await waiting
        count, value = self.run_it(go())
        self.assertLess(count, 20)
        self.assertEqual(value, 4)

    def test_a_chain_may_wait_for_a_task_that_is_cancelled(self):
        async def go():
            waiting = asyncio.create_task(self.waiting()._settled())
            await asyncio.sleep(0.01)
            with self.ring.chain(1), self.assertRaises(TimeoutError):
                await asyncio.wait_for(waiting, 0.05)
            os.write(self.writer, b"four")
            return waiting.cancelled(), os.read(self.reader, 9)
        self.assertEqual(self.run_it(go()), (True, b"four"))

    def test_a_task_that_is_cancelled_beside_a_chain_has_its_memory_back(self):
        async def reuse():
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await self.ring.read(self.reader, self.memory)
            memoryview(self.memory)[:4] = b"mine"
            os.write(self.writer, b"four")

        async def go():
            waiting = asyncio.create_task(reuse())
            await asyncio.sleep(0.01)
            with self.ring.chain(1):
                part = self.ring.sleep(0)
                await asyncio.sleep(1.5)
            await waiting
            with contextlib.suppress(sluice.Error):
                await part
            return bytes(memoryview(self.memory)[:4])
        self.assertEqual(self.run_it(go()), b"mine")

    def test_to_cancel_is_to_cancel_what_was_closed(self):
        async def go():
            op = self.waiting()
            waiting = asyncio.create_task(op._settled())
            await asyncio.sleep(0.01)
            op.close()
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
        self.run_it(go())

    def test_a_closed_loop_awaits_nothing(self):
        loop = asyncio.new_event_loop()

        async def leave():
            kept.append(loop.create_task(self.one(self.reader)))
            await asyncio.sleep(0.01)
        kept = []
        loop.run_until_complete(leave())
        loop.close()
        kept[0]._log_destroy_pending = False
        self.run_it(self.a_moment(self.ring))
        kept.clear()        # the task ends, as that of the closed loop
        gc.collect()
        self.run_it(self.a_moment(self.ring))

    def test_the_loop_of_a_forked_child_takes_nothing_in(self):
        async def go():
            waiting = asyncio.create_task(self.one(self.reader))
            await asyncio.sleep(0.02)
            os.write(self.writer, b"four")
            child = os.fork()
            if not child:
                try:
                    for _ in range(3):
                        await Round()
                    waiting.cancel()
                    while not waiting.done():
                        await Round()
                finally:
                    os._exit(not waiting.cancelled())
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            return await waiting
        self.assertEqual(self.run_it(go()), 4)

    def test_what_is_dropped_in_another_thread_ends_with_the_loop_alone(self):
        async def go():
            kept = [self.waiting()]
            await asyncio.sleep(0.02)
            await asyncio.to_thread(kept.clear)
            await asyncio.sleep(0.02)
            os.write(self.writer, b"four")
            await asyncio.sleep(0.02)
            os.set_blocking(self.reader, False)
            return os.read(self.reader, 9)
        self.assertEqual(self.run_it(go()), b"four")

    def test_a_closed_operation_ends_its_await(self):
        async def go():
            op = self.waiting()
            asyncio.get_running_loop().call_later(0.05, op.close)
            await op
        with self.assertRaisesRegex(ValueError, "closed"):
            self.run_it(go())

    def test_the_loop_sleeps(self):
        """No polling: in 300 ms without work there are few rounds, and little CPU time."""
        async def go():
            loop, rounds = asyncio.get_running_loop(), []
            once = loop._run_once
            loop._run_once = lambda: (rounds.append(0), once())
            before, threads = time.process_time(), threading.active_count()
            await self.ring.sleep(0.3)
            self.assertEqual(threading.active_count(), threads)
            return len(rounds), time.process_time() - before
        rounds, busy = self.run_it(go())
        self.assertLess(rounds, 20)
        self.assertLess(busy, 0.2)

    def test_what_is_started_goes_on_before_it_is_awaited(self):
        async def go():
            file = self.file()
            memoryview(self.memory)[:4] = b"four"
            op = self.ring.write(file, self.memory[:4], 0)
            for _ in range(200):
                await asyncio.sleep(0.05)
                if os.pread(file.fileno(), 4, 0) == b"four":
                    return await op
            return None
        self.assertEqual(self.run_it(go()), 4)

    def test_nothing_is_left_in_the_loop(self):
        async def go():
            ring = sluice.Context()
            fd = ring.fileno()
            await ring.sleep(0.01)
            del ring
            gc.collect()
            return asyncio.get_running_loop().remove_reader(fd)
        self.assertFalse(self.run_it(go()))

    def test_a_context_with_operations_may_end_in_another_thread(self):
        async def go():
            loop, kept, rounds = asyncio.get_running_loop(), [sluice.Context()], []
            kept += [kept[0].fileno(), kept[0].sleep(0.1)]
            fd = kept.pop(1)
            await kept[0].sleep(0.01)
            await asyncio.to_thread(kept.clear)
            once = loop._run_once
            loop._run_once = lambda: (rounds.append(0), once())
            await asyncio.sleep(0.3)
            self.assertLess(len(rounds), 50)
            return loop.remove_reader(fd)
        self.assertFalse(self.run_it(go()))

    def test_a_context_that_ends_with_its_loop_is_closed(self):
        loop, kept = asyncio.new_event_loop(), [sluice.Context()]
        fd = kept[0].fileno()
        loop.run_until_complete(self.a_moment(kept[0]))
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join()
        loop.close()
        gc.collect()
        with self.assertRaises(OSError):
            os.fstat(fd)

    async def a_moment(self, ring):
        await ring.sleep(0.01)

    def test_a_context_may_end_in_another_thread(self):
        async def go():
            loop, kept = asyncio.get_running_loop(), [sluice.Context()]
            fd = kept[0].fileno()
            await kept[0].sleep(0.01)
            await asyncio.to_thread(kept.clear)
            await asyncio.sleep(0.05)
            with self.assertRaises(OSError):
                os.fstat(fd)
            return loop.remove_reader(fd)
        self.assertFalse(self.run_it(go()))


class Arrays(unittest.TestCase):
    """Arrays that fill a batch by one call."""

    def setUp(self):
        self.to, self.from_ = sluice.Buffer.host(4096), sluice.Buffer.host(4096)
        self.batch = sluice.Batch()

    def copy_many(self, *arrays):
        self.batch.copy_many(self.to, arrays[0], self.from_, *arrays[1:])

    def refused(self, kind, why, *arrays):
        with self.assertRaisesRegex(kind, why) as caught:
            self.copy_many(*arrays)
        self.assertEqual(len(self.batch), 0)
        return caught.exception

    def test_one_size_is_that_of_all(self):
        for size in 16, numpy.int64(16), numpy.uint8(16):
            self.batch.clear()
            self.copy_many([0, 16], [32, 64], size)
            self.assertEqual((len(self.batch), self.batch.bytes), (2, 32))

    def test_integers_of_any_kind(self):
        for kind in (numpy.uint64, numpy.int64, numpy.int32, ">i8", list, tuple,
                     lambda values: array.array("Q", values),
                     lambda values: array.array("h", values)):
            if isinstance(kind, (str, type)) and kind not in (list, tuple):
                def made(values, dtype=kind):
                    return numpy.array(values, dtype)
            else:
                made = kind
            with self.subTest(kind):
                self.batch.clear()
                self.copy_many(made([0, 1024]), made([2048, 0]), made([1024, 96]))
                self.copy_many(made([0, 1024, 5]), made([2048, 0, 6]), 7)
                self.assertEqual((len(self.batch), self.batch.bytes), (5, 1120 + 21))

    def test_arrays_with_holes(self):
        offsets = numpy.arange(16, dtype=numpy.uint64)[::2] * 100
        self.copy_many(offsets, offsets[::-1], 100)
        self.assertEqual(self.batch.bytes, 800)
        wrong = numpy.array([0, 5000, 1, 5001])[::2]     # the gaps do not count
        self.copy_many(wrong, wrong, 1)

    def test_what_is_seen_is_not_copied(self):
        numbers = numpy.zeros(4, numpy.uint64)
        for seen in numbers, numbers.astype(numpy.int64):
            address = seen.__array_interface__["data"][0]
            self.assertEqual(int(ffi.cast("uintptr_t", integers("uint64_t", seen))), address)
        self.assertEqual(list(integers("uint32_t", b"ab")), [97, 98])

    def test_the_wrong_one_is_named(self):
        why = self.refused(sluice.UsageError, "copy 1: 97 bytes at 4000 are outside of the "
                           "4096 bytes of `from`", [0, 0], [0, 4000], 97)
        self.assertEqual(why.index, 1)
        self.batch.clear()
        self.refused(sluice.UsageError, "copy 0: 1 bytes at 4096 .* `to`", [4096], [0], 1)

    def test_arrays_that_make_no_sense(self):
        self.refused(ValueError, "2 offsets to copy to, 1 to copy from, and 2 sizes",
                     [0, 0], [0], 1)
        self.refused(ValueError, "1 offsets to copy to, 1 to copy from, and 2 sizes",
                     [0], [0], [1, 1])
        self.refused(ValueError, "negative: -64", numpy.array([0, -64]), [0, 0], 1)
        self.refused(ValueError, "does not fit in uint64_t", [-64], [0], 1)
        self.refused(ValueError, "2 dimensions", numpy.zeros((2, 2), numpy.uint64), [0], 1)
        self.refused(TypeError, "", numpy.zeros(1), [0], 1)
        self.refused(TypeError, "", 0, [0], 1)

    def test_parts_are_gathered_and_scattered(self):
        parts = [self.from_[:100], self.from_[4000:]]
        self.batch.gather(self.to[:196], parts)
        self.batch.scatter(parts, self.to[:196])
        self.assertEqual((len(self.batch), self.batch.bytes), (4, 392))
        with self.assertRaisesRegex(sluice.UsageError, "2 parts have 196 bytes, .* 195"):
            self.batch.gather(self.to[:195], parts)


class KVLayout(unittest.TestCase):
    def test_parts_are_where_they_should_be(self):
        layout = sluice.KVLayout(layers=2, blocks=4, block_bytes=16, block_stride=32)
        cache = sluice.Buffer.host(layout.size + 64)[64:]
        parts = layout.parts(cache, [2, 0])
        self.assertEqual([part.offset - 64 for part in parts],
                         [plane * 128 + block * 32 for plane in range(4)
                          for block in (2, 0)])
        self.assertEqual({len(part) for part in parts}, {16})
        self.assertEqual((layout.bytes_each, layout.size), (64, 3 * 128 + 3 * 32 + 16))
        with self.assertRaisesRegex(sluice.UsageError, "block 4 is none of 4") as caught:
            layout.parts(cache, [0, 4])
        self.assertEqual(caught.exception.index, 1)
        with self.assertRaisesRegex(ValueError, "memory 15"):
            layout.parts(cache[:15], [0])

    def test_neighbours_become_one(self):
        layout = sluice.KVLayout(layers=1, planes=1, blocks=8, block_bytes=16)
        cache = sluice.Buffer.host(layout.size)
        self.assertEqual([(part.offset, len(part))
                          for part in layout.parts(cache, [1, 2, 3, 5])],
                         [(16, 48), (80, 16)])

    def test_blocks_are_numbers_of_any_kind(self):
        layout = sluice.KVLayout(layers=1, planes=1, blocks=8, block_bytes=16)
        cache = sluice.Buffer.host(layout.size)
        for dtype in numpy.uint32, numpy.int32, numpy.int64:
            parts = layout.parts(cache, numpy.array([5, 1], dtype))
            self.assertEqual([part.offset for part in parts], [80, 16])
        self.assertEqual(len(layout.parts(cache, [3, 3])), 2)
        with self.assertRaisesRegex(sluice.UsageError, "block 3 is named twice"):
            layout.parts(cache, [3, 3], once=True)

    def test_shapes_that_cannot_be(self):
        for wrong, why in (({"planes": 0}, "must not be 0"),
                           ({"block_stride": 15}, "16 bytes each 15 bytes overlaps"),
                           ({"plane_stride": 63}, "64 bytes each 63 bytes overlaps")):
            with self.assertRaisesRegex(sluice.UsageError, why):
                sluice.KVLayout(**{"layers": 2, "blocks": 4, "block_bytes": 16, **wrong})

    def test_shapes_are_compared(self):
        layout = sluice.KVLayout(layers=2, blocks=4, block_bytes=16)
        offer = sluice.Offer("kv 2 layers, 2 planes, 3 blocks of 16 bytes", 192)
        layout.check(offer, 3)
        self.assertEqual(layout.name(3), offer.name)
        for other, count in ((offer, 4), (sluice.Offer(offer.name, None), 3),
                             (sluice.Offer("kv" * 300, 192), 3)):
            with self.assertRaisesRegex(sluice.ProtocolError, "KV cache: "):
                layout.check(other, count)


if __name__ == "__main__":
    unittest.main()
