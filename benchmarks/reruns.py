"""Simulations of answers and verdicts that vary if they are asked for again, for ``benchmarks.statistics``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.runs import MetricColumn, RunRows, TaskRows
from lmms_eval.compare.verdicts import CompareOptions
from lmms_eval.engine.noise import asked_again
from lmms_eval.engine.uncertainty import Certainty, variance_of
from lmms_eval.stats import MeanSpread
from lmms_eval.stats.repeats import RerunNoise, rerun_noise
from lmms_eval.utils.numbers import SHARES, ScoreRange

if TYPE_CHECKING:
    from numpy import bool_, float64
    from numpy.random import Generator
    from numpy.typing import NDArray


class Rate(NamedTuple):
    """A share of the simulations, and the bounds that it must keep."""

    scenario: str
    n: int
    share: float
    least: float
    most: float


def noise(generator_of: Callable[[str], Generator], draws: int) -> Iterator[Rate]:
    """Simulate a server whose answers change, asked twice about a part of the documents (``--repeat_share``)."""
    for name, draw in NOISY.items():
        for n, share in ((500, 0.05), (2_000, 0.05), (2_000, 0.2)):
            generator = generator_of(f"noise {name} {n} {share}")
            found = [_rerun_claims(generator, draw, n, share) for _ in range(draws)]
            rates = [sum(claims) / len(found) for claims in zip(*found, strict=True)]
            least = {
                "interval of the flip rate": 0.93,
                "two runs of one server within rerun noise": 0.93,
                "interval if both were run again": 0.93,
                "interval if asked again on this list": 0.93,
            }
            for (claim, bound), rate in zip(least.items(), rates, strict=True):
                yield Rate(f"{claim}: {name}, share {share:g}", n, rate, bound, 1.0)


def _numbers(marks: NDArray[bool_]) -> NDArray[float64]:
    """Return 1 for true and 0 for false."""
    import numpy as np

    return marks.astype(np.float64)


def _flipping(generator: Generator, n: int) -> tuple[NDArray[float64], float]:
    """Return the chances of right answers for a server that changes 3 % of its answers, and that rate."""
    replaced = (1 - math.sqrt(1 - 2 * 0.03)) / 2
    return _numbers(generator.random(n) < 2 / 3) * (1 - 2 * replaced) + replaced, 0.03


def _few_open(generator: Generator, n: int) -> tuple[NDArray[float64], float]:
    """Return chances: 6 % are even, all others sure."""
    import numpy as np

    chances = _numbers(generator.random(n) < 2 / 3)
    chances[generator.permutation(n)[: round(0.06 * n)]] = 0.5
    return chances, float(np.mean(2 * chances * (1 - chances)))


def _sampling(generator: Generator, n: int) -> tuple[NDArray[float64], float]:
    """Return chances of a model that samples its answers."""
    import numpy as np

    chances: NDArray[float64] = generator.beta(0.5, 0.5, n)
    return chances, float(np.mean(2 * chances * (1 - chances)))


NOISY = {"3 % flip": _flipping, "few questions flip": _few_open, "sampled answers": _sampling}


def _rerun_claims(
    generator: Generator, draw: Callable[[Generator, int], tuple[NDArray[float64], float]], n: int, share: float
) -> tuple[bool, bool, bool, bool]:
    """Return whether each claim about two runs of a server, and one of another server, holds."""
    chances, rate = draw(generator, n)
    others, _ = draw(generator, n)
    (first, floor), (second, _), (third, _) = (
        _asked_twice(generator, name, each, share) for name, each in (("a", chances), ("b", chances), ("c", others))
    )
    options = CompareOptions(draws=100)
    same, different = (
        compare_runs(runs, options).pairs[0].rows[0].reruns for runs in ([first, second], [first, third])
    )
    scores = first.tasks["quiz"].columns["acc,none"].scores
    again = asked_again(float(scores.mean()), n, floor, SHARES).interval
    assert same is not None
    assert different is not None
    assert different.interval is not None
    assert again is not None
    between = float(chances.mean() - others.mean())
    return (
        floor.scores.low <= rate <= floor.scores.high,
        not same.is_beyond,
        different.interval.low <= between <= different.interval.high,
        again.low <= float(chances.mean()) <= again.high,
    )


def _asked_twice(
    generator: Generator, name: str, chances: NDArray[float64], share: float
) -> tuple[RunRows, RerunNoise]:
    """Draw a run of a server, with a second answer to some documents."""
    n = len(chances)
    scores, again = ((generator.random(n) < chances) * 1.0 for _ in range(2))
    taken = generator.permutation(n)[: max(20, math.ceil(share * n))]
    found = rerun_noise(list(zip(scores[taken].tolist(), again[taken].tolist(), strict=True)), SHARES)
    entry = {"answers": found.answers, "answers_high": found.answers_high}
    column = MetricColumn("acc", "none", scores.astype(float), score_range=SHARES)
    rows = TaskRows("quiz", [str(number) for number in range(n)], ["scored"] * n, {"acc,none": column})
    document = {"noise_floor": {"quiz": {"scores": {"acc,none": entry}}}}
    return RunRows(name, name, "lmms_eval", {"quiz": rows}, results=document), found


def judged(generator_of: Callable[[str], Generator], draws: int) -> Iterator[Rate]:
    """Simulate a judge whose replies vary, with two or three replies about each answer (``--judge_repeats``)."""
    for name, (within, draw) in JUDGED.items():
        truth = float(draw(generator_of(f"judged {name}"), 1_000_000, 1).mean())
        for n, replies in ((30, 2), (100, 2), (100, 3), (400, 2)):
            generator = generator_of(f"judged {name} {n} {replies}")
            found = [_judge_claims(generator, draw, (n, replies), within, truth) for _ in range(draws)]
            new, again = (sum(claims) / len(found) for claims in zip(*found, strict=True))
            label = f"{name}, {replies} replies"
            yield Rate(f"CI95, judge asked anew: {label}", n, new, 0.93, 1.0 if n < _FEW_RATINGS else 0.985)
            yield Rate(f"interval if judged again: {label}", n, again, 0.93, 1.0)


_FEW_RATINGS = 50
"""Fewer ratings have Gaffke's bound, which is too wide rather than too narrow."""
_EXPECTED = 400
"""Replies whose mean is the judge's expected score of an answer."""


