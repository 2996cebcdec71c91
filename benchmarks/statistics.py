"""Simulate comparisons: how often intervals contain the true difference and tests reject, against the promised rates.

    python -m benchmarks.statistics [SECTION ...] [--draws 2000] [--redraws 500] [--output FILE]

Sections: ``intervals`` (coverage of the 95 % interval of a difference), ``errors`` (rejections at 5 % if the true
difference is 0), ``families`` (any rejection among ten true hypotheses, by Holm), ``power`` (rejections at the
difference that ``detectable`` names and with the documents that ``documents_needed`` asks for; 80 % is promised),
``ranks`` (all true ranks of five runs within their intervals), ``clusters`` (coverage of a mean over clusters of
different sizes), ``skewed`` (of a mean of skewed graded scores), ``grouped`` (the same in clusters), ``labels`` (of F1
and MCC), ``missing`` (a model that fails on some of its wrong answers: verdicts on it and bounds of its score),
``early`` (``better`` or ``worse`` about equal models if one run stopped early), ``noise`` (a server that changes its
answers: flip rate and claims about reruns), ``judged`` (a judge that changes its replies: intervals of its scores) and
``prompts`` (coverage of the mean over prompts, for these prompts and for prompts like these, and of the difference of
two models).
Printed as JSON; the exit code is 1 if a bound of ``docs/statistics.md`` is missed. Every scenario has its own seed, so
sections can be run alone. ``--redraws`` is the number of draws and flips of each simulated comparison.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import reruns
from lmms_eval.api.outcome import Status
from lmms_eval.compare.comparing import compare_runs
from lmms_eval.compare.gate import GatePolicy, check_gate
from lmms_eval.compare.runs import MetricColumn, RunRows, TaskRows
from lmms_eval.compare.verdicts import CompareOptions
from lmms_eval.engine.uncertainty import MissingBounds, filled_means
from lmms_eval.stats import Interval, MeanSpread, score_interval
from lmms_eval.stats.differences import PairedFinding, PairOptions, compare_pairs, equivalence_p, holm
from lmms_eval.stats.power import detectable, documents_needed
from lmms_eval.stats.ranks import simultaneous_ranks
from lmms_eval.utils.numbers import ScoreRange

if TYPE_CHECKING:
    from numpy import float64, intp
    from numpy.random import Generator
    from numpy.typing import NDArray

    Drawn = tuple[NDArray[float64], NDArray[float64], list[str] | None]

SHARE = ScoreRange(0.0, 1.0)
ALIKE = 0.7
"""Correlation of two runs on a document, before scores are rounded to right or wrong."""
ALPHA, POWER = 0.05, 0.8
FAMILY_REDRAWS = 999
"""Redraws that let the smallest p of the permutation test, times ten tests, fall far below 5 %."""
MEMBERS = 4
"""Mean number of documents in a cluster; clusters have one to seven."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """Scores of two runs over documents, and the true difference of their means."""

    name: str
    truth: float
    draw: Callable[[Generator, int], Drawn]
    """Draws the scores of a number of documents or clusters."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A share of the simulations, and the bounds that it must keep."""

    section: str
    scenario: str
    n: int
    share: float
    least: float
    most: float

    @property
    def is_kept(self) -> bool:
        return self.least <= self.share <= self.most


def _normals(generator: Generator, count: int) -> tuple[NDArray[float64], NDArray[float64]]:
    common = math.sqrt(ALIKE) * generator.standard_normal(count)
    own = math.sqrt(1 - ALIKE) * generator.standard_normal((2, count))
    return common + own[0], common + own[1]


def right_or_wrong(first: float, second: float, within: float = 0.0) -> Scenario:
    """Return right answers with these chances; ``within``: correlation within clusters, 0 without clusters."""
    from scipy.special import ndtri

    limits = ndtri(first), ndtri(second)

    def draw(generator: Generator, n: int) -> Drawn:
        left, right, clusters = _latent(generator, n, within)
        return (left < limits[0]) * 1.0, (right < limits[1]) * 1.0, clusters

    kind = f"clusters {within:g}, " if within else ""
    return Scenario(f"{kind}right or wrong {first:g} {second:g}", first - second, draw)


