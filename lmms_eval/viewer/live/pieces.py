"""The pieces of a view: their names, the media, and the pieces that finished and unfinished runs have in common."""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import cache
from typing import Any, Literal, cast

from msgspec import Struct

from lmms_eval.errors import LmmsEvalError, MediaError
from lmms_eval.viewer.chunks import TaskIndex
from lmms_eval.viewer.media import Item, MediaFolders, MediaStore, file_of, medium_key
from lmms_eval.viewer.samples import PER_TEXT, TaskWriter

_MEDIA_NAME = re.compile(r"[0-9a-f]{24}\.(webp|png|jpg|gif|wav)")
_TYPES = {"webp": "image/webp", "png": "image/png", "jpg": "image/jpeg", "gif": "image/gif", "wav": "audio/wav"}
_KEPT = ("type", "path", "url", "name", "frames", "times", "stored", "not_stored")
_PICTURE = "media/"


class LazyMedia:
    """Names thumbnails by their sources, and makes them when they are requested. Only named files are served.

    ``store`` makes the files. Lists of samples only need names; the page of a sample uses the store itself.
    """

    def __init__(self, store: MediaStore) -> None:
        self.store = store
        self._named: dict[str, tuple[Mapping[str, Any], MediaFolders]] = {}
        self._lock = threading.Lock()

    def add(self, medium: Mapping[str, Any], places: MediaFolders) -> Future[Item]:
        """Name the thumbnail of a medium if its file exists, without opening it."""
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

    def read(self, name: str) -> tuple[bytes, str] | None:
        """Return the bytes and the type of a named picture, frame or sound, or ``None`` for any other name.

        If a thumbnail cannot be made, it is an empty picture. The page of its sample shows the reason.
        """
        if not _MEDIA_NAME.fullmatch(name):
            return None
        with self._lock:
            named = self._named.get(name)
        if named is not None:
            item = self.store.add(*named).result()
            frames = item.get("frames")
            src = str(frames[0]["src"] if frames else item.get("src", ""))
            if not src:
                return _empty(), "image/webp"
            name = src.removeprefix(_PICTURE)
        if name not in self.store.names or self.store.folder is None:
            return None
        try:
            return (self.store.folder / name).read_bytes(), _TYPES[name.rpartition(".")[2]]
        except OSError:
            return None


def _is_there(medium: Mapping[str, Any], places: MediaFolders) -> bool:
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


Kind = Literal["run", "audit", "index", "values", "rows", "names", "column", "text", "media"]
_ONE_TASK = dict.fromkeys(("values", "rows", "names", "text", "media"), 3)
_NUMBERS = {"run": 1, "audit": 1, "index": 2, "column": 4, **_ONE_TASK}
"""Numbers in a name: run, task, column, and the number of the piece; for a medium, the row of its sample."""
_NAME = re.compile(r"([a-z]{3,6})((?:-\d{1,9}){1,4})")


class PieceName(Struct, frozen=True):
    """The name of a piece: ``KIND-RUN``, ``KIND-RUN-TASK`` and so on."""

    kind: Kind
    numbers: tuple[int, ...]

    @property
    def run(self) -> int:
        return self.numbers[0]

    @property
    def task(self) -> int:
        return self.numbers[1]

    @property
    def key(self) -> str:
        return f"{self.run}-{self.task}"

    @property
    def place(self) -> int:
        return self.numbers[-1]

    def __str__(self) -> str:
        return "-".join([self.kind, *map(str, self.numbers)])

    @classmethod
    def read(cls, text: str) -> PieceName | None:
        """Parse a name. Returns ``None`` if it is not valid."""
        found = _NAME.fullmatch(text)
        numbers = () if found is None else tuple(int(number) for number in found[2].split("-")[1:])
        if found is None or _NUMBERS.get(found[1]) != len(numbers):
            return None
        return cls(cast(Kind, found[1]), numbers)


class PieceError(LmmsEvalError):
    """There is no such piece."""

    def __init__(self, name: object) -> None:
        super().__init__(f"the view has no piece {name}")


def index_piece(index: TaskIndex, name: PieceName) -> Any:
    """Return the index of a task, or one of its pieces. A piece that a column no longer has is empty.

    Raises ``PieceError`` if there is no such column, or if the piece does not belong to the index.
    """
    if name.kind == "index":
        return index.content
    if name.kind in ("values", "column") and name.numbers[2] >= len(index.content["columns"]):
        raise PieceError(name)
    if name.kind == "values":
        return index.values(name.numbers[2])
    if name.kind == "column":
        return index.column(name.numbers[2], name.place)
    if name.kind == "rows":
        return index.rows(name.place)
    if name.kind == "names":
        return index.names(name.place)
    raise PieceError(name)


def sample_piece(writer: TaskWriter, size: int, name: PieceName, media: MediaStore) -> Any:
    """Make a piece of texts, or the media of one sample. ``size`` is the number of rows.

    Raises ``PieceError`` if the task has fewer rows.
    """
    if name.kind == "text":
        first = name.place * PER_TEXT
        if first >= size:
            raise PieceError(name)
        return [writer.texts(row) for row in range(first, min(size, first + PER_TEXT))]
    if name.kind != "media" or name.place >= size:
        raise PieceError(name)
    return writer.media_apart(name.place, media)
