"""Measures of 3D tasks: Chamfer distance, odometry, tracking and detection.

Boxes match by overlap (IoU 0.25 and 0.50) or by distance of centres (nuScenes). Within an item, the boxes of a class
come in the order of falling scores, and each takes the best true box that is still free. The boxes of all items of a
class make one precision-recall curve. The result is the mean over classes and thresholds.

AMOTA is the average multi-object tracking accuracy of the nuScenes tracking benchmark (after Weng and Kitani, 2019).
Objects are matched on the ground plane, frame by frame, within two metres: a pair of the previous frame stays while it
is near enough, and all others are assigned with the least sum of distances. A track's score is the mean of its objects'
scores. At a recall r, ``MOTAR = max(0, 1 - (IDS + FP + FN - (1 - r) P) / (r P))``. ``AMOTA`` is the mean over 40
recalls from 0.1 to 1; a recall that is never reached counts 0. Classes are averaged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, by_class, mean
from lmms_eval.tasks.general_bench.measures.detection import interpolated_area
from lmms_eval.tasks.general_bench.readers.points import (
    Box3D,
    Corner,
    Tracked,
    read_boxes3d,
    read_points,
    read_poses,
    read_side,
    read_tracks,
)
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, reference_of

Floats = npt.NDArray[np.float64]
DISTANCE_M = 2.0
RECALLS = 40
LEAST_RECALL = 0.1
MAX_STEPS = 40
"""The tracks of a scene and class are counted at no more scores than this: evenly spread ones, if there are more."""
_FAR = 1e6
_ROUNDING = 1e-9


Frames = Sequence[Sequence[Tracked]]


class Step(Struct, frozen=True):
    """Counts over a scene with only the tracks of at least this score."""

    score: float
    hits: int
    false_alarms: int
    switches: int


def scene_counts(truth: Frames, found: Frames) -> State:
    """Count a scene by class. Both sides have the same number of frames. Needs SciPy (``ImportError``).

    The state of a class has the number of ``objects`` in all frames, and ``steps`` (those of ``Step``) with falling
    scores.
    """
    true_classes, found_classes = _by_class(truth), _by_class(found)
    empty: list[list[Tracked]] = [[] for _ in truth]
    state: dict[str, Any] = {}
    for label in sorted(true_classes.keys() | found_classes.keys()):
        true_frames, frames = true_classes.get(label, empty), found_classes.get(label, empty)
        scores: dict[str, list[float]] = {}
        for one in (one for frame in frames for one in frame):
            scores.setdefault(one.id, []).append(one.score)
        means = {track: math.fsum(values) / len(values) for track, values in scores.items()}
        levels = sorted(set(means.values()), reverse=True)
        if len(levels) > MAX_STEPS:
            levels = [levels[(number + 1) * len(levels) // MAX_STEPS - 1] for number in range(MAX_STEPS)]
        steps = [_step(true_frames, frames, {one for one in means if means[one] >= level}, level) for level in levels]
        state[label] = {"objects": sum(map(len, true_frames)), "steps": [list(astuple(step)) for step in steps]}
    return state


def amota(scenes: Iterable[State]) -> float:
    """Return AMOTA over the states of scenes, 0 to 1. Counts of a class are added. It is 0 without true objects."""
    scores = []
    for parts in by_class(scenes).values():
        if objects := sum(part["objects"] for part in parts):
            scores.append(_class_amota(_pooled([[Step(*step) for step in part["steps"]] for part in parts]), objects))
    return math.fsum(scores) / len(scores) if scores else 0.0


def _by_class(frames: Frames) -> dict[str, list[list[Tracked]]]:
    classes: dict[str, list[list[Tracked]]] = {}
    for number, frame in enumerate(frames):
        for one in frame:
            classes.setdefault(one.label, [[] for _ in frames])[number].append(one)
    return classes


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


def _class_amota(curve: Sequence[Step], objects: int) -> float:
    """Return the mean of MOTAR over the recalls. ``curve`` has falling scores."""
    values, at = [], 0
    for number in range(RECALLS):
        wanted = (LEAST_RECALL + (1 - LEAST_RECALL) * number / (RECALLS - 1)) * objects
        while at < len(curve) and curve[at].hits < wanted - _ROUNDING:
            at += 1
        if at < len(curve):
            step = curve[at]
            recall = step.hits / objects
            errors = step.switches + step.false_alarms + (objects - step.hits)
            values.append(max(0.0, 1 - (errors - (1 - recall) * objects) / (recall * objects)))
    return math.fsum(values) / RECALLS


def _pooled(scenes: Sequence[Sequence[Step]]) -> list[Step]:
    """Return the counts of all scenes together at every score that changes those of one, falling."""
    changes = [(step.score, scene, step) for scene, steps in enumerate(scenes) for step in steps]
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


def ground_distance(one: Box3D, other: Box3D) -> float:
    """Return the distance of the centres on the ground plane."""
    return math.hypot(one.x - other.x, one.y - other.y)


def iou3d(one: Box3D, other: Box3D) -> float:
    """Return the volume of the intersection divided by that of the union. It is 0 if the union is empty."""
    height = min(one.z + one.dz / 2, other.z + other.dz / 2) - max(one.z - one.dz / 2, other.z - other.dz / 2)
    reach = (math.hypot(one.dx, one.dy) + math.hypot(other.dx, other.dy)) / 2
    if height <= 0 or ground_distance(one, other) >= reach:
        return 0.0
    shape = _clipped(one, other)
    area = abs(math.fsum(a.x * b.y - b.x * a.y for a, b in zip(shape, shape[1:] + shape[:1], strict=True))) / 2
    common = min(area * height, one.volume, other.volume)
    union = one.volume + other.volume - common
    return common / union if union > 0 else 0.0


def _clipped(one: Box3D, other: Box3D) -> list[Corner]:
    """Clip the base of ``one`` by that of ``other`` (Sutherland and Hodgman, 1974).

    Coordinates are relative to the centre of ``other``, because areas far from the origin would lose digits.
    """
    shape = [Corner(corner.x - other.x, corner.y - other.y) for corner in one.corners()]
    frame = [Corner(corner.x - other.x, corner.y - other.y) for corner in other.corners()]
    for start, end in zip(frame, frame[1:] + frame[:1], strict=True):
        if not shape:
            break
        sides = [(end.x - start.x) * (at.y - start.y) - (end.y - start.y) * (at.x - start.x) for at in shape]
        kept: list[Corner] = []
        for number, (corner, side) in enumerate(zip(shape, sides, strict=True)):
            before, before_side = shape[number - 1], sides[number - 1]
            if (side < 0) != (before_side < 0):
                share = before_side / (before_side - side)
                kept.append(Corner(before.x + share * (corner.x - before.x), before.y + share * (corner.y - before.y)))
            if side >= 0:
                kept.append(corner)
        shape = kept
    return shape


IOUS = (0.25, 0.5)
DISTANCES_M = (0.5, 1.0, 2.0, 4.0)
MAX_BOXES = 500
"""Most boxes of one item: those with the highest scores count (as in nuScenes)."""
_LEAST = 0.1
"""nuScenes ignores recalls and precisions up to this value."""
_POINTS = 101


class Matching(Struct, frozen=True):
    """Rules for matching boxes: their similarity, its thresholds, and the area under a curve."""

    similarity: Callable[[Box3D, Box3D], float]
    """Similarity of two boxes, larger for nearer ones."""
    thresholds: tuple[float, ...]
    area: Callable[[Floats, Floats], float]
    """Area under rising recalls and their precisions."""


def match_item(truth: Sequence[Box3D], found: Sequence[Box3D], matching: Matching) -> State:
    """Match an item's boxes by class.

    The state of a class has the number of true ``objects``, and for each ``found`` box, best first, its score and for
    each threshold 1 if it hits a true box, else 0.
    """
    best = sorted(found, key=lambda box: -box.score)[:MAX_BOXES]
    state: dict[str, Any] = {}
    for label in sorted({box.label for box in (*truth, *best)}):
        true_boxes = [box for box in truth if box.label == label]
        free = [[True] * len(true_boxes) for _ in matching.thresholds]
        rows: list[list[float]] = []
        for box in (box for box in best if box.label == label):
            likeness = [matching.similarity(box, true) for true in true_boxes]
            rows.append([box.score])
            for threshold, left in zip(matching.thresholds, free, strict=True):
                candidates = [number for number, value in enumerate(likeness) if left[number] and value >= threshold]
                nearest = max(candidates, key=likeness.__getitem__, default=None)
                rows[-1].append(int(nearest is not None))
                if nearest is not None:
                    left[nearest] = False
        state[label] = {"objects": len(true_boxes), "found": rows}
    return state


def mean_average_precision(states: Iterable[State], matching: Matching) -> float:
    """Return the mean average precision over the classes with true boxes of all items, 0 to 1; 0 without true boxes."""
    values: list[float] = []
    for parts in by_class(states).values():
        objects = sum(part["objects"] for part in parts)
        if not objects:
            continue
        found = sorted((row for part in parts for row in part["found"]), key=lambda row: -row[0])
        hits = np.array([row[1:] for row in found], dtype=bool).reshape(len(found), len(matching.thresholds))
        for column in hits.T:
            true = np.cumsum(column)
            area = matching.area(true / objects, true / np.arange(1, len(column) + 1)) if column.any() else 0.0
            values.append(area)
    return math.fsum(values) / len(values) if values else 0.0


def area_above_tenth(recalls: Floats, precisions: Floats) -> float:
    """Return the mean, over the recalls 0.11, 0.12, ... 1, of the precision above 0.1, divided by 0.9 (nuScenes).
    Precisions between recalls are interpolated. Beyond the last recall they are 0.
    """
    wanted = np.linspace(0, 1, _POINTS)[round(_LEAST * (_POINTS - 1)) + 1 :]
    values = np.interp(wanted, recalls, precisions, right=0.0)
    return float(np.maximum(values - _LEAST, 0).mean() / (1 - _LEAST))


BY_OVERLAP = Matching(iou3d, IOUS, interpolated_area)
BY_CENTRE = Matching(
    lambda one, other: -ground_distance(one, other), tuple(-distance for distance in DISTANCES_M), area_above_tenth
)


LENGTHS_M: tuple[float, ...] = (100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0)
STEP = 10
"""A sub-sequence starts at every tenth frame."""
_PARTS = 8
_SHORT_STARTS = 1000


def translation_errors(truth: Floats, estimate: Floats) -> State:
    """Return the errors of the estimated motion over all sub-sequences of 100, 200, ... 800 m.

    ``total`` is their sum, as shares of the sub-sequences' lengths, and ``count`` their number.

    A sub-sequence ends at the first frame that is farther along the true path than its length. A path of at most 100 m
    is measured over eighths of its own length (1/8, ... 7/8) from every frame, or from a thousand frames if there are
    more. A path without movement gives no error.

    Args:
        truth: ``(frames, 4, 4)``, camera to world, in metres.
        estimate: the same frames.
    """
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(truth[:, :3, 3], axis=0), axis=1))])
    if along[-1] > LENGTHS_M[0]:
        lengths, starts = LENGTHS_M, np.arange(0, len(truth), STEP)
    else:
        lengths = tuple(float(along[-1]) * part / _PARTS for part in range(1, _PARTS))
        starts = np.arange(0, len(truth), max(1, math.ceil(len(truth) / _SHORT_STARTS)))
    if not along[-1] > 0:
        return {"total": 0.0, "count": 0}
    true_inverse, inverse = np.linalg.inv(truth), np.linalg.inv(estimate)
    total, count = 0.0, 0
    for length in lengths:
        ends = np.searchsorted(along, along[starts] + length, side="right")
        first, last = starts[ends < len(truth)], ends[ends < len(truth)]
        true_motion, motion = true_inverse[first] @ truth[last], inverse[first] @ estimate[last]
        error = np.linalg.inv(motion) @ true_motion
        total += float(np.linalg.norm(error[:, :3, 3], axis=1).sum()) / length
        count += len(first)
    return {"total": total, "count": count}


def relative_translation_error(errors: Sequence[State]) -> float:
    """Return the mean over all sub-sequences of all sequences, at least one, in percent."""
    return float(100 * math.fsum(one["total"] for one in errors) / sum(one["count"] for one in errors))


_CHUNK = 512
"""Number of points with distances to all others in memory at once."""


def chamfer_distance(first: Floats, second: Floats) -> float:
    """Return the mean Euclidean distance of each point to the nearest one of the other cloud, summed over both
    directions.

    Both clouds are ``(points, 3)``, finite, of at least one point. Distances are not squared, are in the unit of the
    coordinates, and nothing is scaled or aligned: the benchmark names no variant, and its tasks use different units
    (General-Bench specification §5.1).
    """
    return float(nearest_distances(first, second).mean() + nearest_distances(second, first).mean())


def nearest_distances(points: Floats, others: Floats) -> Floats:
    """Return the distance of each point to the nearest of ``others``, ``(points,)``, with a tree of SciPy if it is
    installed, else by computing all distances in parts.
    """
    try:
        from scipy.spatial import cKDTree
    except ImportError:
        return all_distances(points, others)
    tree = cKDTree(np.unique(others, axis=0))  # a tree of many equal points degenerates
    distances: Floats = tree.query(points, k=1)[0]
    return distances


def all_distances(points: Floats, others: Floats) -> Floats:
    """Return the same as ``nearest_distances``, without SciPy."""
    middle = others.mean(axis=0)
    points, others = points - middle, others - middle
    squares = (others * others).sum(axis=1)
    found = np.empty(len(points))
    for start in range(0, len(points), _CHUNK):
        part = points[start : start + _CHUNK]
        nearest = np.argmin(squares - 2 * (part @ others.T), axis=1)
        found[start : start + _CHUNK] = np.linalg.norm(part - others[nearest], axis=1)
    return found


NO_SCIPY = "amota: assigning tracks needs SciPy, which is not installed (pip install 'lmms_eval[metrics]')"


def _odometry_state(prediction: Any, item: Item, _: Context) -> State:
    truth = read_side(read_poses, item.reference, reference_of(item))
    estimate = read_side(read_poses, prediction, prediction_of(item))
    if len(estimate) != len(truth):
        raise UnreadableAnswer(f"{item.where}: the prediction has {len(estimate)} poses, {len(truth)} are needed")
    errors = translation_errors(truth, estimate)
    if not errors["count"]:
        raise DataError(f"{item.where}: the reference does not move: it has no relative translation error")
    return errors


def _tracking_state(prediction: Any, item: Item, _: Context) -> State:
    try:
        import scipy.optimize  # noqa: F401 - needed when tracks are assigned
    except ImportError as error:
        raise NotEvaluated(NO_SCIPY) from error
    truth = _true_tracks(item)
    with prediction_of(item).reading():
        found = read_tracks(prediction)
    if len(found) != len(truth):
        raise UnreadableAnswer(f"{item.where}: the prediction has {len(found)} frames, {len(truth)} are needed")
    return scene_counts(truth, found)


def _true_tracks(item: Item) -> tuple[tuple[Tracked, ...], ...]:
    with reference_of(item).reading():
        return read_tracks(item.reference)


def _tracking_unanswered(item: Item, _: Context) -> State:
    truth = _true_tracks(item)
    return scene_counts(truth, [()] * len(truth))


def _detection_measure(name: str, matching: Matching, checked: str) -> Measure:
    def state(prediction: Any, item: Item, _: Context) -> State:
        with reference_of(item).reading():
            truth = read_boxes3d(item.reference)
        with prediction_of(item).reading():
            return match_item(truth, read_boxes3d(prediction), matching)

    return Measure(
        name, "detections3d", state, lambda states: 100 * mean_average_precision(states, matching),
        lambda item, context: state([], item, context), checked=checked,
    )  # fmt: skip


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="chamfer_distance", form="points", state=lambda prediction, item, _: chamfer_distance(
            read_side(read_points, prediction, prediction_of(item)),
            read_side(read_points, item.reference, reference_of(item)),
        ), value=mean, needs="nothing; SciPy makes it faster",
        checked="hand-computed clouds; the tree against all distances; no recorded vectors",
    ),
    Measure(
        name="rte", form="poses", state=_odometry_state,
        value=relative_translation_error,
        checked="tracks with known errors, a second computation by loops; no recorded vectors",
    ),
    Measure(
        name="amota", form="tracks", state=_tracking_state, value=lambda states: 100 * amota(states),
        unanswered=_tracking_unanswered,
        needs="SciPy (extra metrics)",
        checked="hand-computed scenes with switches, false alarms and misses; no recorded vectors",
    ),
    _detection_measure("map", BY_OVERLAP, "hand-computed curves; IoU against sampled volumes; no recorded vectors"),
    _detection_measure("map/centre_distance", BY_CENTRE, "hand-computed curves; no recorded vectors"),
)  # fmt: skip
