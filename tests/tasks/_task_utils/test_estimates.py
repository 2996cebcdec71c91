import math
import random

import pytest

from lmms_eval import stats
from lmms_eval.api.outcome import SubScore
from lmms_eval.tasks._task_utils.estimates import by, mean, over_parts, part, ratio

ROWS = [{"kind": kind, "score": score} for kind, score in (("b", 1), ("a", 0), ("b", 0), ("a", 1), ("a", 1))]


def test_a_mean_has_the_error_of_its_scale() -> None:
    made = mean([1.0, 0.0, 1.0], 100)
    assert made.value == pytest.approx(200 / 3)
    assert made.stderr == pytest.approx(100 * stats.mean_stderr([1.0, 0.0, 1.0]))


def test_documents_of_one_cluster_count_together() -> None:
    scores, clusters = [1.0, 1.0, 0.0, 0.0], ["a", "a", "b", "b"]
    made = mean(scores, 100, clusters=clusters)
    assert made.stderr == pytest.approx(100 * stats.clustered_stderr(scores, clusters))
    for useless in (["a", None, "b", "b"], ["a"] * 4):
        assert mean(scores, clusters=useless).stderr == mean(scores).stderr


def test_nothing_has_no_value_and_one_score_no_error() -> None:
    assert (mean([]).value, part([]), over_parts({}, "kind").value) == (None, None, None)
    assert part([0.5], 2) == SubScore(1.0, 1, None)


def test_parts_stand_in_the_order_in_which_they_appear() -> None:
    parts = by(ROWS, "kind", lambda row: row["score"])
    assert list(parts) == ["b", "a"]
    assert (parts["b"].value, parts["b"].n, parts["a"].value, parts["a"].n) == (0.5, 2, pytest.approx(2 / 3), 3)
    assert list(by(ROWS, lambda row: row["score"] > 0, lambda row: row["score"])) == ["True", "False"]


def test_the_mean_of_parts_weighs_each_part_alike() -> None:
    parts = by(ROWS, "kind", lambda row: row["score"])
    assert over_parts(parts, "kind").value == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert over_parts(parts, "kind", is_sum=True).value == pytest.approx(1 / 2 + 2 / 3)


def test_a_part_of_one_document_leaves_the_whole_without_an_error() -> None:
    assert over_parts({"a": SubScore(1.0, 5, 0.1), "b": SubScore(0.0, 1, None)}, "kind").stderr is None


def test_the_error_of_a_sum_is_the_spread_over_repeated_draws() -> None:
    drawn = random.Random(5)
    values, errors = [], []
    for _ in range(600):
        rows = [{"kind": kind, "score": float(drawn.random() < share)} for kind, share in (("a", 0.3), ("b", 0.8)) * 40]
        made = over_parts(by(rows, "kind", lambda row: row["score"]), "kind", is_sum=True)
        values.append(made.value or 0.0)
        errors.append(made.stderr or 0.0)
    assert math.fsum(errors) / len(errors) == pytest.approx(stats.sample_stddev(values), rel=0.1)


def test_a_ratio_is_that_of_the_sums() -> None:
    made = ratio([1, 2], [2, 8], 100)
    assert made.value == pytest.approx(30)
    assert made.stderr == pytest.approx(100 * math.sqrt(((1 - 0.6) ** 2 + (2 - 2.4) ** 2) * 2) / 10)
    assert ratio([1], [0]).value is None
    assert ratio([1], [4]).stderr is None
