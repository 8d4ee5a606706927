# SPDX-License-Identifier: MIT
"""Contexts, and pending operations in them."""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

from ._binding import ffi, lib
from ._handle import (File, OnRing, Ring, closed_ring, deadline, fileno, hidden, made,
                      options, unsigned)
from .errors import Error, checked, text
from .memory import Memory, slice_of

# Seconds that a loop gives a cancelled operation before it blocks for it.
_GRACE = 1.0


def _closed(_: int) -> Any:
    """How a closed operation would make its value."""
    raise AssertionError


class Operation[T](OnRing):
    """A pending operation. Its value is of type T: `value = await operation`, or
    `value = operation.wait()`.

    It keeps the memory and the files that it uses. If closed or dropped before it is
    done, it is cancelled, and the close waits until no device accesses its memory any
    more. A request that a file does not complete within a second is left behind: see
    Context.left_behind. An object with fileno() that keeps its own operation is freed
    only once its value is taken or it is closed: Python's collector does not see that
    cycle.
    """

    __slots__ = ("_early", "_failed", "_take", "_taken", "_value")

    def __init__(self, ring: Ring, raw: Any, take: Callable[[int], T],
                 keep: object = None, early: bool = False) -> None:
        """From a handle of the C API: not for users."""
        self._own(ring, raw, lib.sluice_operation_free, keep)
        self._take = take
        self._early = early     # take the value as soon as it is there
        self._taken = False
        self._value: T
        self._failed: Exception | None = None   # to take it
        ring.drive()

    def poll(self) -> bool:
        """Whether it is done. Takes in completions; does not wait."""
        return self._settled_by(lib.sluice_operation_poll)

    def _done(self) -> bool:
        return self._settled_by(lib.sluice_operation_done)

    def _settled_by(self, ask: Callable[[Any], int]) -> bool:
        if self._taken:
            return True
        if checked(ask(self._raw)) != 1:
            return False
        if self._early:
            with contextlib.suppress(Error):    # which stays with the handle
                self._settle()
        return True

    def _settle(self) -> None:
        """Take its value, or raise its error."""
        value = ffi.new("uint64_t *")
        checked(lib.sluice_operation_wait(self._raw, 0, value))
        try:
            self._value = self._take(value[0])
        except (OSError, ValueError) as why:
            self._failed = why.with_traceback(None)
        self._taken = True
        self.close()        # other operations may need its place

    def close(self) -> None:
        """Release it. A second call does nothing."""
        super().close()
        self._take = _closed    # the other one may keep a stream or a listener

    def wait(self, timeout: float | None = None) -> T:
        """Wait until it is done, and return its value; a second call returns the same.

        timeout: seconds; None: forever.
        InProgressError: it is not done in time, and goes on. Otherwise its own error.
        Ctrl-C ends the wait, not the operation.
        """
        self._home.wait(self.poll, timeout)
        return self._result()

    def _result(self) -> T:
        if not self._taken:
            self._settle()
        if self._failed:
            raise self._failed.with_traceback(None)
        return self._value

    def cancel(self) -> None:
        """Ask to stop it. It is done only when it says so, and may have succeeded.
        An operation of a stream ends at once, and with it the sender or receiver."""
        if not self._taken:
            checked(lib.sluice_operation_cancel(self._raw))

    def __await__(self) -> Generator[Any, None, T]:
        """In asyncio. Cancelling the task cancels the operation; the task ends when
        nothing accesses its memory any more, or when a file has not completed it in time:
        see Context.left_behind."""
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
        home = self._home
        await home.chain_over(_GRACE)
        if not self.closed and home.of_this_process():
            # Whoever has it open may be waiting for this task, which must not end while
            # devices access its memory. To cancel cuts the chain.
            if home.chaining and not self._done():
                home.end_chain()
            self.cancel()
            # ValueError: another task has closed it
            with contextlib.suppress(asyncio.CancelledError, TimeoutError, ValueError):
                async with asyncio.timeout(_GRACE):
                    await home.until(self._done)
        self.close()


def start[T](ring: Ring, take: Callable[[int], T], keep: object,
             function: Callable[..., int], *args: Any, early: bool = False) -> Operation[T]:
    """Start an operation by a function of the C API. @take makes its value, as soon as it
    is done if that is @early: what it is made from may change then."""
    ring.may_start()
    return Operation(ring, made("operation", function, *args), take, keep, early)


def same(value: int) -> int:
    """The value that C returned."""
    return value


def nothing(_: int) -> None:
    """No value."""


