"""Answers about the frames of a video: an entry for each frame, or for numbered frames, with the frames in between
filled in.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval.tasks.general_bench.prompts.reply_shapes import box, polygons, unwrapped
from lmms_eval.tasks.general_bench.readers.boxes import MAX_FRAMES
from lmms_eval.tasks.general_bench.readers.sides import finite

MAX_HELD = 5_000_000
"""Most characters of the masks of all frames together, as JSON, if masks are kept for frames that were not shown."""
_MAX_UNKNOWN = 10_000
"""Most frames of a video of unknown length."""
_ABSENT = object()


def tube_frames(value: Any, total: int | None) -> list[Any] | None:
    """Return ``[x, y, width, height]`` or ``null`` for each frame, or ``None`` if the value is no such answer.

    Entries with frame numbers (``[number, box]``, ``[number, x, y, w, h]``, ``{"frame": number, "bbox": ...}``, or an
    object by number) are for these frames. Between two boxes, the frames in between are interpolated. Between a box and
    ``null``, the earlier one is kept. Frames outside the numbered ones have no answer.
    """
    alone = _tube_box(value)
    if alone is not None and alone is not _ABSENT:
        return [alone]
    return _frames(
        value, total, _tube_box,
        lambda first, second, share: [one + (other - one) * share for one, other in zip(first, second, strict=True)],
    )  # fmt: skip


def mask_frames(value: Any, total: int | None) -> list[Any] | None:
    """Return polygons (or run lengths) or ``null`` for each frame, as ``tube_frames`` does. In between, the earlier
    mask is kept.
    """
    found = _frames(value, total, _mask, lambda first, _second, _share: first)
    if found is None:
        return None
    sizes: dict[int, int] = {}
    held = sum(_size(mask, sizes) for mask in found)
    return found if held <= MAX_HELD else None


def _frames(
    value: Any, total: int | None, read: Callable[[Any], Any], between: Callable[[Any, Any, float], Any]
) -> list[Any] | None:
    numbered = _numbered(value, read)
    if numbered is not None:
        return _filled(numbered, total, between)
    entries = unwrapped(value)
    if not isinstance(entries, list):
        return None
    found = [read(entry) for entry in entries]
    if any(entry is None for entry in found):
        return None
    return [None if entry is _ABSENT else entry for entry in found]


def _numbered(value: Any, read: Callable[[Any], Any]) -> Mapping[int, Any] | None:
    """Read entries by the numbers of their frames, or return ``None`` if they have none."""
    pairs = _pairs(value)
    if not pairs:
        return None
    found: dict[int, Any] = {}
    for number, entry in pairs:
        frame = finite(int(number) if isinstance(number, str) and number.isdecimal() and len(number) < 10 else number)
        known = read(entry)
        if frame is None or frame != int(frame) or frame < 0 or known is None:
            return None
        found[int(frame)] = known
    return found


def _pairs(value: Any) -> list[list[Any]] | None:
    if isinstance(value, dict) and value and all(key.isdecimal() for key in value):
        return [[key, entry] for key, entry in value.items()]
    entries = unwrapped(value)
    if not isinstance(entries, list):
        return None
    pairs = [pair for entry in entries if (pair := _pair(entry)) is not None]
    if len(pairs) < len(entries):
        return None
    if any(len(entry) == 5 for entry in entries) and not _ascend([pair[0] for pair in pairs]):
        return None  # boxes with scores
    return pairs


def _ascend(numbers: list[Any]) -> bool:
    found = [number for number in map(finite, numbers) if number is not None and number.is_integer()]
    return len(found) == len(numbers) and all(first < second for first, second in itertools.pairwise(found))


def _pair(entry: Any) -> list[Any] | None:
    """Return ``[number, answer]`` of an entry that has its frame's number."""
    if isinstance(entry, dict) and "frame" in entry:
        rest = {key: part for key, part in entry.items() if key != "frame"}
        return [entry["frame"], rest]
    if isinstance(entry, list) and len(entry) == 5 and all(finite(number) is not None for number in entry):
        return [entry[0], entry[1:]]
    if isinstance(entry, list) and len(entry) == 2 and finite(entry[0]) is not None:
        return entry if isinstance(entry[1], list | dict | None) else None
    return None


def _tube_box(value: Any) -> Any:
    if value is None or _says_none(value):
        return _ABSENT
    found = box(value)
    return None if found is None else found[:4]


def _mask(value: Any) -> Any:
    if value is None or value == [] or _says_none(value):
        return _ABSENT
    return polygons(value)


def _size(mask: Any, known: dict[int, int]) -> int:
    """Count the characters of a mask as JSON. A mask that is kept for several frames is measured once."""
    if id(mask) not in known:
        known[id(mask)] = len(json.dumps(mask))
    return known[id(mask)]


def _says_none(value: Any) -> bool:
    """Return whether an object has ``null`` as its only entry."""
    return isinstance(value, dict) and len(value) == 1 and next(iter(value.values())) is None


def _filled(
    numbered: Mapping[int, Any], total: int | None, between: Callable[[Any, Any, float], Any]
) -> list[Any] | None:
    length = min(max(numbered) + 1, _MAX_UNKNOWN) if total is None else min(total, MAX_FRAMES)
    frames: list[Any] = [None] * length
    known = sorted(number for number in numbered if number < length)
    for number in known:
        frames[number] = None if numbered[number] is _ABSENT else numbered[number]
    for first, second in itertools.pairwise(known):
        start, end = frames[first], frames[second]
        for number in range(first + 1, second):
            if start is not None:
                frames[number] = start if end is None else between(start, end, (number - first) / (second - first))
    return frames
