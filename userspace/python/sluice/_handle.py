# SPDX-License-Identifier: MIT
"""Handles of the C API: which threads may use them, and how they are freed.

A handle is a cdata whose destructor frees it. A call into C holds a reference to it, so it
cannot be freed during the call. The C API lets handles be freed in any order. The
collector does not see them: it would free all handles of a cycle, and then call __del__ of
objects that use them.

A context's ring belongs to the thread that opened it. Python's collector may free an
object in any thread: a handle of another thread is left to that thread, which frees it
when it next makes a call, or ends.
"""

import array
import asyncio
import collections
import contextlib
import ctypes
import itertools
import math
import operator
import os
import select
import threading
import time
import warnings
import weakref
from collections.abc import Buffer, Callable, Sequence
from functools import partial
from typing import Any, Protocol, Self, cast

from ._binding import ffi, lib
from .errors import checked, text

# Seconds for completions until an event loop sees to its other tasks.
_TURN = 0.005

_forks = itertools.count()
_process = next(_forks)     # differs in each forked child
_local = threading.local()


def _forked() -> None:
    global _process
    _process = next(_forks)


os.register_at_fork(after_in_child=_forked)


class HasFileno(Protocol):
    """An open file, socket or the like."""

    def fileno(self) -> int:
        """Its descriptor."""


type File = int | HasFileno
type Integers = Buffer | Sequence[int]


class _Thread:
    """What other threads left to a thread. It ends with the thread."""

    def __init__(self) -> None:
        self.number: int = lib.sluice_py_thread()
        self.left: collections.deque[Callable[[], None]] = collections.deque()

    def end_left(self) -> None:
        """In that thread."""
        while self.left:
            self.left.popleft()()

    def __del__(self) -> None:
        if self.number == lib.sluice_py_thread():
            self.end_left()
        elif self.left:     # by a thread that held it to the end
            _warn_of_kept()


def _number_here() -> int:
    """The number of this thread, which no other one ever has. It lasts as long as the
    thread does. Values of threading.local do not: handles among them may be freed after
    the thread has lost its object."""
    it: _Thread | None = getattr(_local, "thread", None)
    number: int = lib.sluice_py_thread() if it is None else it.number
    return number


def _this_thread() -> _Thread:
    try:
        it: _Thread = _local.thread
    except AttributeError:
        it = _local.thread = _Thread()
    return it


def _end_left() -> None:
    _this_thread().end_left()


def home_of_thread() -> "Home":
    """The home of handles that belong to this thread and to no context."""
    home = getattr(_local, "home", None)
    if home is None or not home.of_this_process():
        home = _local.home = Home()
    home.enter()
    return home


# What has the attribute `it`, which the collector does not see, and the bytes at an address,
# of a length: for memoryview().
hidden_bytes = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t,
                                 ctypes.py_object)(
    int(ffi.cast("uintptr_t", ffi.addressof(lib, "sluice_py_hide"))))


def hidden(it: object) -> Any:
    """What has the attribute `it`, which the collector does not see."""
    return hidden_bytes(None, 0, it)


def adopt(raw: Any, free: Callable[[Any], None]) -> Any:
    """A hidden handle that any thread may use and free."""
    return hidden(ffi.gc(raw, partial(_end_here, _process, free)))


def _end_here(process: int, free: Callable[[Any], None], raw: Any) -> None:
    if process == _process:     # else the parent still uses it
        free(raw)


class Home:
    """The thread that handles belong to."""

    def __init__(self) -> None:
        thread = _this_thread()
        thread.end_left()
        self._owner = thread.number
        self._thread = weakref.ref(thread)
        self._process = _process
        # Handles that were dropped while a chain was open.
        self._left: collections.deque[tuple[Callable[[Any], None], Any, object]] = \
            collections.deque()
        self.chaining = False

    def of_this_process(self) -> bool:
        """Whether it belongs to this process, and not to its parent."""
        return self._process == _process

    def _is_here(self) -> bool:
        return self._owner == _number_here()

    def adopt(self, raw: Any, free: Callable[[Any], None], keep: object = None) -> Any:
        """A hidden handle that is freed by @free, and keeps @keep."""
        return hidden(ffi.gc(raw, partial(self._end, free, keep)))

    def _end(self, free: Callable[[Any], None], keep: object, raw: Any) -> None:
        if not self.of_this_process():
            return      # the parent's, which still uses it
        if not self._is_here():
            self._leave(partial(self._end, free, keep, raw))
        elif self.chaining:
            self._left.append((free, raw, keep))
        else:
            free(raw)

    def _leave(self, end: Callable[[], None]) -> None:
        """Leave it to its thread, which alone can do it."""
        thread = self._thread()
        if thread is None:
            _warn_of_kept()
        else:
            thread.left.append(end)

    def enter(self) -> None:
        """First in each call: check that this thread may use it."""
        if not self._is_here():
            raise RuntimeError("sluice: this belongs to another thread: "
                               "use it where its context was opened")
        if not self.of_this_process():
            raise RuntimeError("sluice: this belongs to the parent of this process: "
                               "open a context in the child")
        thread = _this_thread()
        if self._thread() is not thread:    # it came back to Python with another one
            self._thread = weakref.ref(thread)
        thread.end_left()
        if self._left and not self.chaining:
            _end_all(self._left)


