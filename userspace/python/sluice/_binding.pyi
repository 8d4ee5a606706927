# SPDX-License-Identifier: MIT
# What cffi makes of sluice.h has no types of its own.
from typing import Any

ffi: Any
lib: Any
