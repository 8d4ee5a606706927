#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""installed_test.py CHECK BUILD SOURCE: is what "cmake --install" installs all that
others need? CHECK "install" installs into an empty directory, "remove" removes it, the
others each look at one thing there."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SONAME, NODE = "libsluice.so.0", "SLUICE_0.1"


class Wrong(Exception):
    """What was looked for was found."""


def expect(holds, message):
    if not holds:
        raise Wrong(message)


def said(*words, env=None, cwd=None):
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                         env={**os.environ, **(env or {})}, cwd=cwd, check=False)
    expect(ran.returncode == 0,
           f"{words[0]}: exit status {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


class Tree:
    """What was installed, and where it came from."""

    def __init__(self, build, source):
        self.build, self.source = pathlib.Path(build), pathlib.Path(source)
        self.note = self.build / "tests" / "installed-in"

    @property
    def prefix(self):
        return pathlib.Path(self.note.read_text()) / "prefix"

    def one(self, pattern):
        found = sorted(self.prefix.glob(pattern))
        expect(len(found) == 1, f"{pattern}: {len(found)} files")
        return found[0]

    def files(self):
        return [path for path in sorted(self.prefix.rglob("*"))
                if path.is_file() and not path.is_symlink()]

    @property
    def library(self):
        return self.one(f"lib*/**/{SONAME}")

    def pkg_config(self, *words):
        where = self.one("lib*/**/sluice.pc").parent
        return said("pkg-config", *words,
                    env={"PKG_CONFIG_PATH": str(where)}).split()

    def running(self):
        return {"LD_LIBRARY_PATH": str(self.library.parent)}


def clean_directory():
    return tempfile.TemporaryDirectory(prefix="sluice-other-")


def check_install(tree):
    where = tempfile.mkdtemp(prefix="sluice-installed-")
    tree.note.parent.mkdir(exist_ok=True)
    tree.note.write_text(where)
    said("cmake", "--install", tree.build, "--prefix", tree.prefix)
    print(f"{len(tree.files())} files")


def check_remove(tree):
    shutil.rmtree(tree.prefix.parent)
    tree.note.unlink()


def check_c(tree):
    with clean_directory() as directory:
        shutil.copy(tree.source / "program.c", directory)
        said("cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
             "program.c", "-o", "program",
             *tree.pkg_config("--cflags", "--libs", "sluice"), cwd=directory)
        out = said("./program", cwd=directory, env=tree.running())
    version = tree.pkg_config("--modversion", "sluice")[0]
    expect(out.startswith(version + " "), f"it is {out}, pkg-config says {version}")
    expect(not tree.pkg_config("--print-requires-private", "sluice"),
           "the shared library wants others to be installed")
    print(out, end="")


def check_cxx(tree):
    with clean_directory() as directory:
        shutil.copy(tree.source / "program.cpp", directory)
        said("c++", "-std=c++23", "-Wall", "-Wextra", "-Werror", "program.cpp",
             "-o", "program",
             *tree.pkg_config("--static", "--cflags", "--libs", "sluice++"),
             cwd=directory)
        print(said("./program", cwd=directory), end="")
        needed = said("readelf", "-d", "program", cwd=directory)
    expect("libsluice" not in needed, "the C++ program wants a shared libsluice")
    told = (tree.source / "program.cpp").read_text()
    for header in (tree.prefix / "include").rglob("*.hpp"):
        expect(f"<sluice/{header.name}>" in told, f"{header.name} is not tried")


def copied_project(tree, directory):
    for name in "CMakeLists.txt", "program.c", "program.cpp":
        shutil.copy(tree.source / name, directory)


def check_cmake(tree):
    with clean_directory() as directory:
        copied_project(tree, directory)
        said("cmake", "-B", "all", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={tree.prefix}",
             cwd=directory)
        said("cmake", "--build", "all", cwd=directory)
        print(said("all/program-c", cwd=directory),
              said("all/program-c++", cwd=directory), sep="", end="")


def check_components(tree):
    """Without other libraries there is the C API, and no C++ library."""
    with clean_directory() as directory:
        copied_project(tree, directory)
        for part, why in ("c", ""), ("c++", "pkg-config has no"), ("d", "none of this"):
            ran = subprocess.run(["cmake", "-B", part, f"-DPART={part}", "-G", "Ninja",
                                  f"-DCMAKE_PREFIX_PATH={tree.prefix}"],
                                 capture_output=True, text=True, check=False,
                                 cwd=directory,
                                 env={**os.environ, "PKG_CONFIG_LIBDIR": "/nowhere"})
            expect((ran.returncode == 0) == (not why) and
                   why in " ".join(ran.stderr.split()),
                   f"component {part}: {ran.stdout}{ran.stderr}")


def check_symbols(tree):
    library = tree.library
    names = [line.split() for line in
             said("nm", "-D", "--defined-only", library).splitlines()]
    names = [name for _, kind, name in names if kind != "A"]
    odd = [name for name in names if not re.fullmatch(rf"sluice_\w+@@{NODE}", name)]
    expect(not odd, f"exported: {odd[:5]}")
    expect(len(names) >= 90, f"only {len(names)} are exported")
    dynamic = said("readelf", "-d", library)
    expect(f"Library soname: [{SONAME}]" in dynamic, "its SONAME is another one")
    for path in library, tree.prefix / "bin/sluice":
        expect(not re.search(r"\((RPATH|RUNPATH)\)", said("readelf", "-d", path)),
               f"{path.name} has a path of libraries")
    link = tree.one("lib*/**/libsluice.so")
    expect(link.is_symlink() and link.resolve() == library.resolve(),
           "libsluice.so is not it")
    print(f"{len(names)} symbols")


def check_paths(tree):
    """No file names where it was built."""
    inside = [str(tree.build).encode(), str(tree.source.parent.parent).encode()]
    for path in tree.files():
        data = path.read_bytes()
        for name in inside:
            at = data.find(name)
            expect(at < 0, f"{path.name} names {data[at:at + 80]}")
    for path in tree.files():
        if path.suffix in (".pc", ".cmake"):
            expect(path.suffix == ".pc" or str(tree.prefix) not in path.read_text(),
                   f"{path.name} names where it is installed")


CHECKS = {name[6:].replace("_", "-"): check for name, check in list(globals().items())
          if name.startswith("check_")}


def main():
    check, build, source = sys.argv[1:]
    try:
        return CHECKS[check](Tree(build, source)) or 0
    except Wrong as wrong:
        print(wrong)
        return 1


if __name__ == "__main__":
    sys.exit(main())
