"""Simulate a judge with a known bias, and how often intervals around the mean contain the true mean.

    python -m benchmarks.mmie_calibration [--simulations 1000] [--output FILE]

Each simulation draws 2,000 answers with human scores from 0 to 6 (a rounded normal distribution around 3), a judge that
adds 0.8 and noise of standard deviation 1.0 and rounds to 0 … 6, and 200 of the human scores that are known. Printed as
JSON: the shares of 95 % intervals that hold 3 around the judge's plain mean, around the mean of the human scores
alone, and around the corrected mean (``lmms_eval.stats.corrected_mean``), with their mean widths.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from lmms_eval.stats import Interval, MeanSpread, NoInterval, corrected_mean, score_interval

ANSWERS, HUMAN, BIAS, NOISE, SEED = 2_000, 200, 0.8, 1.0, 20_241_014
TRUTH, SPREAD = 3.0, 1.3
"""True mean: the distribution of human scores is symmetric around 3, even after rounding and clipping."""


def simulate(simulations: int, seed: int = SEED) -> dict[str, Any]:
    """Return coverage and mean width of the three intervals."""
    import numpy as np

    generator = np.random.default_rng(seed)
    found: dict[str, list[Interval]] = {"plain": [], "human_only": [], "corrected": []}
    for _ in range(simulations):
        human = np.clip(np.rint(generator.normal(TRUTH, SPREAD, ANSWERS)), 0, 6)
        judge = np.clip(np.rint(human + BIAS + generator.normal(0, NOISE, ANSWERS)), 0, 6)
        known, scored = human[:HUMAN].tolist(), judge.tolist()
        corrected = corrected_mean(scored[HUMAN:], scored[:HUMAN], known)
        intervals = {
            "plain": score_interval(float(judge.mean()), MeanSpread.of_scores(scored)),
            "human_only": score_interval(float(human[:HUMAN].mean()), MeanSpread.of_scores(known)),
            "corrected": None if corrected is None else corrected.interval,
        }
        for name, interval in intervals.items():
            if interval is None or isinstance(interval, NoInterval):
                raise ValueError(f"no {name} interval over {ANSWERS} answers")
            found[name].append(interval)
    return {
        "simulations": simulations,
        "answers": ANSWERS,
        "human_scores": HUMAN,
        "bias": BIAS,
        "noise": NOISE,
        "seed": seed,
        "truth": TRUTH,
        "coverage": {name: sum(i.low <= TRUTH <= i.high for i in all_) / simulations for name, all_ in found.items()},
        "mean_width": {name: sum(i.high - i.low for i in all_) / simulations for name, all_ in found.items()},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=1_000)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    text = json.dumps(simulate(given.simulations), indent=2)
    if given.output is not None:
        given.output.write_text(f"{text}\n", encoding="utf-8")
    sys.stdout.write(f"{text}\n")
    coverage = json.loads(text)["coverage"]
    return 0 if 0.93 <= coverage["corrected"] <= 0.97 and coverage["plain"] < 0.05 else 1


if __name__ == "__main__":
    sys.exit(main())
