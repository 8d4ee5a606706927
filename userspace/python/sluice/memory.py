# SPDX-License-Identifier: MIT
"""Memory: buffers, parts of them, and how other libraries of the process see it."""

import ctypes
import enum
import operator
from collections.abc import Sequence
from functools import partial
from types import CapsuleType
from typing import Any, Self

from ._binding import ffi, lib
from ._handle import Handle, adopt, hidden_bytes, made, options, unsigned
from .errors import checked


class MemoryKind(enum.IntEnum):
    """Where a buffer's memory is."""

    HOST = lib.SLUICE_MEMORY_HOST
    """of the process"""
    SVM = lib.SLUICE_MEMORY_SVM
    """the same, shared with a GPU: it moves there and back"""
    VRAM = lib.SLUICE_MEMORY_VRAM
    """video memory, or memory of a dma-buf"""


class _Seen:
    """How NumPy, PyTorch and memoryview see memory: bytes, where the CPU reaches them.

    Bytes are uint8 of shape (length,), writable. A view keeps the memory, whatever is
    closed. DLPack's device is (1, 0), the CPU: for video memory, too, if the CPU
    reaches it. Video memory is not a kDLROCM tensor: it is mapped where this library's
    engines reach it, and a HIP kernel would fault there. export() gives HIP a
    dma-buf of it.
    """

    __slots__ = ()

    def _place(self) -> tuple[Any, int, int]:
        """The handle that keeps the memory, and where in it this is: offset, length."""
        raise NotImplementedError

    def _mapped(self) -> tuple[int, int, Any]:
        """Address, length, and the handle that keeps it."""
        raw, offset, length = self._place()
        try:
            return int(ffi.cast("uintptr_t", _map(raw))) + offset, length, raw
        except OSError as why:
            raise BufferError(str(why)) from why

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(hidden_bytes(*self._mapped()))

    # Required: without it numpy.frombuffer() keeps only this object, which may be closed,
    # and not the view of it.
    def __release_buffer__(self, seen: memoryview) -> None:
        seen.release()

    def __dlpack_device__(self) -> tuple[int, int]:
        """(1, 0): the CPU."""
        return _CPU

    def __dlpack__(self, *, stream: object = None,
                   max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> CapsuleType:
        """For from_dlpack() of other libraries. BufferError for what is not supported:
        memory that the CPU does not reach, a copy, a stream, another device."""
        if copy:
            raise BufferError("sluice: no copy is made: clone what you took")
        if stream is not None:
            raise BufferError("sluice: the CPU has no streams")
        if dl_device not in (None, _CPU):
            raise BufferError(f"sluice: {dl_device} is another device than the CPU, "
                              "(1, 0): bytes get there by a Batch or by export()")
        return _capsule(*self._mapped(), max_version is not None and max_version[0] >= 1)


class Buffer(Handle, _Seen):
    """Memory that no device may use any more once it is freed: operations,
    registrations and streams keep it, and so do views of it.

    Made by Buffer.host(), Device.vram(), Device.svm() and Device.import_dmabuf(). Any
    thread may use it. buffer[a:b] is a part of it; memoryview(buffer),
    numpy.frombuffer(buffer, ...) and torch.from_dlpack(buffer) see its bytes.
    """

    __slots__ = ("_size",)

    def __init__(self, raw: Any) -> None:
        """From a handle of the C API: not for users."""
        self._hidden = adopt(raw, lib.sluice_buffer_free)
        self._size = int(lib.sluice_buffer_size(raw))

    @classmethod
    def host(cls, size: int, *, numa_node: int | None = None,
             small_pages: bool = False) -> Self:
        """Zeroed memory of the process.

        size: bytes; rounded up to whole pages. numa_node: near this node.
        small_pages: do not ask for huge pages.
        UsageError, DeviceError (there is no such node), SystemCallError with ENOMEM.
        """
        flags = (lib.SLUICE_HOST_ON_NODE if numa_node is not None else 0) | \
            (lib.SLUICE_HOST_SMALL_PAGES if small_pages else 0)
        wanted = options("host_options", flags=flags, numa_node=numa_node)
        return cls(made("buffer", lib.sluice_buffer_host, unsigned("size", size), wanted))

    @property
    def size(self) -> int:
        """Bytes, whole pages."""
        return self._size

    def __len__(self) -> int:
        return self._size

    @property
    def kind(self) -> MemoryKind:
        """Where it is."""
        return MemoryKind(checked(lib.sluice_buffer_kind(self._raw)))

    @property
    def address(self) -> int:
        """Its address for the CPU, valid as long as the buffer; GPUs use the same one.
        UnsupportedError: the CPU does not reach it."""
        return int(ffi.cast("uintptr_t", _map(self._raw)))

    def __getitem__(self, part: slice) -> "Slice":
        """buffer[a:b], by bytes; the step is 1."""
        return Slice(self, *_bounds(part, self._size))

    def part(self, offset: int, length: int) -> "Slice":
        """The `length` bytes at `offset`, all of which must be there."""
        return Slice(self, offset, length)

    def export(self) -> int:
        """A dma-buf of all of it: a descriptor, which the caller closes.
        UnsupportedError if it is not video memory."""
        fd = ffi.new("int *")
        checked(lib.sluice_buffer_export(self._raw, fd))
        return int(fd[0])

    def verify_node(self, node: int) -> None:
        """Check that all its pages are on a NUMA node. DeviceError, with the index of the
        first that is not."""
        checked(lib.sluice_buffer_verify_node(self._raw, node))

    def _place(self) -> tuple[Any, int, int]:
        return self._raw, 0, self._size

    def __repr__(self) -> str:
        kind = "closed" if self.closed else self.kind.name.lower()
        return f"<sluice.Buffer {kind}, {self._size} bytes>"


class Slice(_Seen):
    """Part of a buffer, which it keeps. It never grows."""

    __slots__ = ("_buffer", "_length", "_offset")

    def __init__(self, buffer: Buffer, offset: int, length: int) -> None:
        # as integers of Python: NumPy's wrap around
        offset, length = operator.index(offset), operator.index(length)
        if offset < 0 or length < 0 or offset + length > len(buffer):
            raise ValueError(f"{length} bytes at {offset} are outside of the buffer of "
                             f"{len(buffer)} bytes")
        self._buffer = buffer
        self._offset = offset
        self._length = length

    @property
    def buffer(self) -> Buffer:
        """The buffer that it is a part of."""
        return self._buffer

    @property
    def offset(self) -> int:
        """Bytes from the buffer's beginning."""
        return self._offset

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> "Slice":
        """slice[a:b], by bytes; the step is 1."""
        offset, length = _bounds(part, self._length)
        return Slice(self._buffer, self._offset + offset, length)

    def _place(self) -> tuple[Any, int, int]:
        return self._buffer._raw, self._offset, self._length

    def __repr__(self) -> str:
        return f"<{self._length} bytes at {self._offset} of {self._buffer!r}>"


type Memory = Buffer | Slice


def _bounds(part: slice, size: int) -> tuple[int, int]:
    if not isinstance(part, slice):
        raise TypeError("a part of memory is [a:b]; memoryview() has single bytes")
    start, stop, step = part.indices(size)
    if step != 1:
        raise ValueError(f"a step of {step}: a part of memory has no holes")
    return start, max(stop - start, 0)


def plain_slice(memory: Memory) -> tuple[Any, int, int]:
    """The members of a struct sluice_slice."""
    if not isinstance(memory, Buffer | Slice):
        raise TypeError(f"a {type(memory).__name__} is no Buffer, and no part of one")
    return memory._place()


def slice_of(memory: Memory) -> Any:
    """A struct sluice_slice. It keeps the handle: another thread may close the buffer."""
    plain = plain_slice(memory)
    return ffi.gc(ffi.new("struct sluice_slice *", plain), partial(_keep, plain[0]))


def slices_of(parts: Sequence[Memory]) -> Any:
    """An array of them, which keeps their handles."""
    return array_of("slice", [plain_slice(part) for part in parts])


def array_of(struct: str, plain: list[Any]) -> Any:
    """An array of structures whose members name memory; it keeps the handles."""
    return ffi.gc(ffi.new(f"struct sluice_{struct}[]", plain), partial(_keep, plain))


def _map(raw: Any) -> Any:
    data = ffi.new("void **")
    checked(lib.sluice_buffer_map(raw, data))
    return data[0]


def _keep(_raw: Any, _address: Any) -> None:
    """The destructor of an object that keeps a handle, or several."""


# DLPack. A consumer frees what it took in any thread, by the deleter.

_CPU = (1, 0)       # kDLCPU
_UNSIGNED = 1       # kDLUInt
_taken: dict[int, tuple[Any, ...]] = {}

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# A capsule does not copy its name.
_NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
_END_CAPSULE = int(ffi.cast("uintptr_t", ffi.addressof(lib, "sluice_py_end_capsule")))


def _capsule(address: int, length: int, keep: Any, versioned: bool) -> CapsuleType:
    it = ffi.new("struct dl_versioned *" if versioned else "struct dl_managed *")
    numbers = ffi.new("int64_t[2]", [length, 1])    # shape, stride
    if versioned:
        it.major = 1
    it.deleter = ffi.addressof(lib, "sluice_py_end_tensor")
    tensor = it.tensor
    tensor.data = ffi.cast("void *", address)
    tensor.device_type, tensor.device_id = _CPU
    tensor.ndim = 1
    tensor.code, tensor.bits, tensor.lanes = _UNSIGNED, 8, 1
    tensor.shape, tensor.strides = numbers, numbers + 1
    key = int(ffi.cast("uintptr_t", it))
    capsule: CapsuleType = _new_capsule(key, _NAMES[versioned], _END_CAPSULE)
    _taken[key] = it, numbers, keep
    return capsule


def _let_go(tensor: Any) -> None:
    """Called by the deleter, in any thread."""
    _taken.pop(int(ffi.cast("uintptr_t", tensor)), None)


ffi.def_extern(name="sluice_py_let_go")(_let_go)
