"""Configuration of the site; ``make docs`` runs it over the tree that ``sources.py`` assembles."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

project = "lmms_eval"
version = release = importlib.metadata.version("lmms_eval")
project_copyright = "The lmms_eval developers, Apache License 2.0"
extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml"]
root_doc = "index"
myst_heading_anchors = 4
myst_fence_as_directive = ["math"]
html_math_renderer = "mathml"
myst_enable_extensions = ["strikethrough"]
suppress_warnings = ["myst.strikethrough"]
html_theme = "furo"
html_title = f"lmms_eval {version}"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
html_static_path = ["_static"]
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
highlight_language = "text"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

_SECTION = re.compile(r"(Args|Raises):$")
_ENTRY = re.compile(r"    (\*{0,2}[A-Za-z_]\w*): ")
_FIELDS = {"Args": "param", "Raises": "raises"}


def sections_as_fields(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Turn ``Args:`` and ``Raises:`` of a docstring into fields. Napoleon would read any ``text: text`` as a type."""
    field, changed = "", []
    for line in lines:
        if section := _SECTION.match(line):
            field = _FIELDS[section[1]]
            changed.append("")
            continue
        if line and not line.startswith(" "):
            field = ""
        changed.append(_ENTRY.sub(rf":{field} \1: ", line) if field else line)
    lines[:] = changed


def setup(app: Any) -> None:
    """Register the processing of docstrings."""
    app.connect("autodoc-process-docstring", sections_as_fields)
