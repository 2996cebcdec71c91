"""Relative translation error of odometry, as the KITTI benchmark defines it (Geiger, Lenz and Urtasun, 2012)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

LENGTHS_M: tuple[float, ...] = (100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0)
STEP = 10
"""A sub-sequence starts at every tenth frame."""
_PARTS = 8
_SHORT_STARTS = 1000


@dataclass(frozen=True, slots=True)
class TranslationErrors:
    """Sum over all sub-sequences of one sequence of errors, each a share of its sub-sequence's length."""

    total: float
    count: int


def translation_errors(truth: Floats, estimate: Floats) -> TranslationErrors:
    """Errors of the estimated motion over all sub-sequences of 100, 200, ... 800 m.

    A sub-sequence ends at the first frame that is farther along the true path than its length. A path of at most 100 m
    has none of them: it is measured over eighths of its own length (1/8, ... 7/8), from every frame (from a thousand
    of them, where there are more). A path that stands still gives none.

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
        return TranslationErrors(0.0, 0)
    true_inverse, inverse = np.linalg.inv(truth), np.linalg.inv(estimate)
    total, count = 0.0, 0
    for length in lengths:
        ends = np.searchsorted(along, along[starts] + length, side="right")
        first, last = starts[ends < len(truth)], ends[ends < len(truth)]
        true_motion, motion = true_inverse[first] @ truth[last], inverse[first] @ estimate[last]
        error = np.linalg.inv(motion) @ true_motion
        total += float(np.linalg.norm(error[:, :3, 3], axis=1).sum()) / length
        count += len(first)
    return TranslationErrors(total, count)


def relative_translation_error(errors: list[TranslationErrors]) -> float:
    """Mean over all sub-sequences of all sequences, in percent; at least one sub-sequence."""
    return 100 * math.fsum(one.total for one in errors) / sum(one.count for one in errors)
