"""Findings of detectors, captioners and networks run elsewhere on a predicted video, and what the video should show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.storage.atomic import read_json
from lmms_eval.tasks.general_bench.data.records import is_number
from lmms_eval.tasks.general_bench.items import Item, UnreadableAnswer
from lmms_eval.tasks.general_bench.measures import kit_math
from lmms_eval.tasks.general_bench.measures.contract import Context
from lmms_eval.tasks.general_bench.measures.seen import input_text, media_of, predicted_frames
from lmms_eval.tasks.general_bench.networks.weights import not_evaluated
from lmms_eval.tasks.general_bench.readers.sides import predicted_path, prediction_of, regular_file

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
"""Frames a second at which movement is measured."""
_ARTICLE = re.compile(r"^(?:an?|the)\s+", re.IGNORECASE)
_RELATION = re.compile(
    r"(?i)^(?P<first>.+?),?\s+(?P<relation>on the (?:left|right|top|bottom) of)\s+(?P<second>[^,.]+)"
)
_ACTION = re.compile(r"(?i)^(?:a|the) person is\s+")


class Relation(Struct, frozen=True):
    """Two objects and their wanted positions."""

    first: str
    relation: str
    second: str


Detections = list[list[kit_math.Region]]


_ENTRIES = frozenset({
    "path", "detections", "action_scores", "video_features", "text_features", "features", "flow_scores", "flows",
    "motion_smoothness",
})  # fmt: skip
"""Keys of a prediction that is an object. One without any of them is no answer."""


def check_answer(prediction: Any, item: Item) -> None:
    """Check that a prediction is an answer. One without a video would leave the whole task without a score.

    Raises:
        UnreadableAnswer: the prediction is neither an existing video nor an object with findings about one.
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
        NotEvaluated: nothing is given, and RAFT is not there.
        UnreadableAnswer: what is given is not in its form, or the video cannot be read.
    """
    scores = _given(prediction, item, "flow_scores")
    if scores is not None:
        return _by_scores(scores, item)
    if isinstance(prediction, Mapping) and "flows" in prediction:
        return _by_flows(prediction["flows"], item)
    return _by_raft(prediction, item, context)


def wanted_object(item: Item) -> str:
    """Return the object or objects that the video should show: ``input.object``, else the prompt without its article,
    without articles after ``and`` and, in tasks of colours, without the colour.

    Raises:
        DataError: the item has neither.
    """
    named = input_text(item, "object")
    if named:
        return named
    words = " and ".join(_bare(part) for part in _prompt(item).split(" and "))
    first, _, rest = words.partition(" ")
    return rest if rest and first.casefold() in kit_math.COLOURS and "Color" in item.facts.name else words


def wanted_colour(item: Item) -> str:
    """Return ``input.color``, else the first of the twelve colours among the words of the prompt.

    Raises:
        DataError: it is missing.
    """
    named = input_text(item, "color")
    words = [named] if named else re.findall(r"[a-z]+", _prompt(item).lower())
    found = next((word for word in words if word in kit_math.COLOURS), None)
    if found is None:
        raise DataError(
            f"{item.where}: neither `input.color` nor the prompt names one of {', '.join(kit_math.COLOURS)}"
        )
    return found


def wanted_relation(item: Item) -> Relation:
    """Return ``input.object_a``, ``input.relationship`` and ``input.object_b``, else what the prompt says about them.

    Raises:
        DataError: neither names two objects and a relation.
    """
    parts = [input_text(item, key) for key in ("object_a", "relationship", "object_b")]
    if all(parts):
        return Relation(*parts)
    found = _RELATION.match(_prompt(item))
    if found is None:
        raise DataError(
            f"{item.where}: two objects and their relation are wanted in `input.object_a`, `input.relationship` and "
            "`input.object_b`, or as a prompt 'A on the left of B'"
        )
    return Relation(_bare(found["first"]), found["relation"].lower(), _bare(found["second"]))


def wanted_action(item: Item) -> str:
    """Return ``input.action``, else the prompt after ``A person is``, in lower case."""
    return (input_text(item, "action") or _ACTION.sub("", _prompt(item)).rstrip(". ")).casefold()


def read_small_json(path: Path) -> Any:
    """Read the value of a JSON file of at most 16 MiB.

    Raises:
        DataError: no such file, too large or damaged.
    """
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


def _by_scores(value: Any, item: Item) -> bool:
    given = value if isinstance(value, Mapping) else {}
    side, count, radii = given.get("short_side"), given.get("frame_count"), given.get("pair_scores")
    if not _is_size(side) or not _is_size(count):
        raise UnreadableAnswer(f"{item.where}: flow_scores needs short_side and frame_count, whole numbers")
    if not isinstance(radii, list) or not all(map(is_number, radii)) or not 0 < len(radii) == count - 1 <= MAX_PAIRS:
        raise UnreadableAnswer(f"{item.where}: flow_scores needs pair_scores, a number for each pair of frames")
    return kit_math.is_moving(side, count, radii)


def _by_flows(value: Any, item: Item) -> bool:
    from lmms_eval.tasks.general_bench.readers.flow import FLOW_SUFFIXES, read_flow
    from lmms_eval.tasks.general_bench.readers.frames import files_of

    with prediction_of(item).reading():
        flows = (read_flow(path) for path in files_of(predicted_path(value, item), FLOW_SUFFIXES)[:MAX_PAIRS])
        return _moving(flows)


def _by_raft(prediction: Any, item: Item, context: Context) -> bool:
    from lmms_eval.media.video import probe
    from lmms_eval.tasks.general_bench.networks.videos import raft

    network = raft(context, item)
    with prediction_of(item).reading():
        path = predicted_path(media_of(prediction), item)
        rate = 0.0 if path.is_dir() else probe(regular_file(path, _MAX_VIDEO)).fps
    step = max(1, round(rate / _RATE))
    frames = (frame for number, frame in enumerate(predicted_frames(prediction, item)) if number % step == 0)
    with prediction_of(item).reading():
        return _moving(network.flows(frames))


def _moving(flows: Iterable[Any]) -> bool:
    """Return whether flows, at least one, show movement."""
    radii = []
    side = 0
    for flow in flows:
        side = min(flow.shape[:2])
        radii.append(kit_math.largest_radius(flow))
    if not radii:
        raise DataError("a video of at least 2 frames is needed")
    return kit_math.is_moving(side, len(radii) + 1, radii)


def _prompt(item: Item) -> str:
    text = (input_text(item, "prompt") or item.prompt).strip()
    if not text:
        raise DataError(f"{item.where}: the item has no prompt")
    return text


def _bare(name: str) -> str:
    """Remove the article of a name and everything after a comma."""
    return _ARTICLE.sub("", name.strip().partition(",")[0].rstrip(". "))