def graded(power: float, steps: int = 0, within: float = 0.0) -> Scenario:
    """Return scores in [0, 1]: U and U^power of correlated uniform U; the latter rounded down to ``steps``, if any."""
    from scipy.special import ndtr

    def draw(generator: Generator, n: int) -> Drawn:
        left, right, clusters = _latent(generator, n, within)
        first, second = ndtr(left), ndtr(right) ** power
        return (first, second, clusters) if not steps else (_rounded(first, steps), _rounded(second, steps), clusters)

    levels = (
        [sum(1 - (k / steps) ** (1 / p) for k in range(1, steps)) / (steps - 1) for p in (1, power)]
        if steps
        else [
            0.5,
            1 / (power + 1),
        ]
    )
    kind = f"clusters {within:g}, " if within else ""
    return Scenario(f"{kind}graded {power:g}{f' in {steps} steps' if steps else ''}", levels[0] - levels[1], draw)


def few_differ(share: float, mean: float) -> Scenario:
    """Return scores in [0, 1]; only a share of them differs at all, by ``mean`` ± 0.25."""

    def draw(generator: Generator, n: int) -> Drawn:
        second = generator.uniform(0.25, 0.5, n)
        moved = (generator.random(n) < share) * generator.uniform(mean - 0.25, mean + 0.25, n)
        return second + moved, second, None

    return Scenario(f"{share:.0%} differ, by {mean:g}", share * mean, draw)


def shifted(shift: float, within: float = 0.0) -> Scenario:
    """Return scores in [0, 1], those of the first run higher by ``shift``."""
    from scipy.special import ndtr

    def draw(generator: Generator, n: int) -> Drawn:
        left, right, clusters = _latent(generator, n, within, even=True)
        return 0.7 * ndtr(left) + shift, 0.7 * ndtr(right), clusters

    return Scenario(f"{f'clusters {within:g}, ' if within else ''}graded, shifted", shift, draw)


def _rounded(scores: NDArray[float64], steps: int) -> NDArray[float64]:
    import numpy as np

    return np.minimum(np.floor(scores * steps), steps - 1) / (steps - 1)


def _latent(
    generator: Generator, n: int, within: float, even: bool = False
) -> tuple[NDArray[float64], NDArray[float64], list[str] | None]:
    """Return normal numbers of two runs by document, or by ``n`` clusters."""
    import numpy as np

    if not within:
        return *_normals(generator, n), None
    sizes = np.full(n, MEMBERS) if even else generator.integers(1, 2 * MEMBERS, n)
    members = np.repeat(np.arange(n), sizes)
    shared, own = _normals(generator, n), _normals(generator, len(members))
    left, right = (
        math.sqrt(within) * both[members] + math.sqrt(1 - within) * each for both, each in zip(shared, own, strict=True)
    )
    return left, right, members.astype(str).tolist()


@dataclass(frozen=True, slots=True)
class Simulation:
    """Number of simulated comparisons, and of redraws within each."""

    draws: int = 2_000
    redraws: int = 500

    def generator(self, name: str) -> Generator:
        import numpy as np

        return np.random.default_rng(zlib.crc32(name.encode()))

    def findings(self, scenario: Scenario, n: int) -> Iterator[PairedFinding]:
        generator = self.generator(f"{scenario.name} {n}")
        for seed in range(self.draws):
            options = PairOptions(draws=self.redraws, seed=seed, within=SHARE)
            yield compare_pairs(*scenario.draw(generator, n), options)

    def share(self, found: Iterator[bool]) -> float:
        return sum(found) / self.draws


def coverage(simulation: Simulation, scenario: Scenario, n: int) -> float:
    """Return the share of the intervals that contain the true difference, among the comparisons with an interval."""
    found = [each.interval for each in simulation.findings(scenario, n)]
    intervals = [each for each in found if isinstance(each, Interval)]
    held = sum(each.low - 1e-12 <= scenario.truth <= each.high + 1e-12 for each in intervals)
    return held / len(intervals)


def rejections(simulation: Simulation, scenario: Scenario, n: int) -> float:
    """Return the share of the tests that reject at 5 %."""
    return simulation.share(each.p is not None and each.p <= ALPHA for each in simulation.findings(scenario, n))


SMALL = {8}
"""Numbers of documents or clusters with conservative intervals: up to 100 % coverage if few answers differ."""


