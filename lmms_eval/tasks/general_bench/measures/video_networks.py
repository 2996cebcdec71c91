"""Metrics of generated videos that networks compute (specification §5.3 and §5.4).

Where the toolkit pools over all frames or frame pairs of a task, and not over videos, so do these metrics.

GRiT, Tag2Text, ViCLIP, UMT and AMT have no maintained package and run elsewhere. Their results are entries of the
prediction, an object with

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

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.general_bench.data.records import is_number
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import embeddings, kit_math, seen
from lmms_eval.tasks.general_bench.measures.contract import Context, Measure, State, mean
from lmms_eval.tasks.general_bench.networks.base import Network, not_evaluated
from lmms_eval.tasks.general_bench.networks.pictures import B32, KONIQ, L14, SPAQ, clip, dino, musiq, ratings
from lmms_eval.tasks.general_bench.networks.videos import video_network
from lmms_eval.tasks.general_bench.readers.sides import predicted_path, prediction_of, reference_path, regular_file

Floats = npt.NDArray[np.float32]
MAX_FRAMES = 256
"""Most frames for detectors. The toolkit samples 16."""
MAX_OBJECTS = 200
"""Most objects in one frame."""
MAX_PAIRS = 4096
_FARTHEST = 1e9
_MAX_BYTES = 16 << 20
"""Largest size of JSON files. Their values take some twenty times as much memory."""
_MAX_TEXT = 2000
_MAX_VIDEO = 4 << 30
_MAX_CLASSES = 10_000
_RATE = 8.0
"""Frames a second for the measure of movement."""
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_RELATION = re.compile(
    r"(?i)^(?P<first>.+?),?\s+(?P<relation>on the (?:left|right|top|bottom) of)\s+(?P<second>[^,.]+)"
)
_ACTION = re.compile(r"(?i)^(?:a|the) person is\s+")


Detections = list[list[kit_math.Region]]


_ENTRIES = frozenset({
    "path", "detections", "action_scores", "video_features", "text_features", "features", "flow_scores", "flows",
    "motion_smoothness",
})  # fmt: skip
"""Keys of a prediction that is an object. One without any of them is no answer."""


def check_answer(prediction: Any, item: Item) -> None:
    """Check that a prediction is an answer. One without a video would leave the whole task without a score.

    Raises ``UnreadableAnswer`` if the prediction is neither an existing video nor an object with findings about one.
    """
    if not isinstance(prediction, Mapping):
        predicted_path(prediction, item)
    elif not _ENTRIES & prediction.keys():
        raise UnreadableAnswer(f"{item.where}: the prediction lacks the entries {', '.join(sorted(_ENTRIES))}")


def detections(prediction: Any, item: Item) -> Detections:
    """Return the objects of each sampled frame, at least one frame.

    Raises:
        NotEvaluated: the prediction says nothing of them.
        UnreadableAnswer: they are not in their form.
    """
    value = _needed(prediction, item, "detections", "the objects that GRiT finds in the video")
    if not isinstance(value, list) or not 0 < len(value) <= MAX_FRAMES:
        raise UnreadableAnswer(f"{item.where}: detections must be a list of 1 to {MAX_FRAMES} frames")
    found: Detections = []
    for frame in value:
        if not isinstance(frame, list) or len(frame) > MAX_OBJECTS:
            raise UnreadableAnswer(
                f"{item.where}: a frame of detections must be a list of at most {MAX_OBJECTS} objects"
            )
        found.append([_found(one, item) for one in frame])
    return found


def action_scores(prediction: Any, item: Item) -> dict[str, float]:
    """Return the scores of classes of actions.

    Raises:
        NotEvaluated: the prediction says nothing of them.
        UnreadableAnswer: they are no object of numbers.
    """
    value = _needed(prediction, item, "action_scores", "the scores that UMT-L/16 gives the actions of Kinetics")
    if not isinstance(value, Mapping) or not 0 < len(value) <= _MAX_CLASSES or not all(map(is_number, value.values())):
        raise UnreadableAnswer(f"{item.where}: action_scores must be an object of numbers by class")
    return {str(name): float(score) for name, score in value.items()}


def smoothness(prediction: Any, item: Item) -> float:
    """Return the motion smoothness of a prediction, 0 to 1.

    Raises:
        NotEvaluated: it has none.
        UnreadableAnswer: it is no such number.
    """
    value = _needed(prediction, item, "motion_smoothness", "the motion smoothness that AMT-S measures")
    if not is_number(value) or not 0 <= value <= 1:
        raise UnreadableAnswer(f"{item.where}: motion_smoothness is a number from 0 to 1, not {value!r:.80}")
    return float(value)


def moves(prediction: Any, item: Item, context: Context) -> bool:
    """Return whether a video moves, by given radii, else by given flows, else by RAFT over its frames at about 8 a
    second.

    Raises:
        NotEvaluated: nothing is given, and RAFT is missing.
        UnreadableAnswer: what is given is not in its form, or the video cannot be read.
    """
    scores = _given(prediction, item, "flow_scores")
    if scores is not None:
        return _moves_by_scores(scores, item)
    if isinstance(prediction, Mapping) and "flows" in prediction:
        from lmms_eval.tasks.general_bench.readers.maps import FLOW_SUFFIXES, read_flow
        from lmms_eval.tasks.general_bench.readers.pictures import files_of

        with prediction_of(item).reading():
            files = files_of(predicted_path(prediction["flows"], item), FLOW_SUFFIXES)[:MAX_PAIRS]
        flows: Iterable[Any] = map(read_flow, files)
    else:
        from lmms_eval.media.video import probe
        from lmms_eval.tasks.general_bench.networks.videos import raft

        network = raft(context, item)
        with prediction_of(item).reading():
            path = predicted_path(seen.media_of(prediction), item)
            rate = 0.0 if path.is_dir() else probe(regular_file(path, _MAX_VIDEO)).fps
        step = max(1, round(rate / _RATE))
        flows = network.flows(
            frame for number, frame in enumerate(seen.predicted_frames(prediction, item)) if number % step == 0
        )
    with prediction_of(item).reading():
        radii, side = [], 0
        for flow in flows:
            side = min(flow.shape[:2])
            radii.append(kit_math.largest_radius(flow))
        if not radii:
            raise DataError("a video of at least 2 frames is needed")
        return kit_math.is_moving(side, len(radii) + 1, radii)


def wanted_object(item: Item) -> str:
    """Return the object or objects that the video should show: ``input.object``, else the prompt without its article,
    without articles after ``and`` and, in tasks of colours, without the colour.

    Raises ``DataError`` if the item has neither.
    """
    named = seen.input_text(item, "object")
    if named:
        return named
    words = " and ".join(_bare(part) for part in _prompt(item).split(" and "))
    first, _, rest = words.partition(" ")
    return rest if rest and first.casefold() in kit_math.COLOURS and "Color" in item.facts.name else words


def wanted_colour(item: Item) -> str:
    """Return ``input.color``, else the first of the twelve colours among the words of the prompt.

    Raises ``DataError`` if it is missing.
    """
    named = seen.input_text(item, "color")
    words = [named] if named else re.findall(r"[a-z]+", _prompt(item).lower())
    found = next((word for word in words if word in kit_math.COLOURS), None)
    if found is None:
        raise DataError(
            f"{item.where}: neither `input.color` nor the prompt names one of {', '.join(kit_math.COLOURS)}"
        )
    return found


def wanted_relation(item: Item) -> tuple[str, str, str]:
    """Return two objects with their relation between them.

    They are ``input.object_a``, ``input.relationship`` and ``input.object_b``, else what the prompt says about them.
    Raises ``DataError`` if neither names two objects and a relation.
    """
    first, relation, second = (seen.input_text(item, key) for key in ("object_a", "relationship", "object_b"))
    if first and relation and second:
        return first, relation, second
    found = _RELATION.match(_prompt(item))
    if found is None:
        raise DataError(
            f"{item.where}: two objects and their relation are wanted in `input.object_a`, `input.relationship` and "
            "`input.object_b`, or as a prompt 'A on the left of B'"
        )
    return _bare(found["first"]), found["relation"].lower(), _bare(found["second"])


def wanted_action(item: Item) -> str:
    """Return ``input.action``, else the prompt after ``A person is``, in lower case."""
    return (seen.input_text(item, "action") or _ACTION.sub("", _prompt(item)).rstrip(". ")).casefold()


def read_small_json(path: Path) -> Any:
    """Read a JSON file of at most 16 MiB. Raises ``DataError`` if it is missing, too large or damaged."""
    return read_json(regular_file(path, _MAX_BYTES))


def _given(prediction: Any, item: Item, key: str) -> Any:
    """Return the value under a key, read from its file if it is a path, or ``None``."""
    value = prediction.get(key) if isinstance(prediction, Mapping) else None
    if not isinstance(value, str):
        return value
    with prediction_of(item).reading():
        return read_small_json(predicted_path(value, item))


def _needed(prediction: Any, item: Item, key: str, what: str) -> Any:
    """Return the value under a key, which is required."""
    value = _given(prediction, item, key)
    if value is None:
        remedy = f'run it elsewhere and give predictions as {{"{key}": "FILE.json"}}'
        raise not_evaluated(item, f"{what} (no package of it is maintained)", remedy)
    return value


def _found(value: Any, item: Item) -> kit_math.Region:
    given = value if isinstance(value, Mapping) else {}
    label, caption, box = given.get("label"), given.get("caption", ""), given.get("box", [0, 0, 0, 0])
    is_box = isinstance(box, list) and len(box) == 4 and all(is_number(one) and abs(one) <= _FARTHEST for one in box)
    if not _is_text(label) or not _is_text(caption) or not is_box:
        raise UnreadableAnswer(f"{item.where}: {value!r:.80} is no object {{label, caption, box: [x, y, w, h]}}")
    x, y, width, height = map(float, box)
    return kit_math.Region(caption, label, (x, y, x + width, y + height))


def _is_text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _MAX_TEXT


def _is_size(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _FARTHEST


def _moves_by_scores(value: Any, item: Item) -> bool:
    given = value if isinstance(value, Mapping) else {}
    side, count, radii = given.get("short_side"), given.get("frame_count"), given.get("pair_scores")
    if not _is_size(side) or not _is_size(count):
        raise UnreadableAnswer(f"{item.where}: flow_scores needs short_side and frame_count, whole numbers")
    if not isinstance(radii, list) or not all(map(is_number, radii)) or not 0 < len(radii) == count - 1 <= MAX_PAIRS:
        raise UnreadableAnswer(f"{item.where}: flow_scores needs pair_scores, a number for each pair of frames")
    return kit_math.is_moving(side, count, radii)


def _prompt(item: Item) -> str:
    text = (seen.input_text(item, "prompt") or item.prompt).strip()
    if not text:
        raise DataError(f"{item.where}: the item has no prompt")
    return text


def _bare(name: str) -> str:
    """Remove the article of a name and everything after a comma."""
    return _ARTICLE.sub("", name.strip().partition(",")[0].rstrip(". "))


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
    wanted, relation, other = wanted_relation(item)
    frames = detections(prediction, item)
    best = [
        max(
            (
                kit_math.spatial_score(relation, first.corners, second.corners)
                for first in frame
                if first.label == wanted
                for second in frame
                if second.label == other and second is not first
            ),
            default=0.0,
        )
        for frame in frames
    ]
    return mean(best)


def colour(prediction: Any, item: Item) -> State:
    """Return the share of frames with the wanted colour among those with any. A video without any is left out."""
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
    video = embeddings.predicted_features(prediction, item, "video_features")
    text = embeddings.predicted_features(prediction, item, "text_features")
    text = embeddings.reference_features(item, context) if text is None else text
    if video is None or text is None:
        missing = "the video" if video is None else "the prompt"
        form = '{"video_features": "FILE.npy", "text_features": "FILE.npy"}'
        raise not_evaluated(item, f"{_VICLIP} of {missing} (no package of ViCLIP is maintained)", f"{_GIVE} {form}")
    return (
        embeddings.similarity(embeddings.one_row(video, item)[None], embeddings.one_row(text, item)[None], item) / 100
    )


def _shown(count: Callable[[str, list[list[str]]], int]) -> Callable[[Any, Item, Context], State]:
    """Return a state function for the percentage of frames that ``count`` counts by their labels."""

    def state(prediction: Any, item: Item, _: Context) -> State:
        check_answer(prediction, item)
        frames = [[found.label for found in frame] for frame in detections(prediction, item)]
        return 100 * count(wanted_object(item), frames) / len(frames)

    return state


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
    return [embeddings.consistency(subject_rows(prediction, item, context), item), matching, smooth, moving]


def subject_rows(prediction: Any, item: Item, context: Context) -> Floats:
    """Return DINO's vectors of all frames, given or computed."""
    return embeddings.predicted_rows(
        prediction, item, lambda: dino(context, item).pictures(seen.predicted_frames(prediction, item))
    )


