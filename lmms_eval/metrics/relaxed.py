"""Relaxed accuracy of answers about charts (Methani et al. 2020, Masry et al. 2022)."""

from __future__ import annotations

import math

_TOLERANCE = 0.05


def relaxed_accuracy(answer: str, reference: str, is_zero_a_number: bool = False) -> float:
    """Return 1.0 for a number within five percent of the reference, or for the same text in any case, else 0.0.

    Args:
        answer: the answer.
        reference: the reference answer; numbers may end in a percent sign.
        is_zero_a_number: compare a reference of 0 as a number; the benchmark's rule compares it as a text.
    """
    given, wanted = _number(answer), _number(reference)
    if given is not None and wanted is not None and (wanted or is_zero_a_number):
        error = abs(given - wanted) / abs(wanted) if wanted else abs(given)
        return float(error <= (_TOLERANCE if wanted else 0.0)) if not math.isnan(error) else 0.0
    return float(answer.lower() == reference.lower())


def _number(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None
