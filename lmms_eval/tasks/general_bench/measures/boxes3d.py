"""Overlap of oriented boxes in space."""

from __future__ import annotations

import math
from typing import NamedTuple

from msgspec import Struct


class Corner(NamedTuple):
    """A point on the ground plane."""

    x: float
    y: float


class Box3D(Struct, frozen=True):
    """A box: centre, full sizes along its own axes, and rotation about the vertical axis in radians."""

    x: float
    y: float
    z: float
    dx: float
    dy: float
    dz: float
    yaw: float = 0.0
    label: str = ""
    score: float = 1.0

    @property
    def volume(self) -> float:
        return self.dx * self.dy * self.dz

    def corners(self) -> list[Corner]:
        """Return the corners of the base, anticlockwise."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        halves = ((1, 1), (-1, 1), (-1, -1), (1, -1))
        sides = [(across * self.dx / 2, along * self.dy / 2) for across, along in halves]
        return [Corner(self.x + a * cos - b * sin, self.y + a * sin + b * cos) for a, b in sides]


def ground_distance(one: Box3D, other: Box3D) -> float:
    """Return the distance of the centres on the ground plane."""
    return math.hypot(one.x - other.x, one.y - other.y)


def iou3d(one: Box3D, other: Box3D) -> float:
    """Return the volume of the intersection divided by that of the union. It is 0 if the union is empty."""
    height = min(one.z + one.dz / 2, other.z + other.dz / 2) - max(one.z - one.dz / 2, other.z - other.dz / 2)
    reach = (math.hypot(one.dx, one.dy) + math.hypot(other.dx, other.dy)) / 2
    if height <= 0 or ground_distance(one, other) >= reach:
        return 0.0
    shape = _clipped(one, other)
    area = abs(math.fsum(a.x * b.y - b.x * a.y for a, b in zip(shape, shape[1:] + shape[:1], strict=True))) / 2
    common = min(area * height, one.volume, other.volume)
    union = one.volume + other.volume - common
    return common / union if union > 0 else 0.0


def _clipped(one: Box3D, other: Box3D) -> list[Corner]:
    """Clip the base of ``one`` by that of ``other`` (Sutherland and Hodgman, 1974).

    Coordinates are relative to the centre of ``other``, because areas far from the origin would lose digits.
    """
    shape = [Corner(corner.x - other.x, corner.y - other.y) for corner in one.corners()]
    frame = [Corner(corner.x - other.x, corner.y - other.y) for corner in other.corners()]
    for start, end in zip(frame, frame[1:] + frame[:1], strict=True):
        if not shape:
            break
        sides = [(end.x - start.x) * (at.y - start.y) - (end.y - start.y) * (at.x - start.x) for at in shape]
        kept: list[Corner] = []
        for number, (corner, side) in enumerate(zip(shape, sides, strict=True)):
            before, before_side = shape[number - 1], sides[number - 1]
            if (side < 0) != (before_side < 0):
                share = before_side / (before_side - side)
                kept.append(Corner(before.x + share * (corner.x - before.x), before.y + share * (corner.y - before.y)))
            if side >= 0:
                kept.append(corner)
        shape = kept
    return shape
