from __future__ import annotations

import numpy as np
import pytest

from lmms_eval.compare.matching import renamed_metrics, renamed_tasks, share, shared_columns, shared_tasks
from lmms_eval.errors import DataError, UsageError
from tests.compare.runs import column, run, task

NAMES = ("ours", "theirs")


def test_rows_pair_by_id_whatever_their_order() -> None:
    found = share(task([0, 1, 1], ids=["7", "8", "9"]), task([1, 1], ids=["9 ", "7"]), NAMES)
    assert list(found.first_rows) == [0, 2]
    assert list(found.second_rows) == [1, 0]
    assert (found.only_first, found.only_second) == (1, 0)


def test_equal_or_absent_hashes_pair() -> None:
    found = share(task([0, 1], hashes=["a", None]), task([0, 1], hashes=["a", "b"]), NAMES)
    assert len(found.first_rows) == 2
    assert len(share(task([0, 1], hashes=["a", "b"]), task([0, 1]), NAMES).first_rows) == 2


def test_other_documents_under_the_same_ids_are_an_error_that_names_the_first_ten() -> None:
    ids = [f"d{number}" for number in range(13)]
    first = task([0.0] * 13, ids=ids, hashes=["x"] * 13)
    second = task([0.0] * 13, ids=ids, hashes=["y"] * 12 + ["x"])
    with pytest.raises(DataError) as error:
        share(first, second, NAMES)
    text = str(error.value)
    assert "12 of 13 documents" in text and "d0, d1" in text and "d9 and 2 more" in text
    assert "d10" not in text and "d12" not in text
    assert "ours" in text and "theirs" in text and "\n" not in text


def test_an_id_in_two_rows_is_an_error() -> None:
    with pytest.raises(DataError, match="theirs: quiz: 1 ids occur in more than one row: a"):
        share(task([0, 1], ids=["a", "b"]), task([0, 1], ids=["a", "a"]), NAMES)


def test_hostile_ids_are_named_in_one_line() -> None:
    with pytest.raises(DataError) as error:
        share(task([0, 1], ids=["\x1b[2J\nx", "\x1b[2J\nx"]), task([0, 1]), NAMES)
    assert "\x1b" not in str(error.value) and "\n" not in str(error.value)


def test_counts_of_what_is_absent() -> None:
    first = task([1, None, None, 0, 1], statuses=["scored", "unscored", "failed", "scored", "scored"])
    second = task([1, 1, 1, None], statuses=["scored", "scored", "scored", "failed"])
    found = share(first, second, NAMES)
    scores = first.columns["acc,none"].scores[:4], second.columns["acc,none"].scores
    counts = found.counts(np.isfinite(scores[0]), np.isfinite(scores[1]), np.ones(4, bool))
    assert (counts.paired, counts.only_first, counts.only_second) == (1, 1, 0)
    assert (counts.unscored, counts.failed) == ((1, 0), (1, 1))
    part = found.counts(np.isfinite(scores[0]), np.isfinite(scores[1]), np.array([True, True, False, False]))
    assert (part.paired, part.only_first, part.unscored, part.failed) == (1, 0, (1, 0), (0, 0))


def test_clusters_of_the_side_that_has_them() -> None:
    with_clusters = task([0, 1, 1], clusters=["a", "b", "b"])
    assert share(task([0, 1, 1], ids=["2", "1", "0"]), with_clusters, NAMES).clusters == ["b", "b", "a"]
    assert share(task([0]), task([0]), NAMES).clusters is None


def test_tasks_pair_by_name() -> None:
    first, second = run("a", task([0], "x"), task([0], "y")), run("b", task([0], "y"), task([0], "z"))
    assert shared_tasks(first, second) == ["y"]


def test_runs_of_different_tasks_are_an_error_that_says_how_to_pair_them() -> None:
    with pytest.raises(UsageError, match=r"no task in common: x against z; .*--task x=z"):
        shared_tasks(run("a", task([0], "x")), run("b", task([0], "z")))
    with pytest.raises(UsageError) as error:
        shared_tasks(run("a", task([0], "x"), task([0], "y")), run("b", task([0], "z")))
    assert "--task" not in str(error.value)


def test_tasks_are_renamed_where_the_user_says_so() -> None:
    runs = [run("a", task([0], "x")), run("b", task([0], "z")), run("c", task([0], "x"), task([0], "z"))]
    renamed = renamed_tasks(runs, {"x": "z"})
    assert [list(one.tasks) for one in renamed] == [["x"], ["x"], ["x", "z"]]
    assert renamed[1].tasks["x"].task == "x"
    with pytest.raises(UsageError, match=r"--task x=w: no run has a task w; they have: x, z"):
        renamed_tasks(runs, {"x": "w"})


def test_columns_pair_by_metric_and_filter_or_by_a_metric_with_one_filter() -> None:
    first = task([column([0], "acc"), column([0], "f1", filter="a"), column([0], "f1", filter="b")])
    second = task([column([0], "acc", filter="strict"), column([0], "f1", filter="b"), column([0], "other")])
    pairs = [(str(one), str(other)) for one, other in shared_columns(first, second)]
    assert pairs == [("acc,none", "acc,strict"), ("f1,b", "f1,b")]


def test_metrics_are_renamed_where_the_user_says_so() -> None:
    assert list(renamed_metrics(task([column([0], "hit")]), {"acc": "hit"}).columns) == ["acc,none"]
    kept = task([column([0], "hit"), column([1], "acc")])
    assert list(renamed_metrics(kept, {"acc": "hit"}).columns) == ["hit,none", "acc,none"]
