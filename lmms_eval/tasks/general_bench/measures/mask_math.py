"""Overlaps of masks (as runs of set pixels), boxes, tracks and tubes, as fractions.

Boxes are ``x, y, width, height`` unless stated otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmms_eval.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray


SUCCESS_THRESHOLDS = tuple(step / 20 for step in range(21))
"""Overlaps 0, 0.05, ..., 1 of the success curve."""
HIT = 0.5
"""Least IoU that F counts as a hit."""


def paired_iou(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """Return the IoU of boxes, shapes (..., 4), which broadcast. It is 0 if the union is empty."""
    import numpy as np

    left = np.maximum(one[..., :2], other[..., :2])
    right = np.minimum(one[..., :2] + one[..., 2:], other[..., :2] + other[..., 2:])
    first, second = one[..., 2] * one[..., 3], other[..., 2] * other[..., 3]
    shared = np.minimum(np.prod(np.maximum(right - left, 0.0), axis=-1), np.minimum(first, second))  # never by rounding
    union = first + second - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1.0), 0.0)


def success_area(overlaps: NDArray[Any]) -> float:
    """Return the area under the success curve: the mean over 21 thresholds of the share of frames with an IoU above it.

    By that definition (of the OTB benchmark) perfect boxes reach 20/21, since no IoU is above 1.
    """
    return math.fsum(float((overlaps > level).mean()) for level in SUCCESS_THRESHOLDS) / len(SUCCESS_THRESHOLDS)


def tube_iou(overlaps: NDArray[Any], predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the vIoU of a video: the sum of IoU over frames with both boxes, divided by the number of frames with at
    least one box, or 0 without boxes. ``predicted`` and ``truth`` are true for frames with such a box.
    """
    either = int((predicted | truth).sum())
    return math.fsum(overlaps[predicted & truth]) / either if either else 0.0


