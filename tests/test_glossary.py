"""The glossary: public classes have different names, except for those that it lists with a reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import lmms_eval
from tests.test_layout import modules

GLOSSARY = Path(lmms_eval.__file__).parent.parent / "docs" / "glossary.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (.+) \|$", re.MULTILINE)


def test_class_names_are_different_or_listed() -> None:
    places: dict[str, set[str]] = {}
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, set()).add(name.removeprefix("lmms_eval."))
    several = {name: found for name, found in places.items() if len(found) > 1}
    listed = {name: set(re.findall(r"`([\w.]+)`", where)) for name, where, _ in ROW.findall(GLOSSARY.read_text())}
    assert len(places) > 1000
    assert {name: found for name, found in several.items() if listed.get(name) != found} == {}
    assert listed.keys() - several.keys() == set(), "these names exist once now"


def test_words_are_defined_once() -> None:
    text = GLOSSARY.read_text().partition("## Class names")[0]
    words = re.findall(r"^\| (?!word|---)([^|]+) \|", text, re.MULTILINE)
    assert len(words) > 50
    assert sorted(words) == sorted(set(words))
