from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval.errors import DataError
from lmms_eval.results.journals import FileSamples


def test_lines_are_read_by_offset_from_a_file_that_is_opened_once(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a": 1}\n\n{"a": "ü"}\n{"a": 3}')
    places = [line.offset for line in FileSamples(path).lines()]
    lines = FileSamples(path)
    assert lines.at(places[2]) == {"a": 3}
    path.unlink()
    assert [lines.at(place)["a"] for place in places] == [1, "ü", 3]


def test_a_file_that_has_changed_or_is_gone_is_told(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(DataError, match=r"lines.jsonl \(changed while it was read\?\): no JSON"):
        FileSamples(path).at(3)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read: No such file"):
        FileSamples(path).at(0)
