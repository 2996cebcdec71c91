from __future__ import annotations

import math

import numpy as np
import pytest

from lmms_eval.errors import UsageError
from lmms_eval.stats.bootstrap import Redraws

CLUSTERS = ["a", "b", "a", None, "c", None]


def test_every_iteration_gives_the_same_draws_of_whole_clusters() -> None:
    redraws = Redraws(6, CLUSTERS, draws=500, seed=3)
    weights = np.concatenate(list(redraws))
    assert weights.shape == (500, 6)
    assert np.array_equal(weights, np.concatenate(list(redraws)))
    assert np.array_equal(weights[:, 0], weights[:, 2]) and np.array_equal(weights[:, 3], weights[:, 5])
    assert (weights[:, [0, 1, 3, 4]].sum(axis=1) == 4).all()  # four clusters, drawn four times
    assert not np.array_equal(weights, np.concatenate(list(Redraws(6, CLUSTERS, draws=500, seed=4))))
    assert (np.concatenate(list(Redraws(6, draws=50))).sum(axis=1) == 6).all()


def test_blocks_are_small() -> None:
    blocks = [block.nbytes for block in Redraws(100_000, draws=20)]
    assert len(blocks) > 1 and max(blocks) <= 8e6


def test_sums_are_those_of_the_weights() -> None:
    columns = np.random.default_rng(0).random((6, 2))
    redraws = Redraws(6, CLUSTERS, draws=300)
    assert redraws.sums(columns) == pytest.approx(np.concatenate([weights @ columns for weights in redraws]))


def test_the_normal_limit_of_many_documents_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean, error, correlation and limits, within the noise of 10,000 draws."""
    generator = np.random.default_rng(1)
    columns = np.stack([generator.exponential(size=3_000), np.ones(3_000), generator.random(3_000)], axis=1)
    columns[:, 2] += columns[:, 0]
    drawn = Redraws(3_000, draws=10_000).sums(columns)
    monkeypatch.setattr("lmms_eval.stats.bootstrap.NORMAL_FROM", 1_000)
    limit = Redraws(3_000, draws=10_000).sums(columns)
    error = math.sqrt(3_000) * columns.std(axis=0)
    assert (limit[:, 1] == pytest.approx(3_000)) and (drawn[:, 1] == 3_000).all()
    for column in (0, 2):
        found = np.quantile(limit[:, column], (0.025, 0.5, 0.975)) - np.quantile(drawn[:, column], (0.025, 0.5, 0.975))
        assert np.abs(found).max() < 4 * 0.027 * math.sqrt(2) * error[column]
    assert np.corrcoef(limit[:, 0], limit[:, 2])[0, 1] == pytest.approx(
        np.corrcoef(columns[:, 0], columns[:, 2])[0, 1], abs=0.02
    )


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="at least one"):
        Redraws(0)
    with pytest.raises(UsageError, match="2 clusters for 3"):
        Redraws(3, ["a", "b"])