def _verdicts(change: float) -> tuple[ScoreRange, Callable[[Generator, int, int], NDArray[float64]]]:
    """Return right-or-wrong verdicts (answers × replies) on answers; 70 % of these are right.

    ``change``: the probability that two verdicts on an answer differ.
    """
    wrong = (1 - math.sqrt(1 - 2 * change)) / 2

    def draw(generator: Generator, n: int, replies: int) -> NDArray[float64]:
        is_right = generator.random((n, 1)) < 0.7
        return _numbers(is_right ^ (generator.random((n, replies)) < wrong))

    return SHARES, draw


def _ratings(spread: float) -> tuple[ScoreRange, Callable[[Generator, int, int], NDArray[float64]]]:
    """Return ratings from 0 to 10 around an answer's quality, 6 ± 2, with the judge's own ``spread``."""

    def draw(generator: Generator, n: int, replies: int) -> NDArray[float64]:
        quality = 6 + 2 * generator.standard_normal((n, 1))
        return (quality + spread * generator.standard_normal((n, replies))).round().clip(0, 10)

    return ScoreRange(0.0, 10.0), draw


JUDGED = {
    "3 % of verdicts change": _verdicts(0.03),
    "30 % of verdicts change": _verdicts(0.3),
    "ratings ± 0.5": _ratings(0.5),
    "ratings ± 3": _ratings(3.0),
}


def _judge_claims(
    generator: Generator,
    draw: Callable[[Generator, int, int], NDArray[float64]],
    size: tuple[int, int],
    within: ScoreRange,
    truth: float,
) -> tuple[bool, bool]:
    """Return whether CI95 holds the expected score over all answers, and the other interval that of these answers."""
    n, replies = size
    drawn = draw(generator, n, replies + _EXPECTED)
    scores, expected = drawn[:, :replies].tolist(), float(drawn[:, replies:].mean())
    firsts = [each[0] for each in scores]
    value = math.fsum(firsts) / n
    whole = Certainty.of(value, MeanSpread.of_scores(firsts, within), within)
    found = variance_of(value, [[first] for first in firsts], [[each] for each in scores], whole)
    assert found is not None
    new, again = found.like_these.interval, found.rejudged.interval
    assert new is not None
    assert again is not None
    return new.low <= truth <= new.high, again.low <= expected <= again.high