class Context(OnRing):
    """A context: one io_uring, and the only thing that waits.

    operations: that exist at once, at most; streams have some, too. 1 to 65536
    UnsupportedError if this process may not have an io_uring.

    It and everything opened on it belong to the thread that opened it. Use one
    context for each thread, or for each event loop. A forked child must not use it.
    """

    __slots__ = ()

    def __init__(self, operations: int = 1024) -> None:
        if not 1 <= operations <= 65536:        # 0 is the default in C
            raise ValueError("operations must be between 1 and 65536")
        wanted = options("context_options", operations=operations)
        self._home = Ring(made("context", lib.sluice_context_open, wanted))
        self._hidden = hidden(True)     # the handle is the ring's

    @property
    def _raw(self) -> Any:
        return super()._raw and self._home.raw

    def close(self) -> None:
        """Release it. A second call does nothing."""
        super().close()
        self._home = closed_ring    # what was opened on it keeps the ring

    def wait(self, timeout: float | None = None) -> int:
        """Take in completions; wait for one if there are none.

        Returns how many operations completed, 0 if the timeout (seconds) expired.
        """
        count = ffi.new("uint32_t *")
        raw = self._raw

        def some() -> bool:
            checked(lib.sluice_context_wait(raw, 0, count))
            return bool(count[0] > 0)

        self._home.wait(some, timeout)
        return int(count[0])

    def fileno(self) -> int:
        """A descriptor that is readable when an operation has completed, for other event
        loops: submit() before the loop waits, wait(0) when it is readable. An asyncio loop
        is served from the first operation that is started in it."""
        return checked(lib.sluice_context_fd(self._raw))

    @property
    def left_behind(self) -> int:
        """Reads, writes and syncs that were closed, but that their file has not completed:
        on a network that is down, or a disk that hangs. Their memory is kept."""
        return checked(lib.sluice_context_left_behind(self._raw))

    def submit(self) -> None:
        """Submit the started operations to the kernel. Calls that wait do so themselves."""
        self._home.enter()
        self._home.submit()

    def read(self, file: File, to: Memory, offset: int | None = None) -> Operation[int]:
        """Read from a file into memory. Value: bytes, perhaps fewer, as with read(2).

        file: stays open until it is done. offset: None: at the file's position.
        The operation's errors are InputError, with the number of errno.
        """
        return self._transfer(lib.sluice_context_read, file, to, offset)

    def write(self, file: File, from_: Memory,
              offset: int | None = None) -> Operation[int]:
        """Write from memory to a file. Like read(), but its errors are OutputError."""
        return self._transfer(lib.sluice_context_write, file, from_, offset)

    def _transfer(self, function: Callable[..., int], file: File, memory: Memory,
                  offset: int | None) -> Operation[int]:
        at = lib.SLUICE_CURRENT if offset is None else unsigned("offset", offset)
        return start(self._home, same, file, function, self._raw, fileno(file),
                     slice_of(memory), at)

    def sync(self, file: File) -> Operation[None]:
        """Get onto its medium what was written to a file before this begins: await the
        writes first, or make them and this parts of a chain."""
        return start(self._home, nothing, file, lib.sluice_context_sync, self._raw,
                     fileno(file))

    def ready(self, file: File, events: int) -> Operation[int]:
        """Wait for events of a descriptor (select.POLLIN, ...). Value: those that
        occurred."""
        return start(self._home, same, file, lib.sluice_context_ready, self._raw,
                     fileno(file), events)

    def sleep(self, seconds: float) -> Operation[None]:
        """Done after that many seconds."""
        return start(self._home, nothing, None, lib.sluice_context_sleep, self._raw,
                     deadline(seconds))

    @contextlib.contextmanager
    def chain(self, length: int) -> Iterator[None]:
        """Run the reads, writes, syncs, sleeps and batches that are started in the block one
        after the other, each once the previous one has succeeded in full:

            with context.chain(3):
                a = context.read(file, buffer)
                b = gpu.submit(batch)
                c = context.write(other, buffer)
            c.wait()

        Keep the operations: a dropped one is cancelled when the block has ended. Nothing
        can be waited for in the block; connecting and listening raise UsageError. Do not
        await anything else there, either: to start an operation of this context, or to await
        one that is not done, is a RuntimeError for all other tasks until the block ends. A
        task that is cancelled meanwhile waits for the end of the block for a second, and then
        cuts the chain.
        Cancelling an operation, or opening or closing a device or a NIC there, cuts the
        chain: operations started after that raise UsageError. A read or write moves 1 GiB at most.

        length: how many operations, at most. If one fails, those after it raise
        OperationCancelledError. BusyError if a chain is open.
        """
        raw, home = self._raw, self._home
        checked(lib.sluice_chain_begin(raw, unsigned("length", length, 32)))
        home.begin_chain()
        try:
            yield
        finally:
            home.chaining = False
            if home.raw is not None:    # else the collector has ended it
                checked(lib.sluice_chain_end(raw))
                home.end_chain()


def version() -> str:
    """The version of the libsluice in use."""
    return text(lib.sluice_version())
