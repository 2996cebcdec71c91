"""The numbers of scipy and statsmodels, to 1e-9, wherever they have the method."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.optimize import minimize_scalar
from scipy.special import xlogy
from statsmodels.regression.mixed_linear_model import MixedLM
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower, TTestPower
from statsmodels.stats.weightstats import ttost_paired

from lmms_eval.errors import UsageError
from lmms_eval.stats.differences import (
    Discordant,
    PairOptions,
    benjamini_hochberg,
    compare_pairs,
    equivalence_p,
    flip_test,
    holm,
    mcnemar_exact,
    non_inferiority_p,
    score_statistic,
    tango_interval,
)
from lmms_eval.stats.power import detectable, documents_needed, power_of_test
from lmms_eval.stats.repeats import variance_split
from tests.cases import for_each
from tests.conftest import FREEZE, UNFREEZE

CLOSE = {"rel": 1e-9, "abs": 1e-12}


@for_each(("b", "c"), [(0, 0), (1, 0), (3, 9), (40, 25), (300, 420), (5, 5)])
def test_mcnemar(b: int, c: int) -> None:
    theirs = mcnemar([[50, b], [c, 50]], exact=True).pvalue if b + c else 1.0
    assert mcnemar_exact(b, c) == pytest.approx(theirs, **CLOSE)
    first, second = [1.0] * b + [0.0] * c + [1.0, 0.0], [0.0] * b + [1.0] * c + [1.0, 0.0]
    assert compare_pairs(first, second).p == pytest.approx(theirs, **CLOSE)


@for_each("n", [3, 8, 13])
def test_the_exact_permutation_test(n: int) -> None:
    generator = np.random.default_rng(n)
    for first, second in (generator.normal(0.4, 1, (2, n)), generator.integers(0, 4, (2, n)) / 3):
        theirs = scipy_stats.permutation_test(
            (first, second), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", vectorized=True
        )
        found = compare_pairs(first, second)
        assert found.test == "permutation exact"
        assert found.p == pytest.approx(theirs.pvalue, **CLOSE)


def test_the_drawn_permutation_test_comes_near_the_exact_one() -> None:
    sums = np.random.default_rng(5).normal(0.5, 1, 14)
    exact, _ = flip_test(sums, 1, 0)
    drawn, test = flip_test(np.append(sums, 1e-9), 40_000, 0)
    assert test == "permutation"
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 40_000))
    assert flip_test(np.full(40, 1.0), 999, 0) == (1 / 1000, "permutation")


def test_the_normal_rest_of_many_flips_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the noise of 10,000 flips."""
    sums = np.random.default_rng(6).exponential(size=3_000) * np.random.default_rng(7).choice([-1.0, 1.0], 3_000)
    sums[0] += 1.2 * math.sqrt(float(sums @ sums))
    rest, _ = flip_test(sums, 10_000, 0)
    monkeypatch.setattr("lmms_eval.stats.differences.LARGEST", 10_000)
    whole, _ = flip_test(sums, 10_000, 0)
    assert 0.01 < whole < 0.9
    assert rest == pytest.approx(whole, abs=4 * math.sqrt(2 * whole * (1 - whole) / 10_000))


@for_each("n", [12, 60, 2_000])
def test_equivalence(n: int) -> None:
    generator = np.random.default_rng(n)
    first = generator.normal(size=n)
    second = first + generator.normal(0.05, 1, size=n)
    found = compare_pairs(first, second, options=PairOptions(draws=100))
    for margin in (0.05, 0.2, 0.6):
        theirs, lower, _ = ttost_paired(first, second, -margin, margin)
        assert equivalence_p(found, margin) == pytest.approx(theirs, **CLOSE)
        assert non_inferiority_p(found, margin) == pytest.approx(lower[1], **CLOSE)


