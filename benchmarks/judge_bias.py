"""How often the slope of a judge's scores over the answers' length is flagged: ``stats.association``.

``python -m benchmarks.judge_bias --draws 1000`` prints, for several kinds of scores, numbers of documents and clusters,
the share of unbiased judges with an interval that does not contain 0, the share without an interval, and the share of
judges that are flagged if their score rises with each doubling of the length by a tenth of its standard deviation
(by 0.3 of it with 100 documents or fewer). A second table has the share of unbiased judges that are flagged at equal
human scores, where better answers are longer and people scored a planned part of 1,000 documents.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lmms_eval.stats import Interval
from lmms_eval.stats.association import Slope, SlopeData, slope
from lmms_eval.stats.labelled import allocate, strata_of_scores
from lmms_eval.utils.numbers import SHARES

SCORES: Mapping[str, Callable[[random.Random, float], float]] = {
    "right or wrong, 0.5": lambda generator, shift: float(generator.random() < 0.5 + 0.5 * shift),
    "right or wrong, 0.1": lambda generator, shift: float(generator.random() < 0.1 + 0.3 * shift),
    "0 to 10": lambda generator, shift: min(10.0, max(0.0, round(generator.gauss(6 + 2 * shift, 2)))),
    "10, rarely less": lambda generator, shift: (
        10.0 if generator.random() < 0.9 + 0.3 * shift else float(generator.randrange(10))
    ),
}
"""A score, given the shift of its mean in standard deviations."""
SIZES = (40, 100, 400, 1000)


class Flagged(NamedTuple):
    """Shares of judges."""

    unbiased: float
    """Flagged, of the unbiased judges with an interval."""
    without: float
    """Without an interval."""
    biased: float
    """Flagged, of the biased judges with an interval."""


def simulate(scores: str, documents: int, cluster: int, draws: int) -> Flagged:
    """Draw judges and count those that are flagged. Lengths of a cluster are alike (correlation ½)."""
    make = SCORES[scores]
    rate = 0.3 if documents <= 100 else 0.1
    counts = []
    for effect in (0.0, rate):
        generator = random.Random(f"{scores} {documents} {cluster} {effect}")
        found = []
        for _ in range(draws):
            names = [number // cluster for number in range(documents)]
            common = [generator.gauss(0, 0.9) for _ in range(documents // cluster + 1)]
            lengths = [common[name] + generator.gauss(0, 0.9) for name in names]
            drawn = [make(generator, effect * x) for x in lengths]
            made = slope(SlopeData(drawn, lengths, clusters=names if cluster > 1 else None))
            if isinstance(made, Slope) and isinstance(made.interval, Interval):
                found.append(made.is_clear)
        counts.append((sum(found) / len(found) if len(found) > draws / 20 else math.nan, 1 - len(found) / draws))
    return Flagged(counts[0][0], counts[0][1], counts[1][0])


HUMAN: Mapping[str, Callable[[random.Random], tuple[float, float]]] = {
    "right or wrong": lambda generator: _judged(generator, float(generator.random() < 0.7)),
    "0 to 1, 0.08 too high": lambda generator: _rated(generator, round(generator.betavariate(2, 2), 1)),
}
"""The judge's score of a document, and people's."""


def _judged(generator: random.Random, human: float) -> tuple[float, float]:
    return (human if generator.random() > (0.05 if human else 0.4) else 1 - human), human


def _rated(generator: random.Random, human: float) -> tuple[float, float]:
    return min(1.0, max(0.0, round(human + generator.gauss(0.08, 0.12), 1))), human


def flagged_given_human(scores: str, labels: int, draws: int, documents: int = 1000) -> float:
    """Return the share of unbiased judges that are flagged at equal human scores of documents drawn by a plan."""
    generator = random.Random(f"{scores} {labels}")
    flagged = 0
    for _ in range(draws):
        both = [HUMAN[scores](generator) for _ in range(documents)]
        lengths = [generator.gauss(6 + 1.5 * human, 1.2) for _, human in both]
        strata = strata_of_scores([judge for judge, _ in both], labels)
        members = [[one for one in range(documents) if strata[one] == each] for each in range(max(strata) + 1)]
        means = [math.fsum(both[one][0] for one in each) / len(each) for each in members]
        chosen = allocate(labels, [len(each) for each in members], means, SHARES).labels
        drawn = [
            (one, len(each) / n) for each, n in zip(members, chosen, strict=True) for one in generator.sample(each, n)
        ]
        made = slope(
            SlopeData(
                [both[one][0] for one, _ in drawn],
                [lengths[one] for one, _ in drawn],
                control=[both[one][1] for one, _ in drawn],
                weights=[weight for _, weight in drawn],
            )
        )
        flagged += isinstance(made, Slope) and made.is_clear
    return flagged / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    print("| scores | documents | clusters of | unbiased, flagged | no interval | biased, flagged |")
    print("|---|---|---|---|---|---|")
    for scores in SCORES:
        for documents in SIZES:
            for cluster in (1, 4):
                found = simulate(scores, documents, cluster, draws)
                shares = ["none" if math.isnan(one) else f"{one:.1%}" for one in (found.unbiased, found.biased)]
                cells = f"{shares[0]} | {found.without:.0%} | {shares[1]}"
                print(f"| {scores} | {documents} | {cluster} | {cells} |", flush=True)
    print("\n| scores | labels | unbiased, flagged at equal human scores |\n|---|---|---|")
    for scores in HUMAN:
        for labels in (60, 120, 200):
            print(f"| {scores} | {labels} | {flagged_given_human(scores, labels, draws):.1%} |", flush=True)


if __name__ == "__main__":
    main()
