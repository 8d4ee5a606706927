# SPDX-License-Identifier: MIT
"""The programs of examples/, as built in the directory that EXAMPLES names. The class
Host needs no device: installed_test.py runs it. For the others, scripts/guest/examples
makes the nodes a and b, and there are two GPUs."""

import hashlib
import importlib.util
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

BUILT = pathlib.Path(os.environ["EXAMPLES"])
SOURCE = pathlib.Path(__file__).resolve().parent.parent / "examples"
# The kernel has no patches.
STOCK = os.environ.get("KERNEL") == "stock"
HAS_MODULE = importlib.util.find_spec("sluice")
ADDRESS_B = "10.77.0.2"
# On a machine with much other work, Python takes more than a minute to start.
PATIENT = ("--timeout", "240")

series = unittest.skipIf(STOCK, "the base's kernel has no batches and no alias")
module = unittest.skipUnless(HAS_MODULE, "the Python module is not built")


def command(program):
    """The command of an example, by the name of its file: built if it has no suffix."""
    if program.endswith(".py"):
        return [sys.executable, SOURCE / program]
    return [BUILT / program]


def make_weights(path, *words):
    subprocess.run([*command("make_weights.py"), path, *words], check=True)
    return path


def safetensors(header, data=b"", length=None):
    """A file with this header, right or wrong."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(begin, end, dtype="U8", shape=None):
    return {"dtype": dtype, "shape": [end - begin] if shape is None else shape,
            "data_offsets": [begin, end]}


class Test(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.work = pathlib.Path(work.name)

    def start(self, program, *words, node=None):
        inside = ["ip", "netns", "exec", node] if node else []
        process = subprocess.Popen([*inside, *command(program), *words], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.kill)
        return process

    def end(self, process, status=0):
        said, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, status, said)
        return said

    def said(self, program, *words, status=0):
        return self.end(self.start(program, *words), status)


class Host(Test):
    def test_scatter_gather(self):
        said = self.said("scatter_gather")
        self.assertIn("in host memory, as no GPU was named: "
                      "0 gathered wrong, 0 scattered wrong", said)

    def test_load_weights(self):
        said = self.said("load_weights", make_weights(self.work / "w"))
        self.assertEqual(said.count("right"), 28, said)
        self.assertIn("28 tensors in host memory, as no GPU was named: "
                      "0 wrong, 0 without a digest", said)

    def test_a_tensor_that_differs(self):
        path = make_weights(self.work / "w", "1")
        whole = bytearray(path.read_bytes())
        length, = struct.unpack_from("<Q", whole)
        name = "model.layers.0.input_layernorm.weight"
        begin, _ = json.loads(whole[8:8 + length])[name]["data_offsets"]
        whole[8 + length + begin] ^= 1
        path.write_bytes(whole)
        said = self.said("load_weights", path, status=1)
        self.assertEqual(re.findall(r"^(\S+) .*WRONG", said, re.M), [name])
        self.assertIn("1 wrong", said)

    def test_weights_without_digests(self):
        (self.work / "w").write_bytes(safetensors({"t": tensor(0, 3)}, b"abc"))
        said = self.said("load_weights", self.work / "w")
        self.assertIn(hashlib.sha256(b"abc").hexdigest(), said)
        self.assertIn("0 wrong, 1 without a digest", said)

    def test_what_is_no_safetensors_file(self):
        for data, why in {
            b"": "empty",
            b"1234567": "7 bytes",
            safetensors(b"", length=100_000_001): "100000001 bytes, and 100000000 are",
            safetensors(b"{}", length=11): "11 bytes, and the whole file 10",
            safetensors(b"{"): "no JSON object",
            safetensors(b"[]"): "no JSON object",
            safetensors({"t": 1}): "t: it has no dtype",
            safetensors({"t": tensor(0, 1, "U7")}, b"1"): "t: its dtype U7 is not known",
            safetensors({"t": tensor(0, 1, shape=[-1])}, b"1"): "t: its shape is no list",
            safetensors({"t": tensor(0, 4, "F32", [2])}, b"1234"): "t: it has 4 bytes",
            safetensors({"t": tensor(0, 0, "U8", [1 << 32, 1 << 32])}): "t: it has 0 bytes",
            safetensors({"t": tensor(2, 1, shape=[1])}, b"1"): "t: its data_offsets",
            safetensors({"t": tensor(1, 2)}, b"12"): "t: it begins at byte 1",
            safetensors({"s": tensor(0, 2), "t": tensor(1, 3)}, b"123"):
                "t: it begins at byte 1 of the data, and the tensor before ends at 2",
            safetensors({"t": tensor(0, 3)}, b"12"): "end at byte 3 of the data, which are 2",
            safetensors({"t": tensor(0, 1)}, b"12"): "end at byte 1 of the data, which are 2",
        }.items():
            with self.subTest(why):
                (self.work / "w").write_bytes(data)
                self.assertIn(why, self.said("load_weights", self.work / "w", status=1))

    def test_what_makes_no_sense(self):
        none = self.work / "none"
        for words, why in {
            ("load_weights", none): f"{none}: open: No such file",
            ("load_weights", "--gpu", "0"): "either a FILE or a host",
            ("load_weights", none, "--gpu", "nosuch"): "nosuch: ",
            ("scatter_gather", "nosuch"): "nosuch: ",
            ("kv_transfer", "decode", "--blocks", "40"): "40 are wanted, and --room has 32",
            ("kv_transfer", "decode", "--nic", "nosuch"): "nosuch: ",
            ("move_vram", "nosuch", "0"): "nosuch: ",
        }.items():
            with self.subTest(words):
                self.assertIn(why, self.said(*words, status=1))
        self.assertIn("usage", self.said("move_vram", status=2))

    @module
    def test_the_module_is_found(self):
        self.assertIn("prefill", self.said("kv_transfer.py", "--help"))
        self.assertIn("nosuch: ", self.said("move_vram.py", "nosuch", "0", status=1))


class Gpu(Test):
    def hello(self, program):
        self.assertRegex(self.said(program, __file__),
                         r"^[1-9]\d* bytes went to 0000:\S+ and came back")

    def test_hello(self):
        self.hello("hello")

    def test_hello_c(self):
        self.hello("hello-c")

    @module
    def test_hello_py(self):
        self.hello("hello.py")

    def test_scatter_gather(self):
        self.assertRegex(self.said("scatter_gather", "0"),
                         "in the memory of GPU 0000:.*: "
                         "0 gathered wrong, 0 scattered wrong")

    def test_load_weights(self):
        said = self.said("load_weights", make_weights(self.work / "w"), "--gpu", "1")
        self.assertRegex(said, "28 tensors in the memory of GPU 0000:.*: 0 wrong, 0 without")


class Nodes(Test):
    """One end in the node a, the other end in b, with a GPU each."""

    def both(self, there, here):
        """The output of both ends, which start with the one that waits for a peer."""
        ends = [self.start(words[0], *words[1:], node=node)
                for node, words in (("b", there), ("a", here))]
        return [self.end(end) for end in ends]

    def load(self, *gpu):
        path = make_weights(self.work / "w")
        _, said = self.both(("load_weights", path, "--serve", "--nic", "rxe-b", *PATIENT),
                            ("load_weights", "--from", ADDRESS_B, "--nic", "rxe-a",
                             *PATIENT, *gpu))
        self.assertIn("28 tensors", said)
        self.assertIn("0 wrong, 0 without a digest", said)
        return said

    def test_load_weights(self):
        self.assertIn("by host", self.load())

    @series
    def test_load_weights_to_a_gpu(self):
        self.assertIn("by device-alias", self.load("--gpu", "0"))

    def kv_transfer(self, decode, prefill, *gpus):
        of = ("--requests", "2", "--model", "70b-tp4", "--blocks", "3", "--room", "6",
              *PATIENT)
        gpu = [("--gpu", name) for name in gpus] or [(), ()]
        said, _ = self.both((decode, "decode", "--nic", "rxe-b", *of, *gpu[1]),
                            (prefill, "prefill", "--nic", "rxe-a", "--host", ADDRESS_B,
                             *of, *gpu[0]))
        self.assertRegex(said, "2 requests.*, every tensor as it was computed")
        return said

    def test_kv_transfer(self):
        self.assertIn("by host", self.kv_transfer("kv_transfer", "kv_transfer"))

    @series
    def test_kv_transfer_of_gpus(self):
        said = self.kv_transfer("kv_transfer", "kv_transfer", "0", "1")
        self.assertIn("by device-alias", said)

    @module
    def test_kv_transfer_py(self):
        self.assertIn("by host", self.kv_transfer("kv_transfer.py", "kv_transfer.py"))

    @module
    def test_kv_transfer_py_to_cpp(self):
        self.assertIn("by host", self.kv_transfer("kv_transfer", "kv_transfer.py"))

    @module
    @series
    def test_kv_transfer_of_gpus_cpp_to_py(self):
        said = self.kv_transfer("kv_transfer.py", "kv_transfer", "0", "1")
        self.assertIn("by device-alias", said)

    def move(self, receiver, sender):
        """Both ends print the SHA-256 of what one of them wrote to its memory. The
        connecting end may start before the other one listens."""
        digest = hashlib.sha256(struct.pack("<I", 0x600DF00D) * (4 << 20)).hexdigest()
        ends = [self.start(sender, "rxe-a", "0", ADDRESS_B, node="a"),
                self.start(receiver, "rxe-b", "1", node="b")]
        for end in ends:
            self.assertRegex(self.end(end), f"^{16 << 20} bytes by device-alias,? .*{digest}")

    @series
    def test_move_vram(self):
        self.move("move_vram", "move_vram")

    @module
    @series
    def test_move_vram_py(self):
        self.move("move_vram.py", "move_vram.py")

    @module
    @series
    def test_move_vram_py_to_cpp(self):
        self.move("move_vram", "move_vram.py")


if __name__ == "__main__":
    unittest.main()