def intervals(simulation: Simulation) -> Iterator[Measured]:
    scenarios = [
        *(right_or_wrong(p, q) for p, q in ((0.2, 0.25), (0.5, 0.5), (0.9, 0.92))),
        *(right_or_wrong(p, q, within) for p, q in ((0.2, 0.25), (0.9, 0.92)) for within in (0.3, 0.8)),
        *(graded(2.0), graded(1.2), graded(2.0, 5), graded(2.0, within=0.3)),
        *(few_differ(0.2, 0.0), few_differ(0.2, 0.25)),
    ]
    for scenario in scenarios:
        for n in (8, 30, 100, 1_000):
            # 0.93 to 1 if few documents differ at all: a set of outcomes with 95 % need not exist.
            few = n < 60 or ("differ" in scenario.name and n < 250) or ("0.9" in scenario.name and n < 250)
            least = 0.92 if n in SMALL else 0.93
            yield Measured(
                "intervals", scenario.name, n, coverage(simulation, scenario, n), least, 1.0 if few else 0.97
            )


def errors(simulation: Simulation) -> Iterator[Measured]:
    nulls = [
        *(right_or_wrong(p, p) for p in (0.2, 0.5, 0.9)),
        *(right_or_wrong(0.5, 0.5, within) for within in (0.3, 0.8)),
        *(graded(1.0), graded(1.0, 5), graded(1.0, within=0.3), few_differ(0.2, 0.0)),
    ]
    for scenario in nulls:
        for n in (10, 30, 100, 1_000):
            yield Measured("errors", scenario.name, n, rejections(simulation, scenario, n), 0.0, 0.055)


def families(simulation: Simulation) -> Iterator[Measured]:
    """Simulate ten tasks of 100 documents (clusters), all without a true difference."""
    kinds = [
        right_or_wrong(0.2, 0.2),
        right_or_wrong(0.5, 0.5),
        right_or_wrong(0.5, 0.5, 0.3),
        graded(1.0),
        graded(1.0, 5),
    ]
    for name, tasks in (("graded", [graded(1.0)] * 10), ("all kinds", kinds * 2)):
        generator, wrong = simulation.generator(name), 0
        for seed in range(simulation.draws):
            options = PairOptions(draws=max(FAMILY_REDRAWS, simulation.redraws), seed=seed, within=SHARE)
            ps = holm([compare_pairs(*task.draw(generator, 100), options).p for task in tasks])
            wrong += any(p is not None and p <= ALPHA for p in ps)
        yield Measured("families", f"holm, ten of {name}", 100, wrong / simulation.draws, 0.0, 0.055)


def true_spread(scenario: Scenario) -> float:
    """Return the spread of a document's difference over many documents."""
    import numpy as np

    return compare_pairs(*scenario.draw(np.random.default_rng(0), 200_000), PairOptions(draws=1)).spread


def power(simulation: Simulation) -> Iterator[Measured]:
    least, most = POWER - 0.02, POWER + 0.02
    for within, sizes in ((0.0, (20, 50, 200)), (0.3, (50, 200))):
        spread = true_spread(shifted(0.0, within))
        for n in sizes:
            documents = n * MEMBERS if within else n
            scenario = shifted(detectable(spread, documents), within)
            yield Measured("power", f"detectable: {scenario.name}", n, rejections(simulation, scenario, n), least, most)
    spread = true_spread(shifted(0.0))
    for effect in (0.02, 0.05):
        n = documents_needed(spread, effect)
        found = rejections(simulation, shifted(effect), n)
        yield Measured("power", f"documents_needed for {effect:g}: graded, shifted", n, found, least, most)
    scenario = right_or_wrong(0.55, 0.5)
    n = documents_needed(true_spread(scenario), scenario.truth)
    yield Measured("power", f"documents_needed: {scenario.name}", n, rejections(simulation, scenario, n), least, most)
    for name, scenario, margin in (
        ("graded, alike", shifted(0.0), 0.03),
        ("right or wrong", right_or_wrong(0.5, 0.5), 0.05),
    ):
        n = documents_needed(true_spread(scenario), 0.0, margin=margin)
        tests = (equivalence_p(each, margin) for each in simulation.findings(scenario, n))
        share = simulation.share(p is not None and p <= ALPHA for p in tests)
        yield Measured("power", f"equivalent within {margin:g}: {name}", n, share, least, most)
    for effect, scenario in ((0.03, shifted(0.03)), (0.05, right_or_wrong(0.55, 0.5))):
        tests = (equivalence_p(each, effect) for each in simulation.findings(scenario, 300))
        share = simulation.share(p is not None and p <= ALPHA for p in tests)
        yield Measured("power", f"equivalent, truly at the margin: {scenario.name}", 300, share, 0.0, 0.055)


