"""Equality and containment of texts: the rules of two of the reference's predictors.

They are kept as coded (General-Bench specification §5.1), oddities included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmms_eval.errors import DataError


def reference_texts(reference: Any, where: str = "reference") -> list[str]:
    """The texts of a reference: one, or those of a list.

    Raises:
        DataError: it is neither text nor a list.
    """
    if isinstance(reference, str):
        return [reference]
    if isinstance(reference, list | tuple):
        return [str(one) for one in reference]
    raise DataError(f"{where}: {reference!r:.80} is neither text nor a list of texts")


def exact_match(prediction: Any, reference: Any) -> float:
    """1 if the stripped prediction equals a stripped reference, case included (language tasks).

    Raises:
        DataError: the reference is neither text nor a list.
    """
    answer = str(prediction).strip()
    return float(any(answer == text.strip() for text in reference_texts(reference)))


def audio_contains(prediction: str, reference: Any) -> float:
    """1 if the reference, as it stands, occurs in the stripped and lower-cased prediction (audio tasks)."""
    return float(str(reference) in prediction.strip().lower())


def video_contains(prediction: str, references: Sequence[str]) -> float:
    """1 if a stripped reference occurs in the stripped prediction (video tasks).

    Case matters unless ``yes`` or ``no`` occurs in the lower-cased reference.
    """
    answer = prediction.strip()
    for reference in map(str.strip, references):
        folded = reference.lower()
        wanted, text = (folded, answer.lower()) if "yes" in folded or "no" in folded else (reference, answer)
        if wanted in text:
            return 1.0
    return 0.0
