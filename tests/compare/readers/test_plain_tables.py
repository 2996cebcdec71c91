from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lmms_eval.compare.readers import read_runs
from lmms_eval.errors import DataError
from tests.cases import for_each


def table(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


@for_each("delimiter", [",", "\t", ";"])
def test_every_known_column_is_taken_for_what_it_says(tmp_path: Path, delimiter: str) -> None:
    text = (
        "ID,Score,cluster,task,status,hash,metric,answer,level\n"
        'a,1,v,quiz,scored,h1,acc,"yes, of\ncourse",x\n'
        "b,0.5,v,quiz,,h2,acc,no,x\n"
        "c,,w,quiz,failed,h3,acc,,y\n"
        "d,nan,w,quiz,,h4,acc,no,y\n"
        "a,3,,quiz,,,length,,\n"
        "a,true,,other,,,,,\n"
    )
    (run,) = read_runs([table(tmp_path / "run.csv", text.replace(",", delimiter))])
    quiz = run.tasks["quiz"]
    assert (run.name, run.kind, list(run.tasks)) == ("run", "table", ["quiz", "other"])
    assert list(quiz.ids) == ["a", "b", "c", "d"]
    assert quiz.statuses == ["scored", "scored", "failed", "unscored"]
    assert quiz.hashes == ["h1", "h2", "h3", "h4"]
    assert quiz.clusters == ["v", "v", "w", "w"]
    np.testing.assert_array_equal(quiz.columns["acc,none"].scores, [1, 0.5, np.nan, np.nan])
    np.testing.assert_array_equal(quiz.columns["length,none"].scores, [3, np.nan, np.nan, np.nan])
    assert run.tasks["other"].columns["score,none"].scores.tolist() == [1.0]
    assert quiz.metadata() == {"level": ["x", "x", "y", "y"]}
    answer = quiz.answer(0)
    assert answer is not None and answer.text == f"yes{delimiter} of\ncourse"
    assert run.notes == ("quiz: values of acc that are not finite numbers: unscored (1)",)


def test_the_first_row_of_a_document_counts(tmp_path: Path) -> None:
    (run,) = read_runs([table(tmp_path / "run.csv", "id,score\na,1\na,0\n")])
    assert run.tasks["run"].columns["score,none"].scores.tolist() == [1.0]
    assert run.notes == ("run: further rows of documents that were there already: the first counts (1)",)


@for_each(
    ("row", "problem"),
    [(",1,scored", "no id"), ("a,1,done", "status 'done'"), ("a,1,scored,more", "4 fields below 3")],
)
def test_a_broken_row_is_named(tmp_path: Path, row: str, problem: str) -> None:
    with pytest.raises(DataError, match=rf"run.csv, line 3: .*{problem}"):
        read_runs([table(tmp_path / "run.csv", f"id,score,status\nx,1,\n{row}\n")])


def test_a_table_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_bytes(b"id,score\n" + b"a,1\n" * 9000 + b"\xff,1\n")
    with pytest.raises(DataError, match=r"run.csv, near line \d+: not a table of UTF-8 text"):
        read_runs([str(path)])
