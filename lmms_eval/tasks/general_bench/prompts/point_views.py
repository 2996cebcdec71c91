"""Point clouds as pictures from four sides, for models that take only pictures.

The view is orthographic: z is up, the eye is 30 degrees above the horizon, at 45, 135, 225 and 315 degrees around it.
The cloud fills the picture, and nearer points are brighter, on black. The same cloud gives the same pixels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lmms_eval.errors import MediaError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from PIL import Image

    Floats = npt.NDArray[np.float64]

AZIMUTHS = (45.0, 135.0, 225.0, 315.0)
"""Degrees, counter-clockwise from the x axis."""
ELEVATION = 30.0
"""Degrees above the horizon."""
SIZE = 448
"""Pixels of a side."""
MAX_POINTS = 200_000
"""Most points that are drawn. Of a larger cloud, every n-th point is drawn."""
_MARGIN = 0.04
_DARKEST = 60


def views(points: Floats, size: int = SIZE) -> list[Image.Image]:
    """Return grey pictures of a cloud, one for each of ``AZIMUTHS``, of ``size`` pixels a side.

    The first three columns of the points are x, y, z in any unit. Raises ``MediaError`` for another shape, or no point
    whose coordinates are finite.
    """
    import numpy as np
    from PIL import Image

    cloud = np.asarray(points)
    if cloud.ndim != 2 or cloud.shape[1] < 3 or cloud.dtype.kind not in "fiu":
        raise MediaError(f"a point cloud has rows of x, y, z, not the shape {cloud.shape}")
    cloud = cloud[:, :3].astype(np.float64)
    cloud = cloud[np.isfinite(cloud).all(axis=1)]
    if not len(cloud):
        raise MediaError("a point cloud without a point")
    cloud = cloud[:: math.ceil(len(cloud) / MAX_POINTS)]
    low, high = cloud.min(axis=0), cloud.max(axis=0)
    half = high / 2 - low / 2
    longest = float(half.max()) or 1.0  # first to size 1: squares of large coordinates are not finite
    centred = (cloud - (low / 2 + high / 2)) / longest
    centred /= float(np.linalg.norm(half / longest)) or 1.0
    return [Image.fromarray(_view(centred, math.radians(angle), size)) for angle in AZIMUTHS]


def _view(cloud: Floats, azimuth: float, size: int) -> npt.NDArray[np.uint8]:
    """Draw a cloud within the unit ball, seen from one side."""
    import numpy as np

    # unit vectors to the right of the picture, to its top, and towards the eye
    elevation = math.radians(ELEVATION)
    flat, rise = math.cos(elevation), math.sin(elevation)
    towards = np.array([flat * math.cos(azimuth), flat * math.sin(azimuth), rise])
    up = np.array([-rise * math.cos(azimuth), -rise * math.sin(azimuth), flat])
    right = np.array([-math.sin(azimuth), math.cos(azimuth), 0.0])
    scale = (0.5 - _MARGIN) * size
    columns = np.rint(size / 2 + scale * (cloud @ right)).astype(np.intp)
    rows = np.rint(size / 2 - scale * (cloud @ up)).astype(np.intp)
    shade = np.rint(_DARKEST + (255 - _DARKEST) * (1 + np.clip(cloud @ towards, -1, 1)) / 2).astype(np.uint8)
    picture = np.zeros((size, size), dtype=np.uint8)
    radius = 2 if len(cloud) < 20_000 else 1
    for down in range(-radius, radius + 1):
        for side in range(-radius, radius + 1):
            if down * down + side * side > radius * radius:
                continue
            place = np.clip(rows + down, 0, size - 1), np.clip(columns + side, 0, size - 1)
            np.maximum.at(picture, place, shade)
    return picture
