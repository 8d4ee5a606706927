# SPDX-License-Identifier: MIT
"""How Sphinx makes the site. scripts/build/docs puts the pages in one directory and runs it."""

import os
import pathlib

from sphinx import addnodes

TOP = pathlib.Path(os.environ["TOP"])
BUILD = pathlib.Path(os.environ["DOCS"])

project = "Sluice"
html_title = "Sluice"
author = copyright = "the authors of Sluice"
extensions = ["myst_parser", "breathe"]
html_theme = "furo"
html_static_path = ["site.css", "site.js"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sphinx = False
html_copy_source = False
# docs/kernel is for the kernel's own documentation; index.md includes README.md.
exclude_patterns = ["docs/kernel", "README.md", "scripts"]

# Links and headings as GitHub has them.
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
# Blocks in Markdown that name a language are coloured; the rest is as it is.
highlight_language = "none"

breathe_projects = {name: str(BUILD / "xml" / name) for name in ("c", "cpp")}
breathe_default_project = "cpp"
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
breathe_show_include = False
c_id_attributes = cpp_id_attributes = ["SLUICE_API"]

# The Python module, from its source: nothing is imported.
python = pathlib.Path(os.environ.get("PYTHON", TOP / "userspace/python/sluice"))
if python.is_dir():
    extensions.append("autoapi.extension")
    autoapi_dirs = [str(python)]
    autoapi_root = "reference/python"
    autoapi_options = ["members", "inherited-members", "imported-members",
                       "show-module-summary"]
    autoapi_add_toctree_entry = False
    autoapi_keep_files = False


def directories_are_text(app, doctree):
    """What links to a directory of the source, which the site does not show, is text."""
    here = (TOP / app.env.docname).parent
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node["reftype"] == "myst" and (here / node["reftarget"]).is_dir():
            node.replace_self(node.children)


def indent(line):
    return len(line) - len(line.lstrip())


def end_what_is_indented(_app, _what, _name, _obj, _options, lines):
    """Docstrings are plain text; reStructuredText wants a blank line behind an indent."""
    for i in reversed(range(1, len(lines))):
        if lines[i].strip() and lines[i - 1].strip() and indent(lines[i]) < indent(lines[i - 1]):
            lines.insert(i, "")


def setup(app):
    app.connect("doctree-read", directories_are_text)
    if python.is_dir():
        app.connect("autodoc-process-docstring", end_what_is_indented)
