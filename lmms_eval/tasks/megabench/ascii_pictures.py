"""ASCII art as a picture: a fixed grid of 12 x 20 pixels a character, black on white, 224 x 224 in the end.

Drawn with Pillow's built-in bitmap font (6 x 11 pixels), which is on every machine, at half the size.
"""

from __future__ import annotations

COLUMN, LINE, PADDING = 6, 10, 5
"""In pixels at half the size."""
SIDE = 224
QUALITY = 95
MAX_CELLS = 2000
"""Columns and lines beyond these are not drawn: they would be less than a tenth of a pixel in the end."""


def draw(text: str) -> bytes:
    """The bytes of a JPEG; characters that the font lacks (outside Latin-1) are drawn as ``?``."""
    from PIL import Image, ImageDraw, ImageFont

    from lmms_eval.media import encode_image

    lines = [line[:MAX_CELLS].encode("latin-1", "replace").decode("latin-1") for line in text.splitlines()[:MAX_CELLS]]
    width = max(map(len, lines), default=0)
    size = (width * COLUMN + 2 * PADDING, len(lines) * LINE + 2 * PADDING)
    image = Image.new("L", size, 255)
    drawing, font = ImageDraw.Draw(image), ImageFont.load_default_imagefont()
    for number, line in enumerate(lines):
        shown = "".join(character if character.isprintable() else " " for character in line)
        if shown.strip():
            drawing.text((PADDING, PADDING + number * LINE), shown, fill=0, font=font)
    doubled = image.resize((2 * size[0], 2 * size[1]), Image.Resampling.NEAREST)
    final = doubled.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    return encode_image(final, "JPEG", QUALITY)
