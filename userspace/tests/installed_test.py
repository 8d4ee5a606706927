#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""installed_test.py CHECK BUILD SOURCE: check that "cmake --install" installs all that
other projects need. CHECK "install" installs into an empty directory, "remove" removes
it, the others each look at one thing there. Exit status 77: a program for it is missing."""

import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

SONAME, NODE = "libsluice.so.0", "SLUICE_0.1"
SKIPPED = 77


class Wrong(Exception):
    """A check found a mistake."""


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
    """The installed files, and their origin."""

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

    def lab(self, name):
        """A file of the project."""
        return self.source.parent.parent.parent / name

    @property
    def library(self):
        return self.one(f"lib*/**/{SONAME}")

    def pkg_config(self, *words):
        where = self.one("lib*/**/sluice.pc").parent
        return said("pkg-config", *words,
                    env={"PKG_CONFIG_PATH": str(where)}).split()

    def running(self):
        return {"LD_LIBRARY_PATH": str(self.library.parent)}

    def help(self, *command):
        return said(self.prefix / "bin/sluice", *command, "--help",
                    env={"LD_LIBRARY_PATH": "/nowhere"})

    def commands(self):
        """The commands by name, with the options that --help lists."""
        listed = self.help().split("Subcommands:")[1].split("Exit status:")[0]
        names = re.findall(r"^  ([a-z]\w*)", listed, re.M)
        expect(len(names) >= 9, f"commands: {names}")
        return {name: options_in(self.help(name)) for name in names}


def options_in(text):
    return set(re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.M))


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
    """Without other libraries, the C API is usable, and the C++ library is not."""
    with clean_directory() as directory:
        copied_project(tree, directory)
        # without a language CMake does not know lib/x86_64-linux-gnu
        package = tree.one("lib*/**/sluiceConfig.cmake").parent
        for part, why in ("c", ""), ("c++", "pkg-config has no"), ("d", "none of this"):
            ran = subprocess.run(["cmake", "-B", part, f"-DPART={part}", "-G", "Ninja",
                                  f"-Dsluice_DIR={package}"],
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


def check_man(tree):
    pages = {path.name: path for path in (tree.prefix / "share/man").rglob("*.[0-9]")}
    commands = tree.commands()
    wanted = {"sluice.1", "libsluice.3", *(f"sluice-{name}.1" for name in commands)}
    expect(set(pages) == wanted, f"pages: {sorted(set(pages) ^ wanted)}")
    common = options_in(tree.help())
    of_perftest = {"--odp"}     # the page of "run" names it
    known = common.union(*commands.values(), options_in(tree.help("trace", "merge")),
                         of_perftest)
    for name, page in pages.items():
        text = page.read_text().replace("\\-", "-")
        expect("@" not in text, f"{name}: something was not put in")
        told = set(re.findall(r"(?<![\w-])--[a-z][\w-]*",
                              re.sub(r"\\f[BIR]", "", text)))
        if name.endswith(".3"):
            continue
        command = name[7:-2]
        missing = (commands[command] if command else common) - told
        expect(not missing, f"{name} does not tell {sorted(missing)}")
        expect(told <= known, f"{name} tells {sorted(told - known)}")
        listed = set(re.findall(r"\\fB(--[\w-]+)\\fR", text.split(".SH OPTIONS")[1]
                                .split(".SH EXIT")[0]))
        expect(listed <= commands.get(command, common) | common |
               (options_in(tree.help("trace", "merge")) if command == "trace" else set()),
               f"{name} lists what --help does not")


def check_man_render(tree):
    """With those of mandoc and groff that are installed."""
    pages = sorted((tree.prefix / "share/man").rglob("*.[0-9]"))
    tools = [tool for tool in ("mandoc", "groff") if shutil.which(tool)]
    if not tools:
        print("neither mandoc nor groff")
        return SKIPPED
    for page in pages:
        if "mandoc" in tools:
            said("mandoc", "-T", "lint", "-W", "warning", page)
            expect(page.stem.upper() in said("mandoc", "-T", "utf8", page).upper(),
                   f"{page.name} has no text")
        if "groff" in tools:
            ran = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", page],
                                 capture_output=True, text=True, check=False)
            expect(ran.returncode == 0 and not ran.stderr, ran.stderr)
    print(f"{len(pages)} pages, by {' and '.join(tools)}")
    return 0


# What bash offers after the words, the last of which is incomplete.
BASH = r"""
set -u
source "$1"
shift
complete -p sluice | grep -q -- '-F _sluice sluice' || exit 1
COMP_WORDS=(sluice "$@") COMP_CWORD=$#
_sluice
printf '%s\n' "${COMPREPLY[@]}"
"""


def check_bash(tree):
    script = tree.one("share/bash-completion/completions/sluice")

    def offered(*words):
        with clean_directory() as directory:
            (pathlib.Path(directory) / "a file").touch()
            ran = subprocess.run(["bash", "--norc", "-c", BASH, "bash", script, *words],
                                 capture_output=True, text=True, cwd=directory,
                                 check=False)
        expect(ran.returncode == 0 and not ran.stderr, f"{words}: {ran.stderr}")
        return set(ran.stdout.split("\n")) - {""}

    def same(words, wanted):
        expect(offered(*words) == set(wanted),
               f"sluice {' '.join(words)}: {sorted(offered(*words))}, "
               f"not {sorted(wanted)}")

    commands, common = tree.commands(), options_in(tree.help())
    same([""], commands)
    same(["--"], common)
    for name, options in commands.items():
        same([name, "--"], options | common)
    merge = options_in(tree.help("trace", "merge"))
    same(["trace", "merge", "--"], merge | common)
    same(["trace", "--out", "merge", "m"], [word for word in offered("trace", "m")])
    same(["kv", ""], ["send", "recv"])
    same(["bench", "--memory", ""], ["host", "gpu", "svm"])
    same(["bench", "--memory", "=", "s"], ["svm"])
    same(["bench", "--memory", "="], ["host", "gpu", "svm"])
    same(["send", "--require", "d"], ["device-alias", "device-dmabuf"])
    same(["send", "--report", ""], ["a file"])
    same(["send", "--quiet", "one", "a"], ["a file"])
    same(["copy", "one", "two", ""], [])
    same(["send", "--port", ""], [])
    same(["send", "--", "--"], [])
    expect("bash" in offered("trace", "--out", "x", "--", "bas"), "no command is offered")


# Sourced by an interactive zsh: what would be offered is printed, between two marks.
ZSH = r"""
root=$1 ours=$2
# Where zsh is not installed but unpacked, it does not find its line editor at first.
[[ $root == / ]] || module_path=($root/usr/lib/*/zsh/$ZSH_VERSION)
zmodload zsh/zle
setopt zle
fpath=($ours $root/usr/share/zsh/functions/**/*(/))
PROMPT= RPS1=
unsetopt zle_bracketed_paste 2>/dev/null
autoload -Uz compinit
compinit -u -D
[[ $_comps[sluice] == _sluice ]] && print NAMED
bindkey '^M' undefined
bindkey '^J' undefined
bindkey '^I' complete-word
mark() { print -r -- %%%%%%%% }
compprefuncs=(mark) comppostfuncs=(mark exit)
zstyle ':completion:*' list-grouped false
zstyle ':completion:*' insert-tab false
compadd() {
	if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
		builtin compadd "$@"
		return
	fi
	local -a found
	builtin compadd -A found "$@"
	print -rl -- $found
}
print READY
"""


def zsh_offers(zsh, functions, line):
    """What zsh offers after a line. It needs a terminal."""
    root = pathlib.Path(zsh).resolve().parents[2]
    with clean_directory() as directory:
        (pathlib.Path(directory) / "setup").write_text(ZSH)
        (pathlib.Path(directory) / "a-file").touch()
        child, terminal = pty.fork()
        if not child:
            os.chdir(directory)
            os.environ.update(TERM="dumb", HOME=directory)
            os.execv(zsh, [zsh, "-f", "-i"])
        try:
            os.write(terminal, f" source ./setup {root} {functions}\n".encode())
            began = until(terminal, "\nREADY\r\n")
            expect("NAMED" in began, f"zsh does not find _sluice: {began}")
            os.write(terminal, line.encode() + b"\t")
            text = until(terminal, "%%%%%%%%", 2)
        finally:
            os.close(terminal)
            os.waitpid(child, 0)
    return {word.strip() for word in text.split("%%%%%%%%")[1].splitlines()} - {""}


def until(terminal, mark, times=1):
    text, end = "", time.monotonic() + 60
    while text.count(mark) < times:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        try:
            more = os.read(terminal, 65536).decode() if ready else ""
        except OSError:
            more = ""
        expect(more, f"zsh said no more: {text}")
        text += more
    return text


def check_zsh(tree):
    zsh = shutil.which("zsh")
    if not zsh:
        print("no zsh")
        return SKIPPED
    functions = tree.one("share/zsh/site-functions/_sluice").parent

    def same(line, wanted):
        offered = zsh_offers(zsh, functions, line)
        expect(offered == set(wanted),
               f"{line}: {sorted(offered)}, not {sorted(wanted)}")

    commands, common = tree.commands(), options_in(tree.help())
    every = common - {"--help", "--version"}
    same("sluice ", commands)
    for name, options in commands.items():
        same(f"sluice {name} -", options | every | {"-h"})
    same("sluice trace merge -", options_in(tree.help("trace", "merge")) | every | {"-h"})
    same("sluice kv ", ["send", "recv"])
    same("sluice bench --memory ", ["host", "gpu", "svm"])
    same("sluice send --require=", ["device-alias", "device-dmabuf", "host", "staged"])
    same("sluice send --report ", ["a-file", "setup"])
    return 0


def check_python(tree):
    """It is installed where Python looks for modules below a prefix, and has types."""
    package = tree.one("lib/python3*/site-packages/sluice")
    path = {"PYTHONPATH": str(package.parent), "MYPYPATH": str(package.parent),
            "PYTHONDONTWRITEBYTECODE": "1", **tree.running()}
    with clean_directory() as directory:
        shutil.copy(tree.source / "program.py", directory)
        out = said("python3", "program.py", cwd=directory, env=path)
        said("mypy", "--strict", "program.py", cwd=directory, env=path)
    expect(out.startswith(tree.pkg_config("--modversion", "sluice")[0] + " "), out)
    where = tree.source.parent.parent / "python" / "where.py"
    for prefix, wanted in ("/usr", r"lib/python3/dist-packages"), \
            ("/usr/local", r"lib/python3\.\d+/dist-packages"), \
            ("/opt/x", r"lib/python3\.\d+/site-packages"):
        found = said("python3", "-B", where, prefix).strip()
        expect(re.fullmatch(wanted, found), f"{prefix}: {found}")
    print(out, end="")


def check_examples(tree):
    """Built as users build that directory; the examples that need no device are run."""
    tests, where = tree.source.parent, tree.prefix.parent
    shutil.copytree(tests.parent / "examples", where / "examples")
    build, strictly = where / "examples/build", "-Wall -Wextra -Werror"
    said("cmake", "-S", where / "examples", "-B", build, "-G", "Ninja",
         f"-DCMAKE_PREFIX_PATH={tree.prefix}", f"-DCMAKE_C_FLAGS={strictly}",
         f"-DCMAKE_CXX_FLAGS={strictly}")
    # ccache(1) finds files that were compiled below another directory
    said("cmake", "--build", build, env={"CCACHE_BASEDIR": str(where)})
    modules = [tests, *(path.parent for path in tree.prefix.glob("lib/python3*/*/sluice"))]
    print(said("python3", tests / "python/ktap.py", "examples_test.Host",
               env={"EXAMPLES": str(build), "PYTHONPATH": ":".join(map(str, modules)),
                    "PYTHONDONTWRITEBYTECODE": "1", **tree.running()}), end="")


def check_wheel(tree):
    """Built without the network, from a copy of the sources, and used."""
    with clean_directory() as directory:
        shutil.copytree(tree.source.parent.parent / "python",
                        pathlib.Path(directory) / "python")
        said("python3", "-m", "build", "--no-isolation", "--wheel", "--outdir", ".",
             "python", cwd=directory,
             env={"PKG_CONFIG_PATH": str(tree.one("lib*/**/sluice.pc").parent)})
        wheels = sorted(pathlib.Path(directory).glob("*.whl"))
        machine = os.uname().machine
        expect([wheel.name for wheel in wheels] ==
               [f"sluice-0.1-cp312-abi3-linux_{machine}.whl"], str(wheels))
        said("python3", "-m", "zipfile", "-e", wheels[0], "unpacked", cwd=directory)
        names = {path.name for path in pathlib.Path(directory).glob("unpacked/sluice/*")}
        installed = {path.name for path in tree.one("lib/**/sluice/py.typed").parent
                     .iterdir()} - {"__pycache__"}
        expect(names == installed, f"it has {sorted(names ^ installed)} or has not")
        path = {"PYTHONPATH": "unpacked", "PYTHONDONTWRITEBYTECODE": "1"}
        shutil.copy(tree.source / "program.py", directory)
        print(said("python3", "program.py", cwd=directory,
                   env={**path, **tree.running()}), end="")
        ran = subprocess.run(["python3", "program.py"], capture_output=True, text=True,
                             cwd=directory, env={**os.environ, **path}, check=False)
        expect("install libsluice" in ran.stderr, f"without libsluice: {ran.stderr}")


def check_paths(tree):
    """No file contains the path of its build directory."""
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


def check_packages(tree):
    """Each file belongs to a Debian package: debhelper would not build otherwise."""
    taken = [line.split()[0]
             for path in tree.lab("config/debian").glob("*.install")
             for line in path.read_text().splitlines() if line]
    for path in tree.prefix.rglob("*"):
        if path.is_dir():
            continue
        name = pathlib.PurePath("usr", path.relative_to(tree.prefix))
        # as in debhelper: below a directory of the architecture
        if name.parts[1] == "lib" and not name.parts[2].startswith("python3"):
            name = pathlib.PurePath("usr/lib/any", *name.parts[2:])
        expect(any(covers(pattern, name) for pattern in taken),
               f"no package takes {name}: name it in config/debian/PACKAGE.install")


def covers(pattern, name):
    """A pattern of debhelper: it covers files, or directories with all below."""
    return any(part.match(pattern) for part in (name, *name.parents))


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
