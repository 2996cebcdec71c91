import itertools
import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmms_eval.errors import UsageError
from lmms_eval.stats import Interval, mean_stderr, score_interval
from lmms_eval.stats.repeats import (
    ChangedShare,
    all_of,
    best_of,
    majority_at,
    pass_at,
    reducers,
    rerun_noise,
    spread_within,
    variance_split,
    worst_of,
)
from lmms_eval.utils.numbers import SHARES, ScoreRange

ANSWERS = st.lists(st.sampled_from([("a", 1.0), ("b", 0.0), ("c", 0.5), ("d", 0.0)]), min_size=1, max_size=7)


@given(ANSWERS, st.data())
def test_all_three_equal_the_enumeration_of_all_subsets(answers: list[tuple[str, float]], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(answers)))
    draws = list(itertools.combinations(answers, k))
    right = sum(score == 1 for _, score in answers)
    assert math.isclose(pass_at(k, right, len(answers)), sum(any(s == 1 for _, s in d) for d in draws) / len(draws))
    assert math.isclose(all_of(k, right, len(answers)), sum(all(s == 1 for _, s in d) for d in draws) / len(draws))
    expected = 0.0
    scores = dict(answers)
    for draw in draws:
        counts = Counter(answer for answer, _ in draw)
        top = [answer for answer, count in counts.items() if count == max(counts.values())]
        expected += sum(scores[answer] for answer in top) / len(top) / len(draws)
    assert math.isclose(majority_at(k, answers), expected, abs_tol=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7), st.data())
def test_reducers_equal_the_enumeration_of_all_subsets(scores: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(scores)))
    draws = list(itertools.combinations(scores, k))
    best, worst = (sum(map(end, draws)) / len(draws) for end in (max, min))
    assert math.isclose(best_of(k, scores), best, abs_tol=1e-12)
    assert math.isclose(worst_of(k, scores), worst, abs_tol=1e-12)
    up, down, mean, vote = reducers([f"pass@{k}", f"pass^{k}", f"mean@{k}", f"maj@{k}"])
    assert [up.value(scores), down.value(scores)] == pytest.approx([best, worst])
    assert [one.value(scores, higher_is_better=False) for one in (up, down)] == pytest.approx([worst, best])
    assert mean.value(scores) == pytest.approx(sum(map(sum, draws)) / k / len(draws))
    assert vote.value(scores, range(len(scores))) == pytest.approx(mean.value(scores))  # every answer has one vote


@given(st.integers(1, 9), st.data())
def test_of_right_and_wrong_scores_they_are_pass_at_k_and_pass_hat_k(n: int, data: st.DataObject) -> None:
    right, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    scores = [1.0] * right + [0.0] * (n - right)
    assert math.isclose(best_of(k, scores), pass_at(k, right, n), abs_tol=1e-12)
    assert math.isclose(worst_of(k, scores), all_of(k, right, n), abs_tol=1e-12)


def test_reducers_are_read_once_each_and_unknown_ones_are_refused() -> None:
    assert [one.name for one in reducers(["pass@4", "maj@8", "pass@4"])] == ["pass@4", "maj@8"]
    for text in ("best@4", "pass@", "pass@0", "pass@-1", "pass@x", "pass@²", "4", ""):
        with pytest.raises(UsageError, match="give pass@K, pass\\^K, maj@K, mean@K"):
            reducers([text])
    with pytest.raises(UsageError, match="more --repeats"):
        reducers(["mean@3"])[0].value([1.0, 0.0])


@pytest.mark.parametrize("k", [0, 4, -1])
def test_k_beyond_the_repeats_is_refused(k: int) -> None:
    for call in (lambda: pass_at(k, 1, 3), lambda: all_of(k, 1, 3), lambda: majority_at(k, [("a", 1.0)] * 3)):
        with pytest.raises(UsageError, match="more --repeats"):
            call()


def test_known_components_are_found() -> None:
    generator = random.Random(1)
    scores = []
    for _ in range(4000):
        question = generator.gauss(0.5, 0.3)
        answers = [generator.gauss(question, 0.2) for _ in range(generator.choice([2, 3, 4]))]
        scores.append(
            [[generator.gauss(answer, 0.1) for _ in range(generator.choice([1, 2, 3]))] for answer in answers]
        )
    split = variance_split(scores)
    assert split.questions == pytest.approx(0.09, rel=0.07)
    assert split.answers == pytest.approx(0.04, rel=0.07)
    assert split.judge == pytest.approx(0.01, rel=0.07)


