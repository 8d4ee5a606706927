#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compare from outside of the guest what arrived with FILE, and tell how it came.

The digests of both files are computed here, and must be those that `sluice send` and
`sluice recv` report. The video memory of the guest's GPUs are files on this machine:
pages of FILE are looked for in them.

Exit status: 0 what arrived is FILE, 7 it is not, 3 something cannot be read.
"""

import hashlib
import json
import mmap
import os
import pathlib
import sys

from lab import arguments

PAGE = 4096


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def flip(path):
    """Change one bit, as broken hardware would."""
    with open(path, "r+b") as f:
        byte = f.read(1)
        f.seek(0)
        f.write(bytes([byte[0] ^ 1]))
    print("oracle: SLUICE_CORRUPT: changed the first byte of what arrived",
          file=sys.stderr)


def pages_of(path):
    """The distinct pages of a file, without those of one byte only."""
    with open(path, "rb") as f:
        pages = {page for page in iter(lambda: f.read(PAGE), b"")
                 if len(page) == PAGE}
    return {page for page in pages if page.count(page[0]) != PAGE}


def data_ranges(fd, size):
    """The parts of a sparse file that were ever written."""
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(fd, at, os.SEEK_HOLE)
        yield at, end
        at = end


def found_in(memory, pages):
    """How many of the pages are in a GPU's memory."""
    found = set()
    with open(memory, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        with mmap.mmap(f.fileno(), size, access=mmap.ACCESS_READ) as m:
            for start, end in data_ranges(f.fileno(), size):
                for at in range(start // PAGE * PAGE, end, PAGE):
                    page = m[at:at + PAGE]
                    if page in pages:
                        found.add(page)
    return len(found)


def rows(report):
    """One line for each figure: its name, the sender's, the receiver's."""
    ends = report["sender"], report["receiver"]

    def both(what):
        return [str(what(end)) for end in ends]

    def moved(end):
        m = end.get("migrations")
        if not m:
            return "no GPU"
        lost = ", at least" if m["lost_events"] else ""
        return f"{m['in']} in, {m['out']} out{lost}"

    def rate(end):
        return f"{end['seconds']['total']:.2f} s, {end['mb_per_s']:.1f} MB/s"

    return [
        ("bytes", *both(lambda e: e["bytes"])),
        ("path", *both(lambda e: e["path"])),
        ("migrated pages", *both(moved)),
        ("FILE's pages in the GPU", *map(str, report["pages_in_gpu"])),
        ("pieces, at once", *both(lambda e: f"{e['pieces']}, "
                                  f"{e['most_in_flight']}")),
        ("waits for a grant", *both(lambda e: e["grant_waits"])),
        ("system calls", *both(lambda e: e["system_calls"])),
        ("whole time", *both(rate)),
    ]


def show(report):
    print(f"\n  {'':25}{'sender':22}receiver")
    for name, a, b in rows(report):
        print(f"  {name:25}{a:22}{b}")
    if report["receiver"]["path_reason"]:
        print(f"\n  {report['receiver']['path']}, because at the receiver "
              f"{report['receiver']['path_reason']}")
    print(f"\n  {'SHA-256':25}{report['sha256']}")
    print("  computed by              both ends and, from FILE and what arrived, "
          "the host")


def compare(report, arrived):
    """What is wrong, or None."""
    told = {report[end]["sha256"] for end in ("sender", "receiver")}
    if arrived != report["sha256"]:
        return (f"what arrived is not FILE: SHA-256 {arrived}, not "
                f"{report['sha256']}")
    if told != {arrived}:
        return f"an end reports another SHA-256: {' and '.join(told)}"
    return None


def main():
    parser = arguments(__doc__)
    parser.add_argument("--file", required=True)
    parser.add_argument("--arrived", required=True)
    parser.add_argument("--memory", nargs=2, required=True,
                        help="video memory of the sender's and the receiver's GPU")
    parser.add_argument("--run", required=True, type=pathlib.Path,
                        help="folder with send.json and recv.json, and for "
                        "report.json")
    parser.add_argument("--corrupt", action="store_true",
                        help="change one byte of what arrived, and compare then")
    args = parser.parse_args()

    try:
        if args.corrupt:
            flip(args.arrived)
        report = {"sender": json.loads((args.run / "send.json").read_text())[0],
                  "receiver": json.loads((args.run / "recv.json").read_text())[0],
                  "sha256": digest(args.file)}
        arrived = digest(args.arrived)
        pages = pages_of(args.file)
        report["pages_in_gpu"] = [found_in(m, pages) for m in args.memory]
        (args.run / "report.json").write_text(json.dumps(report, indent=2))
    except OSError as why:
        print(f"oracle: {why}", file=sys.stderr)
        return 3
    show(report)
    wrong = compare(report, arrived)
    if wrong:
        print(f"oracle: {wrong}", file=sys.stderr)
    return 7 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
