"""Simulate confidence sequences: how often they contain the task's final number at all looks, and how early runs end.

Prints JSON. The parts (``--only``):

* ``single``: one task of 500 or 6,500 documents. How often the mean is inside at every look; the share of documents at
  which the half-width is small enough, compared with intervals for one look (Wald, with and without the correction for
  a finite list, and Wilson) that are looked at after each document, or each tenth, from the 30th on.
* ``decided``: two models whose difference is 0, or 4 points: how often, and after which share of the documents, 0 is
  outside the interval.
* ``methods``: half-widths of the methods that were compared, as multiples of those of a single look.
* ``strata``: macro means of 3, 30 and 500 tasks, in even and in random order, compared with one sequence for each task
  (Bonferroni).
* ``anchors``: one task of 6,500 documents whose scores are predicted by earlier runs (``--anchors``) with an R² of 0,
  0.2, 0.5 and 0.8, by the expected score of each document or by right and wrong answers of 1, 2 and 8 runs.
* ``cells``: the mean of a part of a task that was stopped, by a rule about the whole task or when the part looked most
  striking: how often its interval is right, compared with that of a single look, and how wide both are.

    python -m benchmarks.sequences [--draws N] [--only PART]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.looks import ROUNDING, SHARE, Floats, Z, ends_of, held, orders, population, wald, wald_finite, wilson
from benchmarks.sequence_cells import cells
from lmms_eval.stats import Sampled, StratifiedSampled
from lmms_eval.stats.earlier import predicted
from lmms_eval.stats.sequence import GREATEST_STAKE, rates
from lmms_eval.utils.numbers import ScoreRange

DIFFERENCE = ScoreRange(-1, 1)
HALF_WIDTHS = (0.05, 0.02, 0.01)
CHANCES = (0.2, 0.5, 0.9)
SIZES = (500, 6500)
FIRST_LOOK = 30
LEVEL, SIDE = 0.95, 0.025


def process_coverage(values: Floats, draws: int) -> float:
    """Return the share of draws without a capital against the true mean that ever reaches its limit, on either side."""
    total, mean, kept = len(values), float(values.mean()), 0
    left = total - np.arange(total)
    for order in orders(values, draws, 1):
        sums = np.concatenate(([0.0], np.cumsum(order)[:-1]))
        kept += all(
            np.max(capital(x, (total * m - before) / left, total)) < 1 / SIDE
            for x, m, before in ((order, mean, sums), (1 - order, 1 - mean, np.arange(total) - sums))
        )
    return kept / draws


def capital(x: Floats, expected: Floats, total: int) -> Floats:
    """Return the capital after each document against one candidate."""
    each = np.array(rates(total, SIDE))[:, None]
    left = total - np.arange(len(x))
    stake = np.minimum(
        np.minimum(each * total / left, np.maximum(each, GREATEST_STAKE)), GREATEST_STAKE / np.maximum(expected, 1e-12)
    )
    with np.errstate(under="ignore"):
        return np.asarray(np.multiply.accumulate(1 + stake * (x - expected), axis=1).mean(axis=0))


Naive = Callable[[Floats, Floats, int], Floats]
NAIVE: dict[str, Naive] = {"wald": wald, "wald, finite list": wald_finite, "wilson": wilson}


class Stops:
    """The points where runs ended, and whether the interval there contains the mean."""

    def __init__(self, truth: float, total: int) -> None:
        self.truth, self.total = truth, total
        self.shares: dict[float, list[float]] = {half: [] for half in HALF_WIDTHS}
        self.right: dict[float, int] = dict.fromkeys(HALF_WIDTHS, 0)
        self.always = self.draws = 0

    def take(self, n: Floats, ends: Floats) -> None:
        """Simulate one run and return documents and interval at each of its looks."""
        self.draws += 1
        is_held = held(ends, self.truth)
        self.always += bool(is_held.all())
        width = ends[:, 1] - ends[:, 0]
        for half in HALF_WIDTHS:
            enough = width <= 2 * half + ROUNDING
            stop = int(np.argmax(enough)) if enough.any() else len(n) - 1
            self.shares[half].append(n[stop] / self.total)
            # At the last document the mean is certain.
            self.right[half] += bool(is_held[stop]) or n[stop] == self.total

    def report(self) -> dict[str, Any]:
        return {
            "draws": self.draws,
            "all_looks_hold": round(self.always / self.draws, 4),
            "median_share": {str(half): round(float(np.median(self.shares[half])), 4) for half in HALF_WIDTHS},
            "coverage_at_stop": {str(half): round(self.right[half] / self.draws, 4) for half in HALF_WIDTHS},
        }


def single_cell(total: int, chance: float, draws: int) -> dict[str, Any]:
    values = population(total, chance)
    truth = float(values.mean())
    ours, n = Stops(truth, total), np.arange(1.0, total + 1)
    # The class follows every document of fewer draws of the long list; the process below is tried on all draws.
    for order in orders(values, draws if total <= 1000 else max(1, draws // 10), 2):
        ours.take(n, np.array(Sampled(total, SHARE).after_each(order.tolist())))
    naive = {(name, step): Stops(truth, total) for name in NAIVE for step in (1, 10)}
    looks = n[FIRST_LOOK - 1 :]
    for order in orders(values, draws, 3):
        shares = (np.cumsum(order) / n)[FIRST_LOOK - 1 :]
        for name, method in NAIVE.items():
            ends = method(shares, looks, total)
            for step in (1, 10):
                naive[name, step].take(looks[::step], ends[::step])
    return {
        "documents": total,
        "chance": chance,
        "process_all_looks_hold": process_coverage(values, draws),
        "process_draws": draws,
        "sequence": ours.report(),
        "naive": {f"{name}, each {step}": stops.report() for (name, step), stops in naive.items()},
    }


def single(draws: int) -> list[dict[str, Any]]:
    return [single_cell(total, chance, draws) for total in SIZES for chance in CHANCES]


def decided(draws: int) -> list[dict[str, Any]]:
    """Simulate differences of two runs: only one is right in 10 % of the documents each, or in 12 % against 8 %."""
    found = []
    for total in SIZES:
        for better in (0.10, 0.12):
            values = np.zeros(total)
            values[: round(total * better)] = 1
            values[round(total * better) : round(total * 0.2)] = -1
            n, sequence, naive = np.arange(1.0, total + 1), [], {1: [], 10: []}  # type: ignore[var-annotated]
            for order in orders(values, draws if total <= 1000 else max(1, draws // 10), 4):
                ends = np.array(Sampled(total, DIFFERENCE).after_each(order.tolist()))
                sequence.append(first_decision(n[:-1], ends[:-1], total))
            for order in orders(values, draws, 5):
                mean = np.cumsum(order) / n
                spread = np.sqrt(np.maximum(0.0, np.cumsum(order**2) / n - mean**2) / n)
                ends = ends_of(mean, Z * spread)[FIRST_LOOK - 1 : -1]
                for step, decisions in naive.items():
                    decisions.append(first_decision(n[FIRST_LOOK - 1 : -1 : step], ends[::step], total))
            of_sequence = {"sequence": sequence}
            of_naive = {f"t interval, each {step}": decisions for step, decisions in naive.items()}
            found.append(
                {
                    "documents": total,
                    "difference": round(float(values.mean()), 4),
                    **{name: decisions_of(each) for name, each in {**of_sequence, **of_naive}.items()},
                }
            )
    return found


def first_decision(n: Floats, ends: Floats, total: int) -> float:
    """Return the share of the documents at the first look that excludes 0, or NaN without such a look."""
    is_out = (ends[:, 0] > 0) | (ends[:, 1] < 0)
    return float(n[np.argmax(is_out)]) / total if is_out.any() else math.nan


def decisions_of(shares: list[float]) -> dict[str, Any]:
    is_decided = ~np.isnan(shares)
    return {
        "draws": len(shares),
        "decided_before_the_end": round(float(np.mean(is_decided)), 4),
        "median_share": round(float(np.median(np.where(is_decided, shares, 1.0))), 4),
    }


def plug_in_stakes(x: Floats) -> Floats:
    """Return the predictable plug-in stakes √(2 log(2/α) / (σ² t log(1 + t))) of Waudby-Smith and Ramdas, uncut."""
    t = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    before = np.concatenate(([0.25], variance[:-1]))
    return np.asarray(np.sqrt(2 * math.log(1 / SIDE) / (before * t * np.log(1 + t))))


def plug_in_betting(x: Floats, total: int) -> float:
    """Return the lower limit of the hedged capital with plug-in stakes (JRSS-B 2024, theorem 3, no replacement)."""
    left, sums, stakes = total - np.arange(len(x)), np.concatenate(([0.0], np.cumsum(x)[:-1])), plug_in_stakes(x)
    low, high = 0.0, 1.0
    for _ in range(24):
        middle = (low + high) / 2
        expected = (total * middle - sums) / left
        stake = np.minimum(stakes, 0.5 / np.maximum(expected, 1e-12))
        is_out = np.max(np.cumsum(np.log1p(stake * (x - expected)))) >= math.log(1 / SIDE)
        low, high = (middle, high) if is_out else (low, middle)
    return low


def plug_in_bernstein(x: Floats, total: int) -> float:
    """Return the lower limit of the empirical Bernstein sequence with plug-in stakes (NeurIPS 2020, theorem 3.2)."""
    left, sums = total - np.arange(len(x)), np.concatenate(([0.0], np.cumsum(x)[:-1]))
    stakes = np.minimum(plug_in_stakes(x), 0.5)
    t = np.arange(len(x))
    guess = (0.5 + sums) / (t + 1)
    lost = (-np.log1p(-stakes) - stakes) * (x - guess) ** 2
    gained = np.cumsum(stakes * (x + sums / left) - lost) - math.log(1 / SIDE)
    return float(np.max(gained / np.cumsum(stakes * total / left)))


def methods(draws: int) -> list[dict[str, Any]]:
    found = []
    shares = (0.1, 0.3, 0.6, 0.9)
    for total in SIZES:
        for name, values in (*((str(p), population(total, p)) for p in CHANCES), ("difference", difference(total))):
            widths: dict[str, list[list[float]]] = {}
            for order in orders(values, max(1, draws // 100), 6):
                for method, found_widths in method_widths(order, shares).items():
                    widths.setdefault(method, []).append(found_widths)
            spread = Z * float(values.std())
            alone = [spread * math.sqrt((1 - share) / (share * total)) for share in shares]
            found.append(
                {
                    "documents": total,
                    "values": name,
                    "shares": shares,
                    **{
                        method: np.round(np.median(each, axis=0) / alone, 2).tolist() for method, each in widths.items()
                    },
                }
            )
    return found


def difference(total: int) -> Floats:
    """Return differences of two runs that differ in one document of fifty, on the scale from 0 to 1."""
    return np.repeat([0.0, 0.5, 1.0], [total // 50, total - 2 * (total // 50), total // 50])


def method_widths(order: Floats, shares: tuple[float, ...]) -> dict[str, list[float]]:
    total = len(order)
    looks = [round(share * total) for share in shares]
    sequence, one = Sampled(total, SHARE), StratifiedSampled([total], [1], SHARE)
    ends = sequence.after_each(order[: looks[-1]].tolist())
    found = {"betting, several rates": [(ends[look - 1][1] - ends[look - 1][0]) / 2 for look in looks]}
    bernstein = []
    for number, value in enumerate(order[: looks[-1]].tolist(), 1):
        one.add(0, value)
        if number in looks:
            bernstein.append((one.interval().high - one.interval().low) / 2)
    found["empirical bernstein, several rates"] = bernstein
    for name, method in (("betting, plug-in", plug_in_betting), ("empirical bernstein, plug-in", plug_in_bernstein)):
        found[name] = [(1 - method(1 - order[:look], total) - method(order[:look], total)) / 2 for look in looks]
    return found


GROUPS = {
    "3 tasks of 250, 500, 1000": [250, 500, 1000],
    "30 tasks of 20 to 78": list(range(20, 80, 2)),
    "500 tasks of 13": [13] * 500,
}


def even_order(sizes: list[int]) -> list[int]:
    times = [((place + 0.5) / size, stratum) for stratum, size in enumerate(sizes) for place in range(size)]
    return [stratum for _, stratum in sorted(times)]


def strata(draws: int) -> list[dict[str, Any]]:
    found = []
    for name, sizes in GROUPS.items():
        source = np.random.default_rng(8)
        chances = source.beta(2, 2, len(sizes))
        tasks = [population(size, chance) for size, chance in zip(sizes, chances, strict=True)]
        truth = float(np.mean([each.mean() for each in tasks]))
        for how in ("even", "random"):
            stops, n_draws = Stops(truth, sum(sizes)), draws if how == "even" else max(1, draws // 10)
            for _ in range(n_draws):
                order = even_order(sizes) if how == "even" else source.permutation(even_order(sizes)).tolist()
                stops.take(*group_looks(StratifiedSampled(sizes, [1] * len(sizes), SHARE), tasks, order, source))
            found.append({"group": name, "order": how, **stops.report()})
        several = Stops(truth, sum(sizes))
        for _ in range(max(1, draws // 500)):
            several.take(*bonferroni_looks(tasks, source))
        found.append({"group": name, "order": "even", "method": "bonferroni", **several.report()})
        error = sum(each.var() / len(each) for each in tasks) / len(tasks) ** 2
        single_look = {str(half): round(Z**2 * error / (Z**2 * error + half**2), 4) for half in HALF_WIDTHS}
        found.append({"group": name, "method": "a single look, fixed before", "median_share": single_look})
    return found


def group_looks(
    group: StratifiedSampled, tasks: list[Floats], order: list[int], source: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the interval after each fiftieth of the documents."""
    waiting = [iter(source.permutation(task).tolist()) for task in tasks]
    every, counts, ends = max(1, len(order) // 50), [], []
    for number, stratum in enumerate(order, 1):
        group.add(stratum, next(waiting[stratum]))
        if number % every == 0 or number == len(order):
            interval = group.interval()
            counts.append(float(number))
            ends.append((interval.low, interval.high))
    return np.array(counts), np.array(ends)


def bonferroni_looks(tasks: list[Floats], source: np.random.Generator) -> tuple[Floats, Floats]:
    """Return one sequence for each task, with a share of the error, looked at after each fiftieth of every task."""
    total, level = sum(map(len, tasks)), 1 - (1 - LEVEL) / len(tasks)
    paths = [
        np.array([(0.0, 1.0), *Sampled(len(task), SHARE, level).after_each(source.permutation(task).tolist())])
        for task in tasks
    ]
    counts, ends = [], []
    for share in np.arange(1, 51) / 50:
        at = [math.floor(share * len(task) + ROUNDING) for task in tasks]
        counts.append(float(sum(at)))
        ends.append(np.mean([path[look] for path, look in zip(paths, at, strict=True)], axis=0))
    return np.minimum(np.array(counts), total), np.array(ends)


SHARES_EXPLAINED = (0.0, 0.2, 0.5, 0.8)
EARLIER_RUNS = (1, 2, 8)
SOLVED = 0.7


def chances(total: int, explained: float, source: np.random.Generator, mean: float = SOLVED) -> Floats:
    """Draw each document's chance to be solved, from a beta distribution: R² is the share of the answers' variance."""
    if explained == 0:
        return np.full(total, mean)
    size = 1 / explained - 1
    return source.beta(mean * size, (1 - mean) * size, total)


def anchors(draws: int) -> list[dict[str, Any]]:
    found = [anchored_cell(SIZES[-1], 0.0, "none", draws)]
    found += [anchored_cell(SIZES[-1], explained, "expected", draws) for explained in SHARES_EXPLAINED]
    return found + [
        anchored_cell(SIZES[-1], explained, str(runs), draws) for explained in SHARES_EXPLAINED for runs in EARLIER_RUNS
    ]


def anchored_cell(total: int, explained: float, runs: str, draws: int) -> dict[str, Any]:
    """Simulate a task with anchors: by no run, by the expected scores, or by a number of earlier runs."""
    source = np.random.default_rng(9)
    chance = chances(total, explained, source)
    scores = (source.random(total) < chance).astype(float)
    if runs in ("none", "expected"):
        shares = chance if runs == "expected" else np.zeros(total)
    else:
        earlier = [dict(enumerate((source.random(total) < chance).astype(float).tolist())) for _ in range(int(runs))]
        shares = np.array([*predicted(earlier, range(total)).values()])
    differences = scores - shares
    within = SHARE if runs == "none" else DIFFERENCE
    truth = float(differences.mean())
    stops, n = Stops(truth, total), np.arange(1.0, total + 1)
    for order in orders(differences, max(1, draws // 10), 10):
        stops.take(n, np.array(Sampled(total, within).after_each(order.tolist())))
    drawn = (differences - within.low) / (within.high - within.low)
    return {
        "documents": total,
        "explained": explained,
        "anchors": runs,
        "r_squared": round(1 - float(differences.var() / scores.var()), 3),
        "process_all_looks_hold": process_coverage(drawn, draws),
        "process_draws": draws,
        "sequence": stops.report(),
    }


PARTS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "single": single,
    "decided": decided,
    "methods": methods,
    "strata": strata,
    "anchors": anchors,
    "cells": cells,
}


def is_covered(report: dict[str, Any]) -> bool:
    """Return whether each sequence is right at all looks in 95 % of the draws, minus three errors of the simulation."""
    single_tasks = [*report.get("single", []), *report.get("anchors", [])]
    cells = [cell["sequence"] for cell in single_tasks]
    cells += [cell for cell in report.get("strata", []) if "all_looks_hold" in cell]
    found = [(cell["all_looks_hold"], cell["draws"]) for cell in cells]
    found += [(cell["holds"], cell["draws"]) for cell in report.get("cells", [])]
    found += [(cell["process_all_looks_hold"], cell["process_draws"]) for cell in single_tasks]
    return all(share >= LEVEL - 3 * math.sqrt(LEVEL * (1 - LEVEL) / draws) for share, draws in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--draws", type=int, default=2000, help="simulated runs of each cell")
    parser.add_argument("--only", choices=PARTS, help="one part")
    arguments = parser.parse_args()
    report: dict[str, Any] = {"benchmark": "sequences", "load_average": os.getloadavg()[0], "draws": arguments.draws}
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            start = time.process_time()
            report[name] = part(arguments.draws)
            report[f"{name}_cpu_s"] = round(time.process_time() - start, 1)
    report["is_within_bars"] = is_covered(report)
    print(json.dumps(report, indent=2))
    return 0 if report["is_within_bars"] else 1


if __name__ == "__main__":
    sys.exit(main())