def ranks(simulation: Simulation) -> Iterator[Measured]:
    for chances in ((0.5, 0.5, 0.5, 0.5, 0.5), (0.5, 0.5, 0.5, 0.65, 0.65), (0.9, 0.9, 0.92, 0.94, 0.97)):
        for n, within in ((15, 0.0), (50, 0.0), (500, 0.0), (100, 0.5)):
            share = simulation.share(_true_ranks_held(simulation, chances, n, within))
            name = f"{'clusters, ' if within else ''}five runs {' '.join(map(str, chances))}"
            yield Measured("ranks", name, n, share, 0.945, 1.0)


def _true_ranks_held(simulation: Simulation, chances: Sequence[float], n: int, within: float) -> Iterator[bool]:
    import numpy as np
    from scipy.special import ndtri

    generator, limits = simulation.generator(f"{chances} {n}"), ndtri(np.asarray(chances))
    members = np.repeat(np.arange(n), MEMBERS) if within else np.arange(n)
    clusters = members.astype(str).tolist() if within else None
    for seed in range(simulation.draws):
        topic = generator.standard_normal((n, len(chances)))[members]
        document = generator.standard_normal((len(members), 1))
        own = generator.standard_normal((len(members), len(chances)))
        latent = math.sqrt(within) * topic + math.sqrt((1 - within) * ALIKE) * document
        scores = (latent + math.sqrt((1 - within) * (1 - ALIKE)) * own < limits) * 1.0
        found = simultaneous_ranks(scores, clusters, PairOptions(draws=1_000, seed=seed))
        yield all(
            each.best <= 1 + sum(other > chance for other in chances)
            and each.worst >= len(chances) - sum(other < chance for other in chances)
            for each, chance in zip(found, chances, strict=True)
        )


CLUSTER_SIZES: dict[str, Callable[[Generator, int], NDArray[intp]]] = {
    "all 4": lambda _, count: _whole_numbers([4] * count),
    "geometric, mean 4": lambda generator, count: generator.geometric(0.25, count),
    "Zipf, 1 to 60": lambda generator, count: _zipf(generator, count),
    "one of 60, the others 2": lambda _, count: _whole_numbers([60] + [2] * (count - 1)),
}
"""Numbers of documents in each of a number of clusters."""
FEWEST_INTERVALS = 0.01
"""Share of the simulations that must have an interval for its coverage to count."""


def _whole_numbers(sizes: Sequence[int]) -> NDArray[intp]:
    import numpy as np

    return np.array(sizes, dtype=np.intp)


def _zipf(generator: Generator, count: int) -> NDArray[intp]:
    import numpy as np

    sizes = np.arange(1, 61)
    shares = sizes**-1.5
    found: NDArray[intp] = generator.choice(sizes, count, p=shares / shares.sum())
    return found


def _held(section: str, name: str, n: int, found: Sequence[tuple[object, float]], least: float) -> Measured:
    """Return how many of the intervals hold their truth; 1 if there are hardly any intervals."""
    kept = [each.low - 1e-12 <= truth <= each.high + 1e-12 for each, truth in found if isinstance(each, Interval)]
    few = len(kept) < FEWEST_INTERVALS * len(found)
    share = 1.0 if few else sum(kept) / len(kept)
    return Measured(section, f"{name}{'; no intervals' if few else ''}", n, share, least, 1.0)


