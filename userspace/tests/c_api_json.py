#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""c_api_json.py C_API_TEST SLUICE: check that the C API says the same of each path as
the program sluice, and that it is JSON."""

import json
import subprocess
import sys


def said(*words):
    return json.loads(subprocess.run(words, check=True, capture_output=True,
                                     text=True).stdout)


def main():
    c_api, sluice = sys.argv[1:]
    routes = said(sluice, "--json", "info")["routes"]
    pairs = [route["between"] for route in routes] or [["node0", "node0"]]
    for a, b in pairs:
        ours, theirs = said(c_api, "explain", a, b), said(sluice, "--json", "info", a, b)
        if ours != theirs:
            print(f"{a} {b}: {ours} is not {theirs}")
            return 1
    print(f"{len(pairs)} paths")
    return 0


if __name__ == "__main__":
    sys.exit(main())