def jaccard(predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return J of a track: the mean IoU over its frames, with boxes ``(frames, 4)``.

    Raises ``DataError`` if the numbers of frames differ or are zero.
    """
    if len(predicted) != len(truth) or not len(truth):
        raise DataError(f"J needs a box for each frame on both sides, not {len(predicted)} and {len(truth)}")
    return math.fsum(paired_iou(predicted, truth)) / len(truth)


def box_f1(predicted: NDArray[Any], truth: NDArray[Any], threshold: float = HIT) -> float:
    """Return F of a track with boxes ``(n, 4)`` as the authors compute it. It is 1 if both sides are empty.

    Each predicted box is compared with the true box that it overlaps most (the first of equals), of any frame, and hits
    it if the IoU reaches the threshold. A true box may be hit several times, and is missed if it is never hit.
    """
    if not len(predicted) and not len(truth):
        return 1.0
    found: set[int] = set()
    hits = 0
    for box in predicted:
        overlaps = paired_iou(box, truth)
        best = int(overlaps.argmax()) if len(truth) else -1
        if best >= 0 and overlaps[best] >= threshold:
            hits += 1
            found.add(best)
    return 2 * hits / (hits + len(predicted) + len(truth) - len(found)) if hits else 0.0


class Runs(Struct, frozen=True, eq=False):
    """A set of positions on a line: the pixels of a mask, column by column (COCO's order), or points of a cloud."""

    height: int
    width: int
    """Width. For points the height is 1 and the width their number (0 if unknown)."""
    starts: NDArray[Any]
    """Shape (runs,), int64, rising."""
    ends: NDArray[Any]
    """Positions after the last one of each run. Every end is below the next start."""

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.height, self.width

    @property
    def area(self) -> int:
        """Number of set positions."""
        return int((self.ends - self.starts).sum())


def iou_of(shared: int, one: int, other: int) -> float:
    """Return the intersection over the union, given the areas of both and of either mask; 0 if both are empty."""
    return shared / (one + other - shared) if one + other else 0.0


def dice_of(shared: int, one: int, other: int) -> float:
    """Return twice the intersection divided by the sum of both areas; 0 if both are empty."""
    return 2 * shared / (one + other) if one + other else 0.0


def runs_of(mask: NDArray[Any]) -> Runs:
    """Return the runs of a mask, shape (height, width), bool."""
    height, width = mask.shape
    starts, ends = line_runs(mask.T.ravel())
    return Runs(height, width, starts, ends)


def box_of(mask: Runs) -> list[int]:
    """Return the box ``[x, y, width, height]`` of a mask, or four zeros for an empty mask.

    Width and height are differences from the first to the last column and row, one pixel short, as in the authors'
    code.
    """
    if not len(mask.starts):
        return [0, 0, 0, 0]
    first, last = mask.starts // mask.height, (mask.ends - 1) // mask.height
    whole = bool((last > first).any())  # a run that continues in the next column touches both edges
    top = 0 if whole else int((mask.starts % mask.height).min())
    bottom = mask.height - 1 if whole else int(((mask.ends - 1) % mask.height).max())
    left, right = int(first.min()), int(last.max())
    return [left, top, right - left, bottom - top]


def runs_of_part(part: NDArray[Any], top: int, left: int, size: tuple[int, int]) -> Runs:
    """Return the runs of a mask of height and width ``size`` from a part of it, bool, that holds all its pixels.

    ``top`` and ``left`` are the first row and column of the part in the mask.
    """
    import numpy as np

    high = part.shape[0] + 1  # an empty row below, so that every run ends with its column
    starts, ends = line_runs(np.pad(part, ((0, 1), (0, 0))).T.ravel())
    moved = (starts // high + left) * size[0] + top + starts % high
    return _joined(*size, moved, moved + (ends - starts))


def line_runs(line: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the starts and ends of the runs of a line of flags."""
    import numpy as np

    padded = np.zeros(len(line) + 2, dtype=np.int8)
    padded[1:-1] = line
    change = np.diff(padded)
    return np.flatnonzero(change == 1).astype(np.int64), np.flatnonzero(change == -1).astype(np.int64)


def runs_of_indices(indices: NDArray[Any], length: int = 0) -> Runs:
    """Return the runs of a set of positions in any order. Repeated positions count once."""
    import numpy as np

    rising = np.unique(indices).astype(np.int64)
    breaks = np.flatnonzero(np.diff(rising) > 1)
    starts = rising[np.concatenate([[0], breaks + 1])] if len(rising) else rising
    ends = rising[np.concatenate([breaks, [len(rising) - 1]])] + 1 if len(rising) else rising
    return Runs(1, length, starts, ends)


def runs_of_counts(counts: NDArray[Any], height: int, width: int) -> Runs:
    """Return the runs of COCO's counts: alternating lengths of background and foreground, column by column.

    Raises ``DataError`` if a length is negative, or they do not fill the mask.
    """
    import numpy as np

    if len(counts) and int(counts.min()) < 0:
        raise DataError("a run length is negative")
    if len(counts) and int(counts.max()) > height * width:
        raise DataError("a run is longer than the mask")
    borders = np.cumsum(counts, dtype=np.int64)
    total = int(borders[-1]) if len(borders) else 0
    if total != height * width:
        raise DataError(f"the run lengths cover {total} pixels of a mask of {height} x {width}")
    starts, ends = borders[0::2][: len(borders) // 2], borders[1::2]
    return _joined(height, width, starts[starts < ends], ends[starts < ends])


def _joined(height: int, width: int, starts: NDArray[Any], ends: NDArray[Any]) -> Runs:
    """Join runs that touch."""
    import numpy as np

    apart = np.flatnonzero(starts[1:] > ends[:-1])
    if not len(starts):
        return Runs(height, width, starts, ends)
    return Runs(height, width, starts[np.concatenate([[0], apart + 1])], ends[np.concatenate([apart, [len(ends) - 1]])])


def runs_of_box(xywh: Sequence[float], height: int, width: int) -> Runs:
    """Return the runs of the pixels of a box, with its edges rounded to whole pixels and cut at the border."""
    import numpy as np

    x, y, wide, high = xywh
    left, right = (min(max(round(edge), 0), width) for edge in (x, x + wide))
    top, bottom = (min(max(round(edge), 0), height) for edge in (y, y + high))
    columns = np.arange(left, right if bottom > top else left, dtype=np.int64) * height
    return _joined(height, width, columns + top, columns + bottom)


def as_pixels(runs: Runs) -> NDArray[Any]:
    """Return the mask, shape (height, width), bool."""
    import numpy as np

    change = np.zeros(runs.height * runs.width + 1, dtype=np.int8)
    change[runs.starts] += 1
    change[runs.ends] -= 1
    return np.asarray(change[:-1].cumsum(dtype=np.int8).astype(bool).reshape(runs.width, runs.height).T)


def shared_areas(one: Runs, others: Sequence[Runs]) -> NDArray[Any]:
    """Return how many positions a set shares with each of others, int64."""
    import numpy as np

    if not others:
        return np.zeros(0, dtype=np.int64)
    counts = np.array([len(other.starts) for other in others])
    starts, ends = (np.concatenate(parts) for parts in zip(*((o.starts, o.ends) for o in others), strict=True))
    shared = np.concatenate([[0], np.cumsum(_below(one, ends) - _below(one, starts))])
    borders = np.concatenate([[0], np.cumsum(counts)])
    return np.asarray(shared[borders[1:]] - shared[borders[:-1]])


def _below(runs: Runs, positions: NDArray[Any]) -> NDArray[Any]:
    """Return the number of set positions before each position."""
    import numpy as np

    lengths = runs.ends - runs.starts
    before = np.concatenate([[0], np.cumsum(lengths)])
    index = np.searchsorted(runs.starts, positions, side="left")
    inside = np.where(index > 0, runs.ends[np.maximum(index - 1, 0)] - positions, 0) if len(lengths) else 0
    return np.asarray(before[index] - np.maximum(inside, 0))


def overlap(one: Runs, other: Runs) -> tuple[int, int, int]:
    """Return the shared area and both areas of two masks. Raises ``DataError`` if their sizes differ."""
    if one.size != other.size:
        raise DataError(f"masks of {one.height} x {one.width} and {other.height} x {other.width} pixels")
    return int(shared_areas(one, [other])[0]), one.area, other.area


def overlap_row(one: Runs, others: Sequence[Runs]) -> NDArray[Any]:
    """Return the IoU of a mask with each of others. It is 0 if both are empty."""
    import numpy as np

    shared = shared_areas(one, others)
    union = one.area + np.array([other.area for other in others]) - shared
    return np.where(union > 0, shared / np.maximum(union, 1), 0.0)


def video_iou(predicted: Sequence[Runs], truth: Sequence[Runs]) -> float:
    """Return the IoU pooled over a video's frames, or 0 without pixels. Raises ``DataError`` if frames do not fit."""
    if len(predicted) != len(truth):
        raise DataError(f"{len(predicted)} predicted masks for {len(truth)} frames")
    parts = [overlap(one, other) for one, other in zip(predicted, truth, strict=True)]
    return iou_of(*map(sum, zip((0, 0, 0), *parts, strict=True)))


def class_counts(predicted: NDArray[Any], truth: NDArray[Any]) -> dict[int, tuple[int, int, int]]:
    """Count the pixels of each class, 0 to 65,535, that are right, in the reference and in the prediction."""
    import numpy as np

    one, other = predicted.ravel(), truth.ravel()
    right, wanted, given = (np.bincount(part) for part in (one[one == other], other, one))
    most = max(len(wanted), len(given))
    right, wanted, given = (np.pad(part, (0, most - len(part))) for part in (right, wanted, given))
    return {
        int(value): (int(right[value]), int(wanted[value]), int(given[value]))
        for value in np.flatnonzero(wanted + given)
    }
