from __future__ import annotations

import json
import math
from pathlib import Path

from lmms_eval.engine.uncertainty import MissingBounds, filled_means
from lmms_eval.results import load
from lmms_eval.results.breakdown import MISSING, breakdown, breakdown_text
from lmms_eval.stats import Interval, MeanSpread, score_interval
from lmms_eval.utils.numbers import SHARES, ScoreRange
from tests.cases import for_each
from tests.results.runs import FAILED, document, sample, write_run


def rows() -> list[dict]:
    made = [
        sample(number, doc={"topic": "ab"[number % 4 == 0], "text": f"own {number}", "year": 2000 + number % 2})
        for number in range(80)
    ]
    return [*made, {**FAILED, "doc_id": 80}]


def test_values_of_metadata_have_means_and_intervals_by_the_rule(tmp_path: Path) -> None:
    run = load(write_run(tmp_path, rows()))
    found = breakdown(run, run.task("quiz"))
    assert (found.metric, found.filter, found.note) == ("acc", "none", "")
    assert found.outcomes == {"scored": 79, "truncated": 1, "failed": 1}
    cells = {(cell.by, cell.value): cell for cell in found.cells}
    assert list(cells) == [
        ("", ""), ("topic", "a"), ("topic", "b"), ("year", "2000"), ("year", "2001"), ("kind", "x"), ("kind", "y"),
    ]  # fmt: skip
    whole = cells["", ""]
    shares = ScoreRange(0, 1)
    expected = score_interval(0.5, MeanSpread.of_scores([0.0, 1.0] * 40, shares), shares)
    assert isinstance(expected, Interval)
    assert (whole.n, whole.mean, whole.low, whole.high) == (80, 0.5, expected.low, expected.high)
    topic = cells["topic", "b"]
    assert (topic.n, topic.mean, topic.is_few, cells["topic", "a"].is_few) == (20, 0.0, True, False)


def test_another_metric(tmp_path: Path) -> None:
    run = load(write_run(tmp_path, rows()))
    found = breakdown(run, run.task("quiz"), "graded")
    assert (found.metric, found.cells[2].value, found.cells[2].n) == ("graded", "b", 20)
    assert math.isclose(found.cells[2].mean or 0, sum(range(0, 80, 4)) / 4 / 20)