def clusters(simulation: Simulation) -> Iterator[Measured]:
    """Simulate means of right-or-wrong answers over clusters whose answers share a beta-distributed chance."""
    import numpy as np

    for kind, sizes_of in CLUSTER_SIZES.items():
        for count, within, p in itertools.product((10, 50, 200), (0.0, 0.3, 0.9), (0.1, 0.5)):
            name = f"{kind}, correlation {within:g}, share {p:g}"
            generator, found = simulation.generator(f"{name} {count}"), []
            for _ in range(simulation.draws):
                sizes = sizes_of(generator, count)
                spread = 1 / within - 1 if within else 0.0
                chances = generator.beta(spread * p, spread * (1 - p), count) if within else np.full(count, p)
                members = np.repeat(np.arange(count), sizes)
                scores = ((generator.random(len(members)) < chances[members]) * 1.0).tolist()
                of_clusters = MeanSpread.clustered(scores, members.tolist())
                found.append((score_interval(math.fsum(scores) / len(scores), of_clusters, SHARE), p))
            # 91 to 92 % if a few large clusters are nearly alike: docs/statistics.md
            yield _held("clusters", name, count, found, 0.9 if kind.startswith(("one", "Zipf")) else 0.92)


def skewed(simulation: Simulation) -> Iterator[Measured]:
    """Simulate means of graded scores: few far from the others, or nearly all at the ends."""
    import numpy as np

    kinds: dict[str, Callable[[Generator, int], NDArray[float64]]] = {
        "beta(0.1, 4.9)": lambda generator, n: generator.beta(0.1, 4.9, n),
        "lognormal, cut off at 1": lambda generator, n: np.minimum(generator.lognormal(-2, 1, n), 1.0),
        "uniform": lambda generator, n: generator.random(n),
        "mostly 0 and 1": lambda generator, n: np.where(
            generator.random(n) < 0.9, generator.random(n) < 0.7, generator.random(n)
        ),
    }
    for name, draw in kinds.items():
        truth = float(draw(np.random.default_rng(0), 2_000_000).mean())
        for n in (5, 10, 20, 50, 100):
            generator, found = simulation.generator(f"{name} {n}"), []
            for _ in range(simulation.draws):
                scores = draw(generator, n).astype(np.float64).tolist()
                found.append((score_interval(math.fsum(scores) / n, MeanSpread.of_scores(scores, SHARE), SHARE), truth))
            yield _held("skewed", name, n, found, 0.93)


COPULAS = {"beta(0.1, 4.9)": 0.66, "lognormal, cut off at 1": 0.57, "uniform": 0.52}
"""Correlation of two latent normal scores that gives scores of these distributions a correlation of 0.5."""


def _of_normals(name: str, latent: NDArray[float64]) -> NDArray[float64]:
    import numpy as np
    from scipy.special import betaincinv, ndtr

    if name.startswith("beta"):
        found: NDArray[float64] = betaincinv(0.1, 4.9, ndtr(latent))
    else:
        found = ndtr(latent) if name == "uniform" else np.minimum(np.exp(latent - 2), 1.0)
    return found


def grouped(simulation: Simulation) -> Iterator[Measured]:
    """Simulate means of skewed graded scores in clusters, with an intraclass correlation near 0.5."""
    import numpy as np

    for name in COPULAS:
        truth = float(_of_normals(name, np.random.default_rng(0).standard_normal(2_000_000)).mean())
        for sizes, count in itertools.product(("4", "1 to 7"), (5, 10, 20, 50, 100)):
            described = f"{name}, clusters of {sizes}"
            generator, found = simulation.generator(f"{described} {count}"), []
            for _ in range(simulation.draws):
                members = np.repeat(np.arange(count), 4 if sizes == "4" else generator.integers(1, 2 * MEMBERS, count))
                shared, own = generator.standard_normal(count)[members], generator.standard_normal(len(members))
                latent = math.sqrt(COPULAS[name]) * shared + math.sqrt(1 - COPULAS[name]) * own
                scores = _of_normals(name, latent).tolist()
                spread = MeanSpread.clustered(scores, members.tolist(), SHARE)
                found.append((score_interval(math.fsum(scores) / len(scores), spread, SHARE), truth))
            yield _held("grouped", described, count, found, 0.93)


