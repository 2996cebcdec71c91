from __future__ import annotations

import numpy as np
import pytest

from lmms_eval.errors import UsageError
from lmms_eval.stats.differences import PairOptions
from lmms_eval.stats.ranks import RankFinding, simultaneous_ranks


def spans(found: list[RankFinding]) -> list[tuple[int, int, int]]:
    return [(each.rank, each.best, each.worst) for each in found]


def test_runs_far_apart_have_their_ranks_and_equal_ones_share_them() -> None:
    generator = np.random.default_rng(0)
    scores = (generator.random((600, 1)) < np.array([0.2, 0.8, 0.5])) * 1.0
    scores = np.column_stack([scores, scores[:, 1]])
    assert spans(simultaneous_ranks(scores)) == [(4, 4, 4), (1, 1, 2), (3, 3, 3), (1, 1, 2)]
    assert [each.score for each in simultaneous_ranks(scores)] == pytest.approx(scores.mean(axis=0).tolist())


def test_clusters_make_ranks_less_sure() -> None:
    generator = np.random.default_rng(1)
    scores = np.repeat((generator.random((12, 3)) < np.array([0.3, 0.5, 0.8])) * 1.0, 20, axis=0)
    plain = simultaneous_ranks(scores)
    clustered = simultaneous_ranks(scores, [str(i // 20) for i in range(240)])
    assert sum(each.worst - each.best for each in clustered) > sum(each.worst - each.best for each in plain)


def test_few_documents_show_nothing_and_many_alike_ones_do() -> None:
    few = np.array([[1.0, 0.0, 0.0]] * 3)
    assert spans(simultaneous_ranks(few)) == [(1, 1, 3), (2, 1, 3), (2, 1, 3)]
    assert spans(simultaneous_ranks(np.array([[1.0, 0.0, 0.0]] * 30))) == [(1, 1, 1), (2, 2, 3), (2, 2, 3)]
    assert spans(simultaneous_ranks(few[:1])) == [(1, 1, 3), (2, 1, 3), (2, 1, 3)]
    assert spans(simultaneous_ranks(few[:, :1])) == [(1, 1, 1)]


def test_bad_input() -> None:
    with pytest.raises(UsageError, match="finite"):
        simultaneous_ranks([[1.0, float("nan")]])
    with pytest.raises(UsageError, match="1 clusters for 2"):
        simultaneous_ranks([[1.0], [0.0]], ["a"])


def test_ranks_over_clusters_of_very_different_sizes() -> None:
    """Five equal runs; with clusters taken as of one size, all ranks were held in as few as 58 %."""
    source, held = np.random.default_rng(3), 0
    for draw in range(100):
        members = np.minimum(60, source.zipf(1.5, 60))
        chances = np.repeat(source.beta(0.5, 0.5, (60, 5)), members, axis=0)
        scores = (source.random(chances.shape) < chances).astype(float)
        clusters = [str(number) for number in np.repeat(np.arange(60), members)]
        ranks = simultaneous_ranks(scores, clusters, PairOptions(draws=400, seed=draw))
        held += all((one.best, one.worst) == (1, 5) for one in ranks)
    assert held >= 88


def test_a_cluster_of_most_documents_leaves_all_ranks_open() -> None:
    scores = np.array([[1.0, 0.0]] * 40 + [[0.0, 1.0]] * 3)
    ranks = simultaneous_ranks(scores, ["a"] * 40 + ["b", "c", "d"], PairOptions(draws=400))
    assert [(one.best, one.worst) for one in ranks] == [(1, 2), (1, 2)]


@pytest.mark.filterwarnings("error")
def test_one_cluster_shows_no_rank() -> None:
    scores = np.array([[1.0, 0.0, 0.5], [1.0, 0.0, 0.25], [0.0, 1.0, 0.5]])
    found = simultaneous_ranks(scores, ["a", "a", "a"], PairOptions(draws=100))
    assert [(rank.best, rank.worst) for rank in found] == [(1, 3)] * 3