def composite(states: Sequence[State]) -> float:
    """Return the mean of the four dimensions in percent. The authors' code adds them up, but their paper takes the
    mean, as do the specialists' results of 59 to 68.
    """
    shares = [100 * mean([state[place] for state in states]) for place in (1, 2, 3)]
    return mean([embeddings.pooled_percent([state[0] for state in states]), *shares])


_GRIT = "GRiT's objects of 16 frames of each video (no maintained package), with the predictions"
_MATH = "counts and decisions: the recorded vectors; the detectors were not run here"


MAX_SCORES = 20_000
_LONGEST = 512
"""Longest side of a frame in pixels, for the quality of generated videos."""
_TOP_RATING = 10.0
_CLIP = "CLIP ViT-B/32 (torch, transformers; weights `clip-vit-base-patch32`), or features of frames"
_CHECKED = "by hand from vectors of a small network; the network itself was not run here"


def background(prediction: Any, item: Item, context: Context) -> State:
    """Return the background consistency: the similarity of the frames' CLIP vectors."""
    return embeddings.consistency(_clip_rows(prediction, item, context), item)


def subject(prediction: Any, item: Item, context: Context) -> State:
    """Return the subject consistency: the similarity of the frames' DINO vectors."""
    return embeddings.consistency(subject_rows(prediction, item, context), item)


