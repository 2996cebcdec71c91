from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from tests.cases import for_each


def test_the_content(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"é": [1, null]}', "utf-8")
    assert read_json(tmp_path / "a.json") == {"é": [1, None]}


@for_each("text", ["", "{bad", "[" * 100_000, "\xff"])
def test_damage_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.json is no complete JSON file"):
        read_json(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.json cannot be read: No such file"):
        read_json(tmp_path / "no.json")
