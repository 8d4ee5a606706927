# SPDX-License-Identifier: MIT
# The module that cffi generates from sluice.h has no types of its own.
from typing import Any

ffi: Any
lib: Any
