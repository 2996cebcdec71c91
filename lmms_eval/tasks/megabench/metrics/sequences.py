"""Comparisons of sets and lists."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from lmms_eval.tasks.megabench.conversions.containers import str_to_list, str_to_set, to_frozen_set, to_set
from lmms_eval.tasks.megabench.conversions.geometry import is_number
from lmms_eval.tasks.megabench.metrics.values import text_of

_IGNORED_IN_TUPLES = str.maketrans("", "", " -\n\t_.")


Reader = Callable[[Any], set[Any] | str]
"""``to_set``, or ``to_frozen_set`` in the repaired variants: there the texts of nested lists are sets of tuples."""


def set_equality(response: Any, truth: Any, read: Reader = to_set) -> float:
    """Equality of two sets. The texts of nested lists are empty sets, hence equal to each other."""
    return float(read(response) == read(truth))


def set_equality_case_insensitive(response: Any, truth: Any, read: Reader = to_set) -> float:
    """``set_equality`` of upper-cased items; every item must be a text."""
    sides = read(response), read(truth)
    if not all(isinstance(item, str) for side in sides for item in side):
        return 0.0
    predicted, true = ({item.upper() for item in side} for side in sides)
    return float(predicted == true)


def str_set_equality_comma(response: Any, truth: Any) -> float:
    """Equality of two sets in texts, text items lower-cased."""
    predicted, true = ({_lower(item) for item in str_to_set(side)} for side in (response, truth))
    return float(predicted == true)


def str_set_equality_comma_fixed(response: Any, truth: Any) -> float:
    """``str_set_equality_comma`` where the texts of nested lists are sets of tuples."""
    texts = (side if isinstance(side, str) else "" for side in (response, truth))
    predicted, true = ({_lower(item) for item in to_frozen_set(side)} for side in texts)
    return float(predicted == true)


def str_set_equality_line_break(response: Any, truth: Any) -> float:
    """Equality of the sets of lower-cased lines; a backslash followed by ``n`` is a line break too."""
    predicted, true = (set(text_of(side).replace("\\n", "\n").lower().split("\n")) for side in (response, truth))
    return float(predicted == true)


def jaccard_index(response: Any, truth: Any, read: Reader = to_set) -> float:
    """Intersection over union of two sets, 1 if both are empty, 0 for a missing response."""
    return 0.0 if response is None else _jaccard(set(read(response)), set(read(truth)))


def jaccard_index_case_insensitive(response: Any, truth: Any, read: Reader = to_set) -> float:
    """Jaccard index of lower-cased texts, or of tuples of texts cleaned of blanks, hyphens, underscores and dots."""
    if response is None:
        return 0.0
    predicted, true = read(response), read(truth)
    if not true:
        raise ValueError("the truth is an empty set")
    if all(isinstance(item, str) for item in true):
        return _jaccard({str(item).lower() for item in predicted}, {item.lower() for item in true})
    if not all(isinstance(item, tuple) for item in true):
        return 0.0
    cleaned, reference = _clean_tuples(predicted), _clean_tuples(true)
    return 0.0 if cleaned is None or reference is None else _jaccard(cleaned, reference)


def set_precision(response: Any, truth: Any) -> float:
    """Share of the predicted items that are correct; 1 for an empty prediction, 0 for a missing one."""
    if response is None:
        return 0.0
    predicted, true = set(to_set(response)), set(to_set(truth))
    return len(predicted & true) / len(predicted) if predicted else 1.0


def set_precision_fixed(response: Any, truth: Any) -> float:
    """``set_precision``, but an empty prediction is right only if nothing is to be predicted.

    The texts of nested lists are sets of tuples.
    """
    if response is None:
        return 0.0
    predicted, true = set(to_frozen_set(response)), set(to_frozen_set(truth))
    return len(predicted & true) / len(predicted) if predicted else float(not true)


set_equality_fixed, set_equality_case_insensitive_fixed, jaccard_index_fixed, jaccard_index_case_insensitive_fixed = (
    functools.partial(metric, read=to_frozen_set)
    for metric in (set_equality, set_equality_case_insensitive, jaccard_index, jaccard_index_case_insensitive)
)


def chess_move_list_jaccard_index(response: Any, truth: Any) -> float:
    """Jaccard index of two sets of chess moves without a last ``!`` and a last ``#``."""
    if response is None:
        return 0.0
    predicted, true = (
        {text_of(move).removesuffix("!").removesuffix("#") for move in str_to_set(side)} for side in (response, truth)
    )
    return _jaccard(predicted, true)


def sequence_equality(response: Any, truth: Any) -> float:
    """Equality of two lists, order and types included."""
    response = response if isinstance(response, str) else str(response)
    return float(str_to_list(response) == str_to_list(truth))


def sequence_equality_case_insensitive(response: Any, truth: Any) -> float:
    """Equality of two lists of lower-cased texts; the truth may hold nothing else."""
    response = response if isinstance(response, str) else str(response)
    predicted = [item.lower() if isinstance(item, str) else str(item) for item in str_to_list(response)]
    return float(predicted == [text_of(item).lower() for item in str_to_list(truth)])


def sequence_accuracy_case_insensitive(response: Any, truth: Any) -> float:
    """Share of the positions with equal items (texts lower-cased); 0 if the lengths differ."""
    predicted, true = str_to_list(response), str_to_list(truth)
    if len(predicted) != len(true):
        return 0.0
    if not true:
        raise ValueError("both lists are empty")
    equal = 0
    for first, second in zip(predicted, true, strict=True):
        if isinstance(second, str):
            equal += text_of(first).lower() == second.lower()
        else:
            equal += is_number(first) and is_number(second) and first == second
    return equal / len(true)


def longest_common_list_prefix_ratio(response: Any, truth: Any) -> float:
    """Length of the common prefix over the length of the truth."""
    predicted, true = str_to_list(response), str_to_list(truth)
    if not true:
        raise ValueError("the truth is an empty list")
    length = 0
    for first, second in zip(predicted, true, strict=False):
        if first != second:
            break
        length += 1
    return length / len(true)


def _jaccard(first: set[Any], second: set[Any]) -> float:
    union = first | second
    return len(first & second) / len(union) if union else 1.0


def _clean_tuples(items: Iterable[Any]) -> set[tuple[str, ...]] | None:
    """Each item as a tuple of cleaned texts, a text as its characters; ``None`` if any item is anything else."""
    cleaned = set()
    for item in items:
        if not isinstance(item, Iterable) or not all(isinstance(member, str) for member in item):
            return None
        cleaned.add(tuple(member.lower().translate(_IGNORED_IN_TUPLES) for member in item))
    return cleaned


def _lower(item: Any) -> Any:
    return item.lower() if isinstance(item, str) else item
