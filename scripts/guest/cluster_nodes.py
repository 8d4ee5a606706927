# SPDX-License-Identifier: MIT
"""What programs share that run in the first node of scripts/boot/cluster: commands in all
nodes, what `sluice env` prints, transfers, and the counters of both ends. Imported."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import subprocess

from lab import SLOW, expect

SLUICE = "/sluice/build/userspace/cli/sluice"
MIB = 1 << 20
NODES = os.environ["NODES"].split()
HERE, THERE = NODES[:2]
LIMIT = int(os.environ.get("LIMIT", 120)) * SLOW    # seconds of a command


def start(node, *words):
    """A command in a node, from the directory of the project. If it hangs, it ends there,
    too, though its SSH is killed: after longer than anybody waits for it."""
    words = ("timeout", "--kill-after=5", 2 * LIMIT, *words)
    command = "cd /sluice && exec " + shlex.join(map(str, words))
    return subprocess.Popen(["ssh", node, command], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process, limit=LIMIT):
    """(exit status, standard output, standard error)"""
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        return "hangs", *process.communicate()
    return process.returncode, out, err


def done(node, *words):
    """What a command prints that must succeed."""
    got = ended(start(node, *words))
    expect(f"{node}: {words}: {got}", got[0] == 0)
    return got[1]


def here(*words, **environment):
    """The same in this node, without SSH."""
    return ended(subprocess.Popen(
        [str(w) for w in words], text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment}))


def settings_for(engine):
    """What `sluice env` prints: {name: value}"""
    out = json.loads(done(HERE, SLUICE, "--json", "env", engine, "--nic", "rxe0"))
    return {v["name"]: v["value"] for v in out["variables"]}


def with_variables(variables, *words):
    return ("env", *(f"{name}={value}" for name, value in variables.items()), *words)


def pair(server_words, client_words):
    """A server there, its client here: what each of them prints, client first."""
    server = start(THERE, *server_words)
    for _ in range(20):     # until it listens
        client = ended(start(HERE, *client_words))
        if client[0] == 0 or server.poll() is not None:
            break
    if client[0] != 0:
        server.kill()
    both = client, ended(server)
    expect(f"{both}", client[0] == both[1][0] == 0)
    return [out + err for _, out, err in both]


def offered(variables, *words):
    """A program there, which says where it is when it begins, and the same here, which is
    told: what both print after that."""
    words = with_variables(variables, *words)
    server = start(THERE, *words)
    place = server.stdout.readline().split()
    client = ended(start(HERE, *words, *place[1:])) if place else None
    if not client or client[0] != 0:
        server.kill()
    status, out, err = ended(server)
    expect(f"{client} {out} {err}", client and client[0] == status == 0)
    return client[1] + out


def rows_of(out, right=True):
    """Lines of userspace/cluster/svm_buffers.h: [{"what": word, "bytes": number, ...}];
    bytes must be right, if nothing else is said."""
    rows = []
    for line in out.splitlines():
        what, size, *pairs = line.split()
        row = {"what": what, "bytes": int(size)}
        for key, value in (pair.split("=") for pair in pairs):
            row[key] = [int(n) for n in value.split(",")] if key == "ns" else int(value)
        expect(line, row["wrong"] == 0 or not right)
        rows.append(row)
    return rows


def mpi(variables, *words, nodes=tuple(NODES)):
    """One rank in each node, with these variables: what they print."""
    exported = [w for name in variables for w in ("-x", name)]
    got = here("mpirun.openmpi", "--host", ",".join(nodes), "--map-by", "ppr:1:node",
               *exported, *words, **variables)
    expect(f"{got}", got[0] == 0)
    return got[1:]


ALIAS = pathlib.Path("/sys/kernel/debug/hmm/alias")    # the base kernel has none


def alias(node):
    """What a node's alias of video memory counts: pages got in place, and not."""
    text = done(node, "cat", ALIAS)
    count = {key: sum(map(int, re.findall(rf" {key}=(\d+)", text)))
             for key in ("mapped", "unreachable", "invisible", "no_cpu", "revoked",
                         "map_failed", "declined")}
    mapped = count.pop("mapped")
    return mapped, sum(count.values())


@contextlib.contextmanager
def in_place():
    """What runs meanwhile, cards get from video memory in place, at both ends."""
    before = {node: alias(node) for node in (HERE, THERE)}
    yield
    for node, (mapped, fallen_back) in before.items():
        now = alias(node)
        expect(f"{node}: {now}", now[0] > mapped and now[1] == fallen_back)
