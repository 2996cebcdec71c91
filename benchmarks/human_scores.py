"""How often the intervals of a judged score that people's scores correct hold the truth: ``stats.labelled``.

``python -m benchmarks.human_scores --draws 1000`` prints, for several judges and sizes, documents drawn from all or
in strata by the judge's score: the coverage of the interval for questions like these and of the one for the list, and
their mean widths.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lmms_eval.stats import Interval
from lmms_eval.stats.labelled import Stratum, allocate, labelled_mean, strata_of_scores
from lmms_eval.utils.numbers import SHARES

Document = tuple[float, float]
"""The judge's score and people's."""


def _binary(share: float, strict: float, lenient: float) -> Callable[[random.Random], Document]:
    """Return a judge that misses this share of the right answers (``strict``) and of the wrong ones (``lenient``)."""

    def drawn(generator: random.Random) -> Document:
        human = float(generator.random() < share)
        misses = generator.random() < (strict if human else lenient)
        return (1 - human if misses else human), human

    return drawn


def _graded(generator: random.Random) -> Document:
    quality = generator.betavariate(2, 2)
    return min(1.0, max(0.0, round(quality + generator.gauss(0.08, 0.12), 1))), round(quality, 1)


def _graded_for_binary(generator: random.Random) -> Document:
    quality = generator.random()
    return round(quality, 1), float(generator.random() < quality**1.5)


def _ignorant(generator: random.Random) -> Document:
    return float(generator.random() < 0.6), float(generator.random() < 0.4)


def _collapsing(generator: random.Random) -> Document:
    judge = generator.choice((0.8, 0.9, 1.0))
    return judge, 0.0 if generator.random() < 0.05 else judge


JUDGES: Mapping[str, tuple[Callable[[random.Random], Document], float]] = {
    "misses 10 % of the right and 20 % of the wrong": (_binary(0.6, 0.1, 0.2), 0.6),
    "misses 2 % of each": (_binary(0.9, 0.02, 0.02), 0.9),
    "misses 6 % of the wrong": (_binary(0.5, 0.0, 0.06), 0.5),
    "misses 3 % of the right and 30 % of the few wrong": (_binary(0.97, 0.03, 0.3), 0.97),
    "graded, 0.08 too high": (_graded, 0.5),
    "graded, of right or wrong answers": (_graded_for_binary, 0.4),
    "knows nothing": (_ignorant, 0.4),
    "right, but 5 % are worth 0": (_collapsing, 0.855),
}
"""Judges, with the true mean of people's scores."""
SIZES = ((300, 30), (1000, 50), (1000, 100), (2000, 200))
"""Documents and labels."""


class Held(NamedTuple):
    """Shares of draws whose interval holds the truth, and mean widths."""

    like_these: float
    on_list: float
    width: float
    width_on_list: float


def simulate(judge: str, documents: int, labels: int, in_strata: bool, draws: int) -> Held:
    """Draw documents, have some of them labelled, and count how often the intervals hold the truth."""
    make, truth = JUDGES[judge]
    generator = random.Random(f"{judge} {documents} {labels} {in_strata}")
    held = [0.0, 0.0, 0.0, 0.0]
    for _ in range(draws):
        drawn = [make(generator) for _ in range(documents)]
        found = labelled_mean(
            math.fsum(f for f, _ in drawn) / documents, _labelled(drawn, labels, in_strata, generator), SHARES
        )
        actual = math.fsum(y for _, y in drawn) / documents
        for number, (interval, value) in enumerate(((found.interval, truth), (found.on_list, actual))):
            if isinstance(interval, Interval):
                held[number] += interval.low <= value <= interval.high
                held[2 + number] += interval.high - interval.low
    return Held(*(one / draws for one in held))


def _labelled(documents: Sequence[Document], labels: int, in_strata: bool, generator: random.Random) -> list[Stratum]:
    numbers = strata_of_scores([f for f, _ in documents], labels if in_strata else 1)
    members = [[d for d, n in zip(documents, numbers, strict=True) if n == k] for k in range(max(numbers) + 1)]
    means = [math.fsum(f for f, _ in each) / len(each) for each in members]
    chosen = allocate(labels, [len(each) for each in members], means, SHARES).labels
    drawn = (generator.sample(each, n) for each, n in zip(members, chosen, strict=True))
    return [
        Stratum(len(each), tuple(f for f, _ in some), tuple(y for _, y in some))
        for each, some in zip(members, drawn, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    print("| judge | documents, labels | drawn | like these | this list | widths |\n|---|---|---|---|---|---|")
    for judge in JUDGES:
        for documents, labels in SIZES:
            for in_strata in (False, True):
                found = simulate(judge, documents, labels, in_strata, draws)
                how = "in strata" if in_strata else "from all"
                shares = f"{found.like_these:.1%} | {found.on_list:.1%} | {found.width:.3f}, {found.width_on_list:.3f}"
                print(f"| {judge} | {documents}, {labels} | {how} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
