# SPDX-License-Identifier: MIT
"""Collectives of the real kernel, replayed in the virtual time of sluice-model: from what
the engines of emulated GPUs have executed, the model gets the packets and the time that it
plans itself. scripts/guest/collectives runs this on eight GPUs, as in the model."""

import collections
import json
import pathlib
import subprocess
import tempfile
import time
import unittest

import sluice

MODEL = pathlib.Path(__file__).parents[3] / "build/emu/sluice-model"
GPUS = 8
BLOCK = 16 << 10


class Emulator:
    """The control socket of all GPUs."""

    def __init__(self):
        names = pathlib.Path("/sys/class/virtio-ports").glob("*/name")
        port = next(name.parent.name for name in names if name.read_text() == "sluice.emu\n")
        self.port = open(f"/dev/{port}", "r+b", buffering=0)

    def tell(self, gpu, command):
        self.port.write(f"gpu{gpu} {command}\n".encode())
        answer = b""
        while not answer.endswith(b"ok\n"):
            answer += self.port.read(1 << 16)
            if b"error: " in answer:
                raise RuntimeError(f"{command}: {answer.decode()}")
        return answer[:-len(b"ok\n")].decode()

    def tell_all(self, command):
        return [self.tell(gpu, command) for gpu in range(GPUS)]

    def close(self):
        self.port.close()


def model(*words):
    """The time that it prints, and the events of its trace."""
    with tempfile.NamedTemporaryFile(suffix=".json") as trace:
        said = subprocess.run([MODEL, *words, "--trace", trace.name], check=True,
                              capture_output=True, text=True).stdout
        events = json.load(trace)
    return float(said.split()[-2]), [event for event in events if event["ph"] == "X"]


def packets(events):
    """Their number by kind and size, and the number of engines used on all GPUs."""
    known = [event for event in events if event["name"] not in ("submit", "sleep")]
    return (collections.Counter((event["name"], event["args"]["bytes"]) for event in known),
            len({(event["pid"], event["tid"]) for event in known}))


class Replay(unittest.TestCase):
    def setUp(self):
        self.ring = sluice.Context()
        gpus = [sluice.Device(self.ring, str(i)) for i in range(GPUS)]
        self.group = sluice.Group(self.ring, gpus)
        memory = [gpu.vram(2 * GPUS * BLOCK) for gpu in gpus]
        self.to = [one[:GPUS * BLOCK] for one in memory]
        self.source = [one[GPUS * BLOCK:] for one in memory]
        self.emulator = Emulator()

    def tearDown(self):
        self.emulator.close()
        self.ring.close()

    def doorbells(self):
        return sum(dump.count('"doorbell"') for dump in self.emulator.tell_all("timeline dump"))

    def executed(self, collective, doorbells):
        """All doorbells are rung before an engine begins, as a fast host would do."""
        collective.run().wait(60)   # page tables and memory are now in place
        self.emulator.tell_all("timeline start")
        self.emulator.tell_all("engine all hang")
        run = collective.run()
        until = time.monotonic() + 5
        while self.doorbells() < doorbells and time.monotonic() < until:
            time.sleep(0.05)
        self.emulator.tell_all("engine all resume")
        run.wait(60)
        self.assertEqual(self.doorbells(), doorbells)
        with tempfile.TemporaryDirectory() as directory:
            files = []
            for gpu, dump in enumerate(self.emulator.tell_all("timeline dump")):
                files.append(pathlib.Path(directory, f"gpu{gpu}.json"))
                files[-1].write_text(dump)
            return model("replay", *files)

    def compare(self, operation, way, collective):
        planned, expected = model("collective", operation, way, str(GPUS * BLOCK), "--batches")
        doorbells = sum(event["name"] == "submit" for event in expected)
        took, done = self.executed(collective, doorbells)
        self.assertEqual(packets(done), packets(expected))
        self.assertAlmostEqual(took / planned, 1, delta=0.02)

    def gather(self, way, how):
        own = [one[rank * BLOCK:(rank + 1) * BLOCK] for rank, one in enumerate(self.to)]
        self.compare("all-gather", way, self.group.all_gather(self.to, own, how=how))

    def test_all_gather_by_pcpy(self):
        self.gather("pcpy", sluice.Variant.PCPY)

    def test_all_gather_by_bcst(self):
        self.gather("pair", sluice.Variant.BCST)

    def test_all_gather_by_b2b(self):
        self.gather("b2b", sluice.Variant.B2B)

    def test_all_to_all_by_swap(self):
        self.compare("all-to-all", "pair",
                     self.group.all_to_all(self.to, self.to, how=sluice.Variant.SWAP))

    def test_all_to_all_by_pcpy(self):
        self.compare("all-to-all", "pcpy",
                     self.group.all_to_all(self.to, self.source, how=sluice.Variant.PCPY))
