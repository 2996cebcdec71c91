"""Word errors of transcripts."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

from lmms_eval.errors import UsageError
from lmms_eval.metrics.text import levenshtein_distance


def without_punctuation(text: str) -> str:
    """Drop empty tokens, and those that consist of characters of the Unicode category P; tokens end at blanks."""
    tokens = text.split(" ")
    return " ".join(token for token in tokens if any(unicodedata.category(one)[0] != "P" for one in token))


def wer(references: Sequence[Any], predictions: Sequence[Any]) -> tuple[int, int]:
    """(edits, words of the reference) for the aggregation of that name, against the nearest of several references.

    Words are compared in lower case; those of punctuation alone do not count.

    Raises:
        UsageError: no reference or no prediction.
    """
    if not references or not predictions:
        raise UsageError("metric 'wer': needs at least one reference and one prediction")
    transcript = _words(predictions[0])
    wanted = [_words(reference) for reference in references]
    pairs = [(levenshtein_distance(words, transcript), len(words)) for words in wanted]
    return min(pairs, key=lambda pair: pair[0] / max(1, pair[1]))


def _words(text: Any) -> list[str]:
    return without_punctuation(str(text)).lower().split()
