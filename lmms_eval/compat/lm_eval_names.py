"""Functions that task files of lm-eval import (``lm_eval.utils``, ``lm_eval.api``)."""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any

from lmms_eval.utils import names


def weighted_f1_score(items: Sequence[tuple[Any, Any]]) -> float:
    """Mean F1 of the labels, weighted by their frequency in the references, of (reference, prediction) pairs.

    Raises ``IndexError`` without pairs.
    """
    if not items:
        raise IndexError("weighted_f1_score: no pairs")
    golds, answers = (Counter(pair[side] for pair in items) for side in (0, 1))
    right = Counter(gold for gold, answer in items if gold == answer)
    values = (count * 2 * right[label] / (count + answers[label]) for label, count in golds.items())
    return math.fsum(values) / len(items)


def general_detokenize(text: str) -> str:
    """Join punctuation to the words before or after it."""
    for apart, joined in ((" n't", "n't"), (" )", ")"), ("( ", "("), ('" ', '"'), (' "', '"')):
        text = text.replace(apart, joined)
    return re.sub(r" (['.,])", r"\1", text)


def metric_max_over_ground_truths(
    metric_fn: Callable[[Any, Any], Any], prediction: Any, ground_truths: Iterable[Any]
) -> Any:
    """Return the greatest value over the reference answers. Raises ``ValueError`` without any."""
    return max(metric_fn(prediction, ground_truth) for ground_truth in ground_truths)


def ratio(s1: str | None, s2: str | None) -> int:
    """Similarity of two texts, 0 … 100: twice the matching characters over all (``fuzzywuzzy.fuzz.ratio``).

    Without a text, or with an empty one, it is 0; of equal texts it is 100.
    """
    if s1 is None or s2 is None:
        return 0
    if s1 == s2:
        return 100
    return round(100 * SequenceMatcher(None, s1, s2).ratio()) if s1 and s2 else 0


def handle_arg_string(arg: str) -> bool | int | float | str | None:
    """Convert the value of an argument: ``true``, ``false``, ``none`` and numbers; of a quoted text, what is quoted."""
    words: dict[str, bool | None] = {"true": True, "false": False, "none": None}
    if arg.lower() in words:
        return words[arg.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(arg)
    return arg[1:-1] if len(arg) > 1 and arg[0] == arg[-1] and arg[0] in "\"'" else arg


def simple_parse_args_string(args_string: str | None) -> dict[str, bool | int | float | str | None]:
    """Parse ``k=v,k=v``. Every comma separates; a part without ``=`` has an empty value."""
    parts = [part.partition("=") for part in (args_string or "").strip().split(",") if part]
    return {key: handle_arg_string(value) for key, _, value in parts}


def handle_non_serializable(o: Any) -> Any:
    """Return a value that JSON has: of a numpy scalar its number, of a set its items, of anything else its text."""
    if isinstance(o, set):
        return list(o)
    return o.item() if type(o).__module__ == "numpy" and hasattr(o, "item") else str(o)


def sanitize_model_name(model_name: str) -> str:
    """Replace characters of paths in the name of a model."""
    return names.sanitize_model_name(model_name, full_path=True)
