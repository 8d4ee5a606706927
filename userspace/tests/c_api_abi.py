#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""c_api_abi.py LIBRARY HEADER DIR: check that libsluice.so exports all that
DIR/libsluice.abi lists and nothing else, and that the header declares the same."""

import pathlib
import re
import subprocess
import sys

SONAME = "libsluice.so.0"


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def exported(library):
    """Names with their versions; the versions themselves are absolute."""
    for line in said("nm", "-D", "--defined-only", library).splitlines():
        _, kind, name = line.split()
        if kind != "A":
            yield name


def listed(path):
    return [line for line in path.read_text().splitlines()
            if line and not line.startswith("#")]


def difference(what, have, wanted):
    lines = [f"{what}: {name} is not listed" for name in sorted(set(have) - set(wanted))]
    return lines + [f"{what}: {name} is missing"
                    for name in sorted(set(wanted) - set(have))]


def main():
    library, header, directory = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    abi = listed(directory / "libsluice.abi")
    text = pathlib.Path(header).read_text()
    declared = re.findall(r"SLUICE_API [^;]*?\b(sluice_\w+)\s*\(", text)
    wrong = difference("exported", list(exported(library)), abi)
    wrong += difference("declared", declared, [name.split("@")[0] for name in abi])
    if f"Library soname: [{SONAME}]" not in said("readelf", "-d", library):
        wrong.append(f"its SONAME is not {SONAME}")
    if abi != sorted(abi) or len(abi) < 90:
        wrong.append("the list is not sorted, or too short to be all")
    print("\n".join(wrong) or f"{len(abi)} symbols")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
