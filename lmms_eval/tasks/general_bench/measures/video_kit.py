"""Metrics of the video generation toolkit with detectors that have no maintained package (specification §5.4).

GRiT, Tag2Text, ViCLIP, UMT and AMT run elsewhere. Their results are entries of the prediction, an object with

* ``path``: the video, if something is still computed from it;
* ``detections``: for each sampled frame the list of its objects ``{label, caption, box: [x, y, w, h]}``;
* ``action_scores``: ``{class: score from 0 to 1}`` of the 400 classes of Kinetics;
* ``video_features`` and ``text_features``: ViCLIP's vectors of video and prompt, ``.npy`` (the latter also with
  ``reference_features``);
* ``features``: DINO's vectors of all frames, ``.npy``;
* ``flow_scores``: ``{short_side, frame_count, pair_scores}``, or ``flows``: a folder of ``.flo`` files;
* ``motion_smoothness``: AMT's share, 0 to 1.

Each JSON value may also be the path of a file that holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval.tasks.general_bench.items import Item
from lmms_eval.tasks.general_bench.measures import kit_math
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.measures.embeddings import (
    consistency,
    one_row,
    pooled_percent,
    predicted_features,
    reference_features,
    similarity,
)
from lmms_eval.tasks.general_bench.measures.kit_answers import (
    Detections,
    action_scores,
    check_answer,
    detections,
    moves,
    smoothness,
    wanted_action,
    wanted_colour,
    wanted_object,
    wanted_relation,
)
from lmms_eval.tasks.general_bench.measures.seen import predicted_frames
from lmms_eval.tasks.general_bench.networks.pictures import dino
from lmms_eval.tasks.general_bench.networks.weights import not_evaluated

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]

_TOP = 5
_SURE = 0.85
"""Least score of an action among the first five."""
_VICLIP = "ViCLIP's vectors"
_GIVE = "run it elsewhere and give predictions as"


def success(prediction: Any, item: Item, context: Context) -> State:
    """Return ``[score, 1]`` by the task's dimension, or ``[0, 0]`` for a video that is left out."""
    check_answer(prediction, item)
    name = item.facts.name
    if name.startswith("Spatial"):
        return [spatial(prediction, item), 1]
    if name.startswith("Color"):
        return colour(prediction, item)
    if name.startswith("Action"):
        return [action(prediction, item), 1]
    return [viclip(prediction, item, context), 1]


def spatial(prediction: Any, item: Item) -> float:
    """Return the mean over the frames of the best score of a pair of the two objects, or 0 without frames."""
    wanted = wanted_relation(item)
    frames = detections(prediction, item)
    best = [
        max(
            (
                kit_math.spatial_score(wanted.relation, first.corners, second.corners)
                for first in frame
                if first.label == wanted.first
                for second in frame
                if second.label == wanted.second and second is not first
            ),
            default=0.0,
        )
        for frame in frames
    ]
    return mean(best)


def colour(prediction: Any, item: Item) -> State:
    """Return the share of the frames with the wanted colour among those that describe the object with any colour. A
    video without such frames is left out.
    """
    frames = detections(prediction, item)
    described, wanted = kit_math.colour_counts(wanted_colour(item), wanted_object(item), frames)
    return [wanted / described, 1] if described else [0.0, 0]


def action(prediction: Any, item: Item) -> float:
    """Return 1 if the action is among the five likeliest and its score is high enough, else 0."""
    scores = action_scores(prediction, item)
    wanted = wanted_action(item)
    first = sorted(scores, key=lambda name: (-scores[name], name))[:_TOP]
    return float(any(name.casefold() == wanted and scores[name] >= _SURE for name in first))


def viclip(prediction: Any, item: Item, context: Context) -> float:
    """Return the cosine of ViCLIP's vectors of the video and of its prompt."""
    video = predicted_features(prediction, item, "video_features")
    text = predicted_features(prediction, item, "text_features")
    text = reference_features(item, context) if text is None else text
    if video is None or text is None:
        missing = "the video" if video is None else "the prompt"
        form = '{"video_features": "FILE.npy", "text_features": "FILE.npy"}'
        raise not_evaluated(item, f"{_VICLIP} of {missing} (no package of ViCLIP is maintained)", f"{_GIVE} {form}")
    return similarity(one_row(video, item)[None], one_row(text, item)[None], item) / 100


def single_object(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - a measure's arguments
    """Return the percentage of frames with the wanted object."""
    check_answer(prediction, item)
    frames = _labels(detections(prediction, item))
    return 100 * kit_math.object_count(wanted_object(item), frames) / len(frames)


def several_objects(prediction: Any, item: Item, context: Context) -> State:  # noqa: ARG001 - a measure's arguments
    """Return the percentage of frames with both wanted objects."""
    check_answer(prediction, item)
    frames = _labels(detections(prediction, item))
    return 100 * kit_math.objects_count(wanted_object(item), frames) / len(frames)


def movement(prediction: Any, item: Item, context: Context) -> State:
    """Return 100 for a video that moves, else 0."""
    check_answer(prediction, item)
    return 100.0 if moves(prediction, item, context) else 0.0


def image_to_video(prediction: Any, item: Item, context: Context) -> State:
    """Return subject consistency as ``[sum, count]``, then ViCLIP, motion smoothness and movement as shares."""
    check_answer(prediction, item)
    smooth = smoothness(prediction, item)
    matching = viclip(prediction, item, context)
    moving = float(moves(prediction, item, context))
    return [consistency(subject_rows(prediction, item, context), item), matching, smooth, moving]


def subject_rows(prediction: Any, item: Item, context: Context) -> Floats:
    """Return DINO's vectors of all frames, given or computed."""
    rows = predicted_features(prediction, item)
    return dino(context, item).pictures(predicted_frames(prediction, item)) if rows is None else rows


def composite(states: Sequence[State]) -> float:
    """Return the mean of the four dimensions in percent. The authors' code adds them up, but their paper takes the
    mean, as do the specialists' results of 59 to 68.
    """
    shares = [100 * mean([state[place] for state in states]) for place in (1, 2, 3)]
    return mean([pooled_percent([state[0] for state in states]), *shares])


def _labels(frames: Detections) -> list[list[str]]:
    return [[found.label for found in frame] for frame in frames]


_GRIT = "GRiT's objects of 16 frames of each video (no maintained package), with the predictions"
_MATH = "counts and decisions: the recorded vectors; the detectors were not run here"
MEASURES: tuple[Measure, ...] = (
    Measure(
        "success_rate", "video", success, pooled_percent,
        needs="by task, with the predictions: GRiT's objects (spatial relation, colour), ViCLIP's vectors (camera "
        "motion, material) or UMT's scores of actions (no maintained packages)", checked=_MATH,
    ),
    Measure("single_object_success", "video", single_object, mean, is_mean=True, needs=_GRIT, checked=_MATH),
    Measure("multi_object_success", "video", several_objects, mean, is_mean=True, needs=_GRIT, checked=_MATH),
    Measure(
        "dynamic_degree", "video", movement, mean, is_mean=True,
        needs="RAFT (torch, torchvision; weights `raft-large`), or flows or their radii with the predictions",
        checked=_MATH,
    ),
    Measure(
        "i2v_composite", "video", image_to_video, composite,
        needs="DINO ViT-B/16 and RAFT, or what they give, and, with the predictions, ViCLIP's vectors and AMT's motion "
        "smoothness (no maintained packages)", checked=_MATH,
    ),
)  # fmt: skip
