"""Tubes: a box of one thing for each frame of a video, from the trajectories of annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.records import Box, Record, box_of
from lmms_eval.tasks.general_bench.readers.boxes import MAX_FRAMES

Tube = list[Box | None]
"""A box, or ``None`` where the thing is not, for each frame."""


def tube_of(record: Record) -> Tube | None:
    """The tube of an item's ``trajectory`` over its ``frame_count``; ``None`` if it has no trajectory.

    Both conventions (General-Bench specification §2.3): a list of boxes with both bounds counted from one, or an
    object from frame numbers to ``{bbox}`` with bounds counted from zero, the end exclusive.

    Raises:
        DataError: bounds or boxes are of another kind, outside the video, or do not fit each other.
    """
    if not record.has("trajectory"):
        return None
    frames = record.count("frame_count", MAX_FRAMES)
    trajectory = record.values["trajectory"]
    start, end = record.count("tube_start_frame", MAX_FRAMES), record.count("tube_end_frame", MAX_FRAMES)
    if isinstance(trajectory, list):
        boxes = _of_list(trajectory, start - 1, end - 1, frames, record)
    elif isinstance(trajectory, Mapping):
        boxes = _of_mapping(trajectory, range(start, end), record)
    else:
        raise record.wrong("trajectory", "a list of boxes, or an object from frame numbers to {bbox}")
    if boxes and not 0 <= min(boxes) <= max(boxes) < frames:
        raise DataError(f"{record.where}: frames {start} to {end} of the tube are outside the video's {frames}")
    return [boxes.get(frame) for frame in range(frames)]


def frame_boxes(record: Record, key: str) -> Tube:
    """A list of a box for each frame, null or four zeros where the thing is not.

    Raises:
        DataError: it is none, or is too long.
    """
    values = record.values.get(key)
    if not isinstance(values, list) or len(values) > MAX_FRAMES:
        raise record.wrong(key, f"a list of [x, y, w, h] for each frame, at most {MAX_FRAMES},")
    return [box_of(value, f"{record.where}: `{key}` of frame {frame}") for frame, value in enumerate(values)]


def _of_list(trajectory: list[Any], first: int, last: int, frames: int, record: Record) -> dict[int, Box | None]:
    """Boxes by frame. The list has the tube's frames, its end counted or not, or all of the video's."""
    boxes = [box_of(value, f"{record.where}: `trajectory` at {place}") for place, value in enumerate(trajectory)]
    if len(boxes) in (last - first + 1, last - first):
        return {first + place: box for place, box in enumerate(boxes)}
    if len(boxes) == frames:
        return {frame: boxes[frame] for frame in range(max(first, 0), min(last + 1, frames))}
    raise DataError(
        f"{record.where}: `trajectory` has {len(boxes)} boxes; its tube has {last - first + 1} frames and the video "
        f"{frames}"
    )


def _of_mapping(trajectory: Mapping[str, Any], tube: range, record: Record) -> dict[int, Box | None]:
    """Boxes by frame, those of the tube only."""
    found: dict[int, Box | None] = {}
    for number, value in trajectory.items():
        where = f"{record.where}: `trajectory` of frame {number!r:.20}"
        if not (number.isascii() and number.isdigit() and len(number) < 10):
            raise DataError(f"{where}: a frame number is expected")
        if int(number) in tube:
            box = None if value is None else Record.of(value, where).values.get("bbox")
            found[int(number)] = box_of(box, f"{where}: `bbox`")
    return found
