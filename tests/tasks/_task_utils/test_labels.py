from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval.errors import DataError
from lmms_eval.stats.labelled import Stratum
from lmms_eval.tasks._task_utils.labels import Label, drawn_strata, read_labels
from lmms_eval.tasks._task_utils.workbooks import write_rows
from tests.cases import for_each

PLAN = "task,id,score,stratum,probability\n"


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_all_forms_hold_the_same(tmp_path: Path) -> None:
    rows = [{"task": "t", "id": 3, "score": 0.5, "stratum": 2, "probability": 0.25}]
    rows.append({"task": "t", "id": 7, "score": None, "stratum": 2, "probability": 0.25})
    (tmp_path / "labels.json").write_text(json.dumps(rows))
    write_rows(rows, tmp_path / "labels.xlsx")
    for path in (
        file(tmp_path, f"{PLAN}t,3,0.5,2,0.25\nt,7,,2,0.25\n"),
        tmp_path / "labels.json",
        tmp_path / "labels.xlsx",
    ):
        first, second = read_labels(path)
        assert first == Label("3", None, "t", 0.5, "2", 0.25, f"{path}, row 1")
        assert (second.id, second.score) == ("7", None)


@for_each(
    ("text", "words"),
    [
        ("id,score\n", "no rows"),
        ("name,score\na,1\n", "row 1: needs id and score"),
        ("id,score\n1,2\n,3\n", "row 2: needs id and score"),
        ("id,score\n1,x\n", "row 1: the score 'x' is no number"),
        ("id,score\n1,nan\n", "the score 'nan' is no number"),
        ("id,score\n1,2\n1,2\n", "row 2: a second score of '1', after .* row 1"),
        ("id,position,score\n1,a,3\n", "the position 'a'"),
        (f"{PLAN}t,1,0,1,1.5\n", "the probability '1.5'"),
        (f"{PLAN}t,1,0,1,0.5\nt,2,0,1,\n", "row 2: no probability"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_labels(file(tmp_path, text))


def test_a_damaged_workbook(tmp_path: Path) -> None:
    path = tmp_path / "labels.xlsx"
    path.write_bytes(b"no workbook")
    with pytest.raises(DataError, match="cannot be read as a workbook"):
        read_labels(path)


def strata(tmp_path: Path, text: str, documents: int, scale: float = 1.0) -> list[Stratum]:
    labels = read_labels(file(tmp_path, text))
    return drawn_strata(labels, [int(one.id) for one in labels], {n: float(n) for n in range(documents)}, scale)


def test_the_plan_says_how_large_the_strata_are(tmp_path: Path) -> None:
    text = f"{PLAN}t,0,1,a,0.5\nt,1,1,a,0.5\nt,2,0,b,0.75\nt,3,1,b,0.75\nt,4,,b,0.75\n"
    assert strata(tmp_path, text, 8, 100) == [
        Stratum(4, (0.0, 1.0), (100.0, 100.0)),
        Stratum(4, (2.0, 3.0), (0.0, 100.0)),
    ]


def test_without_a_plan_the_documents_are_one_sample(tmp_path: Path) -> None:
    assert strata(tmp_path, "id,score\n0,1\n5,0\n6,\n", 10) == [Stratum(10, (0.0, 5.0), (1.0, 0.0))]


@for_each(
    ("text", "words"),
    [
        ("id,score\n0,1\n1,\n", "1 human scores; at least 2"),
        ("id,score\n0,\n", "no row has a score"),
        (f"{PLAN}t,0,1,a,0.5\nt,1,1,a,0.25\n", "row 2: a probability unlike"),
        (f"{PLAN}t,0,1,a,0.4\n", "stratum 'a' lacks rows"),
        (f"{PLAN}t,0,1,a,0.5\nt,1,1,a,0.5\n", "drawn from 4 judged documents, but the run has 8"),
        (f"{PLAN}t,0,1,a,0.5\nt,1,1,a,0.5\nt,2,,b,0.5\nt,3,0,b,0.5\n", "stratum 'b' has 1 human scores"),
    ],
)
def test_a_plan_must_be_whole(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        strata(tmp_path, text, 8)