def _end_all(left: collections.deque[Any]) -> None:
    while left:
        free, raw, _ = left.popleft()
        free(raw)


def _warn_of_kept() -> None:
    warnings.warn("sluice: what belongs to a thread was dropped after that had ended: it is "
                  "kept", ResourceWarning)


class Ring(Home):
    """A context of the C API, its thread, and what waits there. All handles opened on it
    keep it alive."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self.raw = raw      # None: it has ended, as one of a cycle that is collected
        self._awaited: dict[asyncio.Future[None], Callable[[], bool]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._will_look = False
        self._asleep = False    # until a chain ends: nobody looks
        self._builder: asyncio.Task[Any] | None = None      # of the open chain
        self._fd = -1       # if this fails, __del__ closes the context
        self._fd = checked(lib.sluice_context_fd(raw))
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def __del__(self) -> None:
        if not self.of_this_process():
            return
        end = _End(self)
        self.raw = None
        loop = self._loop
        if self._is_here() or loop is None or loop.is_closed():
            end()
            return
        # In its thread: the number of a descriptor closed elsewhere may be reused before
        # the loop looks at it. If the loop is closed first, it drops this, which ends.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(end)

    def _leave(self, end: Callable[[], None]) -> None:
        super()._leave(end)
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):     # it is closed
                loop.call_soon_threadsafe(_end_left)

    def enter(self) -> None:
        super().enter()
        if self.raw is None:
            raise ValueError("this Context is closed")
        # Any call may take in completions that others wait for: let them look.
        if self._awaited and not self._will_look:
            self._look_soon()

    def submit(self) -> None:
        """Submit the started operations to the kernel."""
        checked(lib.sluice_context_submit(self.raw))

    def begin_chain(self) -> None:
        """A chain is open: only the task that opened it may start operations."""
        self.chaining = True
        self._builder = _task_here()

    def may_start(self) -> None:
        """First in each call that starts an operation."""
        if self.chaining and self._builder is not _task_here():
            raise RuntimeError("sluice: another task has a chain open: do not await in the "
                               "block of a chain")

    def end_chain(self) -> None:
        """It has ended: free what was dropped meanwhile, and look, as _look() did not."""
        self.chaining = False
        self._builder = None
        self.enter()
        if self._asleep and self._loop is not None and not self._loop.is_closed():
            self._watch(self._loop)
            self._look_soon()

    def end_chain_first(self) -> None:
        """First in each call that waits."""
        if self.chaining:
            raise RuntimeError("sluice: a chain is open: end it before you wait")

    def wait(self, done: Callable[[], bool], timeout: float | None) -> bool:
        """Sleep until @done, in Python, so that signals are handled. False: timed out."""
        self.end_chain_first()
        until = None if timeout in (None, math.inf) else time.monotonic() + (timeout or 0)
        while not done():
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return False
            self.submit()
            self._poll.poll(None if left is None else min(math.ceil(left * 1e3),
                                                          1 << 30))
        return True

    async def until(self, done: Callable[[], bool]) -> None:
        """The same for a task of asyncio: the loop waits for the ring's descriptor."""
        self.end_chain_first()
        future = self._running_loop().create_future()
        self._awaited[future] = done
        self._look_soon()
        try:
            await future
        finally:
            self._awaited.pop(future, None)

    async def chain_over(self, patience: float) -> None:
        """For a task that is cancelled: give another one the time to end its chain. It may
        be waiting for this task."""
        until = time.monotonic() + patience
        while self.chaining and time.monotonic() < until:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(_TURN)

    def drive(self) -> None:
        """An operation was started: an asyncio loop that runs here submits it, and takes in
        completions, whether a task awaits them or not: peers expect signs of life."""
        loop = _loop_here()
        if loop is None or self._will_look and loop is self._loop:
            return
        if not self._awaited_beside(loop):
            self._running_loop()
            self._look_soon()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._awaited_beside(loop):
            raise RuntimeError("sluice: another event loop waits for this context")
        if self._loop is not loop:
            self._leave_loop()
            self._will_look = False     # that was for a loop that has ended
            self._watch(loop)
            self._loop = loop
        return loop

    def _awaited_beside(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether tasks of another loop wait. Those of a closed one never go on."""
        if self._loop is None or self._loop is loop:
            return False
        if self._loop.is_closed():
            self._awaited.clear()
        return bool(self._awaited)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asleep = False
        # The loop must not keep the context alive.
        loop.add_reader(self._fd, _look_at, weakref.ref(self))

    def _watch_no_more(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)

    def _leave_loop(self) -> None:
        self._watch_no_more()
        self._loop = None

    def _look_soon(self) -> None:
        if self._loop and not self._loop.is_closed():
            self._will_look = True
            self._loop.call_soon(_look_at, weakref.ref(self))

    def _look(self) -> None:
        """Take in completions, wake those who wait for them, and submit new operations."""
        # The loop of a forked child shares the descriptor with the parent, and also the
        # epoll file, from which the parent's loop would lose it.
        if not self.of_this_process():
            return
        if self.chaining:       # its end looks; a readable descriptor would keep the CPU busy
            self._will_look = False
            self._asleep = True
            self._watch_no_more()
            return
        self._will_look = True  # it looks now
        more = False
        try:
            more = self._take_in()
            for future, done in list(self._awaited.items()):
                _tell(future, done)
            self.submit()
        except OSError as broken:
            for future in self._awaited:
                if not future.done():
                    future.set_exception(broken)
            self._leave_loop()      # else it would look again and again
        finally:
            self._will_look = False
        if more:
            self._look_soon()

    def _take_in(self) -> bool:
        """Take in completions until the descriptor is quiet. True: the loop's other tasks
        come first, as a stream that computes digests may never be quiet."""
        until = time.monotonic() + _TURN
        count = ffi.new("uint32_t *", 1)
        while count[0]:
            checked(lib.sluice_context_wait(self.raw, 0, count))
            if time.monotonic() > until:
                return bool(count[0])
        return False


class _ClosedRing:
    """In the place of the ring of a context that is closed."""

    raw = None
    chaining = False

    def enter(self) -> None:
        raise ValueError("this Context is closed")


closed_ring = cast(Ring, _ClosedRing())


def _loop_here() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _task_here() -> asyncio.Task[Any] | None:
    return None if _loop_here() is None else asyncio.current_task()


def _look_at(ring: weakref.ref[Ring]) -> None:
    it = ring()
    if it is not None:
        it._look()


class _End:
    """Ends a ring, once: its remaining handles, its reader, its context."""

    def __init__(self, ring: Ring) -> None:
        self._loop, self._fd, self._raw = ring._loop, ring._fd, ring.raw
        self._left, self._owner = ring._left, ring._owner
        self._process = _process

    def __call__(self) -> None:
        raw, self._raw = self._raw, None
        if raw is None or self._process != _process:
            return
        if self._left and self._owner != _number_here():
            _warn_of_kept()
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        _end_all(self._left)
        lib.sluice_context_close(raw)

    __del__ = __call__


def _tell(future: asyncio.Future[None], done: Callable[[], bool]) -> None:
    if future.done():
        return
    try:
        if done():
            future.set_result(None)
    except (OSError, ValueError) as why:
        future.set_exception(why)


class Handle:
    """An object of the C API. It ends by close(), by `with`, or with its last
    reference; objects that need it go on working."""

    __slots__ = ("__weakref__", "_hidden")
    _hidden: Any

    @property
    def _raw(self) -> Any:
        if self._hidden is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._hidden.it

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        return self._hidden is None

    def close(self) -> None:
        """Release it. A second call does nothing."""
        self._hidden = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Bound(Handle):
    """A handle that belongs to one thread."""

    __slots__ = ("_home",)
    _home: Home

    @property
    def _raw(self) -> Any:
        self._home.enter()
        return super()._raw

    def _own(self, home: Home, raw: Any, free: Callable[[Any], None],
             keep: object = None) -> None:
        """Make it the handle @raw of @home, freed by @free. It keeps @keep."""
        self._home = home
        self._hidden = home.adopt(raw, free, keep)


class OnRing(Bound):
    """A handle that was opened on a context."""

    __slots__ = ()
    _home: Ring


def made(kind: str, function: Callable[..., int], *args: Any) -> Any:
    """The handle that a function of the C API returns through its last argument."""
    out = ffi.new(f"sluice_{kind} **")
    try:
        checked(function(*args, out))
    except OverflowError as why:
        raise ValueError(str(why)) from why
    return out[0]


def values(struct: str, function: Callable[..., int], *args: Any) -> dict[str, Any]:
    """The members of a structure that a function of the C API fills in."""
    it = ffi.new(f"struct sluice_{struct} *")
    it.size = ffi.sizeof(f"struct sluice_{struct}")
    checked(function(*args, it))
    return {name: _plain(getattr(it, name))
            for name, _ in ffi.typeof(it[0]).fields
            if name not in ("size", "reserved")}


def _plain(value: Any) -> Any:
    if not isinstance(value, ffi.CData):
        return value
    item = ffi.typeof(value).item
    if item.cname == "char":
        return text(value)
    return bytes(value) if ffi.sizeof(item) == 1 else list(value)


def options(struct: str, **members: Any) -> Any:
    """A structure that the caller fills in; None is 0, the default."""
    it = ffi.new(f"struct sluice_{struct} *")
    it.size = ffi.sizeof(f"struct sluice_{struct}")
    for name, value in members.items():
        if value is None:
            continue
        try:
            setattr(it, name, value)
        except OverflowError as why:
            raise ValueError(f"{name} of {value}: {why}") from why
    return it


def unsigned(name: str, value: int, bits: int = 64) -> int:
    """A number for C, from anything that is an integer."""
    number = operator.index(value)
    if not 0 <= number < 1 << bits:
        raise ValueError(f"{name} of {number}: it must be 0 or more, and less than "
                         f"2**{bits}")
    return number


def positive(name: str, value: float | None) -> None:
    """Check an option whose 0 would mean the default."""
    if value is not None and value <= 0:
        raise ValueError(f"{name} of {value}: it must be more than 0, or None")


def nanoseconds(seconds: float | None) -> int | None:
    """A duration in nanoseconds; None stays None."""
    if seconds is None:
        return None
    if not math.isfinite(seconds):
        raise ValueError(f"{seconds} seconds: a finite time is wanted")
    return math.ceil(seconds * 1e9)


def c_string(value: str | bytes) -> bytes:
    """Text or a path for C, where a null character would end it."""
    it = value if isinstance(value, bytes) else value.encode()
    if b"\0" in it:
        raise ValueError(f"a null character in {value!r}")
    return it


def deadline(timeout: float | None) -> int:
    """A deadline of the C API: @timeout seconds from now; None: never."""
    if timeout is None or timeout == math.inf:
        return int(lib.SLUICE_NEVER)
    return int(lib.sluice_after(min(nanoseconds(timeout) or 0, (1 << 63) - 1)))


def fileno(file: File) -> int:
    """The descriptor of a file."""
    return file if isinstance(file, int) else file.fileno()


# The type codes of array for C integers, and of memoryview for integers of that size.
_CODES = {"uint32_t": "I", "uint64_t": "Q"}
_UNSIGNED, _SIGNED = "ILQ", "ilq"


def integers(kind: str, values: Integers) -> Any:
    """A C array, for the duration of a call. Memory that holds integers of this size is
    used directly, and anything else is copied, without a loop in Python."""
    seen = _seen_as(kind, values)
    if seen is None:
        try:
            # by iter(): array takes bytes for raw memory, not for numbers
            numbers = iter(values)      # type: ignore[arg-type]
            seen = memoryview(array.array(_CODES[kind], numbers))
        except OverflowError as why:
            raise ValueError(f"a number does not fit in {kind}: {why}") from why
    return ffi.from_buffer(f"{kind}[]", seen)


def _seen_as(kind: str, values: Integers) -> memoryview | None:
    try:
        seen = memoryview(values)   # type: ignore[arg-type]
    except TypeError:
        return None
    if seen.ndim != 1:
        raise ValueError(f"an array of {seen.ndim} dimensions, and not of one")
    if seen.itemsize != ffi.sizeof(kind) or not seen.c_contiguous or \
            seen.format not in [*_UNSIGNED, *_SIGNED]:
        return None
    if seen.format in _SIGNED and min(seen, default=0) < 0:
        raise ValueError(f"a number is negative: {min(seen)}")
    return seen
