"""ChartQA: short answers about charts, numbers within five percent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.metrics.text import relaxed_accuracy


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Score the answer for all questions and for those of its origin; ``_fixed`` takes a reference of 0 as a number."""
    answer, gold = results[0], doc["answer"]
    score = relaxed_accuracy(answer, gold)
    origin = "relaxed_human_split" if doc["type"] == "human_test" else "relaxed_augmented_split"
    fixed = relaxed_accuracy(answer, gold, is_zero_a_number=True)
    return {"relaxed_overall": score, "relaxed_overall_fixed": fixed, origin: score}
