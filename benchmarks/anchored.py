"""What scores of earlier runs are worth. Prints JSON. The parts (``--only``):

* ``neyman``: right-or-wrong lists of 400 and 2,000 documents, each with its own chance to be solved, and strata from
  the answers of one or four earlier runs: how often the interval of ``--sample N:neyman`` holds the mean of the list,
  its width, and that of a simple sample of the same size.

* ``checkpoints``: each checkpoint of a training is the new run, and those before it are its anchors. ``--scores`` is
  the file of ``examples/tiny_vlm/checkpoints.py``.

    python -m benchmarks.anchored [--draws N] [--only PART] [--scores FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.looks import Floats
from benchmarks.sequences import chances
from lmms_eval.stats import Sampled
from lmms_eval.stats.earlier import best_prediction, predicted
from lmms_eval.stats.finite import DrawnScores, share_limits, strata_by_spread, weighted_interval
from lmms_eval.stats.labelled import allocate
from lmms_eval.utils.numbers import SHARES

SIZES, DRAWN, EXPLAINED, MEANS, RUNS = (400, 2000), (0.1, 0.3), (0.2, 0.5, 0.8), (0.7, 0.95), (1, 4)
OF_A_LIST = 20
"""Samples of each simulated list."""


class Strata:
    """A list of documents with scores, divided by the answers of earlier runs."""

    def __init__(self, chance: Floats, runs: int, drawn: int, source: np.random.Generator) -> None:
        total = len(chance)
        earlier = [dict(enumerate((source.random(total) < chance).astype(float).tolist())) for _ in range(runs)]
        expected = [*predicted(earlier, range(total)).values()]
        numbers = np.array(strata_by_spread(expected, drawn))
        self.scores = (source.random(total) < chance).astype(float)
        self.members = [np.flatnonzero(numbers == number) for number in range(numbers.max() + 1)]
        sizes = [len(each) for each in self.members]
        means = [float(np.array(expected)[each].mean()) for each in self.members]
        self.labels = allocate(drawn, sizes, means, SHARES, worth=1.0).labels

    def draw(self, source: np.random.Generator) -> list[DrawnScores]:
        picked = [
            self.scores[source.choice(each, count, replace=False)].tolist()
            for each, count in zip(self.members, self.labels, strict=True)
        ]
        return [DrawnScores(one, one, len(each)) for one, each in zip(picked, self.members, strict=True)]


def neyman_cell(total: int, share: float, explained: float, mean: float, runs: int, draws: int) -> dict[str, Any]:
    """Simulate samples of one size; lists whose earlier scores make one stratum only are counted."""
    source, drawn = np.random.default_rng(11), round(share * total)
    held, widths, simple, collapsed = [], [], [], 0
    for _ in range(max(1, draws // OF_A_LIST)):
        one = Strata(chances(total, explained, source, mean), runs, drawn, source)
        truth = float(one.scores.mean())
        if len(one.members) < 2:
            collapsed += 1
            continue
        for _ in range(OF_A_LIST):
            found = weighted_interval(one.draw(source), SHARES)
            assert isinstance(found, tuple)
            held.append(found[1].low - 1e-9 <= truth <= found[1].high + 1e-9)
            widths.append(found[1].high - found[1].low)
            low, high = share_limits(
                int(source.hypergeometric(one.scores.sum(), total - one.scores.sum(), drawn)), drawn, total
            )
            simple.append(high - low)
    return {
        "documents": total, "drawn": drawn, "explained": explained, "mean": mean, "runs": runs,
        "collapsed": collapsed, "draws": len(held), "holds": round(float(np.mean(held)), 4) if held else None,
        "width": round(float(np.mean(widths)), 4) if held else None,
        "simple": round(float(np.mean(simple)), 4) if held else None,
    }  # fmt: skip


def neyman(draws: int) -> list[dict[str, Any]]:
    cells = itertools.product(SIZES, DRAWN, EXPLAINED, MEANS, RUNS)
    return [neyman_cell(*cell, draws) for cell in cells]


ORDERS, HALF_WIDTHS = 20, (0.05, 0.03)


def questions_needed(scores: Floats, shares: Floats | None, half_width: float) -> float:
    """Return the median share of the questions after which half the width of the interval is small enough."""
    total, found = len(scores), []
    drawn = scores if shares is None else (scores - shares + 1) / 2
    width = 1.0 if shares is None else 2.0
    for seed in range(ORDERS):
        sampled = Sampled(total, SHARES, 0.95)
        for count, place in enumerate(np.random.default_rng(seed).permutation(total), start=1):
            share = float(drawn[place])
            sampled.add(share, share)
            if count % 10 == 0:
                one = sampled.interval()
                if width * (one.high - one.low) / 2 <= half_width:
                    break
        found.append(count / total)
    return float(np.median(found))


def curve(scores: Mapping[int, Sequence[float]]) -> list[dict[str, Any]]:
    """Return, for each checkpoint, what no anchors, the checkpoint before it, and all before it are worth."""
    rows: list[dict[str, Any]] = []
    for place, step in enumerate(scores):
        own = np.array(scores[step])
        earlier = [dict(enumerate(scores[one])) for one in [*scores][:place]]
        for name, runs in (
            ("none", []),
            ("the one before", earlier[-1:]),
            ("all before", earlier if place > 1 else []),
        ):
            if name != "none" and not runs:
                continue
            fit = best_prediction(runs, range(len(own))) if runs else None
            shares = None if fit is None else np.array([*fit.shares.values()])
            rows.append({
                "step": step, "score": round(float(own.mean()), 3), "anchors": name, "runs": len(runs),
                "fit": None if fit is None else fit.fit,
                "r_squared": None if shares is None else round(1 - float((own - shares).var() / own.var()), 3),
                "share_asked": {str(half): round(questions_needed(own, shares, half), 3) for half in HALF_WIDTHS},
            })  # fmt: skip
    return rows


PARTS: dict[str, Callable[[int], list[dict[str, Any]]]] = {"neyman": neyman}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, help="simulated samples of each cell")
    parser.add_argument("--only", choices=[*PARTS, "checkpoints"], help="one part")
    parser.add_argument("--scores", type=Path, metavar="FILE", help="scores of checkpoints")
    given = parser.parse_args()
    report = {name: part(given.draws) for name, part in PARTS.items() if given.only in (None, name)}
    if given.scores is not None:
        report["checkpoints"] = curve({int(step): row for step, row in json.loads(given.scores.read_text()).items()})
    print(json.dumps({"benchmark": "anchored", "draws": given.draws, **report}, indent=2))
    cells = [one for one in report.get("neyman", []) if one["holds"] is not None]
    return 0 if all(one["holds"] >= 0.93 for one in cells) else 1


if __name__ == "__main__":
    raise SystemExit(main())
