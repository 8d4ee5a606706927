# SPDX-License-Identifier: MIT
"""reference.py [--check] GUIDE: write the reference of the module sluice, from its
docstrings, after the mark in GUIDE; or check that it is up to date."""

import ast
import dataclasses
import enum
import inspect
import pathlib
import sys
from itertools import chain, pairwise

import sluice

MARK = "<!-- What follows is made by userspace/tests/python/reference.py -->\n"


def described(what: object) -> list[str]:
    """Its docstring. All public names must have one."""
    text = inspect.getdoc(what)
    if not text:
        raise SystemExit(f"{what}: it has no docstring")
    return ["```text", text, "```", ""]


def signature(name: str, function: object) -> str:
    """The signature as in a call."""
    found = inspect.signature(function)     # type: ignore[arg-type]
    return f"`{name}{found.replace(parameters=parameters_of(found))}`"


def parameters_of(found: inspect.Signature) -> list[inspect.Parameter]:
    return [p for p in found.parameters.values() if p.name not in ("self", "cls")]


def members(kind: type) -> list[str]:
    """Methods and properties, in the order in which they are written, and what it has in
    common with other public classes."""
    lines = []
    written = [vars(base) for base in kind.__mro__
               if base is kind or is_private(base)]
    for name, member in chain.from_iterable(those.items() for those in written):
        if name.startswith("_") and name not in ("__getitem__", "__len__", "__await__"):
            continue
        if isinstance(member, property):
            lines += [f"#### `{kind.__name__}.{name}`", "", *described(member)]
        elif inspect.isfunction(member) or isinstance(member, classmethod):
            function = getattr(member, "__func__", member)
            if name.startswith("__") and not function.__doc__:
                continue
            lines += ["#### " + signature(f"{kind.__name__}.{name}", function), "",
                      *described(function)]
    return lines


def is_private(kind: type) -> bool:
    """Whether it only holds what public classes have in common."""
    return kind.__module__.startswith("sluice.") and kind.__name__.startswith("_")


def bases(kind: type) -> str:
    """The public classes, and Python's own, that it is derived from, as in its definition."""
    names = [base.__name__ for base in kind.__bases__ if base is not object and
             (base.__module__ == "builtins" or base.__name__ in sluice.__all__)]
    return f"({', '.join(names)})" if names else ""


def fields(kind: type) -> list[str]:
    """The fields of a result, with the text below each."""
    body = ast.parse(inspect.getsource(kind)).body[0].body     # type: ignore[attr-defined]
    told = {before.target.id: after.value.value for before, after in pairwise(body)
            if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr)}
    return [*(f"* `{field.name}: {type_of(field.type)}`" +
              (f": {told[field.name]}" if field.name in told else "")
              for field in dataclasses.fields(kind)), ""]


def type_of(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") \
        else str(kind)


def section(name: str) -> list[str]:
    """One public name."""
    it = getattr(sluice, name)
    lines = [f"### `{name}`", ""]
    if isinstance(it, type) and issubclass(it, sluice.Error):
        return [f"### `{name}{bases(it)}`", "", *described(it)]
    if inspect.isfunction(it):
        return ["### " + signature(name, it), "", *described(it)]
    if not isinstance(it, type):
        return [*lines, f"`{it!r}`" if isinstance(it, int) else f"`{it.__value__}`", ""]
    lines += described(it)
    if issubclass(it, enum.Enum):
        return [*lines, ", ".join(f"`{member.name}`" for member in it), ""]
    if dataclasses.is_dataclass(it):
        lines += fields(it)
    elif "__init__" in vars(it) and "not for users" not in (it.__init__.__doc__ or ""):
        lines[0] = "### " + signature(name, it)
    else:
        lines[0] = f"### `{name}{bases(it)}`"
    return lines + members(it)


def reference() -> str:
    """All public names, in alphabetical order."""
    names = sorted(sluice.__all__, key=str.lower)
    return "\n".join(line.rstrip() for name in names
                     for line in section(name)).rstrip() + "\n"


def main() -> int:
    check = "--check" in sys.argv
    guide = pathlib.Path(sys.argv[-1])
    text = guide.read_text()
    wanted = text.partition(MARK)[0] + MARK + "\n" + reference()
    if not check:
        guide.write_text(wanted)
    elif text != wanted:
        print(f"{guide} is not what the docstrings say: run userspace/tests/python/reference.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
