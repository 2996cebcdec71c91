import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_eval.errors import DataError
from lmms_eval.tasks._task_utils.submissions import stamp, written_json


def test_a_file_is_named_by_its_estimate(tmp_path: Path) -> None:
    made = written_json([{"answer": "größe"}], "a.json", SimpleNamespace(output_path=str(tmp_path)))
    (path,) = made.details["submission_files"]
    assert made.value is None
    assert Path(path) == tmp_path / "submissions" / "a.json"
    assert json.loads(Path(path).read_text("utf-8")) == [{"answer": "größe"}]


def test_without_an_output_folder_nothing_is_written() -> None:
    made = written_json([], "a.json", SimpleNamespace(output_path=None))
    assert made.details == {}
    assert "--output_path" in made.notes[0]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "submissions").write_text("in the way")
    with pytest.raises(DataError, match="cannot be written"):
        written_json([], "a.json", SimpleNamespace(output_path=str(tmp_path)))


def test_a_stamp_has_six_numbers() -> None:
    assert re.fullmatch(r"\d{4}(-\d\d){5}", stamp())
