#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The oracle against receivers that are right, and that are wrong."""

import contextlib
import hashlib
import io
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "scripts"
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True
import oracle  # noqa: E402


class OracleTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.bar = os.path.join(directory.name, "bar")
        self.data = os.urandom(20000)
        # The file's two halves are in the BAR in the wrong order, with dirt
        # around them.
        content = bytearray(os.urandom(65536))
        content[40960:40960 + 12288] = self.data[:12288]
        content[4096:4096 + 7712] = self.data[12288:]
        pathlib.Path(self.bar).write_bytes(content)

    def talk(self, lines, corrupt=False, bar=True, size=None):
        """What the oracle answers to a receiver, and its exit status."""
        here, there = socket.socketpair()
        here.settimeout(10)
        digest = hashlib.sha256(self.data).hexdigest()
        under_test = oracle.Oracle(self.bar if bar else None,
                                   size or len(self.data), digest, corrupt)
        status = []
        thread = threading.Thread(
            target=lambda: status.append(oracle.serve(under_test, there)))
        with contextlib.redirect_stderr(io.StringIO()):
            thread.start()
            here.sendall("".join(line + "\n" for line in lines).encode())
            here.shutdown(socket.SHUT_WR)
            thread.join(10)
        there.close()
        answers = here.makefile().read().splitlines()
        here.close()
        return answers, status[0]

    good = ["piece index=0 length=16384 extents=2",
            "extent offset=40960 length=12288",
            "extent offset=4096 length=4096",
            "piece index=1 length=3616 extents=1",
            "extent offset=8192 length=3616",
            "finish length=20000"]

    def test_match(self):
        answers, status = self.talk(self.good)
        digest = hashlib.sha256(self.data).hexdigest()
        self.assertEqual(answers, ["checked index=0", "checked index=1",
                                   f"digest sha256={digest}"])
        self.assertEqual(status, 0)

    def expect_error(self, kind, lines, **how):
        answers, status = self.talk(lines, **how)
        self.assertTrue(answers[-1].startswith(f"error kind={kind} "), answers)
        self.assertEqual(status, 1)

    def test_corrupt(self):
        self.expect_error("corrupt", self.good, corrupt=True)

    def test_other_extent(self):
        lines = list(self.good)
        lines[1] = "extent offset=45056 length=12288"
        self.expect_error("corrupt", lines)

    def test_other_order(self):
        lines = [self.good[0], self.good[2], self.good[1], *self.good[3:]]
        self.expect_error("corrupt", lines)

    def test_part_of_the_file(self):
        lines = [*self.good[:3], "finish length=16384"]
        self.expect_error("corrupt", lines)

    def test_length_that_was_not_hashed(self):
        lines = [*self.good[:3], "finish length=20000"]
        self.expect_error("protocol", lines)

    def test_pieces_out_of_order(self):
        self.expect_error("protocol", ["piece index=1 length=1 extents=1"])

    def test_extents_that_are_not_the_piece(self):
        self.expect_error("protocol", ["piece index=0 length=2 extents=1",
                                       "extent offset=0 length=1"])

    def test_extent_outside(self):
        self.expect_error("protocol", ["piece index=0 length=2 extents=1",
                                       "extent offset=65535 length=2"])

    def test_nonsense(self):
        for line in ["", "nonsense", "piece", "piece index=x", "piece index=-1",
                     "piece index", "piece index=0 length=1 extents=1\npiece"]:
            self.expect_error("protocol", [line])

    def test_endless_line(self):
        self.expect_error("protocol", ["x" * 10000])

    def test_guest_that_dies(self):
        self.expect_error("peer-lost", self.good[:4])

    def test_piece_without_bar(self):
        self.expect_error("usage", self.good, bar=False)

    def test_claim(self):
        digest = hashlib.sha256(self.data).hexdigest()
        claim = f"claim length=20000 sha256={digest}"
        self.assertEqual(self.talk([claim], bar=False)[1], 0)
        self.expect_error("corrupt", [claim.replace("20000", "19999")])
        self.expect_error("corrupt", [f"claim length=20000 sha256={'0' * 64}"])
        self.expect_error("corrupt", ["claim length=20000"])
        self.expect_error("usage", [claim], bar=False, corrupt=True)

    def test_missing_file(self):
        run = subprocess.run(
            [SCRIPTS / "oracle.py", "--file", "/nonexistent", "--socket",
             self.bar + ".socket"], capture_output=True, text=True, timeout=30)
        self.assertEqual(run.returncode, 1)
        self.assertIn("/nonexistent", run.stderr)


if __name__ == "__main__":
    unittest.main()
