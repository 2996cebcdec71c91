from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval import stats
from lmms_eval.api.task import PipelineScore
from lmms_eval.engine.aggregate import AggregateOptions, aggregate_task
from lmms_eval.engine.plan import plan_task
from lmms_eval.errors import DataError
from lmms_eval.results.baseline import PairedScores, compare, read_baseline
from tests.engine.fakes import FakeTask, mean
from tests.engine.journaled import failed, metric, scored, store_of


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def plain(doc_id: int, **more: Any) -> dict[str, Any]:
    return {"doc_id": doc_id, "target": "a", "filtered_resps": "b", **more}


def compared(
    folder: Path, current: Sequence[Mapping[str, Any] | None], earlier: Sequence[Mapping[str, Any]], **facts: Any
) -> PairedScores | None:
    """A run whose documents have these metrics (``None``: failed) against a baseline."""
    task = FakeTask(len(current))
    names = dict.fromkeys(name for metrics in current for name in metrics or {})
    task.metrics = tuple(metric(name, mean) for name in names)
    for key, value in facts.items():
        setattr(task, key, value)
    records = [
        failed(task, number, "timeout") if metrics is None
        else scored(task, number, PipelineScore("none", "x", metrics))
        for number, metrics in enumerate(current)
    ]  # fmt: skip
    store = store_of(folder / "journal", *records)
    result = aggregate_task(plan_task(task, None, 0), store, AggregateOptions())
    try:
        return compare(result, store, str(lines(folder / "20240101_000000_samples_quiz.jsonl", earlier)))
    finally:
        store.close()


def test_documents_are_paired_by_their_id(tmp_path: Path) -> None:
    values = [1.0, 0.0, 1.0, 1.0]
    earlier = [plain(n, acc=value) for n, value in ((7, 1.0), (3, 0.0), (1, 0.0), (0, 1.0))]
    paired = compared(tmp_path, [{"acc": value} for value in values], earlier)
    expected = stats.paired_ttest([1.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    assert paired is not None
    assert (paired.n, paired.baseline) == (3, "20240101_000000_samples_quiz")
    assert paired.baseline_score == pytest.approx(100 / 3)
    assert paired.mean_difference == pytest.approx(100 / 3)
    assert (paired.ci_lower, paired.pvalue) == (pytest.approx(100 * expected.ci_lower), expected.p_value)


@pytest.mark.parametrize("order", [["acc", "gpt_score"], ["gpt_score", "acc"]])
def test_both_sides_are_read_by_the_same_metric(tmp_path: Path, order: list[str]) -> None:
    rows: list[dict[str, Any]] = [{"acc": float(n % 2), "gpt_score": 5.0 - n} for n in range(4)]
    current = [{name: row[name] for name in order} for row in rows]
    paired = compared(tmp_path, current, [plain(n, **row) for n, row in enumerate(rows)])
    assert paired is not None and paired.mean_difference == 0.0 and paired.n == 4


def test_the_first_metric_with_numbers_counts_and_mappings_by_the_score_key(tmp_path: Path) -> None:
    current = [{"submission": {"text": "x"}, "macro": {"query": n / 4}, "scored": 1.0} for n in range(4)]
    earlier = [plain(n, submission={"text": "x"}, macro={"query": 0.0}, scored=1.0) for n in range(4)]
    paired = compared(tmp_path, current, earlier, score_key="query")
    assert paired is not None
    assert (paired.baseline_score, paired.mean_difference) == (0.0, pytest.approx(37.5))


def test_what_was_not_scored_is_left_out_on_both_sides(tmp_path: Path) -> None:
    current = [{"acc": 1.0}, None, {"acc": 1.0}, {"acc": 0.0}]
    earlier = [
        plain(0, acc=0.0, status="scored"),
        plain(1, acc=0.0),
        {"doc_id": 2, "status": "failed", "error": "timeout"},
        plain(3, acc=0.0),
        plain(3, acc=1.0, filter="second"),
    ]
    paired = compared(tmp_path, current, earlier)
    assert paired is not None and paired.n == 2


def test_fewer_than_two_pairs_are_no_comparison(tmp_path: Path) -> None:
    assert compared(tmp_path, [{"acc": 1.0}], [plain(0, acc=1.0)]) is None


@pytest.mark.parametrize(
    ("row", "score"),
    [
        (plain(0, gpt_score=0.25), 0.25),
        (plain(0, my_score={"score": 0.5}), 0.5),
        (plain(0, my_score={"pred": "Cat", "answer": "cat"}), 1.0),
        (plain(0, my_score={"pred_answer": "dog", "answer": "cat"}), 0.0),
        (plain(0), 0.0),
        (plain(0, filtered_resps=["a"]), 1.0),
    ],
)
def test_samples_of_other_harnesses(tmp_path: Path, row: dict[str, Any], score: float) -> None:
    assert read_baseline(lines(tmp_path / "b.jsonl", [row]), []) == {0: score}


def test_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = lines(tmp_path / "b.jsonl", [plain(0, acc=1.0)])
    path.write_text(path.read_text() + "\n\n")
    assert read_baseline(path, ["acc"]) == {0: 1.0}


@pytest.mark.parametrize("content", [b'{"doc_id": 0', b"[1]", b'{"target": 1}', b"\xff\xfe", b'{"doc_id": 0}'])
def test_a_file_that_holds_no_samples_is_named_with_its_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b.jsonl").write_bytes(content + b"\n")
    with pytest.raises(DataError, match=r"b\.jsonl, line 1: not a samples line"):
        read_baseline(tmp_path / "b.jsonl", [])


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_baseline(tmp_path / "none.jsonl", [])
