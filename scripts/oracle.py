#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hash what arrived in a device's memory, from outside of the guest.

The memory of the guest's device is a file on this machine (the BAR of QEMU's
ivshmem device). The receiver in the guest says, over a virtio serial port,
where in the BAR each piece of the transferred file lies, and waits until it was
read here. At the end the digest must be that of the file that was sent.
The protocol is described in userspace/xfer/cli/oracle.hpp.

Exit status: 0 all of FILE is there, 1 anything else.
"""

import argparse
import hashlib
import os
import socket
import sys

MAX_LINE = 4096
BLOCK = 1 << 20


class Failure(Exception):
    """Something to tell the user, and the receiver."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def parse(line):
    """Split "verb key=value ..." into the verb and a dictionary."""
    words = line.split(" ")
    fields = {}
    for i, word in enumerate(words[1:], 1):
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise Failure("protocol", f"not a message: {line!r}")
        if key == "text":
            fields[key] = " ".join(words[i:])[len("text="):]
            break
        fields[key] = value
    return words[0], fields


def number(fields, key):
    value = fields.get(key, "")
    if not value.isascii() or not value.isdigit():
        raise Failure("protocol", f"{key}={value!r} is not a number")
    return int(value)


def hash_file(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


class Oracle:
    """The state of one transfer: what was hashed so far."""

    def __init__(self, bar, size, digest, corrupt=False):
        self.bar = bar          # file behind the BAR, or None
        self.size = size        # of the file that is sent
        self.digest = digest    # its SHA-256
        self.corrupt = corrupt
        self.sha256 = hashlib.sha256()
        self.hashed = 0
        self.pieces = 0

    def extents(self, stream, count, length):
        """The places of a piece: they must add up to its length."""
        found = []
        for _ in range(count):
            verb, fields = stream.receive()
            if verb != "extent":
                raise Failure("protocol", f"{verb!r} instead of an extent")
            found.append((number(fields, "offset"), number(fields, "length")))
        if sum(n for _, n in found) != length:
            raise Failure("protocol", "the extents are not the piece")
        return found

    def flip(self, bar, offset):
        """Change one bit, as broken hardware would."""
        byte = os.pread(bar, 1, offset)
        os.pwrite(bar, bytes([byte[0] ^ 1]), offset)
        self.corrupt = False
        print(f"oracle: SLUICE_CORRUPT: changed byte {offset} of the BAR",
              file=sys.stderr)

    def hash_extent(self, bar, offset, length):
        if offset + length > os.fstat(bar).st_size:
            raise Failure("protocol", f"extent {offset}+{length} is not in "
                          "the BAR")
        while length:
            data = os.pread(bar, min(length, BLOCK), offset)
            if not data:
                raise Failure("device", "the BAR file became shorter")
            self.sha256.update(data)
            offset += len(data)
            length -= len(data)

    def piece(self, stream, fields):
        index, length = number(fields, "index"), number(fields, "length")
        if index != self.pieces:
            raise Failure("protocol", f"piece {index} instead of {self.pieces}")
        if self.bar is None:
            raise Failure("usage", "this oracle was given no BAR")
        extents = self.extents(stream, number(fields, "extents"), length)
        bar = os.open(self.bar, os.O_RDWR if self.corrupt else os.O_RDONLY)
        try:
            if self.corrupt:
                self.flip(bar, extents[0][0])
            for offset, n in extents:
                self.hash_extent(bar, offset, n)
        finally:
            os.close(bar)
        self.hashed += length
        self.pieces += 1
        stream.send(f"checked index={index}")

    def compare(self, length, found):
        if length != self.size:
            raise Failure("corrupt", f"{length} bytes arrived, FILE has "
                          f"{self.size}")
        if found != self.digest:
            raise Failure("corrupt", "what arrived is not FILE: SHA-256 "
                          f"{found}, not {self.digest}")
        return found

    def finish(self, fields):
        if self.hashed != number(fields, "length"):
            raise Failure("protocol", f"{self.hashed} bytes were hashed")
        return self.compare(self.hashed, self.sha256.hexdigest())

    def claim(self, fields):
        """Without a BAR: the receiver hashed its memory by itself."""
        if self.corrupt:
            raise Failure("usage", "SLUICE_CORRUPT: there is no BAR to change")
        return self.compare(number(fields, "length"), fields.get("sha256"))

    def run(self, stream):
        """Serve one transfer. Returns the digest."""
        while True:
            verb, fields = stream.receive()
            if verb == "piece":
                self.piece(stream, fields)
                continue
            if verb == "finish":
                digest = self.finish(fields)
            elif verb == "claim":
                digest = self.claim(fields)
            else:
                raise Failure("protocol", f"unknown message {verb!r}")
            stream.send(f"digest sha256={digest}")
            return digest


class Stream:
    """Lines over a connected socket."""

    def __init__(self, connection):
        self.connection = connection
        self.buffer = b""

    def receive(self):
        while b"\n" not in self.buffer:
            if len(self.buffer) > MAX_LINE:
                raise Failure("protocol", "line too long")
            data = self.connection.recv(65536)
            if not data:
                raise Failure("peer-lost", "the guest ended before the "
                              "transfer did")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return parse(line.decode("ascii", "replace"))

    def send(self, line):
        self.connection.sendall(line.encode("ascii") + b"\n")


def listen(path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(1)
    return listener


def drain(connection):
    """Closing now could lose the last answer: wait until the guest ends."""
    while connection.recv(MAX_LINE):
        pass


def serve(oracle, connection):
    stream = Stream(connection)
    try:
        digest = oracle.run(stream)
    except Failure as e:
        try:
            stream.send(f"error kind={e.kind} text={e}")
            drain(connection)
        except OSError:
            pass
        print(f"oracle: {e}", file=sys.stderr)
        return 1
    print(f"oracle: {oracle.size} bytes in {oracle.pieces} pieces: {digest}",
          file=sys.stderr)
    drain(connection)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--file", required=True, help="the file that is sent")
    parser.add_argument("--bar", help="the file behind the receiver's BAR")
    parser.add_argument("--socket", required=True,
                        help="Unix socket to listen on")
    parser.add_argument("--corrupt", action="store_true",
                        default=os.environ.get("SLUICE_CORRUPT", "0")
                        not in ("", "0"),
                        help="change one byte of the BAR before hashing it, "
                        "to see this program fail; also by SLUICE_CORRUPT=1")
    args = parser.parse_args()

    try:
        listener = listen(args.socket)
        oracle = Oracle(args.bar, os.path.getsize(args.file),
                        hash_file(args.file), args.corrupt)
        connection, _ = listener.accept()
    except OSError as e:
        print(f"oracle: {e}", file=sys.stderr)
        return 1
    return serve(oracle, connection)


if __name__ == "__main__":
    sys.exit(main())
