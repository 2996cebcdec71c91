"""Simulate the mean of a part of a stopped task: a section of ``benchmarks.sequences``."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.looks import SHARE, held, population, wilson
from lmms_eval.stats import Sampled
from lmms_eval.stats.cells import sampled_cells

CELL_SHARES, CELL_RULES, BEST_SEEN = (0.4, 0.1), ("whole task decided", "most striking look"), 0.9


def cells(draws: int) -> list[dict[str, Any]]:
    return [
        one_cell(total, share, rule, draws if total <= 1000 else max(1, draws // 4))
        for total in (500, 3000)
        for share in CELL_SHARES
        for rule in CELL_RULES
    ]


def one_cell(total: int, share: float, rule: str, draws: int) -> dict[str, Any]:
    source = np.random.default_rng(9)
    values, cell = population(total, 0.6), source.random(total) < share
    truth, seen = float(values[cell].mean()), np.arange(1, total + 1)
    found: dict[str, list[float]] = {name: [] for name in ("share", "ours", "plain", "ours width", "plain width")}
    for _ in range(draws):
        order = source.permutation(total)
        x, inside = values[order], cell[order]
        if rule == CELL_RULES[0]:
            ends = np.array(Sampled(total, SHARE).after_each(x.tolist()))
            is_out = ((ends[:, 0] > 0.5) | (ends[:, 1] < 0.5)) & (seen >= 10)
            stop = int(np.argmax(is_out)) if is_out.any() else total - 1
        else:
            count = np.maximum(1, np.cumsum(inside))
            far = np.abs(np.cumsum(x * inside) / count - truth) * np.sqrt(count)
            stop = int(np.argmax(np.where((count >= 10) & (seen <= BEST_SEEN * total), far, 0)))
        x, inside = x[: stop + 1], inside[: stop + 1]
        lows, highs = sampled_cells(x, x, np.where(inside, 0, -1), 1, total)
        n = float(max(1, inside.sum()))
        plain = wilson(np.array(x[inside].mean() if inside.any() else 0.5), np.array(n), total)
        found["share"].append((stop + 1) / total)
        for name, ends in (("ours", np.array([lows[0], highs[0]])), ("plain", plain)):
            found[name].append(bool(held(ends, truth)))
            found[f"{name} width"].append(float(ends[1] - ends[0]))
    return {
        "documents": total,
        "cell": share,
        "rule": rule,
        "draws": draws,
        "median_share": round(float(np.median(found["share"])), 3),
        "holds": round(float(np.mean(found["ours"])), 4),
        "single_look_holds": round(float(np.mean(found["plain"])), 4),
        "times_as_wide": round(float(np.median(np.array(found["ours width"]) / np.array(found["plain width"]))), 2),
    }
