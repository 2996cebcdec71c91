"""AMOTA, the average multi-object tracking accuracy of the nuScenes tracking benchmark (after Weng and Kitani, 2019).

Objects are matched on the ground plane, frame by frame, within two metres: a pair of the previous frame stays while it
is near enough, and all others are assigned with the least sum of distances. A track's score is the mean of its objects'
scores. At a recall r, ``MOTAR = max(0, 1 - (IDS + FP + FN - (1 - r) P) / (r P))``. ``AMOTA`` is the mean over 40
recalls from 0.1 to 1; a recall that is never reached counts 0. Classes are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DISTANCE_M = 2.0
RECALLS = 40
LEAST_RECALL = 0.1
MAX_STEPS = 40
"""The tracks of a scene and class are counted at no more scores than this: evenly spread ones, if there are more."""
_FAR = 1e6
_ROUNDING = 1e-9


class Tracked(Struct, frozen=True):
    """An object in a frame; ``x`` and ``y`` in metres on the ground plane."""

    id: str
    label: str
    x: float
    y: float
    score: float = 1.0


Frames = Sequence[Sequence[Tracked]]


class Step(Struct, frozen=True):
    """Counts over a scene with only the tracks of at least this score."""

    score: float
    hits: int
    false_alarms: int
    switches: int


class ClassCounts(Struct, frozen=True):
    """One class of a scene: the objects in all frames, and steps with falling scores."""

    objects: int
    steps: tuple[Step, ...] = ()


def scene_counts(truth: Frames, found: Frames) -> dict[str, ClassCounts]:
    """Count a scene by class. Both sides have the same number of frames. Needs SciPy (``ImportError``)."""
    true_classes, found_classes = _by_class(truth), _by_class(found)
    empty: list[list[Tracked]] = [[] for _ in truth]
    return {
        label: _class_counts(true_classes.get(label, empty), found_classes.get(label, empty))
        for label in sorted(true_classes.keys() | found_classes.keys())
    }


def amota(scenes: Iterable[Mapping[str, ClassCounts]]) -> float:
    """Return AMOTA over scenes, 0 to 1. Counts of a class are added over the scenes. Without true objects it is 0."""
    classes: dict[str, list[ClassCounts]] = {}
    for scene in scenes:
        for label, counts in scene.items():
            classes.setdefault(label, []).append(counts)
    scores = [_class_amota(counts) for counts in classes.values() if any(one.objects for one in counts)]
    return math.fsum(scores) / len(scores) if scores else 0.0


def _by_class(frames: Frames) -> dict[str, list[list[Tracked]]]:
    classes: dict[str, list[list[Tracked]]] = {}
    for number, frame in enumerate(frames):
        for one in frame:
            classes.setdefault(one.label, [[] for _ in frames])[number].append(one)
    return classes


def _class_counts(truth: Frames, found: Frames) -> ClassCounts:
    scores: dict[str, list[float]] = {}
    for frame in found:
        for one in frame:
            scores.setdefault(one.id, []).append(one.score)
    means = {track: math.fsum(values) / len(values) for track, values in scores.items()}
    levels = sorted(set(means.values()), reverse=True)
    if len(levels) > MAX_STEPS:
        levels = [levels[(number + 1) * len(levels) // MAX_STEPS - 1] for number in range(MAX_STEPS)]
    steps = tuple(_step(truth, found, {track for track in means if means[track] >= level}, level) for level in levels)
    return ClassCounts(sum(map(len, truth)), steps)


def _step(truth: Frames, found: Frames, tracks: set[str], score: float) -> Step:
    hits = false_alarms = switches = 0
    last: dict[str, str] = {}
    """Track that each true object was matched to the last time."""
    for true_frame, found_frame in zip(truth, found, strict=True):
        shown = [one for one in found_frame if one.id in tracks]
        pairs = _matched(true_frame, shown, last)
        hits += len(pairs)
        false_alarms += len(shown) - len(pairs)
        switches += sum(1 for true, track in pairs.items() if last.get(true, track) != track)
        last.update(pairs)
    return Step(score, hits, false_alarms, switches)


def _matched(truth: Sequence[Tracked], found: Sequence[Tracked], last: Mapping[str, str]) -> dict[str, str]:
    """Return the matched track of each true object."""
    if not truth or not found:
        return {}
    import numpy as np

    true_places, places = (np.array([(one.x, one.y) for one in side]) for side in (truth, found))
    distances: npt.NDArray[np.float64] = np.linalg.norm(true_places[:, None] - places[None], axis=2)
    near = distances <= DISTANCE_M
    columns = {one.id: number for number, one in enumerate(found)}
    pairs: dict[str, str] = {}
    for row, true in enumerate(truth):
        column = columns.get(last.get(true.id, ""))
        if column is not None and near[row, column]:
            pairs[true.id] = found[column].id
            near[row, :] = near[:, column] = False
    if near.any():
        from scipy.optimize import linear_sum_assignment

        assigned = zip(*linear_sum_assignment(np.where(near, distances, _FAR)), strict=True)
        pairs |= {truth[row].id: found[column].id for row, column in assigned if near[row, column]}
    return pairs


def _class_amota(scenes: Sequence[ClassCounts]) -> float:
    objects = sum(one.objects for one in scenes)
    curve = _pooled(scenes)
    values, at = [], 0
    for number in range(RECALLS):
        wanted = (LEAST_RECALL + (1 - LEAST_RECALL) * number / (RECALLS - 1)) * objects
        while at < len(curve) and curve[at].hits < wanted - _ROUNDING:
            at += 1
        values.append(_motar(curve[at], objects) if at < len(curve) else 0.0)
    return math.fsum(values) / RECALLS


def _motar(step: Step, objects: int) -> float:
    recall = step.hits / objects
    errors = step.switches + step.false_alarms + (objects - step.hits)
    return max(0.0, 1 - (errors - (1 - recall) * objects) / (recall * objects))


def _pooled(scenes: Sequence[ClassCounts]) -> list[Step]:
    """Return the counts of all scenes together at every score that changes those of one, falling."""
    changes = [(step.score, scene, step) for scene, one in enumerate(scenes) for step in one.steps]
    changes.sort(key=lambda change: -change[0])
    now: dict[int, Step] = {}
    hits = false_alarms = switches = 0
    curve: list[Step] = []
    for score, scene, step in changes:
        before = now.get(scene, Step(score, 0, 0, 0))
        now[scene] = step
        hits += step.hits - before.hits
        false_alarms += step.false_alarms - before.false_alarms
        switches += step.switches - before.switches
        pooled = Step(score, hits, false_alarms, switches)
        if curve and curve[-1].score == score:
            curve[-1] = pooled
        else:
            curve.append(pooled)
    return curve