def style(prediction: Any, item: Item, context: Context) -> State:
    """Return the sum of the frames' cosines with the style (``input.style``, else the prompt), and their number."""
    rows = _clip_rows(prediction, item, context)
    given = embeddings.reference_rows(
        item,
        context,
        lambda: clip(B32, context, item).texts([seen.input_text(item, "style") or seen.wanted_text(item)]),
    )
    return [embeddings.similarity(rows, given, item) / 100 * len(rows), len(rows)]


def reference_style(prediction: Any, item: Item, context: Context) -> State:
    """Return 100 times the mean cosine of the frames and the pictures that show the style."""
    rows = _clip_rows(prediction, item, context)
    given = embeddings.reference_rows(
        item, context, lambda: clip(B32, context, item).pictures(seen.input_pictures(item))
    )
    return embeddings.similarity(rows, given, item)


def frame_accuracy(prediction: Any, item: Item, context: Context) -> State:
    """Return the percentage of frames that are nearer to the target's prompt than to the source's."""
    rows = _clip_rows(prediction, item, context)
    given = embeddings.reference_features(item, context)
    if given is None:
        prompts = [seen.input_text(item, key) for key in ("source_prompt", "target_prompt")]
        if not all(prompts):
            raise DataError(f"{item.where}: `input.source_prompt` and `input.target_prompt` are needed")
        given = clip(B32, context, item).texts(prompts)
    if len(given) != 2:
        raise DataError(f"{item.where}: features of the source's and the target's prompt are needed, in two rows")
    found = embeddings.cosines(rows, given, item)
    return 100.0 * float((found[:, 1] > found[:, 0]).sum()) / len(found)


