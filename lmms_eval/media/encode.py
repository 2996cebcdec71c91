"""Encoding of pictures for API back ends: the original bytes if no transform is needed, else encoded once."""

from __future__ import annotations

import base64
import functools
import io
import math
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from lmms_eval.errors import MediaError
from lmms_eval.media.image import (
    MIME as MIME,
)
from lmms_eval.media.image import (
    UNBOUNDED,
    Bounds,
    ImageHeader,
    encode_png,
    fit,
    flatten_alpha,
    header_of,
    load_image,
    open_image,
    shrink,
    to_rgb,
)
from lmms_eval.media.originals import ByteLRU, original_of, source_original
from lmms_eval.media.reference import MediaRef, content, digest, known_digest, resolve
from lmms_eval.media.sent import AsSent, note_file, note_picture

if TYPE_CHECKING:
    from PIL import Image

ImageFormat = Literal["PNG", "JPEG", "WEBP"]

_TAIL_BYTES = 4096
_ENCODED_MAX_BYTES = 16 * 2**20
_MIN_SIDE = 8
_WEBP_SIDE = 16_383
"""Maximum width and height of a WebP picture."""


class EncodedImage(Struct, frozen=True):
    """A picture ready for a request body."""

    mime: str
    base64: str
    nbytes: int
    """Size of the encoded picture, before base64."""
    untouched: bool = False
    """Whether the bytes are those of the source."""
    size: tuple[int, int] = (0, 0)
    """Width and height in pixels."""

    @property
    def data_url(self) -> str:
        return f"data:{self.mime};base64,{self.base64}"


class WireOptions(Struct, frozen=True):
    """Requirements of an API back end on pictures.

    ``image_format`` is used if a picture has to be encoded: PNG (lossless, default), WEBP (lossless), or JPEG with
    ``quality``, which is lossy. Originals are sent unchanged unless they exceed a limit.
    """

    max_bytes: int | None = None
    """Bound on the encoded picture, before base64."""
    bounds: Bounds = UNBOUNDED
    image_format: ImageFormat = "PNG"
    quality: int = 85

    def __post_init__(self) -> None:
        if self.image_format not in MIME:
            raise ValueError(f"unknown image format {self.image_format!r}: use one of {', '.join(MIME)}")


def wire_image(value: Any, options: WireOptions | None = None) -> EncodedImage:
    """Encode a picture in base64 for an API.

    A JPEG, PNG or WebP picture is sent as the original bytes if it is RGB or grey, has no transparency, no EXIF
    rotation and no animation, and is within the limits. A decoded picture is sent as the bytes that it was decoded
    from if they still show the same pixels (``lmms_eval.media.originals``). Anything else is turned upright, laid over
    white, scaled to 8 bits, shrunk to the limits, and encoded once. Results are cached by content.

    Raises ``MediaError`` if the picture is not found, unreadable or truncated, or cannot be shrunk to the limits.
    """
    ref = resolve(value)
    raw: list[bytes] = []
    key, image = _wired(ref, options or WireOptions(), raw)
    is_source = image.untouched and ref.kind != "url"
    sent = AsSent(functools.partial(_sent_bytes, ref, image, raw), image.mime, is_source)
    note_picture(ref, image.size, image.nbytes, key, sent)
    return image


def _sent_bytes(ref: MediaRef, image: EncodedImage, raw: list[bytes]) -> bytes:
    """Return the bytes of an encoded picture, from the base64 only if they are not in memory."""
    if raw:
        return raw[0]
    if image.untouched and ref.data is not None:
        return ref.data
    original = source_original(ref.image) if image.untouched and ref.image is not None else None
    return base64.b64decode(image.base64) if original is None else original.data


def _wired(ref: MediaRef, options: WireOptions, raw: list[bytes]) -> tuple[str, EncodedImage]:
    """Return the digest of the source, and the encoded picture; its bytes are added to ``raw`` if it is encoded now."""
    key = known_digest(ref)
    kept = ENCODED.get((key, options)) if key is not None else None
    if key is not None and kept is not None:
        return key, kept
    if ref.kind == "image" and ref.image is not None:
        original = original_of(ref.image)
        if original is not None and _fits(len(original.data), original.size, options):
            return original.sha256, ENCODED.get_or_make(
                (original.sha256, options),
                lambda: _encoded(original.mime, original.data, original.size, untouched=True),
            )
        key = digest(ref)
        return key, ENCODED.get_or_make((key, options), lambda: _encode_fitting(load_image(ref), options, ref, raw))
    data, key = content(ref)
    return key, ENCODED.get_or_make((key, options), lambda: _wire_bytes(data, options, ref, raw))


