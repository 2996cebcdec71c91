"""Word errors of transcripts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from typing import Any

from lmms_eval.errors import UsageError
from lmms_eval.metrics.text import levenshtein_distance


def without_punctuation(text: str) -> str:
    """Drop empty tokens, and those that consist of characters of the Unicode category P; tokens end at blanks."""
    tokens = text.split(" ")
    return " ".join(token for token in tokens if any(unicodedata.category(one)[0] != "P" for one in token))


def remove_sp(text: str, language: str, *, puncs: str = "!,.?;:", no_space_languages: Collection[str] = ()) -> str:
    """Remove special tokens ``<|…|>`` and superfluous white space from a transcript.

    Args:
        text: the transcript.
        language: its language.
        puncs: marks before which one blank is dropped; stands in a regular expression's class as it is.
        no_space_languages: languages whose texts lose all white space.
    """
    text = re.sub(r"\s+", " ", "\n".join(map(_without_tags, text.split("\n"))))
    text = re.sub(f" ?([{puncs}])", r"\1", text).lstrip(" ")
    return re.sub(r"\s+", "", text) if language in no_space_languages else text


def _without_tags(line: str) -> str:
    """Replace each ``<|…|>`` of a line by a blank, in linear time."""
    pieces, at = [], 0
    while (start := line.find("<|", at)) >= 0 and (end := line.find("|>", start + 2)) >= 0:
        pieces.append(line[at:start])
        at = end + 2
    return " ".join([*pieces, line[at:]])


def wer(references: Sequence[Any], predictions: Sequence[Any]) -> tuple[int, int]:
    """(edits, words of the reference) for the aggregation of that name, against the nearest of several references.

    Words are compared in lower case; those of punctuation alone do not count.

    Raises:
        UsageError: no reference or no prediction.
    """
    if not references or not predictions:
        raise UsageError("metric 'wer': needs at least one reference and one prediction")
    transcript = words(predictions[0])
    wanted = [words(reference) for reference in references]
    pairs = [(levenshtein_distance(one, transcript), len(one)) for one in wanted]
    return min(pairs, key=lambda pair: pair[0] / max(1, pair[1]))


def words(text: Any) -> list[str]:
    """Return the words of a transcript in lower case, without those of punctuation alone."""
    return without_punctuation(str(text)).lower().split()
