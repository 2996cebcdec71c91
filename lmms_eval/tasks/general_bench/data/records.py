"""Reading of an item's values and media by key, with errors that name the item and the key."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard

from msgspec import Struct

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.facts import TaskFacts
from lmms_eval.tasks.general_bench.items import Annotation, Form, Item, MediaInput, MediaKind
from lmms_eval.tasks.general_bench.readers.sides import finite

Box = list[float]
"""``[x, y, w, h]`` in pixels."""


def id_key(item_id: object) -> str:
    """Return the key for matching ids of items and predictions.

    It depends on value and type: 1 differs from ``"1"`` but equals 1.0. Raises ``DataError`` if it is not a text,
    number, true or false.
    """
    if isinstance(item_id, float) and math.isfinite(item_id) and item_id.is_integer():
        item_id = int(item_id)
    if not isinstance(item_id, str | int | float) or (isinstance(item_id, float) and not math.isfinite(item_id)):
        raise DataError(f"the id {item_id!r:.80} is no text or number")
    try:
        return json.dumps(item_id)
    except ValueError as error:
        raise DataError(f"an id is a number of too many digits: {error}") from error


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a finite JSON number. True and false are not numbers."""
    return finite(value) is not None


class Record(Struct, frozen=True):
    """A JSON object inside an item."""

    values: Mapping[str, Any]
    where: str
    """Name of the item, and of the key if the object is not the item itself, for messages."""

    @classmethod
    def of(cls, value: object, where: str) -> Record:
        """Make a record. Raises ``DataError`` if the value is not an object."""
        if not isinstance(value, Mapping):
            raise DataError(f"{where} is {value!r:.80}; an object is expected")
        return cls(value, where)

    def wrong(self, key: str, expected: str) -> DataError:
        """Return the error for a key with a value that is missing or of another kind."""
        has = f"{self.values[key]!r:.80}" if self.values.get(key) is not None else "missing"
        return DataError(f"{self.where}: `{key}` is {has}; {expected} is expected")

    def has(self, key: str) -> bool:
        """Return whether a key has a value."""
        return self.values.get(key) is not None

    def record(self, key: str) -> Record:
        if not isinstance(self.values.get(key), Mapping):
            raise self.wrong(key, "an object")
        return Record(self.values[key], f"{self.where}: `{key}`")

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def optional_text(self, key: str) -> str:
        """Return the text of a key, or an empty text."""
        return self.text(key) if self.has(key) else ""

    def texts(self, key: str) -> list[str]:
        """Return a non-empty list of texts. A single text is a list of one."""
        value = self.values.get(key)
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not found or not all(isinstance(one, str) for one in found):
            raise self.wrong(key, "a list of texts")
        return found

    def count(self, key: str, most: int) -> int:
        """Return a whole number from 0 to ``most``."""
        value = self.values.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
            raise self.wrong(key, f"a whole number up to {most}")
        return value

    def path(self, key: str) -> str:
        """Return a path below the task's folder."""
        return checked_path(self.values.get(key), f"{self.where}: `{key}`")

    def answer(self, key: str) -> str | list[str]:
        """Return the reference text. Numbers become text, and a list holds several references."""
        value = self.values.get(key)
        if isinstance(value, list) and value:
            found = [_as_text(one) for one in value]
            if None not in found:
                return [one for one in found if one is not None]
        elif (text := _as_text(value)) is not None:
            return text
        raise self.wrong(key, "a text, a number or a list of them")


def checked_path(value: object, where: str) -> str:
    """Check a path of an annotation. Raises ``DataError`` if it is not valid, absolute, or leads out of its folder."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise DataError(f"{where} is {value!r:.80}; a path is expected")
    path = Path(value.strip())
    if path.is_absolute() or ".." in path.parts:
        raise DataError(f"{where}: the path {value!r:.80} leads out of the task's folder")
    return value.strip()


def box_of(value: object, where: str) -> Box | None:
    """Read a box of a frame, or return ``None`` for null and for four zeros, which mean no object.

    Raises ``DataError`` if it is not a list of four numbers.
    """
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 4 or not all(is_number(one) for one in value):
        raise DataError(f"{where} is {value!r:.80}; [x, y, w, h] is expected")
    return value if any(value) else None


def _as_text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if not isinstance(value, bool | int | float):
        return None
    try:
        return str(value)
    except ValueError:
        return None


_ABSENT: tuple[object, ...] = (None, "", {}, [])


class ItemSource(Struct, frozen=True):
    """An item to be read."""

    facts: TaskFacts
    annotation: Annotation
    top: Record
    """The item, unchanged from the annotation."""
    id: Any
    prediction_folder: Path

    @property
    def has_output(self) -> bool:
        """Whether the item has an output; in closed sets the key is missing, null or empty."""
        return self.top.values.get("output") not in _ABSENT

    @property
    def output(self) -> Record:
        """Raise ``DataError`` if the output is no object."""
        return self.top.record("output")

    def item(self, form: Form, prompt: str, media: tuple[MediaInput, ...], reference: Any) -> Item:
        """Return the item with the parts that depend on its schema."""
        return Item(
            id=self.id,
            facts=self.facts,
            form=form,
            prompt=prompt,
            media=media,
            reference=reference,
            folder=self.annotation.folder,
            prediction_folder=self.prediction_folder,
            raw=self.top.values,
            head=self.annotation.head,
        )


VIDEO_SUFFIXES = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".gif")
MAX_FILES = 100_000
"""Most files of one item."""
_FOLDERS: Mapping[MediaKind, tuple[str, ...]] = MappingProxyType({
    "image": ("images", ""),
    "video": ("videos", "video", ""),
    "frames": ("videos", "video", "images", ""),
    "audio": ("audios", ""),
    "points": ("pointclouds", ""),
})  # fmt: skip
"""Media folders below a task's folder, in search order."""


def media_of(kind: MediaKind, record: Record, key: str, annotation: Annotation) -> tuple[MediaInput, ...]:
    """Return the media of the paths under a key: one input for each file, or one for all the frames of a video.

    A video file stays one if frames are expected. Files need not exist, because some are never opened. Raises
    ``DataError`` if the value is no path or list of paths, or one leads out of the task's folder.
    """
    values = record.texts(key)
    if len(values) > MAX_FILES:
        raise record.wrong(key, f"a list of at most {MAX_FILES} files")
    values = [checked_path(value, f"{record.where}: `{key}`") for value in values]
    # below the media folder that holds the first of them, else below the first media folder
    bases = [annotation.folder / folder for folder in _FOLDERS[kind]]
    base = next((base for base in bases if os.path.exists(base / values[0])), bases[0])
    paths = tuple(base / value for value in values)
    if kind == "frames" and len(paths) == 1 and paths[0].suffix.casefold() in VIDEO_SUFFIXES:
        kind = "video"
    return (MediaInput(kind, paths),) if kind == "frames" else tuple(MediaInput(kind, (path,)) for path in paths)
