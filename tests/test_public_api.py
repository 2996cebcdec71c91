from __future__ import annotations

import re
from pathlib import Path

from tests.public_api import LIST, MODULES, api_text

GUIDE = Path(__file__).parents[1] / "docs" / "api.md"


def test_the_list_is_what_the_package_offers():
    was, now = LIST.read_text(encoding="utf-8").splitlines(), api_text().splitlines()
    gone, new = [line for line in was if line not in now], [line for line in now if line not in was]
    assert not gone and not new, (
        "the public API has changed: follow the deprecation policy (docs/api.md), then run make api\n"
        + "\n".join([*(f"- {line}" for line in gone), *(f"+ {line}" for line in new)])
    )
    assert was == now


def test_the_guide_names_the_modules_of_the_list():
    assert set(re.findall(r"^\| `(lmms_eval[\w.]*)`", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)) == set(MODULES)
