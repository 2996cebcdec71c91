"""Pictures: reading headers, decoding, flattening transparency, resizing."""

from __future__ import annotations

import functools
import importlib.util
import io
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from lmms_eval.errors import MediaError
from lmms_eval.media.originals import KEEPING, ByteLRU, carried, detach, original_of
from lmms_eval.media.reference import MediaRef, content, digest_of, identity, resolve
from lmms_eval.media.sent import AsSent, is_recording, note_picture

if TYPE_CHECKING:
    from PIL import Image

    from lmms_eval.api.generation import RequestLimits

MIME = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""Formats that every server reads, by Pillow's names."""
PLAIN_MODES = ("RGB", "L", "1", "P")  # "P" counts only without transparency
ORIENTATION_TAG = 274
UPRIGHT = 1
_LYING = (5, 6, 7, 8)
"""EXIF orientations that swap width and height."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "PPM", "JPEG2000", "ICO")
_SIXTEEN_BIT = ("I;16", "I;16B", "I;16L", "I;16N")
_PNG_METADATA = frozenset({"exif", "Raw profile type exif", "XML:com.adobe.xmp"})
"""Keys in the ``info`` of a PNG that can contain its orientation."""
_DECODED_MAX_BYTES = 32 * 2**20


class ImageHeader(Struct, frozen=True):
    """Properties that the first bytes of a picture state. Sizes are in pixels, before any rotation."""

    width: int
    height: int
    format: str
    """Pillow's name (``JPEG``, ``PNG``, ``WEBP``, ...), or empty for a picture in memory."""
    mode: str
    """Pillow's mode as decoded: ``RGB``, ``L``, ``P``, ``RGBA``, ``CMYK``, ``I;16``, ..."""
    has_alpha: bool
    """Whether there is an alpha channel or a transparent colour."""
    exif_rotation: int
    """EXIF orientation, 1 (upright) to 8."""
    nbytes: int
    """Encoded size in bytes; 0 for a picture in memory."""
    frames: int = 1
    """Number of frames: more than one in an animated PNG or WebP."""

    @property
    def pixels(self) -> int:
        return self.width * self.height

    @property
    def is_plain(self) -> bool:
        """Whether the file shows the same everywhere as it is: RGB or grey, without transparency, turn or animation."""
        return (
            self.format in MIME
            and self.mode in PLAIN_MODES
            and not self.has_alpha
            and self.exif_rotation == UPRIGHT
            and self.frames == 1
        )

    @property
    def upright_size(self) -> tuple[int, int]:
        """Width and height after the EXIF rotation."""
        return (self.height, self.width) if self.exif_rotation in _LYING else (self.width, self.height)


