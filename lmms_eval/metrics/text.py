"""Per-document metrics of texts (harness specification §2.5, §2.6).

They are called as ``fn(references=[gold, …], predictions=[answer], **arguments of the metric_list item)``.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Hashable, Sequence
from typing import Any

from lmms_eval.errors import NothingToCompareError, UsageError

_TOLERANCE = 0.05


def relaxed_accuracy(answer: str, reference: str, is_zero_a_number: bool = False) -> float:
    """Return 1.0 for a number within five percent of the reference, or for the same text in any case, else 0.0.

    Numbers may end in a percent sign. The benchmark's rule compares a reference of 0 as a text, not as a number.
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


_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_NO_DIGITS = str.maketrans("", "", string.digits)


def levenshtein_distance(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the least number of insertions, deletions and substitutions that turn one sequence into the other."""
    from rapidfuzz.distance import Levenshtein

    return int(Levenshtein.distance(first, second))


def _only_text(prediction: Any) -> str:
    while isinstance(prediction, list | tuple):
        prediction = prediction[0] if prediction else ""
    return str(prediction)


def anls(references: Sequence[str], predictions: Sequence[Any], thresh_hold: float = 0.5) -> dict[str, float]:
    """Average normalised Levenshtein similarity of the first prediction to the nearest reference (Biten et al. 2019).

    Case and runs of white space are ignored. The value is 1 − distance / length of the longer text, or 0 below
    ``thresh_hold``. Lengths are measured in upper case, where a character may become two. Raises
    ``NothingToCompareError`` without a reference or a prediction.
    """
    if not references or not predictions:
        raise NothingToCompareError("metric 'anls': needs at least one reference and one prediction")
    prediction = _only_text(predictions[0])
    answer = " ".join(prediction.lower().split())
    nearest = 1.0
    for reference in references:
        longest = max(len(reference.upper()), len(prediction.upper()))
        distance = levenshtein_distance(" ".join(reference.lower().split()), answer)
        nearest = min(nearest, distance / longest if longest else 0.0)
    similarity = 1.0 - nearest
    return {"anls": similarity if similarity >= thresh_hold else 0.0}


def exact_match(
    references: Sequence[Any],
    predictions: Sequence[Any],
    *,
    regexes_to_ignore: Sequence[str] | None = None,
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
) -> dict[str, float]:
    """Share of equal pairs, after the parts to ignore are removed from both sides in the order of the arguments.

    Punctuation and digits are the ASCII ones. Raises ``UsageError`` if the lists differ in length or are empty, or if a
    regular expression is broken.
    """
    if len(references) != len(predictions) or not references:
        raise UsageError(f"metric 'exact_match': {len(references)} references for {len(predictions)} predictions")
    try:
        patterns = [re.compile(pattern) for pattern in regexes_to_ignore or []]
    except re.error as error:
        raise UsageError(f"metric 'exact_match': regexes_to_ignore: {error}") from error

    def normalised(value: Any) -> str:
        text = str(value)
        for pattern in patterns:
            text = pattern.sub("", text)
        text = text.lower() if ignore_case else text
        text = text.translate(_NO_PUNCTUATION) if ignore_punctuation else text
        return text.translate(_NO_DIGITS) if ignore_numbers else text

    equal = sum(normalised(r) == normalised(p) for r, p in zip(references, predictions, strict=True))
    return {"exact_match": equal / len(references)}


def text_pair(references: Sequence[Any], predictions: Sequence[Any]) -> tuple[str | list[str], str]:
    """(reference or list of references, prediction) for the corpus scores ``bleu``, ``chrf`` and ``ter``.

    Raises ``UsageError`` without a reference or a prediction.
    """
    if not references or not predictions:
        raise UsageError("text metric: needs at least one reference and one prediction")
    texts = [str(text) for text in references]
    return (texts[0] if len(texts) == 1 else texts), _only_text(predictions[0])


def label_pair(references: Sequence[Any], predictions: Sequence[Any]) -> tuple[Any, Any]:
    """(gold, prediction) for ``f1`` and ``mcc``; texts that are whole numbers become numbers.

    Raises ``UsageError`` without a reference or a prediction.
    """
    if not references or not predictions:
        raise UsageError("label metric: needs at least one reference and one prediction")
    return _label(references[0]), _label(predictions[0])


def _label(value: Any) -> Any:
    text = value.strip() if isinstance(value, str) else value
    return int(text) if isinstance(text, str) and re.fullmatch(r"[+-]?[0-9]{1,18}", text) else text


def bypass(references: Sequence[Any] = (), predictions: Sequence[Any] = ()) -> None:
    """Score nothing (``--predict_only``)."""
