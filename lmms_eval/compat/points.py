"""Points in pictures as models write them."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PAIR = re.compile(r"[\[(]\s*+([-+]?\d++(?:\.\d*+)?+)\s*+,\s*+([-+]?\d++(?:\.\d*+)?+)\s*+[\])]")
_THOUSANDTHS = 1000
_FARTHEST = 2.0**62
"""Pixels that a 64-bit integer holds; an answer may state more."""


def parse_point2d(text: str, width: float, height: float) -> NDArray[Any]:
    """Read the points ``(x, y)`` or ``[x, y]`` of an answer as pixels.

    A pair with a decimal point in either number is a share of the picture, any other is in thousandths of it. Pixels
    are truncated toward zero; points outside the picture stay outside.

    Args:
        text: the answer.
        width: of the picture, in pixels.
        height: of the picture, in pixels.

    Returns:
        Whole numbers of shape (points, 2), or an empty array of shape (0,) if the answer has no points.
    """
    points = []
    for x, y in _PAIR.findall(text):
        whole = 1 if "." in x or "." in y else _THOUSANDTHS
        points.append((_pixel(x, whole, width), _pixel(y, whole, height)))
    return np.array(points)


def _pixel(number: str, whole: int, length: float) -> int:
    value = max(-sys.float_info.max, min(float(number), sys.float_info.max)) / whole * length
    return int(max(-_FARTHEST, min(value, _FARTHEST)))