def aesthetics(prediction: Any, item: Item, context: Context) -> State:
    """Return the mean aesthetic rating of the frames, scaled so that the top rating 10 is 100."""
    rows = _clip_rows(prediction, item, context, L14)
    return 100 * mean(ratings(rows, context, item)) / _TOP_RATING


def quality(prediction: Any, item: Item, context: Context) -> State:
    """Return the mean MUSIQ quality of the frames. Generated videos use the weights of SPAQ and frames of at most 512
    pixels, as in the toolkit's imaging quality. Super-resolved videos use the weights of KonIQ at full size.
    """
    given = prediction.get("scores") if isinstance(prediction, Mapping) else None
    if given is not None:
        with prediction_of(item).reading():
            values = read_small_json(predicted_path(given, item)) if isinstance(given, str) else given
        if not isinstance(values, list) or not 0 < len(values) <= MAX_SCORES:
            raise UnreadableAnswer(f"{item.where}: scores must be a list of 1 to {MAX_SCORES} numbers")
        if not all(isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one <= 100 for one in values):
            raise UnreadableAnswer(f"{item.where}: scores of frames are numbers from 0 to 100")
        return mean(values)
    is_toolkit = "Text to Video" in item.facts.name
    network = musiq(SPAQ if is_toolkit else KONIQ, context, item)
    return mean(network.pictures(seen.predicted_frames(prediction, item), _LONGEST if is_toolkit else None))


