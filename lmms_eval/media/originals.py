"""The encoded bytes that a picture was decoded from, kept with it so that they can be sent instead of the pixels.

A decoded picture carries its :class:`Original` in its ``info``, which Pillow copies to all pictures derived from it. A
digest of the pixels shows, when the picture is sent, whether it still equals its original. A picture that was changed
in place, or is the result of a transform, has another digest.

An original exists only if its bytes show the same pixels on every server: JPEG, PNG or WebP; RGB, grey or palette with
8 bits; no transparency; no animation; upright. Some servers apply an EXIF or XMP orientation other than 1 and others
do not, so the pixels of such a file are encoded, turned or not as the task left them.
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
KEEPING: ContextVar[bool] = ContextVar("keeping_originals", default=True)
"""Whether pictures from ``Image.open`` keep their bytes. False for pictures that this package opens itself."""
_KEY = "lmms_eval_original"
"""Key of an ``Original`` in the ``info`` of a picture. Pillow does not write unknown keys into files."""


class ByteLRU(Generic[Value]):
    """A cache of the most recently used values, of at most ``max_bytes`` in total; 0 keeps nothing.

    A value that is larger than ``max_bytes`` is not kept. Two threads that miss the same key at the same time both
    compute it: that is cheaper than holding a lock while pictures are encoded.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[Value], int]) -> None:
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self.nbytes = self.hits = self.misses = 0
        """Size of the kept values in bytes, and numbers of keys that were found and that were not."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> Value | None:
        """Return the value of ``key``, or ``None``. Counts as a use."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                self.misses += 1
                return None
            self.hits += 1
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, value: Value) -> None:
        """Keep ``value``, and drop the least recently used values that no longer fit."""
        size = self._size_of(value)
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self.nbytes -= entry[1]
            if size > self._max_bytes:
                return
            self._entries[key] = (value, size)
            self.nbytes += size
            while self.nbytes > self._max_bytes:
                _, (_, dropped) = self._entries.popitem(last=False)
                self.nbytes -= dropped

    def get_or_make(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of ``key``; if it is absent, compute it with ``make`` and keep it."""
        found = self.get(key)
        if found is not None:
            return found
        value = make()
        self.put(key, value)
        return value

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self.nbytes = 0


@dataclass(frozen=True)
class Original:
    """An encoded picture, with facts about its decoded form."""

    data: bytes
    mode: str
    """Pillow's mode as decoded."""
    size: tuple[int, int]
    """Width and height in pixels."""
    mime: str
    path: str = ""
    """Path of the file that the data were read from, if known."""
    pixels: bytes = b""
    """``pixel_digest`` of the decoded picture; empty if it has not been decoded yet."""

    @functools.cached_property
    def sha256(self) -> str:
        """Hexadecimal digest of the data, which identifies the picture in caches, keys and records."""
        return hashlib.sha256(self.data).hexdigest()

    def __repr__(self) -> str:
        return f"<{self.mime}, {len(self.data)} bytes>"


def original_of(image: Image.Image) -> Original | None:
    """Return the original that shows the same pixels as ``image`` does now, or ``None``."""
    original = _pending(image)
    if original is not None:  # not decoded yet, so nothing can have drawn on it
        return original if _is_alike(image, original) else None
    original = carried(image)
    if original is None or not _is_alike(image, original) or pixel_digest(image) != original.pixels:
        return None
    return original


def source_original(image: Image.Image) -> Original | None:
    """Return the original that the picture was made from, whether it still shows the same pixels or not."""
    return _pending(image) or carried(image)


def _pending(image: Image.Image) -> Original | None:
    pending: Callable[[], Original | None] | None = getattr(image, "pending_original", None)
    return None if pending is None else pending()


def _is_alike(image: Image.Image, original: Original) -> bool:
    return (image.mode, image.size) == (original.mode, original.size) and image.info.get("transparency") is None


def carry(image: Image.Image, original: Original) -> None:
    """Attach the original to a picture that has not been decoded yet."""
    image.info[_KEY] = original


def attach(image: Image.Image, original: Original) -> None:
    """Attach the original to a picture that was just decoded from it."""
    carry(image, replace(original, pixels=pixel_digest(image)))


def detach(image: Image.Image) -> Image.Image:
    """Remove the original from the picture, which frees its memory."""
    image.info.pop(_KEY, None)
    return image


def carried(image: Image.Image) -> Original | None:
    """Return the original of the picture, or of the picture that it was derived from."""
    original = image.info.get(_KEY)
    return original if isinstance(original, Original) else None


def pixel_digest(image: Image.Image) -> bytes:
    """Return the XXH3 digest (128 bits) of the pixels and the palette.

    It protects against accidents (a collision has a probability of 2^-128), not against forgery: a task that wants
    another picture to be sent can simply send it.
    """
    import xxhash

    state = xxhash.xxh3_128(_pixels()(image))
    if image.mode == "P":
        state.update(bytes(image.getpalette() or []))
    return state.digest()


@functools.cache
def _pixels() -> Callable[[Image.Image], Any]:
    """Return the function that gives the pixels of a picture as bytes. It is chosen once, so digests are comparable.

    If ``pyarrow`` is loaded already, as for parquet files, Pillow's memory is read directly: 0.07 ms for 1024x768 RGB
    pixels, hash included. ``tobytes`` makes a copy, which takes 0.6 ms more, but importing ``pyarrow`` takes 100 ms.
    """
    if "pyarrow" not in sys.modules:
        return lambda image: image.tobytes()
    import pyarrow as pa

    def memory(image: Image.Image) -> Any:
        try:
            return pa.array(image).buffers()[-1]  # three channels take four bytes per pixel, the last one constant
        except (TypeError, ValueError, NotImplementedError, pa.ArrowException):
            return image.tobytes()  # Pillow before 11.2, or a picture in several blocks of memory

    return memory
