"""Calculations of the benchmark's video generation toolkit on the output of its detectors, captioners and networks.

Frames, captions, labels, boxes and flows are mapped to counts, shares and decisions. ``middle_frames``,
``frames_at_rate`` and ``prompt_of`` give the frames and prompts of the toolkit to scripts that run those networks.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from lmms_eval.errors import DataError

COLOURS = (
    "white", "red", "pink", "blue", "silver", "purple", "orange", "green", "gray", "yellow", "black", "grey",
)  # fmt: skip
"""Words that count as a description of colour in a region's caption."""
_OVERLAP = 0.1
"""IoU above which objects that should be apart lose score."""
_PEAK = 255.0
_LARGEST_SHARE = 0.05
_MOVING_RADIUS, _MOVING_SIDE = 6.0, 256.0
_MOVING_PAIRS, _MOVING_FRAMES = 4, 16
_SEED = re.compile(r"-\d+$")
_HORIZONTAL = ("left", "right")
_VERTICAL = ("top", "bottom")


class Region(Struct, frozen=True):
    """A detected object of a frame."""

    caption: str
    label: str
    corners: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """``x1, y1, x2, y2``."""


def spatial_score(relation: str, first: Sequence[float], second: Sequence[float]) -> float:
    """Score two boxes ``[x1, y1, x2, y2]`` that should be next to (left, right) or above each other (top, bottom).

    The score is 1 if the centres are further apart along that axis and the boxes hardly overlap, 0.1 / IoU if they
    overlap more, else 0. As published, the side of the first box does not matter. Raises ``DataError`` for a relation
    without one of the four words, or a box that is no four finite numbers.
    """
    words = relation.lower().split()
    horizontal = any(word in words for word in _HORIZONTAL)
    if not horizontal and not any(word in words for word in _VERTICAL):
        raise DataError(f"{relation!r} does not name one of {', '.join((*_HORIZONTAL, *_VERTICAL))}")
    for box in (first, second):
        if len(box) != 4 or not all(math.isfinite(value) for value in box):
            raise DataError(f"{list(box)!r:.80} is no box [x1, y1, x2, y2]")
    apart = [abs(first[axis] + first[axis + 2] - second[axis] - second[axis + 2]) for axis in (0, 1)]
    along, across = apart if horizontal else reversed(apart)
    if along <= across:
        return 0.0
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    shared = max(0.0, width) * max(0.0, height)
    union = math.fsum((box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)) - shared
    overlap = shared / union if union > 0 else 0.0
    return 1.0 if overlap < _OVERLAP else _OVERLAP / overlap


def colour_counts(colour: str, name: str, frames: Iterable[Iterable[Region]]) -> tuple[int, int]:
    """Count the frames with a region ``name`` that has any colour in its caption, and those with ``colour``."""
    described = wanted = 0
    for regions in frames:
        captions = [region.caption for region in regions if region.label == name]
        described += any(known in caption for caption in captions for known in COLOURS)
        wanted += any(colour in caption for caption in captions)
    return described, wanted


def object_count(name: str, frames: Iterable[Sequence[str]]) -> int:
    """Count the frames with ``name`` among their labels."""
    return sum(name in labels for labels in frames)


def objects_count(names: str, frames: Iterable[Sequence[str]]) -> int:
    """Count the frames with all objects of ``A and B`` among their labels."""
    wanted = names.split(" and ")
    return sum(all(name in labels for name in wanted) for labels in frames)


def steadiness(frames: Iterable[Any]) -> float:
    """Return 1 minus the mean absolute difference of consecutive frames of values 0 to 255, as a share of 255.

    Means of pairs are in single precision, as published. Only two frames are held at a time. Raises ``DataError`` for
    fewer than two frames, or frames of different sizes.
    """
    differences: list[float] = []
    previous: npt.NDArray[np.float32] | None = None
    for frame in frames:
        current = np.asarray(frame, dtype=np.float32)
        if previous is not None:
            if current.shape != previous.shape:
                raise DataError(f"frames of the sizes {previous.shape} and {current.shape} cannot be compared")
            differences.append(float(np.mean(np.abs(current - previous))))
        previous = current
    if not differences:
        raise DataError("flickering needs at least 2 frames")
    return (_PEAK - math.fsum(differences) / len(differences)) / _PEAK


def largest_radius(flow: Any) -> float:
    """Return the mean length of the longest 5 % of the vectors of a flow ``(height, width, 2)``, at least of one.

    Raises ``DataError`` for an array that is no flow, or numbers that are not finite.
    """
    vectors = np.asarray(flow, dtype=np.float64)
    if vectors.ndim != 3 or vectors.shape[2] != 2 or vectors.size == 0:
        raise DataError(f"an array {vectors.shape} is no flow (height, width, 2)")
    radii = np.hypot(vectors[..., 0], vectors[..., 1]).ravel()
    if not np.isfinite(radii).all():
        raise DataError("the flow holds numbers that are not finite")
    count = max(1, int(radii.size * _LARGEST_SHARE))
    return math.fsum(np.partition(radii, radii.size - count)[-count:].tolist()) / count


def is_moving(short_side: int, frame_count: int, radii: Sequence[float]) -> bool:
    """Return whether a video moves: whether enough pairs of frames have a radius (``largest_radius``) above a bound.

    The bound grows with the frames' shorter side, and the number of pairs with that of the frames, about 8 a second.
    """
    threshold = _MOVING_RADIUS * short_side / _MOVING_SIDE
    needed = round(_MOVING_PAIRS * frame_count / _MOVING_FRAMES)
    return sum(radius > threshold for radius in radii) >= needed


def scene_count(scene: str, captions: Iterable[str]) -> int:
    """Count the frames with a caption that holds every word of the scene's description."""
    words = scene.split()
    return sum(all(word in caption for word in words) for caption in captions)


def middle_frames(count: int, length: int) -> list[int]:
    """Return the indices of ``count`` frames: the middles of even parts of a video. A shorter one repeats its last
    frame.

    Args:
        count: frames that are wanted, at least 1.
        length: frames of the video, at least 1.
    """
    parts = min(count, length)
    bounds = [part * length // parts for part in range(parts + 1)]
    found = [(first + end - 1) // 2 for first, end in itertools.pairwise(bounds)]
    return found + found[-1:] * (count - parts)


def frames_at_rate(rate: float, length: int, native_rate: float) -> list[int]:
    """Return the indices of the frames in the middle of each ``1 / rate`` seconds.

    Args:
        rate: frames a second that are wanted, above 0.
        length: frames of the video.
        native_rate: its frames a second.
    """
    step = native_rate / rate
    places = (round((part + 0.5) * step) for part in range(math.ceil(length / step)))
    return [place for place in places if place < length]


def prompt_of(name: str) -> str:
    """Return the prompt in a video's file name ``PROMPT-SEED.mp4``."""
    return _SEED.sub("", PurePath(name).stem)
