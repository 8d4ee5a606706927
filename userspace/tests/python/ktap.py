#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ktap.py MODULE [TEST]: run the tests of a module of this directory, and print KTAP."""

import sys
import unittest


class Ktap(unittest.TestResult):
    """A line for each test when it has ended."""

    def startTestRun(self):
        self.notes = []

    def startTest(self, test):
        super().startTest(test)
        self.notes, self.skip = [], None

    def addError(self, test, err):
        super().addError(test, err)
        self.notes += self.errors[-1][1].splitlines()

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.notes += self.failures[-1][1].splitlines()

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.skip = reason

    def stopTest(self, test):
        super().stopTest(test)
        for note in self.notes:
            print(f"# {note}")
        name = test.id().split(".", 1)[1].replace("test_", "")
        print("not ok" if self.notes else "ok", self.testsRun,
              name + (f" # SKIP {self.skip}" if self.skip else ""), flush=True)


def main():
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in sys.argv[2:]] or None
    tests = loader.loadTestsFromName(sys.argv[1])
    print(f"KTAP version 1\n1..{tests.countTestCases()}", flush=True)
    result = tests.run(Ktap())
    return not result.wasSuccessful() or not result.testsRun


if __name__ == "__main__":
    sys.exit(main())
