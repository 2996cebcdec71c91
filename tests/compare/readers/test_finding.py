from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lmms_eval.compare.readers import read_runs
from lmms_eval.errors import DataError, UsageError
from tests.cases import for_each

FEW = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def check(path: Path) -> None:
    """Whatever the file holds: rows that fit together, or an error that names the file in one line."""
    try:
        (run,) = read_runs([str(path)])
    except UsageError as error:
        assert str(path) in str(error)  # noqa: PT017 - either end is right
        return
    for task in run.tasks.values():
        assert len(set(task.ids)) == len(task.ids) == len(task.statuses)
        for name, column in task.columns.items():
            assert len(column.scores) == len(task.ids)
            assert not any(math.isinf(score) for score in column.scores)
            for row in range(len(task.ids)):
                task.raw(name, row)
        assert all(len(values) == len(task.ids) for values in task.metadata().values())
        for row in range(len(task.ids)):
            task.answer(row)


@FEW
@given(
    st.lists(
        st.fixed_dictionaries(
            {"doc_id": JSON, "filtered_resps": JSON},
            optional={key: JSON for key in ("acc", "status", "filter", "doc", "doc_hash", "target", "arguments", "x")},
        ),
        max_size=4,
    )
)
def test_any_lines_of_samples_end_in_rows_or_an_error(tmp_path: Path, samples: list[dict[str, Any]]) -> None:
    path = tmp_path / "20240101_000000_samples_quiz.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    check(path)


@FEW
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "index": JSON,
                "sample_score": st.fixed_dictionaries(
                    {"score": JSON | st.fixed_dictionaries({"value": st.dictionaries(TEXT, JSON) | JSON})},
                    optional={"group_id": JSON, "sample_id": JSON, "sample_metadata": JSON},
                ),
            },
            optional={"messages": JSON, "target": JSON, "input": JSON},
        ),
        max_size=3,
    )
)
def test_any_reviews_end_in_rows_or_an_error(tmp_path: Path, reviews: list[dict[str, Any]]) -> None:
    path = tmp_path / "quiz.jsonl"
    path.write_text("".join(json.dumps(review) + "\n" for review in reviews))
    check(path)


@FEW
@given(st.binary(max_size=60) | TEXT.map(str.encode))
def test_any_bytes_end_in_rows_or_an_error(tmp_path: Path, content: bytes) -> None:
    for name, head in (
        ("a.jsonl", b""),
        ("b.csv", b"id,score,status,task,metric\n"),
        ("c.csv", b"index,prediction,hit\n"),
    ):
        path = tmp_path / name
        path.write_bytes(head + content)
        check(path)


@FEW
@given(
    st.dictionaries(
        st.sampled_from(
            ["results", "configs", "higher_is_better", "groups", "group_subtasks", "outcomes", "early_stop"]
        ),
        JSON
        | st.fixed_dictionaries(
            {
                "quiz": JSON
                | st.dictionaries(st.sampled_from(["metric_list", "n", "acc,none", "acc", "wrote_files"]), JSON)
            }
        ),
    )
)
def test_any_results_document_ends_in_rows_or_an_error(tmp_path: Path, parts: dict[str, Any]) -> None:
    path = tmp_path / "20240101_000000_results.json"
    path.write_text(json.dumps({"results": {}, "configs": {"quiz": {}}, "n-shot": {}, "run_key": "k", **parts}))
    sample = {"doc_id": 0, "filtered_resps": "x", "acc": 1.0, "status": "scored", "filter": "none"}
    (tmp_path / "20240101_000000_samples_quiz.jsonl").write_text(json.dumps(sample) + "\n")
    check(path)


@for_each("content", [b"", b"hello\n", b"[1, 2]", b"{}", b"a,b\n1,2\n", b"PK\x03\x04broken", b"\x00\xff"])
def test_an_unknown_file_is_refused_with_what_was_looked_for(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="unknown format") as refused:
        read_runs([str(path)])
    text = str(refused.value)
    assert "\n" not in text
    for name in ("lmms-eval", "lm-eval", "VLMEvalKit", "inspect_ai", "EvalScope", "id and score"):
        assert name in text


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.eval", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(UsageError, match="unknown format"):
        read_runs([str(tmp_path / "x.eval")])


def test_a_format_is_recognised_by_content_whatever_the_name(tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_text("id,score\na,1\n")
    (tmp_path / "odd.csv").write_text('{"doc_id": 0, "filtered_resps": "x", "acc": 1}\n')
    kinds = [run.kind for run in read_runs([str(tmp_path / "odd.txt"), str(tmp_path / "odd.csv")])]
    assert kinds == ["table", "lmms-eval family"]


def test_runs_of_one_name_are_told_apart_around_names_that_are_taken(tmp_path: Path) -> None:
    names = ["a/run.csv", "b/run.csv", "c/run@b.csv", "d/run.csv"]
    for name in names:
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("id,score\na,1\n")
    found = [run.name for run in read_runs([str(tmp_path / name) for name in names])]
    assert found[0] == "run@a" and found[3] == "run@d" and "run@b" in found[1:3] and len(set(found)) == 4


def test_files_of_several_runs_in_a_folder_are_told_apart(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,score\na,1\n")
    with pytest.raises(DataError, match=r"holds several runs: name the files of one of them: a.csv \(a: a\); b.csv"):
        read_runs([str(tmp_path)])
