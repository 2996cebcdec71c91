from __future__ import annotations

import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.metrics import aggregations
from lmms_eval.stats import NAMED_STATISTICS, bootstrap_interval, bootstrap_stderr, mean_stderr

PAIRS = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=25)


def plain_bootstrap(function: object, items: list[object], iterations: int) -> float:
    """The recipe word for word."""
    chunk = min(1000, iterations)
    values = []
    for seed in range(iterations // chunk):
        source = random.Random(seed)
        values += [function(source.choices(items, k=len(items))) for _ in range(chunk)]
    return statistics.stdev(values)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-5, 0), min_size=2, max_size=20), st.sampled_from(["mean", "median", "perplexity"]))
def test_named_statistics_equal_the_recipe(items: list[float], name: str) -> None:
    expected = plain_bootstrap(getattr(aggregations, name), items, 60)
    assert bootstrap_stderr(name, items, 60) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(PAIRS, st.sampled_from(["f1", "matthews_corrcoef"]))
def test_named_pair_statistics_equal_the_recipe(items: list[tuple[int, int]], name: str) -> None:
    expected = plain_bootstrap(getattr(aggregations, name), items, 60)
    assert bootstrap_stderr(name, items, 60) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_matthews_of_texts() -> None:
    source = random.Random(5)
    items = [(source.choice("abc"), source.choice("abc")) for _ in range(40)]
    expected = plain_bootstrap(aggregations.matthews_corrcoef, items, 200)
    assert bootstrap_stderr("matthews_corrcoef", items, 200) == pytest.approx(expected, rel=1e-9)


def test_several_chunks_and_blocks() -> None:
    source = random.Random(1)
    items = [source.random() for _ in range(700)]
    expected = plain_bootstrap(lambda drawn: math.fsum(drawn) / len(drawn), items, 2000)
    assert bootstrap_stderr("mean", items, 2000) == pytest.approx(expected, rel=1e-9)
    assert bootstrap_stderr("mean", items, 2000) == pytest.approx(mean_stderr(items), rel=0.05)


def test_a_function_sees_the_same_draws() -> None:
    items = [0.1, 0.4, 0.9, 0.2]
    assert bootstrap_stderr(statistics.fmean, items, 500) == pytest.approx(bootstrap_stderr("mean", items, 500))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_interval_lies_within_the_values(items: list[float]) -> None:
    interval = bootstrap_interval("mean", items, 200)
    assert interval is not None
    assert min(items) - 1e-12 <= interval.low <= interval.high <= max(items) + 1e-12


def test_edges() -> None:
    assert math.isnan(bootstrap_stderr("mean", [1.0]))
    assert bootstrap_interval("mean", []) is None
    assert bootstrap_stderr("f1", [(0, 0), (0, 0)], 50) == 0
    with pytest.raises(UsageError, match="unknown statistic 'mode'"):
        bootstrap_stderr("mode", [1, 2])
    with pytest.raises(UsageError, match="draws"):
        bootstrap_stderr("mean", [1, 2], 1)
    with pytest.raises(UsageError, match="level"):
        bootstrap_interval("mean", [1, 2], level=2)
    assert "median" in NAMED_STATISTICS


def test_whole_clusters_are_drawn() -> None:
    generator = np.random.default_rng(3)
    values = np.repeat(generator.normal(size=50), 4).tolist()
    names = [str(number // 4) for number in range(200)]
    means = values[::4]
    expected = np.std(means) / math.sqrt(50)  # of the mean of 50 redrawn means
    assert bootstrap_stderr("mean", values, 2000, names) == pytest.approx(expected, rel=0.06)
    assert bootstrap_stderr(lambda drawn: sum(drawn) / len(drawn), values, 1000, names) == pytest.approx(
        expected, rel=0.08
    )
    assert bootstrap_stderr("mean", values, 2000) == pytest.approx(expected / 2, rel=0.08)
    assert math.isnan(bootstrap_stderr("mean", values, 100, ["one"] * 200))
    with pytest.raises(UsageError, match="200 items but 3 clusters; give one for each"):
        bootstrap_stderr("mean", values, 100, ["a", "b", "c"])
