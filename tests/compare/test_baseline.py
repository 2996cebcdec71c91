from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lmms_eval import stats
from lmms_eval.api.task import PipelineScore
from lmms_eval.compare.baseline import check_baseline, compare_baseline
from lmms_eval.engine.aggregate import aggregate_task
from lmms_eval.engine.outcomes import AggregateOptions
from lmms_eval.engine.plan import plan_task
from lmms_eval.errors import DataError
from lmms_eval.results.baseline import PairedScores
from lmms_eval.utils.numbers import SHARES
from tests.cases import for_each
from tests.engine.fakes import FakeTask, mean
from tests.engine.journaled import failed, metric, scored, store_of


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def plain(doc_id: int, **more: Any) -> dict[str, Any]:
    return {"doc_id": doc_id, "target": "a", "filtered_resps": "b", **more}


def compared(
    folder: Path, current: Sequence[Mapping[str, Any] | None], earlier: Sequence[Mapping[str, Any]], **facts: Any
) -> dict[str, PairedScores]:
    """A run whose documents have these metrics (``None``: failed) against a baseline."""
    return compared_rows(folder, [metrics and [PipelineScore("none", "x", metrics)] for metrics in current], earlier,
                         **facts)  # fmt: skip


def compared_rows(
    folder: Path, current: Sequence[Sequence[PipelineScore] | None], earlier: Sequence[Mapping[str, Any]], **facts: Any
) -> dict[str, PairedScores]:
    task = FakeTask(len(current))
    names = dict.fromkeys(name for scores in current for score in scores or () for name in score.metrics)
    within = facts.pop("score_range", None)
    task.metrics = tuple(
        replace(metric(name, mean_of(facts.get("score_key", "score"))), score_range=within) for name in names
    )
    task.pipelines = tuple(dict.fromkeys(score.filter for scores in current for score in scores or ()))
    for key, value in facts.items():
        setattr(task, key, value)
    records = [
        failed(task, number, "timeout") if scores is None else scored(task, number, *scores)
        for number, scores in enumerate(current)
    ]
    store = store_of(folder / "journal", *records)
    result = aggregate_task(plan_task(task, None, 0), store, AggregateOptions(error_budget=0.5))
    try:
        return compare_baseline(result, store, lines(folder / "20240101_000000_samples_quiz.jsonl", earlier), "earlier")
    finally:
        store.close()


def mean_of(score_key: str) -> Any:
    """Of numbers, or of the mappings' fields of that name; of anything else how many there are, which is no mean."""

    def aggregation(values: Sequence[Any]) -> float:
        numbers = [number for value in values if (number := stats.item_number(value, score_key)) is not None]
        return mean(numbers) if numbers else -1.0

    return aggregation


