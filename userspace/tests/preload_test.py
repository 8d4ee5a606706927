#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""preload_test.py PRELOAD VERBS PROGRAM SLUICE: with libsluice-preload.so in between, calls of
a program arrive at libibverbs unchanged, and so do the return values. If memory cannot be
moved, it says so once; if none is to be moved, it opens no GPU. Memory of files is not
moved. `sluice run` refuses a path that LD_PRELOAD cannot have."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

PRELOAD, VERBS, PROGRAM, SLUICE = sys.argv[1:]
LARGE, SMALL = 1 << 20, 4096
ON_DEMAND, WRITE = 1 << 6, 1


def said(*libraries, length, access, file=(), **environment):
    ran = subprocess.run([PROGRAM, str(length), str(access), *file], capture_output=True,
                         text=True, env={"LD_PRELOAD": ":".join(libraries), **environment},
                         check=True)
    return ran.stdout, ran.stderr


def expect(holds, message):
    if not holds:
        sys.exit(message)


def check(length, access, complains, **environment):
    """Complaints are about a GPU that does not exist, one per process."""
    plain, _ = said(VERBS, length=length, access=access)
    out, err = said(PRELOAD, VERBS, length=length, access=access, **environment)
    expect(len(plain.splitlines()) == 11 and f" {length} " in plain, plain)
    expect(out == plain, f"{plain}\n{out}")
    lines = err.splitlines()
    expect(len(lines) == complains, f"{length} {access} {environment}: {err}")
    expect(all("memory stays where it is: no-such-gpu: " in line for line in lines), err)


wanted = {"SLUICE_PRELOAD_GPU": "no-such-gpu", "SLUICE_PRELOAD_MIN": str(SMALL + 1),
          "SLUICE_PRELOAD_REPORT": "1"}
check(LARGE, ON_DEMAND | WRITE, 1, **wanted)
check(LARGE, WRITE, 0, **wanted)
check(SMALL, ON_DEMAND | WRITE, 0, **wanted)
check(LARGE, ON_DEMAND | WRITE, 0)
_, errors = said(PRELOAD, VERBS, length=LARGE, access=ON_DEMAND, file=(PROGRAM,), **wanted)
expect(errors.count("some are of a file") == 3 and "no-such-gpu" not in errors, errors)

for name, what in ("a b", "space"), ("a:b", "colon"):
    with tempfile.TemporaryDirectory() as where:
        for part in "cli", "preload":
            pathlib.Path(where, name, part).mkdir(parents=True)
        preload = pathlib.Path(where, name, "preload", "libsluice-preload.so")
        preload.touch()
        moved = shutil.copy(SLUICE, pathlib.Path(where, name, "cli"))
        ran = subprocess.run([moved, "run", "--device-memory", "--", "true"],
                             capture_output=True, text=True)
        expect(ran.returncode == 2 and str(preload) in ran.stderr and what in ran.stderr,
               ran.stderr)
