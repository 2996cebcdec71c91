"""Picture encoding by the names that model plugins import; the work is done in ``lmms_eval.media``.

``cache`` is a mapping that a plugin keeps over several calls; a picture is encoded once per mapping. ``copy_if_pil``
and ``use_path_cache`` are accepted without effect: no picture is changed, and encoded files are cached by content.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, get_args

from lmms_eval.errors import MediaError
from lmms_eval.media import digest
from lmms_eval.media.encode import EncodedImage, ImageFormat, WireOptions, encode_image, wire_image
from lmms_eval.media.image import load_image, to_rgb

_FORMATS: dict[str, ImageFormat] = {name: name for name in get_args(ImageFormat)} | {"JPG": "JPEG"}
_JPEG_MODES = ("1", "L", "RGB", "CMYK", "YCbCr")

Cache = MutableMapping[Any, str]


def encode_image_to_bytes(
    image: Any,
    *,
    image_format: str = "PNG",
    convert_rgb: bool = False,
    quality: int | None = None,
    copy_if_pil: bool = False,  # noqa: ARG001 - no picture is changed
) -> bytes:
    """Encode a picture (PIL image, path, ...) in a format (``PNG``, ``JPEG``, ``WEBP``), in its own mode.

    JPEG has no transparency and no palette: such a picture is laid over white. ``quality`` is for JPEG and WebP.

    Raises:
        MediaError: the picture cannot be found or read, or the format cannot hold its mode.
        ValueError: unknown format.
    """
    name = _format(image_format)
    picture = load_image(image)
    if convert_rgb or (name == "JPEG" and picture.mode not in _JPEG_MODES):
        picture = to_rgb(picture)
    buffer = io.BytesIO()
    try:
        picture.save(buffer, format=name, **({} if quality is None or name == "PNG" else {"quality": quality}))
    except OSError as error:
        raise MediaError(f"a picture of mode {picture.mode} is not written as {name}: pass convert_rgb=True") from error
    return buffer.getvalue()


def encode_image_to_base64(  # noqa: PLR0913 - the parameters of the family's interface
    image: Any,
    *,
    image_format: str | None = None,
    convert_rgb: bool = False,
    quality: int | None = None,
    copy_if_pil: bool = False,  # noqa: ARG001 - no picture is changed
    cache: Cache | None = None,
    use_path_cache: bool = True,  # noqa: ARG001 - always
) -> str:
    """Encode a picture (PIL image, path, bytes, ...) in base64.

    Without ``image_format`` the original bytes of a JPEG, PNG or WebP file are kept if possible, and anything else
    becomes PNG. With it the picture is encoded in that format (``PNG``, ``JPEG``, ``WEBP``).

    Raises:
        MediaError: the picture cannot be found or read.
        ValueError: unknown format.
    """
    settings = (image_format, convert_rgb, quality)
    return _kept(cache, image, settings, lambda: _encode(image, *settings).base64)


def encode_image_to_data_url(  # noqa: PLR0913 - the parameters of the family's interface
    image: Any,
    *,
    image_format: str | None = None,
    mime_type: str | None = None,
    convert_rgb: bool = False,
    quality: int | None = None,
    copy_if_pil: bool = False,  # noqa: ARG001 - no picture is changed
    cache: Cache | None = None,
    use_path_cache: bool = True,  # noqa: ARG001 - always
) -> str:
    """Put the ``data:`` prefix before :func:`encode_image_to_base64`; ``mime_type`` overrides the media type."""

    def encoded() -> str:
        made = _encode(image, image_format, convert_rgb, quality)
        return f"data:{mime_type or made.mime};base64,{made.base64}"

    return _kept(cache, image, ("data", mime_type, image_format, convert_rgb, quality), encoded)


def encode_image_to_base64_with_size_limit(  # noqa: PLR0913 - the parameters of the family's interface
    image: Any,
    *,
    max_size_bytes: int,
    image_format: str | None = None,
    quality: int | None = None,
    convert_rgb: bool = True,  # noqa: ARG001 - as the wire form needs it
    copy_if_pil: bool = True,  # noqa: ARG001 - no picture is changed
    resize_factor: float = 0.75,  # noqa: ARG001 - the largest size that fits is looked for
    min_side: int = 100,  # noqa: ARG001 - likewise
    resample: Any = None,  # noqa: ARG001 - likewise
    cache: Cache | None = None,
    use_path_cache: bool = True,  # noqa: ARG001 - always
) -> str:
    """Encode a picture in base64 with at most ``max_size_bytes`` bytes, shrunk as far as necessary.

    ``convert_rgb``, ``resize_factor``, ``min_side`` and ``resample`` are accepted and not used: a picture becomes RGB
    if the format requires it, and the largest size that fits is found in another way.

    Raises:
        MediaError: the picture cannot be read, or cannot be made to fit.
        ValueError: unknown format.
    """
    options = WireOptions(
        max_bytes=max_size_bytes, image_format=_format(image_format or "PNG"), quality=quality or WireOptions().quality
    )
    return _kept(cache, image, ("limited", options), lambda: wire_image(image, options=options).base64)


def _kept(cache: Cache | None, image: Any, settings: Hashable, encoded: Callable[[], str]) -> str:
    if cache is None:
        return encoded()
    key = (digest(image), settings)
    if key not in cache:
        cache[key] = encoded()
    return cache[key]


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
