"""Verdicts over a family of differences: corrected p-values, what could be detected, what it would take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lmms_eval.compare.differences import Found
from lmms_eval.compare.options import CompareOptions
from lmms_eval.compare.verdicts import Difference, Verdict

POWER = 0.8
_ROUNDING = 1e-12


def judge_family(found: Sequence[Found], options: CompareOptions) -> list[Difference]:
    """Correct the p-values of a family and pass a verdict on each of its differences.

    Verdicts follow the p-values adjusted by Holm. A difference whose equivalence is shown is ``equivalent`` even where
    it is not 0: the margin says that so much does not matter. Differences that can be detected, and documents that
    are needed, are those at ``alpha`` divided by the number of tests, which is enough whatever the others show.
    """
    from lmms_eval.stats.multiplicity import benjamini_hochberg, holm

    ps = [one.row.p for one in found]
    equivalences = holm([one.equivalence_p for one in found])
    alpha = options.alpha / max(1, sum(p is not None for p in ps))
    judged = []
    for one, p_holm, p_bh, equivalence in zip(found, holm(ps), benjamini_hochberg(ps), equivalences, strict=True):
        row = replace(one.row, p_holm=p_holm, p_bh=p_bh)
        verdict = _verdict(row, equivalence, options.alpha)
        is_real = p_holm is not None and p_holm <= options.alpha
        if verdict == "equivalent" and is_real:
            row = replace(row, notes=(*row.notes, "there is a difference, but within the margin"))
        judged.append(
            replace(
                row,
                verdict=verdict,
                detectable=_detectable(one, alpha),
                needed=_needed(one, alpha, options.margin) if verdict == "cannot tell" else None,
            )
        )
    return judged


def _verdict(row: Difference, equivalence: float | None, alpha: float) -> Verdict:
    if equivalence is not None and equivalence <= alpha:
        return "equivalent"
    if row.p_holm is None or row.p_holm > alpha or row.value == 0:
        return "cannot tell"
    return "better" if (row.value > 0) == row.higher_is_better else "worse"


def _detectable(found: Found, alpha: float) -> float | None:
    """Compute the smallest difference that is found; ``None`` where no score could differ by so much."""
    from lmms_eval.stats.power import detectable

    if not _is_positive(found.spread) or found.row.pairing.paired < 2:
        return None
    smallest = detectable(found.spread, found.row.pairing.paired, alpha, POWER)
    return smallest if found.row.unit != "percent" or smallest <= 1 else None


def _needed(found: Found, alpha: float, margin: float | None) -> int | None:
    """Documents that would show a difference of the size seen, or settle the margin where it is smaller."""
    from lmms_eval.stats.power import documents_needed

    size = abs(found.row.value)
    if not _is_positive(found.spread) or (margin is None and size <= _ROUNDING * found.spread):
        return None
    within = margin if margin is not None and size < margin else None
    return documents_needed(found.spread, size, alpha, POWER, within)


def _is_positive(number: float) -> bool:
    return 0 < number < math.inf
