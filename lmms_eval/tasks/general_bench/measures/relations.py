"""Relation triplets: recall of the reference's relations among the best predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.mask_math import paired_iou
from lmms_eval.tasks.general_bench.readers.regions import MAX_LABEL_LENGTH, fold_label, four, objects
from lmms_eval.tasks.general_bench.readers.sides import Side, brief, prediction_of, reference_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

BEST = 50
MATCH = 0.5
MAX_TRIPLETS = 10_000


Words = tuple[str, str, str]
"""Folded subject, predicate and object."""
Triplet = tuple[Words, "NDArray[Any] | None"]
"""Words, and the boxes of subject and object, shape (2, 4), ``x, y, width, height``, or ``None``."""


def triplets(value: object, side: Side, most: int | None = None) -> list[Triplet]:
    """Read relations, best first.

    Args:
        value: list of ``[subject, predicate, object]``, each with the boxes of subject and object (``[x, y, w, h]``)
            behind if it has them.
        side: Prediction or reference.
        most: Largest number of them to read.

    Raises:
        DataError: anything else; ``UnreadableAnswer`` for a prediction.
    """
    import numpy as np

    found: list[Triplet] = []
    for place, entry in enumerate(objects(value, side, MAX_TRIPLETS)[:most]):
        words = entry[:3] if isinstance(entry, list) and len(entry) in (3, 5) else []
        if not words or not all(isinstance(word, str) for word in words):
            raise side.refuse(f"has {brief(entry)} as relation {place}, not [subject, predicate, object]")
        if any(len(word) > MAX_LABEL_LENGTH for word in words):
            raise side.refuse(f"has words of more than {MAX_LABEL_LENGTH} characters in relation {place}")
        subject, predicate, thing = map(fold_label, words)
        boxes = [four(box, f"box of relation {place}", side) for box in entry[3:]]
        found.append(((subject, predicate, thing), np.array(boxes) if boxes else None))
    return found


def recall(predicted: Sequence[Triplet], truth: Sequence[Triplet]) -> float:
    """Return the share of the reference's relations in a prediction: the same words and, if both have boxes, an IoU of
    at least 0.5 for both.

    Args:
        predicted: Those that count.
        truth: At least one.
    """
    named: dict[Words, list[NDArray[Any] | None]] = {}
    for words, boxes in predicted:
        named.setdefault(words, []).append(boxes)
    hits = sum(
        any(
            boxes is None or wanted is None or bool((paired_iou(boxes, wanted) >= MATCH).all())
            for boxes in named.get(words, ())
        )
        for words, wanted in truth
    )
    return hits / len(truth)


def _state(prediction: Any, item: Item, _: Context) -> State:
    truth = triplets(item.reference, reference_of(item))
    if not truth:
        raise reference_of(item).refuse("has no relation, so that its recall is undefined")
    return 100 * recall(triplets(prediction, prediction_of(item), BEST), truth)


MEASURES: tuple[Measure, ...] = (
    Measure("recall@50", "triplets", _state, mean, is_mean=True, checked="cases by hand; mean over pictures"),
)