def labels(simulation: Simulation) -> Iterator[Measured]:
    """Simulate F1 and MCC of predictions with few positive labels."""
    import numpy as np

    from lmms_eval.engine.uncertainty import errors_of
    from lmms_eval.metrics.table import AGGREGATIONS
    from tests.engine.fakes import FakeTask
    from tests.engine.journaled import metric

    for name, positive, hit, false in (
        (name, *rates)
        for name in ("f1", "matthews_corrcoef")
        for rates in ((0.05, 0.6, 0.02), (0.2, 0.7, 0.05), (0.5, 0.9, 0.1))
    ):
        true, wrong = positive * hit, (1 - positive) * false
        predicted = true + wrong
        f1 = 2 * true / (positive + predicted)
        scale = math.sqrt(positive * (1 - positive) * predicted * (1 - predicted))
        truth = f1 if name == "f1" else (true - positive * predicted) / scale
        function = AGGREGATIONS[name].function()
        definition = metric(name, function, name)
        for n in (20, 50, 200):
            described = f"{name}, {positive:.0%} positive, {hit:.0%} of them found"
            generator, found = simulation.generator(f"{described} {n}"), []
            for _ in range(simulation.draws):
                gold = generator.random(n) < positive
                said = generator.random(n) < np.where(gold, hit, false)
                pairs = list(zip(gold.astype(int).tolist(), said.astype(int).tolist(), strict=True))
                errors = errors_of(FakeTask(n), definition, pairs, function(pairs), simulation.redraws)
                found.append((errors.certainty.interval, truth))
            yield _held("labels", described, n, found, 0.92)


def early(simulation: Simulation) -> Iterator[Measured]:
    """Simulate verdicts over equal models if one run stopped at the look with the most striking difference."""
    from lmms_eval.engine.headline import place_in
    from tests.compare.runs import column, run, stopped, task

    order = "random:0:abcd"
    options = CompareOptions(draws=100)
    for total in (200, 1_000):
        ids = sorted(map(str, range(total)), key=lambda one: place_in(order, "quiz", one))
        for scenario in (right_or_wrong(0.5, 0.5), right_or_wrong(0.9, 0.9), graded(1.0)):
            generator, wrong = simulation.generator(f"early {scenario.name} {total}"), 0
            for _ in range(simulation.draws):
                first, second, _ = scenario.draw(generator, total)
                asked = _most_striking(first - second)
                sides = [
                    run(name, task([column(scores[:asked])], ids=ids[:asked], early_stop=stopped(asked, total, order)))
                    for name, scores in (("a", first.tolist()), ("b", second.tolist()))
                ]
                wrong += compare_runs(sides, options).pairs[0].rows[0].verdict in ("better", "worse")
            yield Measured("early", f"better or worse: {scenario.name}", total, wrong / simulation.draws, 0.0, 0.05)


def _most_striking(differences: NDArray[float64]) -> int:
    """Return after how many documents, of at least 20, the difference is most standard errors from 0."""
    import numpy as np

    counts = np.arange(1, len(differences) + 1)
    squares = np.cumsum(differences**2)
    statistic = np.abs(np.cumsum(differences)) / np.sqrt(np.maximum(squares, 1.0))
    return int(counts[19:][np.argmax(statistic[19:])])


FAILING = {"a tenth of its wrong answers": 0.1, "a third of its wrong answers": 1 / 3}
"""Shares of the wrong answers that are missing. A third is a tenth of all documents at a true score of 0.7."""
BOUND = 0.05
"""The margin of the gate, and of equivalence."""


def missing(simulation: Simulation) -> Iterator[Measured]:
    """Simulate a model that fails on some of its wrong answers, against one that answers everything."""
    equal, worse, graded_equal = right_or_wrong(0.7, 0.7), right_or_wrong(0.7, 0.75), graded(1.0, 5)
    for name, share in FAILING.items():
        for n in (500, 2_000):
            compared = list(_with_failures(simulation, equal, n, share))
            rates = [simulation.share(iter(claims)) for claims in zip(*compared, strict=True)]
            yield Measured("missing", f"scored documents alone, fails on {name}", n, rates[0], 0.0, 1.0)
            yield Measured("missing", f"better or worse, fails on {name}", n, rates[1], 0.0, 0.055)
        compared = list(_with_failures(simulation, graded_equal, 500, share))
        rates = [simulation.share(iter(claims)) for claims in zip(*compared, strict=True)]
        yield Measured("missing", f"graded, scored alone, fails on {name}", 500, rates[0], 0.0, 1.0)
        yield Measured("missing", f"graded, better or worse, fails on {name}", 500, rates[1], 0.0, 0.055)
        held = simulation.share(_gate_held(simulation, worse, 2_000, share))
        yield Measured("missing", f"gate held at the margin, fails on {name}", 2_000, held, 0.0, 0.055)
        for n in (50, 400):
            covered = simulation.share(_bounds_hold(simulation, n, share))
            yield Measured("missing", f"bounds hold the score, fails on {name}", n, covered, 0.95, 1.0)