def video_pair(prediction: Any, item: Item, context: Context) -> State:
    """Return the r3d_18 features of the predicted and of the reference video."""
    rows, given = embeddings.predicted_features(prediction, item), embeddings.reference_features(item, context)
    if rows is None:
        rows = video_network(context, item).video(seen.predicted_frames(prediction, item))[None]
    if given is None:
        network = video_network(context, item)
        given = network.video(seen.frames_of(reference_path(item.reference, item)))[None]
    return embeddings.pair_state(rows, given, item)


def _clip_rows(prediction: Any, item: Item, context: Context, network: Network = B32) -> Floats:
    return embeddings.predicted_rows(
        prediction, item, lambda: clip(network, context, item).pictures(seen.predicted_frames(prediction, item))
    )


MEASURES: tuple[Measure, ...] = (
    Measure("clip_score/background", "video", background, embeddings.pooled_percent, needs=_CLIP, checked=_CHECKED),
    Measure("clip_score/style", "video", style, embeddings.pooled_percent, needs=f"{_CLIP} and text", checked=_CHECKED),
    Measure("clip_style_score", "video", reference_style, mean, needs=f"{_CLIP} and pictures", checked=_CHECKED),
    Measure(
        "frame_accuracy_clip", "video", frame_accuracy, mean, is_mean=True, needs=f"{_CLIP} and both prompts",
        checked=_CHECKED,
    ),
    Measure(
        "aesthetic_score", "video", aesthetics, mean, is_mean=True,
        needs="CLIP ViT-L/14 (weights `clip-vit-large-patch14`), or its features of frames, and LAION's linear layer "
        "(weights `laion-aesthetic-vit-l-14-linear`)", checked=_CHECKED,
    ),
    Measure(
        "dino_score", "video", subject, embeddings.pooled_percent,
        needs="DINO ViT-B/16 (torch, transformers; weights `dino-vitb16`), or its features of frames", checked=_CHECKED,
    ),
    Measure(
        "fvd", "video", video_pair, embeddings.frechet, is_costly=True,
        needs="torch and r3d_18 (weights `r3d_18`), or its features of videos",
        checked="network: torch's own layers, published number of weights; distance: the recorded vectors",
    ),
    Measure(
        "musiq", "video", quality, mean, is_mean=True,
        needs="pyiqa (licence forbids commercial use; weights `musiq-spaq`, `musiq-koniq`), or scores of frames",
        checked="the calls to pyiqa, against a stand-in; the network itself was not run here",
    ),
    Measure(
        "success_rate", "video", success, embeddings.pooled_percent,
        needs="by task, with the predictions: GRiT's objects (spatial relation, colour), ViCLIP's vectors (camera "
        "motion, material) or UMT's scores of actions (no maintained packages)", checked=_MATH,
    ),
    Measure(
        "single_object_success", "video", _shown(kit_math.object_count), mean, is_mean=True, needs=_GRIT, checked=_MATH,
    ),
    Measure(
        "multi_object_success", "video", _shown(kit_math.objects_count), mean, is_mean=True, needs=_GRIT, checked=_MATH,
    ),
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
