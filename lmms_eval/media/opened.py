"""Pictures that are decoded when their pixels are first needed, and files opened by ``Image.open`` with originals.

``keep_originals`` replaces Pillow's classes for JPEG, PNG and WebP by the classes below, through Pillow's registry of
formats. From then on, ``Image.open`` returns subclasses of Pillow's classes everywhere in the process. They behave in
the same way, and also know their :class:`lmms_eval.media.originals.Original`. As long as the file has not been decoded,
``copy()`` and ``convert`` to the mode that the picture already has return a ``Deferred`` picture.
"""

from __future__ import annotations

import functools
import io
import os
import threading
from collections.abc import Callable
from typing import IO, Any, ClassVar, cast

from PIL import Image, ImageFile, JpegImagePlugin, MpoImagePlugin, PngImagePlugin, WebPImagePlugin

from lmms_eval.errors import MediaError
from lmms_eval.media.encode import has_end
from lmms_eval.media.image import (
    MIME,
    ORIENTATION_TAG,
    PLAIN_MODES,
    UPRIGHT,
    open_image,
    orientation,
    read_errors,
)
from lmms_eval.media.originals import KEEPING, Original, attach, carry

_DEFERRED_MODES = ("RGB", "L")
"""Modes without a palette, which would need decoding too."""
_PNG_SIGNATURE_BYTES = 8
_PNG_DEPTH = slice(24, 25)
_MAYBE_TURNING = (b"eXIf", b"Raw profile type", b"XML:com.adobe.xmp")
"""Beginnings of PNG chunks that can hold an orientation. Pillow reads those after the pixels while decoding."""
_INSTALLING = threading.Lock()
_Factory = Callable[[IO[bytes], str | bytes], ImageFile.ImageFile]


class Deferred(Image.Image):
    """A picture whose original is decoded when its pixels are first needed. Then it becomes a plain ``Image.Image``.

    The mode of the original is ``RGB`` or ``L``. ``where`` is the place of the picture, for the error about a damaged
    one. Without it, Pillow's own error is raised.
    """

    def __init__(self, original: Original, info: dict[Any, Any], where: str = "") -> None:
        super().__init__()
        self._original, self._where, self._lock = original, where, threading.Lock()
        self._mode, self._size, self.info = original.mode, original.size, dict(info)
        carry(self, original)

    def pending_original(self) -> Original | None:
        """Return the original, which is not decoded yet."""
        return self._original

    @property
    def im(self) -> Any:
        """Pillow's storage of the pixels."""
        self._decode()
        return self.im

    @im.setter
    def im(self, core: Any) -> None:
        if core is not None:  # Pillow before 11.1 sets ``None`` in its constructor
            self.__class__ = Image.Image  # type: ignore[assignment]
            self.im = core

    def load(self) -> Any:
        self._decode()
        return self.load()

    def copy(self) -> Image.Image:
        made = Deferred(self._original, self.info, self._where)
        made.format = None
        return made

    __copy__ = copy

    def convert(self, mode: str | None = None, matrix: Any = None, *args: Any, **options: Any) -> Image.Image:
        if not mode or (mode == self.mode and not matrix):
            return self.copy()
        self._decode()
        return self.convert(mode, matrix, *args, **options)

    def __eq__(self, other: object) -> bool:
        self._decode()
        return self == other

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._decode()
        return self.__reduce_ex__(protocol)

    def _decode(self) -> None:
        with self._lock:
            if type(self) is not Deferred:  # another thread has decoded it
                return
            try:
                file = open_image(io.BytesIO(self._original.data))
                file.load()
            except read_errors() as error:
                if not self._where:
                    raise
                raise MediaError(f"{self._where}: picture cannot be read: {error}") from error
            attach(file, self._original)
            self.info.update(file.info)
            self.im = file.im  # from here on it is a plain picture that others may draw on


class _Kept(ImageFile.ImageFile):
    """A file opened by ``Image.open`` that keeps the bytes that it was opened from."""

    stock: ClassVar[type[ImageFile.ImageFile]]
    """Pillow's class for the format."""
    _data: bytes = b""
    """The whole file, until it is decoded."""
    _opened: tuple[str, tuple[int, int]] = ("", (0, 0))
    """Mode and size in the file, before ``draft``."""
    _lock: threading.RLock

    def keep(self, data: bytes) -> None:
        """Keep the bytes of the whole file of the picture, which was just opened."""
        self._data, self._opened, self._lock = data, (self.mode, self.size), threading.RLock()

    def pending_original(self) -> Original | None:
        """Return the original if the pixels have not been decoded yet."""
        if not self._data:
            return None
        with self._lock:
            if not self._data or (self.mode, self.size) != self._opened:
                return None
            if "_pending" not in self.__dict__:
                self._pending = read_original(self, self._data, self._path())
            return self._pending

    def load(self) -> Any:
        if not self._data:
            return super().load()
        with self._lock:  # Pillow expects its callers to decode a file in one thread only
            access = super().load()
            data, self._data = self._data, b""
            if data and (self.mode, self.size) == self._opened:
                original = read_original(self, data, self._path(), decoded=True)
                if original is not None:
                    attach(self, original)
        return access

    def seek(self, frame: int) -> None:
        if frame != 0:
            self._data = b""
        super().seek(frame)

    def copy(self) -> Image.Image:
        original = self.pending_original()
        if original is None or original.mode not in _DEFERRED_MODES:
            return super().copy()
        return Deferred(original, self.info)

    __copy__ = copy

    def convert(self, mode: str | None = None, matrix: Any = None, *args: Any, **options: Any) -> Image.Image:
        if mode == self.mode and not matrix:
            return self.copy()
        return super().convert(mode, matrix, *args, **options)

    def _path(self) -> str:
        return os.path.abspath(self.filename) if isinstance(self.filename, str) and self.filename else ""