def _failing_runs(generator: Generator, scenario: Scenario, n: int, share: float) -> tuple[RunRows, RunRows]:
    """Draw two runs. The first one lacks a random ``share`` of the documents that it does not answer right."""
    import numpy as np

    first, second, _ = scenario.draw(generator, n)
    first = np.where((first < 1) & (generator.random(n) < share), np.nan, first)
    ids = [str(number) for number in range(n)]

    def run(name: str, scores: NDArray[float64]) -> RunRows:
        statuses: list[Status] = ["failed" if np.isnan(score) else "scored" for score in scores]
        column = MetricColumn("acc", "none", scores, score_range=SHARE)
        return RunRows(name, name, "csv", {"quiz": TaskRows("quiz", ids, statuses, {"acc,none": column})})

    return run("first", first), run("second", second)


def _with_failures(simulation: Simulation, scenario: Scenario, n: int, share: float) -> Iterator[tuple[bool, bool]]:
    """Yield whether the scored documents alone show a difference, and whether the verdict claims one."""
    generator = simulation.generator(f"missing {scenario.name} {n} {share}")
    for seed in range(simulation.draws):
        options = CompareOptions(draws=max(100, simulation.redraws), seed=seed)
        (row,) = compare_runs(_failing_runs(generator, scenario, n, share), options).pairs[0].rows
        yield row.p is not None and row.p <= ALPHA, row.verdict in ("better", "worse")


def _gate_held(simulation: Simulation, scenario: Scenario, n: int, share: float) -> Iterator[bool]:
    generator = simulation.generator(f"gate {scenario.name} {n} {share}")
    policy = GatePolicy.model_validate({"tasks": ["quiz"], "margin": BOUND, "minimum_coverage": 0.5})
    for _ in range(simulation.draws):
        first, second = _failing_runs(generator, scenario, n, share)
        yield check_gate(first, second, policy).outcome == "held"


def _bounds_hold(simulation: Simulation, n: int, share: float) -> Iterator[bool]:
    """Yield whether the bounds of a score hold the share of right answers over all documents."""
    import numpy as np

    generator, truth = simulation.generator(f"bounds {n} {share}"), 0.7
    for _ in range(simulation.draws):
        scores = (generator.random(n) < truth) * 1.0
        kept = scores[(scores > 0) | (generator.random(n) >= share)]
        missing = n - len(kept)
        found = MissingBounds.of(missing, filled_means(kept.tolist(), missing, SHARE), SHARE)
        low, high = (np.nan if end is None else end for end in (found.low, found.high))
        yield bool(low <= truth <= high)


def noise(simulation: Simulation) -> Iterator[Measured]:
    """Simulate a server whose answers change, asked twice about a part of the documents (``--repeat_share``)."""
    yield from (Measured("noise", *rate) for rate in reruns.noise(simulation.generator, simulation.draws))


def judged(simulation: Simulation) -> Iterator[Measured]:
    """Simulate a judge whose replies vary, with two or three replies about each answer (``--judge_repeats``)."""
    yield from (Measured("judged", *rate) for rate in reruns.judged(simulation.generator, simulation.draws))


PROMPT_MEAN, PROMPT_GAP = 0.7, -0.05
"""Expected score with a prompt, and what a second model's score is less than it."""


