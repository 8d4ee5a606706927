# SPDX-License-Identifier: MIT
"""Sluice: move buffers between files, the memory of GPUs and other machines.

This is the C API of libsluice: its objects have the same names. Sizes and offsets are in
bytes, durations in seconds.
"""

try:
    from . import _binding as _binding  # noqa: F401: to see whether it loads
except ImportError as why:
    if "libsluice" in str(why):
        raise ImportError(f"{why}: install libsluice0 (Debian), or build it") from why
    raise

from .context import Context, Operation, version
from .device import (Batch, Compare, Counters, Device, DeviceInfo, Hint, Limits, Outcome,
                     Place, Prepared, Record, RecordStatus, devices)
from .errors import (BusyError, CorruptError, DeadlineError, DeniedError, DeviceError,
                     Error, InProgressError, InputError, NoPathError,
                     OperationCancelledError, OutputError, PeerError, PeerLostError,
                     ProtocolError, StaleError, SystemCallError, UnsupportedError,
                     UsageError)
from .group import Collective, CollectiveRun, Group, Message, Variant
from .hosts import HostCollective, HostGroup, HostTransport
from .kv import KVLayout
from .memory import Buffer, Memory, MemoryKind, Slice
from .net import MAX_MESSAGE, Endpoint, Listener, Nic, NicInfo, nics
from .processes import Processes
from .stream import DataPath, Offer, Progress, Receiver, Report, Sender
from .topology import Topology

__version__ = version()

__all__ = [
    "MAX_MESSAGE", "Batch", "Buffer", "BusyError", "Collective", "CollectiveRun",
    "Compare", "Context", "CorruptError", "Counters", "DataPath", "DeadlineError",
    "DeniedError", "Device", "DeviceError", "DeviceInfo", "Endpoint", "Error", "Group",
    "Hint", "HostCollective", "HostGroup", "HostTransport", "InProgressError", "InputError",
    "KVLayout", "Limits", "Listener", "Memory", "MemoryKind", "Message", "Nic", "NicInfo",
    "NoPathError", "Offer", "Operation", "OperationCancelledError", "Outcome",
    "OutputError", "PeerError", "PeerLostError", "Place", "Prepared", "Processes",
    "Progress", "ProtocolError", "Receiver", "Record", "RecordStatus", "Report", "Sender",
    "Slice", "StaleError", "SystemCallError", "Topology", "UnsupportedError",
    "UsageError", "Variant", "devices", "nics", "version",
]
