"""Measures of 3D tasks: Chamfer distance, odometry, tracking and detection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.objects3d import (
    BY_CENTRE,
    BY_OVERLAP,
    Matching,
    Tracked,
    amota,
    match_item,
    mean_average_precision,
    scene_counts,
)
from lmms_eval.tasks.general_bench.readers.points import read_boxes3d, read_points, read_poses, read_side, read_tracks
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, reference_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

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
    import numpy as np

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

    Distances are not squared, are in the unit of the coordinates, and nothing is scaled or aligned: the benchmark names
    no variant, and its tasks use different units (General-Bench specification §5.1).

    Args:
        first: ``(points, 3)``, finite, at least one.
        second: the same.
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
    import numpy as np

    tree = cKDTree(np.unique(others, axis=0))  # a tree of many equal points degenerates
    distances: Floats = tree.query(points, k=1)[0]
    return distances


def all_distances(points: Floats, others: Floats) -> Floats:
    """Return the same as ``nearest_distances``, without SciPy."""
    import numpy as np

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
