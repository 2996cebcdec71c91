from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.metrics import AGGREGATIONS, aggregations
from tests.cases import for_each

LABELS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40)


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=50), st.randoms())
def test_the_order_makes_no_difference(values: list[float], source: random.Random) -> None:
    shuffled = source.sample(values, len(values))
    assert aggregations.mean(values) == aggregations.mean(shuffled)
    assert aggregations.median(values) == aggregations.median(shuffled) == statistics.median(values)


@settings(deadline=None)  # the first call imports sklearn
@given(LABELS)
def test_f1_and_matthews_agree_with_sklearn(items: list[tuple[int, int]]) -> None:
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    golds, predictions = [g for g, _ in items], [p for _, p in items]
    assert aggregations.f1(items) == pytest.approx(sklearn_metrics.f1_score(golds, predictions, zero_division=0))
    if len({*golds, *predictions}) > 1:
        expected = sklearn_metrics.matthews_corrcoef(golds, predictions)
        assert aggregations.matthews_corrcoef(items) == pytest.approx(expected, abs=1e-12)


def test_matthews_of_several_classes() -> None:
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    source = random.Random(3)
    items = [(source.choice("abcd"), source.choice("abcd")) for _ in range(60)]
    expected = sklearn_metrics.matthews_corrcoef([g for g, _ in items], [p for _, p in items])
    assert aggregations.matthews_corrcoef(items) == pytest.approx(expected)
    assert aggregations.matthews_corrcoef([("a", "a"), ("a", "b")]) == 0


def test_f1_refuses_other_labels() -> None:
    with pytest.raises(UsageError, match="label 2"):
        aggregations.f1([(1, 2)])


def test_perplexities() -> None:
    assert aggregations.perplexity([math.log(0.5)] * 3) == pytest.approx(2)
    assert aggregations.weighted_perplexity([(2 * math.log(0.25), 2), (math.log(0.25), 1)]) == pytest.approx(4)
    assert aggregations.bits_per_byte([(math.log(0.25), 1)]) == pytest.approx(2)
    assert [str(aggregations.bits_per_byte([(zero, 3)])) for zero in (0.0, -0.0)] == ["0.0", "0.0"]
    with pytest.raises(UsageError, match="weights"):
        aggregations.weighted_mean([(1.0, 0)])


def test_brier_score() -> None:
    assert aggregations.brier_score([(1, [0.0, 1.0]), (0, [0.0, 1.0])]) == pytest.approx(1.0)


def test_bypass_is_the_constant() -> None:
    assert aggregations.bypass([]) == 999


def test_a_mean_of_what_is_a_number() -> None:
    assert aggregations.nanmean([1.0, math.nan, 2.0]) == 1.5
    assert math.isnan(aggregations.nanmean([math.nan]))
    assert math.isnan(aggregations.nanmean([]))  # as lm-eval has it


@for_each("name", sorted(set(AGGREGATIONS) - {"bypass", "nanmean"}))
def test_no_values_is_an_error_that_names_itself(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        AGGREGATIONS[name].function()([])


def test_text_scores() -> None:
    same = [("the cat sat on the mat", "the cat sat on the mat")]
    assert aggregations.bleu(same) == pytest.approx(100)
    assert aggregations.chrf(same) == pytest.approx(100)
    assert aggregations.ter(same) == 0
    assert aggregations.ter([("a b c d", "a b c e")]) == pytest.approx(25)


def test_a_prediction_in_a_list() -> None:
    pairs = [(["the cat sat", "a cat sat"], "the cat sits"), (["x y", "x z"], "x y")]
    listed = [(golds, [answer]) for golds, answer in pairs]
    for score in (aggregations.bleu, aggregations.chrf, aggregations.chrf_plus_plus, aggregations.ter):
        assert score(listed) == score(pairs)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        aggregations.bleu([("a", ["b", "c"])])  # type: ignore[list-item]


def test_several_references_of_different_number() -> None:
    items = [
        (["a b c d e", "the cat sat on the mat"], "the cat sat on the mat"),
        (["one two three four"], "one two three four"),
    ]
    assert aggregations.bleu(items) == pytest.approx(100)
    assert aggregations.bleu([(refs[:1], answer) for refs, answer in items]) < 100
