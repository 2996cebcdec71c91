"""Picture encoding by the names that model plugins import; the work is done in ``lmms_eval.media``."""

from __future__ import annotations

import base64
from typing import Any, get_args

from lmms_eval.media.encode import EncodedImage, ImageFormat, WireOptions, encode_image, wire_image
from lmms_eval.media.image import load_image, to_rgb

_FORMATS: dict[str, ImageFormat] = {name: name for name in get_args(ImageFormat)} | {"JPG": "JPEG"}


def encode_image_to_base64(
    image: Any, *, image_format: str | None = None, convert_rgb: bool = False, quality: int | None = None
) -> str:
    """A picture (PIL image, path, bytes, ...) in base64.

    Without ``image_format`` the original bytes of a JPEG, PNG or WebP file are kept wherever that is possible and
    anything else becomes PNG. With it the picture is encoded in that format (``PNG``, ``JPEG``, ``WEBP``).

    Raises:
        MediaError: the picture cannot be found or read.
        ValueError: unknown format.
    """
    return _encode(image, image_format, convert_rgb, quality).base64


def encode_image_to_data_url(
    image: Any,
    *,
    image_format: str | None = None,
    mime_type: str | None = None,
    convert_rgb: bool = False,
    quality: int | None = None,
) -> str:
    """Put the ``data:`` prefix before :func:`encode_image_to_base64`; ``mime_type`` overrides the media type."""
    encoded = _encode(image, image_format, convert_rgb, quality)
    return f"data:{mime_type or encoded.mime};base64,{encoded.base64}"


def encode_image_to_base64_with_size_limit(
    image: Any, *, max_size_bytes: int, image_format: str | None = None, quality: int | None = None
) -> str:
    """A picture in base64 whose encoded form has at most ``max_size_bytes`` bytes, shrunk as far as that asks.

    Raises:
        MediaError: the picture cannot be read, or cannot be made to fit.
        ValueError: unknown format.
    """
    options = WireOptions(
        max_bytes=max_size_bytes, image_format=_format(image_format or "PNG"), quality=quality or WireOptions().quality
    )
    return wire_image(image, options=options).base64


def _encode(image: Any, image_format: str | None, convert_rgb: bool, quality: int | None) -> EncodedImage:
    if image_format is None:
        return wire_image(image, options=WireOptions(quality=quality or WireOptions().quality))
    name = _format(image_format)
    picture = load_image(image)
    data = encode_image(to_rgb(picture) if convert_rgb else picture, name, quality or WireOptions().quality)
    return EncodedImage(f"image/{name.lower()}", base64.b64encode(data).decode("ascii"), len(data))


def _format(name: str) -> ImageFormat:
    found = _FORMATS.get(name.upper())
    if found is None:
        raise ValueError(f"unknown image format {name!r}: use one of {', '.join(_FORMATS)}")
    return found
