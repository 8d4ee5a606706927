# SPDX-License-Identifier: MIT
"""What is in the machine, and the path between any two parts of it."""

import itertools
import os
from typing import Any

from ._binding import ffi, lib
from ._handle import Handle, adopt, c_string, made
from .errors import checked, text


class Topology(Handle):
    """The machine, as an ordinary user can see it. Any thread may use it.

    root: where sys and proc are. SystemCallError if they are not there.
    """

    __slots__ = ()

    def __init__(self, root: str | os.PathLike[str] = "/") -> None:
        raw = made("topology", lib.sluice_topology_read, c_string(os.fsencode(root)))
        self._hidden = adopt(raw, lib.sluice_topology_free)

    @property
    def names(self) -> list[str]:
        """Nodes, GPUs, cards and disks: "node0", "gpu0", "mlx5_0"."""
        each = (lib.sluice_topology_name(self._raw, index) for index in itertools.count())
        return [text(name) for name in itertools.takewhile(bool, each)]

    def explain(self, a: str, b: str) -> str:
        """The path that data take between two of them, what limits it, and what would
        improve it, as text. a, b: a name, a PCI address or a render node.
        DeviceError names what there is."""
        return self._explain(a, b, lib.SLUICE_TEXT)

    def explain_json(self, a: str, b: str) -> str:
        """The same as a JSON document, as `sluice info --json A B` prints it."""
        return self._explain(a, b, lib.SLUICE_JSON)

    def _explain(self, a: str, b: str, form: Any) -> str:
        out = ffi.new("char **")
        checked(lib.sluice_topology_explain(self._raw, c_string(a), c_string(b), form, out))
        try:
            return text(out[0])
        finally:
            lib.sluice_free(out[0])
