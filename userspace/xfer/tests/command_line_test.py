#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sluice-xfer with arguments that cannot work: status and message."""

import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


class CommandLineTest(unittest.TestCase):
    def expect(self, status, text, *args, **options):
        run = subprocess.run([PROGRAM, *args], capture_output=True, text=True,
                             timeout=60, **options)
        self.assertEqual(run.returncode, status, run.stderr)
        self.assertIn(text, run.stderr)
        self.assertLess(run.stderr.count("\n"), 4, "one message is enough")

    def send(self, file, *more):
        return "send", file, "--to", "127.0.0.1", "--timeout", "1", *more

    def test_missing(self):
        self.expect(3, "/nonexistent: No such file", *self.send("/nonexistent"))

    def test_directory(self):
        self.expect(3, "/tmp: is a directory", *self.send("/tmp"))

    def test_empty(self):
        with tempfile.NamedTemporaryFile() as f:
            self.expect(3, "is empty", *self.send(f.name))

    def test_device_file(self):
        self.expect(3, "is not a regular file", *self.send("/dev/null"))

    @unittest.skipUnless(os.geteuid() == 0, "becomes another user")
    def test_unreadable(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(b"secret")
            f.flush()
            os.chmod(f.name, 0)
            self.expect(3, "Permission denied", *self.send(f.name), user=65534)

    def test_chunk(self):
        for chunk in ("0", "1000", "5000", "1T", "x"):
            self.expect(2, "chunk", *self.send("/etc/passwd", "--chunk", chunk))

    def test_nobody_listens(self):
        self.expect(5, "127.0.0.1:18515", *self.send("/etc/passwd"))

    def test_nobody_connects(self):
        self.expect(6, "nobody connected", "receive", "--timeout", "1",
                    "--port", "18516")

    def test_no_command(self):
        self.expect(2, "subcommand")


if __name__ == "__main__":
    unittest.main()
