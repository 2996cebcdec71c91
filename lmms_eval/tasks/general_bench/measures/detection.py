"""COCO's average precision of objects, and the area under a precision-recall curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_eval.tasks.general_bench.measures.contract import State, mean
from lmms_eval.tasks.general_bench.readers.regions import Marked

COCO_SIGMAS = (
    0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072, 0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089,
    0.089,
)  # fmt: skip
"""Spreads of the 17 key points of COCO's people, as shares of a body's size."""
UNNAMED = ""
"""Class of objects without labels."""


Overlaps = Callable[[int, NDArray[Any]], NDArray[Any]]
"""Maps the number of a prediction and the numbers of reference objects to their overlaps."""


def match(
    scores: NDArray[Any], predictions: NDArray[Any], truth: NDArray[Any], overlaps: Overlaps, least: float
) -> State:
    """Match predictions and reference objects, given by their numbers, by COCO's greedy rule.

    Predictions come in the order of falling scores (equal scores in the order given). Each takes the free reference
    object with the largest overlap (the last of equals) if that overlap is at least ``least``. The state has the number
    ``truth`` of the reference objects, the ``scores`` of the predictions, best first, and their ``hits``: 1 if the
    prediction matched a reference object, else 0.
    """
    order = predictions[np.argsort(-scores[predictions], kind="stable")]
    free = np.ones(len(truth), dtype=bool)
    hits: list[int] = []
    for prediction in order:
        hit = False
        if free.any():
            row = np.where(free, overlaps(int(prediction), truth), -1.0)
            best = len(row) - 1 - int(row[::-1].argmax())
            hit = bool(row[best] >= min(least, 1 - 1e-10))
            free[best] &= not hit
        hits.append(int(hit))
    return {"truth": len(truth), "scores": [float(score) for score in scores[order]], "hits": hits}


def match_classes(
    predicted: Marked, truth: int, truth_labels: Sequence[str] | None, overlaps: Overlaps, least: float
) -> State:
    """Return the state of an item with ``truth`` reference objects: that of ``match`` by label.

    If the reference has no labels, those of the predictions are ignored. Predictions without labels are matched with
    all reference objects and are listed under ``UNNAMED`` (``mean_average_precision`` uses them if the whole task has
    only one class).
    """
    named = [UNNAMED] * truth if truth_labels is None else list(truth_labels)
    count = len(predicted.scores)
    given = predicted.labels
    if given is None or (truth and truth_labels is None):
        found = match(predicted.scores, np.arange(count), np.arange(truth), overlaps, least)
        totals = {label: {"truth": named.count(label), "scores": [], "hits": []} for label in dict.fromkeys(named)}
        totals[UNNAMED] = {**found, "truth": named.count(UNNAMED)}
    else:
        totals = {}
        places, numbers = _places(given), _places(named)
        for label in {**numbers, **places}:
            some, wanted = (np.array(table.get(label, []), dtype=np.int64) for table in (places, numbers))
            totals[label] = match(predicted.scores, some, wanted, overlaps, least)
    return {label: hits for label, hits in totals.items() if hits["truth"] or hits["hits"]}


def _places(labels: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        found.setdefault(label, []).append(place)
    return found


def mean_average_precision(states: Sequence[State]) -> float:
    """Return the mean AP by COCO's rule over the classes of the reference, in percent.

    If the reference has one class (or no labels), predictions without (or with any) labels count for that class.
    Without reference objects the value is 100 if nothing was predicted, else 0.
    """
    classes = sorted({label for state in states for label, hits in state.items() if hits["truth"]})
    if not classes:
        return 0.0 if any(states) else 100.0
    values = []
    for wanted in classes:
        sole = len(classes) == 1
        taken = [
            hits
            for state in states
            for label, hits in state.items()
            if (label == wanted != UNNAMED)
            or (label == wanted and hits["truth"])
            or (sole and UNNAMED in (label, wanted))
        ]
        scores = np.concatenate([np.array(hits["scores"], dtype=np.float64) for hits in taken])
        matched = np.concatenate([np.array(hits["hits"], dtype=bool) for hits in taken])
        values.append(interpolated_precision(scores, matched, sum(hits["truth"] for hits in taken)))
    return 100 * mean(values)


def interpolated_precision(scores: NDArray[Any], hits: NDArray[Any], truth: int) -> float:
    """Return COCO's average precision: the mean, over recalls 0, 0.01, ..., 1, of the best precision at that recall or
    above.

    ``hits`` are the predictions that matched one of the ``truth`` reference objects, at least 1.
    """
    right = np.cumsum(hits[np.argsort(-scores, kind="stable")].astype(np.float64))
    return interpolated_area(right / truth, right / np.arange(1, len(right) + 1))


def interpolated_area(recalls: NDArray[Any], precisions: NDArray[Any]) -> float:
    """Return the mean, over the recalls 0, 0.01, ... 1, of the best precision at that recall or above (COCO)."""
    best = np.append(np.maximum.accumulate(precisions[::-1])[::-1], 0.0)
    return float(best[np.searchsorted(recalls, np.linspace(0, 1, 101), side="left")].mean())


def average_precision(scores: NDArray[Any], positive: NDArray[Any], negative: NDArray[Any]) -> float:
    """Return the area under the precision-recall curve as a sum of steps: precision times gain in recall, at each
    score.

    ``positive`` and ``negative`` are numbers (or weights) of the true and of the other cases with each of the scores,
    which differ and are in any order. The area is a fraction; 0 without true cases.
    """
    order = np.argsort(-scores, kind="stable")
    right, wrong = np.cumsum(positive[order]), np.cumsum(negative[order])
    total = float(right[-1]) if len(right) else 0.0
    if total == 0:
        return 0.0
    precision = right / np.maximum(right + wrong, 1)
    return float((precision * positive[order]).sum() / total)


def key_point_similarity(
    predicted: NDArray[Any], truth: NDArray[Any], areas: NDArray[Any], sigmas: Sequence[float]
) -> NDArray[Any]:
    """Return COCO's object key point similarity of a body with reference bodies: the mean over their labelled points.

    Args:
        predicted: Shape (points, 3).
        truth: Shape (bodies, points, 3), with at least one labelled point a body.
        areas: Of the reference bodies.
        sigmas: Spread of each point as a share of the body's size.
    """
    squares = ((truth[:, :, :2] - predicted[None, :, :2]) ** 2).sum(axis=2)
    spread = (2 * np.asarray(sigmas)) ** 2 * (areas[:, None] + np.spacing(1)) * 2
    labelled = truth[:, :, 2] > 0
    return np.asarray((np.exp(-squares / spread) * labelled).sum(axis=1) / labelled.sum(axis=1))