def test_documents_are_paired_by_their_id(tmp_path: Path) -> None:
    values = [1.0, 0.0, 1.0, 1.0]
    earlier = [plain(n, acc=value) for n, value in ((7, 1.0), (3, 0.0), (1, 0.0), (0, 1.0))]
    (paired,) = compared(tmp_path, [{"acc": value} for value in values], earlier).values()
    expected = stats.paired_ttest([1.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    assert (paired.n, paired.baseline, paired.unit) == (3, "earlier", "percent")
    assert paired.baseline_score == pytest.approx(100 / 3)
    assert paired.difference == pytest.approx(100 / 3)
    assert paired.pvalue == expected.p_value and paired.estimand == "generalised accuracy"
    assert 100 * expected.ci_upper > 100  # no difference of shares is more
    assert (paired.ci_lower, paired.ci_upper) == (pytest.approx(-100), pytest.approx(100))


@for_each("order", [["acc", "gpt_score"], ["gpt_score", "acc"]])
def test_every_metric_has_a_comparison_of_its_own(tmp_path: Path, order: list[str]) -> None:
    rows: list[dict[str, Any]] = [{"acc": float(n % 2), "gpt_score": 5.0 - n} for n in range(4)]
    current = [{name: row[name] for name in order} for row in rows]
    earlier = [{**row, "gpt_score": row["gpt_score"] - n} for n, row in enumerate(rows)]
    found = compared(tmp_path, current, [plain(n, **row) for n, row in enumerate(earlier)])
    assert list(found) == [f"{name},none" for name in order]
    assert (found["acc,none"].difference, found["acc,none"].n) == (0.0, 4)
    graded = found["gpt_score,none"]
    assert (graded.difference, graded.unit, graded.baseline_score) == (1.5, "", 2.0)


def test_every_pipeline_has_a_comparison_of_its_own(tmp_path: Path) -> None:
    current = [
        [PipelineScore("none", "x", {"acc": float(n > 2)}), PipelineScore("strict", "x", {"acc": float(n > 4)})]
        for n in range(6)
    ]
    strict = [plain(n, acc=0.0, filter="strict") for n in range(6)]
    found = compared_rows(tmp_path, current, strict)
    assert {row: one.difference for row, one in found.items()} == {"acc,strict": pytest.approx(100 / 6)}
    both = compared_rows(tmp_path / "both", current, [*strict, *(plain(n, acc=1.0, filter="none") for n in range(6))])
    assert {row: one.difference for row, one in both.items()} == {
        "acc,none": pytest.approx(-50),
        "acc,strict": pytest.approx(100 / 6),
    }


def test_a_row_that_is_no_mean_or_absent_from_the_baseline_has_none(tmp_path: Path) -> None:
    current = [{"submission": {"text": "x"}, "macro": {"query": n / 4}, "scored": 1.0} for n in range(4)]
    earlier = [plain(n, submission={"text": "x"}, macro={"query": 0.0}) for n in range(4)]
    found = compared(tmp_path, current, earlier, score_key="query")
    assert list(found) == ["macro,none"]
    assert (found["macro,none"].baseline_score, found["macro,none"].difference) == (0.0, pytest.approx(37.5))


def test_what_was_not_scored_is_left_out_on_both_sides(tmp_path: Path) -> None:
    current = [{"acc": 1.0}, None, {"acc": 1.0}, {"acc": 0.0}]
    earlier = [
        plain(0, acc=0.0, status="scored"),
        plain(1, acc=0.0),
        {"doc_id": 2, "status": "failed", "error": "timeout"},
        plain(3, acc=0.0),
        plain(3, acc=1.0, filter="second"),
    ]
    (paired,) = compared(tmp_path, current, earlier).values()
    assert paired.n == 2


def right(share: float, n: int = 60) -> list[dict[str, float] | None]:
    return [{"acc": float(number < share * n)} for number in range(n)]


MISSING: dict[str, Any] = {"score_range": SHARES}


@for_each(
    ("failing", "depends"),
    [
        (0, ""),
        (1, ""),
        # 20 of 60 more are right. With 20 of the others failed, the baseline could have none less.
        (20, "depends on 20 documents without a score"),
    ],
)
def test_a_difference_is_significant_only_if_it_is_whatever_missing_documents_would_score(
    tmp_path: Path, failing: int, depends: str
) -> None:
    current = right(0.5)
    earlier = [plain(n, acc=float(n < 10)) for n in range(60)]
    for number in range(60 - failing, 60):
        current[number] = None
        earlier[number]["acc"] = 1.0
    (paired,) = compared(tmp_path / "this", current, earlier, **MISSING).values()
    assert (paired.depends, paired.n) == (depends, 60 - failing)
    assert paired.pvalue is not None and paired.pvalue < 0.05  # over the others

    # The same if the baseline lacks the scores.
    turned = [{"acc": row["acc"]} for row in earlier]
    lacking = [
        {"doc_id": n, "status": "failed", "error": "timeout"} if one is None else plain(n, **one)
        for n, one in enumerate(current)
    ]
    (other,) = compared(tmp_path / "baseline", turned, lacking, **MISSING).values()
    assert (other.depends, other.difference) == (depends, pytest.approx(-paired.difference))


def test_without_a_range_every_significant_difference_depends_on_what_is_missing(tmp_path: Path) -> None:
    current: list[dict[str, float] | None] = [{"wer": 3.0 + n % 5} for n in range(40)]
    current[7] = None
    (paired,) = compared(tmp_path, current, [plain(n, wer=2.0 + n % 3) for n in range(40)]).values()
    assert paired.depends == "depends on 1 document without a score"


def test_documents_that_one_run_did_not_ask_are_not_missing(tmp_path: Path) -> None:
    earlier = [plain(n, acc=float(n < 10)) for n in range(2_000)]
    (paired,) = compared(tmp_path, right(0.5), earlier, **MISSING).values()
    assert (paired.depends, paired.n) == ("", 60)


def test_fewer_than_two_pairs_are_no_comparison(tmp_path: Path) -> None:
    assert compared(tmp_path, [{"acc": 1.0}], [plain(0, acc=1.0)]) == {}


def test_differences_that_are_all_alike_say_nothing_of_their_spread(tmp_path: Path) -> None:
    (better,) = compared(tmp_path / "a", [{"acc": 1.0}] * 2, [plain(n, acc=0.0) for n in range(2)]).values()
    assert (better.difference, better.ci_lower, better.ci_upper, better.pvalue) == (100.0, None, None, None)
    assert better.estimand is None
    (same,) = compared(tmp_path / "b", [{"acc": 1.0}] * 2, [plain(n, acc=1.0) for n in range(2)]).values()
    assert (same.difference, same.ci_lower, same.pvalue) == (0.0, None, 1.0)


@for_each(
    ("metric_name", "row", "score"),
    [
        ("score", plain(0, gpt_score=0.25), 0.25),
        ("score", plain(0, my_score={"pred": "Cat", "answer": "cat"}), 1.0),
        ("acc", plain(0, gpt_score=0.25), None),
        ("acc", plain(0), 0.0),
        ("exact_match", plain(0, filtered_resps=["a"]), 1.0),
        ("rouge", plain(0), None),
    ],
)
def test_samples_of_other_harnesses(tmp_path: Path, metric_name: str, row: dict[str, Any], score: float | None) -> None:
    found = compared(tmp_path, [{metric_name: 1.0}] * 2, [row, {**row, "doc_id": 1}])
    assert [one.baseline_score for one in found.values()] == ([] if score is None else [100 * score])


def test_other_documents_under_the_same_ids_are_an_error(tmp_path: Path) -> None:
    earlier = [plain(n, acc=1.0, doc_hash=f"{n:064x}") for n in range(3)]
    assert compared(tmp_path, [{"acc": 1.0}] * 3, earlier)["acc,none"].n == 3
    earlier[2]["doc_hash"] = "f" * 64
    with pytest.raises(DataError, match=r"fake: 1 of 3 documents have the same id in this run and earlier.*: 2;"):
        compared(tmp_path, [{"acc": 1.0}] * 3, earlier)


def test_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = lines(tmp_path / "b.jsonl", [plain(0, acc=1.0)])
    path.write_text(path.read_text() + "\n\n[1]\n")
    with pytest.raises(DataError, match=r"b\.jsonl, line 4: "):
        check_baseline(path)


@for_each("content", [b'{"doc_id": 0', b"[1]", b'{"target": 1}', b"\xff\xfe", b'{"doc_id": 0}'])
def test_a_file_that_holds_no_samples_is_named_with_its_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b.jsonl").write_bytes(content + b"\n")
    with pytest.raises(DataError, match=r"--baseline .*b\.jsonl, line 1: "):
        check_baseline(tmp_path / "b.jsonl")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        check_baseline(tmp_path / "none.jsonl")