def test_without_repeats_nothing_is_known_of_answers() -> None:
    split = variance_split([[[1.0]], [[0.0]], [[1.0]]])
    assert split.answers is None
    assert split.judge is None
    assert split.questions == pytest.approx(1 / 3)
    for groups in ([[1.0], [0.0, 1.0]], []):
        with pytest.raises(UsageError, match="at least two"):
            spread_within(groups, [0.5, 0.5], [1, 2])


def test_errors_cover_reruns_and_new_questions() -> None:
    generator = random.Random(2)
    again = like = 0
    for _ in range(400):
        truths = [generator.random() for _ in range(40)]
        split_scores = [[[float(generator.random() < p)] for _ in range(4)] for p in truths]
        answers = [[answer[0] for answer in question] for question in split_scores]
        mean = sum(sum(a[0] for a in q) / 4 for q in split_scores) / 40
        again += abs(mean - sum(truths) / 40) <= 1.96 * spread_within(answers, [1 / 40] * 40, [4] * 40).error
        like += abs(mean - 0.5) <= 1.96 * mean_stderr([sum(each) / 4 for each in answers])
    assert 0.9 <= again / 400 <= 0.98
    assert 0.9 <= like / 400 <= 0.98


def test_fewer_than_two_questions_have_no_split() -> None:
    with pytest.raises(UsageError, match="at least 2"):
        variance_split([[[1.0]]])


@pytest.mark.parametrize(
    ("shape", "n", "k"), [((1, 1), 10, 2), ((0.2, 0.2), 30, 4), ((0.5, 2), 30, 8), ((3, 1), 100, 2)]
)
def test_intervals_for_another_run_on_this_list_hold(shape: tuple[float, float], n: int, k: int) -> None:
    generator = random.Random(n * k)
    held, draws = 0, 400
    for _ in range(draws):
        chances = [generator.betavariate(*shape) for _ in range(n)]
        answers = [[float(generator.random() < chance) for _ in range(k)] for chance in chances]
        mean = sum(map(sum, answers)) / n / k
        found = score_interval(mean, spread_within(answers, [1 / n] * n, [k] * n), SHARES)
        assert isinstance(found, Interval)
        held += found.low <= sum(chances) / n <= found.high
    assert 0.92 <= held / draws <= 0.995


def test_the_interval_of_changed_answers_is_that_of_clopper_and_pearson() -> None:
    from scipy.stats import binomtest

    for changed, n in ((0, 20), (1, 20), (3, 100), (50, 100), (20, 20)):
        expected = binomtest(changed, n).proportion_ci(0.95, method="exact")
        found = ChangedShare.of(changed, n)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
        assert (found.n, found.changed, found.share) == (n, changed, changed / n)
    for changed, n in ((0, 0), (3, 2), (-1, 2)):
        with pytest.raises(UsageError, match=f"changed answers: {changed} of {n}"):
            ChangedShare.of(changed, n)


def test_noise_of_right_and_wrong_scores_is_half_the_changed_share() -> None:
    found = rerun_noise([(1.0, 1.0)] * 27 + [(1.0, 0.0)] * 2 + [(0.0, 1.0)], SHARES)
    assert found.answers == pytest.approx(0.05)
    assert found.answers_high == pytest.approx(found.scores.high / 2)
    percent = rerun_noise([(100.0, 100.0)] * 29 + [(100.0, 0.0)], ScoreRange(0.0, 100.0))
    assert percent.answers == pytest.approx(100**2 / 60)


def test_noise_is_the_variance_split_of_the_same_pairs() -> None:
    source = random.Random(2)
    pairs = [(source.random(), source.random()) for _ in range(40)]
    assert rerun_noise(pairs, SHARES).answers == variance_split([[[a], [b]] for a, b in pairs]).answers


def test_the_upper_end_of_graded_noise_holds() -> None:
    source = random.Random(3)
    missed = 0
    for _ in range(60):  # 5 % of the graded scores change, by up to 1
        pairs = [(0.0, source.random() if source.random() < 0.05 else 0.0) for _ in range(60)]
        high = rerun_noise(pairs, SHARES).answers_high
        assert high is not None
        missed += high < 0.05 / 3 / 2
    assert missed <= 4


def test_noise_without_a_range_has_no_upper_end() -> None:
    assert rerun_noise([(3.0, 5.0)] * 20, ScoreRange(0.0, math.inf)).answers_high is None
    assert rerun_noise([(3.0, 5.0)] * 20, SHARES).answers_high is None  # outside the range
    many = rerun_noise([(0.5, 0.25)] * 300, SHARES)
    assert many.answers_high == many.answers == 0.25**2 / 2
