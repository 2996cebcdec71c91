"""The encoded bytes that a picture was decoded from, kept with it so that they can be sent in its place.

A decoded picture carries its :class:`Original` in its ``info``, which Pillow hands on to copies, conversions, resized
and cropped pictures alike. A digest of the pixels tells, when the picture is sent, whether it still is what its
original shows: one that was changed in place, or that came out of a transform, has another.

An original exists only where its bytes show the same pixels on every server: JPEG, PNG or WebP; RGB, grey or palette of
8 bits; no transparency, no animation; upright. A file with an EXIF or XMP orientation other than 1 is turned by servers
that heed the tag and not by others, so its pixels are encoded, as the task has turned them or not.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from PIL import Image


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """Counters of a :class:`ByteLRU`; ``nbytes`` and ``max_bytes`` in bytes."""

    entries: int
    nbytes: int
    max_bytes: int
    hits: int
    misses: int


class ByteLRU(Generic[Value]):
    """Keeps the most recently used values whose sizes add up to at most ``max_bytes``.

    A value larger than the whole table is not kept. Two threads that miss the same key at the same time both
    compute it: that is cheaper than holding a lock while pictures are encoded.

    Args:
        max_bytes: bound on the sum of sizes; 0 keeps nothing.
        size_of: size of a value in bytes.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[Value], int]) -> None:
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._nbytes = self._hits = self._misses = 0

    def get(self, key: Hashable) -> Value | None:
        """The value of ``key``, or ``None``; counts as a use."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self._misses += 1
                return None
            self._hits += 1
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Value) -> None:
        """Keep ``value``; drops the least recently used ones that no longer fit."""
        size = self._size_of(value)
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._nbytes -= entry[1]
            if size > self._max_bytes:
                return
            self._entries[key] = (value, size)
            self._nbytes += size
            self._shrink()

    def get_or_make(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of ``key``, computed by ``make`` (and kept) where it is absent."""
        found = self.get(key)
        if found is not None:
            return found
        value = make()
        self.put(key, value)
        return value

    def resize(self, max_bytes: int) -> None:
        """Change the bound; drops what no longer fits."""
        with self._lock:
            self._max_bytes = max_bytes
            self._shrink()

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._nbytes = 0

    def info(self) -> CacheInfo:
        with self._lock:
            return CacheInfo(len(self._entries), self._nbytes, self._max_bytes, self._hits, self._misses)

    def _shrink(self) -> None:
        while self._nbytes > self._max_bytes:
            _, (_, size) = self._entries.popitem(last=False)
            self._nbytes -= size


KEEPING: ContextVar[bool] = ContextVar("keeping_originals", default=True)
"""True while pictures that ``Image.open`` opens keep their bytes: not for those that this package opens and decodes."""
_KEY = "lmms_eval_original"
"""Key of an ``Original`` in the ``info`` of a picture. Pillow writes only what it knows of ``info`` into files."""


@dataclass(frozen=True)
class Original:
    """An encoded picture, and what it looks like decoded."""

    data: bytes
    mode: str
    """Pillow's mode as decoded."""
    size: tuple[int, int]
    """Width and height in pixels."""
    mime: str
    path: str = ""
    """Path of the file that the data were read from, where it is known."""
    pixels: bytes = b""
    """``pixel_digest`` as decoded; empty where nobody has decoded it yet."""

    @functools.cached_property
    def sha256(self) -> str:
        """Digest of the data, hexadecimal: names the picture in tables, keys and records."""
        return hashlib.sha256(self.data).hexdigest()

    def __repr__(self) -> str:
        return f"<{self.mime}, {len(self.data)} bytes>"


def original_of(image: Image.Image) -> Original | None:
    """The original that shows what ``image`` shows now; ``None`` where there is none."""
    pending: Callable[[], Original | None] | None = getattr(image, "pending_original", None)
    original = None if pending is None else pending()
    if original is not None:  # not decoded yet: nothing can have drawn on it
        return original if _is_alike(image, original) else None
    original = carried(image)
    if original is None or not _is_alike(image, original) or pixel_digest(image) != original.pixels:
        return None
    return original


def _is_alike(image: Image.Image, original: Original) -> bool:
    return (image.mode, image.size) == (original.mode, original.size) and image.info.get("transparency") is None


def carry(image: Image.Image, original: Original) -> None:
    """Keep the original with a picture that has not been decoded yet."""
    image.info[_KEY] = original


def attach(image: Image.Image, original: Original) -> None:
    """Keep the original with a picture that was just decoded from it."""
    carry(image, replace(original, pixels=pixel_digest(image)))


def detach(image: Image.Image) -> Image.Image:
    """The picture without its original, whose memory is let go."""
    image.info.pop(_KEY, None)
    return image


def carried(image: Image.Image) -> Original | None:
    """The original that a picture, or what it was made from, was decoded from."""
    original = image.info.get(_KEY)
    return original if isinstance(original, Original) else None


def pixel_digest(image: Image.Image) -> bytes:
    """XXH3 (128 bits) of the pixels and the palette.

    It is sound against accidents (two different pictures have the same one once in 2^128 cases), not against forgery:
    a task that wanted another picture to be sent could just send it.
    """
    import xxhash

    state = xxhash.xxh3_128(_pixels()(image))
    if image.mode == "P":
        state.update(bytes(image.getpalette() or []))
    return state.digest()


@functools.cache
def _pixels() -> Callable[[Image.Image], Any]:
    """The function that shows the pixels of a picture as bytes: decided once, so that digests can be compared.

    Pillow's own memory is read where ``pyarrow`` is loaded already, as it is for parquet files: 0.07 ms for 1024x768
    RGB pixels, hash included. ``tobytes`` makes a copy, which takes 0.6 ms more, but importing ``pyarrow`` takes 100.
    """
    if "pyarrow" not in sys.modules:
        return lambda image: image.tobytes()
    import pyarrow as pa

    def memory(image: Image.Image) -> Any:
        try:
            return pa.array(image).buffers()[-1]  # three channels take four bytes a pixel, the last always the same
        except (TypeError, ValueError, NotImplementedError, pa.ArrowException):
            return image.tobytes()  # Pillow before 11.2, or a picture in several blocks of memory

    return memory
