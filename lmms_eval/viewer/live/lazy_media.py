"""Media of a live view: named at once, made when a page asks for them."""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from lmms_eval.errors import MediaError
from lmms_eval.viewer.media import Item, MediaStore, Places, file_of, medium_key

_NAME = re.compile(r"[0-9a-f]{24}\.(webp|png|jpg|gif|wav)")
_TYPES = {"webp": "image/webp", "png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "wav": "audio/wav"}
_KEPT = ("type", "path", "url", "name", "frames", "times")
_PICTURE = "media/"


@dataclass(frozen=True, slots=True)
class Served:
    """A file of the view."""

    data: bytes
    type: str


@dataclass(slots=True)
class LazyMedia:
    """Names of small pictures by what they are made of. Only what was named here is ever served.

    ``store`` makes the files; lists of samples need names alone, the page of a sample asks the store itself.
    """

    store: MediaStore
    _named: dict[str, tuple[Mapping[str, Any], Places]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, medium: Mapping[str, Any], places: Places) -> Future[Item]:
        """Name the small picture of a medium, if its file is there; nothing is opened."""
        kind = str(medium.get("type", "image"))
        item: Item = {"kind": kind}
        if kind != "audio" and self.store.mode != "none" and _is_there(medium, places):
            name = f"{hashlib.sha256(medium_key(medium).encode('utf-8', 'replace')).hexdigest()[:24]}.webp"
            with self._lock:
                kept = {key: medium[key] for key in _KEPT if key in medium}
                self._named.setdefault(name, (kept, places))
            item["src"] = f"{_PICTURE}{name}"
        found: Future[Item] = Future()
        found.set_result(item)
        return found

    def read(self, name: str) -> Served | None:
        """Read a picture, frame or sound that was named; ``None`` for any other name.

        One that cannot be made is an empty picture in lists: the page of its sample says why.
        """
        if not _NAME.fullmatch(name):
            return None
        with self._lock:
            named = self._named.get(name)
        if named is not None:
            item = self.store.add(*named).result()
            frames = item.get("frames")
            src = str(frames[0]["src"] if frames else item.get("src", ""))
            if not src:
                return Served(_empty(), "image/webp")
            name = src.removeprefix(_PICTURE)
        if name not in self.store.names or self.store.folder is None:
            return None
        try:
            return Served((self.store.folder / name).read_bytes(), _TYPES[name.rpartition(".")[2]])
        except OSError:
            return None


def _is_there(medium: Mapping[str, Any], places: Places) -> bool:
    try:
        return bool(file_of(medium, places))
    except (MediaError, OSError, ValueError):
        return False


@cache
def _empty() -> bytes:
    from PIL import Image

    data = io.BytesIO()
    Image.new("RGBA", (1, 1)).save(data, "WEBP")
    return data.getvalue()
