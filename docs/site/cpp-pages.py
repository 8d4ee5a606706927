#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cpp-pages XML OUT: a page for each C++ header, from doxygen's XML: what the header says
of itself, what it has in the namespace, and its classes."""

import pathlib
import sys
import xml.etree.ElementTree as ET

NAMESPACE = "sluice"


def part(directive, name, *options):
    lines = ["```{doxygen%s} %s" % (directive, name), ":project: cpp", *options, "```", ""]
    return "\n".join(lines)


def member(of):
    """A function is named with its arguments, as others have the same name."""
    kind, name = of.get("kind"), f"{NAMESPACE}::{of.findtext('name')}"
    return part(kind, name + of.findtext("argsstring") if kind == "function" else name)


def members(xml):
    """Those of the namespace, by header."""
    found = {}
    for one in ET.parse(xml / f"namespace{NAMESPACE}.xml").iter("memberdef"):
        if one.get("kind") in ("enum", "typedef", "function", "variable"):
            found.setdefault(one.find("location").get("file"), []).append(member(one))
    return found


def classes(compound):
    """Those that are in no other class."""
    for inner in compound.iter("innerclass"):
        if inner.text.count("::") == 1:
            kind = "struct" if inner.get("refid").startswith("struct") else "class"
            title = inner.text.split("::")[1]
            yield f"## {title}\n\n" + part(kind, inner.text, ":members:")


def page(compound, of_namespace):
    title = compound.findtext("compoundname")
    own = part("file", f"sluice/{title}", ":sections: briefdescription detaileddescription")
    more = ["## Beside the classes\n", *of_namespace] if of_namespace else []
    return "\n".join([f"# {title}\n", own, *classes(compound), *more])


def main():
    xml, out = map(pathlib.Path, sys.argv[1:])
    of_namespace = members(xml)
    for file in sorted(xml.glob("*_8hpp.xml")):
        compound = ET.parse(file).find("compounddef")
        where = compound.find("location").get("file")
        name = pathlib.Path(where).stem
        (out / f"{name}.md").write_text(page(compound, of_namespace.get(where, [])))


if __name__ == "__main__":
    main()