def prompts(simulation: Simulation) -> Iterator[Measured]:
    """Simulate scores over several prompts: coverage for these prompts, for prompts like these, and of a difference.

    The expected score of a prompt is normal with the given standard deviation, and questions differ in difficulty on
    the logit scale with the standard deviation 1.5. Graded scores are the chances themselves, in five steps.
    """
    for count, n, deviation in itertools.product((3, 5, 10, 20), (50, 200, 1_000), (0.0, 0.02, 0.05, 0.1)):
        kinds = ("right or wrong", "graded") if n == 200 else ("right or wrong",)
        for kind in kinds:
            rates = _prompt_coverage(simulation, (count, n, deviation), kind == "graded")
            scenario = f"{count} prompts, SD {deviation:g}, {kind}"
            for name, rate in zip(("these", "like these", "difference"), rates, strict=True):
                yield Measured("prompts", f"{name}: {scenario}", n, rate, 0.93, 0.98)


def _prompt_coverage(simulation: Simulation, cell: tuple[int, int, float], is_graded: bool) -> list[float]:
    """Return the coverage of the mean over prompts: these, prompts like these, and the difference of two models."""
    import numpy as np

    from lmms_eval.stats.prompts import prompt_mean, spread_over

    count, n, deviation = cell
    generator, held = simulation.generator(f"prompts {cell} {is_graded}"), np.zeros(3)
    for _ in range(simulation.draws):
        means = PROMPT_MEAN + deviation * generator.standard_normal(count)
        others = means + PROMPT_GAP + deviation * generator.standard_normal(count)
        questions = 1.5 * generator.standard_normal(n)
        first, second = (
            _with_prompts(generator, np.clip(one, 0.02, 0.98), questions, is_graded) for one in (means, others)
        )
        found = prompt_mean(first, spread_over(None, within=SHARE))
        these = score_interval(found.value, found.these, SHARE)
        truths = (float(np.clip(means, 0.02, 0.98).mean()), PROMPT_MEAN, -PROMPT_GAP)
        gap = prompt_mean(first - second, spread_over(None))
        own = score_interval(gap.value, gap.these)
        for place, (interval, truth) in enumerate(
            zip((these, found.like_these(these, SHARE), gap.like_these(own)), truths, strict=True)
        ):
            held[place] += isinstance(interval, Interval) and interval.low <= truth <= interval.high
    return [float(share) / simulation.draws for share in held]


def _with_prompts(
    generator: Generator, means: NDArray[float64], questions: NDArray[float64], is_graded: bool
) -> NDArray[float64]:
    """Draw the scores of documents × prompts whose expected scores over questions are ``means``."""
    import numpy as np
    from scipy.special import expit

    logits, expected = _expected_by_logit()
    chances = expit(questions[:, None] + np.interp(means, expected, logits)[None, :])
    steps = 4 if is_graded else 1
    scores: NDArray[float64] = generator.binomial(steps, chances) / steps
    return scores


@functools.cache
def _expected_by_logit() -> tuple[NDArray[float64], NDArray[float64]]:
    """Return logits, and the expected score over questions of a prompt with each (Gauss-Hermite quadrature)."""
    import numpy as np
    from scipy.special import expit

    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    logits = np.linspace(-9, 9, 1_801)
    expected: NDArray[float64] = expit(logits[:, None] + 1.5 * nodes[None, :]) @ weights / weights.sum()
    return logits, expected


SECTIONS = {each.__name__: each for each in (
    intervals, errors, families, power, ranks, clusters, skewed, grouped, labels, early, missing, noise, judged,
    prompts,
)}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; default: all")
    parser.add_argument("--draws", type=int, default=2_000, help="simulated comparisons (default: %(default)s)")
    parser.add_argument("--redraws", type=int, default=500, help="redraws within each (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="write the JSON there as well")
    args = parser.parse_args()
    if unknown := set(args.sections) - SECTIONS.keys():
        parser.error(f"no section {min(unknown)}; one of {', '.join(SECTIONS)}")
    started, found = time.perf_counter(), []
    for name in args.sections or SECTIONS:
        for each in SECTIONS[name](Simulation(args.draws, args.redraws)):
            found.append(each)
            mark = "" if each.is_kept else "  missed"
            print(f"{each.section:10} {each.scenario:50} n={each.n:<5} {each.share:.4f}{mark}", file=sys.stderr)
    report = {
        "draws": args.draws,
        "redraws": args.redraws,
        "seconds": round(time.perf_counter() - started, 1),
        "measured": [{**asdict(each), "kept": each.is_kept} for each in found],
    }
    text = json.dumps(report, indent=2)
    if args.output:
        args.output.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0 if all(each.is_kept for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
