"""The recipes of ``CONTRIBUTING.md`` name files that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Four recipes")[2]
NAMED = sorted(set(re.findall(r"[`(]([\w/]+/[\w/]+\.(?:py|md|yaml|toml))", RECIPES)))


def test_four_recipes() -> None:
    assert re.findall(r"^### Add a (.*)$", RECIPES, re.MULTILINE) == ["benchmark", "back end", "metric", "column"]
    assert len(NAMED) > 20


@pytest.mark.parametrize("name", [name for name in NAMED if "NAME" not in name])
def test_a_named_file_is_there(name: str) -> None:
    assert (ROOT / name).is_file() or (ROOT / "lmms_eval" / name).is_file()
