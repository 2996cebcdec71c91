"""Cells of breakdowns: which columns divide documents, in which order, and what an interval needs."""

from __future__ import annotations

import math

import numpy as np

from lmms_eval.engine.headline import place_in
from lmms_eval.results.breakdown import (
    FEW,
    LONGEST,
    MOST_COLUMNS,
    MOST_VALUES,
    AskedDocuments,
    MetricDocuments,
    cells,
    divisions,
    natural,
    whole_cell,
)
from lmms_eval.results.facts import EarlyStop
from lmms_eval.stats import NoInterval
from lmms_eval.utils.numbers import ScoreRange
from tests.cases import for_each

SHARES = ScoreRange(0, 1)


def test_columns_with_a_few_short_values_in_natural_order() -> None:
    found = divisions(
        {
            "level": ["10", "9", None, "all", "-1"],
            "one": ["x", None, "x", "x", "x"],
            "many": [str(number) for number in range(MOST_VALUES + 1)],
            "text": ["x" * (LONGEST + 1), "y", "y", "y", "y"],
            "media": ["[]", "['./data/a b.PNG']", "[]", "[]", "[]"],
            "file": ["a.mp4", "a.mp4", "b.mp4", "b.mp4", "b.mp4"],
        }
    )
    assert [(one.column, one.values, one.codes.tolist()) for one in found] == [
        ("level", ("-1", "9", "10", "all"), [2, 1, -1, 3, 0])
    ]
    assert len(divisions({str(number): ["a", "b"] for number in range(50)})) == MOST_COLUMNS


def test_columns_that_repeat_the_score_divide_nothing() -> None:
    columns = {
        "score": ["0.5", "1", None, "0.0"],
        "right": ["False", "true", "True", "false"],
        "level": ["1", "1", "0", "0"],
        "kind": ["a", "b", "a", "b"],
    }
    assert [one.column for one in divisions(columns, [[0.5, 1.0, 1.0, 0.0]])] == ["right", "level", "kind"]
    assert [one.column for one in divisions(columns, [[0.0, 1.0, math.nan, 0.0]])] == ["score", "level", "kind"]
    assert [one.column for one in divisions(columns, [[math.nan] * 4])] == list(columns)
    assert [one.column for one in divisions(columns)] == list(columns)


def test_digits_within_texts_count_as_numbers() -> None:
    values = ["T-10", "T-2", "S-1", "2.5", "-1", "nan", "inf", "T", "6-8", "40"]
    assert sorted(values, key=natural) == ["-1", "2.5", "40", "6-8", "S-1", "T", "T-2", "T-10", "inf", "nan"]


def test_scores_without_a_number_do_not_count() -> None:
    (division,) = divisions({"kind": ["a", "b", "a", "b"]})
    first, second = cells(MetricDocuments.of([1.0, math.nan, 0.0, math.nan], None), division)
    assert (first.n, first.mean, second.n, second.mean, second.no_interval) == (2, 0.5, 0, None, "n = 0")


def test_a_cell_of_one_cluster_has_no_interval() -> None:
    (division,) = divisions({"kind": ["a"] * 40 + ["b"] * 40})
    clusters = ["one"] * 40 + [str(number) for number in range(40)]
    first, second = cells(MetricDocuments.of([0.0, 1.0] * 40, SHARES, clusters), division)
    assert (first.no_interval, first.is_few, first.low) == ("one cluster", True, None)
    assert (second.no_interval, second.is_few) == ("", False)


@for_each(("n", "is_few"), [(FEW - 1, True), (FEW, False)])
def test_few_documents_are_marked(n: int, is_few: bool) -> None:
    assert whole_cell(MetricDocuments.of([0.0, 1.0] * n, SHARES)).is_few is False
    assert whole_cell(MetricDocuments.of([1.0] * n, SHARES)).is_few is is_few


def test_documents_that_do_not_count_are_left_out() -> None:
    stop = EarlyStop(asked=20, of=100, order="random:7:abcd", rule="")
    ids = [str(number) for number in range(30)]
    asked = AskedDocuments.find(stop, "quiz", ids)
    assert isinstance(asked, AskedDocuments)
    order = sorted(range(30), key=lambda number: place_in(stop.order, "quiz", str(number)))
    assert asked.rows.tolist() == order[:20]
    scores = np.zeros(30)
    scores[order[20:]] = 1.0
    whole = whole_cell(MetricDocuments.of(scores, SHARES, asked=asked))
    assert (whole.n, whole.mean, whole.low) == (20, 0.0, 0.0)
    assert whole.high is not None and 0.08 < whole.high < 0.3


def test_what_is_not_known_of_a_document_widens_an_early_interval() -> None:
    asked = AskedDocuments(np.arange(60), 200)
    scores = np.array([0.0, 1.0] * 30)
    whole = whole_cell(MetricDocuments.of(scores, SHARES, asked=asked))
    scores[:10] = math.nan
    wider = whole_cell(MetricDocuments.of(scores, SHARES, asked=asked))
    assert wider.n == 50
    assert (wider.high or 0) - (wider.low or 0) > (whole.high or 0) - (whole.low or 0) + 0.1


def test_no_early_interval_without_a_range() -> None:
    whole = whole_cell(MetricDocuments.of([0.5, 7.0], None, asked=AskedDocuments(np.arange(2), 9)))
    assert (whole.mean, whole.low, whole.no_interval) == (3.75, None, "stopped early, no range known")
    whole = whole_cell(MetricDocuments.of([0.5, 1.0], SHARES, asked=NoInterval("why")))
    assert (whole.low, whole.no_interval) == (None, "why")
