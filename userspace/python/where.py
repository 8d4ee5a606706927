# SPDX-License-Identifier: MIT
"""where.py PREFIX: print the directory below PREFIX where Python looks for modules.

For /usr and /usr/local, Debian's Python looks in directories of its own; below any other
prefix it is the usual one, which PYTHONPATH has to name.
"""

import os
import sys
import sysconfig

SCHEMES = {"/usr": ("deb_system", "/usr"), "/usr/local": ("posix_local", "/usr")}


def where(prefix: str) -> str:
    """For this Python."""
    scheme, base = SCHEMES.get(prefix.rstrip("/"), ("", prefix))
    if scheme not in sysconfig.get_scheme_names():      # not Debian's
        scheme, base = "posix_prefix", prefix
    path = sysconfig.get_path("platlib", scheme, {"base": base, "platbase": base})
    return os.path.relpath(path, prefix)


if __name__ == "__main__":
    print(where(sys.argv[1]))
