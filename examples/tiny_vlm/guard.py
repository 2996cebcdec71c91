"""Keep the evaluation's pictures out of the training data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

SMALL = (24, 16)
NEAR = 3.0
"""Mean difference (of 255) below which two reduced pictures count as the same."""
SUFFIXES = (".png", ".jpg")


class Guard:
    """Refuses a picture that is, or nearly is, one of the pictures below a folder (demonstrations included)."""

    def __init__(self, folder: Path) -> None:
        self._known: dict[tuple[int, int], list[np.ndarray]] = {}
        for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):
            image = Image.open(path)
            if image.mode == "RGBA":
                ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
                image = Image.alpha_composite(ground, image)
            image = image.convert("RGB")
            self._known.setdefault(image.size, []).append(_reduced(image))
        self._stacks = {size: np.stack(found) for size, found in self._known.items()}
        self.refused = 0

    def __call__(self, image: Image.Image) -> bool:
        stack = self._stacks.get(image.size)
        if stack is None:
            return True
        nearest = float(np.abs(stack - _reduced(image)).mean(axis=(1, 2, 3)).min())
        self.refused += nearest < NEAR
        return nearest >= NEAR


def _reduced(image: Image.Image) -> np.ndarray:
    return np.asarray(image.resize(SMALL, Image.Resampling.BOX), dtype=np.float32)
