"""Panoptic quality: segments matched at an overlap above one half."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from lmms_eval.tasks.general_bench.measures.contract import State, mean
from lmms_eval.tasks.general_bench.measures.detection import UNNAMED
from lmms_eval.tasks.general_bench.measures.mask_math import shared_areas
from lmms_eval.tasks.general_bench.readers.instances import Instances

MATCH = 0.5


@dataclass(slots=True)
class SegmentCounts:
    """Counts of one class."""

    overlap: float = 0.0
    """Sum of IoU over matched segments."""
    matched: int = 0
    false: int = 0
    missed: int = 0


@dataclass(frozen=True, slots=True)
class _Pair:
    overlap: float
    predicted: int
    truth: int


@dataclass(frozen=True, slots=True)
class _Classes:
    """Classes of the segments of both sides."""

    predicted: list[str]
    truth: list[str]


def segment_counts(predicted: Instances, truth: Instances) -> State:
    """The state of an item: ``[sum of IoU, matched, false, missed]`` by class.

    Segments match if they are of one class (or the reference has no classes) and their IoU is above 0.5, each once,
    the largest overlap first. What the reference leaves open counts for no union, and a segment that lies there by
    more than half is not false.
    """
    given = _labels(predicted, predicted.marked.labels if truth.marked.labels or not truth.regions else None)
    wanted = _labels(truth, truth.marked.labels)
    ignored = [int(shared_areas(region, [truth.void])[0]) if truth.void else 0 for region in predicted.regions]
    pairs = _pairs(predicted, truth, ignored, _Classes(given, wanted))
    counts = {label: SegmentCounts() for label in (*wanted, *given)}
    reached: set[int] = set()
    used: set[int] = set()
    for pair in sorted(pairs, key=lambda one: -one.overlap):
        if pair.predicted in used or pair.truth in reached:
            continue
        used.add(pair.predicted)
        reached.add(pair.truth)
        counts[wanted[pair.truth]].matched += 1
        counts[wanted[pair.truth]].overlap += pair.overlap
    for number, label in enumerate(wanted):
        counts[label].missed += number not in reached
    for number, label in enumerate(given):
        open_ground = number < len(ignored) and 2 * ignored[number] > predicted.regions[number].area
        counts[label].false += number not in used and not open_ground
    return {label: list(astuple(one)) for label, one in counts.items()}


def panoptic_quality(states: Sequence[State]) -> float:
    """Mean over the reference's classes of (sum of IoU) / (matched + false / 2 + missed / 2), in percent.

    Without any segment in the reference: 100 if nothing was predicted, else 0.
    """
    parts: dict[str, list[list[float]]] = {}
    for state in states:
        for label, counts in state.items():
            parts.setdefault(label, []).append(counts)
    values = []
    for label in sorted(parts):
        overlap, matched, false, missed = (math.fsum(column) for column in zip(*parts[label], strict=True))
        if matched or missed:
            values.append(overlap / (matched + false / 2 + missed / 2))
    if not values:
        return 0.0 if any(counts[2] for listed in parts.values() for counts in listed) else 100.0
    return 100 * mean(values)


def _labels(found: Instances, labels: Sequence[str] | None) -> list[str]:
    return [UNNAMED] * len(found.marked.scores) if labels is None else list(labels)


def _pairs(predicted: Instances, truth: Instances, open_areas: Sequence[int], classes: _Classes) -> list[_Pair]:
    """All pairs of one class with an overlap above one half; others that their areas exclude are not looked at."""
    found: list[_Pair] = []
    areas = [region.area for region in truth.regions]
    for number, region in enumerate(predicted.regions):
        base = region.area - open_areas[number]
        near = [
            other
            for other, area in enumerate(areas)
            if classes.truth[other] == classes.predicted[number] and min(base, area) > MATCH * max(base, area)
        ]
        for other, shared in zip(near, shared_areas(region, [truth.regions[other] for other in near]), strict=True):
            overlap = float(shared / (base + areas[other] - int(shared)))
            if overlap > MATCH:
                found.append(_Pair(overlap, number, other))
    return found
