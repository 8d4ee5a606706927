# SPDX-License-Identifier: MIT
"""What tests of `sluice send` and `sluice recv` on two nodes share: both ends, their
files in WORK, and what became of them. Imported by programs that run in the guest."""

import functools
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from lab import SLOW, Skipped, expect, on_disk

SLUICE = f"/sluice/build/{os.environ.get('USERSPACE', 'userspace')}/cli/sluice"
ADDRESS = "10.77.0.2"
MIB = 1 << 20
WORK = pathlib.Path(tempfile.mkdtemp())
# The kernel is unpatched.
STOCK = os.environ.get("KERNEL") == "stock"

OUTPUT, PEER_LOST, TIMEOUT, NO_PATH, PEER_ERROR, DENIED = 9, 5, 6, 11, 14, 15
USAGE, INPUT, DEVICE, CORRUPT, PROTOCOL = 2, 3, 4, 7, 8


def wants_series(test):
    """A test of what the base's kernel cannot do."""
    @functools.wraps(test)
    def made():
        if STOCK:
            raise Skipped("the base's kernel has no batches and no alias of video memory")
        test()
    return made


def on(node, *words, **options):
    return subprocess.Popen(["ip", "netns", "exec", node, *map(str, words)],
                            stderr=subprocess.PIPE, text=True, **options)


def ends(send=(), receive=(), to="in", files=("file",), user=(), **streams):
    """Start both ends: (sender, receiver)."""
    send, receive = (end if "--timeout" in end else (*end, *patience(30))
                     for end in (send, receive))
    (WORK / "in").mkdir(exist_ok=True)
    receiver = on("b", *user, SLUICE, "recv", WORK / to if to != "-" else to,
                  "--nic", "rxe-b", "--quiet", "--report", WORK / "recv.json",
                  *receive, stdout=streams.get("stdout"))
    names = [f if f == "-" else WORK / f for f in files]
    sender = on("a", *user, SLUICE, "send", *names, "--to", ADDRESS,
                "--nic", "rxe-a", "--quiet", "--report", WORK / "send.json",
                *send, stdin=streams.get("stdin"))
    return sender, receiver


def status(process, limit=60):
    """Its exit status and what it said."""
    try:
        said = process.communicate(timeout=limit * SLOW)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return "hangs", process.communicate()[1]
    return process.returncode, said


def both(*args, **options):
    sender, receiver = ends(*args, **options)
    return status(sender), status(receiver)


def expect_ends(got, sender, receiver):
    expect(f"{got}", got[0][0] == sender and got[1][0] == receiver)


def report(which):
    return json.loads((WORK / f"{which}.json").read_text())


def digest(path):
    return hashlib.sha256((WORK / path).read_bytes()).hexdigest()


def make(name, size):
    (WORK / name).write_bytes(os.urandom(size))
    return name


def clean():
    shutil.rmtree(WORK / "in", ignore_errors=True)
    for report_file in WORK.glob("*.json"):
        report_file.unlink()


def arrived(got, name="file"):
    expect_ends(got, 0, 0)
    expect(f"in/{name} differs from {name}", digest(f"in/{name}") == digest(name))
    sent = {r["name"]: r for r in report("send")}
    expect(f"{sent}", sent[name]["sha256"] == digest(name))


def started(process, part="in/file.part", least=6 * MIB):
    """Wait until some of the file is there."""
    for _ in range(3000):
        if process.poll() is not None:
            raise AssertionError(f"it ended before {part} had {least} bytes: "
                                 f"{process.communicate()[1]}")
        if on_disk(WORK / part) > least:
            return
        time.sleep(0.01)
    raise AssertionError(f"{part} has {on_disk(WORK / part)} bytes after 30 s, "
                         f"not {least}")


def patience(seconds):
    """Options of an end that gives up when nothing moves for so long."""
    return "--timeout", seconds * SLOW


class HangingFiles:
    """WORK once more at another place, through a file system that can stop answering
    and go on."""

    def __init__(self):
        self.at = pathlib.Path(tempfile.mkdtemp())
        self.server = subprocess.Popen(["bindfs", "-f", WORK, self.at])
        for _ in range(1000):
            if os.path.ismount(self.at):
                return
            time.sleep(0.01)
        raise AssertionError(f"bindfs has not mounted {self.at} in 10 s")

    def stop(self):
        self.server.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.server.send_signal(signal.SIGCONT)

    def close(self):
        self.go_on()
        subprocess.run(["umount", "-l", self.at], check=False)
        self.server.terminate()
        self.server.wait()
        self.at.rmdir()


def two_nodes():
    subprocess.run(["bash", "-c", ". scripts/guest/nodes.sh; two_nodes"], check=True)
