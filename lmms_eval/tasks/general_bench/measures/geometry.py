"""Measures of 3D tasks: Chamfer distance, odometry, tracking, detection."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval.api.outcome import NotEvaluated
from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import detection3d, tracking3d
from lmms_eval.tasks.general_bench.measures.boxes3d import Box3D
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.detection3d import BY_CENTRE, BY_OVERLAP, ClassBoxes, Found, Matching
from lmms_eval.tasks.general_bench.measures.odometry import (
    TranslationErrors,
    relative_translation_error,
    translation_errors,
)
from lmms_eval.tasks.general_bench.measures.points_math import chamfer_distance
from lmms_eval.tasks.general_bench.measures.tracking3d import ClassCounts, Step, Tracked
from lmms_eval.tasks.general_bench.readers.objects3d import read_boxes3d, read_tracks
from lmms_eval.tasks.general_bench.readers.points import points_of
from lmms_eval.tasks.general_bench.readers.poses import poses_of
from lmms_eval.tasks.general_bench.readers.sides import prediction_of, reference_of

NO_SCIPY = "amota: assigning tracks needs SciPy, which is not installed (pip install 'lmms_eval[metrics]')"


def _odometry_state(prediction: Any, item: Item, context: Context) -> State:
    del context
    truth = poses_of(item.reference, reference_of(item))
    estimate = poses_of(prediction, prediction_of(item))
    if len(estimate) != len(truth):
        raise UnreadableAnswer(f"{item.where}: the prediction has {len(estimate)} poses, {len(truth)} are needed")
    errors = translation_errors(truth, estimate)
    if not errors.count:
        raise DataError(f"{item.where}: the reference stands still: it has no relative translation error")
    return dataclasses.asdict(errors)


def _tracking_state(prediction: Any, item: Item, context: Context) -> State:
    del context
    try:
        import scipy.optimize  # noqa: F401 - used where tracks are assigned
    except ImportError as error:
        raise NotEvaluated(NO_SCIPY) from error
    truth = _true_tracks(item)
    with prediction_of(item).reading():
        found = read_tracks(prediction)
    if len(found) != len(truth):
        raise UnreadableAnswer(f"{item.where}: the prediction has {len(found)} frames, {len(truth)} are needed")
    return _tracking_record(tracking3d.scene_counts(truth, found))


def _true_tracks(item: Item) -> tuple[tuple[Tracked, ...], ...]:
    with reference_of(item).reading():
        return read_tracks(item.reference)


def _true_boxes(item: Item) -> tuple[Box3D, ...]:
    with reference_of(item).reading():
        return read_boxes3d(item.reference)


def _tracking_unanswered(item: Item, context: Context) -> State:
    del context
    truth = _true_tracks(item)
    return _tracking_record(tracking3d.scene_counts(truth, [()] * len(truth)))


def _tracking_record(counts: Mapping[str, ClassCounts]) -> State:
    return {
        label: {"objects": one.objects, "steps": [list(dataclasses.astuple(step)) for step in one.steps]}
        for label, one in counts.items()
    }


def _tracking_value(states: Sequence[State]) -> float:
    scenes = (
        {
            label: ClassCounts(one["objects"], tuple(Step(*step) for step in one["steps"]))
            for label, one in state.items()
        }
        for state in states
    )
    return 100 * tracking3d.amota(scenes)


def _detection_record(boxes: Mapping[str, ClassBoxes]) -> State:
    return {
        label: {"objects": one.objects, "found": [[found.score, *map(int, found.hits)] for found in one.found]}
        for label, one in boxes.items()
    }


def _detection_measure(name: str, matching: Matching, checked: str) -> Measure:
    def state(prediction: Any, item: Item, context: Context) -> State:
        del context
        truth = _true_boxes(item)
        with prediction_of(item).reading():
            found = read_boxes3d(prediction)
        return _detection_record(detection3d.match_item(truth, found, matching))

    def unanswered(item: Item, context: Context) -> State:
        del context
        return _detection_record(detection3d.match_item(_true_boxes(item), (), matching))

    def value(states: Sequence[State]) -> float:
        items = (
            {
                label: ClassBoxes(
                    one["objects"], tuple(Found(score, tuple(map(bool, hits))) for score, *hits in one["found"])
                )
                for label, one in state.items()
            }
            for state in states
        )
        return 100 * detection3d.mean_average_precision(items, matching)

    return Measure(name=name, form="detections3d", state=state, value=value, unanswered=unanswered, checked=checked)


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="chamfer_distance",
        form="points",
        state=lambda prediction, item, _: chamfer_distance(
            points_of(prediction, prediction_of(item)), points_of(item.reference, reference_of(item))
        ),
        value=mean,
        needs="nothing; SciPy makes it faster",
        checked="hand-computed clouds; the tree against all distances; no recorded vectors",
    ),
    Measure(
        name="rte",
        form="poses",
        state=_odometry_state,
        value=lambda states: relative_translation_error([TranslationErrors(**state) for state in states]),
        checked="tracks with known errors, a second computation by loops; no recorded vectors",
    ),
    Measure(
        name="amota",
        form="tracks",
        state=_tracking_state,
        value=_tracking_value,
        unanswered=_tracking_unanswered,
        needs="SciPy (extra metrics)",
        checked="hand-computed scenes with switches, false alarms and misses; no recorded vectors",
    ),
    _detection_measure("map", BY_OVERLAP, "hand-computed curves; IoU against sampled volumes; no recorded vectors"),
    _detection_measure("map/centre_distance", BY_CENTRE, "hand-computed curves; no recorded vectors"),
)