def test_equivalence_of_right_or_wrong_scores() -> None:
    """McNemar's z, were the margin 0; never certain where no document differs."""
    same = compare_pairs([1.0, 0.0] * 250, [1.0, 0.0] * 250)
    assert equivalence_p(same, 0.001) == pytest.approx(scipy_stats.norm.sf(math.sqrt(500 * 0.001 / 0.999)), rel=1e-9)
    settled = equivalence_p(same, 0.02)
    assert settled is not None and 0.0005 < settled < 0.001
    assert equivalence_p(same, 2.0) == 0.0
    few = equivalence_p(compare_pairs([1.0, 0.0], [1.0, 0.0]), 0.05)
    assert few is not None and few > 0.3
    clusters = [str(i // 10) for i in range(500)]
    wide = equivalence_p(compare_pairs([1.0, 0.0] * 250, [1.0, 0.0] * 250, clusters), 0.02)
    assert wide is not None and wide > 0.05 > settled
    assert equivalence_p(compare_pairs([0.5, 0.5], [0.5, 0.5]), 0.1) is None
    with pytest.raises(UsageError, match="above 0"):
        equivalence_p(same, 0.0)


def test_the_correction_looks_at_no_object_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the library's own gc
    monkeypatch.setattr(gc, "freeze", FREEZE)
    monkeypatch.setattr(gc, "unfreeze", UNFREEZE)

    class Cycle:
        def __init__(self) -> None:
            self.own = self

    seen = weakref.ref(Cycle())
    gc.disable()
    try:
        assert holm([0.01, None, 0.5]) == [0.02, None, 0.5]
        assert seen() is not None and gc.get_freeze_count() == 0
    finally:
        gc.enable()
        FREEZE()  # the modules again


def test_multiplicity() -> None:
    ps = np.random.default_rng(1).random(17).tolist()
    assert holm(ps) == pytest.approx(multipletests(ps, method="holm")[1], **CLOSE)
    assert benjamini_hochberg(ps) == pytest.approx(multipletests(ps, method="fdr_bh")[1], **CLOSE)
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]
    assert benjamini_hochberg([None, 0.01, 0.04]) == [None, 0.02, 0.04]
    assert holm([]) == [] and benjamini_hochberg([None]) == [None]
    for wrong in (1.5, math.nan):
        with pytest.raises(UsageError, match="no p-value"):
            holm([0.5, wrong])


@for_each("n", [5, 30, 400, 10_000])
def test_power(n: int) -> None:
    theirs = TTestPower()
    for shift in (0.1, 1.0, 2.5, 5.0):
        effect = shift / math.sqrt(n)
        assert power_of_test(shift, n - 1) == pytest.approx(theirs.power(effect, n, 0.05), **CLOSE)
    smallest = detectable(2.0, n)
    assert theirs.power(smallest / 2, n, 0.05) == pytest.approx(0.8, abs=1e-9)


def test_many_documents_have_the_power_of_the_normal_test() -> None:
    smallest = detectable(1.0, 1_000_000)
    theirs = NormalIndPower().power(smallest, 1_000_000, 0.05, ratio=0)
    assert theirs == pytest.approx(0.8, abs=1e-6)


@for_each("effect", [0.02, 0.3, 1.5])
def test_documents_needed(effect: float) -> None:
    needed = documents_needed(1.0, -effect)
    assert needed == math.ceil(TTestPower().solve_power(effect, None, 0.05, 0.8))
    assert detectable(1.0, needed) <= effect < detectable(1.0, needed - 1)


def test_documents_that_settle_equivalence() -> None:
    """The normal formula, n = ((z_0.95 + z_0.9) σ / margin)² for a true difference of 0, some more for Student's t."""
    normal = ((scipy_stats.norm.ppf(0.95) + scipy_stats.norm.ppf(0.9)) * 0.5 / 0.02) ** 2
    assert documents_needed(0.5, 0.0, margin=0.02) == pytest.approx(normal, abs=4)
    assert documents_needed(0.5, 0.01, margin=0.02) == documents_needed(0.5, -0.01, margin=0.02) > 2 * normal
    assert documents_needed(0.0, 0.1) == 2


@for_each(("effect", "options"), [(0.0, {}), (0.1, {"margin": 0.1}), (0.1, {"alpha": 0.0}), (0.1, {"power": 1.0})])
def test_plans_that_cannot_be(effect: float, options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        documents_needed(1.0, effect, **options)
    with pytest.raises(UsageError, match="at least 2"):
        detectable(1.0, 1)


@for_each(("b", "c", "n"), [(9, 4, 40), (0, 3, 25), (12, 0, 12), (30, 31, 100)])
def test_the_score_statistic_is_that_of_the_constrained_likelihood(b: int, c: int, n: int) -> None:
    """Tango 1998, with the share that only the second run has right found by scipy's maximiser."""
    for difference in (-0.2, 0.05, 0.3):
        least = max(0.0, -difference)

        def loss(share: float, d: float = difference) -> float:
            return -float(xlogy(b, share + d) + xlogy(c, share) + xlogy(n - b - c, 1 - 2 * share - d))

        most = (1 - difference) / 2
        share = minimize_scalar(loss, bounds=(least, most), method="bounded", options={"xatol": 1e-13}).x
        wanted = (b - c - n * difference) / math.sqrt(n * (2 * share + difference * (1 - difference)))
        assert score_statistic(Discordant(b, c, n), difference) == pytest.approx(wanted, rel=1e-4)
    low, high = tango_interval(Discordant(b, c, n))
    for limit, side in ((low, 1.96), (high, -1.96)):
        if abs(limit) < 1:
            assert score_statistic(Discordant(b, c, n), limit) == pytest.approx(side, rel=1e-9)
    assert score_statistic(Discordant(b, c, n), 0.0) == pytest.approx((b - c) / math.sqrt(b + c), rel=1e-9)


def test_the_split_of_the_variance_is_that_of_the_mixed_model() -> None:
    """Of a balanced design with positive components, analysis of variance gives the REML estimates."""
    generator = np.random.default_rng(5)
    n, k, j = 60, 3, 2
    means = 0.5 + 0.3 * generator.standard_normal((n, 1)) + 0.25 * generator.standard_normal((n, k))
    scores = means[:, :, None] + 0.2 * generator.standard_normal((n, k, j))
    split = variance_split(scores.tolist())
    rows = scores.ravel()
    answers = np.repeat(np.tile(np.eye(k), (n, 1)), j, axis=0)
    within = {str(i): answers[i * k * j : (i + 1) * k * j] for i in range(n)}
    questions = np.repeat(np.arange(n), k * j)
    names = [f"answer {number}" for number in range(k)]
    components = {"answer": {i: within[str(i)] for i in range(n)}}
    from statsmodels.regression.mixed_linear_model import VCSpec

    spec = VCSpec(
        ["answer", "question"],
        [[names] * n, [["question"]] * n],
        [[components["answer"][i] for i in range(n)], [np.ones((k * j, 1))] * n],
    )
    fitted = MixedLM(rows, np.ones((rows.size, 1)), groups=questions, exog_vc=spec).fit(reml=True)
    answer, question = fitted.vcomp
    assert [split.questions, split.answers, split.judge] == pytest.approx([question, answer, fitted.scale], rel=1e-3)


def test_the_split_without_a_judge_is_the_one_way_analysis_of_variance() -> None:
    generator = np.random.default_rng(6)
    scores = (generator.random((200, 4)) < generator.beta(1, 1, (200, 1))).astype(float)
    split = variance_split([[[score] for score in each] for each in scores.tolist()])
    within = scores.var(axis=1, ddof=1).mean()
    ratio = scipy_stats.f_oneway(*scores).statistic
    assert split.answers == pytest.approx(within, **CLOSE)
    assert split.questions == pytest.approx((ratio - 1) * within / 4, **CLOSE)
