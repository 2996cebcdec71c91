"""Paths in annotations and predictions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lmms_eval.errors import DataError, MediaError
from lmms_eval.tasks.general_bench.items import Item, MissingAnswer, UnreadableAnswer

MEDIA_FOLDERS = ("", "images", "videos", "audios", "pointclouds", "video", "depth")
"""Folders below a task's folder, in order of search."""


def reference_path(value: object, item: Item, folders: Iterable[str] = MEDIA_FOLDERS) -> Path:
    """Return the file or folder of an annotation's path, searched in the task's folder and its media folders.

    Raises:
        DataError: it is no relative path, or leads out of the task's folder.
        MediaError: nothing is there.
    """
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise DataError(f"{item.where}: {value!r:.80} is no path")
    relative = Path(value.strip())
    if relative.is_absolute() or ".." in relative.parts:
        raise DataError(f"{item.where}: the path {value!r} leads out of the task's folder")
    tried = [item.folder / folder / relative for folder in folders]
    for path in tried:
        if path.exists():
            return path
    raise MediaError(f"{item.where}: {value!r} is not there; looked for {', '.join(map(str, tried[:3]))}")


def predicted_path(value: object, item: Item) -> Path:
    """Return the file or folder that a prediction names. The path is absolute, or relative to the prediction file's
    folder.

    Raises:
        UnreadableAnswer: it is no path. MissingAnswer: nothing is there.
    """
    if not isinstance(value, str) or not value.strip() or "\0" in value or len(value) > 4096:
        raise UnreadableAnswer(f"{item.where}: the prediction {value!r:.80} is no path of a file")
    path = item.prediction_folder / value.strip()
    try:
        found = path.exists()
    except OSError:
        found = False
    if not found:
        raise MissingAnswer(f"{item.where}: the predicted file {value!r:.200} is not there ({path.parent})")
    return path