def clustered(rows: list[dict], key: str) -> list[dict]:
    return [{**row, "doc": {**row.get("doc", {}), key: row["doc_id"] // 4}} for row in rows]


def test_intervals_of_clusters_in_each_cell(tmp_path: Path) -> None:
    configs = {"quiz": {"cluster_key": "video"}}
    run = load(write_run(tmp_path, clustered(rows(), "video"), document(configs=configs)))
    found = {(cell.by, cell.value): cell for cell in breakdown(run, run.task("quiz"), "acc").cells}
    scores = [0.0, 1.0] * 40
    spread = MeanSpread.clustered(scores, [number // 4 for number in range(80)])
    expected = score_interval(0.5, spread, ScoreRange(0, 1))
    assert isinstance(expected, Interval)
    assert (found["", ""].low, found["", ""].high) == (expected.low, expected.high)
    assert found["", ""].is_few  # 80 documents, but 20 clusters
    unknown = load(write_run(tmp_path / "unknown", rows(), document(configs=configs)))
    reasons = {cell.no_interval for cell in breakdown(unknown, unknown.task("quiz")).cells}
    assert reasons == {"clusters not known"}


def lacking(which: list[int], **doc: str) -> list[dict]:
    """Rows of which some failed, with these fields of the document."""
    more = {"doc": doc} if doc else {}
    return [{**FAILED, "doc_id": 100 + number, **more} for number in which]


def test_cells_have_bounds_whatever_missing_documents_would_score(tmp_path: Path) -> None:
    known = [sample(n, acc=float(n % 3 > 0), doc={"topic": "ab"[n % 2]}) for n in range(60)]
    lost = [*lacking([1, 2, 3], topic="a"), {**sample(200, doc={"topic": "b"}), "status": "unscored", "reason": "x"}]
    run = load(write_run(tmp_path, [*known, *lost]))
    found = breakdown(run, run.task("quiz"), "acc")
    named = {cell.value: cell for cell in found.cells}
    for value, count in (("", 4), ("a", 3), ("b", 1)):
        scores = [row["acc"] for row in known if value in ("", row["doc"]["topic"])]
        bounds = MissingBounds.of(count, filled_means(scores, count, SHARES), SHARES)
        cell = named[value]
        assert cell.missing == bounds
        assert bounds.low is not None and bounds.high is not None and cell.low is not None and cell.high is not None
        assert bounds.low < cell.low < cell.high < bounds.high
    text = breakdown_text(found)
    assert f"3 missing: {named['a'].missing.low:.4f} to" in text and MISSING in text  # type: ignore[union-attr]
    whole = load(write_run(tmp_path / "whole", known))
    assert "missing" not in breakdown_text(breakdown(whole, whole.task("quiz")))


def test_missing_documents_whose_part_is_not_known_count_in_every_cell(tmp_path: Path) -> None:
    known = [sample(n, acc=float(n % 3 > 0), doc={"topic": "ab"[n % 2]}) for n in range(60)]
    run = load(write_run(tmp_path, [*known, *lacking([1, 2]), *lacking([3], topic="a")]))
    cells = breakdown(run, run.task("quiz"), "acc").cells
    assert {cell.value: cell.missing.n for cell in cells if cell.missing} == {"": 3, "a": 3, "b": 2, "x": 3, "y": 3}


def test_cells_without_bounds_name_the_reason(tmp_path: Path) -> None:
    graded = [sample(n, graded=float(n), doc={"topic": "ab"[n % 2]}) for n in range(40)]
    open_ended = load(write_run(tmp_path, [*graded, *lacking([1], topic="a")]))
    (whole, first, second) = breakdown(open_ended, open_ended.task("quiz"), "graded").cells
    assert whole.missing_text() == first.missing_text() == "1 missing: no bounds (no range with two ends)"
    assert (second.missing, second.missing_text()) == (None, "")
    scored = [sample(n, acc=1.0, doc={"topic": "ab"[n % 2]}) for n in range(8)]
    run = load(write_run(tmp_path / "few", [*scored, *lacking([1, 2], topic="c")]))
    found = {cell.value: cell.missing_text() for cell in breakdown(run, run.task("quiz"), "acc").cells}
    assert found["c"] == "2 missing: no bounds (n = 0)" and found["a"] == ""


def stopped(order: str, asked: int = 81) -> dict:
    return document(early_stop={"quiz": {"asked": asked, "of": 400, "order": order, "rule": "halfwidth<=0.1"}})


def test_intervals_of_a_task_that_stopped_early_hold_at_every_look(tmp_path: Path) -> None:
    run = load(write_run(tmp_path, rows(), stopped("random:0:abcd")))
    found = {(cell.by, cell.value): cell for cell in breakdown(run, run.task("quiz")).cells}
    plain = load(write_run(tmp_path / "plain", rows()))
    for cell in breakdown(plain, plain.task("quiz")).cells:
        early = found[cell.by, cell.value]
        assert (early.n, early.mean, early.method) == (cell.n, cell.mean, "betting")
        assert early.low is not None and early.high is not None and cell.low is not None and cell.high is not None
        assert early.low <= early.mean <= early.high
        assert early.high - early.low > cell.high - cell.low


@for_each(
    ("order", "asked", "reason"),
    [
        ("", 81, "stopped early, order not known"),
        ("strata:0:abcd", 81, "stopped early, over strata"),
        ("random:0:abcd", 90, "stopped early, and not all samples are here"),
    ],
)
def test_no_interval_where_the_order_is_not_known(tmp_path: Path, order: str, asked: int, reason: str) -> None:
    run = load(write_run(tmp_path, rows(), stopped(order, asked)))
    found = breakdown(run, run.task("quiz")).cells
    assert {(cell.low, cell.high, cell.no_interval) for cell in found} == {(None, None, reason)}
    assert found[0].mean == 0.5


def test_a_number_that_is_no_mean_is_told(tmp_path: Path) -> None:
    run = load(write_run(tmp_path, rows(), document(results={"quiz": {"acc,none": 0.75}})))
    assert "own number is 0.7500" in breakdown(run, run.task("quiz")).note
    percent = load(write_run(tmp_path, rows(), document(results={"quiz": {"acc,none": 50.0}})))
    assert breakdown(percent, percent.task("quiz")).note == ""


@for_each("lines", [[], [FAILED]])
def test_nothing_scored(tmp_path: Path, lines: list[dict]) -> None:
    run = load(write_run(tmp_path, lines))
    (cell,) = breakdown(run, run.task("quiz")).cells
    assert (cell.n, cell.mean, cell.no_interval) == (0, None, "n = 0")


def test_text_is_a_table_that_marks_few_documents_and_shows_hostile_names(tmp_path: Path) -> None:
    hostile = [sample(n, doc={"a|b\x1b[2J": ["<i>", "*x*"][n % 2]}) for n in range(8)]
    text = breakdown_text(breakdown(run := load(write_run(tmp_path, hostile)), run.task("quiz")))
    assert "\x1b" not in text
    assert "\\<i\\>" in text
    assert "a\\|b" in text
    assert "few" in text


def write_blind(folder: Path, plain: list[float], **controls: list[float | None]) -> Path:
    """Write a run of ``quiz`` and its controls with these scores; ``None`` for a document that failed."""
    names = {"quiz": [*plain], **{f"quiz@{name.replace('_', '-')}": scores for name, scores in controls.items()}}
    config = {"score_key": "score", "metric_list": [{"metric": "acc", "aggregation": "mean"}]}
    path = write_run(folder, [], document(configs=dict.fromkeys(names, config)))
    for name, scores in names.items():
        lines = [
            {**FAILED, "doc_id": number}
            if score is None
            else sample(number, acc=score, doc={"topic": "ab"[number % 2]})
            for number, score in enumerate(scores)
        ]
        file = path.with_name(path.name.replace("results.json", f"samples_{name}.jsonl"))
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_controls_without_media_explain_a_share_of_the_answers_of_each_cell(tmp_path: Path) -> None:
    plain = [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0] * 10
    no_media = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, None] * 10
    choices = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0] * 10
    run = load(write_blind(tmp_path, plain, no_media=no_media, choices_only=choices, shuffled_media=[1.0] * 80))
    found = breakdown(run, run.task("quiz"))
    assert found.blind is not None and found.blind.controls == ("no-media", "choices-only")
    numbers = {
        (by.by, by.value): (by.n, by.mean, rest.n, rest.mean)
        for by, rest in zip(found.blind.explained, found.blind.rest, strict=True)
        if by.by in ("", "topic")
    }
    # of each 8 documents the last has no number in a control; 5 of 7 are answered, 2 of them blindly; 4 remain
    assert numbers == {
        ("", ""): (50, 0.4, 40, 0.75), ("topic", "a"): (30, 1 / 3, 20, 1.0), ("topic", "b"): (20, 0.5, 20, 0.5)
    }  # fmt: skip
    assert found.blind.documents[:4] == ("0", "1", "8", "9")
    whole, shares = found.blind.explained[0], ScoreRange(0, 1)
    expected = score_interval(0.4, MeanSpread.of_scores([1.0] * 20 + [0.0] * 30, shares), shares)
    assert isinstance(expected, Interval) and (whole.low, whole.high) == (expected.low, expected.high)
    text = breakdown_text(found)
    assert "without the media (no-media, choices-only)" in text and "|topic|b    |      20|   0.5000|" in text


def test_without_such_controls_or_a_greatest_score_nothing_is_explained(tmp_path: Path) -> None:
    run = load(write_blind(tmp_path / "a", [1.0, 0.0], shuffled_media=[1.0, 1.0]))
    assert breakdown(run, run.task("quiz")).blind is None
    run = load(write_blind(tmp_path / "b", [1.0, 0.0], no_media=[1.0, 1.0]))
    assert breakdown(run, run.task("quiz"), "graded").blind is None  # the range is not known
    assert breakdown(run, run.task("quiz@no-media")).blind is None
