"""Pictures, videos, sounds and point clouds of an item."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from lmms_eval.errors import DataError
from lmms_eval.tasks.general_bench.data.records import Record, checked_path
from lmms_eval.tasks.general_bench.items import Annotation, MediaInput, MediaKind

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

    A video file stays one if frames are expected. Files need not exist, because some are never opened.

    Raises:
        DataError: the value is no path or list of paths, or one leads out of the task's folder.
    """
    values = record.texts(key)
    if len(values) > MAX_FILES:
        raise record.wrong(key, f"a list of at most {MAX_FILES} files")
    paths = located([checked_path(value, f"{record.where}: `{key}`") for value in values], kind, annotation)
    if kind == "frames" and len(paths) == 1 and paths[0].suffix.casefold() in VIDEO_SUFFIXES:
        kind = "video"
    return (MediaInput(kind, paths),) if kind == "frames" else tuple(MediaInput(kind, (path,)) for path in paths)


def located(values: Sequence[str], kind: MediaKind, annotation: Annotation) -> tuple[Path, ...]:
    """Return checked paths below the media folder that holds the first of them, else below the first media folder."""
    bases = [annotation.folder / folder for folder in _FOLDERS[kind]]
    base = next((base for base in bases if os.path.exists(base / values[0])), bases[0])
    return tuple(base / value for value in values)


def first_media(kinds: Mapping[str, MediaKind], record: Record, annotation: Annotation) -> tuple[MediaInput, ...]:
    """Return the media of the first existing key, or an empty tuple.

    Raises:
        DataError: it is no path or list of paths.
    """
    for key, kind in kinds.items():
        if record.has(key):
            return media_of(kind, record, key, annotation)
    return ()


def required_media(kinds: Mapping[str, MediaKind], record: Record, annotation: Annotation) -> tuple[MediaInput, ...]:
    """Return the media as ``first_media`` does.

    Raises:
        DataError: as well, all of the keys are missing.
    """
    found = first_media(kinds, record, annotation)
    if not found:
        raise DataError(f"{record.where}: `{'` or `'.join(kinds)}` is missing")
    return found
