"""Pictures of a task's local files, as benchmarks open them: RGB, neither resized nor rotated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image


def image_part(path: Path) -> dict[str, Any]:
    """Return a message part: the path if the file shows exactly what ``open_image`` returns, else that picture.

    Raises ``MediaError`` if the file is missing or cannot be read.
    """
    from lmms_eval.media.image import header

    if header(path).is_plain:
        return {"type": "image", "url": str(path)}
    return {"type": "image", "url": open_image(path)}


def open_image(path: Path) -> Image.Image:
    """Open a picture as RGB: mode RGBA over opaque white, any other mode converted; neither resized nor rotated.

    Raises ``MediaError`` if the file is missing or cannot be read.
    """
    from lmms_eval.media import flatten_alpha, load_image

    image = load_image(path, rotate=False)
    if image.mode == "RGBA":
        return flatten_alpha(image)
    image.info.pop("transparency", None)  # otherwise Pillow keeps a transparent colour in the RGB picture
    converted = image.convert("RGB")
    converted.info.pop("exif", None)
    return converted