class KeptJpeg(_Kept, JpegImagePlugin.JpegImageFile):
    stock = JpegImagePlugin.JpegImageFile


class KeptMpo(_Kept, MpoImagePlugin.MpoImageFile):
    stock = MpoImagePlugin.MpoImageFile


class KeptPng(_Kept, PngImagePlugin.PngImageFile):
    stock = PngImagePlugin.PngImageFile


class KeptWebp(_Kept, WebPImagePlugin.WebPImageFile):
    stock = WebPImagePlugin.WebPImageFile


_KEPT: dict[type[Image.Image], type[_Kept]] = {kept.stock: kept for kept in (KeptJpeg, KeptMpo, KeptPng, KeptWebp)}


def keep_originals() -> None:
    """Make ``Image.open`` keep, from now on, the bytes that pictures are opened from."""
    with _INSTALLING:
        _install()


@functools.cache
def _install() -> None:
    Image.preinit()  # registers Pillow's own classes, only once
    for name in ("JPEG", "PNG", "WEBP"):
        factory, accept = Image.OPEN[name]
        Image.register_open(name, _keeping(factory), accept)


def _keeping(factory: _Factory) -> _Factory:
    def opened(fp: IO[bytes], filename: str | bytes = "") -> ImageFile.ImageFile:
        if not KEEPING.get():
            return factory(fp, filename)
        data = fp.read()
        image = factory(io.BytesIO(data), filename)
        if filename:  # ``Image.open`` has opened the file, and would close it after decoding
            fp.close()
        kept = _KEPT.get(type(image))
        if kept is not None:
            image.__class__ = kept
            cast(_Kept, image).keep(data)
        return image

    return opened


def read_original(image: Image.Image, data: bytes, path: str = "", *, decoded: bool = False) -> Original | None:
    """Return the original of an unchanged picture that was opened from ``data``, the whole file, by Pillow.

    ``None`` if these bytes may look different on other machines (see ``originals``). If the picture is ``decoded``, the
    file is known to be complete, with all its metadata.
    """
    is_mpo = image.format == "MPO"  # its first picture is a plain JPEG
    name, frames = "JPEG" if is_mpo else image.format or "", 1 if is_mpo else int(getattr(image, "n_frames", 1))
    if name not in MIME or image.mode not in PLAIN_MODES or frames != 1 or image.info.get("transparency") is not None:
        return None
    if name == "PNG" and data[_PNG_DEPTH] == b"\x10":  # 16 bits a channel; Pillow keeps 8
        return None
    if not decoded and (not has_end(data, name) or (name == "PNG" and _may_turn_late(data))):
        return None
    return Original(data, image.mode, image.size, MIME[name], path) if orientation(image) == UPRIGHT else None


def _may_turn_late(data: bytes) -> bool:
    """Return whether a chunk after the pixels of a PNG may hold an orientation, by its type and first key."""
    at, is_late = _PNG_SIGNATURE_BYTES, False
    while at + 8 <= len(data):
        begin = data[at + 4 : at + 32]
        is_late = is_late or begin.startswith(b"IDAT")
        if is_late and (begin.startswith(_MAYBE_TURNING) or begin[4:].startswith(_MAYBE_TURNING)):
            return True
        at += 12 + int.from_bytes(data[at : at + 4], "big")  # length, type and checksum take 12 bytes
    return False


def deferred(image: Image.Image, data: bytes, path: str, where: str) -> Deferred | None:
    """Turn a picture that was opened from ``data`` and is not decoded into one that is decoded when needed.

    ``None`` if its bytes may look different on other machines (see ``originals``), or only decoding could show that.
    """
    original = read_original(image, data, path)
    if original is None or original.mode not in _DEFERRED_MODES:
        return None
    made = Deferred(original, image.info, where)
    if image.format == "PNG" or ORIENTATION_TAG not in image.getexif():  # ``datasets`` copies pictures with the tag
        made.format = image.format
    return made
