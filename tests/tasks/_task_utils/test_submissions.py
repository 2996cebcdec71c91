import inspect
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lmms_eval.api.task import TaskOptions
from lmms_eval.errors import DataError
from lmms_eval.tasks import Catalogue, select_tasks
from lmms_eval.tasks._task_utils.submissions import indented_json, stamp, written_json
from lmms_eval.tasks.textvqa import utils as textvqa
from lmms_eval.tasks.yaml.task import YamlTask
from tests.cases import for_each


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


def test_tasks_that_share_what_writes_their_files_name_them_by_the_task() -> None:
    """Two tasks of a run may end in the same second: a stamp does not keep their files apart."""
    shared: dict[Any, set[str]] = {}
    catalogue = Catalogue()
    for name in (
        "textvqa",
        "mmbench",
        "air_bench_foundation",
        "mathverse",
        "docvqa",
        "egoschema",
        "vizwiz_vqa",
        "vqav2",
    ):
        for task in select_tasks([name], catalogue, TaskOptions()).tasks:
            for entry in cast(YamlTask, task).config.metric_list or []:
                function = entry.get("aggregation")
                if callable(function) and "written" in inspect.getsource(function):
                    shared.setdefault(function, set()).add(task.name)
    twice = {function: names for function, names in shared.items() if len(names) > 1}
    assert twice
    for function, names in twice.items():
        assert "task" in inspect.signature(function).parameters, (function, names)


def test_both_splits_of_textvqa_have_a_file_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textvqa, "stamp", lambda: "NOW")
    for name in ("textvqa_val", "textvqa_test"):
        textvqa.write_submission(
            [{"answer": name}], SimpleNamespace(output_path=str(tmp_path)), SimpleNamespace(name=name)
        )
    files = sorted((tmp_path / "submissions").iterdir())
    assert [json.loads(file.read_text())[0]["answer"] for file in files] == ["textvqa_test", "textvqa_val"]


@for_each(
    "content",
    [
        {"a": [], "b": {}, "c": [{"d": [1, 2.5, 1e22, 1e-7, -0.0, None, True]}], "é": '\u2028 \x7f \\ " : , [ {'},
        [float("nan"), float("-inf")],
        ["half \ud800"],
        {1: 10**30, None: "x"},
        "text",
    ],
)
def test_indented_json_is_that_of_the_library(content: Any) -> None:
    for ensure_ascii in (True, False):
        assert indented_json(content, ensure_ascii) == json.dumps(content, indent=4, ensure_ascii=ensure_ascii)
