# SPDX-License-Identifier: MIT
"""Contexts, and operations that are under way in them."""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

from ._binding import ffi, lib
from ._handle import (File, OnRing, Ring, deadline, fileno, made, options,
                      unsigned)
from .errors import checked, text
from .memory import Memory, slice_of

# What a cancelled operation may take of a loop's time before it is waited for.
_GRACE = 1.0


class Operation[T](OnRing):
    """Something under way. Its value is of type T: `value = await operation`, or
    `value = operation.wait()`.

    It keeps the memory and the files that it uses. Closed, or dropped, before it is
    done, it is cancelled, and the close waits until no device touches its memory any
    more. What a file does not give back within a second is left behind: see
    Context.left_behind.
    """

    __slots__ = ("_take", "_taken", "_value")

    def __init__(self, ring: Ring, raw: Any, take: Callable[[int], T],
                 keep: object = None) -> None:
        """Of a handle of the C API: not for users."""
        self._own(ring, raw, lib.sluice_operation_free, keep)
        self._take = take
        self._taken = False
        self._value: T
        ring.drive()

    def poll(self) -> bool:
        """Is it done? Takes in what has completed; does not wait."""
        return self._taken or checked(lib.sluice_operation_poll(self._raw)) == 1

    def _done(self) -> bool:
        return self._taken or checked(lib.sluice_operation_done(self._raw)) == 1

    def wait(self, timeout: float | None = None) -> T:
        """Wait until it is done, for its value; again gives the same again.

        timeout: seconds; None: for ever.
        InProgressError: it is not done in time, and goes on. Else its own error.
        Ctrl-C ends the wait, not the operation.
        """
        self._home.wait(self.poll, timeout)
        return self._result()

    def _result(self) -> T:
        if not self._taken:
            value = ffi.new("uint64_t *")
            checked(lib.sluice_operation_wait(self._raw, 0, value))
            self._value = self._take(value[0])
            self._taken = True
            self.close()    # others may need its place
        return self._value

    def cancel(self) -> None:
        """Ask to stop it. It is done only when it says so, and may have succeeded.
        That of a stream ends at once, and with it the sender or receiver."""
        if not self._taken:
            checked(lib.sluice_operation_cancel(self._raw))

    def __await__(self) -> Generator[Any, None, T]:
        """In asyncio. To cancel the task cancels the operation; the task ends when
        nothing touches its memory any more."""
        return self._settled().__await__()

    async def _settled(self) -> T:
        try:
            if not self._done():
                await self._home.until(self._done)
        except asyncio.CancelledError:
            await self._drain()
            raise
        return self._result()

    async def _drain(self) -> None:
        self.cancel()
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            async with asyncio.timeout(_GRACE):
                await self._home.until(self._done)
        self.close()


def start[T](ring: Ring, take: Callable[[int], T], keep: object,
             function: Callable[..., int], *args: Any) -> Operation[T]:
    """Start an operation by a function of the C API. @take makes its value."""
    return Operation(ring, made("operation", function, *args), take, keep)


def same(value: int) -> int:
    """The value of C."""
    return value


def nothing(_: int) -> None:
    """No value."""


class Context(OnRing):
    """A context: one io_uring, and the only thing that waits.

    operations: under way at once, at most; 1 to 65536
    UnsupportedError if this process may not have an io_uring.

    It and all that is opened on it belong to the thread that opened it. Use one
    context for each thread, or for each event loop. A forked child must not use it.
    """

    __slots__ = ()

    def __init__(self, operations: int = 1024) -> None:
        if not 1 <= operations <= 65536:        # 0 is the default in C
            raise ValueError("operations must be between 1 and 65536")
        wanted = options("context_options", operations=operations)
        self._home = Ring(made("context", lib.sluice_context_open, wanted))
        self._cdata = self._home.raw

    def wait(self, timeout: float | None = None) -> int:
        """Take in what has completed; wait for something if nothing has.

        Returns how many operations completed, 0 if the time (seconds) is over.
        """
        count = ffi.new("uint32_t *")
        raw = self._raw

        def some() -> bool:
            checked(lib.sluice_context_wait(raw, 0, count))
            return bool(count[0] > 0)

        self._home.wait(some, timeout)
        return int(count[0])

    def fileno(self) -> int:
        """A descriptor that is readable when something has completed, for another
        event loop: submit() before it waits, wait(0) when it is readable. A loop of
        asyncio is served from the first operation that is started in it."""
        return checked(lib.sluice_context_fd(self._raw))

    @property
    def left_behind(self) -> int:
        """Reads, writes and syncs that were closed, and that their file still has: on
        a network that is down, or a disk that hangs. Their memory is kept."""
        return checked(lib.sluice_context_left_behind(self._raw))

    def submit(self) -> None:
        """Give the kernel what was started. Whatever waits does so by itself."""
        self._home.enter()
        self._home.submit()

    def read(self, file: File, to: Memory, offset: int | None = None) -> Operation[int]:
        """Read from a file into memory. Value: bytes, as of read(2) fewer perhaps.

        file: stays open until it is done. offset: None: at the file's position.
        The operation's errors are InputError, with the number of errno.
        """
        return self._transfer(lib.sluice_context_read, file, to, offset)

    def write(self, file: File, from_: Memory,
              offset: int | None = None) -> Operation[int]:
        """Write from memory to a file. As read(); its errors are OutputError."""
        return self._transfer(lib.sluice_context_write, file, from_, offset)

    def _transfer(self, function: Callable[..., int], file: File, memory: Memory,
                  offset: int | None) -> Operation[int]:
        at = lib.SLUICE_CURRENT if offset is None else unsigned("offset", offset)
        return start(self._home, same, file, function, self._raw, fileno(file),
                     slice_of(memory), at)

    def sync(self, file: File) -> Operation[None]:
        """Have all that was written to a file on its medium."""
        return start(self._home, nothing, file, lib.sluice_context_sync, self._raw,
                     fileno(file))

    def ready(self, file: File, events: int) -> Operation[int]:
        """Wait until events of a descriptor (select.POLLIN, ...) are there. Value:
        which."""
        return start(self._home, same, file, lib.sluice_context_ready, self._raw,
                     fileno(file), events)

    def sleep(self, seconds: float) -> Operation[None]:
        """Done after so many seconds."""
        return start(self._home, nothing, None, lib.sluice_context_sleep, self._raw,
                     deadline(seconds))

    @contextlib.contextmanager
    def chain(self, length: int) -> Iterator[None]:
        """Let the reads, writes, syncs and batches that are started in the block begin
        one after the other, each when the one before has succeeded in full:

            with context.chain(3):
                a = context.read(file, buffer)
                b = gpu.submit(batch)
                c = context.write(other, buffer)
            c.wait()

        Keep what is started: an operation that is dropped is cancelled, when the block
        has ended. Nothing can be waited for in the block. To cancel an operation or to
        open a device or a NIC there cuts the chain: what is started behind that raises
        UsageError.

        length: how many there will be, at most. If one fails, those behind it raise
        OperationCancelledError. BusyError if a chain is open.
        """
        raw = self._raw
        checked(lib.sluice_chain_begin(raw, length))
        self._home.chaining = True
        try:
            yield
        finally:
            self._home.chaining = False
            checked(lib.sluice_chain_end(raw))
            self._home.enter()


def version() -> str:
    """The version of libsluice that runs."""
    return text(lib.sluice_version())