def image_url(value: Any, options: WireOptions | None = None) -> str:
    """Return the text of an ``image_url`` part: a remote picture's own URL, or a data URL of any other picture.

    Raises ``MediaError`` as :func:`wire_image` does.
    """
    ref = resolve(value)
    if ref.kind == "url":
        note_file(ref, "image")
        return ref.url
    return wire_image(ref, options).data_url


def encode_image(image: Image.Image, image_format: ImageFormat = "PNG", quality: int = 85) -> bytes:
    """Encode a decoded picture at the fastest lossless setting, or as JPEG with ``quality``. No metadata is written.

    PNG keeps the modes L, LA, RGB and RGBA. Every other mode becomes RGB. JPEG has no alpha channel.
    """
    buffer = io.BytesIO()
    if image_format == "JPEG":
        _plain(image).save(buffer, format="JPEG", quality=quality)
    elif image_format == "WEBP":
        picture = image if image.mode in ("RGB", "RGBA") else to_rgb(image)
        picture.save(buffer, format="WEBP", lossless=True, quality=0, method=0, exif=b"", icc_profile=b"")
    else:
        return encode_png(image if image.mode in ("L", "LA", "RGB", "RGBA") else to_rgb(image))
    return buffer.getvalue()


def is_untouched(header: ImageHeader, options: WireOptions) -> bool:
    """Return whether a file with this header needs no transform."""
    return header.is_plain and _fits(header.nbytes, (header.width, header.height), options)


def _fits(nbytes: int, size: tuple[int, int], options: WireOptions) -> bool:
    return (options.max_bytes is None or nbytes <= options.max_bytes) and (options.bounds.size(size) == size)


def _wire_bytes(data: bytes, options: WireOptions, ref: MediaRef, raw: list[bytes]) -> EncodedImage:
    with open_image(io.BytesIO(data), ref) as opened:
        header = header_of(opened, len(data))
    source = MediaRef("bytes", data=data, name=ref.describe())
    if not is_untouched(header, options):
        return _encode_fitting(load_image(source), options, ref, raw)
    if not has_end(data, header.format):
        load_image(source)  # the full decoder decides whether it is truncated
    raw.append(data)
    return _encoded(MIME[header.format], data, (header.width, header.height), untouched=True)


def _encode_fitting(image: Image.Image, options: WireOptions, ref: MediaRef, raw: list[bytes]) -> EncodedImage:
    picture = fit(_plain(image), options.bounds)
    image_format = "PNG" if options.image_format == "WEBP" and max(picture.size) > _WEBP_SIDE else options.image_format
    data = encode_image(picture, image_format, options.quality)
    limit = options.max_bytes
    while limit is not None and len(data) > limit:
        if min(picture.size) <= _MIN_SIDE or max(picture.size) <= 2 * _MIN_SIDE:
            raise MediaError(f"{ref.describe()} does not fit {limit} bytes even at {picture.width}x{picture.height}")
        share = min(0.9, 0.95 * limit / len(data))
        picture = shrink(picture, max_pixels=max(1, math.floor(picture.width * picture.height * share)))
        data = encode_image(picture, image_format, options.quality)
    raw.append(data)
    return _encoded(MIME[image_format], data, picture.size)


def _plain(image: Image.Image) -> Image.Image:
    """Convert to RGB or 8-bit grey, without transparency."""
    if image.mode in ("RGB", "L"):
        return flatten_alpha(image)
    return to_rgb(image)


def has_end(data: bytes, image_format: str) -> bool:
    """Return whether the end marker of the format is in its place: a cheap sign that the file is complete."""
    if image_format == "JPEG":
        return data.rfind(b"\xff\xd9", -_TAIL_BYTES) >= 0
    if image_format == "PNG":
        return data.rfind(b"IEND", -_TAIL_BYTES) >= 0
    return len(data) >= int.from_bytes(data[4:8], "little") + 8


def _encoded(mime: str, data: bytes, size: tuple[int, int], untouched: bool = False) -> EncodedImage:
    return EncodedImage(mime, base64.b64encode(data).decode("ascii"), len(data), untouched, size)


ENCODED: ByteLRU[EncodedImage] = ByteLRU(_ENCODED_MAX_BYTES, lambda image: len(image.base64) + 256)
