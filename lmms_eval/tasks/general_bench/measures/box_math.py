"""Overlaps of boxes (``x, y, width, height`` unless stated otherwise), of tracks and of tubes, as fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray


SEPARATOR = "<p>"
"""Separator of the labels of a text."""


class Counts(Struct, frozen=True):
    """True positives, false positives and false negatives."""

    tp: int
    fp: int
    fn: int

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)


def token_f1(prediction: str, references: Sequence[str]) -> float:
    """Return the best F1 with a reference over unchanged white-space tokens, or 0 without references.

    The overlap counts *distinct* common tokens, the lengths count repeated tokens.
    """
    tokens = prediction.split()
    distinct = set(tokens)
    best = 0.0
    for wanted in map(str.split, references):
        if overlap := len(distinct.intersection(wanted)):
            precision, recall = overlap / len(tokens), overlap / len(wanted)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


def labels(text: str) -> frozenset[str]:
    """Return the labels between ``<p>`` of the stripped text, unchanged. An empty text has one empty label."""
    return frozenset(text.strip().split(SEPARATOR))


def micro_f1_counts(prediction: str, reference: str) -> Counts:
    """Count how the sets of labels of two texts agree."""
    predicted, wanted = labels(prediction), labels(reference)
    common = len(predicted & wanted)
    return Counts(common, len(predicted) - common, len(wanted) - common)


def micro_f1(counts: Counts) -> float:
    """Return the F1 of summed counts, 0 to 1. Without true positives it is 0."""
    if not counts.tp:
        return 0.0
    precision = counts.tp / (counts.tp + counts.fp)
    recall = counts.tp / (counts.tp + counts.fn)
    return 2 * precision * recall / (precision + recall)


def reference_texts(reference: Any, where: str = "reference") -> list[str]:
    """Return the texts of a reference: one text, or those of a list.

    Raises:
        DataError: it is neither text nor a list.
    """
    if isinstance(reference, str):
        return [reference]
    if isinstance(reference, list | tuple):
        return [str(one) for one in reference]
    raise DataError(f"{where}: {reference!r:.80} is neither text nor a list of texts")


def exact_match(prediction: Any, reference: Any) -> float:
    """Return 1 if the stripped prediction equals a stripped reference, case included (language tasks).

    Raises:
        DataError: the reference is neither text nor a list.
    """
    answer = str(prediction).strip()
    return float(any(answer == text.strip() for text in reference_texts(reference)))


def audio_contains(prediction: str, reference: Any) -> float:
    """Return 1 if the unchanged reference occurs in the stripped and lower-cased prediction (audio tasks)."""
    return float(str(reference) in prediction.strip().lower())


def video_contains(prediction: str, references: Sequence[str]) -> float:
    """Return 1 if a stripped reference occurs in the stripped prediction (video tasks).

    Case matters unless ``yes`` or ``no`` occurs in the lower-cased reference.
    """
    answer = prediction.strip()
    for reference in map(str.strip, references):
        folded = reference.lower()
        wanted, text = (folded, answer.lower()) if "yes" in folded or "no" in folded else (reference, answer)
        if wanted in text:
            return 1.0
    return 0.0


SUCCESS_THRESHOLDS = tuple(step / 20 for step in range(21))
"""Overlaps 0, 0.05, ..., 1 of the success curve."""
HIT = 0.5
"""Least IoU that F counts as a hit."""


def paired_iou(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Return the IoU of boxes, shapes (..., 4), which broadcast. It is 0 if the union is empty."""
    import numpy as np

    left = np.maximum(one[..., :2], other[..., :2])
    right = np.minimum(one[..., :2] + one[..., 2:], other[..., :2] + other[..., 2:])
    first, second = one[..., 2] * one[..., 3], other[..., 2] * other[..., 3]
    shared = np.minimum(np.prod(np.maximum(right - left, 0.0), axis=-1), np.minimum(first, second))  # never by rounding
    union = first + second - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1.0), 0.0)


def success_area(overlaps: NDArray[Any]) -> float:
    """Return the area under the success curve: the mean over 21 thresholds of the share of frames with an IoU above it.

    By that definition (of the OTB benchmark) perfect boxes reach 20/21, since no IoU is above 1.
    """
    return math.fsum(float((overlaps > level).mean()) for level in SUCCESS_THRESHOLDS) / len(SUCCESS_THRESHOLDS)


def tube_iou(overlaps: NDArray[Any], predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the vIoU of a video: the sum of IoU over frames with both boxes, divided by the number of frames with at
    least one box. Without boxes it is 0.

    Args:
        overlaps: IoU of each frame.
        predicted: True for frames with a predicted box.
        truth: True for frames with a reference box.
    """
    either = int((predicted | truth).sum())
    return math.fsum(overlaps[predicted & truth]) / either if either else 0.0


def jaccard(predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return J of a track: the mean IoU over its frames.

    Args:
        predicted: A box for each frame, shape (frames, 4).
        truth: Boxes of the same frames.

    Raises:
        DataError: the numbers of frames differ or are zero.
    """
    if len(predicted) != len(truth) or not len(truth):
        raise DataError(f"J needs a box for each frame on both sides, not {len(predicted)} and {len(truth)}")
    return math.fsum(paired_iou(predicted, truth)) / len(truth)


def box_f1(predicted: NDArray[Any], truth: NDArray[Any], threshold: float = HIT) -> float:
    """Return F of a track as the authors compute it. It is 1 if both sides are empty.

    Each predicted box is compared with the true box that it overlaps most (the first of equals), of any frame, and hits
    it if the IoU reaches the threshold. A true box may be hit several times, and is missed if it is never hit.

    Args:
        predicted: Boxes, shape (n, 4).
        truth: Boxes, shape (m, 4).
        threshold: Least IoU of a hit.
    """
    if not len(predicted) and not len(truth):
        return 1.0
    found: set[int] = set()
    hits = 0
    for box in predicted:
        overlaps = paired_iou(box, truth)
        best = int(overlaps.argmax()) if len(truth) else -1
        if best >= 0 and overlaps[best] >= threshold:
            hits += 1
            found.add(best)
    return 2 * hits / (hits + len(predicted) + len(truth) - len(found)) if hits else 0.0
