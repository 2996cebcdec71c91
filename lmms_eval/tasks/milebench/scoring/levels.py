"""Levels by number of images."""

from __future__ import annotations

from typing import Literal

Level = Literal["Few", "Medium", "Many"]
LEVELS: tuple[Level, ...] = ("Few", "Medium", "Many")
FIRST_MEDIUM, LAST_MEDIUM = 6, 31


def image_level(n_images: int) -> Level:
    """The level of a sample by the number of images of its annotation (none or one counts as ``Few``)."""
    if n_images < FIRST_MEDIUM:
        return "Few"
    return "Many" if n_images > LAST_MEDIUM else "Medium"
