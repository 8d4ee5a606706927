# SPDX-License-Identifier: MIT
"""What can go wrong: one class for each code of the C API's errors."""

import errno
from typing import Any, ClassVar

from ._binding import ffi, lib


class Error(OSError):
    """Something failed in libsluice.

    code       the kind of failure, a word of the C API: "timeout"
    errno      the number of errno that the C function returned, positive
    system_errno   that of the failed system call, or 0
    index      of the element at fault, e.g. the operation of a batch, or None
    where      the thing that failed: a file, a device, a peer
    message    "where: what is wrong with it"
    remedy     what to do about it

    It is an OSError, and some kinds are Python's own class of that meaning as well:
    DeadlineError is a TimeoutError, PeerLostError a ConnectionError.
    """

    code: ClassVar[str] = "system"

    def __init__(self, number: int, message: str, *, where: str = "", remedy: str = "",
                 system_errno: int = 0, index: int | None = None) -> None:
        super().__init__(number, message)
        self.message = message
        self.where = where
        self.remedy = remedy
        self.system_errno = system_errno
        self.index = index

    def __str__(self) -> str:
        return f"{self.message} ({self.remedy})" if self.remedy else self.message


class SystemCallError(Error):
    """A system call failed, and no other class fits."""


class UsageError(Error, ValueError):
    """The request makes no sense; the message names the argument."""

    code = "usage"


class InputError(Error):
    """An error of a file that is read."""

    code = "input"


class OutputError(Error):
    """An error of a file that is written."""

    code = "output"


class DeviceError(Error):
    """A device is missing, refuses, or failed."""

    code = "device"


class UnsupportedError(Error):
    """The kernel, the device or the library cannot do it."""

    code = "unsupported"


class NoPathError(Error):
    """There is no path, or another one than was required."""

    code = "no-path"


class BusyError(Error):
    """Too much is in flight; the same call may succeed later."""

    code = "busy"


class StaleError(Error):
    """What it was prepared for no longer exists."""

    code = "stale"


class PeerLostError(Error, ConnectionError):
    """The peer cannot be reached, or went away."""

    code = "peer-lost"


class PeerError(Error):
    """The peer reported an error and gave up."""

    code = "peer-error"


class DeniedError(Error, PermissionError):
    """A side did not prove that it has permission, or it was taken back."""

    code = "denied"


class ProtocolError(Error):
    """The peer broke the protocol."""

    code = "protocol"


class DeadlineError(Error, TimeoutError):
    """Gave up for lack of time."""

    code = "timeout"


class InProgressError(DeadlineError):
    """Not done by the deadline of a wait: it goes on."""


class OperationCancelledError(Error):
    """It was cancelled. (Where a task is cancelled: asyncio.CancelledError.)"""

    code = "cancelled"


class CorruptError(Error):
    """The data that arrived are not the data that were sent."""

    code = "corrupt"


_BY_CODE: dict[str, type[Error]] = {
    kind.code: kind for kind in (
        SystemCallError, UsageError, InputError, OutputError, DeviceError,
        UnsupportedError, NoPathError, BusyError, StaleError, PeerLostError, PeerError,
        DeniedError, ProtocolError, DeadlineError, OperationCancelledError,
        CorruptError)}


def text(of: Any) -> str:
    """A C string as text."""
    return str(ffi.string(of).decode("utf-8", "replace"))


def last_error() -> Error:
    """The last error of this thread."""
    e = lib.sluice_last_error()
    kind = _BY_CODE.get(text(lib.sluice_error_name(e.code)), Error)
    if e.returned == -errno.EINPROGRESS and kind is DeadlineError:
        kind = InProgressError
    return kind(-e.returned, text(e.message), where=text(e.where), remedy=text(e.remedy),
                system_errno=e.system_errno,
                index=None if e.index == lib.SLUICE_NO_INDEX else e.index)


def checked(returned: int) -> int:
    """The return value of a function of the C API; if negative, its error is raised."""
    if returned < 0:
        raise last_error()
    return returned
