# SPDX-License-Identifier: GPL-2.0
"""What the scripts in Python share: where this clone is, their arguments, results of
tests as KTAP, what a file takes on its disk. Its folder is on PYTHONPATH in the build
root and in guests."""

import argparse
import os
import pathlib
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
# A debug kernel takes longer, for which suites and kernel programs allow as well. So does a
# program with sanitizers.
SLOW = 6 if "-" in os.environ.get("USERSPACE", "") or (
    "sluice.flavour=debug" in pathlib.Path("/proc/cmdline").read_text()) else 1


def arguments(doc):
    """A parser whose help is what the script says of itself."""
    return argparse.ArgumentParser(
        usage=argparse.SUPPRESS, description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter)


class Skipped(Exception):
    """Why a test cannot be made here."""


def expect(fault, good):
    """End the test with what is wrong."""
    if not good:
        raise AssertionError(fault)


class Ktap:
    """Results of tests, one after the other."""

    def __init__(self):
        self.lines, self.count, self.good = [], 0, True

    def add(self, name, good=True, notes=(), skip=None):
        """A result. Notes, which say why, go in front of it."""
        self.count += 1
        self.good = self.good and good
        self.lines += [f"# {note}" for note in notes]
        self.lines.append(f"{'ok' if good else 'not ok'} {self.count} {name}"
                          + ("" if skip is None else f" # SKIP {skip}".rstrip()))

    def run(self, test):
        """Call a test, which fails by an exception, and tell at once how it went. If the
        script dies in it, the file of its results has a test too few."""
        before = len(self.lines)
        if "OUT" in os.environ:
            self.keep(pathlib.Path(sys.argv[0]).name, to_come=1)
        try:
            test()
            self.add(test.__name__)
        except Skipped as why:
            self.add(test.__name__, skip=why)
        except Exception as why:  # it ends this test only
            self.add(test.__name__, False, f"{type(why).__name__} {why}".splitlines())
        print(*self.lines[before:][-2:], sep="\n", flush=True)

    def text(self, to_come=0):
        return "\n".join(["KTAP version 1", f"1..{self.count + to_come}", *self.lines])

    def __str__(self):
        return self.text()

    def keep(self, name, to_come=0):
        """In a guest: put them where its suite looks for results. Tests that are still to
        come are in the plan, so that the file is a failure until it is written again."""
        out = pathlib.Path(os.environ["OUT"]) / "ktap"
        out.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(f"{self.text(to_come)}\n")


def on_disk(path):
    """How many bytes a file takes on its disk: none if it is not there. A receiver
    renames its file when it is whole, at any moment."""
    try:
        return os.stat(path).st_blocks * 512
    except FileNotFoundError:
        return 0


def chosen(tests):
    """Those that ONLY="name name" names, in that order, or all."""
    known = {test.__name__: test for test in tests}
    names = os.environ.get("ONLY", "").split() or list(known)
    for name in set(names) - set(known):
        raise SystemExit(f"ONLY={name}: there is no such test; there are {' '.join(known)}")
    return [known[name] for name in names]
