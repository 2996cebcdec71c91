"""Simulate runs over questions, some with a wrong reference answer, and find these.

    python -m benchmarks.wrong_labels [--seeds 5] [--runs 4,6,8,12,20] [--scenario NAME ...]

For each scenario and number of runs, by the model of answers and by that of scores alone: the share of wrong reference
answers among the first documents (as many as are wrong, at most 100), the share that the model expects there, and how
many it expects among all documents. ``shared`` counts the simulations whose runs were
reported to share mistakes. By correlation: the same share in the order of the item-rest correlation.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval.stats.suspects import WrongLabels, correlations, wrong_labels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions with four choices, whose answers runs know or guess, and runs that score between two shares."""

    documents: int = 5_000
    wrong: int = 200
    least: float = 0.4
    most: float = 0.9
    choices: int = 4
    popularity: float = math.inf
    """Concentration per choice of a Dirichlet distribution of guesses, one for each question; infinite: uniform."""
    hard: float = 0.0
    """Share of questions that are far too hard."""
    slopes: float = 0.4
    """Standard deviation of the logarithm of the slopes of questions."""
    copied: float = 0.0
    """Share of the answers that each second run copies from the one before."""
    misleading: float = 0.0
    """Share of questions that lead better runs to the same wrong answer."""

    def draw(self, runs: int, seed: int = 0) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
        """Return answers (documents × runs), reference answers, and which of these are wrong. The truth is 0."""
        import numpy as np

        generator = np.random.default_rng(seed)
        count, choices = self.documents, self.choices
        difficulty = generator.normal(0, 1.6, (count, 1)) + 3.0 * (generator.random((count, 1)) < self.hard)
        slope = np.exp(generator.normal(0, self.slopes, (count, 1)))
        shares = np.clip(np.linspace(self.least, self.most, runs) + generator.normal(0, 0.03, runs), 0.3, 0.95)
        ability = np.array([_ability(share, slope, difficulty, 1 / choices) for share in shares])
        knows = generator.random((count, runs)) < 1 / (1 + np.exp(-slope * (ability - difficulty)))
        guesses = np.full((count, choices), 1 / choices)
        if self.popularity < math.inf:
            guesses = generator.dirichlet(np.full(choices, self.popularity), count)
        drawn = (generator.random((count, runs, 1)) > guesses.cumsum(axis=1)[:, None, :-1]).sum(axis=-1)
        answers = np.where(knows, 0, drawn)
        leads = generator.random((count, 1)) < self.misleading
        falls = generator.random((count, runs)) < 1 / (1 + np.exp(np.median(ability) - ability))
        answers = np.where(leads & falls, 1, answers)
        for first in range(0, runs - 1, 2):
            copies = generator.random(count) < self.copied
            answers[copies, first + 1] = answers[copies, first]
        labels = np.zeros(count, dtype=np.intp)
        planted = generator.choice(count, self.wrong, replace=False)
        labels[planted] = generator.integers(1, choices, self.wrong)
        return answers, labels, labels > 0


def _ability(share: float, slope: Any, difficulty: Any, guess: float) -> float:
    """Return the ability of a run that answers the given share of questions."""
    import numpy as np

    low, high = -12.0, 12.0
    for _ in range(40):
        middle = (low + high) / 2
        right = guess + (1 - guess) / (1 + np.exp(-slope * (middle - difficulty)))
        low, high = (middle, high) if right.mean() < share else (low, middle)
    return low


SCENARIOS = {
    "uniform guesses": Questions(),
    "popular wrong answers": Questions(popularity=1.0),
    "very popular ones": Questions(popularity=0.4),
    "15 % far too hard": Questions(hard=0.15),
    "unequal slopes": Questions(slopes=0.8),
    "20 wrong": Questions(wrong=20),
    "300 documents, 12 wrong": Questions(documents=300, wrong=12),
    "runs of 70 to 80 %": Questions(least=0.7, most=0.8),
    "10 % copied": Questions(copied=0.1),
    "30 % copied": Questions(copied=0.3),
    "2 % misleading": Questions(misleading=0.02),
}


def kinds_of(answers: Numbers, labels: Numbers) -> Numbers:
    """Return kinds of answers for the model: 0 is right, equal numbers are equal wrong answers."""
    import numpy as np

    swapped: Numbers = np.where(answers == labels[:, None], 0, np.where(answers == 0, labels[:, None], answers))
    return swapped


def precision(order: Sequence[float] | NDArray[Any], is_wrong: NDArray[np.bool_]) -> float:
    """Return the share of wrong ones among the first 100 (or as many as are wrong) by descending order."""
    import numpy as np

    return float(is_wrong[np.argsort(-np.asarray(order), kind="stable")[: min(100, is_wrong.sum())]].mean())


def _found(model: WrongLabels, is_wrong: NDArray[np.bool_]) -> list[float]:
    first = min(100, int(is_wrong.sum()))
    return [precision(model.probability, is_wrong), model.expected(first) / first, model.expected()]


def main() -> int:
    """Print a table and return 0."""
    import numpy as np

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=5, help="simulations of each cell (default: %(default)s)")
    parser.add_argument("--runs", default="4,6,8,12,20", help="numbers of runs (default: %(default)s)")
    parser.add_argument("--scenario", action="append", choices=sorted(SCENARIOS), help="default: all")
    given = parser.parse_args()
    print("scenario                 runs | answers  least  expected   all shared | scores expected   all | correlation")
    for name in given.scenario or SCENARIOS:
        for runs in map(int, given.runs.split(",")):
            rows, shared = [], 0
            for seed in range(given.seeds):
                answers, labels, is_wrong = SCENARIOS[name].draw(runs, seed)
                kinds = kinds_of(answers, labels)
                by_answers = wrong_labels(kinds, max(2, int(kinds.max())))
                by_scores = wrong_labels((kinds > 0).astype(np.intp), None)
                shared += by_answers.misfit is not None
                along = precision(-np.nan_to_num(correlations((kinds == 0) * 1.0)), is_wrong)
                rows.append([*_found(by_answers, is_wrong), *_found(by_scores, is_wrong), along])
            one = np.mean(rows, axis=0)
            print(
                f"{name:24} {runs:4} | {one[0]:7.3f} {min(row[0] for row in rows):6.2f} {one[1]:9.3f} {one[2]:5.0f} "
                f"{shared:6} | {one[3]:6.3f} {one[4]:8.3f} {one[5]:5.0f} | {one[6]:.3f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
