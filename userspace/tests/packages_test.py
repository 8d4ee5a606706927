# SPDX-License-Identifier: MIT
"""Where Debian packages are installed, check that the programs built in the directory that
EXAMPLES names use them. scripts/guest/deb runs it."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import unittest

BUILT = pathlib.Path(os.environ["EXAMPLES"])
LIBRARIES = f"/usr/lib/{os.uname().machine}-linux-gnu"


class Packages(unittest.TestCase):
    def test_cmake_has_found_the_libraries(self):
        cache = (BUILT / "CMakeCache.txt").read_text()
        self.assertEqual(re.findall("^sluice_DIR:.*=(.*)$", cache, re.M),
                         [f"{LIBRARIES}/cmake/sluice"])

    def test_the_loader_finds_the_library(self):
        said = subprocess.run(["ldd", BUILT / "hello-c"], capture_output=True, text=True,
                              check=True).stdout
        found, = re.findall(r"libsluice.so.0 => (/\S+)", said)
        # /lib is a link to /usr/lib
        self.assertTrue(os.path.samefile(found, f"{LIBRARIES}/libsluice.so.0"), found)

    def test_python_finds_the_module(self):
        found = importlib.util.find_spec("sluice")
        self.assertEqual(found and found.origin,
                         "/usr/lib/python3/dist-packages/sluice/__init__.py")

    def test_the_program_is_found(self):
        self.assertEqual(shutil.which("sluice"), "/usr/bin/sluice")


if __name__ == "__main__":
    unittest.main()
