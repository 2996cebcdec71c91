"""Boxes and tracked objects in space, from JSON of predictions and references."""

from __future__ import annotations

from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.measures.boxes3d import Box3D
from lmms_eval.tasks.general_bench.measures.tracking3d import Tracked
from lmms_eval.tasks.general_bench.readers.points import FARTHEST

MAX_BOXES = 10_000
MAX_FRAMES = 10_000
MAX_IN_FRAME = 500
MAX_TRACKED = 100_000
_MAX_NAME = 200
_BOX_NUMBERS = (6, 7)


def read_boxes3d(value: Any) -> tuple[Box3D, ...]:
    """Read a list of boxes ``{"box": [x, y, z, dx, dy, dz, yaw], "label": text, "score": number}`` or ``[x, y, z, dx,
    dy, dz, yaw, label, score]``. Yaw (radians, 0), label (empty) and score (1) are optional.

    Raises:
        DataError: another form, more than 10,000 boxes, numbers that are not finite, or sizes that are not positive.
    """
    if not isinstance(value, list) or len(value) > MAX_BOXES:
        raise DataError(f"3D boxes must be a list of at most {MAX_BOXES}")
    return tuple(_box(entry) for entry in value)


def read_tracks(value: Any) -> tuple[tuple[Tracked, ...], ...]:
    """Read a list of frames, each a list of ``{"id": ..., "label": text, "center": [x, y, z], "score": number}``. Label
    (empty) and score (1) are optional.

    Raises:
        DataError: another form, too many frames or objects, numbers that are not finite, or an id twice in a frame.
    """
    if not isinstance(value, list) or len(value) > MAX_FRAMES or not all(isinstance(frame, list) for frame in value):
        raise DataError(f"tracks must be a list of at most {MAX_FRAMES} frames, each a list of objects")
    if any(len(frame) > MAX_IN_FRAME for frame in value) or sum(map(len, value)) > MAX_TRACKED:
        raise DataError(f"more than {MAX_IN_FRAME} objects in a frame, or {MAX_TRACKED} in all")
    frames = tuple(tuple(_tracked(entry) for entry in frame) for frame in value)
    for number, frame in enumerate(frames):
        if len({one.id for one in frame}) < len(frame):
            raise DataError(f"frame {number} has an id twice")
    return frames


def _box(entry: Any) -> Box3D:
    if isinstance(entry, dict):
        numbers, label, score = entry.get("box"), entry.get("label", ""), entry.get("score", 1.0)
    elif not isinstance(entry, list) or len(entry) > 9:
        raise DataError(f"{entry!r:.100} is no 3D box")
    elif texts := [number for number, one in enumerate(entry) if isinstance(one, str)]:
        numbers, label, score = entry[: texts[0]], entry[texts[0]], (entry[texts[0] + 1 :] or [1.0])[0]
    else:
        numbers, label, score = entry[:7], "", entry[7] if len(entry) > 7 else 1.0
    if not isinstance(numbers, list) or len(numbers) not in _BOX_NUMBERS:
        raise DataError(f"the 3D box {entry!r:.100} is not [x, y, z, dx, dy, dz, yaw]")
    if min(map(_number, numbers[3:6])) <= 0:
        raise DataError(f"the 3D box {entry!r:.100} has a size that is not positive")
    x, y, z, dx, dy, dz, yaw = map(_number, numbers if len(numbers) == 7 else [*numbers, 0.0])
    return Box3D(x, y, z, dx, dy, dz, yaw, _name(label), _number(score))


def _tracked(entry: Any) -> Tracked:
    if not isinstance(entry, dict):
        raise DataError(f"the tracked object {entry!r:.100} is no object with id and center")
    name, center = entry.get("id"), entry.get("center")
    if isinstance(name, bool) or not isinstance(name, int | str) or not isinstance(center, list) or len(center) < 2:
        raise DataError(f"the tracked object {entry!r:.100} lacks its id or center")
    x, y, *_ = map(_number, center[:3])
    label, score = _name(entry.get("label", "")), _number(entry.get("score", 1.0))
    return Tracked(f"{type(name).__name__[0]}{name!s:.200}", label, x, y, score)


def _name(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise DataError(f"the label {value!r:.80} is no text of at most {_MAX_NAME} letters")
    return value.strip()


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{value!r:.80} is no number")
    if not abs(value) <= FARTHEST:  # NaN neither
        raise DataError(f"{value!r:.80} is not finite, or too large")
    return float(value)