class Bounds(Struct, frozen=True):
    """Bounds on the size of a picture in pixels. If they contradict each other, the upper bounds take precedence.

    Raises ``ValueError`` if a bound is not positive.
    """

    max_pixels: int | None = None
    max_side: int | None = None
    """The bound on the longer side."""
    min_pixels: int | None = None

    def __post_init__(self) -> None:
        for bound in (self.max_pixels, self.max_side, self.min_pixels):
            if bound is not None and bound < 1:
                raise ValueError(f"the bound of a picture must be at least 1, not {bound}")

    def size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return the nearest size to ``size`` (width, height) within the bounds that keeps the proportions."""
        width, height = size
        most = math.inf
        if self.max_pixels is not None:
            most = math.sqrt(self.max_pixels / (width * height))
        if self.max_side is not None:
            most = min(most, self.max_side / max(width, height))
        scale = 1.0 if self.min_pixels is None else max(1.0, math.sqrt(self.min_pixels / (width * height)))
        if 1.0 < scale < most:
            wide, high = math.ceil(width * scale), math.ceil(height * scale)
            if wide * high <= (self.max_pixels or math.inf) and max(wide, high) <= (self.max_side or math.inf):
                return wide, high
        scale = min(scale, most)
        return size if scale == 1.0 else (max(1, math.floor(width * scale)), max(1, math.floor(height * scale)))

    def limited(self, limits: RequestLimits) -> Bounds:
        """Return these bounds with the pixel limits of a request in place of their own."""
        stated = {name: value for name in ("max_pixels", "min_pixels") if (value := getattr(limits, name)) is not None}
        return replace(self, **stated)

    def of_frames(self, count: int, total_pixels: int | None) -> Bounds:
        """Return the bounds of each of ``count`` frames that may have ``total_pixels`` in total."""
        if total_pixels is None or count < 1:
            return self
        share = max(1, total_pixels // count)
        return replace(self, max_pixels=min(share, self.max_pixels or share))


UNBOUNDED = Bounds()


def read_errors() -> tuple[type[BaseException], ...]:
    """Return the exceptions that Pillow raises for files that are not pictures, are truncated or are damaged."""
    from PIL import Image

    return (
        OSError, MemoryError, SyntaxError, ValueError, TypeError, EOFError, IndexError, KeyError, OverflowError,
        struct.error, zlib.error, Image.DecompressionBombError, Image.DecompressionBombWarning,
    )  # fmt: skip


def open_image(source: Any, ref: MediaRef | None = None) -> Image.Image:
    """Open a picture with ``Image.open``, in the formats that occur in data sets.

    Other formats are not recognised, whatever the file is named: some start a program (EPS) or an unmaintained parser.
    Raises ``MediaError`` if it is not a readable picture; without ``ref``, which names it, any of ``read_errors``
    instead.
    """
    from PIL import Image

    token = KEEPING.set(False)
    try:
        return Image.open(source, formats=_formats())
    except read_errors() as error:
        if ref is None:
            raise
        raise MediaError(f"{ref.describe()} is not a readable picture: {reason(error)}") from error
    finally:
        KEEPING.reset(token)


@functools.cache
def _formats() -> tuple[str, ...]:
    has_avif = importlib.util.find_spec("PIL.AvifImagePlugin") is not None  # since Pillow 11.3
    return (*_FORMATS, "AVIF") if has_avif else _FORMATS


def header(value: Any) -> ImageHeader:
    """Read the size, format and transparency of a picture without decoding it.

    Raises ``MediaError`` if the file does not exist or is not a picture.
    """
    ref = resolve(value)
    if ref.kind == "image" and ref.image is not None:
        return header_of(ref.image, 0)
    if ref.kind == "path" and ref.path is not None:
        image = open_image(ref.path, ref)
        nbytes = ref.path.stat().st_size
    else:
        data = ref.read_bytes()
        image, nbytes = open_image(io.BytesIO(data), ref), len(data)
    with image:
        return header_of(image, nbytes)


def header_of(image: Image.Image, nbytes: int) -> ImageHeader:
    """Return the header of an opened picture of ``nbytes`` encoded bytes. It does not have to be decoded."""
    name = "JPEG" if image.format == "MPO" else image.format or ""  # the first picture of an MPO is a plain JPEG
    frames = int(getattr(image, "n_frames", 1)) if name in ("PNG", "WEBP") else 1
    return ImageHeader(
        image.width, image.height, name, image.mode, has_alpha(image), orientation(image), nbytes, frames
    )


def has_alpha(image: Image.Image) -> bool:
    """Return whether there is an alpha channel or a transparent colour, even if no pixel uses it."""
    return image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or image.info.get("transparency") is not None


def orientation(image: Image.Image) -> int:
    """Return the EXIF orientation, or 1 without any. Of a PNG, only the data before the pixels are read."""
    if image.format == "PNG" and _PNG_METADATA.isdisjoint(image.info):
        return UPRIGHT
    try:
        value = image.getexif().get(ORIENTATION_TAG, UPRIGHT)
    except read_errors():  # damaged EXIF data: the pixels may be intact
        return UPRIGHT
    return value if isinstance(value, int) and 1 <= value <= 8 else UPRIGHT


def load_image(value: Any, *, rotate: bool = True) -> Image.Image:
    """Decode a picture in its own mode. A PIL image is returned unchanged.

    A file or bytes are turned upright by their EXIF orientation, unless ``rotate`` is false. Raises ``MediaError`` if
    the source is not found, not a picture, truncated or damaged.
    """
    ref = resolve(value)
    if ref.kind == "image" and ref.image is not None:
        _load(ref, ref.image)
        return ref.image
    if ref.kind == "array":
        raise MediaError(f"{ref.describe()} is not a picture")
    image = open_image(io.BytesIO(ref.read_bytes()), ref)  # from memory, so that no file stays open if decoding fails
    _load(ref, image)
    return upright(image) if rotate else image


def load_rgb(value: Any, *, rotate: bool = True, bounds: Bounds = UNBOUNDED, shared: bool = False) -> Image.Image:
    """Decode a picture as RGB over white, at a size within ``bounds``. The caller owns the copy.

    With ``shared``, the cached picture itself is returned for a file or bytes. It is read-only: Pillow's own functions
    copy it before they draw on it, and its pixels cannot be set.

    A JPEG file of at least twice the wanted width and height is decoded at a smaller scale (Pillow's ``draft``).

    Files and bytes are decoded once per (content, transform) while they stay in a cache of 32 MiB. Raises
    ``MediaError`` as :func:`load_image` does.
    """
    ref = resolve(value)
    if ref.kind not in ("path", "bytes"):
        image = fit(to_rgb(load_image(ref, rotate=rotate)), bounds)
        if is_recording():
            note_pixels(ref, image)
        return detach(image.copy() if image is ref.image else image)
    key = identity(ref)
    image = DECODED.get_or_make((key, rotate, bounds), lambda: _decode_rgb(ref, rotate, bounds))
    if not shared:
        image = image.copy()
    note_picture(ref, image.size, sha256=digest_of(key), sent=AsSent(ref.read_bytes, is_source=True))
    return image


def note_pixels(ref: MediaRef, image: Image.Image) -> None:
    """Record a picture that is sent as pixels (``image``). Its file is that of its original, if it is unchanged."""
    original = None if ref.image is None else original_of(ref.image)
    if original is None:
        note_picture(ref, image.size, sent=AsSent(lambda: encode_png(image), "pixels"))
    else:
        sent = AsSent(lambda: original.data, is_source=True)
        note_picture(ref, image.size, sha256=original.sha256, sent=sent)


def load_preview(value: Any, max_side: int) -> Image.Image:
    """Decode a small RGB picture for display. It is made with a faster filter and is not cached.

    Raises ``MediaError`` as :func:`load_image` does.
    """
    return _decode_rgb(resolve(value), True, Bounds(max_side=max_side), is_preview=True)


def _decode_rgb(ref: MediaRef, rotate: bool, bounds: Bounds, is_preview: bool = False) -> Image.Image:
    """Decode a file or bytes to RGB at the size that ``fit`` would give it.

    A JPEG of at least twice that size is decoded at a half, a quarter or an eighth of its size, whichever is the
    smallest that is large enough. Each pixel is then the mean of the pixels in its place, at a lower cost.
    """
    from PIL import Image

    opened = open_image(io.BytesIO(content(ref)[0] if is_recording() else ref.read_bytes()), ref)
    is_late = opened.format == "PNG"  # its orientation may follow the pixels
    turn = orientation(opened) if rotate and not is_late else UPRIGHT
    size = bounds.size(opened.size)
    if size != opened.size:
        opened.draft(None, size)  # does not change the mode
    _load(ref, opened)
    if rotate and is_late:
        turn = orientation(opened)
    image = to_rgb(upright(opened, turn))
    wanted = (size[1], size[0]) if turn in _LYING else size
    if image.size != wanted:
        resampling, gap = (Image.Resampling.BICUBIC, 2.0) if is_preview else (Image.Resampling.LANCZOS, None)
        image = image.resize(wanted, resampling, reducing_gap=gap)
    image.readonly = 1
    return image


def upright(image: Image.Image, turn: int | None = None) -> Image.Image:
    """Return the picture turned by its EXIF orientation (``turn``, if it is known), without the tag."""
    if (orientation(image) if turn is None else turn) == UPRIGHT:
        return image
    from PIL import ImageOps

    turned = ImageOps.exif_transpose(image)
    turned.format = image.format
    return turned


def flatten_alpha(image: Image.Image, background: tuple[int, int, int] = (255, 255, 255)) -> Image.Image:
    """Lay a picture with transparency over ``background`` (white), as RGB. Any other is returned unchanged."""
    if not has_alpha(image):
        return image
    from PIL import Image

    layer = image.convert("RGBA")
    canvas = Image.new("RGBA", layer.size, (*background, 255))
    return Image.alpha_composite(canvas, layer).convert("RGB")


def to_rgb(image: Image.Image) -> Image.Image:
    """Convert any picture to RGB: transparency over white, 16-bit grey scaled to 8 bits."""
    if image.mode == "RGB" and not has_alpha(image):
        return image
    return flatten_alpha(to_eight_bits(image)).convert("RGB")


def to_eight_bits(image: Image.Image) -> Image.Image:
    """Scale 16-bit grey to 8 bits (Pillow's own conversion clips it to white). Others are returned unchanged."""
    sixteen = image.mode in _SIXTEEN_BIT
    if image.mode == "I":
        low, high = image.getextrema()
        sixteen = isinstance(high, (int, float)) and isinstance(low, (int, float)) and 255 < high <= 65_535 and low >= 0
    if not sixteen:
        return image
    import numpy as np
    from PIL import Image

    return Image.fromarray((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8))


def shrink(image: Image.Image, *, max_pixels: int | None = None, max_side: int | None = None) -> Image.Image:
    """Shrink a picture to at most ``max_pixels`` pixels and sides of at most ``max_side``, keeping the proportions.

    A picture that fits is returned unchanged. Raises ``ValueError`` if a bound is not positive.
    """
    return fit(image, Bounds(max_pixels=max_pixels, max_side=max_side))


def fit(image: Image.Image, bounds: Bounds) -> Image.Image:
    """Resize a picture to a size within ``bounds``, keeping the proportions. One that fits is returned unchanged."""
    size = bounds.size(image.size)
    if size == image.size:
        return image
    from PIL import Image

    source = image.convert("RGB") if image.mode in ("P", "1", *_SIXTEEN_BIT) else image
    return source.resize(size, Image.Resampling.LANCZOS)


def encode_png(image: Image.Image) -> bytes:
    """Encode a picture of mode L, LA, RGB or RGBA as PNG, without metadata."""
    buffer = io.BytesIO()
    # Run-length coding only: a third faster than any search for repetitions, and smaller for photographs.
    image.save(
        buffer, format="PNG", compress_level=1, compress_type=zlib.Z_RLE, exif=None, icc_profile=None,
        transparency=None,
    )  # fmt: skip
    return buffer.getvalue()


def _load(ref: MediaRef, image: Image.Image) -> None:
    try:
        image.load()
    except read_errors() as error:
        raise MediaError(f"picture {ref.describe()} is damaged or cut short: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """Return the text of an error of Pillow for messages."""
    name = type(error).__name__
    if name == "UnidentifiedImageError":
        return "unknown format"
    return str(error) or name


def memory_bytes(image: Image.Image) -> int:
    """Return the memory of a decoded picture and its original: 4 bytes per pixel unless it is grey or a palette."""
    original = carried(image)
    per_pixel = 1 if image.mode in ("1", "L", "P") else 2 if image.mode.startswith("I;16") else 4
    return image.width * image.height * per_pixel + (0 if original is None else len(original.data))


DECODED: ByteLRU[Image.Image] = ByteLRU(_DECODED_MAX_BYTES, memory_bytes)
