# SPDX-License-Identifier: MIT
"""A file system whose medium loses what is written before its first sync, which fails. The
page cache goes on to have it, as that of a disk does. It can also leave files uncut until
it is told to go on. Imported by programs that run in the guest, as its super user."""

import ctypes
import errno
import os
import stat
import struct
import subprocess
import threading

ROOT = 1
MOST = 128 << 10  # bytes of a write
BIG_WRITES = 1 << 5
MAX_PAGES = 1 << 22
KEEP_CACHE = 2
FATTR_SIZE = 1 << 3
HEADER = struct.Struct("<IIQQ16x")
NO_ANSWER = ()


class ForgetfulFiles:
    """Mounted at a directory while it is a context. One directory of files, in memory.
    Each opcode of FUSE that it knows is a method of the same name."""

    OPCODES = {1: "lookup", 2: "forget", 3: "getattr", 4: "setattr", 10: "unlink",
               14: "open", 15: "read", 16: "write", 17: "statfs", 18: "release",
               20: "fsync", 26: "init", 27: "open", 29: "release", 35: "create",
               36: "forget", 42: "forget", 45: "rename2"}

    def __init__(self, at, cuts=True):
        self.at = at
        self.cuts = cuts
        self.uncut = []  # the answers that are held back
        self.names = {}  # to numbers
        self.data = {}  # of numbers
        self.losses = 0
        self.device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        self.server = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"forgetful", os.fsencode(self.at), b"fuse", 0, options.encode()):
            raise OSError(ctypes.get_errno(), "mount")
        self.server.start()
        return self

    def __exit__(self, *_):
        self.go_on()
        subprocess.run(["umount", "-l", self.at], check=True)
        self.server.join()
        os.close(self.device)

    def serve(self):
        """Until it is not mounted any more."""
        while True:
            try:
                request = os.read(self.device, MOST + 8192)
            except OSError as why:
                if why.errno == errno.ENODEV:
                    return
                raise
            _, opcode, unique, number = HEADER.unpack_from(request)
            answer = self.answer(opcode, number, request[HEADER.size:])
            if answer is NO_ANSWER:
                continue
            code, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
            reply = struct.pack("<IiQ", 16 + len(body), code, unique) + body
            if not self.cuts and opcode == 4 and request[HEADER.size] & FATTR_SIZE:
                self.uncut.append(reply)
            else:
                os.write(self.device, reply)

    def go_on(self):
        self.cuts = True
        while self.uncut:
            os.write(self.device, self.uncut.pop())

    def answer(self, opcode, number, body):
        """An errno, what to return, or NO_ANSWER."""
        what = self.OPCODES.get(opcode)
        return getattr(self, what)(number, body) if what else errno.ENOSYS

    def attributes(self, number):
        kind = stat.S_IFDIR if number == ROOT else stat.S_IFREG
        size = len(self.data.get(number, b""))
        return struct.pack("<6Q10I", number, size, size // 512, 0, 0, 0, 0, 0, 0,
                           kind | 0o777, 1, 0, 0, 0, 4096, 0)

    def entry(self, number):
        return struct.pack("<4Q2I", number, 0, 0, 0, 0, 0) + self.attributes(number)

    def init(self, _, body):
        major, minor, ahead = struct.unpack_from("<III", body)
        # Nothing tells the kernel to drop pages when a file changes.
        flags = BIG_WRITES | MAX_PAGES
        return struct.pack("<IIIIHHIIH34x", major, min(minor, 40), ahead, flags, 16, 12,
                           MOST, 1, MOST >> 12)

    def lookup(self, _, body):
        number = self.names.get(body.rstrip(b"\0"))
        return self.entry(number) if number else errno.ENOENT

    def forget(self, *_):
        return NO_ANSWER

    def getattr(self, number, _):
        return struct.pack("<QII", 0, 0, 0) + self.attributes(number)

    def setattr(self, number, body):
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        if valid & FATTR_SIZE:
            old = self.data[number]
            self.data[number] = old[:size] + bytes(max(size - len(old), 0))
        return self.getattr(number, None)

    def unlink(self, _, body):
        self.names.pop(body.rstrip(b"\0"))
        return b""

    def open(self, *_):
        return struct.pack("<QIi", 0, KEEP_CACHE, 0)

    def create(self, _, body):
        number = ROOT + 1 + len(self.data)
        self.names[body[16:].rstrip(b"\0")] = number
        self.data[number] = bytearray()
        return self.entry(number) + self.open()

    def read(self, number, body):
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(self.data[number][offset:offset + size])

    def write(self, number, body):
        _, offset, size = struct.unpack_from("<QQI", body)
        data = self.data[number]
        data.extend(bytes(max(offset - len(data), 0)))
        data[offset:offset + size] = body[40:40 + size]
        return struct.pack("<II", size, 0)

    def fsync(self, number, _):
        self.losses += 1
        if self.losses > 1:
            return b""
        self.data[number] = bytearray(len(self.data[number]))
        return errno.EIO

    def statfs(self, *_):
        return struct.pack("<5Q4I24x", 1 << 20, 1 << 20, 1 << 20, 1000, 1000, 4096, 255,
                           4096, 0)

    def release(self, *_):
        return b""

    def rename2(self, _, body):
        old, new = body[16:].split(b"\0")[:2]
        if struct.unpack_from("<Q", body[8:])[0] & 1 and new in self.names:
            return errno.EEXIST
        self.names[new] = self.names.pop(old)
        return b""
