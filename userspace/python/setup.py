# SPDX-License-Identifier: MIT
"""The wheel. pkg-config tells where libsluice is; PKG_CONFIG_PATH, where pkg-config looks.
The wheel does not contain libsluice: the loader must find libsluice.so.0."""

import pathlib
import subprocess
import sys

import setuptools

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import binding  # noqa: E402: it is beside this file


def pkg_config(option: str) -> list[str]:
    """The answer of pkg-config for libsluice."""
    return subprocess.run(["pkg-config", option, "sluice"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.split()


includes = pkg_config("--variable=includedir")
header = pathlib.Path(*includes, "sluice.h").read_text()
setuptools.setup(ext_modules=[binding.builder(
    header, include_dirs=includes, extra_link_args=pkg_config("--libs"),
    define_macros=[("Py_LIMITED_API", "0x030c0000")],
    extra_compile_args=["-include", "alloca.h", "-include", "stddef.h",
                        "-include", "string.h"],
    py_limited_api=True).distutils_extension()])
